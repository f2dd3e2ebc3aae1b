"""``hpcgym evaluate``: agents and schedulers on unseen slices of a workload."""

from __future__ import annotations

import sys
import warnings
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli import completion, limits, loading, names, options, output, pages, prequential
from hpcgym.cli.boards import (
    SLICE,
    no_intervals,
    notes_of,
    page_of,
    rows_by,
    save_figures,
    setting_of,
)
from hpcgym.cli.evaluated_slices import Slices
from hpcgym.cli.figures import FigureOptions
from hpcgym.cli.groups import grouped
from hpcgym.cli.means import Asked, TableFormat, means_of, print_means
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError, PolicyWarning, check_choice, unknown
from hpcgym.files.recorded import KEY
from hpcgym.progress import counting

if TYPE_CHECKING:
    from rich.table import Table

    from hpcgym.cluster import Cluster
    from hpcgym.evaluation import Leaderboard
    from hpcgym.workload import Workload


class BoardFormat(StrEnum):
    """How a leaderboard is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


_METRIC = "mean_bsld"


class Evaluate(ExplainedCommand):
    """The command with lists of names in its help."""

    examples = (
        "hpcgym evaluate sjf wfp3 --workload lublin:jobs=10000,load=0.9",
        "hpcgym evaluate model.zip my_package:Policy --workload KTH-SP2 --env JobSelection",
        "hpcgym evaluate ppo=ppo-seed0.pt,ppo-seed1.pt,ppo-seed2.pt --workload KTH-SP2",
        "hpcgym evaluate wfp3 --workload KTH-SP2 --metric p99_wait_s --reference saf",
        "hpcgym evaluate wfp3 --workload KTH-SP2 --format latex > board.tex",
        "hpcgym evaluate wfp3 --workload KTH-SP2 --html board.html --figures figures",
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
        "Learners (--protocol prequential)": prequential.learners,
        "Rules under limits, alone or with a scheduler, as reduce-pc+saf": names.limit_rules,
        "Where jobs share nodes (--env CoSchedule)": names.coscheduling,
        "Metrics (--metric)": names.ranking_metrics,
    }
    brief: ClassVar[Lists] = {
        "Schedulers": names.schedulers,
        "Dispatchers": names.dispatchers,
        **names.OF_READING,
    }


@grouped
def evaluate(
    workload: loading.WorkloadOption,
    *,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT|LEARNER|SCHEDULER|DISPATCHER|RULE|EXPRESSION|WEIGHTS",
            help="Files of saved agents (.pt, .json); models of Stable-Baselines3 (.zip, with"
            " model.env.json beside model.zip as hpcgym.agents.save_spec writes it, or with --env;"
            " reading one runs code that is in it); package.module:Class or :function of your own,"
            " or a Scheduler(policy=function) there, from this folder too; lookahead, schedulers,"
            " dispatchers and rules of the lists below, learners with --protocol prequential;"
            " expressions such as '20 * wait - area', as hpcgym simulate --policy takes them;"
            " or six weights such as 0.1,-0.2,0,0,0,0.7. Behind -- if the first has a minus."
            " NAME=FILE,FILE,... is one row of several trainings of one agent.",
            show_default=False,
            autocompletion=completion.schedulers,
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The environment: EnergyBudget or PowerCap, whose limits all rows keep;"
            " CoSchedule, in which jobs share nodes; or the one for policies that do not"
            " name theirs.",
            show_default="as agents were trained",
            rich_help_panel="Experiment",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="The budget of EnergyBudget or the cap of PowerCap, as a share of the energy"
            " or power with all nodes busy.",
            show_default="as agents were trained, or 0.6",
            rich_help_panel="Power",
        ),
    ] = None,
    shutdown: Annotated[
        bool | None,
        typer.Option(
            "--shutdown/--no-shutdown",
            help="Whether EnergyBudget switches idle nodes off.",
            show_default="as agents were trained, or no",
            rich_help_panel="Power",
        ),
    ] = None,
    speedups: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|generated:...",
            help="For CoSchedule: how fast codes run beside each other.",
            show_default="as agents were trained, or generated",
            rich_help_panel="Shared nodes",
        ),
    ] = None,
    protocol: prequential.Protocol,
    slices: Slices,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Seed of all random choices: the same seed gives the same table.",
            rich_help_panel="Experiment",
        ),
    ] = 0,
    budget: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Weight vectors tried on the training part for best-static; 0 leaves it out."
            " For prequential they are tried on all jobs, for the best in hindsight.",
            rich_help_panel="Experiment",
        ),
    ] = 200,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The metric that ranks policies, one of those below, as a mean over the slices.",
            rich_help_panel="Experiment",
            autocompletion=completion.metrics,
        ),
    ] = _METRIC,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ROW",
            help="Row that the others are compared with: the table says how far they are above"
            " it, with p-values.",
            show_default="easy, without backfilling fcfs",
            rich_help_panel="Experiment",
            autocompletion=completion.schedulers,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="slice|class|user",
            help="A row for each, such as each week with --episodes weeks. Classes of jobs are"
            " short, below 10 minutes, medium, below 2 hours, and long.",
            show_default="one row for each policy",
            rich_help_panel="Output",
        ),
    ] = None,
    rules: options.EvaluatedRules,
    reading: loading.MachineReading,
    format: Annotated[
        BoardFormat,
        typer.Option(help="latex: a tabular for the package booktabs.", rich_help_panel="Output"),
    ] = BoardFormat.table,
    page: pages.PageOptions,
    paper: FigureOptions,
) -> None:
    """Compare agents and schedulers on unseen slices of a workload.

    The table always has the references EASY, EASY-SJBF, SAF, F1 (without backfilling FCFS, SJF,
    SAF, F1), the best fixed weights, found on the training part, and random: a random order of the
    queue, or random actions if agents select jobs, order or weigh. With a dispatcher that solves a
    model, such as pcp20, it says how far each policy is above the best of the dispatchers and
    references. Under a budget of energy it says so for powercap, and has the energy of each policy:
    of the whole schedule, and while the limits hold. The 95 % intervals are from resampled slices,
    and from resampled trainings if a row has several; fewer than 5 slices have none. p is from the
    permutation test that a policy differs from the reference, slice by slice. It is not corrected
    for the number of rows.

    With --protocol prequential, learners go through all jobs once, from the first to the last, and
    learn from jobs that have ended. Their regret is how much worse they are than the best weights
    in hindsight.
    """
    from hpcgym.evaluation.seeds import runs_own_code
    from hpcgym.scheduler.own_code import look_here

    if any(map(runs_own_code, policies or [])):
        look_here()
    one_pass = protocol.is_prequential()
    machine = reading.machine
    source = reading.load(workload)

    from hpcgym.evaluation import evaluate as run
    from hpcgym.evaluation.tables import lines_of, markdown
    from hpcgym.schedule.groups import GROUPED_BY
    from hpcgym.schedule.provenance import provenance_of_workloads

    given = rules.given() | options.given(allocation=reading.allocation)
    if one_pass:
        shared: dict[str, Any] = {"train_share": slices.train_share, "seed": seed, "budget": budget}
        others = {
            "--env": env, "--share": share, "--shutdown": shutdown, "--speedups": speedups,
            "--number": slices.number, **slices.changed(),
        }  # fmt: skip
        shared["part"] = slices.part or "all"
        if format in (BoardFormat.latex, BoardFormat.markdown):
            raise HpcgymError(
                f"--format {format} is for leaderboards, not for --protocol prequential"
            )
        others |= {
            "--html": page.html,
            "--figures": paper.figures,
            "--reference": reference,
            "--by": by,
            "--metric": None if metric == _METRIC else metric,
        }
        text = Format(format.value)
        prequential.run(policies or [], source, machine, protocol, shared, others, given, text)
        return
    settings: dict[str, Any] = {
        "slices": slices.part or "test",
        "episodes": slices.episodes,
        "jobs": slices.jobs,
        "n": slices.number,
        "train_share": slices.train_share,
        **slices.around(),
        "seed": seed,
        "budget": budget,
    }
    name = _env(env)
    if by is not None:
        check_choice("--by", by, (SLICE, *GROUPED_BY))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # they are said below
        board = run(
            policies or [], source, **settings, cluster=machine, env=name,
            env_options=limits.of_environment(name, share, shutdown)
            | options.given(speedups=speedups),
            metric=metric, reference=reference, by=None if by == SLICE else by, **given,
            progress=counting,
        )  # fmt: skip
    settings |= {"n": len(board.by_slice), **board.around}  # newer environments have their own
    _report_failures(board)
    page.write(lambda: page_of(source, machine, board, settings))
    if by is not None:
        _print_grouped(source, machine, board, settings, by, reference, format)
    elif format is BoardFormat.json:
        facts = output.workload_facts(source, reading.clean)
        facts |= output.machine_facts(source, machine)
        facts |= {KEY: provenance_of_workloads([source]), "evaluation": settings}
        output.print_json({**facts, **board.facts()})
    elif format is BoardFormat.csv:
        begin = {"workload": source.name, **output.machine_columns(source, machine)}
        output.print_csv({**begin, **row} for row in board.rows())
    elif format is BoardFormat.latex:
        sys.stdout.write(board.to_latex() or "")
    elif format is BoardFormat.markdown:
        heading, lines = lines_of(board)
        sys.stdout.write(markdown([one.replace("\n", " ") for one in heading], lines, 1))
    else:
        _print_table(source, machine, board, settings)
    told = by is not None or format is BoardFormat.table  # these tell it themselves
    if not told and (why := no_intervals(board)):
        note(why)
    paper.write(partial(save_figures, source, board))  # what it refuses takes no table away
    if (board.table["failed"] == board.table["slices"]).any():
        raise typer.Exit(1)


def _env(name: str | None) -> str | None:
    """Return the id of an environment."""
    from hpcgym.envs import IDS, VERSIONS

    for one in (name, f"hpcgym/{name}"):
        if name is None or one in IDS or one in VERSIONS:
            return one
    if (whole := f"hpcgym/{name}-v0") in IDS:
        return whole
    raise HpcgymError(unknown("--env", name, [one[len("hpcgym/") : -len("-v0")] for one in IDS]))


def _report_failures(board: Leaderboard) -> None:
    """Say which policies failed."""
    for policy, row in board.table.iterrows():
        if row["failed"]:
            where = f"on {row['failed']:.0f} of {row['slices']:.0f} slices"
            errors = [error for (name, _), error in board.failures.items() if name == policy]
            if errors:
                note(f"{policy} failed {where}: {errors[0]}")
            else:
                note(f"{policy} has no {board.metric} {where}")


def _print_setting(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> None:
    """Print on what policies were compared, above a table for people."""
    out = output.console()
    title, *around = setting_of(workload, machine, board, settings)
    out.print(title, style="bold", markup=False)
    for line in around:
        out.print(line, markup=False, soft_wrap=True)


def _print_grouped(
    workload: Workload,
    machine: Cluster | None,
    board: Leaderboard,
    settings: dict[str, Any],
    by: str,
    reference: str | None,
    format: BoardFormat,
) -> None:
    """Print a row for each policy on each slice, class of jobs or user."""
    rows = rows_by(workload, board, by)
    paired = None if reference is None else board.labels.get(str(board.reference))
    asked = Asked(metric=[board.metric], ci=by != SLICE, paired=paired, by=by)
    if format is BoardFormat.table:
        _print_setting(workload, machine, board, settings)
        output.console().print()
    print_means(rows, means_of(rows, "", asked), asked, TableFormat(format.value))


def _print_table(
    workload: Workload, machine: Cluster | None, board: Leaderboard, settings: dict[str, Any]
) -> None:
    """Print a leaderboard for people."""
    out = output.console()
    _print_setting(workload, machine, board, settings)
    output.print_cleaning(out, workload)
    out.print()
    out.print(_rich_table(board))
    for line in notes_of(board):
        out.print(line, markup=False, soft_wrap=True)


def _rich_table(board: Leaderboard) -> Table:
    """Return the leaderboard for rich; ``*`` marks the best of a column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from hpcgym.evaluation.tables import lines_of

    heading, rows = lines_of(board)
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        caption="* best of its column" if any(top for row in rows for _, top in row) else None,
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for title in heading[1:]:
        table.add_column(title.replace("\n", " \n") + " ", justify="right", no_wrap=True)
    for (policy, _), *cells in rows:
        values = (
            Text(f"{text}*", "bold green") if top else Text(f"{text} ") for text, top in cells
        )
        table.add_row(Text(policy), *values)
    return table
