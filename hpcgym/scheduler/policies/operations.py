"""The operations of expressions, each a number: what scores are worked out with.

An expression is a list of them in postfix order: those that push a value, and those that take their
values from the top of a stack and leave one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

(
    NUMBER, FEATURE, COLUMN, USAGE, WAIT,
    NEGATIVE, NOT, LOG, LOG2, LOG10, EXP, SQRT, ABS, FLOOR,
    ADD, SUBTRACT, MULTIPLY, DIVIDE, WHOLE_PARTS, REST, POWER, LEAST, GREATEST,
    LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL, AND, OR,
    CHOICE,
) = range(32)  # fmt: skip
PUSHES, TAKE_ONE, TAKE_TWO = range(NUMBER, NEGATIVE), range(NEGATIVE, ADD), range(ADD, CHOICE)


class Program(NamedTuple):
    """An expression over the features and columns of some jobs."""

    codes: NDArray[np.int64]  # (n_steps,) NUMBER, FEATURE ...
    numbers: NDArray[np.float64]  # (n_steps,) what a push takes: a number, or a place in a table
    columns: NDArray[np.float64]  # (n_columns, n_jobs) since first [s], processors, then others
    times: NDArray[np.int64]  # (n_jobs,) [s] requested, or what stands for it; may be renewed

    def told(self) -> dict[str, NDArray[Any]]:
        """Return it as the native engine takes it."""
        return {
            "codes": self.codes,
            "numbers": self.numbers,
            "columns": np.ascontiguousarray(self.columns),
            "n_columns": np.array([len(self.columns)]),
            "times": self.times,
        }


def takes(code: int) -> int:
    """Return how many values an operation takes from the stack."""
    if code in PUSHES:
        return 0
    if code in TAKE_ONE:
        return 1
    return 2 if code in TAKE_TWO else 3
