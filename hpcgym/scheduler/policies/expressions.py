"""Policies as expressions over features of jobs: ``-(requested * processors) + 20 * wait``.

The score of a job is the value of the expression, and the highest score is served first. The engine
computes scores once if waiting does not change them, or if the order is that of submission or its
reverse. Other expressions are *general*, such as those that look at the state of the machine, the
queue and users: their scores are computed at each pass.
"""

from __future__ import annotations

import ast
import keyword
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import values_of
from hpcgym.errors import HpcgymError, unknown
from hpcgym.names import NAMED, NICE
from hpcgym.scheduler.policies import operations as op
from hpcgym.scheduler.policies.features import (
    FEATURES,
    STATE,
    STATE_OF_ALL,
    USER_FEATURES,
    JobColumns,
)
from hpcgym.workload.amounts import amount_problem
from hpcgym.workload.model import Workload

# --- The grammar of policies that are expressions -------------------------------------------------
#
# It is a part of Python's, read with :mod:`ast`: numbers, names, ``+ - * / // % **``, comparisons,
# ``and or not``, ``A if C else B`` and the functions of :data:`FUNCTIONS`. Python runs none of it.
# A text in quotes is compared with a number that has names in the log: ``queue == "urgent"``.
# Steps are in postfix order, see :mod:`hpcgym.scheduler.policies.operations`.

#: Function -> operation, and what it returns; ``min`` and ``max`` take two values or more.
FUNCTIONS: dict[str, tuple[int, str]] = {
    "log": (op.LOG, "natural logarithm"),
    "log2": (op.LOG2, "logarithm to base 2"),
    "log10": (op.LOG10, "logarithm to base 10"),
    "exp": (op.EXP, "e to this power"),
    "tanh": (op.TANH, "hyperbolic tangent"),
    "sqrt": (op.SQRT, "square root"),
    "abs": (op.ABS, "the number without its sign"),
    "floor": (op.FLOOR, "the greatest whole number that is not above it"),
    "min": (op.LEAST, "the least of its values"),
    "max": (op.GREATEST, "the greatest of its values"),
}

#: The same of what is called on the name of an amount, ``asked(gpu)`` or ``asked("licence.a@b")``.
OF_AMOUNTS: dict[str, tuple[int, str]] = {
    "asked": (op.COLUMN, "how much the job asks for of an amount of jobs"),
    "in_use": (op.IN_USE, "how much of it running jobs have as a pass begins"),
}

#: Columns of jobs -> their names in expressions, which are short and published.
IN_EXPRESSIONS = {
    "requested_processors": "processors",
    "requested_time": "time_limit",
    "submit_time": "submit",
    "wait_time": "wait",
}

#: Common names of the run time, which no scheduler may look at.
_SECRET = ("run_time", "runtime", "run", "actual", "real_time")

_OTHER_OPERATORS: dict[type, str] = {
    ast.BitXor: "a power as wait ** 2, without '^'",
    ast.BitAnd: "'and' in place of '&'",
    ast.BitOr: "'or' in place of '|'",
}
_OPERATORS: dict[type, int] = {
    ast.Add: op.ADD,
    ast.Sub: op.SUBTRACT,
    ast.Mult: op.MULTIPLY,
    ast.Div: op.DIVIDE,
    ast.FloorDiv: op.WHOLE_PARTS,
    ast.Mod: op.REST,
    ast.Pow: op.POWER,
    ast.Lt: op.LESS,
    ast.LtE: op.AT_MOST,
    ast.Gt: op.MORE,
    ast.GtE: op.AT_LEAST,
    ast.Eq: op.EQUAL,
    ast.NotEq: op.UNEQUAL,
    ast.And: op.AND,
    ast.Or: op.OR,
}

MOST_CHARACTERS, MOST_STEPS = 20_000, 1_000


