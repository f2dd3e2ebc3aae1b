"""Completion at TAB: what shells ask of the program, and what it answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, in_words, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.cli import names
from hpcgym.machine import machine_names
from hpcgym.schedule.metrics import ranking_metrics
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.policies import POLICIES
from hpcgym.workload.archive import TRACES

CODE = """
import io, os, sys
from contextlib import redirect_stdout, suppress
os.environ["_HPCGYM_COMPLETE"] = "complete_bash"
from hpcgym.cli import main
for line in sys.argv[1:]:
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    with redirect_stdout(io.StringIO()) as told, suppress(SystemExit):
        main()
    print(*told.getvalue().split())
print({"gymnasium", "pandas", "matplotlib", "torch"} & set(sys.modules), file=sys.stderr)
"""

TOLD = {
    "hpcgym ex": ["explain", "explore"],
    "hpcgym sweep re": ["resume"],
    "hpcgym simulate lublin --fo": ["--format", "--force"],
    "hpcgym simulate lublin --format ": ["table", "json", "csv"],
    "hpcgym simulate KTH": ["KTH-SP2", "KTHULHU"],  # of the archive by the short name alone
    "hpcgym simulate lublin --scheduler easy-s": ["easy-sjbf", "easy-spread"],
    "hpcgym compare lublin --scheduler easy,pcp": ["easy,pcp19", "easy,pcp20"],
    "hpcgym compare lublin --policy wfp3,s": [f"wfp3,{p}" for p in POLICIES if p[0] == "s"],
    "hpcgym evaluate easy --metric p99_w": ["p99_wait_s"],
    "hpcgym tune lublin --clean le": ["legrand"],
    "hpcgym simulate lublin --cluster eur": ["eurora"],
    "hpcgym simulate my-log": [],  # the shell then completes files
}


@pytest.mark.parametrize("folder", ["here", "nowhere"])
def test_a_shell_is_told_names(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one process; a wrong folder of traces is no error while one types."""
    Path("here").mkdir()
    for name in ("KTH-SP2-1996-2.swf.gz", "KTHULHU.swf"):
        Path("here", name).touch()
    monkeypatch.setenv("HPCGYM_DATA", folder)
    told = dict(TOLD)
    if folder == "nowhere":
        told = {"hpcgym simulate KTH": ["KTH-SP2"]}
    command = [sys.executable, "-c", CODE, *told]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"
    assert dict(zip(told, map(str.split, done.stdout.splitlines()), strict=True)) == told


def test_all_names_are_completed() -> None:
    offered = names.complete_schedulers("")
    assert len(set(offered)) == len(offered)
    assert set(offered) == {*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS}
    assert set(names.complete_policies("")) == set(POLICIES)
    assert set(names.complete_estimates("")) == set(ESTIMATES)
    assert set(names.complete_metrics("")) == set(ranking_metrics())
    assert set(names.complete_machines("")) == set(machine_names())
    assert set(TRACES) <= set(names.complete_traces(""))


def test_options_that_take_names_complete_them() -> None:
    for words in ("simulate", "compare", "explain", "explore"):
        for one in COMMANDS[words,].params:
            if one.name in ("workload", "scheduler", "policy", "backfill_order", "estimate"):
                assert one._custom_shell_complete is not None, (words, one.name)


def test_completion_can_be_installed() -> None:
    shown = in_words(succeed("--help").stdout)
    assert "--install-completion Install completion" in shown
    assert "--show-completion Show completion" in shown
