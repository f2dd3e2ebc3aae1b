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
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from matplotlib import pyplot

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.cli import app
from hpcgym.cli.running import follow
from hpcgym.errors import installing
from hpcgym.machine import find_cluster
from hpcgym.scheduler.estimates import CORRECTIONS, ESTIMATES
from hpcgym.scheduler.policies import POLICIES, FairShare
from hpcgym.study.sweep.experiment import load_experiment
from hpcgym.workload.cleaning import RECIPES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
SCRIPTS = ("quickstart", "test")
WITH_HELP = (*SCRIPTS, "docs", "fuzz", "sanitize")
CODE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CELL = "{code-cell} ipython3"  # of the tutorials, which scripts/docs runs too


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [code for kind, code in CODE.findall(page.read_text()) if kind == language]


# --- What is said of the library ------------------------------------------------------------


def test_one_version() -> None:
    assert importlib.metadata.version("hpcgym") == hpcgym.__version__
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == hpcgym.__version__


def test_how_to_install_is_said_in_one_place() -> None:
    folders = ("hpcgym", "agents", "baselines", "benchmarks")
    modules = [module for folder in folders for module in ROOT.glob(f"{folder}/**/*.py")]
    assert len(modules) > 200
    saying = [module for module in modules if "pip install" in module.read_text()]
    assert saying == [ROOT / "hpcgym" / "errors.py"]


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=page_id)
def test_no_page_installs_hpcgym_from_an_index(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"pip install [^`\n]*hpcgym", text) == []
    assert "hpcgym[" not in text


def test_every_extra_that_messages_name_is_one() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.compile(r"""installing\(["'](\w+)["']\)""")
    folders = ("hpcgym", "agents", "baselines")
    modules = [module for folder in folders for module in ROOT.glob(f"{folder}/**/*.py")]
    found = {name for module in modules for name in named.findall(module.read_text())}
    assert found == {"agents", "cp", "distributed", "parquet", "report"}
    assert found <= {*extras}
    assert installing("cp") == "pip install '.[cp]' in the clone of hpcgym"


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


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_other_code_in_pages_is_read(page: Path, tmp_path: Path) -> None:
    """Files as by the commands that take them; Python that needs other libraries is parsed."""
    group = typer.main.get_command(app)
    for code in blocks(page, "py"):
        compile(code, page_id(page), "exec")
    for code in blocks(page, "json"):
        json.loads(code)
    for code in blocks(page, "toml"):
        table, file = tomllib.loads(code), tmp_path / "block.toml"
        file.write_text(code)
        if "schedulers" in table:
            load_experiment(file)
        elif "group" in table or "processors" in table:
            find_cluster(str(file))
        elif "shares" in table:
            FairShare.parse(str(file))
        elif {*table} == {"partition"}:
            assert all(one.keys() == {"name", "nodes"} for one in table["partition"])
        else:
            follow(group.make_context("hpcgym", ["simulate"]), file)


def test_all_kinds_of_code_in_pages_are_tested() -> None:
    kinds = {kind for page in PAGES for kind, _ in CODE.findall(page.read_text())}
    read = {"python", CELL, "py", "sh", "toml", "json"}
    assert kinds - read <= {"", "text", "{eval-rst}", "{toctree}"}  # the last two by scripts/docs


def test_the_readme_has_python_and_commands() -> None:
    """Or else the tests of them would pass with none."""
    readme = ROOT / "README.md"
    assert blocks(readme, "python")
    assert sum("hpcgym simulate" in code for code in blocks(readme, "sh"))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_in_pages_are_understood(page: Path) -> None:
    """Each ``hpcgym`` command is parsed, not carried out."""
    group = typer.main.get_command(app)
    for line in "".join(blocks(page, "sh")).splitlines():
        words = shlex.split(line.partition("  #")[0])
        if not words or words[0] != "hpcgym":
            continue
        command, words = group, words[1:]
        while hasattr(command, "commands") and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        command.make_context("hpcgym", words)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_pages_hold_nothing_of_a_merge(page: Path) -> None:
    assert re.findall(r"^(?:<<<<<<<|=======|>>>>>>>).*$", page.read_text(), re.MULTILINE) == []


