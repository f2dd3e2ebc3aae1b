"""The study of energy fair share: what is published, tables, pictures, report and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import shares
from hpcgym.benchmarks.energy.shares import BURST_USERS, ESP_USERS, FREQUENCIES, TEXT
from hpcgym.benchmarks.studies import items, tables
from hpcgym.benchmarks.studies.harness import Folder, grouped, load_sources, task_of
from hpcgym.benchmarks.studies.tables import Finding, interval, listed
from hpcgym.naming import DAY_S, WEEK_S
from hpcgym.report import canvas
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- What Glesser 2016, section 6.3, prints -------------------------------------------------------


class Row(NamedTuple):
    """A row of table 6.1: statistics over 20 users of their stretch over that in the baseline."""

    min: float
    mean: float
    median: float
    std: float
    max: float


#: Table 6.1: trace -> (configuration, efficiency) -> row. "fs" is 1 everywhere: it is the baseline.
TABLE_6_1: dict[str, dict[tuple[str, str], Row]] = {
    trace: {(policy, name): Row(*of) for policy, by in rows.items() for name, of in by.items()}
    for trace, rows in items.published_values(shares.__file__)["table 6.1"].items()
}

#: Section 6.3.2, in its text; figures 6.2 and 6.3 have no numbers.
UTILISATION = 0.89  # of all policies
SAVED = 0.60  # by which share the efficient user's stretch is reduced

#: Waits [s] up to which efficiency hardly matters under EFS (figure 6.5b).
ALIKE_UP_TO_S = 1_250

#: Figure 6.1: the trace, and the green user who is worst off under EFS.
WORST_OFF = ("CEA-Curie", 33)

# --- Table 6.1 and what it depends on -------------------------------------------------------------

#: trace -> reading -> what :func:`shares.measure` returns.
Outcomes = Mapping[str, Mapping[str, Mapping[str, Any]]]

CELLS = [(policy, efficiency) for policy in shares.POLICIES for efficiency in shares.EFFICIENCIES]


def ratios(outcome: Mapping[str, Any], by: str = "by_means") -> dict[tuple[str, str], Any]:
    """Return (policy, efficiency) -> the users' ratios, (users,)."""
    return {(row["policy"], row["efficiency"]): np.array(row[by]) for row in outcome["rows"]}


