"""The whole study: all rules on every log, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.frontier import runs, tables
from hpcgym.benchmarks.frontier.runs import (
    AGED,
    Rule,
    all_rules,
    load_log,
    named_rules,
    quick_rules,
    simulate_rule,
)
from hpcgym.benchmarks.frontier.tables import chosen, chosen_alone
from hpcgym.benchmarks.studies.harness import (
    Progress,
    check_report,
    folder_name,
    no_progress,
    note_name,
    outcomes_of,
    save_picture,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.store import Store, code
from hpcgym.benchmarks.studies.weeks import cut_weeks
from hpcgym.errors import WorkloadError
from hpcgym.report.canvas import require_matplotlib
from hpcgym.simulation.run import simulate
from hpcgym.workload.extracts import WEEK_S
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

#: Pairs of the first week and the seed of jitter; the first pair is the log as it is.
VARIANTS = [(week, seed) for week in (0, 4, 8) for seed in range(3)]
QUICK_JOBS = 2_000
#: Logs are cleaned by these recipes, one after the other; weekly sums are of the first.
RECIPES = ("legrand", "glesser")
NAMED_RECIPES = ("glesser",)
_MODULES = ("hpcgym.benchmarks.frontier.runs",)
_OF_WEEKS = ("hpcgym.benchmarks.frontier.runs", "hpcgym.benchmarks.prediction.predictors")


def reproduce(
    sources: Sequence[str],
    folder: Path,
    *,
    quick: bool = False,
    named: bool = False,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where everything is written; outcomes of simulations into its folder ``tasks``.
    quick : a small cut: few rules, the first jobs.
    named : only the rules that have names, each log as it is by one recipe.
    executor, workers : where simulations run; see :func:`hpcgym.sweep.run_tasks`.
    progress : told of each step.

    Returns
    -------
    The file of the report, and the tables by name: "named", "fronts", "choices", "held-out",
    "held-out-own", "who-pays", "levers", "extra-processors" and "weekly"; by ``named`` the first,
    "over-logs" and "over-logs-late".

    Raises
    ------
    HpcgymError : a source that cannot be read, a file that cannot be written, a simulation that
        fails, or no matplotlib.
    """
    from hpcgym.benchmarks.frontier.tables import HEAD

    require_matplotlib()
    path = folder / "report.md"
    check_report(path, HEAD)  # that it cannot be written is said before the work, not after it
    first_jobs = QUICK_JOBS if quick else None
    workloads, loaded_from = _load(sources, NAMED_RECIPES if named else RECIPES, first_jobs)
    rules = {rule.name: rule for rule in (quick_rules() if quick else all_rules())}
    simulated = named_rules() if named else list(rules.values())
    if not (named or quick):
        simulated += [Rule(name) for name in AGED]
    variants = VARIANTS[:1] if named else VARIANTS[:2] if quick else VARIANTS
    tasks = _tasks(workloads, simulated, variants, first_jobs)
    every = _simulated(tasks, loaded_from, folder, executor, workers, progress)
    if named:
        made = {
            "over-logs": tables.over_logs(every),
            "over-logs-late": tables.over_logs(every, "late"),
            "named": tables.named(every, None),
        }
        return _written(path, made, {}, None, quick), made
    logs = {log: rows[rows["rule"].isin(rules)] for log, rows in every.items()}
    found = chosen(logs)
    best = next(iter(found.index), None)
    made = {
        "named": tables.named(every, best),
        "fronts": tables.fronts(every),
        "choices": tables.choices(found),
        "held-out": tables.held_out(logs, dict.fromkeys(logs, best)),
        "held-out-own": tables.held_out(logs, chosen_alone(logs)),
        "who-pays": tables.who_pays(logs, best),
        "levers": tables.levers(logs, rules),
        "extra-processors": tables.extra_processors(logs, rules),
        "weekly": _weekly({} if quick else loaded_from, folder, progress),
    }
    pictures = {}
    for log, table in tables.relative(logs).items():
        pictures[log] = Path(f"front-{folder_name(log)}.png")
        save_picture(tables.draw_front(table, rules, log, best), folder / pictures[log])
    return _written(path, made, pictures, best, quick), made


