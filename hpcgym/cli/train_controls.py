"""``hpcgym train controls``: a linear policy under limits of power or energy, found by search."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.agents.settings import ControlsSettings
from hpcgym.cli import limits, options
from hpcgym.cli.files import ForceOption
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import PoolReading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, Lists
from hpcgym.cli.train_options import WeightsOption, policy_features, tell_found, tell_tried


def _inputs() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.controls import INPUTS

    return [(name, f"{field}[{place}]") for name, (field, place) in INPUTS.items()]


class TrainControls(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym train controls --workload KTH-SP2 --share 0.6 --shutdown",
        "hpcgym train controls --workload KTH-SP2 --env PowerCap --controls frequency,power",
        "hpcgym evaluate controls.json reduce-pc+saf --workload KTH-SP2 --episodes weeks",
    )
    lists: ClassVar[Lists] = {
        "Inputs, and where they stand in the observation": _inputs,
        "Features to weigh (--policy-features)": policy_features,
    }
    brief: ClassVar[Lists] = {"Cleaning recipes and filters (--clean)": options.recipes}


@grouped
def train_controls(
    *,
    workload: WorkloadOption,
    output: WeightsOption = Path("controls.json"),
    force: ForceOption = False,
    env: Annotated[
        str,
        typer.Option(
            metavar="EnergyBudget|PowerCap", help="The environment.", rich_help_panel="Experiment"
        ),
    ] = "EnergyBudget",
    share: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="The budget or the cap, as a share of the energy or power with all nodes busy.",
            rich_help_panel="Power",
        ),
    ] = 0.6,
    shutdown: Annotated[
        bool,
        typer.Option(
            "--shutdown", help="Let EnergyBudget switch idle nodes off.", rich_help_panel="Power"
        ),
    ] = False,
    controls: Annotated[
        str,
        typer.Option(
            metavar="frequency,nodes,power",
            help="The controls that the agent sets, beside the queue.",
            rich_help_panel="Experiment",
        ),
    ] = "power",
    features: Annotated[
        str | None,
        typer.Option(
            "--policy-features",
            metavar="NAME,NAME",
            help="Features to weigh in the order of the queue; see the list. Empty: the queue"
            " is FCFS.",
            show_default="area,requested,processors,wait,expansion",
            rich_help_panel="Scheduler",
        ),
    ] = None,
    interval: Annotated[
        str,
        typer.Option(
            metavar="hour|day|...", help="How long controls hold.", rich_help_panel="Experiment"
        ),
    ] = "hour",
    joules: Annotated[
        float,
        typer.Option(
            metavar="W",
            help="Weight of the energy in the reward; bounded slowdown: 1.",
            rich_help_panel="Power",
        ),
    ] = 0.0,
    search: ControlsSettings,
    rules: options.BackfillRules,
    reading: PoolReading,
) -> None:
    """Search for controls of a machine under limits of power or energy, and an order of its queue.

    A control is a weighted sum of numbers such as what is left of the budget and how many jobs
    wait. Each vector of weights plays every other training episode; the episodes held back choose
    among the best. Needs no extra.
    """
    from hpcgym.agents import controls as module

    given = rules.given()
    env = f"hpcgym/{env.removeprefix('hpcgym/').removesuffix('-v0')}-v0"
    given |= {"controls": _names(controls), "interval": interval}
    given |= limits.of_environment(env, share, shutdown or None)
    given |= {"reward": {"bsld": 1.0, "energy": joules}} if joules else {}
    given |= {} if features is None else {"policy_features": _names(features)}
    agent = module.train(
        reading.load(workload), env=env, env_options=given, output=output, **vars(search),
        show=tell_tried(search.budget),
    )  # fmt: skip
    tell_found(agent.found, search.episodes, output)


def _names(text: str) -> list[str]:
    """Return names that are joined by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