def test_utilization_is_spelled_as_the_metric_is() -> None:
    texts = [*(ROOT / "hpcgym").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    other = "utili" + "sation"
    assert [path for path in texts if other in path.read_text().lower()] == []


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


def resolve(name: str) -> object:
    """The module or attribute of this dotted name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
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
            if not any(exists(full) for full in (name, *(f"{place}.{name}" for place in beside))):
                missing.append(f"{module}: {name}")
    assert missing == []


def exists(name: str) -> bool:
    """Whether there is such a module or attribute, or a field of a dataclass."""
    with contextlib.suppress(AssertionError, AttributeError):
        resolve(name)
        return True
    above, _, last = name.rpartition(".")
    with contextlib.suppress(AssertionError, AttributeError):
        found = resolve(above) if above else None
        return isinstance(found, type) and last in inspect.get_annotations(found)
    return False


def test_the_page_of_rules_has_all_names() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text()
    names = {*POLICIES, *ESTIMATES, *CORRECTIONS, *RECIPES}
    names |= {name for name in SCHEDULERS if name not in POLICIES}
    assert {name for name in names if f"`{name}`" not in page} == set()


# --- Who may import whom --------------------------------------------------------------------


def sources() -> dict[str, Path]:
    """Name of each module -> its file."""
    found = {}
    names = ("coscheduling", "cp", "energy", "frontier", "mixed_policies", "prediction", "studies")
    studies = [f"benchmarks/{name}" for name in names]
    folders = ("hpcgym", "agents", "baselines", *studies)
    for folder in folders:
        package = "" if folder == "hpcgym" else "hpcgym."
        for file in (ROOT / folder).rglob("*.py"):
            dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found[package + dotted.removesuffix(".__init__")] = file
    return found


def imports(file: Path) -> Iterator[str]:
    """The names that imports from hpcgym begin with, at run time and for annotations."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room(name: str) -> str:
    return name.split(".")[1] if name.startswith("hpcgym.") else ""


def test_rooms_import_only_from_rooms_above_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"^\| `(\w+)` \|[^|]*\|$", page, re.MULTILINE)
    modules = {name: file for name, file in sources().items() if room(name)}
    assert sorted(rooms) == sorted({"_engine", *(room(name) for name in modules)})
    wrong = [
        f"{name} imports {target}"
        for name, file in modules.items()
        for target in imports(file)
        if room(target) and rooms.index(room(target)) > rooms.index(room(name))
    ]
    assert wrong == []


def test_a_result_imports_the_rooms_of_its_methods_when_they_are_called() -> None:
    rooms = "{'hpcgym.explanation', 'hpcgym.explore', 'hpcgym.simulation'}"
    code = f"import hpcgym.schedule.result, sys; print(*{rooms} & {{*sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_rooms_of_the_engine_include_only_from_rooms_before_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## The engine")[2]
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


def test_no_kind_of_machine_includes_another() -> None:
    """Headers beside each other may be of several kinds; a folder is of the kind it is named by."""
    folder = ROOT / "native" / "machines"
    kinds = {path.stem for path in folder.glob("*.hpp")} & {path.name for path in folder.iterdir()}
    assert {"nodes", "limited", "corun"} <= kinds
    wrong = []
    for path in folder.rglob("*.hpp"):
        own = path.relative_to(folder).parts[0].removesuffix(".hpp")
        for name in re.findall(r'#include "(.*)"', path.read_text()):
            target = (path.parent / name).resolve()
            if not target.is_relative_to(folder):
                continue
            other = target.relative_to(folder).parts[0].removesuffix(".hpp")
            if other in kinds | {"pool"} and other != own:
                wrong.append(f"{path.relative_to(folder)} includes {name}")
    assert not wrong


