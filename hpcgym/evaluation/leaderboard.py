"""What an evaluation found: a row a policy, a value a slice, intervals, wins and regret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import described
from hpcgym.errors import HpcgymError, unknown
from hpcgym.evaluation.intervals import Ends, bootstrap, win_rates
from hpcgym.scheduler.rules import Scheduler

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """What :func:`hpcgym.evaluation.evaluate` returns.

    Attributes
    ----------
    by_slice : mean bounded slowdown of the jobs of each slice: a row a slice, a column a policy;
        nan where the policy failed.
    schedulers : policy -> the rules it was simulated with; None for one that acted in an
        environment.
    static_weights : feature -> weight of the row "best-static"; empty if it was left out.
    failures : (policy, slice) -> what went wrong.
    seed, resamples : of the confidence intervals.
    costs : what else to look at, since a policy may buy slowdown with it: a row a policy, with the
        means over the slices of ``mean_wait_s`` and ``utilization``.
    references : rows, dispatchers and references, to the best of which all are compared by
        ``above_reference``; empty if no dispatcher that solves a model is among them. Under budgets
        of energy it is "powercap", where jobs share nodes "filler-co".
    energy : under limits of power and energy: ``energy_j``, that of the whole schedule, and
        ``limited_energy_j``, that while limits hold -> values as in ``by_slice`` [J].
    makespans : where jobs share nodes, values as in ``by_slice`` [s]; else None.
    """

    by_slice: pd.DataFrame
    schedulers: Mapping[str, Scheduler | None]
    static_weights: Mapping[str, float]
    failures: Mapping[tuple[str, str], str]
    seed: int = 0
    resamples: int = 2000
    costs: pd.DataFrame | None = None
    references: tuple[str, ...] = ()
    energy: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    makespans: pd.DataFrame | None = None

    def __repr__(self) -> str:
        slices, policies = self.by_slice.shape
        return f"Leaderboard({policies} policies, {slices} slices)"

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a policy, the best first; those that failed last.

        - ``mean_bsld``: the mean over the slices of the mean bounded slowdown of their jobs;
          ``mean_bsld_low`` and ``mean_bsld_high``: its 95 % bootstrap confidence interval, the
          percentiles of the means over random resamples of the slices, the same resamples for all
          policies; nan with fewer than five slices, whose resamples would say nothing. It says how
          far the mean depends on the choice of slices; slices that overlap are worth less than
          their number.
        - ``median_bsld``: the median over the slices of the same.
        - ``win_rate``: share of the slices on which no policy is better; k policies that are
          equally good get 1/k each, so that the rates add up to 1.
        - ``mean_regret``: mean over the slices of BSLD / BSLD of the slice's best policy - 1.
        - ``mean_wait_s``, ``utilization``: means over the slices, see ``costs``.
        - ``above_reference``, where there is a :attr:`reference`: the mean BSLD less that of it;
          ``above_reference_low`` and ``above_reference_high``: the interval of :meth:`difference`.
        - ``energy_j``, ``limited_energy_j``, under limits: the means of :attr:`energy`, each with
          its ``_low`` and ``_high``; where jobs share nodes ``makespan_s`` likewise, and
          ``improvement``: mean over the slices of the makespan of the reference over the policy's,
          less 1, with its interval (as :func:`hpcgym.evaluation.compare_shuffles` has it).
        - ``slices``, ``failed``: number of slices, and of those on which the policy failed. If it
          did, its means are nan: those of the other slices could not be compared with anything.
        """
        import pandas as pd

        values = self.by_slice.to_numpy()
        low, high = self._interval(values)
        best = np.fmin.reduce(values, axis=1)[:, None]  # fmin passes over nan
        columns = {
            "mean_bsld": values.mean(axis=0),
            "mean_bsld_low": low,
            "mean_bsld_high": high,
            "median_bsld": np.median(values, axis=0),
            "win_rate": win_rates(values),
            "mean_regret": (values / best - 1.0).mean(axis=0),
            "slices": np.full(values.shape[1], len(values)),
            "failed": np.isnan(values).sum(axis=0),
        }
        if self.reference is not None:
            columns |= self._above(self.reference)
        if self.costs is not None:
            for name in self.costs:
                columns[str(name)] = self.costs[name].to_numpy()
        for name, values_of in self._others.items():
            columns |= self._with_interval(name, values_of.to_numpy())
        if self.makespans is not None and self.reference is not None:
            each = self.makespans.rdiv(self.makespans[self.reference], axis=0).to_numpy() - 1
            columns |= self._with_interval("improvement", each)
        index = pd.Index(list(self.by_slice.columns), name="policy")
        return pd.DataFrame(columns, index=index).sort_values("mean_bsld", kind="stable")

    @property
    def _others(self) -> dict[str, pd.DataFrame]:
        """What has intervals beside the bounded slowdown: metric -> values as in ``by_slice``."""
        more = {} if self.makespans is None else {"makespan_s": self.makespans}
        return {**self.energy, **more}

    @property
    def reference(self) -> str | None:
        """That of ``references`` with the least mean BSLD; None if none is without a failure."""
        means = self.by_slice[list(self.references)].mean(skipna=False).dropna()
        return None if means.empty else str(means.idxmin())

    def _above(self, reference: str) -> dict[str, NDArray[np.float64]]:
        """Return the columns of how far above a reference all are."""
        less = self.by_slice.sub(self.by_slice[reference], axis=0).to_numpy()
        return self._with_interval("above_reference", less)

    def _with_interval(
        self, name: str, values: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """Return the columns of the means of values, a row a slice, and of their intervals."""
        low, high = self._interval(values)
        return {name: values.mean(axis=0), f"{name}_low": low, f"{name}_high": high}

    def difference(
        self, policy: str, reference: str, metric: str = "mean_bsld"
    ) -> tuple[float, float, float]:
        """Return the mean BSLD of one policy less that of another, and its 95 % interval.

        Under limits ``metric`` may be one of :attr:`energy` as well, and where jobs share nodes
        "makespan_s".

        The interval is that of paired resamples: if it lies below 0, ``policy`` is better than
        ``reference`` by more than the choice of slices explains.

        Returns
        -------
        mean, low, high : nan if one of them failed on a slice; the interval also with fewer than
            five slices.

        Raises
        ------
        HpcgymError : no such policy, or no such metric.
        """
        known = {"mean_bsld": self.by_slice, **self._others}
        if metric not in known:
            raise HpcgymError(unknown("metric", metric, known))
        by_slice = known[metric]
        for name in (policy, reference):
            if name not in self.by_slice:
                raise HpcgymError(unknown("policy", name, self.by_slice.columns))
        values = (by_slice[policy] - by_slice[reference]).to_numpy()[:, None]
        low, high = self._interval(values)
        return float(values.mean()), float(low[0]), float(high[0])

    def facts(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, for JSON."""
        policies = []
        for name, row in self.table.to_dict(orient="index").items():
            scheduler = self.schedulers[str(name)]
            rules = None if scheduler is None else described(scheduler)
            policies.append({"name": name, **row, "scheduler": rules})
        return {
            "policies": policies,
            "static_weights": dict(self.static_weights),
            "reference": self.reference,
            "by_slice": self.by_slice.to_dict(orient="index"),
            **{f"{name}_by_slice": of.to_dict(orient="index") for name, of in self._others.items()},
            "failures": [
                {"policy": policy, "slice": where, "error": error}
                for (policy, where), error in self.failures.items()
            ],
        }

    def _interval(self, values: NDArray[np.float64]) -> Ends:
        """Return the ends of the confidence intervals of the columns' means."""
        return bootstrap(values, self.resamples, self.seed)
