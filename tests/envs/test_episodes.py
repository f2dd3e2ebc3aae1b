"""Which jobs episodes have, by what names they are found, and what cannot be."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError
from hpcgym.units import DAY_S, MONTH_S, WEEK_S
from hpcgym.workload import Workload, load_workload, weeks


def make(submit: Any, run: Any = None, **options: Any) -> Workload:
    run = np.ones(len(submit), dtype=int) if run is None else run
    columns = {"submit_time": submit, "run_time": run, "job_number": np.arange(len(submit))}
    return Workload.from_columns(
        columns, **{"processors": 8, "name": "log", "first_submit_s": 0} | options
    )


def a_week_a_job(n_weeks: int) -> Workload:
    """Return jobs in the middle of weeks 0 to ``n_weeks``, as many as the week's number plus 1."""
    number = np.repeat(np.arange(n_weeks + 1), np.arange(1, n_weeks + 2))
    return make(number * WEEK_S + 3 * DAY_S)


HUNDRED = make(np.arange(100))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def listed(*rows: tuple[str, int, int]) -> list[Episode]:
    """The episodes of these rows, by name, first and last; weeks and months know their number."""
    periods = [re.fullmatch(r"(?:week|month) (\d+)", name) for name, _, _ in rows]
    return [
        Episode(*row, period=-1 if period is None else int(period[1]))
        for row, period in zip(rows, periods, strict=True)
    ]


# --- What is listed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "given", "expected"),
    [
        (HUNDRED, {"jobs": 30},
         [("window 0000", 0, 30), ("window 0001", 30, 60), ("window 0002", 60, 90)]),
        (HUNDRED, {"jobs": 30, "part": "train", "train_share": 0.4}, [("window 0000", 0, 30)]),
        (HUNDRED, {"jobs": 30, "part": "test", "train_share": 0.4},
         [("window 0000", 40, 70), ("window 0001", 70, 100)]),
        (HUNDRED, {"jobs": 50, "part": "test"}, [("window 0000", 50, 100)]),
        (HUNDRED, {"episodes": "whole"}, [("whole", 0, 100)]),
        (HUNDRED, {"episodes": "whole", "part": "train"}, [("train", 0, 50)]),
        (HUNDRED, {"episodes": "whole", "part": "test", "train_share": 0.8}, [("test", 80, 100)]),
        (make([5]), {"episodes": "whole"}, [("whole", 0, 1)]),
        # by time, not by number; who comes at the very second is of the test part
        (make([100, 101, 102, 150, 150, 200]), {"episodes": "whole", "part": "test"},
         [("test", 3, 6)]),
        (make([100, 101, 102, 149, 151, 200]), {"episodes": "whole", "part": "train"},
         [("train", 0, 4)]),
        (make([9, 9, 9, 9]), {"episodes": "whole", "part": "test"}, [("test", 2, 4)]),
        (a_week_a_job(3), {"episodes": "weeks"},
         [("week 1", 0, 2), ("week 2", 2, 5), ("week 3", 5, 9)]),
        (make(np.array([0, 1, 3, 3]) * MONTH_S), {"episodes": "months"},
         [("month 1", 0, 1), ("month 3", 1, 3)]),
        (make([WEEK_S], name="week"), {"episodes": "weeks"}, [("week 1", 0, 1)]),
    ],
)  # fmt: skip
def test_what_is_listed(workload: Workload, given: Any, expected: list[Any]) -> None:
    """It is found by its name, and whoever changes a list of it does no harm."""
    episodes = Episodes(workload, **given)
    assert episodes.listing == episodes.named() == listed(*expected)
    assert episodes.longest == max(stop - start for _, start, stop in expected)
    episodes.named().clear()
    assert [episodes.find({"slice": name}) for name, *_ in expected] == episodes.listing


@pytest.mark.parametrize("around", [{}, {"horizon": "9d"}, {"start": "warm"}], ids=str)
def test_weeks_know_their_number_whatever_is_around_them(around: dict[str, Any]) -> None:
    jobs = a_week_a_job(4)
    jobs = jobs.with_columns(requested_time=jobs.run_time, requested_processors=jobs.run_time)
    listing = Episodes(jobs, "weeks", part="test", **around).listing
    assert [(week.name, week.period) for week in listing] == [("week 3", 3), ("week 4", 4)]


