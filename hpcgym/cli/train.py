"""``hpcgym train``: agents that learn to schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.agents import import_agent
from hpcgym.agents.settings import (
    CloneSettings,
    MaskablePpoSettings,
    PpoSettings,
    RecordSettings,
)
from hpcgym.cli import options
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import MachineReading, PoolReading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.cli.train_controls import TrainControls, train_controls
from hpcgym.cli.train_options import (
    CloneTraining,
    NetworkOption,
    RewardOption,
    TrainingOptions,
    policy_features,
)
from hpcgym.cli.train_pairs import TrainPairs, train_pairs
from hpcgym.cli.train_practice import (
    TrainJobPpo,
    TrainRuleEs,
    train_job_ppo,
    train_rule_es,
)
from hpcgym.cli.train_xnes import TrainXnes, train_xnes
from hpcgym.errors import HpcgymError, check_choice

train = typer.Typer(name="train", no_args_is_help=True, rich_markup_mode=None)


def _window_features() -> Iterable[tuple[str, str]]:
    from hpcgym.envs.core.options import WINDOW_FEATURES

    return WINDOW_FEATURES.items()


class _MaskablePpo(ExplainedCommand):
    examples = (
        "hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --minutes 30",
        "hpcgym train maskable-ppo --workload lublin --output agent.pt --seed 1",
        "hpcgym train maskable-ppo --workload lublin --output agent.pt --resume agent.pt",
        "hpcgym evaluate agent.pt --workload lublin",
    )
    lists: ClassVar[Lists] = {
        "What the network sees of each job": _window_features,
        "Cleaning recipes and filters (--clean)": options.recipes,
    }


class _Ppo(ExplainedCommand):
    examples = (
        "hpcgym train ppo --workload KTH-SP2 --episodes weeks --minutes 10",
        "hpcgym train ppo --workload KTH-SP2 --episodes weeks --interval week"
        " --policy-features requested,wait,area",
        "hpcgym evaluate ppo.pt --workload KTH-SP2 --episodes weeks",
    )
    lists: ClassVar[Lists] = {
        "Features to weigh (--policy-features)": policy_features,
        "Cleaning recipes and filters (--clean)": options.recipes,
    }


class _Clone(ExplainedCommand):
    examples = (
        "hpcgym train clone f1 --workload KTH-SP2 --backfill none",
        "hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --resume clone.pt",
        "hpcgym train clone --recording saf.npz",
    )
    lists: ClassVar[Lists] = {
        "Orders to clone": options.policies,
        "Cleaning recipes and filters (--clean)": options.recipes,
    }


class _Record(ExplainedCommand):
    examples = (
        "hpcgym train record saf --workload KTH-SP2 --output saf.npz",
        "hpcgym train record random easy saf --workload KTH-SP2 --format minari --output mixed-v0",
        "hpcgym train record saf --workload KTH-SP2 --env hpcgym/QueueOrdering-v0",
        "hpcgym train record pcp20 --workload eurora:days=30 --cluster eurora --allocation best-fit"
        " --number 5",
    )
    lists: ClassVar[Lists] = {
        "Orders to record": options.policies,
        "Dispatchers to record, without backfilling": options.dispatchers,
        "Machines (--cluster)": options.machines,
        "Cleaning recipes and filters (--clean)": options.recipes,
    }


@train.callback()
def _group() -> None:
    """Train agents that learn to schedule.

    An agent is one file, which hpcgym evaluate takes. The agents of xnes, controls, pairs and
    rule-es are a few weights. The others are networks and need PyTorch; all of these except job-ppo
    also need Stable-Baselines3, the extra "agents" of hpcgym. The files of
    maskable-ppo, ppo and clone are written every two minutes and at the end, also after Ctrl-C. A
    training that fails leaves its file unchanged.
    """


train.command("xnes", cls=TrainXnes)(train_xnes)
train.command("controls", cls=TrainControls)(train_controls)
train.command("pairs", cls=TrainPairs)(train_pairs)
train.command("job-ppo", cls=TrainJobPpo)(train_job_ppo)
train.command("rule-es", cls=TrainRuleEs)(train_rule_es)


@train.command("maskable-ppo", cls=_MaskablePpo)
@grouped
def train_maskable_ppo(
    *,
    workload: WorkloadOption,
    output: NetworkOption = Path("maskable-ppo.pt"),
    force: ForceOption = False,
    training: TrainingOptions,
    settings: MaskablePpoSettings,
    rules: options.PredictedRules,
    reservation: Annotated[
        str | None,
        typer.Option(
            metavar="revised|kept",
            help="Whether a selected job that does not fit may be exchanged for another until"
            " it starts.",
            show_default="revised",
            rich_help_panel="Experiment",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of jobs that are visible.",
            show_default="128",
            rich_help_panel="Experiment",
        ),
    ] = None,
    reward: RewardOption = None,
    reading: PoolReading,
) -> None:
    """Learn to select the next job, with MaskablePPO.

    A small network looks at each visible job and gives it a score; the job with the highest one
    starts next, or gets the reservation.
    """
    given = rules.given() | options.given(reservation=reservation, window=window, reward=reward)
    module = import_agent("maskable_ppo")
    training.train(module, reading.load(workload), output, env_options=given, **vars(settings))


@train.command("ppo", cls=_Ppo)
@grouped
def train_ppo(
    *,
    workload: WorkloadOption,
    output: NetworkOption = Path("ppo.pt"),
    force: ForceOption = False,
    training: TrainingOptions,
    settings: PpoSettings,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="pass|N|hour|6h|day|week|episode",
            help="How long weights hold; a number means submissions.",
            show_default="day",
            rich_help_panel="Experiment",
        ),
    ] = None,
    policy_features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Features to weigh.",
            show_default="processors,requested,wait,ratio,expansion,area",
            rich_help_panel="Experiment",
        ),
    ] = None,
    rules: options.WeighedRules,
    reward: RewardOption = None,
    reading: PoolReading,
) -> None:
    """Learn to set the weights of a mixed policy, with PPO.

    A network looks at the state once an interval, and sets how much each feature of a job counts
    for the order of the queue.
    """
    given = rules.given() | options.given(
        reward=reward,
        interval=int(interval) if interval is not None and interval.isdecimal() else interval,
        policy_features=None if policy_features is None else policy_features.split(","),
    )
    module = import_agent("ppo")
    training.train(module, reading.load(workload), output, env_options=given, **vars(settings))


#: Options of ``train clone`` that say what to record, and on what.
_OF_RECORDING = (
    *("order", "workload", "backfill"),
    *(
        field.name
        for field in (*fields(RecordSettings), *fields(PoolReading))
        if field.name != "seed"
    ),
)


@train.command("clone", cls=_Clone)
@grouped
def train_clone(
    *,
    context: typer.Context,
    order: Annotated[
        str | None,
        typer.Argument(
            metavar="ORDER",
            help="The order to clone; see the list.",
            show_default=False,
            autocompletion=options.complete_policies,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD",
            help="The workload to record on.",
            show_default=False,
            rich_help_panel="Workload",
        ),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|FOLDER",
            help="A recording of hpcgym train record, in place of an order and a workload.",
            show_default=False,
            rich_help_panel="Experiment",
        ),
    ] = None,
    output: NetworkOption = Path("clone.pt"),
    force: ForceOption = False,
    training: CloneTraining,
    settings: CloneSettings,
    backfill: options.BackfillOption = None,
    reading: PoolReading,
) -> None:
    """Train the network of maskable-ppo to select jobs as a known order does.

    A clone is a start for maskable-ppo, by its --resume.
    """
    if recording is None and (order is None or workload is None):
        raise HpcgymError("give either an order and --workload, or --recording")
    for option in context.command.params if recording is not None else ():
        given_by = context.get_parameter_source(str(option.name))
        if option.name in _OF_RECORDING and given_by is not None and given_by.name != "DEFAULT":
            called = "an order" if option.name == "order" else option.opts[0]
            raise HpcgymError(f"{called} does not go with --recording, which has been recorded")
    module = import_agent("behaviour_cloning")
    training.train(
        module, None if recording is not None else reading.load(str(workload)), output,
        baseline=order, recording=recording, **vars(settings),
        env_options=options.given(backfill=backfill),
    )  # fmt: skip


@train.command("record", cls=_Record)
@grouped
def record(
    *,
    orders: Annotated[
        list[str],
        typer.Argument(
            metavar="ORDER|DISPATCHER|random...",
            help="The orders to record; see the lists. Several play the same episodes one after"
            " the other.",
            show_default=False,
            autocompletion=options.complete_policies,
        ),
    ],
    workload: WorkloadOption,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="npz|minari",
            help="A file of arrays, or a folder that Minari reads, which needs pyarrow: the extra"
            ' "parquet".',
            rich_help_panel="Output",
        ),
    ] = "npz",
    output: Annotated[
        Path,
        typer.Option(
            metavar="FILE|FOLDER",
            help="File to write: NAME.npz, or for Minari NAME-v0.",
            rich_help_panel="Output",
        ),
        Written("recording", (".npz", *(f"-v{version}" for version in range(100)))),
    ] = Path("recording.npz"),
    force: ForceOption = False,
    env: Annotated[
        str, typer.Option(metavar="ID", help="The environment.", rich_help_panel="Experiment")
    ] = ("hpcgym/JobSelection-v0"),
    settings: RecordSettings,
    backfill: options.BackfillOption = None,
    reading: MachineReading,
) -> None:
    """Drive an environment by known orders, and write observations and actions.

    --allocation gives the jobs their nodes, whatever nodes a dispatcher names; best-fit is nearest
    to hcp19, pcp19 and pcp20. A data set for Minari names workload and machine, so that
    recover_environment can make the environment again.
    """
    check_choice("--format", form, ("npz", "minari"))
    if (form == "npz") != (output.suffix == ".npz"):
        named = "NAME.npz" if form == "npz" else "NAME-v0, -v1, ..."
        raise HpcgymError(f"--format {form} writes --output {named}, not {output}")
    machine = reading.machine
    given = options.given(backfill=backfill, allocation=reading.allocation)
    jobs: Any = reading.load(workload)
    where: Any = machine
    if form == "minari":  # of which the names are written; what is wrong has been said by now
        jobs, where = reading.named(workload)
    done = import_agent("recorder").record(
        orders, jobs, output, env_id=env, cluster=where, env_options=given, **vars(settings)
    )
    number = len(done.about["episodes"])
    note(f"wrote {len(done.actions):,} transitions of {number:,} episodes to {output}")
