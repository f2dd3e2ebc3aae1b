"""``hpcgym train pairs``: a linear policy that says which job starts beside which."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.agents.settings import PairsSettings
from hpcgym.cli import options
from hpcgym.cli.files import ForceOption
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import Reading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.cli.train_options import WeightsOption, tell_found, tell_tried


def _inputs() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.coschedule import INPUTS

    return [(name, "") for name in INPUTS]


class TrainPairs(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym train pairs --workload codes:jobs=20000,processes=96,processors=768"
        " --cluster 16x2x24 --reward throughput",
        "hpcgym evaluate pairs.json --workload codes:jobs=20000,processes=96,processors=768,seed=1",
    )
    lists: ClassVar[Lists] = {
        "What is weighed": _inputs,
        "Cleaning recipes and filters (--clean)": options.recipes,
    }


@grouped
def train_pairs(
    *,
    workload: WorkloadOption,
    output: WeightsOption = Path("pairs.json"),
    force: ForceOption = False,
    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|generated:...",
            help="How fast codes run beside each other.",
            show_default="generated",
            rich_help_panel="Shared nodes",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE|NxSxC",
            help="A machine of equal nodes.",
            show_default="16x2x24",
            rich_help_panel="Machine",
        ),
    ] = None,
    allocation: Annotated[
        str,
        typer.Option(
            metavar="half-socket|part:K",
            help="Which part of its nodes a job takes.",
            rich_help_panel="Machine",
        ),
    ] = "half-socket",
    reward: Annotated[
        str,
        typer.Option(
            metavar="bsld|wait|throughput|energy",
            help="The reward to maximise.",
            rich_help_panel="Experiment",
        ),
    ] = "bsld",
    window: Annotated[
        int,
        typer.Option(
            metavar="N", help="How many waiting jobs the agent sees.", rich_help_panel="Experiment"
        ),
    ] = 64,
    neighbours: Annotated[
        int,
        typer.Option(
            metavar="N", help="How many running jobs it can name.", rich_help_panel="Experiment"
        ),
    ] = 16,
    search: PairsSettings,
    reading: Reading,
) -> None:
    """Search for a policy that says which job starts beside which, where jobs share nodes.

    The score of a pair is a weighted sum of its speedups, of times and of sizes. Each vector of
    weights plays half of the training episodes; the other half chooses among the best. Needs no
    extra.
    """
    from hpcgym.agents import coschedule as module

    given = options.given(
        speedups=speedups, cluster=cluster, allocation=allocation, reward=reward, window=window,
        neighbours=neighbours,
    )  # fmt: skip
    agent = module.train(
        reading.load(workload), env_options=given, output=output, **vars(search),
        show=tell_tried(search.budget),
    )  # fmt: skip
    tell_found(agent.found, search.episodes, output)
