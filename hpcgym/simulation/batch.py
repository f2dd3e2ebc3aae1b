"""Many weight vectors on many slices of a trace at once, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym._engine import Many
from hpcgym._engine import Simulation as Native
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, check_choice, check_whole
from hpcgym.machine.pool import Cluster
from hpcgym.processors import threads_here
from hpcgym.schedule.metrics import TAU_S, check_tau
from hpcgym.scheduler.allocations import check_allocation
from hpcgym.scheduler.asked_for import (
    check_fair_share,
    check_scheduler,
    check_weighed,
    counts_usage,
)
from hpcgym.scheduler.policies.features import (
    WEIGHTED_FEATURES,
    Weighed,
    check_features,
)
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.unused import warn_of_unused
from hpcgym.scheduler.whole_nodes import (
    check_for_limits,
    check_power_rule,
    own_nodes_by,
    warn_of_own_nodes,
)
from hpcgym.simulation.allowance import spend
from hpcgym.simulation.driver import Run, by_weights
from hpcgym.simulation.limited import own_place, with_own_nodes
from hpcgym.simulation.nodes import place_of
from hpcgym.workload.checks import needs_on
from hpcgym.workload.constraints import machine_for
from hpcgym.workload.load import machine_of
from hpcgym.workload.model import Workload


def _run(
    part: Workload, rules: Scheduler, machine: Cluster, features: tuple[str, ...]
) -> tuple[Run, Weighed]:
    """Return a simulation of a slice, and what weights weigh in it."""
    if own_nodes_by(machine, rules):
        check_for_limits(rules, False)
        needs = needs_on(part, machine)
        part = with_own_nodes(part, rules, machine, (), needs)
        warn_of_own_nodes(needs, machine, rules)
        _, place = own_place(part, rules, machine, (), needs)
    else:
        place = place_of(part, rules, machine)
    if place.nodes is not None:
        check_scheduler(rules, "nodes", "batches on nodes")
    return by_weights(part, rules, place, features)


_NAMES = (
    *("mean_bsld", "max_bsld", "rms_bsld", "mean_slowdown", "mean_wait_s", "max_wait_s"),
    *("mean_response_s", "max_response_s", "makespan_s", "utilization"),
)
#: Metric -> its code in the engine; each is what :func:`hpcgym.schedule.metrics.compute_metrics`
#: calls so.
METRICS = {name: code for code, name in enumerate(_NAMES)}

_JOBS_A_CALL = 4_000_000  # simulated between two reports of progress, a fraction of a second


class BatchSimulator:
    """Simulates slices of one trace, each from its own beginning, under many weight vectors.

    Machines are pools of processors, nodes that several jobs may be on, or nodes of jobs' own,
    which `shutdown_after_s` and `allocation="contiguous"` give them. They are empty at first but
    where a slice is an extract: under each vector that begins with the same state.
    Of an extract of a simulation weights take over, as another scheduler does.

    The schedules are those of :func:`hpcgym.simulate` with the same rules and the vector as policy,
    to the last bit; the metrics are those of the result, but for the rounding of sums. Neither
    depends on the number of threads. Jobs are prepared once, and shared by all simulations.

    Parameters
    ----------
    slices : workloads of one machine, such as ``trace.weeks()`` returns.
    features : names of :data:`hpcgym.scheduler.policies.FEATURES`, or of ``USER_FEATURES`` beside
        them, one for each weight of a vector.
    scheduler : all rules but the policy: a name or a ``Scheduler``. "spf" stands for EASY that
        backfills by requested time, as in Legrand 2018. Its ``fair_share`` says how usage counts
        where a feature or ``backfill_order`` looks at it: each slice's of its own users.
    cluster, processors : the machine; by default that of the slices.
    tau : [s] run times below this count as this in bounded slowdowns.

    Attributes
    ----------
    names : of the slices.
    sizes : (n_slices,) int64, jobs of each slice.
    features : as given.

    Raises
    ------
    HpcgymError : no slice, slices of different machines, or rules that the batch does not know:
        an order of nodes on a pool, or features that look at when jobs are submitted where the
        schedule says when they are.
    WorkloadError : a job that cannot be simulated.

    Examples
    --------
    >>> import hpcgym
    >>> from hpcgym.simulation.batch import BatchSimulator
    >>> trace = hpcgym.load_workload("lublin:jobs=9000,processors=128,seed=0,load=0.9")
    >>> batch = BatchSimulator(trace.weeks(), ["area", "wait"])
    >>> batch.run([[-1, 0], [-1, 20]]).shape == (2, len(batch))
    True
    """

    def __init__(
        self,
        slices: Sequence[Workload],
        features: Sequence[str] = WEIGHTED_FEATURES,
        scheduler: str | Scheduler = "spf",
        *,
        cluster: Cluster | int | None = None,
        processors: int | None = None,
        tau: float = TAU_S,
    ) -> None:
        parts = _checked(slices)
        self.features = feature_names(features, usage=True)
        rules = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
        rules = rules.for_weights()
        if rules.order.function is not None:  # weights are the order, whatever the policy is
            rules = rules.but(policy="fcfs")
        machine = machine_of(parts[0], cluster, processors, scheduler)
        for part in parts[1:]:
            machine = machine_for(part, machine)
        check_power_rule(rules, None)
        check_allocation(rules.allocation, machine)
        check_scheduler(rules, "batches")
        if not isinstance(rules.estimate, str) or not isinstance(rules.policy_estimate, str):
            raise HpcgymError("scheduler: the batch takes estimates by name, not arrays")
        check_weighed(self.features, rules)
        self._many: tuple[int, Many] | None = None  # threads, and those that work on them
        self.scheduler, self.processors = rules, machine.processors
        self.names = [part.name for part in parts]
        self.sizes = np.array([len(part) for part in parts])
        self.tau = check_tau(tau)
        check_fair_share(rules.fair_share, counts_usage(rules, self.features))
        # the simulations are to have what any weights look at
        rules = rules.but(policy=dict.fromkeys(self.features, 1.0))
        runs, made = zip(
            *(_run(part, rules, machine, self.features) for part in parts), strict=True
        )
        self._simulations: list[Native] = [run.simulation.native for run in runs]
        warn_of_unused(parts, [rules], self.features)
        # of the features of all jobs, how large they become, and which weight is theirs
        largest = [np.abs(own.static).max(axis=0, initial=1.0) for own in made]
        self._largest, self._places = np.max(largest, axis=0), made[0].places

    def __len__(self) -> int:
        return len(self.sizes)

    def run(
        self,
        weights: ArrayLike,
        metrics: str | Sequence[str] = "mean_bsld",
        *,
        threads: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float64]:
        """Simulate every slice under every vector.

        Parameters
        ----------
        weights : (n_vectors, n_features); or (n_vectors, n_slices, n_features), where each slice
            has vectors of its own. Vectors need not be normalised; with all weights 0 jobs are
            served by submission.
        metrics : a name of :data:`METRICS`, or several.
        threads : how many work on it; by default one for each processor that this process may use,
            at most OMP_NUM_THREADS. With 1 no thread is started.
        progress : called with the number of simulations done so far, now and then.

        Returns
        -------
        values : (n_vectors, n_slices) float64; (n_vectors, n_slices, n_metrics) of several metrics.

        Raises
        ------
        HpcgymError : weights of another shape or that are no finite numbers, scores beyond double
            precision, or an unknown metric.
        """
        vectors = self._vectors(weights)
        names = [metrics] if isinstance(metrics, str) else list(metrics)
        if not names:
            raise HpcgymError("metrics: there must be at least one")
        codes = np.array(
            [METRICS[check_choice("metric", name, METRICS)] for name in names], np.int64
        )
        spend(len(vectors) * int(self.sizes.sum()))
        values = np.empty((len(vectors), len(self), len(codes)))
        most = threads_here()
        n_threads = most if threads is None else min(check_whole("threads", threads, 1), most)
        self._fill(values, vectors, codes, n_threads, progress)
        return values[:, :, 0] if isinstance(metrics, str) else values

    def _fill(
        self,
        values: NDArray[np.float64],
        vectors: NDArray[np.float64],
        codes: NDArray[np.int64],
        threads: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        """Write the metrics of all simulations, some at a time."""
        tasks = values.shape[0] * values.shape[1]
        at_once = max(threads, int(_JOBS_A_CALL / self.sizes.mean()))
        if self._many is None or self._many[0] != threads:
            self._many = threads, Many(self._simulations, threads)
        for first in range(0, tasks, at_once):
            stop = min(first + at_once, tasks)
            self._many[1].simulate(vectors, codes, self.tau, first, stop, values)
            if progress is not None:
                progress(stop)

    def _vectors(self, weights: ArrayLike) -> NDArray[np.float64]:
        """Return the weights as (n_vectors, 1 or n_slices, n_features), checked."""
        try:
            vectors = np.array(weights, np.float64, order="C")
        except (TypeError, ValueError):
            raise HpcgymError("weights must be numbers, one vector a row") from None
        n, slices = len(self.features), len(self)
        if vectors.ndim == 2 and vectors.shape[1] == n:
            vectors = vectors[:, np.newaxis, :]
        elif vectors.ndim != 3 or vectors.shape[1:] != (slices, n):
            raise HpcgymError(
                f"weights must have the shape (n_vectors, {n}) or (n_vectors, {slices}, {n}), not"
                f" {vectors.shape}"
            )
        if not np.isfinite(vectors).all():
            raise HpcgymError("weights must be finite numbers")
        used = np.abs(vectors)
        by_feature = used[:, :, self._places]
        with np.errstate(over="ignore"):
            largest = (by_feature * self._largest).sum(axis=2).max(initial=0.0)
        smallest = used[used > 0].min(initial=1.0)
        if largest >= 1e300 or smallest <= 1e-280:
            raise HpcgymError("weights: scores are beyond double precision")
        return vectors


def _checked(slices: Sequence[Workload]) -> list[Workload]:
    """Return the slices, if there are any and they are of one machine."""
    if isinstance(slices, Workload):
        raise HpcgymError("slices must be several workloads; put a single one into a list")
    parts = list(slices)
    for part in parts:
        if not isinstance(part, Workload):
            raise HpcgymError(f"slices must be workloads, not {part!r}")
        if len(part) == 0:
            raise HpcgymError(f"slices: {part.name} has no jobs")
    if not parts:
        raise HpcgymError("slices: there must be at least one")
    machines = sorted({part.processors for part in parts})
    if len(machines) > 1:
        sizes = ", ".join(map(str, machines))
        raise HpcgymError(f"slices must be of one machine, not of {sizes} processors")
    return parts


def feature_names(features: Sequence[str], usage: bool = False) -> tuple[str, ...]:
    """Return names of features, checked: known, different, at least one.

    ``usage``: they may depend on what users have used, too.
    """
    names = (features,) if isinstance(features, str) else tuple(features)
    check_features("feature", names, usage)
    if not names or len(set(names)) < len(names):
        raise HpcgymError(f"features must be different names, at least one, not {features!r}")
    return names
