"""Elementary functions: near the exact values, and the same bits whatever computes them."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_repository import sources

from hpcgym import elementary, load_workload
from hpcgym.scheduler.policies.expressions import read_expression
from hpcgym.scheduler.policies.features import JobColumns

ROOT = Path(__file__).parents[2]
NAMES = sorted(elementary.__all__)
DIGITS = 80
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862"
)


def sine(x: Decimal) -> Decimal:
    """The sine by its series."""
    term = total = x
    for n in range(1, 60):
        term *= -x * x / (2 * n * (2 * n + 1))
        total += term
    return total


#: Of decimal numbers, which hold floats exactly; Python rounds these correctly.
EXACT: dict[str, Callable[..., Decimal]] = {
    "log": lambda x: x.ln(),
    "log2": lambda x: x.ln() / Decimal(2).ln(),
    "log10": lambda x: x.log10(),
    "log1p": lambda x: (1 + x).ln(),
    "exp": lambda x: x.exp(),
    "exp2": lambda x: (x * Decimal(2).ln()).exp(),
    "expm1": lambda x: x.exp() - 1,
    "tanh": lambda x: ((2 * x).exp() - 1) / ((2 * x).exp() + 1),
    "sin": sine,
    "cos": lambda x: sine(x + PI / 2),
    "power": lambda x, y: (y * x.ln()).exp(),
}


def beside(values: Iterable[float]) -> np.ndarray[Any, Any]:
    """Some numbers, and those next to them."""
    exactly = np.array(list(values), np.float64)
    return np.concatenate([np.nextafter(exactly, -math.inf), exactly, np.nextafter(exactly, 99.0)])


def points(name: str, number: int, seed: int = 1) -> tuple[np.ndarray[Any, Any], ...]:
    """Arguments over all that a function takes, and some near which it is hard; exact products."""
    draw = np.random.default_rng(seed)

    def between(low: float, high: float) -> np.ndarray[Any, Any]:
        return draw.random(number) * (high - low) + low

    def small() -> np.ndarray[Any, Any]:
        return np.ldexp(between(-1, 1), -draw.integers(0, 60, number))

    if name in ("log", "log2", "log10"):
        # rows of the table, 128 for a power of two, begin at thirds of what is between them
        near = beside(0.5 + np.arange(384) / 768)
        large = np.ldexp(between(1, 2), draw.integers(-1074, 1023, number))
        return (np.concatenate([near, between(0.5, 2), 1 + small() / 4, large, between(1, 1e7)]),)
    if name == "log1p":
        large = np.ldexp(between(1, 2), draw.integers(1, 1023, number))
        return (np.concatenate([between(-1, 4), small(), large]),)
    if name == "tanh":
        # rows of the table, 16 for 1, begin between them
        near = beside((np.arange(-330, 330) + 0.5) / 16)
        return (np.concatenate([near, between(-3, 3), small(), between(-30, 30)]),)
    if name in ("sin", "cos"):
        quarters = draw.integers(0, 9, number) * (math.pi / 4)
        angles = np.concatenate([between(0, 2 * math.pi), quarters + small()])
        return (np.clip(angles, 0, 2 * math.pi),)
    if name == "power":
        x = np.concatenate(
            [between(0.1, 3), np.ldexp(between(1, 2), draw.integers(-1074, 1023, number))]
        )
        x = np.concatenate([x, 1 + small() / 4])
        distance, exponent = np.abs(x - 1), np.abs(np.frexp(x)[1])
        most = np.where(distance < 0.25, 500 / np.maximum(distance, 1e-12), 1000 / (exponent + 1))
        return x, (2 * draw.random(x.size) - 1) * most
    low, high, subnormal = {"exp2": (-1022, 1023, -1074)}.get(name, (-708, 709, -745))
    halves = beside((np.arange(-200, 200) + 0.5) * 0.693147 / 128)
    return (
        np.concatenate(
            [halves, between(low, high), between(-1, 1), small(), between(subnormal, low)]
        ),
    )


@pytest.mark.parametrize("name", NAMES)
def test_they_are_within_a_unit_in_the_last_place(name: str) -> None:
    arguments = points(name, 400)
    values = getattr(elementary, name)(*arguments)
    worst = Decimal(0)
    with localcontext() as context:
        context.prec = DIGITS
        for *x, value in zip(*(each.tolist() for each in arguments), values.tolist(), strict=True):
            exact = EXACT[name](*map(Decimal, x))
            error = abs(Decimal(value) - exact) / Decimal(math.ulp(float(exact)))
            worst = max(worst, error)
    assert worst < 1


def test_they_are_exact_where_the_value_is_a_float() -> None:
    for k in range(-1074, 1024):
        assert elementary.exp2(k) == elementary.power(2.0, k) == math.ldexp(1.0, k)
        assert elementary.log2(math.ldexp(1.0, k)) == k
    for k in range(23):
        assert elementary.log10(10.0**k) == k
        assert elementary.power(10.0, k) == 10**k
    x = np.ldexp(1.0 + np.random.default_rng(0).random(5000), np.arange(5000) % 2000 - 1000)
    np.testing.assert_array_equal(elementary.power(x, np.ones(5000)), x)
    whole = np.arange(1.0, 2000)
    np.testing.assert_array_equal(elementary.power(whole**2, np.full(1999, 0.5)), whole)
    np.testing.assert_array_equal(elementary.power(-whole, np.full(1999, 3.0)), -(whole**3))


NAN, INF = math.nan, math.inf
_LOGS = [(0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (1.0, 0.0)]
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "log": _LOGS,
    "log2": _LOGS,
    "log10": _LOGS,
    "log1p": [(-1.0, -INF), (-2.0, NAN), (INF, INF), (0.0, 0.0), (5e-324, 5e-324)],
    "exp": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (710.0, INF), (-746.0, 0.0), (1e300, INF)],
    "exp2": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (1024.0, INF), (-1076.0, 0.0), (-1e300, 0.0)],
    "expm1": [(0.0, 0.0), (INF, INF), (-INF, -1.0), (710.0, INF), (-50.0, -1.0), (5e-324, 5e-324)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (19.1, 1.0), (5e-324, 5e-324)],
    "sin": [(0.0, 0.0)],
    "cos": [(0.0, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    function = getattr(elementary, name)
    for x, value in [*SPECIAL[name], (NAN, NAN)]:
        assert repr(function(x)) == repr(value).replace("-nan", "nan"), x
        np.testing.assert_array_equal(function(np.array([x])), [value])


def test_powers_of_special_values_are_those_of_numpy() -> None:
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e300,
        -1e300,
        2.0**53,
        INF,
        -INF,
        NAN,
    ]
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(elementary.power(x, y), np.float_power(x, y), rtol=3e-16)


def test_expressions_have_the_same_values_many_at_a_time() -> None:
    """Those of usual numbers are taken together, four at a time where a processor has AVX2."""
    columns = JobColumns(load_workload("lublin:jobs=301,processors=8,seed=1"))
    submit = columns.field("submit_time")
    of_one: dict[str, Callable[[float], float]] = {
        "log({})": elementary.log,
        "log2({})": elementary.log2,
        "log10({})": elementary.log10,
        "exp({})": elementary.exp,
        "tanh(({})/1000)": lambda x: elementary.tanh(x / 1000),
        "exp(-({})/1000)": lambda x: elementary.exp(-x / 1000),
        "({})**1.7": lambda x: elementary.power(x, 1.7),
        "({})**-70": lambda x: elementary.power(x, -70.0),
    }
    for text, function in of_one.items():
        for less in (0, submit[0], submit[9]):  # the least is above, is, and is below 0
            values = read_expression(text.format(f"submit-{less:g}")).values(columns)
            alone = np.array([function(each) for each in (submit - less).tolist()])
            np.testing.assert_array_equal(values, np.where(np.isnan(alone), -INF, alone))


# --- The same bits --------------------------------------------------------------------------------


def fingerprint(of: Callable[[str], Any]) -> str:
    """A hash of many values of all functions; ``of`` a name is one of arrays."""
    total = hashlib.sha256()
    for name in NAMES:
        values = np.asarray(of(name)(*points(name, 5000, seed=2)), np.float64)
        total.update(np.where(np.isnan(values), 0.0, values).astype("<f8").tobytes())
    return total.hexdigest()[:16]


#: Found with GCC and clang on x86-64; there is no other.
BITS = "44621b05772b38f2"


def test_each_machine_has_these_bits() -> None:
    assert fingerprint(lambda name: getattr(elementary, name)) == BITS


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize(
    "flags", ["-O0", "-O3 -march=native", "-O2 -ffp-contract=fast -march=native"]
)
def test_each_way_to_compile_gives_these_bits(flags: str, tmp_path: Path) -> None:
    """Where processors fuse products and sums, compilers do so unless they are told not to."""
    options = re.findall("-ff[a-z-]+=off", (ROOT / "native" / "CMakeLists.txt").read_text())
    assert options == ["-ffp-contract=off"]
    source, library = Path(__file__).with_name("elementary.cpp"), tmp_path / "elementary.so"
    command = ["g++", "-std=c++20", "-fopenmp-simd", *flags.split(), *options, "-shared", "-fPIC"]
    subprocess.run([*command, "-I", ROOT / "native", source, "-o", library], check=True)
    values_of = ctypes.CDLL(str(library)).values_of
    numbers = np.ctypeslib.ndpointer(np.float64, flags="C")
    values_of.argtypes = (ctypes.c_int64, *[numbers] * 3, ctypes.c_int64)

    def compiled(name: str) -> Callable[..., Any]:
        def function(*arguments: Any) -> Any:
            x, y = (np.ascontiguousarray(each) for each in (arguments[0], arguments[-1]))
            values = np.empty_like(x)
            values_of(NAMES.index(name), x, y, values, x.size)
            return values

        return function

    assert fingerprint(compiled) == BITS


#: Of the C library and of numpy: what they do on processors without AVX2 and FMA.
OLDER = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}

#: Prints what the C library and numpy make of it; starts of jobs that an exponential puts in order,
#: of requested times for which versions of the GNU C library differ; and some cases of the guard.
PROGRAM = """\
import math, sys, warnings
import numpy as np
import pandas as pd
from hpcgym import elementary, load_workload, simulate
from guarding.__main__ import cases, run
from guarding.facts import hashed

