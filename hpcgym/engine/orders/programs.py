"""Scores by expressions that are worked out anew: a small stack machine, compiled.

It runs the operations of :mod:`hpcgym.scheduler.policies.operations`, in double precision. Squares
and cubes are products; what logarithms, roots and other powers are says the C library, as in
Python.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.orders.mixing import EXPANSION, UNICEF, JobNumbers, serial_patience, static_of
from hpcgym.scheduler.policies.operations import (
    ABS,
    ADD,
    AND,
    AT_LEAST,
    AT_MOST,
    CHOICE,
    COLUMN,
    DIVIDE,
    EQUAL,
    EXP,
    GREATEST,
    LEAST,
    LESS,
    LOG,
    LOG2,
    LOG10,
    MORE,
    MULTIPLY,
    NEGATIVE,
    NOT,
    NUMBER,
    POWER,
    PROCESSORS,
    REST,
    SINCE_FIRST,
    SQRT,
    SUBTRACT,
    UNEQUAL,
    WAIT,
    WHOLE_PARTS,
)


@jit_inline
def value_of(program, job, waiting):
    """Return the score of a job that has waited so long [s, float64]; -inf if it is no number."""
    stack, top = program.stack, -1
    for k in range(len(program.codes)):
        code = program.codes[k]
        if code < NEGATIVE:
            top += 1
            stack[top] = pushed(program, code, program.numbers[k], job, waiting)
        elif code < ADD:
            stack[top] = of_one(code, stack[top])
        elif code < CHOICE:
            top -= 1
            stack[top] = of_two(code, stack[top], stack[top + 1])
        else:
            top -= 2
            stack[top] = stack[top + 1] if stack[top] != 0 else stack[top + 2]
    return stack[0] if stack[0] == stack[0] else -np.inf


@jit_part
def pushed(program, code, number, job, waiting):
    """Return what a step pushes."""
    if code == NUMBER:
        return number
    if code == WAIT:
        return waiting
    if code == COLUMN:
        return program.columns[int(number), job]
    feature = int(number)
    numbers = JobNumbers(
        program.columns[SINCE_FIRST, job],
        np.float64(program.times[job]),
        program.columns[PROCESSORS, job],
    )
    value = static_of(feature, numbers)
    if feature == EXPANSION:
        value += waiting / numbers.requested
    if feature == UNICEF:
        value += waiting / serial_patience(numbers)
    return value


@jit_part
def of_one(code, a):
    """Return the value of an operation on one value."""
    if code == NEGATIVE:
        return -a
    if code == NOT:
        return 1.0 if a == 0 else 0.0
    if code == LOG:
        return np.log(a)
    if code == LOG2:
        return np.log2(a)
    if code == LOG10:
        return np.log10(a)
    if code == EXP:
        return np.exp(a)
    if code == SQRT:
        return np.sqrt(a)
    if code == ABS:
        return abs(a)
    return np.floor(a)


@jit_part
def of_two(code, a, b):
    """Return the value of an operation on two values."""
    if code == ADD:
        return a + b
    if code == SUBTRACT:
        return a - b
    if code == MULTIPLY:
        return a * b
    if code == DIVIDE:
        return a / b
    if code == WHOLE_PARTS:
        return divided(a, b)[0]
    if code == REST:
        return divided(a, b)[1]
    if code == POWER:
        return power(a, b)
    # as numpy: what is no number is the least, and the greatest
    if code == LEAST:
        return a if a < b or a != a else b
    if code == GREATEST:
        return a if a > b or a != a else b
    return 1.0 if holds(code, a, b) else 0.0


@jit_part
def holds(code, a, b):
    """Return whether a comparison is true, or what AND and OR say of two truths."""
    if code == LESS:
        return a < b
    if code == AT_MOST:
        return a <= b
    if code == MORE:
        return a > b
    if code == AT_LEAST:
        return a >= b
    if code == EQUAL:
        return a == b
    if code == UNEQUAL:
        return a != b
    if code == AND:
        return a != 0 and b != 0
    return a != 0 or b != 0


@jit
def power(a, b):
    """Return a to the power of b."""
    if b == 2:
        return a * a
    if b == 3:
        return a * a * a
    return np.power(a, b)


@jit
def divided(a, b):
    """Return a // b and a % b, as numpy and Python have them: a / b and no number where b is 0."""
    rest = np.fmod(a, b)
    if b == 0:
        return a / b, rest
    whole = (a - rest) / b
    if rest == 0:
        rest = np.copysign(0.0, b)
    elif (b < 0) != (rest < 0):
        rest += b
        whole -= 1.0
    if whole == 0:
        return np.copysign(0.0, a / b), rest
    rounded_down = np.floor(whole)
    # a whole number but for its rounding
    return rounded_down + 1.0 if whole - rounded_down > 0.5 else rounded_down, rest
