"""``hpcgym train``: agents that learn to schedule, and recordings."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from hpcgym.agents import TRAINED, import_agent
from hpcgym.agents.settings import (
    METHODS,
    CloneSettings,
    EpisodeSettings,
    NetEsSettings,
    RecordSettings,
    ReplaySettings,
    RuleEsSettings,
    SearchSettings,
    XnesSettings,
)
from hpcgym.cli import names, options
from hpcgym.cli.files import Written
from hpcgym.cli.groups import Option
from hpcgym.cli.loading import MachineReading, PoolReading, WorkloadOption
from hpcgym.cli.running import Commands, note
from hpcgym.errors import HpcgymWarning, check_choice, warn_caller
from hpcgym.progress import measuring, say
from hpcgym.units import duration
from hpcgym.words import counted

_PT = Annotated[Path, Written("file of an agent", (".pt",))]
_JSON = Annotated[Path, Written("file of an agent", (".json",))]
_TOML = Annotated[Path, Written("file of a scheduler", (".toml",))]


@click.group(cls=Commands)
def train() -> None:
    """Train agents that learn to schedule.

    An agent is one file, which hpcgym evaluate takes. rule-es writes a scheduler with a formula,
    net-es a network that is a policy, and xnes a few weights. A clone needs PyTorch, of the extra
    "agents" of hpcgym. After Ctrl-C or SIGTERM, which Slurm sends at a time limit, rule-es and
    net-es write what they have learned so far. A training that fails leaves its file unchanged.
    """


def _id_of(env: str, names: Sequence[str]) -> str:
    """Return the id of an environment, one of these names, given in any of its forms."""
    from hpcgym.envs.ids import forms, id_of

    name = next((name for name in names if env in forms(id_of(name))), env)
    return id_of(check_choice("--env", name, names))


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
    number: Annotated[int | None, Option("--number", "-n")] = None


@dataclass(frozen=True)
class _Logs:
    """Where the numbers of a training go.

    Output
    ------
    log FILE : Write the numbers as a table, a row for each line shown.
    tensorboard FOLDER : Write TensorBoard's logs there.
    """

    log: Annotated[Path | None, Written("table", (".csv",))] = None
    tensorboard: Path | None = None

    def opened(self) -> Any:
        """Return the log that tells them all, and shows a line."""
        from hpcgym.agents import practice

        made: list[Any] = [] if self.log is None else [practice.csv_log(self.log)]
        if self.tensorboard is not None:
            made.append(practice.tensorboard_log(self.tensorboard))

        def log(steps: int, values: Mapping[str, float]) -> None:
            for log_line in (_show, *made):
                log_line(steps, values)

        return log


def _show(steps: int, values: Mapping[str, float]) -> None:
    parts = [(key.partition("/")[2], value) for key, value in values.items()]
    # numbered ones are of single vectors of a search: the files have them
    shown = "  ".join(f"{name} {value:.4g}" for name, value in parts if not name.isdigit())
    say(f"{steps:,} steps  {shown}")


# --- A search -------------------------------------------------------------------------------------


def _feature_sets() -> Iterable[tuple[str, str]]:
    from hpcgym.agents.search import FEATURE_SETS

    sets = [(name, ", ".join(features)) for name, features in FEATURE_SETS.items()]
    return [*sets, *names.policy_features()]


@train.command(
    "xnes",
    lists={"Methods (--method)": METHODS.items, "Features to weigh (--features)": _feature_sets},
)
def train_xnes(
    *,
    workload: WorkloadOption,
    output: _JSON = Path("xnes.json"),
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
    slices = [offered.workload_of(episode) for episode in offered.named(number, settings.seed)]
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    try:
        with measuring(f"vectors on {len(slices):,} slices") as show:
            agent.fit(
                slices, checkpoint=checkpoint, progress=lambda done, _: show(done, settings.budget)
            )
    except KeyboardInterrupt:
        if checkpoint.exists():
            note(f"\nwrote {checkpoint}; the same command goes on from there")
        raise
    agent.save(output)
    weights = ", ".join(f"{weight:.3g} {name}" for name, weight in agent.weights_.items())
    result = f"{settings.metric} {agent.best_:.4g} on {len(slices)} {episodes.episodes}"
    note(f"\n{result} with {weights}")
    _told_where(output)


@train.command("rule-es")
def train_rule_es(
    *,
    workloads: list[str],
    output: _TOML = Path("rule-es.toml"),
    force: bool = False,
    env: str = "QueueOrdering",
    settings: RuleEsSettings,
    replay: ReplaySettings,
    logs: _Logs,
    reading: PoolReading,
) -> None:
    """Find a formula that orders the queue, by evolution on replays of whole logs.

    The formula uses a job's typical and requested time, its processors and its wait, how much is
    free, what fits, how many jobs wait and how far the machine is behind. How much long jobs leave
    free is searched, too. The file is a scheduler: simulate, compare, evaluate, drive and replay
    take it. Needs no extra.

    Arguments
    ---------
    workloads WORKLOAD... : The logs to learn from, files, traces of the archive or generators.

    Output
    ------
    output FILE : File of the scheduler.

    Experiment
    ----------
    env QueueOrdering|Backfill : What the formula decides: who is first in the queue, or which job
        is backfilled.

    Examples
    --------
    hpcgym train rule-es KTH-SP2
    hpcgym train rule-es KTH-SP2 SDSC-SP2 CTC-SP2 --output all.toml
    hpcgym simulate HPC2N --scheduler all.toml
    hpcgym compare HPC2N --scheduler easy --scheduler saf --scheduler all.toml
    """
    _Replayed(workloads, replay, logs, reading).train("rule-es", env, settings, output)


@train.command("net-es")
def train_net_es(
    *,
    workloads: list[str],
    output: _JSON = Path("net-es.json"),
    force: bool = False,
    settings: NetEsSettings,
    replay: ReplaySettings,
    logs: _Logs,
    reading: PoolReading,
) -> None:
    """Train a network that orders the queue, by evolution on replays of whole logs.

    The network scores a job by twelve numbers of the job, its user and the state, and the engine
    works it out. The file is a policy: simulate, compare, evaluate and drive take network:FILE.
    Needs no extra.

    Arguments
    ---------
    workloads WORKLOAD... : The logs to learn from, files, traces of the archive or generators.

    Output
    ------
    output FILE : File of the network.

    Examples
    --------
    hpcgym train net-es KTH-SP2
    hpcgym train net-es KTH-SP2 SDSC-SP2 CTC-SP2 --output all.json
    hpcgym simulate HPC2N --scheduler network:all.json
    """
    _Replayed(workloads, replay, logs, reading).train("net-es", "QueueOrdering", settings, output)


@dataclass(frozen=True)
class _Replayed:
    """How an agent is trained that searches on replays of whole logs."""

    workloads: list[str]
    replay: ReplaySettings
    logs: _Logs
    reading: PoolReading

    def train(self, name: str, env: str, settings: SearchSettings, output: Path) -> None:
        """Train an agent, and say where it is over the gate on what it has learned from."""
        from hpcgym.agents.practice import maker
        from hpcgym.schedule.gains import felt, gain
        from hpcgym.scheduler.rules import Scheduler
        from hpcgym.simulation.run import simulate

        env_id = _id_of(env, ("QueueOrdering", "Backfill"))
        module, kind = TRAINED[name]
        agent = getattr(import_agent(module), kind)(**vars(settings))
        jobs = [self.reading.load(workload) for workload in self.workloads]
        make = maker(jobs, env_id, {}, self.replay.train_share)
        learned_from = [log.take(slice(-settings.most_jobs, None)) for log in make.logs.values()]
        begun = time.monotonic()
        for log in learned_from:
            simulate(log, agent.scheduler)
        times = settings.generations * settings.population
        what = f"{times:,} replays of {counted(len(jobs), 'log')}"
        note(f"{what}: at most about {duration(max(times * (time.monotonic() - begun), 1))}")
        try:
            agent.train(make, self.replay.seed, sys.maxsize, self.logs.opened())
        except KeyboardInterrupt:
            agent.save(output)
            note(f"\nwrote {output}, what was found so far")
            raise
        agent.save(output)
        _told_where(output)
        for log in learned_from:
            easy, ours = (simulate(log, rule) for rule in (Scheduler(), agent.scheduler))
            for broken in gain(felt(easy, easy.decided), felt(ours, ours.decided)).broken:
                text = f"over the gate on the jobs of {log.name} that it has learned from: {broken}"
                warn_caller(f"{output}: {text}; others may wait longer still", HpcgymWarning)


# --- What policies do -----------------------------------------------------------------------------


@train.command("clone")
def train_clone(
    *,
    recording: Path,
    output: _PT = Path("clone.pt"),
    force: bool = False,
    settings: CloneSettings,
    logs: _Logs,
) -> None:
    """Train a network to select jobs as in a recording.

    A clone is a start for learning: examples/maskable_ppo.py goes on from one.

    Arguments
    ---------
    recording FOLDER : A recording of hpcgym train record.

    Output
    ------
    output FILE : File of the agent.

    Examples
    --------
    hpcgym train record f1 --workload KTH-SP2 --backfill none --output f1-v0
    hpcgym train clone f1-v0
    hpcgym evaluate clone.pt --workload KTH-SP2
    """
    module = import_agent("behaviour_cloning")
    module.train(recording, log=logs.opened(), **vars(settings)).save(output)
    _told_where(output)


@train.command("record")
def record(
    *,
    orders: list[str],
    workload: WorkloadOption,
    output: Annotated[
        Path, Written("recording", tuple(f"-v{version}" for version in range(100)), folder=True)
    ] = Path("recording-v0"),
    force: bool = False,
    env: str = "hpcgym/JobSelection-v2",
    settings: RecordSettings,
    rules: options.Backfilling,
    reading: MachineReading,
) -> None:
    """Drive an environment by known orders, and write observations and actions.

    --allocation gives the jobs their nodes, whatever nodes a dispatcher names; best-fit is nearest
    to hcp19, pcp19 and pcp20. The folder is a data set of Minari, which the extra "agents"
    installs. It names workload and machine, so that Minari can recover the environment, unless an
    option changes the jobs.

    Arguments
    ---------
    orders ORDER|DISPATCHER|random... : The orders to record, of hpcgym list policies. Several play
        the same episodes one after the other.

    Output
    ------
    output FOLDER : Folder to write, whose name ends in a version: NAME-v0.

    Experiment
    ----------
    env ID : The environment, such as JobSelection-v2 or QueueOrdering.

    Examples
    --------
    hpcgym train record saf --workload KTH-SP2 --output saf-v0
    hpcgym train record random easy saf --workload KTH-SP2 --output mixed-v0
    hpcgym train record saf --workload KTH-SP2 --env QueueOrdering-v2
    hpcgym train record pcp20 --workload eurora:days=30 --cluster eurora --allocation best-fit
        --number 5
    """
    from hpcgym.envs.ids import id_of

    given = options.given(**vars(rules), allocation=reading.allocation)
    machine, jobs = reading.machine, reading.load(workload)  # what is wrong with them is said
    jobs, machine = reading.named(workload) or (jobs, machine)
    done = import_agent("recordings").record(
        orders,
        jobs,
        output,
        env_id=id_of(env),
        cluster=machine,
        env_options=given,
        replace=force,
        **vars(settings),
    )
    number = len(done.about["episodes"])
    note(f"wrote {len(done.actions):,} transitions of {number:,} episodes to {output}")
