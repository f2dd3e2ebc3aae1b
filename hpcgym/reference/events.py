"""Events: submissions, ends and predictions of jobs; rules 1 to 3, 7 to 9, 15, 18 to 20, 28."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from hpcgym.reference.jobs import BY_TIME, NEVER, Job, Spared, fresh, settings_of_slurm
from hpcgym.reference.orders import (
    Score,
    changes_with_time,
    is_submission_order,
    looks_at_times,
    score_of,
)
from hpcgym.reference.predictions import Estimator, features
from hpcgym.reference.spending import UsedByJobs, is_budget
from hpcgym.reference.state import State

EASY = ("easy", "until-shadow")
#: All rules with their defaults.
USUAL: dict[str, Any] = {
    "policy": "fcfs",
    "backfill": "none",
    "backfill_order": None,
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
    "passes": "per-timestamp",
    "policy_estimate": "requested",
    "hold": None,
    "relax": None,
    "candidate_estimate": None,
    "quotas": (),
    "windows": (),
    "spared": (),
    "follows": None,
    "places": (),
    "preemption": None,
}
INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


class CannotRunError(Exception):
    """A job that a trace says is running would have been killed before."""


class Events:
    """The jobs, and what happens to them in time.

    Its subclasses define what a pass does, in this order: Reservations and SlurmPasses in
    ``reservations``, Preemption and Simulation in ``pool``, NodeRooms and NodeSimulation in
    ``nodes``. They fill in ``fits``, ``schedule``, ``terminate`` and ``renew``.
    """

    def __init__(self, jobs: Iterable[Job], processors: int, **rules: Any):
        self.jobs = sorted((fresh(job) for job in jobs), key=lambda job: job.submit)
        for number, job in enumerate(self.jobs):
            job.number = number
        self.processors = processors
        if unknown := rules.keys() - USUAL.keys():
            raise TypeError(f"no such rules: {', '.join(sorted(unknown))}")
        rules = USUAL | rules
        if rules["backfill_order"] is None:
            rules["backfill_order"] = "fcfs" if rules["policy"] == "fcfs" else "spf"
        self.given_policy = rules["policy"]
        self.backfill = rules["backfill"]
        self.backfill_order = rules["backfill_order"]
        self.estimator = Estimator(rules["estimate"])
        self.policy_estimator = Estimator(rules["policy_estimate"])
        self.relax = rules["relax"]
        self.candidate_estimator = Estimator(rules["candidate_estimate"] or "requested")
        self.policy = self.by_policy_time(score_of(rules["policy"]))
        self.correction = rules["correction"]
        self.threshold = rules["threshold"]
        self.passes = rules["passes"]
        self.hold = rules["hold"]
        self.quotas = rules["quotas"] or []
        self.windows = rules["windows"] or []
        self.spared = rules["spared"] or [None] * len(self.windows)  # on nodes alone
        self.extracted = False  # whether it begins with jobs that run
        self.preemption: Any = rules["preemption"]
        self.preempts = False  # whether it is asked for whom others are stopped
        self.held: set[Any] = set()  # groups whose jobs do not start in this pass, rule 27
        self.lost: list[Any] = []  # job, start and end of runs, and nodes
        self.cancelled: list[Any] = []  # likewise, under cancel
        self.cut: list[Any] = []  # those of both that ended with their grace times, rule 27
        self.leaving: list[Job] = []  # those that were last, of one time
        self.suspended: list[Job] = []
        self.kept: list[Job] = []  # those whose processors are not free for the job being tried
        self.expected: tuple[Any, dict[int, int]] = (None, {})  # a state, and ends expected in it
        self.reopened = -1  # up to when windows have ended
        self.passed = 0  # when the last pass was, or is
        self.opening: int | None = None  # when time alone causes a pass, rule 31
        self.spending = UsedByJobs(self)  # what jobs have used, rule 33
        self.places = rules["places"] or []
        self.outside: list[Job] = []  # by the times at which they were to be submitted
        self.came = 0  # how many jobs have been submitted
        self.started = 0  # how many have been started
        self.depends = rules["follows"] is not None or bool(self.places)
        self.follows = rules["follows"] or {}  # number -> the others, time to think, earliest
        # the next to be submitted is the last
        self.coming = [job for job in reversed(self.jobs) if job.number not in self.follows]
        self.queue: list[Job] = []  # in submission order
        self.running: list[Job] = []  # in the order they started
        self.terminated: dict[int, list[Job]] = {}  # user -> terminated jobs, in order
        self.expired_since_pass = False
        self.promises = True  # whether the pass may promise the head a start, rule 16
        self.due: int | None = None  # when a pass is due, whatever happens
        self.slurm: Any = settings_of_slurm(self.backfill)  # None under other rules
        self.joined: dict[int, int] = {}  # number -> when it ends in profiles, rule 23
        self.plan_due: int | None = None  # when one of the second kind is, rule 23
        self.last_planned: int | None = None  # when the last one was
        self.all_due: int | None = None  # when a pass at an event looks at all, rule 23
        self.look_due: int | None = None  # when time alone causes one of the second kind
        self.happened = False  # whether a pass has another reason, too
        self.queued_before = False  # whether jobs waited when the pass began
        self.is_looked_at = False  # whether an order looks at the state
        self.state: State | None = None  # that the present pass has found
        self.usage_period = 0  # [s] at multiples of which usage counts, see ``shares``
        for order in (rules["policy"], rules["backfill_order"]):
            if self.slurm is None or order is rules["policy"]:  # rule 23 has one order
                self.usage_period = self.usage_period or getattr(order, "period", 0)
            if hasattr(order, "begin"):  # it looks at what has terminated
                order.begin(self)

    def begin(self, begin: int, end: float) -> None:
        """Rules 18 to 20."""
        self.extracted = True
        before = [job for job in self.jobs if job.submit < begin and job.recorded_wait >= 0]
        self.coming = [job for job in self.coming if begin <= job.submit < end]
        for job in sorted(before, key=lambda job: job.submit + job.recorded_wait):
            job.start = job.since = job.submit + job.recorded_wait
            job.end = job.start + job.actual
            if job.start >= begin or (job.end > begin and not self.has_room(job)):
                job.start = job.end = -1
                self.queue.append(job)
            elif job.end > begin:
                self.running.append(job)
        self.queue.sort(key=lambda job: (job.submit, job.number))
        ended = [job for job in before if -1 < job.end <= begin]
        ended.sort(key=lambda job: (job.end, job.start))
        for job in ended:
            past = [other for other in ended if other.end <= job.submit and other.user == job.user]
            ran = [other for other in ended + self.running if other.start < job.submit < other.end]
            job.seen = features(job, job.submit, past, ran)
        for job in ended:
            self.running.append(job)
            self.terminate(job)
        for job in sorted(self.running + self.queue, key=lambda job: job.number):
            self.predict(job, begin)
        if self.correction == "kill":
            for job in self.running:
                job.limit = job.predicted
                job.end = job.start + job.actual
                if job.end < begin:
                    raise CannotRunError(f"job {job.number} would have been killed before {begin}")
        for now in range(min((job.start for job in self.running), default=begin), begin + 1):
            self.expire(now)
        self.expired_since_pass = True
        if self.passes == "per-event":
            self.reopened = begin
            self.find_state(begin)
            self.make_pass(begin)
        else:
            self.due = begin

    def has_room(self, job: Job) -> bool:
        """Whether a job that a trace says is running finds processors beside the others."""
        return job.processors <= self.processors - sum(j.processors for j in self.running)

    def run(self) -> list[Job]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        while (
            self.coming or self.running or (self.due, self.plan_due) != (None, None) or self.queue
        ):
            now = self.next_time()
            if now == NEVER:  # budgets are used up, rule 33: the others wait for ever
                break
            due, self.due = self.due is not None, None
            due = due or now in [*self.reopenings(), *self.exempt_until(), self.opening]
            self.reopened = now
            self.expire(now)
            if self.passes == "per-timestamp":
                ended, submitted = self.end_and_predict(now)
                due |= self.nodes_change(now)
                self.happened = bool(ended or submitted or due)
                if self.happened or now in (self.plan_due, self.all_due, self.look_due):
                    self.renew(now)
                    self.find_state(now, submitted)
                    for job in submitted:
                        self.submit(job, now)
                    self.make_pass(now)
            else:
                self.happened = False
                while self.next_event(now):
                    pass
                if due and not self.happened:
                    self.renew(now)
                    self.find_state(now)
                    self.make_pass(now)
        return self.jobs

    def next_event(self, now: int) -> bool:
        """Do the next thing that happens now, and its pass; return whether there is one."""
        ended = [job for job in self.running if job.end == now]
        passes = True
        if submitted := self.take_submitted(now, most=1):
            job = submitted[0]
            self.predict(job, now)
            passes = self.always_passes() or self.fits(job, now)
        elif ended:
            self.terminate(min(ended, key=lambda job: job.place))
        else:
            return False
        if passes:
            self.renew(now)
        self.find_state(now, submitted)
        for job in submitted:
            self.submit(job, now)
        if passes:
            self.happened = True
            self.make_pass(now)
        return True

    def end_and_predict(self, now: int) -> tuple[list[Job], list[Job]]:
        """Let the jobs of now end, and predict those that are submitted then; return both."""
        ended = [job for job in self.running if job.end == now]
        for job in sorted(ended, key=lambda job: job.place):
            self.terminate(job)
        submitted = self.take_submitted(now)
        for job in submitted:
            self.predict(job, now)
        return ended, submitted

    def by_policy_time(self, score: Score) -> Score:
        """Rule 4."""
        if self.policy_estimator.estimate == "requested":
            return score

        def with_policy_time(job: Job, now: int) -> float:
            given, job.requested = job.requested, job.policy_time
            try:
                return score(job, now)
            finally:
                job.requested = given

        return with_policy_time

    def go_on(self, before: Events) -> None:
        """Begin with what another simulation has learned."""
        self.terminated = before.terminated
        self.estimator, self.policy_estimator = before.estimator, before.policy_estimator
        self.candidate_estimator = before.candidate_estimator

    def order_changes(self) -> bool:
        """Whether the next pass may have another order of the same jobs."""
        renewed = self.policy_estimator.learns and looks_at_times(self.given_policy)
        return renewed or changes_with_time(self.given_policy)

    def always_passes(self) -> bool:
        """Return whether a submission causes a pass even if the new job does not fit (rule 9)."""
        around = self.backfill in EASY or self.backfill.startswith("depth:")
        ordered = around and not is_submission_order(self.backfill_order)
        restricts = self.quotas or self.windows or self.depends or self.preemption is not None
        return bool(ordered or restricts or self.hold is not None)

    # Events

    def next_time(self) -> int:
        """Return when something happens next."""
        if self.due is not None:
            return self.due
        times = [min(job.end, job.predicted_end) for job in self.running]
        clocks = (self.plan_due, self.all_due, self.look_due)
        times += [due for due in clocks if due is not None]
        if self.coming:
            times.append(self.coming[-1].submit)
        if self.outside:  # rule 28
            times += [job.end + 1 for job in self.leaving if job.end == self.reopened]
        times += [] if self.opening is None else [self.opening]
        return min(times + self.reopenings() + self.exempt_until(), default=NEVER)

    def reopenings(self) -> list[int]:
        """When windows end at which jobs wait."""
        return [end for _, end, _ in self.windows if end > self.reopened and self.queue]

    def exempt_until(self) -> list[int]:
        """When running jobs may be stopped by jobs that wait, rule 27, and not before."""
        if self.preemption is None:
            return []
        groups, may, *_ = self.preemption
        waiting = {groups[job.number] for job in self.queue}
        times = []
        for job in self.running:
            group = groups[job.number]
            if any((stopper, group) in may for stopper in waiting):
                times.append(self.end_of_exemption(job))
        return [time for time in times if time > self.reopened]

    def end_of_exemption(self, job: Job) -> int:
        """Return before when a running job cannot be stopped (rule 27)."""
        groups, _, _, *times = self.preemption
        until = job.start + job.paused + (times[0].get(groups[job.number], 0) if times else 0)
        return max(until, job.since + 1) if self.passes == "per-event" else int(until)

    def take_submitted(self, now: int, most: float = math.inf) -> list[Job]:
        """Return the jobs that are submitted now, or the first of them (rule 28)."""
        while self.coming and self.coming[-1].submit == now:
            self.outside.append(self.coming.pop())
        submitted: list[Job] = []
        for job in list(self.outside):
            there = [*self.queue, *self.running, *self.suspended, *submitted]
            there += [other for other in self.leaving if other.end == now]
            if len(submitted) < most and not self.one_too_many(job, there):
                self.outside.remove(job)
                job.submit = now
                self.came += 1
                job.came = self.came
                submitted.append(job)
        return submitted

    def one_too_many(self, job: Job, others: list[Job]) -> bool:
        """Rule 28."""
        for keys, most in self.places:
            key = keys[job.number]
            if key is None or isinstance(key, Spared):
                continue
            if sum(keys[other.number] == key for other in others) >= most:
                return True
        return False

    def known(self, job: Job, now: int) -> tuple[Job, int, list[Job], list[Job]]:
        """Return what an estimate looks at: job, time, its user's ended jobs, running jobs."""
        return job, now, self.terminated.get(job.user, []), self.running

    def predict(self, job: Job, now: int) -> None:
        """Predict the run time of a job that is submitted (rule 3)."""
        job.predicted = job.prediction = self.estimator.predict(*self.known(job, now))
        self.predict_for_policies(job, now)

    def predict_for_policies(self, job: Job, now: int) -> None:
        """Predict what policies look at (rule 4), and by what candidates are judged (rule 32)."""
        job.policy_time = self.policy_estimator.predict(*self.known(job, now))
        job.candidate_time = self.candidate_estimator.predict(*self.known(job, now))
        job.knows = len(self.terminated.get(job.user, []))

    def renew(self, now: int) -> None:
        """Rule 4."""
        for job in self.queue:
            if len(self.terminated.get(job.user, [])) > job.knows:
                self.predict_for_policies(job, now)

    def find_state(self, now: int, coming: Iterable[Job] = ()) -> None:
        """Rule 30; suspended jobs hold no processors there."""
        if self.is_looked_at:
            kept, self.kept = self.kept, []
            self.state = State(self, now, coming)
            self.kept = kept

    def submit(self, job: Job, now: int) -> None:
        """Put a job into the queue; where each has a reservation, make its own (rules 13, 14)."""
        if self.backfill == "conservative":
            if self.expired_since_pass:
                self.drop_reservations()
                for waiting in self.primary_order(now):
                    self.promise(waiting, now)
            self.promise(job, now)
        self.queue.append(job)

    def terminate(self, job: Job) -> None:
        """Let a job end: estimates learn of it, and jobs that follow it may come (rule 26)."""
        if job.leaves is not None and job.end < job.start + job.actual:  # rule 27
            self.stop(job, job.end)
            self.cut += [*self.lost, *self.cancelled][-1:]
            return
        self.running.remove(job)
        self.terminated.setdefault(job.user, []).append(job)
        for estimator in (self.estimator, self.policy_estimator, self.candidate_estimator):
            estimator.learn(job)
        if not self.follows:
            return
        over = {other.number for jobs in self.terminated.values() for other in jobs}
        for number, (others, think, earliest) in self.follows.items():  # rule 26
            if job.number in others and over.issuperset(others):
                self.jobs[number].submit = max(job.end + think, earliest)
                self.coming.append(self.jobs[number])
        self.coming.sort(key=lambda job: (-job.submit, -job.number))

    def start(self, job: Job, now: int, *, backfilled: bool) -> None:
        """Start a job of the queue."""
        assert self.fits(job, now)
        self.queue.remove(job)
        self.running.append(job)
        self.started += 1
        job.place = self.started
        job.start = job.since = now
        if self.correction == "kill":
            job.limit = job.predicted
        job.end = now + job.actual
        job.backfilled = backfilled

    def expire(self, now: int) -> None:
        """Correct the predictions that have proved too short (rule 7)."""
        for job in self.running:
            if job.predicted_end == now < job.end:
                job.prediction = self.corrected(job, now)
                job.corrections += 1
                self.expired_since_pass = True

    def corrected(self, job: Job, now: int) -> int:
        """Return the prediction that takes the place of one that was too short (rule 15)."""
        elapsed = job.ran(now)
        if self.correction == "recursive-doubling":
            return 2 * elapsed
        if self.correction == "predicted-again":
            prediction = self.estimator.predict(*self.known(job, now), elapsed)
            return prediction if prediction > elapsed else job.requested
        if self.correction == "incremental" and job.corrections < len(INCREMENTS):
            return min(job.predicted + INCREMENTS[job.corrections], job.requested)
        return job.requested  # "requested", and "incremental" out of steps

    def make_pass(self, now: int) -> None:
        """Make a pass, and see when time alone causes another (rule 31, and ``shares``)."""
        self.passed, self.opening = now, None
        self.schedule(now)
        for job in self.queue:
            for quota in filter(is_budget, self.quotas):  # rule 33
                if self.exceeds(job, quota) and self.spending.may_change(job, quota, now):
                    counts = self.spending.last(now) + self.spending.period + 1
                    self.opening = min(self.opening or counts, counts)
        if any(BY_TIME in quota[3:] for quota in self.quotas):
            last = max((j.start + j.paused + j.requested for j in self.running), default=now)
            times = range(now, last)
            budgets = [quota for quota in self.quotas if is_budget(quota)]
            for job in self.queue:
                if any(self.exceeds(job, quota) for quota in budgets):
                    continue
                if self.over_quota(job, now) and not self.over_quota(job, last):
                    after = bisect_left(times, True, key=lambda at: not self.over_quota(job, at))
                    self.opening = min(self.opening or now + after, now + after)
        if self.usage_period and self.queue:
            counted = -(-now // self.usage_period) * self.usage_period + 1
            self.opening = min(self.opening or counted, counted)
        self.look_due = None
        if self.opening is not None and self.slurm is not None:
            at, self.opening = self.opening, None
            all_due = at + -at % self.slurm["sched_interval"]
            self.all_due = min(self.all_due or all_due, all_due)
            if self.plan_due is None and self.slurm["bf_interval"] != -1:
                self.look_due = max(at, self.next_look(now))

    # What the classes below say

    def over_quota(self, job: Job, at: int | None = None) -> bool:
        """Rule 24."""
        raise NotImplementedError

    def exceeds(self, job: Job, quota: tuple[Any, ...], at: int | None = None) -> bool:
        """Whether a job would exceed a quota."""
        raise NotImplementedError

    def schedule(self, now: int) -> None:
        """Make a pass."""
        raise NotImplementedError

    def next_look(self, now: int) -> int:
        """Return from when on a pass of the second kind may be, rule 23."""
        raise NotImplementedError

    def nodes_change(self, now: int) -> bool:
        """Let nodes fail; return whether some have, or have been repaired."""
        return False

    def stop(self, job: Job, now: int) -> None:
        """Stop a running job."""
        raise NotImplementedError

    def fits(self, job: Job, now: int) -> bool:
        """Return whether a job could start now."""
        raise NotImplementedError

    def has_place(self, job: Job, now: int) -> bool:
        """Return whether a job fits beside those that run, whatever keeps it back (rule 30)."""
        raise NotImplementedError

    def primary_order(self, now: int) -> list[Job]:
        """Return the queue in the order of the policy."""
        raise NotImplementedError

    def promise(self, job: Job, now: int) -> None:
        """Rule 16."""
        raise NotImplementedError

    def drop_reservations(self) -> None:
        """Lift all reservations."""
        raise NotImplementedError

    def expected_ends(self, jobs: Iterable[Job], now: int) -> list[int]:
        """Return when jobs that run or are suspended are expected to end."""
        raise NotImplementedError

    def join_ends(self, now: int) -> None:
        """Let running jobs end together in profiles, rule 23."""
        raise NotImplementedError
