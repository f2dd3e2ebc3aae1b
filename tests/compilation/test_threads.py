"""Compiled functions on several threads, beside the same in plain Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from hpcgym.compilation import jit_entry
from hpcgym.compilation.threads import on_threads

pytestmark = pytest.mark.compiled


class Pair(NamedTuple):
    """Arrays of different kinds."""

    numbers: NDArray[np.int64]
    table: NDArray[np.float64]


@jit_entry
def share(worker, n_workers, first, stop, pair, nothing, factor, out):
    """Write the products of every ``n_workers``-th number, and who wrote them."""
    for i in range(first + worker, stop, n_workers):
        value = factor * pair.numbers[i] + pair.table[i % len(pair.table), 1]
        out[i, 0] = value if nothing is None else -1.0
        out[i, 1] += 1.0
        out[i, 2] = worker


share_on_threads = on_threads(share)
several = pytest.mark.skipif(
    get_num_threads() < 2 or numba.config.DISABLE_JIT, reason="needs two threads of numba"
)


def arguments(stop: int, nothing: Any = None) -> tuple[Any, ...]:
    pair = Pair(np.arange(100), np.arange(6.0).reshape(3, 2))
    return 3, stop, pair, nothing, 0.5, np.zeros((100, 3))


@pytest.mark.parametrize("n_workers", range(1, get_num_threads() + 1))
@pytest.mark.parametrize("nothing", [None, True])
def test_each_worker_does_its_share_once(n_workers: int, nothing: Any) -> None:
    for stop in (3, 4, 50, 100):
        given, expected = arguments(stop, nothing), arguments(stop, nothing)
        share_on_threads(n_workers, *given)
        for worker in range(n_workers):
            getattr(share, "py_func", share)(worker, n_workers, *expected)
        assert np.array_equal(given[-1], expected[-1])
        assert given[-1][3:stop, 1].all()


def test_the_number_of_threads_of_others_stays() -> None:
    before = get_num_threads()
    set_num_threads(1)
    try:
        given = arguments(100)
        share_on_threads(before, *given)
        assert get_num_threads() == 1
    finally:
        set_num_threads(before)
    assert given[-1][3:, 1].sum() == 97


@jit_entry
def fails(worker, n_workers, fail, out):
    """Raise an error on the last thread, if it is to fail."""
    if worker == n_workers - 1 and fail:
        raise ValueError("the last one")
    out[worker] = 1.0


@several
def test_an_error_on_a_thread_is_one() -> None:
    call, out = on_threads(fails), np.zeros(2)
    call(2, False, out)
    assert out.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="fails failed on a thread"):
        call(2, True, out)
    call(2, False, out)


@jit_entry
def returns(worker, n_workers, out):
    """Return what nobody takes."""
    return out[0], out[1], worker


@several
def test_what_returns_something_is_refused() -> None:
    with pytest.raises(TypeError, match="returns returns something"):
        on_threads(returns)(2, np.zeros(2))


def test_what_is_called_is_compiled_for_the_types_of_each_call() -> None:
    n_workers = get_num_threads()
    for dtype in (np.float64, np.int64, np.float64):
        given = (*arguments(100)[:-1], np.zeros((100, 3), dtype))
        share_on_threads(n_workers, *given)
        expected = 0.5 * np.arange(100) + np.arange(6.0).reshape(3, 2)[np.arange(100) % 3, 1]
        assert np.array_equal(given[-1][3:, 0], expected[3:].astype(dtype))
