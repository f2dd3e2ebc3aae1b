"""``hpcgym train``: agents that learn to schedule."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.cli import names, options
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.cli.train_controls import TrainControls, train_controls
from hpcgym.cli.train_options import (
    BackfillOption,
    BackfillOrderOption,
    EnvsOption,
    EpisodesOption,
    MinutesOption,
    NetworkOption,
    PartOption,
    ResumeOption,
    RewardOption,
    SeedOption,
    StepsOption,
    TensorboardOption,
    WorkloadOption,
    policy_features,
)
from hpcgym.cli.train_pairs import TrainPairs, train_pairs
from hpcgym.cli.train_xnes import TrainXnes, train_xnes
from hpcgym.errors import HpcgymError
from hpcgym.progress import say

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
        "Cleaning recipes and filters (--clean)": names.recipes,
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
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


class _Clone(ExplainedCommand):
    examples = (
        "hpcgym train clone f1 --workload KTH-SP2 --backfill none",
        "hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --resume clone.pt",
        "hpcgym train clone --recording saf.npz",
    )
    lists: ClassVar[Lists] = {
        "Orders to clone": names.policies,
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


class _Record(ExplainedCommand):
    examples = (
        "hpcgym train record saf --workload KTH-SP2 --output saf.npz",
        "hpcgym train record saf --workload KTH-SP2 --env hpcgym/QueueOrdering-v0",
        "hpcgym train record pcp20 --workload eurora:days=30 --cluster eurora --allocation best-fit"
        " --number 5",
    )
    lists: ClassVar[Lists] = {
        "Orders to record": names.policies,
        "Dispatchers to record, without backfilling": names.dispatchers,
        "Machines (--cluster)": names.machines,
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


@train.callback()
def _group() -> None:
    """Train agents that learn to schedule.

    An agent is one file, which hpcgym evaluate takes. Those of xnes, controls and pairs are a few
    weights. The others are networks, which need PyTorch and Stable-Baselines3, the extra "agents"
    of hpcgym; their files are written every two minutes and at the end, also after Ctrl-C. A
    training that fails leaves its file as it was.
    """


train.command("xnes", cls=TrainXnes)(train_xnes)
train.command("controls", cls=TrainControls)(train_controls)
train.command("pairs", cls=TrainPairs)(train_pairs)


@train.command("maskable-ppo", cls=_MaskablePpo)
def train_maskable_ppo(
    workload: WorkloadOption,
    output: NetworkOption = Path("maskable-ppo.pt"),
    force: ForceOption = False,
    minutes: MinutesOption = None,
    steps: StepsOption = None,
    seed: SeedOption = 0,
    resume: ResumeOption = None,
    part: PartOption = "train",
    train_share: options.TrainShareOption = 0.5,
    episodes: EpisodesOption = "windows",
    jobs: options.JobsOption = 256,
    backfill: BackfillOption = None,
    backfill_order: BackfillOrderOption = None,
    estimate: options.EstimateOption = None,
    policy_estimate: options.PolicyEstimateOption = None,
    reservation: Annotated[
        str | None,
        typer.Option(
            metavar="revised|kept",
            help="Whether a job that does not fit may be exchanged for another until it starts.",
            show_default="revised",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of jobs that are visible.", show_default="128"),
    ] = None,
    reward: RewardOption = None,
    envs: EnvsOption = 32,
    tensorboard: TensorboardOption = None,
    clean: options.CleanOption = "default",
    processors: options.ProcessorsOption = None,
    errors: options.ErrorsOption = "raise",
) -> None:
    """Learn to select the next job, with MaskablePPO.

    A small network looks at each visible job and gives it a score; the job with the highest one
    starts next, or gets the reservation.
    """
    rules = options.given(
        backfill=backfill, backfill_order=backfill_order, estimate=estimate,
        policy_estimate=policy_estimate,
        reservation=reservation, window=window, reward=reward,
    )  # fmt: skip
    learning = {"n_envs": envs, "episodes": episodes, "jobs": jobs, "part": part}
    _train(
        "maskable_ppo", (workload, clean, processors, errors), output, minutes, steps,
        env_options=rules, seed=seed, resume=resume, train_share=train_share,
        tensorboard=tensorboard, **learning,
    )  # fmt: skip


@train.command("ppo", cls=_Ppo)
def train_ppo(
    workload: WorkloadOption,
    output: NetworkOption = Path("ppo.pt"),
    force: ForceOption = False,
    minutes: MinutesOption = None,
    steps: StepsOption = None,
    seed: SeedOption = 0,
    resume: ResumeOption = None,
    part: PartOption = "train",
    train_share: options.TrainShareOption = 0.5,
    episodes: EpisodesOption = "windows",
    jobs: options.JobsOption = 256,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="pass|N|hour|6h|day|week|episode",
            help="What weights hold for; a number is one of submissions.",
            show_default="day",
        ),
    ] = None,
    policy_features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="What is weighed.",
            show_default="processors,requested,wait,ratio,expansion,area",
        ),
    ] = None,
    backfill: BackfillOption = None,
    backfill_order: BackfillOrderOption = None,
    estimate: options.EstimateOption = None,
    policy_estimate: options.PolicyEstimateOption = None,
    threshold: options.ThresholdOption = None,
    fair_share: options.FairShareOption = None,
    reward: RewardOption = None,
    envs: EnvsOption = 32,
    tensorboard: TensorboardOption = None,
    clean: options.CleanOption = "default",
    processors: options.ProcessorsOption = None,
    errors: options.ErrorsOption = "raise",
) -> None:
    """Learn to set the weights of a mixed policy, with PPO.

    A network looks at the state once an interval, and sets how much each feature of a job counts
    for the order of the queue.
    """
    rules = options.given(
        backfill=backfill, backfill_order=backfill_order, estimate=estimate,
        policy_estimate=policy_estimate, threshold=threshold,
        fair_share=fair_share, reward=reward,
        interval=int(interval) if interval is not None and interval.isdecimal() else interval,
        policy_features=None if policy_features is None else policy_features.split(","),
    )  # fmt: skip
    learning = {"n_envs": envs, "episodes": episodes, "jobs": jobs, "part": part}
    _train(
        "ppo", (workload, clean, processors, errors), output, minutes, steps,
        env_options=rules, seed=seed, resume=resume, train_share=train_share,
        tensorboard=tensorboard, **learning,
    )  # fmt: skip


#: Options of ``train clone`` that say what to record, and on what.
_OF_RECORDING = (
    *("order", "workload", "number", "part", "train_share", "episodes", "jobs", "backfill"),
    *("clean", "processors", "errors"),
)


@train.command("clone", cls=_Clone)
def train_clone(
    context: typer.Context,
    order: Annotated[
        str | None,
        typer.Argument(metavar="ORDER", help="What to clone; see the list.", show_default=False),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="WORKLOAD", help="What to record on.", show_default=False),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What hpcgym train record wrote, instead of an order and a workload.",
            show_default=False,
        ),
    ] = None,
    output: NetworkOption = Path("clone.pt"),
    force: ForceOption = False,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="How long to train.", show_default=False)
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many batches to train.", show_default="2000, without --minutes"
        ),
    ] = None,
    seed: SeedOption = 0,
    resume: ResumeOption = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", help="Number of episodes to record.")
    ] = 20,
    part: PartOption = "train",
    train_share: options.TrainShareOption = 0.5,
    episodes: EpisodesOption = "windows",
    jobs: options.JobsOption = 256,
    backfill: BackfillOption = None,
    tensorboard: TensorboardOption = None,
    clean: options.CleanOption = "default",
    processors: options.ProcessorsOption = None,
    errors: options.ErrorsOption = "raise",
) -> None:
    """Train the network of maskable-ppo to select jobs as a known order does.

    A clone is a start for maskable-ppo, by its --resume.
    """
    if recording is None and (order is None or workload is None):
        raise HpcgymError("give either an order and --workload, or --recording")
    for name in _OF_RECORDING if recording is not None else ():
        source_of = context.get_parameter_source(name)
        if source_of is not None and source_of.name != "DEFAULT":
            option = "an order" if name == "order" else f"--{name.replace('_', '-')}"
            raise HpcgymError(f"{option} does not go with --recording, which has been recorded")
    source = (workload, clean, processors, errors)
    if minutes is None and steps is None:
        steps = 2000
    _train(
        "behaviour_cloning", source if recording is None else None, output, minutes, steps,
        baseline=order, recording=recording, record_episodes=number, seed=seed, resume=resume,
        part=part, train_share=train_share, episodes=episodes, jobs=jobs,
        env_options=options.given(backfill=backfill), tensorboard=tensorboard,
    )  # fmt: skip


@train.command("record", cls=_Record)
def record(
    order: Annotated[
        str,
        typer.Argument(
            metavar="ORDER|DISPATCHER", help="What to record; see the lists.", show_default=False
        ),
    ],
    workload: WorkloadOption,
    output: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File to write: .npz."),
        Written("recording", (".npz",)),
    ] = Path("recording.npz"),
    force: ForceOption = False,
    env: Annotated[str, typer.Option(metavar="ID", help="The environment.")] = (
        "hpcgym/JobSelection-v0"
    ),
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", help="Number of episodes.")
    ] = 20,
    seed: SeedOption = 0,
    part: PartOption = "train",
    train_share: options.TrainShareOption = 0.5,
    episodes: EpisodesOption = "windows",
    jobs: options.JobsOption = 256,
    backfill: BackfillOption = None,
    clean: options.CleanOption = "default",
    processors: options.ProcessorsOption = None,
    cluster: options.ClusterOption = None,
    allocation: options.AllocationOption = None,
    unfit: options.UnfitOption = "raise",
    errors: options.ErrorsOption = "raise",
) -> None:
    """Drive an environment by a known order, and write observations and actions into a file.

    Jobs get their nodes by --allocation, whatever nodes a dispatcher names: best-fit is nearest to
    hcp19, pcp19 and pcp20.
    """
    machine = options.machine(cluster, processors, allocation)
    module = _module("behaviour_cloning")
    jobs_of = options.load(workload, clean, processors, errors, None, None, machine, unfit)
    done = module.record(
        order, jobs_of, output, env_id=env, record_episodes=number, seed=seed, part=part,
        train_share=train_share, episodes=episodes, jobs=jobs, cluster=machine,
        env_options=options.given(backfill=backfill, allocation=allocation),
    )  # fmt: skip
    note(f"wrote {len(done.actions):,} transitions of {number:,} episodes to {output}")


def _train(
    agent: str,
    source: tuple[Any, str, int | None, str] | None,
    output: Path,
    minutes: float | None,
    steps: int | None,
    **arguments: Any,
) -> None:
    """Train an agent, and say where it is."""
    if minutes is None and steps is None:
        minutes = 30.0
    module = _module(agent)
    workload = None if source is None else options.load(*source, None, None)
    before = output.stat().st_mtime if output.exists() else None
    try:
        module.train(
            workload,
            minutes=minutes,
            steps=steps,
            output=output,
            show=say,
            **arguments,
        )
    except KeyboardInterrupt:
        if output.exists() and output.stat().st_mtime != before:
            note(f"\nwrote {output}; --resume {output} goes on with it")
        raise
    note(f"\nwrote {output}; hpcgym evaluate {output} --workload ... compares it")


def _module(agent: str) -> Any:
    """Return the module of an agent."""
    from hpcgym.agents import import_agent

    return import_agent(agent)
