"""The tables of the study of energy fair share, ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import esp
from hpcgym.benchmarks.energy.published_shares import SAVED, TABLE_6_1, UTILISATION, Row
from hpcgym.benchmarks.energy.resampled import interval
from hpcgym.benchmarks.energy.shares import CHANCE, EFFICIENCIES, POLICIES, READINGS, TEXT

if TYPE_CHECKING:
    import pandas as pd

#: trace -> reading -> what :func:`shares.measure` returns.
Outcomes = Mapping[str, Mapping[str, Mapping[str, Any]]]

CELLS = [(policy, efficiency) for policy in POLICIES for efficiency in EFFICIENCIES]
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
    import pandas as pd

    rows = []
    for trace, readings in outcomes.items():
        found, theirs = ratios(readings[TEXT], by), TABLE_6_1.get(trace, {})
        for cell in CELLS:
            row: dict[str, Any] = _named(trace, cell)
            ours = row_of(found[cell])
            for name, value, place in zip(STATISTICS, ours, range(5), strict=True):
                row[name] = value
                row[f"published {name}"] = theirs[cell][place] if cell in theirs else None
                if name == "mean":
                    row["interval of the mean"] = interval(found[cell])
            rows.append(row)
    return _without_empty(pd.DataFrame(rows))


def _named(trace: str, cell: tuple[str, str]) -> dict[str, Any]:
    """Return the first cells of a row."""
    return {"trace": trace, "config": cell[0], "efficiency": cell[1]}


def by_jobs(outcomes: Outcomes) -> pd.DataFrame:
    """Return table 6.1 with the mean over jobs of each job's ratio."""
    return table_6_1(outcomes, "by_jobs")


def of_readings(outcomes: Outcomes) -> pd.DataFrame:
    """Return the means of table 6.1 under each reading."""
    import pandas as pd

    rows = []
    for trace, readings in outcomes.items():
        for name, outcome in readings.items():
            found = ratios(outcome)
            row: dict[str, Any] = {"trace": trace, "reading": name}
            row["meaning"] = READINGS[name].meaning
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
    import pandas as pd

    rows = []
    for trace, readings in outcomes.items():
        late = [one for name, one in readings.items() if READINGS[name].late_seed is not None]
        if not late:
            continue
        for cell in [*CELLS, CHANCE]:
            same = late if cell == CHANCE else [readings[TEXT], *late]
            means = np.array([row_of(ratios(one)[cell]).mean for one in same])
            jobs = np.array([row_of(ratios(one, "by_jobs")[cell]).mean for one in same])
            row: dict[str, Any] = _named(trace, cell)
            row |= {"copies": len(same), "mean": float(means.mean())}
            row |= {"least": float(means.min()), "greatest": float(means.max())}
            theirs = TABLE_6_1.get(trace, {}).get(cell)
            row["published"] = None if theirs is None else theirs.mean
            row["mean over jobs' ratios"] = float(jobs.mean())
            rows.append(row)
    return _without_empty(pd.DataFrame(rows))


def of_users(outcomes: Outcomes) -> pd.DataFrame:
    """Return each user's ratios, as written."""
    import pandas as pd

    rows = []
    for trace, readings in outcomes.items():
        outcome = readings[TEXT]
        for place, user in enumerate(outcome["users"]):
            row = {"trace": trace, "user": user, "stretch, FS": outcome["baseline"][place]}
            found = ratios(outcome)
            rows.append(row | {" ".join(cell): float(found[cell][place]) for cell in CELLS})
    return pd.DataFrame(rows)


def of_esp(outcomes: Sequence[esp.Outcome]) -> pd.DataFrame:
    """Return the mean stretch of each user and utilisation, over seeds."""
    import pandas as pd

    rows = []
    for outcome in outcomes:
        fifo = outcome.stretch["FIFO"].mean()
        for policy, stretch in outcome.stretch.items():
            row: dict[str, Any] = {"experiment": outcome.experiment.heading}
            row |= {"load": f"{outcome.load:g}", "policy": policy}
            for place, user in enumerate(esp.USERS):
                row[f"user {user}"] = float(stretch[:, place].mean())
                row[f"user {user} / FIFO"] = float(stretch[:, place].mean() / fifo)
            row["utilisation"] = float(outcome.utilisation[policy].mean())
            row["published utilisation"] = UTILISATION
            rows.append(row)
    return pd.DataFrame(rows)


def statements(outcomes: Sequence[esp.Outcome]) -> pd.DataFrame:
    """Return what the text of section 6.3.2 says, and whether it is so here, under each load."""
    import pandas as pd

    table = pd.DataFrame(
        [(words, said) for words, said, _ in _STATEMENTS],
        columns=["Glesser 2016, section 6.3.2", "published"],
    )
    for load in dict.fromkeys(outcome.load for outcome in outcomes):
        at = {one.experiment: one for one in outcomes if one.load == load}
        found = [check(at[esp.EFFICIENCY], at[esp.WORKLOAD]) for _, _, check in _STATEMENTS]
        table[f"ours, load {load:g}"] = [ours for ours, _ in found]
        table[f"so, load {load:g}"] = ["yes" if so else "no" for _, so in found]
    return table


Finding = tuple[str, bool]


def _means(outcome: esp.Outcome, policy: str) -> NDArray[np.float64]:
    """Return the mean stretch of each user over seeds."""
    means: NDArray[np.float64] = outcome.stretch[policy].mean(axis=0)
    return means


def _apart(outcome: esp.Outcome, policy: str) -> float:
    """Return the largest of the users' stretches over the least."""
    means = _means(outcome, policy)
    return float(means.max() / means.min())


def _alike(efficiency: esp.Outcome, _: esp.Outcome) -> Finding:
    apart = [_apart(efficiency, policy) for policy in ("FIFO", "FS")]
    return f"largest / least {apart[0]:.2f} and {apart[1]:.2f}", max(apart) < 1.1


def _in_order(efficiency: esp.Outcome, _: esp.Outcome) -> Finding:
    means = {policy: _means(efficiency, policy) for policy in ("EFS", "FS+EFS")}
    words = [f"{policy}: {', '.join(f'{x:.1f}' for x in of)}" for policy, of in means.items()]
    return "; ".join(words), all((np.diff(of) > 0).all() for of in means.values())


def _saves(efficiency: esp.Outcome, _: esp.Outcome) -> Finding:
    saved = 1 - float(_means(efficiency, "EFS")[0] / _means(efficiency, "FS")[0])
    return f"{saved:.0%} of that under FS", abs(saved - SAVED) < 0.15


def _closer(efficiency: esp.Outcome, _: esp.Outcome) -> Finding:
    both, energy = (_apart(efficiency, policy) for policy in ("FS+EFS", "EFS"))
    return f"largest / least {both:.2f}, under EFS {energy:.2f}", both < energy


def _as_busy(*outcomes: esp.Outcome) -> Finding:
    used = [float(x.mean()) for outcome in outcomes for x in outcome.utilisation.values()]
    so = max(abs(x - UTILISATION) for x in used) < 0.03
    return f"{min(used):.1%} to {max(used):.1%}", so


def _the_same(_: esp.Outcome, workload: esp.Outcome) -> Finding:
    same = all(
        np.array_equal(workload.stretch["FS"], workload.stretch[name]) for name in ("EFS", "FS+EFS")
    )
    return "to the second" if same else "not the same", same


def _penalised(_: esp.Outcome, workload: esp.Outcome) -> Finding:
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


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without columns of which nothing is published."""
    return table.dropna(axis="columns", how="all")
