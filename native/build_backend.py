"""How hpcgym is built: scikit-build-core, and zig on machines that have no compiler."""

import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scikit_build_core import build as base
from scikit_build_core.build import (  # what pip calls, too
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    """Return what a build needs beside pyproject.toml's requirements."""
    return [*base.get_requires_for_build_wheel(settings), *_compiler()]


def get_requires_for_build_editable(settings: Any = None) -> list[str]:
    """Return the same for a clone that is installed editable."""
    return [*base.get_requires_for_build_editable(settings), *_compiler()]


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build a wheel into a folder; return its name."""
    with _with_compiler():
        return base.build_wheel(folder, settings, metadata)


def build_editable(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """Do the same for a clone that is installed editable."""
    with _with_compiler():
        return base.build_editable(folder, settings, metadata)


def _has_compiler() -> bool:
    return "CXX" in os.environ or any(map(shutil.which, ("c++", "g++", "clang++", "cl")))


def _compiler() -> list[str]:
    return [] if _has_compiler() else ["ziglang"]


@contextmanager
def _with_compiler() -> Iterator[None]:
    """Let there be programs ``c++``, ``ar`` and ``ranlib``, of zig if there is no other."""
    if _has_compiler():
        yield
        return
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        # zig compiles for the processor of this machine unless it is told not to
        baseline = " -mcpu=x86_64_v2" if platform.machine() in ("x86_64", "AMD64") else ""
        for name, words in (("c++", f"c++{baseline}"), ("ar", "ar"), ("ranlib", "ranlib")):
            program = Path(folder, name)
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {words} "$@"\n')
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        os.environ["CXX"] = f"{folder}/c++"
        os.environ["CMAKE_ARGS"] = f"-DCMAKE_AR={folder}/ar -DCMAKE_RANLIB={folder}/ranlib"
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", f"{folder}/cache")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