def row_of(values: NDArray[np.float64]) -> Row:
    """Return the statistics of table 6.1 over users; the deviation is that of a sample."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    middle = float(values.mean()), float(np.median(values))
    return Row(float(values.min()), *middle, spread, float(values.max()))


def table_6_1(outcomes: Outcomes, by: str = "by_means") -> pd.DataFrame:
    """Return table 6.1 as written, published beside ours; ``by`` is how ratios are formed."""
    rows = []
    for (trace, readings), cell in product(outcomes.items(), CELLS):
        found = ratios(readings[TEXT], by)[cell]
        ours, theirs = row_of(found)._asdict(), TABLE_6_1.get(trace, {}).get(cell)
        row: dict[str, Any] = {"trace": trace, "config": cell[0], "efficiency": cell[1]}
        for name, value in ours.items():
            row[name] = value
            row[f"published {name}"] = None if theirs is None else getattr(theirs, name)
        rows.append({**row, "interval of the mean": interval(found)})
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def of_readings(outcomes: Outcomes) -> pd.DataFrame:
    """Return the means of table 6.1 under each reading."""
    rows: list[dict[str, Any]] = []
    for trace, readings in outcomes.items():
        for name, outcome in readings.items():
            means = {" ".join(cell): row_of(of).mean for cell, of in ratios(outcome).items()}
            known = {"trace": trace, "reading": name, "meaning": shares.READINGS[name].meaning}
            rows.append({**known, "jobs": f"{outcome['jobs']:,}", **means})
        theirs = {" ".join(cell): row.mean for cell, row in TABLE_6_1.get(trace, {}).items()}
        if theirs:
            rows.append({"trace": trace, "reading": "published", **theirs})
    return pd.DataFrame(rows).fillna({"meaning": "", "jobs": ""})


def of_late(outcomes: Outcomes) -> pd.DataFrame:
    """Return how far the means move where each job comes up to a minute later."""
    rows = []
    for trace, readings in outcomes.items():
        late = [of for name, of in readings.items() if shares.READINGS[name].late_seed is not None]
        for cell in [*CELLS, shares.CHANCE] if late else []:
            same = late if cell == shares.CHANCE else [readings[TEXT], *late]
            by_means, by_jobs = (
                np.array([ratios(one, by)[cell].mean() for one in same])
                for by in ("by_means", "by_jobs")
            )
            theirs = TABLE_6_1.get(trace, {}).get(cell)
            rows.append(
                {
                    "trace": trace,
                    "config": cell[0],
                    "efficiency": cell[1],
                    "copies": len(same),
                    "mean": float(by_means.mean()),
                    "least": float(by_means.min()),
                    "greatest": float(by_means.max()),
                    "published": None if theirs is None else theirs.mean,
                    "mean over jobs' ratios": float(by_jobs.mean()),
                }
            )
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def of_users(outcomes: Outcomes) -> pd.DataFrame:
    """Return each user's ratios as written, and her place among green ones under EFS."""
    rows = []
    for trace, readings in outcomes.items():
        found = ratios(readings[TEXT])
        place = found["efs", "green"].argsort()[::-1].argsort() + 1
        for k, user in enumerate(readings[TEXT]["users"]):
            of = {" ".join(cell): float(found[cell][k]) for cell in CELLS}
            rows.append({"trace": trace, "user": str(user), **of, "worst off": int(place[k])})
    return pd.DataFrame(rows)


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


# --- What the text says of Light-ESP --------------------------------------------------------------


def of_esp(outcomes: Sequence[shares.EspOutcome]) -> pd.DataFrame:
    """Return the mean stretch of each user and utilisation, over seeds."""
    rows = []
    for outcome in outcomes:
        fifo = outcome.stretch["FIFO"].mean()
        for policy, stretch in outcome.stretch.items():
            row: dict[str, Any] = {"experiment": outcome.experiment.heading}
            row |= {"load": f"{outcome.load:g}", "policy": policy}
            for user, mean in zip(ESP_USERS, stretch.mean(axis=0).tolist(), strict=True):
                row |= {f"user {user}": mean, f"user {user} / FIFO": mean / fifo}
            row["utilisation"] = float(outcome.utilisation[policy].mean())
            rows.append({**row, "published utilisation": UTILISATION})
    return pd.DataFrame(rows)


#: The experiments of users of other efficiency, and of other jobs.
Pair = tuple[shares.EspOutcome, shares.EspOutcome]


def _means(outcome: shares.EspOutcome, policy: str) -> NDArray[np.float64]:
    """Return the mean stretch of each user over seeds."""
    means: NDArray[np.float64] = outcome.stretch[policy].mean(axis=0)
    return means


def _apart(outcome: shares.EspOutcome, policy: str) -> float:
    """Return the largest of the users' stretches over the least."""
    means = _means(outcome, policy)
    return float(means.max() / means.min())


def _alike(pair: Pair) -> Finding:
    apart = [_apart(pair[0], policy) for policy in ("FIFO", "FS")]
    return f"largest / least {apart[0]:.2f} and {apart[1]:.2f}", max(apart) < 1.1


def _in_order(pair: Pair) -> Finding:
    means = {policy: _means(pair[0], policy) for policy in ("EFS", "FS+EFS")}
    words = [f"{policy}: {', '.join(f'{x:.1f}' for x in of)}" for policy, of in means.items()]
    return "; ".join(words), all((np.diff(of) > 0).all() for of in means.values())


