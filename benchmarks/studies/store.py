"""Results of steps on disk, named after all that they follow from, the sources included.

What is there is not computed again, whatever interrupted the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym import _engine
from hpcgym.errors import HpcgymError
from hpcgym.files.tables import arrays_of
from hpcgym.files.writing import whole
from hpcgym.version import __version__

# --- What results follow from ---------------------------------------------------------------------

# At the beginnings of lines: what functions import, and what annotations need, is not part of a
# module.
_IMPORT = re.compile(r"^(?:from\s+(hpcgym[\w.]*)\s+import\s+(\([^)]*\)|.*)|import\s+(.*))", re.M)
_COMMENT = re.compile(r"#.*")
_NAME = re.compile(r"(?<!\bas )\b(?!as\b)[\w.]+")


@cache
def hash_of_modules(*names: str) -> str:
    """Return a hash of the sources of some modules, and of what they import from hpcgym.

    Raises
    ------
    ModuleNotFoundError : there is no such module.
    """
    for name in names:
        if _file_of(name) is None:
            raise ModuleNotFoundError(f"no module of that name: {name}", name=name)
    digest = hashlib.sha256()
    for each in sorted(_hash_of_one(path) for path in files_of(*names)):
        digest.update(each)
    return digest.hexdigest()


def files_of(*names: str) -> set[str]:
    """Return the files of some modules and of all that they import from hpcgym."""
    return {path for name in names for path in _sources(name)}


@cache
def _sources(module: str) -> frozenset[str]:
    found: dict[str, str] = {}
    left = [module]
    while left:
        name = left.pop()
        path = _file_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        left += _imported(path)
    return frozenset(found.values())


@cache
def _imported(path: str) -> tuple[str, ...]:
    """Return the names of the modules of hpcgym that a file imports when it is imported."""
    found: list[str] = []
    if not path.endswith(".py"):  # the engine
        return ()
    text = _COMMENT.sub("", Path(path).read_text(encoding="utf-8"))
    for package, names, modules in _IMPORT.findall(text):
        if package:
            found += _taken_from(package, _NAME.findall(names))
        else:
            found += [name for name in _NAME.findall(modules) if name.startswith("hpcgym.")]
    return tuple(found)


def _taken_from(package: str, names: list[str]) -> list[str]:
    """Return which modules names come from: of a package its modules, or what it says itself."""
    modules = {f"{package}.{name}" for name in names}
    if not _is_package(package):
        return [package]
    return sorted({name if _file_of(name) else package for name in modules})


def _is_package(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _file_of(name: str) -> str | None:
    """Return the file of a module; None of what is no module."""
    loaded = sys.modules.get(name)
    spec = find_spec(name) if loaded is None else loaded.__spec__
    return spec.origin if spec is not None and spec.has_location else None


@cache
def _hash_of_one(path: str) -> bytes:
    if not path.endswith(".py"):  # whatever has compiled it
        return bytes.fromhex(_engine.SOURCES)
    return hashlib.sha256(Path(path).read_bytes()).digest()


# --- Results of steps on disk ---------------------------------------------------------------------

Arrays = dict[str, NDArray[Any]]

#: Where simulations come from.
_SIMULATIONS = ("hpcgym.simulation.run", "hpcgym.simulation.batch")


class Store:
    """A folder with a file for each step, named after the step and a hash of all its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def step(
        self, name: str, inputs: Mapping[str, Any], compute: Callable[[], Mapping[str, ArrayLike]]
    ) -> Arrays:
        """Return what ``compute`` returns, from disk if the step was done with the same inputs."""
        path = self.path(name, inputs)
        kept = _read(path)
        if kept is not None:
            return kept
        arrays = {key: np.asarray(value) for key, value in compute().items()}
        with whole(path, folders=True) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return arrays

    def path(self, name: str, inputs: Mapping[str, Any]) -> Path:
        """Return the file of a step, which is there if the step was done with these inputs."""
        text = json.dumps({"hpcgym": __version__, **inputs}, sort_keys=True)
        return self.folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a file; None if there is no such file, or no readable one."""
    try:
        return arrays_of(path)
    except HpcgymError:
        return None


@cache
def code(*modules: str) -> str:
    """Return a hash of the sources of simulations, of some modules, and of all that they import.

    The version alone would let a step survive an edit of what computes it.
    """
    return hash_of_modules(*_SIMULATIONS, *modules)[:16]
