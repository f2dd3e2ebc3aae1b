"""The tables of the study of energy fair share, ours beside the published values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import shares
from hpcgym.benchmarks.energy.published_shares import (
    ALIKE_UP_TO_S,
    FREQUENCIES,
    SAVED,
    TABLE_6_1,
    UTILISATION,
    Row,
)
from hpcgym.benchmarks.studies.tables import Finding, interval, listed, statements_table

# --- The tables of the study of energy fair share -------------------------------------------------

#: trace -> reading -> what :func:`shares.measure` returns.
Outcomes = Mapping[str, Mapping[str, Mapping[str, Any]]]

CELLS = [(policy, efficiency) for policy in shares.POLICIES for efficiency in shares.EFFICIENCIES]
STATISTICS = ("min", "mean", "median", "std", "max")


def ratios(outcome: Mapping[str, Any], by: str = "by_means") -> dict[tuple[str, str], Any]:
    """Return (policy, efficiency) -> the users' ratios, (users,)."""
    return {(row["policy"], row["efficiency"]): np.array(row[by]) for row in outcome["rows"]}


def row_of(values: NDArray[np.float64]) -> Row:
    """Return the statistics of table 6.1 over users; the deviation is that of a sample."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Row(
        float(values.min()),
        float(values.mean()),
        float(np.median(values)),
        spread,
        float(values.max()),
    )


def table_6_1(outcomes: Outcomes, by: str = "by_means") -> pd.DataFrame:
    """Return table 6.1 as written, published beside ours; ``by`` is how ratios are formed."""
    rows = []
    for trace, readings in outcomes.items():
        found, theirs = ratios(readings[shares.TEXT], by), TABLE_6_1.get(trace, {})
        for cell in CELLS:
            row: dict[str, Any] = _named(trace, cell)
            ours = row_of(found[cell])
            for name, value, place in zip(STATISTICS, ours, range(5), strict=True):
                row[name] = value
                row[f"published {name}"] = theirs[cell][place] if cell in theirs else None
                if name == "mean":
                    row["interval of the mean"] = interval(found[cell])
            rows.append(row)
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def _named(trace: str, cell: tuple[str, str]) -> dict[str, Any]:
    """Return the first cells of a row."""
    return {"trace": trace, "config": cell[0], "efficiency": cell[1]}


def by_jobs(outcomes: Outcomes) -> pd.DataFrame:
    """Return table 6.1 with the mean over jobs of each job's ratio."""
    return table_6_1(outcomes, "by_jobs")


def of_readings(outcomes: Outcomes) -> pd.DataFrame:
    """Return the means of table 6.1 under each reading."""
    rows = []
    for trace, readings in outcomes.items():
        for name, outcome in readings.items():
            found = ratios(outcome)
            row: dict[str, Any] = {"trace": trace, "reading": name}
            row["meaning"] = shares.READINGS[name].meaning
            row["jobs"] = f"{outcome['jobs']:,}"
            row |= {" ".join(cell): row_of(found[cell]).mean for cell in CELLS}
            rows.append(row)
        if trace in TABLE_6_1:
            theirs = {" ".join(cell): TABLE_6_1[trace][cell].mean for cell in CELLS}
            rows.append(
                {"trace": trace, "reading": "published", "meaning": "", "jobs": "", **theirs}
            )
    return pd.DataFrame(rows)