def _saves(pair: Pair) -> Finding:
    saved = 1 - float(_means(pair[0], "EFS")[0] / _means(pair[0], "FS")[0])
    return f"{saved:.0%} of that under FS", abs(saved - SAVED) < 0.15


def _closer(pair: Pair) -> Finding:
    both, energy = (_apart(pair[0], policy) for policy in ("FS+EFS", "EFS"))
    return f"largest / least {both:.2f}, under EFS {energy:.2f}", both < energy


def _as_busy(pair: Pair) -> Finding:
    used = [float(x.mean()) for outcome in pair for x in outcome.utilisation.values()]
    so = max(abs(x - UTILISATION) for x in used) < 0.03
    return f"{min(used):.1%} to {max(used):.1%}", so


def _the_same(pair: Pair) -> Finding:
    fs, *others = (pair[1].stretch[name] for name in ("FS", "EFS", "FS+EFS"))
    same = all(np.array_equal(fs, other) for other in others)
    return "to the second" if same else "not the same", same


def _penalised(pair: Pair) -> Finding:
    last = {int(_means(pair[1], name).argmax()) + 1 for name in pair[1].stretch if name != "FIFO"}
    return f"user {', '.join(map(str, sorted(last)))}", last == {3}


#: What is said, how it is published, what finds ours.
_STATEMENTS = (
    ("FS and FIFO: all users have roughly the same stretch", "roughly the same", _alike),
    ("EFS and FS+EFS: the more energy, the larger the stretch", "so", _in_order),
    ("EFS: the efficient user's stretch is reduced", f"by roughly {SAVED:.0%}", _saves),
    ("FS+EFS: users differ less than under EFS", "smaller difference", _closer),
    ("all policies have the same utilisation", f"about {UTILISATION:.0%}", _as_busy),
    ("other jobs: but for FIFO all policies have the same results", "the same", _the_same),
    ("other jobs: the user with most is penalised", "user 3", _penalised),
)


def statements(outcomes: Sequence[shares.EspOutcome]) -> pd.DataFrame:
    """Return what the text of section 6.3.2 says, and whether it is so here, under each load."""
    found = {}
    for load in dict.fromkeys(outcome.load for outcome in outcomes):
        at = {one.experiment: one for one in outcomes if one.load == load}
        pair = at[shares.EFFICIENCY], at[shares.WORKLOAD]
        found[f"load {load:g}"] = [check(pair) for _, _, check in _STATEMENTS]
    return tables.statements_table("Glesser 2016, section 6.3.2", _STATEMENTS, found)


# --- What the text says of Light-ESP on 180 cores -------------------------------------------------

#: policy -> what became of the jobs; load -> that.
Policies = Mapping[str, shares.Outcome180]
Outcomes180 = Mapping[float, Policies]
#: part of energy saved -> the same of the burst.
Bursts = Mapping[float, shares.Outcome180]

#: Within which share of the larger two means are alike, and beyond which one is clearly below: the
#: thesis names none. They were chosen once first runs were known.
ALIKE, CLEARLY = 0.2, 0.1


def of_users_180(outcomes: Outcomes180, bursts: Bursts) -> pd.DataFrame:
    """Return means and quartiles of stretches and waits: figures 6.5 to 6.8 in numbers."""
    parts = [
        (shares.FIGURES[policy], policy, f"Light-ESP, load {load:g}", outcome)
        for load, policies in outcomes.items()
        for policy, outcome in policies.items()
    ]
    parts += [("6.8", "EFS", f"burst, {saved:.1%} saved", of) for saved, of in bursts.items()]
    rows = []
    for figure, policy, jobs, outcome in parts:
        for user in outcome.wait:
            row: dict[str, Any] = {"figure": figure, "policy": policy, "jobs": jobs, "user": user}
            for what, of in (("stretch", outcome.stretch[user]), ("wait (s)", outcome.wait[user])):
                row[f"mean {what}"] = float(of.mean())
                for part, name in ((0.25, "q1"), (0.5, "median"), (0.75, "q3"), (0.95, "p95")):
                    row[f"{name}, {what}"] = float(np.quantile(of, part))
            rows.append(row)
    return pd.DataFrame(rows)


