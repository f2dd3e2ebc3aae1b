"""A slow, obvious simulator: the specification of hpcgym's schedules as a program to read.

It shares no code with ``hpcgym.engine`` and works everything out again at every pass, with lists
and loops. Tests drive both on the same jobs and demand identical schedules.

Rules
-----
Jobs and time
 1. Jobs are numbered in submission order, ties in file order. All times are whole seconds.
 2. A job runs for p = min(run time, requested time p~), at least 1 s; cut at p~ it is killed.
 3. The estimate is fixed when the job is submitted, before it can start, and is at least 1 s.
    AVE2: (p of the user's last terminated job + p of the one before) // 2, at most p~; p~ while
    fewer than two have terminated; AVE(k) is of k jobs. "Last" is the order in which terminations
    are handled. Users are told apart by their number alone (-1, unknown, is one user). Only
    predictions given as a list, and twice p~, may exceed p~ at submission. A predictor learns each
    termination when it is handled, and predicts at the submission: `slow_predictions.py`.
Order of the queue
 4. Primary order: highest score first, ties in submission order; scores are taken once a pass,
    at its time t. Every policy looks at the requested time p~, never at the prediction, or where
    there is a policy estimate at that in the place of p~. One that is learned predicts at the
    submission, and anew, before a pass, for each waiting job of whose user a job has terminated
    since; in per-timestamp passes after the predictions for the submissions.
 5. Six weights w over (q, p~, wait, p~/q, (wait + p~)/p~, p~ q) give the score a + wait / d, in
    double precision, with
    a = w0 q + w1 p~ + w3 (p~ / q) + w4 + w5 (p~ q), summed from left to right, and
    d = p~ / (w2 p~ + w4), or 1 / w2 where w4 = 0 (so that FCFS has exact ties whatever its weight);
    without the second term where w2 p~ + w4 = 0. Orders by what users have used, which changes
    when jobs terminate, are in `slow_shares.py`. F1 to F4 have the submit time counted from the
    first submission of the whole log, at least 1 s.
 6. Threshold T: jobs with wait > T (strictly) come before all others, among themselves in
    submission order. It touches the primary order only, never the backfill order.
Events and passes
 7. A prediction expires when a running job reaches its predicted end before its own end: the
    prediction is corrected (rule 15) and nothing else happens; an expiry alone causes no pass.
 8. per-timestamp: at each time all expiries, all terminations in the order the jobs started, all
    submissions in file order; then one pass if anything terminated or was submitted.
 9. per-event: at each time all expiries, then each submission in file order, then each
    termination in the order the jobs started, each alone. A pass follows each termination. A
    pass follows a submission if the new job fits the free processors, and in any case under
    EASY with another backfill order than that of submission (conservative has none).
10. Free processors = machine - processors of running jobs whose predicted end lies after now. In
    per-event passes a job that is to end now, as predicted, thus counts as gone already, in any
    pass of that time; one that ends now earlier than predicted holds its processors until its
    own termination is handled.
Backfilling
11. none: start jobs in primary order until one does not fit.
12. EASY: as none; the first that does not fit is the blocked head. Shadow time = the earliest
    predicted end of a running job at which the free processors, with all that is released until
    then (that time included), suffice for the head; extra = what is left over there. The other
    queued jobs, in backfill order, start if they fit the free processors and end by the shadow
    time by their prediction, or fit the extra processors (and then use them up). One sweep.
    Backfill order: "fcfs" submission order; "sjbf" shortest prediction first; or a policy's score
    order; ties always in submission order. If none is given: "fcfs" under the policy "fcfs", else
    "spf"; fair share has its own.
    until-shadow: as EASY with extra = 0, and now + predicted < T.
13. conservative: each queued job holds a reservation for its whole predicted length, made when it
    is submitted, at the earliest time where it fits among running jobs (until their predicted
    ends) and all other reservations. A pass takes the queued jobs in primary order: lifts the
    reservation, makes it again at the earliest time from now on, and starts the job if that
    is now.
14. conservative, once a prediction has expired: the next pass first drops all reservations and
    then makes them again one by one in primary order, starting the jobs that can start. If a
    submission comes before that pass, all are dropped and made again in primary order first, the
    new job is placed last, and the pass that follows (if any) is an ordinary one.
22. depth:K, per-timestamp passes only: each pass drops all reservations. Queued jobs in primary
    order are given the earliest time from now on where they fit for their whole predicted length,
    beside running jobs and the reservations made so far; who starts now starts, others have a
    reservation, until there are K. Then the other queued jobs, in backfill order: who can start
    now, beside all that, starts; the rest have none. Rule 16 holds of the first reservation.
23. slurm, per-timestamp passes only: a pass at an event starts jobs in primary order until one does
    not fit, or default_queue_depth and one more have been looked at. At multiples of sched_interval
    there is no such bound. If it has left jobs out for it, a pass follows at the next of these
    times, as at an event, unless there is an event before. A second kind of pass comes bf_interval
    after the last of its kind if anything has happened since, that very second included, or if jobs
    waited when that last one was due, before rule 27 and the pass at an event that it follows; else
    it comes at the next event, and the first with the first event. It follows a pass as at an
    event, also where there is no event. It drops all reservations and takes the first
    bf_max_job_test jobs in primary order; of the jobs of one user only bf_max_job_user (0: any
    number), the others of that user are none of the first. Who rule 24 passes over is one of the
    first, but does not count for its user. Each is given the
    earliest time as in rule 22, at which it also fits in the second in which it ends: it starts if
    that is now; it has a reservation if that is at most 60 bf_window from now, and fewer than
    bf_job_part_count_reserve (0: any number) have one; else nothing is kept of it. Rule 16 holds of
    the first of these that does not start, if it has one.
    In these profiles, and in rule 25, jobs that run when the pass begins end together: let F be the
    first of their predicted ends, raised to a multiple of 30 above it. Who ends by F + 30 ends with
    the last of these; who ends after that, and by F + 60, with the last of these; then F + 120 and
    so on, twice as far each time; with bf_window_linear L (not 0) F + 30 + L, F + 30 + 2 L and so
    on. A job that starts in the pass ends as predicted. The times at which a reservation begins and
    ends in these profiles are rounded down to multiples of bf_resolution R, and it has R at least.
24. Quotas: a key for each job, or none, and how many jobs, and processors, may run of one key. A
    job that would be one too many when its turn comes is passed over: no head, no reservation,
    and rule 17 does not count it as waiting. Not with conservative, until-shadow, hold, per-event.
25. Windows: a begin, an end and processors that are closed to jobs in [begin, end). All of them
    are known from the beginning, and stand in each profile beside running jobs and reservations. In
    rule 11 a job fits if it does so for its whole predicted length; EASY is depth:1, rule 22. A
    pass follows each end of a window at which jobs wait. What rule 24 excludes is excluded here,
    and so are predictions that expire. Jobs that run at the beginning of an extract run on, also
    into a window, which then has what they leave of it.
26. Dependencies: some jobs follow one or several others. They are submitted when the last of these
    has terminated and a time to think is over, but not before a time of their own; rule 8 holds of
    that time, of which their submit is then, for their waits and scores too. The order of
    submission, also where "fcfs" means it, is that of these times, ties by number. But ties of
    orders that waiting changes are by number alone; those of unicef's jobs of one processor, whose
    score is infinite, by time. What rule 24 excludes is excluded here, and so are thresholds, what
    is learned, and orders that look at when a job was submitted.
27. Preemption: jobs are in groups, or in none, and jobs of one group may stop those of some others.
    Who can stop a group, straight or by way of others, has a higher level. Each pass begins so:
    the levels from the highest down, but for the lowest; of each the queued jobs in primary order.
    A job that fits starts. If it would fit were all gone that run and that its group may stop, it
    starts too: these are gone through, the higher level first, of one level the earlier start, of
    one time the lower number, and each runs on if the job fits without what those take that run on
    so far; the others are stopped. If it would not fit, no later job of its group is looked at so.
    Then comes the pass as ever. Who is stopped is queued again at once, in its old place, for its
    whole run, with the prediction of its submission; or, under cancel, has ended so. It has not
    terminated: nothing learns of it. start, end, backfilled are of the last run. What rule 24
    excludes is excluded here, and so is what is learned. Who rule 24 passes over is passed over
    here. Under rule 25 a job fits if it does so for its whole predicted length; in these profiles
    rule 23 joins the ends of what would run beside it. Groups may be exempt for a time: those of
    their jobs that have run for less are none that a job may stop. A pass follows the second in
    which a running job has run so long, if a queued job may stop its group.
28. Quotas of submitted jobs: a key for each job, or none, and how many jobs of one key may be
    queued or running. A job that is to be submitted, by the log or by rule 26, waits outside the
    queue where it would be one too many of any of its keys. At each time, once all terminations
    have been handled, those outside are gone through in the order of the times at which they were
    to be submitted, ties by number; those of this very time are the last of them. Who is not one
    too many, with those that have just come, is submitted. Its submit is then this time, as in
    rule 26, and what is said there of orders, and of what is excluded, holds here too. But jobs
    that come in at one time do so in the order in which they were gone through.
29. Suspension, rule 27 with another end: who is stopped has neither ended nor is it queued. It is
    suspended, and goes on later with what is left of its run and of its prediction; start is its
    first. Who has run longer, all its pieces together, goes on where rule 27 says: the earlier
    start. The processors of suspended jobs are taken. Only where rule 27 asks whether a job fits,
    those of jobs that its group may stop are free for it. Each
    level, the lowest too, begins with its suspended jobs, who has run longer first, ties by number:
    one goes on if it fits beside all that run and the suspended ones that may stop it. In the pass
    as ever, and in its profiles, all suspended jobs count for each job, also for one that may stop
    them, from now until they are expected to end:
    when all have ended, as expected, that run or are suspended and may stop it, and then what is
    left of its prediction is over. EASY is depth:1, rule 22.
Corrections
15. requested: p~. incremental: the k-th time, the prediction at submission + the k-th of
    INCREMENTS, at most p~; p~ after the last. recursive-doubling: twice the running time so far,
    which may exceed p~ (bounding it at p~ does not meet the published values). predicted-again:
    what the estimate says at that moment, p~ if that has passed.
Jobs that are held back
21. hold of share, from_s, factor, erode_s, by: a job starts, as a head or before it, only if
    min(P, q + round(share P z / (1 + wait / erode_s))) processors are free, with P of the machine,
    z = ln(x / from_s) / ln(factor), at least 0 and at most 1, halves rounded to even, worked out at
    the pass, with the wait of then; x is p~, the policy estimate, or the square root of their
    product. The head's shadow time, and extra, are by what it needs now; whether a job behind it
    fits the extra processors, by its q. A pass follows each submission, per-event too.
An extract of a trace
18. What a trace recorded says what a job is at the time B at which the extract begins, if it was
    submitted before: terminated if it had ended, at B at the latest; running if it had started
    before B and ends after; else queued. It is left out if its wait was not recorded. Running jobs
    get their processors in the order of their starts; one for which too few are left is queued.
    Jobs submitted at B or later come as usual, up to the end of the extract, exclusive.
19. Predictions for all of them are made at B in the order of submission, by what has terminated and
    by who runs then; those of running jobs then expire, at B too, as if they had been made when the
    jobs started. Nothing is reserved yet. What learns has learned the terminated jobs in the order
    of their ends, as they were seen when they were submitted: who had ended by then had ended, and
    who had started before ran.
20. A pass is due at B: per-timestamp, after all that happens then; per-event, before.
Records
16. reserved_start: the first promise. EASY: the shadow time of the first pass that leaves the job
    as blocked head, even where nothing else is queued, but none under a policy whose order changes
    as jobs wait (or are predicted anew), for the next pass may have another head; conservative:
    the reservation made at submission; -1 where there was none.
17. backfilled: started at a pass that left a job before it in the primary order waiting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slow_predictions import Estimator, features

EASY = ("easy", "until-shadow")
TOO_MANY = "too many to look at"
INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


@dataclass(eq=False)  # a job is like no other
class Job:
    """What is known of a job before, and what has become of it after a simulation."""

    submit: int
    processors: int
    run: int
    requested: int
    user: int = 0
    number: int = -1
    predicted: int = -1  # the estimate of its running time, at submission
    prediction: int = -1  # the same after corrections
    corrections: int = 0
    start: int = -1
    end: int = -1
    backfilled: bool = False
    reserved_start: int = -1  # the first promise
    reservation: int = -1  # the present promise (conservative)
    policy_time: int = -1  # what policies look at in place of the requested time
    recorded_wait: int = -1  # of the trace
    since: int = -1  # when it started, or last went on
    paused: int = 0  # how long it has been suspended
    stopped: int = -1  # when it was last suspended
    knows: int = 0  # how many terminated jobs of its user that is made of
    first_submit: int = 0  # when the first job of the whole log was submitted
    seen: dict[str, float] = field(default_factory=dict)  # what predictors were told of it

    @property
    def actual(self) -> int:
        return min(self.run, self.requested)

    @property
    def killed(self) -> bool:
        return self.run > self.requested

    @property
    def predicted_end(self) -> int:
        return self.start + self.paused + self.prediction

    def ran(self, now: int) -> int:
        """How long it has run, all pieces together."""
        return (now if self.stopped == -1 else self.stopped) - self.start - self.paused


Score = Callable[[Job, int], float]


def jobs_of(workload: Any) -> list[Job]:
    """The jobs of an ``hpcgym`` workload, in its order."""
    columns = (workload.submit_time, workload.requested_processors, workload.run_time)
    columns += (workload.requested_time, workload.user_id, workload.wait_time)
    rows = [[int(value) for value in row] for row in zip(*columns, strict=True)]
    first = workload.first_submit_s
    return [Job(*row[:-1], recorded_wait=row[-1], first_submit=first) for row in rows]


# --- Policies: the higher the score, the earlier the job ------------------------------------


def weighted(weights: Sequence[float]) -> Score:
    """Rule 5."""
    w_q, w_p, w_wait, w_ratio, w_exp, w_area = (float(w) for w in weights)

    def score(job: Job, now: int) -> float:
        q, p = job.processors, job.requested
        at_submission = w_q * q + w_p * p + w_ratio * (p / q) + w_exp + w_area * (p * q)
        if w_wait * p + w_exp == 0:
            return at_submission
        d = 1 / w_wait if w_exp == 0 else p / (w_wait * p + w_exp)
        return at_submission + (now - job.submit) / d

    return score


def wfp3(job: Job, now: int) -> float:
    x = (now - job.submit) / job.requested
    return x * x * x * job.processors


def unicef(job: Job, now: int) -> float:
    wait = now - job.submit
    if job.processors == 1:  # log2(1) = 0: first of all, once it has waited
        return math.inf if wait > 0 else 0.0
    return wait / (math.log2(job.processors) * job.requested)


def _log10_submit(job: Job) -> float:
    return math.log10(max(job.submit - job.first_submit, 1))


def f1(job: Job, now: int) -> float:
    return -(math.log10(job.requested) * job.processors + 870 * _log10_submit(job))


def f2(job: Job, now: int) -> float:
    return -(math.sqrt(job.requested) * job.processors + 25600 * _log10_submit(job))


def f3(job: Job, now: int) -> float:
    return -(job.requested * job.processors + 6860000 * _log10_submit(job))


def f4(job: Job, now: int) -> float:
    return -(job.requested * math.sqrt(job.processors) + 530000 * _log10_submit(job))


POLICIES: dict[str, Score] = {
    "fcfs": lambda job, now: now - job.submit,
    "lcfs": lambda job, now: -(now - job.submit),
    "spf": lambda job, now: -job.requested,
    "sjf": lambda job, now: -job.requested,
    "lpf": lambda job, now: job.requested,
    "sqf": lambda job, now: -job.processors,
    "lqf": lambda job, now: job.processors,
    "saf": lambda job, now: -(job.requested * job.processors),
    "laf": lambda job, now: job.requested * job.processors,
    "srf": lambda job, now: -(job.requested / job.processors),
    "lrf": lambda job, now: job.requested / job.processors,
    "sexp": lambda job, now: -1 - (now - job.submit) / job.requested,
    "lexp": lambda job, now: 1 + (now - job.submit) / job.requested,
    "wfp3": wfp3,
    "unicef": unicef,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
}


def score_of(policy: str | Sequence[float] | Score) -> Score:
    if isinstance(policy, str):
        return POLICIES[policy]
    return policy if callable(policy) else weighted(policy)


def is_submission_order(order: Any) -> bool:
    """Whether an order is that of submission: "fcfs", or a positive weight of waiting alone."""
    if isinstance(order, str) or callable(order):
        return order == "fcfs"
    return order[2] > 0 and not any(w for i, w in enumerate(order) if i != 2)


def changes_with_time(policy: Any) -> bool:
    """Whether waiting alone can change a policy's order."""
    if hasattr(policy, "begin"):
        return True
    if isinstance(policy, str) or callable(policy):
        return policy in ("lexp", "sexp", "wfp3", "unicef")
    others = any(w for i, w in enumerate(policy) if i != 2)
    return policy[4] != 0 or (policy[2] != 0 and others)


