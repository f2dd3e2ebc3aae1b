"""Plans under caps: the tables of Glesser 2016, and small machines on which all plans are tried."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import inf

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st

from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, Level, NodeGroup, NodePower, find_cluster
from hpcgym.machine.power_plans import (
    algorithm_2,
    best_plan,
    greatest_w,
    nodes_to_switch_off,
    rho,
    savings_w,
    shutdown_order,
)

CURIE = find_cluster("curie").groups[0].power

#: Glesser 2016, table 4.3: degradation and rho, as printed.
PRINTED = (
    ("NA", 2.27, 0.0),
    ("linpack", 2.14, -0.027),
    ("IMB", 2.13, -0.029),
    ("SPEC Float", 1.89, -0.088),
    ("SPEC Integer", 1.74, -0.134),
    ("common value", 1.63, -0.174),
    ("NAS suite", 1.5, -0.225),
    ("STREAM", 1.26, -0.350),
    ("GROMACS", 1.16, -0.422),
)


def test_rho_of_table_4_3_follows_from_the_formula_but_not_from_table_4_2() -> None:
    """The printed column is the printed formula, with one ratio of watts in all rows: 0.56.

    Table 4.2 has (358 - 193) / (358 - 14) = 0.48 instead, so every rho is 0.08 more, and the sign
    is another one in three rows.
    """
    assert CURIE is not None
    ours = [rho(CURIE, degradation) for _, degradation, _ in PRINTED]
    assert [round(value, 3) for value in ours] == [
        0.080, 0.053, 0.051, -0.009, -0.054, -0.093, -0.146, -0.273, -0.342,
    ]  # fmt: skip
    # each row tells the ratio, but for what was rounded away of degradation and rho
    low = max(1 - 1 / (deg - 0.005) - (value + 0.0005) for _, deg, value in PRINTED)
    high = min(1 - 1 / (deg + 0.005) - (value - 0.0005) for _, deg, value in PRINTED)
    assert low < high
    assert low > 0.558
    assert high < 0.560
    ratio = (358 - 193) / (358 - 14)
    for value, (_, deg, _) in zip(ours, PRINTED, strict=True):
        assert value == pytest.approx(1 - 1 / deg - ratio, rel=1e-12)


def test_table_4_1_and_its_example() -> None:
    """6,600 W are reached by 20 single nodes, 6,880 W, or by the 18 of a chassis, 6,692 W."""
    curie = find_cluster("curie")
    order = shutdown_order(curie)
    savings = savings_w(curie, order)
    assert [savings[k] for k in (1, 17, 18, 90, 180)] == [344, 17 * 344, 6692, 34360, 68720]
    assert greatest_w(curie) == 5040 * 358 + 280 * 248 + 56 * 900
    chosen = nodes_to_switch_off(curie, greatest_w(curie) - 6600)
    assert sorted(chosen.tolist()) == list(range(5022, 5040))
    # apart from each other they save nothing but themselves
    apart = np.concatenate([np.arange(0, 20 * 18, 18), np.arange(1, 18)])
    alone = savings_w(curie, np.concatenate([apart, np.setdiff1d(np.arange(5040), apart)]))
    assert alone[20] == 6880
    assert alone[19] < 6600
    # all off is dark: not even what is off draws anything
    assert savings[-1] == greatest_w(curie)
    assert len(nodes_to_switch_off(curie, 0)) == 5040
    with pytest.raises(HpcgymError, match="with all nodes off the machine draws 70560 W"):
        nodes_to_switch_off(Cluster(groups=curie.groups), 70_559)
    # and lower caps are in higher ones
    most = greatest_w(curie)
    found = [nodes_to_switch_off(curie, share * most).tolist() for share in (0.8, 0.6, 0.4)]
    for less, more in pairwise([[], *found]):
        assert more[: len(less)] == less
        assert len(less) < len(more) < 5040


def test_groups_that_save_more_come_first_and_small_components() -> None:
    groups = (
        NodeGroup("thin", 5, {"core": 1}, NodePower(1, 10)),
        NodeGroup("fat", 3, {"core": 1}, NodePower(1, 50)),
    )
    assert sorted(shutdown_order(Cluster(groups=groups))[:3].tolist()) == [5, 6, 7]
    thin = Cluster(groups=groups[:1], levels=(Level("chassis", 2, 6.0),))
    # node 4 has a chassis for itself: 16 W for one node, of the others 26 W for two
    assert shutdown_order(thin).tolist() == [4, 3, 2, 1, 0]
    assert savings_w(thin, shutdown_order(thin)).tolist() == [0, 16, 26, 42, 52, 68]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([0.0, 3.0, 9.0, 40.0]),
    st.sampled_from([0.0, 5.0, 60.0]),
    st.floats(0, 1),
)
def test_no_fewer_nodes_would_do(
    racks: int, nodes: int, chassis: int, of_chassis: float, of_rack: float, share: float
) -> None:
    """All sets of nodes are tried, on machines whose components are full."""
    cluster = Cluster(
        groups=(NodeGroup("n", racks * chassis * nodes, {"core": 2}, NodePower(4, 10, 1)),),
        levels=(Level("chassis", nodes, of_chassis), Level("rack", chassis, of_rack)),
    )
    cap = share * greatest_w(cluster)
    chosen = nodes_to_switch_off(cluster, cap)
    assert draws(cluster, chosen.tolist(), nodes, chassis) <= cap + 1e-9
    if len(chosen):
        fewer = combinations(range(cluster.nodes), len(chosen) - 1)
        assert all(draws(cluster, some, nodes, chassis) > cap for some in fewer)


def draws(cluster: Cluster, off: object, nodes: int, chassis: int) -> float:
    """Power with some nodes off, all others at 10 W, counted one by one."""
    gone, total = set(off), 0.0  # type: ignore[call-overload]
    for first in range(0, cluster.nodes, nodes):
        below = set(range(first, first + nodes))
        if not below <= gone:
            total += cluster.levels[0].power_w
            total += sum(1 if node in gone else 10 for node in below)
    for first in range(0, cluster.nodes, nodes * chassis):
        if not set(range(first, first + nodes * chassis)) <= gone:
            total += cluster.levels[1].power_w
    return total


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 30),
    st.floats(0.05, 1),
    st.sampled_from([(20.0, 60.0, 100.0), (0.0, 5.0, 100.0), (14.0, 193.0, 358.0)]),
    st.floats(1, 4),
)
def test_no_plan_computes_more(
    nodes: int, share: float, watts: tuple[float, float, float], degradation: float
) -> None:
    off, slow, fast = watts
    power = NodePower(off, (slow, fast), off, (1, 2), degradation)
    cap = share * nodes * fast
    assume(cap >= nodes * off)
    assume(abs(rho(power)) > 1e-6)
    plan, printed = best_plan(nodes, cap, power), algorithm_2(nodes, cap, power)
    for one in (plan, printed):
        assert one.watts <= cap + 1e-6
        assert one.off + one.slow <= nodes
        assert one.work == pytest.approx(nodes - one.off - one.slow * (1 - 1 / degradation))
    best = -inf
    for dark in range(nodes + 1):
        for slowed in range(nodes + 1 - dark):
            others = nodes - dark - slowed
            if dark * off + slowed * slow + others * fast <= cap + 1e-6:
                best = max(best, others + slowed / degradation)
    # whole nodes of one kind may lose up to a node against whole nodes of both
    assert best - 1 <= plan.work <= best + 1e-9
    assert printed.work <= best + 1e-9


def test_the_printed_rule_computes_less_on_curie() -> None:
    """80 % of 100 nodes' power: 21 nodes off compute 79, and 44 slow ones leave 83."""
    assert CURIE is not None
    cap = 0.8 * 100 * 358
    printed, best = algorithm_2(100, cap, CURIE), best_plan(100, cap, CURIE)
    assert (printed.off, printed.slow, printed.work) == (21, 0, 79)
    assert (best.off, best.slow) == (0, 44)
    assert best.work == pytest.approx(100 - 44 + 44 / 1.63)
    # below 193 W a node both mix
    assert algorithm_2(100, 15_000, CURIE) == best_plan(100, 15_000, CURIE)
    assert best_plan(100, 15_000, CURIE).off == 100 - int((15_000 - 1_400) / (193 - 14))


