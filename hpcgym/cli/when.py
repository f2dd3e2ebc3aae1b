"""``hpcgym when``: when jobs start that wait, or that may be submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import loading
from hpcgym.cli.groups import Option
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.running import explained
from hpcgym.cli.tables import Format, Sheet, of_frame, of_rows, rows_of, show
from hpcgym.errors import HpcgymError
from hpcgym.progress import counting, working
from hpcgym.units import duration, seconds_of
from hpcgym.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.forecasting import Forecast, MachineState, StartForecast
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.slurm.looks import SeenJob
    from hpcgym.workload.io.batch_scripts import BatchJob

#: Futures with a greater share of the error of recent waits alone are not to be trusted.
_TRUSTED = 0.8
#: Of starts that a 95 % interval does not hold so often, only the medians are.
_HELD = 0.88
#: With fewer jobs that have ended little is known of how long jobs run.
_FEW = 200
#: Methods with a smaller weight in the pool are not named.
_WEIGHS = 0.2
#: Times that jobs may request in place of longer ones [s], and how many of these --shapes tries.
_ROUND = (900, 1800, *(3600 * hours for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168)))
_TRIES = 4
#: How many futures are simulated; and how many where more jobs than that wait under Slurm's
#: backfilling: the CRPS of 16 is 2 % worse on KTH-SP2 under EASY.
_FUTURES, _FEW_FUTURES, _MANY_WAIT = 64, 16, 500


def time_limit(text: str) -> int:
    """Return the seconds of a time limit as sbatch takes it, or with units."""
    from hpcgym.workload.io.batch_scripts import limit_of_sbatch

    with suppress(ValueError):
        return limit_of_sbatch(text)
    seconds = seconds_of(text)
    if seconds is None or not 1 <= seconds < 2**31 or seconds != int(seconds):
        raise click.BadParameter(f"{text!r} is no time limit such as 4:00:00, 90 (minutes) or 4h")
    return int(seconds)


@explained()
def when(
    *,
    job: str | None = None,
    source: Annotated[str | None, Option("--log")] = None,
    at: Annotated[Any, Option("--at", type=loading.time_of_log)] = None,
    past: str | None = None,
    backtest: str | None = None,
    by: str | None = None,
    tasks: Annotated[int | None, Option("-n", "--tasks")] = None,
    limit: Annotated[Any, Option("-t", "--time", type=time_limit)] = None,
    user: str | None = None,
    partition: Annotated[str | None, Option("-p", "--partition")] = None,
    shapes: bool = False,
    scheduler: str | None = None,
    reading: loading.MachineReading,
    moments: int = 200,
    truth: str = "simulated",
    futures: int | None = None,
    seed: int = 0,
    format: Format = Format.table,
) -> None:
    """Say when waiting jobs start, or one that may be submitted: on your Slurm, or by a log.

    Without --log it asks the Slurm that this machine talks to, and never changes anything there:
    squeue, sinfo, sdiag and scontrol show. Without JOB it shows your own waiting jobs.

    It simulates what may come, many times: each job that runs or waits runs as long as jobs like
    it have run, jobs come as in past weeks, and the rules of --scheduler say which start. It
    prints how long from then the job has started in 10, 50 and 90 % of these futures: so it starts
    between the first and the last with a chance of 80 %, as far as the rules are those of the
    site. It looks at nothing that nobody knew then: no run time of a job that had not ended, and
    no job that came later.

    Arguments
    ---------
    job JOB|SCRIPT : The number of a waiting job, as in the log, or a batch script that has not been
        submitted yet, whose #SBATCH lines are read: tasks and their processors, nodes, the time,
        the partition, and GPUs, other generic resources and memory where the log tells of them. The
        output names the options that are not looked at. Without it all waiting jobs are shown.

    Workload
    --------
    source WORKLOAD : The log, as hpcgym simulate takes it, with recorded waits and run times. It
        may be of now: jobs that are RUNNING or PENDING in a dump of sacct run or wait.
    at TIME : What is known just before this time: in seconds of the log's clock, 84d or
        2024-03-05T08:00.
    past FILE : Of Slurm: jobs that have ended, such as of sacct -P, from which run times and jobs
        to come are learned. Otherwise only those that Slurm remembers are known.
    backtest WORKLOAD : Say how good forecasts would have been at many submissions of this log, in
        place of --log: beside requested times, medians, recent waits alone, what boosting learns,
        and a pool of these.

    Scheduler
    ---------
    scheduler NAME : The site's rules: a name (hpcgym list schedulers), or a file: TOML, or a
        slurm.conf, with QOS and accounts as slurm.conf:qos=qos.txt+assoc=assoc.txt. [default: easy;
        of Slurm its own slurm.conf]

    Experiment
    ----------
    by TIME : Also say how likely it is that a job has started by then: a time of day as 18:00 or
        'Tue 18:00', the next one; a date as 2024-05-03T18:00; how long from now, 6h; or seconds of
        the log's clock.
    tasks N : Ask for a job that is not there yet, of so many processors; with --time.
    limit TIME : The time that this job requests, as sbatch takes it: 4:00:00, 90 (minutes),
        UNLIMITED, or 4h; in place of that of a script.
    user USER : Whose job this is, by name or by the log's number: what they have used, their limits
        and how long their jobs run count. Of Slurm, without JOB, whose jobs are shown. [default:
        nobody known; of Slurm you]
    partition NAME : The partition that this job asks for; in place of that of a script. [default:
        the machine's default partition]
    shapes : Say what asking for less would save: how much earlier the job starts, in 10, 50 and
        90 % of the same futures, if it requests less time, and how likely a job like it ends
        within that.
    moments N : How many submissions --backtest tries in each half of the log; those of the first
        recalibrate those of the second.
    truth simulated|recorded : Whether the waits of --backtest are those of the rules, or those that
        the log recorded, whose rules are then only supposed.
    futures N : How many futures are simulated. [default: 64; 16 where more than 500 jobs wait under
        Slurm's backfilling, which plans them all anew again and again]
    seed N : Of all draws: the same seed says the same.

    Output
    ------
    format table|json|csv|markdown|latex : How to print the result; times are in seconds of the
        log's clock in json and csv.

    Examples
    --------
    hpcgym when --past sacct.txt
    hpcgym when 4034 --past sacct.txt --by 18:00
    hpcgym when --log KTH-SP2 --at 84d --scheduler easy
    hpcgym when 5555 --log KTH-SP2 --at 84d --by 18:00
    hpcgym when --log KTH-SP2 --at 84d -n 64 -t 4:00:00 --by 12h
    hpcgym when job.sh --log KTH-SP2 --at 84d
    hpcgym when job.sh --log KTH-SP2 --at 84d --shapes
    hpcgym when --backtest KTH-SP2 --scheduler easy --moments 500
    hpcgym when --log jobs.txt --at 2024-03-05T08:00 --cluster slurm.conf --scheduler slurm.conf
        --format json
    """
    from hpcgym.forecasting.forecasts import forecast
    from hpcgym.forecasting.state import snapshot
    from hpcgym.workload.io.batch_scripts import read_batch_script

    if backtest is not None:
        asked = {"JOB": job, "--log": source, "--at": at, "--by": by, "-n": tasks, "-t": limit}
        asked |= {"--shapes": shapes or None, "--user": user, "--partition": partition}
        for option, value in (asked | {"--past": past}).items():
            if value is not None:
                raise click.BadParameter("not with --backtest", param_hint=f"'{option}'")
        rules = rules_of(scheduler or "easy", reading.given())
        futures = futures or _FUTURES
        return _backtest(backtest, rules, reading, moments, futures, seed, truth, format)
    is_live = source is None and at is None
    if not is_live and (source is None or at is None):
        raise click.UsageError("give --log and --at, or neither: then Slurm is asked")
    if past is not None and not is_live:
        raise click.BadParameter("it is of Slurm: --log has its own", param_hint="'--past'")
    is_script = job is not None and not _JOB.fullmatch(job)
    if not is_script and (tasks is None) != (limit is None):
        raise click.BadParameter("a job that is not there yet has both", param_hint="'-n' / '-t'")
    if tasks is not None and job is not None:
        raise click.BadParameter("either a waiting job or a new one", param_hint="'JOB' / '-n'")
    whose_jobs = is_live and job is None and partition is None
    for option, value in (("--user", user), ("--partition", partition)):
        if value is not None and tasks is None and not is_script and not whose_jobs:
            raise click.BadParameter("it is of a new job: give -n and -t, too", param_hint=option)
    if shapes and tasks is None and job is None:
        raise click.BadParameter("of which job? give JOB, SCRIPT or -n", param_hint="'--shapes'")
    if shapes and by is not None:
        why = "--shapes tells how much earlier the job starts, and not by when; ask for one of them"
        raise click.BadParameter(why, param_hint="'--by'")
    if source is None:
        with working("asking Slurm"):
            state, scheduler = _of_slurm(past, reading, scheduler)
        rules = rules_of(scheduler, reading.given())
        jobs = state.jobs
        shown_user = user or _me()
    else:
        shown_user = None
        scheduler = scheduler or "easy"
        rules = rules_of(scheduler, reading.given())
        if reading.clean == "default":  # jobs that have not ended are what this is about
            reading = replace(reading, clean="unfinished")
        jobs = reading.load(source, schedulers=[rules])
        state = snapshot(jobs, at, cluster=reading.machine)
    number = None if job is None or is_script else _number_of(job, state)
    futures = _futures_of(state, rules) if futures is None else futures
    forecasts = forecast(state, rules, futures=futures, seed=seed)
    lines = [_title(forecasts, scheduler), *_about_slurm(state)]
    unread, per_unit = {}, None
    if is_script:
        script = read_batch_script(str(job), jobs.per_unit, forecasts.partitions)
        limit, per_unit = limit or script.requested, script.per_unit
        partition = partition or script.partition
        if limit is None:
            raise click.BadParameter(f"{job} has no --time: give -t", param_hint="'SCRIPT'")
        tasks = script.units * per_unit["core"]
        lines.append(_said(str(job), script, limit))
        unread = {"not_looked_at": " ".join(script.unread)}
    if user is None and shown_user in forecasts.users:  # who is new to this Slurm is nobody known
        user = shown_user
    elif is_live and user is None and tasks is not None:
        lines.append(f"no job of {shown_user} is known: as if it were of nobody known")
    whose: dict[str, Any] = {"user": user, "partition": partition}
    with working(f"simulating {futures:,} futures"):
        if shapes:
            if tasks is not None:
                table = forecasts.shapes(
                    [tasks], [limit, *_less(limit)], **whose, per_unit=per_unit
                )
            else:
                now = int(jobs.requested_time[(jobs.job_number == number).argmax()])
                table = forecasts.shorter(number or 0, _less(now))
            rows = [_shape(row, state.time) | unread for row in rows_of(table)]
            return show(format, lambda: _saving(forecasts, rows, lines), lambda: rows)
        if tasks is not None:
            new = forecasts.if_submitted(tasks, limit, **whose, per_unit=per_unit)
            starts: dict[int | None, StartForecast] = {None: new}
        else:
            waiting = _waiting(state, shown_user)
            starts = {of: forecasts.of(of) for of in (waiting if number is None else [number])}
    rows = [_row(name, of_job, forecasts, by) | unread for name, of_job in starts.items()]
    if number is not None:
        most = forecasts.depends_on(number).iloc[0] if forecasts.why(number) else None
        rows[0]["depends_on"] = None if most is None else int(most.job)
        rows[0]["depends_share"] = None if most is None else float(most.share)
        rows[0]["depends_correlation"] = None if most is None else float(most.correlation)
    if not starts:
        others = f" of {shown_user} waits; --user NAME shows another's" if is_live else " waits"
        lines.append(f"no job{others}")
    show(format, lambda: _sheet(forecasts, list(starts.values()), rows, by, lines), lambda: rows)


#: A job's number, with that of a task of an array.
_JOB = re.compile(r"\d+(_\d+)?")


def _futures_of(state: MachineState, rules: Scheduler) -> int:
    """Return how many futures are simulated, if nobody says it."""
    many = int((~state.running).sum()) > _MANY_WAIT and rules.reserve.slurm is not None
    return _FEW_FUTURES if many else _FUTURES


def _of_slurm(
    past: str | None, reading: loading.MachineReading, scheduler: str | None
) -> tuple[MachineState, str]:
    """Return what Slurm tells now, and the rules: its own, if no others are given."""
    from hpcgym.forecasting.state import SlurmStates
    from hpcgym.slurm.programs import SlurmPrograms

    try:
        states = SlurmStates(SlurmPrograms(), reading.machine, past)
        if scheduler is None and states.machine.conf is None:
            raise click.UsageError("the slurm.conf of this Slurm cannot be read: give --scheduler")
        return states.now(), scheduler or str(states.machine.conf)
    except HpcgymError as error:
        raise HpcgymError(f"{error}; where there is no Slurm give --log and --at") from error


def _me() -> str:
    """Return the name of who runs this."""
    from getpass import getuser

    return getuser()


def _number_of(job: str, state: MachineState) -> int:
    """Return the number of a waiting job; of Slurm a task of an array has one too."""
    if state.look is None:
        if "_" in job:
            raise click.BadParameter("a log has numbers of jobs", param_hint="'JOB'")
        return int(job)
    seen = next((seen for seen in state.look.jobs if seen.label == job), None)
    if seen is None or not seen.waits:
        raise HpcgymError(f"job {job} {'runs' if seen else 'is not in the queue'}")
    if seen.is_held:
        raise HpcgymError(f"job {job} does not wait for room: {seen.reason}")
    return seen.told.number


def _waiting(state: MachineState, user: str | None) -> list[int]:
    """Return the numbers of the jobs that wait, of one user or of all."""
    from hpcgym.workload.io.swf_header import names_of

    jobs = state.jobs.take(~state.running)
    every: list[int] = jobs.job_number.tolist()
    if user is None:
        return every
    names = names_of(jobs, "user_id")
    numbers = zip(every, jobs.user_id.tolist(), strict=True)
    return [number for number, of in numbers if names.get(of) == user]


def _about_slurm(state: MachineState) -> list[str]:
    """Return what else is to be said of a state of Slurm: who is left out, how much is known."""
    if state.look is None:
        return []
    from hpcgym.slurm.present import left_out

    lines = [text] if (text := left_out(state.look)) else []
    lines += [f"{counted(n, 'job')} {why}" for why, n in state.jobs.cleaning.items() if n]
    if len(state.past) < _FEW:
        known = counted(len(state.past), "job")
        lines.append(f"{known} known that ended: --past, as of sacct -P, tells of more")
    return lines


def _said(name: str, script: BatchJob, limit: int) -> str:
    """Return what a script asks for, as far as it is looked at, and what is not."""
    each = ", ".join(f"{number:,} {resource}" for resource, number in script.per_unit.items())
    text = f"{name}: {counted(script.units, 'part')} of {each}; {duration(limit)}"
    names = (f"-{name}" if len(name) == 1 else f"--{name}" for name in script.unread)
    return f"{text}; not looked at: {', '.join(names)}" if script.unread else text


def _less(limit: int) -> list[int]:
    """Return the times to request in place of a longer one [s]."""
    return [time for time in _ROUND if time < limit][: -_TRIES - 1 : -1]


def _shape(row: Mapping[str, Any], time: int) -> dict[str, Any]:
    """Return what one request would save, in full."""
    seconds = {f"p{k}_s": time + row[f"p{k}"] for k in (10, 50, 90)}
    seconds |= {f"earlier_p{k}_s": row[f"earlier_p{k}"] for k in (10, 50, 90)}
    asked = {"processors": row["processors"], "requested_s": row["requested"], "time_s": time}
    known = {name: x if isfinite(x) else None for name, x in seconds.items()}
    return {**asked, **known, "ends": row["ends"]}


def _saving(forecasts: Forecast, rows: list[dict[str, Any]], lines: Sequence[str]) -> Sheet:
    """Return what people see of shapes: a table, and the one that saves most in a sentence."""
    table = [
        {
            "requested": duration(row["requested_s"]),
            "starts in, 50 %": _in(row["p50_s"], forecasts.state.time),
            **{f"earlier, {k} %": _earlier(row[f"earlier_p{k}_s"]) for k in (10, 50, 90)},
            "ends by then": f"{row['ends']:.0%}",
        }
        for row in rows
    ]
    # None: it would never start otherwise
    best = max(rows, key=lambda row: (row["earlier_p50_s"] is None, row["earlier_p50_s"] or 0))
    low, median, high = (_earlier(best[f"earlier_p{k}_s"]) for k in (10, 50, 90))
    if best["earlier_p50_s"] == 0:
        said = "asking for less time saves nothing in half of the futures or more"
    else:
        said = f"ask for {duration(best['requested_s'])} instead of"
        said += f" {duration(rows[0]['requested_s'])}: {median} earlier, 80 %: {low} to {high};"
        said += f" {best['ends']:.0%} of such jobs end by then"
    return Sheet(lines, [of_rows(table)], [said])


def _backtest(
    source: str,
    rules: Scheduler,
    reading: loading.MachineReading,
    moments: int,
    futures: int,
    seed: int,
    truth: str,
    format: Format,
) -> None:
    """Print how good forecasts would have been, and in a sentence whether to trust them."""
    from hpcgym.baselines.labels import scheduler_name
    from hpcgym.forecasting.backtests import backtest

    jobs = reading.load(source, schedulers=[rules])
    table = backtest(
        jobs,
        rules,
        moments=moments,
        futures=futures,
        seed=seed,
        truth=truth,
        cluster=reading.machine,
        progress=counting,
    )
    scored = table.set_index("method")
    share = scored.crps["futures"] / scored.crps["recent"]
    by = scheduler_name(rules)
    held = float(scored.coverage_95["futures"])
    if share > _TRUSTED:
        said = f"the rules of {by} do not explain these waits"
        said += f": futures have {share:.2f} of the error of recent waits alone"
    else:
        trusted = "trust it" if held >= _HELD else "trust the medians, not the chances"
        said = f"{trusted}: futures by {by} have {share:.2f} of the error of recent waits alone,"
        said += f" and their 95 % intervals held {held:.0%}"
    said += f"; what has been best so far: {_most_trusted(table)}"
    if truth == "simulated":
        said += "; the waits are those of the rules themselves, --truth recorded takes the log's"
    title = f"{jobs.name}: starts forecast at {counted(int(table.moments[0]), 'submission')}"
    show(format, lambda: Sheet([title], [of_frame(table.round(3))], [said]), lambda: rows_of(table))


def _most_trusted(table: pd.DataFrame) -> str:
    """Return the methods that a pool trusts most, in words."""
    ranked = table.sort_values("weight", ascending=False, kind="stable")
    shown = ranked[ranked.weight >= _WEIGHS] if ranked.weight.max() >= _WEIGHS else ranked[:1]
    each = zip(shown.method, shown.weight, strict=True)
    return " and ".join(f"{method} ({weight:.0%} of the pool)" for method, weight in each)


def _row(
    job: int | None, starts: StartForecast, forecasts: Forecast, by: str | None
) -> dict[str, Any]:
    """Return what is known of the start of a job, in full; ``job`` is None of a new one."""
    from hpcgym.workload.io.swf_header import names_of

    jobs, row = forecasts.state.jobs, dict[str, Any](job=job)
    seen = _seen(job, forecasts.state)
    if seen is not None and not seen.label.isdecimal():
        row["job"] = seen.label
    if job is not None:
        k = int((jobs.job_number == job).argmax())
        user = int(jobs.user_id[k])
        row |= {
            "user": names_of(jobs, "user_id").get(user, user),
            "processors": int(jobs.requested_processors[k]),
            "requested_s": int(jobs.requested_time[k]),
            "waited_s": forecasts.state.time - int(jobs.submit_time[k]),
        }
    low, median, high = (None if x == float("inf") else x for x in starts.quantiles().tolist())
    row |= {"time_s": forecasts.state.time, "p10_s": low, "p50_s": median, "p90_s": high}
    if seen is not None:
        row["slurm_s"] = seen.planned if seen.planned >= 0 else None
    return row if by is None else row | {"by_s": starts.second_of(by), "by": starts.by(by)}


def _seen(job: int | None, state: MachineState) -> SeenJob | None:
    """Return what Slurm told of a job; None where it is a log's, or new."""
    jobs = [] if state.look is None else state.look.jobs
    return next((seen for seen in jobs if seen.told.number == job), None)


def _title(forecasts: Forecast, scheduler: str) -> str:
    """Return what the machine does, and by what futures: by rules as they were given."""
    state = forecasts.state
    running = int(state.running.sum())
    busy = int(state.jobs.requested_processors[state.running].sum())
    return (
        f"{state.jobs.name}: {counted(running, 'job')} on {busy:,} of"
        f" {state.cluster.processors:,} processors, {len(state.jobs) - running:,} waiting;"
        f" {counted(forecasts.futures, 'future')} by {scheduler}"
    )


def _sheet(
    forecasts: Forecast,
    starts: list[StartForecast],
    rows: list[dict[str, Any]],
    by: str | None,
    lines: Sequence[str],
) -> Sheet:
    """Return what people see: a sentence of one job, a table of several."""
    state = forecasts.state
    if not starts:
        return Sheet(lines, [])
    if len(starts) > 1:
        return Sheet(lines, [of_rows([_shown(row, state.time, by) for row in rows])])
    (row,) = rows
    called = "such a job" if row["job"] is None else f"job {row['job']}"
    low, median, high = (_in(row[name], state.time) for name in ("p10_s", "p50_s", "p90_s"))
    lines = [*lines, f"{called} starts in {median}; 80 %: in {low} to {high}"]
    if (planned := row.get("slurm_s")) is not None:
        lines.append(f"by requested times Slurm plans it in {_in(planned, state.time)}")
    if row["job"] is not None and (why := forecasts.why(starts[0].job)):
        lines.append(why)
    if by is not None:
        lines.append(f"by {by}: {row['by']:.0%}")
    return Sheet(lines, [])


def _shown(row: dict[str, Any], time: int, by: str | None) -> dict[str, Any]:
    """Return a row of the table that people see."""
    names = {"p10_s": "10 %", "p50_s": "50 %", "p90_s": "90 %"}
    shown = {name: str(row[name]) for name in ("job", "user")}
    shown |= {"processors": row["processors"], "requested": duration(row["requested_s"])}
    shown |= {"waited": duration(row["waited_s"])}
    shown |= {f"starts in, {name}": _in(row[key], time) for key, name in names.items()}
    if "slurm_s" in row:
        planned = row["slurm_s"]
        shown["Slurm plans"] = "" if planned is None else _in(planned, time)
    return shown if by is None else shown | {f"by {by}": f"{row['by']:.0%}"}


def _in(second: float | None, time: int) -> str:
    """Return how long it is from a time to a second of the clock, in words."""
    return "never" if second is None else duration(max(second - time, 0))


def _earlier(saved: float | None) -> str:
    """Return how much earlier a job starts, in words; None: it would never start."""
    return "from never" if saved is None else duration(saved)
