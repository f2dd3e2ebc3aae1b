"""Submissions: played, gone on with, proved, and found out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import bringing
import freeze_suite
import numpy as np
import pytest
from bringing import Stops, arrays_in, calls, play, put_arrays
from mistakes import mistakes_of
from no_files import in_place_of, said_apart

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.study.suite.agents import training_of
from hpcgym.study.suite.board import board_of
from hpcgym.study.suite.evaluation import Evaluation
from hpcgym.study.suite.proofs import Proof, prove
from hpcgym.study.suite.runs import run
from hpcgym.study.suite.submissions import FACTS, METRICS, SCHEDULES, Submission, metrics_of, read
from hpcgym.study.suite.tasks import (
    environment,
    find_tasks,
    jobs_of,
    late,
    learned_from,
    reference_of,
    tasks,
)
from hpcgym.workload import load_workload, write_swf

pytestmark = pytest.mark.usefixtures("small")


def proofs(folder: Path) -> list[Proof]:
    """Of all that a submission has."""
    done = read(folder)
    return [
        prove(done, Evaluation(tasks()[name], tasks()[name].log(log)))
        for name, facts in done.tasks.items()
        for log in facts["logs"]
    ]


def lists_in(folder: Path) -> dict[str, list[int]]:
    """All arrays of a submission, as lists."""
    return {key: array.tolist() for key, array in arrays_in(folder).items()}


# --- Who plays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["random", "easy", "saf", "aged", "reference"])
def test_references_play_what_they_can_and_are_proved(agent: str, tmp_path: Path) -> None:
    notes: list[str] = []
    done = run(agent, find_tasks(), tmp_path / "made", note=notes.append)
    left = {text.split(": ")[1] for text in notes}
    assert (
        left
        == {
            "random": {"codes-pairs"},
            "easy": set(),
            "saf": {"backfill", "codes-pairs"},
            "aged": {"backfill", "codes-pairs"},
            "reference": set(),
        }[agent]
    )
    proved = proofs(tmp_path / "made")
    assert [proof.text for proof in proved if not proof.equal] == []
    assert {proof.task for proof in proved} == set(done.tasks) == {*map(str, tasks())} - left - {
        "mini-order", "mini-select", "mini-weights", "away-order", "replayed", "relaxed",
        "crowded", "untold",
    }  # fmt: skip
    seeds = [0, 1] if agent == "random" else [0]
    assert all([*proof.felt] == seeds for proof in proved)


def test_a_scheduler_is_simulated_from_the_first_job_to_the_last(tmp_path: Path) -> None:
    """And the metrics are of the jobs of the second half."""
    done = play("saf", "order", tmp_path)
    for log in tasks()["order"].logs:
        jobs = jobs_of(log)
        result = simulate(jobs, "saf")
        wait = result.start - jobs.submit_time
        assert done.kept("order", log.name, 0)["0/wait"].tolist() == wait.tolist()
        metrics, half = done.told("order", log.name)[0], late(tasks()["order"], jobs)
        assert metrics["mean_bsld"] == pytest.approx(result.bsld[half].mean())
        assert metrics["longest_wait_h"] == pytest.approx(wait[half].max() / 3600)
        area = (jobs.requested_processors * jobs.run_time)[half]
        weighted = (area * wait[half]).sum() / area.sum() / 3600
        assert metrics["area_weighted_wait_h"] == pytest.approx(weighted)


def test_an_agent_acts_from_the_first_job_to_the_last(tmp_path: Path) -> None:
    done = play("bringing:Shortest", "order", tmp_path)
    task = tasks()["order"]
    with environment(task, task.logs[1]) as env:
        agent, (observation, info) = bringing.Shortest(), env.reset(seed=0)
        over = False
        while not over:
            observation, _, over, truncated, info = env.step(agent.act(observation, info))
            assert not truncated
        result = env.unwrapped.result()
    kept = done.kept("order", "pond", 0)["0/wait"]
    assert kept.dtype == np.int32
    assert kept.tolist() == (result.start - jobs_of(task.logs[1]).submit_time).tolist()


def test_slices_are_played_by_themselves(tmp_path: Path) -> None:
    done = play("easy", "nodes-power,codes-pairs", tmp_path)
    for name, slices in (("nodes-power", 2), ("codes-pairs", 3)):
        task = tasks()[name]
        evaluation = Evaluation(task, task.logs[0])
        results = evaluation.results(done.kept(name, task.logs[0].name, 0))
        assert len(results) == slices
        (felt,) = evaluation.felt(results)
        assert felt.jobs.tolist() == [40] * slices
        assert felt.bsld == pytest.approx([result.metrics["mean_bsld"] for result in results])
        assert felt.longest_wait_h == max(result.wait.max() for result in results) / 3600


def test_a_trained_agent_is_trained_once_for_each_seed_on_all_logs(tmp_path: Path) -> None:
    calls.clear()
    done = play("bringing:Trained", "order,zero-shot", tmp_path)
    order, made = tasks()["order"], tasks()["zero-shot"].training[0]
    half = {log.name: len(learned_from(order, log)) for log in order.logs}
    everything = {"made": len(jobs_of(made))}
    assert calls == [(seed, 3000, "order", logs) for logs in (half, everything) for seed in (0, 1)]
    facts = done.tasks["zero-shot"]
    assert (facts["trained"], facts["trained_on"]) == (True, ["made"])
    assert done.tasks["order"]["trained_on"] == ["pool", "pond"]
    waits = [done.kept("order", "pool", seed)["0/wait"].tolist() for seed in (0, 1)]
    assert waits[0] != waits[1]
    assert all(proof.equal for proof in proofs(tmp_path))


def test_a_training_serves_all_tasks_for_which_it_is_the_same(tmp_path: Path) -> None:
    calls.clear()
    done = play("bringing:Both", "select,order,zero-shot", tmp_path)
    pools, made = ["pool", "pond"], ["made"]
    assert calls == [("order", seed, logs) for logs in (pools, made) for seed in (0, 1)]
    assert {name: facts["training"] for name, facts in done.tasks.items()} == {
        "select": "order", "order": "order", "zero-shot": "zero-shot",
    }  # fmt: skip
    arrays = lists_in(tmp_path)
    for log, seed in product(pools, (0, 1)):
        first, second = (arrays[f"{name}/{log}/{seed}/0/wait"] for name in ("order", "select"))
        assert first == second
    assert [proof.text for proof in proofs(tmp_path) if not proof.equal] == []


def test_a_training_is_the_same_where_all_is_that_is_learned_from() -> None:
    select, both = tasks()["select"], bringing.Both
    assert training_of(select, both()).name == "order"
    assert training_of(select, bringing.Trained()) is select
    lake = tasks()["mini-order"].logs
    other = {
        "steps": 31, "seeds": (0,), "share": 0.4, "training": lake, "options": {"window": 2},
        "logs": lake,  # of logs that are not played all is learned from
    }  # fmt: skip
    for name, value in other.items():
        task = replace(select, **{name: value})
        assert training_of(task, both()) is task


def test_one_for_each_log_if_it_says_so(tmp_path: Path) -> None:
    calls.clear()
    play("bringing:Each", "order,zero-shot", tmp_path)
    # what has most jobs begins first
    assert [[*logs] for *_, logs in calls] == [["pool"]] * 2 + [["pond"]] * 2 + [["made"]] * 2


def test_a_scheduler_that_was_learned_is_simulated(tmp_path: Path) -> None:
    done = play("bringing:Learned", "order", tmp_path)
    jobs = jobs_of(tasks()["order"].logs[0])
    for seed, name in ((0, "saf"), (1, "aged")):
        expected = (simulate(jobs, name).start - jobs.submit_time).tolist()
        assert done.kept("order", "pool", seed)["0/wait"].tolist() == expected
    assert done.tasks["order"]["about"] == "a formula"


@pytest.fixture
def of_the_package(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite of the package: processes know no other."""
    monkeypatch.undo()
    for kept in ("tasks", "suite", "_contents"):
        getattr(__import__("hpcgym.study.suite.tasks", fromlist=[kept]), kept).cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("of_the_package")
