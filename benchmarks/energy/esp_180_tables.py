"""What section 6.3.3 says of Light-ESP on 180 cores, and what is found here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.energy.esp_180 import (
    BURST_SAVED,
    BURST_USERS,
    FIGURES,
    Floats,
    Outcome,
    efficiencies,
)
from hpcgym.benchmarks.energy.published_shares import ALIKE_UP_TO_S, FREQUENCIES

if TYPE_CHECKING:
    import pandas as pd

#: load -> policy -> what became of the jobs.
Outcomes = Mapping[float, Mapping[str, Outcome]]
#: part of energy saved -> the same of the burst.
Bursts = Mapping[float, Outcome]

#: Within which share of the larger two means are alike, and beyond which one is clearly below: the
#: thesis names none. They were chosen once first runs were known.
ALIKE, CLEARLY = 0.2, 0.1


def of_users(outcomes: Outcomes, bursts: Bursts) -> pd.DataFrame:
    """Return means and quartiles of stretches and waits: figures 6.5 to 6.8 in numbers."""
    import pandas as pd

    rows = []
    for load, policies in outcomes.items():
        for policy, outcome in policies.items():
            row = {"figure": FIGURES[policy], "policy": policy, "jobs": f"Light-ESP, load {load:g}"}
            rows += _rows(outcome, row)
    for saved, outcome in bursts.items():
        row = {"figure": "6.8", "policy": "EFS", "jobs": f"burst, {saved:.1%} saved"}
        rows += _rows(outcome, row)
    return pd.DataFrame(rows)


def _rows(outcome: Outcome, row: dict[str, str]) -> list[dict[str, Any]]:
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
    import pandas as pd

    rows = []
    for user, (longer, drawn) in efficiencies().items():
        row: dict[str, Any] = {"user": user, "GHz": f"{FREQUENCIES[user]:g}"}
        row |= {
            "time / highest": longer,
            "power / highest": drawn,
            "energy / highest": longer * drawn,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def statements(outcomes: Outcomes, bursts: Bursts) -> pd.DataFrame:
    """Return what section 6.3.3 says of its figures, and whether it is so, under each load.

    Of the burst it is under each part of energy that the green user may save, whatever the load.
    """
    import pandas as pd

    table = pd.DataFrame(
        [(words, said) for words, said, _ in (*_STATEMENTS, *_OF_BURST)],
        columns=["Glesser 2016, section 6.3.3", "published"],
    )
    of_burst = [check(bursts) for _, _, check in _OF_BURST]
    for load, policies in outcomes.items():
        found = [check(policies) for _, _, check in _STATEMENTS] + of_burst
        table[f"ours, load {load:g}"] = [ours for ours, _ in found]
        table[f"so, load {load:g}"] = ["yes" if so else "no" for _, so in found]
    return table


Finding = tuple[str, bool]
Policies = Mapping[str, Outcome]


def _means(values: Mapping[str, Floats], digits: int) -> tuple[dict[str, float], str]:
    """Return the mean of each user, and all in words."""
    found = {user: float(of.mean()) for user, of in values.items()}
    return found, ", ".join(f"{user} {value:,.{digits}f}" for user, value in found.items())


def _stretches(policies: Policies, policy: str) -> tuple[dict[str, float], str]:
    return _means(policies[policy].stretch, 1)


def _waits(policies: Policies, policy: str) -> tuple[dict[str, float], str]:
    return _means(policies[policy].wait, 0)


def _green_first(policies: Policies) -> Finding:
    found, words = _stretches(policies, "EFS")
    return words, found["green"] < found["normal"]


def _green_like_gluttonous(policies: Policies) -> Finding:
    found, words = _stretches(policies, "EFS")
    pair = found["green"], found["gluttonous"]
    return words, abs(pair[0] - pair[1]) <= ALIKE * max(pair)


def _gluttonous_wait(policies: Policies) -> Finding:
    found, words = _waits(policies, "EFS")
    return words, found["gluttonous"] > (1 + CLEARLY) * max(found["green"], found["normal"])


def _green_waits_less(policies: Policies) -> Finding:
    found, words = _waits(policies, "EFS")
    return words, (1 - CLEARLY) * found["normal"] < found["green"] < found["normal"]


def _alike_at_first(policies: Policies) -> Finding:
    waits = policies["EFS"].wait
    before, beyond = _apart(waits, 0, ALIKE_UP_TO_S), _apart(waits, ALIKE_UP_TO_S, np.inf)
    words = (
        f"distributions differ by {before:.2f} up to {ALIKE_UP_TO_S:,} s, by {beyond:.2f} beyond"
    )
    return words, before < beyond


def _apart(waits: Mapping[str, Floats], first: float, last: float) -> float:
    """Return how far the users' distributions are apart at most between two waits."""
    at = np.unique(np.concatenate([*waits.values()]))
    at = at[(first <= at) & (at <= last)]
    parts = np.array([np.searchsorted(of, at, "right") / len(of) for of in waits.values()])
    return float((parts.max(axis=0) - parts.min(axis=0)).max(initial=0.0))


def _normal_best(policies: Policies) -> Finding:
    stretch, words = _stretches(policies, "FS")
    wait, more = _waits(policies, "FS")
    so = all(min(found, key=lambda user: found[user]) == "normal" for found in (stretch, wait))
    return f"stretch {words}; wait {more}", so


def _gluttonous_worst(policies: Policies) -> Finding:
    stretch, words = _stretches(policies, "FS")
    wait, more = _waits(policies, "FS")
    so = all(max(found, key=lambda user: found[user]) == "gluttonous" for found in (stretch, wait))
    return f"stretch {words}; wait {more}", so


def _disadvantage(policies: Policies) -> Finding:
    found, words = _waits(policies, "FS+EFS")
    return words, found["gluttonous"] > (1 + ALIKE) * max(found["green"], found["normal"])


def _degraded(policies: Policies) -> Finding:
    both = {name: _stretches(policies, name)[0]["gluttonous"] for name in ("FS+EFS", "EFS")}
    words = ", ".join(f"{name} {value:.1f}" for name, value in both.items())
    return words, both["FS+EFS"] > (1 + CLEARLY) * both["EFS"]


def _similarly_good(policies: Policies) -> Finding:
    found, words = _stretches(policies, "FS+EFS")
    wait, more = _waits(policies, "FS+EFS")
    pairs = [(one["green"], one["normal"]) for one in (found, wait)]
    so = all(abs(a - b) <= ALIKE * max(a, b) for a, b in pairs)
    return f"stretch {words}; wait {more}", so


def _slight_advantage(policies: Policies) -> Finding:
    stretch, words = _stretches(policies, "FS+EFS")
    wait, more = _waits(policies, "FS+EFS")
    so = all(found["normal"] < found["green"] for found in (stretch, wait))
    return f"stretch {words}; wait {more}", so


def _improved(bursts: Bursts) -> Finding:
    """Return whether the green user is clearly better with the least saving that was assumed."""
    words = []
    for saved, outcome in bursts.items():
        waits = _means(outcome.wait, 0)[1]
        words.append(f"{saved:.1%} saved: stretch {_means(outcome.stretch, 1)[1]}; wait {waits}")
    least = bursts[min(BURST_SAVED)]
    so = all(
        found[BURST_USERS[0]] < (1 - CLEARLY) * min(found[one] for one in BURST_USERS[1:])
        for found in (_means(least.stretch, 1)[0], _means(least.wait, 0)[0])
    )
    return ". ".join(words), so


#: What is said, how it is published, what finds ours.
_STATEMENTS: tuple[tuple[str, str, Callable[[Policies], Finding]], ...] = (
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
