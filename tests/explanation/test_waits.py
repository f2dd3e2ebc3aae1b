"""What all jobs of a schedule waited for: by hand, and equal to the explanations of single jobs."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from click.testing import CliRunner
from drawing import assume, given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from strategies import cases
from test_explanation import SMALL, jobs

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.explanation import GROUPS, waits, waits_by
from hpcgym.explanation.story import CALLED, REASONS
from hpcgym.workload.model import Workload

RUNNER = CliRunner()


def _told(result: Any) -> list[dict[str, int]]:
    """What each job waited for, reasons that cost nothing left out."""
    return [{name: s for name, s in row.items() if s} for row in waits(result).to_dict("records")]


def test_until_shadow_by_hand() -> None:
    """A job that would end in the second in which the head starts waits for the reservation."""
    rows = (0, 6, 20, 20), (0, 8, 10, 10), (0, 2, 20, 20)
    result = hpcgym.simulate(jobs(*rows), "easy", backfill="until-shadow")
    assert result.start.tolist() == [0, 20, 20]
    assert _told(result)[2] == {"reservation": 20}


def test_an_extract_does_not_know_what_was_before() -> None:
    log = hpcgym.simulate(jobs(*SMALL), "easy").as_workload()  # 1 and 3 run at 40 s
    result = hpcgym.simulate(log.extract(40), "easy")
    assert _told(result) == [
        {},
        {"before": 30, "processors": 10},
        {},
        {"before": 10, "processors": 50},
    ]
    explained = hpcgym.explain(result, 2)
    assert explained.waited_for == {"before": 30, "processors": 10}
    assert explained.others["right"].tolist() == ["ran", "ran"]
    assert explained.sentences[1:] == [
        "When the extract began it had waited for 30 s (75% of its wait); for what, is not"
        " simulated.",
        "It waited for 10 s because fewer processors were free than it asks for (25% of its wait).",
        "No job stood before it in the queue when the extract began (order: fcfs).",
        "Then it was the first job that could not start.",
        "Its first reservation then was for 1 min 30 s after it came.",
        "It started 50 s before the last time reserved for it.",
        "While it was the first job that could not start, 1 job ended earlier than predicted.",
        "While it waited in the extract, 2 jobs ran: 2 ran already.",
        "1 of these came later than it.",
    ]


@given(cases(25), st.integers(0, 99), st.integers(0, 100))
@settings(max_examples=60)
def test_waits_of_extracts_add_up(case: tuple[Workload, Any], share: int, pick: int) -> None:
    rules = {**case[1], "estimate": "requested"}  # none that is an array of all jobs
    workload = case[0].with_columns(job_number=np.arange(len(case[0])))
    whole = hpcgym.simulate(workload, **rules)
    first, last = int(workload.submit_time[0]), int(whole.end.max())
    part = whole.as_workload().extract(first + (last - first) * share // 100)
    result = hpcgym.simulate(part, **rules)
    waited = waits(result)
    assert (waited >= 0).all(axis=None)
    assert waited.sum(axis=1).tolist() == (result.start - part.submit_time).tolist()
    assume(result.decided.any())
    job = int(np.flatnonzero(result.decided)[pick % result.decided.sum()])
    explained = hpcgym.explain(result, int(part.job_number[job]))
    assert sum(explained.waited_for.values()) == result.wait[job]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.sampled_from(sorted(GROUPS)))
@settings(max_examples=60)
def test_groups_add_up(sizes: list[int], by: str) -> None:
    rows = [(700_000 * place // 10, size, 9, 9) for place, size in enumerate(sizes)]
    workload = jobs(*rows, processors=300)
    columns = ("user_id", "group_id", "executable", "queue", "partition")
    numbers = {name: np.arange(len(rows)) % 3 for name in columns}
    result = hpcgym.simulate(workload.with_columns(**numbers), "easy")
    waited = waits(result)
    table = waits_by(result, waited, by)
    assert table["jobs"].sum() == len(rows)
    assert (table.drop(columns="jobs").sum() == waited.sum()).all()
    if by == "requested_processors":
        for name, count in table["jobs"].items():
            least, most = ([int(part) for part in str(name).split(" to ")] * 2)[:2]
            assert count == sum(least <= size <= most for size in sizes)


def test_names_of_users() -> None:
    names = {"user_id": [1, 2, -1, 2], "header": {"User": ["2 [bold]bob"]}}
    result = hpcgym.simulate(few_jobs(4, [0] * 4, [10] * 4, [4] * 4, **names), "easy")
    waited = waits(result)
    table = waits_by(result, waited, "user")
    assert table.index.tolist() == ["[bold]bob", "unknown user", "user 1"]
    assert table["processors"].tolist() == [40, 20, 0]
    sizes = [waits_by(result, waited, word) for word in ("processors", "size")]
    assert all(table.equals(waits_by(result, waited, "requested_processors")) for table in sizes)


def test_weeks_have_the_numbers_of_the_log() -> None:
    """A part of a log keeps them, and ``--week 2`` is the row ``week 2``."""
    week = 7 * 86400
    whole = few_jobs(4, [0, week, 2 * week], [10] * 3, [4] * 3)
    for log, names in ((whole, ["week 0", "week 1", "week 2"]), (whole[np.array([2])], ["week 2"])):
        result = hpcgym.simulate(log, "easy")
        assert waits_by(result, waits(result), "week").index.tolist() == names


def test_the_one_reason_why_it_cannot_be_told() -> None:
    queued = jobs(*SMALL).with_columns(queue=[1, 1, 2, 2])
    stops = hpcgym.simulate(queued, "easy", preemption="queue:2>1")
    reason = "where jobs may stop others (preemption)"
    late = next(job for job in (1, 2, 3, 4) if stops.wait[job - 1] > 0)
    otherwise = "explain it without preemption, --scheduler easy:preemption=none or slurm.conf:"
    sentence = f"Why it waited cannot be worked out {reason}; {otherwise}"
    assert any(line.startswith(sentence) for line in hpcgym.explain(stops, late).sentences)
    waits(hpcgym.simulate(queued, stops.scheduler.but(preemption=None)))  # as it says


def test_each_reason_has_a_name_in_tables() -> None:
    assert list(CALLED) == list(REASONS)


# --- The command ----------------------------------------------------------------------------------

LOG = "lublin:jobs=300,processors=64,load=1.1,seed=1"


def test_command() -> None:
    shown = RUNNER.invoke(app, ["explain", LOG])
    assert shown.exit_code == 0, shown.output
    assert "All jobs together waited for" in shown.output
    printed = RUNNER.invoke(app, ["explain", LOG, "--format", "json"])
    rows = json.loads(printed.stdout)["waited_for"]
    assert sum(row["jobs"] for row in rows) == 300
    several = RUNNER.invoke(app, ["explain", LOG, "--scheduler", "easy,saf", "--format", "csv"])
    assert [line.split(",")[0] for line in several.stdout.splitlines()] == [
        "scheduler",
        "easy",
        "saf",
    ]


def fails(*words: str) -> None:
    """Raise what the command says that fails, in one line."""
    done = RUNNER.invoke(app, ["explain", LOG, *words])
    if done.exit_code != 0:
        raise HpcgymError(" ".join(done.output.split()))


def test_the_table_says_what_was_refused() -> None:
    """As many jobs as came later than in the log."""
    printed = RUNNER.invoke(
        app, ["explain", LOG, "--scheduler", "easy:quota=all:submitted=3", "--by", "size"]
    )
    assert printed.exit_code == 0, printed.output
    text = " ".join(printed.stdout.split())
    refused = re.search(r"quotas of submitted jobs refused (\d+) jobs when the log submits", text)
    assert refused is not None
    result = hpcgym.simulate(hpcgym.load_workload(LOG), "easy", quota="all:submitted=3")
    given = dict(zip(result.given.job_number, result.given.submit_time, strict=True))
    came = zip(result.workload.job_number, result.workload.submit_time, strict=True)
    assert int(refused[1]) == sum(time > given[number] for number, time in came)


test_mistakes = mistakes_of(globals())
