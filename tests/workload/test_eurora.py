"""The Eurora-like and KIT-like workloads against what is published of the logs."""

import numpy as np
import pytest

from hpcgym.cluster import find_cluster
from hpcgym.errors import WorkloadError
from hpcgym.workload import check_fits, expected_waits, load_workload, needs_of
from hpcgym.workload.generators.campaigns import DAY_S, eurora, kit

HOUR_S = 3600
KNOWN = [45658431, 1004630, 10749, 13437]
MACHINES = {eurora: "eurora", kit: "kit-forhlr-ii"}
both = pytest.mark.parametrize("generator", [eurora, kit], ids=["eurora", "kit"])


@pytest.fixture(scope="module")
def log():
    """As many jobs as Eurora's log has."""
    return eurora(days=549, seed=5)


def test_jobs_by_run_time_as_document_000_has_them(log):
    run = log.run_time
    assert len(log) == 372_320
    shares = [(run <= HOUR_S).mean(), (run > 12 * HOUR_S).mean()]
    assert shares == pytest.approx([0.9315, 0.0003], abs=1 / len(log))
    assert run.min() >= 1
    assert run.max() <= 24 * HOUR_S


def test_queues_and_their_limits(log):
    assert log.header["Queue"] == ["1 debug", "2 parallel", "3 longpar"]
    for queue, limit in ((1, 1), (2, 6), (3, 24)):
        request = log.requested_time[log.queue == queue]
        assert request.size
        assert request.max() == limit * HOUR_S  # the default
        assert 0.4 < (request == request.max()).mean() < 0.95
    assert set(log.queue.tolist()) == {1, 2, 3}
    assert (log.run_time <= log.requested_time).all()
    assert np.median(log.requested_time / log.run_time) > 10  # severe over-estimates
    machine = find_cluster("eurora")
    waits = expected_waits(log, machine.queues)
    assert set(waits.tolist()) == {HOUR_S, 6 * HOUR_S, 24 * HOUR_S}


def test_accelerators_never_both(log):
    gpu, mic = log.per_unit["gpu"], log.per_unit["mic"]
    assert ((gpu > 0) & (mic > 0)).sum() == 0
    assert (gpu > 0).mean() > 0.05
    assert (mic > 0).mean() > 0.05
    assert ((gpu == 0) & (mic == 0)).mean() > 0.3


def test_users_repeat_jobs_for_a_while(log):
    """Remediani 2017, section 3.1.2: a job of the same name tells the run time, for a while."""
    order = np.lexsort((np.arange(len(log)), log.executable))
    name, run = log.executable[order], np.log(log.run_time[order])
    again = name[1:] == name[:-1]
    near = np.abs(run[1:] - run[:-1])[again] < np.log(1.5)
    shuffled = np.random.default_rng(0).permutation(run)
    anyone = np.abs(np.diff(shuffled)) < np.log(1.5)
    assert again.mean() > 0.95
    assert near.mean() > 0.8
    assert anyone.mean() < 0.3
    late = np.abs(run[5000:] - run[:-5000])[name[5000:] == name[:-5000]] < np.log(1.5)
    assert late.mean() < 0.5 * near.mean()  # but not for ever
    assert len(np.unique(log.executable[log.user_id == 1])) > 1
    owners = {(n, u) for n, u in zip(log.executable.tolist(), log.user_id.tolist(), strict=True)}
    assert len(owners) == len(np.unique(log.executable))


def test_kit_as_document_001_has_it():
    log = kit(days=610, seed=2)
    assert len(log) == 114_355
    assert (log.run_time < HOUR_S).mean() == pytest.approx(0.6626, abs=1 / len(log))
    assert (log.executable == -1).all()  # names are omitted
    assert (log.per_unit["gpu"] == 0).mean() > 0.9
    assert "Queue" not in log.header


@both
def test_every_job_fits_its_machine(generator):
    machine = find_cluster(MACHINES[generator])
    for seed in range(5):
        workload = generator(jobs=5000, seed=seed)
        needs = needs_of(workload, machine.resources)
        check_fits(workload, needs, machine.capacity, machine.resources)
        assert workload.processors == machine.processors
        assert (np.diff(workload.submit_time) >= 0).all()
        assert len(load_workload(workload)) == len(workload)  # cleaning drops none


@both
def test_the_same_arguments_give_the_same_jobs(generator):
    one, same, other = (generator(jobs=300, seed=seed) for seed in (4, 4, 5))
    for name, values in one.columns.items():
        assert np.array_equal(values, same.columns[name])
    assert all(np.array_equal(v, same.per_unit[r]) for r, v in one.per_unit.items())
    assert not np.array_equal(one.run_time, other.run_time)


