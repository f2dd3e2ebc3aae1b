"""Random expressions, which `hpcgym.reference.orders` works out by Python's own ``eval``.

And networks over them, which it works out with numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawing import strategies as st

from hpcgym.reference.orders import ByExpression, ByNetwork
from hpcgym.scheduler.policies.networks import Network
from hpcgym.workload.model import Workload

_LEAVES = ["wait", "wait", "wait", "requested", "processors", "area", "ratio", "expansion"]
_LEAVES += ["unicef", "f1", "f4", "submit", "clock", "time_limit", "user", "queue"]
_LEAVES += ["asked(processors)", "0", "1", "2", "3", "0.5", "60", "3600", "1e9"]
_TWO = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} ** {}"]
_TWO += ["min({}, {})", "max({}, {}, 7)", "({} < {})", "({} >= {})", "({} == {})", "({} != {})"]
_TWO += ["({} and {})", "({} or {})", "({} < {} <= 60)"]
_ONE = ["-({})", "abs({})", "sqrt({})", "log({})", "log2(1 + {})", "log10({})", "exp({})"]
_ONE += ["tanh({})", "tanh(({}) / 1000)"]
_ONE += ["floor({})", "({}) ** 2", "({}) ** 3", "({}) ** 0.5", "not {}"]


#: What a pass finds.
STATE = ["free", "free_1h", "queued", "behind", "hour", "weekday", "fits", "leaves"]
STATE += ["machine_size"]
STATE += ["user_running", "user_waiting", "last_run", "mean_run", "spread_run", "known_runs"]
_IN_USE = ["in_use(processors)", "in_use('jobs')"]


def trees(max_leaves: int = 8, leaves: list[str] = _LEAVES) -> st.SearchStrategy[str]:
    """Expressions, in brackets."""

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(st.sampled_from(_TWO), inner, inner)
        singles = st.tuples(st.sampled_from(_ONE), inner)
        choices = st.tuples(st.just("{} if {} > {} else {}"), inner, inner, inner, inner)
        parts = st.one_of(pairs, pairs, singles, choices)
        return parts.map(lambda part: f"({part[0].format(*part[1:])})")

    return st.recursive(st.sampled_from(leaves), larger, max_leaves=max_leaves)


def general() -> st.SearchStrategy[str]:
    """Expressions that are worked out anew: waiting changes each otherwise than by a multiple."""
    hand = ["wait ** 2 / requested", "(wait / requested) ** 3 * processors", "area / wait"]
    hand += ["max(wait, 3600) * 2 - area", "area if wait < 600 else 0", "log(1 + wait) - ratio"]
    hand += ["-(wait % 7)", "wait // 60 - requested / 1e6", "min(wait, 20) * processors"]
    drawn = trees().map(lambda text: f"{text} + 0 * wait ** 2")
    return st.one_of(st.sampled_from(hand), drawn, drawn)


def of_state() -> st.SearchStrategy[str]:
    """Expressions that look at the state of the machine, the queue and users."""
    hand = ["-(0.5 - 2.4 * free) * log(processors)", "wait * (1 - free_1h) - area * free"]
    hand += ["(fits and leaves < 0.25) * 1e9 + wait", "-user_running", "-user_waiting"]
    hand += ["-last_run * processors", "-mean_run - spread_run", "queued % 2 * area"]
    drawn = trees(6, [*STATE, *STATE, *_IN_USE, *_LEAVES]).map(lambda text: f"{text} + 0 * fits")
    names = st.sampled_from([*STATE, *_IN_USE])
    each = names.map(lambda name: f"({name} * 7 % 3 - 1) * (area + wait)")
    return st.one_of(st.sampled_from(hand), each, drawn, drawn)


#: Inputs of networks: of jobs, of passes, of both; some are infinite or no numbers at times.
_INPUTS = ["log(requested)", "log(processors)-log(machine_size)", "area/100", "ratio", "user"]
_INPUTS += [
    "free",
    "free_1h",
    "log(1+queued)",
    "log(1+behind)",
    "in_use(processors)",
    "tanh(queued-3)",
]
_INPUTS += ["log(wait+60)", "wait/requested", "fits", "leaves", "user_running", "user_waiting"]
_INPUTS += ["log(max(last_run,1))", "mean_run-requested", "free*log(requested)", "wait*free"]
_INPUTS += ["log(wait)", "log(wait-20)", "1/wait", "asked(processors)*queued", "time_limit", "f4"]


def _drawn_network(inputs: list[str], n_units: int, seed: int) -> Network:
    random, n = np.random.default_rng(seed), len(inputs)
    sizes = 10.0 ** random.integers(-1, 3, n)
    numbers = [random.normal(0, 1, shape) for shape in (n, n, (n_units, n), n_units, n_units)]
    center, skip, hidden, bias, output = numbers
    if seed % 3 == 0:  # many a score is that of others
        output = np.round(output)
        skip, hidden = np.zeros(n), np.round(hidden)
    return Network(tuple(inputs), center * sizes, sizes, skip, hidden, bias, output)


def networks() -> st.SearchStrategy[Network]:
    """Networks of some inputs and up to six units."""
    drawn = trees(4, [*STATE, *_LEAVES]).map(lambda text: f"{text} + 0 * requested")
    inputs = st.lists(
        st.one_of(st.sampled_from(_INPUTS), st.sampled_from(_INPUTS), drawn), min_size=1, max_size=5
    )
    return st.builds(_drawn_network, inputs, st.integers(0, 6), st.integers(0, 10**6))


def at_states() -> st.SearchStrategy[str | Network]:
    """Expressions and networks that look at the state."""
    return st.one_of(of_state(), of_state(), networks())


def names_in(order: Network | str) -> str:
    """All that an expression, or a network, names, and more."""
    return order if isinstance(order, str) else " ".join(order.inputs)


def slow_order(order: Network | str, log: Workload) -> Any:
    """An expression, or a network, as the reference takes it."""
    if isinstance(order, str):
        return ByExpression(order, log)
    scaling = zip(order.inputs, order.center.tolist(), order.scale.tolist(), strict=True)
    return ByNetwork([*scaling], order.hidden, order.bias, order.output, order.skip, log)
