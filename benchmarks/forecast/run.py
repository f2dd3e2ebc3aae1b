"""How good forecasts of starts are, on five logs under six rules; others can be scored beside them.

    python -m hpcgym.benchmarks.forecast.run forecast               # all worlds, into results.csv
    python -m hpcgym.benchmarks.forecast.run moments moments.csv    # which starts are asked for
    python -m hpcgym.benchmarks.forecast.run score quantiles.csv    # what others say of them

A *world* is a log, a truth, and the rules by which futures are simulated. The truth has the starts
that the log recorded, or those of a schedule of its jobs. Frozen are the jobs whose starts are
forecast, drawn by seed, and these starts: ``frozen.csv`` has a digest of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd

from hpcgym import HpcgymError, Workload, simulate
from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.files.tables import csv_frame, write_csv_frame
from hpcgym.files.writing import whole_text
from hpcgym.forecasting.arrivals import Block
from hpcgym.forecasting.backtests import DrawnJobs, draw, forecasts_at, new_job, recent_waits
from hpcgym.forecasting.forecasts import Forecast, level_name, quantiles
from hpcgym.forecasting.run_times import RunTimes
from hpcgym.forecasting.scores import LEVELS, Floats, crps, scores
from hpcgym.forecasting.state import state_of_log
from hpcgym.machine.pool import Cluster
from hpcgym.progress import counting
from hpcgym.study.intervals import block_length, how_often
from hpcgym.units import WEEK_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.fingerprint import bytes_of_numbers
from hpcgym.workload.load import jobs_and_machine

HERE = Path(__file__).parent
FROZEN = "hpcgym-forecasts-v1"
LOGS = ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE", "CEA-Curie")
RULES = {
    "easy": "easy",
    "saf": "saf:threshold=400000",
    "aged": "aged",
    "slurm": "easy:backfill=slurm",
    "fairshare": "fairshare",
}
#: Truth and rules of the worlds of each log. Who runs a site knows its rules only about.
WORLDS = (
    *(("easy", "easy"), ("saf", "saf"), ("recorded", "easy"), ("fairshare", "easy")),
    *((name, name) for name in ("aged", "slurm", "fairshare")),
    ("slurm", "easy"),
)
MOMENTS, FUTURES, SEED = 300, 64, 0
#: Waits [s] that are asked for are longer: logs tell in minutes when jobs really started.
LEAST_S = {"recorded": 60}
#: Of every so many moments it is told how good forecasts were that know more.
EVERY = 4
_RESAMPLES = 2000
_COMES_S = 2 * WEEK_S  # true arrivals of so long
_QUANTILES = [level_name(level) for level in LEVELS]
#: Whose error is a share of whose.
RIVALS = ("boosting", "requested", "recent")
PAIRS = [*product(("futures", "pool"), RIVALS), ("pool", "futures")]


class Truth(NamedTuple):
    """What came of the jobs of a log."""

    log: Workload
    cluster: Cluster
    drawn: DrawnJobs

    @property
    def digest(self) -> str:
        """A hash of the jobs whose starts are forecast, and of all starts."""
        numbers = (self.log.submit_time, self.log.wait_time, self.drawn.first, self.drawn.second)
        every = b"".join(bytes_of_numbers(column) for column in numbers)
        return hashlib.sha256(f"{FROZEN} ".encode() + every).hexdigest()[:16]


def truth_of(name: str, truth: str, moments: int = MOMENTS) -> Truth:
    """Return what came of the jobs of a log: "recorded", or by one of the rules."""
    jobs, cluster = jobs_and_machine(name, None, None, "easy")
    if truth != "recorded":
        jobs = simulate(jobs, RULES[truth], cluster=cluster).as_workload()
    return Truth(jobs, cluster, draw(jobs, moments, LEAST_S.get(truth, 0), SEED))


def frozen(name: str, truth: str) -> Truth:
    """Return :func:`truth_of`, checked.

    Raises
    ------
    HpcgymError : it is not that of ``frozen.csv``.
    """
    table = csv_frame(HERE / "frozen.csv")
    of = table[(table.log == name) & (table.truth == truth)]
    if not len(of):
        raise HpcgymError(f"{name}, {truth}: no world of {FROZEN}")
    rows = truth_of(name, truth)
    if rows.digest != of.digest.item():
        raise HpcgymError(
            f"{name}, {truth}: these are not the jobs or starts of {FROZEN}: {rows.digest} in"
            f" place of {of.digest.item()}"
        )
    return rows


# --- What is forecast -----------------------------------------------------------------------------


def of_world(truth: Truth, rules: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the scores of all methods, and shares of errors with their intervals."""
    log, drawn = truth.log, truth.drawn
    chosen = scheduler_of(RULES[rules], {})
    done = forecasts_at(
        log, drawn, chosen, truth.cluster, futures=FUTURES, seed=SEED, threads=1, progress=counting
    )
    wait = log.wait_time[drawn.second] * 1.0
    some = drawn.second[::EVERY]
    table = pd.DataFrame(
        [
            *(
                {"method": method, **scores(said, wait), "moments": len(wait)}
                | {"weight": done.weights.get(method, 0.0)}
                for method, said in done.said.items()
            ),
            *(
                {"method": method, **scores(said, log.wait_time[some] * 1.0), "moments": len(some)}
                for method, said in ceilings(truth, chosen, some).items()
            ),
        ]
    )
    loss = {method: crps(said, wait) for method, said in done.said.items()}
    best = min((m for m in loss if m != "pool"), key=lambda m: float(loss[m].mean()))
    pairs = [*PAIRS, ("pool", best)] if ("pool", best) not in PAIRS else PAIRS
    week = log.submit_time[drawn.second] // WEEK_S
    shares = pd.DataFrame(
        [
            {"ours": ours, "rival": rival, **share_of(loss[ours], loss[rival], week)}
            for ours, rival in pairs
            if ours in loss and rival in loss
        ]
    )
    return table, shares


