"""Explanations: worked out by hand, and each claim of them proved by the slow simulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import cases
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.explanation.story import REASONS, RIGHTS
from hpcgym.naming import duration
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

LATE = ("f1", "f2", "f3", "f4")  # orders that count from the first submission of all


def jobs(*rows: tuple[int, int, int, int], processors: int = 10) -> Workload:
    """Jobs of (submission, processors, run time, requested time), numbered from 1."""
    submit, width, run, requested = np.array(rows).T
    return few_jobs(
        processors, submit, run, width, requested, job_number=np.arange(1, len(rows) + 1)
    )


# --- By hand --------------------------------------------------------------------------------------

# 1 has 6 of 10 processors up to 100 s, though it ends at 50 s. 2 wants all: promised 100 s.
# 3 (2 processors, 30 s) may start at 20 s, for it ends by then. 4 wants 5, and 2 are free.
SMALL = ((0, 6, 50, 100), (10, 10, 40, 40), (20, 2, 30, 30), (30, 5, 10, 10))


def test_a_head_that_waits_for_processors() -> None:
    result = hpcgym.simulate(jobs(*SMALL), "easy")
    assert result.start.tolist() == [0, 50, 20, 90]
    found = hpcgym.explain(result, 2)
    assert found.waited_for == {"processors": 40}
    assert found.passes[["time", "ahead", "head", "shadow", "free"]].to_numpy().tolist() == [
        [10, 0, 2, 100, 4],
        [20, 0, 2, 100, 2],
        [30, 0, 2, 100, 2],
        [50, 0, 4, 90, 0],
    ]
    assert found.others["right"].to_dict() == {1: "ran", 3: "shadow"}
    assert found.others["delay"].to_dict() == {1: 40, 3: 0}
    assert found.sentences[0] == "It asked for 10 processors for 40 s, and waited for 40 s."
    assert "At once it was the first job that could not start." in found.sentences
    late = "1 job delayed it: without job 1 it would have started 40 s earlier."
    assert found.sentences[1] == late
    why = "It waited for 40 s because fewer processors were free than it asks for."
    assert found.sentences[2] == why
    assert found.behind == {}
    assert "1 of these came later than it, and did not delay it." in found.sentences
    assert "The other one made no difference." in found.sentences
    ran = "1 ran already; 1 was to end before the first job of the queue could start."
    assert f"While it waited, 2 jobs ran: {ran}" in found.sentences


def test_one_behind_the_head() -> None:
    """5 (1 processor, 200 s) fits at once, but would delay 2, which wants all at 100 s."""
    result = hpcgym.simulate(jobs(*SMALL, (35, 1, 200, 200)), "easy")
    assert result.start.tolist() == [0, 50, 20, 90, 90]
    found = hpcgym.explain(result, 5)
    assert found.waited_for == {"reservation": 15, "processors": 40}
    assert hpcgym.explain(result, 4).waited_for == {"processors": 60}
    assert hpcgym.explain(result, 1).sentences[1] == "It started at once."


def test_what_held_while_others_stood_before_it_is_told_apart() -> None:
    """By hand: 3 wants all and comes behind 2, which runs from 50 to 90 s."""
    rows = (0, 6, 50, 100), (10, 10, 40, 40), (20, 10, 30, 30), (30, 4, 20, 20)
    found = hpcgym.explain(hpcgym.simulate(jobs(*rows), "easy"), 3)
    assert found.waited_for == {"processors": 70}
    assert found.behind == found.to_dict()["behind"] == {"processors": 30}
    why = "fewer processors were free than it asks for"
    first = f"It waited for 40 s with no job before it, because {why} (57% of its wait)."
    assert first in found.sentences
    assert (
        f"It waited for 30 s behind other jobs, while {why} (43% of its wait)." in found.sentences
    )


def test_the_caption_of_the_readme_is_true(trace: Callable[[str], Path]) -> None:
    """Nobody who came after job 4034 delayed it, though 122 of them started before it."""
    caption = (Path(__file__).parents[2] / "README.md").read_text().split("*`hpcgym explore")[1]
    told = (
        "4034 asks for 98 of 100 processors and waits for 3 days under EASY, for 5 under SAF. The"
        " striped jobs delayed it: without one of them it would have started earlier."
    )
    assert told in caption
    log = hpcgym.load_workload(trace("KTH-SP2-1996-2.swf.gz"))
    results = [hpcgym.simulate(log, rule) for rule in ("easy", "saf")]
    easy, saf = (hpcgym.explain(result, 4034, most=20) for result in results)
    assert (easy.facts["requested_processors"], log.processors) == (98, 100)
    assert [round(one.facts["wait_time"] / 86_400) for one in (easy, saf)] == [3, 5]
    assert list(easy.delayed) == [3786, 4032, 4033, 4031, 3961]
    assert easy.sentences[1].startswith("5 jobs delayed it: without job 3786 it would have")
    assert "122 of these came later than it; none of the 6 that were tried" in str(easy)
    assert saf.delayed


def test_one_other_job_is_no_others() -> None:
    """By hand: 7 wants all when 1 to 6 have ended; each but the last of them delays it alike."""
    rows = [(0, 10, 10, 10)] * 6 + [(0, 10, 10, 10), (1, 10, 10, 10)]
    sentence = hpcgym.explain(hpcgym.simulate(jobs(*rows), "easy"), 7).sentences[1]
    assert sentence.startswith(
        "6 jobs delayed it: without job 1 it would have started 10 s earlier"
    )
    assert sentence.endswith(", without 5 10 s; 1 other delayed it too.")


def test_without_backfilling_the_order_is_kept() -> None:
    result = hpcgym.simulate(jobs((0, 6, 50, 100), (10, 10, 40, 40), (20, 2, 30, 30)), "fcfs")
    found = hpcgym.explain(result, 3)
    assert found.waited_for == {"order": 30, "processors": 40}
    assert found.passes["ahead"].tolist() == [1, 0, 0]
    assert found.others["delay"].to_dict() == {1: 40, 2: 70}


def test_conservative_plans_have_no_head() -> None:
    found = hpcgym.explain(hpcgym.simulate(jobs(*SMALL, (35, 1, 200, 200)), "conservative"), 5)
    assert set(found.passes["head"]) == {-1}
    assert found.waited_for["plan"] == 15


def test_slurm_looks_from_time_to_time_and_not_far() -> None:
    """3 could start at 40 s; the next pass that back-fills is at 60 s, or looks at 2 alone."""
    rows = (0, 6, 300, 300), (10, 10, 100, 100), (40, 1, 50, 50)
    found = hpcgym.explain(hpcgym.simulate(jobs(*rows), backfill="slurm"), 3)
    assert found.waited_for == {"clock": 20}
    line = "It waited for 20 s behind other jobs, while the next pass that back-fills was to come."
    assert line in found.sentences
    short = hpcgym.simulate(jobs(*rows), backfill="slurm:bf_max_job_test=1+bf_interval=20")
    waited = hpcgym.explain(short, 3).waited_for
    assert waited == {"unseen": 260, "processors": 100}
    assert hpcgym.explain(hpcgym.simulate(jobs(*rows), backfill=4), 3).waited_for == {}


def test_slurm_looks_at_few_jobs_of_a_user() -> None:
    """2 is the first of its user that waits, so 3 is not looked at; 4 is of another."""
    rows = (0, 6, 300, 300), (10, 10, 100, 100), (40, 1, 50, 50), (40, 1, 50, 50)
    workload = jobs(*rows).with_columns(user_id=[1, 2, 2, 3])
    result = hpcgym.simulate(workload, backfill="slurm:bf_max_job_user=1+bf_interval=20")
    assert result.start.tolist() == [0, 300, 400, 40]
    found = hpcgym.explain(result, 3).waited_for  # 4 ends at 90 s, between two looks
    assert found == {"unseen": 250, "clock": 10, "processors": 100}


def test_wrong_jobs() -> None:
    workload = jobs(*SMALL)
    result = hpcgym.simulate(workload, "easy")
    with pytest.raises(HpcgymError, match="has no job 7; its jobs are 1 to 4"):
        hpcgym.explain(result, 7)
    with pytest.raises(HpcgymError, match=r"takes a result of hpcgym\.simulate, not None"):
        hpcgym.explain(None, 3)  # type: ignore[arg-type]
    with pytest.raises(HpcgymError, match="job must be a whole number of at least 0, not '2'"):
        hpcgym.explain(result, "2")  # type: ignore[arg-type]
    tasks = workload.with_columns(array=np.array([7, -1, 7, -1]))
    with pytest.raises(HpcgymError, match="job 7; 7 is an array, whose tasks are jobs 1 to 3"):
        hpcgym.explain(hpcgym.simulate(tasks, "easy"), 7)
    twice = hpcgym.simulate(workload.with_columns(job_number=np.array([1, 2, 2, 3])), "easy")
    assert (
        hpcgym.explain(twice, 2).sentences[1]
        == "The log has 2 runs with this number; this is the last."
    )


def test_times_in_words() -> None:
    assert [duration(s) for s in (0, 59, 60, 3_599, 86_400, 90_061)] == [
        "0 s", "59 s", "1 min", "59 min 59 s", "1 d", "1 d 1 h",
    ]  # fmt: skip


# --- Proved ---------------------------------------------------------------------------------------


def _explained(workload: Workload, rules: dict[str, Any], pick: int) -> Any:
    """The explanation of a job that waited, with the schedule; nothing where none did."""
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    workload = workload.with_columns(job_number=np.arange(len(workload)))
    result = hpcgym.simulate(workload, **rules)
    waited = np.flatnonzero(result.wait > 0)
    assume(len(waited))
    job = int(waited[pick % len(waited)])
    return result, job, hpcgym.explain(result, job)


@costly
@settings(max_examples=400)
@given(cases(25), st.integers(0, 100))
def test_without_each_other_job(case: tuple[Workload, dict[str, Any]], pick: int) -> None:
    """The slow simulator without a job starts the explained one earlier by what was claimed."""
    workload, rules = case
    result, job, found = _explained(workload, rules, pick)
    everyone = jobs_of(result.workload)
    for number, delay in found.others["delay"].items():
        if rules["policy"] in LATE or rules["backfill_order"] in LATE:
            continue
        left = [one for row, one in enumerate(everyone) if row != number]
        words = dict(rules)
        if not isinstance(rules["estimate"], str):
            words["estimate"] = [p for row, p in enumerate(rules["estimate"]) if row != number]
        slow = simulate_pool(left, result.workload.processors, **words)
        assert int(result.start[job]) - slow[job - (number < job)].start == delay


@settings(max_examples=400)
@given(cases(25), st.integers(0, 100))
def test_what_is_told_of_passes(case: tuple[Workload, dict[str, Any]], pick: int) -> None:
    """All of the wait has a reason; reservations are those of the schedule; heads do wait."""
    result, job, found = _explained(*case, pick)
    assert sum(found.waited_for.values()) == result.wait[job]
    assert found.waited_for.keys() <= REASONS.keys()
    assert set(found.others["right"]) <= RIGHTS.keys()
    ends = result.start + result.run_time
    ran = (result.start < result.start[job]) & (ends > result.workload.submit_time[job])
    ran[job] = False
    assert sorted(found.others.index) == np.flatnonzero(ran).tolist()
    for one in found.passes.itertuples():
        if one.head >= 0:
            assert result.workload.submit_time[one.head] <= one.time <= result.start[one.head]
        if result.scheduler.policy == "fcfs" and result.scheduler.threshold is None:
            waits = (result.workload.submit_time <= one.time) & (result.start > one.time)
            at = result.start[job] > one.time
            assert not at or one.ahead <= waits[:job].sum()
    own = found.passes[(found.passes["head"] == job) & (found.passes["shadow"] >= 0)]
    if len(own) and result.scheduler.policy == "fcfs":
        assert own["shadow"].iloc[0] == result.reserved_start[job]


def test_on_nodes_and_under_limits() -> None:
    """What cannot be made again pass by pass is still explained by leaving out others."""
    workload = hpcgym.load_workload("eurora:jobs=120,load=1.5,seed=1")
    result = hpcgym.simulate(workload, "easy", cluster="eurora")
    number = int(workload.job_number[result.wait.argmax()])
    found = hpcgym.explain(result, number)
    assert sum(found.waited_for.values()) == result.wait.max()
    assert (found.others["delay"] > 0).any()
    generated = hpcgym.load_workload("lublin:jobs=150,processors=192,load=1.2,seed=2")
    limited = hpcgym.simulate(generated, "easy", cluster="taurus", limits=[])
    number = int(generated.job_number[limited.wait.argmax()])
    found = hpcgym.explain(limited, number)
    assert found.waited_for == {}
    assert len(found.passes) == 0
    assert (found.others["delay"] > 0).any()


def test_the_command() -> None:
    words = ["explain", "lublin:jobs=300,processors=64,load=1.2,seed=1", "--job", "200"]
    shown = CliRunner().invoke(app, [*words, "--scheduler", "easy,saf"])
    assert shown.exit_code == 0, shown.output
    assert "Job 200 of" in shown.stdout
    told = CliRunner().invoke(app, [*words, "--format", "json"])
    facts = json.loads(told.stdout)
    assert facts["job_number"] == 200
    assert facts["schedulers"][0]["wait_time"] == facts["wait_time"]
    wrong = CliRunner().invoke(app, [*words[:2], "--job", "7000"])
    assert wrong.exit_code != 0
