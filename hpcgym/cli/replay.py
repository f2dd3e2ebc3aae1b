"""``hpcgym replay``: a workload on a real Slurm, beside its simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import loading, names, output
from hpcgym.cli.files import SCHEDULE, Written, is_standard_output
from hpcgym.cli.groups import grouped
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.options import Format
from hpcgym.cli.output import print_table, rows_of
from hpcgym.cli.running import note
from hpcgym.errors import check_choice
from hpcgym.files.recorded import KEY, write_beside
from hpcgym.files.writing import is_stream
from hpcgym.progress import counting

if TYPE_CHECKING:
    from hpcgym.replay import Replay

_SYSTEMS = ("slurm",)
_TABLE = ("job_number", "start_time", "simulated_start_time", "difference", "why")
_SHOWN = 10  # jobs


@grouped(brief={"Cleaning recipes and filters (--clean)": names.recipes})
def replay(
    workload: str,
    *,
    on: Annotated[str, typer.Option()],
    scheduler: str = "fcfs",
    reading: loading.PeriodReading,
    format: Format = Format.table,
    output_file: Annotated[Path | None, typer.Option("--output"), SCHEDULE] = None,
    jobs: Annotated[Path | None, Written("comparison", (".csv", ".json"))] = None,
    force: bool = False,
) -> None:
    """Run a workload on an unmodified Slurm, and compare its schedule with the simulated one.

    slurmctld and slurmd run on loopback; jobs sleep for their run times. Their clock jumps from
    event to event, a hundred times as fast as real time and more. They are always stopped and
    removed at the end. Replays need Linux, Slurm and a C compiler: apt-get install slurmctld slurmd
    slurm-client gcc libc6-dev.

    Without --cluster Slurm has one node with all processors. Its back-filling reserves whole nodes:
    --cluster 100x1x1 has a node for each of 100 processors.

    Options
    -------
    on slurm : What makes the schedule: slurm, a private one on loopback.

    Scheduler
    ---------
    scheduler NAME : What Slurm is set to: fcfs, or easy with backfill until-shadow or slurm, as in
        easy:backfill=slurm:bf_interval=60. Another policy drives it, as in saf:backfill=none: it
        sets the priorities at each event. Or a slurm.conf, which has the partitions too; it is then
        the --cluster as well.

    Output
    ------
    output_file FILE : Write the schedule that Slurm made: .swf, .swf.gz, .csv, .json or .parquet.
    jobs FILE : Write both schedules job by job, and why starts differ: .csv or .json.

    Examples
    --------
    hpcgym replay KTH-SP2 --week 33 --on slurm
    hpcgym replay KTH-SP2 --week 33 --on slurm --scheduler easy:backfill=until-shadow
    hpcgym replay KTH-SP2 --week 33 --on slurm --scheduler easy:backfill=slurm --cluster 100x1x1
        --jobs jobs.csv
    hpcgym replay KTH-SP2 --week 33 --on slurm --scheduler saf:backfill=none
    hpcgym replay jobs.swf --on slurm --scheduler slurm.conf --cluster slurm.conf
    """
    check_choice("--on", on, _SYSTEMS)
    given = reading.given()
    chosen = rules_of(scheduler, given)
    loaded = reading.load(workload)

    from hpcgym.replay import facts_of, replay_on_slurm, table_of
    from hpcgym.scheduler.slurm_conf import files_of

    with counting("replaying", len(loaded) + 1) as step:
        # a file of Slurm is given to it as it is
        rules = scheduler if files_of(scheduler) and not given else chosen
        found = replay_on_slurm(loaded, rules, cluster=reading.machine, step=step)
    output.save_schedule(on, found.replayed, output_file)
    if jobs is not None:
        _write_jobs(found, jobs)
    if is_standard_output(output_file):
        return
    cluster = reading.machine
    results = _named(found)

    def facts() -> dict[str, Any]:
        return {
            **output.workload_facts(found.replayed.workload, reading.clean),
            **output.machine_facts(loaded, cluster),
            "differences": facts_of(found),
            "parted": [row for row in rows_of(table_of(found)) if row["why"].endswith("first")],
            "results": [output.result_facts(name, one) for name, one in results.items()],
            KEY: _record(found),
        }

    output.show(
        format,
        facts,
        lambda: [output.csv_row(r.workload, cluster, name, r) for name, r in results.items()],
        lambda: _print_table(found),
    )


def _named(found: Replay) -> dict[str, Any]:
    """Return both schedules by name."""
    return {found.replayed.replayed_on: found.replayed, "simulated": found.simulated}


def _record(found: Replay) -> dict[str, Any]:
    """Return where both schedules are from."""
    from hpcgym.schedule.provenance import provenance_of

    return provenance_of(_named(found))


def _write_jobs(found: Replay, path: Path) -> None:
    """Write both schedules job by job, with where they are from in a file beside."""
    from hpcgym.files.writing import csv_text, json_text, whole_text
    from hpcgym.replay import table_of

    rows = rows_of(table_of(found))
    with whole_text(path) as file:
        file.write(json_text(rows) if path.suffix.casefold() == ".json" else csv_text(rows))
    if not is_stream(path):
        write_beside(path, _record(found))
    note(f"wrote {path}")


def _print_table(found: Replay) -> None:
    """Print for people what differs, and where both schedules part."""
    from rich.table import Table

    from hpcgym.baselines.labels import describe
    from hpcgym.replay import facts_of, table_of
    from hpcgym.report.tables import rich_comparison, subtitle

    out = output.console()
    results, facts = _named(found), facts_of(found)
    out.print(subtitle(results), style="bold", markup=False)
    out.print(describe(found.simulated.scheduler), markup=False)
    output.print_cleaning(out, found.replayed.workload)
    out.print()
    print_table(out, rich_comparison(results))
    out.print(
        f"starts at the same second: {facts['same_starts']:.1%}; at most 60 s apart:"
        f" {facts['close_starts']:.1%}; largest difference: {facts['largest_difference_s']:,} s",
        markup=False,
    )
    out.print(f"mean bounded slowdowns: a ratio of {facts['mean_bsld_ratio']:.4f}", markup=False)
    table = table_of(found)
    parted = rows_of(table[table["why"].str.endswith("first")])
    if not parted:
        return
    out.print(
        f"\nThe schedules part {len(parted):,} times while the same jobs run in both, and other"
        " differences follow:"
    )
    shown = Table("job", "started by Slurm", "in the simulation", "difference", "why")
    for row in parted[:_SHOWN]:
        shown.add_row(*(f"{row[name]:,}" if name != "why" else row[name] for name in _TABLE))
    out.print(shown)
    if len(parted) > _SHOWN:
        out.print(f"and {len(parted) - _SHOWN:,} more; --jobs FILE has all")
