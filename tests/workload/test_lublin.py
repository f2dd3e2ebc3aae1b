"""The generated jobs against the model's own distributions, and against the authors' program.

Seeds are fixed, so nothing here is random. Limits are those of a test at 0.1 %: 1.95 / sqrt(n) for
Kolmogorov-Smirnov distances, 4 standard errors for means and shares.
"""

import gzip
import math

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.workload.generators import lublin as module
from hpcgym.workload.generators.lublin import BATCH, INTERACTIVE, WHOLE_SAMPLE, lublin, slot_weights

KINDS = {"interactive": INTERACTIVE, "batch": BATCH, "whole": WHOLE_SAMPLE}
KS = 1.95
SUMS = {
    "submit_time": 146_416_523, "run_time": 1_552_953, "requested_processors": 16_509,
    "requested_time": 57_863_730, "user_id": 14_171, "queue": 127,
}  # fmt: skip
SUMS_OF_ONE = {
    "submit_time": 305_349_004, "run_time": 5_341_851, "requested_processors": 21_121,
    "requested_time": 57_863_730, "user_id": 14_171, "queue": -1_000,
}  # fmt: skip
JOBS = 100_000


@pytest.fixture(scope="module")
def whole():
    """All jobs together, on the machine size of the authors' sample output."""
    return lublin(JOBS, 256, seed=11, classes=1)


@pytest.fixture(scope="module")
def mixed():
    """Interactive and batch jobs on the machine size that the model was fitted to."""
    return lublin(JOBS, 128, seed=12)


def jobs_of(request, name):
    """Return (workload, rows) of one class."""
    if name == "whole":
        workload = request.getfixturevalue("whole")
        return workload, np.arange(len(workload))
    workload = request.getfixturevalue("mixed")
    return workload, np.flatnonzero(workload.queue == ("interactive", "batch").index(name))


# ------------------------------------------------------------ the model, by numeric integration

GRID = np.linspace(0, 70, 700_001)


def gamma_density(shape, scale):
    with np.errstate(divide="ignore"):
        logs = (shape - 1) * np.log(GRID) - GRID / scale
    return np.exp(logs - math.lgamma(shape) - shape * math.log(scale))


def cumulated(density):
    steps = (density[1:] + density[:-1]) / 2 * np.diff(GRID)
    return np.concatenate([[0.0], np.cumsum(steps)])


def truncated(density, limit):
    """Return the density given that the variate is at most the limit."""
    density = np.where(limit >= GRID, density, 0.0)
    return density / cumulated(density)[-1]


def log_run_density(kind, size):
    p = min(max(kind.slope * size + kind.intercept, 0), 1)
    first = gamma_density(kind.short_shape, kind.short_scale)
    second = gamma_density(kind.long_shape, kind.long_scale)
    return truncated(p * first + (1 - p) * second, 12)


def size_probabilities(kind, processors):
    """Return P(size = s) for s = 0 ... processors."""
    high = math.log2(processors) - kind.high_below
    medium = high - kind.medium_below

    def below(exponent):
        lower = np.clip((exponent - kind.low) / (medium - kind.low), 0, 1)
        upper = np.clip((exponent - medium) / (high - medium), 0, 1)
        return kind.lower_stage * lower + (1 - kind.lower_stage) * upper

    probabilities = np.zeros(processors + 1)
    probabilities[1] = kind.serial
    for k in range(int(math.log2(processors)) + 1):
        probabilities[2**k] += kind.power_of_two * (below(k + 0.5) - below(k - 0.5))
    other = 1 - kind.serial - kind.power_of_two
    for s in range(1, processors + 1):
        probabilities[s] += other * (below(math.log2(s + 0.5)) - below(math.log2(s - 0.5)))
    return probabilities


def ks_to_model(sample, cumulative):
    """Return the KS distance of whole numbers to P(x <= k), k = 0 ... len(cumulative) - 1."""
    counts = np.bincount(sample, minlength=len(cumulative))
    return np.abs(np.cumsum(counts)[: len(cumulative)] / len(sample) - cumulative).max()


def ks_two_samples(a, b):
    at = np.union1d(a, b)
    shares = [np.searchsorted(np.sort(x), at, side="right") / len(x) for x in (a, b)]
    return np.abs(shares[0] - shares[1]).max()


