"""``hpcgym speedups``: how fast codes run beside each other; files in one form or another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import options, output
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.fitting import print_table
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.progress import working

if TYPE_CHECKING:
    from hpcgym.speedups import Heatmap


class Speedups(ExplainedCommand):
    """The command with its examples."""

    examples = (
        "hpcgym speedups aris.json",
        "hpcgym speedups loads.json --output aris.csv    # from ELiSE's form to a table",
        "hpcgym speedups generated:codes=16,mean=1.1,spread=0.1,seed=0 --picture heatmap.png",
    )


def speedups(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|generated:...",
            help="Speedups of pairs of codes: CSV, JSON, load files of ELiSE, or generated ones,"
            " generated:codes=16,mean=1.1,spread=0.1,seed=0.",
            show_default=False,
        ),
    ],
    format: options.FormatOption = Format.table,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the speedups as .csv (pairs only) or .json (all that is known).",
            show_default=False,
            rich_help_panel="Output",
        ),
        Written("file of speedups", (".csv", ".json")),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the heatmap: .png, .svg or .pdf.",
            show_default=False,
            rich_help_panel="Output",
        ),
        Written("picture", (".png", ".svg", ".pdf"), drawn=True),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Tell how fast codes run beside each other, draw it, or write it in another form.

    The speedup of a code beside another is its run time alone on whole nodes, divided by its run
    time on half of each socket with the other code on the other halves. Below 1 it is slowed down.
    The table has the mean over all neighbours, and the mean that others have beside the code.
    """
    from hpcgym.speedups import find_speedups, write_speedups

    heatmap = find_speedups(source)
    if output_file is not None:
        write_speedups(heatmap, output_file)
        note(f"wrote {output_file}")
    if picture is not None:
        _draw(heatmap, picture)
    rows = _rows(heatmap)
    if format is Format.json:
        mean = {"mean_speedup": heatmap.mean_speedup}
        output.print_json({**heatmap.describe(), **mean, "codes": rows})
    elif format is Format.csv:
        output.print_csv(rows)
    else:
        _print_table(heatmap, rows)


def _rows(heatmap: Heatmap) -> list[dict[str, Any]]:
    """Return what is known of each code; None for what is not."""
    known = heatmap.speedup == heatmap.speedup  # NaN differs from itself
    rows = []
    for place, code in enumerate(heatmap.codes):
        own, others = heatmap.speedup[place, known[place]], heatmap.speedup[known[:, place], place]
        processes = int(heatmap.processes[place])
        rows.append(
            {
                "code": code,
                "processes": processes if processes > 0 else None,
                "compact_s": heatmap.compact_s[place],
                "alone": heatmap.alone[place],
                "mean_speedup": own.mean() if len(own) else None,
                "least": own.min() if len(own) else None,
                "greatest": own.max() if len(own) else None,
                "mean_of_others": others.mean() if len(others) else None,
                "unknown_pairs": int((~known[place]).sum()),
            }
        )
        if heatmap.io_share is not None and heatmap.io_demand_mb_s is not None:
            rows[-1]["io_share"] = heatmap.io_share[place]
            rows[-1]["io_demand_mb_s"] = heatmap.io_demand_mb_s[place]
    return rows


def _draw(heatmap: Heatmap, path: Path) -> None:
    """Draw the heatmap into a file."""
    from hpcgym.report import draw_speedups
    from hpcgym.report.canvas import figure_of, picture_suffix, save_figure

    with working(f"drawing {path}"):
        save_figure(figure_of(draw_speedups(heatmap)), path, picture_suffix(path))
    note(f"wrote {path}")


def _print_table(heatmap: Heatmap, rows: list[dict[str, Any]]) -> None:
    """Print what is known for people."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    out = output.console()
    unknown = f"{heatmap.unknown:,} of {heatmap.speedup.size:,} pairs unknown"
    dropped = f" · {heatmap.dropped:,} measurements left out" if heatmap.dropped else ""
    mean = "" if heatmap.unknown == heatmap.speedup.size else f" · mean {heatmap.mean_speedup:.4f}"
    title = f"{heatmap.source} · {len(heatmap)} codes{mean} · {unknown}{dropped}"
    out.print(title, style="bold", markup=False, soft_wrap=True)
    out.print(f"SHA-256 {heatmap.digest}", markup=False, soft_wrap=True)
    out.print()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("code", overflow="fold")
    headings = ("processes", "compact (s)", "alone", "mean speedup", "least", "greatest")
    for heading in (*headings, "mean of others", "unknown pairs"):
        table.add_column(heading, justify="right", no_wrap=True)
    reads = heatmap.io_share is not None
    for heading in ("I/O share", "MB/s a core") if reads else ():
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        io = [f"{row.pop(name):g}" for name in ("io_share", "io_demand_mb_s") if reads]
        code, processes, compact_s, *speedups, unknown_pairs = row.values()
        cells = ["-" if processes is None else f"{processes:,}"]
        cells.append("-" if compact_s != compact_s else f"{compact_s:,.1f}")
        cells += ["-" if value is None else f"{value:.3f}" for value in speedups]
        table.add_row(Text(code), *map(Text, [*cells, f"{unknown_pairs:,}", *io]))
    print_table(out, table)
