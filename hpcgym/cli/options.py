"""Options that several commands have, names that help lists, and what a shell completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcgym.cli.groups import OWN_COMMAS, names_in
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler


# --- What the names that options take mean, for the help of commands ------------------------------

#: What the cleaning recipes are for.
RECIPES = {
    "default": "glesser, and the run time stands in for a missing requested time",
    "glesser": "drop jobs without run time, request or processors, or larger than the machine; cut"
    " run times at the request (thesis of D. Glesser)",
    "legrand": "as glesser, but jobs that ran longer than requested are dropped (paper of Legrand,"
    " Trystram and Zrigui)",
    "none": "the file as it is",
}


#: What the co-schedulers do; rules are in :data:`hpcgym.baselines.schedulers.COSCHEDULERS`.
COSCHEDULERS = {
    "easy-co": "in order of arrival, with EASY's reservation for the first that waits",
    "sjf-co": "the job that requests the shortest time first, EASY",
    "ljf-co": "the job that requests the longest time first, EASY",
    "largest-co": "the job with most processes first, EASY",
    "popularity-co": "the job that gains beside most of the others that wait first, EASY",
    "filler-co": "what fits best into what is free, whoever waits",
    "sjf-filler-co": "the same, weighed with how short a job is",
    "popularity-filler-co": "the same, weighed with how many others a job gains beside",
    "easy-spread": "EASY, each job on half of each socket of nodes of its own",
}


def named(module: str, table: str) -> Callable[[], list[tuple[str, str]]]:
    """Return what lists the names in a table of a module, which is imported then, with meanings."""

    def listed() -> list[tuple[str, str]]:
        entries = getattr(import_module(module), table).items()
        return [(name, one if isinstance(one, str) else one.meaning) for name, one in entries]

    return listed


policies = named("hpcgym.scheduler.policies", "POLICIES")
shared_policies = named("hpcgym.scheduler.policies.index", "PASS_POLICIES")
estimates = named("hpcgym.scheduler.estimates", "ESTIMATES")
limit_rules = named("hpcgym.scheduler.rules", "POWER")
coschedulers = named(__name__, "COSCHEDULERS")


def schedulers() -> Iterable[tuple[str, str]]:
    """Return the named schedulers and their rules."""
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.labels import describe

    return [(name, describe(scheduler)) for name, scheduler in SCHEDULERS.items()]


def dispatchers() -> Iterable[tuple[str, str]]:
    """Return the named dispatchers and what they do."""
    from hpcgym.baselines.dispatchers import CP_DISPATCHERS, DISPATCHERS

    for name, dispatcher in DISPATCHERS.items():
        needs = "; needs the extra cp" if name in CP_DISPATCHERS else ""
        yield name, dispatcher.meaning + needs


def coscheduling() -> Iterable[tuple[str, str]]:
    """Return the co-schedulers, and the rules that act in CoSchedule."""
    from hpcgym.baselines.labels import describe
    from hpcgym.baselines.schedulers import COSCHEDULERS

    simulated = [(name, describe(scheduler)) for name, scheduler in COSCHEDULERS.items()]
    return [*simulated, *named("hpcgym.baselines.pair_policies", "PAIR_POLICIES")()]


def machines() -> Iterable[tuple[str, str]]:
    """Return the ready-made machines and what their nodes have."""
    from hpcgym.cluster import find_cluster, machine_names

    for name in machine_names():
        cluster = find_cluster(name)
        kinds = (f"{group.nodes:,} nodes of {_node(group.resources)}" for group in cluster.groups)
        yield name, "; ".join(kinds)


def _node(resources: Mapping[str, int]) -> str:
    """Return what a node has."""
    from hpcgym.naming import MEMORY

    return ", ".join(
        f"{amount / 1000:g} GB" if name == MEMORY else f"{amount} {name}"
        for name, amount in resources.items()
    )


def recipes() -> Iterable[tuple[str, str]]:
    """Return the cleaning recipes, and the filters that they consist of."""
    from hpcgym.workload.cleaning import FILTERS

    filters = [(name, _first_line(function.__doc__)) for name, function in FILTERS.items()]
    return [*RECIPES.items(), *filters]


def policy_features() -> Iterable[tuple[str, str]]:
    """Return the features that policies weigh, with what they are."""
    from hpcgym.scheduler.policies.features import meanings

    return list(meanings(usage=True).items())


def in_expressions() -> Iterable[tuple[str, str]]:
    """Return what an expression may name, and its functions."""
    from hpcgym.scheduler.policies.expressions import FUNCTIONS, NAMES

    functions = [(f"{name}()", meaning) for name, (_, meaning) in FUNCTIONS.items()]
    return [*NAMES.items(), *functions]


def _first_line(text: str | None) -> str:
    """Return the first line of a docstring as it stands in a list."""
    line = (text or "").strip().splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]


def ranking_metrics() -> Iterable[tuple[str, str]]:
    """Return the metrics that policies can be ranked by, and what each is."""
    from hpcgym.schedule.metrics import MORE, ranking_metrics

    for metric in ranking_metrics().values():
        more = ": more is better" if metric.better == MORE else ""
        yield metric.name, metric.heading + more


#: What help lists of commands that read jobs for a machine: title -> names and meanings.
OF_READING = {
    "Machines (--cluster)": machines,
    "Cleaning recipes and filters (--clean)": recipes,
}


# --- Names that a shell completes at TAB ----------------------------------------------------------

#: Schedulers, dispatchers and estimates are written out: their modules take half a second.
#: Schedulers named after policies are left out. A test compares.
SCHEDULERS = (
    *("easy", "conservative", "easy-sjbf", "easy++", "easy-e-loss"),
    *("saf-typical", "saf-typical-20h-hold", "saf-typical-80h", "aged", "aged-safe"),
)
DISPATCHERS = (
    *("fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb"),
    *("cph-0", "cph-1", "cph-2", "cph-3", "cp-0", "cp-1", "cp-2", "cp-3"),
    *("hcp19", "pcp19", "pcp20"),
)
ESTIMATES = (
    *("requested", "double-requested", "clairvoyant", "ave2", "user-ratio", "typical-ratio"),
    *("data-driven", "e-loss", "regression"),
)


def _completing(found: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what completes one of these names, or the last of several that commas join."""

    def complete(incomplete: str) -> list[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return [before + name for name in found()]

    return complete


def _of(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [name for name, _ in pairs]


def _traces() -> list[str]:
    from hpcgym.workload.archive import TRACES, own_traces

    try:
        own = own_traces()
    except HpcgymError:  # a wrong HPCGYM_DATA is said by commands, not between the letters of one
        own = {}
    copies = {
        name for name, path in own.items() for t in TRACES.values() if t.is_archive_file(path)
    }
    return [*TRACES, *(name for name in own if name not in copies)]


complete_policies = _completing(lambda: _of(policies()))
complete_schedulers = _completing(
    lambda: [*SCHEDULERS, *_of(policies()), *DISPATCHERS, *COSCHEDULERS]
)
complete_estimates = _completing(lambda: ESTIMATES)
complete_traces = _completing(_traces)
complete_machines = _completing(lambda: _of(machines()))
complete_metrics = _completing(lambda: _of(ranking_metrics()))
complete_recipes = _completing(lambda: _of(recipes()))

#: Option or argument -> what completes it.
COMPLETED = {
    **dict.fromkeys(("scheduler", "against", "reference", "policies"), complete_schedulers),
    **dict.fromkeys(("policy", "backfill_order", "order", "orders"), complete_policies),
    **dict.fromkeys(("estimate", "policy_estimate"), complete_estimates),
    **dict.fromkeys(("cluster", "name"), complete_machines),
    **{"workload": complete_traces, "clean": complete_recipes, "metric": complete_metrics},
}


# --- Options that several commands have, and what their values become -----------------------------


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="How to print the result; numbers are in full in json and csv.",
        rich_help_panel="Output",
    ),
]


