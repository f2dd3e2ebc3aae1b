"""Compiled functions on several threads, beside the same in plain Python."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from hpcgym.compilation import jit_entry
from hpcgym.compilation.threads import OnThreads


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


share_on_threads = OnThreads(share)
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
        share_on_threads(n_workers, given[:2], given[2:])
        for worker in range(n_workers):
            getattr(share, "py_func", share)(worker, n_workers, *expected)
        assert np.array_equal(given[-1], expected[-1])
        assert given[-1][3:stop, 1].all()


def test_the_number_of_threads_of_others_stays() -> None:
    before = get_num_threads()
    set_num_threads(1)
    try:
        given = arguments(100)
        share_on_threads(before, given[:2], given[2:])
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
    call, out = OnThreads(fails), np.zeros(2)
    call(2, (False,), (out,))
    assert out.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="fails failed on a thread"):
        call(2, (True,), (out,))
    call(2, (False,), (out,))


def test_an_error_of_one_worker_says_what_it_is() -> None:
    call, out = OnThreads(fails), np.zeros(2)
    call(1, (False,), (out,))
    with pytest.raises(ValueError, match="the last one"):
        call(1, (True,), (out,))
    call(1, (False,), (out,))
    assert out.tolist() == [1.0, 0.0]


@jit_entry
def returns(worker, n_workers, out):
    """Return what nobody takes."""
    return out[0], out[1], worker


@several
def test_what_returns_something_is_refused() -> None:
    with pytest.raises(TypeError, match="returns returns something"):
        OnThreads(returns)(2, (), (np.zeros(2),))


def test_what_is_called_is_compiled_for_the_types_of_each_call() -> None:
    n_workers = get_num_threads()
    for dtype in (np.float64, np.int64, np.float64):
        given = (*arguments(100)[:-1], np.zeros((100, 3), dtype))
        share_on_threads(n_workers, given[:2], given[2:])
        expected = 0.5 * np.arange(100) + np.arange(6.0).reshape(3, 2)[np.arange(100) % 3, 1]
        assert np.array_equal(given[-1][3:, 0], expected[3:].astype(dtype))


def product(given: Any) -> Any:
    return given[4] * given[2].numbers + given[2].table[np.arange(100) % 3, 1]


def test_what_is_kept_is_called_again_with_other_arguments_that_change() -> None:
    n_workers, call = get_num_threads(), OnThreads(share)
    first, stop, *rest, _ = arguments(100)
    for dtype in (np.float64, np.float64, np.int64, np.int64, np.float64):
        # each time another array; now and then of other numbers
        out = np.zeros((100, 3), dtype)
        call(n_workers, (first, stop), (*rest, out))
        assert np.array_equal(out[3:, 0], product((first, stop, *rest))[3:].astype(dtype))
        for other_stop in (20, 100):
            out[:] = 0
            call(n_workers, (first, other_stop), (*rest, out))
            assert np.flatnonzero(out[:, 1]).tolist() == list(range(3, other_stop))


@jit_entry
def copies(worker, n_workers, source, target):
    """Copy every ``n_workers``-th number."""
    for i in range(worker, len(source), n_workers):
        target[i] = source[i]


def test_arguments_that_change_may_be_of_other_types() -> None:
    call, target = OnThreads(copies), np.zeros(4)
    for source in (np.arange(4.0), np.arange(4.0) + 1, np.arange(4) + 2, np.arange(4.0) + 3):
        call(get_num_threads(), (source,), (target,))
        assert np.array_equal(target, source)


def pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize("way", [copy.deepcopy, pickled])
def test_a_copy_does_not_write_into_the_arrays_of_the_other(way: Any) -> None:
    both = OnThreads(copies), np.zeros(4)
    both[0](get_num_threads(), (np.arange(4.0),), (both[1],))
    call, target = way(both)
    assert call._work is copies  # nothing is compiled anew
    call(get_num_threads(), (np.arange(4.0) + 1,), (target,))
    assert target.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert both[1].tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP tells how threads wait")
@pytest.mark.parametrize("said", [{}, {"OMP_WAIT_POLICY": "active"}])
def test_threads_sleep_while_they_wait_unless_the_user_has_said_how(said: dict[str, str]) -> None:
    ways = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    kept = {name: value for name, value in os.environ.items() if name not in ways}
    tell = f"print({{name: os.environ[name] for name in {ways} if name in os.environ}})"
    code = f"import os, hpcgym.compilation.threads, numba; numba.get_num_threads(); {tell}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**kept, "OMP_DISPLAY_ENV": "verbose", **said},
    )  # fmt: skip
    lines = [line.strip() for line in done.stderr.splitlines()]
    told = [line for line in lines if line.startswith("GOMP_SPINCOUNT")]
    assert len(told) == 1
    assert (told == ["GOMP_SPINCOUNT = '0'"]) == (not said)
    assert done.stdout.strip() == str(said)  # for other libraries and processes nothing is set