def of_frequencies() -> pd.DataFrame:
    """Return the model of figure 6.4: time and energy of Linpack at the users' frequencies."""
    return pd.DataFrame(
        {
            "user": user,
            "GHz": f"{FREQUENCIES[user]:g}",
            "time / highest": longer,
            "power / highest": drawn,
            "energy / highest": longer * drawn,
        }
        for user, (longer, drawn) in shares.efficiencies().items()
    )


Test = Callable[[Mapping[str, float]], bool]


def _so(policies: Policies, policy: str, of: str, test: Test) -> Finding:
    """Return whether something is so of users' mean stretches or waits, or of "both"."""
    outcome, words, so = policies[policy], [], True
    for what, values, form in (
        ("stretch", outcome.stretch, "{:,.1f}"),
        ("wait", outcome.wait, "{:,.0f}"),
    ):
        if of in (what, "both"):
            means = {user: float(found.mean()) for user, found in values.items()}
            words.append(f"{what} {listed(means, form)}")
            so &= test(means)
    return "; ".join(words), so


def _near(one: str, other: str) -> Test:
    return lambda of: abs(of[one] - of[other]) <= ALIKE * max(of[one], of[other])


def _above(by: float) -> Test:
    return lambda of: of["gluttonous"] > (1 + by) * max(of["green"], of["normal"])


def _slightly_less(of: Mapping[str, float]) -> bool:
    return (1 - CLEARLY) * of["normal"] < of["green"] < of["normal"]


def _alike_at_first(policies: Policies) -> Finding:
    waits, apart = policies["EFS"].wait, []
    for first, last in ((0.0, ALIKE_UP_TO_S), (ALIKE_UP_TO_S, np.inf)):
        at = np.unique(np.concatenate([*waits.values()]))
        at = at[(first <= at) & (at <= last)]
        parts = np.array([np.searchsorted(of, at, "right") / len(of) for of in waits.values()])
        apart.append(float((parts.max(axis=0) - parts.min(axis=0)).max(initial=0.0)))
    words = f"distributions differ by {apart[0]:.2f} up to {ALIKE_UP_TO_S:,} s, by {apart[1]:.2f}"
    return f"{words} beyond", apart[0] < apart[1]


def _degraded(policies: Policies) -> Finding:
    names = ("FS+EFS", "EFS")
    both = {name: float(policies[name].stretch["gluttonous"].mean()) for name in names}
    return listed(both, "{:.1f}"), both["FS+EFS"] > (1 + CLEARLY) * both["EFS"]


def _improved(bursts: Bursts) -> Finding:
    """Return whether the green user is clearly better with the least saving that was assumed."""

    def better(found: Mapping[str, float]) -> bool:
        green, *others = (found[user] for user in BURST_USERS)
        return green < (1 - CLEARLY) * min(others)

    found = {saved: _so({"EFS": of}, "EFS", "both", better) for saved, of in bursts.items()}
    words = [f"{saved:.1%} saved: {ours}" for saved, (ours, _) in found.items()]
    return ". ".join(words), found[min(shares.BURST_SAVED)][1]


def _of(policy: str, what: str, test: Test) -> Callable[[Policies], Finding]:
    return partial(_so, policy=policy, of=what, test=test)


_LESS: Test = lambda of: of["green"] < of["normal"]  # noqa: E731
_BEST: Test = lambda of: min(of.values()) == of["normal"]  # noqa: E731
_WORST: Test = lambda of: max(of.values()) == of["gluttonous"]  # noqa: E731
_MORE: Test = lambda of: of["normal"] < of["green"]  # noqa: E731