def of_late(outcomes: Outcomes) -> pd.DataFrame:
    """Return how far the means move where each job comes up to a minute later."""
    rows = []
    for trace, readings in outcomes.items():
        late = [
            one for name, one in readings.items() if shares.READINGS[name].late_seed is not None
        ]
        if not late:
            continue
        for cell in [*CELLS, shares.CHANCE]:
            same = late if cell == shares.CHANCE else [readings[shares.TEXT], *late]
            means = np.array([row_of(ratios(one)[cell]).mean for one in same])
            jobs = np.array([row_of(ratios(one, "by_jobs")[cell]).mean for one in same])
            row: dict[str, Any] = _named(trace, cell)
            row |= {"copies": len(same), "mean": float(means.mean())}
            row |= {"least": float(means.min()), "greatest": float(means.max())}
            theirs = TABLE_6_1.get(trace, {}).get(cell)
            row["published"] = None if theirs is None else theirs.mean
            row["mean over jobs' ratios"] = float(jobs.mean())
            rows.append(row)
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def of_esp(outcomes: Sequence[shares.EspOutcome]) -> pd.DataFrame:
    """Return the mean stretch of each user and utilisation, over seeds."""
    rows = []
    for outcome in outcomes:
        fifo = outcome.stretch["FIFO"].mean()
        for policy, stretch in outcome.stretch.items():
            row: dict[str, Any] = {"experiment": outcome.experiment.heading}
            row |= {"load": f"{outcome.load:g}", "policy": policy}
            for place, user in enumerate(shares.ESP_USERS):
                row[f"user {user}"] = float(stretch[:, place].mean())
                row[f"user {user} / FIFO"] = float(stretch[:, place].mean() / fifo)
            row["utilisation"] = float(outcome.utilisation[policy].mean())
            row["published utilisation"] = UTILISATION
            rows.append(row)
    return pd.DataFrame(rows)


def statements(outcomes: Sequence[shares.EspOutcome]) -> pd.DataFrame:
    """Return what the text of section 6.3.2 says, and whether it is so here, under each load."""
    found = {}
    for load in dict.fromkeys(outcome.load for outcome in outcomes):
        at = {one.experiment: one for one in outcomes if one.load == load}
        pair = at[shares.EFFICIENCY], at[shares.WORKLOAD]
        found[f"load {load:g}"] = [check(*pair) for _, _, check in _STATEMENTS]
    return statements_table("Glesser 2016, section 6.3.2", _STATEMENTS, found)


def _means(outcome: shares.EspOutcome, policy: str) -> NDArray[np.float64]:
    """Return the mean stretch of each user over seeds."""
    means: NDArray[np.float64] = outcome.stretch[policy].mean(axis=0)
    return means


def _apart(outcome: shares.EspOutcome, policy: str) -> float:
    """Return the largest of the users' stretches over the least."""
    means = _means(outcome, policy)
    return float(means.max() / means.min())


def _alike(efficiency: shares.EspOutcome, _: shares.EspOutcome) -> Finding:
    apart = [_apart(efficiency, policy) for policy in ("FIFO", "FS")]
    return f"largest / least {apart[0]:.2f} and {apart[1]:.2f}", max(apart) < 1.1


def _in_order(efficiency: shares.EspOutcome, _: shares.EspOutcome) -> Finding:
    means = {policy: _means(efficiency, policy) for policy in ("EFS", "FS+EFS")}
    words = [f"{policy}: {', '.join(f'{x:.1f}' for x in of)}" for policy, of in means.items()]
    return "; ".join(words), all((np.diff(of) > 0).all() for of in means.values())


def _saves(efficiency: shares.EspOutcome, _: shares.EspOutcome) -> Finding:
    saved = 1 - float(_means(efficiency, "EFS")[0] / _means(efficiency, "FS")[0])
    return f"{saved:.0%} of that under FS", abs(saved - SAVED) < 0.15


def _closer(efficiency: shares.EspOutcome, _: shares.EspOutcome) -> Finding:
    both, energy = (_apart(efficiency, policy) for policy in ("FS+EFS", "EFS"))
    return f"largest / least {both:.2f}, under EFS {energy:.2f}", both < energy


def _as_busy(*outcomes: shares.EspOutcome) -> Finding:
    used = [float(x.mean()) for outcome in outcomes for x in outcome.utilisation.values()]
    so = max(abs(x - UTILISATION) for x in used) < 0.03
    return f"{min(used):.1%} to {max(used):.1%}", so


def _the_same(_: shares.EspOutcome, workload: shares.EspOutcome) -> Finding:
    same = all(
        np.array_equal(workload.stretch["FS"], workload.stretch[name]) for name in ("EFS", "FS+EFS")
    )
    return "to the second" if same else "not the same", same


def _penalised(_: shares.EspOutcome, workload: shares.EspOutcome) -> Finding:
    names = [policy for policy in workload.stretch if policy != "FIFO"]
    last = {int(_means(workload, policy).argmax()) + 1 for policy in names}
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


# --- What section 6 -------------------------------------------------------------------------------

#: load -> policy -> what became of the jobs.
Outcomes180 = Mapping[float, Mapping[str, shares.Outcome180]]
#: part of energy saved -> the same of the burst.
Bursts = Mapping[float, shares.Outcome180]

