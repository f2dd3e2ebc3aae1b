"""What trainings leave in a submission."""

from __future__ import annotations

import csv
import json
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bringing import Logs, play

from hpcgym import progress
from hpcgym.agents import load, named_file, replays
from hpcgym.agents.practice import Logger, csv_log
from hpcgym.agents.rule_es import RuleEs
from hpcgym.agents.xnes import Xnes
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.files import read_scheduler
from hpcgym.study.suite import runs
from hpcgym.study.suite.board import board_of
from hpcgym.study.suite.runs import run
from hpcgym.study.suite.submissions import SCHEDULES, read
from hpcgym.study.suite.tasks import find_tasks, learned_from, practice

pytestmark = pytest.mark.usefixtures("small")


def curve(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "task", "place"),
    [
        ("rule-es", "mini-weights", "{}.toml"),
        ("net-es", "mini-order", "{}.json"),
        ("xnes", "mini-weights", "lake/{}.json"),
    ],
)
def test_the_agent_that_is_kept_plays_as_it_did(
    agent: str, task: str, place: str, tmp_path: Path
) -> None:
    """Its file, which is not trained again, makes the schedules of the submission.

    It takes most of the steps that are allowed, and no more: rollouts and generations are whole.
    """
    done = play(agent, task, tmp_path / "done")
    assert not board_of([done]).failed
    assert done.tasks[task]["trained"]
    (allowed,) = (each.steps for each in find_tasks(task))
    assert all(0.3 * allowed < used <= allowed for used in done.steps(task, "lake").values())
    for seed in (0, 1):
        kept = tmp_path / "done" / "trainings" / task / place.format(seed)
        if agent not in ("rule-es", "net-es"):  # whose files are schedulers
            assert load(kept).name == agent
        again = play(named_file(agent, kept), task, tmp_path / f"again{seed}")
        assert not again.tasks[task]["trained"]
        assert again.told(task, "lake") == {0: done.told(task, "lake")[seed]}
        rows = curve(kept.with_suffix(".csv"))
        steps = [int(row["steps"]) for row in rows]
        assert steps == sorted(steps)
        assert steps[-1] > 0


def test_a_training_is_not_done_again_where_its_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = play("xnes", "mini-weights", tmp_path)
    first = done.told("mini-weights", "lake")
    shutil.rmtree(tmp_path / SCHEDULES)
    monkeypatch.setattr(Xnes, "train", lambda *given: pytest.fail("it is trained"))
    assert play("xnes", "mini-weights", tmp_path).told("mini-weights", "lake") == first


def test_a_rule_that_selects_jobs_is_the_one_that_orders_them(tmp_path: Path) -> None:
    done = play("rule-es", "mini-select", tmp_path / "done")
    assert done.tasks["mini-select"]["training"] == "mini-order"
    (task,) = find_tasks("mini-select")
    alone = RuleEs().train(practice(task), 1, task.steps)
    assert read_scheduler(tmp_path / "done/trainings/mini-order/1.toml") == alone.scheduler


def test_a_training_that_was_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = find_tasks("mini-weights")
    chosen = [replace(task, steps=150_000)]
    value, done, most = replays.value, 0, 10**9

    def counting(*given: Any) -> float:
        nonlocal done
        done += 1
        assert done < most, "interrupted"
        return value(*given)

    monkeypatch.setattr(replays, "value", counting)
    monkeypatch.setattr(replays, "threads_here", lambda: 1)
    whole = run("rule-es", chosen, tmp_path / "whole")
    of_both, done, most = done, 0, 5 + 2 * 12 + 3  # in the third generation
    with pytest.raises(HpcgymError, match="interrupted"):
        run("rule-es", chosen, tmp_path / "cut")
    table = tmp_path / "cut" / "trainings" / "mini-weights" / "0.csv"
    assert len(curve(table)) == 2
    done, most = 0, 10**9
    cut = run("rule-es", chosen, tmp_path / "cut")
    assert done == of_both - 2 * 12
    assert cut.told("mini-weights", "lake") == whole.told("mini-weights", "lake")
    assert curve(table) == curve(tmp_path / "whole" / "trainings" / "mini-weights" / "0.csv")


def test_agents_of_users_are_told_where_to_log_and_save(tmp_path: Path) -> None:
    play("bringing:Logs", "order", tmp_path)
    place = tmp_path / "trainings" / "order"
    assert curve(place / "1.csv") == [{"steps": "3", "mine": "1"}]
    assert (place / "0").read_text() == "seed 0"
    play("bringing:Trained", "order", tmp_path / "plain", logs=["pond"])
    assert not (tmp_path / "plain" / "trainings").exists()


