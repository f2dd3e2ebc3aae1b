"""Orders of the queue: policies, expressions, and Slurm's multifactor priority.

https://slurm.schedmd.com/priority_multifactor.html: the sum of weighted factors from 0 to 1, less
the nice of the job. No priority is below 1, which is the lowest of a job that is not held. Jobs in
a partition of a higher tier come first, whatever their priorities.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from hpcgym.elementary import exp, log, log2, log10, power, tanh
from hpcgym.reference.jobs import Job
from hpcgym.reference.state import STATE, asked

# --- Orders of the queue --------------------------------------------------------------------------

Score = Callable[[Job, int], float]


def weighted(weights: Sequence[float]) -> Score:
    """Rule 5."""
    w_q, w_p, w_wait, w_ratio, w_exp, w_area = (float(w) for w in weights)

    def score(job: Job, now: int) -> float:
        q, p = job.processors, job.requested
        at_submission = w_q * q + w_p * p + w_ratio * (p / q) + w_exp + w_area * (p * q)
        if w_wait * p + w_exp == 0:
            return at_submission
        d = 1 / w_wait if w_exp == 0 else p / (w_wait * p + w_exp)
        return at_submission + (now - job.submit) / d

    return score


def wfp3(job: Job, now: int) -> float:
    """Return (wait / p~)^3 q (Tang et al. 2009)."""
    x = (now - job.submit) / job.requested
    return x * x * x * job.processors


def unicef(job: Job, now: int) -> float:
    """Return wait / (log2(q) p~) (Tang et al. 2009)."""
    wait = now - job.submit
    if job.processors == 1:  # log2(1) = 0: first of all, once it has waited
        return math.inf if wait > 0 else 0.0
    return wait / (log2(job.processors) * job.requested)


def _log10_submit(job: Job) -> float:
    return log10(max(job.submit - job.first_submit, 1))


def f1(job: Job, now: int) -> float:
    """Return the score F1 of Carastan-Santos and de Camargo 2017."""
    return -(log10(job.requested) * job.processors + 870 * _log10_submit(job))


def f2(job: Job, now: int) -> float:
    """Return the score F2 of Carastan-Santos and de Camargo 2017."""
    return -(math.sqrt(job.requested) * job.processors + 25600 * _log10_submit(job))


def f3(job: Job, now: int) -> float:
    """Return the score F3 of Carastan-Santos and de Camargo 2017."""
    return -(job.requested * job.processors + 6860000 * _log10_submit(job))


def f4(job: Job, now: int) -> float:
    """Return the score F4 of Carastan-Santos and de Camargo 2017."""
    return -(job.requested * math.sqrt(job.processors) + 530000 * _log10_submit(job))


POLICIES: dict[str, Score] = {
    "fcfs": lambda job, now: now - job.submit,
    "lcfs": lambda job, now: -(now - job.submit),
    "spf": lambda job, now: -job.requested,
    "sjf": lambda job, now: -job.requested,
    "lpf": lambda job, now: job.requested,
    "sqf": lambda job, now: -job.processors,
    "lqf": lambda job, now: job.processors,
    "saf": lambda job, now: -(job.requested * job.processors),
    "laf": lambda job, now: job.requested * job.processors,
    "srf": lambda job, now: -(job.requested / job.processors),
    "lrf": lambda job, now: job.requested / job.processors,
    "sexp": lambda job, now: -1 - (now - job.submit) / job.requested,
    "lexp": lambda job, now: 1 + (now - job.submit) / job.requested,
    "wfp3": wfp3,
    "unicef": unicef,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
}


def score_of(policy: str | Sequence[float] | Score) -> Score:
    """Return the score that a name, six weights or a function stands for."""
    if isinstance(policy, str):
        return POLICIES[policy]
    return policy if callable(policy) else weighted(policy)


def is_submission_order(order: Any) -> bool:
    """Whether an order is that of submission: "fcfs", or a positive weight of waiting alone."""
    if isinstance(order, str) or callable(order):
        return bool(order == "fcfs")
    return bool(order[2] > 0) and not any(w for i, w in enumerate(order) if i != 2)


def changes_with_time(policy: Any) -> bool:
    """Whether waiting alone can change a policy's order."""
    if isinstance(policy, ByExpression | ByNetwork):
        return policy.waits
    if hasattr(policy, "begin"):
        return True
    if isinstance(policy, str) or callable(policy):
        return policy in ("lexp", "sexp", "wfp3", "unicef")
    others = any(w for i, w in enumerate(policy) if i != 2)
    return policy[4] != 0 or (policy[2] != 0 and others)


