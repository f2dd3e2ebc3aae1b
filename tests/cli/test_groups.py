"""Dataclasses as groups of options: what click sees of them, and what commands get."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from click.testing import CliRunner
from commands import COMMANDS, in_words
from mistakes import mistakes_of

from hpcgym.cli.groups import Option, Several
from hpcgym.cli.running import explained
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.evaluation.policies import scheduler_of


@dataclass(frozen=True)
class Size:
    width: Annotated[int, Option(metavar="W", help="How wide it is.")] = 3
    height: Annotated[int, Option("--high", help="How high it is.")] = 4


@dataclass(frozen=True)
class Box(Size):
    width: Annotated[int, Option(metavar="MM", help="How wide a box is.")] = 5
    depth: Annotated[float | None, Option(help="How deep it is.")] = None


@dataclass(frozen=True)
class Parcel(Size):
    label: Annotated[str | None, Option(metavar="TEXT")] = None
    stamp: Annotated[str | None, Option(metavar="KIND,...")] = None
    weight: Annotated[int | None, Option(metavar="KG")] = None


@dataclass(frozen=True, kw_only=True)
class Load:
    """What is packed.

    Options
    -------
    what THING : What it is.
    """

    what: str = "sand"
    box: Box


def run(command: Any, *arguments: str) -> Any:
    return CliRunner().invoke(explained()(command), list(arguments))


def taking(kind: Any) -> tuple[Any, list[Any]]:
    """Return a command that takes one group, and what it was given."""
    got: list[Any] = []

    def command(*, first: bool = False, group: Any, last: bool = False) -> None:
        """Pack it."""
        got.append(group)

    command.__annotations__["group"] = kind
    return command, got


def test_a_command_gets_an_instance_of_each_group() -> None:
    command, got = taking(Load)
    for words in (["--high", "9", "--what", "iron", "--last"], []):
        assert run(command, *words).exit_code == 0
    assert got == [Load(what="iron", box=Box(5, 9)), Load(box=Box())]
    text = run(command, "--help").stdout
    options = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    names = ["--what", "--width", "--high", "--depth"]
    assert options == ["--first", *names, "--last", "--help"]
    assert "--what THING What it is. [default: sand]" in in_words(text)
    assert "--width MM How wide a box is. [default: 5]" in in_words(text)
    assert "Pack it." in text


def test_options_that_may_be_given_several_times() -> None:
    command, got = taking(Annotated[Several[Parcel], "label", "stamp", "weight"])
    assert run(command, "--width", "9").exit_code == 0
    words = ["--weight", "1", "--weight", "2", "--stamp", "red", "--label", "1,2", "--label", "sea"]
    assert run(command, *words).exit_code == 0
    plain, several = got
    assert plain == Several((Parcel(9),), ())
    assert several.varied == ("label", "weight")
    assert several.each == tuple(
        Parcel(3, 4, label, "red", weight) for label in ("1,2", "sea") for weight in (1, 2)
    )
    only = several.only("weight")
    assert only.varied == ("weight",)
    assert only.each == tuple(Parcel(3, 4, "1,2", "red", weight) for weight in (1, 2))
    text = in_words(run(command, "--help").stdout)
    for option in ("--label TEXT...", "--stamp KIND,...", "--weight KG..."):
        assert f"{option} " in text
    assert "......" not in text


def test_all_options_of_a_group_may_be_given_several_times() -> None:
    command, got = taking(Several[Parcel])
    assert run(command, "--label", "x", "--high", "1", "--high", "2").exit_code == 0
    assert got[0].each == (Parcel(3, 1, "x"), Parcel(3, 2, "x"))


def test_a_value_is_given_once() -> None:
    command, _ = taking(Annotated[Several[Parcel], "weight"])
    error = run(command, "--weight", "1", "--weight", "1").exception
    assert isinstance(error, HpcgymError)
    assert str(error) == "--weight: '1' is there twice"


def twice(*, load: Load, size: Size) -> None: ...


def test_defaults_that_help_shows_are_those_of_schedulers() -> None:
    """The options are None by default, so that a scheduler keeps its own: help tells in words."""
    usual = {each.name: each.default for each in fields(Scheduler) if each.init}
    usual["pairs_above"] = "any may"
    usual["candidate_estimate"] = "those of policies, or typical-ratio in place of requested times"
    del usual["dispatcher"]  # where a study has this option, it says which are run
    usual["backfill_order"] = (
        "as goes with the policy: fcfs with fcfs, fair share its own, else spf"
    )
    shown = {}
    for path, command in COMMANDS.items():
        for option in command.params:
            words = getattr(option, "show_default", None)
            if option.name in usual and option.default is None and isinstance(words, str):
                first = words.partition(";")[0].removeprefix("as agents were trained, or ")
                shown[*path, option.name] = first
    of_leaderboards = scheduler_of("saf", {}).backfill_order
    assert shown.pop(("evaluate", "backfill_order")) == of_leaderboards
    assert len(shown) > 15
    assert {"partners", "pair_estimate", "allocation", "passes"} <= {path[-1] for path in shown}
    assert {path: words for path, words in shown.items() if words != usual[path[-1]]} == {}


test_mistakes = mistakes_of(globals(), errors=TypeError)
