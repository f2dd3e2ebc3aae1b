"""The repository as a whole: what it promises in words is what it holds."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.metadata
import inspect
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib import pyplot
from measure import circles, imports, repeated_classes, sources

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.cli import app
from hpcgym.machine import find_cluster
from hpcgym.scheduler.estimates import CORRECTIONS, ESTIMATES
from hpcgym.scheduler.policies import POLICIES, FairShare
from hpcgym.study.sweep.experiment import load_experiment
from hpcgym.workload.cleaning import RECIPES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
WITH_HELP = ("quickstart", "test", "docs", "fuzz", "sanitize")
EXAMPLE = ROOT / "examples" / "hpcgym-example"
CODE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CELL = "{code-cell} ipython3"  # of the tutorials, which scripts/docs runs too


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [code for kind, code in CODE.findall(page.read_text()) if kind == language]


# --- Tests ----------------------------------------------------------------------------------


def test_headings_of_mistakes_name_tests() -> None:
    """Rows under a heading that names none would never be read."""
    for page in ROOT.glob("tests/**/mistakes.txt"):
        for heading in re.findall(r"^# (test_\w+): ", page.read_text(), re.MULTILINE):
            test = page.with_name(f"{heading}.py")
            assert "mistakes_" in test.read_text(), f"{page}: {heading}"


# --- What is said of the library ------------------------------------------------------------


def test_backfilling_is_spelt_in_one_way() -> None:
    """In docs, help, errors and comments alike."""
    command = ["git", "grep", "-iIlE", "back[- ]fill", "--", ".", ":!tests/test_repository.py"]
    grep = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if grep.returncode > 1:
        pytest.skip("there is no git, or this is no clone")
    assert grep.stdout.splitlines() == []


def test_one_version() -> None:
    assert importlib.metadata.version("hpcgym") == hpcgym.__version__
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert newest is not None
    assert cited is not None
    assert newest[1] == cited[1] == hpcgym.__version__


def test_the_site_names_who_has_the_copyright() -> None:
    holder = runpy.run_path(str(ROOT / "docs/conf.py"))["copyright"]
    assert f"Copyright (c) {holder}\n" in (ROOT / "LICENSE").read_text()


def test_every_extra_that_messages_name_is_one() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.compile(r"""installing\(["'](\w+)["']\)""")
    extras_named = {name for file in sources().values() for name in named.findall(file.read_text())}
    assert {"agents", "cp"} <= extras_named <= {*extras}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.name != "README.md")) for page in PAGES],
    ids=page_id,
)
def test_python_in_pages_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for code in blocks(page, "python"):
        exec(compile(code, page_id(page), "exec"), {"__name__": "__page__"})
        assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, CELL)], ids=page_id)
