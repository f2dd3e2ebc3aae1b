"""How nice jobs of Slurm are, by what a dump has of ``SubmitLine`` or ``Nice``."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym import load_workload
from hpcgym.cluster import NodeGroup
from hpcgym.errors import WorkloadError
from hpcgym.naming import MOST_NICE
from hpcgym.workload import write_table
from hpcgym.workload.io.sacct_fields import nice_of_line
from hpcgym.workload.model import Workload

LIFTED = "repaired: nice of -1, which stands for an unknown one, taken for 0"


@pytest.mark.parametrize(
    ("line", "nice"),
    [
        ("sbatch run.sh", 0),
        ("sbatch --nice run.sh", 100),
        ("sbatch -n 4 --nice=50 run.sh", 50),
        ("sbatch --nice=-20 run.sh", -20),
        ("sbatch --nice=+7 run.sh", 7),
        ("sbatch --ni=5 run.sh", 5),
        ("sbatch --nice=5 --nice=6 run.sh", 6),
        ("sbatch --nice=5 --nice run.sh", 100),
        ("srun --nice 50 run.sh", 100),  # 50 is what is run
        ("sbatch --nice=12abc run.sh", 12),
        ("sbatch --nice=abc run.sh", None),
        (f"sbatch --nice={MOST_NICE} run.sh", MOST_NICE),
        (f"sbatch --nice={MOST_NICE + 1} run.sh", None),
        ("sbatch --nicer=5 run.sh", 0),
        ("sbatch --n=5 run.sh", 0),
        ("sbatch x--nice=5", 0),
        ("", 0),
    ],
)
def test_commands(line: str, nice: int | None) -> None:
    assert nice_of_line(line) == nice


def read(folder: Path, field: str, *told: str) -> Workload:
    """Return jobs that have each so much in a field."""
    lines = [f"JobID|State|Submit|Start|ElapsedRaw|AllocCPUS|{field}"]
    time = "2024-03-01T12:00:00"
    lines += [f"{k}|COMPLETED|{time}|{time}|60|1|{text}" for k, text in enumerate(told, 1)]
    path = folder / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    return load_workload(path, "none", processors=8)


def test_commands_with_what_is_no_nice_are_counted(tmp_path: Path) -> None:
    jobs = read(tmp_path, "SubmitLine", "sbatch --nice=abc a", "sbatch --nice=5 b", "sbatch c")
    assert jobs.nice.tolist() == [0, 5, 0]
    (counted,) = (n for why, n in jobs.cleaning.items() if "nice that is no number" in why)
    assert counted == 1


def test_a_dump_with_commands(tmp_path: Path) -> None:
    jobs = read(tmp_path, "SubmitLine", "sbatch --nice a", "sbatch b", "sbatch --nice=-1 c|d", "")
    assert jobs.nice.tolist() == [100, 0, 0, 0]
    assert jobs.cleaning[LIFTED] == 1
    none = read(tmp_path, "SubmitLine", "sbatch a", "sbatch b")
    assert none.nice.tolist() == [-1, -1]
    assert "nice" not in none.to_pandas()


def test_a_dump_with_a_column_of_squeue(tmp_path: Path) -> None:
    jobs = read(tmp_path, "NICE", "5", "", "-7", "-1")
    assert jobs.nice.tolist() == [5, 0, -7, 0]
    assert jobs.cleaning[LIFTED] == 1
    with pytest.raises(WorkloadError, match=r"line 3: Nice is 'much', no whole number from -2,147"):
        read(tmp_path, "Nice", "5", "much")


def test_tables_hold_it(tmp_path: Path) -> None:
    jobs = read(tmp_path, "Nice", "5", "0", "-7")
    write_table(jobs, tmp_path / "jobs.csv")
    assert load_workload(tmp_path / "jobs.csv", processors=8).nice.tolist() == [5, 0, -7]
    (tmp_path / "wrong.csv").write_text(f"submit_time,run_time,nice\n0,1,5\n1,1,{-MOST_NICE - 1}\n")
    with pytest.raises(WorkloadError, match="nice is -2147483646, but must be from -2147483645 to"):
        load_workload(tmp_path / "wrong.csv", processors=8)


def test_network_cards_may_be_a_resource() -> None:
    """Gres of Slurm are often called nic, which is not nice mistyped."""
    assert NodeGroup("node", 2, {"core": 4, "nic": 1}).resources["nic"] == 1
