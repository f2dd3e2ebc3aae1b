"""What is no machine, no failures and no speedups: ``mistakes.txt`` has what is said of it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import is_told, mistakes_in

from hpcgym.machine import (
    Cluster,
    Failures,
    Level,
    NodeGroup,
    NodePower,
    Partition,
    cluster_toml,
    failures_of,
    find_cluster,
    read_cluster,
)
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.machine.speedups import (
    Heatmap,
    LearnedSpeedups,
    find_speedups,
    generate_speedups,
    read_speedups,
)
from hpcgym.scheduler.slurm_qos import read_qos

#: Kinds of files: what they are called, and who reads them.
FILES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "toml": ("mine.toml", read_cluster),
    "slurm": ("slurm.conf", read_slurm_conf),
    "qos": ("qos.txt", read_qos),
    "failures": ("failures.csv", Failures.read),
    "csv": ("a.csv", read_speedups),
    "json": ("a.json", read_speedups),
}
GROUPS = (NodeGroup("thin", 3, {"core": 4}), NodeGroup("gpu", 2, {"core": 2, "gpu": 1}))
POWER = NodePower(100, (200, 250.5, 300), 0, (1, 1.5, 2), (2, 1.4, 1), boot_time_s=90)
POWERED = cluster_toml(
    Cluster(groups=(NodeGroup("thin", 4, {"core": 2}, POWER),), levels=(Level("chassis", 3, 40.5),))
)
HEATMAP = Heatmap(("lu", "mg", "ep"), np.ones((3, 3)))


def of_file(kind: str) -> Callable[[str], Any]:
    """Return what writes a text to a file of a kind, and reads it."""
    name, read = FILES[kind]

    def reads(text: str) -> Any:
        Path(name).write_text(text, "utf-8")
        return read(name)

    return reads


def load(name: str, compact: Any, beside: Any, **others: Any) -> dict[str, Any]:
    times = {"compact_timelogs": compact, "coscheduled_timelogs": beside}
    return {"load_name": name, "num_of_processes": 4, **times, **others}


NAMES: dict[str, Any] = {
    **{kind: of_file(kind) for kind in FILES},
    **{kind.__name__: kind for kind in (Cluster, Failures, Heatmap, LearnedSpeedups, Level)},
    **{kind.__name__: kind for kind in (NodeGroup, NodePower, Partition, load)},
    **{
        function.__name__: function for function in (find_cluster, find_speedups, generate_speedups)
    },
    "GROUPS": GROUPS,
    "GPU": NodeGroup("gpu", 2, {"gpu": 2, "core": 16, "mem": 16_000}),
    "BATCH": Partition("batch", (0, 1, 2)),
    "GROUP": '[[group]]\nname = "a"\nnodes = 2\ncore = 4\n',
    "TABLE": '{"codes": ["a"], "speedup": [[%s]]}',
    "MORE": '{"codes": ["a"], "speedup": [[1]], %s}',
    "HEATMAP": HEATMAP,
    "read_speedups": read_speedups,
    "np": np,
    "math": math,
    "NAN": math.nan,
    "partition": lambda lines: of_file("toml")(
        cluster_toml(Cluster(groups=GROUPS)) + f"\n[[partition]]\n{lines}\n"
    ),
    "powered": lambda old, new: of_file("toml")(POWERED.replace(old, new, 1)),
    "drawn": lambda **words: failures_of(
        Cluster(groups=(NodeGroup("a", 4, {"core": 2}),)), 100, **{"mtbf": 10, "repair": 5, **words}
    ),
    "with_io": lambda share, demand: dataclasses.replace(
        HEATMAP, io_share=share, io_demand_mb_s=demand
    ),
    "loads": lambda *loads: of_file("json")(json.dumps({"loads": loads})),
}


@pytest.mark.parametrize(("given", "message"), mistakes_in(__file__))
def test_a_mistake_is_told_on_one_line(
    given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message_told = is_told(given, NAMES, message)
    for file in tmp_path.iterdir():  # that it is about
        assert file.name in message_told
