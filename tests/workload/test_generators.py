"""Generated workloads against what is published: requests, users, machines, Light-ESP."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import Cluster, load_workload, simulate
from hpcgym.errors import WorkloadError
from hpcgym.machine import NodeGroup, find_cluster
from hpcgym.units import DAY_S
from hpcgym.workload import check_fits, expected_waits, needs_of
from hpcgym.workload.codes import code_names
from hpcgym.workload.generators import estimates
from hpcgym.workload.generators.campaigns import STEMS, eurora, kit
from hpcgym.workload.generators.estimates import request_distribution, requested_times
from hpcgym.workload.generators.helios import CYCLE, GPUS, RUN_TIMES, helios
from hpcgym.workload.generators.light_esp import TYPES, WORK_S, light_esp
from hpcgym.workload.generators.lublin import WINDOW, default_users, lublin

H, M = 3600, 60


@pytest.mark.parametrize(
    ("jobs", "number"), [(1000, 35), (10_000, 90), (40_000, 215), (250_000, 565), (10**7, 565)]
)
def test_number_of_distinct_values(jobs, number):
    values, shares = request_distribution(jobs, 48 * H, 1)
    assert number - 2 <= len(values) <= number  # a value of the tail that finds no place is left
    assert (np.diff(values) > 0).all()
    assert shares.sum() == pytest.approx(1)
    # 5 minutes to 18 hours, which all logs had in common; then multiples of 10 and 5 hours
    minutes, hours = (5, 10, 15, 20, 30), (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 20, 30, 40, 45, 48)
    in_head = np.isin(values, [*(m * M for m in minutes), *(h * H for h in hours)])
    head, tail = np.sort(shares[in_head])[::-1], np.sort(shares[~in_head])
    assert len(head) == 20
    assert head.sum() == pytest.approx(0.89)
    assert shares.argmax() == len(values) - 1  # the longest
    # the published curve: 14.05 exp(-0.18 x) + 0.46 % for ranks 2 to 20
    assert head[1:] == pytest.approx(0.140491 * np.exp(-0.177531 * np.arange(2, 21)) + 0.00462513)
    assert tail[-1] / tail[0] == pytest.approx((len(values) / 21) ** 2.267)


def test_requests_are_distributed_as_the_model_says():
    """Run times that any request covers leave the distribution as it is, to a job."""
    requests = requested_times(np.ones(20_000, np.int64), np.arange(20_000), seed=4)
    values, shares = request_distribution(20_000, estimates.MAX_REQUEST_S, 4)
    times, counts = np.unique(requests, return_counts=True)
    expected = shares * 20_000
    assert times.tolist() == values.tolist()
    assert (np.abs(counts - expected) < 1).all()


def slow_assignment(run_times, values, shares, rng):
    """Take jobs from long to short; each draws from the requests left that are long enough."""
    left = np.repeat(values, estimates._whole_numbers(shares, len(run_times))).tolist()
    requests = np.empty(len(run_times))
    for job in np.argsort(-run_times, kind="stable"):
        fits = [i for i, value in enumerate(left) if value >= run_times[job]]
        requests[job] = left.pop(fits[rng.integers(len(fits))])
    return requests


def test_assignment_equals_drawing_one_by_one():
    """Mean log request of short, middling and long jobs, over many seeds."""
    run_times = np.repeat([20, 400, 5000, 30_000], [60, 60, 60, 20])
    fast, slow = [], []
    for seed in range(150):
        values, shares = request_distribution(200, 48 * H, seed)
        drawn = slow_assignment(run_times, values, shares, np.random.default_rng(seed))
        given = requested_times(run_times, np.arange(200) % 7 + 1, seed=seed)
        for means, requests in ((fast, given), (slow, drawn)):
            assert (requests >= run_times).all()
            means.append([np.log(requests[run_times == r]).mean() for r in np.unique(run_times)])
    difference = np.array(fast) - np.array(slow)
    error = difference.std(axis=0) / math.sqrt(len(difference))
    assert (np.abs(difference.mean(axis=0)) < 4 * error).all()


def test_a_users_equal_jobs_have_one_request():
    user_id = np.random.default_rng(0).integers(1, 51, 5000)
    run_time = np.full(5000, 1000)
    together = requested_times(run_time, user_id, seed=1)
    pairs = len(set(zip(user_id.tolist(), together.tolist(), strict=True)))
    assert pairs < 50 + len(np.unique(together))


def test_missing_long_requests_are_made_from_the_shortest():
    run_time = np.concatenate([np.full(900, 40 * H), np.full(100, 60)])
    requests = requested_times(run_time, np.arange(1000), seed=2)
    assert (requests >= run_time).all()
    _, shares = request_distribution(1000, estimates.MAX_REQUEST_S, 2)
    longest = estimates._whole_numbers(shares, 1000)[-1]
    assert (requests == 48 * H).sum() == longest  # what the model has of these is kept
    assert (requests == 40 * H).sum() > 500  # the rest is raised no further than needed
    assert (requested_times(np.full(50, 48 * H), np.arange(50)) == 48 * H).all()


@pytest.fixture(scope="module")
def jobs():
    return lublin(20_000, 256, seed=5)


def repetition(user_id, size, run_time, requested_time):
    """Return three shares and a correlation over the jobs that have predecessors of the user."""
    order = np.argsort(user_id, kind="stable")
    user, q, p, r = user_id[order], size[order], run_time[order], requested_time[order]
    same = user[1:] == user[:-1]
    third = user[2:] == user[:-2]
    last_two = np.log((p[1:-1] + p[:-2]) / 2)[third]
    return (
        (q[1:] == q[:-1])[same].mean(),
        (np.abs(np.log(p[1:] / p[:-1])) < np.log(2))[same].mean(),
        (r[1:] == r[:-1])[same].mean(),
        np.corrcoef(last_two, np.log(p[2:])[third])[0, 1],
    )


def test_users_repeat_about_as_much_as_in_the_logs(jobs):
    shares = repetition(jobs.user_id, jobs.requested_processors, jobs.run_time, jobs.requested_time)
    shuffled = np.random.default_rng(0).permutation(jobs.user_id)
    random = repetition(shuffled, jobs.requested_processors, jobs.run_time, jobs.requested_time)
    for value, low, high in zip(shares, (0.5, 0.45, 0.6, 0.6), (0.8, 0.7, 0.9, 0.85), strict=True):
        assert low < value < high
    assert random[0] < 0.25
    assert random[1] < 0.2
    assert abs(random[3]) < 0.15


def test_sessions_are_of_similar_jobs_near_in_time(jobs):
    """In a window, a user's jobs are neighbours in the order of magnitude, size and run time."""
    window = slice(3 * WINDOW, 4 * WINDOW)
    run, size = jobs.run_time[window], jobs.requested_processors[window]
    magnitude = (run >= 100) * 1 + (run >= 10_000)
    users = jobs.user_id[window][np.lexsort((run, size, magnitude))]
    changes = np.count_nonzero(np.diff(users)) + 1
    assert changes == len(np.unique(users))