def test_what_proves_schedules_shares_no_code_with_what_makes_them() -> None:
    makes = {"_engine", "simulation"}
    files = {name: file for name, file in sources().items() if room(name) == "validation"}
    assert files
    for name, file in files.items():
        assert not makes & {room(target) for target in imports(file)}, name


# what parses files, and where it may stand: beside these, all goes through hpcgym.files
PARSES = (
    *(("json", "load"), ("json", "loads"), ("tomllib", "load"), ("tomllib", "loads")),
    *(("pd", "read_csv"), ("pd", "read_parquet"), ("csv", "reader"), ("csv", "DictReader")),
    *(("gzip", "open"), ("gzip", "GzipFile"), ("gzip", "decompress"), ("np", "load")),
    *(("np", "loadtxt"), ("np", "genfromtxt"), ("torch", "load"), ("pickle", "load")),
    *(("pickle", "loads"), ("pd", "read_pickle"), ("pd", "read_json"), ("pd", "read_table")),
)
MAY_PARSE = {
    "hpcgym/files/writing.py gzip.GzipFile": "it writes",
    "hpcgym/study/sweep/tasks.py json.loads": "a task, as canonical() has written it",
    "agents/network_files.py torch.load": "bounded, and no code of the file is run",
    "benchmarks/cp/instances.py pickle.loads": "what it has pickled itself, in memory",
    "benchmarks/studies/items.py csv.reader": "files that stand beside it in the repository",
}


