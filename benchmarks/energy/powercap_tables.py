"""The tables of the study of power caps, ours beside the published values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.powercap import POLICIES
from hpcgym.benchmarks.energy.powercap_workload import HOUR_S, INTERVALS
from hpcgym.benchmarks.energy.published_powercap import (
    DAY_WORK,
    NONE_LESS,
    TABLE_4_3,
)
from hpcgym.benchmarks.energy.resampled import interval
from hpcgym.cluster.files import find_cluster
from hpcgym.cluster.power_plans import algorithm_2, best_plan, rho

if TYPE_CHECKING:
    import pandas as pd

#: (trace, requested times and maybe what caps are on, interval) -> what :func:`powercap.measure`
#: returns of each workload.
Outcomes = Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]
#: (cap, policy) -> measure -> shares, a number for each workload.
Cells = Mapping[tuple[float, str], Mapping[str, NDArray[np.float64]]]

SHAPES = [name for name, hours in INTERVALS.items() if hours < 24]
SWITCHING = ("SHUT", "DVFS", "MIX")  # all but leaving nodes idle


def cells_of(outcomes: Sequence[Mapping[str, Any]]) -> dict[tuple[float, str], Any]:
    """Return what happens in an interval, normalised as in figure 4.6, over workloads.

    Energy and work over those of a machine that is busy throughout, launched jobs over the most
    that any run of the interval launches, and "launched jobs" as they are.
    """
    cells: dict[tuple[float, str], dict[str, list[float]]] = {}
    for outcome in outcomes:
        most = max(row["launched"] for row in outcome["rows"]) or 1
        for row in outcome["rows"]:
            shares = {
                "energy": row["energy_j"] / outcome["possible_j"],
                "launched": row["launched"] / most,
                "work": row["work"] / outcome["possible_work"],
                "computed": row["computed"] / outcome["possible_work"],
                "launched jobs": row["launched"],
                "exceeded_s": row["exceeded_s"],
            }
            of = cells.setdefault((row["cap"], row["policy"]), {})
            for name, share in shares.items():
                of.setdefault(name, []).append(share)
    return {key: {n: np.array(v) for n, v in of.items()} for key, of in cells.items()}


def figure_4_6(outcomes: Outcomes) -> pd.DataFrame:
    """Return the values of figure 4.6: means over workloads of the same kind."""
    import pandas as pd

    rows = []
    for (trace, requests, name), of in outcomes.items():
        for (cap, policy), cell in cells_of(of).items():
            row: dict[str, Any] = {"trace": trace, "requests": requests, "interval": name}
            row |= {"cap": f"{cap:.0%}", "policy": policy}
            row["energy / possible"] = float(cell["energy"].mean())
            row["launched / most"] = float(cell["launched"].mean())
            row["work / possible"] = float(cell["work"].mean())
            row["95 % interval of the work"] = interval(cell["work"])
            row["computed / possible"] = float(cell["computed"].mean())
            row["launched jobs"] = float(cell["launched jobs"].mean())
            row["above the cap (min)"] = float(cell["exceeded_s"].mean()) / 60
            rows.append(row)
    return pd.DataFrame(rows)


def of_intervals(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the intervals are like."""
    import pandas as pd

    rows = []
    for (trace, requests, name), of in outcomes.items():
        for number, outcome in enumerate(of):
            found = outcome["interval"]
            row: dict[str, Any] = {"trace": trace, "requests": requests, "interval": name}
            row |= {"workload": str(number), "from hour": f"{found['begin'] / HOUR_S:g}"}
            row |= {"jobs": found["jobs"], "share of small jobs": found["small"]}
            row["least cores waiting / machine"] = found["backlog"]
            rows.append(row)
    return pd.DataFrame(rows)


def table_4_3() -> pd.DataFrame:
    """Return table 4.3, of table 4.2's powers, in both readings of rho."""
    import pandas as pd

    power = find_cluster("curie").groups[0].power
    assert power is not None
    nodes = 1_000
    cap = 0.8 * nodes * power.busy_levels_w[-1]  # enough for all nodes at the lowest frequency
    rows = []
    for one in TABLE_4_3:
        here = replace(power, slowdown=one.degradation)
        by_equations, by_text = (plan(nodes, cap, here) for plan in (best_plan, algorithm_2))
        rows.append(
            {
                "benchmark": one.name,
                "deg": one.degradation,
                "published rho ratio": one.rho,
                "ours rho ratio": rho(here),
                "watts' ratio it needs": 1 - 1 / one.degradation - one.rho,
                "watts' ratio of table 4.2": 1 - 1 / one.degradation - rho(here),
                "published best": one.best,
                "best by C1 and C3": _named(by_equations),
                "by algorithm 2": _named(by_text),
            }
        )
    return pd.DataFrame(rows)