@pytest.mark.parametrize("number", [1, 3, 40])
def test_warm_episodes_know_so_many_of_the_last_jobs_of_each_user(number: int) -> None:
    """Among all that had ended, by a list of each user's; many end in the same second."""
    jobs = load_workload("lublin:jobs=600,processors=64,seed=4,load=1.1")
    submit, user = jobs.submit_time // 3600 * 3600, np.arange(len(jobs)) * 7 % 11 % 6
    jobs = jobs.with_columns(
        submit_time=submit, run_time=jobs.run_time // 3600 * 3600 + 1, user_id=user
    )
    around: dict[str, Any] = {"jobs": 60, "start": "warm", "warmup": "2h"}
    every, some = (
        [episodes.workload_of(episode) for episode in episodes.listing]
        for episodes in (Episodes(jobs, **around, past_jobs=n) for n in (np.inf, number))
    )
    for part, all_of in zip(some, every, strict=True):
        assert part.initial is not None
        assert all_of.initial is not None
        past = all_of.initial.past
        start = past.submit_time + past.wait_time
        ends = (start + np.minimum(past.run_time, past.requested_time)).tolist()
        of_user: dict[int, list[tuple[int, int, int]]] = {}
        for row, key in enumerate(zip(ends, start.tolist(), range(len(past)), strict=True)):
            of_user.setdefault(int(past.user_id[row]), []).append(key)
        rows = {row for keys in of_user.values() for *_, row in sorted(keys)[-number:]}
        assert part.initial.past.job_number.tolist() == past.job_number[sorted(rows)].tolist()
        assert part.job_number.tolist() == all_of.job_number.tolist()
        assert part.initial.start.tolist() == all_of.initial.start.tolist()
    assert len(every[-1].initial.past) > 6 * 40 or number < 40


@pytest.mark.parametrize(
    ("n_weeks", "share", "n_train"), [(4, 0.5, 2), (3, 0.5, 2), (10, 0.7, 7), (10, 0.29, 3)]
)
def test_the_first_weeks_are_for_training(n_weeks: int, share: float, n_train: int) -> None:
    workload = a_week_a_job(n_weeks)
    every, train, test = (
        Episodes(workload, "weeks", part=part, train_share=share)
        for part in ("all", "train", "test")
    )
    assert train.listing == every.listing[:n_train]
    assert train.listing + test.listing == every.listing
    assert len(train.workload) == len(test.workload) == len(every.workload)


def test_jobs_that_cross_the_end_of_a_week_are_dropped_and_counted() -> None:
    submit = [WEEK_S, WEEK_S + 1, 2 * WEEK_S, 3 * WEEK_S - 1, 3 * WEEK_S]
    killed = np.array([False, False, True, False, False])
    cleaning = {"dropped: before": 4}
    given = make(submit, [9, 2 * WEEK_S, 9, 9, 9], cleaning=cleaning, killed=killed)
    kept = Episodes(given, "weeks").workload
    assert kept.job_number.tolist() == [0, 2, 4]
    assert kept.cleaning == cleaning | {"dropped: crosses the end of a week": 2}
    assert kept.killed.tolist() == [False, True, False]
    assert not kept.submit_time.flags.writeable
    assert kept.user_id.strides == (0,)  # missing columns take no memory


def test_weeks_of_a_real_trace(trace: Any) -> None:
    workload = load_workload(trace("KTH-SP2-1996-2.swf.gz"), clean="glesser")
    episodes = Episodes(workload, "weeks")
    for episode, week in zip(episodes.listing, weeks(workload), strict=True):
        part = episodes.workload_of(episode)
        assert part.name == week.name
        assert all(np.array_equal(part.columns[c], week.columns[c]) for c in week.columns)
        assert np.array_equal(part.killed, week.killed)


def test_the_jobs_of_an_episode_share_memory() -> None:
    episodes = Episodes(make(np.arange(100), cleaning={"dropped: before": 4}), jobs=30)
    part = episodes.workload_of(episodes.find({"slice": "window 0001"}))
    assert (part.name, part.cleaning, part.processors) == ("log window 0001", {}, 8)
    assert part.job_number.tolist() == list(range(30, 60))
    assert np.shares_memory(part.submit_time, episodes.workload.submit_time)


# --- What is drawn and named ----------------------------------------------------------------------


