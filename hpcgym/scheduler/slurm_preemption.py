"""Who may stop whom by a slurm.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.scheduler.preemption import MODES, Preemption, by_tier

if TYPE_CHECKING:
    from hpcgym.cluster.slurm import SlurmConf

#: Settings that are followed where jobs may stop others, in lower case.
FOLLOWED = ("preempttype", "preemptmode")
#: Values of them, and of SchedulerParameters, that are: within a tier the youngest go first.
YOUNGEST_FIRST = ("youngest_first", "preempt_youngest_first")
_OF_PARTITION = ": preemptmode"


def preemption_of_slurm(conf: SlurmConf) -> Preemption | None:
    """Return who may stop whom; None: nobody anybody, or in a way that is not simulated.

    With ``PreemptType=preempt/partition_prio`` and ``PreemptMode=REQUEUE`` or ``CANCEL`` jobs of a
    partition stop those of all that have a lower PriorityTier, but for the jobs of partitions of
    which ``PreemptMode`` is OFF.
    """
    said = conf.scheduling
    mode = said.get("preemptmode", "off").casefold()
    kind = said.get("preempttype", "preempt/none").casefold()
    if kind != "preempt/partition_prio" or mode not in MODES:
        return None
    safe = spared(conf)
    partitions = [(one.name, one.priority_tier) for one in conf.cluster.partitions]
    pairs = tuple(pair for pair in by_tier(partitions) if pair[1] not in safe)
    return Preemption("partition", pairs, mode) if pairs else None


def spared(conf: SlurmConf) -> set[str]:
    """Return the partitions whose jobs nobody stops."""
    return {
        one.name[: -len(_OF_PARTITION)]
        for one in conf.unfollowed
        if one.name.casefold().endswith(_OF_PARTITION) and one.value.casefold() == "off"
    }
