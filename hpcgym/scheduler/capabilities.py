"""Which features and machines go together: the one table of those that do not, and why.

Some cannot, by what they mean (:data:`REASONS`), and for some there is no code (:data:`NOT_BUILT`).
:func:`check` raises an error with the reason for each pair of them; :func:`table` is the table in
the docs. A refusal that depends on a value, not on a feature, stands where the value is
read.
"""

from __future__ import annotations

import itertools
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
    "submissions": "jobs whose shapes an agent says",
    "environments on nodes": "environments on nodes",
    "environments under limits": "environments under limits",
    "batches": "a batch",
    "batches on nodes": "a batch on nodes",
    "look-ahead": "look-ahead",
    "forecasts": "forecasts of starts",
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
    "relax": "relaxed backfilling",
    "until-shadow": "backfill='until-shadow'",
    "quota": "quotas",
    "submitted": "quotas of submitted jobs",
    "minutes": "quotas of amounts weighed by time",
    "unforgotten": "budgets without a half-life",
    "maintenance": "maintenance windows",
    "preemption": "preemption",
    "dependencies": "jobs that follow others",
    "contiguous": "allocation='contiguous'",
    "shutdown": "shutdown_after_s",
    "partitions": "partitions of nodes",
    "extract": "an extract",
}


#: What does not go together by what it means, and why: a row for each reason. None of the things
#: before the bar goes with any of those after it.
REASONS = {
    # plans of reservations
    "conservative | quota, preemption": (
        "reservations that are kept would be of jobs that may not start, or be broken"
    ),
    "depth, slurm, maintenance | shared nodes": (
        "a job that starts beside another moves its end, and may move it past a reservation or"
        " into a window"
    ),
    "conservative, depth, slurm | job selection": (
        "the agent names one job after the other, and that one alone has a reservation"
    ),
    "conservative, depth, slurm | environments by rule": (
        "there jobs start around one reservation at most, and a plan of several would choose"
        " them, not the agent"
    ),
    "hold | conservative": (
        "reservations are kept, and what a job holds back becomes less as it waits"
    ),
    "hold | preemption": "others would be stopped for processors that are to stay free",
    "hold | shared nodes": "a job that starts beside another takes no free node",
    "minutes | whole nodes, shared nodes": (
        "a lower level, or a job beside it, makes a job longer than it asked for, and what it still"
        " may use is not known as it starts"
    ),
    "unforgotten | environments, batches, look-ahead, forecasts": (
        "once it is used up jobs wait for ever, and the end of the last job is awaited there"
    ),
    "per-event | slurm": "Slurm has one pass for all that happens in a second",
    "submitted, dependencies | submissions": (
        "the agent is asked in the second before a job comes, and when jobs come once others have"
        " ended is known only then"
    ),
    # who orders the queue
    "function | environments": "there the agent orders the queue, or chooses the jobs that start",
    "dispatcher | look-ahead": "there weights order the queue",
    # what is not known
    "failures | pool": "its processors are no nodes; cluster= says which machine",
    "dependencies | extract": (
        "its jobs may follow jobs that ended before it begins, and it does not tell when"
    ),
    "shutdown | extract": "which processors were off at its beginning is not known",
    "extract | shared nodes": (
        "how much of a job is left at its beginning depends on the jobs that ran beside it"
        " before; leave the extract out (--from)"
    ),
}
#: What could go together but is not built, and what is missing. Rows are as above.
NOT_BUILT = {
    # plans of reservations
    "conservative, depth, slurm | whole nodes": (
        "only the first waiting job has a reservation there, as by 'easy', and others would have"
        " to hold under limits to come"
    ),
    "hold | slurm": "its plans are of nodes by name, and what is held back is on any of them",
    "relax | whole nodes, shared nodes": (
        "limits, or the jobs beside it, decide there when a candidate ends"
    ),
    "relax | maintenance, preemption": (
        "then the reservation is one of a plan, in which each job has one run time"
    ),
    "conservative, maintenance | shutdown": "reservations reckon with processors that are on",
    "maintenance, preemption | environments by rule": (
        "there jobs start around one reservation at most, no window is seen, and no job is stopped"
    ),
    "usage | submissions": (
        "what a job may cost its user is told beforehand, and there it depends on its shape"
    ),
    # passes for each event
    "per-event | nodes": "simulators with such passes know pools, and units of single cores",
    "per-event | shutdown": "processors would be awaited in the middle of a time",
    # what is asked of Python, or learned
    "predictor | environments, batches, look-ahead": (
        "no Python runs inside; 'ave2' or 'e-loss' are compiled"
    ),
    "predictor | dependencies, submitted": (
        "it is asked when the log submits a job; jobs that come after others have ended are"
        " known only in the pass"
    ),
    "dispatcher | batches": "no Python runs inside; there weights order the queue",
    "dispatcher | shared nodes": "it is not told which jobs may run side by side",
    "dispatch time | whole nodes": (
        "while it computes, limits and switched nodes may come to allow other jobs"
    ),
    "dispatcher, function, predictor | forecasts": (
        "no Python runs inside, for it would run in each of many futures"
    ),
    # machines
    "whole nodes | forecasts": "futures begin with running jobs on a pool, or on nodes they share",
    "maintenance | whole nodes": "nothing says what closed nodes draw, or whether they are off",
    "whole nodes | shared nodes": (
        "powers are of nodes with one job each, and nodes that jobs share stay on"
    ),
    "failures | whole nodes": (
        "these are switched, and a repair would switch one that limits keep off"
    ),
    "failures | shared nodes": "nothing tells how jobs beside a lost job go on",
    "partitions | whole nodes": (
        "there any job may have any node, and a cap switches off the first nodes, whatever"
        " their partition; give a machine file without [[partition]], with the [group.power] of"
        " its nodes (hpcgym machines FILE prints one to change)"
    ),
    "partitions | shared nodes": (
        "any job may be beside any other there, and partitions keep some apart"
    ),
    "extract | environments under limits": (
        "they begin with an empty machine; leave the extract out (--from), and give the whole"
        " trace, or one of its weeks (--week)"
    ),
    # jobs that are stopped
    "preemption | whole nodes": "power and energy, too, decide there what is free",
    "preemption | shared nodes": "no job is stopped there, for parts of nodes or for whole ones",
    "preemption | look-ahead": (
        "in a drained queue run times are guesses, and so are the jobs that would be stopped"
    ),
    "preemption | job selection": (
        "the agent names one job after the other, and would have to name the jobs to stop too"
    ),
    "preemption | shutdown": (
        "a job whose processors are being switched on does not run yet, and cannot be stopped"
    ),
}


def pairs_of(rows: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return each pair of some rows, and why it does not go together."""
    return {
        pair: why
        for row, why in rows.items()
        for pair in itertools.product(*(names.split(", ") for names in row.split(" | ")))
    }


#: Each pair that does not go together, and why.
APART = pairs_of(REASONS | {row: f"not built: {why}" for row, why in NOT_BUILT.items()})


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
    for (first, other), why in APART.items():
        if first in present and other in present:
            raise ApartError(f"{present[first]} and {present[other]} do not go together: {why}")


def table() -> str:
    """Return what does not go together as a table in Markdown, a row for each thing."""
    words = PLACES | FEATURES
    lines = ["| what | not with | not built with |", "|---|---|---|"]
    for thing in (*FEATURES, "failures", "whole nodes"):
        cells = [
            "; ".join(words[b if a == thing else a] for a, b in pairs_of(rows) if thing in (a, b))
            for rows in (REASONS, NOT_BUILT)
        ]
        if any(cells):
            lines.append(f"| {' | '.join((words[thing], *cells))} |")
    return "\n".join(lines)