def share_of(ours: Floats, theirs: Floats, week: Ints) -> dict[str, float]:
    """Return the share of an error in another, with a 95 % interval over blocks of weeks.

    Parameters
    ----------
    ours, theirs : (n,) errors.
    week : (n,) in which week each is.
    """
    place = np.unique(week, return_inverse=True)[1]
    sums = [np.bincount(place, weights=loss) for loss in (ours, theirs)]
    n = len(sums[0])
    times = how_often(n, _RESAMPLES, SEED, block_length(n))
    drawn = (times @ sums[0]) / (times @ sums[1])
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return {"share": float(ours.sum() / theirs.sum()), "low": low, "high": high}


class _TrueRunTimes(RunTimes):
    """Run times that nobody knows."""

    def __init__(self, log: Workload) -> None:
        super().__init__(log)
        self._of = dict(zip(log.job_number.tolist(), recorded_run_time(log).tolist(), strict=True))

    def sample(self, jobs: Workload, start: Ints, time: int, number: int, seed: Any) -> Ints:
        run = [self._of[job] for job in jobs.job_number.tolist()]
        return np.tile(np.array(run, np.int64), (number, 1))


@dataclass(frozen=True, eq=False)
class _TrueArrivals(Forecast):
    """A forecast that knows which jobs come, and for how long they run."""

    coming: Workload = field(kw_only=True)

    @property
    def _come(self) -> Workload:
        return self.coming

    @property
    def _blocks(self) -> list[Block]:
        return [Block(np.arange(len(self.coming)), self.coming.submit_time)]


def ceilings(truth: Truth, scheduler: Any, rows: Ints) -> dict[str, Floats]:
    """Return what futures say that know all run times, or all jobs to come, (n, n_levels) [s]."""
    log = truth.log
    by_runs: list[Floats] = []
    by_arrivals: list[Floats] = []
    runs, learned = _TrueRunTimes(log), RunTimes(log)
    for row in rows.tolist():
        time = int(log.submit_time[row])
        state, new = state_of_log(log, time, truth.cluster), new_job(log, row)
        given = (state, scheduler, state.past, FUTURES, SEED + row, 1)
        last = int(log.submit_time.searchsorted(time + _COMES_S))
        coming = log.take(slice(row + 1, last))
        knowing = Forecast(*given, runs), _TrueArrivals(*given, learned, coming=coming)
        for said, of in zip((by_runs, by_arrivals), knowing, strict=True):
            said.append(quantiles(np.sort(of.new_starts(new)) - time, LEVELS.tolist()))
    return {"true run times": np.array(by_runs), "true arrivals": np.array(by_arrivals)}


# --- What others say ------------------------------------------------------------------------------