def test_tutorials_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, as in a notebook."""
    monkeypatch.chdir(tmp_path)
    here: dict[str, object] = {"__name__": "__page__"}
    with pyplot.rc_context({"backend": "agg"}):
        for cell in blocks(page, CELL):
            exec(compile(cell.replace(":tags:", "#"), page_id(page), "exec"), here)
    pyplot.close("all")


def test_each_page_of_the_docs_is_in_a_table_of_contents() -> None:
    """Else the site is not built."""
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.glob("**/*.md")}
    listed = [text for page in docs.glob("**/*.md") for text in page.read_text().splitlines()]
    assert pages - {"index"} <= set(listed)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_other_code_in_pages_is_read(page: Path, tmp_path: Path) -> None:
    """Files as by the commands that take them; Python that needs other libraries is parsed."""
    for code in blocks(page, "py"):
        compile(code, page_id(page), "exec")
    for code in blocks(page, "json"):
        json.loads(code)
    for code in blocks(page, "toml"):
        table, file = tomllib.loads(code), tmp_path / "block.toml"
        file.write_text(code)
        if "schedulers" in table:
            load_experiment(file)
        elif "project" in table:
            example = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
            assert table["project"].items() <= example["project"].items()
        elif "group" in table or "processors" in table:
            find_cluster(str(file))
        elif "shares" in table:
            FairShare.parse(str(file))
        else:
            assert {*table} == {"partition"}
            assert all(partition.keys() == {"name", "nodes"} for partition in table["partition"])


def test_all_kinds_of_code_in_pages_are_tested() -> None:
    kinds = {kind for page in PAGES for kind, _ in CODE.findall(page.read_text())}
    kinds = {kind for kind in kinds if not kind.startswith("{image} ")}
    read = {"python", CELL, "py", "sh", "toml", "json"}
    assert kinds - read <= {"", "text", "{eval-rst}", "{toctree}"}  # the last two by scripts/docs


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_in_pages_are_understood(page: Path) -> None:
    """Each ``hpcgym`` command is parsed, not carried out."""
    group = app
    for line in "".join(blocks(page, "sh")).splitlines():
        words = shlex.split(line.partition("  #")[0])
        if not words or words[0] != "hpcgym":
            continue
        command, words = group, words[1:]
        while hasattr(command, "commands") and words[0] in command.list_commands(None):
            command, words = command.get_command(None, words[0]), words[1:]
        command.make_context("hpcgym", words)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_and_paths_in_pages_exist(page: Path) -> None:
    text = CODE.sub("", page.read_text())
    links = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [
        link for link in links if "://" not in link and link and not (page.parent / link).exists()
    ]
    folders = "|".join(("hpcgym", "agents", "baselines", "benchmarks", "tests", "docs", "scripts"))
    paths = re.findall(rf"`((?:{folders})/[\w./-]*)`", text)
    paths += re.findall(r"^(?:python )?((?:scripts|benchmarks)/[\w./-]+)", page.read_text(), re.M)
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_names_in_pages_exist(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"`(hpcgym(?:\.\w+)+)`", text):
        assert resolve(name) is not None


def test_files_that_programs_name_exist() -> None:
    """Else a script runs no test, and says nothing of it."""
    programs = [*(ROOT / "scripts").glob("*"), *(ROOT / ".github").rglob("*.yml"), ROOT / ".ci/run"]
    paths = {
        path
        for program in programs
        if program.is_file()
        for path in re.findall(r"\b((?:tests|hpcgym|native)/[\w/]+\.\w+)", program.read_text())
    }
    assert "tests/simulation/test_batch.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_names_stand_where_contributing_says() -> None:
    """A name in capitals, and the file in which it is said to be."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`(_?[A-Z][A-Z_]{2,})`(?: or `(_?[A-Z_]+)`)? (?:in|of) `([\w/.]+)`", text)
    assert len(named) > 15
    for *names, path in named:
        for name in filter(None, names):
            assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), (name, path)


