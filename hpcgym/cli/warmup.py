"""``hpcgym warmup``: compile beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

import typer

from hpcgym.cli import options, output
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError
from hpcgym.progress import counting


def _parts() -> Iterable[tuple[str, str]]:
    from hpcgym.compilation.notice import PARTS

    return [(name, f"{part.what}, about {part.seconds} s") for name, part in PARTS.items()]


class Warmup(ExplainedCommand):
    """The command with its parts in its help."""

    examples = ("hpcgym warmup", "hpcgym warmup simulator environments")
    lists: ClassVar[Lists] = {"Parts, and how long each takes alone on an idle core": _parts}


def warmup(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART", help="The parts to compile; by default all.", show_default=False
        ),
    ] = None,
    format: options.FormatOption = Format.table,
) -> None:
    """Compile beforehand, so that no first use has to wait.

    hpcgym compiles its simulators for this machine when they are first used, and keeps the result
    in the user's cache folder. This command does it now. Parts that are compiled already are left
    unchanged. It may be run at any time, for example when an image is built. A new version
    compiles anew.
    """
    from hpcgym.warmup import PARTS, check_parts, kept_in, warmup

    names = check_parts(parts or PARTS)
    folder = kept_in()
    if folder is None:
        raise HpcgymError(
            "compiled code is kept nowhere, so nothing can be compiled beforehand: each process"
            " compiles for itself, or nothing, if NUMBA_DISABLE_JIT is set"
        )
    wide = max(map(len, names))
    with counting("compiling", len(names)) as step:

        def show(name: str, seconds: float | None) -> None:
            if seconds is None:
                step(f"compiling {name}")
            elif format is Format.table:
                typer.echo(f"{name:<{wide}}  {_text(seconds)}")

        seconds = warmup(names, show)
    rows = [{"part": name, "compile_s": spent} for name, spent in seconds.items()]
    if format is Format.json:
        output.print_json(rows)
    elif format is Format.csv:
        output.print_csv(rows)
    told = [] if any(seconds.values()) else ["all of it was compiled already"]
    told.append(f"compiled code is kept in {folder}")
    note("; ".join(told))


def _text(seconds: float) -> str:
    """Return how long compiling took, for people."""
    return f"{seconds:.1f} s" if seconds else "compiled already"
