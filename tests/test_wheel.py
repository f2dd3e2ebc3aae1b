"""A wheel of ``scripts/build-wheel``: whoever installs it compiles nothing, and is never wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes import completed

import hpcgym
from hpcgym.compilation import shipped

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shipped._runs_here(), reason="no code is shipped for this processor"),
]

#: Runs some lines; prints what they print last, and the functions that are compiled meanwhile.
WATCHED = """
import json, sys
from numba.core import event

class Log(event.Listener):
    names = []
    def on_start(self, happened):
        self.names.append(happened.data["dispatcher"].py_func.__name__)
    def on_end(self, happened):
        pass

event.register("numba:compile", Log())
exec(sys.argv[1])
import hpcgym
print(json.dumps([value, Log.names, hpcgym.__file__]))
"""
SIMULATE = """
import hpcgym
jobs = hpcgym.load_workload("lublin:jobs=50,processors=16,load=2")
value = [hpcgym.simulate(jobs, name).start.tolist() for name in ("easy", "conservative")]
"""
#: Reads a file of one job, in compiled code that compiles fast.
READ = """
import os, hpcgym
value = hpcgym.load_workload(os.environ["JOBS"]).submit_time.tolist()
"""
JOB = "; MaxProcs: 4\n1 7 0 5 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n"


class Installed(NamedTuple):
    """A wheel that is installed into a virtual environment of its own."""

    wheel: Path
    python: Path
    packages: Path

    def environment(self, folder: Path, path: str = "") -> dict[str, str]:
        """Return variables with which compiled code is kept in a folder, empty as yet."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        (folder / "jobs.swf").write_text(JOB)
        ours = {"NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": path}
        return {**kept, **ours, "JOBS": str(folder / "jobs.swf")}

    def run(self, code: str, folder: Path, path: str = "") -> tuple[Any, list[str]]:
        """Return what some lines come to, and which functions were compiled."""
        done = completed(
            [str(self.python), "-c", WATCHED, code],
            env=self.environment(folder, path),
            cwd=folder,
        )
        assert (done.returncode, done.stderr) == (0, "")
        value, names, file = json.loads(done.stdout)
        assert Path(file).is_relative_to(path or self.packages)
        assert bool(names) == any(folder.glob("kept/*/*.nbc"))
        return value, names


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build a wheel with one part, which is compiled in the first run only, and install it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, str(ROOT / "scripts" / "build_wheel.py"), "simulator"]
    done = completed([*build, "--output", str(folder)], cwd=folder)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    assert done.stdout.splitlines()[-1].startswith(f"{wheel}: ")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    others = [path for path in sys.path if "-packages" in path]
    (packages / "others.pth").write_text("\n".join(others))
    return Installed(wheel, python, packages)


def test_the_wheel_is_for_one_python_and_one_system(installed: Installed) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = re.sub(r"[-.]", "_", sysconfig.get_platform())
    expected = f"hpcgym-{hpcgym.__version__}-{python}-{python}-{system}.whl"
    assert installed.wheel.name == expected
    with zipfile.ZipFile(installed.wheel) as wheel:
        code = [Path(name) for name in wheel.namelist() if name.endswith(".nbc")]
        assert all(wheel.getinfo(str(name)).external_attr >> 16 & 0o444 == 0o444 for name in code)
    assert {name.parent.parent for name in code} == {Path("hpcgym", "compiled")}
    assert len(code) >= 5  # two passes, how they begin and are scored, a reader


def test_whoever_installs_it_compiles_nothing(installed: Installed, tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    exec(SIMULATE, found)
    assert installed.run(SIMULATE, tmp_path) == (found["value"], [])


def test_the_command_says_that_all_is_there(installed: Installed, tmp_path: Path) -> None:
    command = [str(installed.python), "-m", "hpcgym", "warmup", "simulator"]
    done = completed(command, env=installed.environment(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "simulator  compiled already\n")
    came, kept = installed.packages / "hpcgym" / "compiled", tmp_path / "kept"
    told = done.stderr.replace("hpcgym-", "\n").split("\n")
    assert (
        told[0] == f"all of it was compiled already; what came compiled with hpcgym is in {came}/"
    )
    assert told[1].endswith(f"; compiled code is kept in {kept}/")


def test_an_edited_source_is_compiled(installed: Installed, tmp_path: Path) -> None:
    shutil.copytree(installed.packages / "hpcgym", tmp_path / "hpcgym")
    assert installed.run(READ, tmp_path, str(tmp_path)) == ([7], [])
    with open(tmp_path / "hpcgym" / "workload" / "io" / "swf_lines.py", "ab") as source:
        source.write(b"\n")
    value, names = installed.run(READ, tmp_path, str(tmp_path))
    assert value == [7]
    assert "parse_lines" in names


def test_another_numba_compiles(installed: Installed, tmp_path: Path) -> None:
    other = "import numba; numba.__version__ += '.1'\n"
    value, names = installed.run(other + READ, tmp_path)
    assert value == [7]
    assert "parse_lines" in names
