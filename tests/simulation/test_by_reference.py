"""``engine="reference"``: the same results as without it, and what the reference does not have."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from restrictions import DRAWN
from same_results import assert_same_results

import hpcgym
import hpcgym.reference
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.workload.model import Workload

pytestmark = [
    *DRAWN,
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
]


def assert_same(workload: Workload, rules: dict[str, Any]) -> None:
    """All that a result tells is the same, whoever made it."""
    fast = hpcgym.simulate(workload, **rules)
    slow = hpcgym.simulate(workload, **rules, engine="reference")
    assert_same_results(slow, fast)
    hpcgym.validate_schedule(slow)


def test_one_window_of_a_machine_of_nodes() -> None:
    workload = hpcgym.load_workload("lublin:jobs=60,processors=64,load=1.2,seed=2")
    rules = {"cluster": "16x2x2", "maintenance": "3000/20000:nodes=0-7", "policy": "saf"}
    assert_same(workload, rules)


def test_the_reference_shares_nothing_with_the_engine() -> None:
    """Its modules import each other, and what comes with Python."""
    found: set[str] = set()
    for file in Path(hpcgym.reference.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                found.add(str(node.module))
            elif isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
    others = {name for name in found if not name.startswith("hpcgym.reference")}
    assert {name.partition(".")[0] for name in others} <= {*sys.stdlib_module_names}


JOBS = "lublin:jobs=30,processors=16,seed=1"


@pytest.mark.parametrize(
    ("rules", "lacks"),
    [
        ({"policy": "2 * wait - processors"}, "policy='2 \\* wait - processors'"),
        ({"policy": lambda view: view.wait}, "a policy that is a function"),
        ({"backfill_order": "wait / requested"}, "backfill_order='wait / requested'"),
        ({"policy": "wait ** 2 if user == 'ann' else 0"}, "policy="),
        ({"policy": "fairshare"}, "orders by what users have used"),
        ({"estimate": "e-loss"}, "estimate='e-loss'"),
        ({"policy_estimate": "data-driven"}, "policy_estimate='data-driven'"),
        ({"scheduler": "sjf-list"}, "a dispatcher"),
        ({"speedups": "generated", "cluster": "4x2x2"}, "speedups"),
        ({"cluster": "eurora", "limits": []}, "limits"),
        ({"cluster": "4x1x4", "allocation": "contiguous"}, "jobs with nodes of their own"),
        ({"cluster": Cluster(16, shutdown_after_s=9)}, "processors that are switched off"),
    ],
)
def test_what_it_does_not_have_is_named(rules: dict[str, Any], lacks: str) -> None:
    workload = hpcgym.load_workload(JOBS)
    with pytest.raises(HpcgymError, match=f'^engine="reference" does not have {lacks}'):
        hpcgym.simulate(workload, **rules, engine="reference")


def test_an_extract_is_named() -> None:
    workload = hpcgym.load_workload(JOBS)
    waits = hpcgym.simulate(workload).wait
    part = workload.with_columns(wait_time=waits).extract(int(workload.submit_time[9]))
    with pytest.raises(HpcgymError, match="does not have an extract of a log"):
        hpcgym.simulate(part, engine="reference")


def test_what_no_engine_can_do_is_said_alike() -> None:
    workload = hpcgym.load_workload(JOBS)
    for engine in (None, "reference"):
        with pytest.raises(HpcgymError, match="do not go together"):
            hpcgym.simulate(workload, backfill="conservative", quota="user:jobs=1", engine=engine)
    with pytest.raises(HpcgymError, match="unknown engine 'fast'; known are reference"):
        hpcgym.simulate(workload, engine="fast")


def test_a_rule_that_the_reference_does_not_know_is_an_error() -> None:
    jobs = hpcgym.reference.jobs_of(hpcgym.load_workload("lublin:jobs=3,processors=4"))
    with pytest.raises(TypeError, match="no such rules: backfil, polcy"):
        hpcgym.reference.Simulation(jobs, 4, polcy="saf", backfil="easy")