def _named(plan: Any) -> str:
    """Return what a plan does."""
    return "Switch-off" if plan.off else "DVFS"


def statements(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the text of section 4.6.3 says, and whether it is so here, for each reading."""
    import pandas as pd

    table = pd.DataFrame(
        [(words, said) for words, said, _, _ in _STATEMENTS],
        columns=["Glesser 2016, section 4.6.3", "published"],
    )
    for trace, requests in dict.fromkeys(key[:2] for key in outcomes):
        known = {
            n: cells_of(of) for (t, r, n), of in outcomes.items() if (t, r) == (trace, requests)
        }
        shapes = {name: known[name] for name in SHAPES if name in known}
        found = []
        for _, _, of_day, check in _STATEMENTS:
            parts = {"24h": known["24h"]} if of_day and "24h" in known else {} if of_day else shapes
            found.append(check(parts) if parts else ("not simulated", None))
        where = f"{trace}, {requests}"
        table[f"ours, {where}"] = [ours for ours, _ in found]
        table[f"so, {where}"] = ["" if so is None else "yes" if so else "no" for _, so in found]
    return table


Shapes = Mapping[str, Cells]
Finding = tuple[str, bool | None]


def caps_of(shapes: Shapes) -> list[float]:
    """Return the caps, the highest first."""
    return sorted({cap for cells in shapes.values() for cap, _ in cells if cap < 1}, reverse=True)


def mean(cells: Cells, cap: float, policy: str, what: str) -> float:
    """Return a mean over workloads; without a cap all policies are one."""
    return float(cells[cap, "none" if cap >= 1 else policy][what].mean())


def over(shapes: Shapes, cap: float, policy: str, what: str) -> float:
    """Return the mean over intervals."""
    return float(np.mean([mean(cells, cap, policy, what) for cells in shapes.values()]))


def _grid(shapes: Shapes) -> list[tuple[Cells, float]]:
    """Return all intervals under all caps."""
    return [(cells, cap) for cells in shapes.values() for cap in caps_of(shapes)]


def _more_work(shapes: Shapes) -> Finding:
    gaps = [
        mean(cells, cap, "DVFS", "work") - mean(cells, cap, "SHUT", "work")
        for cells, cap in _grid(shapes)
    ]
    by_cap = []
    for cap in caps_of(shapes):
        gap = over(shapes, cap, "DVFS", "work") - over(shapes, cap, "SHUT", "work")
        by_cap.append(f"{cap:.0%}: {100 * gap:+.1f}")
    more = sum(gap > 0 for gap in gaps)
    return f"in {more} of {len(gaps)}; points at {', '.join(by_cap)}", more == len(gaps)


def _least_energy(shapes: Shapes) -> Finding:
    best = [
        min(SWITCHING, key=lambda name, c=cells, p=cap: mean(c, p, name, "energy"))  # type: ignore[misc]
        for cells, cap in _grid(shapes)
    ]
    counts = ", ".join(f"{name} {best.count(name)}" for name in SWITCHING)
    return f"least energy: {counts}", best.count("MIX") > len(best) / 2


def _same_order(shapes: Shapes) -> Finding:
    apart = [
        mean(cells, cap, "MIX", "work")
        / np.mean([mean(cells, cap, name, "work") for name in ("SHUT", "DVFS")])
        - 1
        for cells, cap in _grid(shapes)
    ]
    so = bool(max(map(abs, apart)) < 0.2)
    return f"{100 * min(apart):+.0f} to {100 * max(apart):+.0f} %", so


def _falls(shapes: Shapes) -> Finding:
    falling = []
    for cells in shapes.values():
        for name in SWITCHING:
            for what in ("work", "energy"):
                values = [mean(cells, cap, name, what) for cap in (1.0, *caps_of(shapes))]
                falling.append(bool((np.diff(values) < 0).all()))
    return f"in {sum(falling)} of {len(falling)} rows", all(falling)


def _more_rapidly(shapes: Shapes) -> Finding:
    high, low = caps_of(shapes)[-2:] if len(caps_of(shapes)) > 1 else (1.0, caps_of(shapes)[0])
    falls = {
        name: over(shapes, high, name, "work") - over(shapes, low, name, "work")
        for name in SWITCHING
    }
    words = ", ".join(f"{name} {-100 * fall:+.1f}" for name, fall in falls.items())
    so = falls["DVFS"] > max(falls["SHUT"], falls["MIX"])
    return f"work from {high:.0%} to {low:.0%}, points: {words}", so


def _tradeoff(shapes: Shapes) -> Finding:
    words, so = [], []
    for what in ("work", "computed"):
        cost = {
            name: np.mean(
                [
                    mean(cells, cap, name, "energy") / mean(cells, cap, name, what)
                    for cells, cap in _grid(shapes)
                ]
            )
            for name in SWITCHING
        }
        numbers = ", ".join(f"{name} {value:.2f}" for name, value in cost.items())
        words.append(f"energy / {what}: {numbers}")
        so.append(max(cost["SHUT"], cost["MIX"]) < cost["DVFS"])
    return "; ".join(words), so[0]


def _idle_is_worst(shapes: Shapes) -> Finding:
    by_cap, worst = [], True
    for cap in caps_of(shapes):
        work = {name: over(shapes, cap, name, "work") for name in POLICIES}
        less = 1 - work["none"] / np.mean([work[name] for name in SWITCHING])
        by_cap.append((cap, less))
        worst &= min(work.values()) == work["none"]
    words = ", ".join(f"{cap:.0%}: {-100 * less:+.0f} %" for cap, less in by_cap)
    lowest = by_cap[-1][1]
    return f"against the mean of the others, {words}", worst and bool(
        abs(lowest - NONE_LESS) < 0.15
    )


def _idle_same_energy(shapes: Shapes) -> Finding:
    apart = []
    for cap in caps_of(shapes):
        others = np.mean([over(shapes, cap, name, "energy") for name in SWITCHING])
        apart.append(over(shapes, cap, "none", "energy") / others - 1)
    words = ", ".join(
        f"{cap:.0%}: {100 * one:+.0f} %" for cap, one in zip(caps_of(shapes), apart, strict=True)
    )
    return words, bool(max(map(abs, apart)) < 0.1)


def _day_work(shapes: Shapes) -> Finding:
    cells, cap = shapes["24h"], caps_of(shapes)[-1]
    ours = {name: mean(cells, cap, name, "work") for name in DAY_WORK}
    words = ", ".join(f"{name} {share:.0%}" for name, share in ours.items())
    so = all(abs(ours[name] - share) < 0.05 for name, share in DAY_WORK.items())
    return f"{words} at {cap:.0%}", so


def _day_order(shapes: Shapes) -> Finding:
    cells, cap = shapes["24h"], caps_of(shapes)[-1]
    ours = {name: mean(cells, cap, name, "work") for name in SWITCHING}
    return " > ".join(sorted(ours, key=lambda name: -ours[name])), max(ours, key=ours.get) == "SHUT"  # type: ignore[arg-type]


def _day_energy(shapes: Shapes) -> Finding:
    cells, cap = shapes["24h"], caps_of(shapes)[-1]
    ours = {name: mean(cells, cap, name, "energy") for name in SWITCHING}
    words = ", ".join(f"{name} {100 * share:.1f} %" for name, share in ours.items())
    return words, min(ours, key=ours.get) == "MIX"  # type: ignore[arg-type]


def _best(shapes: Shapes, cap: float) -> dict[str, float]:
    """Return what is computed for each joule, by policy."""
    return {
        name: over(shapes, cap, name, "computed") / over(shapes, cap, name, "energy")
        for name in SWITCHING
    }


def _shut_when_low(shapes: Shapes) -> Finding:
    best = _best(shapes, caps_of(shapes)[-1])
    words = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
    at = f"{caps_of(shapes)[-1]:.0%}"
    return f"computed / energy at {at}: {words}", max(best, key=best.get) == "SHUT"  # type: ignore[arg-type]


def _slow_when_high(shapes: Shapes) -> Finding:
    best = _best(shapes, caps_of(shapes)[0])
    words = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
    at = f"{caps_of(shapes)[0]:.0%}"
    return f"computed / energy at {at}: {words}", max(best, key=best.get) == "DVFS"  # type: ignore[arg-type]


#: What is said, how it is published, whether of the 24 hours, what finds ours.
_STATEMENTS: tuple[tuple[str, str, bool, Callable[[Shapes], Finding]], ...] = (
    ("DVFS: the work is larger than under SHUT", "always", False, _more_work),
    ("MIX: the best energy consumption", "most of the time", False, _least_energy),
    ("MIX: work in the same order as others", "so", False, _same_order),
    ("work and energy decrease with the cap", "every type of workload", False, _falls),
    ("DVFS decreases more rapidly below 60 %", "so", False, _more_rapidly),
    ("SHUT and MIX: more efficient in energy / work", "so", False, _tradeoff),
    ("nodes left idle: the worst work", "about 40 % lower", False, _idle_is_worst),
    ("nodes left idle: the energy", "about the same", False, _idle_same_energy),
    ("conclusion: below 60 % switching off is most efficient", "so", False, _shut_when_low),
    ("conclusion: at 80 % lower frequencies are better", "so", False, _slow_when_high),
    ("24 h, 40 %: the work", "DVFS and MIX about 85 %, SHUT 94 %", True, _day_work),
    ("24 h, 40 %: the work, in order", "SHUT first", True, _day_order),
    ("24 h, 40 %: the energy", "lowest under MIX", True, _day_energy),
)