def _written(
    path: Path,
    made: dict[str, pd.DataFrame],
    pictures: dict[str, Path],
    best: str | None,
    quick: bool,
) -> Path:
    """Write the tables and the report, and return its file."""
    from hpcgym.benchmarks.frontier.tables import report_text

    for name, table in made.items():
        write_csv(table, path.parent / f"{name}.csv")
    write_text(report_text(made, pictures, best, quick), path)
    return path


def _load(
    sources: Sequence[str], recipes: Sequence[str], first_jobs: int | None
) -> tuple[dict[str, Workload], dict[str, tuple[str, str]]]:
    """Return the logs by name, and what each is loaded from, with its recipe.

    Where recipes leave the same jobs, the log is there once.
    """
    workloads: dict[str, Workload] = {}
    loaded_from: dict[str, tuple[str, str]] = {}
    names: dict[str, str] = {}
    for source in sources:
        seen = set()
        for recipe in recipes:
            workload = load_log(source, recipe, first_jobs)
            jobs = fingerprint([workload])
            if jobs in seen:
                continue
            seen.add(jobs)
            note_name(names, workload.name, source)
            workloads[workload.name], loaded_from[workload.name] = workload, (source, recipe)
    return workloads, loaded_from


def _tasks(
    workloads: dict[str, Workload],
    rules: list[Rule],
    variants: list[tuple[int, int]],
    first_jobs: int | None,
) -> list[dict[str, Any]]:
    """Return a task for each rule on each log."""
    hashed = code(*_MODULES)
    return [
        {
            "log": log,
            "first_jobs": first_jobs,
            "jobs_sha256": fingerprint([workload]),
            "rule": list(rule),
            "variants": [list(each) for each in _within(workload, variants)],
            "code": hashed,
        }
        for log, workload in workloads.items()
        for rule in rules
    ]


def _simulated(
    tasks: list[dict[str, Any]],
    loaded_from: dict[str, tuple[str, str]],
    folder: Path,
    executor: str,
    workers: int | None,
    progress: Progress,
) -> dict[str, pd.DataFrame]:
    """Return for each log the rows of all rules, variants and parts."""
    import pandas as pd

    # compile what learns in this process, so that workers find it in the cache
    simulate(load_workload("lublin:jobs=20,processors=8"), "saf-typical", hold=0.1)
    outcomes = outcomes_of(
        partial(simulate_rule, sources=loaded_from),
        tasks,
        folder / "tasks",
        executor,
        workers,
        of="simulations",
        what="simulations",
        progress=progress,
    )
    logs: dict[str, list[dict[str, Any]]] = {log: [] for log in loaded_from}
    for task, outcome in zip(tasks, outcomes, strict=True):
        rule = Rule(*task["rule"])
        logs[str(task["log"])] += [{"rule": rule.name, **row} for row in outcome["rows"]]
    return {log: pd.DataFrame(rows) for log, rows in logs.items()}


def _within(workload: Workload, variants: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the variants that begin in the first quarter of a log."""
    weeks = (int(workload.submit_time[-1]) - int(workload.submit_time[0])) / WEEK_S
    return [(week, seed) for week, seed in variants if week <= weeks / 4]


def _weekly(
    loaded_from: dict[str, tuple[str, str]], folder: Path, progress: Progress
) -> pd.DataFrame:
    """Return the table of weekly sums, of the logs by the first recipe; what is kept is read.

    Logs without a whole week have none.
    """
    store, sums = Store(folder / "steps"), dict[str, dict[str, float]]()
    of_weeks = {log: of for log, of in loaded_from.items() if of[1] == RECIPES[0]}
    for place, (log, (source, recipe)) in enumerate(of_weeks.items()):
        progress("weekly sums", place, len(of_weeks))
        try:
            cut = cut_weeks(load_jobs(source, clean=recipe), 0)
        except WorkloadError:
            continue
        weeks = {number: week for number, week in cut.items() if len(week)}
        inputs = {"jobs": fingerprint(weeks.values()), "code": code(*_OF_WEEKS)}
        values = store.step(f"{folder_name(log)}-weekly", inputs, partial(runs.sums_of, weeks))
        sums[log] = {name: float(value) for name, value in values.items()}
    return runs.table_of(sums)
