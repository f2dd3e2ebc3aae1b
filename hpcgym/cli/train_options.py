"""Options that the commands of ``hpcgym train`` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    typer.Option(metavar="FILE", help="File of the agent."),
    Written("file of an agent", (".pt",)),
]
#: File of an agent that is a few weights.
WeightsOption = Annotated[
    Path,
    typer.Option(metavar="FILE", help="File of the agent."),
    Written("file of an agent", (".json",)),
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Of the network, of exploration and of the episodes.")
]
RewardOption = Annotated[
    str | None,
    typer.Option(metavar="bsld|wait|energy", help="What to learn from.", show_default="bsld"),
]
EnvsOption = Annotated[
    int, typer.Option("--envs", metavar="N", help="Environments side by side, in one batch.")
]


@dataclass(frozen=True)
class EpisodeOptions:
    """What to learn from; :class:`hpcgym.envs.core.episodes.Episodes` has the same arguments."""

    part: Annotated[
        str,
        typer.Option(
            metavar="train|test|all",
            help="Part of the workload in time to learn from; what is left is for hpcgym evaluate.",
        ),
    ] = "train"
    train_share: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the workload that is for training.")
    ] = 0.5
    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What an episode is: a window of jobs from anywhere, a week, a month, or all of"
            " the part.",
        ),
    ] = "windows"
    jobs: Annotated[int, typer.Option(metavar="N", help="Jobs of a window.")] = 256


_NumberOption = Annotated[
    int | None,
    typer.Option(
        "--number",
        "-n",
        metavar="N",
        help="Number of slices, chosen at random.",
        show_default="100 windows, all weeks or months",
    ),
]
#: Half of the episodes are held back, so the whole part, which is one, cannot be searched by.
_SearchedOption = Annotated[
    str, typer.Option(metavar="windows|weeks|months", help="What an episode is.")
]


@dataclass(frozen=True)
class RecordedEpisodes(EpisodeOptions):
    """Those in which a policy is recorded."""

    record_episodes: Annotated[
        int, typer.Option("--number", "-n", metavar="N", help="Number of episodes to record.")
    ] = 20


@dataclass(frozen=True)
class SearchedSlices(EpisodeOptions):
    """Those on which weights are searched for."""

    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs from anywhere, a week, a month, or all of the"
            " part.",
        ),
    ] = "weeks"
    number: _NumberOption = None


@dataclass(frozen=True)
class ControlEpisodes(EpisodeOptions):
    """Those in which controls are searched for."""

    episodes: _SearchedOption = "weeks"
    number: _NumberOption = None


@dataclass(frozen=True)
class PairEpisodes(EpisodeOptions):
    """Those in which pairs are searched for."""

    episodes: _SearchedOption = "windows"
    number: Annotated[
        int, typer.Option(metavar="N", help="Episodes to search and to choose by, half each.")
    ] = 16


@dataclass(frozen=True)
class EvaluatedSlices(EpisodeOptions):
    """Those of a leaderboard, of the part that agents have not seen."""

    part: Annotated[
        str,
        typer.Option(
            "--slices",
            metavar="test|train|all",
            help="Part of the workload in time: what agents are trained on comes first.",
        ),
    ] = "test"
    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs, a week, a month, or all of the part.",
        ),
    ] = "windows"
    number: _NumberOption = None


@dataclass(frozen=True)
class TrainingOptions:
    """How long a network is trained, and what becomes of it on the way."""

    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="How long to train.", show_default="30, without --steps"),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many steps to train; alone, the same command gives the same agent.",
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
        typer.Option(metavar="FOLDER", help="Write TensorBoard's logs there.", show_default=False),
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
    """The same of a clone, which is soon as good as it gets."""

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
    from hpcgym.scheduler.policies.features import FEATURES

    return [(name, feature.meaning) for name, feature in FEATURES.items()]


def tell_found(found: Mapping[str, Any], episodes: str, output: Path) -> None:
    """Say how good the agent is that a search by episodes has found, and where it is."""
    note(
        f"\nvalue {found['value']:.4g} on the {len(found['chosen_on'])} {episodes} held back,"
        " which chose it: unseen ones will have more;"
        f" {found['value_of_the_beginning']:.4g} at the beginning of the search"
    )
    note(f"wrote {output}; hpcgym evaluate {output} --workload ... compares it")
