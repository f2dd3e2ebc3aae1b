"""What ``#SBATCH`` lines ask for: as sbatch(1) says, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym.errors import WorkloadError
from hpcgym.workload.io.batch_scripts import read_batch_script

GPUS = ("core", "mem", "gpu", "gpu-a100")


def script(folder: Path, *lines: str) -> Path:
    path = folder / "job.sh"
    path.write_text("\n".join(["#!/bin/bash", *lines, "srun ./a", "#SBATCH -n 9000", ""]))
    return path


@pytest.mark.parametrize(
    ("words", "units", "per_unit", "unread"),
    [
        ("", 1, {"core": 1}, ""),
        ("-n 8 -c 4", 8, {"core": 4}, ""),
        ("--ntasks=8 --cpus-per-task 4 -n6", 6, {"core": 4}, ""),  # the last counts
        ("-N 2 --ntasks-per-node=16 -c2", 2, {"core": 32}, ""),
        ("-N 2-4 -n 16", 2, {"core": 8}, ""),
        ("-N 3", 3, {"core": 1}, ""),
        ("-N 8 -n 4", 4, {"core": 1}, ""),  # a node has a task
        ("-n 10 --ntasks-per-node=4", 10, {"core": 1}, ""),  # 3 nodes, not alike
        ("-N 2 -n 5", 5, {"core": 1}, "nodes"),
        ("-n 4 --mem-per-cpu=2G -c 2", 4, {"core": 2, "mem": 4096}, ""),
        ("--mem=8G --gres=gpu:a100:2", 1, {"core": 1, "mem": 8192, "gpu": 2, "gpu-a100": 2}, ""),
        ("--gres=gpu:v100:2,shard:1", 1, {"core": 1, "gpu": 2}, "gres"),
        ("-n 4 -G 8", 4, {"core": 1, "gpu": 2}, ""),
        ("-n 3 --gpus=4", 3, {"core": 1}, "gpus"),  # 2, 1 and 1
        ("-N 2 -n 8 --gpus-per-task=1", 2, {"core": 4, "gpu": 4}, ""),
        ("-n 8 --gpus-per-node=4 --mem=1G", 8, {"core": 1}, "mem gpus-per-node"),  # of how many?
        ("--mem=0 --exclusive -p long", 1, {"core": 1}, "exclusive partition mem"),
        ("-J 'my job' -o %j.out --mail-type=END", 1, {"core": 1}, ""),
    ],
)
def test_lines_ask_for_units(
    tmp_path: Path, words: str, units: int, per_unit: dict[str, int], unread: str
) -> None:
    job = read_batch_script(script(tmp_path, "  # by hand", "", f"#SBATCH {words}  # why"), GPUS)
    assert (job.units, job.per_unit, " ".join(job.unread)) == (units, per_unit, unread)
    assert job.requested is None
    timed = script(tmp_path, *(f"#SBATCH -{word}" for word in f" {words}".split(" -")[1:]))
    assert read_batch_script(timed, GPUS) == job  # on lines of their own


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 5400), ("4:00:00", 14400), ("1-12", 129600)),
        *((no_limit, 365 * 86_400) for no_limit in ("UNLIMITED", "infinite", "0")),
    ],
)
def test_times_are_those_of_sbatch(tmp_path: Path, text: str, seconds: int) -> None:
    assert read_batch_script(script(tmp_path, f"#SBATCH -t {text}")).requested == seconds


def test_partitions_that_count_are_read(tmp_path: Path) -> None:
    for words in ("-p long", "--part=short -p long", "-plong", "--partition long"):
        job = read_batch_script(script(tmp_path, f"#SBATCH {words}"), GPUS, ("long", "short"))
        assert (job.partition, job.unread) == ("long", ())
    for other in ("short,long", "debug"):  # any of them; of another machine
        job = read_batch_script(script(tmp_path, f"#SBATCH -p {other}"), GPUS, ("long", "short"))
        assert (job.partition, job.unread) == (None, ("partition",))


def test_of_a_log_of_processors_others_are_not_looked_at(tmp_path: Path) -> None:
    path = script(tmp_path, "#SBATCH -N 2 --ntasks-per-node=8 --gres=gpu:1 --mem=4G")
    job = read_batch_script(path)
    assert (job.units * job.per_unit["core"], [*job.per_unit]) == (16, ["core"])
    assert job.unread == ("nodes", "mem", "gres")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#SBATCH -n many", "line 2: --ntasks=many: no whole number"),
        ("#SBATCH -c 0", "line 2: --cpus-per-task=0: no whole number from 1 on"),
        ("#SBATCH --time=soon", "line 2: --time=soon: no duration such as 90, 12:00:00 or 1-12"),
        ("#SBATCH -t 0:00", "line 2: --time=0:00: no time limit such as 90 (minutes)"),
        ("#SBATCH --mem=much", "line 2: --mem=much: no memory such as 4G"),
        ("#SBATCH -n 4 hetjob", "line 2: 'hetjob' is no option; hetjobs are not read"),
        ("#SBATCH -J 'a", "line 2: a quote that does not end"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        read_batch_script(script(tmp_path, line))
    assert said in str(raised.value)


def test_a_script_begins_with_its_shell(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; Version: 2.2\n")
    with pytest.raises(WorkloadError, match="line 1: no batch script"):
        read_batch_script(path)
