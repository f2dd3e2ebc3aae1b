"""Simulations whose run times are predicted from the jobs that have ended in them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import compiling
from hpcgym.engine import mixing, nag, online, state
from hpcgym.errors import HpcgymError
from hpcgym.policy.features import FEATURES
from hpcgym.policy.index import PolicyLike, parse_policy
from hpcgym.prediction.estimates import Estimate, Predictor, average_of, learns, predictor_of
from hpcgym.prediction.features import JOB_FEATURES
from hpcgym.prediction.regression import Regression

if TYPE_CHECKING:
    from hpcgym.scheduler import Scheduler
    from hpcgym.workload.model import Workload


@dataclass(frozen=True, eq=False)
class Learned:
    """What a simulation has learned of run times, for another one to go on with.

    Attributes
    ----------
    estimates : the two estimates that it was learned for, in words.
    memory : user -> row of :class:`hpcgym.engine.online.Learner`'s memory.
    ratios : (), (user,) or (user, processors) -> row of its ratios.
    model, model_sums : of the same.
    predictors : the two predictors in Python, or None.
    """

    estimates: tuple[str, str]
    memory: Mapping[int, NDArray[np.float64]]
    ratios: Mapping[tuple[int, ...], NDArray[np.float64]]
    model: NDArray[np.float64]
    model_sums: NDArray[np.float64]
    predictors: tuple[Predictor | None, Predictor | None]


def average_in_kernel(scheduler: Scheduler) -> int:
    """Return how many jobs the estimate is the mean of if the simulator keeps it, else 0."""
    if learns(scheduler.policy_estimate) or scheduler.correction == "predicted-again":
        return 0
    estimate = scheduler.estimate
    return (average_of(estimate) or 0) if isinstance(estimate, str) else 0


def asks_for_predictions(scheduler: Scheduler) -> bool:
    """Return whether the simulator stops at each submission, for a prediction."""
    if average_in_kernel(scheduler):
        return False
    return learns(scheduler.estimate) or learns(scheduler.policy_estimate)


def learning_rules(scheduler: Scheduler) -> list[int]:
    """Return the rules of learning as the engine takes them, from LEARNS on."""
    asks = asks_for_predictions(scheduler)
    return [int(asks), int(learns(scheduler.policy_estimate))]


def check_compiled(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for estimates that environments and batches do not know."""
    for rule in ("estimate", "policy_estimate"):
        estimate = getattr(scheduler, rule)
        if predictor_of(estimate) is not None:
            raise HpcgymError(
                f"{rule}: only simulate() asks predictors in Python; here it must be a compiled "
                f"one, such as 'ave2' or 'e-loss', not {scheduler.describe()[rule]!r}"
            )


def looks_at_time(policy: PolicyLike) -> bool:
    """Return whether a policy looks at requested times, or at what stands for them."""
    index = parse_policy(policy)
    return index.cubed or not {"processors", "wait"}.issuperset(index.weights)


def make_estimators(
    scheduler: Scheduler, users: NDArray[np.int64], processors: NDArray[np.int64]
) -> online.Estimators:
    """Return how the simulator is to predict run times.

    ``users`` and ``processors`` are those of all jobs, (n_jobs,), the former numbered.
    """
    specs = _specs(scheduler)
    chosen = np.full((2, online.N_SEEN), -1, np.int64)
    for k, spec in enumerate(specs):
        chosen[k, : len(spec.chosen)] = spec.chosen
    return online.Estimators(
        kinds=np.array([spec.kind for spec in specs]),
        last=np.array([spec.last for spec in specs]),
        loss=np.concatenate([spec.loss for spec in specs]),
        chosen=chosen,
        looks=np.array(
            [policy is not None and looks_at_time(policy) for policy in _orders(scheduler)],
            np.int64,
        ),
        classes=_classes(specs, users, processors),
    )