def test_known_jobs():
    """The stream of random numbers is part of what a seed promises."""
    workload = eurora(jobs=400, days=2, seed=1)
    assert [
        int(workload.submit_time.sum()),
        int(workload.run_time.sum()),
        int(workload.requested_processors.sum()),
        int(workload.user_id.sum()),
    ] == KNOWN


def test_units_by_figure_6_keep_each_job_alone_below_a_tenth():
    """The paper's formulas counted one by one, with all nodes also for GPUs and MICs."""
    node = {"core": 16, "mem": 16_000, "gpu": 2, "mic": 2}
    assumed, few = (eurora(jobs=3000, seed=3, units=units) for units in ("assumed", "figure-6"))
    asked = {name: amount.tolist() for name, amount in few.per_unit.items()}

    def ratio(units, job):
        held = min(node[name] // asked[name][job] for name in node if asked[name][job])
        return (1 + 4 * units) / (1 + 64 * min(units, held))

    assert np.array_equal(few.submit_time, assumed.submit_time)  # the same jobs but for that
    drawn, cut = assumed.units.tolist(), 0
    for job, units in enumerate(few.units.tolist()):
        assert ratio(units, job) < 0.1
        if units < drawn[job]:
            assert ratio(units + 1, job) >= 0.1  # no more than needed
            cut += 1
        else:
            assert units == drawn[job]
    assert 0 < cut < len(few)
    assert (few.units > 1).any()
    assert (assumed.units > 25).any()
    assert few.units.max() <= 25


def test_units_by_figure_6_load_the_machine_by_an_eighth():
    loads = []
    for seed in range(10):
        month = eurora(seed=seed, units="figure-6")
        work = (month.requested_processors * month.run_time).sum()
        loads.append(work / (month.processors * 30 * DAY_S))
    assert 0.11 < np.mean(loads) < 0.14  # as the page of machines says


def test_units_as_assumed_are_the_default():
    one, same = eurora(jobs=300, seed=4), eurora(jobs=300, seed=4, units="assumed")
    assert np.array_equal(one.units, same.units)
    few = load_workload("eurora:jobs=300,seed=4,units=figure-6")
    assert few.units.sum() < one.units.sum()
    assert "units=figure-6" in few.header["Note"][0]
    assert "units" not in one.header["Note"][0]


@both
@pytest.mark.parametrize("load", [0.3, 1.2])
def test_load_is_reached(generator, load):
    workload = generator(days=30, load=load, seed=3)
    work = (workload.requested_processors * workload.run_time).sum()
    assert work / (workload.processors * workload.submit_time[-1]) == pytest.approx(load, rel=0.02)
    assert len(workload) == len(generator(days=30, seed=3))


@both
def test_size_and_the_published_load_of_days(generator):
    month = generator()
    assert 29 * DAY_S < month.submit_time[-1] < 30 * DAY_S
    assert len(generator(jobs=1)) == 1
    assert generator(jobs=50, days=1).submit_time[-1] < DAY_S
    loads = [
        (w.requested_processors * w.run_time).sum() / (w.processors * 30 * DAY_S)
        for w in (generator(seed=seed) for seed in range(20))
    ]
    assert 0.45 < np.mean(loads) < 0.65  # as the page of machines says


def test_daily_cycle():
    hours = np.bincount(eurora(days=200).submit_time // HOUR_S % 24, minlength=24)
    assert hours[9:19].mean() > 1.5 * hours[0:7].mean()


@pytest.mark.parametrize("name", ["eurora", "kit"])
def test_as_a_source(name):
    workload = load_workload(f"{name}:jobs=100,seed=7")
    assert (len(workload), workload.name) == (100, f"{name} seed 7")
    assert workload.units is not None


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("eurora:jobs=0", "eurora: jobs must be a whole number from 1 to"),
        ("eurora:jobs=2.5", "eurora: jobs must be a whole number"),
        ("eurora:days=0", "eurora: days must be a number above 0"),
        ("kit:load=-1", "kit: load must be a number above 0"),
        ("kit:seed=-1", "kit: seed must be a whole number from 0 to"),
        ("kit:load=1,jobs=5,days=3", "kit: give two of jobs, days and load, not all three"),
        ("kit:load=1e-300", "kit: the jobs spread over more than"),
        ("eurora:units=3", "eurora: units must be assumed or figure-6, not"),
        ("eurora:users=3", "generator 'eurora' has no argument 'users', only jobs, days"),
    ],
)
def test_arguments_that_make_no_workload(source, problem):
    with pytest.raises(WorkloadError, match=problem):
        load_workload(source)