#: What is said, how it is published, what finds ours.
_STATEMENTS_180: tuple[tuple[str, str, Callable[[Policies], Finding]], ...] = (
    ("figure 6.5: green jobs have a smaller stretch than normal ones", "so",
     _of("EFS", "stretch", _LESS)),
    ("figure 6.5: stretches of green and gluttonous jobs", "quite similar",
     _of("EFS", "stretch", _near("green", "gluttonous"))),
    ("figure 6.5: gluttonous jobs wait much longer", "so", _of("EFS", "wait", _above(CLEARLY))),
    ("figure 6.5: green jobs wait less than normal ones", "slightly",
     _of("EFS", "wait", _slightly_less)),
    ("figure 6.5: short waits are alike, long ones differ", "up to 1,250 s", _alike_at_first),
    ("figure 6.6: normal jobs have the best stretch and wait", "so", _of("FS", "both", _BEST)),
    ("figure 6.6: gluttonous jobs have the worst", "so", _of("FS", "both", _WORST)),
    ("figure 6.7: gluttonous jobs wait longer than both others", "important",
     _of("FS+EFS", "wait", _above(ALIKE))),
    ("figure 6.7: their stretch is worse than in figure 6.5", "significantly", _degraded),
    ("figure 6.7: green and normal jobs", "similarly good",
     _of("FS+EFS", "both", _near("green", "normal"))),
    ("figure 6.7: normal jobs have an advantage over green ones", "slight",
     _of("FS+EFS", "both", _MORE)),
)  # fmt: skip
_OF_BURST = (
    ("figure 6.8: green jobs of a burst have better stretches and waits", "so", _improved),
)


def statements_180(outcomes: Outcomes180, bursts: Bursts) -> pd.DataFrame:
    """Return what section 6.3.3 says of its figures, and whether it is so here, under each load.

    Of the burst it is under each part of energy that the green user may save, whatever the load.
    """
    of_burst = [check(bursts) for _, _, check in _OF_BURST]
    found = {
        f"load {load:g}": [check(policies) for _, _, check in _STATEMENTS_180] + of_burst
        for load, policies in outcomes.items()
    }
    said = (*_STATEMENTS_180, *_OF_BURST)
    return tables.statements_table("Glesser 2016, section 6.3.3", said, found)


# --- Pictures -------------------------------------------------------------------------------------

_USERS = (canvas.GREEN, canvas.BLUE, canvas.VERMILLION)
_COLOURS_180 = dict(zip(FREQUENCIES, _USERS, strict=True)) | {"on demand": canvas.ORANGE}
#: Where names stand beside their marks [points].
_BESIDE = {"green": (-4, -13), "normal": (6, 6), "gluttonous": (-96, -4)}


def draw_counter(workload: Any, user: int) -> Figure:
    """Figure 6.1: what a green user has used under EFS, over time."""
    reading = shares.READINGS[TEXT]
    mine = workload.user_id == user
    watts = np.where(mine, shares.EFFICIENCIES["green"] * shares.USUAL_W, shares.USUAL_W)
    jobs = workload.with_columns(power_w=watts)
    result = simulate(jobs, reading.scheduler(shares.POLICIES["efs"]))
    times, used = counter(result, user, WEEK_S)
    figure = canvas.new_figure(8, 3.4)
    axes = figure.add_subplot()
    days = (times - int(workload.submit_time[0])) / DAY_S
    axes.step(days, used / used.max(), where="post", color=canvas.BLUE, linewidth=1)
    heading = f"{workload.name}, EFS: user {user}, who needs 30 % less energy (figure 6.1)"
    tables.finish(axes, heading, x="days", y="used, decayed / the most")
    return figure