def test_steps_of_trainings_are_counted_and_told(tmp_path: Path) -> None:
    """Not what the agent says, or was allowed; a reward beside EASY and a warm start are free."""
    (task,) = find_tasks("order")
    jobs = len(learned_from(task, task.logs[0]))
    agents = {"Simulates": 3 * jobs, "Greedy": 7 * (3000 // 7), "Logs": 0}
    done = {name: play(f"bringing:{name}", "order", tmp_path / name) for name in agents}
    for name, steps in agents.items():
        assert done[name].steps("order", "pond") == {0: steps, 1: steps}
    saf = play("saf", "order", tmp_path / "saf")
    assert "steps" not in done["Greedy"].tasks["order"]
    board = board_of([read(submission.folder) for submission in (*done.values(), saf)])
    assert not board.failed
    table = board.table.set_index("agent")
    for name, steps in agents.items():
        row = table.loc[f"bringing:{name}"]
        assert (row.trained, row.steps, row.allowed_steps) == (True, steps, 3000)
    assert not table.loc["saf"].trained
    cells = {row[0]: row[5] for row in board.tables(board.table)[0].rows}
    assert cells == {
        "bringing:Simulates": f"{3 * jobs:,}", "bringing:Greedy": "2,996", "bringing:Logs": "0",
        "saf": "-",
    }  # fmt: skip


def test_more_steps_than_allowed_are_refused(tmp_path: Path) -> None:
    (task,) = find_tasks("order")
    jobs = len(learned_from(task, task.log("pond")))
    done = 3000 // jobs * jobs
    with pytest.raises(HpcgymError, match=f"3,000 steps are allowed, {done:,} are done, and these"):
        play("bringing:Exceeds", "order", tmp_path / "exceeds")
    assert not (tmp_path / "exceeds" / "submission.json").exists()
    claimed = play("bringing:Simulates", "order", tmp_path / "claims")
    steps = claimed.tasks["order"]["logs"]["pond"]["steps"]
    for value, wrong in ((3001, "3,001 steps, and 3,000 are allowed"), ("x", "must be a whole")):
        steps["1"] = value
        (claimed.folder / "submission.json").write_text(
            json.dumps({"suite": "small-v1", "agent": claimed.agent, "sha256": None,
                        "tasks": claimed.tasks})
        )  # fmt: skip
        if value == 3001:
            ((_, proof),) = board_of([read(claimed.folder)]).failed
            assert wrong in proof.text
        else:
            with pytest.raises(HpcgymError, match=wrong):
                read(claimed.folder)


def test_steps_that_were_not_counted_are_unknown(tmp_path: Path) -> None:
    """Of a submission from before they were."""
    done = play("bringing:Simulates", "order", tmp_path)
    path = tmp_path / "submission.json"
    facts = json.loads(path.read_text())
    del facts["tasks"]["order"]["logs"]["pond"]["steps"]
    path.write_text(json.dumps(facts))
    board = board_of([read(done.folder)])
    assert board.table.steps.isna().all()
    assert board.tables(board.table)[0].rows[0][5] == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["rule-es", "xnes"])
def test_a_part_of_a_generation_is_not_begun(agent: str, tmp_path: Path) -> None:
    (task,) = find_tasks("mini-weights")
    done = run(agent, [replace(task, steps=25_000, seeds=(0,))], tmp_path)
    (used,) = done.steps("mini-weights", "lake").values()
    assert 10_000 < used <= 25_000


def test_it_is_told_how_far_a_training_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps_told: list[tuple[str, int]] = []
    seen = threading.Event()

    def telling(title: str, total: int) -> AbstractContextManager[Callable[..., None]]:
        def step(text: str, steps: int = 1) -> None:
            steps_told.append((text, steps))
            if "10% of its steps" in text:
                seen.set()

        assert (title, total) == ("bringing:Logs", 4)
        return nullcontext(step)

    def train(self: Logs, make: object, seed: int, steps: int, log: Logger) -> None:
        self.seed = seed
        log(300, {"mine": seed})
        assert seed or seen.wait(30)

    monkeypatch.setattr(progress, "SHOW_S", 0.0)  # all the time, also before and between works
    monkeypatch.setattr(Logs, "train", train)
    play("bringing:Logs", "order", tmp_path, progress=telling)
    assert steps_told[0] == ("training for order, seed 0", 0)
    left = re.compile(r"seed 0: 10% of its steps, about \d+ min left")  # by the clock
    assert any(left.search(text) for text, _ in steps_told)
    begun = [
        text for text, steps in steps_told if not (steps or "its steps" in text or text == "done")
    ]
    assert [*dict.fromkeys(begun)] == [
        text
        for seed in (0, 1)
        for text in (
            f"training for order, seed {seed}",
            f"order on pool, seed {seed}",
            f"order on pond, seed {seed}",
        )
    ]
    assert sum(steps for _, steps in steps_told) == 4
    assert steps_told[-1] == ("done", 1)


def test_the_time_that_is_left_is_told_of_what_was_done_since_a_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = find_tasks("order")[0]
    work = runs._Work(runs._Play("mine", task, 0, True, False, []))
    clock = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock)

    def text_after(steps: int, minutes: int) -> str:
        nonlocal clock
        clock += 60.0 * minutes
        csv_log(work.play.place(tmp_path) / "0.csv")(steps, {})
        return work.text(tmp_path).removeprefix("training for order, seed 0")

    assert task.steps == 3000
    assert (
        text_after(1500, 0) == text_after(1500, 5) == ""
    )  # of what was there before, nothing is known
    assert text_after(1800, 1) == ": 60% of its steps, about 24 min left"  # 300 of 1200 in 6 min
    assert text_after(3000, 6) == ": 100% of its steps, about 0 min left"
    assert text_after(300, 100) == ""  # an agent that begins anew
    assert text_after(600, 2) == ": 20% of its steps, about 16 min left"


@pytest.mark.slow
def test_look_ahead_plays_where_weights_are_set(tmp_path: Path) -> None:
    done = play("lookahead", "weights", tmp_path, logs=["pond"])
    (row,) = board_of([done]).table.to_dict("records")
    assert row["verified"]
    assert list(done.told("weights", "pond")) == [0]
    assert row["score"] > 0
