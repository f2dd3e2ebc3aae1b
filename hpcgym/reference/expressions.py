"""Expressions as policies, worked out by Python's own ``eval``.

Numbers are Python's floats, which `Number` lets go on where Python
would stop: what is divided by 0 is infinite, 0 / 0 and the logarithm of -1 are no number. What is
no number is the least of all scores.
"""

from __future__ import annotations

import ast
import math
from typing import Any

from hpcgym.reference.jobs import Job

COLUMNS = {"user": "user_id", "group": "group_id", "code": "executable"}
COLUMNS |= {"queue": "queue", "partition": "partition"}


class Number(float):
    """A float whose operations never fail."""

    def __neg__(self) -> Number:
        return Number(-float(self))

    def __add__(self, other: float) -> Number:
        return Number(float(self) + float(other))

    def __sub__(self, other: float) -> Number:
        return Number(float(self) - float(other))

    def __mul__(self, other: float) -> Number:
        return Number(float(self) * float(other))

    def __truediv__(self, other: float) -> Number:
        if other != 0:
            return Number(float(self) / float(other))
        sign = math.copysign(1, self) * math.copysign(1, other)
        return Number(math.nan if float(self) == 0 or math.isnan(self) else sign * math.inf)

    def __floordiv__(self, other: float) -> Number:
        return Number(float(self) // float(other)) if other != 0 else self / other

    def __mod__(self, other: float) -> Number:
        return Number(float(self) % float(other)) if other != 0 else Number(math.nan)

    def __pow__(self, other: float) -> Number:  # type: ignore[override]
        if other in (2, 3):
            return self * self if other == 2 else self * self * self
        odd = math.isfinite(other) and other % 2 == 1
        negative = math.copysign(1, self) < 0 and odd
        try:
            return Number(math.pow(self, other))
        except OverflowError:
            return Number(-math.inf if negative else math.inf)
        except ValueError:  # 0 to a negative power, or no real number
            infinite = -math.inf if negative else math.inf
            return Number(infinite if float(self) == 0 else math.nan)


def carefully(function: Any, at_zero: float = math.nan) -> Any:
    """Return a function that returns what is infinite or no number instead of an error."""

    def careful(x: float) -> Number:
        try:
            return Number(function(x))
        except OverflowError:
            return Number(math.inf)
        except ValueError:
            return Number(at_zero if x == 0 else math.nan)

    return careful


def least(a: float, *others: float) -> float:
    """Return the least; what is no number is passed over."""
    for b in others:
        a = a if a < b or a != a else b
    return a


def greatest(a: float, *others: float) -> float:
    """Return the greatest; what is no number is passed over."""
    for b in others:
        a = a if a > b or a != a else b
    return a


FUNCTIONS: dict[str, Any] = {
    "log": carefully(math.log, -math.inf),
    "log2": carefully(math.log2, -math.inf),
    "log10": carefully(math.log10, -math.inf),
    "exp": carefully(math.exp),
    "sqrt": carefully(math.sqrt),
    "abs": lambda x: Number(math.fabs(x)),
    "floor": lambda x: Number(math.floor(x)) if math.isfinite(x) else x,
    "min": least,
    "max": greatest,
    "number": Number,
    "all_of": lambda *values: Number(all(value != 0 for value in values)),
    "any_of": lambda *values: Number(any(value != 0 for value in values)),
}


class _Numbers(ast.NodeTransformer):
    """Lets constants, comparisons and truths be Numbers."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Let what it comes to be a Number."""
        return _call("number", node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Let what it comes to be a Number."""
        return _call("number", self.generic_visit(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Let what it comes to be a Number."""
        name = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return _call(name, *(self.visit(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Let what it comes to be a Number."""
        inner = self.generic_visit(node)
        return _call("number", inner) if isinstance(node.op, ast.Not) else inner  # type: ignore[return-value]


def _call(name: str, *arguments: Any) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _since(job: Job) -> float:
    return math.log10(max(job.submit - job.first_submit, 1))


def _column(name: str) -> Any:
    return lambda job, now, workload: int(workload.columns[name][job.number])


#: What an expression may name, of one job of a workload.
NAMES: dict[str, Any] = {
    "wait": lambda job, now, _: now - job.submit,
    "requested": lambda job, now, _: job.requested,
    "processors": lambda job, now, _: job.processors,
    "submit": lambda job, now, _: job.submit,
    "clock": lambda job, now, _: now,
    "area": lambda job, now, _: job.requested * job.processors,
    "ratio": lambda job, now, _: job.requested / job.processors,
    "expansion": lambda job, now, _: 1 + (now - job.submit) / job.requested,
    "unicef": lambda job, now, _: (
        (now - job.submit) / max(math.log2(job.processors) * job.requested, 1e-200)
    ),
    "f1": lambda job, now, _: math.log10(job.requested) * job.processors + 870 * _since(job),
    "f2": lambda job, now, _: math.sqrt(job.requested) * job.processors + 25600 * _since(job),
    "f3": lambda job, now, _: job.requested * job.processors + 6860000 * _since(job),
    "f4": lambda job, now, _: job.requested * math.sqrt(job.processors) + 530000 * _since(job),
    "time_limit": lambda job, now, workload: int(workload.requested_time[job.number]),
}
NAMES |= {name: _column(column) for name, column in COLUMNS.items()}


class ByExpression:
    """A policy by an expression over the jobs of a :class:`hpcgym.Workload`.

    It is run as Python: give it what ``hpcgym.simulate`` takes as an expression, and nothing else.
    """

    def __init__(self, text: str, workload: Any) -> None:
        self.text, self.workload = text, workload
        tree = ast.parse(text, mode="eval")
        tree = ast.fix_missing_locations(_Numbers().visit(tree))
        self.code = compile(tree, text, "eval")
        self.names = {name: NAMES[name] for name in self.code.co_names if name in NAMES}

    def begin(self, simulation: Any) -> None:
        """Look at nothing that has terminated; but waiting may change the order."""

    def __call__(self, job: Job, now: int) -> float:
        """Return the score of a job: the highest is first."""
        value = eval(self.code, {"__builtins__": {}}, FUNCTIONS | self.named(job, now))
        return float(value) if value == value else -math.inf

    def named(self, job: Job, now: int) -> dict[str, Number]:
        """Return what the expression names, of a job, whose requested time may be predicted."""
        return {name: Number(of(job, now, self.workload)) for name, of in self.names.items()}
