"""What is saved of a simulation: nothing that is damaged, or of another one, is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from pieces import Pieces, pieces

import hpcgym
from hpcgym._engine import Simulation
from hpcgym.machine import Cluster, Failures, NodeGroup, NodePower
from hpcgym.machine.speedups import Heatmap
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.workload import with_codes
from hpcgym.workload.model import Workload

SUBMIT, RUN = [0, 0, 1, 2, 3, 5, 40, 41], [10, 40, 30, 8, 60, 5, 20, 20]
REQUESTED = [20, 50, 30, 30, 60, 10, 20, 40]
JOBS = few_jobs(
    8,
    SUBMIT,
    RUN,
    [4, 4, 8, 2, 1, 8, 3, 5],
    REQUESTED,
    user_id=[1, 2, 1, 1, 3, 2, 2, 1],
    queue=[1, 1, 2, 1, 1, 2, 1, 2],
    job_number=list(range(1, 9)),
)
#: Units of two cores each: on a machine of nodes only units of one core are as on a pool.
PAIRS = few_jobs(
    8,
    SUBMIT,
    RUN,
    [4, 4, 8, 2, 2, 8, 2, 4],
    REQUESTED,
    units=[2, 2, 4, 1, 1, 4, 1, 2],
    per_unit={"core": [2] * 8},
)
CHAIN = JOBS.with_columns(preceding_job=[-1, -1, 1, -1, 2, -1, -1, 3])
NODES = Cluster(groups=(NodeGroup("a", 2, {"core": 4}),))
FAILED = Failures(np.array([1]), np.array([6]), np.array([70]))
LIMITED = Cluster(groups=(NodeGroup("a", 4, {"core": 2}, NodePower(10.0, 100.0)),))
LIMITS = [PowerCap(210.0, 5, 60), EnergyBudget(100_000.0, 70, 400)]
PAIR = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])
SHARED = Cluster(groups=(NodeGroup("n", 2, {"core": 4}, sockets=2),))
CODES = with_codes(JOBS, list("abbaabab"))
CASES: dict[str, tuple[Workload, dict[str, Any]]] = {
    "easy": (JOBS, {"policy": "saf"}),
    "scores": (JOBS, {"policy": "wfp3", "threshold": 20}),
    "conservative": (JOBS, {"backfill": "conservative"}),
    "several reservations": (JOBS, {"backfill": "depth:3"}),
    "slurm": (JOBS, {"backfill": "slurm"}),
    "per event": (JOBS, {"passes": "per-event", "estimate": "ave2", "correction": "incremental"}),
    "learned": (JOBS, {"estimate": "e-loss", "backfill_order": "sjbf"}),
    "usage": (JOBS, {"policy": "fairshare"}),
    "state": (JOBS, {"policy": "mean_run + 0 * queued - area"}),
    "windows": (JOBS, {"maintenance": "30/50;90/95", "quota": "user:jobs=2"}),
    "dependencies": (CHAIN, {"dependencies": "after", "quota": "user:submitted=2"}),
    "preemption": (JOBS, {"preemption": "queue:2>1"}),
    "suspension": (JOBS, {"preemption": "queue:2>1,suspend"}),
    "nodes": (PAIRS, {"cluster": NODES}),
    "nodes, conservative": (PAIRS, {"cluster": NODES, "backfill": "conservative"}),
    "nodes, slurm": (PAIRS, {"cluster": NODES, "backfill": "slurm"}),
    "nodes, several": (PAIRS, {"cluster": NODES, "backfill": "depth:3", "allocation": "balanced"}),
    "nodes that fail": (PAIRS, {"cluster": NODES, "failures": FAILED}),
    "limits": (JOBS, {"cluster": LIMITED, "limits": LIMITS}),
    "shared nodes": (CODES, {"scheduler": "easy-co", "cluster": SHARED, "speedups": PAIR}),
}


def middle_of(work: Callable[[], Any]) -> tuple[Callable[[], Simulation], bytes]:
    """Return what was saved in the middle of a simulation, and what makes another to load it."""
    moments = []

    def note(self: Pieces, _: Any) -> None:
        times = self._native.run_times()
        moments.append((lambda native=self._native: native.anew(times), self._native.saved()))

    work()  # imports the modules that make simulations
    with pytest.MonkeyPatch.context() as patch, pieces(1) as made:
        patch.setattr(Pieces, "_go_on", note)
        work()
    assert made
    return moments[len(moments) // 2]


def refused(target: Simulation, saved: bytes) -> bool:
    try:
        target.load(saved)
    except ValueError as error:
        return str(error).startswith("saved: ")
    return False


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
def test_each_damaged_bit_is_refused(name: str) -> None:
    workload, rules = CASES[name]
    make, saved = middle_of(lambda: hpcgym.simulate(workload, **rules))
    target = make()  # what is refused leaves it as it is
    changed = bytearray(saved)
    for place in range(len(saved)):
        for bit in range(8):
            changed[place] ^= 1 << bit
            assert refused(target, bytes(changed)), (place, bit)
            changed[place] ^= 1 << bit
    for length in range(len(saved)):
        assert refused(target, saved[:length]), length
        assert refused(target, saved[length + 1 :]), length
    for more in (b"\0", b"\0" * 8, saved[-8:], saved):
        assert refused(target, saved + more)
    target.load(saved)
    assert target.saved() == saved


@pytest.mark.parametrize(("jobs", "cluster"), [(JOBS, None), (PAIRS, NODES)])
def test_what_is_right_is_loaded_after_each_pass(jobs: Workload, cluster: Cluster | None) -> None:
    """Predictions expire, so that all is planned anew, with fewer steps than some job had."""
    short = np.maximum(jobs.run_time // 3, 1)
    rules: dict[str, Any] = {"backfill": "conservative", "estimate": short, "cluster": cluster}
    loaded = []

    def note(self: Pieces, _: Any) -> None:
        made = self._native.anew(self._native.run_times())
        made.load(self._native.saved())
        loaded.append(made.saved() == self._native.saved())

    expected = hpcgym.simulate(jobs, correction="incremental", **rules)
    with pytest.MonkeyPatch.context() as patch, pieces(1):
        patch.setattr(Pieces, "_go_on", note)
        result = hpcgym.simulate(jobs, correction="incremental", **rules)
    assert loaded
    assert all(loaded)
    assert result.start.tolist() == expected.start.tolist()


def test_of_other_jobs_it_is_refused() -> None:
    """Also if as many ask for as much, and only run for longer."""
    make, saved = middle_of(lambda: hpcgym.simulate(JOBS))
    other = JOBS.with_columns(run_time=np.minimum(JOBS.run_time + 1, JOBS.requested_time))
    made, _ = middle_of(lambda: hpcgym.simulate(other))
    with pytest.raises(ValueError, match=r"^saved: of another simulation, or by another version"):
        made().load(saved)
    made, _ = middle_of(lambda: hpcgym.simulate(JOBS, policy="saf"))
    with pytest.raises(ValueError, match=r"^saved: of another simulation"):
        made().load(saved)
    make().load(saved)
