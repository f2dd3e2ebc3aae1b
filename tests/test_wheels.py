"""Wheels: they hold all modules, need no compiler, and any compiler makes the same schedules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_repository import ROOT, sources

import hpcgym

pytestmark = pytest.mark.slow
SIMULATES = """\
import hpcgym
print(hpcgym.simulate(hpcgym.load_workload("lublin:jobs=50,processors=8,seed=1")).start.sum())
"""


def printed(*command: object, **more: str) -> str:
    """What a command prints, which is to succeed."""
    words = list(map(str, command))
    run = subprocess.run(words, capture_output=True, text=True, env=os.environ | more, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, as on a machine without compiler: the build takes zig, which PyPI has.

    Where zig is not installed, the compiler of this machine makes it.
    """
    folder = tmp_path_factory.mktemp("wheel")
    no_compiler = {"PATH": without_compiler(folder / "programs")}
    more = no_compiler if find_spec("ziglang") else {}
    copy = folder / "copy"
    copy.mkdir()
    for name in ("hpcgym", "agents", "baselines", "benchmarks", "native"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    printed(*build, "--wheel-dir", folder, copy, **more)
    (built,) = folder.glob("*.whl")
    return built


def installed(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment with a wheel, and with the packages that are here."""
    printed(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    # another hpcgym may be installed there by a hook, which nothing runs that stands behind
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    printed(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    return python


def without_compiler(folder: Path) -> str:
    """A PATH of a few programs, none of which compiles."""
    folder.mkdir()
    for name in ("sh", "cmake", "ninja", "make", "uname", "env"):
        program = shutil.which(name)
        if program is not None:
            (folder / name).symlink_to(program)
    return str(folder)


def test_a_wheel_holds_all_modules_and_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    """All under ``hpcgym``: ``agents`` and ``baselines`` are too common names to install."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = re.sub(r"[-.]", "_", sysconfig.get_platform())
    assert wheel.name == f"hpcgym-{hpcgym.__version__}-{python}-{python}-{system}.whl"
    held = set(zipfile.ZipFile(wheel).namelist())
    information = {name for name in held if name.startswith("hpcgym-")}
    expected = {
        name.replace(".", "/") + ("/__init__.py" if file.name == "__init__.py" else ".py")
        for name, file in sources().items()
    }
    tracked = printed("git", "ls-files", "hpcgym").split()
    of_studies = (ROOT / "benchmarks").glob("*/[a-z]*.[mct][dso]*")  # and no README
    others = {name for name in tracked if not name.endswith(".py")}
    others |= {"hpcgym/_engine.pyi"}
    others.add(f"hpcgym/_engine{sysconfig.get_config_var('EXT_SUFFIX')}")
    others |= {f"hpcgym/{file.relative_to(ROOT)}" for file in of_studies}
    assert held - information == expected | others
    assert any(name.endswith("licenses/LICENSE") for name in information)

    new = installed(wheel, tmp_path / "new")
    of_wheel = printed(new, "-P", "-c", SIMULATES, PATH=without_compiler(tmp_path / "programs"))
    assert of_wheel == printed(sys.executable, "-c", SIMULATES)


def test_zig_makes_the_same_schedules(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if re.match(r"hpcgym/_engine.*\.so", name))
        engine = files.extract(name, tmp_path)
    signature = (ROOT / "scripts" / "guard", "signature")
    here = {"HPCGYM_VENV": sys.prefix}
    hook = str(ROOT / "scripts" / "instead")
    by_zig = printed(*signature, **here, PYTHONPATH=hook, HPCGYM_INSTEAD=f"hpcgym._engine={engine}")
    assert by_zig == printed(*signature, **here)