def resolve(name: str) -> object:
    """The module or attribute of this dotted name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([\w.]+)`")


def test_names_in_docstrings_exist() -> None:
    """They may stand without their module, or their class, where the docstring is in the same."""
    missing = []
    for module, file in sources().items():
        text = file.read_text()
        classes = [
            node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)
        ]
        beside = (module, module.rpartition(".")[0], *(f"{module}.{name}" for name in classes))
        for name in sorted(set(ROLE.findall(text))):
            # the name alone comes last: there may be a module of that name anywhere on the path
            if not any(exists(full) for full in (*(f"{place}.{name}" for place in beside), name)):
                missing.append(f"{module}: {name}")
    assert missing == []


def exists(name: str) -> bool:
    """Whether there is such a module or attribute, or a field of a dataclass."""
    with contextlib.suppress(AssertionError, AttributeError):
        resolve(name)
        return True
    above, _, last = name.rpartition(".")
    with contextlib.suppress(AssertionError, AttributeError):
        owner = resolve(above) if above else None
        return isinstance(owner, type) and last in inspect.get_annotations(owner)
    return False


def test_the_page_of_rules_has_all_names() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text()
    names = {*POLICIES, *ESTIMATES, *CORRECTIONS, *RECIPES}
    names |= {name for name in SCHEDULERS if name not in POLICIES}
    assert {name for name in names if f"`{name}`" not in page} == set()


# --- Who may import whom --------------------------------------------------------------------


def room(name: str) -> str:
    return name.split(".")[1] if name.startswith("hpcgym.") else ""


def test_rooms_import_only_from_rooms_above_them() -> None:
    page = (ROOT / "docs" / "internals.md").read_text()
    rooms = re.findall(r"^\| `(\w+)` \|[^|]*\|$", page, re.MULTILINE)
    modules = [name for name in sources() if room(name)]
    assert sorted(rooms) == sorted({"_engine", *(room(name) for name in modules)})
    wrong = [
        f"{name} imports {target}"
        for name in modules
        for target, _ in sorted(imports(name))
        if room(target) and rooms.index(room(target)) > rooms.index(room(name))
    ]
    assert wrong == []


def test_rooms_of_the_engine_include_only_from_rooms_before_them() -> None:
    page = (ROOT / "docs" / "internals.md").read_text().partition("## The engine")[2]
    rooms = re.findall(r"`(\w+)/`", page.partition("**")[0])[1:]  # of `native/`
    native = ROOT / "native"
    assert sorted(rooms) == sorted({path.parts[-2] for path in native.glob("*/*.hpp")} - {"fuzz"})
    wrong = []
    for path in (file for room in rooms for file in (native / room).rglob("*.[ch]pp")):
        own = path.relative_to(native).parts[0]
        for name in re.findall(r'#include "(.*)"', path.read_text()):
            target = (path.parent / name).resolve().relative_to(native)
            if rooms.index(target.parts[0]) > rooms.index(own):
                wrong.append(f"{path.relative_to(native)} includes {target}")
    assert not wrong


def test_no_files_import_each_other() -> None:
    """By a chain of any length, in functions and in annotations too."""
    assert circles() == []


def test_a_class_name_is_unique() -> None:
    """In hpcgym, agents and baselines: one word for each thing."""
    assert repeated_classes() == {}


def test_circles_are_seen_at_any_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "hpcgym": "",
        "hpcgym.first": "from hpcgym.second import Second",
        "hpcgym.second": "def late():\n    import hpcgym.third as third",
        "hpcgym.third": "if TYPE_CHECKING:\n    from hpcgym import first, fourth",
        "hpcgym.fourth": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    imports.cache_clear()
    monkeypatch.setattr("measure.sources", lambda: {name: tmp_path / name for name in texts})
    assert circles() == [["hpcgym.first", "hpcgym.second", "hpcgym.third"]]
    assert circles("at import", "in functions") == []
    imports.cache_clear()


def test_what_proves_schedules_shares_no_code_with_what_makes_them() -> None:
    makes = {"_engine", "simulation"}
    proves = [name for name in sources() if room(name) == "validation"]
    assert proves
    for name in proves:
        assert not makes & {room(target) for target, _ in imports(name)}, name


# What parses files, where it may: beside these, all that is read goes through hpcgym.files.
PARSES = re.compile(
    r"\b(?:json\.loads?|tomllib\.\w+|pd\.read_\w+|csv\.(?:reader|DictReader)|torch\.load"
    r"|pickle\.loads?|gzip\.(?:open|GzipFile|decompress)|np\.(?:load|loadtxt|genfromtxt))\("
)
MAY_PARSE = {
    "hpcgym/files/writing.py gzip.GzipFile(",  # it writes
    "hpcgym/study/sweep/tasks.py json.loads(",  # a task, as canonical() has written it
    "agents/network_files.py torch.load(",  # bounded, and no code of the file is run
    "benchmarks/cp/runs.py pickle.loads(",  # what it has pickled itself, in memory
    "benchmarks/studies/items.py csv.reader(",  # files that stand beside it in the repository
}


def test_all_that_is_read_goes_through_one_room() -> None:
    calls = set()
    for folder in ("hpcgym", "agents", "baselines", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            name = str(file.relative_to(ROOT))
            if not name.startswith("hpcgym/files/") or "writing" in name:
                calls |= {f"{name} {call}" for call in PARSES.findall(file.read_text())}
    assert calls == MAY_PARSE


# What opens files by name, which may be a pipe or a device, and where no user names the file.
OPENS = re.compile(r"\.read_(?:text|bytes)\(|\bopen\([^)\n]*\"rb\"|\bParquetFile\(")
MAY_OPEN = {
    *("hpcgym/envs/page.py", "hpcgym/explore/document.py"),  # files of the library
    *("hpcgym/machine/files.py", "hpcgym/machine/slurm/keys.py", "hpcgym/replay/native.py"),
    "hpcgym/cli/files.py",  # a pipe that the shell has opened
    "hpcgym/cli/completion.py",  # with which the user's shell begins
    "hpcgym/study/sweep/records.py",  # the lock, which is not read
    *("hpcgym/replay/cleanup.py", "hpcgym/replay/private.py"),  # of processes and daemons
    *("benchmarks/coscheduling/speed.py", "benchmarks/timing.py", "benchmarks/speed_of_peers.py"),
    *("benchmarks/studies/documents.py", "benchmarks/studies/tables.py"),  # of the repository
    "benchmarks/studies/store.py",
}


def sources_beside_files() -> Iterator[tuple[str, str]]:
    """Name and text of each module but those of hpcgym.files."""
    for folder in ("hpcgym", "agents", "baselines", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.parent != ROOT / "hpcgym" / "files":
                yield str(file.relative_to(ROOT)), file.read_text()


def test_all_that_is_opened_is_looked_at_first() -> None:
    assert {name for name, text in sources_beside_files() if OPENS.search(text)} == MAY_OPEN


# What asks whether there is a regular file, though nothing opens it: a pipe in its place would be
# told to be no file. Elsewhere is_there or exists is asked, and who opens it says what it is.
ASKS = re.compile(r"\.is_file\(|\bisfile\(")
MAY_ASK = {
    "hpcgym/own_code.py",  # modules, which Python finds in this way
    *("hpcgym/cli/verify.py", "hpcgym/cli/files.py"),  # which files a command has read and written
    *("hpcgym/cli/loading.py", "agents/recordings.py"),  # whole paths in place of names
    "hpcgym/study/sweep/records.py",  # of a database
}


def test_nothing_is_told_to_be_no_file_without_looking_what_it_is() -> None:
    assert {name for name, text in sources_beside_files() if ASKS.search(text)} == MAY_ASK


def test_all_csv_is_written_by_one_room() -> None:
    """Which sees to it that no name of a log is a formula."""
    writes = re.compile(r"csv\.(?:writer|DictWriter)\(|\.to_csv\(")
    assert [name for name, text in sources_beside_files() if writes.search(text)] == []


def test_the_type_checker_finds_what_is_installed_as_a_part_of_hpcgym() -> None:
    """Else it takes all that is imported from there for anything."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    for name, folder in settings["tool"]["scikit-build"]["wheel"]["packages"].items():
        package = (ROOT if name == "hpcgym" else ROOT / ".typed") / name
        assert package.is_dir()
        assert package.samefile(ROOT / folder), name
    checked = {"hpcgym", ".typed/hpcgym", "benchmarks/*.py", "scripts"}
    assert checked == {*settings["tool"]["mypy"]["files"]}


