"""``hpcgym sweep``: experiments of many simulations, on one core or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import options, output
from hpcgym.cli.groups import Option
from hpcgym.cli.means import MeansTable, means_of
from hpcgym.cli.running import Commands, note
from hpcgym.cli.tables import Format, Sheet, show
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.progress import measuring
from hpcgym.study.sweep import OF_GROUPS, OF_JOBS

if TYPE_CHECKING:
    from hpcgym.report.figures import Drawing


# --- What a sweep has found, as plots -----------------------------------------------------------


def _profiles(folder: Path, asked: MeansTable) -> dict[str, Drawing]:
    """Return a performance profile of each metric that is asked for, over all simulations."""
    from hpcgym.study import read_table
    from hpcgym.study.evaluation.figures import profiles

    rows = read_table(folder)
    jobs = [name for name in (*OF_GROUPS, *OF_JOBS) if name in rows]
    unit = rows.groupby(jobs, sort=False, dropna=False).ngroup()
    chosen = asked.metrics_of(rows) if asked.metric else asked.metrics_of(rows)[:1]
    grids = {}
    for metric in chosen:
        grid = rows.assign(unit=unit).pivot(index="unit", columns="scheduler", values=metric.name)
        grids[metric.name] = grid[rows["scheduler"].unique()]  # in the order of the experiment
        if left := int(grids[metric.name].isna().any(axis=1).sum()):
            warn_caller(
                f"figures of {metric.name} are of {len(grid) - left} of {len(grid)} slices: on the"
                " others not all schedulers have a value",
                HpcgymWarning,
            )
    return profiles(grids, {metric.name: metric for metric in chosen})


# --- ``hpcgym sweep`` -----------------------------------------------------------------------------


@click.group(cls=Commands)
def sweep() -> None:
    """Run experiments of many simulations, on one core or on a cluster."""


@sweep.command("run")
def run(
    *,
    file: Path,
    folder: Annotated[Path | None, Option("--output")] = None,
    executor: options.ExecutorOptions,
) -> None:
    """Simulate every workload, slice, seed and shuffle of an experiment under every scheduler.

    Results are kept at once. After a kill or Ctrl-C, hpcgym sweep run FOLDER does what is left, and
    tries failed tasks again; it refuses if a file that it reads or the version of hpcgym has
    changed. Names of files in an experiment are relative to its folder.

    Arguments
    ---------
    file FILE|FOLDER : The experiment, a TOML file; or the folder of a sweep, to go on with it.

    Output
    ------
    folder FOLDER : Folder of the sweep. [default: FILE's name, ending in .sweep]

    Examples
    --------
    hpcgym sweep run weeks.toml
    hpcgym sweep run weeks.toml --executor dask:tcp://node1:8786
    mpiexec -n 9 hpcgym sweep run weeks.toml --executor mpi    # 8 workers
    hpcgym sweep run weeks.sweep    # goes on
    hpcgym sweep table weeks.sweep --format csv > weeks.csv

    An experiment, weeks.toml
    -------------------------
    schedulers = ["easy", "saf", { name = "saf-5h", scheduler = "saf", threshold = 18000 }]
    seeds = [0, 1, 2]                        # what {seed} stands for below
    metrics = ["mean_bsld", "max_wait_s"]    # default: all
    by = ["class"]                           # also of classes of jobs: sweep table --by class

    [[workloads]]
    workload = "KTH-SP2"                     # a file, a trace or a generator
    clean = "legrand"
    slices = "weeks"                         # or "months"; default: "whole"
    first = 1
    last = 45

    [[workloads]]
    workload = "lublin:jobs=20000,processors=128,load=0.9,seed={seed}"
    name = "generated"                       # what it is called in tables

    Another, of jobs that share nodes, sharing.toml
    -----------------------------------------------
    schedulers = ["easy", "easy-co", { name = "strict", scheduler = "filler-co", pairs_above = 1 }]
    speedups = "aris.json"                   # or generated:codes=16,mean=1.1; or a list of both
    shuffles = 20                            # orders of the jobs; or a list of their seeds

    [[workloads]]
    workload = "codes:speedups=aris.json,jobs=500,seed=1"
    cluster = "200x2x10"                     # a machine by name, a TOML file, or its numbers

    [[workloads]]
    workload = "SDSC-SP2"
    cluster = "8x2x8"
    codes = 7                                # seed: its jobs are given codes at random

    Another, under limits of power and energy, limited.toml
    -------------------------------------------------------
    schedulers = [
        "easy",
        { name = "shut", power = "shut" },   # nodes are switched off under caps
        { name = "dvfs", power = "dvfs" },   # jobs run slower
    ]

    [[limits]]
    name = "none"                            # jobs have nodes of their own, and nothing limits them

    [[limits]]
    name = "60 % for an hour"
    cap = "percent=60,start=90000,end=93600" # as --cap of hpcgym simulate; or a list of such texts

    [[limits]]
    name = "60 % of the energy"
    budget = "percent=60,start=86400,end=345600"

    [[workloads]]
    workload = "lublin:jobs=1000,processors=192,load=1.3"
    cluster = "taurus"
    """
    executor.become_mpi()

    from hpcgym.study import resume, run_experiment

    if file.is_dir():
        if folder is not None:
            raise HpcgymError(f"--output is for a new sweep; {file} is the folder of one")
        _run(file, lambda show: resume(file, **executor.given(), progress=show))
        return
    into = folder or Path(f"{file.stem}.sweep")
    _run(into, lambda show: run_experiment(file, into, **executor.given(), progress=show))


@sweep.command("status")
def status(folder: Path, format: Format = Format.table) -> None:
    """Tell how much of a sweep is done, and what failed.

    Arguments
    ---------
    folder FOLDER : Folder of the sweep.

    Examples
    --------
    hpcgym sweep status weeks.sweep
    hpcgym sweep status weeks.sweep --format json
    """
    from hpcgym.study import read_failures
    from hpcgym.study import status as find

    now = find(folder)
    facts = {
        "state": now.state,
        "tasks": now.tasks,
        "done": now.done,
        "failed": now.failed,
        "left": now.tasks - now.done - now.failed,
        "damaged": now.damaged,
    }
    failures = read_failures(folder)

    def sheet() -> Sheet:
        words = [f"{facts[key]:,} {key}" for key in ("done", "failed", "left")]
        lines = [f"{now.state}: {now.tasks:,} tasks, {', '.join(words)}"]
        if now.damaged:
            text = f"damaged results: {now.damaged:,}; hpcgym sweep run {folder}"
            lines.append(f"{text} does their tasks again")
        lines += map(_in_words, failures[:_SHOWN])
        if now.failed > _SHOWN:
            lines.append(f"... hpcgym sweep status {folder} --format json has all")
        return Sheet(lines, [])

    show(format, sheet, lambda: [facts], lambda: {**facts, "failures": failures})


@sweep.command("table")
def table(
    *,
    folder: Path,
    asked: MeansTable,
    how: output.ResultOptions,
) -> None:
    """Print what a sweep has found so far.

    csv and json have a row for each simulation, the others means over slices, seeds and shuffles.
    With --ci, --paired, --normalise or --by csv and json have these means too, in full. Figures
    are performance profiles, one for each metric of --metric.

    Arguments
    ---------
    folder FOLDER : Folder of the sweep.

    Examples
    --------
    hpcgym sweep table weeks.sweep
    hpcgym sweep table weeks.sweep --format csv > weeks.csv
    hpcgym sweep table weeks.sweep --html weeks.html
    hpcgym sweep table weeks.sweep --paired easy --format latex > weeks.tex
    hpcgym sweep table weeks.sweep --metric mean_bsld,max_wait_s --normalise easy --ci
    hpcgym sweep table weeks.sweep --metric mean_bsld --figures figures
    hpcgym sweep table weeks.sweep --metric mean_wait_s --by class
    """
    from hpcgym.study import status as find
    from hpcgym.study.sweep.run import checksum, read_manifest

    now, rows, manifest = find(folder), asked.read(folder), read_manifest(folder)
    done = f"{now.done:,} of {now.tasks:,} simulations are done, {now.failed:,} failed"
    above = [f"{folder.resolve().name}: a sweep", done]
    if now.done < now.tasks:
        note(f"{now.done:,} of {now.tasks:,} tasks are done: hpcgym sweep status {folder}")
    means = means_of(rows, next(iter(manifest["schedulers"])), asked, above)
    how.show(
        output.CommandResult(
            sheet=lambda: means.sheet,
            rows=lambda: means.rows,
            files={f"{folder.resolve().name}: manifest": checksum(manifest)},
            drawings=lambda: _profiles(folder, asked),
        )
    )
    if how.format in (Format.json, Format.csv) and means.few:  # others have it
        note(means.few)


_SHOWN = 5  # failures


def _run(folder: Path, run: Callable[[Any], Any]) -> None:
    """Run a sweep with a bar, and say how it ended."""
    from hpcgym.study import read_failures
    from hpcgym.study.sweep.records import FILE

    try:
        with measuring("simulating") as show:
            summary = run(show)
    except KeyboardInterrupt:
        if (folder / FILE).exists():
            note(f"\n{folder} keeps what is done: hpcgym sweep run {folder} goes on")
        raise
    if summary.damaged:
        note(f"{folder} had damaged results: {summary.damaged:,}; their tasks were done again")
    note(
        f"{summary.done:,} of {summary.total:,} simulations are done, {summary.new:,} of them now:"
        f" hpcgym sweep table {folder}"
    )
    if summary.failed:
        for record in read_failures(folder)[:_SHOWN]:
            note(_in_words(record))
        raise HpcgymError(
            f"{summary.failed:,} of {summary.total:,} tasks failed: hpcgym sweep status {folder}"
            f" tells which; hpcgym sweep run {folder} tries them again"
        )


def _in_words(record: dict[str, Any]) -> str:
    """Return one line about a task that failed."""
    task = record["task"]
    keys = ("workload", "speedups", "limits", "slice", "seed", "shuffle", "scheduler")
    what = " · ".join(str(task[key]) for key in keys if task.get(key) is not None)
    return f"failed: {what}: {record['error']}"