#: For leaderboards and for the search for weights.
NumberOption = Annotated[
    int | None,
    typer.Option(
        "--number",
        "-n",
        metavar="N",
        help="Number of slices, chosen at random.",
        show_default="100 windows, all weeks or months",
        rich_help_panel="Experiment",
    ),
]


def given(**overrides: Any) -> dict[str, Any]:
    """Return the options that were given: the scheduler keeps its own for others."""
    return {name: value for name, value in overrides.items() if value is not None}


def given_rules(**texts: str | None) -> dict[str, Any]:
    """Return the rules that were given, as variants of schedulers have them: None for "none"."""
    from hpcgym.baselines.schedulers import rule_value

    return {rule: rule_value(rule, text) for rule, text in given(**texts).items()}


# --- Rules of schedulers --------------------------------------------------------------------------


@dataclass(frozen=True)
class Backfilling:
    """Whether jobs are backfilled in environments in which agents learn.

    Scheduler
    ---------
    backfill easy|until-shadow|none : Whether jobs are backfilled; until-shadow: only those that end
        before the first waiting job can start. [default: easy]
    """

    backfill: str | None = None


@dataclass(frozen=True)
class BackfillRules(Backfilling):
    """The same, and in which order.

    Scheduler
    ---------
    backfill_order fcfs|sjbf|NAME : Order of backfilling.
    """

    backfill_order: Annotated[str | None, OWN_COMMAS] = None

    def given(self) -> dict[str, Any]:
        """Return the rules that were given, by name: the scheduler keeps its own for others."""
        return given_rules(**vars(self))


