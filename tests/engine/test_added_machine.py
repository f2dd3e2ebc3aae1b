"""A kind of machine that is made here, of the parts that all machines share.

Its processors are given in blocks: where a block has four, a job of five processors gets eight. So
its schedules are those of a pool with widths rounded up, in the order of the widths as they were.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from numpy.typing import NDArray
from strategies import POLICY, workloads

from hpcgym import Cluster, Scheduler, load_workload
from hpcgym.compilation import jit, jit_part
from hpcgym.engine.answers.told import BY_CLOCK
from hpcgym.engine.events import enqueue, leave_queue, start
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.kinds import POOL, Kind
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.backfilling import sweep_of, sweep_scored_of
from hpcgym.engine.passes.heads import count_backfilled, first_in_order
from hpcgym.engine.state import QUEUE, RUNNING, SCORED, SELECTION, Prepared
from hpcgym.simulation.driver import Simulation, answers_for, asks_for_answers
from hpcgym.simulation.prepare import prepare
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow

SIZE, FREE, RELEASED = range(3)


class Blocks(NamedTuple):
    """A machine of blocks: processors in one, blocks without a job, ends that it knows of."""

    book: NDArray[np.int64]


@jit_part
def blocks_for(machine, processors):
    return (processors + machine.book[SIZE] - 1) // machine.book[SIZE]


@jit_part
def bounds(machine, sim):
    """A job that begins before the head has free blocks, and ends in time or takes spare ones."""
    size = machine.book[SIZE]
    return machine.book[FREE] * size, sim.extra * size, sim.shadow - sim.time


@jit_part
def may_start(machine, sim, jobs, progress, job):
    free, beyond, longest = bounds(machine, sim)
    width = jobs[job].processors
    return width <= free and (width <= beyond or progress[job].predicted <= longest)


@jit_part
def begin(machine, sim, jobs, progress, blocks, entries, idle, job):
    machine.book[FREE] -= blocks_for(machine, jobs[job].processors)
    start(sim, jobs, progress, blocks, entries, idle, job)


@jit_part
def begin_before_head(machine, sim, jobs, progress, blocks, entries, idle, job):
    width = blocks_for(machine, jobs[job].processors)
    count_backfilled(sim, progress, job, width, progress[job].predicted)
    begin(machine, sim, jobs, progress, blocks, entries, idle, job)


sweep = sweep_of(may_start, begin_before_head, bounds, knows_narrow=True)
sweep_scored = sweep_scored_of(may_start, begin_before_head)


@jit
def find_shadow(machine, sim, jobs, progress, blocks, entries):
    """Set when the head can start, and how many blocks it leaves free then."""
    left = machine.book[FREE] - blocks_for(machine, jobs[sim.head].processors)
    sim.shadow = sim.time
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if left < 0 or entries[i].key == sim.shadow:
                sim.shadow = entries[i].key
                left += blocks_for(machine, entries[i].width)
    sim.extra = left
    if progress[sim.head].promised < 0 and sim.primary < SELECTION:
        progress[sim.head].promised = sim.shadow


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    while machine.book[RELEASED] < sim.ended:
        job = ended[machine.book[RELEASED]]
        machine.book[FREE] += blocks_for(machine, jobs[job].processors)
        machine.book[RELEASED] += 1
    for job in range(sim.next - sim.arrived, sim.next):
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    sim.arrived = 0
    sim.head = -1
    while blocks[QUEUE].count > 0:
        head = first_in_order(sim, jobs, scores, progress, blocks, entries)
        if blocks_for(machine, jobs[head].processors) > machine.book[FREE]:
            sim.head = head
            break
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        begin(machine, sim, jobs, progress, blocks, entries, idle, head)
    if sim.head < 0 or sim.depth == 0:
        return
    find_shadow(machine, sim, jobs, progress, blocks, entries)
    if sim.secondary >= SCORED:
        sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries, idle)
    else:
        sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow, idle)


BLOCKS = Kind(loop_of(next_event_pass, do_pass), BY_CLOCK)


def prepared(workload: Workload, rules: dict[str, Any], given: int) -> tuple[Prepared, Any]:
    """Return the arrays of a simulation on a machine of that many processors, and its answers."""
    scheduler, cluster = Scheduler(**rules), Cluster(given)
    asks, counts = asks_for_answers(scheduler)
    arrays = prepare(workload, scheduler, cluster, asks, logs_ends=True, shares=counts)
    return arrays, lambda: answers_for(workload, scheduler, cluster, arrays, asks, counts)


def in_blocks(workload: Workload, rules: dict[str, Any], size: int, number: int) -> Prepared:
    """Simulate on a machine of ``number`` blocks."""
    arrays, answers = prepared(workload, rules, size * number)
    machine = Blocks(np.array([size, number, 0]))
    Simulation(BLOCKS, arrays, machine, **answers()).drive()
    return arrays


def rounded(workload: Workload, rules: dict[str, Any], size: int, number: int) -> Prepared:
    """Simulate a pool with widths rounded up; orders and predictions see them as they were."""
    arrays, answers = prepared(workload, rules, size * number)
    arrays.jobs["processors"] = -(-workload.requested_processors // size) * size
    Simulation(POOL, arrays, (), **answers()).drive()
    return arrays


def outcome(arrays: Prepared) -> Any:
    assert (arrays.progress["start"] >= 0).all()
    return arrays.progress[["start", "predicted", "promised", "marks"]].tolist()


ESTIMATES = st.sampled_from(
    ["requested", "clairvoyant", "ave2", "user-ratio", "typical-ratio", "e-loss", "data-driven"]
)


@settings(max_examples=300)
@given(
    workloads(),
    st.integers(1, 6),
    st.fixed_dictionaries(
        {
            "policy": st.one_of(st.sampled_from(["fcfs", "saf", "lexp", "fairshare"]), POLICY),
            "backfill": st.sampled_from(["none", "easy", "easy"]),
            "backfill_order": st.one_of(st.sampled_from(["fcfs", "sjbf"]), POLICY),
            "threshold": st.sampled_from([None, None, 0, 5, 100, 2000]),
            "estimate": ESTIMATES,
            "policy_estimate": ESTIMATES,
            "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
        }
    ),
)
def test_it_gives_the_schedules_of_a_pool_with_rounded_widths(
    workload: Workload, size: int, rules: dict[str, Any]
) -> None:
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    number = -(-workload.processors // size)
    found = in_blocks(workload, rules, size, number)
    assert outcome(found) == outcome(rounded(workload, rules, size, number))


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_hundreds_of_jobs_wait(policy: str, backfill: str) -> None:
    """The lists of the queue have several blocks."""
    workload = load_workload("lublin:jobs=600,processors=32,seed=3,load=3")
    rules = {"policy": policy, "backfill": backfill, "threshold": 86_400}
    for learned in ({}, {"estimate": "user-ratio", "policy_estimate": "ave2"}):
        found = in_blocks(workload, rules | learned, 4, 8)
        assert outcome(found) == outcome(rounded(workload, rules | learned, 4, 8))
        start, submit = found.progress["start"], workload.submit_time
        assert max(((submit <= time) & (start > time)).sum() for time in submit) > BLOCK
        # blocks make a difference
        arrays, answers = prepared(workload, rules | learned, 32)
        Simulation(POOL, arrays, (), **answers()).drive()
        assert outcome(found) != outcome(arrays)


def test_blocks_by_hand() -> None:
    """Two blocks of four processors: five take both, and leave three unused."""
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [10, 10, 5, 20],
        "requested_time": [10, 10, 5, 20],
        "requested_processors": [3, 5, 1, 4],
    }
    workload = Workload.from_columns(columns, processors=8)
    for policy, backfill, starts in (
        ("fcfs", "none", [0, 10, 20, 20]),
        # the third ends before the second could start; the fourth would not
        ("fcfs", "easy", [0, 10, 2, 20]),
        # the third is the smallest, then the second: 50 processor seconds, the fourth has 80
        ("saf", "none", [0, 10, 2, 20]),
    ):
        found = in_blocks(workload, {"policy": policy, "backfill": backfill}, 4, 2)
        assert found.progress["start"].tolist() == starts, policy
