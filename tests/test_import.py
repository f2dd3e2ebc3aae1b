"""What an import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mistakes import mistakes_of

import hpcgym

HEAVY = "numpy pandas matplotlib requests scipy click rich pyarrow torch"
#: Runs a command, whose own lines are not looked at.
COMMAND = (
    "import contextlib, io; from hpcgym.cli.program import app\n"
    "def quiet(words):\n"
    "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    "        app(words)\n"
    "quiet"
)
SIMULATES = "hpcgym.simulate(hpcgym.load_workload('lublin:jobs=50,processors=16'), 'easy')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "loads_none_of"),
    [
        ("import hpcgym", HEAVY),
        (f"import hpcgym; {SIMULATES}", "pandas matplotlib requests"),
        # what the command line needs of them all, and what single commands do
        ("import hpcgym.cli.program", "numpy pandas scipy torch hpcgym.cli.simulate"),
        (
            f"{COMMAND}(['--help'])",
            "numpy pandas pydantic rich hpcgym.cli.simulate hpcgym.workload.load",
        ),
        (
            f"{COMMAND}(['simulate', '-h'])",
            "numpy pandas pydantic hpcgym.scheduler hpcgym.workload.load",
        ),
        (
            f"{COMMAND}(['traces', 'list'])",
            "numpy pandas requests hpcgym.cli.options hpcgym.scheduler hpcgym.workload.load",
        ),
        (
            f"{COMMAND}(['simulate', 'lublin:jobs=12'])",
            "pandas scipy matplotlib requests gymnasium hpcgym.workload.io.sacct_fields",
        ),
        # it reads what agents take, and no agent
        (
            "import hpcgym.cli.train; assert 'hpcgym.agents.settings' in sys.modules",
            "pandas scipy torch stable_baselines3 hpcgym.agents.search hpcgym.scheduler",
        ),
        ("import hpcgym.schedule.result", "hpcgym.explanation hpcgym.explore hpcgym.simulation"),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, loads_none_of: str) -> None:
    more = f"import sys\n{code}\nprint(sorted({{*{loads_none_of.split()}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", more], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_all_names_are_there() -> None:
    for name in hpcgym.__all__:
        assert getattr(hpcgym, name) is not None
    assert dir(hpcgym) == sorted(hpcgym.__all__)


test_mistakes = mistakes_of(globals(), errors=AttributeError)
