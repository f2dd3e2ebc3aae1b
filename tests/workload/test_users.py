"""Users repeat themselves, and no job is changed for it."""

import numpy as np
import pytest

from hpcgym.workload.generators.lublin import WINDOW, assign_users, default_users, lublin


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
    found = repetition(jobs.user_id, jobs.requested_processors, jobs.run_time, jobs.requested_time)
    shuffled = np.random.default_rng(0).permutation(jobs.user_id)
    random = repetition(shuffled, jobs.requested_processors, jobs.run_time, jobs.requested_time)
    for value, low, high in zip(found, (0.5, 0.45, 0.6, 0.6), (0.8, 0.7, 0.9, 0.85), strict=True):
        assert low < value < high
    assert random[0] < 0.25
    assert random[1] < 0.2
    assert abs(random[3]) < 0.15


def test_busiest_users(jobs):
    counts = np.bincount(jobs.user_id)[1:]
    users = default_users(len(jobs))
    assert len(counts) <= users
    assert counts.argmax() == 0
    assert 0.45 < np.sort(counts)[-(users // 10) :].sum() / len(jobs) < 0.65


def test_sessions_are_of_similar_jobs_near_in_time(jobs):
    """In a window, a user's jobs are neighbours in the order of magnitude, size and run time."""
    window = slice(3 * WINDOW, 4 * WINDOW)
    run, size = jobs.run_time[window], jobs.requested_processors[window]
    magnitude = (run >= 100) * 1 + (run >= 10_000)
    users = jobs.user_id[window][np.lexsort((run, size, magnitude))]
    changes = np.count_nonzero(np.diff(users)) + 1
    assert changes == len(np.unique(users))


@pytest.mark.parametrize(("number", "users"), [(1, 1), (1, 40), (700, 1), (700, 5)])
def test_few(number, users):
    user_id = assign_users(np.ones(number, np.int64), np.arange(1, number + 1), users)
    assert user_id.shape == (number,)
    assert user_id.dtype == np.int64
    assert user_id.min() >= 1
    assert user_id.max() <= users


def test_default_number_of_users():
    assert default_users(1) == 1
    assert default_users(28_481) == 242
    assert default_users(10_000) == 159
