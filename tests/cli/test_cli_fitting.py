"""Tables: of means, and on terminals that are too narrow for them."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcgym.cli.means import Asked, means_of
from hpcgym.cli.output import print_table

NAMES = ("a scheduler with a rather long name", "saf")
NUMBERS = ("1,234,567", "0.0001234", "1.000 to 13.10", "99.99")
HEADINGS = ("mean\nwait", "p", "95 %\ninterval", "utilization")


def printed(width: int, least: list[str] | None = None, terminal: bool = True) -> list[str]:
    """Return the lines of a table of two names."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, caption="the caption")
    table.add_column("policy", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name in NAMES:
        table.add_row(Text(name), *map(Text, NUMBERS))
    out = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    print_table(out, table, least)
    return out.file.getvalue().splitlines()


def words(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_a_wide_terminal_has_all_columns():
    lines = printed(120)
    assert any(" ".join([NAMES[0], *NUMBERS]) == words([line]) for line in lines)
    assert "left out" not in words(lines)


@pytest.mark.parametrize("width", range(1, 120, 7))
def test_no_name_vanishes_and_no_number_is_cut(width):
    lines = printed(width)
    *table, last = lines
    assert "…" not in words(lines)
    assert any(line.startswith("saf ") for line in table)
    gone = last.partition("narrow: ")[2].split(", ") if "left out" in last else []
    for heading, number in zip(HEADINGS, NUMBERS, strict=True):
        left_out = " ".join(heading.split()) in gone
        assert (sum(number in line for line in table) == 2) != left_out


def test_columns_go_in_the_order_given():
    least = ["p", "95 % interval"]
    assert printed(59, least)[-1] == "left out, as the terminal is too narrow: p"
    assert printed(30, least)[-1].endswith(": p, 95 % interval")
    assert "99.99" in words(printed(30, least))  # rather longer than the terminal


def test_a_file_is_never_too_narrow():
    lines = printed(20, terminal=False)
    assert "left out" not in words(lines)
    assert sum(all(number in line for number in NUMBERS) for line in lines) == 2


def test_means_of_ratios_say_of_how_many() -> None:
    rows = pd.DataFrame(
        {
            "workload": "w",
            "seed": [0, 1, 0, 1],
            "scheduler": ["easy", "easy", "saf", "saf"],
            "mean_wait_s": [0.0, 10.0, 5.0, 20.0],
        }
    )
    asked = Asked(metric=["mean_wait_s"], normalise="easy")
    found = means_of(rows, "", asked)
    place = [*found.keys, *found.heading].index("ratios")
    assert [row[place][0] for row in found.rows] == ["1", "1"]
    full = means_of(rows.assign(mean_wait_s=1.0), "", asked)
    assert "ratios" not in full.heading
