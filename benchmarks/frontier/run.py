"""The whole study: all rules on every log; named rules, what was chosen early and reached late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import Workload
from hpcgym.benchmarks.frontier import runs
from hpcgym.benchmarks.studies.harness import Folder, Studied, check_names
from hpcgym.benchmarks.studies.tables import Rows, of_rows, read_texts
from hpcgym.schedule.gains import Felt, gain
from hpcgym.study.intervals import mean_of
from hpcgym.units import WEEK_S
from hpcgym.workload.fingerprint import fingerprint

# --- Which rule is chosen -------------------------------------------------------------------------

#: What is weighed against each other, all of which should be small.
AIMS = ("mean_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")
#: What tables of all logs have: the last tells whether wide jobs starve.
SHOWN = (*AIMS, "area_weighted_wait_h")
#: How many times as much as under EASY a chosen rule may have.
AT_MOST = {"mean_wait_h": 1.0, "p99_wait_h": 1.5, "max_wait_h": 1.5}


def means_of(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the means over the variants of a log of one part of it, a row for each rule."""
    those = rows[rows["part"] == part].drop(columns=["part", "start_week", "seed"])
    return those.groupby("rule", sort=False).mean()


def over_reference(logs: Mapping[str, pd.DataFrame], part: str) -> tuple[Any, Any]:
    """Return how many times as much as under EASY each rule has of each aim on a part of the logs.

    Returns
    -------
    The geometric means over the logs, and the greatest of them: a row for each rule.
    """
    means: list[Any] = [means_of(rows, part) for rows in logs.values()]
    ratios = pd.concat([of[[*SHOWN]] / of.loc[runs.REFERENCE, [*SHOWN]] for of in means])
    by_rule = ratios.groupby("rule", sort=False)
    return np.exp(np.log(ratios).groupby("rule", sort=False).mean()), by_rule.max()


