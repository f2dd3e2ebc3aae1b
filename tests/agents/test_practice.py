"""Where agents practise, and where the numbers of a training go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mistakes import mistakes_of
from plain_envs import plain

from hpcgym.agents.practice import csv_log, maker, tensorboard_log
from hpcgym.agents.saved import read_spec, save_spec
from hpcgym.workload import load_workload


def test_parts_to_learn_from_and_to_choose_by_are_apart() -> None:
    """Three quarters and one of the first half of the time; nothing is seen of the second."""
    jobs = load_workload("lublin:jobs=800,processors=32,seed=1")
    since = jobs.submit_time - jobs.submit_time[0]
    half = int((since < since[-1] / 2).sum())
    cut = int((since < 0.75 * since[half - 1]).sum())
    make = maker(jobs, "hpcgym/JobSelection-v2", plain("JobSelection", {"jobs": 20}))
    for part, rows in (("train", (0, cut)), ("validation", (cut, half))):
        episodes = make(part).unwrapped.episodes.listing
        assert episodes[0].start == rows[0]
        assert 0 <= rows[1] - episodes[-1].stop < 20
        seen = make(part).unwrapped.options.workload.submit_time
        assert seen[: rows[1]].tolist() == jobs.submit_time[: rows[1]].tolist()
        assert len(seen) == rows[1]
    assert make("train", 3).num_envs == 3


def test_an_agent_says_all_logs_that_it_learned_from(tmp_path: Path) -> None:
    jobs = "lublin:jobs=400,processors={},seed={}"
    make = maker([jobs.format(64, 1), jobs.format(32, 2)], "hpcgym/JobSelection-v2", {"jobs": 20})
    envs = make(num_envs=3, log=[*make.logs])
    envs.reset(seed=0)
    assert [envs.unwrapped.result(e).cluster.processors for e in range(3)] == [64, 32, 64]
    save_spec(envs, tmp_path / "model.zip")
    seen = read_spec(tmp_path / "model.zip")["trained_on"]
    assert [log["workload"] for log in seen] == [*make.logs]
    for name, log in zip(make.logs, seen, strict=True):
        submit = make(log=name).unwrapped.options.workload.submit_time
        assert (log["first_s"], log["last_s"]) == (submit[0], submit[-1])


def test_a_table_has_a_column_for_each_key(tmp_path: Path) -> None:
    log = csv_log(tmp_path / "new" / "log.csv")
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25, "validation/mean_bsld": 3.0})
    text = (tmp_path / "new" / "log.csv").read_text()
    assert text == "steps,train/loss,validation/mean_bsld\n64,0.5,\n128,0.25,3.0\n"
    csv_log(tmp_path / "log.csv", [{"steps": "64", "train/loss": "0.50"}])(
        128, {"train/loss": 0.25}
    )
    assert (tmp_path / "log.csv").read_text() == "steps,train/loss\n64,0.50\n128,0.25\n"


def test_tensorboard_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = tensorboard_log(tmp_path)
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25})
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("train/loss")
    assert [(event.step, event.value) for event in events] == [(64, 0.5), (128, 0.25)]


test_mistakes = mistakes_of(globals(), sys, fixtures=("monkeypatch",))
