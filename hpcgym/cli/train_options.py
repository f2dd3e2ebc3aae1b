"""Options that the commands of ``hpcgym train`` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.cli.files import Resumed, Written
from hpcgym.cli.running import note
from hpcgym.progress import say

#: File of an agent that is a network.
NetworkOption = Annotated[
    Path,
    typer.Option(metavar="FILE", help="File of the agent.", rich_help_panel="Output"),
    Written("file of an agent", (".pt",)),
]
#: File of an agent that is a few weights.
WeightsOption = Annotated[
    Path,
    typer.Option(metavar="FILE", help="File of the agent.", rich_help_panel="Output"),
    Written("file of an agent", (".json",)),
]
RewardOption = Annotated[
    str | None,
    typer.Option(
        metavar="bsld|wait|energy",
        help="The reward to learn from.",
        show_default="bsld",
        rich_help_panel="Experiment",
    ),
]


#: For leaderboards and for the search for weights.
NumberOption = Annotated[
    int | None,
    typer.Option(
        "--number",
        "-n",
        metavar="N",
        help="Number of slices, chosen at random.",
        show_default="100 windows, all weeks or months",
        rich_help_panel="Experiment",
    ),
]


@dataclass(frozen=True)
class TrainingOptions:
    """How long a network is trained, and what becomes of it on the way."""

    panel: ClassVar[str] = "Experiment"

    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="How long to train.", show_default="30, without --steps"),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many steps to train; without --minutes, the same command gives the same"
            " agent.",
            show_default=False,
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Go on with this agent, with its rules.", show_default=False
        ),
        Resumed(),
    ] = None
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write TensorBoard's logs there.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None

    #: How long by default.
    usual: ClassVar[Mapping[str, float]] = {"minutes": 30.0}

    def train(self, module: Any, workload: Any, output: Path, **arguments: Any) -> None:
        """Train the agent of a module, and say where it is."""
        settings = {**vars(self), **arguments}
        if self.minutes is None and self.steps is None:
            settings |= self.usual
        before = output.stat().st_mtime if output.exists() else None
        try:
            module.train(workload, output=output, show=say, **settings)
        except KeyboardInterrupt:
            if output.exists() and output.stat().st_mtime != before:
                note(f"\nwrote {output}; --resume {output} goes on with it")
            raise
        note(f"\nwrote {output}; hpcgym evaluate {output} --workload ... compares it")


@dataclass(frozen=True)
class CloneTraining(TrainingOptions):
    """The same of a clone, which is trained by batches."""

    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="How long to train.", show_default=False)
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many batches to train.", show_default="2000, without --minutes"
        ),
    ] = None

    usual: ClassVar[Mapping[str, float]] = {"steps": 2000}


def policy_features() -> Iterable[tuple[str, str]]:
    """Return the features that policies weigh, with what they are."""
    from hpcgym.scheduler.policies.features import meanings

    return list(meanings(usage=True).items())


def tell_tried(budget: int) -> Callable[[int, float], None]:
    """Return what shows how far a search by episodes is."""
    return lambda tried, best: say(f"{tried:,} of {budget:,} vectors  least value {best:.4g}")


def tell_found(found: Mapping[str, Any], episodes: str, output: Path) -> None:
    """Say how good the agent is that a search by episodes has found, and where it is."""
    note(
        f"\nvalue {found['value']:.4g} on the {len(found['chosen_on'])} {episodes} held back,"
        " which chose it: unseen ones will have more;"
        f" {found['value_of_the_beginning']:.4g} at the beginning of the search"
    )
    note(f"wrote {output}; hpcgym evaluate {output} --workload ... compares it")
