"""Files of ``../shared/cases`` that a reader of slurm.conf refused once, with the right answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpcgym.cli import app
from hpcgym.machine.slurm import read_slurm_conf

CASES = Path(__file__).parents[3] / "shared" / "cases"

#: case -> nodes, resources of each, partitions with their nodes, and a warning.
RIGHT: dict[str, tuple[int, dict[str, int], dict[str, int], str]] = {
    "absolute-include": (4, {"core": 8}, {"main": 4}, "included files found beside this file"),
    "gres-no-consume": (2, {"core": 16, "gpu": 2}, {"main": 2}, ""),
    "latin1-comment": (4, {"core": 8}, {"main": 4}, ""),
    "partition-without-nodes": (4, {"core": 8}, {"main": 4, "later": 0}, ""),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_shared_case(case: str) -> None:
    path = CASES / case / "slurm.conf"
    if not path.exists():
        pytest.skip("../shared/cases is not here")
    shown = CliRunner().invoke(app, ["machines", str(path)])
    nodes, resources, partitions, warning = RIGHT[case]
    assert (shown.exit_code, shown.stderr.count("\n")) == (0, bool(warning))
    assert warning in shown.stderr
    cluster = read_slurm_conf(path).cluster
    assert cluster.nodes == nodes
    assert {name: cluster.groups[0].resources[name] for name in resources} == resources
    assert {partition.name: len(partition.nodes) for partition in cluster.partitions} == partitions
