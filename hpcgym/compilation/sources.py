"""What a module is made of: its source and those of hpcgym's modules that it imports, near and far.

A compiled function changes with those that it calls and the constants that they read. All of them
are names of its module, or of one that its module imports. So a hash over these sources tells
whether a function is to be compiled anew; an edit elsewhere does not change it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from hpcgym.version import IMPORTED_AT

# At the beginnings of lines: what functions import, and what annotations need, is not part of a
# module.
_IMPORT = re.compile(r"^(?:from\s+(hpcgym[\w.]*)\s+import\s+(\([^)]*\)|.*)|import\s+(.*))", re.M)
_COMMENT = re.compile(r"#.*")
_NAME = re.compile(r"(?<!\bas )\b(?!as\b)[\w.]+")

#: How functions are compiled: but for how parts are put into functions, what it imports says only
#: where the results are kept.
_LAST, _PIPELINE = "hpcgym.compilation", "hpcgym.compilation.pipeline"


@cache
def hash_of_files(*paths: str) -> str:
    """Return a hash of some source files and of what they import from hpcgym.

    Raises
    ------
    OSError : there is no such file, as for functions of a notebook.
    """
    return _hash(_files(paths))


def is_edited(*paths: str) -> bool:
    """Tell whether a source, or one that it imports, was written after hpcgym was imported.

    Then nobody knows which of its versions have been imported. A file that is moved to its place
    may have been written long before.
    """
    found = [os.stat(each) for each in _files(paths)]
    return any(max(each.st_mtime, each.st_ctime) > IMPORTED_AT for each in found)


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
    return _hash({origin for name in names for origin in _sources(name)})


def _files(paths: tuple[str, ...]) -> set[str]:
    imported = {name for path in paths for name in _imported(path)}
    return {*paths, *(origin for name in imported for origin in _sources(name))}


def _hash(paths: set[str]) -> str:
    digest = hashlib.sha256()
    for each in sorted(_hash_of_one(path) for path in paths):
        digest.update(each)
    return digest.hexdigest()


@cache
def _sources(module: str) -> frozenset[str]:
    """Return the files of a module and of all that it imports from hpcgym."""
    found: dict[str, str] = {}
    left = [module]
    while left:
        name = left.pop()
        path = _file_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        left += [_PIPELINE] if name == _LAST else _imported(path)
    return frozenset(found.values())


@cache
def _imported(path: str) -> tuple[str, ...]:
    """Return the names of the modules of hpcgym that a file imports when it is imported."""
    found: list[str] = []
    if not path.endswith(".py"):  # the native engine
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
    """Return the source file of a module; None of what is no module."""
    loaded = sys.modules.get(name)
    spec = find_spec(name) if loaded is None else loaded.__spec__
    return spec.origin if spec is not None and spec.has_location else None


@cache
def _hash_of_one(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()
