"""``hpcgym evaluate``: agents and schedulers on unseen slices of a workload."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.agents.settings import EpisodeSettings
from hpcgym.cli import limits, loading, names, options, output, prequential
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.cli.train_options import NumberOption
from hpcgym.errors import HpcgymError, PolicyWarning, unknown
from hpcgym.progress import counting
from hpcgym.report.tables import best, text_of
from hpcgym.schedule.metrics import LESS, MORE, Metric

if TYPE_CHECKING:
    from rich.table import Table

    from hpcgym.cluster import Cluster
    from hpcgym.evaluation import Leaderboard
    from hpcgym.workload import Workload

#: Columns of the table, but for intervals; "above_reference" is there with dispatchers that solve a
#: model.
COLUMNS = (
    Metric("mean_bsld", "mean\nBSLD", "", LESS),
    Metric("median_bsld", "median\nBSLD", "", LESS),
    Metric("win_rate", "wins\n(%)", "", MORE, 100),
    Metric("mean_regret", "regret\n(%)", "", LESS, 100),
    Metric("above_reference", "above\nreference", "", LESS),
    Metric("mean_wait_s", "mean wait\n(s)", "", LESS),
    Metric("utilization", "utilization\n(%)", "", MORE, 100),
)

#: The same under limits of power and energy.
LIMITED_COLUMNS = (
    Metric("mean_bsld", "mean\nBSLD", "", LESS),
    Metric("above_reference", "above\nreference", "", LESS),
    Metric("mean_wait_s", "mean wait\n(s)", "", LESS),
    Metric("limited_energy_j", "energy under\nlimits (kWh)", "", LESS, 1 / 3.6e6),
    Metric("energy_j", "energy of\nall (kWh)", "", LESS, 1 / 3.6e6),
)

#: The same where jobs share nodes.
SHARED_COLUMNS = (
    Metric("mean_bsld", "mean\nBSLD", "", LESS),
    Metric("above_reference", "above\nreference", "", LESS),
    Metric("makespan_s", "makespan\n(h)", "", LESS, 1 / 3600),
    Metric("improvement", "improvement\n(%)", "", MORE, 100),
    Metric("mean_wait_s", "mean wait\n(s)", "", LESS),
)

#: Those that have an interval.
INTERVALS = (
    "mean_bsld",
    "above_reference",
    "limited_energy_j",
    "energy_j",
    "makespan_s",
    "improvement",
)


class Evaluate(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym evaluate sjf wfp3 --workload lublin:jobs=10000,load=0.9",
        "hpcgym evaluate lookahead --workload KTH-SP2 --episodes weeks",
        "hpcgym evaluate agent.pt cph-3 pcp20 --workload KTH-SP2 --number 10",
        "hpcgym evaluate agent.pt sjf --workload trace.swf.gz --backfill none --format json",
        "hpcgym evaluate prb easy++ --workload eurora:days=30 --cluster eurora --episodes whole",
        "hpcgym evaluate --workload KTH-SP2 --number 30 -- -0.1,0,0,0,0.9,0 saf",
        "hpcgym evaluate reduce-pc energy-bud+saf --env EnergyBudget --share 0.6 --shutdown"
        " --workload KTH-SP2 --episodes weeks",
        "hpcgym evaluate weight-bandit my_module:MyLearner --protocol prequential"
        " --workload KTH-SP2 --clean legrand",
        "hpcgym evaluate greedy-pairs popularity-co --env CoSchedule --workload"
        " codes:jobs=5000,processes=96,processors=768 --cluster 16x2x24 --number 20",
    )
    lists: ClassVar[Lists] = {
        "Schedulers": names.schedulers,
        "Learners (--protocol prequential)": prequential.learners,
        "Dispatchers": names.dispatchers,
        "Rules under limits, alone or with a scheduler, as reduce-pc+saf": names.limit_rules,
        "Where jobs share nodes (--env CoSchedule)": names.coscheduling,
        "Machines (--cluster)": names.machines,
        "Cleaning recipes and filters (--clean)": names.recipes,
    }


@dataclass(frozen=True)
class _Slices(EpisodeSettings):
    """What policies are compared on: of the part that agents have not seen."""

    part: Annotated[
        str,
        typer.Option(
            "--slices",
            metavar="test|train|all",
            help="Part of the workload in time: what agents are trained on comes first.",
            show_default="test; all with --protocol prequential",
        ),
    ] = ""
    episodes: Annotated[
        str,
        typer.Option(
            metavar="windows|weeks|months|whole",
            help="What a slice is: a window of jobs, a week, a month, or all of the part.",
        ),
    ] = "windows"
    number: NumberOption = None

    def changed(self) -> dict[str, Any]:
        """Return what says how slices are cut, by option; None where it is as usual."""
        usual = _Slices()
        return {
            f"--{name}": None if getattr(self, name) == getattr(usual, name) else True
            for name in ("episodes", "jobs")
        }


@grouped
def evaluate(
    workload: loading.WorkloadOption,
    *,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT|LEARNER|SCHEDULER|DISPATCHER|RULE|EXPRESSION|WEIGHTS",
            help="Files of saved agents, lookahead, schedulers, dispatchers and rules of the lists"
            " below, learners with --protocol prequential; expressions such as '20 * wait - area',"
            " as hpcgym simulate --policy takes them; or six weights such as 0.1,-0.2,0,0,0,0.7."
            " Behind -- if the first has a minus.",
            show_default=False,
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment whose limits of power or energy all keep: EnergyBudget or PowerCap;"
            " CoSchedule, where jobs share nodes; or where policies act that know of none.",
            show_default="as agents were trained",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Of the energy, or of the power, with all nodes busy: the budget of EnergyBudget,"
            " the cap of PowerCap.",
            show_default="as agents were trained, or 0.6",
        ),
    ] = None,
    shutdown: Annotated[
        bool | None,
        typer.Option(
            "--shutdown/--no-shutdown",
            help="Whether EnergyBudget switches idle nodes off.",
            show_default="as agents were trained, or no",
        ),
    ] = None,
    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|generated:...",
            help="Of CoSchedule: how fast codes run beside each other.",
            show_default="as agents were trained, or generated",
        ),
    ] = None,
    protocol: prequential.Protocol,
    slices: _Slices,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of all random choices: the same, the same table.")
    ] = 0,
    budget: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Weight vectors tried on the training part for best-static; 0: leave it out. Of"
            " prequential: tried on all jobs, for the best in hindsight.",
        ),
    ] = 200,
    rules: options.EvaluatedRules,
    reading: loading.MachineReading,
    format: options.FormatOption = Format.table,
) -> None:
    """Compare agents and schedulers on unseen slices of a workload.

    The references EASY, EASY-SJBF, SAF, F1 (without backfilling FCFS, SJF, SAF, F1) and the best
    weights that do not change, found on the training part, are always in the table. With a
    dispatcher that solves a model, such as pcp20, it has how far above the best of the dispatchers
    and references each policy is. Under a budget of energy it has that for powercap, and the energy
    of each policy: of the whole schedule, and while the limits hold. The 95 % intervals are of
    resampled slices; with fewer than 5 slices there are none.

    With --protocol prequential learners go through all jobs once, from the first to the last, and
    learn from jobs that have ended; how much worse than the best weights in hindsight they are is
    their regret.
    """
    one_pass = protocol.is_prequential()
    machine = reading.machine
    source = reading.load(workload)

    from hpcgym.evaluation import evaluate as run

    given = rules.given() | options.given(allocation=reading.allocation)
    if one_pass:
        shared: dict[str, Any] = {"train_share": slices.train_share, "seed": seed, "budget": budget}
        others = {
            "--env": env, "--share": share, "--shutdown": shutdown, "--speedups": speedups,
            "--number": slices.number, **slices.changed(),
        }  # fmt: skip
        shared["part"] = slices.part or "all"
        prequential.run(policies or [], source, machine, protocol, shared, others, given, format)
        return
    settings: dict[str, Any] = {
        "slices": slices.part or "test",
        "episodes": slices.episodes,
        "jobs": slices.jobs,
        "n": slices.number,
        "train_share": slices.train_share,
        "seed": seed,
        "budget": budget,
    }
    name = _env(env)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # they are said below
        board = run(
            policies or [], source, **settings, cluster=machine, env=name,
            env_options=limits.of_environment(name, share, shutdown)
            | options.given(speedups=speedups),
            **given, progress=counting,
        )  # fmt: skip
    settings["n"] = len(board.by_slice)
    _report_failures(board)
    if format is Format.json:
        facts = output.workload_facts(source, reading.clean)
        facts |= output.machine_facts(source, machine)
        output.print_json({**facts, "evaluation": settings, **board.facts()})
    elif format is Format.csv:
        output.print_csv(_csv_rows(source, machine, board))
    else:
        _print_table(source, machine, board, settings)


def _env(name: str | None) -> str | None:
    """Return the id of an environment."""
    from hpcgym.envs import IDS

    if name is None or name in IDS:
        return name
    if (whole := f"hpcgym/{name}-v0") in IDS:
        return whole
    raise HpcgymError(unknown("--env", name, [one[len("hpcgym/") : -len("-v0")] for one in IDS]))


def _report_failures(board: Leaderboard) -> None:
    """Say which policies failed."""
    for policy, row in board.table.iterrows():
        if row["failed"]:
            first = next(error for (name, _), error in board.failures.items() if name == policy)
            note(f"{policy} failed on {row['failed']:.0f} of {row['slices']:.0f} slices: {first}")


def _csv_rows(
    workload: Workload, machine: Cluster | None, board: Leaderboard
) -> Iterator[dict[str, Any]]:
    """Return the table with the rules of each policy, empty for those that acted."""
    from hpcgym.baselines.schedulers import described

    rules = {name: described(one) for name, one in board.schedulers.items() if one is not None}
    blank = dict.fromkeys(next(iter(rules.values())))  # of a reference
    for policy, row in board.table.to_dict(orient="index").items():
        yield {
            "workload": workload.name,
            **output.machine_columns(workload, machine),
            "name": policy,
            **{str(column): value for column, value in row.items()},
            **rules.get(str(policy), blank),
        }


def _print_table(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> None:
    """Print a leaderboard for people."""
    from hpcgym.evaluation.intervals import why_no_intervals

    slices = f"{settings['n']:,} {settings['episodes']}"
    if settings["episodes"] == "windows":
        slices += f" of {settings['jobs']:,} jobs"
    elif settings["episodes"] == "whole":
        slices = "all at once"
    where = "whole workload" if settings["slices"] == "all" else f"{settings['slices']} part"
    out = output.console()
    # references have the rules of the environments, so the first tells the setting of all
    first = next(one for one in board.schedulers.values() if one is not None)
    words = [workload.name, _called(workload, machine), where, slices]
    words += [f"{first.allocation} allocation"] if first.allocation != "first-fit" else []
    words += [f"{first.passes} passes"] if first.passes != "per-timestamp" else []
    out.print(" · ".join(words), style="bold", markup=False)
    output.print_cleaning(out, workload)
    out.print()
    out.print(_rich_table(board))
    alone = bool(board.energy) or board.makespans is not None
    if why := why_no_intervals(settings["n"], "slices"):
        out.print(why, markup=False)
    if board.reference is not None:
        out.print(
            f"above reference: mean BSLD less that of {board.reference}"
            + ("" if alone else ", the best of dispatchers and references"),
            markup=False,
            soft_wrap=True,
        )
    if board.static_weights:
        weights = ", ".join(f"{w:.3g} {name}" for name, w in board.static_weights.items())
        out.print(f"best-static: {weights}; chosen on the train part", markup=False, soft_wrap=True)


def _called(workload: Workload, machine: Cluster | None) -> str:
    """Return the machine in words."""
    if machine is None or not machine.groups:
        return f"{(machine or workload).processors:,} processors"
    return f"{machine.name or 'cluster'}: {machine.nodes:,} nodes, {machine.processors:,} cores"


def _rich_table(board: Leaderboard) -> Table:
    """Return the leaderboard for rich; ``*`` marks the best of a column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    values = board.table
    shown_ones = LIMITED_COLUMNS if board.energy else COLUMNS
    if board.makespans is not None:
        shown_ones = SHARED_COLUMNS
    columns = [metric for metric in shown_ones if metric.name in values]
    marks = {metric.name: best(metric, values[metric.name].tolist()) for metric in columns}
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        caption="* best of its column" if any(map(any, marks.values())) else None,
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for metric in columns:
        for heading in (metric.title, *(["95 %\ninterval"] if metric.name in INTERVALS else [])):
            table.add_column(heading.replace("\n", " \n") + " ", justify="right", no_wrap=True)
    for place, (policy, row) in enumerate(values.iterrows()):
        cells = []
        for metric in columns:
            text, top = text_of(metric, row[metric.name]), marks[metric.name][place]
            cells.append(Text(f"{text}*", "bold green") if top else Text(f"{text} "))
            if metric.name in INTERVALS:
                cells.append(Text(_interval(metric, row)))
        table.add_row(Text(str(policy)), *cells)
    return table


def _interval(metric: Metric, row: Any) -> str:
    """Return the ends of an interval for people."""
    low, high = row[f"{metric.name}_low"], row[f"{metric.name}_high"]
    return "- " if low != low else f"{text_of(metric, low)} to {text_of(metric, high)} "
