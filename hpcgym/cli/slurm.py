"""``hpcgym replay`` and ``hpcgym drive``: a real Slurm, beside a simulation or led by a policy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from hpcgym.cli import loading, output
from hpcgym.cli.files import SCHEDULE, Written
from hpcgym.cli.groups import Option
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.options import given_rules
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Format, Sheet, of_rows, rows_of, show
from hpcgym.errors import HpcgymError, HpcgymWarning, NoJobError, check_choice, warn_caller
from hpcgym.files.recorded import write_beside
from hpcgym.files.writing import is_stream
from hpcgym.progress import counting
from hpcgym.report.cells import Table
from hpcgym.units import whole_seconds

if TYPE_CHECKING:
    from hpcgym.drive import DrivenPass
    from hpcgym.replay import Replay
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload

# --- ``hpcgym replay`` ----------------------------------------------------------------------------

_SYSTEMS = ("slurm",)
_TABLE = ("job_number", "start_time", "simulated_start_time", "difference")
_SHOWN = 10  # jobs


@explained()
def replay(
    workload: str,
    *,
    on: str,
    scheduler: str = "fcfs",
    quota: str | None = None,
    maintenance: str | None = None,
    reading: loading.WeekReading,
    output_file: Annotated[Path | None, Option("--output"), SCHEDULE] = None,
    jobs: Annotated[Path | None, Written("comparison", (".csv", ".json"))] = None,
    how: output.ResultOptions,
) -> None:
    """Run a workload on an unmodified Slurm, and compare its schedule with the simulated one.

    slurmctld and slurmd run on loopback; jobs sleep for their run times. Their clock jumps from
    event to event, a hundred times as fast as real time and more. They are always stopped and
    removed at the end. Replays need Linux, Slurm and a C compiler: apt-get install slurmctld slurmd
    slurm-client gcc libc6-dev.

    Without --cluster Slurm has one node with all processors. Its backfilling reserves whole nodes:
    --cluster 100x1x1 has a node for each of 100 processors.

    Options
    -------
    on slurm : What makes the schedule: slurm, a private one on loopback.

    Scheduler
    ---------
    scheduler NAME : What Slurm is set to: fcfs, or easy with backfill until-shadow or slurm, as in
        easy:backfill=slurm:bf_interval=60. Another policy drives it, as in saf:backfill=none: it
        sets the priorities at each event. Or a slurm.conf, which has the partitions too; it is then
        the --cluster as well. slurm.conf:qos=qos.txt also has what sacctmgr -P show qos printed.
    quota user:jobs=10|...|FILE|none : How many jobs or processors may run at once, of all, of each
        user, of a queue, or of each user of one: limits of accounts and QOS in Slurm.
    maintenance BEGIN/END|...|FILE|none : When the machine, or :nodes=0-3 of it, is closed to jobs:
        reservations for maintenance in Slurm.

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
    more = given_rules(quota=quota, maintenance=maintenance)
    chosen = rules_of(scheduler, given | more)
    loaded = reading.load(workload)

    from hpcgym.machine.slurm.lines import files_of
    from hpcgym.replay import facts_of, replay_on_slurm, table_of

    with counting("replaying", len(loaded) + 1) as step:
        # a file of Slurm is given to it as it is
        rules: Any = scheduler if files_of(scheduler) and not given else chosen
        machine = reading.machine
        replayed = replay_on_slurm(loaded, rules, cluster=machine, restrictions=more, step=step)
    output.save_schedule(on, replayed.replayed, output_file)
    if jobs is not None:
        _write_jobs(replayed, jobs)
    cluster = reading.machine
    results = _schedules(replayed)

    def facts() -> dict[str, Any]:
        return {
            **output.workload_facts(replayed.replayed.workload, reading.clean),
            **output.machine_facts(loaded, cluster),
            "differences": facts_of(replayed),
            "parted": [row for row in rows_of(table_of(replayed)) if row["why"].endswith("first")],
            "results": [output.result_facts(name, result) for name, result in results.items()],
        }

    how.show(
        output.of_schedules(
            results,
            lambda: _replayed(replayed),
            lambda: [
                output.csv_row(r.workload, cluster, name, r, {}) for name, r in results.items()
            ],
            facts,
        )
    )


def _schedules(replayed: Replay) -> dict[str, Any]:
    """Return both schedules by name."""
    return {replayed.replayed.replayed_on: replayed.replayed, "simulated": replayed.simulated}