warnings.simplefilter("ignore")
x = np.arange(20_000) / -10_000
print(hash(tuple(map(math.exp, x.tolist()))), hashed(np.exp(x)))
for p in (466, 520, 4033, 4204, 6000, 8742, 9881, 10439, 11233, 14805, 17739, 17893):
    table = {"submit_time": [0, 10, 20], "run_time": [1000, 100, 100]}
    table |= {"requested_time": [20_000, p + 7, p], "requested_processors": [4, 4, 4]}
    jobs = load_workload(pd.DataFrame(table | {"job_number": [1, 2, 3]}), processors=4)
    own = elementary.exp(-p / 10_000)
    for than in (math.nextafter(own, 0), own):
        order = f"(exp(-requested/10000.0)>{than!r})*(requested=={p})*1000+wait/1e9"
        print(p, *simulate(jobs, f"easy:policy={order}").start)
for name, group, row in list(cases())[::12]:
    print(name, hashed(run(group, row)))
"""


def test_processors_without_fma_give_the_same_starts() -> None:
    """Where the C library and numpy take other ways, they do not agree."""
    paths = os.pathsep.join(map(str, (ROOT / "scripts", *sys.path)))
    here, older = (
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"} | more,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for more in ({}, OLDER)
    )
    assert here[1:] == older[1:]
    orders = [line.split()[2:] for line in here[1:25]]
    assert orders == [["1100", "1000"], ["1000", "1100"]] * 12


# --- What else computes them ----------------------------------------------------------------------

FUNCTIONS = "log|log2|log10|log1p|exp|exp2|expm1|pow|power|float_power|sin|cos"
#: Modules of rooms that make schedules, and of those that show them to agents.
ROOMS = ("machine", "scheduler", "reference", "simulation", "validation", "envs", "schedule")
#: What draws random numbers by numpy, and what is printed of a schedule.
OTHERS = {"hpcgym.machine.failures", "hpcgym.schedule.measures", "hpcgym.schedule.gains"}


def test_nothing_that_decides_a_schedule_takes_others() -> None:
    native = [
        f"{path.relative_to(ROOT)}: {each}"
        for path in sorted((ROOT / "native").rglob("*.[ch]pp"))
        for each in re.findall(rf"std::(?:{FUNCTIONS})\(.*", path.read_text())
    ]
    assert native == ["native/base/elementary.hpp: std::pow(x, y);"]
    values = {
        name
        for name, path in sources().items()
        if name.split(".")[1:2] and name.split(".")[1] in ROOMS
        if re.search(rf"\b(?:np|math)\.(?:{FUNCTIONS})\b", path.read_text())
    }
    assert values == OTHERS