#: Within which share of the larger two means are alike, and beyond which one is clearly below: the
#: thesis names none. They were chosen once first runs were known.
ALIKE, CLEARLY = 0.2, 0.1


def of_users_180(outcomes: Outcomes180, bursts: Bursts) -> pd.DataFrame:
    """Return means and quartiles of stretches and waits: figures 6.5 to 6.8 in numbers."""
    rows = []
    for load, policies in outcomes.items():
        for policy, outcome in policies.items():
            row = {
                "figure": shares.FIGURES[policy],
                "policy": policy,
                "jobs": f"Light-ESP, load {load:g}",
            }
            rows += _rows(outcome, row)
    for saved, outcome in bursts.items():
        row = {"figure": "6.8", "policy": "EFS", "jobs": f"burst, {saved:.1%} saved"}
        rows += _rows(outcome, row)
    return pd.DataFrame(rows)


def _rows(outcome: shares.Outcome180, row: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for user in outcome.wait:
        found: dict[str, Any] = {**row, "user": user}
        for what, values in (("stretch", outcome.stretch[user]), ("wait (s)", outcome.wait[user])):
            found[f"mean {what}"] = float(values.mean())
            for part, name in ((0.25, "q1"), (0.5, "median"), (0.75, "q3"), (0.95, "p95")):
                found[f"{name}, {what}"] = float(np.quantile(values, part))
        rows.append(found)
    return rows


def of_frequencies() -> pd.DataFrame:
    """Return the model of figure 6.4: time and energy of Linpack at the users' frequencies."""
    rows = []
    for user, (longer, drawn) in shares.efficiencies().items():
        row: dict[str, Any] = {"user": user, "GHz": f"{FREQUENCIES[user]:g}"}
        row |= {
            "time / highest": longer,
            "power / highest": drawn,
            "energy / highest": longer * drawn,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def statements_180(outcomes: Outcomes180, bursts: Bursts) -> pd.DataFrame:
    """Return what section 6.3.3 says of its figures, and whether it is so, under each load.

    Of the burst it is under each part of energy that the green user may save, whatever the load.
    """
    of_burst = [check(bursts) for _, _, check in _OF_BURST]
    found = {
        f"load {load:g}": [check(policies) for _, _, check in _STATEMENTS_180] + of_burst
        for load, policies in outcomes.items()
    }
    said = (*_STATEMENTS_180, *_OF_BURST)
    return statements_table("Glesser 2016, section 6.3.3", said, found)


Policies = Mapping[str, shares.Outcome180]


def _means_180(values: Mapping[str, shares.Floats], form: str) -> tuple[dict[str, float], str]:
    """Return the mean of each user, and all in words."""
    found = {user: float(of.mean()) for user, of in values.items()}
    return found, listed(found, form)


Test = Callable[[Mapping[str, float]], bool]


def _stretch(policies: Policies, policy: str, so: Test) -> Finding:
    """Return whether something is so of the users' mean stretches."""
    found, words = _means_180(policies[policy].stretch, "{:,.1f}")
    return words, so(found)


def _wait(policies: Policies, policy: str, so: Test) -> Finding:
    """Return whether something is so of the users' mean waits."""
    found, words = _means_180(policies[policy].wait, "{:,.0f}")
    return words, so(found)


def _both(policies: Policies, policy: str, so: Test) -> Finding:
    """Return whether something is so of the users' mean stretches and of their mean waits."""
    (words, one), (more, other) = (of(policies, policy, so) for of in (_stretch, _wait))
    return f"stretch {words}; wait {more}", one and other


def _alike_within(found: Mapping[str, float], one: str, other: str) -> bool:
    return abs(found[one] - found[other]) <= ALIKE * max(found[one], found[other])


def _gluttonous_above(found: Mapping[str, float], by: float) -> bool:
    return found["gluttonous"] > (1 + by) * max(found["green"], found["normal"])


def _alike_at_first(policies: Policies) -> Finding:
    waits = policies["EFS"].wait
    before, beyond = _apart_180(waits, 0, ALIKE_UP_TO_S), _apart_180(waits, ALIKE_UP_TO_S, np.inf)
    words = (
        f"distributions differ by {before:.2f} up to {ALIKE_UP_TO_S:,} s, by {beyond:.2f} beyond"
    )
    return words, before < beyond


def _apart_180(waits: Mapping[str, shares.Floats], first: float, last: float) -> float:
    """Return how far the users' distributions are apart at most between two waits."""
    at = np.unique(np.concatenate([*waits.values()]))
    at = at[(first <= at) & (at <= last)]
    parts = np.array([np.searchsorted(of, at, "right") / len(of) for of in waits.values()])
    return float((parts.max(axis=0) - parts.min(axis=0)).max(initial=0.0))


def _green_first(policies: Policies) -> Finding:
    return _stretch(policies, "EFS", lambda user: user["green"] < user["normal"])


def _green_like_gluttonous(policies: Policies) -> Finding:
    return _stretch(policies, "EFS", lambda user: _alike_within(user, "green", "gluttonous"))


def _gluttonous_wait(policies: Policies) -> Finding:
    return _wait(policies, "EFS", lambda user: _gluttonous_above(user, CLEARLY))


def _green_waits_less(policies: Policies) -> Finding:
    least = 1 - CLEARLY
    return _wait(policies, "EFS", lambda u: least * u["normal"] < u["green"] < u["normal"])


def _normal_best(policies: Policies) -> Finding:
    return _both(policies, "FS", lambda user: min(user.values()) == user["normal"])


def _gluttonous_worst(policies: Policies) -> Finding:
    return _both(policies, "FS", lambda user: max(user.values()) == user["gluttonous"])


def _disadvantage(policies: Policies) -> Finding:
    return _wait(policies, "FS+EFS", lambda user: _gluttonous_above(user, ALIKE))


def _degraded(policies: Policies) -> Finding:
    names = ("FS+EFS", "EFS")
    both = {name: float(policies[name].stretch["gluttonous"].mean()) for name in names}
    return listed(both, "{:.1f}"), both["FS+EFS"] > (1 + CLEARLY) * both["EFS"]


def _similarly_good(policies: Policies) -> Finding:
    return _both(policies, "FS+EFS", lambda user: _alike_within(user, "green", "normal"))


def _slight_advantage(policies: Policies) -> Finding:
    return _both(policies, "FS+EFS", lambda user: user["normal"] < user["green"])


def _improved(bursts: Bursts) -> Finding:
    """Return whether the green user is clearly better with the least saving that was assumed."""

    def better(found: Mapping[str, float]) -> bool:
        green, *others = (found[user] for user in shares.BURST_USERS)
        return green < (1 - CLEARLY) * min(others)

    found = {saved: _both({"EFS": outcome}, "EFS", better) for saved, outcome in bursts.items()}
    words = [f"{saved:.1%} saved: {ours}" for saved, (ours, _) in found.items()]
    return ". ".join(words), found[min(shares.BURST_SAVED)][1]


#: What is said, how it is published, what finds ours.
_STATEMENTS_180: tuple[tuple[str, str, Callable[[Policies], Finding]], ...] = (
    ("figure 6.5: green jobs have a smaller stretch than normal ones", "so", _green_first),
    ("figure 6.5: stretches of green and gluttonous jobs", "quite similar", _green_like_gluttonous),
    ("figure 6.5: gluttonous jobs wait much longer", "so", _gluttonous_wait),
    ("figure 6.5: green jobs wait less than normal ones", "slightly", _green_waits_less),
    ("figure 6.5: short waits are alike, long ones differ", "up to 1,250 s", _alike_at_first),
    ("figure 6.6: normal jobs have the best stretch and wait", "so", _normal_best),
    ("figure 6.6: gluttonous jobs have the worst", "so", _gluttonous_worst),
    ("figure 6.7: gluttonous jobs wait longer than both others", "important", _disadvantage),
    ("figure 6.7: their stretch is worse than in figure 6.5", "significantly", _degraded),
    ("figure 6.7: green and normal jobs", "similarly good", _similarly_good),
    ("figure 6.7: normal jobs have an advantage over green ones", "slight", _slight_advantage),
)

_OF_BURST: tuple[tuple[str, str, Callable[[Bursts], Finding]], ...] = (
    ("figure 6.8: green jobs of a burst have better stretches and waits", "so", _improved),
)