def _write_jobs(replayed: Replay, path: Path) -> None:
    """Write both schedules job by job, with where they are from in a file beside."""
    from hpcgym.files.writing import csv_text, json_text, whole_text
    from hpcgym.replay import table_of
    from hpcgym.schedule.provenance import provenance_of

    rows = rows_of(table_of(replayed))
    with whole_text(path) as file:
        file.write(json_text(rows) if path.suffix.casefold() == ".json" else csv_text(rows))
    if not is_stream(path):
        write_beside(path, provenance_of(_schedules(replayed)))
    note(f"wrote {path}")


def _replayed(replayed: Replay) -> Sheet:
    """Return for people what differs, and where both schedules part."""
    from hpcgym.baselines.labels import describe
    from hpcgym.replay import facts_of, table_of
    from hpcgym.report.tables import metrics_of, rich_comparison, subtitle

    results, facts = _schedules(replayed), facts_of(replayed)
    above = [subtitle(results), describe(replayed.simulated.scheduler)]
    above += output.cleaning_of(replayed.replayed.workload)
    tables = [metrics_of(results)]
    below = [
        f"{facts['same_starts']:.1%} of {facts['jobs']:,} jobs start at the same second in both,"
        f" {facts['close_starts']:.1%} at most 60 s apart; the largest difference is"
        f" {facts['largest_difference_s']:,} s",
        f"Slurm's mean bounded slowdown is {facts['mean_bsld_ratio']:.4f} times the simulated one",
    ]
    table = table_of(replayed)
    if parted := rows_of(table[table["why"].str.endswith("first")]):
        title = (
            f"Differences that begin while the same jobs run in both schedules, {len(parted):,};"
            " all others follow from these:"
        )
        headings = ("why", "job", "started by Slurm", "in the simulation", "difference")
        rows = [[row["why"], *(f"{row[column]:,}" for column in _TABLE)] for row in parted[:_SHOWN]]
        tables.append(Table(headings, rows, title=title))
        if len(parted) > _SHOWN:
            below.append(
                f"{len(parted) - _SHOWN:,} more such differences are in the file of --jobs"
            )
    return Sheet(above, tables, below, rich_comparison(results))


# --- ``hpcgym drive`` -----------------------------------------------------------------------------

_COLUMNS = (
    *("place", "job_number", "user", "requested_processors", "requested_time", "wait_time"),
    *("priority", "new"),
)


@explained()
def drive(
    *,
    policy: str,
    every: str = "60s",
    past: Path | None = None,
    follow: str | None = None,
    dry_run: bool = False,
    log: Annotated[Path | None, Written("log", (".jsonl",))] = None,
    format: Format = Format.table,
    force: bool = False,
) -> None:
    """Let a policy order the queue of the Slurm that this machine talks to.

    It asks squeue for the waiting jobs. With scontrol it sets the priorities of those whose places
    change. Slurm does all else, and jobs that are held stay held. It runs until Ctrl-C. When it
    ends, for whatever reason, the jobs whose priorities it set get Slurm's own again.

    To set priorities, you need the rights of an operator of Slurm.

    Options
    -------
    policy NAME|EXPRESSION|FILE : What orders the queue: a policy, an expression, a scheduler (its
        backfill_order has no effect), or an agent with learned weights, such as agent.json of
        hpcgym train xnes.
    every TIME : How often to look at the queue: 60s, 5min, 1h.
    past FILE : Jobs that have ended, such as the output of sacct -P: a policy that learns how long
        jobs run begins with these jobs. Otherwise it knows only jobs that end while the command
        runs. Dates without a zone are read as UTC: with SLURM_TIME_FORMAT=%s sacct prints seconds.
    follow TIME : So often compare the policies of the page of hpcgym twin with the present one over
        the same futures, and go over to the best if jobs wait less under it in at least 90 % of
        them: 1h. The machine and the other rules are those of Slurm's slurm.conf; give --past, too.
    dry_run : Print the order that would be set, set nothing, and end.

    Output
    ------
    log FILE : Write what is set, a line of JSON each time: .jsonl.

    Examples
    --------
    hpcgym drive --policy saf --dry-run
    hpcgym drive --policy agent.json --every 60s --log drive.jsonl
    hpcgym drive --policy 'wait - 0.1 * requested * processors'
    hpcgym drive --policy rule-es.toml --past sacct.txt
    hpcgym drive --policy fcfs --follow 1h --past sacct.txt
    """
    every_s = whole_seconds("--every", every, least=1)
    follow_s = None if follow is None else whole_seconds("--follow", follow, least=1)
    if dry_run and follow is not None:
        raise HpcgymError("--follow is of a queue that is driven, and --dry-run sets nothing")
    if dry_run and log is not None:
        raise HpcgymError("--log is of what is set, and --dry-run sets nothing: give one of them")

    from hpcgym.drive import drive as drive_slurm
    from hpcgym.drive import look
    from hpcgym.study.evaluation.policies import queue_order

    scheduler = queue_order(policy)
    ended = None if past is None else _ended(past, scheduler, follow is not None)
    if dry_run:
        asked = look(scheduler, ended)
        _tell_misread(asked, set())
        _show_queue(asked, format)
        return
    choose = _nothing_else if follow_s is None else _following(scheduler, follow_s, past)
    if log is None:
        drive_slurm(scheduler, every_s, _telling(None), ended, choose)
        return
    with log.open("w", buffering=1) as file:
        drive_slurm(scheduler, every_s, _telling(file), ended, choose)


