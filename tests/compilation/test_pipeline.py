"""Functions with parts that are put into them as hpcgym does, beside plain Python and numba."""

from __future__ import annotations

import operator
from typing import Any

import numba
import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from numba.core import ir, types

from hpcgym.compilation import jit, jit_entry, jit_part, pipeline
from hpcgym.compilation.pipeline import Linked, Pipeline


@jit_part
def clipped(value, least, most):
    """Return early, from several blocks."""
    if value < least:
        return least
    if value > most:
        return most
    return value


@jit_part
def total_of(values, nothing):
    """Return a sum with a loop, a part within, and a branch that may be left out."""
    total = 0
    for i in range(len(values)):
        step = clipped(values[i], -3, 3)
        if step == 0:
            continue
        total += step
    return total if nothing is None else -total


def twice(values, limit):
    """Use parts at two places, with the same names as theirs."""
    total = total_of(values, None)
    step = clipped(total, 0, limit)
    while step > 0:
        total += clipped(step, 1, 2)
        step -= 3
    return total - total_of(values[::2], True)


compiled = jit_entry(twice)


@given(st.lists(st.integers(-9, 9), max_size=30), st.integers(0, 20))
def test_it_does_what_python_does(values: list[int], limit: int) -> None:
    array = np.array(values, np.int64)
    assert compiled(array, limit) == plain(array, limit)


def plain(values: Any, limit: int) -> int:
    steps = np.clip(values, -3, 3)
    total = int(steps.sum())
    step = min(max(total, 0), limit)
    while step > 0:
        total += min(max(step, 1), 2)
        step -= 3
    return total + int(steps[::2].sum())


def test_numba_without_our_pass_comes_to_the_same() -> None:
    theirs = numba.njit(twice)
    for values in ([], [5, -2, 0, 1], list(range(-7, 20))):
        array = np.array(values, np.int64)
        assert theirs(array, 11) == compiled(array, 11)


def test_this_numba_can_be_told_to_compile_so() -> None:
    """Else all takes longer, and nothing else says why."""
    assert pipeline._FITS
    assert pipeline._RESOLVES
    assert pipeline._OPTIMISES


@jit
def halved(number):
    """Raise an error, whose text is a constant."""
    if number % 2:
        raise ValueError("odd")
    return number // 2


@jit
def quarter(number):
    """Call another."""
    return halved(halved(number))


@jit_entry
def quarter_and_half(number):
    """Call one that is called by another, too."""
    return quarter(number), halved(number)


def test_no_machine_code_is_made_of_what_only_compiled_code_calls() -> None:
    assert quarter_and_half(12) == (3, 6)
    with pytest.raises(ValueError, match="odd"):
        quarter_and_half(6)
    for function in (halved, quarter):
        function.compile((types.int64,))  # which may have been kept
        (library,) = (found.library for found in function.overloads.values())
        assert isinstance(library, Linked)
        assert library._compiled_object is None
    (entry,) = (found.library for found in quarter_and_half.overloads.values())
    assert not isinstance(entry, Linked)


def test_a_function_may_be_compiled_for_python_and_for_compiled_code() -> None:
    """What is kept of one is not taken for the other, which Python could not call."""

    def fifth(number):
        return number // 5

    within, alone = jit(fifth), jit_entry(fifth)

    @jit_entry
    def fifth_and_one(number):
        return within(number) + 1

    for number in (25, np.int8(25)):
        assert fifth_and_one(number) == 6
        assert alone(number) == 5


def test_what_functions_of_numba_return_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    look = pipeline._get_call_type

    def counted(function: Any, context: Any, args: Any, kws: Any) -> Any:
        looked.append((function.typing_key, tuple(args)))
        return look(function, context, args, kws)

    monkeypatch.setattr(pipeline, "_get_call_type", counted)
    monkeypatch.setattr(pipeline, "_found", {})
    array = np.array([5, -2, 0, 1])
    assert numba.njit(pipeline_class=Pipeline)(twice)(array, 11) == plain(array, 11)
    sums = [args for key, args in looked if key is operator.iadd]
    assert len(sums) == len(set(sums)) > 0
    before = len(looked)
    assert numba.njit(pipeline_class=Pipeline)(twice)(array, 11) == plain(array, 11)
    assert len(looked) - before < before / 2


def test_variables_of_parts_are_not_copied_with_each_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies = 0
    reduce = ir.Scope.__reduce_ex__

    def counted(scope: Any, number: Any) -> Any:
        nonlocal copies
        copies += 1
        return reduce(scope, number)

    monkeypatch.setattr(ir.Scope, "__reduce_ex__", counted)
    array = np.array([5, -2, 0, 1])
    assert numba.njit(twice)(array, 11) == plain(array, 11)
    assert copies > 100
    copies = 0
    assert numba.njit(pipeline_class=Pipeline)(twice)(array, 11) == plain(array, 11)
    assert copies == 0
