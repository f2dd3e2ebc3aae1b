"""Random expressions, which `hpcgym.reference.orders` works out by Python's own ``eval``."""

from __future__ import annotations

from drawing import strategies as st

_LEAVES = ["wait", "wait", "wait", "requested", "processors", "area", "ratio", "expansion"]
_LEAVES += ["unicef", "f1", "f4", "submit", "clock", "time_limit", "user", "queue"]
_LEAVES += ["asked(processors)", "0", "1", "2", "3", "0.5", "60", "3600", "1e9"]
_TWO = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} ** {}"]
_TWO += ["min({}, {})", "max({}, {}, 7)", "({} < {})", "({} >= {})", "({} == {})", "({} != {})"]
_TWO += ["({} and {})", "({} or {})", "({} < {} <= 60)"]
_ONE = ["-({})", "abs({})", "sqrt({})", "log({})", "log2(1 + {})", "log10({})", "exp({})"]
_ONE += ["floor({})", "({}) ** 2", "({}) ** 3", "({}) ** 0.5", "not {}"]


#: What a pass finds.
STATE = ["free", "free_1h", "queued", "behind", "hour", "weekday", "fits", "leaves"]
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