def draw_esp(outcomes: Sequence[shares.EspOutcome]) -> Figure:
    """Figures 6.2 and 6.3: mean stretch of each user under each policy, over that of FIFO."""
    figure = canvas.new_figure(9, 3.8)
    panels = np.atleast_1d(figure.subplots(1, len(outcomes), sharey=True))
    for axes, outcome in zip(panels, outcomes, strict=True):
        fifo = outcome.stretch["FIFO"].mean()
        for place, user in enumerate(ESP_USERS):
            values = [rows[:, place] / fifo for rows in outcome.stretch.values()]
            axes.bar(
                np.arange(len(values)) + 0.27 * (place - 1),
                [one.mean() for one in values],
                0.25,
                yerr=[1.96 * one.std(ddof=1) / np.sqrt(len(one)) for one in values],
                color=_USERS[place],
                ecolor=canvas.DARK_GREY,
                capsize=2,
                label=f"user {user}",
            )
        axes.set_xticks(range(len(outcome.stretch)), list(outcome.stretch))
        tables.finish(axes, outcome.experiment.heading.capitalize())
    panels[0].set_ylabel("mean stretch / that under FIFO")
    return figure


def draw_frequencies() -> Figure:
    """Figure 6.4: energy by completion time, at each frequency of the users."""
    figure = canvas.new_figure(5.5, 3.8)
    axes = figure.add_subplot()
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
    return figure


