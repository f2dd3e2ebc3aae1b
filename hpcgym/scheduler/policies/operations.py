"""The operations of expressions, which compute scores, each a number.

An expression is a list of operations in postfix order: some push a value on a stack, others take
values from its top and leave one.
"""

from __future__ import annotations

(
    NUMBER, FEATURE, COLUMN, USAGE, WAIT, STATE, WEIGHT, IN_USE,
    NEGATIVE, NOT, LOG, LOG2, LOG10, EXP, TANH, SQRT, ABS, FLOOR,
    ADD, SUBTRACT, MULTIPLY, DIVIDE, WHOLE_PARTS, REST, POWER, LEAST, GREATEST,
    LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL, AND, OR,
    CHOICE, LAYER,
) = range(37)  # fmt: skip
PUSHES, TAKE_ONE, TAKE_TWO = range(NUMBER, NEGATIVE), range(NEGATIVE, ADD), range(ADD, CHOICE)


def takes(code: int, number: float = 0.0) -> int:
    """Return how many values an operation takes from the stack; a layer says it by its number."""
    if code in PUSHES:
        return 0
    if code == LAYER:
        return int(number)
    if code in TAKE_ONE:
        return 1
    return 2 if code in TAKE_TWO else 3