def test_from_75_percent_on_mix_needs_both() -> None:
    """Section 4.5.2: with 2.0 GHz as the lowest, both are used below 75 % of the power."""
    assert CURIE is not None
    level = CURIE.frequency_ghz.index(2.0)
    assert best_plan(5040, 0.75 * 5040 * 358, CURIE, lowest=level).off > 0
    assert best_plan(5040, 0.76 * 5040 * 358, CURIE, lowest=level).off == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"watts": -1}, "a cap must be a power of at least 0 W, not -1"),
        ({"watts": 10}, "10 nodes that are off draw 140 W"),
        ({"nodes": 0}, "nodes must be a whole number from 1"),
        ({"degradation": 0.9}, "degradation must be a factor of at least 1, not 0.9"),
        ({"lowest": 7}, "lowest must be a whole number from 0 to 6, not 7"),
        ({"power": NodePower(1, 2)}, "one level of frequency cannot be slowed down"),
        ({"power": NodePower(1, (5, 6), 5, (1, 2))}, "more than off: not 5 W off, 5 W slow"),
    ],
)
def test_bad_plans(change: dict[str, object], message: str) -> None:
    given = {"nodes": 10, "watts": 1000, "power": CURIE, **change}
    with pytest.raises(HpcgymError, match=message):
        best_plan(**given)  # type: ignore[arg-type]