def test_all_that_is_read_goes_through_one_room() -> None:
    found = set()
    for folder in ("hpcgym", "agents", "baselines", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            name = str(file.relative_to(ROOT))
            if name.startswith("hpcgym/files/") and "writing" not in name:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if (node.value.id, node.attr) in PARSES:
                        found.add(f"{name} {node.value.id}.{node.attr}")
                elif isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        if (node.module, alias.name) in PARSES or node.module == "tomllib":
                            found.add(f"{name} from {node.module} import {alias.name}")
    assert found == set(MAY_PARSE)


@pytest.mark.slow
def test_importing_hpcgym_imports_nothing_heavy() -> None:
    code = "import hpcgym, sys; print(*{'pandas', 'matplotlib', 'torch'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_the_type_checker_finds_what_is_installed_as_a_part_of_hpcgym() -> None:
    """Else it takes all that is imported from there for anything."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    for name, folder in settings["tool"]["scikit-build"]["wheel"]["packages"].items():
        found = (ROOT if name == "hpcgym" else ROOT / ".typed") / name
        assert found.is_dir()
        assert found.samefile(ROOT / folder), name
    checked = {"hpcgym", ".typed/hpcgym", "benchmarks/*.py", "scripts"}
    assert checked == {*settings["tool"]["mypy"]["files"]}


# --- The scripts ----------------------------------------------------------------------------


def test_the_edits_of_mutants_stand_in_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    mutants = importlib.import_module("mutants")
    for one in mutants.MUTANTS:  # it exits where there is no such place
        assert mutants.mutated(one, (ROOT / one.file).read_text(), "") != ""


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


def path_with_python(folder: Path, answer: str) -> str:
    """A PATH with the few programs that the scripts need, and a ``python3`` of this text."""
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("cat", "cksum", "dirname", "rmdir"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    python = tools / "python3"
    python.write_text(f"#!{shutil.which('bash')}\n{answer}\n")
    python.chmod(0o755)
    return str(tools)


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
@pytest.mark.parametrize("name", WITH_HELP)
@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("exit 1", "needs Python 3.11 or newer"),  # an old one, or a stub
        (
            "[[ $2 == *ensurepip* ]] && exit 1; [[ $2 == *version_info* ]]",
            "apt install python3-venv",
        ),
    ],
    ids=["no Python", "no venv"],
)
def test_scripts_say_what_is_missing(name: str, python: str, message: str, tmp_path: Path) -> None:
    path = path_with_python(tmp_path, python)
    venv = str(tmp_path / "venv")
    code, text = run_script(name, folder=tmp_path, PATH=path, HPCGYM_VENV=venv)
    assert code == 1
    assert message in text
    assert "line " not in text  # bash's own complaints


@pytest.mark.slow
@needs_bash
def test_scripts_leave_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    code, text = run_script("quickstart", folder=tmp_path, HPCGYM_VENV=str(tmp_path))
    assert code == 1
    assert "is no virtual environment" in text
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.slow
def test_a_clone_has_the_whole_package_wherever_python_finds_it(tmp_path: Path) -> None:
    """Where it is installed editable: in its folder, in the folder above, and anywhere else."""
    packages = Path(sysconfig.get_path("purelib"))
    editable = [*packages.glob("_editable_*_hpcgym.p*")]
    if not editable:
        pytest.skip("hpcgym is not installed editable, as scripts/test does it")
    venv, above = tmp_path / "venv", tmp_path / "above"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (theirs,) = venv.glob("lib/python*/site-packages")
    (theirs / "others.pth").write_text("\n".join(path for path in sys.path if "-packages" in path))
    above.mkdir()
    (above / "hpcgym").symlink_to(ROOT)
    code = "import hpcgym, hpcgym.agents, hpcgym.baselines.cp, hpcgym.benchmarks.cp; "
    code += "print(hpcgym.load_workload.__name__, hpcgym.baselines.__file__)"
    told = f"load_workload {ROOT / 'baselines' / '__init__.py'}\n"

    def said(folder: Path) -> str:
        command = [venv / "bin" / "python", "-c", code]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        return done.stdout or done.stderr

    for file in editable:
        shutil.copy(file, theirs)
    (theirs / "hpcgym").mkdir()
    shutil.copy(hpcgym._engine.__file__, theirs / "hpcgym")
    assert [said(folder) for folder in (above, ROOT, tmp_path)] == [told] * 3


@pytest.mark.slow
@needs_bash
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [" -m not slow"]),
        (("-k", "swf"), [" -m not slow -k swf"]),
        (("--all",), ["", " -m drawn"]),
        (("-k", "swf", "--all", "-x"), [" -k swf -x", " -m drawn -k swf -x"]),
    ],
    ids=str,
)
def test_all_is_for_slow_tests_and_the_rest_for_pytest(
    arguments: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    says = f'echo "$*" >>"{tmp_path}/calls"; [[ $* != *purelib* ]] || echo "{tmp_path}"'
    python.write_text(f"#!{shutil.which('bash')}\n{says}\n")
    python.chmod(0o755)
    venv = str(tmp_path / "venv")
    code, text = run_script("test", *arguments, folder=tmp_path, HPCGYM_VENV=venv)
    assert code == 0, text
    calls = (tmp_path / "calls").read_text().splitlines()
    checks = ["-m ruff check .", "-m ruff format --check .", "-m mypy"]
    runs = [f"-m pytest -n 2 --dist worksteal{which}" for which in expected]
    assert sorted(calls[-3 - len(runs) :]) == sorted([*checks, *runs])


def test_the_readme_has_two_commands_for_a_fresh_machine() -> None:
    first = blocks(ROOT / "README.md", "sh")[0]
    commands = [line.split()[0] for line in first.splitlines()]
    assert commands == [f"scripts/{name}" for name in SCRIPTS]
    for command in commands:
        assert os.access(ROOT / command, os.X_OK)


def test_the_quickstart_and_the_what_if_show_orders_that_age() -> None:
    quickstart, readme = (ROOT / name for name in ("scripts/quickstart", "README.md"))
    (names,) = re.findall(r"--scheduler (\S+)", quickstart.read_text())
    assert {*names.split(",")} <= {*SCHEDULERS}
    assert len(names.split(",")) == 8  # as its help says
    what_if = readme.read_text().partition("## A what-if")[2].partition("\n## ")[0]
    for name in ("aged", "aged-safe"):
        assert name in names.split(",")
        assert f"`{name}`" in what_if
