"""The study of energy fair share: what is published, tables, pictures, report and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import Result, simulate
from hpcgym.benchmarks.energy import shares
from hpcgym.benchmarks.energy.shares import BURST_USERS, ESP_USERS, FREQUENCIES, TEXT, Became
from hpcgym.benchmarks.studies import items, tables
from hpcgym.benchmarks.studies.harness import Drawn, Folder, Studied, Tasks, load_sources, task_of
from hpcgym.report import canvas
from hpcgym.units import DAY_S, WEEK_S

# --- What Glesser 2016, section 6.3, prints -------------------------------------------------------

#: Statistics over 20 users of their stretch over that in the baseline.
STATISTICS: list[Any] = ["min", "mean", "median", "std", "max"]
#: Table 6.1: rows (trace, configuration, efficiency). "fs" is 1 everywhere: it is the baseline.
TABLE_6_1 = pd.DataFrame(
    {
        (trace, policy, efficiency): values
        for trace, rows in items.published_values(shares.__file__)["table 6.1"].items()
        for policy, by in rows.items()
        for efficiency, values in by.items()
    },
    index=STATISTICS,
).T

#: Waits [s] up to which efficiency hardly matters under EFS (figure 6.5b).
ALIKE_UP_TO_S = 1_250

#: Figure 6.1: the trace, and the green user who is worst off under EFS.
WORST_OFF = ("CEA-Curie", 33)

# --- Table 6.1 and what it depends on -------------------------------------------------------------

KEYS = ["trace", "config", "efficiency"]
CELLS = [(policy, efficiency) for policy in shares.POLICIES for efficiency in shares.EFFICIENCIES]


@tables.of_rows
def rows_of(tasks: Tasks, outcomes: Tasks) -> tables.Rows:
    """Return what :func:`shares.measure` found: a row for each user who saves or wastes energy."""
    for task, outcome in zip(tasks, outcomes, strict=True):
        known = {"trace": task["trace"], "reading": task["reading"], "jobs": outcome["jobs"]}
        for row in outcome["rows"]:
            cell = {"config": row["policy"], "efficiency": row["efficiency"]}
            ratios = zip(outcome["users"], row["by_means"], row["by_jobs"], strict=True)
            names = ("user", "by_means", "by_jobs")
            yield from ({**known, **cell, **dict(zip(names, of, strict=True))} for of in ratios)


def table_6_1(rows: pd.DataFrame, by: str = "by_means") -> pd.DataFrame:
    """Return table 6.1 as written, published beside ours; ``by`` is how ratios are formed."""
    users = rows[rows["reading"] == TEXT].groupby(KEYS, sort=False)[by]
    table = users.agg(STATISTICS).fillna({"std": 0.0})
    printed = TABLE_6_1.reindex(table.index)
    for place, name in enumerate(STATISTICS):
        table.insert(2 * place + 1, f"published {name}", printed[name])
    table["interval of the mean"] = users.agg(lambda of: tables.interval(of.to_numpy()))
    return table.reset_index().dropna(axis="columns", how="all")


def _by_cell(rows: pd.DataFrame, keys: list[str], by: str) -> Any:
    """Return means with a column for each configuration and efficiency."""
    means = rows.groupby([*keys, "config", "efficiency"], sort=False)[by].mean()
    wide: Any = means.unstack(["config", "efficiency"])[CELLS]
    return wide.set_axis([" ".join(cell) for cell in CELLS], axis="columns")


def of_readings(rows: pd.DataFrame) -> Any:
    """Return the means of table 6.1 under each reading."""
    table = _by_cell(rows, ["trace", "reading", "jobs"], "by_means").reset_index()
    table.insert(2, "meaning", [shares.READINGS[name].meaning for name in table["reading"]])
    return table.sort_values("trace", kind="stable")


def of_late(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how far the means move where each job comes up to a minute later."""
    late = [name for name, reading in shares.READINGS.items() if reading.late_seed is not None]
    traces = set(rows.loc[rows["reading"].isin(late), "trace"])
    copies = rows[rows["trace"].isin(traces) & rows["reading"].isin([TEXT, *late])]
    means = copies.groupby([*KEYS, "reading"], sort=False)[["by_means", "by_jobs"]].mean()
    table = means["by_means"].groupby(KEYS, sort=False).agg(["count", "mean", "min", "max"])
    table = table.set_axis(["copies", "mean", "least", "greatest"], axis="columns")
    table["published"] = TABLE_6_1["mean"].reindex(table.index)
    table["mean over jobs' ratios"] = means["by_jobs"].groupby(KEYS, sort=False).mean()
    return table.reset_index().dropna(axis="columns", how="all")


