"""The dispatchers as their authors' programs run them: by hand, and against what these did."""

from dataclasses import replace

import numpy as np
import pytest
from instances import busy, view_of
from mistakes import mistakes_of

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, find_cluster

pytest.importorskip("ortools")

from hpcgym.baselines.cp.dispatcher import SearchLimits
from hpcgym.baselines.cp.dispatchers import CPH, HCP19, PCP19, PCP20, PureCP
from hpcgym.baselines.cp.published import Published, set_times
from hpcgym.baselines.dispatchers import find_dispatcher, prb
from hpcgym.scheduler.dispatchers.view import PassView

DEBUG, NIGHT = 3_600.0, 86_400.0


def queue_at(time, jobs, cores=1):
    """A node whose cores run a job for ever; jobs are (row, submit, duration, cores, wait)."""
    row, submit, duration, per_unit, wait = zip(*jobs, strict=True)
    return PassView.of(
        time, ("core",), [[cores + 9]],
        queue={"submit": submit, "duration": duration, "units": [1] * len(jobs), "job": row,
               "per_unit": [[cores_of_unit] for cores_of_unit in per_unit], "expected_wait": wait},
        running={"start": [0], "end": [10**6], "per_unit": [[9]], "first": [0, 1], "node": [0],
                 "units": [1], "job": [900]},
    )  # fmt: skip


def test_priorities_are_those_of_the_submission():
    """By hand: the queue first, then the expected area, then who came last. Time changes nothing.

    PRB's order of the same jobs goes by the time in the queue, 9,910 s for the second.
    """
    jobs = [
        (0, 0, 10, 1, NIGHT),  # -1, 10
        (1, 90, 30, 1, DEBUG),  # -24, 30
        (2, 95, 20, 1, DEBUG),  # -24, 20
        (3, 99, 10, 2, DEBUG),  # -24, 20, later
    ]
    dispatcher = Published(CPH(0))
    view = queue_at(100, jobs, cores=1)
    assert dispatcher._first(view).tolist() == [3, 2, 1, 0]
    later = queue_at(10_000, [*jobs, (4, 10_000, 1, 1, DEBUG)], cores=1)
    assert dispatcher._first(later).tolist() == [4, 3, 2, 1, 0]
    assert prb(later).tolist() == [1, 2, 3, 0, 4]
    other = Published(CPH(1))  # slowdown at submission is 1: the area alone
    assert other._first(view).tolist() == [0, 3, 2, 1]


def test_who_comes_among_the_first_later_has_the_priority_of_then():
    jobs = [(k, k, 10, 1, NIGHT) for k in range(4)]
    dispatcher = Published(CPH(0), SearchLimits(jobs=2, work=0.1))
    assert dispatcher._first(queue_at(50, jobs)).tolist() == [1, 0]
    # the first has started: the third was beyond, and is taken for 51 s in the queue
    assert dispatcher._first(queue_at(52, jobs[1:])).tolist() == [1, 0]
    assert dispatcher._keys[2][0] == -51.0
    assert dispatcher._keys[1][0] == -1.0


def test_the_shorter_of_those_that_can_start_first_starts():
    """SetTimes: 5 s before 9 s, whatever the priority; equal ones by priority."""
    for durations, started in ([9, 5], [1]), ([5, 5], [0]):
        jobs = [(k, 0, duration, 1, DEBUG) for k, duration in enumerate(durations)]
        view = queue_at(10, jobs, cores=1)
        problem = HCP19().pose(view)
        assert problem.places.tolist() == [0, 1] if durations[0] == 5 else [1, 0]
        best, size = set_times(problem, 1_000)
        assert (best.status, size) == ("optimal", (2, 1))
        starts = dict(zip(problem.places.tolist(), best.schedule.start.tolist(), strict=True))
        assert [place for place in starts if starts[place] == 0] == started


