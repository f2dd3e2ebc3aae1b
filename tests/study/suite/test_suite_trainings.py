"""What trainings leave in a submission, and agents that the suite trains or lets look ahead."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from bringing import play

from hpcgym.agents import load
from hpcgym.study.suite.proofs import verify
from hpcgym.study.suite.submissions import read

pytestmark = pytest.mark.usefixtures("small")


def curve(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "task", "ending"),
    [
        ("rule-es", "pool-weights", ".json"),
        ("xnes", "pool-weights", ".json"),
        ("job-ppo", "pool-order", ".pt"),
        ("maskable-ppo", "pool-select", ".pt"),
    ],
)
def test_the_agent_that_is_kept_plays_as_it_did(
    agent: str, task: str, ending: str, tmp_path: Path
) -> None:
    """Its file, which is not trained again, makes the schedules of the submission."""
    if ending == ".pt":
        pytest.importorskip("torch")
    done = play(agent, task, tmp_path / "done")
    assert all(proof.equal for proof in verify(read(tmp_path / "done")))
    told = done.tasks[task]
    assert told["trained"]
    for row, seed in enumerate(told["seeds"]):
        kept = tmp_path / "done" / "trainings" / task / f"{seed}{ending}"
        assert load(kept).name == agent
        again = play(str(kept), task, tmp_path / f"again{seed}")
        assert not again.tasks[task]["trained"]
        assert again.values(task).tolist() == [done.values(task)[row].tolist()]
        rows = curve(kept.with_suffix(".csv"))
        steps = [int(one["steps"]) for one in rows]
        assert steps == sorted(steps)
        assert steps[-1] > 0


def test_agents_of_users_are_told_where_to_log_and_save(tmp_path: Path) -> None:
    play("bringing:Logs", "pool-order", tmp_path)
    place = tmp_path / "trainings" / "pool-order"
    assert curve(place / "1.csv") == [{"steps": "3", "mine": "1"}]
    assert (place / "0").read_text() == "seed 0"
    play("bringing:Trained", "tiny-order", tmp_path / "plain")
    assert not (tmp_path / "plain" / "trainings").exists()


def test_look_ahead_plays_where_weights_are_set(tmp_path: Path) -> None:
    done = play("lookahead", "pool-weights", tmp_path)
    assert all(proof.equal for proof in verify(read(tmp_path)))
    assert done.tasks["pool-weights"]["seeds"] == [0]
    fcfs = play("easy", "pool-weights", tmp_path / "easy")
    assert done.values("pool-weights").mean() < fcfs.values("pool-weights").mean()
