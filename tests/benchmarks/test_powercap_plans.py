"""Plans of equal nodes under a cap: Glesser 2016, section 4.2.1; all plans are tried."""

from __future__ import annotations

from math import inf

import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.benchmarks.energy.plans import plans_under
from hpcgym.machine import NodePower, find_cluster
from hpcgym.machine.power_plans import rho

CURIE = find_cluster("curie").groups[0].power


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
    plan, printed = plans_under(nodes, cap, power)
    for planned in (plan, printed):
        assert planned.watts <= cap + 1e-6
        assert planned.off + planned.slow <= nodes
        assert planned.work == pytest.approx(
            nodes - planned.off - planned.slow * (1 - 1 / degradation)
        )
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
    best, printed = plans_under(100, cap, CURIE)
    assert (printed.off, printed.slow, printed.work) == (21, 0, 79)
    assert (best.off, best.slow) == (0, 44)
    assert best.work == pytest.approx(100 - 44 + 44 / 1.63)
    # below 193 W a node both mix
    best, printed = plans_under(100, 15_000, CURIE)
    assert printed == best
    assert best.off == 100 - int((15_000 - 1_400) / (193 - 14))


def test_from_75_percent_on_mix_needs_both() -> None:
    """Section 4.5.2: with 2.0 GHz as the lowest, both are used below 75 % of the power."""
    assert CURIE is not None
    level = CURIE.frequency_ghz.index(2.0)
    assert plans_under(5040, 0.75 * 5040 * 358, CURIE, lowest=level).best.off > 0
    assert plans_under(5040, 0.76 * 5040 * 358, CURIE, lowest=level).best.off == 0


test_mistakes = mistakes_of(globals())
