"""What an import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

#: Gymnasium, with which the environments are registered, imports numpy.
HEAVY = ("pandas", "matplotlib", "requests", "scipy", "typer", "rich", "pyarrow", "torch")


def run_python(code: str) -> str:
    """Run code in another process."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_import_alone_loads_nothing_heavy() -> None:
    code = f"import sys, hpcgym; print(sorted({set(HEAVY)} & set(sys.modules)))"
    assert run_python(code) == "[]\n"


def test_the_command_line_reads_what_agents_take_and_no_agent() -> None:
    slow = {"pandas", "scipy", "torch", "stable_baselines3", "hpcgym.agents.search"}
    slow |= {"hpcgym.workload", "hpcgym.scheduler"}  # which TAB would wait for
    code = f"import sys, hpcgym.cli.program; print(sorted({slow} & set(sys.modules)))"
    assert run_python(f"{code}; print('hpcgym.agents.settings' in sys.modules)") == "[]\nTrue\n"


def test_simulating_loads_no_tables_and_no_pictures() -> None:
    heavy = {"pandas", "matplotlib", "requests"}
    code = "import sys, hpcgym; "
    code += "hpcgym.simulate(hpcgym.load_workload('lublin:jobs=50,processors=16'), 'easy'); "
    assert run_python(f"{code}print(sorted({heavy} & set(sys.modules)))") == "[]\n"


def test_all_names_are_there() -> None:
    import hpcgym

    for name in hpcgym.__all__:
        assert getattr(hpcgym, name) is not None
    assert dir(hpcgym) == sorted(hpcgym.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        hpcgym.simulat  # noqa: B018