def chosen(logs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all rules that keep the bounds on the early parts of all logs, the best first.

    The best has the least geometric mean, over the logs, of its mean bounded slowdown divided by
    EASY's. The late parts are not looked at.

    Parameters
    ----------
    logs : name -> rows of all rules, variants and parts.

    Returns
    -------
    A row for each rule, "rule" its index: "slowdown / EASY's", and of each aim with a bound the
    greatest of the logs, divided by EASY's.
    """
    means, greatest = over_reference(logs, "early")
    table = greatest[[*AT_MOST]].rename(columns=_greatest)
    table.insert(0, "slowdown / EASY's", means["mean_bsld"])
    keeps = (greatest[[*AT_MOST]] <= pd.Series(AT_MOST)).all(axis=1)
    kept: pd.DataFrame = table[keeps].sort_values("slowdown / EASY's")
    return kept


def chosen_alone(logs: Mapping[str, pd.DataFrame]) -> dict[str, str | None]:
    """Return the rule that is chosen on the early part of each log by itself, None if none is."""
    return {log: next(iter(chosen({log: rows}).index), None) for log, rows in logs.items()}


# --- The tables -----------------------------------------------------------------------------------

HEADS = {
    "mean_bsld": "mean BSLD",
    "mean_wait_h": "mean wait h",
    "p99_wait_h": "99th percentile h",
    "max_wait_h": "longest wait h",
    "area_weighted_wait_h": "area-weighted wait h",
    "users_p90_wait_h": "90th percentile of users' mean waits h",
    "utilization": "utilisation",
}


def _head(aim: str) -> str:
    """Return what an aim is called without its unit."""
    return HEADS[aim].removesuffix(" h")


def _greatest(aim: str) -> str:
    return f"{_head(aim)} / EASY's, greatest"


def named(logs: Mapping[str, pd.DataFrame], best: str | None) -> pd.DataFrame:
    """Return the named rules, and the chosen one, on the whole logs as they are."""
    names = [rule.name for rule in runs.NAMED] + ([best] if best else [])
    tables = []
    for log, rows in logs.items():
        as_is = rows[(rows["part"] == "whole") & (rows["start_week"] == 0) & (rows["seed"] == 0)]
        table = as_is.set_index("rule").reindex(list(dict.fromkeys(names))).dropna(how="all")
        tables.append(table[list(HEADS)].rename(columns=HEADS).reset_index().assign(log=log))
    return pd.concat(tables, ignore_index=True)[["log", "rule", *HEADS.values()]]


def over_logs(logs: Mapping[str, pd.DataFrame], part: str = "whole") -> pd.DataFrame:
    """Return :func:`over_reference` as a table."""
    means, greatest = over_reference(logs, part)
    ratios = means.rename(columns=lambda aim: f"{_head(aim)} / EASY's")
    table: pd.DataFrame = ratios.join(greatest.rename(columns=_greatest)).reset_index()
    return table


@of_rows
def gains(late: Mapping[str, Mapping[str, Felt]]) -> Rows:
    """Return what each rule gains on EASY, week by week of the late parts, under the gate.

    Parameters
    ----------
    late : log -> rule -> what the jobs of its late part felt.

    Returns
    -------
    A row for each rule, by :mod:`hpcgym.schedule.gains`: "gain", the mean over logs of the mean
    over weeks, where a log whose gate is broken counts as 0; "low" and "high", the ends of its
    interval; "without the gate"; a column for each log, without the gate; "breaks the gate", where
    and how.
    """
    for rule in dict.fromkeys(rule for rules in late.values() for rule in rules):
        of = {log: gain(rules[runs.REFERENCE], rules[rule]) for log, rules in late.items()}
        value, low, high = mean_of([gain_of_log.counted for gain_of_log in of.values()])
        of_log = {log: mean_of([gain_of_log.weeks]).value for log, gain_of_log in of.items()}
        broken = [
            f"{log}: {', '.join(gain_of_log.broken)}"
            for log, gain_of_log in of.items()
            if gain_of_log.broken
        ]
        row = {"rule": rule, "gain": value, "low": low, "high": high}
        row |= {"without the gate": float(np.mean(list(of_log.values()))), **of_log}
        yield row | {"breaks the gate": "; ".join(broken)}


@of_rows
def held_out(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, str | None]) -> Rows:
    """Return what a rule for each log reaches on the late parts, against EASY.

    Values are means over the variants, with the least and the greatest of them.
    """
    for log, all_rows in logs.items():
        best = rules[log]
        if best is None:
            continue
        late = all_rows[all_rows["part"] == "late"].set_index(["start_week", "seed"])
        ours, easy = late[late["rule"] == best], late[late["rule"] == runs.REFERENCE]
        row: dict[str, Any] = {"log": log, "rule": best}
        for aim in AIMS:
            ratio = (ours[aim] / easy[aim]).to_numpy()
            row[f"{_head(aim)} / EASY's"] = float(ratio.mean())
            row[f"{_head(aim)}, least to greatest"] = f"{ratio.min():.2f} to {ratio.max():.2f}"
        yield row


@of_rows
def who_pays(logs: Mapping[str, pd.DataFrame], best: str | None) -> Rows:
    """Return mean waits [h] of classes of jobs under EASY, SAF and the chosen rule."""
    rules = [runs.REFERENCE, "saf", "saf-typical", *([best] if best else [])]

    for log, all_rows in logs.items():
        means: Any = means_of(all_rows, "whole")
        for name in (*runs.RUN_TIMES_H, *runs.WIDTHS):
            row: dict[str, Any] = {"log": log, "jobs": f"run {name}" if " h" in name else name}
            for rule in dict.fromkeys(rules):
                if rule in means.index:
                    row[f"wait h, {rule}"] = float(means.loc[rule, f"mean_wait_h, {name}"])
            yield row


#: A field of rules that is a lever -> the value without it, and what a rule with it is called.
_LEVERS: dict[str, tuple[Any, str]] = {
    "threshold_h": (None, "threshold {} h"),
    "share": (0.0, "hold {:g}"),
    "backfill": ("easy", "without extra processors"),
}


@of_rows
def levers(logs: Mapping[str, pd.DataFrame], rules: Mapping[str, runs.Rule]) -> Rows:
    """Return what each lever does to each order: medians over the other rules, and logs.

    Ratios of a rule to the same rule without the lever; ``rules`` are all by their names. The
    oldest first has no threshold.
    """
    means: list[Any] = [means_of(all_rows, "whole") for all_rows in logs.values()]
    for field, (without, called) in _LEVERS.items():
        pairs: dict[tuple[str, Any], list[tuple[str, str]]] = {}
        for rule in rules.values():
            if (value := getattr(rule, field)) != without:
                plain = rule._replace(**{field: without}).name
                pairs.setdefault((rule.order, value), []).append((rule.name, plain))
        for (order, value), names in pairs.items():
            row: dict[str, Any] = {"order": order, "lever": called.format(value)}
            for aim in AIMS:
                ratios = [
                    of.loc[rule, aim] / of.loc[other, aim] for of in means for rule, other in names
                ]
                row[f"{_head(aim)} ratio"] = float(np.median(ratios))
            yield row


# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = read_texts(
    __file__,
    bounds=", ".join(f"{aim} at most {most:g} times EASY's" for aim, most in AT_MOST.items()),
)


def of_named(
    logs: Mapping[str, pd.DataFrame], late: Mapping[str, Mapping[str, Felt]]
) -> dict[str, pd.DataFrame]:
    """Return the tables of rules that have names."""
    return {
        "over-logs": over_logs(logs),
        "over-logs-late": over_logs(logs, "late"),
        "gains-late": gains(late),
        "named": named(logs, None),
    }


def of_chosen(
    logs: Mapping[str, pd.DataFrame], rules: Mapping[str, runs.Rule]
) -> dict[str, pd.DataFrame]:
    """Return the tables of all rules; one of ``rules`` is chosen, and shown on the late parts."""
    among = {log: rows[rows["rule"].isin(rules)] for log, rows in logs.items()}
    kept = chosen(among)
    best = next(iter(kept.index), None)
    return {
        "named": named(logs, best),
        "choices": kept.head(10).reset_index(),
        "held-out": held_out(among, dict.fromkeys(among, best)),
        "held-out-own": held_out(among, chosen_alone(among)),
        "who-pays": who_pays(among, best),
        "levers": levers(among, rules),
    }


#: Pairs of the first week and the seed of jitter; the first pair is the log as it is.
VARIANTS = [(week, seed) for week in (0, 4, 8) for seed in range(3)]
QUICK_JOBS = 2_000
#: Logs are cleaned by these recipes, one after the other.
RECIPES = ("legrand", "glesser")
NAMED_RECIPES = ("glesser",)


def reproduce(
    sources: Sequence[str], folder: Folder, *, quick: bool = False, named: bool = False
) -> Studied:
    """Run the study; see :mod:`hpcgym.benchmarks.studies.harness`.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run.
    quick : few rules, the first jobs.
    named : only the rules that have names, each log as it is by one recipe.
    """
    folder.begin(HEAD)
    first_jobs = QUICK_JOBS if quick else None
    workloads = _load(sources, NAMED_RECIPES if named else RECIPES, first_jobs)
    rules = {rule.name: rule for rule in (runs.QUICK if quick else runs.ALL)}
    beside = [] if quick else [runs.Rule(name) for name in runs.BESIDE]
    simulated = runs.NAMED if named else [*rules.values(), *beside]
    variants = VARIANTS[:1] if named else VARIANTS[:2] if quick else VARIANTS
    tasks: list[dict[str, Any]] = []
    for (source, recipe), workload in workloads.items():
        same: dict[str, Any] = {"log": workload.name, "source": source, "recipe": recipe}
        same |= {"first_jobs": first_jobs, "jobs_sha256": fingerprint([workload])}
        same["variants"] = [list(each) for each in _within(workload, variants)]
        tasks += [{**same, "rule": list(rule)} for rule in simulated]
    outcomes = folder.run(runs.simulate_rule, tasks, "simulations")
    rows_of: dict[str, list[dict[str, Any]]] = {}
    late: dict[str, dict[str, Felt]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        name = runs.Rule(*task["rule"]).name
        rows_of.setdefault(task["log"], []).extend({"rule": name, **row} for row in outcome["rows"])
        number, bsld, *waits = outcome["late"]
        felt = Felt(np.array(number), np.array(bsld, np.float64), *waits)
        late.setdefault(task["log"], {})[name] = felt
    every = {log: pd.DataFrame(rows) for log, rows in rows_of.items()}
    made = of_named(every, late) if named else of_chosen(every, rules)
    return folder.publish(HEAD, made, TEXTS, {}, "the first jobs, few rules" * quick, begin="")


def _load(
    sources: Sequence[str], recipes: Sequence[str], first_jobs: int | None
) -> dict[tuple[str, str], Workload]:
    """Return logs by source and recipe; where recipes leave the same jobs, the log is there once.

    Raises
    ------
    HpcgymError : a source that cannot be read, or two logs of the same name.
    """
    workloads: dict[tuple[str, str], Workload] = {}
    for source in sources:
        by_jobs: dict[str, tuple[str, Workload]] = {}
        for recipe in recipes:
            workload = runs.load_log(source, recipe, first_jobs)
            by_jobs.setdefault(fingerprint([workload]), (recipe, workload))
        workloads |= {(source, recipe): workload for recipe, workload in by_jobs.values()}
    check_names(workloads.values())
    return workloads


def _within(workload: Workload, variants: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the variants that begin in the first quarter of a log."""
    weeks = (int(workload.submit_time[-1]) - int(workload.submit_time[0])) / WEEK_S
    return [(week, seed) for week, seed in variants if week <= weeks / 4]
