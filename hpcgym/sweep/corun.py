"""Experiments in which jobs share nodes: what is checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.cluster import Cluster, find_cluster
from hpcgym.errors import HpcgymError
from hpcgym.simulation.corun import check_machine, check_shared, check_together
from hpcgym.simulation.corun_learning import PairLearning
from hpcgym.sweep.simulations import PAIR_ESTIMATES, machine_file, read_speedups_of

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.speedups import Heatmap
    from hpcgym.sweep.source import Source


def check_sharing(
    workloads: Sequence[Source],
    schedulers: Mapping[str, Scheduler],
    speedups: Sequence[str],
    folder: Path,
) -> None:
    """Raise an HpcgymError unless machines, schedulers and speedups go together.

    Parameters
    ----------
    workloads, schedulers, speedups : of the experiment.
    folder : what names of files are relative to.
    """
    heatmaps = [
        at(f"speedups[{place}]", read_speedups_of, text, folder, {})
        for place, text in enumerate(speedups)
    ]
    machines = [
        _machine_of(f"workloads[{place}]", source, bool(speedups), folder)
        for place, source in enumerate(workloads)
    ]
    for place, (name, scheduler) in enumerate(schedulers.items()):
        where = f"schedulers[{place}]"
        if speedups:
            at(where, check_shared, scheduler)
            for heatmap in heatmaps:
                at(where, PairLearning.of, scheduler, heatmap)  # knows all codes
            for number, machine in enumerate(machines):
                at(f"{where} on workloads[{number}].cluster", check_together, scheduler, machine)
        elif scheduler.coschedules:
            raise HpcgymError(
                f"{where}: jobs share nodes under {name!r}; speedups = FILE or 'generated:...' says"
                " how fast they run then"
            )


def _machine_of(where: str, source: Source, shared: bool, folder: Path) -> Cluster | None:
    """Return the machine of a workload, None of a pool; its nodes can be shared, if they are."""
    machine = None
    if source.cluster is not None:
        machine = at(f"{where}.cluster", machine_of, source.cluster, folder)
    if shared and machine is None:
        raise HpcgymError(
            f"{where}.cluster is missing: speedups are of jobs on nodes; such as '100x2x24', nodes"
            " x sockets x cores"
        )
    if shared:
        at(f"{where}.cluster", check_machine, machine)
    elif source.codes is not None:
        raise HpcgymError(f"{where}.codes needs speedups, which have the codes")
    return machine


def believed(text: str, folder: Path) -> Heatmap | str:
    """Return what the rule ``pair_estimate`` of an experiment stands for."""
    return text if text in PAIR_ESTIMATES else read_speedups_of(text, folder, {})


def machine_of(text: str, folder: Path) -> Cluster:
    """Return the machine that an experiment names."""
    path = machine_file(text, folder)
    return find_cluster(text if path is None else path)


def at(where: str, check: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a check, and name the key if it objects."""
    try:
        return check(*args, **kwargs)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None
