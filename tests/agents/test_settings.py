"""What agents are told is written once: Python's signatures, docstrings and options have it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

from hpcgym.agents import behaviour_cloning, recordings
from hpcgym.agents.net_es import NetEs
from hpcgym.agents.rule_es import RuleEs
from hpcgym.agents.settings import (
    CloneSettings,
    NetEsSettings,
    RecordSettings,
    RuleEsSettings,
    Settings,
    XnesSettings,
    choice,
    real,
    takes,
    whole,
)
from hpcgym.agents.xnes import Xnes
from hpcgym.cli import app
from hpcgym.cli.running import explained
from hpcgym.errors import HpcgymError

#: Command of ``hpcgym train`` -> what has the same settings in Python, and their dataclass.
TAKERS: dict[str, tuple[Any, type[Settings]]] = {
    "xnes": (Xnes, XnesSettings),
    "rule-es": (RuleEs, RuleEsSettings),
    "net-es": (NetEs, NetEsSettings),
    "clone": (behaviour_cloning.train, CloneSettings),
    "record": (recordings.record, RecordSettings),
}


@dataclass(frozen=True)
class Lucky(XnesSettings):
    """One line more than its agent has: all that a new setting needs."""

    luck: int = whole(7, "How lucky it is.", 1)
    n_lives: int = whole(9, "Lives.", 1, options=("--lives",))


@takes(Lucky)
def train(workload: str, *, output: str | None = None, **settings: Any) -> Lucky:
    """Return what it is told.

    Parameters
    ----------
    workload : what to learn from.
    **settings : those of Lucky.
    """
    return Lucky(**settings)


def command(got: list[Any]) -> Any:
    def run(*, settings: Lucky) -> None:
        got.append(settings)

    return explained()(run)


def test_a_new_setting_is_in_the_signature_and_in_the_docstring() -> None:
    parameter = inspect.signature(train).parameters["luck"]
    assert (parameter.default, parameter.annotation) == (7, int)
    assert list(inspect.signature(train).parameters)[:3] == ["workload", "output", "budget"]
    assert "    luck : how lucky it is.\n" in str(train.__doc__)
    assert "**settings" not in str(train.__doc__)
    assert train("here", luck=3).luck == 3


def test_a_new_setting_is_an_option_with_help() -> None:
    got: list[Any] = []
    text = " ".join(CliRunner().invoke(command(got), ["--help"]).stdout.split())
    assert "--luck N How lucky it is. [default: 7]" in text
    assert CliRunner().invoke(command(got), ["--luck", "9", "--method", "random"]).exit_code == 0
    assert got == [Lucky(luck=9, method="random")]
    wrong = CliRunner().invoke(command(got), ["--luck", "0"]).exception
    assert isinstance(wrong, HpcgymError)
    assert str(wrong) == "luck must be a whole number of at least 1, not 0"
    wrong = CliRunner().invoke(command(got), ["--lives", "0"]).exception
    assert str(wrong) == "--lives must be a whole number of at least 1, not 0"


@pytest.mark.parametrize("name", TAKERS)
def test_python_and_the_command_line_have_the_same_settings(name: str) -> None:
    taker, kind = TAKERS[name]
    shown = inspect.signature(taker).parameters
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in shown.values())
    root: Any = app
    options = {
        parameter.name: parameter
        for parameter in root.get_command(None, "train").commands[name].params
    }
    for field in fields(kind):
        setting = field.metadata["setting"]
        assert shown[field.name].default == field.default
        assert f"    {field.name} : " in taker.__doc__
        if setting.options is None:
            assert field.name not in options
        else:
            assert options[field.name].default == field.default
            assert options[field.name].help == setting.meaning
            assert options[field.name].metavar == setting.metavar


@dataclass(frozen=True)
class Checked(Settings):
    steps: int | None = whole(None, "Steps.", 2)
    rate: float = real(0.5, "Rate.", "R")
    size: float = real(1.0, "Size.", "S", above=True)
    share: float = real(0.5, "Share.", "P", most=1.0)
    way: str = choice("up", "Where it goes.", "up", "down")


def test_right_values_are_kept() -> None:
    assert vars(Checked()) == {
        "steps": None, "rate": 0.5, "size": 1.0, "share": 0.5, "way": "up"
    }  # fmt: skip
    assert Checked(steps=2, rate=0, size=3, way="down").steps == 2


test_mistakes = mistakes_of(globals(), errors=(HpcgymError, TypeError))
