"""``hpcgym evaluate --protocol prequential``: learning while it runs, on one pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli import output
from hpcgym.cli.options import Format
from hpcgym.cli.reproduce import print_tables
from hpcgym.cli.running import note
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.progress import counting

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.cluster import Cluster
    from hpcgym.evaluation import Prequential
    from hpcgym.workload import Workload

PROTOCOLS = ("slices", "prequential")


@dataclass(frozen=True)
class Protocol:
    """How policies are compared, and what one pass takes."""

    panel: ClassVar[str] = "Experiment"

    protocol: Annotated[
        str,
        typer.Option(
            metavar="slices|prequential",
            help="How agents are judged: on slices that they have not seen; or in one pass"
            " through all jobs of the part, in which learners learn while they schedule"
            " (prequential; see the list of learners below).",
        ),
    ] = "slices"
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="day|week|hour|6h|N",
            help="For prequential: how long a learner's weights hold; a number N means N"
            " submissions.",
            show_default="day",
        ),
    ] = None
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Of prequential: where tables, by week too, and the picture regret.png are"
            " written.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None

    def is_prequential(self) -> bool:
        """Return whether learners go through all jobs once.

        Raises
        ------
        HpcgymError : another protocol, or options that are for the other one.
        """
        check_choice("--protocol", self.protocol, PROTOCOLS)
        if self.protocol == "prequential":
            return True
        for option, value in (("--interval", self.interval), ("--output", self.folder)):
            if value is not None:
                raise HpcgymError(f"{option} is for --protocol prequential")
        return False


def learners() -> list[tuple[str, str]]:
    """Return the names of learners, then other ways to name one, each with what it is."""
    return [
        ("policy-bandit", "chooses among saf, spf, f1 and fcfs by load, queue, hour and weekday"),
        ("weight-bandit", "chooses how much waiting counts beside size, and forgets"),
        ("MODULE:CLASS", "your own, with act(observation, info) and observe(observation, reward,"
         " ended), from this folder or installed; docs/online.md shows one"),
    ]  # fmt: skip


def run(
    policies: Any,
    workload: Workload,
    machine: Cluster | None,
    protocol: Protocol,
    settings: Mapping[str, Any],
    others: Mapping[str, Any],
    rules: Mapping[str, Any],
    format: Format,
) -> None:
    """Let learners go through the jobs once, and print what they have reached.

    Parameters
    ----------
    policies : of :func:`hpcgym.evaluation.kept.found_policies`.
    settings : ``part``, ``train_share``, ``seed`` and ``budget``.
    others : option -> its value, of those that are for slices; None where it was not given.
    """
    from hpcgym.evaluation import prequential
    from hpcgym.evaluation.intervals import block_length, why_no_intervals
    from hpcgym.report.canvas import require_matplotlib

    for option, value in others.items():
        if value is not None:
            raise HpcgymError(f"{option} is not for --protocol prequential, which has no slices")
    if not policies:
        raise HpcgymError(
            "name a learner, such as weight-bandit; hpcgym evaluate --help lists them"
        )
    if protocol.folder is not None:
        if protocol.folder.is_file():
            raise HpcgymError(f"{protocol.folder} is a file; --output names a folder")
        require_matplotlib()
    interval = protocol.interval or "day"
    board = prequential(
        policies, workload, interval=int(interval) if interval.isdecimal() else interval,
        cluster=machine, progress=counting, **settings, **rules,
    )  # fmt: skip
    table = board.table.reset_index()
    weeks = board.by_week()
    block = block_length(n := len(weeks))
    why = why_no_intervals(n // block, f"blocks of {block} weeks")
    if format is not Format.table and why:  # the table has it below
        note(why)
    if format is Format.json:
        each = {"weeks": weeks, "regret": board.regret}
        by_week = {name: _rows(one.reset_index()) for name, one in each.items()}
        facts = {"workload": workload.name, "interval": interval, **settings}
        output.print_json({**facts, "policies": _rows(table), **by_week})
    elif format is Format.csv:
        output.print_csv({"workload": workload.name, **row} for row in _rows(table))
    else:
        what = f"one pass, weights for {interval}, {len(board.stream):,} jobs of {n} weeks"
        intervals = why or f"95 % intervals: resamples of blocks of {block} weeks"
        _print_table(board, table, what, intervals)
    if protocol.folder is not None:
        files = board.save(protocol.folder)
        note(f"wrote {', '.join(file.name for file in files)} into {protocol.folder}")


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _print_table(board: Prequential, table: pd.DataFrame, what: str, intervals: str) -> None:
    """Print the table for people, above it what was done, below it what the intervals are."""
    from hpcgym.evaluation.regret import FIXED

    ends = [f"{measure}_{end}" for measure in ("mean_bsld", "regret") for end in ("low", "high")]
    shown = table.drop(columns=ends)
    for measure, form in (("mean_bsld", ".1f"), ("regret", "+.0f")):
        pairs = zip(table[f"{measure}_low"], table[f"{measure}_high"], strict=True)
        words = ["" if math.isnan(low) else f"[{low:{form}}, {high:{form}}]" for low, high in pairs]
        shown.insert(list(shown).index(measure) + 1, f"{measure} interval", words)
    shown.loc[shown["policy"] == FIXED, "regret interval"] = ""  # not compared with itself
    shown["decisions"] = [f"{number:,}" if number else "" for number in table["decisions"]]
    shown = shown.rename(columns={"regret": "regret [%]"})
    print_tables({board.stream.name: shown}, what, Format.table)
    out = output.console()
    out.print(intervals, markup=False)
    for verdict in board.verdicts:
        out.print(verdict, markup=False)
    weights = ", ".join(f"{weight:.3g} {name}" for name, weight in board.weights.items())
    out.print(f"{FIXED}: {weights}; chosen on these jobs", markup=False, soft_wrap=True)
