"""Under limits too nothing is seen that an online scheduler could not know; see the other file."""

from __future__ import annotations

from typing import Any

from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from driving import SLOW, assert_same, play, random_acts, whole
from limit_strategies import Case
from test_hidden_future import altered, horizon, known
from test_steered_schedules import SEEDS, SETS, begin, steered

from hpcgym.envs.power_limits import EnergyBudgetEnv
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.workload import Workload

COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")


@settings(SLOW, max_examples=250, suppress_health_check=list(HealthCheck))
@given(steered(), SETS, st.sampled_from(["hour", 1, 2, 3]), st.integers(0, 30), SEEDS)
def test_another_future_looks_the_same(
    case: Case, controls: tuple[str, ...], interval: Any, decisions: int, seed: int
) -> None:
    """Where an interval ends, and so what plans see of the controls, tells nothing either."""
    case.rules["estimate"] = "ave2" if seed % 2 else "requested"
    given = {name: case.workload.columns[name] for name in COLUMNS}
    case.workload = Workload.from_columns(given, processors=case.cluster.processors)
    env = begin(case, controls=controls, interval=interval)
    acts = random_acts(env.action_space, seed)
    most = len(play(env, acts)) - 2
    assume(most > 0)  # nothing has been submitted at the first decision
    decisions = 1 + decisions % most
    one = play(env, acts, most=decisions)
    now = horizon(env, interval)
    case.workload = altered(env, now, seed, 5, isinstance(interval, int))
    other = play(begin(case, controls=controls, interval=interval), acts, most=decisions)
    assert_same(known(one), known(other))


def test_usual_budgets_tell_when_the_last_job_comes() -> None:
    """As their page says, and others do not: the test above can fail."""

    def seen(last: int, limits: Any) -> list[float]:
        columns = {"submit_time": [0, 10, last], "requested_processors": [2] * 3}
        columns |= {name: [9000] * 3 for name in ("run_time", "requested_time")}
        few = Workload.from_columns(columns, processors=2)
        env = EnergyBudgetEnv(**whole(few, limits=limits))
        env.reset()
        power: list[float] = env.step([1.0, 1.0, 1.0])[0]["power"].tolist()
        return power

    assert seen(5000, None) != seen(9000, None)
    given = [EnergyBudget(2e6, 0, 9001)]
    assert seen(5000, given) == seen(9000, given)