class ProgramStep(NamedTuple):
    """One operation, and what it pushes: a name or a number; 1 or 0 where the name has a text.

    ``amount``: of jobs, where it pushes what they ask for.
    """

    code: int
    name: str = ""
    number: float = 0.0
    column: int = 0  # where it stands in the text, from 1
    text: str = ""  # the value is 1 for jobs with this name, else 0
    amount: str = ""


def _read_steps(text: str, argument: str) -> list[ProgramStep]:
    """Return the steps of an expression."""
    reader = _Compiler(text, argument)
    try:
        reader.put(_parsed(text, argument))
        reader.check_length()
    except RecursionError:
        fail(text, argument, 1, "too many parts within parts")
    return reader.steps


def fail(text: str, argument: str, column: int, problem: str) -> NoReturn:
    """Raise the error of an expression."""
    raise HpcgymError(f"{argument}, column {column}: {problem}; in {text!r}")


def _parsed(text: str, argument: str) -> ast.expr:
    """Return the tree of a text."""
    if len(text) > MOST_CHARACTERS:
        raise HpcgymError(f"{argument}: an expression has at most {MOST_CHARACTERS:,} characters")
    blank = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of doubtful syntax, such as "3if"
            return ast.parse(_one_line(text), mode="eval").body
    except SyntaxError as error:
        column = blank + (error.offset or len(text) - blank)  # 0: at the end
        fail(text, argument, column, f"no expression: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        fail(text, argument, 1, f"no expression: {error or type(error).__name__}")


def _one_line(text: str) -> str:
    """Return a text without the blanks around it, in one line, so that columns count."""
    return "".join(" " if c.isspace() else c for c in text.strip())


class _Compiler:
    """Writes the steps of a tree, in the order in which they are done."""

    def __init__(self, text: str, argument: str) -> None:
        self.steps: list[ProgramStep] = []
        self._text, self._argument = text, argument
        self._blank = len(text) - len(text.lstrip())
        self._bytes = _one_line(text).encode()

    def put(self, node: ast.expr) -> None:
        """Write the steps of a part of the expression."""
        self.check_length()
        match node:
            case ast.Constant():
                self._step(node, op.NUMBER, number=self._number(node))
            case ast.Name():
                self._put_name(node)
            case ast.UnaryOp(op=ast.USub()):
                self.put(node.operand)
                self._step(node, op.NEGATIVE)
            case ast.UnaryOp(op=ast.UAdd()):
                self.put(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                self.put(node.operand)
                self._step(node, op.NOT)
            case ast.BinOp() if type(node.op) in _OPERATORS:
                self._fold(node, _OPERATORS[type(node.op)], (node.left, node.right))
            case ast.BoolOp():
                self._fold(node, _OPERATORS[type(node.op)], node.values)
            case ast.Compare():
                self._put_comparison(node)
            case ast.IfExp():
                for part in (node.test, node.body, node.orelse):
                    self.put(part)
                self._step(node, op.CHOICE)
            case ast.Call():
                self._put_call(node)
            case ast.BinOp() if type(node.op) in _OTHER_OPERATORS:
                self._fail(node, f"write {_OTHER_OPERATORS[type(node.op)]}")
            case _:
                self._fail(node, "only numbers, names, operators, comparisons and functions")

    def check_length(self) -> None:
        """Raise the error of an expression that is too long."""
        if len(self.steps) > MOST_STEPS:
            problem = f"at most {MOST_STEPS} numbers, names and operations"
            fail(self._text, self._argument, self.steps[-1].column, problem)

    def _put_name(self, node: ast.Name) -> None:
        """Write a name."""
        if node.id in FUNCTIONS or node.id in OF_AMOUNTS:
            self._fail(node, f"{node.id} is a function: write {node.id}(...)")
        if node.id in _SECRET:
            known = "`requested` is the requested time, or the predicted run time"
            self._fail(node, f"no scheduler knows how long a job will run ({node.id}); {known}")
        name = IN_EXPRESSIONS.get(node.id, node.id)
        if name not in _CODES:
            self._fail(node, unknown("name", name, _CODES))
        self._step(node, _CODES[name], name)

    def _put_comparison(self, node: ast.Compare) -> None:
        """Write a comparison; ``a < b < c`` is ``a < b and b < c``."""
        left = node.left
        for k, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if type(operator) not in _OPERATORS:
                self._fail(right, "numbers are compared with < <= > >= == !=")
            if _is_text(left) or _is_text(right):
                self._put_called(node, operator, left, right)
            else:
                self._fold(node, _OPERATORS[type(operator)], (left, right))
            if k > 0:
                self._step(node, op.AND)
            left = right

    def _put_called(
        self, node: ast.Compare, operator: ast.cmpop, left: ast.expr, right: ast.expr
    ) -> None:
        """Write the comparison of a name with a text in quotes, in either order."""
        if _is_text(left):
            left, right = right, left
        equals = isinstance(operator, ast.Eq | ast.NotEq)
        if not (equals and isinstance(left, ast.Name) and left.id in NAMED):
            self._fail(node, f"a text is compared, by == or !=, with {', '.join(NAMED)}")
        column = self._column(left)
        self.steps.append(
            ProgramStep(_CODES[left.id], left.id, 0.0, column, ast.literal_eval(right))
        )
        if isinstance(operator, ast.NotEq):
            self._step(node, op.NOT)

    def _put_call(self, node: ast.Call) -> None:
        """Write the call of a function."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in OF_AMOUNTS:
            return self._put_amount(node, name)
        if name not in FUNCTIONS:
            known = (*FUNCTIONS, *OF_AMOUNTS)
            self._fail(node, unknown("function", name or ast.unparse(node.func), known))
        code = FUNCTIONS[name][0]
        several = code in (op.LEAST, op.GREATEST)
        if node.keywords or (len(node.args) < 2 if several else len(node.args) != 1):
            self._fail(node, f"{name} takes {'two values or more' if several else 'one value'}")
        if several:
            self._fold(node, code, node.args)
        else:
            self.put(node.args[0])
            self._step(node, code)

    def _put_amount(self, node: ast.Call, name: str) -> None:
        """Write what is called on the name of an amount, in quotes or not."""
        if node.keywords or len(node.args) != 1:
            self._fail(node, f"{name} takes the name of an amount, as in {name}(gpu)")
        (given,) = node.args
        amount = ast.literal_eval(given) if _is_text(given) else ast.unparse(given)
        if problem := amount_problem(amount):
            quoted = amount.replace(" ", "")  # what stands there without quotes is a difference
            if quoted != amount and not amount_problem(quoted):
                self._fail(node, f"write the name in quotes, {name}({quoted!r})")
            self._fail(node, f"{amount!r} is no amount of jobs: {problem}")
        code, column = OF_AMOUNTS[name][0], self._column(node)
        self.steps.append(ProgramStep(code, name, column=column, amount=amount))

    def _fold(self, node: ast.expr, code: int, parts: Iterable[ast.expr]) -> None:
        """Write an operation on two values, or on several from left to right."""
        for k, part in enumerate(parts):
            self.put(part)
            if k > 0:
                self._step(node, code)

    def _step(self, node: ast.expr, code: int, name: str = "", number: float = 0.0) -> None:
        self.steps.append(ProgramStep(code, name, number, self._column(node)))

    def _number(self, node: ast.Constant) -> float:
        """Return a constant, which must be a finite number."""
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            try:
                number = float(node.value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        self._fail(node, f"a constant must be a finite number, not {ast.unparse(node)}")

    def _column(self, node: ast.expr) -> int:
        before = self._bytes[: node.col_offset]  # ast counts bytes
        return self._blank + len(before.decode(errors="ignore")) + 1

    def _fail(self, node: ast.expr, problem: str) -> NoReturn:
        fail(self._text, self._argument, self._column(node), problem)


def _is_text(node: ast.expr) -> bool:
    """Return whether a part of an expression is a text in quotes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# --- Policies as expressions over features of jobs ------------------------------------------------

#: Names in expressions beside features -> meaning, and the column of the log.
COLUMNS = {
    "submit": ("submit time [s], by the log's clock", "submit_time"),
    "clock": ("the time now [s], by the log's clock", "submit_time"),
    "time_limit": (
        "requested time [s], also where a predicted one stands for `requested`",
        "requested_time",
    ),
    "nice": ("what the user takes from its priority in Slurm", NICE),
    "job": ("number of the job", "job_number"),
    "user": ("number of the user", "user_id"),
    "group": ("number of the group", "group_id"),
    "code": ("number of the code", "executable"),
    "queue": ("number of the queue", "queue"),
    "partition": ("number of the partition", "partition"),
}

#: All names in expressions -> meaning.
NAMES: dict[str, str] = {
    **{name: feature.meaning for name, feature in FEATURES.items()},
    **{name: meaning for name, (meaning, _) in COLUMNS.items()},
    **USER_FEATURES,
    **STATE,
}

_CODES: dict[str, int] = {
    **dict.fromkeys(FEATURES, op.FEATURE),
    **dict.fromkeys(COLUMNS, op.COLUMN),
    **dict.fromkeys(USER_FEATURES, op.USAGE),
    **dict.fromkeys(STATE, op.STATE),
    "wait": op.WAIT,
}


class Form(NamedTuple):
    """What a value depends on."""

    job: bool = False
    wait: bool = False
    usage: bool = False
    state: bool = False
    bent: bool = False  # it is not linear in the waiting time


class LayerInput(NamedTuple):
    """An input of a network: an expression, less its center, over its scale.

    ``by``: "job" if it depends on the job alone, "pass" if it is the same for all jobs of a pass,
    else "pair".
    """

    text: str
    center: float
    scale: float
    by: str


class Layer(NamedTuple):
    """The last step of a network of n inputs and h hidden units, which takes the inputs.

    With inputs z it leaves ``skip . z + output . tanh(bias + hidden z)``. Each sum over inputs is
    of those by job, then of those by pass, then of the others; see docs/semantics.md.

    Attributes
    ----------
    inputs : (n,).
    hidden : (h, n) float64.
    bias, output : (h,) float64.
    skip : (n,) float64.
    """

    inputs: tuple[LayerInput, ...]
    hidden: NDArray[np.float64]
    bias: NDArray[np.float64]
    output: NDArray[np.float64]
    skip: NDArray[np.float64]

    def numbers(self) -> NDArray[np.float64]:
        """Return its numbers as the engine takes them."""
        return np.concatenate([self.bias, self.hidden.ravel(), self.output, self.skip])


class _Term(NamedTuple):
    """A value of the expression, and the factors of the priorities of USER_FEATURES in it."""

    form: Form
    first: int  # of its steps
    usage: tuple[float, ...] = (0.0,) * len(USER_FEATURES)


@dataclass(frozen=True)
class Expression:
    """An expression that has been read.

    Attributes
    ----------
    text : as it was given.
    steps : the operations that compute it.
    usage : the weights of users' priorities in it, by name.
    general : whether it is computed anew at each pass: it looks at the state, or waiting changes it
        in another way than it changes an order of submission.
    reversed : where only waiting counts, whether the job that has waited least comes first; None:
        other things count.
    layer : the last step of a network; None of an expression without one.
    """

    text: str
    steps: tuple[ProgramStep, ...]
    usage: Mapping[str, float]
    general: bool
    reversed: bool | None
    layer: Layer | None = None

    @property
    def looks_at_time(self) -> bool:
        """Whether it looks at requested times, or at run times that replace them."""
        return any(step.code == op.FEATURE and step.name != "processors" for step in self.steps)

    @property
    def state(self) -> frozenset[str]:
        """What it names of the state: names of STATE, and ``in_use``."""
        return frozenset(step.name for step in self.steps if step.code in (op.STATE, op.IN_USE))

    def values(self, jobs: JobColumns) -> NDArray[np.float64]:
        """Return its value for each job at submission, without the part of usage, (n_jobs,)."""
        return jobs.values_of(*self._operations(jobs))

    def program(self, jobs: JobColumns) -> dict[str, NDArray[Any]]:
        """Return it for the engine, which computes it at each pass, without the part of usage."""
        program = jobs.told(*self._operations(jobs))
        return program if self.layer is None else program | {"layer": self.layer.numbers()}

    def _operations(self, jobs: JobColumns) -> tuple[Any, Any, list[NDArray[np.float64]]]:
        """Return its operations, their operands, and the columns of jobs that they read."""
        steps: list[tuple[int, float]] = []
        columns: list[NDArray[np.float64]] = []
        named = {step.text for step in self.steps}
        for step in self.steps:
            if step.code == op.USAGE:
                steps.append((op.NUMBER, 0.0))
            elif step.code in (op.COLUMN, op.IN_USE):
                steps.append((step.code, 2 + len(columns)))  # behind those of features
                columns.append(_column(jobs, step, named))
                if step.name == "clock":
                    steps += [(op.WAIT, 0.0), (op.ADD, 0.0)]
            elif step.code == op.FEATURE:
                steps.append((op.FEATURE, list(FEATURES).index(step.name)))
            elif step.code == op.STATE:
                steps.append((op.STATE, list(STATE).index(step.name)))
            else:
                steps.append((step.code, step.number))
        for name in {step.name for step in self.steps if step.text}:
            texts = [step.text for step in self.steps if step.text and step.name == name]
            jobs.check_called(NAMED[name], texts)
        codes, numbers = zip(*steps, strict=True)
        return np.array(codes, np.int64), np.array(numbers, np.float64), columns


def _column(jobs: JobColumns, step: ProgramStep, named: Set[str]) -> NDArray[np.float64]:
    """Return a column of jobs; if the step has a text, 1 for jobs with that name, else 0."""
    if step.amount:
        return jobs.asked(step.amount)
    if step.text:
        return jobs.is_called(NAMED[step.name], step.text, named).astype(np.float64)
    return jobs.nice if step.name == NICE else jobs.field(COLUMNS[step.name][1])


#: Signs that may be in names and paths, but not between blanks.
_APART = (" + ", " - ", " / ")


def is_expression(text: str) -> bool:
    """Return whether a text is meant as an expression, and not as a name, weights or a path."""
    words = [word for word in _words(text) if not word[0].isdigit()]
    if not words or text.startswith(("/", "./", "../", "~")):
        return False
    if any(sign in text for sign in "*()<>%=") or any(sign in text for sign in _APART):
        return True
    names = [word for word in words if not keyword.iskeyword(word)]
    known = (word in _SECRET or IN_EXPRESSIONS.get(word, word) in NAMES for word in names)
    return len(names) > 0 and all(known)


def is_constant(text: str) -> bool:
    """Return whether a text is a number, also infinity or nan, or reckons with numbers alone."""
    try:
        return len([float(word) for word in _words(text)]) > 0
    except ValueError:
        return False


def the_same_for_all(argument: str, text: str) -> HpcgymError:
    """Return the error of a policy that orders nothing."""
    return HpcgymError(
        f"{argument} {text!r} is the same for all jobs: name a feature of jobs, such as"
        " '-requested'"
    )


def _words(text: str) -> list[str]:
    """Return the names and numbers of a text."""
    return "".join(c if c.isalnum() or c in "_." else " " for c in text).split()


@lru_cache(maxsize=256)  # a simulation asks a dozen times what its policy is
def read_expression(text: str, argument: str = "policy") -> Expression:
    """Return an expression that has been read and checked.

    Raises
    ------
    HpcgymError : no expression; an expression that orders nothing; or one that is not linear in
        usage. The message names the column.
    """
    steps = _read_steps(text, argument)
    form, _, weights = _whole(steps, text, argument)
    usage = {name: w for name, w in zip(USER_FEATURES, weights, strict=True) if w != 0}
    if not np.isfinite(weights).all():
        raise HpcgymError(f"{argument} {text!r} is infinite, or no number, for all jobs")
    if form.state and not (form.job or form.wait or form.usage):
        raise the_same_for_all(argument, text)
    if form.job or form.bent or form.state:
        return Expression(text, tuple(steps), usage, form.wait or form.state, None)
    before, soon, late = _values(steps, [0.0, 1.0, 2.0**53])
    if not np.isfinite([before, soon]).all():
        raise HpcgymError(f"{argument} {text!r} is infinite, or no number, for all jobs")
    gains = (soon - before) or (late - before)
    if not (usage or gains):
        raise the_same_for_all(argument, text)
    alone = None if form.usage else bool(gains < 0)
    return Expression(text, tuple(steps), usage, form.wait and form.usage, alone)


def _whole(steps: Sequence[ProgramStep], text: str, argument: str) -> _Term:
    """Return what an expression is; its steps are checked."""
    stack: list[_Term] = []
    for k, step in enumerate(steps):
        first = len(stack) - op.takes(step.code)
        taken = stack[first:]
        problem = _problem(step, [part.form for part in taken])
        if problem:
            fail(text, argument, step.column, problem)
        begin = taken[0].first if taken else k
        stack[first:] = [_Term(_form(step, [part.form for part in taken]), begin)]
        if stack[-1].form.usage:
            stack[-1] = stack[-1]._replace(usage=_usage(step, taken, steps[:k]))
    (term,) = stack
    return term


def layered(
    name: str,
    inputs: Iterable[tuple[str, float, float]],
    numbers: Mapping[str, NDArray[np.float64]],
) -> Expression:
    """Return a network as an expression.

    Parameters
    ----------
    name : what it is called.
    inputs : the expression, center and scale of each.
    numbers : the other attributes of its :class:`Layer`, by name.

    Raises
    ------
    HpcgymError : an input is no expression, is a number alone, or looks at what users have used.
    """
    steps: list[ProgramStep] = []
    read = []
    for k, (text, center, scale) in enumerate(inputs, 1):
        argument = f"input {k}"
        parts = _read_steps(text, argument)
        form = _whole(parts, text, argument).form
        if form.usage or not (form.job or form.wait or form.state):
            problem = "priorities by usage are no inputs" if form.usage else "the same at all times"
            fail(text, argument, 1, problem)
        of_all = form.state and not (form.job or form.wait)
        by = "pass" if of_all else "pair" if form.wait or form.state else "job"
        read.append(LayerInput(text, center, scale, by))
        steps += [*parts, ProgramStep(op.NUMBER, number=center), ProgramStep(op.SUBTRACT)]
        steps += [ProgramStep(op.NUMBER, number=scale), ProgramStep(op.DIVIDE)]
    steps.append(ProgramStep(op.LAYER, number=len(read)))
    return Expression(name, tuple(steps), {}, True, None, Layer(tuple(read), **numbers))


def spread_of(part: Expression, workload: Workload) -> float:
    """Return how much an expression differs between jobs, as ``spread`` does of features.

    For an expression that looks at the state it is 1: the state is not known beforehand.
    """
    if part.state:
        return 1.0
    jobs, n = JobColumns(workload), len(workload)
    program, rows = part.program(jobs), np.arange(n)
    begin = values_of(program, n, rows, np.zeros(n))
    later = values_of(program, n, rows, np.full(n, jobs.requested.mean()))
    with np.errstate(invalid="ignore"):
        size = float(np.std(begin) + np.abs(np.median(later - begin)))
    return size if 0 < size < math.inf else 1.0


def weighted_sum(parts: Sequence[Expression]) -> Expression:
    """Return the sum of expressions, each times a weight that is set as a simulation runs."""
    steps: list[ProgramStep] = []
    for k, part in enumerate(parts):
        steps += [ProgramStep(op.WEIGHT, number=k), *part.steps, ProgramStep(op.MULTIPLY)]
        steps += [ProgramStep(op.ADD)] if k > 0 else []
    return Expression(
        " + ".join(f"w * ({part.text})" for part in parts), tuple(steps), {}, True, None
    )


def _values(steps: Sequence[ProgramStep], waiting: Sequence[float]) -> NDArray[np.float64]:
    """Return the value of steps that look at no job after these waiting times [s]."""
    usual = [step if step.code != op.USAGE else ProgramStep(op.NUMBER) for step in steps]
    program = {
        "codes": np.array([step.code for step in usual], np.int64),
        "numbers": np.array([step.number for step in usual], np.float64),
        "columns": np.zeros((2, 1)),
        "n_columns": np.array([2]),
        "times": np.zeros(1, np.int64),
        "clock": np.zeros(1, np.int64),
    }
    return values_of(program, 1, np.zeros(len(waiting), np.int64), np.array(waiting, np.float64))


def _usage(
    step: ProgramStep, taken: Sequence[_Term], steps: Sequence[ProgramStep]
) -> tuple[float, ...]:
    """Return the factors of the priorities in a step's value; ``steps``: those before it."""
    if step.code == op.USAGE:
        return tuple(float(name == step.name) for name in USER_FEATURES)
    a, b = np.array(taken[0].usage), np.array(taken[-1].usage)
    with np.errstate(all="ignore"):
        if step.code == op.NEGATIVE:
            usage = -a
        elif step.code in (op.ADD, op.SUBTRACT):
            usage = a + b if step.code == op.ADD else a - b
        elif taken[-1].form.usage:  # a number times it
            usage = b * _values(steps[taken[0].first : taken[-1].first], [0.0])
        else:
            number = _values(steps[taken[-1].first :], [0.0])
            usage = a * number if step.code == op.MULTIPLY else a / number
    return tuple(usage.tolist())


def _form(step: ProgramStep, taken: Sequence[Form]) -> Form:
    """Return what the value of a step depends on."""
    if step.code in (op.FEATURE, op.COLUMN):
        waits = step.name == "clock" or (
            step.code == op.FEATURE and FEATURES[step.name].patience is not None
        )
        return Form(job=True, wait=waits)
    if step.code in (op.STATE, op.IN_USE):
        of_all = step.code == op.IN_USE or step.name in STATE_OF_ALL
        return Form(job=not of_all, state=True)
    if step.code in op.PUSHES:
        return Form(wait=step.code == op.WAIT, usage=step.code == op.USAGE)
    form = Form(*(any(parts) for parts in zip(*taken, strict=True)))
    return form._replace(bent=form.bent or not _keeps(step, taken, "wait"))


def _keeps(step: ProgramStep, taken: Sequence[Form], what: str) -> bool:
    """Return whether a step's value is linear in something, if its operands are.

    ``what``: "wait", the waiting time; "usage", the priorities of users.
    """
    if step.code in op.PUSHES or step.code in (op.NEGATIVE, op.ADD, op.SUBTRACT):
        return True
    changes = [bool(getattr(form, what)) for form in taken]
    if step.code == op.MULTIPLY:
        return not all(changes)
    if step.code == op.DIVIDE:
        return not changes[1]
    if step.code == op.CHOICE:
        return not changes[0]
    return not any(changes)


def _problem(step: ProgramStep, taken: Sequence[Form]) -> str:
    """Return why a step cannot be done with operands that depend on usage; or ""."""
    if not any(form.usage for form in taken):
        return ""
    others = [form for form in taken if not form.usage]
    scales = step.code in (op.MULTIPLY, op.DIVIDE) and not any(map(any, others))
    sums = step.code in (op.NEGATIVE, op.ADD, op.SUBTRACT)
    if sums or (scales and _keeps(step, taken, "usage")):
        return ""
    return "priorities by usage can only be added, and multiplied by numbers"