@dataclass(frozen=True)
class PredictedRules(BackfillRules):
    """The same, and what run times are taken to be.

    Scheduler
    ---------
    estimate NAME : How run times are predicted for backfilling; hpcgym simulate --help lists the
        names.
    policy_estimate NAME : Which run times policies look at in place of requested times; names as
        for --estimate.
    """

    estimate: Annotated[str | None, OWN_COMMAS] = None
    policy_estimate: Annotated[str | None, OWN_COMMAS] = None


@dataclass(frozen=True)
class WeighedRules(PredictedRules):
    """The same, and what counts beside the weights of a policy.

    Scheduler
    ---------
    threshold TIME|none : Jobs that waited longer come first, whatever the policy.
    hold SHARE|KEY=VALUE,...|none : Long jobs start only if up to this share of the machine stays
        free behind them: share=0.1, from_s=3600, factor=64, erode_s=14400,
        by=requested|policy_estimate|both.
    fair_share FILE|KEY=VALUE,...|none : For policies by usage: half_life_s=604800, damping=1,
        accounts=group, formula=fair-tree; or a TOML file with these and the tables shares and
        accounts.
    """

    threshold: str | None = None
    hold: Annotated[str | None, OWN_COMMAS] = None
    fair_share: Annotated[str | None, OWN_COMMAS] = None


@dataclass(frozen=True)
class _AllRules(WeighedRules):
    """The same, with all rules that environments and single simulations have.

    Scheduler
    ---------
    correction requested|incremental|recursive-doubling|predicted-again|kill|next-second : What
        replaces a prediction that was too short: the requested time; somewhat more (incremental);
        twice the time so far; what the estimate says then (predicted-again); nothing, because the
        job is killed (kill); or, for dispatchers, the next second, over and over (next-second).
    passes per-timestamp|per-event : When the queue is looked at: once at each time, after all that
        happens then; or after each submission and each end, as older simulators do. [default:
        per-timestamp]
    quota user:jobs=10|...|FILE|none : How many jobs or processors may run at once: of each user,
        group, queue, partition or array (user:jobs=10), of one of them
        (queue=normal:processors=512), of each user of one
        (queue=normal/user:jobs=10+processors=64), or of all (all:jobs=100). How many may run or
        wait: user:submitted=50; other jobs are submitted later. Put ';' between several quotas. Or
        a file that sacctmgr -P show qos printed, or a dump of sacct, for the throttles of its
        arrays.
    maintenance BEGIN/END|...|FILE|none : When the machine is closed to jobs, as is known from the
        beginning: dates or seconds of the log (2026-03-01T08:00/2026-03-02T08:00). Add
        :processors=32 or :nodes=gpu,0-3 to close a part of it. Put ';' between several. Or a file
        like that of --failures.
    preemption partition:interactive>batch|...|FILE|none : Which jobs may stop others to start at
        once: those of a partition, a queue or QOS (qos:high>low), a user or a group. Put ';'
        between several. Stopped jobs wait again and run from the beginning; add ',cancel', and they
        do not run again, or ',suspend', and they go on later. With ',exempt=600' no run is stopped
        in its first 600 s. Or a file that sacctmgr -P show qos printed.
    dependencies none|after|closed-loop : When jobs that follow others (preceding_job, think_time)
        are submitted: when the log says (none); then, but not before the others have ended and the
        user has thought (after); or as soon as this is so, whatever the log says (closed-loop).
        [default: none]
    """

    correction: str | None = None
    passes: str | None = None
    quota: str | None = None
    maintenance: Annotated[str | None, OWN_COMMAS] = None
    preemption: Annotated[str | None, OWN_COMMAS] = None
    dependencies: str | None = None


