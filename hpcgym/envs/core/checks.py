"""What an environment is, settled: its kind of machine, and rules that go with it and its jobs."""

from __future__ import annotations

from hpcgym.envs.core.base import Definition, Limited, Options
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.reward import MAX_WAIT
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.asked_for import (
    check_extract,
    check_fair_share,
    counts_usage,
    what_moves,
)
from hpcgym.scheduler.rules import PREDICTING
from hpcgym.scheduler.unused import warn_of_unused
from hpcgym.scheduler.whole_nodes import check_power_rule, own_nodes_by
from hpcgym.workload.checks import check_jobs

#: What cannot be simulated, in the order in which it is looked for.
_REFUSED = {
    "around nodes": "start, warmup, arrivals and horizon do not go with {where}: what is drawn"
    " there, and how fast jobs run, is told of a whole episode, with no slice of it set apart",
    "hold": "hold and {mover} do not go together in environments: the agent is asked before those"
    " jobs come that others have let come",
    "stops": "preemption and {mover} do not go together in environments: an episode is over when"
    " nobody can be stopped any more, and then others may come",
    "moves": "{around} not go with {mover}: they go by submissions that are known before; {alone}",
    "final": "{around} not go with {stopper}: they go by starts that are final; {alone}",
    "function": "reward: a function of one's own sees the jobs that started, and with preemption"
    " no start is final; take a name, or weights by name",
    "max_wait": "reward 'max_wait' does not go with nodes of jobs' own: these tell of waits when"
    " jobs have started, not how long the longest is by then; take 'p99_wait'",
    "reference": "reward: what is divided by that of a scheduler does not go with limits, for it"
    " would be simulated without them; take 'bsld'",
}


def settled(definition: Definition, episodes: Episodes) -> Definition:
    """Return what an environment is, with its kind of machine, checked beside its jobs.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`check_episodes`; rules that do not go with the machine.
    """
    scheduler = definition.options.scheduler
    if definition.limited is None and definition.corun is None:
        definition = definition._replace(limited=own_nodes(definition.options))
    check_episodes(definition, episodes)
    weighs = definition.by_name
    check_fair_share(scheduler.fair_share, counts_usage(scheduler, weighs))
    warn_of_unused([episodes.log], [scheduler], weighs)
    return definition


def own_nodes(options: Options) -> Limited | None:
    """Return what is said of a machine without limits if jobs have nodes of their own on it."""
    check_power_rule(options.scheduler, None)
    if not own_nodes_by(options.cluster, options.scheduler):
        return None
    return Limited((), None, options.cluster.shutdown_after_s is not None)


def may_refuse(definition: Definition, episodes: Episodes) -> bool:
    """Return whether a simulation may still refuse what an environment is given.

    On a pool of processors names and numbers are checked by then. What nodes, rules of a site,
    shares of users, extracts, and users' own functions, expressions and predictions may have wrong
    shows beside single jobs.
    """
    options, log, start = definition.options, episodes.log, episodes.start
    rules = [options.scheduler] if start is None else [options.scheduler, start]
    by_jobs = (
        options.cluster.groups, options.own, definition.limited, definition.corun,
        definition.weighed, definition.shutdown_action, log.initial is not None,
        counts_usage(options.scheduler, definition.by_name), (log.power_w >= 0).any(),
    )  # fmt: skip
    return any(by_jobs) or not all(scheduler.is_plain for scheduler in rules)


def check_episodes(definition: Definition, episodes: Episodes) -> None:
    """Raise unless the episodes can be simulated by these arguments of an environment.

    Raises
    ------
    HpcgymError : rules that do not go together, or predictions of other jobs.
    WorkloadError : a job that is larger than the machine.
    """
    options, workload, rewards = definition.options, episodes.log, definition.options.rewards
    limited, shared = definition.limited is not None, definition.corun is not None
    scheduler, surrounded = options.scheduler, not episodes.alone
    for rule in PREDICTING:
        if not isinstance(getattr(scheduler, rule), str | None) and not episodes.have_all_rows:
            raise HpcgymError(
                f"{rule}: predictions of one's own are for all jobs of the workload, and "
                f"episodes={episodes.kind!r} leave some out; use 'windows' or 'whole'"
            )
    check_jobs(workload, options.cluster.processors)
    moves, preempts = scheduler.moves_submissions, scheduler.preemption is not None
    cases = {
        "around nodes": surrounded and (limited or shared),
        "hold": scheduler.hold is not None and moves,
        "stops": moves and preempts,
        "moves": surrounded and moves,
        "final": surrounded and preempts,
        "function": rewards.function is not None and preempts,
        "max_wait": limited and any(row[MAX_WAIT] for row in rewards.weights),
        "reference": definition.has_limits and any(rewards.references),
    }
    words = {
        "where": "nodes that jobs share" if shared else "nodes of jobs' own",
        "mover": what_moves(scheduler), "stopper": scheduler.said("preemption"),
        "around": _around(episodes), "alone": _ALONE,
    }  # fmt: skip
    for case, is_so in cases.items():
        if is_so:
            raise HpcgymError(_REFUSED[case].format(**words))
    check_extract(workload, *["environments under limits"] * limited, *["shared nodes"] * shared)
    if definition.shutdown_action:
        check_extract(workload, shutdown="shutdown_action")
        if options.cluster.groups:
            raise HpcgymError("shutdown_action is for pools of processors, not for nodes")


_ALONE = "give start='empty', warmup=None, arrivals='stop' and horizon=None"


def _around(episodes: Episodes) -> str:
    """Return what episodes have around their jobs, given or by default, and "does" or "do"."""
    arguments = [
        f"{name}={episodes.around[name]!r}"
        for name, nothing in NOTHING_AROUND.items()
        if episodes.around[name] != nothing
    ]
    arguments += ["episodes='stream'"] if episodes.kind == "stream" else []
    return f"{', '.join(arguments)} {'does' if len(arguments) == 1 else 'do'}"
