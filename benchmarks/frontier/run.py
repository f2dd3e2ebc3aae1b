"""The whole study: all rules on every log, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.frontier import runs, tables
from hpcgym.benchmarks.frontier.tables import chosen, chosen_alone
from hpcgym.benchmarks.studies.harness import Folder, check_names, folder_name, load_jobs
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.weeks import cut_weeks
from hpcgym.errors import WorkloadError
from hpcgym.naming import WEEK_S
from hpcgym.schedule.gains import Felt
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: Pairs of the first week and the seed of jitter; the first pair is the log as it is.
VARIANTS = [(week, seed) for week in (0, 4, 8) for seed in range(3)]
QUICK_JOBS = 2_000
#: Logs are cleaned by these recipes, one after the other; weekly sums are of the first.
RECIPES = ("legrand", "glesser")
NAMED_RECIPES = ("glesser",)


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    quick: bool = False,
    named: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    quick : a small cut: few rules, the first jobs.
    named : only the rules that have names, each log as it is by one recipe.

    Returns
    -------
    The file of the report, and the tables by name: "named", "fronts", "choices", "held-out",
    "held-out-own", "who-pays", "levers", "extra-processors" and "weekly"; by ``named`` the first,
    "over-logs", "over-logs-late" and "gains-late".

    Raises
    ------
    HpcgymError : a source that cannot be read, a file that cannot be written, a simulation that
        fails, or no matplotlib.
    """
    folder.begin(tables.HEAD)
    first_jobs = QUICK_JOBS if quick else None
    workloads, loaded_from = _load(sources, NAMED_RECIPES if named else RECIPES, first_jobs)
    rules = {rule.name: rule for rule in (runs.quick_rules() if quick else runs.all_rules())}
    simulated = runs.named_rules() if named else list(rules.values())
    if not (named or quick):
        simulated += [runs.Rule(name) for name in runs.BESIDE]
    variants = VARIANTS[:1] if named else VARIANTS[:2] if quick else VARIANTS
    tasks: list[dict[str, Any]] = [
        {
            "log": log,
            "source": source,
            "recipe": recipe,
            "first_jobs": first_jobs,
            "jobs_sha256": fingerprint([workloads[log]]),
            "rule": list(rule),
            "variants": [list(each) for each in _within(workloads[log], variants)],
        }
        for log, (source, recipe) in loaded_from.items()
        for rule in simulated
    ]
    outcomes = folder.run(runs.simulate_rule, tasks, "simulations")
    found_of: dict[str, list[dict[str, Any]]] = {log: [] for log in loaded_from}
    late: dict[str, dict[str, Felt]] = {log: {} for log in loaded_from}
    for task, outcome in zip(tasks, outcomes, strict=True):
        rule = runs.Rule(*task["rule"])
        found_of[task["log"]] += [{"rule": rule.name, **row} for row in outcome["rows"]]
        number, bsld, *waits = outcome["late"]
        late[task["log"]][rule.name] = Felt(np.array(number), np.array(bsld, np.float64), *waits)
    every = {log: pd.DataFrame(rows) for log, rows in found_of.items()}
    if named:
        made = {
            "over-logs": tables.over_logs(every),
            "over-logs-late": tables.over_logs(every, "late"),
            "gains-late": tables.gains(late),
            "named": tables.named(every, None),
        }
        folder.write_tables(made, "")
        return folder.report(tables.report_text(made, {}, None, quick)), made
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
        "weekly": _weekly({} if quick else loaded_from, folder),
    }
    folder.write_tables(made, "")
    pictures = {
        log: folder.picture(
            tables.draw_front(table, rules, log, best), f"front-{folder_name(log)}.png"
        )
        for log, table in tables.relative(logs).items()
    }
    return folder.report(tables.report_text(made, pictures, best, quick)), made


def _load(
    sources: Sequence[str], recipes: Sequence[str], first_jobs: int | None
) -> tuple[dict[str, Workload], dict[str, tuple[str, str]]]:
    """Return the logs by name, and what each is loaded from, with its recipe.

    Where recipes leave the same jobs, the log is there once.
    """
    named: list[tuple[Workload, tuple[str, str]]] = []
    for source in sources:
        by_jobs: dict[str, tuple[Workload, tuple[str, str]]] = {}
        for recipe in recipes:
            workload = runs.load_log(source, recipe, first_jobs)
            by_jobs.setdefault(fingerprint([workload]), (workload, (source, recipe)))
        named += by_jobs.values()
    check_names(workload for workload, _ in named)
    workloads = {workload.name: workload for workload, _ in named}
    return workloads, {workload.name: of for workload, of in named}


def _within(workload: Workload, variants: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the variants that begin in the first quarter of a log."""
    weeks = (int(workload.submit_time[-1]) - int(workload.submit_time[0])) / WEEK_S
    return [(week, seed) for week, seed in variants if week <= weeks / 4]


def _weekly(loaded_from: dict[str, tuple[str, str]], folder: Folder) -> pd.DataFrame:
    """Return the table of weekly sums, of the logs by the first recipe; what is kept is read.

    Logs without a whole week have none.
    """
    store, sums = Store(folder.path / "steps"), dict[str, dict[str, float]]()
    of_weeks = {log: of for log, of in loaded_from.items() if of[1] == RECIPES[0]}
    for place, (log, (source, recipe)) in enumerate(of_weeks.items()):
        folder.progress("weekly sums", place, len(of_weeks))
        try:
            cut = cut_weeks(load_jobs(source, clean=recipe), 0)
        except WorkloadError:
            continue
        weeks = {number: week for number, week in cut.items() if len(week)}
        inputs = {"jobs": fingerprint(weeks.values())}
        values = store.step(f"{folder_name(log)}-weekly", inputs, partial(runs.sums_of, weeks))
        sums[log] = {name: float(value) for name, value in values.items()}
    return runs.table_of(sums)