def two_sample_limit(a, b):
    return KS * math.sqrt(1 / len(a) + 1 / len(b))


# ------------------------------------------------------------------------- sizes and run times


@pytest.mark.parametrize("name", KINDS)
def test_sizes_follow_the_two_stage_uniform_model(request, name):
    workload, rows = jobs_of(request, name)
    size = workload.requested_processors[rows]
    probabilities = size_probabilities(KINDS[name], workload.processors)
    assert probabilities.sum() == pytest.approx(1)
    assert ks_to_model(size, np.cumsum(probabilities)) < KS / math.sqrt(len(size))
    powers = 2 ** np.arange(1, 9)
    powers = powers[powers <= workload.processors]
    for sizes in ([1], powers):
        expected = probabilities[sizes].sum()
        error = math.sqrt(expected * (1 - expected) / len(size))
        assert np.isin(size, sizes).mean() == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("size", [1, 2, 8, 32, 100, 256])
@pytest.mark.parametrize("name", KINDS)
def test_run_times_follow_the_hyper_gamma_of_their_size(name, size):
    jobs = 40_000
    kind = KINDS[name]
    run = module.run_times(np.full(jobs, size), kind, np.random.SeedSequence([size, len(name)]))
    density = log_run_density(kind, size)
    assert run.min() >= 1
    assert run.max() <= math.exp(12)
    at_most = np.interp(np.log(np.arange(math.exp(12)) + 1), GRID, cumulated(density))
    assert ks_to_model(run, at_most) < KS / math.sqrt(jobs)
    # Rounding down matters most for the shortest; half a second makes up for it well enough here.
    mean = np.trapezoid(GRID * density, GRID)
    spread = math.sqrt(np.trapezoid(GRID**2 * density, GRID) - mean**2)
    assert np.log(run + 0.5).mean() == pytest.approx(mean, abs=4 * spread / math.sqrt(jobs) + 0.02)


# ------------------------------------------------------------------------------------ arrivals


@pytest.mark.parametrize("name", KINDS)
def test_slot_weights_are_slices_of_the_days_gamma(name):
    kind = KINDS[name]
    weights = slot_weights(kind)
    cumulative = cumulated(gamma_density(kind.day_shape, kind.day_scale))
    for number in range(11, 59):  # half-hours, counted from 1 at midnight, the model's day
        low, high = np.interp([number - 0.5, number + 0.5], GRID, cumulative)
        assert weights[(number - 1) % 48] * (cumulative[585_000] - cumulative[105_000]) / 48 == (
            pytest.approx(high - low, rel=1e-6)
        )
    assert weights.mean() == pytest.approx(1)


@pytest.mark.parametrize("name", KINDS)
def test_submit_times_equal_a_walk_through_the_half_hours(name):
    """The program's way: each job pays each half-hour's weight until its points are used up."""
    kind = KINDS[name]
    gaps = module.gaps(np.random.default_rng(5), 3000, kind)
    weights = slot_weights(kind)
    walked, slot, points = [], 0, 0.0
    for gap in gaps / 1800:
        points += gap
        while points > weights[slot % 48]:
            points -= weights[slot % 48]
            slot += 1
        walked.append(1800 * (slot + points / weights[slot % 48]))
    times = module.submit_times(np.cumsum(gaps), kind)
    whole_seconds = np.abs(walked - np.round(walked)) < 1e-6  # where rounding decides
    assert whole_seconds.sum() < 10
    assert (times == np.floor(walked))[~whole_seconds].all()


# ------------------------------------------------------------------- the authors' sample output


@pytest.fixture
def sample(trace):
    """Columns of a file that the authors' program wrote: one class, 256 processors."""
    path = trace("lublin_256.swf.gz")
    with gzip.open(path, "rt") as file:
        jobs = np.loadtxt((line for line in file if not line.startswith(";")), dtype=np.int64)
    return {"submit": jobs[:, 1], "run": jobs[:, 3], "size": jobs[:, 4]}


def test_sizes_of_the_program(sample, whole):
    size = whole.requested_processors
    assert ks_two_samples(sample["size"], size) < two_sample_limit(sample["size"], size)
    for s in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        share = (size == s).mean()
        error = math.sqrt(share * (1 - share) * (1 / len(size) + 1 / len(sample["size"])))
        assert (sample["size"] == s).mean() == pytest.approx(share, abs=4 * error)


