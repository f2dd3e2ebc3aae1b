"""Budgets: jobs start as long as what has been used suffices. Cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from few_jobs import few_jobs
from mistakes import why_not
from same_results import agreed

import hpcgym

#: Job 0 has 2 of 4 processors for 120 of 240 s: 8 minutes in all, then 4. Job 1 asks for 3.
EARLY = few_jobs(4, [0, 10], [120, 180], [2, 1], [240, 180])


def test_what_running_jobs_may_use_counts_until_they_end() -> None:
    for most, start in ((10, 120), (11, 10)):
        result = agreed(EARLY, True, quota=f"all:processor-minutes-in-all={most}")
        assert result.start.tolist() == [0, start]


def test_an_explanation_names_the_budget() -> None:
    quota = "all:processor-minutes-in-all=10"
    result = hpcgym.simulate(EARLY.with_columns(job_number=[1, 2]), quota=quota)
    expected = f"waited for 1 min 50 s because it would have exceeded a quota, {quota}."
    assert expected in str(hpcgym.explain(result, 2))


@pytest.mark.parametrize("engine", [None, "reference"])
def test_nothing_comes_back(engine: str | None) -> None:
    jobs = few_jobs(4, [0, 10, 20], [120, 180, 1], [2, 1, 1], [240, 180, 240])
    quota = "all:processor-minutes-in-all=10"  # 4 + 3 minutes are used as job 2 asks for 4
    why = why_not(hpcgym.simulate, jobs, quota=quota, engine=engine)
    assert (
        f"1 job would wait for ever, the first the job of row 2: the quota {quota} is used up"
        in why
    )
    result = hpcgym.simulate(jobs, quota="all:processor-minutes-in-all=11", engine=engine)
    assert result.start.tolist() == [0, 10, 120]  # 11 up to 120 s; then 4 + 3 + 4


def test_jobs_start_until_all_is_used() -> None:
    """Job 0 uses 4 minutes a minute, which count after 300 s, and as it ends."""
    jobs = few_jobs(9, [0, 299, 300, 301], [600, 1, 1, 1], [4, 1, 1, 1], [3600] * 4)
    for most, start in ((20, [0, 299, 300]), (21, [0, 299, 300, 301])):
        quota = f"all:processor-minutes-used={most}"
        first = jobs.take(slice(len(start)))
        assert agreed(first, True, quota=quota).start.tolist() == start
    why = why_not(hpcgym.simulate, jobs, quota="all:processor-minutes-used=20")
    assert "1 job would wait for ever" in why  # 20 minutes have been used after 300 s


def test_half_of_it_is_forgotten_in_a_half_life() -> None:
    """Job 0 has used 60 minutes at 1200 s, of which some are forgotten.

    Three times 900 s count as 900 f^300 each, at 300, 600 and 900 s; the last, as it ends, as if
    used at 900 s. From 1200 s on all of it fades by f^300 each 300 s.
    """
    fade = (1 - 0.693 / 1200) ** 300
    used, at = 900 * fade * (1 + fade + fade**2) + 900 * fade, 900
    while used // 60 >= 15:
        used, at = used * fade, at + 300
    quota = "all/half-life=20m:processor-minutes-used=15"
    for submit, start in ((1, 1), (1201, at + 1)):  # at first nothing has been counted
        jobs = few_jobs(4, [0, submit], [1200, 10], [3, 1], [1200, 10])
        assert agreed(jobs, True, quota=quota).start.tolist() == [0, start]
    assert at == 3000  # 44.7, 37.6, 31.6, 26.6, 22.4, 18.8, 15.8, 13.3 minutes


def test_budgets_are_of_users_and_of_what_they_ask_for() -> None:
    jobs = few_jobs(
        9, [0, 1, 2, 3], [60] * 4, [1] * 4, [60] * 4, user_id=[1, 2, 1, 1], units=[1] * 4,
        per_unit={"core": [1] * 4, "gpu": [4, 4, 4, 0]},
    )  # fmt: skip
    result = agreed(jobs, True, quota="user/half-life=1h:gpu-minutes-in-all=4")
    # 4 minutes of user 1 fade to less than 1 until job 2 may start; job 3 asks for none
    assert result.start.tolist()[:2] + result.start.tolist()[3:] == [0, 1, 3]
    left = 240 * (1 - 0.693 / 3600) ** 60
    ends = next(k for k in range(100) if left * (1 - 0.693 / 3600) ** (300 * k) < 60)
    assert result.start[2] == 300 * ends + 1


def test_what_was_used_before_an_extract_counts() -> None:
    """Job 1 asks for 20 of 30 minutes; of 30 that job 0 used most must be forgotten."""
    jobs = few_jobs(4, [0, 1000, 1100], [600, 10, 10], [3, 1, 1], [600, 1200, 60])
    quota = "all/half-life=1h:processor-minutes-in-all=30"
    long = agreed(jobs, True, quota=quota)
    f = 1 - 0.693 / 3600
    used, at = 900 * f**300 + 900 * f**300, 300  # the second half as it ends at 600 s
    while used // 60 > 10:
        used = used * f**300 + (10 * f**10 * f**300 if at == 900 else 0)
        at += 300
    assert long.start.tolist() == [0, at + 1, 1100]
    for begin in (700, 900, 901, 1050, 1101, 1200, 4000):
        part = hpcgym.continued(long, begin)
        result = hpcgym.simulate(part, quota=quota)
        assert result.start.tolist() == long.start[long.end >= begin].tolist()
        hpcgym.validate_schedule(result)


@pytest.mark.parametrize(
    ("allowed", "quota"),
    [
        ("all:processor-minutes-in-all=11", "all:processor-minutes-in-all=10"),
        (
            "all/half-life=9h:processor-minutes-in-all=30",
            "all/half-life=9h:processor-minutes-used=3",
        ),
        ("all/half-life=1h:processor-minutes-used=4", "all/half-life=2h:processor-minutes-used=4"),
    ],
)
def test_a_start_that_exceeds_a_budget_is_no_schedule(allowed: str, quota: str) -> None:
    jobs = few_jobs(4, [0, 10, 121, 400], [120, 180, 1, 1], [2, 1, 1, 1], [240, 180, 1, 1])
    result = hpcgym.simulate(jobs, quota=allowed)
    hpcgym.validate_schedule(result)
    forged = replace(result, scheduler=result.scheduler.but(quota=quota))
    assert "starts, though too many processor-minutes-" in why_not(hpcgym.validate_schedule, forged)


MISTAKES = {
    "all/half-life=7d:jobs=3": "only what has been used has a half-life",
    "all/half-life=soon:gpu-minutes-used=3": "'soon' is no duration such as 7d",
    "all/half-life=0:gpu-minutes-used=3": "half-life must be whole seconds from 1",
    "job:gpu-minutes-used=3": "it is of jobs together",
    "all:processors-minutes-used=3": "did you mean 'processor-minutes-used'?",
    "all:submitted-minutes-used=3": "'submitted' is not weighed by time",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_no_budget_is_refused(text: str) -> None:
    assert MISTAKES[text] in why_not(hpcgym.Scheduler, "fcfs", quota=text)


def test_a_budget_is_written_as_it_is_read() -> None:
    for text in ("group/half-life=604800:gpu-minutes-in-all=8+gpu-minutes-used=9", "all:jobs=1"):
        assert str(hpcgym.Scheduler("fcfs", quota=text).quota[0]) == text


def test_environments_have_no_budget_that_may_be_used_up() -> None:
    why = why_not(
        hpcgym.envs.QueueOrdering, EARLY, scheduler="easy", quota="all:processor-minutes-used=9"
    )
    assert "wait for ever" in why
