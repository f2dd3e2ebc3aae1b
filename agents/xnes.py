"""Mixed policies learned by search: the weights with the least bounded slowdown on given slices.

The search of Legrand 2018, section 8.1.2: XNES over weight vectors, each evaluated by simulating
the slices, many at a time (:class:`hpcgym.simulation.batch.BatchSimulator`). CMA-ES and random
search are there as controls. Needs no extra; docs/policies.md says how it searches.

>>> import hpcgym
>>> from hpcgym.agents.xnes import Xnes
>>> from hpcgym.workload.extracts import weeks
>>> trace = hpcgym.load_workload("lublin:jobs=9000,processors=128,seed=0,load=0.9")
>>> agent = Xnes("xnes3", budget=60).fit(weeks(trace)[:1])
>>> list(agent.weights_)
['processors', 'requested', 'wait']
>>> agent.scheduler().backfill_order
'spf'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.practice import Logger, Make, acting
from hpcgym.agents.search import (
    Checkpoint,
    Objective,
    Progress,
    Way,
    features_of,
    go,
    identity,
    searching,
    units_of,
)
from hpcgym.agents.settings import XnesSettings, takes
from hpcgym.baselines import find_scheduler
from hpcgym.baselines.policies import Baseline
from hpcgym.errors import HpcgymError, check_whole, unknown
from hpcgym.files.writing import whole_json
from hpcgym.schedule.metrics import TAU_S, check_tau
from hpcgym.scheduler.asked_for import SITE_RULES
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import OF_SHARED_NODES, RULES, Scheduler
from hpcgym.simulation.batch import METRICS, BatchSimulator
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

NAME = "xnes"
ENV_ID = "hpcgym/MixedPolicy-v2"
FORMAT = 1


@takes(XnesSettings)
class Xnes:
    """Weights that are searched for, and a policy that acts with them.

    It acts in environments that simulate a queue with an order, not in those of limits or of shared
    nodes. The budget is met exactly, and the same arguments give the same weights. After the random
    vectors, the runs share what is left of the budget. Each run begins at the best vector that is
    not close to the beginning of another run; without random vectors, the first begins at 0. The
    penalty is lambda in Legrand 2018, equation 6: value + lambda (||w||_1 + 1 / ||w||_1). It keeps
    the size of vectors near 1; no schedule depends on that size. The scale "spread" is that of
    :func:`hpcgym.agents.search.units_of`; with "none" weights are searched as they are, as in the
    document. The metric is one of :class:`hpcgym.simulation.batch.BatchSimulator`, the mean
    over the slices.

    Parameters
    ----------
    features : "xnes3" (processors, requested, wait), "xnes6"
        (:data:`hpcgym.scheduler.policies.WEIGHTED_FEATURES`), or names of
        :data:`hpcgym.scheduler.policies.FEATURES` or ``USER_FEATURES``.
    scheduler : all rules but the policy: a name or a ``Scheduler``. "spf" stands for EASY that
        backfills by requested time, as in Legrand et al. 2018.
    tau : [s] run times below this count as this in bounded slowdowns.
    **settings : those of :class:`hpcgym.agents.settings.XnesSettings`.

    Attributes
    ----------
    weights_ : feature -> weight, with ||w||_1 = 1; after ``fit``, as the next two.
    best_ : the metric that they reach, mean over the slices.
    slices_ : names of the slices.
    name : the method.
    env_id, env_options : the environment in which it acts when it is evaluated.

    Raises
    ------
    HpcgymError : an argument that is not one of these; of ``fit``, slices that cannot be simulated
        or a checkpoint of another search.
    """

    env_id = ENV_ID
    each_log = True  # the suite trains one for each
    adapts = ("window", "features", "observation", "scale")  # as of Lookahead

    def __init__(
        self,
        features: str | Sequence[str] = "xnes6",
        *,
        scheduler: str | Scheduler = "spf",
        tau: float = TAU_S,
        **settings: Any,
    ) -> None:
        self.features = features_of(features)
        self.plan = XnesSettings(**settings)
        metric = self.plan.metric
        if metric not in METRICS or metric == "utilization":
            less = [name for name in METRICS if name != "utilization"]
            raise HpcgymError(unknown("metric", metric, less))
        if self.name != "random" and len(self.features) < 2:
            raise HpcgymError(
                f"method {self.name!r} needs two features or more, not {self.features}"
            )
        self.seed, self.metric, self.tau = self.plan.seed, metric, check_tau(tau)
        rules = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
        self.rules = rules.for_weights()
        self.weights_: dict[str, float] = {}
        self.best_ = math.nan
        self.slices_: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._actor: Baseline | None = None

    def __repr__(self) -> str:
        return f"Xnes({self.name!r}, {', '.join(self.features)})"

    @property
    def name(self) -> str:
        """What it is called on leaderboards."""
        return self.plan.method

    @property
    def env_options(self) -> dict[str, Any]:
        """The features and rules of the environment in which it is evaluated."""
        return {"policy_features": list(self.features), "interval": "episode", **self._rules()}

    # -- learning ----------------------------------------------------------------------------------

    def train(self, make: Make, seed: int, steps: int, log: Logger | None = None) -> Xnes:
        """Search as the suite trains agents, on the train part: with its features and rules.

        Each vector is simulated on the whole part, which counts as so many steps as it has jobs.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of the search.
        steps : as many vectors are tried as they pay for; of a part with more jobs than steps, one
            on its last jobs.
        log : is told the least mean bounded slowdown so far.
        """
        env = make()
        world = self.check(env)
        jobs = world.options.workload
        jobs = jobs.take(slice(-check_whole("steps", steps, 1), None), name=jobs.name)
        settings = {"budget": steps // len(jobs), "seed": seed}
        rules = Scheduler(**world.scheduler_rules)
        agent = Xnes(world.policy_features, scheduler=rules, **{**vars(self.plan), **settings})
        vars(self).update(vars(agent))
        env.close()

        def progress(done: int, best: float) -> None:
            if log is not None:
                log(done * len(jobs), {"train/least_mean_bsld": best})

        return self.fit(jobs, progress=progress, threads=1)

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError unless its actions are weights."""
        return acting(env, self.name, "weights")

    def fit(
        self,
        workload: str | Workload | Sequence[Workload],
        *,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> Xnes:
        """Search for the weights that are best for all slices together.

        Parameters
        ----------
        workload : slices of one trace, such as :func:`hpcgym.workload.extracts.weeks` returns; or
            a workload, or what :func:`hpcgym.load_workload` takes, which is one slice.
        checkpoint : file for what is known so far, written every few seconds and when it is
            interrupted; the same search goes on from there. It is deleted at the end.
        progress : called with the evaluations done and the best value so far.
        threads : how many simulate; by default all. The result is the same.

        """
        parts = _slices(workload)
        batch = self._batch(parts)

        def objective(weights: NDArray[np.float64]) -> NDArray[np.float64]:
            return _mean(batch.run(weights[:, 0, :], self.metric, threads=threads))

        self._search(objective, [self], [parts], checkpoint, progress)
        return self

    def fit_each(
        self,
        slices: Sequence[Workload],
        *,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> list[Xnes]:
        """Search for the best weights of each slice, all searches side by side.

        That of the k-th slice, from 0, finds what ``Xnes(..., seed=seed + k).fit([slices[k]])``
        does, within the same ``budget``; but here all threads have work. For the arguments see
        :meth:`fit`; progress is told the mean over the slices of their best values.

        Returns
        -------
        agents : one fitted for each slice, in their order.
        """
        parts = _slices(slices)
        batch = self._batch(parts)
        searches = [_made({**self.settings(), "seed": self.seed + k}) for k in range(len(parts))]

        def objective(weights: NDArray[np.float64]) -> NDArray[np.float64]:
            return batch.run(weights, self.metric, threads=threads)

        self._search(objective, searches, [[part] for part in parts], checkpoint, progress)
        return searches

    @property
    def trace_(self) -> pd.DataFrame:
        """How the search went, a row a generation.

        Columns: ``evaluations`` so far; ``restart``, 0 for the random vectors before the first run;
        ``generation`` of the run; ``value``, the least of the generation; ``best`` so far;
        ``objective``, ``best`` with the penalty, as Legrand et al. 2018 has it (||w||_1 = 1);
        ``step_size``; and for each feature its weight in the best vector so far.
        """
        import pandas as pd

        self._found()
        return pd.DataFrame(self._rows).astype({"step_size": float})

    def _search(
        self,
        objective: Objective,
        searches: Sequence[Xnes],
        slices: Sequence[Sequence[Workload]],
        path: str | Path | None,
        progress: Progress | None,
    ) -> None:
        """Do searches side by side, each on its slices."""
        ways = []
        for agent, parts in zip(searches, slices, strict=True):
            units = units_of(self.plan.scale, parts, self.features)
            search = searching(agent.plan, units)
            ways.append(Way(search, units.scale, self.features, self.plan.penalty))
        with Checkpoint(path, identity(self.settings(), slices)) as known:
            go(ways, objective, known, progress)
        for agent, parts, way in zip(searches, slices, ways, strict=True):
            agent.weights_ = dict(zip(self.features, way.weights.tolist(), strict=True))
            agent.best_, agent.slices_ = way.best, [part.name for part in parts]
            agent._rows = way.rows

    def _batch(self, parts: Sequence[Workload]) -> BatchSimulator:
        return BatchSimulator(parts, self.features, self.rules, tau=self.tau)

    def settings(self) -> dict[str, Any]:
        """Return the arguments as plain values."""
        return {
            "features": list(self.features),
            **vars(self.plan),
            "tau": self.tau,
            "scheduler": self._rules(),
        }

    def _rules(self) -> dict[str, Any]:
        """Return all rules but the policy, which is searched for; no dispatcher has weights.

        Nor are weights searched under limits of power, quotas, windows of maintenance, dependencies
        or preemption.
        """
        of_others = ("dispatcher", "dispatch_time", *SITE_RULES, *OF_SHARED_NODES)
        others = ("policy", "fair_share", "power", *of_others)
        names = (name for name in RULES if name not in others)
        rules = {name: _plain(getattr(self.rules, name)) for name in names}
        rules["hold"] = self.rules.describe()["hold"]
        if isinstance(self.rules.fair_share, FairShare):
            table = self.rules.fair_share.table()
            for name, value in table.items():
                if isinstance(value, dict):  # keys are texts, as in files
                    table[name] = {str(account): share for account, share in value.items()}
            rules["fair_share"] = table
        return rules

    # -- acting ------------------------------------------------------------------------------------

    def scheduler(self) -> Scheduler:
        """Return the scheduler with these weights, for :func:`hpcgym.simulate`."""
        return self.rules.but(policy=self._found())

    def begin(self, env: Any) -> None:
        """Look at the jobs of an episode; to be called after each reset."""
        for rule in ("threshold", "hold"):
            ours, theirs = getattr(self.rules, rule), env.unwrapped.scheduler_rules.get(rule)
            if ours not in (None, theirs):
                raise HpcgymError(
                    f"these weights were learned with {rule}={self.rules.describe()[rule]}, and"
                    f" the environment has {theirs}; give it {rule}, or simulate with"
                    " agent.scheduler()"
                )
        self._actor = Baseline(self._found(), self.name)
        self._actor.begin(env)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the action: the weights, or in other environments the job or order they choose.

        See :meth:`hpcgym.baselines.policies.Baseline.act`.
        """
        if self._actor is None:
            raise HpcgymError(f"{self.name}: call begin(env) after the reset, then act")
        return self._actor.act(observation, info)

    def _found(self) -> dict[str, float]:
        if not self.weights_:
            raise HpcgymError(f"{self.name}: nothing has been learned; call fit first")
        return self.weights_

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, in such a way that a reader never sees half of it."""
        contents = {
            "format": FORMAT,
            "agent": NAME,
            "weights": self._found(),
            "best": self.best_,
            "slices": self.slices_,
            "settings": self.settings(),
            "trace": self._rows,
        }
        whole_json(path, contents)


def load(contents: Mapping[str, Any]) -> Xnes:
    """Return the agent of a file's contents; :func:`hpcgym.agents.load` reads files.

    Raises
    ------
    HpcgymError : contents of another kind, or values that cannot be.
    """
    if contents.get("agent") != NAME:
        raise HpcgymError(f"it holds no {NAME}")
    if contents.get("format") != FORMAT:
        raise HpcgymError(f"this {NAME} is not of this version")
    agent = _made(contents["settings"])
    agent.weights_ = {name: float(weight) for name, weight in contents["weights"].items()}
    agent.best_, agent.slices_ = float(contents["best"]), list(contents["slices"])
    agent._rows = list(contents["trace"])
    agent.scheduler()
    return agent


def _made(settings: Mapping[str, Any]) -> Xnes:
    """Return a search by its settings."""
    return Xnes(**{**settings, "scheduler": Scheduler(**settings["scheduler"])})


def _plain(value: Any) -> Any:
    """Return a rule as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means over the slices, (n_vectors, 1)."""
    means: NDArray[np.float64] = values.mean(axis=1, keepdims=True)
    return means


def _slices(workload: Any) -> list[Workload]:
    """Return the slices that are given, one or several."""
    if isinstance(workload, str | Path):
        workload = load_workload(workload)
    return [workload] if isinstance(workload, Workload) else list(workload)
