"""Processes that use ``tiny``, and code of others that they must not run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ONE = "import tiny; print(tiny.plus_one(20))"
VARIABLES = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "XDG_CACHE_HOME")


class Tiny:
    """Starts processes that use ``tiny`` with one folder of compiled code, and reads their log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.code = folder / "code"
        self.environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        self.environment |= {
            "TINY_LOG": str(self.log),
            "NUMBA_CACHE_DIR": str(self.code),
        }
        self.look_for_tiny_in(HERE)

    def look_for_tiny_in(self, folder: Path) -> None:
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment["PYTHONPATH"] = os.pathsep.join(paths)

    def start(self, code: str = ONE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str = ONE) -> tuple[str, str]:
        """Return what a process prints, and its warnings."""
        process = self.start(code)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        return output, errors

    def compiled(self) -> list[str]:
        """Return what has been compiled since this was last asked."""
        names = sorted(self.log.read_text().split()) if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return names

    def files(self) -> list[Path]:
        return sorted(self.code.rglob("*.nbc"))


class Attack:
    """What runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def give_away(*paths: Path) -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root gives files away")
    for path in paths:
        os.chown(path, 54321, 54321)
