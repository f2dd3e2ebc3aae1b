"""Simulations whose run times are predicted from the jobs that have ended in them.

The simulator predicts and learns by itself, but for predictors in Python, which are asked here.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates.by_name import Predictor, predictor_of
from hpcgym.scheduler.estimates.features import JOB_FEATURES
from hpcgym.scheduler.estimates.learned import N_ROWS, Estimators, Learner, terms_of
from hpcgym.scheduler.estimates.learning import (
    Learned,
    in_words,
    make_estimators,
    make_learner,
    two_estimates,
)

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.simulation.prepare import Told
    from hpcgym.workload.model import Workload


class Learning:
    """Predicts run times in a simulation, and keeps what has been learned.

    Parameters
    ----------
    workload, scheduler : what is simulated, by which rules.
    told : of its jobs and users.
    learned : what to go on with.
    parts : how it predicts, and what it has learned, where these are of one of many simulations; by
        default its own.

    Raises
    ------
    HpcgymError : ``learned`` is no such thing, or was learned for other estimates.
    """

    def __init__(
        self,
        workload: Workload,
        scheduler: Scheduler,
        told: Told,
        learned: Learned | None = None,
        parts: tuple[Estimators, Learner] | None = None,
    ) -> None:
        self._facts, users = _Facts(workload), told.users
        # where what is known of a user, and of a class of ratios, stands
        rows, first = np.unique(users, return_index=True)
        self._memory_rows = dict(zip(workload.user_id[first].tolist(), rows.tolist(), strict=True))
        self._estimates = in_words(scheduler)
        self._predictors = [predictor_of(estimate) for estimate in two_estimates(scheduler)]
        if parts is None:
            estimators = make_estimators(
                scheduler,
                users,
                workload.requested_processors,
                told.jobs["processors"],
                told.processors,
            )
            parts = estimators, make_learner(scheduler, told.n_users, estimators.classes)
        self.estimators, self.learner = parts
        n_users = len(self.learner.memory)
        self._ratio_rows = _ratio_rows(workload, self._memory_rows, self.estimators, n_users)
        if learned is not None:
            self._go_on(learned)

    def _go_on(self, learned: Learned) -> None:
        """Begin with what another simulation has learned."""
        if not isinstance(learned, Learned):
            raise HpcgymError(f"learned must be the attribute of a result, not {learned!r}")
        if learned.estimates != self._estimates:
            raise HpcgymError(
                f"learned: it was learned for the estimates {' and '.join(learned.estimates)}, "
                f"not for {' and '.join(self._estimates)}"
            )
        for user, row in self._memory_rows.items():
            if user in learned.memory:
                self.learner.memory[row] = learned.memory[user]
        for key, row in self._ratio_rows.items():
            if key in learned.ratios:
                self.learner.ratios[row] = learned.ratios[key]
        self.learner.model[:] = learned.model
        self.learner.model_sums[:] = learned.model_sums
        self._predictors = [copy.deepcopy(predictor) for predictor in learned.predictors]
        self._before = learned

    _before: Learned | None = None
    _taught = 0  # jobs that the predictors in Python have learned from

    @property
    def learned(self) -> Learned:
        """What has been learned up to now."""
        learner, before = self.learner, self._before
        memory = {user: learner.memory[row].copy() for user, row in self._memory_rows.items()}
        ratios = {key: learner.ratios[row].copy() for key, row in self._ratio_rows.items()}
        return Learned(
            self._estimates,
            memory if before is None else {**before.memory, **memory},
            ratios if before is None else {**before.ratios, **ratios},
            learner.model.copy(),
            learner.model_sums.copy(),
            (copy.deepcopy(self._predictors[0]), copy.deepcopy(self._predictors[1])),
        )

    def teach(self, native: Simulation) -> None:
        """Teach the predictors in Python the jobs that have ended since the last time."""
        asked = [predictor for predictor in self._predictors if predictor is not None]
        if not asked:
            return
        ended = native.ended(self._taught).tolist()
        for job in ended:
            run = float(native.run_time(job))
            for predictor in asked:
                predictor.learn_one(self._facts.of(job, native.features(job), 0.0), run)
        self._taught += len(ended)

    def answer(self, native: Simulation) -> None:
        """Answer what a simulation asks for: by predictors in Python."""
        self.teach(native)
        first, second = self._predictors
        if native.asked == "renewal":
            assert second is not None
            rows = np.sort(native.concerned())
            told = [self._facts.of(job, native.features(job, True), 0.0) for job in rows.tolist()]
            native.renew(rows, np.array([_seconds(second, x) for x in told], np.float64))
            return
        job, elapsed, now = native.job, 0.0, native.asked == "correction"
        if now:  # what policies look at stays as it was
            second, elapsed = None, float(native.time - native.start(job))
        x = self._facts.of(job, native.features(job, now), elapsed)
        answers = [
            None if predictor is None else _seconds(predictor, dict(x))
            for predictor in (first, second)
        ]
        native.predict(*answers)

    def take(self, native: Simulation) -> None:
        """Learn from all jobs that have ended, and keep what the simulation has learned."""
        self.teach(native)
        found = native.learned()
        for k, name in enumerate(("terms", "second_terms")):
            n = terms_of(self.estimators, k)
            self.learner.model[k, :, :n] = found[name].reshape(N_ROWS, n)
        self.learner.memory[...] = found["memory"].reshape(self.learner.memory.shape)
        self.learner.ratios[...] = found["ratios"].reshape(self.learner.ratios.shape)
        self.learner.model_sums[...] = found["sums"].reshape(2, 2)


def _ratio_rows(
    workload: Workload, users: Mapping[int, int], estimators: Estimators, n_users: int
) -> dict[tuple[int, ...], int]:
    """Return where the ratios of all jobs, of each user and of each class stand."""
    if not len(estimators.classes):
        return {}
    rows: dict[tuple[int, ...], int] = {(): 0}
    rows.update({(user,): 1 + row for user, row in users.items()})
    numbers, first = np.unique(estimators.classes, return_index=True)
    ids, widths = workload.user_id[first], workload.requested_processors[first]
    for user, width, number in zip(ids.tolist(), widths.tolist(), numbers.tolist(), strict=True):
        rows[user, width] = 1 + n_users + number
    return rows


def _seconds(predictor: Predictor, x: dict[str, Any]) -> float:
    """Return a prediction [s], checked."""
    seconds = predictor.predict_one(x)
    try:
        return float("text" if isinstance(seconds, str) else seconds)
    except (TypeError, ValueError, OverflowError):
        raise HpcgymError(
            f"{type(predictor).__name__}.predict_one must return a number of seconds, "
            f"not {seconds!r}"
        ) from None


class _Facts:
    """What predictors in Python are told of each job."""

    def __init__(self, workload: Workload) -> None:
        columns = ("user_id", "group_id", "executable", "queue", "job_number")
        self._columns = [workload.columns[name] for name in columns]

    def of(self, job: int, x: Sequence[float], elapsed: float) -> dict[str, Any]:
        """Return the features of a job by name."""
        told = dict(zip(JOB_FEATURES, x, strict=True))
        user, group, code, queue, number = (int(column[job]) for column in self._columns)
        return told | {
            "user": user,
            "group": group,
            "code": code,
            "queue": queue,
            "job": number,
            "elapsed": elapsed,
        }
