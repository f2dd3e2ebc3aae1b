"""What an import costs, and where compiled code is kept."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from processes import completed

from hpcgym import compilation

pytestmark = pytest.mark.slow

#: Gymnasium, with which the environments are registered, imports numpy.
HEAVY = ("numba", "pandas", "matplotlib", "pooch", "scipy", "typer", "rich", "pyarrow", "torch")

#: Simulates, and prints what was compiled and what came from the cache.
SIMULATE = """
import json, hpcgym
from hpcgym.engine.machines.pool import easy
from hpcgym.compilation import cache_folder
result = hpcgym.simulate(hpcgym.load_workload("lublin:jobs=50,processors=16"), "easy")
stats = easy.run.stats
hits, misses = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
print(json.dumps([hits, misses, str(cache_folder()), result.start.tolist()]))
"""


def run_python(code: str, **environment: str) -> str:
    """Run code in another process, with some variables of the environment replaced."""
    names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    done = completed([sys.executable, "-c", code], env={**kept, **environment})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_import_alone_loads_nothing_heavy() -> None:
    code = f"import sys, hpcgym; print(sorted({set(HEAVY)} & set(sys.modules)))"
    assert run_python(code) == "[]\n"


def test_the_command_line_reads_what_agents_take_and_no_agent() -> None:
    slow = {"numba", "pandas", "scipy", "torch", "stable_baselines3", "hpcgym.agents.search"}
    slow |= {"hpcgym.workload", "hpcgym.scheduler"}  # which TAB would wait for
    code = f"import sys, hpcgym.cli.program; print(sorted({slow} & set(sys.modules)))"
    assert run_python(f"{code}; print('hpcgym.agents.settings' in sys.modules)") == "[]\nTrue\n"


def test_simulating_loads_no_tables_and_no_pictures() -> None:
    heavy = {"pandas", "matplotlib", "pooch"}
    code = f"{SIMULATE}\nimport sys; print(sorted({heavy} & set(sys.modules)))"
    assert run_python(code).endswith("\n[]\n")


def test_all_names_are_there() -> None:
    import hpcgym

    for name in hpcgym.__all__:
        assert getattr(hpcgym, name) is not None
    assert dir(hpcgym) == sorted(hpcgym.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        hpcgym.simulat  # noqa: B018


#: No folder can be made below a file, not even by root.
UNWRITABLE = {"HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/y"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Simulate in a process that finds no compiled code, and a home that cannot be written."""
    folder = tmp_path_factory.mktemp("temporary")
    return folder, json.loads(run_python(SIMULATE, TMPDIR=str(folder), **UNWRITABLE))


def test_a_home_that_cannot_be_written_is_no_obstacle(first: tuple[Path, list[Any]]) -> None:
    folder, (hits, misses, used, starts) = first
    assert (hits, misses) == (0, 1)
    assert len(starts) == 50
    assert Path(used).is_relative_to(folder)
    assert Path(used).name.startswith("hpcgym-")
    assert any(Path(used).rglob("*.nbc"))


def test_a_second_process_compiles_nothing(first: tuple[Path, list[Any]]) -> None:
    folder, (_, _, used, starts) = first
    again = json.loads(run_python(SIMULATE, TMPDIR=str(folder), **UNWRITABLE))
    assert again == [1, 0, used, starts]


def test_the_cache_folder_of_numba_is_respected(first: tuple[Path, list[Any]]) -> None:
    _, (_, _, used, starts) = first
    again = json.loads(run_python(SIMULATE, NUMBA_CACHE_DIR=str(Path(used).parent)))
    assert again == [1, 0, used, starts]


def test_the_user_cache_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "made"))
    folder = compilation.cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path / "made" / "hpcgym"
    assert folder.is_dir()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compilation.cache_folder() == tmp_path / ".cache" / "hpcgym" / folder.name


def test_without_any_folder_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation.config, "CACHE_DIR", "/dev/null/z")
    assert compilation.cache_folder() is None
    monkeypatch.setattr(compilation.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/dev/null/t")
    for name, value in UNWRITABLE.items():
        monkeypatch.setenv(name, value)
    assert compilation.cache_folder() is None