@dataclass(frozen=True)
class _Order:
    """The order of the queue; in help before the other rules.

    Scheduler
    ---------
    policy NAME|EXPRESSION|WEIGHTS|MODULE:NAME : Order of the queue: a policy of the list below; an
        expression, highest value first, such as '20 * wait - requested * processors'; six weights
        such as 0.1,-0.2,0,0,0,0.7 of processors, requested time, wait, ratio, expansion and area;
        or module:function of your own, which scores the queue.
    """

    policy: Annotated[str | None, OWN_COMMAS] = None


@dataclass(frozen=True)
class SimulatedRules(_AllRules, _Order):
    """Those of single simulations, which have more ways to backfill.

    Scheduler
    ---------
    backfill none|easy|until-shadow|K|slurm|conservative|fill : Which queued jobs have a reservation
        that others must not delay: none, and no job overtakes; the first (easy; until-shadow:
        others must end before it begins); the first K; all (conservative). slurm: as Slurm does it,
        every 30 s (slurm:bf_interval=60). With --speedups also fill: any job that finds room
        starts.
    backfill_order fcfs|sjbf|NAME : Order in which jobs are tried for backfilling: submission,
        shortest predicted run time first, or a policy. [default: as goes with the policy: fcfs with
        fcfs, fair share its own, else spf]
    dispatch_time SECONDS|measured : How long each call of a dispatcher takes: the jobs that it
        names start so much later. measured: the time on the clock, so no two runs are the same.
    """

    backfill: str | None = None
    backfill_order: Annotated[str | None, OWN_COMMAS] = None
    dispatch_time: str | None = None


@dataclass(frozen=True)
class EvaluatedRules(_AllRules):
    """Those of a leaderboard: by default each agent has what it was trained with.

    Scheduler
    ---------
    backfill easy|none : With or without backfilling, in environments and references. [default: as
        agents were trained, or easy]
    backfill_order fcfs|sjbf|NAME : Order of backfilling in environments and of policies by name.
        [default: as agents were trained, or spf]
    estimate NAME : How run times are predicted for backfilling, in environments and of policies by
        name; names as for hpcgym simulate. Schedulers with an estimate of their own, such as
        easy++, keep it and its correction. [default: as agents were trained, or requested]
    policy_estimate NAME : Which run times policies look at in place of requested times, likewise.
        [default: as agents were trained, or requested]
    """

    backfill: str | None = None
    backfill_order: str | None = None
    estimate: str | None = None
    policy_estimate: str | None = None


def rules(name: str, overrides: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, or the one that asks a dispatcher, with rules changed.

    Schedulers, dispatchers and policies may be the user's own, ``module:name``, of the current
    folder too.

    What is wrong is said before the work: an unknown name, a dispatcher that needs what is not
    installed, or a rule of the queue beside a dispatcher.
    """
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.dispatchers import DISPATCHERS, find_dispatcher
    from hpcgym.baselines.schedulers import COSCHEDULERS, is_scheduler, no_scheduler
    from hpcgym.cli.lineup import is_own, own_scheduler, with_own_rules
    from hpcgym.scheduler.rules import OF_THE_QUEUE, POWER, Scheduler, not_beside_a_dispatcher
    from hpcgym.simulation.run import scheduler_of

    policy = overrides.get("policy")
    if isinstance(policy, str) and len(names_in(policy)) > 1:
        raise HpcgymError(f"{policy} are several policies: hpcgym compare --policy {policy}")
    overrides = with_own_rules(overrides)
    own = is_own(name)
    if own or name in DISPATCHERS:
        found = own_scheduler(name) if own else find_dispatcher(name)
        if isinstance(found, Scheduler):
            return scheduler_of(found, overrides)
        per_event = ["passes"] if overrides.get("passes") == "per-event" else []
        for rule in (*OF_THE_QUEUE, *per_event):
            if rule in overrides:
                raise HpcgymError(not_beside_a_dispatcher(f"--{rule.replace('_', '-')}", name))
        return scheduler_of(found if own else name, overrides)
    if not is_scheduler(name):
        known = [*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS]
        if name in POWER:
            raise HpcgymError(
                f"{name} is a way to keep limits, not a scheduler: --power {name}, beside --cap or"
                " --budget"
            )
        if "," in name and {one.strip() for one in name.split(",")} <= set(known):
            raise HpcgymError(f"{name} are several schedulers: hpcgym compare --scheduler {name}")
        raise no_scheduler(name, known, "scheduler or dispatcher")
    return scheduler_of(name, overrides)
