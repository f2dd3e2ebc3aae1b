"""Tracks: busier replays, logs that nobody has seen, promises to keep, and logs of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bringing import Shortest, play

from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.study.suite.agents import training_of
from hpcgym.study.suite.board import board_of
from hpcgym.study.suite.runs import run
from hpcgym.study.suite.submissions import read
from hpcgym.study.suite.tasks import jobs_of, on_own_logs, own_log, practice, tasks
from hpcgym.workload import load_workload, write_swf

pytestmark = pytest.mark.usefixtures("small")


def test_busier_replays_are_of_the_same_jobs(tmp_path: Path) -> None:
    done = play("saf", "crowded", tmp_path)
    assert tasks()["crowded"].replays == (0.9, 0.882, 0.918)
    jobs = jobs_of(tasks()["crowded"].log("pool"))
    submit = jobs.submit_time
    for place, factor in enumerate((0.9, 0.882, 0.918)):
        then = submit[0] + ((submit - submit[0]) * factor).astype(int)
        wait = simulate(jobs.with_columns(submit_time=then), "saf").start - then
        assert done.kept("crowded", "pool", 0)[f"{place}/wait"].tolist() == wait.tolist()
    (row,) = board_of([done]).by_log.query("log == 'pool'").to_dict("records")
    assert row["verified"]
    assert row["above"] == 0


class Seen(Shortest):
    trained_on = ["the whole of LAKE"]  # noqa: RUF012 - as a user would write it


def test_what_has_seen_a_log_that_is_for_telling_is_refused(
    played: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks()["untold"]
    assert [*practice(task).logs] == ["pool", "pond"]
    assert training_of(task, Shortest()).name == "order"
    monkeypatch.setattr("bringing.Seen", Seen, raising=False)
    refused = "untold is for what never saw its logs, and this was trained or chosen on lake"
    with pytest.raises(HpcgymError, match=refused):
        play("bringing:Seen", "untold", tmp_path / "seen")
    done = read(played("saf", "untold"))
    assert not board_of([done]).failed
    done.tasks["untold"]["trained_on"] = ["lake"]
    ((_, proof),) = board_of([done]).failed
    assert refused in proof.text


def test_who_delays_a_head_plays_where_that_is_allowed(tmp_path: Path) -> None:
    """And the schedule itself tells, in whatever folder it lies."""
    rules = "easy:hold=0.3"
    with pytest.raises(HpcgymError, match="delay the head of the queue by the times that jobs req"):
        play(rules, "backfill", tmp_path / "kept")
    done = play(rules, "relaxed", tmp_path / "relaxed")
    kept = play("easy", "relaxed", tmp_path / "easy")
    board = board_of([done, kept])
    assert not board.failed
    broken = dict(zip(board.table.agent, board.table.promises_broken, strict=True))
    assert broken["easy"] == 0 < broken[rules] < 1
    assert any(text.startswith(f"{rules} breaks") for text in board.broken(board.table))
    forged = play("easy", "backfill", tmp_path / "forged")
    for log in ("pool", "pond"):
        path = forged.file("backfill", log, 0)
        np.savez_compressed(path, **done.kept("relaxed", log, 0))
    ((_, proof), _) = board_of([forged]).failed
    assert "which backfill forbids" in proof.text
    told = done.tasks["relaxed"]["logs"]["pond"]["seeds"]["0"]
    told["promises_broken"] /= 2
    ((_, proof),) = board_of([done]).failed
    assert "promises_broken is told as" in proof.text


def test_logs_of_ones_own_are_played_by_the_same_code(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("mine.swf", "ours.swf")]
    for seed, file in enumerate(files):
        write_swf(load_workload(f"lublin:jobs=700,processors=32,load=0.8,seed={seed}"), file)
    logs = [own_log(file) for file in files]
    task = on_own_logs(tasks()["replayed"], logs)
    assert [*practice(task).logs] == ["mine", "ours"]
    done = run("saf", [task], tmp_path / "saf")
    board = board_of([read(done.folder), run("easy", [task], tmp_path / "easy")])
    assert board.table.agent.tolist() == ["saf", "easy"]
    assert board.table.verified.all()
    assert board.by_log.log.unique().tolist() == ["mine", "ours"]
    other = on_own_logs(tasks()["replayed"], logs[:1])
    with pytest.raises(HpcgymError, match="own-replayed: these submissions are of different logs"):
        board_of([done, run("easy", [other], tmp_path / "other")])
    write_swf(load_workload("lublin:jobs=600,processors=32,load=0.8,seed=9"), files[0])
    jobs_of.cache_clear()
    notes: list[str] = []
    board_of([read(done.folder)], note=notes.append)
    assert "mine has other jobs than the suite was frozen with" in notes[0]
    with pytest.raises(HpcgymError, match="codes-pairs has slices of its own jobs"):
        on_own_logs(tasks()["codes-pairs"], logs)


def test_means_are_told_without_a_log_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcgym.study.suite.board.apart", lambda: "pond")
    board = board_of([play("saf", "order", tmp_path)])
    assert board.table.without.tolist() == ["", "pond"]
    of_pool = board.by_log.set_index("log").loc["pool"]
    assert board.table.score[1] == of_pool.score
    assert board.table.mean_ratio[1] == pytest.approx(of_pool.mean_ratio)
    won, paid = board.tables(board.table)
    assert [row[0] for row in won.rows] == ["saf"]
    assert [row[0] for row in paid.rows] == ["saf", "- without pond"]
