"""A simulation that is driven to a time: what the simulator asks for is answered as it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hpcgym.compilation import compiling
from hpcgym.engine import state
from hpcgym.engine.answers.answering import answering
from hpcgym.engine.answers.expressed import Expressed, express_all
from hpcgym.engine.answers.formulas import BUILT_IN
from hpcgym.engine.answers.shares import Shares, counting
from hpcgym.engine.machines.kinds import (
    CORUN,
    FAILING,
    LIMITED,
    NODES,
    NODES_PREEMPTING,
    NODES_RESTRICTED,
    POOL,
    POOL_PREEMPTING,
    POOL_RESTRICTED,
    Kind,
)
from hpcgym.engine.passes.preempting import Preempting
from hpcgym.engine.passes.requeueing import lengthened
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates.by_name import learns
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation import native
from hpcgym.simulation.expressed import make_expressed
from hpcgym.simulation.fair_share import begin_shares, make_shares
from hpcgym.simulation.kernel_passes import Kernels
from hpcgym.simulation.native_nodes import nodes_in
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.preempting import StoppedRuns, for_result, preempting
from hpcgym.simulation.prepare import prepare
from hpcgym.simulation.restricted import check_restricted, profile_for, restricted
from hpcgym.simulation.warm_start import (
    Beginning,
    begin_with,
    beginning_of,
    hold_on_nodes,
    learned_before,
    place_running,
)

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.engine.machines.nodes.placement import Nodes
    from hpcgym.scheduler.dispatchers.late import LateDispatcher
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.simulation.corun_learning import PairLearning
    from hpcgym.workload.model import Workload


@dataclass
class Simulation:
    """A simulation, and those who answer it.

    Attributes
    ----------
    kind : of the machine.
    arrays : of the simulation.
    machine : as its kind takes it; one with a longer log once that is full.
    learning : predicts run times, or None.
    shares : keep accounts of users, or None.
    expressed : orders that are worked out anew at each pass, or None.
    dispatch : starts jobs in a pass, or None.
    late : whose answers come later than the passes at which it is asked, or None.
    after_pass : is called after each pass, or None.
    pairs : learns from jobs that share nodes, or None.
    lengthen : returns the machine with a longer log; None if it has none.
    ticks : of its clock in a second.
    beginning : how it begins if that is with jobs that run or wait, and it has not begun; or None.
    begun : whether the kernels have it from its beginning on, be there jobs then or not.
    """

    kind: Kind
    arrays: state.Prepared
    machine: Any = ()
    learning: Learning | None = None
    shares: Shares | None = None
    expressed: Expressed | None = None
    dispatch: Callable[[state.Prepared, Any], None] | None = None
    late: LateDispatcher | None = None
    after_pass: Callable[[], None] | None = None
    pairs: PairLearning | None = None
    lengthen: Callable[[Any], Any] | None = None
    ticks: int = 1
    beginning: Beginning | None = None
    begun: bool = False

    def drive(self, until: int = state.FOREVER, goes_on: bool = True) -> None:
        """Simulate up to ``until``, on the simulation's clock; called again, it goes on.

        ``goes_on``: unless it is not to, and nobody looks at more than the progress of jobs.
        """
        sim = self.arrays.sim
        known = not goes_on and sim.depth <= 1 and not sim.tested  # no reservations to look at
        to_end = until == state.FOREVER or known
        if to_end and self._is_plain and native.serves(self):
            native.simulate_natively(self, until)
            self.begun = True
            return
        self.begin()
        run = self.kind.loop_of(self.arrays.sim)
        learning, answers = self.learning, ()
        if any(part is not None for part in (learning, self.shares, self.expressed)):
            run = answering(run, self.kind.told, BUILT_IN)
            parts = (None, None) if learning is None else (learning.estimators, learning.learner)
            answers = (*parts, self.shares, self.expressed)
        if self.pairs is not None:
            self.after_pass = partial(self.pairs.learn, self.arrays, self.machine)
        most = state.ALL_PASSES if self.after_pass is None else 1
        with compiling(run):
            while True:
                stop = until if self.late is None else min(until, self.late.due)
                passes = run(*self.arrays, self.machine, *answers, stop, most)
                if self.arrays.sim.asked:
                    self._answer()
                elif self.lengthen is not None and self.machine.scalars[0].full:
                    self.machine = self.lengthen(self.machine)
                elif self.after_pass is not None and passes:
                    self.after_pass()
                elif self.late is not None and stop == self.late.due < state.FOREVER:
                    self.late.arrive(Kernels(self.arrays, self.machine))
                else:
                    break
        if learning is not None:
            learning.finish()

    def begin(self) -> None:
        """Let the kernels begin, if they have not."""
        if self.beginning is not None:
            begin_with(self.arrays, self.beginning, self.learning)
            _begin_scores(self.arrays, self.shares, self.expressed)
            nodes = nodes_in(self.machine)
            if nodes is not None:
                place_running(self.beginning, nodes)
                hold_on_nodes(self.arrays, nodes, self.beginning.ongoing)
        self.beginning, self.begun = None, True

    @property
    def _is_plain(self) -> bool:
        """Whether nobody looks at each pass."""
        kinds = (POOL, POOL_RESTRICTED, POOL_PREEMPTING, NODES, NODES_RESTRICTED, NODES_PREEMPTING)
        others = (FAILING, CORUN, LIMITED)
        return self.kind in (*kinds, *others) and self.after_pass is None

    @property
    def for_result(self) -> dict[str, Any]:
        """What a result tells of learning and preemption, by its attributes."""
        found: dict[str, Any] = {}
        if isinstance(self.machine, Preempting):
            own: Any = self.machine.scalars[0]
            logs = self.machine.lost[: own.lost], self.machine.cells[: own.cells]
            found |= for_result(StoppedRuns(own.mode, *logs), self.arrays.progress["start"])
        if self.learning is None:
            return found
        return found | {
            "learned": self.learning.learned,
            "policy_run_time": self.learning.policy_run_time,
        }

    def _answer(self) -> None:
        """Answer what compiled code does not."""
        a = self.arrays
        if a.sim.asked == state.AN_ORDER:
            assert self.dispatch is not None
            self.dispatch(a, self.machine)
            return
        assert self.learning is not None
        self.learning.ask_predictors(a.scores if self.shares is None else self.shares.base)
        if self.shares is not None and a.sim.asked != state.A_CORRECTION:
            counting(self.kind.told)(
                a.jobs, a.scores, a.sim, a.progress, a.blocks, a.entries, a.ended, self.machine,
                self.shares, True,
            )  # fmt: skip
        if self.expressed is not None and a.sim.asked == state.A_RENEWAL:
            express_all(a.jobs, a.scores, a.sim, a.blocks, a.entries, self.expressed, self.shares)


def new_simulation(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    nodes: Nodes | None = None,
    learned: Learned | None = None,
    always_learns: bool = False,
) -> Simulation:
    """Return a simulation on a pool, or on nodes, before its first event.

    ``always_learns``: also where the kernel could average by itself, and tells nobody.

    Raises
    ------
    HpcgymError : rules that it cannot have.
    WorkloadError : a job that cannot be simulated.
    """
    asks, counts = asks_for_answers(scheduler, learned)
    asks |= always_learns and learns_in(scheduler)
    logs = counts or nodes is not None or scheduler.restricts
    arrays = prepare(workload, scheduler, cluster, asks, logs_ends=logs, shares=counts)
    if scheduler.restricts:
        check_restricted(workload, scheduler, arrays.sim, nodes is not None)
        arrays = arrays._replace(profile=profile_for(scheduler, arrays.profile))
    answers = answers_for(workload, scheduler, cluster, arrays, asks, counts, learned)
    kind: Kind = POOL if nodes is None else NODES
    machine: Any = () if nodes is None else nodes
    if scheduler.restricts:
        kind, machine = restricted(workload, scheduler, cluster, nodes, arrays)
    if scheduler.preemption is not None:
        kind, machine = preempting(workload, scheduler, cluster, machine)
        answers["lengthen"] = lengthened
    return Simulation(kind, arrays, machine, **answers)


def answers_for(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    arrays: state.Prepared,
    asks: bool,
    counts: bool,
    learned: Learned | None = None,
    ticks: int = 1,
) -> dict[str, Any]:
    """Return what answers in a simulation, as :class:`Simulation` takes it.

    That of an extract begins with its state then, and what has been learned from its past, unless
    ``learned`` is given. ``asks``: it asks for predictions; ``counts``: usage is counted in it;
    ``ticks``: of its clock in a second.
    """
    learning = None
    if asks:
        before = learned_before(workload, scheduler) if learned is None else learned
        learning = Learning(workload, scheduler, arrays, before)
    beginning = beginning_of(workload, scheduler, cluster, arrays)
    shares = make_shares(workload, scheduler, cluster, arrays, ticks) if counts else None
    times = None if learning is None else learning.policy_run_time
    expressed = make_expressed(workload, scheduler, times, ticks)
    return {
        "learning": learning,
        "shares": shares,
        "expressed": expressed,
        "ticks": ticks,
        "beginning": beginning,
    }


def _begin_scores(
    arrays: state.Prepared, shares: Shares | None, expressed: Expressed | None
) -> None:
    """Give jobs that wait when a simulation begins the scores of then: it may be with a pass."""
    if shares is not None:
        begin_shares(arrays, shares)
    if expressed is not None:
        a = arrays
        express_all(a.jobs, a.scores, a.sim, a.blocks, a.entries, expressed, shares)


def asks_for_answers(scheduler: Scheduler, learned: Learned | None = None) -> tuple[bool, bool]:
    """Return whether a simulation asks for predictions, and whether usage is counted in it."""
    asks = asks_for_predictions(scheduler) or (learned is not None and learns_in(scheduler))
    return asks, any(scheduler.usage_orders)


def check_learned(scheduler: Scheduler, learned: Learned | None) -> None:
    """Raise an HpcgymError if something has been learned that nobody goes on with."""
    if learned is not None and not learns_in(scheduler):
        raise HpcgymError("learned: no estimate of this scheduler learns")


def learns_in(scheduler: Scheduler) -> bool:
    """Return whether an estimate of the scheduler learns."""
    return learns(scheduler.estimate) or learns(scheduler.policy_estimate)
