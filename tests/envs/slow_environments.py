"""What the environments must do, as slowly and obviously as it can be said.

Lists and loops; everything is worked out again at each pass. No code is shared with hpcgym, and
only the scores of named policies and the predictions with `hpcgym.reference`, whose rules hold but
for who decides:

- Selection, "revised": a pass asks for a job as long as some queued job fits. One that fits starts;
  for one that does not, the others are back-filled around its reservation, and it is forgotten.
- Selection, "kept": a pass asks as long as jobs are queued and none is selected. A selected job
  that does not fit stays selected until it starts; each pass back-fills the others around it.
- Ordering: each pass at which some queued job fits asks for scores, once. The highest goes first,
  ties and jobs outside the window (after all others) by submission. With a threshold [s], here
  and under weights, jobs that have waited longer come before all others, by submission.
- Weights: as ordering, by the weights of the last decision. One is made before each pass at which
  some queued job fits; or at the start of each stretch of seconds in which jobs wait or come; or
  each time that the next submission would be one too many for the last; or once.
- The window is the queued jobs submitted first.
- An extract begins with a pass at its beginning, and with the predictions of that time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hpcgym.reference.orders import score_of, weighted
from hpcgym.reference.predictions import Estimator

STEPS = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


@dataclass(eq=False)
class Job:
    row: int
    submit: int
    processors: int
    run: int
    requested: int
    user: int
    first_submit: int
    predicted: int = -1
    expected: int = -1  # the prediction after corrections
    corrections: int = 0
    start: int = -1
    policy_time: int = -1
    knows: int = 0  # ended jobs of its user, when it was last predicted for policies
    seen: dict[str, float] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return self.row

    @property
    def actual(self) -> int:
        return self.run

    @property
    def for_policies(self) -> Job:
        return replace(self, requested=self.policy_time)

    @property
    def end(self) -> int:
        return self.start + self.run

    @property
    def expected_end(self) -> int:
        return self.start + self.expected


def slow_jobs(workload: Any) -> list[Job]:
    names = ("submit_time", "requested_processors", "run_time", "requested_time", "user_id")
    rows = zip(*(workload.columns[name].tolist() for name in names), strict=True)
    return [
        Job(row, submit, processors, min(run, requested), requested, user, workload.first_submit_s)
        for row, (submit, processors, run, requested, user) in enumerate(rows)
    ]


class Machine:
    """Events, passes, predictions and backfilling; a subclass says who goes first."""

    def __init__(
        self,
        workload: Any,
        *,
        backfill: str = "easy",
        backfill_order: Any = "fcfs",
        estimate: Any = "requested",
        policy_estimate: Any = "requested",
        correction: str = "requested",
        passes: str = "per-timestamp",
        threshold: int | None = None,
        hold: Mapping[str, Any] | None = None,
    ) -> None:
        self.jobs = slow_jobs(workload)
        self.processors = workload.processors
        self.backfill, self.order = backfill, backfill_order
        self.estimator, self.policy_estimator = Estimator(estimate), Estimator(policy_estimate)
        self.correction, self.passes, self.threshold = correction, passes, threshold
        self.hold = hold
        self.coming = list(self.jobs)
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.ended: list[Job] = []
        self.first = self.jobs[0].submit
        self.due: int | None = None  # when a pass is due without any event
        if workload.initial is not None:
            self.begin(workload.initial)
        if hasattr(backfill_order, "begin"):  # it looks at what has ended
            backfill_order.begin(self)

    def begin(self, initial: Any) -> None:
        """Begin as an extract does, but for what estimates have learned but averages."""
        now = initial.begin
        self.ended = slow_jobs(initial.past)
        for job, wait in zip(self.ended, initial.past.wait_time.tolist(), strict=True):
            job.start = job.submit + wait
        self.ended.sort(key=lambda job: (job.end, job.start))
        before = [job for job in self.jobs if job.submit < now]
        self.coming = [job for job in self.jobs if job.submit >= now]
        for job in before:
            job.start = int(initial.start[job.row])
        self.queue = [job for job in before if job.start < 0]
        self.running = [job for job in before if job.start >= 0]
        self.running.sort(key=lambda job: job.start)
        for job in before:
            job.predicted = job.expected = self.estimator.predict(*self.known(job, now))
            self.predict_for_policies(job, now)
        for time in range(min((job.start for job in self.running), default=now), now + 1):
            for job in self.running:
                if job.expected_end == time < job.end:
                    self.correct(job, time)
        if before:
            self.first, self.due = now, now

    @property
    def terminated(self) -> dict[None, list[Job]]:
        return {None: self.ended}

    def play(self) -> list[int]:
        """Return the start times of all jobs."""
        while self.coming or self.running or self.due is not None:
            now = min(
                ([] if self.due is None else [self.due])
                + [job.submit for job in self.coming]
                + [job.end for job in self.running]
                + [job.expected_end for job in self.running]
            )
            self.before(now)
            for job in self.running:
                if job.expected_end == now < job.end:
                    self.correct(job, now)
            ends = [job for job in self.running if job.end == now]
            submissions = [job for job in self.coming if job.submit == now]
            self.handle(ends, submissions, now)
        return [job.start for job in self.jobs]

    def handle(self, ends: list[Job], submissions: list[Job], now: int) -> None:
        due, self.due = self.due is not None, None
        if self.passes == "per-timestamp":
            for job in ends:
                self.finish(job)
            for job in submissions:
                self.submit(job, now)
            if ends or submissions or due:
                self.do_pass(now)
            return
        if due:
            self.do_pass(now)
        always = (self.backfill != "none" and self.order != "fcfs") or self.hold is not None
        for job in submissions:
            self.submit(job, now)
            if always or self.fits(job, now):
                self.do_pass(now)
        for job in ends:
            self.finish(job)
            self.do_pass(now)

    def do_pass(self, now: int) -> None:
        for job in self.queue:
            if len(self.known(job, now)[2]) > job.knows:
                self.predict_for_policies(job, now)
        self.serve(now)

    def before(self, now: int) -> None:
        """See that time is about to go on to the events of ``now``."""

    def serve(self, now: int) -> None:
        raise NotImplementedError

    def known(self, job: Job, now: int) -> tuple[Job, int, list[Job], list[Job]]:
        past = [other for other in self.ended if other.user == job.user]
        return job, now, past, self.running

    def predict_for_policies(self, job: Job, now: int) -> None:
        known = self.known(job, now)
        job.policy_time, job.knows = self.policy_estimator.predict(*known), len(known[2])

    def submit(self, job: Job, now: int) -> None:
        self.coming.remove(job)
        self.queue.append(job)
        job.predicted = self.estimator.predict(*self.known(job, now))
        if self.correction == "kill":
            job.run = min(job.run, job.predicted)
        self.predict_for_policies(job, now)
        job.expected = job.predicted

    def finish(self, job: Job) -> None:
        self.running.remove(job)
        self.ended.append(job)
        for estimator in (self.estimator, self.policy_estimator):
            estimator.learn(job)

    def start(self, job: Job, now: int) -> None:
        assert self.fits(job, now)
        self.queue.remove(job)
        self.running.append(job)
        job.start = now

    def correct(self, job: Job, now: int) -> None:
        elapsed = now - job.start
        if self.correction == "recursive-doubling":
            job.expected = 2 * elapsed
        elif self.correction == "predicted-again":
            prediction = self.estimator.predict(*self.known(job, now), elapsed)
            job.expected = prediction if prediction > elapsed else job.requested
        elif self.correction == "incremental" and job.corrections < len(STEPS):
            job.expected = min(job.predicted + STEPS[job.corrections], job.requested)
        else:
            job.expected = job.requested
        job.corrections += 1

    def free_at(self, time: int) -> int:
        return self.processors - sum(j.processors for j in self.running if j.expected_end > time)

    def fits(self, job: Job, now: int) -> bool:
        return self.need(job, now) <= self.free_at(now)

    def need(self, job: Job, now: int) -> int:
        """How many processors must be free: long jobs are held back until they have waited."""
        if self.hold is None:
            return job.processors
        times = {"requested": [job.requested], "policy_estimate": [job.policy_time]}
        times["both"] = times["requested"] + times["policy_estimate"]
        known = times[self.hold["by"]]
        length = known[0] if len(known) == 1 else math.sqrt(known[0] * known[1])
        steps = math.log(length / self.hold["from_s"]) / math.log(self.hold["factor"])
        most = self.hold["share"] * self.processors * min(max(steps, 0.0), 1.0)
        back = round(most / (1 + (now - job.submit) / self.hold["erode_s"]))
        return min(job.processors + back, self.processors)

    def some_fit(self, now: int) -> bool:
        return any(self.fits(job, now) for job in self.queue)

    def backfill_around(self, head: Job, now: int) -> None:
        if self.backfill == "none":
            return
        times = sorted(job.expected_end for job in self.running if job.expected_end > now)
        need = self.need(head, now)
        shadow = next(time for time in times if self.free_at(time) >= need)
        extra = 0 if self.backfill == "until-shadow" else self.free_at(shadow) - need
        for job in self.in_backfill_order(now):
            if job is head or not self.fits(job, now):
                continue
            if now + job.predicted > shadow - (self.backfill == "until-shadow"):
                if job.processors > extra:
                    continue
                extra -= job.processors
            self.start(job, now)

    def in_backfill_order(self, now: int) -> list[Job]:
        if self.order == "sjbf":
            return sorted(self.queue, key=lambda job: job.predicted)
        score: Any = score_of(self.order)
        return sorted(self.queue, key=lambda job: -score(job.for_policies, now))

    def start_in_order(self, order: list[Job], now: int) -> None:
        if self.threshold is not None:
            starved = [job for job in self.queue if now - job.submit > self.threshold]
            order = starved + [job for job in order if job not in starved]
        for job in order:
            if not self.fits(job, now):
                self.backfill_around(job, now)
                return
            self.start(job, now)


class Selection(Machine):
    """``choose(now, rows)``: the place of a job among the visible ones, given by their rows."""

    def __init__(
        self,
        workload: Any,
        choose: Callable[[int, list[int]], int],
        *,
        kept: bool,
        window: int,
        **rules: Any,
    ) -> None:
        super().__init__(workload, **rules)
        self.choose, self.keeps, self.window = choose, kept, window
        self.selected: Job | None = None
        self.decisions = 0

    def serve(self, now: int) -> None:
        while self.queue:
            if not self.keeps and not self.some_fit(now):
                return
            if self.selected is None:
                visible = self.queue[: self.window]
                self.selected = visible[self.choose(now, [job.row for job in visible])]
                self.decisions += 1
            head = self.selected
            if not self.fits(head, now):
                if not self.keeps:
                    self.selected = None
                self.backfill_around(head, now)
                return
            self.start(head, now)
            self.selected = None


class Ordering(Machine):
    """``choose(now, rows)``: a score for each of the visible jobs, given by their rows."""

    def __init__(
        self, workload: Any, choose: Callable[[int, list[int]], Any], *, window: int, **rules: Any
    ) -> None:
        super().__init__(workload, **rules)
        self.choose, self.window, self.decisions = choose, window, 0

    def serve(self, now: int) -> None:
        if not self.some_fit(now):
            return
        visible, beyond = self.queue[: self.window], self.queue[self.window :]
        chosen = self.choose(now, [job.row for job in visible])
        scores = dict(zip(visible, chosen, strict=True))
        self.decisions += 1
        self.start_in_order(sorted(visible, key=lambda job: -scores[job]) + beyond, now)


class Weights(Machine):
    """``choose(k)``: the k-th decision, six weights whose sizes add up to 1, or are all 0."""

    def __init__(
        self, workload: Any, choose: Callable[[int], Any], *, interval: Any, **rules: Any
    ) -> None:
        super().__init__(workload, **rules)
        self.choose, self.interval, self.decisions = choose, interval, 0
        self.stretch = -1  # the last stretch of seconds that a decision was looked at for
        self.last = -1  # the last second that a decision made by submissions holds for
        self.weights: Any = None

    def decide(self) -> None:
        self.weights = self.choose(self.decisions)
        self.decisions += 1

    def before(self, now: int) -> None:
        if all(job.start >= 0 for job in self.jobs):
            return
        if self.interval == "episode" and self.weights is None:
            self.decide()
        elif isinstance(self.interval, int) and now > self.last:
            self.decide()
            count = len(self.jobs) - len(self.coming)
            self.last = 2**62
            if count + self.interval < len(self.jobs):
                following = self.jobs[count + self.interval].submit
                self.last = max(self.jobs[count].submit, following - 1)
        elif isinstance(self.interval, str) and self.interval.endswith("h"):
            length = 3600 * int(self.interval[:-1])
            while self.stretch < (now - self.first) // length:
                self.stretch += 1
                if self.queue or self.stretch == 0:
                    self.decide()

    def serve(self, now: int) -> None:
        if not self.some_fit(now):
            return
        if self.interval == "pass":
            self.decide()
        order = list(self.queue)
        if any(self.weights):
            score = self.score_by(self.weights)
            order = sorted(self.queue, key=lambda job: -score(job.for_policies, now))
        self.start_in_order(order, now)

    def score_by(self, weights: Any) -> Any:
        return weighted(weights)
