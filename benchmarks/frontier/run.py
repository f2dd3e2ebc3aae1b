"""The whole study: all rules on every log, then its tables and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.frontier import runs, tables
from hpcgym.benchmarks.studies.harness import Folder, check_names
from hpcgym.naming import WEEK_S
from hpcgym.schedule.gains import Felt
from hpcgym.version import __version__
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: Pairs of the first week and the seed of jitter; the first pair is the log as it is.
VARIANTS = [(week, seed) for week in (0, 4, 8) for seed in range(3)]
QUICK_JOBS = 2_000
#: Logs are cleaned by these recipes, one after the other.
RECIPES = ("legrand", "glesser")
NAMED_RECIPES = ("glesser",)


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    quick: bool = False,
    named: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    quick : a small cut: few rules, the first jobs.
    named : only the rules that have names, each log as it is by one recipe.

    Returns
    -------
    The file of the report, and the tables by name, those of ``tables.TEXTS``.

    Raises
    ------
    HpcgymError : a source that cannot be read, a file that cannot be written, a simulation that
        fails, or no matplotlib.
    """
    folder.begin(tables.HEAD)
    first_jobs = QUICK_JOBS if quick else None
    workloads = _load(sources, NAMED_RECIPES if named else RECIPES, first_jobs)
    rules = {rule.name: rule for rule in (runs.QUICK if quick else runs.ALL)}
    beside = [] if quick else [runs.Rule(name) for name in runs.BESIDE]
    simulated = runs.NAMED if named else [*rules.values(), *beside]
    variants = VARIANTS[:1] if named else VARIANTS[:2] if quick else VARIANTS
    tasks: list[dict[str, Any]] = [
        {
            "log": workload.name,
            "source": source,
            "recipe": recipe,
            "first_jobs": first_jobs,
            "jobs_sha256": fingerprint([workload]),
            "rule": list(rule),
            "variants": [list(each) for each in _within(workload, variants)],
        }
        for (source, recipe), workload in workloads.items()
        for rule in simulated
    ]
    outcomes = folder.run(runs.simulate_rule, tasks, "simulations")
    found: dict[str, list[dict[str, Any]]] = {}
    late: dict[str, dict[str, Felt]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        name = runs.Rule(*task["rule"]).name
        found.setdefault(task["log"], []).extend({"rule": name, **row} for row in outcome["rows"])
        number, bsld, *waits = outcome["late"]
        felt = Felt(np.array(number), np.array(bsld, np.float64), *waits)
        late.setdefault(task["log"], {})[name] = felt
    every = {log: pd.DataFrame(rows) for log, rows in found.items()}
    made = tables.of_named(every, late) if named else tables.of_chosen(every, rules)
    cut = "the first jobs, few rules" if quick else ""
    head = tables.HEAD.format(version=__version__)
    return folder.publish(head, made, tables.TEXTS, {}, cut, begin="")


def _load(
    sources: Sequence[str], recipes: Sequence[str], first_jobs: int | None
) -> dict[tuple[str, str], Workload]:
    """Return logs by source and recipe; where recipes leave the same jobs, the log is there once.

    Raises
    ------
    HpcgymError : a source that cannot be read, or two logs of the same name.
    """
    found: dict[tuple[str, str], Workload] = {}
    for source in sources:
        by_jobs: dict[str, tuple[str, Workload]] = {}
        for recipe in recipes:
            workload = runs.load_log(source, recipe, first_jobs)
            by_jobs.setdefault(fingerprint([workload]), (recipe, workload))
        found |= {(source, recipe): workload for recipe, workload in by_jobs.values()}
    check_names(found.values())
    return found


def _within(workload: Workload, variants: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the variants that begin in the first quarter of a log."""
    weeks = (int(workload.submit_time[-1]) - int(workload.submit_time[0])) / WEEK_S
    return [(week, seed) for week, seed in variants if week <= weeks / 4]
