"""Agents that learn while they schedule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from hpcgym import load_workload
from hpcgym.agents.learner import Ended
from hpcgym.agents.policy_bandit import PolicyBandit
from hpcgym.agents.weight_bandit import ORDERS, WeightBandit
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import prequential

pytestmark = pytest.mark.slow

JOBS = 50  # of a day
DAY = 86_400


def seen(load: float = 0.5) -> dict[str, Any]:
    """An observation: so much of the machine is in use."""
    cluster = np.full(10, 1 - load, np.float32)
    return {"cluster": cluster, "queue": np.zeros(6, np.float32), "time": np.zeros(4, np.float32)}


def ended(bsld: float, submitted: int) -> Ended:
    """The jobs of a day, all alike."""
    whole = np.zeros(JOBS, np.int64)
    times = np.full(JOBS, submitted)
    return Ended(whole, times, whole, whole, whole, whole, whole, np.full(JOBS, bsld))


def days(agent: Any, slowdown: Any, n: int, load: Any = lambda day: 0.5) -> None:
    """Let an agent choose for some days; jobs end two days after they were submitted."""
    for day in range(n):
        agent.act(seen(load(day)), {"time": day * DAY, "window": np.zeros(0, np.int64)})
        if day >= 2:
            past = day - 2
            bsld = slowdown(agent.chosen[past], load(past), past)
            agent.observe(seen(load(day)), -JOBS * bsld, ended(bsld, past * DAY + 5))


def test_a_bandit_finds_the_best_order_though_it_is_told_late() -> None:
    agent = WeightBandit()
    days(agent, lambda order, load, day: 3.0 if order == 4 else 30.0, 120)
    assert Counter(agent.chosen[-40:])[4] > 20  # of six orders
    assert set(agent.chosen) == set(range(len(ORDERS)))  # all were tried


def test_it_forgets_what_was_good() -> None:
    agent = WeightBandit(discount=0.95)
    days(agent, lambda order, load, day: 3.0 if order == (4 if day < 100 else 1) else 30.0, 250)
    assert Counter(agent.chosen[60:100])[4] > 20
    assert Counter(agent.chosen[-40:])[1] > 20


def test_what_is_known_by_hand() -> None:
    """Two days; the second day's jobs count in full, the first day's a half."""
    agent = WeightBandit(discount=0.5, width=0)
    for day in range(2):
        agent.chosen.append(day)
        agent._when.append(day * DAY)
    agent.observe(seen(), 0, ended(np.e, 0))
    agent.observe(seen(), 0, ended(np.e**2, DAY))
    assert agent._known[:3].tolist() == [0.25, 0.5, 0]
    assert agent._sums[:3] == pytest.approx([0.25, 1, 0])
    assert agent._at_best()[:3] == pytest.approx([1, 2, 0])


def test_a_context_decides_which_policy_is_best() -> None:
    """SAF on crowded days, FCFS on calm ones."""
    agent = PolicyBandit(("saf", "fcfs"), seed=1)

    def slowdown(policy: str, load: float, day: int) -> float:
        return 3.0 if (policy == "saf") == (load > 0.5) else 30.0

    days(agent, slowdown, 300, lambda day: 0.9 if day % 3 else 0.1)
    late = Counter(zip((day % 3 > 0 for day in range(200, 300)), agent.chosen[200:], strict=True))
    right = late[True, "saf"] + late[False, "fcfs"]
    assert right > 85


def test_the_same_seed_chooses_the_same() -> None:
    log = load_workload("lublin:jobs=1500,processors=32,seed=2,load=1.0")
    chosen = []
    for seed in (3, 3, 4):
        agent = PolicyBandit(seed=seed)
        prequential({"me": agent}, log, budget=1)
        chosen.append(agent.chosen)
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_policies_are_weighed_as_their_names_say() -> None:
    agent = PolicyBandit(("saf", "f1", "fcfs"))
    assert agent.features == ("area", "f1", "wait")
    weights = agent.act(seen(), {"time": 0, "window": np.zeros(0, np.int64)})
    expected = {"saf": [-1, 0, 0], "f1": [0, -1, 0], "fcfs": [0, 0, 1]}
    assert weights.tolist() == expected[agent.chosen[0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PolicyBandit(("saf", "wfp3")), "unknown policy 'wfp3'"),
        (lambda: PolicyBandit(("saf", "saf")), "two or more"),
        (lambda: PolicyBandit(seed=-1), "seed"),
        (lambda: WeightBandit(orders=[[1, 2, 3]]), "two orders or more"),
        (lambda: WeightBandit(orders=np.ones((2, 6))), "weights of area, requested, wait"),
        (lambda: WeightBandit(discount=0), "discount must be"),
        (lambda: WeightBandit(width=-1), "width must be"),
    ],
)
def test_what_a_bandit_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        make()
