"""Compiled code that came with hpcgym: what a wheel of ``scripts/build-wheel`` holds of it.

It is compiled for a baseline, a processor that nearly all machines of an architecture can stand in
for, with the versions of Python, numba and llvmlite of whoever built the wheel. It is looked up
under the same hashes as what the user's machine has compiled, and after that. So what does not fit,
be it a version, a setting or an edited source, is not found, and compiled as without it.
"""

from __future__ import annotations

import os
import platform
import stat
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import config as numba_config

config: Any = numba_config

#: Only wheels have it.
FOLDER = Path(__file__).parents[1] / "compiled"

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Baseline(NamedTuple):
    """A processor that code is compiled for.

    Attributes
    ----------
    name : as LLVM has it, and ``NUMBA_CPU_NAME``.
    needs : the features, as LLVM names them, that a processor must have to run the code.
    """

    name: str
    needs: frozenset[str]


_V3 = (  # the levels v1 to v3 of the x86-64 psABI
    "cmov cx8 fxsr mmx sse sse2"
    " cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
    " avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
)

#: By architecture. What LLVM calls generic has only what all processors of its architecture have.
BASELINES = {
    "x86_64": Baseline("x86-64-v3", frozenset(_V3.split())),
    "aarch64": Baseline("generic", frozenset()),
}

#: What numba is told beside a baseline's name: no features beyond it, none of this machine's.
NO_FEATURES = ""


def baseline() -> Baseline | None:
    """Return what code is compiled for that goes to other machines; None if that is not known.

    On systems other than Linux none has been tried.
    """
    return BASELINES.get(platform.machine()) if platform.system() == "Linux" else None


def find_folder(name: str) -> Path | None:
    """Return the folder of this name that came with hpcgym; None where it is not for this machine.

    Here the rule of :mod:`hpcgym.compilation.folders` is another. Whoever can write the sources of
    hpcgym can run what they like in it anyway, be it root, the user, or who installed it for all.
    So what lies beside the sources is trusted as they are: nobody may be able to write it who
    cannot write them. Each file is looked at as well (:func:`is_trusted`).
    """
    try:
        beside = os.stat(FOLDER.parent)
        found = [os.lstat(each) for each in (FOLDER, FOLDER / name)]
    except OSError:
        return None
    trusted = all(stat.S_ISDIR(each.st_mode) and _is_like(each, beside) for each in found)
    return FOLDER / name if trusted and _runs_here() else None


def is_trusted(found: os.stat_result) -> bool:
    """Tell whether nobody can have written a file who cannot write this source."""
    return stat.S_ISREG(found.st_mode) and _is_like(found, os.stat(__file__))


def _is_like(found: os.stat_result, beside: os.stat_result) -> bool:
    """Tell whether all but root and the user who can write one thing can write another."""
    owners = {beside.st_uid, 0, *([os.geteuid()] if hasattr(os, "geteuid") else [])}
    more = found.st_mode & ~beside.st_mode & _OTHERS_WRITE
    other_group = found.st_mode & stat.S_IWGRP and found.st_gid != beside.st_gid
    return found.st_uid in owners and not more and not other_group


def processor(own: tuple[str, ...]) -> tuple[str, ...]:
    """Return what numba calls the processor that shipped code is for.

    Parameters
    ----------
    own : what it calls the one that it compiles for: system, name, features.
    """
    known = baseline()
    return own if known is None else (own[0], known.name, NO_FEATURES)


def _runs_here() -> bool:
    """Tell whether this processor has all that shipped code needs, and the user no other wish."""
    known, wish = baseline(), (config.CPU_NAME, config.CPU_FEATURES)
    if known is None or wish not in ((None, None), (known.name, NO_FEATURES)):
        return False
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know it
        features = {}
    return all(features.get(name, False) for name in known.needs)
