"""``hpcgym evaluate``: agents and schedulers on unseen slices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from hpcgym.agents.settings import EpisodeSettings
from hpcgym.cli import loading, options, output
from hpcgym.cli.groups import Option
from hpcgym.cli.means import Means, MeansTable, means_of
from hpcgym.cli.running import explained, note
from hpcgym.cli.tables import Format, Sheet
from hpcgym.errors import HpcgymError, PolicyWarning, check_choice
from hpcgym.progress import counting

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster
    from hpcgym.report.figures import Drawing
    from hpcgym.study import Leaderboard
    from hpcgym.workload import Workload


# --- What is said around a leaderboard, and the page of it ----------------------------------------

#: Rows that are of slices, beside those of groups of jobs.
SLICE = "slice"


def setting_of(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> list[str]:
    """Return on what policies were compared, in a line, and what was around slices, if anything."""
    from hpcgym.envs.core.surroundings import NOTHING_AROUND

    slices = f"{settings['n']:,} {settings['episodes']}"
    if settings["episodes"] == "windows":
        slices += f" of {settings['jobs']:,} jobs that share none"
    elif settings["episodes"] == "whole":
        slices = "all at once"
    if board.left_out:
        slices += f", without {board.left_out:,} jobs that cross the end of one"
    where = "whole workload" if settings["slices"] == "all" else f"{settings['slices']} part"
    # references have the rules of the environments, so the first tells the setting of all
    first = next(scheduler for scheduler in board.schedulers.values() if scheduler is not None)
    words = [workload.name, _called(workload, machine), where, slices]
    words += [f"{first.allocation} allocation"] if first.allocation != "first-fit" else []
    words += [f"{first.passes} passes"] if first.passes != "per-timestamp" else []
    around = {name: value for name, value in board.around.items() if value != NOTHING_AROUND[name]}
    surroundings = ", ".join(f"{name}={value}" for name, value in around.items())
    return [" · ".join(words), *([f"slices with {surroundings}"] if around else [])]


def rows_by(workload: Workload, board: Leaderboard, by: str) -> pd.DataFrame:
    """Return the metric of each slice, or of each class of jobs or user there, in long rows."""
    if board.groups is not None and by != SLICE:
        rows = board.groups
    else:
        by_slice = board.by_slice.rename_axis("slice").reset_index()
        rows = by_slice.melt("slice", var_name="scheduler", value_name=board.metric)
        rows.insert(0, "workload", workload.name)
    return rows


def drawings_of(board: Leaderboard) -> dict[str, Drawing]:
    """Return the means with their intervals, and a performance profile, of what ranks policies."""
    from hpcgym.report.figures import of_means
    from hpcgym.study.evaluation.figures import profiles

    metric, table = board.ranked_by, board.table
    ends = [name for name in (f"{metric.name}_low", f"{metric.name}_high") if name in table]
    values = (table[[metric.name, *ends]] * metric.scale).T.to_dict("list")
    nothing = [float("nan")] * 2
    means = {
        str(name): tuple([*mean_and_ends, *nothing][:3]) for name, mean_and_ends in values.items()
    }
    drawings = {"means": of_means(means, metric.heading)}
    grid = board.by_slice
    grid = grid.loc[:, grid.notna().any()]  # a policy that failed everywhere has no place
    try:
        return drawings | profiles({metric.name: grid}, {metric.name: metric})
    except HpcgymError as error:
        note(f"no performance profile: {error}")
        return drawings


def _called(workload: Workload, machine: Cluster | None) -> str:
    """Return the machine in words."""
    if machine is None or not machine.groups:
        return f"{(machine or workload).processors:,} processors"
    return f"{machine.name or 'cluster'}: {machine.nodes:,} nodes, {machine.processors:,} cores"


# --- What is printed of a leaderboard -------------------------------------------------------------


class Shown(NamedTuple):
    """A leaderboard, and what it was made of.

    Attributes
    ----------
    workload, machine : of all slices; None: a pool.
    board : what is printed.
    settings : of the evaluation, by the names of its arguments.
    clean : the recipe that the workload was cleaned by.
    """

    workload: Workload
    machine: Cluster | None
    board: Leaderboard
    settings: dict[str, Any]
    clean: str


def sheet_of(shown: Shown) -> Sheet:
    """Return a row for each policy, for people."""
    from hpcgym.study.evaluation.leaderboard import notes_of, tables_of

    above = setting_of(shown.workload, shown.machine, shown.board, shown.settings)
    above += output.cleaning_of(shown.workload)
    tables = tables_of(shown.board)
    return Sheet(above, tables, notes_of(shown.board, tables[0]))


def found_of(shown: Shown) -> output.CommandResult:
    """Return a row for each policy, in every form."""
    workload, machine, board = shown.workload, shown.machine, shown.board

    def facts() -> dict[str, Any]:
        facts_of_all = output.workload_facts(workload, shown.clean)
        facts_of_all |= output.machine_facts(workload, machine)
        return {**facts_of_all, "evaluation": shown.settings, **board.facts()}

    begin = {"workload": workload.name, **output.machine_columns(workload, machine)}
    return output.CommandResult(
        sheet=lambda: sheet_of(shown), rows=lambda: [{**begin, **row} for row in board.rows()],
        facts=facts, workloads=[workload], drawings=lambda: drawings_of(board),
    )  # fmt: skip


def by_group(shown: Shown, by: str, reference: str | None) -> Means:
    """Return a row for each policy on each slice, class of jobs or user."""
    board = shown.board
    paired = None if reference is None else board.reference
    asked = MeansTable(metric=[board.metric], ci=by != SLICE, paired=paired, by=by)
    above = setting_of(shown.workload, shown.machine, board, shown.settings)
    return means_of(rows_by(shown.workload, board, by), "", asked, above)


def report_failures(board: Leaderboard) -> None:
    """Say which policies failed."""
    for policy, row in board.table.iterrows():
        if row["failed"]:
            where = f"on {row['failed']:.0f} of {row['slices']:.0f} slices"
            errors = [error for (name, _), error in board.failures.items() if name == policy]
            if errors:
                note(f"{policy} failed {where}: {errors[0]}")
            else:
                note(f"{policy} has no {board.metric} {where}")


# --- Options of ``hpcgym evaluate`` ---------------------------------------------------------------


@dataclass(frozen=True)
class Slices(EpisodeSettings):
    """What policies are compared on: of the part that agents have not seen.

    Experiment
    ----------
    part test|train|all : Part of the workload in time; agents are trained on the first part.
    episodes windows|weeks|months|whole|stream : What a slice is: a window of jobs, a week, a month,
        all of the part, or all of it up to its last submission (stream).
    number N : Number of slices, chosen at random; no job is in two of them. [default: up to 100
        windows, all weeks or months]
    start empty|warm|SCHEDULER : What a slice begins with: an empty machine, or the jobs that run
        and wait at that time in the schedule of EASY (warm), or of another scheduler, on the whole
        workload. [default: as agents were trained, or as --env has it, or empty]
    warmup TIME|none : How long before its slice a simulation begins, such as 1d; only the jobs of
        the slice count. [default: as agents were trained, as --env has it, or none]
    arrivals stop|continue : Whether later jobs keep coming, up to the horizon. [default: as agents
        were trained, or stop]
    horizon TIME|none : When a slice is over, such as 7d after its first submission; jobs that still
        wait are charged the time that they have waited. [default: as agents were trained, as
        --env has it, or none]
    """

    part: Annotated[str, Option("--slices")] = "test"
    episodes: str = "windows"
    number: Annotated[int | None, Option("--number", "-n")] = None
    start: str | None = None
    warmup: str | None = None
    arrivals: str | None = None
    horizon: str | None = None

    def around(self) -> dict[str, Any]:
        """Return what is around slices as far as it was given, as ``evaluate`` takes it."""
        lengths = {"warmup": self.warmup, "horizon": self.horizon}
        given = options.given(start=self.start, arrivals=self.arrivals, **lengths)
        return {**given, **{name: None for name, text in lengths.items() if text == "none"}}


# --- ``hpcgym evaluate`` --------------------------------------------------------------------------


@explained()
def evaluate(
    workload: loading.WorkloadOption,
    *,
    policies: list[str] | None = None,
    env: str | None = None,
    share: float | None = None,
    shutdown: Annotated[bool | None, Option("--shutdown/--no-shutdown")] = None,
    speedups: str | None = None,
    slices: Slices,
    seed: int = 0,
    budget: int = 200,
    metric: str = "mean_bsld",
    reference: str | None = None,
    by: str | None = None,
    rules: options.EvaluatedRules,
    reading: loading.MachineReading,
    how: output.ResultOptions,
) -> None:
    """Compare agents and schedulers on unseen slices of a workload.

    The table always has the references EASY, EASY-SJBF, SAF, F1 (without backfilling FCFS, SJF,
    SAF, F1), the best fixed weights, found on the training part, and random: a random order of the
    queue, or random actions if agents select jobs, order or weigh. Under a budget of energy it says
    how far each policy is above powercap, and has the energy of each policy: of the whole schedule,
    and while the limits hold. The 95 % intervals are from resampled slices, and from resampled
    trainings if a row has several; fewer than 5 slices have none. p is from the permutation test
    that a policy differs from the reference, slice by slice. It is not corrected for the number of
    rows. A second table says who waits, and what is gained on EASY if each slice counts alike.

    Arguments
    ---------
    policies AGENT|SCHEDULER|DISPATCHER|RULE|EXPRESSION|WEIGHTS... : Files of saved agents (.pt,
        .json); models of Stable-Baselines3 (.zip, with model.env.json beside model.zip as
        hpcgym.agents.save_spec writes it, or with --env; reading one runs code that is in it);
        networks in files of ONNX (.onnx, likewise); rlscheduler:FOLDER, a network that RLScheduler
        has published, by its best actions, and rlscheduler-sampled:FOLDER by drawn ones;
        package.module:Class or :function of your own, whose attributes env_id and env_options name
        its environment and the arguments, or a Scheduler(policy=function) there, from this folder
        too; lookahead, schedulers, dispatchers, rules of hpcgym list;
        expressions such as '20 * wait - area', as hpcgym simulate --policy takes them; or six
        weights such as 0.1,-0.2,0,0,0,0.7. Behind -- if the first has a minus. NAME=FILE,FILE,...
        is one row of several trainings of one agent.

    Experiment
    ----------
    env NAME : The environment: EnergyBudget or PowerCap, whose limits all rows keep; CoSchedule, in
        which jobs share nodes; or the one for policies that do not name theirs. [default: as agents
        were trained]
    seed N : Seed of all random choices: the same seed gives the same table.
    budget N : Weight vectors tried on the training part for best-static; 0 leaves it out.
    metric NAME : The metric that ranks policies, as a mean over the slices; hpcgym list metrics
        tells which there are.
    reference ROW : Row that the others are compared with: the table says how far they are above it,
        with p-values. [default: easy, without backfilling fcfs]

    Output
    ------
    by slice|class|size|user|queue|... : A row for each, such as each week with --episodes weeks.
        Classes of jobs by run time are short, below 10 minutes, medium, below 2 hours, and long.
        [default: one row for each policy]

    Power
    -----
    share S : The budget of EnergyBudget or the cap of PowerCap, as a share of the energy or power
        with all nodes busy. [default: as agents were trained, or 0.6]
    shutdown : Whether EnergyBudget switches idle nodes off. [default: as agents were trained, or
        no]

    Shared nodes
    ------------
    speedups FILE|generated:... : For CoSchedule: how fast codes run beside each other. [default: as
        agents were trained, or generated]

    Examples
    --------
    hpcgym evaluate sjf wfp3 --workload lublin:jobs=10000,load=0.9
    hpcgym evaluate model.zip my_package:Policy --workload KTH-SP2 --env JobSelection
    hpcgym evaluate ppo=ppo-seed0.pt,ppo-seed1.pt,ppo-seed2.pt --workload KTH-SP2
    hpcgym evaluate wfp3 --workload KTH-SP2 --metric p99_wait_s --reference saf
    hpcgym evaluate wfp3 --workload KTH-SP2 --format latex > board.tex
    hpcgym evaluate wfp3 --workload KTH-SP2 --html board.html --figures figures
    hpcgym evaluate lookahead --workload KTH-SP2 --episodes weeks
    hpcgym evaluate rlscheduler:trained_models/bsld/sdsc_sp2 --workload SDSC-SP2 --episodes weeks
    hpcgym evaluate agent.pt cph-3 pcp20 --workload KTH-SP2 --number 10
    hpcgym evaluate agent.pt sjf --workload trace.swf.gz --backfill none --format json
    hpcgym evaluate prb easy++ --workload eurora:days=30 --cluster eurora --episodes whole
    hpcgym evaluate --workload KTH-SP2 --number 30 -- -0.1,0,0,0,0.9,0 saf
    hpcgym evaluate reduce-pc energy-bud+saf --env EnergyBudget --share 0.6 --shutdown --workload
        KTH-SP2 --episodes weeks
    hpcgym evaluate greedy-pairs popularity-co --env CoSchedule --workload
        codes:jobs=12000,processes=96,processors=768 --cluster 16x2x24 --number 20
    """
    from hpcgym.own_code import look_here
    from hpcgym.study.evaluation.leaderboard import of_few_slices
    from hpcgym.study.evaluation.policies import find_policy, read_policies, schedulers_of

    if any(":" in text or ".zip" in text for text in policies or ()):  # which may run code
        look_here()
    machine = reading.machine
    given = rules.given() | options.given(allocation=reading.allocation)
    from hpcgym.envs.ids import id_of

    environment = None if env is None else id_of(env)
    chosen = read_policies(policies or [], partial(find_policy, seed=None))
    source = reading.load(workload, schedulers=schedulers_of(chosen, given))
    of_environment = options.of_environment(environment, share, shutdown)
    of_environment |= options.given(speedups=speedups)
    ranked = {"metric": metric, "reference": reference, "by": by}
    settings = _settings(slices, seed, budget)
    board = _board(
        chosen, source, **settings, **ranked, cluster=machine, env=environment,
        env_options=of_environment, **given,
    )  # fmt: skip
    settings |= {"n": len(board.by_slice), **board.around}  # newer environments have their own
    report_failures(board)
    shown = Shown(source, machine, board, settings, reading.clean)
    result = found_of(shown)
    few = "; ".join(of_few_slices(board))
    if by is not None:
        means = by_group(shown, by, reference)
        result = replace(result, sheet=lambda: means.sheet, rows=lambda: means.rows, facts=None)
        few = means.few
    how.show(result)
    if how.format in (Format.json, Format.csv) and few:  # others have it
        note(few)
    if (board.table["failed"] == board.table["slices"]).any():
        raise click.exceptions.Exit(1)


def _settings(slices: Slices, seed: int, budget: int) -> dict[str, Any]:
    """Return the slices of an evaluation and its seed, as ``hpcgym.study.evaluate`` takes them."""
    return {
        "slices": slices.part,
        "episodes": slices.episodes,
        "jobs": slices.jobs,
        "n": slices.number,
        "train_share": slices.train_share,
        **slices.around(),
        "seed": seed,
        "budget": budget,
    }


def _board(policies: Any, source: Workload, *, by: str | None, **given: Any) -> Leaderboard:
    """Return the leaderboard; arguments of ``hpcgym.study.evaluate``, ``by`` as of the option."""
    from hpcgym.schedule.groups import GROUPED_BY
    from hpcgym.study import evaluate as run

    if by is not None:
        check_choice("--by", by, (SLICE, *GROUPED_BY))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # they are said by report_failures
        return run(policies, source, by=None if by == SLICE else by, progress=counting, **given)
