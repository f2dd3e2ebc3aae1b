"""Dataclasses as groups of options: what typer sees of them, and what commands get."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.cli.groups import grouped
from hpcgym.evaluation.lineup import scheduler_of
from hpcgym.scheduler.rules import Scheduler


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(metavar="W", help="How wide it is.")] = 3
    height: Annotated[int, typer.Option("--high", help="How high it is.")] = 4


@dataclass(frozen=True)
class Box(Size):
    width: Annotated[int, typer.Option(metavar="MM", help="How wide a box is.")] = 5
    depth: Annotated[float | None, typer.Option(help="How deep it is.")] = None


def run(command: Any, *arguments: str) -> Any:
    program = typer.Typer(rich_markup_mode=None, add_completion=False)
    program.command()(grouped(command))
    return CliRunner().invoke(program, list(arguments))


def test_a_command_gets_an_instance_of_each_group() -> None:
    got: list[Any] = []

    def command(*, name: Annotated[str, typer.Argument()], size: Size, loud: bool = False) -> None:
        got.append((name, size, loud))

    assert run(command, "crate", "--high", "9", "--loud").exit_code == 0
    assert run(command, "crate").exit_code == 0
    assert got == [("crate", Size(3, 9), True), ("crate", Size(), False)]


def test_help_shows_the_fields_in_their_order() -> None:
    def command(*, first: bool = False, box: Box, last: bool = False) -> None:
        """Pack it."""

    text = run(command, "--help").stdout
    options = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert options == ["--first", "--width", "--high", "--depth", "--last", "--help"]
    assert "--width MM How wide a box is. [default: 5]" in " ".join(text.split())
    assert "Pack it." in text


def test_one_name_stands_for_one_option() -> None:
    def command(*, box: Box, size: Size) -> None: ...

    with pytest.raises(TypeError, match="command has the option 'width' twice"):
        grouped(command)


def _commands(group: Any, path: tuple[str, ...] = ()) -> Any:
    if not hasattr(group, "commands"):
        yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from _commands(command, (*path, name))


def test_no_command_spells_out_what_a_group_has() -> None:
    """Options of one name that read jobs are one definition: one help, one default."""
    from hpcgym.cli.loading import PoolReading

    found = dict(_commands(typer.main.get_command(app)))
    shared = {name: set() for name in inspect.signature(PoolReading).parameters}
    assert set(shared) == {"clean", "errors", "processors"}
    for command in found.values():
        for option in command.params:
            if option.name in shared:
                shared[option.name].add((option.help, option.default, option.metavar))
    assert len(found) > 20
    assert all(len(definitions) == 1 for definitions in shared.values())


def test_defaults_that_help_shows_are_those_of_schedulers() -> None:
    """The options are None by default, so that a scheduler keeps its own: help tells in words."""
    usual = {field.name: field.default for field in fields(Scheduler)} | {"pairs_above": "any may"}
    del usual["dispatcher"]  # where a study has this option, it says which are run
    shown = {}
    for path, command in _commands(typer.main.get_command(app)):
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
