"""Random small machines under limits, and what they run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from drawing import assume
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from strategies import POLICY as ANY_POLICY
from strategies import predictions, workloads

from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, Level, NodeGroup, NodePower
from hpcgym.machine.power_plans import greatest_w
from hpcgym.reference.limits import LimitedSimulation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.simulation.by_reference import limited_by_reference
from hpcgym.workload.model import Workload

#: Six weights of 0 are no order.
POLICY = ANY_POLICY.filter(lambda policy: isinstance(policy, str) or any(policy))
SHORT = st.sampled_from([0, 0, 1, 2, 3, 7, 20])


@st.composite
def powers(draw: st.DrawFn, unit: int, slow: bool) -> NodePower:
    times = st.sampled_from([1, 2, 3, 7]) if slow else SHORT
    levels = draw(st.sampled_from([1, 2, 3, 3]))
    off = draw(st.sampled_from([0.0, 3.0, 10.5]))
    idle = off + draw(st.sampled_from([0.0, 5.0, 20.25]))
    busy = np.cumsum([idle + draw(st.sampled_from([0.0, 1.0, 30.0]))] + [
        draw(st.sampled_from([1.0, 8.5, 40.0])) for _ in range(levels - 1)
    ]).tolist()  # fmt: skip
    busy[0] = max(busy[0], off + 0.5)
    ghz = [1.0, 1.6, 2.0][-levels:] if draw(st.booleans()) else [1.5, 1.6, 2.0][-levels:]
    extra = st.one_of(st.none(), st.sampled_from([0.0, 4.0, 25.0, 90.0]))
    return NodePower(
        idle,
        busy,
        off,
        ghz if levels > 1 else (),
        draw(st.sampled_from([1.0, 1.3, 1.63, 2.5])) if levels > 1 else 1.0,
        draw(times) * unit,
        draw(times) * unit,
        draw(extra),
        draw(extra),
    )


@dataclass
class Case:
    """What is simulated."""

    workload: Workload
    cluster: Cluster
    limits: list[Any]
    rules: dict[str, Any]

    def __repr__(self) -> str:
        columns = ("submit_time", "requested_processors", "run_time", "requested_time", "power_w")
        jobs = {c: self.workload.columns[c].tolist() for c in columns}
        return f"Case({jobs}, {self.cluster}, {self.limits}, {self.rules})"


@st.composite
def windows(draw: st.DrawFn, first: int, span: int) -> tuple[int, int]:
    start = first + draw(st.integers(-span // 4, span))
    length = draw(st.integers(1, max(span, 1)))
    return max(start, 0), max(start, 0) + length


@st.composite
def caps(draw: st.DrawFn, cluster: Cluster, first: int, span: int) -> PowerCap:
    start, end = draw(windows(first, span))
    lasts = draw(st.sampled_from([False] * 9 + [True]))
    announced = draw(st.one_of(st.none(), st.integers(first, first + span)))
    sudden = draw(st.sampled_from([False, False, True]))
    if sudden:  # when jobs run that nobody has kept back
        start = announced = first + draw(st.integers(0, 1 + span // 4))
        end = start + draw(st.integers(1, max(span, 1)))
    if announced is not None and not lasts:
        announced = min(announced, end - 1)
    most, power = greatest_w(cluster), cluster.groups[0].power
    assert power is not None
    idle = most - cluster.nodes * (power.busy_levels_w[-1] - power.idle_w)
    share = draw(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9]))
    watts = draw(st.sampled_from([share * most, *[idle + share * (most - idle)] * 3]))
    return PowerCap(watts, start, None if lasts else end, announced, draw(st.booleans()))


@st.composite
def budgets(draw: st.DrawFn, cluster: Cluster, first: int, span: int) -> list[EnergyBudget]:
    cuts = sorted(draw(st.sets(st.integers(first, first + 2 * span + 4), min_size=2, max_size=4)))
    pairs = list(pairwise(cuts))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True))
    return [
        EnergyBudget.of(
            cluster,
            draw(st.sampled_from([0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])),
            start,
            end,
            # the slow simulator plans at the start of each period: not at a million of them
            period=draw(st.integers(1 + (end - start) // 100, max((end - start) // 2, 2))),
            shutdown=draw(st.booleans()),
        )
        for start, end in chosen
    ]


@st.composite
def machines(draw: st.DrawFn, unit: int, slow: bool) -> Cluster:
    nodes = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 8]))
    count = draw(st.sampled_from([0, 0, 1, 2]))
    watts = st.sampled_from([0.0, 2.0, 15.0, 60.0])
    return Cluster(
        groups=(
            NodeGroup("node", nodes, {"core": draw(st.integers(1, 3))}, draw(powers(unit, slow))),
        ),
        levels=tuple(Level(f"l{i}", draw(st.integers(1, 4)), draw(watts)) for i in range(count)),
    )


@st.composite
def limited(
    draw: st.DrawFn,
    kinds: str = "caps switching budgets both none",
    max_jobs: int = 25,
    brief: bool = False,
) -> Case:
    """A workload, a machine and limits for it; caps with nodes off where it is switching.

    Where it is ``brief`` a schedule lasts some hundreds of seconds.
    """
    kind = draw(st.sampled_from(kinds.split()))
    unit = draw(st.sampled_from([1, 1, 20]))
    cluster = draw(machines(unit, slow=kind == "switching"))
    workload = draw(workloads(max_jobs, 12, brief))
    most = cluster.processors
    given = {
        "requested_processors": np.minimum(workload.requested_processors, most),
    }
    if draw(st.sampled_from([False] * 3 + [True])):
        known = st.sampled_from([-1.0, -1.0, 0.0, 5.0, 1 / 7, 40.0])
        given["power_w"] = draw(
            st.lists(known, min_size=len(workload), max_size=len(workload)).map(np.array)
        )
    if draw(st.sampled_from([False] * 3 + [True])):
        known = st.sampled_from([-1.0, -1.0, 1.0, 1.1, 4 / 3, 3.0])
        given["slowdown"] = draw(
            st.lists(known, min_size=len(workload), max_size=len(workload)).map(np.array)
        )
    workload = workload.with_columns(**given)
    rules: dict[str, Any] = {
        "policy": draw(st.one_of(st.just("fcfs"), POLICY)),
        "backfill": draw(st.sampled_from(["none", "easy", "easy", "easy", "until-shadow"])),
        "backfill_order": draw(st.one_of(st.sampled_from(["fcfs", "sjbf"]), POLICY)),
        "estimate": draw(
            st.one_of(
                st.sampled_from(["requested", "requested", "clairvoyant", "ave2"]),
                predictions(workload),
            )
        ),
        "correction": draw(st.sampled_from(["requested", "incremental", "recursive-doubling"])),
        "threshold": draw(st.sampled_from([None, None, 0, 5, 100])),
        "allocation": draw(st.sampled_from(["first-fit", "first-fit", "contiguous"])),
        "power": "none",
    }
    first = int(workload.submit_time[0])
    span = int(workload.submit_time[-1] - first + workload.requested_time.max())
    span = min(span, int(workload.run_time.sum()) if brief else 3000)
    limits: list[Any] = []
    if kind in ("caps", "both", "switching"):
        number = (2, 5) if kind == "switching" else (1, 3)
        each = caps(cluster, first, span)
        limits += draw(st.lists(each, min_size=number[0], max_size=number[1]))
        ways = ["none", "shut", "dvfs", "dvfs", "mix", "mix"]
        rules["power"] = draw(st.sampled_from(["shut", "mix"] if kind == "switching" else ways))
    if kind in ("budgets", "both"):
        limits += draw(budgets(cluster, first, span))
        known = ["powercap", "reduce-pc", "energy-bud"]
        rules["power"] = draw(st.sampled_from([*known, *known, "none", "dvfs", "mix"]))
    if draw(st.sampled_from([False, False, True])):
        after = draw(st.sampled_from([0, 1, 5, 30])) * unit
        cluster = Cluster(groups=cluster.groups, levels=cluster.levels, shutdown_after_s=after)
    busy = math.ceil(node_power(cluster).busy_levels_w[-1])
    for place, limit in enumerate(limits):
        if isinstance(limit, EnergyBudget) and draw(st.booleans()):
            limits[place] = replace(limit, free_node_w=draw(st.integers(0, busy)))
    return Case(workload, cluster, limits, rules)


def extracted(data: st.DataObject, case: Case) -> tuple[Case, Case, tuple[int, float]] | None:
    """A case of a log, that of an extract, and from when to when that is; None if it cannot be.

    Limits come later by as much as no budget, or no limit, has begun before.
    """
    cluster = replace(case.cluster, shutdown_after_s=None)
    workload = recorded(data, replace(case.workload, processors=cluster.processors))
    part, rules, begin, end = parts_of(data, workload, case.rules)
    if part is None:
        return None
    some = case.limits if data.draw(st.booleans()) else [x for x in case.limits if has_joules(x)]
    late = max([0, *(begin - limit.start for limit in some)])
    limits = [moved(limit, late) for limit in case.limits]
    whole = Case(workload, cluster, limits, rules)
    return whole, replace(whole, workload=part), (begin, end)


def has_joules(limit: Any) -> bool:
    """Whether a limit is a budget."""
    return isinstance(limit, EnergyBudget)


def moved(limit: Any, late: int) -> Any:
    """The same limit, so much later."""
    end = None if limit.end is None else limit.end + late
    changed = replace(limit, start=limit.start + late, end=end)
    if getattr(limit, "announced", None) is not None:
        changed = replace(changed, announced=limit.announced + late)
    return changed


def on_single_cores(case: Case) -> Case:
    """The case on as many nodes of one core, its jobs no wider than that."""
    group = replace(case.cluster.groups[0], resources={"core": 1})
    width = np.minimum(case.workload.requested_processors, case.cluster.nodes)
    cluster = Cluster(
        groups=(group,), levels=case.cluster.levels, shutdown_after_s=case.cluster.shutdown_after_s
    )
    return replace(
        case, cluster=cluster, workload=case.workload.with_columns(requested_processors=width)
    )


def simulate_pool(
    case: Case,
    simulator: Any = LimitedSimulation,
    switches: bool = False,
    extract: tuple[int, float] | None = None,
    **orders: Any,
) -> LimitedSimulation:
    """Simulate a case by the reference, or a simulator that is made as it is.

    ``switches`` says that nodes may be switched off, whatever limits say; ``extract``: from when to
    when, of all that is logged; ``orders`` are rules that only the reference takes so, as those
    that stand for quotas and dependencies.
    """
    others = ("power", "allocation", "quota", "dependencies")
    rules = {key: value for key, value in case.rules.items() if key not in others} | orders
    place = case.workload, Scheduler(**case.rules), case.cluster, tuple(case.limits)
    simulation = limited_by_reference(*place, simulator, switches, **rules)
    if extract is not None:
        simulation.begin(*extract)
    simulation.run()
    return simulation


def possible(simulated: Callable[[], Result]) -> Result:
    """Return what is simulated of a case that can be: else draw another."""
    try:
        return simulated()
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
