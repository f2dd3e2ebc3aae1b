#!/usr/bin/env python3
"""Print what a change of this repository costs, in numbers: a table of measures.

None of them is a bound. They are printed at the end of scripts/test, so that one sees where they
go. What a count cannot see: what a method asks of its package by a name, as ``Workload.weeks`` and
``Result.explain`` do, is no import of a file.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

LIBRARY = ("hpcgym", "agents", "baselines")
#: The module that is no file of Python.
ENGINE = "hpcgym._engine"
#: Names of variables that say nothing of what they hold.
EMPTY = ("one", "found", "told")

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(file: Path) -> ast.Module:
    """Return a file of Python as a tree."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes_of(file: Path) -> list[ast.AST]:
    """Return all nodes of the tree of a file."""
    return list(ast.walk(parsed(file)))


def files(*folders: str) -> list[Path]:
    """Return all files of Python in folders of the repository."""
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


@cache
def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _numbers(node: ast.stmt) -> range:
    """Return the numbers of the lines of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return range(first, (node.end_lineno or node.lineno) + 1)


# --- Circles: files of which each imports the other, by a chain of any length ---------------------


@cache
def sources() -> dict[str, Path]:
    """Return the file of each module of the package, by the name of the module."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = settings["tool"]["scikit-build"]["wheel"]["packages"]
    modules = {}
    for package, folder in packages.items():
        for file in files(folder):
            dotted = Path(package, file.relative_to(ROOT / folder)).with_suffix("")
            modules[".".join(dotted.parts).removesuffix(".__init__")] = file
    return modules


@cache
def exports(package: str) -> dict[str, str]:
    """Return in which module a name is that a package has itself, and imports when it is used."""
    init = sources()[package]
    stub = init.with_suffix(".pyi")
    names: dict[str, str] = {}
    for node in nodes_of(stub if stub.exists() else init):
        if isinstance(node, ast.ImportFrom) and node.module and init.name == "__init__.py":
            module = f"{package}.{node.module}" if node.level else node.module
            names |= {alias.asname or alias.name: module for alias in node.names}
    return names


@cache
def imports(module: str) -> frozenset[tuple[str, str]]:
    """Return the modules of the package that a module imports, and when.

    That is "at import", "in functions" or "in annotations": below ``if TYPE_CHECKING``.
    """
    imported = set()
    waiting: list[tuple[ast.AST, str]] = [(parsed(sources()[module]), "at import")]
    while waiting:
        node, when = waiting.pop()
        if isinstance(node, Definition) and when == "at import":
            when = "in functions"
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(other, when) for other in node.orelse]
            node, when = ast.Module(node.body, []), "in annotations"
        if not isinstance(node, ast.expr):  # which imports nothing
            waiting += [(child, when) for child in ast.iter_child_nodes(node)]
        imported |= {(target, when) for target in _targets(node)}
    return frozenset(
        (target, when)
        for target, when in imported
        if target.partition(".")[0] == "hpcgym" and target != module
    )


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            inside = f"{node.module}.{alias.name}"
            if inside in (*sources(), ENGINE):
                yield inside
            elif node.module in sources():
                yield exports(node.module).get(alias.name, node.module)
            else:
                yield node.module


