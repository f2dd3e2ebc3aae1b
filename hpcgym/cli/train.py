"""``hpcgym train``: agents that learn to schedule, and recordings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hpcgym.agents import TRAINED, import_agent
from hpcgym.agents.settings import (
    METHODS,
    CloneSettings,
    EpisodeSettings,
    JobPpoSettings,
    MaskablePpoSettings,
    PracticeSettings,
    RecordSettings,
    RuleEsSettings,
    XnesSettings,
)
from hpcgym.cli import names, options
from hpcgym.cli.files import Resumed, Written
from hpcgym.cli.groups import Lists, grouped
from hpcgym.cli.loading import MachineReading, PoolReading, WorkloadOption
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.progress import SHOW_S, say

train = typer.Typer(name="train", no_args_is_help=True, rich_markup_mode=None)

_CLEANING: Lists = {"Cleaning recipes and filters (--clean)": names.recipes}
_PT, _JSON = (Written("file of an agent", (ending,)) for ending in (".pt", ".json"))


@train.callback()
def _group() -> None:
    """Train agents that learn to schedule.

    An agent is one file, which hpcgym evaluate takes. The agents of xnes and rule-es are a few
    weights. The others are networks and need PyTorch; all of these except job-ppo also need
    Stable-Baselines3, the extra "agents" of hpcgym. The files of maskable-ppo and clone are written
    every two minutes and at the end, also after Ctrl-C. A training that fails leaves its file
    unchanged.
    """


def _told_where(output: Path) -> None:
    note(f"\nwrote {output}; hpcgym evaluate {output} --workload ... compares it")


# --- What agents are told beside their settings ---------------------------------------------------


@dataclass(frozen=True)
class _Slices(EpisodeSettings):
    """What vectors are tried on.

    Experiment
    ----------
    episodes windows|weeks|months|whole : What a slice is: a window of jobs from anywhere, a week, a
        month, or all of the part.
    number N : Number of slices, chosen at random. [default: 100 windows, all weeks or months]
    """

    episodes: str = "weeks"
    number: Annotated[int | None, typer.Option("--number", "-n")] = None


@dataclass(frozen=True)
class _Selection:
    """How jobs are selected, and what for.

    Experiment
    ----------
    reservation revised|kept : Whether a selected job that does not fit may be exchanged for another
        until it starts. [default: revised]
    window N : Number of jobs that are visible. [default: 128]
    reward bsld|wait|energy : The reward to learn from. [default: bsld]
    """

    reservation: str | None = None
    window: int | None = None
    reward: str | None = None


@dataclass(frozen=True)
class _Training:
    """How long a network is trained, and what becomes of it on the way.

    Experiment
    ----------
    minutes M : How long to train. [default: 30, without --steps]
    steps N : How many steps to train; without --minutes, the same command gives the same agent.
    resume FILE : Go on with this agent, with its rules.

    Output
    ------
    tensorboard FOLDER : Write TensorBoard's logs there.
    """

    minutes: float | None = None
    steps: int | None = None
    resume: Annotated[Path | None, Resumed()] = None
    tensorboard: Path | None = None

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
        _told_where(output)


@dataclass(frozen=True)
class _CloneTraining(_Training):
    """The same of a clone, which is trained by batches.

    Experiment
    ----------
    minutes M : How long to train.
    steps N : How many batches to train. [default: 2000, without --minutes]
    """

    usual: ClassVar[Mapping[str, float]] = {"steps": 2000}


@dataclass(frozen=True)
class _Logs:
    """Where the numbers of a training go.

    Output
    ------
    log FILE : Write the numbers as a table, a row for each line shown.
    tensorboard FOLDER : Write TensorBoard's logs there.
    wandb PROJECT : Send the numbers to Weights & Biases.
    """

    log: Annotated[Path | None, Written("table", (".csv",))] = None
    tensorboard: Path | None = None
    wandb: str | None = None

    def opened(self) -> Any:
        """Return the log that tells them all, and shows a line."""
        from hpcgym.agents import practice

        made = [None if self.log is None else practice.csv_log(self.log)]
        if self.tensorboard is not None:
            made.append(practice.tensorboard_log(self.tensorboard))
        if self.wandb is not None:
            made.append(practice.wandb_log(project=self.wandb))
        return practice.joined(_show, *made)


def _show(steps: int, values: Mapping[str, float]) -> None:
    shown = "  ".join(f"{key.partition('/')[2]} {value:.4g}" for key, value in values.items())
    say(f"{steps:,} steps  {shown}")


# --- How they learn -------------------------------------------------------------------------------


def _feature_sets() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.search import FEATURE_SETS

    sets = [(name, ", ".join(features)) for name, features in FEATURE_SETS.items()]
    return [*sets, *names.policy_features()]


@train.command("xnes", cls=ExplainedCommand)
@grouped(
    {"Methods (--method)": METHODS.items, "Features to weigh (--features)": _feature_sets},
    brief=_CLEANING,
)
def train_xnes(
    *,
    workload: WorkloadOption,
    output: Annotated[Path, _JSON] = Path("xnes.json"),
    force: bool = False,
    features: str = "xnes6",
    settings: XnesSettings,
    episodes: _Slices,
    rules: options.WeighedRules,
    reading: PoolReading,
) -> None:
    """Search for the weights of a mixed policy that are best on training slices.

    Thousands of simulations a second try weight vectors on all slices; XNES then looks near the
    best ones. Needs no extra. An interrupted search leaves FILE.checkpoint, and the same command
    goes on from there.

    Output
    ------
    output FILE : File of the agent.

    Experiment
    ----------
    features xnes3|xnes6|NAME,NAME : Features to weigh; see the list.

    Examples
    --------
    hpcgym train xnes --workload KTH-SP2 --clean legrand
    hpcgym train xnes --workload KTH-SP2 --features xnes3 --budget 2000 --seed 1
    hpcgym train xnes --workload trace.swf.gz --episodes windows --features area,wait,f1
    hpcgym evaluate xnes.json --workload KTH-SP2 --clean legrand --episodes weeks
    """
    from hpcgym.agents.xnes import Xnes
    from hpcgym.envs.core.episodes import Episodes
    from hpcgym.scheduler.asked_for import check_fair_share, counts_usage
    from hpcgym.scheduler.rules import Scheduler

    agent = Xnes(features, scheduler=Scheduler(**rules.given()), **vars(settings))
    check_fair_share(rules.fair_share, counts_usage(agent.rules, agent.features))
    offered = Episodes(reading.load(workload), **episodes.of_episodes())
    number = offered.usual if episodes.number is None else episodes.number
    slices = [offered.workload_of(one) for one in offered.named(number, settings.seed)]
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    show = _shower(settings.budget, len(slices), settings.metric)
    try:
        agent.fit(slices, checkpoint=checkpoint, progress=show)
    except KeyboardInterrupt:
        if checkpoint.exists():
            note(f"\nwrote {checkpoint}; the same command goes on from there")
        raise
    agent.save(output)
    weights = ", ".join(f"{weight:.3g} {name}" for name, weight in agent.weights_.items())
    found = f"{settings.metric} {agent.best_:.4g} on {len(slices)} {episodes.episodes}"
    note(f"\n{found} with {weights}")
    _told_where(output)


def _shower(budget: int, n_slices: int, metric: str) -> Callable[[int, float], None]:
    """Return what shows how far a search is, every now and then."""
    begin = shown = 0.0
    before = 0

    def show(done: int, best: float) -> None:
        nonlocal begin, shown, before
        now = time.monotonic()
        rate = ""
        if not before:  # the first vectors tell of no rate
            begin, before = now, done
        elif now - shown < SHOW_S and done < budget:
            return
        else:
            each = (now - begin) / (done - before)
            rate = f"{n_slices / max(each, 1e-9):,.0f} simulations/s  "
            rate += f"{each * (budget - done):,.0f} s left  "
        shown = now
        text = f"{done / budget:4.0%}  {done:,} of {budget:,} vectors on {n_slices:,} slices  "
        say(f"{text}{rate}best {metric} {best:.4g}")

    return show


@dataclass(frozen=True, kw_only=True)
class _Practice:
    """How an agent of one file is trained."""

    workload: WorkloadOption
    practice: PracticeSettings
    logs: _Logs
    rules: options.PredictedRules
    reading: PoolReading

    def train(self, name: str, env: str, settings: Any, output: Path) -> None:
        """Train an agent; what it needs is asked for before the workload is read."""
        env = env.removeprefix("hpcgym/").removesuffix("-v1")
        check_choice("--env", env, ("JobSelection", "QueueOrdering", "MixedPolicy"))
        module, kind = TRAINED[name]
        agent = getattr(import_agent(module), kind)(**vars(settings))
        jobs, told = self.reading.load(self.workload), self.practice
        given = {"jobs": told.jobs, **self.rules.given()}
        make = import_agent("practice").maker(jobs, f"hpcgym/{env}-v1", given, told.train_share)
        note("trying what to begin with, on the part of the jobs that is set apart for choosing")
        try:
            agent.train(make, told.seed, told.steps, self.logs.opened())
        except KeyboardInterrupt:
            if agent.keep_best():
                agent.save(output)
                note(f"\nwrote {output}, the best so far; the training cannot go on from it")
            else:
                note("\nnothing is written: no agent was chosen yet")
            raise
        agent.save(output)
        _told_where(output)


@train.command("job-ppo", cls=ExplainedCommand)
@grouped(brief=_CLEANING)
def train_job_ppo(
    *,
    output: Annotated[Path, _PT] = Path("job-ppo.pt"),
    force: bool = False,
    env: str = "JobSelection",
    practice: _Practice,
    settings: JobPpoSettings,
) -> None:
    """Learn to select the next job, or to order the queue, with masked PPO of one file.

    The training starts from the best of a few known orders. It keeps the agent that is best on
    a part of the jobs set apart for choosing.

    Output
    ------
    output FILE : File of the agent.

    Experiment
    ----------
    env JobSelection|QueueOrdering : The environment, its v1.

    Examples
    --------
    hpcgym train job-ppo --workload KTH-SP2 --steps 200000
    hpcgym train job-ppo --workload KTH-SP2 --env QueueOrdering --log ppo.csv
    hpcgym evaluate job-ppo.pt --workload KTH-SP2
    """
    practice.train("job-ppo", env, settings, output)


@train.command("rule-es", cls=ExplainedCommand)
@grouped(brief=_CLEANING)
def train_rule_es(
    *,
    output: Annotated[Path, _JSON] = Path("rule-es.json"),
    force: bool = False,
    env: str = "MixedPolicy",
    practice: _Practice,
    settings: RuleEsSettings,
) -> None:
    """Search weights that depend on the state of machine and queue, with an evolution strategy.

    The training starts from the best constant weights of a random search. It keeps the weights
    that are best on a part of the jobs set apart for choosing. Needs no extra.

    Output
    ------
    output FILE : File of the agent.

    Experiment
    ----------
    env MixedPolicy|QueueOrdering|JobSelection : The environment, its v1.

    Examples
    --------
    hpcgym train rule-es --workload KTH-SP2
    hpcgym train rule-es --workload KTH-SP2 --env QueueOrdering
    hpcgym suite run --agent rule-es --tasks mini --output es
    """
    practice.train("rule-es", env, settings, output)


def _window_features() -> Iterable[tuple[str, str]]:
    from hpcgym.envs.core.observation import WINDOW_FEATURES

    return WINDOW_FEATURES.items()


@train.command("maskable-ppo", cls=ExplainedCommand)
@grouped({"What the network sees of each job": _window_features, **_CLEANING})
def train_maskable_ppo(
    *,
    workload: WorkloadOption,
    output: Annotated[Path, _PT] = Path("maskable-ppo.pt"),
    force: bool = False,
    training: _Training,
    settings: MaskablePpoSettings,
    rules: options.PredictedRules,
    own: _Selection,
    reading: PoolReading,
) -> None:
    """Learn to select the next job, with MaskablePPO.

    A small network looks at each visible job and gives it a score; the job with the highest one
    starts next, or gets the reservation.

    Output
    ------
    output FILE : File of the agent.

    Examples
    --------
    hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --minutes 30
    hpcgym train maskable-ppo --workload lublin --output agent.pt --seed 1
    hpcgym train maskable-ppo --workload lublin --output agent.pt --resume agent.pt
    hpcgym evaluate agent.pt --workload lublin
    """
    given = rules.given() | options.given(**vars(own))
    module = import_agent("maskable_ppo")
    training.train(module, reading.load(workload), output, env_options=given, **vars(settings))


# --- What policies do -----------------------------------------------------------------------------


#: Options of ``train clone`` that say what to record, and on what.
_OF_RECORDING = (
    *("order", "workload", "backfill"),
    *(
        field.name
        for field in (*fields(RecordSettings), *fields(PoolReading))
        if field.name != "seed"
    ),
)


@train.command("clone", cls=ExplainedCommand)
@grouped({"Orders to clone": names.policies, **_CLEANING})
def train_clone(
    *,
    context: typer.Context,
    order: Annotated[str | None, typer.Argument()] = None,
    workload: str | None = None,
    recording: Path | None = None,
    output: Annotated[Path, _PT] = Path("clone.pt"),
    force: bool = False,
    training: _CloneTraining,
    settings: CloneSettings,
    rules: options.Backfilling,
    reading: PoolReading,
) -> None:
    """Train the network of maskable-ppo to select jobs as a known order does.

    A clone is a start for maskable-ppo, by its --resume.

    Arguments
    ---------
    order ORDER : The order to clone; see the list.

    Workload
    --------
    workload WORKLOAD : The workload to record on.

    Experiment
    ----------
    recording FILE|FOLDER : A recording of hpcgym train record, in place of an order and a workload.

    Output
    ------
    output FILE : File of the agent.

    Examples
    --------
    hpcgym train clone f1 --workload KTH-SP2 --backfill none
    hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --resume clone.pt
    hpcgym train clone --recording saf.npz
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
        env_options=options.given(**vars(rules)),
    )  # fmt: skip


