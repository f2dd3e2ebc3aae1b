"""Run times that are learned where jobs have nodes of their own, beside the slow simulator.

Nodes have up to three cores, which jobs need not fill: what is learned, and orders that look at it,
count the processors that jobs ask for.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from limit_strategies import limited, simulate_pool
from predictors import Crooked
from slow_limits import LimitedSimulation
from strategies import POLICY

from hpcgym import simulate, validate_schedule
from hpcgym.errors import HpcgymError

pytestmark = pytest.mark.slow

#: Estimates that look at users' ended jobs, and a predictor in Python that looks at all features.
LEARNED: tuple[Any, ...] = ("ave2", "ave3", "user-ratio", "typical-ratio", Crooked())


class AtTheirLevels(LimitedSimulation):
    """What is learned of a job are its times at the level at which it ran."""

    def terminate(self, job: Any) -> None:
        super().terminate(job)
        job.requested = job.asked


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=60)
@given(st.data())
def test_run_times_are_learned_under_limits(kinds: str, data: st.DataObject) -> None:
    case = data.draw(limited(kinds))
    # the ratio that the slow predictor learns is by the time that was requested
    slowed = case.rules["power"] not in ("none", "shut")
    learned = [one for one in LEARNED if not (slowed and one == "typical-ratio")]
    case.rules |= {
        "policy": data.draw(POLICY),
        "estimate": data.draw(st.sampled_from(["requested", *learned])),
        "policy_estimate": data.draw(st.sampled_from(learned)),
    }
    try:
        result = simulate(case.workload, cluster=case.cluster, limits=case.limits, **case.rules)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    slow = simulate_pool(case, AtTheirLevels)
    assert result.start.tolist() == [job.start for job in slow.jobs]
    assert result.end.tolist() == [job.end for job in slow.jobs]
    assert result.predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in slow.jobs]
    validate_schedule(result)