def test_default_number_of_users():
    assert default_users(1) == 1
    assert default_users(28_481) == 242
    assert default_users(10_000) == 159


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
    """Remediani 2017, section 3.1.2: a job of the same program tells the run time, for a while."""
    codes = code_names(log)
    stem = np.array([codes[n].partition("_")[0] for n in range(1, len(codes) + 1)])
    program = np.unique(stem, return_inverse=True)[1][log.executable - 1] + 100 * log.user_id
    order = np.lexsort((np.arange(len(log)), program))
    name, run = program[order], np.log(log.run_time[order])
    again = name[1:] == name[:-1]
    near = np.abs(run[1:] - run[:-1])[again] < np.log(1.5)
    shuffled = np.random.default_rng(0).permutation(run)
    anyone = np.abs(np.diff(shuffled)) < np.log(1.5)
    assert again.mean() > 0.95
    assert near.mean() > 0.8
    assert anyone.mean() < 0.3
    late = np.abs(run[5000:] - run[:-5000])[name[5000:] == name[:-5000]] < np.log(1.5)
    assert late.mean() < 0.5 * near.mean()  # but not for ever
    assert len(np.unique(program[log.user_id == 1])) > 1


def test_names_of_jobs_have_prefixes(log):
    """Campaigns are numbered, in about half of them the jobs too: relax_3, relax_3_12."""
    codes = code_names(log)
    parts = [codes[n].split("_") for n in log.executable[:20_000].tolist()]
    assert {len(of) for of in parts} == {2, 3}
    assert {of[0] for of in parts} == set(STEMS)
    assert all(number.isdigit() for of in parts for number in of[1:])
    campaigns = {(u, *of[:2]): len(of)
                 for u, of in zip(log.user_id.tolist(), parts, strict=False)}  # fmt: skip
    assert np.mean([length == 3 for length in campaigns.values()]) == pytest.approx(0.5, abs=0.05)


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
    assert np.array_equal(assumed.units, eurora(jobs=3000, seed=3).units)
    assert ["units=figure-6" in w.header["Note"][0] for w in (few, assumed)] == [True, False]
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


def within_five_sigma(counts: np.ndarray, shares: np.ndarray) -> bool:
    """Whether independent draws of these shares would come so near, at 1 in a million each."""
    expected = counts.sum() * np.array(shares) / np.sum(shares)
    return bool((np.abs(counts - expected) <= 5 * np.sqrt(expected) + 1).all())