@train.command("record", cls=ExplainedCommand)
@grouped(
    {
        "Orders to record": names.policies,
        "Dispatchers to record, without backfilling": names.dispatchers,
        "Machines (--cluster)": names.machines,
        **_CLEANING,
    }
)
def record(
    *,
    orders: list[str],
    workload: WorkloadOption,
    form: Annotated[str, typer.Option("--format")] = "npz",
    output: Annotated[
        Path, Written("recording", (".npz", *(f"-v{version}" for version in range(100))))
    ] = Path("recording.npz"),
    force: bool = False,
    env: str = "hpcgym/JobSelection-v0",
    settings: RecordSettings,
    rules: options.Backfilling,
    reading: MachineReading,
) -> None:
    """Drive an environment by known orders, and write observations and actions.

    --allocation gives the jobs their nodes, whatever nodes a dispatcher names; best-fit is nearest
    to hcp19, pcp19 and pcp20. A data set for Minari names workload and machine, so that
    recover_environment can make the environment again.

    Arguments
    ---------
    orders ORDER|DISPATCHER|random... : The orders to record; see the lists. Several play the same
        episodes one after the other.

    Output
    ------
    form npz|minari : A file of arrays, or a folder that Minari reads, which needs pyarrow: the
        extra "parquet".
    output FILE|FOLDER : File to write: NAME.npz, or for Minari NAME-v0.

    Experiment
    ----------
    env ID : The environment.

    Examples
    --------
    hpcgym train record saf --workload KTH-SP2 --output saf.npz
    hpcgym train record random easy saf --workload KTH-SP2 --format minari --output mixed-v0
    hpcgym train record saf --workload KTH-SP2 --env hpcgym/QueueOrdering-v0
    hpcgym train record pcp20 --workload eurora:days=30 --cluster eurora --allocation best-fit
        --number 5
    """
    check_choice("--format", form, ("npz", "minari"))
    if (form == "npz") != (output.suffix == ".npz"):
        named = "NAME.npz" if form == "npz" else "NAME-v0, -v1, ..."
        raise HpcgymError(f"--format {form} writes --output {named}, not {output}")
    machine = reading.machine
    given = options.given(**vars(rules), allocation=reading.allocation)
    jobs: Any = reading.load(workload)
    where: Any = machine
    if form == "minari":  # of which the names are written; what is wrong has been said by now
        jobs, where = reading.named(workload)
    done = import_agent("recordings").record(
        orders, jobs, output, env_id=env, cluster=where, env_options=given, **vars(settings)
    )
    number = len(done.about["episodes"])
    note(f"wrote {len(done.actions):,} transitions of {number:,} episodes to {output}")
