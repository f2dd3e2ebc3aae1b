"""Agents that learn while they schedule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.agents.weight_bandit import ORDERS, Ended, WeightBandit

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
        agent.act(seen(load(day)), {"time_s": day * DAY, "window": np.zeros(0, np.int64)})
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


test_mistakes = mistakes_of(globals())