def test_run_times_of_the_program(sample, whole):
    assert ks_two_samples(sample["run"], whole.run_time) < two_sample_limit(
        sample["run"], whole.run_time
    )
    for low, high in [(1, 1), (2, 8), (9, 64), (65, 256)]:
        theirs, ours = (
            run[(size >= low) & (size <= high)]
            for run, size in (
                (sample["run"], sample["size"]),
                (whole.run_time, whole.requested_processors),
            )
        )
        assert ks_two_samples(theirs, ours) < two_sample_limit(theirs, ours)


def test_arrivals_of_the_program(sample, whole):
    theirs, ours = np.diff(sample["submit"]), np.diff(whole.submit_time)
    assert ks_two_samples(theirs, ours) < two_sample_limit(theirs, ours)
    # Its clock loses half a second a job, so its day is up to 1.4 hours off at the end.
    first = sample["submit"][:3000] % 86_400
    assert ks_two_samples(first, whole.submit_time % 86_400) < 0.08


# ------------------------------------------------------------------------- load, seeds, columns


@pytest.mark.parametrize("load", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("classes", [1, 2])
def test_load_is_met_by_the_gaps_alone(load, classes):
    plain = lublin(3000, 128, seed=3, classes=classes)
    loaded = lublin(3000, 128, seed=3, classes=classes, load=load)
    area = int((loaded.requested_processors * loaded.run_time).sum())
    assert area / (128 * loaded.submit_time[-1]) == pytest.approx(load, rel=1e-5)
    assert (np.diff(loaded.submit_time) >= 0).all()
    jobs = [sorted(zip(w.requested_processors, w.run_time, strict=True)) for w in (plain, loaded)]
    assert jobs[0] == jobs[1]


def columns_of(workload):
    return {name: values.copy() for name, values in workload.columns.items()}


@pytest.mark.parametrize("load", [None, 0.8])
def test_chunks_of_work_do_not_change_the_jobs(monkeypatch, load):
    before = columns_of(lublin(5000, seed=2, load=load))
    monkeypatch.setattr(module, "_CHUNK", 700)
    after = columns_of(lublin(5000, seed=2, load=load))
    assert all(np.array_equal(before[c], after[c]) for c in before)


def test_a_shorter_workload_begins_a_longer_one():
    short, long = lublin(700, seed=4), lublin(20_000, seed=4)
    for column in ("submit_time", "run_time", "requested_processors", "queue"):
        assert np.array_equal(getattr(short, column), getattr(long, column)[:700])


@pytest.mark.parametrize(("classes", "sums"), [(1, SUMS_OF_ONE), (2, SUMS)])
def test_the_seed_0_workload_stays_what_it_was(classes, sums):
    """Results are quoted by seed: a change of numpy's streams or of this module must be seen."""
    jobs = lublin(1000, classes=classes)
    assert {c: int(getattr(jobs, c).sum()) for c in SUMS} == sums


def test_columns(mixed, whole):
    assert mixed.name == "lublin-128 seed 12"
    assert mixed.job_number.tolist() == list(range(1, JOBS + 1))
    assert (np.diff(mixed.submit_time, prepend=0) >= 0).all()
    assert (mixed.requested_time >= mixed.run_time).all()
    assert mixed.run_time.min() >= 1
    assert mixed.user_id.min() == 1
    assert np.shares_memory(mixed.requested_processors, mixed.allocated_processors)
    assert mixed.used_memory.strides == (0,)
    assert not mixed.cleaning
    assert mixed.header["MaxProcs"] == mixed.header["MaxNodes"] == ["128"]
    assert mixed.header["Queue"] == ["0 interactive", "1 batch"]
    assert "seed=12" in mixed.header["Note"][1]
    assert "Queue" not in whole.header
    assert (whole.queue == -1).all()


# ------------------------------------------------------------------------------ small and wrong


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("processors", [1, 2, 3, 4, 5, 100, 5000])
def test_jobs_fit_any_machine(processors, classes):
    size = lublin(3000, processors, classes=classes).requested_processors
    assert size.min() == 1
    assert size.max() <= processors
    assert 2 * size.max() > processors


test_mistakes = mistakes_of(globals(), math)
