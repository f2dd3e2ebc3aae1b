"""The grammar of policies that are expressions: from a text to the steps that work it out.

It is a part of Python's, read with :mod:`ast`: numbers, names, ``+ - * / // % **``, comparisons,
``and or not``, ``A if C else B`` and the functions of :data:`FUNCTIONS`. Python runs none of it.
A text in quotes is compared with a number that has names in the log: ``queue == "urgent"``.
Steps are in postfix order, see :mod:`hpcgym.scheduler.policies.operations`.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple, NoReturn

from hpcgym.errors import HpcgymError, unknown
from hpcgym.scheduler.policies import operations as op

#: Function -> operation, and what it returns; ``min`` and ``max`` take two values or more.
FUNCTIONS: dict[str, tuple[int, str]] = {
    "log": (op.LOG, "natural logarithm"),
    "log2": (op.LOG2, "logarithm to base 2"),
    "log10": (op.LOG10, "logarithm to base 10"),
    "exp": (op.EXP, "e to this power"),
    "sqrt": (op.SQRT, "square root"),
    "abs": (op.ABS, "the number without its sign"),
    "floor": (op.FLOOR, "the greatest whole number that is not above it"),
    "min": (op.LEAST, "the least of its values"),
    "max": (op.GREATEST, "the greatest of its values"),
}

#: Columns of jobs -> what they are called in expressions, whose words are short and published.
IN_EXPRESSIONS = {
    "requested_processors": "processors",
    "requested_time": "time_limit",
    "submit_time": "submit",
    "wait_time": "wait",
}

#: What no scheduler may look at, as people call it.
_SECRET = ("run_time", "runtime", "run", "actual", "real_time")

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


class Step(NamedTuple):
    """One operation, and what it pushes: a name or a number; 1 or 0 where the name has a text."""

    code: int
    name: str = ""
    number: float = 0.0
    column: int = 0  # where it stands in the text, from 1
    text: str = ""  # what the number of a job is called, if it is to be 1


def read_steps(
    text: str, argument: str, codes: Mapping[str, int], named: Iterable[str] = ()
) -> list[Step]:
    """Return the steps of an expression.

    Parameters
    ----------
    argument : what errors call it.
    codes : name -> the code that pushes it.
    named : those of the names whose numbers have names in a log.

    Raises
    ------
    HpcgymError : what is no expression; one line, with the column where it goes wrong.
    """
    reader = _Reader(text, argument, codes, tuple(named))
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
            warnings.simplefilter("ignore")  # of what may be meant otherwise, such as "3if"
            return ast.parse(_one_line(text), mode="eval").body
    except SyntaxError as error:
        column = blank + (error.offset or len(text) - blank)  # 0: at the end
        fail(text, argument, column, f"no expression: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        fail(text, argument, 1, f"no expression: {error or type(error).__name__}")


def _one_line(text: str) -> str:
    """Return a text without the blanks around it, in one line, so that columns count."""
    return "".join(" " if c.isspace() else c for c in text.strip())


class _Reader:
    """Writes the steps of a tree, in the order in which they are done."""

    def __init__(
        self, text: str, argument: str, codes: Mapping[str, int], named: tuple[str, ...]
    ) -> None:
        self.steps: list[Step] = []
        self._named = named
        self._text, self._argument, self._codes = text, argument, codes
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
            case _:
                self._fail(node, "only numbers, names, operators, comparisons and functions")

    def check_length(self) -> None:
        """Raise the error of an expression that is too long."""
        if len(self.steps) > MOST_STEPS:
            problem = f"at most {MOST_STEPS} numbers, names and operations"
            fail(self._text, self._argument, self.steps[-1].column, problem)

    def _put_name(self, node: ast.Name) -> None:
        """Write a name."""
        if node.id in FUNCTIONS:
            self._fail(node, f"{node.id} is a function: write {node.id}(...)")
        if node.id in _SECRET:
            known = "`requested` is what its user asked for, or what is predicted"
            self._fail(node, f"nobody knows how long a job will run ({node.id}); {known}")
        name = IN_EXPRESSIONS.get(node.id, node.id)
        if name not in self._codes:
            self._fail(node, unknown("name", name, self._codes))
        self._step(node, self._codes[name], name)

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
        """Write whether a number of a job is called so: a name and a text, in either order."""
        if _is_text(left):
            left, right = right, left
        equals = isinstance(operator, ast.Eq | ast.NotEq)
        if not (equals and isinstance(left, ast.Name) and left.id in self._named):
            self._fail(node, f"a text is compared, by == or !=, with {', '.join(self._named)}")
        column = self._column(left)
        self.steps.append(Step(self._codes[left.id], left.id, 0.0, column, ast.literal_eval(right)))
        if isinstance(operator, ast.NotEq):
            self._step(node, op.NOT)

    def _put_call(self, node: ast.Call) -> None:
        """Write the call of a function."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            self._fail(node, unknown("function", name or ast.unparse(node.func), FUNCTIONS))
        code = FUNCTIONS[name][0]
        several = code in (op.LEAST, op.GREATEST)
        if node.keywords or (len(node.args) < 2 if several else len(node.args) != 1):
            self._fail(node, f"{name} takes {'two values or more' if several else 'one value'}")
        if several:
            self._fold(node, code, node.args)
        else:
            self.put(node.args[0])
            self._step(node, code)

    def _fold(self, node: ast.expr, code: int, parts: Iterable[ast.expr]) -> None:
        """Write an operation on two values, or on several from left to right."""
        for k, part in enumerate(parts):
            self.put(part)
            if k > 0:
                self._step(node, code)

    def _step(self, node: ast.expr, code: int, name: str = "", number: float = 0.0) -> None:
        self.steps.append(Step(code, name, number, self._column(node)))

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
