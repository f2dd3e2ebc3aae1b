"""What an import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hpcgym

#: Gymnasium, with which the environments are registered, imports numpy.
HEAVY = "pandas matplotlib requests scipy typer rich pyarrow torch"
SIMULATES = "hpcgym.simulate(hpcgym.load_workload('lublin:jobs=50,processors=16'), 'easy')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "loads_none_of"),
    [
        ("import hpcgym", HEAVY),
        (f"import hpcgym; {SIMULATES}", "pandas matplotlib requests"),
        # it reads what agents take, and no agent; TAB would wait for the last two
        (
            "import hpcgym.cli.program; assert 'hpcgym.agents.settings' in sys.modules",
            "pandas scipy torch stable_baselines3 hpcgym.agents.search hpcgym.workload"
            " hpcgym.scheduler",
        ),
        ("import hpcgym.schedule.result", "hpcgym.explanation hpcgym.explore hpcgym.simulation"),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, loads_none_of: str) -> None:
    more = f"import sys; {code}; print(sorted({{*{loads_none_of.split()}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", more], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_all_names_are_there() -> None:
    for name in hpcgym.__all__:
        assert getattr(hpcgym, name) is not None
    assert dir(hpcgym) == sorted(hpcgym.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        hpcgym.simulat  # noqa: B018
