"""Compiled code is named after everything that it is made of."""

from __future__ import annotations

import ast
from pathlib import Path

import hpcgym
from hpcgym.compilation import SOURCES

PACKAGE = Path(hpcgym.__file__).parent


def compiled_modules() -> list[Path]:
    """Return the modules that have a compiled function."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        functions = [
            n for n in ast.walk(ast.parse(path.read_text())) if hasattr(n, "decorator_list")
        ]
        names = {ast.unparse(d) for function in functions for d in function.decorator_list}
        if any(name.startswith("jit") for name in names):
            found.append(path)
    return found


def imported(path: Path) -> list[Path]:
    """Return the modules of hpcgym that a module takes names from, other than for annotations."""
    found = []
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("hpcgym."):
            continue
        place = PACKAGE / (node.module or "").removeprefix("hpcgym.").replace(".", "/")
        if place.is_dir():  # what is taken from a package are its modules
            found += [place / f"{alias.name}.py" for alias in node.names]
        else:
            found.append(place.with_suffix(".py"))
    return found


def test_all_that_is_compiled_or_read_by_it_names_the_folder() -> None:
    hashed = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    modules = compiled_modules()
    assert len(modules) > 10
    needed = {*modules, *(other for module in modules for other in imported(module))}
    needed -= {PACKAGE / "errors.py"}  # texts for people, outside compiled functions
    assert sorted(needed - hashed) == []