def _classes(
    specs: Sequence[_Spec], users: NDArray[np.int64], processors: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return a number from 0 for each user and number of processors, (n_jobs,) or (0,)."""
    if not any(spec.kind == online.TYPICAL_RATIO for spec in specs):
        return np.zeros(0, np.int64)
    widths = np.unique(processors, return_inverse=True)[1]
    together = users * (int(widths.max(initial=0)) + 1) + widths
    numbers: NDArray[np.int64] = np.unique(together, return_inverse=True)[1].astype(np.int64)
    return numbers


def make_learner(
    scheduler: Scheduler, n_jobs: int, n_users: int, classes: NDArray[np.int64]
) -> online.Learner:
    """Return the arrays of predictions before anything has been learned.

    ``n_jobs`` is the most that a simulation has; ``classes`` are those of the estimators.
    """
    specs = _specs(scheduler)
    seen = any(spec.kind in (online.REGRESSION, online.OUTSIDE) for spec in specs)
    n_terms = max(spec.n_terms for spec in specs)
    memory = online.LAST + max(online.LEAST_LAST, *(spec.last for spec in specs))
    ordering = specs[online.FOR_ORDERING].kind != online.GIVEN
    n_ratios = 2 + n_users + int(classes.max(initial=-1)) if len(classes) else 0
    weights = np.zeros((2, mixing.N_FEATURES))
    for half, policy in enumerate(_orders(scheduler)):
        given = {} if policy is None else parse_policy(policy).weights
        for name, weight in given.items():
            weights[half, list(FEATURES).index(name)] = weight
    return online.Learner(
        memory=np.zeros((n_users, memory)),
        ratios=np.zeros((n_ratios, 2)),
        seen=np.empty((n_jobs if seen else 0, online.N_SEEN)),
        model=np.zeros((2, nag.N_ROWS, n_terms)),
        model_sums=np.tile([0.0, 1.0], (2, 1)),
        ordered_by=np.zeros(n_jobs if ordering else 0, np.int64),
        weights=weights,
        scratch=np.zeros((online.N_SCRATCH, max(n_terms, online.N_SEEN))),
    )


def _orders(scheduler: Scheduler) -> tuple[PolicyLike | None, PolicyLike | None]:
    """Return the policies of the two orders, None for one that is by another estimate."""
    second = scheduler.backfill_order
    sjbf = isinstance(second, str) and second == "sjbf"
    return scheduler.policy, None if sjbf or scheduler.backfill != "easy" else second


def _specs(scheduler: Scheduler) -> list[_Spec]:
    """Return the two estimates as the kernel takes them."""
    return [_Spec.of(estimate) for estimate in _both(scheduler)]


def _both(scheduler: Scheduler) -> tuple[Estimate, Estimate]:
    """Return the two estimates of a scheduler."""
    return scheduler.estimate, scheduler.policy_estimate


_RATIOS = {"user-ratio": online.USER_RATIO, "typical-ratio": online.TYPICAL_RATIO}


@dataclass(frozen=True)
class _Spec:
    """One of the two estimates, as the kernel takes it."""

    kind: int
    last: int
    loss: NDArray[np.void]
    chosen: NDArray[np.int64]
    n_terms: int

    @classmethod
    def of(cls, estimate: Estimate) -> _Spec:
        """Return how run times of an estimate are predicted."""
        nothing = np.zeros(0, np.int64)
        loss = np.zeros(1, nag.LOSS)
        if not learns(estimate):
            return cls(online.GIVEN, 0, loss, nothing, 0)
        if not isinstance(estimate, str) or estimate == "data-driven":
            return cls(online.OUTSIDE, 0, loss, nothing, 0)
        if estimate in _RATIOS:
            return cls(_RATIOS[estimate], 0, loss, nothing, 0)
        last = average_of(estimate)
        if last is not None:
            return cls(online.AVERAGE, last, loss, nothing, 0)
        return cls._of_regression(Regression.parse(estimate))

    @classmethod
    def _of_regression(cls, regression: Regression) -> _Spec:
        loss = np.zeros(1, nag.LOSS)
        for name in ("over_scale", "under_scale", "threshold", "eta", "l2", "degree"):
            loss[name] = getattr(regression, name)
        loss["over"] = nag.BRANCHES.index(regression.over)
        loss["under"] = nag.BRANCHES.index(regression.under)
        loss["weighting"] = nag.WEIGHTINGS.index(regression.weight)
        names = list(JOB_FEATURES)
        chosen = np.array([names.index(name) for name in regression.features])
        n_terms = nag.n_terms(len(chosen), regression.degree)
        return cls(online.REGRESSION, 0, loss, chosen, n_terms)


def learner_rows(learner: online.Learner, number: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of that many simulations by name, each row a copy of ``learner``."""
    return {
        name: np.repeat(array[np.newaxis], number, axis=0)
        for name, array in learner._asdict().items()
    }


class Learning:
    """A simulation with predictions: runs it, and keeps what has been learned.

    Parameters
    ----------
    workload, scheduler : what is simulated, by which rules.
    arrays : the simulation, as :func:`hpcgym.simulation.prepare` returns it.
    learned : what to go on with.

    Raises
    ------
    HpcgymError : ``learned`` was learned for other estimates.
    """

    def __init__(
        self, workload: Workload, scheduler: Scheduler, arrays: Any, learned: Learned | None = None
    ) -> None:
        self._workload, self._arrays = workload, arrays
        users = arrays.users
        n_users = int(users.max()) + 1 if len(users) else 0
        # where what is known of a user, and of a class of ratios, stands
        self._memory_rows = dict(zip(workload.user_id.tolist(), users.tolist(), strict=True))
        self._estimates = _in_words(scheduler)
        self._predictors = [predictor_of(estimate) for estimate in _both(scheduler)]
        processors = workload.requested_processors
        self.estimators = make_estimators(scheduler, users, processors)
        self.learner = make_learner(scheduler, len(workload), n_users, self.estimators.classes)
        self._ratio_rows = _ratio_rows(workload, self._memory_rows, self.estimators, n_users)
        self._waiting = np.empty(len(workload), np.int64)
        if learned is not None:
            self._go_on(learned)

    def _go_on(self, learned: Learned) -> None:
        """Begin with what another simulation has learned."""
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
            (self._predictors[0], self._predictors[1]),
        )

    @property
    def policy_run_time(self) -> NDArray[np.int64] | None:
        """The predictions that the policy looked at, (n_jobs,) [s], None if it looked at others."""
        return self.learner.ordered_by if len(self.learner.ordered_by) else None

    def run(self, until: int = state.FOREVER) -> None:
        """Simulate up to ``until`` [s], and learn from all jobs that have ended by then."""
        a = self._arrays
        facts, taught = _Facts(self._workload), 0
        conservative = a.sim[state.DEPTH] == state.UNLIMITED
        run = online.run_conservative if conservative else online.run
        rules = self.estimators, self.learner
        with compiling(run):
            while run(*a, *rules, until, state.FOREVER) >= 0 and a.sim[state.ASKED]:
                taught = self._teach(facts, taught)
                if a.sim[state.ASKED] == state.A_RENEWAL:
                    self._renew(facts)
                else:
                    self._predict(facts)
                    online.answer_from_outside(a.jobs, a.scores, a.sim, a.progress, *rules)
        online.learn_rest(a.jobs, a.users, a.sim, a.progress, a.ended, *rules)
        self._teach(facts, taught)

    def _teach(self, facts: _Facts, taught: int) -> int:
        """Teach the predictors in Python the jobs that have ended; return how many have."""
        ended = int(self._arrays.sim[state.ENDED])
        for job in self._arrays.ended[taught:ended].tolist():
            for predictor in self._predictors:
                if predictor is not None:
                    x = facts.of(job, self.learner.seen[job], 0.0)
                    predictor.learn_one(x, float(self._arrays.jobs["run"][job]))
        return ended

    def _predict(self, facts: _Facts) -> None:
        """Ask the predictors in Python for the run time of the job in question."""
        sim, learner, asked = self._arrays.sim, self.learner, self._predictors
        if sim[state.ASKED] == state.A_PREDICTION:
            job = int(sim[state.NEXT])
            x = facts.of(job, learner.seen[job], 0.0)
        else:
            # what policies look at stays as it was
            job, asked = int(sim[state.EXPIRING]), asked[: online.FOR_ORDERING]
            elapsed = float(sim[state.TIME] - self._arrays.progress["start"][job])
            x = facts.of(job, learner.scratch[online.NOW, : online.N_SEEN], elapsed)
        for k, predictor in enumerate(asked):
            if predictor is not None:
                learner.scratch[online.ANSWERS, k] = _seconds(predictor, dict(x))

    def _renew(self, facts: _Facts) -> None:
        """Ask for the run times of waiting jobs whose users had ends since the last pass."""
        a, rules = self._arrays, (self.estimators, self.learner)
        predictor = self._predictors[online.FOR_ORDERING]
        assert predictor is not None
        n = online.waiting_of(a.users, a.sim, a.progress, a.ended, self._waiting)
        for job in self._waiting[:n].tolist():
            online.consider_one(
                a.jobs, a.users, a.sim, a.progress, a.blocks, a.entries, job, *rules
            )
            x = facts.of(job, self.learner.scratch[online.NOW, : online.N_SEEN], 0.0)
            self.learner.scratch[online.ANSWERS, online.FOR_ORDERING] = _seconds(predictor, x)
            online.renew_one(a.jobs, a.scores, a.sim, a.blocks, job, *rules)


def _ratio_rows(
    workload: Workload, users: Mapping[int, int], estimators: online.Estimators, n_users: int
) -> dict[tuple[int, ...], int]:
    """Return where the ratios of all jobs, of each user and of each class stand."""
    if not len(estimators.classes):
        return {}
    rows: dict[tuple[int, ...], int] = {(): 0}
    rows.update({(user,): 1 + row for user, row in users.items()})
    ids, widths = workload.user_id.tolist(), workload.requested_processors.tolist()
    for user, width, number in zip(ids, widths, estimators.classes.tolist(), strict=True):
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

    def of(self, job: int, x: NDArray[np.float64], elapsed: float) -> dict[str, Any]:
        """Return the features of a job by name."""
        told = dict(zip(JOB_FEATURES, x.tolist(), strict=True))
        user, group, executable, queue, number = (int(column[job]) for column in self._columns)
        return told | {
            "user": user,
            "group": group,
            "executable": executable,
            "queue": queue,
            "job": number,
            "elapsed": elapsed,
        }


def _in_words(scheduler: Scheduler) -> tuple[str, str]:
    """Return the two estimates of a scheduler as words."""
    words = scheduler.describe()
    return str(words["estimate"]), str(words["policy_estimate"])
