"""How functions are compiled: one set of options for all.

Compiled code is kept, each function under a hash of what its module is made of: an edit compiles
anew only what depends on it. ``folders`` finds a folder that only the user can write to, ``files``
writes and checks what lies in it, ``locks`` lets
one process compile while others wait, and ``sources`` makes the hashes. Parts of numba that it does
not promise to keep are used by three: ``kept``, ``pipeline``, which says in which steps functions
are compiled, and ``threads``, which calls compiled functions on threads.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import ir
from numba.core import config as numba_config
from numba.core import types
from numba.extending import intrinsic

from hpcgym.compilation.kept import keep
from hpcgym.compilation.pipeline import Pipeline
from hpcgym.files.folders import find_folder

config: Any = numba_config
njit: Any = numba.njit


_FORMAT = 2  # of what is kept; one more where older files must not be used


def _name_of_folder() -> str:
    """Return a name with a hash of what all machine code depends on, whatever its source."""
    options = (config.BOUNDSCHECK, config.DISABLE_JIT, str(config.OPT), config.LOOP_VECTORIZE)
    settings = f"{_FORMAT} {numba.__version__} {llvmlite.__version__} {options}"
    return f"hpcgym-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"


def cache_folder() -> Path | None:
    """Return the folder of compiled code, None where it can be kept nowhere.

    ``NUMBA_CACHE_DIR`` is respected; else it is in the user's cache folder, else in the system's
    folder for temporary files; :mod:`hpcgym.files.folders` tells which are trusted.
    """
    return find_folder(_name_of_folder(), config.CACHE_DIR)


_FOLDER = cache_folder()


def _compile(function: Any, **options: Any) -> Any:
    """Compile on first use; the functions allocate nothing, so no references are counted.

    Whether a function is inlined is said for each: numba would let it have the choice of the first
    one that calls it.
    """
    compiled = njit(
        nogil=True,
        error_model="numpy",
        _nrt=False,
        no_cfunc_wrapper=True,
        pipeline_class=Pipeline,
        **options,
    )(function)
    if _FOLDER and not config.DISABLE_JIT:
        keep(compiled, _FOLDER)
    return compiled


def jit_entry(function: Any) -> Any:
    """Compile ``function`` on first use, to be called from Python; keep the result."""
    return _compile(function, forceinline=False)


def jit(function: Any) -> Any:
    """Compile ``function`` to be called from compiled code: what Python needs is left out."""
    return _compile(function, forceinline=False, no_cpython_wrapper=True)


def jit_within(entry: Any) -> Any:
    """Compile what :func:`jit_entry` returned, for compiled code: alone it is no machine code."""
    # with NUMBA_DISABLE_JIT it is a plain function
    return jit(getattr(entry, "py_func", entry))


def jit_parallel(function: Any) -> Any:
    """Compile ``function`` as :func:`jit_entry` does, its ``prange`` on all threads."""
    return _compile(function, parallel=True)


def jit_inline(function: Any) -> Any:
    """Compile ``function`` into each place that calls it: calls with many arrays are slow."""
    return _compile(function, forceinline=True, no_cpython_wrapper=True)


def jit_part(function: Any) -> Any:
    """Compile ``function`` only as a part of those that call it, which takes less time."""
    return _compile(function, inline="always", no_cpython_wrapper=True)


@contextmanager
def compiling(function: Any) -> Iterator[None]:
    """Let a first call of ``function`` compile it in a tenth less time.

    Compiling makes millions of small objects and little garbage: the collector looks in vain.
    """
    # with NUMBA_DISABLE_JIT it is a plain function
    pause = not getattr(function, "overloads", True) and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    """Compile to the processor's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _lowest_bit(word: Any) -> int:
    """Return the same in plain Python."""
    return (int(word) & -int(word)).bit_length() - 1


#: The number of zeros below the lowest 1 of an unsigned word of 64 bits, which is not 0.
trailing_zeros = _lowest_bit if config.DISABLE_JIT else _trailing_zeros
