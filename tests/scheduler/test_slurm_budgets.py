"""GrpTRESMins of QOS and associations as budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym.errors import HpcgymWarning
from hpcgym.scheduler.slurm_conf import scheduler_of_slurm
from hpcgym.scheduler.slurm_qos import quotas_of_slurm

CONF = """ClusterName=c
GresTypes=gpu
NodeName=n[1-2] CPUs=4 Gres=gpu:2
PartitionName=batch Nodes=n[1-2] Default=YES
"""
SAFE = "AccountingStorageEnforce=limits,qos,safe\n"
QOS = """Name|GrpTRESMins|GrpTRES|Flags
normal|gres/gpu=900|cpu=8|
free|cpu=70||NoDecay
other|||
"""
ASSOC = """Cluster|Account|User|Share|GrpTRESMins|GrpJobs
c|root||1||
c|physics||1|cpu=10000,gres/gpu=600|9
c|physics|ann|1|cpu=300|
"""


def quotas_by(folder: Path, conf: str) -> list[str]:
    """The quotas of the three files, as texts."""
    paths = [folder / name for name in ("slurm.conf", "qos.txt", "assoc.txt")]
    for path, text in zip(paths, (CONF + conf, QOS, ASSOC), strict=True):
        path.write_text(text)
    return [*map(str, scheduler_of_slurm(*paths).quota)]


def test_a_safe_budget_counts_what_running_jobs_still_may_use(tmp_path: Path) -> None:
    assert quotas_by(tmp_path, SAFE + "PriorityDecayHalfLife=2-0\n") == [
        "queue=normal/half-life=172800:processors=8+gpu-minutes-in-all=900",
        "queue=free:processor-minutes-in-all=70",
        "group=physics/group:jobs=9",
        "group=physics/group/spares=normal/half-life=172800:gpu-minutes-in-all=600",
        "group=physics/group/spares=free/half-life=172800:processor-minutes-in-all=10000",
        "group=physics/group/user/spares=free/half-life=172800:processor-minutes-in-all=300",
    ]


def test_another_ends_running_jobs_which_is_told(tmp_path: Path) -> None:
    with pytest.warns(HpcgymWarning, match="Slurm ends running jobs once GrpTRESMins is used up"):
        quotas = quotas_by(tmp_path, "")
    assert quotas[0] == "queue=normal/half-life=604800:processors=8+gpu-minutes-used=900"


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ("PriorityType=priority/basic\n", "only priority/multifactor counts what has been used"),
        ("PriorityUsageResetPeriod=MONTHLY\n", "PriorityUsageResetPeriod is not simulated"),
    ],
)
def test_where_it_is_not_followed_a_line_says_why(tmp_path: Path, conf: str, why: str) -> None:
    with pytest.warns(HpcgymWarning, match=rf"normal: GrpTRESMins \({why}\)") as told:
        quotas = quotas_by(tmp_path, SAFE + conf)
    assert quotas == ["queue=normal:processors=8", "group=physics/group:jobs=9"]
    assert any(f"physics: GrpTRESMins ({why})" in str(line.message) for line in told)


def test_nothing_is_forgotten_with_a_half_life_of_0(tmp_path: Path) -> None:
    quotas = quotas_by(tmp_path, SAFE + "PriorityDecayHalfLife=0\n")
    assert quotas[0] == "queue=normal:processors=8+gpu-minutes-in-all=900"


@pytest.mark.parametrize("text", [QOS, ASSOC])
def test_a_table_alone_does_not_say_what_is_forgotten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.txt"
    path.write_text(text)
    with pytest.warns(HpcgymWarning, match=r"GrpTRESMins \(slurm.conf:qos=FILE.* says what is"):
        quotas = quotas_of_slurm(path)
    assert not any("minutes" in str(quota) for quota in quotas)
