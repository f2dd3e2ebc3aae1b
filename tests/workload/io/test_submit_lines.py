"""Options of the commands by which jobs of Slurm were submitted."""

from __future__ import annotations

import pytest

from hpcgym.workload.io.sacct_dependencies import dependency_of_line
from hpcgym.workload.io.sacct_fields import nice_of_line, types_of_line
from hpcgym.workload.io.submit_lines import options_of


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("sbatch run.sh --nice=9 -L a", []),  # arguments of the script
        ("sbatch -n 4 --time 10 --hold -Qd 7 a.sh -d 8",
         [("ntasks", "4"), ("time", "10"), ("hold", None), ("Q", None), ("dependency", "7")]),
        ("sbatch --license=ansys:2 --lic a;b c", [("licenses", "ansys:2"), ("licenses", "a;b")]),
        ("sbatch --nice 5 -L a", [("nice", None)]),  # 5 is the script
        ("sbatch --wait -W a.sh -L b", [("wait", None), ("W", None)]),
        ("srun --wait 5 -W 6 -kL b a", [("wait", "5"), ("W", "6"), ("k", "L")]),  # b is run
        ("sbatch --excl --mem=4G -- -L b", [("excl", None), ("mem", "4G")]),
        ("sbatch -L", [("licenses", "")]),
        ("", []),
    ],
)  # fmt: skip
def test_options_end_at_the_script(line: str, options: list[tuple[str, str | None]]) -> None:
    """As getopt reads them: of sbatch(1) and srun(1), by hand."""
    assert list(options_of(line)) == options


def test_what_a_script_is_given_asks_for_nothing() -> None:
    line = "sbatch -N 1 train.sh --nice=50 -d 12 --gres=gpu:a100:2"
    assert (nice_of_line(line), dependency_of_line(line), types_of_line(line)) == (0, "", {})
