"""``hpcgym train``: agents that learn to schedule, one of :data:`AGENTS` each, and recordings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, make_dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import typer

from hpcgym.agents import TRAINED, ending_of, import_agent
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
from hpcgym.cli import options
from hpcgym.cli.files import ForceOption, Resumed, Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.loading import MachineReading, PoolReading, WorkloadOption
from hpcgym.cli.options import NumberOption, policy_features
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.progress import SHOW_S, say

train = typer.Typer(name="train", no_args_is_help=True, rich_markup_mode=None)

_CLEANING: Lists = {"Cleaning recipes and filters (--clean)": options.recipes}


@train.callback()
def _group() -> None:
    """Train agents that learn to schedule.

    An agent is one file, which hpcgym evaluate takes. The agents of xnes and rule-es are a few
    weights. The others are networks and need PyTorch; all of these except job-ppo also need
    Stable-Baselines3, the extra "agents" of hpcgym. The files of maskable-ppo and clone are written
    every two minutes and at the end, also after Ctrl-C. A training that fails leaves its file
    unchanged.
    """


_FILE: Any = typer.Option(metavar="FILE", help="File of the agent.", rich_help_panel="Output")


def _told_where(output: Path) -> None:
    note(f"wrote {output}; hpcgym evaluate {output} --workload ... compares it")


# --- What agents are told beside their settings ---------------------------------------------------


def _env(default: str, metavar: str) -> Any:
    """Return the group of the option --env."""
    told = typer.Option(
        metavar=metavar, help="The environment, its v1.", rich_help_panel="Experiment"
    )
    return make_dataclass("Env", [("env", Annotated[str, told], default)], frozen=True)


@dataclass(frozen=True)
class _Searched:
    """What weights are searched for, and what vectors are tried on."""

    features: Annotated[
        str,
        typer.Option(
            metavar="xnes3|xnes6|NAME,NAME",
            help="Features to weigh; see the list.",
            rich_help_panel="Experiment",
        ),
    ] = "xnes6"


@dataclass(frozen=True)
class _Slices(EpisodeSettings):
    """What vectors are tried on."""

    panel: ClassVar[str] = "Experiment"

    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs from anywhere, a week, a month, or all of the"
            " part.",
        ),
    ] = "weeks"
    number: NumberOption = None


@dataclass(frozen=True)
class _Selection:
    """How jobs are selected, and what for."""

    panel: ClassVar[str] = "Experiment"

    reservation: Annotated[
        str | None,
        typer.Option(
            metavar="revised|kept",
            help="Whether a selected job that does not fit may be exchanged for another until"
            " it starts.",
            show_default="revised",
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of jobs that are visible.", show_default="128"),
    ] = None
    reward: Annotated[
        str | None,
        typer.Option(
            metavar="bsld|wait|energy", help="The reward to learn from.", show_default="bsld"
        ),
    ] = None


@dataclass(frozen=True)
class _Training:
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
        note("")
        _told_where(output)


@dataclass(frozen=True)
class _CloneTraining(_Training):
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


@dataclass(frozen=True)
class _Logs:
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


def _search(
    name: str, load: Callable[[], Any], output: Path, own: _Searched, settings: XnesSettings,
    episodes: _Slices, rules: options.WeighedRules,
) -> None:  # fmt: skip
    """Search for the weights of a mixed policy that are best on training slices.

    Thousands of simulations a second try weight vectors on all slices; XNES then looks near the
    best ones. Needs no extra. An interrupted search leaves FILE.checkpoint, and the same command
    goes on from there.
    """
    from hpcgym.agents.xnes import Xnes
    from hpcgym.envs.core.episodes import Episodes
    from hpcgym.scheduler.asked_for import check_fair_share, counts_usage
    from hpcgym.scheduler.rules import Scheduler

    agent = Xnes(own.features, scheduler=Scheduler(**rules.given()), **vars(settings))
    check_fair_share(rules.fair_share, counts_usage(agent.rules, agent.features))
    offered = Episodes(load(), **episodes.of_episodes())
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
        text = f"{done / budget:4.0%}  {done:,} of {budget:,} vectors on {n_slices:,} slices  "
        if not before:  # the first vectors tell of no rate
            begin, shown, before = now, now, done
        elif now - shown < SHOW_S and done < budget:
            return
        else:
            shown = now
            each = (now - begin) / (done - before)
            text += f"{n_slices / max(each, 1e-9):,.0f} simulations/s  "
            text += f"{each * (budget - done):,.0f} s left  "
        say(f"{text}best {metric} {best:.4g}")

    return show


def _practise(
    name: str, load: Callable[[], Any], output: Path, own: Any, practice: PracticeSettings,
    settings: Any, logs: _Logs, rules: options.PredictedRules,
) -> None:  # fmt: skip
    """Train an agent of one file; what it needs is asked for before the workload is read."""
    env = own.env.removeprefix("hpcgym/").removesuffix("-v1")
    check_choice("--env", env, ("JobSelection", "QueueOrdering", "MixedPolicy"))
    module, kind = TRAINED[name]
    agent = getattr(import_agent(module), kind)(**vars(settings))
    jobs, given = load(), {"jobs": practice.jobs, **rules.given()}
    make = import_agent("practice").maker(jobs, f"hpcgym/{env}-v1", given, practice.train_share)
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
    note("")
    _told_where(output)


def _select(
    name: str, load: Callable[[], Any], output: Path, training: _Training,
    settings: MaskablePpoSettings, rules: options.PredictedRules, own: _Selection,
) -> None:  # fmt: skip
    """Learn to select the next job, with MaskablePPO.

    A small network looks at each visible job and gives it a score; the job with the highest one
    starts next, or gets the reservation.
    """
    given = rules.given() | options.given(**vars(own))
    module = import_agent("maskable_ppo")
    training.train(module, load(), output, env_options=given, **vars(settings))


class _Agent(NamedTuple):
    """A command that trains an agent.

    Attributes
    ----------
    learn : is given the agent's name, what reads the workload, the file to write, and the groups.
    groups : parameter -> dataclass of options.
    help : what the command does.
    examples, lists, brief : as of :class:`ExplainedCommand`.
    """

    learn: Callable[..., None]
    groups: Mapping[str, Any]
    help: str | None
    examples: tuple[str, ...]
    lists: Lists
    brief: Lists


def _feature_sets() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.search import FEATURE_SETS

    sets = [(name, ", ".join(features)) for name, features in FEATURE_SETS.items()]
    return [*sets, *policy_features()]


def _window_features() -> Iterable[tuple[str, str]]:
    from hpcgym.envs.core.options import WINDOW_FEATURES

    return WINDOW_FEATURES.items()


#: Agents by name: how each learns, and what it is told.
AGENTS = {
    "xnes": _Agent(
        _search,
        {"own": _Searched, "settings": XnesSettings, "episodes": _Slices,
         "rules": options.WeighedRules},
        _search.__doc__,
        (
            "hpcgym train xnes --workload KTH-SP2 --clean legrand",
            "hpcgym train xnes --workload KTH-SP2 --features xnes3 --budget 2000 --seed 1",
            "hpcgym train xnes --workload trace.swf.gz --episodes windows --features area,wait,f1",
            "hpcgym evaluate xnes.json --workload KTH-SP2 --clean legrand --episodes weeks",
        ),
        {"Methods (--method)": METHODS.items, "Features to weigh (--features)": _feature_sets},
        _CLEANING,
    ),
    "job-ppo": _Agent(
        _practise,
        {"own": _env("JobSelection", "JobSelection|QueueOrdering"), "practice": PracticeSettings,
         "settings": JobPpoSettings, "logs": _Logs, "rules": options.PredictedRules},
        """Learn to select the next job, or to order the queue, with masked PPO of one file.

        The training starts from the best of a few known orders. It keeps the agent that is best on
        a part of the jobs set apart for choosing.
        """,
        (
            "hpcgym train job-ppo --workload KTH-SP2 --steps 200000",
            "hpcgym train job-ppo --workload KTH-SP2 --env QueueOrdering --log ppo.csv",
            "hpcgym evaluate job-ppo.pt --workload KTH-SP2",
        ),
        {},
        _CLEANING,
    ),
    "rule-es": _Agent(
        _practise,
        {"own": _env("MixedPolicy", "MixedPolicy|QueueOrdering|JobSelection"),
         "practice": PracticeSettings, "settings": RuleEsSettings, "logs": _Logs,
         "rules": options.PredictedRules},
        """Search weights that depend on the state of machine and queue, with an evolution strategy.

        The training starts from the best constant weights of a random search. It keeps the weights
        that are best on a part of the jobs set apart for choosing. Needs no extra.
        """,
        (
            "hpcgym train rule-es --workload KTH-SP2",
            "hpcgym train rule-es --workload KTH-SP2 --env QueueOrdering",
            "hpcgym suite run --agent rule-es --tasks mini --output es",
        ),
        {},
        _CLEANING,
    ),
    "maskable-ppo": _Agent(
        _select,
        {"training": _Training, "settings": MaskablePpoSettings, "rules": options.PredictedRules,
         "own": _Selection},
        _select.__doc__,
        (
            "hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --minutes 30",
            "hpcgym train maskable-ppo --workload lublin --output agent.pt --seed 1",
            "hpcgym train maskable-ppo --workload lublin --output agent.pt --resume agent.pt",
            "hpcgym evaluate agent.pt --workload lublin",
        ),
        {"What the network sees of each job": _window_features, **_CLEANING},
        {},
    ),
}  # fmt: skip


def _command(name: str, agent: _Agent) -> Callable[..., None]:
    """Return the command of an agent: its groups of options, and what all agents have."""

    def run(*, workload: str, output: Path, force: bool, reading: PoolReading, **own: Any) -> None:
        agent.learn(name, lambda: reading.load(workload), output, **own)

    ending = ending_of(name)
    shown = {
        "workload": (WorkloadOption, Parameter.empty),
        "output": (
            Annotated[Path, _FILE, Written("file of an agent", (ending,))],
            Path(f"{name}{ending}"),
        ),
        "force": (ForceOption, False),
        **{group: (kind, Parameter.empty) for group, kind in agent.groups.items()},
        "reading": (PoolReading, Parameter.empty),
    }
    seen: Any = run
    seen.__doc__, seen.__annotations__ = agent.help, {k: kind for k, (kind, _) in shown.items()}
    seen.__signature__ = Signature(
        [
            Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in shown.items()
        ]
    )
    return grouped(run)


for _name, _one in AGENTS.items():
    _told = {"examples": _one.examples, "lists": _one.lists, "brief": _one.brief}
    train.command(_name, cls=type("Train", (ExplainedCommand,), _told))(_command(_name, _one))


# --- What policies do -----------------------------------------------------------------------------


class _Clone(ExplainedCommand):
    examples = (
        "hpcgym train clone f1 --workload KTH-SP2 --backfill none",
        "hpcgym train maskable-ppo --workload KTH-SP2 --backfill none --resume clone.pt",
        "hpcgym train clone --recording saf.npz",
    )
    lists: ClassVar[Lists] = {"Orders to clone": options.policies, **_CLEANING}


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
        **_CLEANING,
    }


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
    output: Annotated[Path, _FILE, Written("file of an agent", (".pt",))] = Path("clone.pt"),
    force: ForceOption = False,
    training: _CloneTraining,
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
    done = import_agent("recordings").record(
        orders, jobs, output, env_id=env, cluster=where, env_options=given, **vars(settings)
    )
    number = len(done.about["episodes"])
    note(f"wrote {len(done.actions):,} transitions of {number:,} episodes to {output}")
