"""Simulations whose run times are predicted from the jobs that have ended in them.

The simulator runs to a question, which is answered in compiled code
(:mod:`hpcgym.engine.answers.online`), or here where a predictor in Python has to be asked.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.answers import online
from hpcgym.engine.answers.formulas import BUILT_IN
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import learned
from hpcgym.scheduler.estimates.by_name import Predictor, predictor_of
from hpcgym.scheduler.estimates.features import JOB_FEATURES
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
    from hpcgym.workload.model import Workload

Lists = NDArray[np.void]  # blocks or entries of hpcgym.engine.ordered


class Learning:
    """Predicts run times in a simulation, and keeps what has been learned.

    Parameters
    ----------
    workload, scheduler : what is simulated, by which rules.
    arrays : the simulation, as :func:`hpcgym.simulation.prepare.prepare` returns it.
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
        arrays: state.Prepared,
        learned: Learned | None = None,
        parts: tuple[learned.Estimators, learned.Learner] | None = None,
    ) -> None:
        self.arrays, self._facts = arrays, _Facts(workload)
        users = arrays.users
        n_users = int(users.max()) + 1 if len(users) else 0
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
                arrays.jobs["processors"],
                int(arrays.sim.capacity),
            )
            learner = make_learner(scheduler, len(workload), n_users, estimators.classes)
            parts = estimators, learner
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

    @property
    def policy_run_time(self) -> NDArray[np.int64] | None:
        """The predictions that the policy looked at, (n_jobs,) [s], None if it looked at others."""
        return self.learner.ordered_by if len(self.learner.ordered_by) else None

    @property
    def has_predictors(self) -> bool:
        """Whether a predictor in Python is asked."""
        return any(predictor is not None for predictor in self._predictors)

    def finish(self) -> None:
        """Learn from all jobs that have ended."""
        a, rules = self.arrays, (self.estimators, self.learner)
        online.learn_from_ended(a.jobs, a.users, a.sim, a.progress, a.ended, *rules)
        self._teach()

    def predict_first(self, number: int, time: int, blocks: Lists, entries: Lists) -> None:
        """Predict how long the first ``number`` jobs run, as if submitted at ``time`` [s].

        ``blocks`` and ``entries`` list those of them that run then; they are not in ``arrays`` yet.
        """
        sim = self.arrays.sim
        sim.time = time
        for job in range(number):
            sim.next, sim.asked = job, state.A_PREDICTION
            self.answer(blocks, entries)
        sim.next = sim.asked = 0

    def answer(self, blocks: Lists, entries: Lists) -> None:
        """Answer what a simulation that does not run in a loop asks for."""
        a, rules = self.arrays, (self.estimators, self.learner)
        if not online.answers_by(BUILT_IN).alone(
            a.jobs, a.scores, a.users, a.sim, a.progress, blocks, entries, a.line, a.ended, *rules
        ):
            self.ask_predictors(a.scores)

    def ask_predictors(self, ranked: NDArray[np.void]) -> None:
        """Answer what compiled code does not: by predictors in Python.

        ``ranked`` are the scores that predictions change: those to which usage is added, if any.
        """
        a = self.arrays
        self._teach()
        if a.sim.asked == state.A_RENEWAL:
            self._renew(ranked)
        else:
            self._predict()
            rules = (self.estimators, self.learner)
            online.answer(a.jobs, ranked, a.sim, a.progress, a.line, *rules)

    def _teach(self) -> None:
        """Teach the predictors in Python the jobs that have ended since the last time."""
        ended = int(self.arrays.sim.ended)
        for job in self.arrays.ended[self._taught : ended].tolist():
            for predictor in self._predictors:
                if predictor is not None:
                    x = self._facts.of(job, self.learner.seen[job].tolist(), 0.0)
                    predictor.learn_one(x, float(self.arrays.jobs["run"][job]))
        self._taught = ended

    def _predict(self) -> None:
        """Ask the predictors in Python for the run time of the job in question."""
        sim, learner, asked = self.arrays.sim, self.learner, self._predictors
        if sim.asked == state.A_PREDICTION:
            job = int(sim.next)
            x = self._facts.of(job, learner.seen[job].tolist(), 0.0)
        else:
            # what policies look at stays as it was
            job, asked = int(sim.expiring), asked[: learned.FOR_ORDERING]
            elapsed = float(sim.time - self.arrays.progress["start"][job])
            now = learner.scratch[learned.NOW, : learned.N_SEEN].tolist()
            x = self._facts.of(job, now, elapsed)
        for k, predictor in enumerate(asked):
            if predictor is not None:
                learner.scratch[learned.ANSWERS, k] = _seconds(predictor, dict(x))

    def _renew(self, ranked: NDArray[np.void]) -> None:
        """Ask for the run times of waiting jobs whose users had ends since the last pass."""
        a, rules = self.arrays, (self.estimators, self.learner)
        predictor = self._predictors[learned.FOR_ORDERING]
        assert predictor is not None
        n = online.list_concerned(a.users, a.sim, a.blocks, a.entries, a.ended)
        ended = int(a.sim.ended)
        for job in sorted(a.ended[ended : ended + n].tolist()):
            online.look_at_one(a.jobs, a.users, a.sim, a.progress, a.blocks, a.entries, job, *rules)
            x = self._facts.of(
                job, self.learner.scratch[learned.NOW, : learned.N_SEEN].tolist(), 0.0
            )
            self.learner.scratch[learned.ANSWERS, learned.FOR_ORDERING] = _seconds(predictor, x)
            online.renew_one(a.jobs, ranked, a.sim, a.blocks, a.line, job, *rules)

    # -- on the native engine ----------------------------------------------------------------------

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

    def answer_natively(self, native: Simulation) -> None:
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


def _ratio_rows(
    workload: Workload, users: Mapping[int, int], estimators: learned.Estimators, n_users: int
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
