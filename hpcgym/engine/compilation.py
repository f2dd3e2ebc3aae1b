"""How the engine's functions are compiled: one decorator, one cache folder for each version of them.

numba's cache notices only changes of the file that a function stands in, not of those it calls.
The engine is several files, so its cache lives in a folder named after a hash of all of them; the
folder is the user's own, so that a read-only installation works too.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numba
from numba.core import config


def _engine_hash() -> str:
    """Return a hash of the engine's sources and of what else compiled code depends on."""
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(f"{config.BOUNDSCHECK} {config.DISABLE_JIT}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _is_writable(folder: Path) -> bool:
    """Make ``folder`` if need be, and say whether files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def cache_folder() -> Path | None:
    """Return the folder of compiled code, None where no folder can be written.

    ``NUMBA_CACHE_DIR`` is respected; else the user's cache folder is taken, else the system's
    folder for temporary files.
    """
    name = f"hpcgym-{_engine_hash()}"
    if config.CACHE_DIR:
        roots = [Path(config.CACHE_DIR)]
    else:
        user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        temporary = (
            Path(tempfile.gettempdir()) / f"hpcgym-{os.getuid() if os.name == 'posix' else 'cache'}"
        )
        roots = [Path(user) / "hpcgym", temporary]
    for root in roots:
        if _is_writable(root / name):
            return root / name
    return None


_FOLDER = cache_folder()


def _compile(function: Any, **options: Any) -> Any:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_FOLDER or "")
    try:
        return numba.njit(
            cache=_FOLDER is not None,
            nogil=True,
            error_model="numpy",
            _nrt=False,
            no_cfunc_wrapper=True,
            **options,
        )(function)
    finally:
        config.CACHE_DIR = before


def jit(function: Any) -> Any:
    """Compile ``function`` on first use, without the interpreter lock, and keep the result."""
    # said, or else numba gives it the choice of the first function that calls it
    return _compile(function, forceinline=False)


def jit_inline(function: Any) -> Any:
    """Compile ``function`` into each place that calls it: for small ones."""
    return _compile(function, forceinline=True)
