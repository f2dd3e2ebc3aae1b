"""Proofs of a submission: its schedules are possible, and its metrics are theirs.

No code of the agent is run. Only waiting times, and the nodes of jobs that have their own, are read
from the folder; jobs, run times, machine and limits are the task's. So it is proved that the starts
form a possible schedule, and that its metrics are as told. Where the queue is in order of
submission, it is proved which promises to its head were kept; in other orders that is as told. It
is not proved what chose the starts, nor that run times were not known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hpcgym.errors import HpcgymError
from hpcgym.schedule.gains import Felt
from hpcgym.study.suite.evaluation import PROMISES, Evaluation
from hpcgym.study.suite.submissions import METRICS, Submission, metrics_of
from hpcgym.study.suite.tasks import check_unseen, digest_of
from hpcgym.validation.validate import validate_schedule

#: Metrics are equal that differ by no more than this share: sums may be rounded in other ways.
_ALIKE = 1e-9

#: What is proved of a verified submission, and what is not.
PROVED = (
    "verified: proved possible for these jobs on this machine, with these metrics; not who made the"
    " schedules, how it was trained, or whether it knew run times beforehand"
)

#: What is counted of trainings, and what is not.
COUNTED = (
    "steps: the most of one training, counted by the suite as it trained: steps of environments and"
    " jobs of simulations, in that process; on trust are other processes, look-ahead, what was"
    " learned or chosen before, and that the numbers in the folder are those that were counted"
)


@dataclass(frozen=True)
class Proof:
    """What was found of a log in a task of a submission.

    Attributes
    ----------
    task, log : their names.
    equal : whether all schedules are possible, and all metrics as told.
    text : what was proved, or the first thing that is wrong, in a line.
    felt : seed -> what jobs felt in each replay under the schedules that were proved.
    """

    task: str
    log: str
    equal: bool
    text: str
    felt: dict[int, list[Felt]] = field(default_factory=dict, compare=False)


def prove(submission: Submission, evaluation: Evaluation) -> Proof:
    """Prove the schedules of a log, and compute their metrics anew."""
    task, log = evaluation.task, evaluation.log
    felt: dict[int, list[Felt]] = {}
    proofs: tuple[str, ...] = ()
    try:
        _check(submission, evaluation)
        for seed, metrics in submission.told(task.name, log.name).items():
            try:
                kept = submission.kept(task.name, log.name, seed, evaluation.check_kept)
                results = evaluation.results(kept)
                for result in results:
                    proofs = validate_schedule(result)
                felt[seed] = evaluation.felt(results)
                if task.kind != "backfill":  # where it does not follow from the schedule
                    broken = _number(metrics[PROMISES])
                    felt[seed] = [each._replace(promises_broken=broken) for each in felt[seed]]
                _compare(metrics_of(felt[seed]), metrics)
            except (HpcgymError, ArithmeticError, LookupError) as error:
                raise HpcgymError(f"seed {seed}: {error}") from None
    except HpcgymError as error:
        return Proof(task.name, log.name, False, str(error))
    return Proof(task.name, log.name, True, ", ".join(proofs), felt)


def _check(submission: Submission, evaluation: Evaluation) -> None:
    """Raise an HpcgymError for a task of other rules, other jobs or other seeds."""
    task, log = evaluation.task, evaluation.log
    record = submission.tasks[task.name]
    jobs = record["logs"][log.name].get("jobs")
    if record.get("task") != task.fingerprint or jobs != digest_of(log):
        raise HpcgymError("it was run with other jobs or rules than the suite has")
    check_unseen(task, record.get("trained_on", []))
    seeds = list(submission.told(task.name, log.name))
    if seeds not in ([0], list(task.seeds)) or (record.get("trained") and len(seeds) == 1):
        raise HpcgymError(f"it has seeds {seeds}, not {list(task.seeds)}")
    for seed, steps in submission.steps(task.name, log.name).items():
        if steps > task.steps:
            raise HpcgymError(
                f"seed {seed}: it was trained for {steps:,} steps, and {task.steps:,} are allowed"
            )


def _number(value: float | None) -> float:
    """Return the value of a metric, nan where a file has null."""
    return float("nan") if value is None else value


def _compare(metrics: dict[str, float], recorded: dict[str, float | None]) -> None:
    """Raise an HpcgymError for a metric that is told otherwise than it is."""
    for name in METRICS:
        here, there = metrics[name], _number(recorded[name])
        alike = abs(here - there) <= _ALIKE * max(abs(here), abs(there), 1.0)
        if not (alike or (here != here and there != there)):
            raise HpcgymError(f"{name} is told as {there:.10g}, and is {here:.10g}")
