"""``hpcgym train job-ppo | rule-es``: agents of one file, on the vector environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.agents import TRAINED, import_agent
from hpcgym.agents.settings import (
    JobPpoSettings,
    PracticeSettings,
    RuleEsSettings,
)
from hpcgym.cli import options
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import PoolReading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.cli.train_options import NetworkOption, WeightsOption
from hpcgym.errors import check_choice
from hpcgym.progress import say


class TrainJobPpo(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym train job-ppo --workload KTH-SP2 --steps 200000",
        "hpcgym train job-ppo --workload KTH-SP2 --env QueueOrdering --log ppo.csv",
        "hpcgym evaluate job-ppo.pt --workload KTH-SP2",
    )
    brief: ClassVar[Lists] = {"Cleaning recipes and filters (--clean)": options.recipes}


class TrainRuleEs(ExplainedCommand):
    """The same of the evolution strategy."""

    examples = (
        "hpcgym train rule-es --workload KTH-SP2",
        "hpcgym train rule-es --workload KTH-SP2 --env QueueOrdering",
        "hpcgym suite run --agent rule-es --tasks mini --output es",
    )
    brief: ClassVar[Lists] = TrainJobPpo.brief


@dataclass(frozen=True)
class Logs:
    """Where the numbers of a training go."""

    panel: ClassVar[str] = "Output"

    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the numbers as a table, a row for each line shown.",
            show_default=False,
        ),
        Written("table", (".csv",)),
    ] = None
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write TensorBoard's logs there.", show_default=False),
    ] = None
    wandb: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT", help="Send the numbers to Weights & Biases.", show_default=False
        ),
    ] = None

    def opened(self) -> Any:
        """Return the log that tells them all, and shows a line."""
        from hpcgym.agents import logs

        made = [None if self.log is None else logs.csv_log(self.log)]
        if self.tensorboard is not None:
            made.append(logs.tensorboard_log(self.tensorboard))
        if self.wandb is not None:
            made.append(logs.wandb_log(project=self.wandb))
        return logs.joined(_show, *made)


def _show(steps: int, values: Mapping[str, float]) -> None:
    shown = "  ".join(f"{key.partition('/')[2]} {value:.4g}" for key, value in values.items())
    say(f"{steps:,} steps  {shown}")


@grouped
def train_job_ppo(
    *,
    workload: WorkloadOption,
    output: NetworkOption = Path("job-ppo.pt"),
    force: ForceOption = False,
    env: Annotated[
        str,
        typer.Option(
            metavar="JobSelection|QueueOrdering",
            help="The environment, its v1.",
            rich_help_panel="Experiment",
        ),
    ] = "JobSelection",
    practice: PracticeSettings,
    settings: JobPpoSettings,
    logs: Logs,
    rules: options.PredictedRules,
    reading: PoolReading,
) -> None:
    """Learn to select the next job, or to order the queue, with masked PPO of one file.

    The training starts from the best of a few known orders. It keeps the agent that is best on a
    part of the jobs set apart for choosing.
    """
    _train("job-ppo", reading, workload, output, env, practice, vars(settings), logs, rules.given())


@grouped
def train_rule_es(
    *,
    workload: WorkloadOption,
    output: WeightsOption = Path("rule-es.json"),
    force: ForceOption = False,
    env: Annotated[
        str,
        typer.Option(
            metavar="MixedPolicy|QueueOrdering|JobSelection",
            help="The environment, its v1.",
            rich_help_panel="Experiment",
        ),
    ] = "MixedPolicy",
    practice: PracticeSettings,
    settings: RuleEsSettings,
    logs: Logs,
    rules: options.PredictedRules,
    reading: PoolReading,
) -> None:
    """Search weights that depend on the state of machine and queue, with an evolution strategy.

    The training starts from the best constant weights of a random search. It keeps the weights that
    are best on a part of the jobs set apart for choosing. Needs no extra.
    """
    _train("rule-es", reading, workload, output, env, practice, vars(settings), logs, rules.given())


def _train(
    name: str, reading: PoolReading, workload: str, output: Path, env: str,
    practice: PracticeSettings, settings: Mapping[str, Any], logs: Logs, given: Mapping[str, Any],
) -> None:  # fmt: skip
    """Train an agent, and write it; what it needs is asked for before the workload is read."""
    env = env.removeprefix("hpcgym/").removesuffix("-v1")
    check_choice("--env", env, ("JobSelection", "QueueOrdering", "MixedPolicy"))
    module, kind = TRAINED[name]
    agent = getattr(import_agent(module), kind)(**settings)
    jobs = reading.load(workload)
    options = {"jobs": practice.jobs, **given}
    make = import_agent("practice").maker(jobs, f"hpcgym/{env}-v1", options, practice.train_share)
    note("trying what to begin with, on the part of the jobs that is set apart for choosing")
    try:
        agent.train(make, practice.seed, practice.steps, logs.opened())
    except KeyboardInterrupt:
        if agent.keep_best():
            agent.save(output)
            note(f"\nwrote {output}, the best so far; the training cannot go on from it")
        else:
            note("\nnothing is written: no agent was chosen yet")
        raise
    agent.save(output)
    note(f"\nwrote {output}; hpcgym evaluate {output} --workload ... compares it")