def test_a_process_that_dies_is_said(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match="a process died, for want of memory perhaps"):
        play("bringing:Dies", "mini-order", tmp_path, workers=2)


@pytest.mark.slow
@pytest.mark.usefixtures("of_the_package")
def test_workers_do_the_same(tmp_path: Path) -> None:
    play("random", "mini-backfill", tmp_path / "one")
    play("random", "mini-backfill", tmp_path / "two", workers=2)
    assert lists_in(tmp_path / "two") == lists_in(tmp_path / "one")
    assert (tmp_path / "two" / FACTS).read_text() == (tmp_path / "one" / FACTS).read_text()


# --- Runs that stop, or cannot be -----------------------------------------------------------------


@pytest.mark.parametrize("change", ["half", "gone", "bit"])
def test_a_run_goes_on_with_the_logs_and_seeds_that_are_left(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with those whose file the disk has lost, or damaged."""
    play("random", "order", tmp_path / "whole")
    done = play("random", "order", tmp_path / "cut", logs=["pond"])
    assert [*done.tasks["order"]["logs"]] == ["pond"]
    path = done.file("order", "pond", 1)
    content = path.read_bytes()
    if change == "gone":
        path.unlink()
    else:
        half = len(content) // 2
        path.write_bytes(
            content[:half] + (b"" if change == "half" else b"\0" + content[half + 1 :])
        )
    (proof,) = proofs(tmp_path / "cut")
    assert not proof.equal
    assert proof.text.startswith(f"seed 1: {path}")
    played = []
    add = Submission.add

    def added(self: Submission, task: str, log: Any, seed: int, *rest: Any) -> None:
        played.append((log.name, seed))
        add(self, task, log, seed, *rest)

    monkeypatch.setattr(Submission, "add", added)
    again = play("random", "order", tmp_path / "cut")
    assert sorted(played) == [("pond", 1), ("pool", 0), ("pool", 1)]
    whole = read(tmp_path / "whole")
    for log in ("pool", "pond"):
        assert again.told("order", log) == whole.told("order", log)
    assert lists_in(tmp_path / "cut") == lists_in(tmp_path / "whole")
    notes: list[str] = []
    play("random", "order", tmp_path / "cut", note=notes.append)
    assert notes == [f"{tmp_path / 'cut'} has all of this already"]


def test_what_was_played_before_an_agent_failed_is_kept(tmp_path: Path) -> None:
    task = tasks()["order"]
    monkey = pytest.MonkeyPatch()
    steps = 0
    with environment(task, task.logs[0]) as env:
        agent, (observation, info), over = bringing.Shortest(), env.reset(seed=0), False
        while not over:
            observation, _, over, _, info = env.step(agent.act(observation, info))
            steps += 1
    monkey.setattr(Stops, "left", steps + 3)
    with pytest.raises(HpcgymError, match="bringing:Stops on order, pond: KeyError: 'lost'"):
        play("bringing:Stops", "order", tmp_path)
    assert [*read(tmp_path).tasks["order"]["logs"]] == ["pool"]
    monkey.undo()
    assert [*play("bringing:Stops", "order", tmp_path).tasks["order"]["logs"]] == ["pond", "pool"]


def test_logs_that_are_not_here_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    notes: list[str] = []
    done = play("saf", "away-order", tmp_path, note=notes.append)
    assert [*done.tasks["away-order"]["logs"]] == ["pond"]
    assert notes[0].startswith("away-order: left out: Nowhere: ")
    further = tasks()["zero-shot"].further[0].name
    alone = board_of([play("saf", "zero-shot", tmp_path / "alone", logs=[further])])
    assert (len(alone.table), alone.by_log["log"].tolist()) == (0, [further])
    play("saf", "zero-shot", tmp_path / "further", logs=[further, "pool"])
    (proof, _) = proofs(tmp_path / "further")
    assert proof.equal


def test_a_sealed_log_is_played_by_who_has_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not count; its digest says which jobs it has."""
    monkeypatch.chdir(tmp_path)
    jobs_of.cache_clear()
    notes: list[str] = []
    logs = ["sealed", "pool", "pond"]
    write_swf(
        load_workload(f"lublin:jobs=400,processors=32,load=0.7,seed={2**64 - 1}"), "sealed.swf"
    )
    log = tasks()["zero-shot"].log("sealed")
    opened = freeze_suite.lines_of(
        replace(tasks()["zero-shot"], further=(replace(log, digest=""),), references=("saf",))
    )
    assert f'processors = 32\ndigest = "{log.digest}"' in opened
    board = board_of([play("saf", "zero-shot", tmp_path / "saf", logs=logs)], note=notes.append)
    assert board.table.logs.tolist() == [2]
    assert board.by_log.log.tolist() == ["pool", "pond", "sealed"]
    assert board.by_log.verified.all()
    assert notes == []
    play("easy", "zero-shot", tmp_path / "easy")
    board_of([read(tmp_path / "easy"), read(tmp_path / "saf")], note=notes.append)
    Path("sealed.swf").unlink()
    jobs_of.cache_clear()
    board_of([read(tmp_path / "saf")], note=notes.append)
    assert notes[0] == "zero-shot: not played by all: sealed, which is sealed"
    assert notes[1].startswith("zero-shot: left out: sealed: ")


def told_otherwise(folder: Path, words: str, others: str) -> Submission:
    """Read a submission whose facts have other words."""
    text = (folder / FACTS).read_text()
    assert words in text
    (folder / FACTS).write_text(text.replace(words, others))
    return read(folder)


def test_who_means_the_same_plays(tmp_path: Path) -> None:
    play("bringing:SameScale", "weights", tmp_path / "same")
    assert [*play("bringing:Selects", None, tmp_path / "selects").tasks] == ["select"]


# --- What is tampered with ------------------------------------------------------------------------


def changed(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> list[str]:
    """What verification says of what is not equal, once files were changed.

    ``change`` takes what is told of the first task, and the arrays.
    """
    facts = json.loads((folder / FACTS).read_text())
    arrays = arrays_in(folder)
    change(next(iter(facts["tasks"].values())), arrays)
    (folder / FACTS).write_text(json.dumps(facts))
    put_arrays(folder, arrays)
    return [proof.text for proof in proofs(folder) if not proof.equal]


POOL, NODES = "order/pool/0/0/wait", "nodes-power/nodes/0/0"


def honest(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Tell the metrics of the schedules that are there."""
    evaluation = Evaluation(tasks()["order"], tasks()["order"].log("pool"))
    wait = arrays[POOL].astype(np.int64)
    result = replace(simulate(evaluation.jobs, "easy"), start=evaluation.jobs.submit_time + wait)
    metrics = metrics_of(evaluation.felt([result]))
    facts["logs"]["pool"]["seeds"]["0"] = {
        name: None if value != value else value for name, value in metrics.items()
    }


def at_once(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays[POOL][:] = 0
    honest(facts, arrays)


def early(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays[POOL][-1] = -1
    honest(facts, arrays)


def late_for_nothing(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The last job waits for a second in which nothing happens."""
    arrays[POOL][-1] += 10**6
    honest(facts, arrays)


def lie(metric: str, by: float) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def change(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
        facts["logs"]["pool"]["seeds"]["0"][metric] *= by

    return change


#: Task, who played it, what is changed, and what is said of it.
TAMPERED: list[tuple[str, str, Callable[[dict[str, Any], dict[str, Any]], Any], str]] = [
    *(("order", "saf", lie(metric, by), f"seed 0: {metric} is told as")
      for metric in METRICS[:4] for by in (0.999, 1.001)),
    ("order", "saf", at_once, "over-used"),
    ("order", "saf", early, "before its submission"),
    ("order", "saf", late_for_nothing, "seed 0: "),
    *(("order", "saf", lambda facts, arrays, by=by: arrays.update({POOL: arrays[POOL] + by}),
       "seed 0: ") for by in (1, -1, 2**31 - 1, -(2**31))),
    *(("order", "saf", lambda facts, arrays, a=array: arrays.update({POOL: a}), "seed 0: ")
      for array in (np.zeros(3), np.zeros((2, 2), int), np.array(["a"]), np.array(5),
                    np.zeros(0, int), np.full(900, 2**62), np.full(900, -(2**62)))),
    ("order", "saf", lambda facts, arrays: arrays.pop(POOL), "its arrays are [], not ['wait']"),
    ("order", "saf", lambda facts, arrays: arrays.update({"order/pool/0/1/wait": arrays[POOL]}),
     "it has other schedules than of the task's 1"),
    ("order", "saf", lambda facts, arrays: arrays.update({POOL: arrays["order/pond/0/0/wait"]}),
     "wait has 700 numbers, not 900"),
    ("order", "saf", lambda facts, arrays: facts.update(task="0" * 64), "other jobs or rules"),
    ("order", "saf", lambda facts, arrays: facts["logs"]["pool"].update(jobs="0" * 64),
     "other jobs or rules"),
    ("order", "random", lambda facts, arrays: facts["logs"]["pool"]["seeds"].pop("0"),
     "it has seeds [1], not [0, 1]"),
    ("order", "bringing:Trained", lambda facts, arrays: facts["logs"]["pool"]["seeds"].pop("1"),
     "it has seeds [0], not [0, 1]"),
    ("nodes-power", "easy", lambda facts, arrays: arrays[f"{NODES}/wait"].__setitem__(-1, -1),
     "before its submission"),
    ("nodes-power", "easy", lambda facts, arrays: arrays[f"{NODES}/cells_first"].__setitem__(3, 0),
     "its nodes are not told job by job"),
    ("nodes-power", "easy",
     lambda facts, arrays: arrays.update({f"{NODES}/cells_node": np.zeros(10**6, np.int32)}),
     "cells_node has 1,000,000 numbers, not at most "),
    ("codes-pairs", "easy",
     lambda facts, arrays: arrays["codes-pairs/codes/0/1/start_ticks"].__iadd__(7), "seed 0"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "agent", "change", "said"), TAMPERED)
def test_what_is_changed_is_found(
    task: str, agent: str, change: Any, said: str, played: Callable[[str, str], Path]
) -> None:
    failures = changed(played(agent, task), change)
    assert failures
    assert said in failures[0]


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork, and /proc")
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket", "a folder"])
def test_a_schedule_that_is_no_file_is_not_read(
    kind: str, played: Callable[[str, str], Path]
) -> None:
    folder = played("saf", "order")
    path = folder / SCHEDULES / "order" / "pool" / "0.npz"
    with in_place_of(kind, path):
        text = said_apart(lambda: raise_first(folder))
    assert text == f"seed 0: {path} is {kind}, not a file"


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork, and /proc")
def test_a_schedule_of_more_jobs_is_not_unpacked(played: Callable[[str, str], Path]) -> None:
    """Of an eighth of the memory that any archive may unpack to, and more than there is here."""
    folder = played("saf", "order")
    path = folder / SCHEDULES / "order" / "pool" / "0.npz"
    np.savez_compressed(path, **{"0/wait": np.zeros(80 << 20, np.int64)})
    assert path.stat().st_size < 1 << 20
    text = said_apart(lambda: raise_first(folder))
    assert text == "seed 0: whole: wait has 83,886,080 numbers, not 900"


def raise_first(folder: Path) -> None:
    """Raise what is wrong in a submission."""
    raise HpcgymError(next(proof.text for proof in proofs(folder) if not proof.equal))


def test_a_forged_submission_has_no_score(played: Callable[[str, str], Path]) -> None:
    folder = played("saf", "order")
    changed(folder, lie("mean_bsld", 0.9))
    board = board_of([read(folder)])
    (row,) = board.table.to_dict("records")
    assert np.isnan([row["score"], row["above"], row["longest_wait"]]).all()
    assert not row["verified"]
    assert not row["wins"]
    by_log = board.by_log.set_index("log")
    assert by_log.verified.to_dict() == {"pool": False, "pond": True}
    assert np.isnan(by_log.score["pool"])
    paid = board.tables(board.by_log)[-1]
    assert [row[-1] for row in paid.rows] == ["-", "kept"]  # of pool nothing is known
    assert np.isfinite(by_log.score["pond"])
    assert [(agent, proof.log) for agent, proof in board.failed] == [("saf", "pool")]


def test_the_reference_is_as_good_as_itself(tmp_path: Path) -> None:
    done = play("reference", None, tmp_path)
    table = board_of([done]).table
    assert (table.above == 0).all()
    assert not table.wins.any()
    task = tasks()["weights"]
    jobs = jobs_of(task.logs[0])
    expected = simulate(jobs, reference_of(task, task.logs[0])).start - jobs.submit_time
    assert done.kept("weights", "pool", 0)["0/wait"].tolist() == expected.tolist()
    assert find_scheduler("sjf-co") == reference_of(
        tasks()["codes-pairs"], tasks()["codes-pairs"].logs[0]
    )


test_mistakes = mistakes_of(globals(), fixtures=("played",))
