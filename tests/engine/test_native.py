"""The native engine and the kernels that it replaces are in the same state after each pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import SLURM, cases, clusters

from hpcgym._engine import Simulation
from hpcgym.cluster.pool import Cluster
from hpcgym.engine import state
from hpcgym.engine.machines.kinds import POOL
from hpcgym.engine.ordered import BLOCK
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.native import model_of, serves, write_progress
from hpcgym.simulation.run import idle_processor_seconds, scheduler_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload


def entries_of(arrays: state.Prepared, which: Any) -> list[int]:
    """Return the entries of an ordered list, one behind the other."""
    first, found = arrays.blocks[which], []
    for position in range(first.in_use):
        block = arrays.blocks[first.first + position].order
        for entry in arrays.entries[block * BLOCK :][: arrays.blocks[block].count]:
            found += [entry.key, entry.span, entry.width, entry.job]
    return [int(value) for value in found]


def assert_twins(arrays: state.Prepared, native: Simulation) -> None:
    """Compare all that both know between two passes."""
    facts, sim, progress = native.facts(), arrays.sim, arrays.progress.copy()
    names = ("time", "next", "started", "free", "arrived", "changed", "head")
    if sim.depth == state.UNLIMITED:  # it has no head
        names, facts["now"] = names[:5], facts["now"][:5]
        waits = (progress["start"] < 0) & (np.arange(len(progress)) < sim.next)
        assert (facts["reserved"] == arrays.line["reserved"])[waits].all()
    assert facts["now"].tolist() == [int(sim[name]) for name in names]
    if sim.tested:
        assert facts["plan"].tolist() == [
            int(sim[x]) for x in ("reserved", "last_reserved", "beyond")
        ]
        assert facts["looks"].tolist() == [
            int(sim[x]) for x in ("due", "all_due", "look", "waited")
        ]
    elif sim.head >= 0 and sim.depth == 1:
        assert facts["shadow"].tolist() == [sim.shadow, sim.extra]
    write_progress(facts, progress)
    assert (progress == arrays.progress).all()
    assert facts["running"].tolist() == entries_of(arrays, state.RUNNING)
    assert facts["queue"].tolist() == entries_of(arrays, state.QUEUE)


def assert_same_after_each_pass(
    workload: Workload, scheduler: Any, cluster: Cluster, pieces: int = 1
) -> bool:
    """Simulate with both; return whether the native engine has the rules."""
    arrays = new_simulation(workload, scheduler, cluster).arrays
    if not serves(arrays):
        return False
    native = Simulation(model_of(arrays))
    while True:
        done = POOL.loop_of(arrays.sim)(*arrays, (), state.FOREVER, pieces)
        assert native.run(passes=pieces) == done
        if not done:
            break
        native = native.copy()
        assert_twins(arrays, native)
    if arrays.sim.managed:
        state_of = {name: int(value[0]) for name, value in native.idle_seconds().items()}
        assert state_of == idle_processor_seconds(arrays.sim, arrays.idle)
    return True


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks_with_a_reservation_for_each(policy: str, passes: str) -> None:
    """Only in long queues it is noted who may find an earlier place."""
    rules = {"policy": policy, "passes": passes, "backfill": "conservative"}
    for seed in range(2):
        workload = load_workload(f"lublin:jobs=400,processors=64,load=200,seed={seed}")
        cluster = Cluster(workload.processors)
        for more in ({}, {"estimate": "ave2", "correction": "incremental"}):
            scheduler = scheduler_of("easy", rules | more)
            assert assert_same_after_each_pass(workload, scheduler, cluster, 7)


@settings(max_examples=300)
@given(st.data())
def test_each_pass_on_a_pool(data: st.DataObject) -> None:
    workload, rules = data.draw(cases())
    for name in ("policy", "backfill_order"):
        if not isinstance(rules[name], str) and not any(rules[name]):
            rules[name] = "saf"
    cluster = Cluster(workload.processors)
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    may_switch = rules["backfill"] in ("none", "easy", "until-shadow")
    if may_switch and rules["passes"] == "per-timestamp" and data.draw(st.booleans()):
        cluster = data.draw(clusters(workload.processors))
        rules |= {"threshold": None, "hold": None}
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, cluster, data.draw(st.sampled_from([1, 3]))
    )
