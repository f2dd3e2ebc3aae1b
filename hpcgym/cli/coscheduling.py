"""Options of simulations in which jobs share nodes, and what their values become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli.groups import OWN_COMMAS
from hpcgym.errors import HpcgymError, WorkloadError, reworded

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.speedups import Heatmap
    from hpcgym.workload import Workload

AllocationOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which nodes of --cluster are filled first: by number (first-fit), those with the"
        " least free (best-fit), those with the most free (worst-fit), those without scarce"
        " resources (balanced), those with least left of what waiting jobs ask for (weighted), by"
        " both rules (hybrid), or at random (random[:SEED]). contiguous: each job has nodes of its"
        " own, in a row. With --speedups, how jobs lie on nodes: compact, spread (half of each"
        " socket, alone), half-socket or part:K (one of K parts of each socket; others may have"
        " the rest).",
        show_default="first-fit; with --speedups compact, co-schedulers half-socket",
        rich_help_panel="Machine",
    ),
]


@dataclass(frozen=True)
class Sharing:
    """What jobs that share nodes run, and how fast.

    Attributes
    ----------
    speedups : true ones of codes beside each other.
    seed : of the codes that jobs are given at random; None: they have their own.
    machine : whose nodes they share.
    """

    speedups: Heatmap
    seed: int | None
    machine: Cluster

    def with_codes(self, workload: Workload) -> Workload:
        """Return the jobs with codes, all of which have speedups."""
        from hpcgym.workload import assign_codes, codes_of

        if self.seed is not None:
            return assign_codes(workload, self.speedups.codes, seed=self.seed)
        try:
            codes_of(workload, self.speedups.codes)
        except WorkloadError as error:
            raise HpcgymError(
                f"{error}; --codes SEED gives all jobs codes of --speedups at random"
            ) from None
        return workload

    def facts(self) -> dict[str, Any]:
        """Return what a result was computed from, beside workload and machine."""
        return {"speedups": self.speedups.describe(), "codes_seed": self.seed}


@dataclass(frozen=True)
class SharingOptions:
    """How fast jobs run that share nodes, and the rules by which they do."""

    panel: ClassVar[str] = "Shared nodes"

    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|generated:...",
            help="Let jobs share the nodes of --cluster: how fast codes run beside each other. A"
            " file (CSV, JSON, loads of ELiSE; hpcgym speedups FILE shows it), or"
            " generated:codes=16,mean=1.1,spread=0.1,seed=0.",
            show_default=False,
        ),
    ] = None
    codes: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Give each job a code of --speedups, drawn at random, for workloads that do"
            " not tell what their jobs run.",
            show_default=False,
        ),
    ] = None
    partners: Annotated[
        str | None,
        typer.Option(
            metavar="best|fill|first",
            help="Which nodes a job that shares nodes takes: those where it is fastest, where"
            " an idle node counts as one without a neighbour (best); nodes in use first"
            " (fill); by number (first).",
            show_default="fill",
        ),
    ] = None
    pairs_above: Annotated[
        str | None,
        typer.Option(
            metavar="X|none",
            help="Two jobs start beside each other only if the mean of both speedups is above"
            " X, such as 1; else a job takes idle nodes, or waits.",
            show_default="any may",
        ),
    ] = None
    pair_estimate: Annotated[
        str | None,
        typer.Option(
            metavar="known|learned|FILE",
            help="The speedups that the scheduler assumes: the true ones, those that it learns"
            " while jobs run, or those of another file (or generated:...).",
            show_default="known",
        ),
        OWN_COMMAS,
    ] = None

    def read(self, machine: Cluster | None, *, limited: bool = False) -> Sharing | None:
        """Return what jobs run that share nodes; None without ``--speedups``.

        Raises
        ------
        HpcgymError : no such speedups, options that do not go together, or a machine whose nodes
            cannot be shared.
        """
        if self.speedups is None:
            if self.codes is not None:
                raise HpcgymError("--codes needs --speedups, which has the codes")
            return None
        from hpcgym.simulation.corun import check_machine
        from hpcgym.speedups import find_speedups

        if machine is None or not machine.groups:
            raise HpcgymError(
                "--speedups is for machines with nodes, of which a pool of processors has none;"
                " --cluster says which, such as 100x2x24 (nodes x sockets x cores)"
            )
        if limited:
            raise HpcgymError("--cap, --budget and --power do not go with --speedups")
        if self.codes is not None and self.codes < 0:
            raise HpcgymError(f"--codes must be a whole number of at least 0, not {self.codes}")
        check_machine(machine)
        return Sharing(find_speedups(self.speedups), self.codes, machine)

    def given(self) -> dict[str, Any]:
        """Return the rules of jobs that share nodes that were given."""
        from hpcgym.cli.options import given, given_rules
        from hpcgym.speedups import find_speedups

        known: Any = self.pair_estimate
        if known not in (None, "known", "learned"):
            try:
                known = find_speedups(known)
            except HpcgymError as error:
                raise HpcgymError(f"--pair-estimate is known, learned or a file: {error}") from None
        rules = given_rules(partners=self.partners, pairs_above=self.pairs_above)
        return rules | given(pair_estimate=known)


def check(
    sharing: Sharing | None, schedulers: Mapping[str, Scheduler], given: Mapping[str, Any]
) -> None:
    """Say before the work what does not go together.

    Parameters
    ----------
    sharing, given : of :class:`SharingOptions`.
    schedulers : name -> rules that are to be simulated.
    """
    from hpcgym.simulation.corun import check_together

    for name, scheduler in schedulers.items():
        if sharing is None and scheduler.coschedules:
            raise HpcgymError(
                f"{name}: jobs share nodes under this scheduler or these rules; --speedups says how"
                " fast they run then, such as --speedups generated"
            )
        if sharing is not None:
            try:
                check_together(scheduler, sharing.machine)
            except HpcgymError as error:
                raise reworded(error, f"{name}: {error}") from None
    if given and not any(scheduler.parts > 1 for scheduler in schedulers.values()):
        raise HpcgymError(
            f"--{next(iter(given)).replace('_', '-')} is for jobs that share nodes: name a"
            " co-scheduler, such as easy-co"
        )


def add_improvement(results: Sequence[Result]) -> None:
    """Add to the metrics by how much the makespan is better than the first one's.

    The makespan of the first over that of each, less 1: what ELiSE calls makespan speedup,
    and tables as an improvement in percent.
    """
    reference = results[0].metrics["makespan_s"]
    for result in results:
        result.metrics["makespan_improvement"] = reference / result.metrics["makespan_s"] - 1
