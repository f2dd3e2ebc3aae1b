"""Loops that take several numbers at a time, beside plain ones in Python: the same bits.

The library is compiled without -ffp-contract=off: a target with fused multiplications would show.
"""

from __future__ import annotations

import ctypes
import math
import shutil
from typing import Any

import numpy as np
import pytest
from test_added_structs import compiled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]
DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C")
SIZES = [1, 2, 3, 4, 5, 7, 8, 31, 64, 1001]


@pytest.fixture(scope="module")
def work_widely(tmp_path_factory: pytest.TempPathFactory) -> Any:
    arguments = (*[DOUBLES] * 3, ctypes.c_size_t, DOUBLES)
    return compiled("wide.cpp", "work_widely", tmp_path_factory.mktemp("cpp"), arguments, "-O2")


@pytest.fixture(scope="module")
def find_greatest(tmp_path_factory: pytest.TempPathFactory) -> Any:
    arguments = DOUBLES, ctypes.c_size_t, np.ctypeslib.ndpointer(np.uint64, flags="C")
    return compiled("wide.cpp", "find_greatest", tmp_path_factory.mktemp("cpp"), arguments, "-O2")


@pytest.mark.parametrize("size", SIZES)
def test_operations_are_those_of_plain_loops(work_widely: Any, size: int) -> None:
    draw = np.random.default_rng(size)
    a, b, c = draw.normal(0, 1, (3, size)) * 10.0 ** draw.integers(-6, 7, (3, size))
    c[::3] = -(a * b)[::3]  # a fused product leaves its rounding error, a plain one nothing
    out = np.empty((5, size))
    work_widely(a, b, c, size, out)
    plain = [
        (x * y + z, x / y - z, math.sqrt(x * x + y * y), z if x < y else x, float(np.float32(x)))
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert out.T.tobytes() == np.array(plain).tobytes()


@pytest.mark.parametrize("size", SIZES)
def test_the_greatest_is_the_first_of_equal_ones(find_greatest: Any, size: int) -> None:
    place = np.zeros(1, np.uint64)
    draw = np.random.default_rng(size)
    for few in (2, 5, 1000):  # with many equal ones, or hardly any
        for _ in range(20):
            values = draw.integers(-few, few, size).astype(np.float64)
            values[draw.random(size) < 0.1] = -math.inf
            find_greatest(values, size, place)
            assert place[0] == max(range(size), key=lambda k: (values[k], -k))