def of_users(rows: pd.DataFrame) -> Any:
    """Return each user's mean of ratios as written, and her place among green ones under EFS."""
    table = _by_cell(rows[rows["reading"] == TEXT], ["trace", "user"], "by_jobs")
    table["worst off"] = table["efs green"].groupby("trace").rank(ascending=False).astype(int)
    return table.reset_index().astype({"user": str})


def counter(result: Result, user: int, half_life_s: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the times at which a user's jobs end [s], and what she has used then [J], decayed."""
    mine = result.workload.user_id == user
    order = np.argsort(result.end[mine], kind="stable")
    times, power = result.end[mine][order], result.workload.power_w[mine]
    joules = (power * result.workload.requested_processors[mine] * result.run_time[mine])[order]
    used = np.empty(len(times))
    total = 0.0
    for k, (time, more) in enumerate(zip(times, joules, strict=True)):
        since = time - times[k - 1] if k else 0
        total = total * 0.5 ** (since / half_life_s) + more
        used[k] = total
    return times, used


def of_counter(sources: Sequence[str]) -> pd.DataFrame:
    """Return figure 6.1: what a green user of Curie has used under EFS, over time."""
    reading = shares.READINGS[TEXT]
    for workload in (shares.load_trace(source, reading, None) for source in sources):
        if workload.name == WORST_OFF[0]:
            mine = workload.user_id == WORST_OFF[1]
            green = shares.EFFICIENCIES["green"] * shares.USUAL_W
            jobs = workload.with_columns(power_w=np.where(mine, green, shares.USUAL_W))
            result = simulate(jobs, reading.scheduler(shares.POLICIES["efs"]))
            times, used = counter(result, WORST_OFF[1], WEEK_S)
            days = (times - int(workload.submit_time[0])) / DAY_S
            return pd.DataFrame({"day": days, "used / most": used / used.max()})
    return pd.DataFrame()


# --- What the text says of Light-ESP --------------------------------------------------------------


def values_of_180(policies: Mapping[str, Sequence[Became]]) -> pd.DataFrame:
    """Return what the sentences of section 6.3.3 are of, a row for each order of the jobs."""
    apart = [_apart_by_length(of["wait"]) for of in policies["EFS"]]
    values = pd.DataFrame(apart, columns=["apart_short", "apart_long"])
    for policy, user, what in product(policies, FREQUENCIES, ("stretch", "wait")):
        values[f"{what}_{policy}_{user}"] = [of[what][user].mean() for of in policies[policy]]
    return values


def _apart_by_length(waits: Mapping[str, tables.Floats]) -> list[float]:
    """Return how far distributions of waits are apart at most, up to 1,250 s and beyond."""
    apart = []
    for first, last in ((0.0, ALIKE_UP_TO_S), (ALIKE_UP_TO_S, np.inf)):
        at = np.unique(np.concatenate([*waits.values()]))
        at = at[(first <= at) & (at <= last)]
        parts = np.array([np.searchsorted(of, at, "right") / len(of) for of in waits.values()])
        apart.append(float((parts.max(axis=0) - parts.min(axis=0)).max(initial=0.0)))
    return apart


def statements(by_load: Mapping[float, pd.DataFrame], of: Sequence[str]) -> pd.DataFrame:
    """Return what the text says, and whether it is so here, under each load.

    Parameters
    ----------
    by_load : load -> a row of values for each order of the jobs.
    of : items.
    """
    said = items.csv_rows(__file__, "sentences.csv", of)
    findings_by_load = {
        f"load {load:g}": findings(values, said) for load, values in by_load.items()
    }
    return tables.statements_table(said, findings_by_load)


def findings(values: pd.DataFrame, said: Sequence[Mapping[str, str]]) -> list[tables.Finding]:
    """Return whether sentences hold: in 97.5 % of resampled orders of the jobs, or in 2.5 %."""
    picks = np.random.default_rng(0).integers(0, len(values), (2_000, len(values)))
    means: Any = pd.DataFrame(values.to_numpy()[picks].mean(axis=1), columns=values.columns)
    decided: list[tables.Finding] = []
    for sentence in said:
        held = float(means.eval(sentence["so"]).mean())
        so = held >= 0.975 if held >= 0.975 or held <= 0.025 else "undecided"
        named = tables.named_in(values, sentence["so"])
        decided.append((tables.listed(values[named].mean(), "{:,.4g}"), so))
    return decided


def of_burst(bursts: Mapping[float, Became]) -> pd.DataFrame:
    """Return what section 6.3.3 says of the burst, whichever part of energy green jobs save."""
    findings_by_saved: dict[str, list[tables.Finding]] = {}
    for saved, of in bursts.items():
        means = [[of[what][u].mean() for u in BURST_USERS] for what in ("stretch", "wait")]
        words = [", ".join(f"{x:,.4g}" for x in of_users) for of_users in means]
        so = all(green < (1 - items.CLOSE) * min(others) for green, *others in means)
        findings_by_saved[f"{saved:.1%} saved"] = [(f"stretch: {words[0]}; wait: {words[1]}", so)]
    said = {"item": "figure 6.8", "published": "so"}
    said["sentence"] = "green jobs of a burst have significantly better stretches and waits"
    return tables.statements_table([said], findings_by_saved)


# --- Pictures -------------------------------------------------------------------------------------

_USERS = (canvas.GREEN, canvas.BLUE, canvas.VERMILLION)
_COLOURS_180 = dict(zip(FREQUENCIES, _USERS, strict=True)) | {"on demand": canvas.ORANGE}
#: Where names stand beside their marks [points].
_BESIDE = {"green": (-4, -13), "normal": (6, 6), "gluttonous": (-96, -4)}


def draw_counter(used: pd.DataFrame) -> canvas.Figure:
    """Figure 6.1: what a green user has used under EFS, over time."""
    axes = canvas.new_figure(8, 3.4).add_subplot()
    axes.step(used["day"], used["used / most"], where="post", color=canvas.BLUE, linewidth=1)
    heading = "CEA-Curie, EFS: user 33, who needs 30 % less energy (figure 6.1)"
    tables.finish(axes, heading, x="days", y="used, decayed / the most")
    return canvas.figure_of(axes)


def draw_esp(values: pd.DataFrame) -> canvas.Figure:
    """Figures 6.2 and 6.3: mean stretch of each user under each policy, over that of FIFO."""
    figure = canvas.new_figure(9, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    headings = ("The same jobs, other efficiency (6.2)", "Other jobs, the same efficiency (6.3)")
    for axes, begin, heading in zip(panels, shares.EXPERIMENTS, headings, strict=True):
        fifo = values[[f"{begin}FIFO_{user}" for user in ESP_USERS]].to_numpy().mean()
        for place, user in enumerate(ESP_USERS):
            mine = values[[f"{begin}{policy}_{user}" for policy in shares.ESP_POLICIES]] / fifo
            error = 1.96 * mine.std() / np.sqrt(len(mine))
            style: dict[str, Any] = {"color": _USERS[place], "ecolor": canvas.DARK_GREY}
            at, label = np.arange(mine.shape[1]) + 0.27 * (place - 1), f"user {user}"
            axes.bar(at, mine.mean(), 0.25, yerr=error, capsize=2, label=label, **style)
        names = [name.replace("_", "+") for name in shares.ESP_POLICIES]
        axes.set_xticks(range(len(names)), names)
        tables.finish(axes, heading)
    panels[0].set_ylabel("mean stretch / that under FIFO")
    return figure


def draw_frequencies() -> canvas.Figure:
    """Figure 6.4: energy by completion time, at each frequency of the users."""
    axes = canvas.new_figure(5.5, 3.8).add_subplot()
    k, a = shares.shares_of_frequency()
    highest = max(FREQUENCIES.values())

    def at(x: float) -> tuple[float, float]:
        return shares.slowdown(x, k), shares.slowdown(x, k) * shares.drawn_at(x, a)

    line = [at(x) for x in np.linspace(min(FREQUENCIES.values()) / highest, 1, 200)]
    axes.plot(*zip(*line, strict=True), color=canvas.DARK_GREY, linewidth=1.2)
    for user, ghz in FREQUENCIES.items():
        point = at(ghz / highest)
        axes.plot(*point, "o", color=_COLOURS_180[user])
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8}
        axes.annotate(f"{user}, {ghz:g} GHz", point, _BESIDE[user], **style)
    axes.margins(y=0.12)
    below, side = (f"{what} / that at the highest frequency" for what in ("time", "energy"))
    tables.finish(axes, "Linpack, as modelled (figure 6.4)", x=f"completion {below}", y=side)
    return canvas.figure_of(axes)


def draw_distributions(orders: Sequence[Became], heading: str) -> canvas.Figure:
    """Figures 6.5 to 6.8: distributions of stretches (a) and waits (b), by user."""
    figure = canvas.new_figure(9, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, what in zip(panels, ("stretch", "wait"), strict=True):
        for user in orders[0][what]:
            of = np.sort(np.concatenate([order[what][user] for order in orders]))
            share, dashes = np.arange(len(of)) + 1, "--" if user == "on demand" else "-"
            style: dict[str, Any] = {"color": _COLOURS_180[user], "linewidth": 1.4, "label": user}
            axes.step(of, share / len(of), dashes, where="post", **style)
        axes.set_ylim(0, 1.02)
    low, high = panels[0].dataLim.intervalx
    log = "x" if high > 20 * low else ""
    tables.finish(panels[0], heading, x="stretch", y="share of jobs", log=log, grid="both")
    tables.finish(panels[1], x="waiting time (s)", grid="both")
    return figure


# --- The whole study ------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "shares.md")


def reproduce(sources: Sequence[str], folder: Folder, *, quick: bool = False) -> Studied:
    """Run the study on traces; see :mod:`hpcgym.benchmarks.studies.harness`."""
    folder.begin(HEAD)
    tasks = _tasks(sources, quick)
    rows = rows_of(tasks, folder.run(shares.measure, tasks, "readings", chunk=1))
    seeds = shares.QUICK_SEEDS if quick else shares.SEEDS
    esp, on_180 = {}, {}
    for place, load in enumerate(shares.LOADS):
        folder.progress("light-esp", place, len(shares.LOADS))
        esp[load], on_180[load] = shares.run_esp(load, seeds), shares.run_180(load, seeds)
    bursts = shares.run_burst()
    of_180 = {load: values_of_180(policies) for load, policies in on_180.items()}
    made = {
        "6.1": table_6_1(rows),
        "6.1-by-jobs": table_6_1(rows, "by_jobs"),
        "readings": of_readings(rows),
        "late": of_late(rows),
        "users": of_users(rows),
        "counter": of_counter([] if quick else sources),
        "statements": statements(esp, ("figure 6.2", "figure 6.3")),
        "statements-180": statements(of_180, ("figure 6.5", "figure 6.6", "figure 6.7")),
        "burst": of_burst(bursts),
    }
    usual = shares.LOADS[0]
    pictures = folder.pictures(_drawn(esp[usual], made["counter"], on_180[usual], bursts))
    return folder.publish(HEAD, made, TEXTS, pictures, "few jobs, users and orders" * quick)


def _drawn(
    esp: pd.DataFrame,
    used: pd.DataFrame,
    on_180: Mapping[str, Sequence[Became]],
    bursts: Mapping[float, Became],
) -> Drawn:
    """Draw the pictures."""
    yield "Three users of Light-ESP (figures 6.2 and 6.3)", "light-esp.png", draw_esp(esp)
    yield "Linpack by frequency", "figure-6.4.png", draw_frequencies()
    if len(used):
        yield "What user 33 of Curie has used (figure 6.1)", "figure-6.1.png", draw_counter(used)
    for policy, number in shares.FIGURES.items():
        heading = f"{policy}, Light-ESP on 180 cores (figure {number})".replace("_", "+")
        yield heading, f"figure-{number}.png", draw_distributions(on_180[policy], heading)
    least = min(shares.BURST_SAVED)
    heading = f"EFS, a burst, {least:.0%} saved (figure 6.8)"
    yield heading, "figure-6.8.png", draw_distributions([bursts[least]], heading)


def _tasks(sources: Sequence[str], quick: bool) -> list[dict[str, Any]]:
    """Return the tasks: each reading of each trace."""
    jobs, users = (shares.QUICK_JOBS, shares.QUICK_USERS) if quick else (None, shares.USERS)
    tasks: list[dict[str, Any]] = []
    for reading, rules in shares.READINGS.items():
        load = partial(shares.load_trace, reading=rules, jobs=jobs)
        tasks += [
            task_of(source, workload, reading=reading, jobs=jobs, users=users)
            for source, workload in load_sources(sources, load).items()
            if reading in ([TEXT, "per timestamp"] if quick else shares.readings_of(workload))
        ]
    return tasks


# --- The items of Glesser 2016, chapter 6, and what makes their verdicts --------------------------

_NOTES = items.notes_of(__file__)

#: How far a mean may be from a published one to count as near.
NEAR = 0.1


def _beside_6_1(stored: items.Stored, name: str) -> tuple[dict[str, bool], Any]:
    """Return sentences on the means of a table, and which means are near the published ones."""
    table = stored.table(name, *KEYS, "mean")
    table = table[table["trace"].isin(TABLE_6_1.index.unique(0))]
    if not len(table):
        raise items.NotThereError("none of the thesis's traces")
    means = table.set_index(KEYS)["mean"]
    printed = TABLE_6_1["mean"].reindex(means.index)
    so = {
        f"{' '.join(key)} is {'above' if theirs > 1 else 'not above'} 1": (ours > 1) == (theirs > 1)
        for (key, ours), theirs in zip(means.items(), printed, strict=True)
    }
    for (trace, policy), of in means.groupby(KEYS[:2], sort=False):
        below, theirs = (
            bool(by_row[trace, policy, "green"] < by_row[trace, policy, "gluttonous"])
            for by_row in (of, printed)
        )
        side = "below" if theirs else "above"
        so[f"{trace} {policy}: green users are {side} gluttonous ones"] = below == theirs
    return so, (means - printed).abs() <= NEAR


def _table_6_1(stored: items.Stored) -> items.Verdict:
    """Means of table 6.1: near the published ones, on the same side of 1, in the same order.

    As the text has it they are of jobs' ratios; by users' mean stretches over those before is told.
    """
    so, near = _beside_6_1(stored, "table-6.1-by-jobs")
    others, others_near = _beside_6_1(stored, "table-6.1")
    verdict = items.of_sentences(so)
    traces = near.index.unique("trace")
    missing = ", ".join(name for name in TABLE_6_1.index.unique(0) if name not in traces)
    counts = {"near": near.sum(), "number": len(near), "within": NEAR, "why": verdict.why}
    counts |= {"others_near": others_near.sum(), "others": sum(others.values())}
    verdict_of_means = "close" if near.all() and all(so.values()) else verdict.verdict
    without = f"without {missing}" if missing else ""
    words = _NOTES["means"].format(**counts)
    of = stored.table("table-late", *KEYS, "mean over jobs' ratios")
    chance = of[of["config"] == shares.CHANCE[0]].set_index("trace")["mean over jobs' ratios"]
    most = TABLE_6_1["mean"].groupby(level=0).max().reindex(chance.index)
    another = sum(others.values()) >= items.TREND * len(others)
    if verdict_of_means == "not met" and another and len(chance) and (chance > most).all():
        why = _NOTES["chance"].format(*(tables.listed(of, "{:.2f}") for of in (chance, most)))
        return items.Verdict(verdict_of_means, words).noted(why, without)
    return items.Verdict(verdict_of_means, words).noted(without)


def _worst_off(stored: items.Stored) -> Iterator[dict[str, pd.DataFrame]]:
    """Figure 6.1: the user whose counter is drawn is the worst off of the green ones."""
    table = stored.table("table-users", "trace", "user", "worst off", "efs green")
    rows = table[table["trace"] == WORST_OFF[0]]
    mine = rows[rows["user"] == WORST_OFF[1]]
    if not len(mine):
        raise items.NotThereError("without CEA-Curie")
    high = stored.table("table-counter", "used / most")["used / most"].to_numpy() >= 0.5
    row = {"ratio": mine["efs green"].item(), "worse": int(mine["worst off"].item()) - 1}
    row |= {"others": len(rows) - 1, "peaks": int((high & ~np.append(False, high[:-1])).sum())}
    yield {"user": pd.DataFrame([row])}


def _figure_6_1(stored: items.Stored) -> items.Verdict:
    """Judge figure 6.1 by its sentences; that its percentage is not that of table 6.1 is told."""
    verdict = items.by_sentences(__file__, ["figure 6.1"], _worst_off)(stored)
    ((text,),) = items.published_values(__file__)["figure 6.1"].values()
    times = TABLE_6_1["max"][WORST_OFF[0], "efs", "green"]
    why = _NOTES["worst_off"].format(text=text, times=times, own=100 * (times - 1))
    return verdict.noted(why)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 6.1": _table_6_1,
    "figure 6.1": _figure_6_1,
    "figure 6.2": items.said("figure 6.2", every=True),
    "figure 6.3": items.said("figure 6.3", every=True),
    "figure 6.4": items.of_picture("figure-6.4.png"),
    **{
        f"figure 6.{k}": items.said(f"figure 6.{k}", "table-statements-180", every=True)
        for k in range(5, 8)
    },
    "figure 6.8": items.said("figure 6.8", "table-burst", every=True),
}
