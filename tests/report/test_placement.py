"""Jobs are drawn on as many processors as they have, and no two on the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.cluster import Cluster
from hpcgym.report.placement import place_jobs
from hpcgym.workload import Workload


def placed(start, end, sizes, processors):
    workload = Workload.from_columns(
        {"submit_time": np.zeros(len(start), int), "requested_processors": sizes},
        processors=processors,
    )
    return place_jobs(
        SimpleNamespace(
            workload=workload,
            cluster=Cluster(processors),
            start=np.array(start, dtype=np.int64),
            end=np.array(end, dtype=np.int64),
            coschedule=None,
            lost=None,
            dispatching=None,
        )
    )


@st.composite
def schedules(draw):
    """Jobs that start as soon as they fit, in the order drawn: a schedule that fits the machine."""
    processors = draw(st.integers(1, 12))
    jobs = draw(
        st.lists(
            st.tuples(st.integers(1, processors), st.integers(1, 9), st.integers(0, 3)),
            min_size=1,
            max_size=25,
        )
    )
    running, starts, ends, now = [], [], [], 0
    for size, run, gap in jobs:
        now += gap
        while sum(q for end, q in running if end > now) + size > processors:
            now = min(end for end, _ in running if end > now)
        running.append((now + run, size))
        starts.append(now)
        ends.append(now + run)
    order = draw(st.permutations(range(len(jobs))))
    sizes = [size for size, _, _ in jobs]
    return (
        [starts[k] for k in order],
        [ends[k] for k in order],
        [sizes[k] for k in order],
        processors,
    )


@settings(deadline=None)
@given(schedules())
def test_every_processor_is_held_by_one_job_at_a_time(case):
    start, end, sizes, processors = case
    rectangles = placed(start, end, sizes, processors)
    held = np.zeros((processors, max(end)), dtype=int)
    widths = np.zeros(len(start), dtype=int)
    for job, begin, stop, low, high in zip(*rectangles, strict=True):
        assert 0 <= low < high <= processors
        assert (begin, stop) == (start[job], end[job])
        held[low:high, begin:stop] += 1
        widths[job] += high - low
    assert held.max() == 1
    assert widths.tolist() == sizes


def test_a_job_is_in_one_piece_where_there_is_room():
    # at time 2 processors 0, 3 and 4 are free; the second place has room for two, the first not
    rectangles = placed([0, 0, 0, 2], [2, 9, 2, 4], [1, 2, 2, 2], 5)
    assert rectangles.low.tolist() == [0, 1, 3, 3]


@pytest.mark.parametrize("ends", [(1, 1, 1), (2, 1, 2), (1, 2, 2), (2, 1, 1)])
def test_what_neighbours_give_back_is_one_piece(ends):
    rectangles = placed([0, 0, 0, 2], [*ends, 3], [1, 1, 1, 3], 3)
    assert rectangles.job.tolist() == [0, 1, 2, 3]


def test_a_job_is_in_pieces_where_there_is_none():
    rectangles = placed([0, 0, 0, 2], [2, 9, 2, 4], [1, 1, 1, 2], 3)
    assert list(zip(rectangles.job, rectangles.low, rectangles.high, strict=True))[3:] == [
        (3, 0, 1),
        (3, 2, 3),
    ]


def test_an_impossible_schedule_is_refused():
    with pytest.raises(ValueError, match="more processors than"):
        placed([0, 1], [5, 5], [2, 2], 3)