def looks_at_times(policy: Any) -> bool:
    """Whether a policy depends on the requested time, or on what stands for it."""
    if isinstance(policy, str) or callable(policy):
        return policy not in ("fcfs", "lcfs", "sqf", "lqf")
    return any(w for i, w in enumerate(policy) if i not in (0, 2))


def settings_of_slurm(backfill: str) -> dict[str, int] | None:
    """Return the settings of rule 23; None of another rule."""
    name, _, text = backfill.partition(":")
    if name != "slurm":
        return None
    usual = {"bf_interval": 30, "bf_max_job_test": 500, "bf_window": 1440}
    usual |= {"bf_resolution": 60, "bf_window_linear": 0}
    usual |= {"default_queue_depth": 100, "sched_interval": 60}
    given = dict(part.split("=") for part in text.split("+") if part)
    usual |= {"bf_job_part_count_reserve": 0, "bf_max_job_user": 0}
    return {**usual, **{k: int(v) for k, v in given.items()}}


# --- The simulation -------------------------------------------------------------------------


class Simulation:
    def __init__(self, jobs: Iterable[Job], processors: int, **rules: Any):
        self.jobs = sorted((Job(**_given(job)) for job in jobs), key=lambda job: job.submit)
        for number, job in enumerate(self.jobs):
            job.number = number
        self.processors = processors
        if rules["backfill_order"] is None:
            rules["backfill_order"] = "fcfs" if rules["policy"] == "fcfs" else "spf"
        self.given_policy = rules["policy"]
        self.backfill = rules["backfill"]
        self.backfill_order = rules["backfill_order"]
        self.estimator = Estimator(rules["estimate"])
        self.policy_estimator = Estimator(rules.get("policy_estimate", "requested"))
        self.policy = self.by_policy_time(score_of(rules["policy"]))
        self.correction = rules["correction"]
        self.threshold = rules["threshold"]
        self.passes = rules["passes"]
        self.hold = rules.get("hold")
        self.quotas = rules.get("quotas") or []
        self.windows = rules.get("windows") or []
        self.extracted = False  # whether it begins with jobs that run
        self.preemption = rules.get("preemption")
        self.preempts = False  # whether it is asked for whom others are stopped
        self.lost: list[Any] = []  # job, start and end of runs, and nodes
        self.cancelled: list[Any] = []  # likewise, under cancel
        self.suspended: list[Job] = []
        self.kept: list[Job] = []  # those of them whose processors are taken for who is looked at
        self.expected: tuple[Any, dict[int, int]] = (None, {})  # a state, and ends expected in it
        self.reopened = -1  # up to when windows have ended
        self.places = rules.get("places") or []
        self.outside: list[Job] = []  # by the times at which they were to be submitted
        self.depends = rules.get("follows") is not None or bool(self.places)
        self.follows = rules.get("follows") or {}  # number -> the others, time to think, earliest
        # the next to be submitted is the last
        self.coming = [job for job in reversed(self.jobs) if job.number not in self.follows]
        self.queue: list[Job] = []  # in submission order
        self.running: list[Job] = []  # in the order they started
        self.terminated: dict[int, list[Job]] = {}  # user -> terminated jobs, in order
        self.expired_since_pass = False
        self.due: int | None = None  # when a pass is due, whatever happens
        self.slurm = settings_of_slurm(self.backfill)
        self.joined: dict[int, int] = {}  # number -> when it ends in profiles, rule 23
        self.plan_due: int | None = None  # when one of the second kind is, rule 23
        self.last_planned: int | None = None  # when the last one was
        self.all_due: int | None = None  # when a pass at an event looks at all, rule 23
        self.happened = False  # whether a pass has another reason, too
        self.queued_before = False  # whether jobs waited when the pass began
        for order in (rules["policy"], rules["backfill_order"]):
            if hasattr(order, "begin"):  # it looks at what has terminated
                order.begin(self)

    def begin(self, begin: int, end: float) -> None:
        """Rules 18 to 20."""
        self.extracted = True
        before = [job for job in self.jobs if job.submit < begin and job.recorded_wait >= 0]
        self.coming = [job for job in self.coming if begin <= job.submit < end]
        for job in sorted(before, key=lambda job: job.submit + job.recorded_wait):
            job.start = job.submit + job.recorded_wait
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
        for now in range(min((job.start for job in self.running), default=begin), begin + 1):
            self.expire(now)
        self.expired_since_pass = True
        if self.passes == "per-event":
            self.schedule(begin)
        else:
            self.due = begin

    def has_room(self, job: Job) -> bool:
        """Whether a job that a trace says is running finds processors beside the others."""
        return job.processors <= self.processors - sum(j.processors for j in self.running)

    def run(self) -> list[Job]:
        while (
            self.coming or self.running or (self.due, self.plan_due) != (None, None) or self.queue
        ):
            now = self.next_time()
            due, self.due = self.due is not None, None
            due = due or now in self.reopenings() + self.exempt_until()
            self.reopened = now
            self.expire(now)
            ended = [job for job in self.running if job.end == now]
            if self.passes == "per-timestamp":
                for job in ended:
                    self.terminate(job)
                submitted = self.take_submitted(now)
                for job in submitted:
                    self.predict(job, now)
                self.renew(now)
                for job in submitted:
                    self.submit(job, now)
                self.happened = bool(ended or submitted or due or self.all_due == now)
                if self.happened or self.plan_due == now:
                    self.schedule(now)
            else:
                for job in self.take_submitted(now):
                    self.predict(job, now)
                    self.submit(job, now)
                    if self.always_passes() or self.fits(job, now):
                        self.schedule(now)
                for job in ended:
                    self.terminate(job)
                    self.renew(now)
                    self.schedule(now)
        return self.jobs

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

    def go_on(self, before: Simulation) -> None:
        """Begin with what another simulation has learned."""
        self.terminated = before.terminated
        self.estimator, self.policy_estimator = before.estimator, before.policy_estimator

    def order_changes(self) -> bool:
        """Whether the next pass may have another order of the same jobs."""
        renewed = self.policy_estimator.learns and looks_at_times(self.given_policy)
        return renewed or changes_with_time(self.given_policy)

    def always_passes(self) -> bool:
        """Does a per-event submission cause a pass even where the new job does not fit?"""
        ordered = self.backfill in EASY and not is_submission_order(self.backfill_order)
        return ordered or self.hold is not None

    # Events

    def next_time(self) -> int:
        if self.due is not None:
            return self.due
        times = [min(job.end, job.predicted_end) for job in self.running]
        times += [due for due in (self.plan_due, self.all_due) if due is not None]
        if self.coming:
            times.append(self.coming[-1].submit)
        return min(times + self.reopenings() + self.exempt_until())

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
            group, exempt = groups[job.number], self.exempt_s(job)
            if exempt > 0 and any((one, group) in may for one in waiting):
                times.append(job.start + exempt)
        return [time for time in times if time > self.reopened]

    def exempt_s(self, job: Job) -> int:
        groups, _, _, *exempt = self.preemption
        return exempt[0].get(groups[job.number], 0) if exempt else 0

    def take_submitted(self, now: int) -> list[Job]:
        while self.coming and self.coming[-1].submit == now:
            self.outside.append(self.coming.pop())
        submitted: list[Job] = []
        for job in list(self.outside):
            if not self.one_too_many(job, [*self.queue, *self.running, *submitted]):
                self.outside.remove(job)
                job.submit = now
                submitted.append(job)
        return submitted

    def one_too_many(self, job: Job, others: list[Job]) -> bool:
        """Rule 28."""
        for keys, most in self.places:
            key = keys[job.number]
            if key is not None and sum(keys[other.number] == key for other in others) >= most:
                return True
        return False

    def known(self, job: Job, now: int) -> tuple[Job, int, list[Job], list[Job]]:
        return job, now, self.terminated.get(job.user, []), self.running

    def predict(self, job: Job, now: int) -> None:
        job.predicted = job.prediction = self.estimator.predict(*self.known(job, now))
        self.predict_for_policies(job, now)

    def predict_for_policies(self, job: Job, now: int) -> None:
        job.policy_time = self.policy_estimator.predict(*self.known(job, now))
        job.knows = len(self.terminated.get(job.user, []))

    def renew(self, now: int) -> None:
        """Rule 4."""
        for job in self.queue:
            if len(self.terminated.get(job.user, [])) > job.knows:
                self.predict_for_policies(job, now)

    def submit(self, job: Job, now: int) -> None:
        if self.backfill == "conservative":
            if self.expired_since_pass:
                self.drop_reservations()
                for waiting in self.primary_order(now):
                    self.promise(waiting, now)
            self.promise(job, now)
        self.queue.append(job)

    def terminate(self, job: Job) -> None:
        self.running.remove(job)
        self.terminated.setdefault(job.user, []).append(job)
        for estimator in (self.estimator, self.policy_estimator):
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
        assert self.fits(job, now)
        self.queue.remove(job)
        self.running.append(job)
        job.start = job.since = now
        job.end = now + job.actual
        job.backfilled = backfilled

    def expire(self, now: int) -> None:
        for job in self.running:
            if job.predicted_end == now < job.end:
                job.prediction = self.corrected(job, now)
                job.corrections += 1
                self.expired_since_pass = True

    def corrected(self, job: Job, now: int) -> int:
        elapsed = job.ran(now)
        if self.correction == "recursive-doubling":
            return 2 * elapsed
        if self.correction == "predicted-again":
            prediction = self.estimator.predict(*self.known(job, now), elapsed)
            return prediction if prediction > elapsed else job.requested
        if self.correction == "incremental" and job.corrections < len(INCREMENTS):
            return min(job.predicted + INCREMENTS[job.corrections], job.requested)
        return job.requested  # "requested", and "incremental" out of steps

    # Passes

    def schedule(self, now: int) -> None:
        self.queued_before = bool(self.queue)
        if self.preemption is not None:
            self.preempt(now)
        if self.backfill == "conservative":
            self.schedule_conservative(now)
            return
        if self.slurm is not None:
            self.schedule_like_slurm(now)
            return
        if self.backfill.startswith("depth:"):
            self.schedule_to_depth(now, int(self.backfill.split(":")[1]))
            return
        suspends = self.preemption is not None and self.preemption[2] == "suspend"
        if self.backfill == "easy" and (self.windows or suspends):
            self.schedule_to_depth(now, 1)
            return
        head = self.start_in_order(now)
        if self.backfill in EASY and head is not None:
            self.backfill_around(head, now)

    def preempt(self, now: int) -> None:
        """Rule 27."""
        self.preempts = True
        self.drop_reservations()
        groups, may, *_ = self.preemption
        names = {name for pair in may for name in pair}
        level = {name: longest_way(name, may) for name in names}
        for height in sorted({*level.values()}, reverse=True):
            self.go_on_with([j for j in self.suspended if level[groups[j.number]] == height], now)
            if height == 0:
                break
            shut = set()
            for job in self.primary_order(now):
                group = groups[job.number]
                if level.get(group) != height or group in shut or self.barred(job):
                    continue
                self.kept = [j for j in self.suspended if (group, groups[j.number]) not in may]
                if not self.fits(job, now):
                    theirs = [j for j in self.running if (group, groups[j.number]) in may]
                    theirs = [j for j in theirs if j.ran(now) >= self.exempt_s(j)]
                    theirs.sort(key=lambda j: (-level[groups[j.number]], -j.ran(now), j.number))
                    stopped = self.to_stop(job, theirs, now)
                    if stopped is None:
                        shut.add(group)
                        continue
                    for other in stopped:
                        self.stop(other, now)
                self.start(job, now, backfilled=False)
        self.kept = list(self.suspended)
        self.preempts = False

    def go_on_with(self, suspended: list[Job], now: int) -> None:
        """Rule 29: let jobs of one level go on."""
        groups, may, *_ = self.preemption
        for job in sorted(suspended, key=lambda j: (-j.ran(now), j.number)):
            of = groups[job.number]
            self.kept = [j for j in self.suspended if (groups[j.number], of) in may]
            if self.fits_again(job, now):
                self.suspended.remove(job)
                self.running.append(job)
                job.paused += now - job.stopped
                job.end = job.start + job.paused + job.actual
                job.since, job.stopped = now, -1

    def fits_again(self, job: Job, now: int) -> bool:
        return self.fits(job, now)

    def expected_ends(self, jobs: Iterable[Job], now: int) -> list[int]:
        """Rule 29: worked out once for each job, while the same jobs run and are suspended."""
        both = (self.running, self.suspended)
        state = now, *([(job.number, job.since) for job in some] for some in both)
        if state != self.expected[0]:
            self.expected = state, {}
        known = self.expected[1]
        for job in jobs:
            if job.number not in known:
                known[job.number] = self.expected_end(job, now)
        return [known[job.number] for job in jobs]

    def expected_end(self, job: Job, now: int) -> int:
        """Rule 29: of a job that runs or is suspended."""
        if job.stopped == -1:
            return job.predicted_end
        groups, may, *_ = self.preemption
        others = [
            self.expected_end(other, now)
            for other in self.running + self.suspended
            if (groups[other.number], groups[job.number]) in may and self.meet(job, other)
        ]
        return max([now, *others]) + job.prediction - job.ran(now)

    def meet(self, job: Job, other: Job) -> bool:
        """Whether two jobs could be in each other's way."""
        return True

    def to_stop(self, job: Job, theirs: list[Job], now: int) -> list[Job] | None:
        before = self.running, self.suspended
        self.running = [other for other in before[0] if other not in theirs]
        if self.preemption[2] == "suspend":
            self.suspended = self.suspended + theirs
        stopped = None
        if self.fits(job, now):
            stopped = []
            for other in theirs:
                self.running.append(other)
                if other in self.suspended:
                    self.suspended.remove(other)
                if not self.fits(job, now):
                    self.running.remove(other)
                    if self.preemption[2] == "suspend":
                        self.suspended.append(other)
                    stopped.append(other)
        self.running, self.suspended = before
        return stopped

    def stop(self, job: Job, now: int) -> None:
        self.running.remove(job)
        if self.preemption[2] == "cancel":
            job.end = now
            self.cancelled.append((job.number, job.since, now, {}))
            return
        self.lost.append((job.number, job.since, now, dict(getattr(job, "nodes", ()))))
        if self.preemption[2] == "suspend":
            job.end, job.stopped = -1, now
            self.suspended.append(job)
            return
        job.start = job.end = -1
        job.prediction, job.corrections, job.backfilled = job.predicted, 0, False
        job.reservation = -1
        self.queue.append(job)
        self.queue.sort(key=lambda job: (job.submit, job.number))

    def start_in_order(self, now: int, most: int | None = None) -> Job | str | None:
        """Start jobs in primary order; return the first that does not fit, or TOO_MANY."""
        for looked, job in enumerate(self.primary_order(now)):
            if looked == most:
                return TOO_MANY
            if self.barred(job):
                continue
            if not self.fits(job, now):
                return job
            self.start(job, now, backfilled=False)
        return None

    def barred(self, job: Job) -> bool:
        """Rule 24."""
        for keys, most_jobs, most_processors in self.quotas:
            key = keys[job.number]
            held = self.running + self.suspended
            beside = [other for other in held if keys[other.number] == key is not None]
            processors = sum(other.processors for other in beside) + job.processors
            if key is not None and (len(beside) >= most_jobs or processors > most_processors):
                return True
        return False

    def backfill_around(self, head: Job, now: int) -> None:
        shadow, extra = self.shadow(head, now)
        if head.reserved_start == -1 and not self.order_changes():
            head.reserved_start = shadow
        for job in self.candidates(now):
            if job is head or self.barred(job) or not self.fits(job, now):
                continue
            if now + job.predicted <= shadow - (self.backfill == "until-shadow"):
                self.start(job, now, backfilled=True)
            elif job.processors <= extra and self.backfill != "until-shadow":
                extra -= job.processors
                self.start(job, now, backfilled=True)

    def shadow(self, head: Job, now: int) -> tuple[int, int]:
        """Return when the blocked head can start at the latest, and what is left over then."""
        for time in sorted({job.predicted_end for job in self.running}):
            free_then = self.free(time)
            if free_then >= self.need(head, now):
                return time, free_then - self.need(head, now)
        raise AssertionError("the head is larger than the machine")

    def schedule_conservative(self, now: int) -> None:
        if self.expired_since_pass:
            self.drop_reservations()
        blocked = False
        for job in self.primary_order(now):
            self.promise(job, now)
            if job.reservation == now:
                self.start(job, now, backfilled=blocked)
            else:
                blocked = True

    def schedule_to_depth(self, now: int, depth: int) -> None:
        """Rule 22."""
        self.drop_reservations()
        kept = 0
        for job in self.primary_order(now):
            if kept == depth:
                break
            if self.barred(job):
                continue
            self.reserve(job, now)
            if job.reservation == now:
                self.start(job, now, backfilled=kept > 0)
                continue
            kept += 1
            if kept == 1 and job.reserved_start == -1 and not self.order_changes():
                job.reserved_start = job.reservation
        if kept < depth:
            return
        for job in self.candidates(now):
            if job.reservation != -1 or self.barred(job):
                continue
            self.reserve(job, now)
            if job.reservation == now:
                self.start(job, now, backfilled=True)
            else:
                job.reservation = -1

    def schedule_like_slurm(self, now: int) -> None:
        """Rule 23."""
        every = self.slurm["bf_interval"]
        self.drop_reservations()
        self.join_ends(now)
        interval, self.all_due, most = self.slurm["sched_interval"], None, None
        if now % interval:
            most = self.slurm["default_queue_depth"] + 1
        if self.start_in_order(now, most) is TOO_MANY:
            self.all_due = (now // interval + 1) * interval
        if self.plan_due is None:
            last = self.last_planned
            self.plan_due = now if last is None else max(now, last + every)
        if self.plan_due != now:
            return
        waited, self.last_planned = bool(self.queue), now
        began = sum(job.start == now for job in self.running)
        self.join_ends(now)
        most = self.slurm["bf_job_part_count_reserve"] or math.inf
        most_of_user = self.slurm["bf_max_job_user"] or math.inf
        looked, of_user, kept, head = 0, {}, 0, None
        for job in self.primary_order(now):
            if of_user.get(job.user, 0) >= most_of_user:
                continue
            if looked == self.slurm["bf_max_job_test"]:
                break
            looked += 1
            if self.barred(job):
                continue
            of_user[job.user] = of_user.get(job.user, 0) + 1
            self.reserve(job, now)
            if job.reservation == now:
                self.start(job, now, backfilled=head is not None)
                continue
            head = head or job
            if kept >= most or job.reservation > now + 60 * self.slurm["bf_window"]:
                job.reservation = -1
                continue
            kept += 1
            if job is head and job.reserved_start == -1 and not self.order_changes():
                job.reserved_start = job.reservation
        started = sum(job.start == now for job in self.running) > began
        again = (
            self.goes_on(waited, started) or self.happened or (self.queued_before and not waited)
        )
        self.plan_due = now + every if again else None

    def goes_on(self, waited: bool, started: bool) -> bool:
        """Whether there is another pass of the second kind, though nothing else happens."""
        return waited

    def join_ends(self, now: int) -> None:
        """Let running jobs end together in profiles, rule 23."""
        ends = sorted({job.predicted_end for job in self.running if job.predicted_end > now})
        last = {}
        while ends:
            if not last:
                raised = (ends[0] // 30 + 1) * 30
                span = 30
            if raised + span < ends[0]:
                span = self.wider(span, ends[0] - raised)
            together = [end for end in ends if end <= raised + span]
            last.update(dict.fromkeys(together, together[-1]))
            ends = ends[len(together) :]
        self.joined = {
            job.number: last.get(job.predicted_end, job.predicted_end) for job in self.running
        }

    def wider(self, span: int, least: int) -> int:
        """The first span that reaches so far."""
        linear = self.slurm["bf_window_linear"]
        if linear:  # one by one takes too long where ends are years apart
            return span + math.ceil((least - span) / linear) * linear
        while span < least:
            span *= 2
        return span

    def reserved_in(self, job: Job) -> tuple[int, int]:
        """When the reservation of a job begins and ends in profiles."""
        if self.slurm is None:
            return job.reservation, job.reservation + job.predicted
        size = self.slurm["bf_resolution"]
        begin = job.reservation // size * size
        return begin, max((job.reservation + job.predicted) // size * size, begin + size)

    def drop_reservations(self) -> None:
        self.expired_since_pass = False
        for job in self.queue:
            job.reservation = -1

    def promise(self, job: Job, now: int) -> None:
        """Rule 16."""
        self.reserve(job, now)
        if job.reserved_start == -1:
            job.reserved_start = job.reservation

    def reserve(self, job: Job, now: int) -> None:
        """Reserve the earliest time where the job fits; its own reservation so far is lifted."""
        job.reservation = -1
        steps = self.profile(now)
        short = [time for time, free in steps if free < job.processors]
        for start, _ in steps:
            end = start + job.predicted + (self.slurm is not None)
            if not any(start <= time < end for time in short):
                job.reservation = start
                return
        raise AssertionError("the job is larger than the machine")

    def profile(self, now: int) -> list[tuple[int, int]]:
        """Return (time, processors free from then on until the next), from now on."""
        return self.steps_of(self.queue, now)

    def steps_of(self, queue: Sequence[Job], now: int) -> list[tuple[int, int]]:
        """The same beside the reservations of some jobs."""
        held = [
            (job.start, self.joined.get(job.number, job.predicted_end), job.processors)
            for job in self.running
        ]
        held += self.windows
        if self.kept:
            ends = self.expected_ends(self.kept, now)
            held += [(now, end, job.processors) for job, end in zip(self.kept, ends, strict=True)]
        held += [(*self.reserved_in(job), job.processors) for job in queue if job.reservation != -1]
        changes: dict[int, int] = {now: self.processors}
        for start, end, processors in held:
            if end > now:
                start = max(start, now)
                changes[start] = changes.get(start, 0) - processors
                changes[end] = changes.get(end, 0) + processors
        steps, free = [], 0
        for time in sorted(changes):
            free += changes[time]
            sure = not (self.kept or self.slurm is not None or (self.windows and self.extracted))
            assert free >= 0 or not sure, "the profile is over-committed"
            steps.append((time, free))
        return steps

    # Order and room

    def free(self, time: int) -> int:
        """Rule 10; of a later time: the processors free then if nothing more started."""
        held = sum(job.processors for job in self.running if job.predicted_end > time)
        return self.processors - held - sum(job.processors for job in self.kept)

    def fits(self, job: Job, now: int) -> bool:
        if self.windows:
            if self.preempts and self.slurm is not None:
                self.join_ends(now)
            steps = self.steps_of((), now)
            end = now + job.predicted + (self.slurm is not None)
            return all(free >= job.processors for at, free in steps if at < end)
        return self.need(job, now) <= self.free(now)

    def need(self, job: Job, now: int) -> int:
        """Rule 21."""
        if self.hold is None:
            return job.processors
        x = {
            "requested": job.requested,
            "policy_estimate": job.policy_time,
            "both": math.sqrt(job.requested * job.policy_time),
        }[self.hold["by"]]
        z = min(max(math.log(x / self.hold["from_s"]) / math.log(self.hold["factor"]), 0), 1)
        back = self.hold["share"] * self.processors * z
        back /= 1 + (now - job.submit) / self.hold["erode_s"]
        return min(self.processors, job.processors + round(back))

    def primary_order(self, now: int) -> list[Job]:
        by_score = sorted(self.tied(self.given_policy, now), key=lambda job: -self.policy(job, now))
        if self.threshold is None:
            return by_score
        starved = [job for job in self.queue if now - job.submit > self.threshold]
        return starved + [job for job in by_score if now - job.submit <= self.threshold]

    def candidates(self, now: int) -> list[Job]:
        if self.backfill_order == "fcfs":
            return list(self.queue)
        if self.backfill_order == "sjbf":
            return sorted(self.queue, key=lambda job: job.predicted)
        score = self.by_policy_time(score_of(self.backfill_order))
        return sorted(self.tied(self.backfill_order, now), key=lambda job: -score(job, now))

    def tied(self, order: Any, now: int) -> list[Job]:
        """Return the queue in the order of ties; rule 26."""
        if not (self.depends and changes_with_time(order)):
            return self.queue

        def key(job: Job) -> tuple[float, int]:
            first = order == "unicef" and job.processors == 1 and job.submit < now
            return job.submit if first else math.inf, job.number

        return sorted(self.queue, key=key)


def longest_way(group: Any, may: Collection[tuple[Any, Any]]) -> int:
    """The level of a group, rule 27."""
    return max((1 + longest_way(other, may) for one, other in may if one == group), default=0)


def _given(job: Job) -> dict[str, int]:
    names = ("submit", "processors", "run", "requested", "user", "recorded_wait", "first_submit")
    return {name: getattr(job, name) for name in names}


def simulate_slowly(
    jobs: Iterable[Job],
    processors: int,
    *,
    policy: str | Sequence[float] | Score = "fcfs",
    backfill: str = "none",
    backfill_order: str | Sequence[float] | Score | None = None,
    estimate: Any = "requested",
    correction: str = "requested",
    threshold: int | None = None,
    passes: str = "per-timestamp",
    policy_estimate: Any = "requested",
    hold: Mapping[str, Any] | None = None,
    quotas: Sequence[tuple[Sequence[Any], float, float]] = (),
    windows: Sequence[tuple[int, int, int]] = (),
    follows: Mapping[int, tuple[Collection[int], int, int]] | None = None,
    places: Sequence[tuple[Sequence[Any], int]] = (),
    preemption: tuple[Sequence[Any], Collection[tuple[Any, Any]], str] | None = None,
    lost: list[Any] | None = None,
    begin: int | None = None,
    end: float = math.inf,
) -> list[Job]:
    """Schedule the jobs by the rules above; return them in submission order, the given untouched.

    With ``begin`` it is the extract from there to ``end``; jobs that are not in it do not start.

    ``policy``: a name of POLICIES, six weights, or ``score(job, now) -> float``, whose ``begin``,
    if it has one, is called with the simulation before; ``backfill``:
    "none", "easy", "until-shadow", "depth:K", "slurm" with settings or "conservative";
    ``backfill_order``: "fcfs", "sjbf", a policy or None, the usual one;
    ``estimate``, ``policy_estimate``: "requested", "double-requested", "clairvoyant", "ave2",
    "ave3" and so on, "user-ratio", one prediction for each job, or anything with predict_one and
    learn_one; ``correction``: "requested",
    "incremental", "recursive-doubling" or "predicted-again"; ``threshold``: seconds; ``passes``:
    "per-timestamp" or "per-event";
    ``hold``: None or as in rule 21; ``quotas``: of rule 24, keys of the jobs in their order;
    ``windows``: of rule 25; ``follows``: of rule 26, by number of a job those of the others, the
    time to think and the earliest time; ``places``: of rule 28, keys of the jobs in their order;
    ``preemption``: of rule 27, the groups of the jobs in their order, None: none, pairs of groups
    of which the first may stop the second, and "requeue", "cancel" or "suspend", and perhaps for
    how long groups are exempt [s]; ``lost``: a list
    that job, start, end and nodes of runs are put into that ended so, or up to a suspension.
    """
    simulation = Simulation(
        jobs,
        processors,
        policy=policy,
        backfill=backfill,
        backfill_order=backfill_order,
        estimate=estimate,
        correction=correction,
        threshold=threshold,
        passes=passes,
        policy_estimate=policy_estimate,
        hold=hold,
        quotas=quotas,
        windows=windows,
        follows=follows,
        places=places,
        preemption=preemption,
    )
    if lost is not None:
        simulation.lost = lost
    if begin is not None:
        simulation.begin(begin, end)
    return simulation.run()
