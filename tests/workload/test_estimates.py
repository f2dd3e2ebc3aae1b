"""Requested times against the published model of Tsafrir, Etsion and Feitelson."""

import math

import numpy as np
import pytest

from hpcgym.errors import WorkloadError
from hpcgym.workload.generators import estimates
from hpcgym.workload.generators.estimates import request_distribution, requested_times

H, M = 3600, 60


def test_the_twenty_popular_values_of_an_18_hour_machine():
    values = estimates._head_values(18 * H)
    assert values[0] == 18 * H
    minutes = {5 * M, 10 * M, 15 * M, 20 * M, 30 * M}
    hours = {h * H for h in (1, 2, 3, 4, 5, 6, 8, 10, 12)}  # the 18 hours are the limit itself
    filled_up = {h * H for h in (15, 16, 14, 17, 13)}  # multiples of 5, 2 and 1 hours
    assert set(values[1:]) == minutes | hours | filled_up
    assert values[1:] == sorted(values[1:])


@pytest.mark.parametrize("limit", [2 * H, 5 * H + 7, 18 * H, 48 * H, 400 * H])
def test_there_are_always_twenty_popular_values(limit):
    values = estimates._head_values(limit)
    assert len(set(values)) == len(values) == 20
    assert max(values) == values[0] == limit
    assert min(values) > 0


def test_shares_of_the_popular_values():
    """The published curve: 14.05 exp(-0.18 x) + 0.46 % for ranks 2 to 20, 89 % in all."""
    shares = 100 * estimates._head_shares()
    assert shares.sum() == pytest.approx(89)
    assert shares[1] == pytest.approx(14.0491 * math.exp(-0.355062) + 0.462513)
    assert shares[19] == pytest.approx(14.0491 * math.exp(-3.55062) + 0.462513)
    assert shares[0] == pytest.approx(21.73, abs=0.01)
    assert (np.diff(shares) < 0).all()


@pytest.mark.parametrize("seed", range(50))
def test_popularity_ranks_stay_where_the_logs_had_them(seed):
    ranks = estimates._popularity_ranks(np.random.default_rng(seed))
    assert ranks[0] == 1
    assert sorted(ranks) == list(range(1, 21))
    places = {r: [i for i, row in enumerate(estimates.RANKS_IN_LOGS) if r in row] for r in ranks}
    late = [r for place, r in enumerate(ranks) if place > max(places[r]) and r != 1]
    assert all(min(places[r]) <= place for place, r in enumerate(ranks) if r != 1)
    assert len(late) <= 3  # ranks that were due at the same place wait for each other


def test_the_more_popular_of_two_drawn_ranks_is_taken():
    """For 5 minutes the logs offer ranks 3, 3, 4 and 6: 3 with probability 3/4."""
    ranks = [estimates._popularity_ranks(np.random.default_rng(s))[1] for s in range(800)]
    assert set(ranks) == {3, 4, 6}
    assert ranks.count(3) / 800 == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 800))


def test_each_log_has_each_rank_once():
    for log in zip(*estimates.RANKS_IN_LOGS, strict=True):
        assert sorted(log) == list(range(1, 21))


@pytest.mark.parametrize(
    ("jobs", "number"), [(1000, 35), (10_000, 90), (40_000, 215), (250_000, 565), (10**7, 565)]
)
def test_number_of_distinct_values(jobs, number):
    values, shares = request_distribution(jobs, 48 * H, 1)
    assert number - 2 <= len(values) <= number  # a value of the tail that finds no place is left
    assert (np.diff(values) > 0).all()
    assert shares.sum() == pytest.approx(1)
    in_head = np.isin(values, estimates._head_values(48 * H))
    assert shares[in_head].sum() == pytest.approx(0.89)
    assert shares.argmax() == len(values) - 1  # the longest
    tail = np.sort(shares[~in_head])
    assert tail[-1] / tail[0] == pytest.approx((len(values) / 21) ** 2.267)


def test_tail_lies_on_the_published_curve():
    values = estimates._tail_values(70, 90, 48 * H, set())
    bend = 1 + 12.1039 / 90**0.6026
    for place in (1, 20, 50):
        x = place / 70
        assert values[place - 1] == pytest.approx((bend - 1) * x / (bend - x) * 48 * H, abs=30)


