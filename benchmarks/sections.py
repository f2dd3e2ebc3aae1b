"""What scripts of speed share: options, times, sections of rows as tables or JSON, the machine."""

import argparse
import math
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcgym.files.writing import json_text
from hpcgym.version import __version__


def names_among(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return what reads an argument that is a list of known names joined by commas."""

    def names(text: str) -> list[str]:
        given = [name.strip() for name in text.split(",")]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return given

    return names


def parser_of(
    about: str | None, epilog: str, sections: Collection[str], repeat: int
) -> argparse.ArgumentParser:
    """Return a parser of the options that all scripts have; ``repeat`` is a default."""
    parser = argparse.ArgumentParser(
        description=about, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = names_among(sections)
    parser.add_argument("--sections", type=names, default=list(sections), metavar="NAME,NAME")
    parser.add_argument("--repeat", type=count, default=repeat, help="timed runs (%(default)s)")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    return parser


def count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class Column:
    """A key of a section's rows: its heading, and how Python formats its values."""

    key: str
    heading: str
    form: str = ""

    def text(self, row: dict[str, Any]) -> str:
        """Return a row's value for people."""
        value = row.get(self.key)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "-"
        return format(value, "" if isinstance(value, str) else self.form)


@dataclass(frozen=True)
class Section:
    """Some rows, what they are, and which of their values are shown."""

    title: str
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]

    def print(self, out: Console) -> None:
        """Print the rows as a table; a line parts the values of the first column."""
        table = Table(title=Text(self.title), title_justify="left", title_style="bold")
        # a column of remarks is left out where there is none
        shown = [c for c in self.columns if any(c.text(row) for row in self.rows)]
        for column in shown:
            table.add_column(column.heading, justify="right" if column.form else "left")
        first = self.columns[0].key
        for row, following in zip(self.rows, [*self.rows[1:], None], strict=True):
            parts = following is not None and row[first] != following[first]
            parts &= len({row[first] for row in self.rows}) < len(self.rows)
            table.add_row(*(column.text(row) for column in shown), end_section=parts)
        out.print(table)
        out.print()


def console() -> Console:
    """Return where tables go; without a terminal, lines are as long as they need to be."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=200)


def messages() -> Console:
    """Return where it is said what else there is to say, beside the figures."""
    return Console(stderr=True, highlight=False)


def doing(what: str) -> AbstractContextManager[Any]:
    """Say on the terminal what is being done, while it is done."""
    return messages().status(what)


def show(
    sections: Mapping[str, Callable[[argparse.Namespace], Section]],
    given: argparse.Namespace,
    facts: dict[str, Any],
) -> None:
    """Measure the sections asked for, and print each when it is done, or all as JSON."""
    out, found = console(), {}
    if given.format == "table":
        print_machine(out, facts)
    for name in given.sections:
        with doing(name):
            found[name] = sections[name](given)
        if given.format == "table":
            found[name].print(out)
    if given.format == "json":
        rows = {name: section.rows for name, section in found.items()}
        print(json_text({"machine": facts, "sections": rows}), end="")


def best(run: Callable[[], object], repeat: int) -> float:
    """Return the least seconds of some runs, after one that is not timed."""
    run()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def processor_seconds(call: Callable[[], object]) -> Callable[[], float]:
    """Return what makes a call and returns the seconds of the processor that it took."""

    def run() -> float:
        begin = time.process_time()
        call()
        return time.process_time() - begin

    return run


def in_turn(
    runs: Mapping[str, Callable[[], float]], repeat: int, once: Collection[str] = ()
) -> dict[str, float]:
    """Return the least seconds of each; runs take turns, after one that does not count.

    ``once`` : those that count at their first turn alone.
    """
    least = dict.fromkeys(runs, math.inf)
    for turn in range(repeat + 1):
        for name, run in runs.items():
            if name in once and turn > 1:
                continue
            seconds = run()
            if turn:
                least[name] = min(least[name], seconds)
    return least


def machine() -> dict[str, str | int]:
    """Return what the figures depend on besides the program."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "busy_before": f"{load:.1f} (load average of the last minute)",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "hpcgym": __version__,
    }


def print_machine(out: Console, facts: dict[str, str | int]) -> None:
    """Print the machine in one paragraph."""
    out.print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items()))
    out.print()


def _cpu() -> str:
    """Return the processor's model."""
    try:
        lines: Iterable[str] = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = ()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
