"""What results follow from: the sources of modules and of those of hpcgym's that they import."""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hpcgym import _engine

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