def scored(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the scores of quantiles in each world that a table has.

    Parameters
    ----------
    table : columns log, truth, job (its number), and p2.5, p5, p10 and so on to p97.5: by how many
        seconds after its submission the job has started with that chance.

    Raises
    ------
    HpcgymError : it lacks a column, or a job.
    """
    for name in ("log", "truth", "job", *_QUANTILES):
        if name not in table:
            raise HpcgymError(f"no column {name}: log, truth, job, {', '.join(_QUANTILES)}")
    for world, rows in table.groupby(["log", "truth"], sort=False):
        name, truth = map(str, world)
        of_world = frozen(name, truth)
        log, second = of_world.log, of_world.drawn.second
        asked = rows.drop_duplicates("job").set_index("job").reindex(log.job_number[second])
        said = asked[_QUANTILES].to_numpy(np.float64)
        if np.isnan(said).any():
            missing = int(np.isnan(said).any(axis=1).sum())
            raise HpcgymError(f"{name}, {truth}: {missing} of {len(second)} jobs have no quantiles")
        wait = log.wait_time[second] * 1.0
        recent = np.array([*recent_waits(log, second.tolist())])
        losses = (crps(np.sort(said, axis=1), wait), crps(recent, wait))
        share = share_of(*losses, log.submit_time[second] // WEEK_S)
        yield {"log": name, "truth": truth, **scores(np.sort(said, axis=1), wait)} | {
            "of recent": share["share"], "low": share["low"], "high": share["high"]
        }  # fmt: skip


# --- The page -------------------------------------------------------------------------------------

_SHOWN = ("futures", "pool", "boosting", "median, learned", "recent", "requested")
_MORE = ("true run times", "true arrivals")


def page(results: pd.DataFrame, shares: pd.DataFrame) -> str:
    """Return the two tables of README.md, an empty line between them."""
    columns = [*_SHOWN, *_MORE]
    lines = ["| log | truth | rules | " + " | ".join(columns) + " | 80 % held | pool / best |"]
    lines.append("|---|---|---|" + "---:|" * (len(columns) + 2))
    for (log, truth, rules), rows in results.groupby(["log", "truth", "rules"], sort=False):
        of = rows.set_index("method")
        best = of.crps.drop(["pool", *_MORE]).min()
        cells = [f"{of.crps[name]:.3f}" for name in columns]
        cells += [f"{of.coverage_80['futures']:.0%}", f"{of.crps['pool'] / best:.2f}"]
        lines.append(f"| {log} | {truth} | {rules} | " + " | ".join(cells) + " |")
    lines += ["", "| log | truth | rules | " + " | ".join(f"{a} / {b}" for a, b in PAIRS) + " |"]
    lines.append("|---|---|---|" + "---|" * len(PAIRS))
    for (log, truth, rules), rows in shares.groupby(["log", "truth", "rules"], sort=False):
        by = {(row.ours, row.rival): row for row in rows.itertuples()}
        cells = [f"{r.share:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in (by[pair] for pair in PAIRS)]
        lines.append(f"| {log} | {truth} | {rules} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# --- Commands -------------------------------------------------------------------------------------


@click.group
def main() -> None:
    """Forecasts of starts on real logs, and the scores of others' forecasts."""


def _write(table: pd.DataFrame, path: Path) -> None:
    with whole_text(path) as file:
        write_csv_frame(table.round(4), file)


@main.command
def freeze() -> None:
    """Write frozen.csv: a digest of each truth."""
    truths = dict.fromkeys(truth for truth, _ in WORLDS)
    rows = [
        {"log": name, "truth": truth, "moments": len(of.drawn.second), "digest": of.digest}
        for name in LOGS
        for truth in truths
        for of in (truth_of(name, truth),)
    ]
    _write(pd.DataFrame(rows), HERE / "frozen.csv")


@main.command
@click.option("--logs", default=",".join(LOGS), show_default=True)
@click.option("--folder", default=HERE, type=Path, help="Where results.csv and shares.csv are.")
def forecast(logs: str, folder: Path) -> None:
    """Forecast in all worlds by all methods; what a folder has is not done again."""
    for truth, rules in WORLDS:
        for name in logs.split(","):
            world = {"log": name, "truth": truth, "rules": rules}
            paths = [folder / "results.csv", folder / "shares.csv"]
            tables = [csv_frame(path) if path.exists() else pd.DataFrame() for path in paths]
            known = tables[0]
            if len(known) and (known[[*world]] == pd.Series(world)).all(axis=1).any():
                continue
            click.echo(" ".join(world.values()), err=True)
            for path, old, new in zip(
                paths, tables, of_world(frozen(name, truth), rules), strict=True
            ):
                _write(pd.concat([old, pd.DataFrame(world, new.index).join(new)]), path)


@main.command
@click.argument("file", type=Path)
def moments(file: Path) -> None:
    """Write which starts are asked for: log, truth, job, and when it was submitted."""
    table = csv_frame(HERE / "frozen.csv")
    parts = []
    for name, truth in zip(table.log, table.truth, strict=True):
        log, _, drawn = frozen(name, truth)
        rows = drawn.second
        of = {"job": log.job_number[rows], "submitted": log.submit_time[rows]}
        parts.append(pd.DataFrame({"log": name, "truth": truth, **of}))
    _write(pd.concat(parts), file)


@main.command
@click.argument("file", type=Path)
def score(file: Path) -> None:
    """Print the scores of quantiles in a CSV file: log, truth, job, p2.5, p5, p10 to p97.5."""
    click.echo(pd.DataFrame([*scored(csv_frame(file))]).round(3).to_string(index=False))


@main.command
@click.option("--folder", default=HERE, type=Path)
def tables(folder: Path) -> None:
    """Print the tables of README.md."""
    click.echo(page(csv_frame(folder / "results.csv"), csv_frame(folder / "shares.csv")))


if __name__ == "__main__":
    main()
