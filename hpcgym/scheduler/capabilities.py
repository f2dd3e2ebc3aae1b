"""Which features and machines go together: the one table of those that do not, and why.

:func:`check` raises an error with the reason for each pair in :data:`APART`; :func:`table` is the
table in the docs. A refusal that depends on a value, not on a feature, stands where the value is
read.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpcgym.errors import ApartError

#: Where jobs are scheduled, in words: first the machines, then what simulates them.
PLACES = {
    "pool": "a pool of processors",
    "nodes": "a machine of nodes",
    "failures": "failures of nodes",
    "whole nodes": "jobs with nodes of their own",
    "limits": "limits of power and energy",
    "shared nodes": "speedups of jobs that share nodes",
    "environments": "environments",
    "job selection": "environments that ask for one job after the other",
    "environments by rule": "environments in which a rule orders the queue",
    "environments on nodes": "environments on nodes",
    "environments under limits": "environments under limits",
    "batches": "a batch",
    "batches on nodes": "a batch on nodes",
    "look-ahead": "look-ahead",
}
#: What one may ask for, in words.
FEATURES = {
    "conservative": "backfill='conservative'",
    "depth": "backfill='depth:K'",
    "slurm": "backfill='slurm'",
    "per-event": "passes='per-event'",
    "kill": "correction='kill'",
    "averages": "the mean of a user's last jobs",
    "learned": "run times that are learned",
    "predictor": "a predictor in Python",
    "usage": "an order by what users have used",
    "anew": "an expression that is worked out anew at each pass",
    "state": "an expression that looks at the state",
    "last runs": "an expression that looks at the run times of a user's last jobs",
    "dispatcher": "a dispatcher",
    "dispatch time": "a dispatcher that takes time",
    "threshold": "a starvation threshold",
    "function": "a policy that is a function in Python",
    "hold": "hold",
    "until-shadow": "backfill='until-shadow'",
    "quota": "quotas",
    "submitted": "quotas of submitted jobs",
    "maintenance": "maintenance windows",
    "preemption": "preemption",
    "dependencies": "jobs that follow others",
    "contiguous": "allocation='contiguous'",
    "shutdown": "shutdown_after_s",
    "partitions": "partitions of nodes",
    "extract": "an extract",
}

_OF_AGENTS = "there the agent chooses the jobs that start"
_EMPTY = (
    "they begin with an empty machine; leave the extract out (--from), and give the whole trace, or"
    " one of its weeks (--week)"
)
_NO_PYTHON = "no Python runs inside; 'ave2' or 'e-loss' are compiled"
_OWN_NODES = "a batch counts processors, and jobs have whole nodes of their own then"
_NO_DISPATCHER = "there is no dispatcher"
_OTHER_ENDS = "how long a job runs depends on the jobs beside it"

#: What does not go together, and why.
APART: dict[tuple[str, str], str] = {
    ("conservative", "whole nodes"): "a reservation would have to hold under limits to come",
    ("conservative", "shutdown"): "reservations reckon with processors that are on",
    ("conservative", "environments"): "a new order at each pass would move all reservations",
    ("conservative", "look-ahead"): "a new order at each pass would move all reservations",
    **{
        (rule, place): why
        for rule in ("depth", "slurm")
        for place, why in (
            ("whole nodes", "only the first waiting job has a reservation there, as by 'easy'"),
            ("shared nodes", "a job that starts beside another moves its end and reservations"),
        )
    },
    **{
        (rule, "job selection"): "the agent names one job after the other, and that one alone has a"
        " reservation"
        for rule in ("depth", "slurm")
    },
    **{
        ("hold", plan): "it holds jobs back around reservations that each pass makes anew"
        for plan in ("conservative", "slurm")
    },
    ("per-event", "depth"): "simulators with such passes have one reservation, or all",
    ("per-event", "slurm"): "simulators with such passes have one reservation, or all",
    ("per-event", "nodes"): "simulators with such passes know pools, and units of single cores",
    ("per-event", "whole nodes"): "simulators with such passes know pools",
    ("per-event", "shared nodes"): "simulators with such passes know pools",
    ("per-event", "shutdown"): "processors would be awaited in the middle of a time",
    ("learned", "shared nodes"): _OTHER_ENDS,
    ("averages", "shared nodes"): _OTHER_ENDS,
    ("predictor", "shared nodes"): _OTHER_ENDS,
    ("last runs", "shared nodes"): _OTHER_ENDS,
    ("predictor", "environments"): _NO_PYTHON,
    ("predictor", "batches"): _NO_PYTHON,
    ("predictor", "look-ahead"): _NO_PYTHON,
    ("dispatcher", "shared nodes"): "it is not told which jobs may run side by side",
    ("dispatcher", "environments"): _OF_AGENTS,
    ("dispatcher", "batches"): "there weights order the queue",
    ("dispatcher", "look-ahead"): "there weights order the queue",
    ("dispatch time", "whole nodes"): (
        "while it computes, limits and switched nodes may come to allow other jobs"
    ),
    ("state", "whole nodes"): "there power and energy, too, decide what is free",
    **{
        ("dispatch time", place): _NO_DISPATCHER
        for place in ("shared nodes", "environments", "batches", "look-ahead")
    },
    ("function", "environments"): "there the agent orders the queue",
    ("function", "batches"): "there weights order the queue",
    **{
        (rule, "environments by rule"): "there jobs start around one reservation at most"
        for rule in ("depth", "slurm")
    },
    **{
        (rule, "environments by rule"): "there a plan chooses the jobs that start, not the agent"
        for rule in ("quota", "submitted", "maintenance", "preemption", "dependencies")
    },
    ("hold", "whole nodes"): "it keeps processors free, but no power and energy",
    ("hold", "shared nodes"): "a job that starts beside another takes no free node",
    ("contiguous", "pool"): "its processors are no nodes; cluster= says which machine",
    ("contiguous", "shared nodes"): "allocation says there how jobs share nodes",
    ("contiguous", "batches"): _OWN_NODES,
    ("shutdown", "shared nodes"): "nodes that jobs share stay on",
    ("shutdown", "batches on nodes"): _OWN_NODES,
    ("shutdown", "extract"): "which processors were off at its beginning is not known",
    ("contiguous", "failures"): "jobs have nodes of their own then, which limits switch",
    ("shutdown", "failures"): "a node that is off would fail without a job that shows it",
    ("failures", "pool"): "its processors are no nodes; cluster= says which machine",
    (
        "failures",
        "whole nodes",
    ): "a repair would switch nodes that limits keep off",
    ("failures", "shared nodes"): "no speedup tells how jobs beside a lost job go on",
    ("limits", "pool"): "its processors are no nodes with a power; cluster= says which machine",
    ("limits", "shared nodes"): "powers are of nodes with one job each",
    (
        "limits",
        "environments on nodes",
    ): "there jobs share nodes; PowerCap and EnergyBudget keep them",
    ("limits", "batches"): _OWN_NODES,
    ("conservative", "quota"): "reservations that are kept would be of jobs that may not start",
    ("maintenance", "whole nodes"): "nothing says what closed nodes draw, or whether they are off",
    ("maintenance", "shared nodes"): "a job that starts beside another may move its end into a"
    " window",
    ("maintenance", "shutdown"): "reservations reckon with processors that are on",
    (
        "hold",
        "maintenance",
    ): "a plan around windows knows the processors that jobs take, not those that they hold back",
    (
        "dependencies",
        "extract",
    ): "its jobs may follow jobs that ended before it begins, and it does not tell when",
    **{
        ("predictor", moved): "it is asked when the log submits a job; jobs that come after others"
        " have ended are known only in the pass"
        for moved in ("dependencies", "submitted")
    },
    ("preemption", "whole nodes"): "jobs are stopped for their nodes, and a job may lack power",
    (
        "preemption",
        "shared nodes",
    ): "a job that stops others for their parts of nodes would slow down those that stay",
    ("preemption", "look-ahead"): "in a drained queue run times are guesses, and so are the jobs"
    " that would be stopped",
    ("preemption", "job selection"): "the agent names one job after the other, and would have to"
    " name the jobs to stop too",
    (
        "preemption",
        "shutdown",
    ): "a job whose processors are being switched on does not run yet, and cannot be stopped",
    ("conservative", "preemption"): "reservations that are kept would be broken",
    ("function", "preemption"): "a job that is stopped in a pass has no score of that pass",
    ("hold", "preemption"): "jobs would stop others to hold processors back",
    ("partitions", "pool"): "its processors are no nodes; cluster= says which machine",
    ("partitions", "whole nodes"): (
        "there any job may have any node, and a cap switches off the first nodes, whatever their"
        " partition; give a machine file without [[partition]], with the [group.power] of its nodes"
        " (hpcgym machines FILE prints one to change)"
    ),
    (
        "partitions",
        "shared nodes",
    ): "any job may be beside any other there, and partitions keep some apart",
    ("extract", "environments under limits"): _EMPTY,
    ("extract", "shared nodes"): "how much of a job is left at its beginning depends on the jobs"
    " that ran beside it before; leave the extract out (--from)",
}


def check(*things: str, words: Mapping[str, str] | None = None) -> None:
    """Raise an ApartError if some things do not go together.

    Parameters
    ----------
    things : names in :data:`PLACES` and :data:`FEATURES`.
    words : further names -> the caller's words for them.
    """
    present = {thing: PLACES.get(thing) or FEATURES[thing] for thing in things}
    present |= words or {}
    assert present.keys() <= {*PLACES, *FEATURES}, present
    for (one, other), why in APART.items():
        if one in present and other in present:
            raise ApartError(f"{present[one]} and {present[other]} do not go together: {why}")


def table() -> str:
    """Return what does not go together as a table in Markdown, a row for each thing."""
    lines = ["| what | not with |", "|---|---|"]
    for thing in (*FEATURES, "failures", "limits"):
        others = [two if one == thing else one for one, two in APART if thing in (one, two)]
        if others:
            named = dict.fromkeys(PLACES.get(one) or FEATURES[one] for one in others)
            lines.append(f"| {PLACES.get(thing) or FEATURES[thing]} | {'; '.join(named)} |")
    return "\n".join(lines)