def circles(*when: str) -> list[list[str]]:
    """Return the circles of modules, by imports of these kinds; without any: of all kinds."""
    known = sources()
    graph = {
        module: {target for target, at in imports(module) if not when or at in when} & {*known}
        for module in known
    }
    reached = {module: _reached(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in graph
    }
    return sorted(map(list, groups - {()}))


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that one imports, and those that these import."""
    reached, waiting = set[str](), [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


# --- Lines, names and classes ---------------------------------------------------------------------


@cache
def code_lines(file: Path) -> set[int]:
    """Return the numbers of the lines of code: neither blank, nor comments, nor docstrings."""
    stripped = (line.strip() for line in _lines(file))
    numbers = {n for n, line in enumerate(stripped, 1) if line and not line.startswith("#")}
    for node in nodes_of(file):
        if isinstance(node, ast.Module | ast.ClassDef | Definition):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                numbers.difference_update(_numbers(first))
    return numbers


def bound_names() -> Counter[str]:
    """Return how often each name is bound as a variable in the library."""
    return Counter(
        node.id
        for file in files(*LIBRARY)
        for node in nodes_of(file)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def repeated_classes() -> dict[str, list[str]]:
    """Return the names that several classes of the library have, and the files of these."""
    places = defaultdict(list)
    for file in files(*LIBRARY):
        for node in nodes_of(file):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(file.relative_to(ROOT)))
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


# --- Tests of refusals ----------------------------------------------------------------------------

#: An error that is expected, or a command that is to fail.
_EXPECTED = re.compile(
    r"pytest\.raises\(|(?:exit_code|returncode)\b[^\n]*?(?:== \(?[12]\b|!= 0)",
)


def refusal_lines() -> int:
    """Return how many lines of tests there are to check that something is refused.

    They are those of each function that expects an error or a failing command, whatever else it
    checks; of each that calls such a helper, of its file or imported; of the tables that these name
    and that are constants of the same file; and the rows of ``mistakes.txt``.
    """
    expecting = {
        (file, node.name)
        for file in files("tests")
        for node in _functions(file)
        if _EXPECTED.search(_text(file, node))
    }
    helpers = {(file, name) for file, name in expecting if not name.startswith("test")}
    lines = 0
    for file in files("tests"):
        imported = {
            alias.name
            for node in nodes_of(file)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        fail = {name for where, name in helpers if where == file or name in imported}
        functions = [
            node
            for node in _functions(file)
            if (file, node.name) in expecting or fail & _names(node)
        ]
        used = {name for function in functions for name in _names(function)}
        tables = [
            node
            for node in parsed(file).body
            if isinstance(node, ast.Assign | ast.AnnAssign) and used & _names(node, ast.Store)
        ]
        numbers = {number for node in (*functions, *tables) for number in _numbers(node)}
        lines += len(numbers & code_lines(file))
    mistakes = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("mistakes.txt"))
    return lines + sum("  =>  " in row for text in mistakes for row in text.splitlines())


def _functions(file: Path) -> list[Definition]:
    return [node for node in nodes_of(file) if isinstance(node, Definition)]


def _names(tree: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, context)}


def _text(file: Path, node: ast.stmt) -> str:
    numbers = _numbers(node)
    return "\n".join(_lines(file)[numbers.start - 1 : numbers.stop - 1])


# --- Functions that a call enters -----------------------------------------------------------------


def entered(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many functions of the library a call enters, and of how many modules.

    It is called once before, so that what is imported or remembered is not counted. Functions are
    code objects that :func:`sys.setprofile` sees entered: lambdas and generators count, and up to
    Python 3.11 comprehensions.
    """
    call()
    codes = set[CodeType]()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    places = {str(file) for file in files(*LIBRARY)}
    ours = [code for code in codes if code.co_filename in places]
    return len(ours), len({code.co_filename for code in ours})


def calls() -> dict[str, tuple[int, int]]:
    """Return what a simulation and a new environment enter, on warm calls."""
    import gymnasium

    import hpcgym

    workload = hpcgym.load_workload("lublin:jobs=1000,processors=128,seed=0")
    return {
        "simulate": entered(lambda: hpcgym.simulate(workload, "easy")),
        "gym.make": entered(lambda: gymnasium.make("hpcgym/QueueOrdering-v2")),
    }


# --- The table ------------------------------------------------------------------------------------


def rows() -> Iterator[tuple[str, str]]:
    """Yield each measure and its value, in words."""
    from hpcgym.scheduler.capabilities import APART, REASONS, pairs_of

    for name, (functions, modules) in calls().items():
        yield f"{name}, warm: functions of the library, modules", f"{functions}, {modules}"
    unbuilt = len(APART) - len(pairs_of(REASONS))
    yield "pairs that refuse each other (APART), of which not built", f"{len(APART)}, {unbuilt}"
    tests = sum(len(code_lines(file)) for file in files("tests"))
    yield "tests that check refusals, share of lines", f"{refusal_lines() / tests:.1%}"
    for kinds in (("at import",), ("at import", "in functions"), ()):
        words = " or ".join(kinds) or "anywhere, in annotations, too"
        yield f"circles of files, by imports {words}", f"{len(circles(*kinds))}"
    library = sum(len(code_lines(file)) for file in files(*LIBRARY))
    yield "lines of code: hpcgym, agents and baselines; tests", f"{library:,}; {tests:,}"
    counts = bound_names()
    bound = ", ".join(f"{counts[name]}" for name in EMPTY)
    yield f"variables called {', '.join(EMPTY)}", bound
    yield "class names of several classes", f"{len(repeated_classes())}"


def main() -> None:
    """Print the table; then the circles, and the classes of one name."""
    for measure, value in rows():
        print(f"{measure:<62}{value:>15}", flush=True)
    for circle in circles():
        print(f"circle: {', '.join(circle)}")
    for name, places in repeated_classes().items():
        print(f"class {name}: {', '.join(places)}")


if __name__ == "__main__":
    main()
