"""Random quotas for random workloads, and rules that go with them."""

from __future__ import annotations

from typing import Any

from drawing import strategies as st

from hpcgym.reference.jobs import BY_TIME, IN_ALL, OF_CLUSTER, USED, Spared
from hpcgym.workload.model import Workload

COLUMNS = {
    "user": "user_id",
    "group": "group_id",
    "queue": "queue",
    "partition": "partition",
    "array": "array",
}
#: The key of each job, what it asks for, and how much may be had of one key, and how.
Slow = tuple[Any, ...]


Named = tuple[int | str, ...]
#: Of which queues jobs count: of all, or of some, or of a group, also beside.
ONLY = st.sampled_from([(), (), (1,), (2,), (1, 2), (1, "group=2"), ("group=2",)])
#: Of which queues jobs count, and are not bound.
SPARES = st.sampled_from([(), (), (1,), (2,), (1, 3), ("group=1", 2)])


def named(only: Named, spares: Named = ()) -> list[str]:
    """Return the parts of a quota that name these queues."""
    parts = {"queue": only, "spares": spares}
    return [f"{word}={'|'.join(map(str, some))}" for word, some in parts.items() if some]


def keys_of(workload: Workload, names: list[str], only: Named, spares: Named = ()) -> list[Any]:
    """The key of each job, by some columns; None: it does not count."""
    parts = [workload.columns[COLUMNS[name]].tolist() for name in names]
    keys: list[Any] = []
    for row, queue in enumerate(workload.queue.tolist()):
        own = {queue, f"group={workload.group_id[row]}"}
        counts = (not only or own & {*only}) and not ("array" in names and workload.array[row] < 0)
        key = tuple(part[row] for part in parts)
        keys.append((Spared(key) if own & {*spares} else key) if counts else None)
    return keys


@st.composite
def quotas(draw: st.DrawFn, workload: Workload, by_time: bool = False) -> tuple[str, list[Slow]]:
    """One to three quotas that no job exceeds by itself, as a text and as the oracle has them.

    ``by_time``: of minutes of what jobs ask for, too.
    """
    texts, slow = [], []
    for _ in range(draw(st.integers(1, 3))):
        each = draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=2, unique=True))
        only = draw(ONLY)
        spares = draw(SPARES)
        keys = keys_of(workload, each, only, spares)
        bound = [
            row for row, key in enumerate(keys) if key is not None and not isinstance(key, Spared)
        ]
        asked = asks_of(workload)
        bounds = []
        for name in draw(st.lists(st.sampled_from(list(asked)), min_size=1, unique=True)):
            widest = max((asked[name][row] for row in bound), default=1)
            most = draw(st.integers(max(widest, 1), max(2 * widest, 3)))
            bounds.append(f"{name}={most}")
            of_cluster = name.startswith("licence.") and not (each or only or spares)
            slow.append((keys, asked[name], most, *[OF_CLUSTER] * of_cluster))
        for name in draw(st.lists(st.sampled_from(list(asked)), unique=True)) if by_time else ():
            seconds = [a * b for a, b in zip(asked[name], workload.requested_time, strict=True)]
            longest = max((-(-int(seconds[row]) // 60) for row in bound), default=1)
            most = max(longest, 1) + draw(st.integers(0, longest))
            bounds.append(f"{MINUTES.get(name, name)}-minutes={most}")
            slow.append((keys, asked[name], most, BY_TIME))
        parts = named(only, spares) + each or ["all"]
        texts.append(f"{'/'.join(parts)}:{'+'.join(bounds)}")
    return "; ".join(texts), slow


@st.composite
def budgets(draw: st.DrawFn, workload: Workload) -> tuple[str, list[Slow]]:
    """One or two budgets that no job exceeds by itself, as :func:`quotas` has them.

    What is used is forgotten, or else suffices for all jobs: none waits for ever.
    """
    texts, slow = [], []
    for _ in range(draw(st.integers(1, 2))):
        each = draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=1))
        only, spares = draw(ONLY), draw(SPARES)
        keys = keys_of(workload, each, only, spares)
        asked = asks_of(workload)
        half_life = draw(st.sampled_from([30, 100, 100, 300, None]))
        bounds = []
        names = st.lists(st.sampled_from(list(asked)), min_size=1, max_size=2, unique=True)
        for name in draw(names):
            seconds = [a * b for a, b in zip(asked[name], workload.requested_time, strict=True)]
            minutes = [-(-int(own) // 60) for own in seconds]
            kind = draw(st.sampled_from([USED, IN_ALL, IN_ALL]))
            if half_life is None:
                most = 50 * sum(minutes) + draw(st.integers(1, 3))  # nodes may fail, too
            elif kind == USED:
                most = draw(st.integers(1, max(*minutes, 2)))
            else:
                most = max(*minutes, 1) + draw(st.integers(0, max(*minutes, 1)))
            behind = "used" if kind == USED else "in-all"
            bounds.append(f"{MINUTES.get(name, name)}-minutes-{behind}={most}")
            slow.append((keys, asked[name], most, kind, half_life))
        parts = named(only, spares) + each or ["all"]
        parts += [f"half-life={half_life}"] * (half_life is not None)
        texts.append(f"{'/'.join(parts)}:{'+'.join(bounds)}")
    return "; ".join(texts), slow


#: What amounts are called by time, if not by their names.
MINUTES = {"jobs": "job", "processors": "processor"}


def asks_of(workload: Workload) -> dict[str, list[int]]:
    """What each job asks for, worked out job by job, by the names of amounts."""
    asked = {
        "jobs": [1] * len(workload),
        "processors": workload.requested_processors.tolist(),
        **{name: workload.columns[name].tolist() for name in TOLD if name in workload.columns},
    }
    if workload.units is not None:
        units = workload.units.tolist()
        for name, of_unit in workload.per_unit.items():
            if name != "core":
                asked[name] = [a * b for a, b in zip(units, of_unit.tolist(), strict=True)]
    return asked


#: Amounts that jobs of :func:`with_queues` tell.
TOLD = ("billing", "licence.matlab")


def with_queues(workload: Workload, queues: list[int]) -> Workload:
    """Return the jobs with those queues in turn, two groups, and arrays of three between others.

    Some have licences, and what is billed is told of each.
    """
    n = len(workload)
    arrays = [row // 5 if row % 5 < 3 else -1 for row in range(n)]
    columns = {"billing": [7 * row % 5 for row in range(n)]}
    columns["licence.matlab"] = [max(row * row % 7 - 2, 0) for row in range(n)]
    return workload.with_columns(
        queue=(queues * n)[:n], group_id=[1 + row % 2 for row in range(n)], array=arrays, **columns
    )


def fitted(rules: dict[str, Any], holds: bool = False) -> dict[str, Any]:
    """Return rules that go with quotas and, unless ``holds``, with preemption."""
    changes = {"hold": rules["hold"] if holds else None}
    if rules["backfill"] == "conservative":
        changes["backfill"] = "easy"
    return {**rules, **changes}