def test_requests_are_distributed_as_the_model_says():
    """Run times that any request covers leave the distribution as it is, to a job."""
    requests = requested_times(np.ones(20_000, np.int64), seed=4)
    values, shares = request_distribution(20_000, estimates.MAX_REQUEST_S, 4)
    found, counts = np.unique(requests, return_counts=True)
    expected = shares * 20_000
    assert found.tolist() == values.tolist()
    assert (np.abs(counts - expected) < 1).all()


def slow_assignment(run_times, values, shares, rng):
    """Take jobs from long to short; each draws from the requests left that are long enough."""
    left = np.repeat(values, estimates._whole_numbers(shares, len(run_times))).tolist()
    requests = np.empty(len(run_times))
    for job in np.argsort(-run_times, kind="stable"):
        fits = [i for i, value in enumerate(left) if value >= run_times[job]]
        requests[job] = left.pop(fits[rng.integers(len(fits))])
    return requests


@pytest.mark.parametrize("users", [False, True])
def test_assignment_equals_drawing_one_by_one(users):
    """Mean log request of short, middling and long jobs, over many seeds."""
    run_times = np.repeat([20, 400, 5000, 30_000], [60, 60, 60, 20])
    user_id = np.arange(200) % 7 + 1 if users else None
    fast, slow = [], []
    for seed in range(150):
        values, shares = request_distribution(200, 48 * H, seed)
        drawn = slow_assignment(run_times, values, shares, np.random.default_rng(seed))
        for means, requests in (
            (fast, requested_times(run_times, user_id, max_request_s=48 * H, seed=seed)),
            (slow, drawn),
        ):
            assert (requests >= run_times).all()
            means.append([np.log(requests[run_times == r]).mean() for r in np.unique(run_times)])
    difference = np.array(fast) - np.array(slow)
    error = difference.std(axis=0) / math.sqrt(len(difference))
    assert (np.abs(difference.mean(axis=0)) < 4 * error).all()


def test_a_users_equal_jobs_have_one_request():
    user_id = np.random.default_rng(0).integers(1, 51, 5000)
    run_time = np.full(5000, 1000)
    together = requested_times(run_time, user_id, seed=1)
    alone = requested_times(run_time, seed=1)
    assert np.array_equal(np.sort(together), np.sort(alone))
    pairs = len(set(zip(user_id.tolist(), together.tolist(), strict=True)))
    assert pairs < 50 + len(np.unique(together))
    assert len(set(zip(user_id.tolist(), alone.tolist(), strict=True))) > 500


def test_missing_long_requests_are_made_from_the_shortest():
    run_time = np.concatenate([np.full(900, 40 * H), np.full(100, 60)])
    requests = requested_times(run_time, seed=2)
    assert (requests >= run_time).all()
    _, shares = request_distribution(1000, estimates.MAX_REQUEST_S, 2)
    longest = estimates._whole_numbers(shares, 1000)[-1]
    assert (requests == 48 * H).sum() == longest  # what the model has of these is kept
    assert (requests == 40 * H).sum() > 500  # the rest is raised no further than needed
    assert (requested_times(np.full(50, 48 * H)) == 48 * H).all()


@pytest.mark.parametrize("jobs", [0, 1, 2, 19, 21, 199])
def test_few_jobs(jobs):
    run_time = np.arange(1, jobs + 1) * 100
    requests = requested_times(run_time, seed=3)
    assert requests.shape == (jobs,)
    assert requests.dtype == np.int64
    assert (requests >= run_time).all()


def test_same_seed_same_requests():
    run_time = np.arange(1, 3000)
    first, second, other = (requested_times(run_time, seed=s) for s in (5, 5, 6))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_limits():
    with pytest.raises(WorkloadError, match="max_request_s must be at least 7200 s"):
        requested_times(np.array([1]), max_request_s=3600)
    with pytest.raises(WorkloadError, match="a job runs 9000 s, max_request_s is 7200"):
        requested_times(np.array([1, 9000]), max_request_s=7200)
