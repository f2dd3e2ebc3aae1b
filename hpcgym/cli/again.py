"""What a recorded command computes: its options are read and followed; nothing is written."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand

from hpcgym.cli.bounds import Told, bounded, check_generated
from hpcgym.cli.compare import compare, compared
from hpcgym.cli.explore import explore, explored
from hpcgym.cli.files import check_regular, digests_of_read
from hpcgym.cli.groups import arguments_of
from hpcgym.cli.output import Outcome
from hpcgym.cli.own_rules import no_own_code
from hpcgym.cli.simulate import simulate, simulated
from hpcgym.errors import HpcgymError

#: The commands whose files can be verified: the command, and what it computes.
_COMMANDS: dict[str, tuple[Callable[..., None], Callable[..., Outcome]]] = {
    "simulate": (simulate, simulated),
    "compare": (compare, compared),
    "explore": (explore, explored),
}

#: What parsers of options raise; typer brings its own click, or uses the one installed.
_WRONG_USE: Any = typer.BadParameter.__base__


class Again(NamedTuple):
    """What a recorded command computes now; ``files()``: what it reads, name -> SHA-256."""

    outcome: Outcome
    files: Callable[[], dict[str, str]]


def _moved(argument: str, folder: Path) -> str:
    """Return an argument; of a file that is not where it says the one of that name in a folder."""
    option, equals, text = (
        argument.rpartition("=") if argument.startswith("--") else ("", "", argument)
    )
    here = folder / Path(text).name
    # os.path, since pathlib raises for names that no file can have
    gone = text and not os.path.exists(text) and os.path.isfile(here)
    return f"{option}{equals}{here}" if gone else argument


def again(
    arguments: Sequence[str], told: Told, workload: str | None = None, folder: Path = Path()
) -> Again:
    """Return what a command line computes.

    Parameters
    ----------
    arguments : without the program's name; options that name files to write are not followed.
    told : by the file that has recorded it; it may not cost far more.
    workload : stands in place of the command line's, if it is not None.
    folder : where files that the command line names, and that are not there, are looked for.

    Raises
    ------
    HpcgymError : another command, options that it does not have, one that costs far more than is
        told, or what the command raises.
    """
    name, *rest = arguments or [""]
    if name not in _COMMANDS:
        *most, last = _COMMANDS
        known = f"{', '.join(most)} and {last}"
        raise HpcgymError(f"hpcgym {name} wrote it, and only files of {known} can be verified")
    command, compute = _COMMANDS[name]
    found: list[Again] = []

    @wraps(command)
    def run(**values: Any) -> None:
        if workload is None:
            check_generated(values["workload"])
        else:
            values["workload"] = workload
        check_regular(command, values)  # the command may be anybody's
        given = arguments_of(command, values)
        wanted = inspect.signature(compute).parameters
        with no_own_code():
            outcome = compute(**{key: given[key] for key in wanted})
        found.append(Again(outcome, lambda: digests_of_read(command, values)))

    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.command(cls=TyperCommand, add_help_option=False)(run)  # no checks of files to write
    try:
        found_again = [_moved(one, folder) for one in rest]
        with bounded(told):
            typer.main.get_command(program).main(found_again, standalone_mode=False)
    except _WRONG_USE as error:
        raise HpcgymError(f"its command line is not one of now: {error.format_message()}") from None
    return found[0]
