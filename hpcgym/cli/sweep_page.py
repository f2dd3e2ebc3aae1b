"""What a sweep has found, as a page and as figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.cli.means import Asked, Means, word
from hpcgym.errors import HpcgymWarning, warn_caller
from hpcgym.sweep.source import OF_GROUPS, OF_JOBS

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.sweep.run import Status

#: Simulations that a page lists one by one; of more, it says where they are.
MOST_LISTED = 2_000


def page_of(folder: Path, means: Means, rows: pd.DataFrame, status: Status) -> str:
    """Return the means as a page, and each simulation, unless there are very many."""
    from hpcgym.explore.document import sheet
    from hpcgym.explore.markup import Cell, paragraphs, table

    words = range(len(means.keys))
    cells = [[Cell(*cell) for cell in row] for row in means.rows]
    caption = "Means over simulations; ★ best of its workload. A click on a heading sorts."
    sections = [
        table([*means.keys, *means.heading], cells, words=words, sortable=True, caption=caption),
        paragraphs(means.notes),
        "<h2>Each simulation</h2>",
        _each(rows) if len(rows) <= MOST_LISTED else paragraphs([_too_many(folder, rows)]),
    ]
    done = f"{status.done:,} of {status.tasks:,} simulations are done, {status.failed:,} failed"
    name = folder.resolve().name
    return sheet(f"{name}: a sweep", [done], "\n".join(sections), _record(folder))


def _too_many(folder: Path, rows: pd.DataFrame) -> str:
    return f"These are {len(rows):,}: hpcgym sweep table {folder} --format csv has them."


def _each(rows: pd.DataFrame) -> str:
    """Return the table of all simulations."""
    from hpcgym.explore.markup import table
    from hpcgym.report.tables import described, text_of

    keys = [name for name in rows.columns if rows[name].dtype.kind not in "if"]
    keys += [name for name in ("seed", "shuffle") if name in rows and name not in keys]
    metrics = described([str(name) for name in rows.columns if name not in keys])
    heading = [*map(str, keys), *(metric.heading for metric in metrics)]
    lines = [
        [
            *(word(row[key]) for key in keys),
            *(text_of(metric, row[metric.name]) for metric in metrics),
        ]
        for row in rows.to_dict("records")
    ]
    return table(heading, lines, words=range(len(keys)), sortable=True)


def save_of_slices(folder: Path, asked: Asked, where: Path, width: float) -> list[Path]:
    """Write profiles and ranks of each metric that is asked for, over all simulations."""
    from hpcgym.evaluation.figures import slice_figures
    from hpcgym.report.figures import write_figures
    from hpcgym.sweep import read_table

    rows = read_table(folder)
    jobs = [name for name in (*OF_GROUPS, *OF_JOBS) if name in rows]
    unit = rows.groupby(jobs, sort=False, dropna=False).ngroup()
    names = rows.groupby(unit)["slice"].first()  # weeks are called so, unless they come with seeds
    whole = len(names) == len(rows.drop_duplicates(["workload", "slice"]))
    chosen = asked.metrics_of(rows) if asked.metric else asked.metrics_of(rows)[:1]
    grids = {}
    for metric in chosen:
        grid = rows.assign(unit=unit).pivot(index="unit", columns="scheduler", values=metric.name)
        grid = grid[rows["scheduler"].unique()]  # in the order of the experiment
        grids[metric.name] = grid.set_axis(names) if whole else grid
        if left := int(grid.isna().any(axis=1).sum()):
            warn_caller(
                f"figures of {metric.name} are of {len(grid) - left} of {len(grid)} slices: on the"
                " others not all schedulers have a value",
                HpcgymWarning,
            )
    record = _record(folder)
    drawn = slice_figures(grids, {one.name: one for one in chosen}, width)
    return write_figures(drawn, where, lambda _: record)


def _record(folder: Path) -> dict[str, Any]:
    """Return where what is made of a sweep is from; the manifest has the workloads."""
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.workload.io.files import sha256_of

    manifest = folder / "manifest.json"
    record = provenance_of_workloads([])
    record["files"][f"{folder.resolve().name}/{manifest.name}"] = sha256_of(manifest)
    return record