def looks_at_times(policy: Any) -> bool:
    """Whether a policy depends on the requested time, or on what stands for it."""
    if isinstance(policy, ByExpression | ByNetwork):
        return not BY_TIME.isdisjoint(policy.names)
    if isinstance(policy, str) or callable(policy):
        return policy not in ("fcfs", "lcfs", "sqf", "lqf")
    return any(w for i, w in enumerate(policy) if i not in (0, 2))


# --- Expressions as policies, worked out by Python's own ``eval`` ---------------------------------
#
# Numbers are Python's floats, which `Number` lets go on where Python would stop: what is divided
# by 0 is infinite, 0 / 0 and the logarithm of -1 are no number. What is no number is the least of
# all scores.

COLUMNS = {"job": "job_number", "user": "user_id", "group": "group_id", "code": "executable"}
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
        return Number(power(self, other))


FUNCTIONS: dict[str, Any] = {
    "log": lambda x: Number(log(x)),
    "log2": lambda x: Number(log2(x)),
    "log10": lambda x: Number(log10(x)),
    "exp": lambda x: Number(exp(x)),
    "tanh": lambda x: Number(tanh(x)),
    "sqrt": lambda x: Number(math.sqrt(x) if x >= 0 else math.nan),
    "abs": lambda x: Number(math.fabs(x)),
    "floor": lambda x: Number(math.floor(x)) if math.isfinite(x) else x,
    "min": min,  # what is no number is passed over unless it comes first
    "max": max,
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
        """Let what it comes to be a Number; a text in quotes is a name in the log."""
        sides = [node.left, *node.comparators]
        texts = [side for side in sides if is_text(side)]
        if not texts:
            return _call("number", self.generic_visit(node))
        (column,) = (ast.Constant(side.id) for side in sides if isinstance(side, ast.Name))
        called = _call("is_called", column, *texts)
        if isinstance(node.ops[0], ast.NotEq):
            return _call("number", ast.UnaryOp(ast.Not(), called))
        return called

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Let the name of an amount, on which a function is called, be a text."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("asked", "in_use"):
            return self.generic_visit(node)  # type: ignore[return-value]
        (given,) = node.args
        return _call(name, given if is_text(given) else ast.Constant(ast.unparse(given)))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Let what it comes to be a Number."""
        name = "all_of" if isinstance(node.op, ast.And) else "any_of"
        return _call(name, *(self.visit(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Let what it comes to be a Number."""
        inner = self.generic_visit(node)
        return _call("number", inner) if isinstance(node.op, ast.Not) else inner  # type: ignore[return-value]


def is_text(node: ast.expr) -> bool:
    """Whether a part of an expression is a text in quotes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _call(name: str, *arguments: Any) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _since(job: Job) -> float:
    return log10(max(job.submit - job.first_submit, 1))


def _column(name: str) -> Any:
    return lambda job, now, workload: int(workload.columns[name][job.number])


def _nice(job: Job, now: int, workload: Any) -> int:
    nice = int(workload.columns["nice"][job.number])
    return 0 if nice == -1 else nice  # an unknown one


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
        (now - job.submit) / max(log2(job.processors) * job.requested, 1e-200)
    ),
    "f1": lambda job, now, _: log10(job.requested) * job.processors + 870 * _since(job),
    "f2": lambda job, now, _: math.sqrt(job.requested) * job.processors + 25600 * _since(job),
    "f3": lambda job, now, _: job.requested * job.processors + 6860000 * _since(job),
    "f4": lambda job, now, _: job.requested * math.sqrt(job.processors) + 530000 * _since(job),
    "time_limit": lambda job, now, workload: int(workload.requested_time[job.number]),
}
NAMES |= {name: _column(column) for name, column in COLUMNS.items()}
NAMES["nice"] = _nice
#: The same by the names of their columns.
NAMES |= {
    long: NAMES[short]
    for long, short in {
        "requested_processors": "processors",
        "requested_time": "time_limit",
        "submit_time": "submit",
        "wait_time": "wait",
    }.items()
}
#: Those that grow while a job waits, and those that look at its requested time.
GROWING = {"wait", "wait_time", "clock", "expansion", "unicef"}
BY_TIME = {"requested", "area", "ratio", "expansion", "unicef", "f1", "f2", "f3", "f4"}


class ByExpression:
    """A policy by an expression over the jobs of a :class:`hpcgym.Workload`.

    It is run as Python: give it what ``hpcgym.simulate`` takes as an expression, and nothing else.
    ``called``: the names of the numbers in each column, where the log has them.
    """

    def __init__(
        self, text: str, workload: Any, called: Mapping[str, Mapping[int, str]] | None = None
    ) -> None:
        self.text, self.workload, self.called = text, workload, called or {}
        tree = ast.parse(text, mode="eval")
        tree = ast.fix_missing_locations(_Numbers().visit(tree))
        self.code = compile(tree, text, "eval")
        self.names = {name: NAMES[name] for name in self.code.co_names if name in NAMES}
        self.states = {name: STATE[name] for name in self.code.co_names if name in STATE}
        #: whether waiting, or the state that a pass finds, may change the order
        self.waits = bool(self.looks_at_state or GROWING & self.names.keys())
        self.simulation: Any = None

    @property
    def looks_at_state(self) -> bool:
        """Whether it looks at what a pass finds."""
        return bool(self.states) or "in_use" in self.code.co_names

    def begin(self, simulation: Any) -> None:
        """Look at the state that each pass finds, rule 30."""
        self.simulation = simulation
        simulation.is_looked_at |= self.looks_at_state

    def __call__(self, job: Job, now: int) -> float:
        """Return the score of a job: the highest is first."""
        value = self.value(job, now)
        return value if value == value else -math.inf

    def value(self, job: Job, now: int) -> float:
        """Return what it comes to, which may be no number."""
        return float(eval(self.code, {"__builtins__": {}}, FUNCTIONS | self.named(job, now)))

    def named(self, job: Job, now: int) -> dict[str, Any]:
        """Return what the expression names, of a job, whose requested time may be predicted."""
        known: dict[str, Any] = {
            "is_called": partial(self.is_called, job),
            "asked": lambda amount: Number(asked(job, amount, self.workload)),
            "in_use": self.in_use,
        }
        for name, of in self.names.items():
            known[name] = Number(of(job, now, self.workload))
        for name, of_state in self.states.items():
            known[name] = Number(of_state(self.simulation.state, job, self.workload))
        return known

    def in_use(self, amount: str) -> Number:
        """Return how much of an amount the jobs have that run as the pass begins."""
        holders = self.simulation.state.holders
        return Number(sum(asked(job, amount, self.workload) for job in holders))

    def is_called(self, job: Job, name: str, text: str) -> Number:
        """Return whether a column of a job has a text; numbers without a name have their digits."""
        number = int(self.workload.columns[COLUMNS[name]][job.number])
        return Number(self.called.get(COLUMNS[name], {}).get(number, str(number)) == text)


# --- Networks -------------------------------------------------------------------------------------

#: What is the same for all jobs of a pass.
OF_PASS = {"free", "free_1h", "queued", "behind", "hour", "weekday", "machine_size"}


class ByNetwork:
    """A policy by a network of one hidden layer over expressions, rule 5.

    Parameters
    ----------
    inputs : of each the expression, its center, and its scale.
    hidden, bias, output, skip : as :class:`hpcgym.scheduler.policies.networks.Network` has them.
    workload, called : as :class:`ByExpression` takes them.
    """

    waits = True

    def __init__(
        self,
        inputs: Sequence[tuple[str, float, float]],
        hidden: Sequence[Sequence[float]],
        bias: Sequence[float],
        output: Sequence[float],
        skip: Sequence[float],
        workload: Any,
        called: Mapping[str, Mapping[int, str]] | None = None,
    ) -> None:
        self.inputs = [ByExpression(text, workload, called) for text, _, _ in inputs]
        self.scaling = [(center, scale) for _, center, scale in inputs]
        self.names = {name: of for each in self.inputs for name, of in each.names.items()}
        # the skip is a unit without a bias, and without a tangent
        self.units = [*zip(hidden, bias, strict=True), (skip, 0.0)]
        self.output = output

    def begin(self, simulation: Any) -> None:
        """Look at the state that each pass finds, rule 30."""
        for each in self.inputs:
            each.begin(simulation)

    def __call__(self, job: Job, now: int) -> float:
        """Return the score of a job: the highest is first."""
        scaled = [
            (each, (float(each.value(job, now)) - center) / scale)
            for each, (center, scale) in zip(self.inputs, self.scaling, strict=True)
        ]
        *units, skip = (self.sum_of(weights, bias, scaled) for weights, bias in self.units)
        fourths = [0.0] * 4
        for k, (weight, unit) in enumerate(zip(self.output, units, strict=True)):
            fourths[k % 4] += weight * tanh(unit)
        value = skip + ((fourths[0] + fourths[1]) + (fourths[2] + fourths[3]))
        return value if value == value else -math.inf

    def sum_of(
        self, weights: Sequence[float], bias: float, scaled: list[tuple[ByExpression, float]]
    ) -> float:
        """Return the sum of a unit: inputs of the job, then those of the pass, then the others."""
        of_job, of_pass, others = bias, 0.0, list[float]()
        for weight, (each, value) in zip(weights, scaled, strict=True):
            if not each.waits:
                of_job += weight * value
            elif sees_pass_alone(each):
                of_pass += weight * value
            else:
                others.append(weight * value)
        return sum(others, of_job + of_pass)


def sees_pass_alone(expression: ByExpression) -> bool:
    """Whether an expression is the same for all jobs of a pass."""
    names = {*expression.code.co_names} - {*FUNCTIONS, "in_use"}
    return names <= OF_PASS


# --- Slurm's multifactor priority of a job, worked out as its page says ---------------------------

_ABOVE_ALL = 10**12  # no priority comes near it


class MultifactorPriority:
    """A policy of the reference: tier and priority; all numbers are exact.

    Parameters
    ----------
    weights : of age, job size and partition.
    max_age : seconds from which on a job is as old as can be.
    processors : of the machine.
    partitions : tier and factor of each.
    partition, nice : of each job; an unknown nice is -1, and counts as 0.
    """

    def __init__(
        self,
        weights: Sequence[int],
        max_age: int,
        processors: int,
        partitions: Sequence[tuple[int, int]],
        partition: Sequence[int],
        nice: Sequence[int],
    ) -> None:
        self.weights, self.max_age, self.processors = weights, max_age, processors
        self.partitions, self.partition, self.nice = partitions, partition, nice

    def begin(self, simulation: Any) -> None:
        """Look at nothing that has terminated."""

    def __call__(self, job: Job, now: int) -> Fraction:
        """Return the score of a job: the highest is first."""
        tier, factor = self.partitions[self.partition[job.number]]
        greatest = max(factor for _, factor in self.partitions) or 1
        factors = (
            min(Fraction(now - job.submit, self.max_age), Fraction(1)),
            Fraction(job.processors, self.processors),
            Fraction(factor, greatest),
        )
        priority = sum(
            (weight * part for weight, part in zip(self.weights, factors, strict=True)), Fraction(0)
        )
        nice = self.nice[job.number]
        priority -= 0 if nice == -1 else nice
        return tier * _ABOVE_ALL + max(priority, Fraction(1))
