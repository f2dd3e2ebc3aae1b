"""Agents that order the queue of Slurm's backfilling: schedules of the oracles, when it asks."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import BUSY, SEEDS, SINGLE, SLOW, Act, play, whole
from node_driving import anywhere, by_reference
from quota_strategies import shared_quotas, with_queues
from restrictions import DRAWN
from strategies import SLURM, WEIGHTS, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
WINDOWS = st.sampled_from([None, "40/300", "1000/1900:processors=1; 3000/3001"])


def score(seed: int, row: Any, asked: int) -> float:
    """Any order of jobs, another at each question; many are equal."""
    return crc32(f"{seed} {row} {asked}".encode()) % 7 / 7


def ordered(seed: int, asked: list[int], window: int) -> Act:
    """Return what orders the queue by :func:`score`, and notes when it was asked."""

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        asked.append(info["time"])
        rows = [row for row in info["window"].tolist() if row >= 0]
        found = np.array([score(seed, row, info["time"]) for row in rows], np.float32)
        return np.pad(found, (0, window - len(rows)))

    return act


def as_asked(seed: int, asked: list[int]) -> Any:
    """Return a policy of the oracles by the answers to the last question."""

    def policy(job: Any, now: int) -> float:
        return score(seed, job.number, max(time for time in asked if time <= now))

    return policy


def events_with_a_queue(result: Any) -> list[int]:
    """Return when jobs wait, of all times at which jobs come or end."""
    submitted, start, end = result.workload.submit_time, result.start, result.end
    times = np.unique(np.concatenate([submitted, end]))
    return [int(t) for t in times if ((submitted <= t) & (start >= t)).any()]


@settings(SLOW, max_examples=300)
@given(
    st.data(), anywhere(), SLURM, SEEDS, WINDOWS, st.sampled_from(["requested", "clairvoyant"])
)  # fmt: skip
def test_any_order(
    data: st.DataObject, place: Any, backfill: str, seed: int, closed: str | None, estimate: str
) -> None:
    """On nodes the order says, by the nodes that are reserved, when Slurm looks again.

    On a pool the agent is asked at each event at which jobs wait, and no other time.
    """
    cluster, workload = place
    text, quotas, windows = None, [], []
    if cluster is None:
        workload = with_queues(workload, [1, 2])
        text, ((*quotas,),) = data.draw(shared_quotas([workload]))
        for one in closed.split("; ") if closed else []:
            times, _, width = one.partition(":processors=")
            begin, end = map(int, times.split("/"))
            windows.append((begin, end, int(width or workload.processors)))
    asked: list[int] = []
    rules = {"backfill": backfill, "estimate": "requested" if windows else estimate}
    kept = {"quota": text, "maintenance": closed if windows else None, "cluster": cluster}
    env = SINGLE["QueueOrdering"](**whole(workload, window=40, **kept, **rules))
    play(env, ordered(seed, asked, 40))
    found, more = env.result(), {"quotas": quotas, "windows": windows}
    expected = by_reference(cluster, workload, policy=as_asked(seed, asked), **more, **rules)
    assert found.start.tolist() == [job.start for job in expected]
    hpcgym.validate_schedule(found)
    if cluster is None:
        assert found.backfilled.tolist() == [job.backfilled for job in expected]
        if not windows:  # whose end asks, too
            assert asked == events_with_a_queue(found)


@settings(SLOW, max_examples=100)
@given(
    workloads(), SLURM, st.tuples(*[WEIGHTS] * 6).filter(any),
    st.sampled_from(["pass", "1h", "episode", 2]),
)  # fmt: skip
def test_weights(workload: Workload, backfill: str, vector: Any, interval: Any) -> None:
    env = SINGLE["MixedPolicy"](**whole(workload, backfill=backfill, interval=interval))
    # divided by their sum there: by a power of two, which changes no order
    weights = np.array(vector)
    weights = weights / 2.0 ** np.ceil(np.log2(np.abs(weights).sum()))
    play(env, lambda *_: weights)
    normalised = tuple((weights / np.abs(weights).sum()).tolist())
    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=normalised, backfill=backfill
    )
    assert env.result().start.tolist() == [job.start for job in expected]


def test_one_job_after_the_other_is_refused() -> None:
    with pytest.raises(HpcgymError, match="backfill='slurm' and environments that ask for one job"):
        SINGLE["JobSelection"](BUSY, backfill="slurm")