def _nothing_else() -> None:
    """Return that no other policy is followed."""


def _following(
    scheduler: Scheduler, follow_s: int, past: Path | None
) -> Callable[[], Scheduler | None]:
    """Return what chooses a policy by the futures of this Slurm."""
    from hpcgym.forecasting.state import SlurmStates
    from hpcgym.slurm.programs import SlurmPrograms
    from hpcgym.twin.following import Follower

    states = SlurmStates(SlurmPrograms(), None, past)
    if states.machine.conf is None:
        raise HpcgymError("--follow: the slurm.conf of this Slurm cannot be read")
    rules = rules_of(str(states.machine.conf), {})
    return Follower(states, rules, scheduler, follow_s, note).choose


def _ended(past: Path, scheduler: Scheduler, follows: bool) -> Workload | None:
    """Return the jobs of a file, to learn from those that have ended; None: nothing to learn."""
    from hpcgym.drive.driving import looks_at, order_rules
    from hpcgym.machine.pool import MOST_PROCESSORS
    from hpcgym.slurm.queue import jobs_told
    from hpcgym.workload import load_workload

    if looks_at(order_rules(scheduler)) != "all":
        if follows:  # futures learn from it
            return None
        warn_caller(f"--past {past}: the policy looks at no job that has ended", HpcgymWarning)
        return None
    why = f"{past} holds no job that has ended"
    try:  # of any machine, and jobs without a limit are as those of the queue
        jobs = load_workload(past, processors=MOST_PROCESSORS, clean="none")
        if number := len(jobs_told(jobs)):
            note(f"{past}: {number:,} jobs, to learn how long those of each user run")
            return jobs
    except NoJobError as error:
        why = str(error)
    warn_caller(f"{why}: nothing is learned from it", HpcgymWarning)
    return None


def _telling(file: IO[str] | None) -> Callable[[DrivenPass], None]:
    """Return what tells people, and a log, what was done."""
    known: set[str] = set()

    def tell(asked: DrivenPass) -> None:
        _tell_misread(asked, known)
        at, waiting = time.strftime("%H:%M:%S", time.localtime(asked.time)), len(asked.order)
        note(f"{at}: {waiting:,} jobs wait; priorities set: {len(asked.changed):,}")
        if file is not None:
            row = {"time": asked.time, "waiting": waiting, "set": asked.changed}
            row["misread"] = len(asked.misread)
            file.write(f"{json.dumps(row)}\n")

    return tell


def _tell_misread(asked: DrivenPass, known: set[str]) -> None:
    """Tell people of jobs that are left alone, of each once: ``known``, by their ids, are told."""
    lines = {line.partition("|")[0]: line for line in asked.misread}
    if more := [job for job in lines if job not in known]:
        known.update(more)
        jobs = "1 job" if len(more) == 1 else f"{len(more):,} jobs"
        note(f"hpcgym: squeue is not understood of {jobs}, left alone: {lines[more[0]]!r}")


def _queue(asked: DrivenPass) -> list[dict[str, Any]]:
    """Return the queue in the order that a policy wants, a row a job."""
    from hpcgym.workload.io.swf_header import called, names_of

    queue, jobs = asked.queue, asked.queue.jobs
    users = names_of(jobs, "user_id")
    rows = []
    for place, row in enumerate(asked.order, 1):
        job, priority = queue.ids[row], int(queue.priority[row])
        cells = (
            *(place, int(job), called(users, "user", int(jobs.user_id[row]))),
            *(int(jobs.requested_processors[row]), int(jobs.requested_time[row])),
            *(asked.time - int(jobs.submit_time[row]), priority),
            asked.changed.get(job, priority),
        )
        rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    return rows


def _show_queue(asked: DrivenPass, format: Format) -> None:
    """Print the order that would be set."""
    rows = _queue(asked)
    facts = {"time": asked.time, "queue": rows}
    below = f"{len(rows):,} jobs wait; of {len(asked.changed):,} the priority would be set"
    sheet = Sheet([], [of_rows(rows)], [below]) if rows else Sheet(["No job waits."], [])
    show(format, lambda: sheet, lambda: rows, lambda: facts)