# --- The scripts ----------------------------------------------------------------------------


def test_the_edits_of_mutants_stand_in_their_files() -> None:
    mutants = importlib.import_module("mutants")
    for mutant in mutants.MUTANTS:  # it exits where there is no such place
        assert mutants.mutated(mutant, (ROOT / mutant.file).read_text(), "") != ""
        assert any(map(str.isalnum, mutant.old)), (
            f"{mutant.old!r} is no expression"
        )  # all are built at once


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")


def run_script(name: str, *arguments: str, folder: Path, **environment: str) -> tuple[int, str]:
    """Exit code and output of a script that is started from a folder."""
    bash = shutil.which("bash")
    assert bash is not None
    run = subprocess.run(
        [bash, ROOT / "scripts" / name, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return run.returncode, run.stdout


@pytest.mark.slow
@needs_bash
@pytest.mark.parametrize("name", WITH_HELP)
def test_scripts_explain_themselves_from_any_folder(name: str, tmp_path: Path) -> None:
    code, text = run_script(name, "--help", folder=tmp_path)
    assert code == 0
    assert f"Usage: scripts/{name}" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@needs_bash
def test_scripts_leave_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    code, text = run_script("quickstart", folder=tmp_path, HPCGYM_VENV=str(tmp_path))
    assert code == 1
    assert "is no virtual environment" in text
    assert (tmp_path / "thesis.tex").exists()


def test_what_the_readme_and_the_quickstart_name() -> None:
    (first,) = [
        block for block in blocks(ROOT / "README.md", "sh") if "scripts/quickstart" in block
    ]
    assert [line.split()[0] for line in first.splitlines()] == [
        "scripts/quickstart",
        "scripts/test",
    ]
    (names,) = re.findall(r"--scheduler (\S+)", (ROOT / "scripts" / "quickstart").read_text())
    assert {*names.split(",")} <= {*SCHEDULERS}