def test_drawn_windows_lie_wholly_in_their_part() -> None:
    train, test = (Episodes(HUNDRED, jobs=30, part=p, train_share=0.4) for p in ("train", "test"))
    generator = rng()
    drawn = [train.draw(generator) for _ in range(300)]
    assert {(e.start, e.stop - e.start) for e in drawn} == {(start, 30) for start in range(11)}
    assert {test.draw(generator).start for _ in range(900)} == set(range(40, 71))
    assert all(train.find({"slice": episode.name}) == episode for episode in drawn)
    of_weeks = Episodes(a_week_a_job(3), "weeks")
    assert {of_weeks.draw(generator) for _ in range(50)} == {*of_weeks.listing}


@pytest.mark.parametrize("kind", ["windows", "weeks", "whole"])
def test_drawing_is_one_call_of_integers(kind: str) -> None:
    class Counting:
        calls = 0

        def integers(self, *bounds: int) -> Any:
            self.calls += 1
            return rng().integers(*bounds)

    counting: Any = Counting()
    Episodes(a_week_a_job(9), kind, jobs=3).draw(counting)
    assert counting.calls == 1


@pytest.mark.parametrize(("kind", "most"), [("windows", 51), ("weeks", 20), ("whole", 1)])
def test_named_episodes_are_random_different_and_in_order(kind: str, most: int) -> None:
    workload = HUNDRED if kind == "windows" else a_week_a_job(20)
    episodes = Episodes(workload, kind, jobs=50)
    some = episodes.named((most + 1) // 2, seed=1)
    starts = [episode.start for episode in some]
    assert starts == sorted(set(starts))
    assert some == episodes.named((most + 1) // 2, seed=1)
    assert most == 1 or some != episodes.named((most + 1) // 2, seed=2)
    assert len(episodes.named(most)) == most


def test_windows_to_evaluate_on_follow_one_another() -> None:
    """Of 100 jobs the test part has 60: four windows of 15, or, of 7 jobs, eight and four jobs."""
    test = Episodes(HUNDRED, jobs=15, part="test", train_share=0.4)
    names = ["rows 40:55", "rows 55:70", "rows 70:85", "rows 85:100"]
    assert [window.name for window in test.apart()] == names
    assert [window.name for window in test.apart(4, seed=9)] == names
    assert {tuple(window.name for window in test.apart(3, seed)) for seed in range(50)} == {
        tuple(kept) for kept in combinations(names, 3)
    }
    sevens = Episodes(HUNDRED, jobs=7, part="test", train_share=0.4)
    assert [(window.start, window.stop) for window in sevens.apart()] == [
        (start, start + 7) for start in range(40, 90, 7)
    ]


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 10**6))
def test_no_job_is_in_two_slices_of_an_evaluation(n: int, jobs: int, seed: int) -> None:
    draws = rng(seed)
    workload = make(np.sort(draws.integers(0, 500, n)))
    try:
        part = Episodes(workload, jobs=jobs, part=str(draws.choice(["all", "train", "test"])))
    except HpcgymError:
        return  # too few jobs for one window
    some = part.apart(int(draws.integers(1, len(part.listing) + 1)), seed)
    for slices in (some, part.apart()):
        ends = [0, *(row for window in slices for row in (window.start, window.stop))]
        assert ends == sorted(ends)
        assert {window.stop - window.start for window in slices} == {jobs}
        assert all(part.submitted[0] <= workload.submit_time[window.start] for window in slices)
    # as many as the part has room for, up to a hundred
    assert len(part.apart()) == min(len(part.listing), 100)


def test_nothing_is_listed_unless_asked() -> None:
    n = 10_000_000
    episodes = Episodes(make(np.arange(n)), jobs=4, part="test")
    episodes.draw(rng())
    episodes.named(100)
    episodes.apart()
    assert episodes.find({"slice": "window 1249999"}) == Episode("window 1249999", n - 4, n)
    assert "listing" not in vars(episodes)


def test_rows_are_found_wherever_they_are() -> None:
    episodes = Episodes(HUNDRED, jobs=30, part="train")
    asked = {"start": np.int64(65), "jobs": 10}
    assert episodes.find(asked) == Episode("rows 65:75", 65, 75)
    assert episodes.find({"start": 70, "jobs": 30}) == Episode("rows 70:100", 70, 100)
    weekly = Episodes(a_week_a_job(3), "weeks")
    assert weekly.find({"start": 1, "jobs": 4}) == Episode("rows 1:5", 1, 5)


# --- What cannot be -------------------------------------------------------------------------------


test_mistakes = mistakes_of(globals())
