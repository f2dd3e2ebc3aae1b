"""``hpcgym when``: when jobs start that wait, or that may be submitted."""

from __future__ import annotations

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
from hpcgym.progress import counting, working
from hpcgym.units import duration, seconds_of
from hpcgym.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.forecasting import Forecast, StartForecast
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.io.batch_scripts import BatchJob

#: Futures with a greater share of the error of recent waits alone are not to be trusted.
_TRUSTED = 0.8
#: Of starts that a 95 % interval does not hold so often, only the medians are.
_HELD = 0.88
#: Methods with a smaller weight in the pool are not named.
_WEIGHS = 0.2
#: Times that jobs may request in place of longer ones [s], and how many of these --shapes tries.
_ROUND = (900, 1800, *(3600 * hours for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168)))
_TRIES = 4


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
    backtest: str | None = None,
    by: str | None = None,
    tasks: Annotated[int | None, Option("-n", "--tasks")] = None,
    limit: Annotated[Any, Option("-t", "--time", type=time_limit)] = None,
    user: str | None = None,
    partition: Annotated[str | None, Option("-p", "--partition")] = None,
    shapes: bool = False,
    scheduler: str = "easy",
    reading: loading.MachineReading,
    moments: int = 200,
    truth: str = "simulated",
    futures: int = 64,
    seed: int = 0,
    format: Format = Format.table,
) -> None:
    """Say when waiting jobs start, or one that may be submitted, by what a log told at a time.

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
    backtest WORKLOAD : Say how good forecasts would have been at many submissions of this log, in
        place of --log: beside requested times, medians, recent waits alone, what boosting learns,
        and a pool of these.

    Scheduler
    ---------
    scheduler NAME : The site's rules: a name (hpcgym list schedulers), or a file: TOML, or a
        slurm.conf, with QOS and accounts as slurm.conf:qos=qos.txt+assoc=assoc.txt.

    Experiment
    ----------
    by TIME : Also say how likely it is that a job has started by then: a time of day as 18:00 or
        'Tue 18:00', the next one; a date as 2024-05-03T18:00; how long from now, 6h; or seconds of
        the log's clock.
    tasks N : Ask for a job that is not there yet, of so many processors; with --time.
    limit TIME : The time that this job requests, as sbatch takes it: 4:00:00, 90 (minutes),
        UNLIMITED, or 4h; in place of that of a script.
    user USER : Whose job this is, by name or by the log's number: what they have used, their limits
        and how long their jobs run count. [default: nobody known]
    partition NAME : The partition that this job asks for; in place of that of a script. [default:
        the machine's default partition]
    shapes : Say what asking for less would save: how much earlier the job starts, in 10, 50 and
        90 % of the same futures, if it requests less time, and how likely a job like it ends
        within that.
    moments N : How many submissions --backtest tries in each half of the log; those of the first
        recalibrate those of the second.
    truth simulated|recorded : Whether the waits of --backtest are those of the rules, or those that
        the log recorded, whose rules are then only supposed.
    futures N : How many futures are simulated.
    seed N : Of all draws: the same seed says the same.

    Output
    ------
    format table|json|csv|markdown|latex : How to print the result; times are in seconds of the
        log's clock in json and csv.

    Examples
    --------
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

    rules = rules_of(scheduler, reading.given())
    if backtest is not None:
        asked = {"JOB": job, "--log": source, "--at": at, "--by": by, "-n": tasks, "-t": limit}
        asked |= {"--shapes": shapes or None, "--user": user, "--partition": partition}
        for option, value in asked.items():
            if value is not None:
                raise click.BadParameter("not with --backtest", param_hint=f"'{option}'")
        return _backtest(backtest, rules, reading, moments, futures, seed, truth, format)
    if source is None or at is None:
        raise click.UsageError("give --log and --at, or --backtest")
    is_script = job is not None and not job.isdecimal()
    number = None if job is None or is_script else int(job)
    if not is_script and (tasks is None) != (limit is None):
        raise click.BadParameter("a job that is not there yet has both", param_hint="'-n' / '-t'")
    if tasks is not None and job is not None:
        raise click.BadParameter("either a waiting job or a new one", param_hint="'JOB' / '-n'")
    for option, value in (("--user", user), ("--partition", partition)):
        if value is not None and tasks is None and not is_script:
            raise click.BadParameter("it is of a new job: give -n and -t, too", param_hint=option)
    if shapes and tasks is None and job is None:
        raise click.BadParameter("of which job? give JOB, SCRIPT or -n", param_hint="'--shapes'")
    if shapes and by is not None:
        raise click.BadParameter("not with --shapes", param_hint="'--by'")
    if reading.clean == "default":  # jobs that have not ended are what this is about
        reading = replace(reading, clean="unfinished")
    jobs = reading.load(source, schedulers=[rules])
    state = snapshot(jobs, at, cluster=reading.machine)
    told = forecast(state, rules, futures=futures, seed=seed)
    lines = [_title(told, scheduler)]
    unread, per_unit = {}, None
    if is_script:
        script = read_batch_script(str(job), jobs.per_unit, told.partitions)
        limit, per_unit = limit or script.requested, script.per_unit
        partition = partition or script.partition
        if limit is None:
            raise click.BadParameter(f"{job} has no --time: give -t", param_hint="'SCRIPT'")
        tasks = script.units * per_unit["core"]
        lines.append(_said(str(job), script, limit))
        unread = {"not_looked_at": " ".join(script.unread)}
    whose: dict[str, Any] = {"user": user, "partition": partition}
    with working(f"simulating {futures:,} futures"):
        if shapes:
            if tasks is not None:
                table = told.shapes([tasks], [limit, *_less(limit)], **whose, per_unit=per_unit)
            else:
                now = int(jobs.requested_time[(jobs.job_number == number).argmax()])
                table = told.shorter(number or 0, _less(now))
            rows = [_shape(row, state.time) | unread for row in rows_of(table)]
            return show(format, lambda: _saving(told, rows, lines), lambda: rows)
        if tasks is not None:
            new = told.if_submitted(tasks, limit, **whose, per_unit=per_unit)
            starts: dict[int | None, StartForecast] = {None: new}
        else:
            waiting = state.jobs.job_number[~state.running].tolist()
            starts = {of: told.of(of) for of in (waiting if number is None else [number])}
    rows = [_row(name, of_job, told, by) | unread for name, of_job in starts.items()]
    if number is not None:
        most = told.depends_on(number).iloc[0] if told.why(number) else None
        rows[0]["depends_on"] = None if most is None else int(most.job)
        rows[0]["depends_share"] = None if most is None else float(most.share)
        rows[0]["depends_correlation"] = None if most is None else float(most.correlation)
    show(format, lambda: _sheet(told, list(starts.values()), rows, by, lines), lambda: rows)


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


def _saving(told: Forecast, rows: list[dict[str, Any]], lines: Sequence[str]) -> Sheet:
    """Return what people see of shapes: a table, and the one that saves most in a sentence."""
    table = [
        {
            "requested": duration(row["requested_s"]),
            "starts in, 50 %": _in(row["p50_s"], told.state.time),
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


def _row(job: int | None, starts: StartForecast, told: Forecast, by: str | None) -> dict[str, Any]:
    """Return what is known of the start of a job, in full; ``job`` is None of a new one."""
    from hpcgym.workload.io.swf_header import names_of

    jobs, row = told.state.jobs, dict[str, Any](job=job)
    if job is not None:
        k = int((jobs.job_number == job).argmax())
        user = int(jobs.user_id[k])
        row |= {
            "user": names_of(jobs, "user_id").get(user, user),
            "processors": int(jobs.requested_processors[k]),
            "requested_s": int(jobs.requested_time[k]),
            "waited_s": told.state.time - int(jobs.submit_time[k]),
        }
    low, median, high = (None if x == float("inf") else x for x in starts.quantiles().tolist())
    row |= {"time_s": told.state.time, "p10_s": low, "p50_s": median, "p90_s": high}
    return row if by is None else row | {"by_s": starts.second_of(by), "by": starts.by(by)}


def _title(told: Forecast, scheduler: str) -> str:
    """Return what the machine does, and by what futures: by rules as they were given."""
    state = told.state
    running = int(state.running.sum())
    busy = int(state.jobs.requested_processors[state.running].sum())
    return (
        f"{state.jobs.name}: {counted(running, 'job')} on {busy:,} of"
        f" {state.cluster.processors:,} processors, {len(state.jobs) - running:,} waiting;"
        f" {counted(told.futures, 'future')} by {scheduler}"
    )


def _sheet(
    told: Forecast,
    starts: list[StartForecast],
    rows: list[dict[str, Any]],
    by: str | None,
    lines: Sequence[str],
) -> Sheet:
    """Return what people see: a sentence of one job, a table of several."""
    state = told.state
    if not starts:
        return Sheet([*lines, "no job waits"], [])
    if len(starts) > 1:
        return Sheet(lines, [of_rows([_shown(row, state.time, by) for row in rows])])
    (row,) = rows
    called = "such a job" if row["job"] is None else f"job {row['job']}"
    low, median, high = (_in(row[name], state.time) for name in ("p10_s", "p50_s", "p90_s"))
    lines = [*lines, f"{called} starts in {median}; 80 %: in {low} to {high}"]
    if row["job"] is not None and (why := told.why(row["job"])):
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
    return shown if by is None else shown | {f"by {by}": f"{row['by']:.0%}"}


def _in(second: float | None, time: int) -> str:
    """Return how long it is from a time to a second of the clock, in words."""
    return "never" if second is None else duration(max(second - time, 0))


def _earlier(saved: float | None) -> str:
    """Return how much earlier a job starts, in words; None: it would never start."""
    return "from never" if saved is None else duration(saved)
