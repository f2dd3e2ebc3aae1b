"""``hpcgym evaluate``: agents and schedulers on unseen slices, or on one pass through a log."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli import loading, names, options, output
from hpcgym.cli.boards import (
    SLICE,
    Shown,
    Slices,
    by_group,
    report_failures,
    save_figures,
    sheet_of,
    show_board,
)
from hpcgym.cli.groups import grouped
from hpcgym.cli.output import FigureOptions
from hpcgym.cli.running import note
from hpcgym.cli.tables import Format, Sheet, of_frame, rows_of, show
from hpcgym.errors import HpcgymError, PolicyWarning, check_choice, unknown
from hpcgym.progress import counting

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.machine import Cluster
    from hpcgym.study import Leaderboard, Prequential
    from hpcgym.workload import Workload


# --- ``hpcgym evaluate --protocol prequential`` ---------------------------------------------------

PROTOCOLS = ("slices", "prequential")


@dataclass(frozen=True)
class Protocol:
    """How policies are compared, and what one pass takes.

    Experiment
    ----------
    protocol slices|prequential : How agents are judged: on slices that they have not seen; or in
        one pass through all jobs of the part, in which learners learn while they schedule
        (prequential; see the list of learners below).
    interval day|week|hour|6h|N : For prequential: how long a learner's weights hold; a number N
        means N submissions. [default: day]

    Output
    ------
    folder FOLDER : Of prequential: where tables, by week too, and the picture regret.png are
        written.
    """

    protocol: str = "slices"
    interval: str | None = None
    folder: Annotated[Path | None, typer.Option("--output")] = None

    def is_prequential(self) -> bool:
        """Return whether learners go through all jobs once.

        Raises
        ------
        HpcgymError : another protocol, or options that are for the other one.
        """
        check_choice("--protocol", self.protocol, PROTOCOLS)
        if self.protocol == "prequential":
            return True
        for option, value in (("--interval", self.interval), ("--output", self.folder)):
            if value is not None:
                raise HpcgymError(f"{option} is for --protocol prequential")
        return False


def learners() -> list[tuple[str, str]]:
    """Return the names of learners, then other ways to name one, each with what it is."""
    return [
        ("weight-bandit", "chooses how much waiting counts beside size, and forgets"),
        ("MODULE:CLASS", "your own, with act(observation, info) and observe(observation, reward,"
         " ended), from this folder or installed; docs/online.md shows one"),
    ]  # fmt: skip


def run(
    policies: Any,
    workload: Workload,
    machine: Cluster | None,
    protocol: Protocol,
    settings: Mapping[str, Any],
    others: Mapping[str, Any],
    rules: Mapping[str, Any],
    format: Format,
) -> None:
    """Let learners go through the jobs once, and print what they have reached.

    Parameters
    ----------
    policies : of :func:`hpcgym.study.evaluation.lineup.lineup_of`.
    settings : ``part``, ``train_share``, ``seed`` and ``budget``.
    others : option -> its value, of those that are for slices; None where it was not given.
    """
    from hpcgym.report.canvas import require_matplotlib
    from hpcgym.study import prequential
    from hpcgym.study.intervals import block_length, why_no_intervals

    for option, value in others.items():
        if value is not None:
            raise HpcgymError(f"{option} is not for --protocol prequential, which has no slices")
    if not policies.policies:
        raise HpcgymError(
            "name a learner, such as weight-bandit; hpcgym evaluate --help lists them"
        )
    if protocol.folder is not None:
        if protocol.folder.is_file():
            raise HpcgymError(f"{protocol.folder} is a file; --output names a folder")
        require_matplotlib()
    interval = protocol.interval or "day"
    board = prequential(
        policies, workload, interval=int(interval) if interval.isdecimal() else interval,
        cluster=machine, progress=counting, **settings, **rules,
    )  # fmt: skip
    table = board.table.reset_index()
    weeks = board.by_week()
    block = block_length(n := len(weeks))
    why = why_no_intervals(n // block, f"blocks of {block} weeks")
    if format is not Format.table and why:  # the table has it below
        note(why)
    each = {"weeks": weeks, "regret": board.regret}
    by_week = {name: rows_of(one.reset_index()) for name, one in each.items()}
    facts = {"workload": workload.name, "interval": interval, **settings}
    what = f"one pass, weights for {interval}, {len(board.stream):,} jobs of {n} weeks"
    intervals = why or f"95 % intervals: resamples of blocks of {block} weeks"
    show(
        format,
        lambda: _sheet(board, table, what, intervals),
        lambda: [{"workload": workload.name, **row} for row in rows_of(table)],
        lambda: {**facts, "policies": rows_of(table), **by_week},
    )
    if protocol.folder is not None:
        files = board.save(protocol.folder)
        note(f"wrote {', '.join(file.name for file in files)} into {protocol.folder}")


def _sheet(board: Prequential, table: pd.DataFrame, what: str, intervals: str) -> Sheet:
    """Return the table for people, above it what was done, below it what the intervals are."""
    from hpcgym.study.evaluation.online import FIXED

    ends = [f"{measure}_{end}" for measure in ("mean_bsld", "regret") for end in ("low", "high")]
    shown = table.drop(columns=ends)
    for measure, form in (("mean_bsld", ".1f"), ("regret", "+.0f")):
        pairs = zip(table[f"{measure}_low"], table[f"{measure}_high"], strict=True)
        words = ["" if math.isnan(low) else f"[{low:{form}}, {high:{form}}]" for low, high in pairs]
        shown.insert(list(shown).index(measure) + 1, f"{measure} interval", words)
    shown.loc[shown["policy"] == FIXED, "regret interval"] = ""  # not compared with itself
    shown["decisions"] = [f"{number:,}" if number else "" for number in table["decisions"]]
    shown = shown.rename(columns={"regret": "regret [%]"})
    weights = ", ".join(f"{weight:.3g} {name}" for name, weight in board.weights.items())
    below = [intervals, *board.verdicts, f"{FIXED}: {weights}; chosen on these jobs"]
    return Sheet([], [of_frame(shown, f"{board.stream.name}: {what}")], below)


# --- ``hpcgym evaluate`` --------------------------------------------------------------------------

_METRIC = "mean_bsld"


@grouped(
    {
        "Learners (--protocol prequential)": learners,
        "Rules under limits, alone or with a scheduler, as reduce-pc+saf": names.limit_rules,
        "Where jobs share nodes (--env CoSchedule)": names.coscheduling,
        "Metrics (--metric)": names.ranking_metrics,
    },
    brief={
        "Schedulers": names.schedulers,
        "Dispatchers": names.dispatchers,
        **names.OF_READING,
    },
)
def evaluate(
    workload: loading.WorkloadOption,
    *,
    policies: Annotated[list[str] | None, typer.Argument()] = None,
    env: str | None = None,
    share: float | None = None,
    shutdown: Annotated[bool | None, typer.Option("--shutdown/--no-shutdown")] = None,
    speedups: str | None = None,
    protocol: Protocol,
    slices: Slices,
    seed: int = 0,
    budget: int = 200,
    metric: str = _METRIC,
    reference: str | None = None,
    by: str | None = None,
    rules: options.EvaluatedRules,
    reading: loading.MachineReading,
    format: Format = Format.table,
    page: output.PageOptions,
    paper: FigureOptions,
) -> None:
    """Compare agents and schedulers on unseen slices of a workload.

    The table always has the references EASY, EASY-SJBF, SAF, F1 (without backfilling FCFS, SJF,
    SAF, F1), the best fixed weights, found on the training part, and random: a random order of the
    queue, or random actions if agents select jobs, order or weigh. Under a budget of energy it says
    how far each policy is above powercap, and has the energy of each policy: of the whole schedule,
    and while the limits hold. The 95 % intervals are from resampled slices, and from resampled
    trainings if a row has several; fewer than 5 slices have none. p is from the permutation test
    that a policy differs from the reference, slice by slice. It is not corrected for the number of
    rows.

    With --protocol prequential, learners go through all jobs once, from the first to the last, and
    learn from jobs that have ended. Their regret is how much worse they are than the best weights
    in hindsight.

    Arguments
    ---------
    policies AGENT|LEARNER|SCHEDULER|DISPATCHER|RULE|EXPRESSION|WEIGHTS : Files of saved agents
        (.pt, .json); models of Stable-Baselines3 (.zip, with model.env.json beside model.zip as
        hpcgym.agents.save_spec writes it, or with --env; reading one runs code that is in it);
        package.module:Class or :function of your own, or a Scheduler(policy=function) there, from
        this folder too; lookahead, schedulers, dispatchers and rules of the lists below, learners
        with --protocol prequential; expressions such as '20 * wait - area', as hpcgym simulate
        --policy takes them; or six weights such as 0.1,-0.2,0,0,0,0.7. Behind -- if the first has a
        minus. NAME=FILE,FILE,... is one row of several trainings of one agent.

    Experiment
    ----------
    env NAME : The environment: EnergyBudget or PowerCap, whose limits all rows keep; CoSchedule, in
        which jobs share nodes; or the one for policies that do not name theirs. [default: as agents
        were trained]
    seed N : Seed of all random choices: the same seed gives the same table.
    budget N : Weight vectors tried on the training part for best-static; 0 leaves it out. For
        prequential they are tried on all jobs, for the best in hindsight.
    metric NAME : The metric that ranks policies, one of those below, as a mean over the slices.
    reference ROW : Row that the others are compared with: the table says how far they are above it,
        with p-values. [default: easy, without backfilling fcfs]

    Output
    ------
    by slice|class|user : A row for each, such as each week with --episodes weeks. Classes of jobs
        by run time are short, below 10 minutes, medium, below 2 hours, and long. [default: one row
        for each policy]

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
    hpcgym evaluate agent.pt cph-3 pcp20 --workload KTH-SP2 --number 10
    hpcgym evaluate agent.pt sjf --workload trace.swf.gz --backfill none --format json
    hpcgym evaluate prb easy++ --workload eurora:days=30 --cluster eurora --episodes whole
    hpcgym evaluate --workload KTH-SP2 --number 30 -- -0.1,0,0,0,0.9,0 saf
    hpcgym evaluate reduce-pc energy-bud+saf --env EnergyBudget --share 0.6 --shutdown --workload
        KTH-SP2 --episodes weeks
    hpcgym evaluate weight-bandit my_module:MyLearner --protocol prequential --workload KTH-SP2
        --clean legrand
    hpcgym evaluate greedy-pairs popularity-co --env CoSchedule --workload
        codes:jobs=5000,processes=96,processors=768 --cluster 16x2x24 --number 20
    """
    from hpcgym.schedule.provenance import provenance_of_workloads
    from hpcgym.scheduler.own_code import look_here
    from hpcgym.study.evaluation.lineup import find_policy, lineup_of, schedulers_of

    if any(":" in text or ".zip" in text for text in policies or ()):  # which may run code
        look_here()
    machine = reading.machine
    given = rules.given() | options.given(allocation=reading.allocation)
    one_pass, environment = protocol.is_prequential(), _env(env)
    found = lineup_of(policies or [], partial(find_policy, seed=seed if one_pass else None))
    source = reading.load(workload, schedulers=schedulers_of(found, given))
    if one_pass:
        others = {
            "--env": env, "--share": share, "--shutdown": shutdown, "--speedups": speedups,
            "--number": slices.number, **slices.changed(),
            "--html": page.html, "--figures": paper.figures, "--reference": reference, "--by": by,
            "--metric": None if metric == _METRIC else metric,
        }  # fmt: skip
        shared: dict[str, Any] = {"train_share": slices.train_share, "seed": seed, "budget": budget}
        shared |= {"part": slices.part or "all"}
        run(found, source, machine, protocol, shared, others, given, format)
        return
    of_environment = options.of_environment(environment, share, shutdown)
    of_environment |= options.given(speedups=speedups)
    ranked = {"metric": metric, "reference": reference, "by": by}
    settings = _settings(slices, seed, budget)
    board = _board(
        found, source, **settings, **ranked, cluster=machine, env=environment,
        env_options=of_environment, **given,
    )  # fmt: skip
    settings |= {"n": len(board.by_slice), **board.around}  # newer environments have their own
    report_failures(board)
    shown = Shown(source, machine, board, settings, reading.clean)
    means = None if by is None else by_group(shown, by, reference)
    sheet = sheet_of(shown) if means is None else means.sheet
    page.write(lambda: sheet.page(provenance_of_workloads([source])))
    if means is None:
        show_board(shown, format)
    else:
        means.show(format)
    paper.write(partial(save_figures, source, board))  # what it refuses takes no table away
    if (board.table["failed"] == board.table["slices"]).any():
        raise typer.Exit(1)


def _settings(slices: Slices, seed: int, budget: int) -> dict[str, Any]:
    """Return the slices of an evaluation and its seed, as ``hpcgym.evaluate`` takes them."""
    return {
        "slices": slices.part or "test",
        "episodes": slices.episodes,
        "jobs": slices.jobs,
        "n": slices.number,
        "train_share": slices.train_share,
        **slices.around(),
        "seed": seed,
        "budget": budget,
    }


def _board(policies: Any, source: Workload, *, by: str | None, **given: Any) -> Leaderboard:
    """Return the leaderboard; arguments as of ``hpcgym.evaluate``, ``by`` as of the option."""
    from hpcgym.schedule.measures import GROUPED_BY
    from hpcgym.study import evaluate as run

    if by is not None:
        check_choice("--by", by, (SLICE, *GROUPED_BY))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)  # they are said by report_failures
        return run(policies, source, by=None if by == SLICE else by, progress=counting, **given)


def _env(name: str | None) -> str | None:
    """Return the id of an environment."""
    from hpcgym.envs import IDS, VERSIONS

    for one in (name, f"hpcgym/{name}"):
        if name is None or one in IDS or one in VERSIONS:
            return one
    if (whole := f"hpcgym/{name}-v0") in IDS:
        return whole
    raise HpcgymError(unknown("--env", name, [one[len("hpcgym/") : -len("-v0")] for one in IDS]))
