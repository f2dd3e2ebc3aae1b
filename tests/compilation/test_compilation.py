"""Compiled code is kept under a hash of all that it is made of, and of nothing else."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hpcgym
from hpcgym.compilation import sources

PACKAGE = Path(hpcgym.__file__).parent
#: Folders beside the package that are parts of it.
PARTS = ("agents", "baselines", "benchmarks/studies", "benchmarks/mixed_policies", "benchmarks/cp")


def modules() -> list[tuple[str, Path]]:
    """Return the modules of hpcgym by name."""
    found = []
    for folder, above in ((PACKAGE, ""), *((PACKAGE.parent / part, "hpcgym.") for part in PARTS)):
        for path in sorted(folder.rglob("*.py")):
            if path.name != "__main__.py":
                parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
                found.append((above + ".".join(parts).removesuffix(".__init__"), path))
    return found


def of_a_module(path: Path) -> list[ast.stmt]:
    """Return the statements of a module, with those of its branches."""
    found = list(ast.parse(path.read_text()).body)
    for node in found:
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            found += node.body + node.orelse
        elif isinstance(node, ast.Try | ast.With):
            found += node.body
    return found


NAMES = dict(modules())


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what it should be part of is no package
        return False


@pytest.mark.parametrize("name", NAMES)
def test_all_imports_of_a_module_are_seen(name: str) -> None:
    path, expected = NAMES[name], set()
    for node in of_a_module(path):
        if isinstance(node, ast.Import):
            expected |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not seen"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                expected.add(inner if is_module(inner) else node.module)
    ours = {each for each in expected if each.startswith("hpcgym.")}
    assert ours <= set(sources._imported(str(path)))


def compiled(module: Any) -> Iterator[Any]:
    """Yield the compiled functions of a module."""
    for value in vars(module).values():
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
            yield value


def test_what_a_compiled_function_uses_is_among_its_sources() -> None:
    count = 0
    for name, path in NAMES.items():
        if "jit" not in path.read_text():
            continue
        for function in compiled(importlib.import_module(name)):
            known = sources._sources(name)
            for value in inspect.getclosurevars(function.py_func).globals.values():
                source = getattr(value, "py_func", value)
                if inspect.isfunction(source) and source.__module__.startswith("hpcgym."):
                    assert source.__code__.co_filename in known, (function, value)
                    count += 1
    assert count > 500


#: What compiled code of the engine and of the environments may be made of.
OF_KERNELS = tuple(
    f"hpcgym/{room}" for room in ("compilation/", "engine/", "envs/kernels/", "envs/core/arrays.py")
)


def test_kernels_are_made_of_kernels_alone() -> None:
    """What else stood in their keys would compile the environments anew at each edit of it."""
    rooms = ("hpcgym.engine.", "hpcgym.envs.kernels.")
    kernels = [
        name for name in NAMES if name.startswith(rooms) and "jit" in NAMES[name].read_text()
    ]
    assert len(kernels) > 80
    for name in kernels:
        files = {Path(f).relative_to(PACKAGE.parent).as_posix() for f in sources._sources(name)}
        assert {file for file in files if not file.startswith(OF_KERNELS)} == set(), name


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)


def hashed(module: str) -> str:
    """Return the hash of a module as a new process would find it."""
    for function in (sources._sources, sources._imported, sources._hash_of_one):
        function.cache_clear()
    return sources.hash_of_modules.__wrapped__(module)


def test_an_edit_changes_what_imports_it_near_and_far_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hpcgym, "__path__", [*hpcgym.__path__, str(tmp_path)])
    write(
        tmp_path,
        far="A = 1\n",
        near="from hpcgym.far import (  # (an aside)\n    A,  # (another)\n)\n",
        top="import hpcgym.near\n\ndef f():\n    from hpcgym.other import B\n",
        other="B = 1\n",
    )
    first = hashed("hpcgym.top")
    assert hashed("hpcgym.top") == first
    write(tmp_path, other="B = 2\n")
    assert hashed("hpcgym.top") == first
    write(tmp_path, far="A = 2\n")
    assert hashed("hpcgym.top") != first
    assert hashed("hpcgym.other") != first


def test_modules_that_import_each_other_have_a_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hpcgym, "__path__", [*hpcgym.__path__, str(tmp_path)])
    write(tmp_path, one="import hpcgym.two\n", two="import hpcgym.one\n")
    assert hashed("hpcgym.one") == hashed("hpcgym.two")
