"""``hpcgym when``: when jobs start that wait, or that may be submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from hpcgym.cli import loading
from hpcgym.cli.groups import Option
from hpcgym.cli.lineup import rules_of
from hpcgym.cli.running import explained
from hpcgym.cli.tables import Format, Sheet, of_frame, of_rows, rows_of, show
from hpcgym.progress import counting, working
from hpcgym.units import ARGUMENT, OF_SLURM, duration, seconds_of
from hpcgym.words import counted

if TYPE_CHECKING:
    from hpcgym.forecasting import Forecast, StartForecast
    from hpcgym.scheduler.rules import Scheduler

#: Futures with a greater share of the error of recent waits alone are not to be trusted.
_TRUSTED = 0.8


def time_limit(text: str) -> int:
    """Return the seconds of a time limit as sbatch takes it, or with units."""
    seconds = seconds_of(text, OF_SLURM)
    if seconds is None:
        seconds = seconds_of(text, ARGUMENT)
    if seconds is None or not 1 <= seconds < 2**31 or seconds != int(seconds):
        raise click.BadParameter(f"{text!r} is no time limit such as 4:00:00, 90 (minutes) or 4h")
    return int(seconds)


@explained()
def when(
    *,
    job: int | None = None,
    source: Annotated[str | None, Option("--log")] = None,
    at: Annotated[Any, Option("--at", type=loading.time_of_log)] = None,
    backtest: str | None = None,
    by: str | None = None,
    tasks: Annotated[int | None, Option("-n", "--tasks")] = None,
    limit: Annotated[Any, Option("-t", "--time", type=time_limit)] = None,
    user: int | None = None,
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
    job JOB : The number of a waiting job, as in the log; without it all waiting jobs are shown.

    Workload
    --------
    source WORKLOAD : The log, as hpcgym simulate takes it, with recorded waits and run times.
    at TIME : What is known just before this time: in seconds of the log's clock, 84d or
        2024-03-05T08:00.
    backtest WORKLOAD : Say how good forecasts would have been at many submissions of this log, in
        place of --log: beside requested times, medians and recent waits alone.

    Scheduler
    ---------
    scheduler NAME : The site's rules: a name (hpcgym list schedulers), or a file: TOML, or a
        slurm.conf, with QOS and accounts as slurm.conf:qos=qos.txt+assoc=assoc.txt.

    Experiment
    ----------
    by TIME : Also say how likely it is that a job has started by then: a time of day as 18:00, the
        next one; how long from now, 6h; or seconds of the log's clock.
    tasks N : Ask for a job that is not there yet, of so many processors; with --time.
    limit TIME : The time that this job requests, as sbatch takes it: 4:00:00, 90 (minutes), or 4h.
    user N : Whose job this is, by the log's number of users: what they have used, their limits and
        how long their jobs run count. [default: nobody known]
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
    hpcgym when --backtest KTH-SP2 --scheduler easy --moments 500
    hpcgym when --log jobs.txt --at 2024-03-05T08:00 --cluster slurm.conf --scheduler slurm.conf
        --format json
    """
    from hpcgym.forecasting.forecasts import forecast
    from hpcgym.forecasting.state import snapshot

    rules = rules_of(scheduler, reading.given())
    if backtest is not None:
        asked = {"JOB": job, "--log": source, "--at": at, "--by": by, "-n": tasks, "-t": limit}
        for option, value in asked.items():
            if value is not None:
                raise click.BadParameter("not with --backtest", param_hint=f"'{option}'")
        return _backtest(backtest, rules, reading, moments, futures, seed, truth, format)
    if source is None or at is None:
        raise click.UsageError("give --log and --at, or --backtest")
    if (tasks is None) != (limit is None):
        raise click.BadParameter("a job that is not there yet has both", param_hint="'-n' / '-t'")
    if tasks is not None and job is not None:
        raise click.BadParameter("either a waiting job or a new one", param_hint="'JOB' / '-n'")
    if user is not None and tasks is None:
        raise click.BadParameter("it is of a new job: give -n and -t, too", param_hint="'--user'")
    jobs = reading.load(source, schedulers=[rules])
    state = snapshot(jobs, at, cluster=reading.machine)
    told = forecast(state, rules, futures=futures, seed=seed)
    with working(f"simulating {futures:,} futures"):
        if tasks is not None:
            starts: dict[Any, StartForecast] = {"": told.if_submitted(tasks, limit, user=user)}
        else:
            numbers = state.jobs.job_number[~state.running].tolist() if job is None else [job]
            starts = {number: told.of(number) for number in numbers}
    rows = [_row(number, of_job, told, by) for number, of_job in starts.items()]
    show(format, lambda: _sheet(told, list(starts.values()), rows, by), lambda: rows)


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
    score = table.set_index("method")["crps"]
    share = score["futures"] / score["recent"]
    by = scheduler_name(rules)
    if share > _TRUSTED:
        said = f"the rules of {by} do not explain these waits"
        said += f": futures have {share:.2f} of the error of recent waits alone"
    else:
        said = f"trust it: futures by {by} have {share:.2f} of the error of recent waits alone"
    if truth == "simulated":
        said += "; the waits are those of the rules themselves, --truth recorded takes the log's"
    title = f"{jobs.name}: starts forecast at {counted(int(table.moments[0]), 'submission')}"
    show(format, lambda: Sheet([title], [of_frame(table.round(3))], [said]), lambda: rows_of(table))


def _row(job: Any, starts: StartForecast, told: Forecast, by: str | None) -> dict[str, Any]:
    """Return what is known of the start of a job, in full; ``job`` is "" of a new one."""
    jobs, row = told.state.jobs, {"job": job}
    if job != "":
        k = int((jobs.job_number == job).argmax())
        row |= {
            "user": int(jobs.user_id[k]),
            "processors": int(jobs.requested_processors[k]),
            "requested_s": int(jobs.requested_time[k]),
            "waited_s": told.state.time - int(jobs.submit_time[k]),
        }
    low, median, high = (None if x == float("inf") else x for x in starts.quantiles().tolist())
    row |= {"time_s": told.state.time, "p10_s": low, "p50_s": median, "p90_s": high}
    return row if by is None else row | {"by_s": starts.second_of(by), "by": starts.by(by)}


def _sheet(
    told: Forecast, starts: list[StartForecast], rows: list[dict[str, Any]], by: str | None
) -> Sheet:
    """Return what people see: a sentence of one job, a table of several."""
    from hpcgym.baselines.labels import scheduler_name

    state = told.state
    running = int(state.running.sum())
    busy = int(state.jobs.requested_processors[state.running].sum())
    title = (
        f"{state.jobs.name}: {counted(running, 'job')} on {busy:,} of"
        f" {state.cluster.processors:,} processors, {len(state.jobs) - running:,} waiting;"
        f" {counted(told.futures, 'future')} by {scheduler_name(told.scheduler)}"
    )
    if not starts:
        return Sheet([title, "no job waits"], [])
    if len(starts) > 1:
        return Sheet([title], [of_rows([_shown(row, state.time, by) for row in rows])])
    (row,) = rows
    called = "such a job" if row["job"] == "" else f"job {row['job']}"
    low, median, high = (_in(row[name], state.time) for name in ("p10_s", "p50_s", "p90_s"))
    lines = [f"{called} starts in {median}; 80 %: in {low} to {high}"]
    if by is not None:
        lines.append(f"by {by}: {row['by']:.0%}")
    return Sheet([title, *lines], [])


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