def test_helios_is_as_published():
    """GPUs, run times and hours by Hu et al., SC 2021, Figures 6a, 5a and 2b, and its means."""
    log = helios(jobs=200_000, seed=3)
    gpus = log.units * log.per_unit["gpu"]
    sizes, counts = np.unique(gpus, return_counts=True)
    assert sizes.tolist() == [*GPUS]
    assert within_five_sigma(counts, [*GPUS.values()])
    class_of = np.ceil(np.log2(log.run_time)).astype(np.int64)  # rounded to seconds, from 4 s on
    shorter = np.bincount(class_of, minlength=len(RUN_TIMES))
    shares = np.diff(RUN_TIMES, prepend=0)
    assert shorter[6:] / len(log) == pytest.approx(shares[6:] / 100, abs=3e-3)
    assert np.median(log.run_time) == pytest.approx(204, rel=0.05)
    assert log.run_time.mean() == pytest.approx(13_040.6, rel=0.06)
    assert gpus.mean() == pytest.approx(6.736, rel=0.02)
    hours = np.bincount(log.submit_time // HOUR_S % 24, minlength=24)
    assert hours / len(log) == pytest.approx(np.array(CYCLE) / sum(CYCLE), abs=2e-3)
    assert len(log) / (log.submit_time.max() / DAY_S) == pytest.approx(125_303 / 183, rel=0.01)
    small, machine = gpus <= 8, find_cluster("helios")
    assert (log.units[small] == 1).all()
    assert (log.per_unit["gpu"][gpus > 12] == 8).all()
    check_fits(log, needs_of(log, machine.resources), machine.capacity)
    assert (log.requested_time >= log.run_time).all()


def test_helios_has_its_load_on_fewer_nodes():
    log, same = (helios(jobs=20_000, nodes=16, seed=1, load=0.8) for _ in range(2))
    gpus = log.units * log.per_unit["gpu"]
    span = log.submit_time.max()
    assert (gpus * log.run_time).sum() / (16 * 8 * span) == pytest.approx(0.8, rel=0.01)
    assert gpus.max() == 16 * 8
    assert np.array_equal(log.run_time, same.run_time)
    assert np.array_equal(log.submit_time, same.submit_time)
    machine = Cluster(groups=(NodeGroup("n", 16, {"core": 48, "mem": 376_000, "gpu": 8}),))
    result = simulate(log.take(slice(0, 3000)), cluster=machine)
    assert 0 < result.metrics["utilization_gpu"] <= 1
    assert len(helios(jobs=1)) == 1


def test_the_whole_machine_is_used_by_fractions() -> None:
    """On a machine on which all fractions but two are whole numbers of processors."""
    log = light_esp(processors=80_640)
    work = (log.requested_processors * log.run_time).sum() / 80_640
    assert work == pytest.approx(935.21, abs=0.01)
    assert len(log) == 230
    by_type = {kind.name: log.requested_processors[log.executable == k + 1]
               for k, kind in enumerate(TYPES)}  # fmt: skip
    assert set(by_type["A"].tolist()) == {2520}
    assert set(by_type["Z"].tolist()) == {80_640}
    assert [len(sizes) for sizes in by_type.values()] == [kind.jobs for kind in TYPES]


def test_180_cores_in_nodes_of_12_are_as_printed() -> None:
    log = light_esp(processors=180, node_cores=12)
    sizes = {kind.cores for kind in TYPES}
    assert set(log.requested_processors.tolist()) == sizes
    assert log.units is not None
    assert (log.units * 12 == log.requested_processors).all()
    cluster = Cluster(groups=(NodeGroup("node", 15, {"core": 12}),))
    result = simulate(log, cluster=cluster)
    assert result.allocation is not None
    assert (result.allocation.units == 1).all()  # a node holds one unit, alone


def test_the_seed_shuffles_and_nothing_else() -> None:
    first, same, other = light_esp(seed=1), light_esp(seed=1), light_esp(seed=2)
    assert np.array_equal(first.executable, same.executable)
    assert not np.array_equal(first.executable, other.executable)
    assert np.array_equal(np.sort(first.executable), np.sort(other.executable))
    assert np.array_equal(first.submit_time, other.submit_time)


def test_jobs_come_in_the_time_that_the_load_says() -> None:
    log = light_esp(repeat=4, load=2.0)
    assert len(log) == 920
    gaps = np.diff(log.submit_time)
    assert set(gaps.tolist()) == {2, 3}
    assert log.submit_time[-1] + gaps.mean() == pytest.approx(4 * WORK_S / 2, rel=0.01)


def test_users_have_the_same_jobs() -> None:
    log = light_esp(repeat=4, users=3, spread=0.3)
    for kind in range(1, 14):
        jobs = np.bincount(log.user_id[log.executable == kind], minlength=4)[1:]
        assert len(set(jobs.tolist())) == 1
    watts = {user: log.power_w[log.user_id == user] for user in (1, 2, 3)}
    for user, factor in ((1, 0.7), (2, 1.0), (3, 1.3)):
        assert watts[user] == pytest.approx(factor * 358)


def test_users_have_unequal_jobs() -> None:
    log = light_esp(repeat=4, users=3, unequal=1)
    jobs = np.bincount(log.user_id)[1:]
    assert jobs / jobs[0] == pytest.approx([1, 2, 3], rel=0.06)
    assert (log.power_w == -1).all()


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
