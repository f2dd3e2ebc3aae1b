"""Options that the commands of ``hpcgym train`` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcgym.cli.files import Resumed, Written
from hpcgym.cli.running import note

WorkloadOption = Annotated[
    str,
    typer.Option(
        metavar="WORKLOAD",
        help="A file, a trace of the archive or a generator, as for hpcgym simulate.",
        show_default=False,
    ),
]
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
PartOption = Annotated[
    str,
    typer.Option(
        metavar="train|test|all",
        help="Part of the workload in time to learn from; what is left is for hpcgym evaluate.",
    ),
]
EpisodesOption = Annotated[
    str,
    typer.Option(
        metavar="windows|weeks|months|whole",
        help="What an episode is: a window of jobs from anywhere, a week, a month, or all of the"
        " part.",
    ),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(metavar="M", help="How long to train.", show_default="30, without --steps"),
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many steps to train; alone, the same command gives the same agent.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Of the network, of exploration and of the episodes.")
]
ResumeOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Go on with this agent, with its rules.", show_default=False),
    Resumed(),
]
BackfillOption = Annotated[
    str | None,
    typer.Option(metavar="easy|none", help="With or without backfilling.", show_default="easy"),
]
BackfillOrderOption = Annotated[
    str | None,
    typer.Option(metavar="fcfs|sjbf|NAME", help="Order of backfilling.", show_default=False),
]
RewardOption = Annotated[
    str | None,
    typer.Option(metavar="bsld|wait|energy", help="What to learn from.", show_default="bsld"),
]
EnvsOption = Annotated[
    int, typer.Option("--envs", metavar="N", help="Environments side by side, in one batch.")
]
TensorboardOption = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Write TensorBoard's logs there.", show_default=False),
]


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