def test_only_jobs_that_fit_now_are_in_the_later_models():
    """One core of two is free. The wide job would be worth waiting for; only the narrow is seen."""
    view = view_of([(2,)], [(0, (1,), 1)], [(1, (2,), 2), (1, (1,), 60)], [600, 5])
    assert HCP19()(view) == []
    for kind in (HCP19, PCP19, PCP20):
        dispatcher = Published(kind())
        assert [place for place, _ in dispatcher(view)] == [1]
        assert dispatcher.log[0]["considered"] == 1


def test_a_failure_halves_the_window_and_a_success_restores_it():
    view = busy("eurora", 40, 0, load=0.4)
    fitting = int(view.fits().sum())
    dispatcher = Published(PCP20(), SearchLimits(jobs=fitting, units=10**6, work=0.0))
    seen = []
    for _ in range(3):
        assert dispatcher(view) == []  # nothing is found, and nothing starts
        assert dispatcher.stopped
        seen.append(dispatcher.log[-1]["considered"])
    assert seen == [fitting, fitting // 2, fitting // 2 // 2]
    assert dispatcher.log[-1]["status"] == "unknown"
    assert np.isnan(dispatcher.log[-1]["objective"])
    easy = view_of([(2,)], [], [(1, (1,), 5)], [0])
    dispatcher.limits = replace(dispatcher.limits, work=1.0)
    assert [place for place, _ in dispatcher(easy)] == [0]
    assert dispatcher._jobs == fitting
    dispatcher.begin()
    assert dispatcher.log == []


def test_a_schedule_of_pools_goes_to_the_fullest_nodes_by_priority():
    view = view_of([(4,), (4,)], [(1, (2,), 50)], [(1, (2,), 9)], [5])
    for name in ("cph-0", "cph-3", "hcp19"):
        (start,) = find_dispatcher(f"{name}:as=published")(view)
        assert start[1].tolist() == [1]


#: What prb_scheduler.py and cph_scheduler.py of AccaSim at commit fee7272 (December 2017) have
#: done in place of a dispatcher of :func:`hpcgym.simulate`: mean slowdowns with W, D and R. They
#: were called with a stand-in of AccaSim's resource manager that is filled from the view, its
#: allocator bfp_alloc, OR-Tools' SetTimes as the search, and 5,000 branches for a second. At passes
#: at which nothing fits, CPH's list was told of the jobs that had come. On cores alone, since
#: AccaSim's best fit adds up megabytes and cores.
AUTHORS = {
    ("prb", "eurora:jobs=800,load=1.2,seed=2"): (8.072529910685049,) * 3,
    ("cph-0", "eurora:jobs=250,load=1.2,seed=4"): (
        1.716170744319887,
        1.716170744319887,
        1.6961036907991764,
    ),
}


@pytest.mark.parametrize(("name", "source"), AUTHORS)
def test_schedules_are_those_of_the_authors_programs(name, source):
    jobs = hpcgym.load_workload(source)
    names = ("submit_time", "run_time", "requested_time", "user_id", "executable", "queue")
    workload = hpcgym.Workload.from_columns(
        {column: jobs.columns[column] for column in names},
        processors=1024,
        units=jobs.units,
        per_unit={"core": jobs.per_unit["core"]},
        header={key: jobs.header[key] for key in ("Queue", "Code")},
    )
    queues = find_cluster("eurora").queues
    cluster = Cluster(groups=[NodeGroup("node", 64, {"core": 16})], queues=queues)
    for estimate, mean in zip(
        ("requested", "data-driven", "clairvoyant"), AUTHORS[name, source], strict=True
    ):
        result = hpcgym.simulate(
            workload, f"{name}:as=published", cluster=cluster, estimate=estimate
        )
        slowdown = (result.wait + result.run_time) / result.run_time
        assert slowdown.mean() == pytest.approx(mean, rel=1e-12)


test_mistakes = mistakes_of(globals(), PureCP)