def draw_distributions(outcome: shares.Outcome180, heading: str) -> Figure:
    """Figures 6.5 to 6.8: distributions of stretches (a) and waits (b), by user."""
    figure = canvas.new_figure(9, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, values in zip(panels, (outcome.stretch, outcome.wait), strict=True):
        for user, of in values.items():
            style = "--" if user == "on demand" else "-"
            axes.plot(of, np.arange(1, len(of) + 1) / len(of), style, drawstyle="steps-post",
                      color=_COLOURS_180[user], linewidth=1.4, label=user)  # fmt: skip
        axes.set_ylim(0, 1.02)
    every = np.concatenate(list(outcome.stretch.values()))
    log = "x" if every.max() > 20 * every.min() else ""
    tables.finish(panels[0], heading, x="stretch", y="share of jobs", log=log, grid="both")
    tables.finish(panels[1], x="waiting time (s)", grid="both")
    return figure


# --- The whole study ------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "shares.md")


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, two of the same name, a file that cannot be written,
        a simulation that fails, or no matplotlib.
    """
    folder.begin(HEAD)
    tasks = _tasks(sources, quick)
    found = folder.run(shares.measure, tasks, "readings", chunk=1)
    outcomes: dict[str, dict[str, Any]] = grouped(tasks, found, "trace", "reading")
    seeds = shares.QUICK_SEEDS if quick else shares.SEEDS
    kinds = list(product(shares.LOADS, (shares.EFFICIENCY, shares.WORKLOAD)))
    experiments = []
    for place, (load, experiment) in enumerate(kinds):
        folder.progress("light-esp", place, len(kinds))
        experiments.append(shares.run_esp(experiment, load, seeds))
    on_180 = {load: shares.run_180(load, seeds) for load in shares.LOADS}
    bursts = shares.run_burst()
    made = {
        "6.1": table_6_1(outcomes),
        "6.1-by-jobs": table_6_1(outcomes, "by_jobs"),
        "readings": of_readings(outcomes),
        "late": of_late(outcomes),
        "users": of_users(outcomes),
        "light-esp": of_esp(experiments),
        "statements": statements(experiments),
        "frequencies": of_frequencies(),
        "light-esp-180": of_users_180(on_180, bursts),
        "statements-180": statements_180(on_180, bursts),
    }
    usual, least = on_180[shares.LOADS[0]], min(shares.BURST_SAVED)
    of_three = [one for one in experiments if one.load == shares.LOADS[0]]
    drawn = {
        "light-esp": ("Three users of Light-ESP (figures 6.2 and 6.3)", draw_esp(of_three)),
        "figure-6.4": ("Linpack by frequency", draw_frequencies()),
    }
    for source in sources:
        workload = shares.load_trace(source, shares.READINGS[TEXT], None)
        if workload.name == WORST_OFF[0] and not quick:
            figure = draw_counter(workload, WORST_OFF[1])
            drawn["figure-6.1"] = "What user 33 of Curie has used (figure 6.1)", figure
    shown = {
        number: (f"{policy}, Light-ESP on 180 cores (figure {number})", usual[policy])
        for policy, number in shares.FIGURES.items()
    } | {"6.8": (f"EFS, a burst, {least:.0%} saved (figure 6.8)", bursts[least])}
    for number, (heading, outcome) in shown.items():
        drawn[f"figure-{number}"] = heading, draw_distributions(outcome, heading)
    pictures = {
        heading: folder.picture(figure, f"{name}.png") for name, (heading, figure) in drawn.items()
    }
    head, cut = HEAD.format(version=__version__), "few jobs, users and orders" * quick
    return folder.publish(head, made, TEXTS, pictures, cut)


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

#: How far a mean may be from a published one to count as near.
NEAR = 0.1


def _table_6_1(stored: items.Stored) -> items.Verdict:
    """Means of table 6.1: near the published ones, on the same side of 1, in the same order.

    They are of users' mean stretches over those before. The text has the mean of jobs' ratios, of
    which it is told how many are near.
    """
    so: dict[str, bool] = {}
    near: list[bool] = []
    by_jobs: list[bool] = []
    for trace, theirs in TABLE_6_1.items():
        for name, found in (("6.1", near), ("6.1-by-jobs", by_jobs)):
            table = stored.table(f"table-{name}", "trace", "config", "efficiency", "mean")
            means = table[table["trace"] == trace].set_index(["config", "efficiency"])["mean"]
            found += [
                abs(means[key] - row.mean) <= NEAR for key, row in theirs.items() if len(means)
            ]
            if name == "6.1-by-jobs" or not len(means):
                continue
            for key, row in theirs.items():
                same = (means[key] > 1) == (row.mean > 1)
                so[f"{trace}, {' '.join(key)}: the same side of 1"] = same
            for policy in shares.POLICIES:
                below = means[policy, "green"] < means[policy, "gluttonous"]
                printed = theirs[policy, "green"].mean < theirs[policy, "gluttonous"].mean
                so[f"{trace}, {policy}: the order"] = below == printed
    verdict = items.of_sentences(so)
    words = (
        f"by users' mean stretches {sum(near)} of {len(near)} means within {NEAR:g}; {verdict.why};"
        f" by the mean of jobs' ratios, as the text has it, {sum(by_jobs)} within"
    )
    close = all(near) and all(so.values())
    return items.Verdict("close" if close else verdict.verdict, words)


def _figure_6_1(stored: items.Stored) -> items.Verdict:
    """Figure 6.1: the user whose counter is drawn is the worst off of the green ones."""
    table = stored.table("table-users", "trace", "user", "worst off", "efs green")
    rows = table[table["trace"] == WORST_OFF[0]]
    row = rows[rows["user"] == WORST_OFF[1]]
    if not len(row) or not stored.has("figure-6.1.png"):
        raise items.NotThereError("without CEA-Curie")
    ratio, place = float(row["efs green"].item()), int(row["worst off"].item())
    printed = TABLE_6_1[WORST_OFF[0]]["efs", "green"].max
    return items.of_sentences(
        {
            f"she waits longer than before: {ratio:.2f} times, published {printed:g}": ratio > 1,
            f"no green user is worse off: here {place - 1} of {len(rows) - 1} others are": place
            == 1,
        }
    )


def _said(table: str, section: str, *begin: str) -> items.Judge:
    return items.said(table, f"Glesser 2016, section {section}", begin)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 6.1": _table_6_1,
    "figure 6.1": _figure_6_1,
    "figure 6.2": _said("table-statements", "6.3.2", "FS and", "EFS", "FS+EFS", "all policies"),
    "figure 6.3": _said("table-statements", "6.3.2", "other jobs"),
    "figure 6.4": items.of_picture("figure-6.4.png"),
    **{
        f"figure 6.{k}": _said("table-statements-180", "6.3.3", f"figure 6.{k}")
        for k in range(5, 9)
    },
}
