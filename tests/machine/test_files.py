"""Machines from and to TOML; those that are ready-made; the command that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

from hpcgym.cli import app
from hpcgym.machine import (
    Cluster,
    NodeGroup,
    Partition,
    cluster_toml,
    find_cluster,
    machine_names,
    read_cluster,
)
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload
from hpcgym.workload.archive import TRACES

FILE = """
name = "two"
idle_power_w = 100

[[group]]
name = "thin"
nodes = 3
core = 4
mem = "64 GB"

[[group]]
name = "fat"
nodes = 1
core = 8
sockets = 4
mem = 1500
gpu = 2

[[queue]]
name = "debug"
expected_wait_s = 90.5
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    groups = (
        NodeGroup("thin", 3, {"core": 4, "mem": 64_000}),
        NodeGroup("fat", 1, {"core": 8, "mem": 1_500, "gpu": 2}, sockets=4),
    )
    expected = Cluster(groups=groups, queues={"debug": 90.5}, name="two", idle_power_w=100.0)
    path = write(tmp_path, FILE)
    assert read_cluster(path) == find_cluster(path) == find_cluster(str(path)) == expected
    assert find_cluster(expected) is expected


@pytest.mark.parametrize(
    "cluster",
    [
        *map(find_cluster, machine_names()),
        Cluster(12, idle_power_w=1.25, shutdown_after_s=60, name='a "pool" \\ ü'),
        Cluster(12, io_bandwidth_gb_s=0.25, name="\U0001f5a5"),
        Cluster(
            groups=(NodeGroup("a", 1, {"core": 1}),),
            partitions=(Partition("p", (0,), allow_accounts=("\ue000 \U000e0001 \n\x7f\x1b",)),),
        ),
        Cluster(
            groups=(NodeGroup("a", 1, {"core": 12, "mem": 0, "fpga_2-x": 3}, sockets=3),),
            queues={"q": 0.5},
        ),
    ],
    ids=lambda cluster: cluster.name[:10],
)
def test_written_and_read_again(tmp_path: Path, cluster: Cluster) -> None:
    again = read_cluster(write(tmp_path, cluster_toml(cluster)))
    assert again == cluster
    assert again.resources == cluster.resources


def test_a_number_is_a_pool() -> None:
    assert find_cluster(64) == find_cluster(np.int64(64)) == find_cluster("64") == Cluster(64)


def test_eurora_forhlr_and_helios_are_as_published() -> None:
    eurora = find_cluster("Eurora")
    assert eurora.resources == ("core", "mem", "gpu", "mic")
    assert eurora.capacity.tolist() == [[16, 16_000, 2, 0]] * 32 + [[16, 16_000, 0, 2]] * 32
    assert dict(eurora.queues) == {"debug": 3600, "parallel": 6 * 3600, "longpar": 24 * 3600}
    kit = find_cluster("kit-forhlr-ii")
    assert kit.capacity.tolist() == [[20, 64_000, 0]] * 1152 + [[48, 10**6, 4]] * 21
    helios = find_cluster("helios")
    assert helios.resources == ("core", "mem", "gpu")
    assert helios.capacity.tolist() == [[48, 376_000, 8]] * 133


def test_machines_of_document_003() -> None:
    sizes = {"aris": (426, 20, 64), "grvingt": (64, 32, 192), "marconi": (100, 48, 196)}
    for name, (nodes, cores, gigabytes) in sizes.items():
        machine = find_cluster(name)
        assert machine.resources == ("core", "mem")
        assert machine.capacity.tolist() == [[cores, 1000 * gigabytes]] * nodes
        assert [group.sockets for group in machine.groups] == [2]


def test_equal_nodes_by_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = find_cluster("100x2x24")
    assert machine == find_cluster("100X2X24")
    assert machine.groups == (NodeGroup("node", 100, {"core": 48}, sockets=2),)
    assert (machine.name, machine.processors) == ("100x2x24", 4800)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2x1x1").write_text("processors = 7")  # a file of such a name goes first
    assert find_cluster("2x1x1").processors == 7
    columns = {"submit_time": [0], "run_time": [5], "requested_time": [5]}
    workload = Workload.from_columns({**columns, "requested_processors": [8]}, processors=9)
    assert simulate(workload, "easy", cluster="2x2x2").cluster.processors == 8
    assert json.loads(run("2x2x2", "--format", "json"))["resources"] == {"core": 8}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["machines", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_lists_and_prints_them(tmp_path: Path) -> None:
    listed = json.loads(run("--format", "json"))["machines"]
    assert [row["name"] for row in listed] == machine_names()
    table = run()
    for name in machine_names():
        assert name in table
        if name.upper() in TRACES:
            assert find_cluster(name).processors == TRACES[name.upper()].processors
    printed = run("eurora")
    assert printed.startswith("#")  # with its sources
    assert read_cluster(write(tmp_path, printed)) == find_cluster("eurora")
    row = json.loads(run(str(write(tmp_path, FILE)), "--format", "json"))
    assert row["resources"] == {"core": 20, "mem": 193_500, "gpu": 2}
    assert row["queues"] == {"debug": 90.5}
    fat = {"name": "fat", "nodes": 1, "sockets": 4}
    assert row["groups"][1] == fat | {"per_node": {"core": 8, "mem": 1_500, "gpu": 2}}
    pool = write(tmp_path, "processors = 12")
    assert json.loads(run(str(pool), "--format", "json"))["groups"] == []
    assert read_cluster(write(tmp_path, run(str(write(tmp_path, FILE))))).name == "two"
    assert "1024 core, 1024000 mem, 64 gpu, 64 mic" in run("--format", "csv")


test_mistakes = mistakes_of(globals())
