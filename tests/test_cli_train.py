"""``hpcgym train``: what it writes, what it says, and how errors end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hpcgym.agents import load
from hpcgym.agents.behaviour_cloning import load_recording
from typer.testing import CliRunner

from hpcgym.cli import app

TRACE = "lublin:jobs=2000,processors=64,load=1.0,seed=2"
SHORT = ("--workload", TRACE, "--jobs", "20", "--steps", "64", "--envs", "4")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def train(*arguments: str) -> Any:
    return run("train", *arguments)


def succeed(*arguments: str) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def test_an_agent_is_trained_and_evaluated() -> None:
    options = ("--backfill", "none", "--reservation", "kept", "--window", "32")
    done = succeed("train", "maskable-ppo", *SHORT, *options)
    assert done.stdout == ""
    assert "wrote maskable-ppo.pt" in done.stderr
    agent = load("maskable-ppo.pt")
    given = {"backfill": "none", "reservation": "kept", "window": 32}
    assert agent.env_options.items() >= given.items()
    few = ("--jobs", "50", "--number", "3", "--budget", "5", "--format", "json")
    board = json.loads(succeed("evaluate", "maskable-ppo.pt", "--workload", TRACE, *few).stdout)
    assert not board["failures"]
    assert all("maskable-ppo.pt" in row and "f1" in row for row in board["by_slice"].values())


def test_ppo_takes_interval_and_features() -> None:
    features = ("--policy-features", "requested,area", "--interval", "10")
    succeed("train", "ppo", *SHORT, *features, "--output", "one.pt", "--tensorboard", "logs")
    agent = load("one.pt")
    assert agent.env_options["interval"] == 10
    assert agent.policy_features == ("requested", "area")
    assert list(Path("logs").rglob("events.out.tfevents*"))
    done = succeed("train", "ppo", *SHORT, "--resume", "one.pt", "--output", "two.pt")
    assert "wrote two.pt" in done.stderr
    assert load("two.pt").policy_features == ("requested", "area")


def test_clones_are_trained_of_orders_and_of_recordings() -> None:
    where = ("--workload", TRACE, "--jobs", "30", "--number", "2", "--backfill", "none")
    done = succeed("train", "record", "saf", *where, "--output", "saf.npz")
    assert "transitions of 2 episodes to saf.npz" in done.stderr
    assert load_recording("saf.npz").about["policy"] == "saf"
    succeed("train", "clone", "--recording", "saf.npz", "--steps", "5", "--output", "a.pt")
    succeed("train", "clone", "saf", *where, "--steps", "5", "--output", "b.pt")
    for path in ("a.pt", "b.pt"):
        assert load(path).name == "clone"
        assert load(path).env_options["backfill"] == "none"
    succeed("train", "maskable-ppo", *SHORT, "--resume", "a.pt")


@pytest.mark.parametrize("agent", ["maskable-ppo", "ppo", "clone", "record"])
def test_help_teaches(agent: str) -> None:
    text = succeed("train", agent, "--help").stdout
    assert f"Examples:\n  hpcgym train {agent}" in text
    assert "\n  glesser " in text
    assert agent in succeed("train", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ppo", *SHORT, "--output", "agent.zip"), "agent.zip: the name of a agent ends in .pt"),
        (("ppo", *SHORT, "--interval", "fortnight"), "interval must be"),
        (("ppo", *SHORT, "--policy-features", "size"), "unknown policy_features 'size'"),
        (("maskable-ppo", *SHORT, "--reservation", "no"), "unknown reservation 'no'"),
        (("maskable-ppo", *SHORT, "--resume", "none.pt"), "none.pt: No such file"),
        (("maskable-ppo", *SHORT, "--part", "first"), "unknown part 'first'"),
        (("clone", "saf"), "give either an order and --workload, or --recording"),
        (("clone", "sfa", "--workload", TRACE), "unknown baseline 'sfa'"),
        (("record", "saf", "--workload", TRACE, "--env", "hpcgym/No-v0"), "hpcgym/No-v0"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = train(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(Path().iterdir())


def test_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None\nfrom hpcgym.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "ppo", "--workload", "lublin"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert 'pip install "hpcgym[agents]"' in done.stderr
    assert done.stderr.count("\n") == 1
