"""Reservations: backfilling around them; rule 23, as Slurm does it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hpcgym.elementary import log
from hpcgym.reference.events import Events
from hpcgym.reference.jobs import BY_TIME, OF_CLUSTER, Job, Spared
from hpcgym.reference.orders import score_of
from hpcgym.reference.spending import is_budget

# --- What a pass does -----------------------------------------------------------------------------

TOO_MANY = "too many to look at"


class Reservations(Events):
    """Backfilling around no reservation, one, several or one for each job."""

    def start_in_order(self, now: int, most: int | None = None) -> Job | str | None:
        """Start jobs in primary order; return the first that does not fit, or TOO_MANY."""
        head = None
        self.look_who_could_start(now)
        for looked, job in enumerate(self.primary_order(now)):
            if looked == most:
                return TOO_MANY
            if self.barred(job):
                continue
            if self.fits(job, now):
                self.start(job, now, backfilled=head is not None)
                continue
            head = head or job
            if not self.stops_partition(job):
                break
        return head

    def stops_partition(self, job: Job) -> bool:
        """Stop the partition of a job that does not fit; return whether others may still start."""
        return False

    def barred(self, job: Job) -> bool:
        """Rule 24, and rule 27 while a job waits for others to leave."""
        held = bool(self.held) and self.preemption[0][job.number] in self.held
        return held or self.over_quota(job)

    def over_quota(self, job: Job, at: int | None = None) -> bool:
        """Rules 24 and 31: now, or at a time at which the same jobs run."""
        return any(self.exceeds(job, quota, at) for quota in self.quotas)

    def lacks_licence(self, job: Job) -> bool:
        """Rule 24: whether a job lacks a licence of which all jobs together may have some."""
        return any(OF_CLUSTER in quota[3:] and self.exceeds(job, quota) for quota in self.quotas)

    def exceeds(self, job: Job, quota: tuple[Any, ...], at: int | None = None) -> bool:
        """Whether a job would exceed a quota."""
        if is_budget(quota):  # rule 33
            return at is None and self.spending.exceeds(job, quota, self.passed)
        keys, asks, most, *how = quota
        key, asked = keys[job.number], asks[job.number]
        if key is None or isinstance(key, Spared) or asked == 0:
            return False
        held = [o for o in self.running + self.suspended if keys[o.number] == key]
        if BY_TIME in how:
            asked, most = asked * job.requested, 60 * most
            now = self.last_counted(self.passed if at is None else at)
            left = [o.requested - (max(o.ran(now), 0) if now >= 0 else 0) for o in held]
            had = sum(asks[o.number] * s for o, s in zip(held, left, strict=True))
        else:
            had = sum(asks[o.number] for o in held)
        return bool(had + asked > most)

    def last_counted(self, now: int) -> int:
        """Rule 31: up to when the time that jobs have run counts."""
        period = 1 if self.slurm is None else self.slurm["calc_period"]
        return now // period * period if period else -1

    def look_who_could_start(self, now: int) -> None:
        """Rule 16: see whether the pass may promise a start."""
        self.promises = not self.order_changes() or any(
            self.has_place(job, now) and not self.barred(job) for job in self.queue
        )

    def promise_head(self, head: Job, time: int) -> None:
        """Rule 16."""
        if head.reserved_start == -1 and self.promises:
            head.reserved_start = time

    def backfill_around(self, head: Job, now: int) -> None:
        """Rule 12, and rule 16 for the head."""
        shadow, extra = self.shadow(head, now)
        self.promise_head(head, shadow)
        for job in self.candidates(now):
            if job is head or self.barred(job) or not self.fits(job, now):
                continue
            if self.in_time(job, head, now, shadow):
                self.start(job, now, backfilled=True)
            elif job.processors <= extra and self.backfill != "until-shadow":
                extra -= job.processors
                self.start(job, now, backfilled=True)

    def in_time(self, job: Job, head: Job, now: int, shadow: int) -> bool:
        """Rules 12 and 32: whether a job that starts now is to end before the head starts."""
        length = job.predicted
        if self.relax is not None and now - head.submit < self.relax:
            length = min(length, job.candidate_time)
        until: int = shadow - (self.backfill == "until-shadow")
        return now + length <= until

    def shadow(self, head: Job, now: int) -> tuple[int, int]:
        """Return when the blocked head can start at the latest, and what is left over then."""
        for time in sorted({job.predicted_end for job in self.running}):
            free_then = self.free(time)
            if free_then >= self.need(head, now):
                return time, free_then - self.need(head, now)
        raise AssertionError("the head is larger than the machine")

    def schedule_conservative(self, now: int) -> None:
        """Rules 13 and 14."""
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
        self.look_who_could_start(now)
        kept, shadow = 0, -1
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
            shadow = max(shadow, job.reservation)
            if kept == 1:
                self.promise_head(job, job.reservation)
        if kept < depth:
            return
        for job in self.candidates(now):
            if job.reservation != -1 or self.barred(job):
                continue
            self.reserve(job, now)
            in_time = self.backfill != "until-shadow" or now + job.predicted < shadow
            if job.reservation == now and in_time:
                self.start(job, now, backfilled=True)
            else:
                job.reservation = -1

    def reserved_in(self, job: Job) -> tuple[int, int]:
        """When the reservation of a job begins and ends in profiles."""
        if self.slurm is None:
            return job.reservation, job.reservation + job.predicted
        size = self.slurm["bf_resolution"]
        begin = job.reservation // size * size
        return begin, max((job.reservation + job.predicted) // size * size, begin + size)

    def drop_reservations(self) -> None:
        """Lift all reservations."""
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
        job.reservation, job.beside = -1, 0
        start = self.earliest(job, now)
        if self.waits_for_more(job, start, now):
            start = self.earliest(job, now)
        job.reservation = start

    def waits_for_more(self, job: Job, start: int, now: int) -> bool:
        """Rule 21: whether a reservation takes all that a job needs, as it cannot start now."""
        if self.hold is None or (start == now and self.need(job, now) <= self.free(now)):
            return False
        job.beside = self.need(job, now) - job.processors
        return True

    def earliest(self, job: Job, now: int) -> int:
        """Return when a job first fits for its whole predicted length."""
        steps = self.profile(now)
        short = [time for time, free in steps if free < job.processors + job.beside]
        for start, _ in steps:
            end = start + job.predicted + (self.slurm is not None)
            if not any(start <= time < end for time in short):
                return start
        raise AssertionError("the job is larger than the machine")

    def profile(self, now: int) -> list[tuple[int, int]]:
        """Return (time, processors free from then on until the next), from now on."""
        return self.steps_of(self.queue, now)

    def steps_of(self, queue: Sequence[Job], now: int) -> list[tuple[int, int]]:
        """Return the same beside the reservations of some jobs."""
        held = [
            (now, self.joined.get(job.number, job.predicted_end), job.processors)
            for job in self.running
        ]
        held += self.windows
        if self.kept:
            ends = self.expected_ends(self.kept, now)
            held += [(now, end, job.processors) for job, end in zip(self.kept, ends, strict=True)]
        reserved = [job for job in queue if job.reservation != -1]
        held += [(*self.reserved_in(job), job.processors + job.beside) for job in reserved]
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
        """Return whether a job could start now; around windows for its whole predicted length."""
        if self.windows:
            if self.preempts and self.slurm is not None:
                self.join_ends(now)
            steps = self.steps_of((), now)
            end = now + job.predicted + (self.slurm is not None)
            if not all(free >= job.processors for at, free in steps if at < end):
                return False
            return self.hold is None or self.need(job, now) <= self.free(now)
        return self.need(job, now) <= self.free(now)

    def has_place(self, job: Job, now: int) -> bool:
        """Rule 30."""
        return self.need(job, now) <= self.free(now)

    def need(self, job: Job, now: int) -> int:
        """Rule 21."""
        own, most = self.width_of(job), self.size
        if self.hold is None:
            return own
        x = {
            "requested": job.requested,
            "policy_estimate": job.policy_time,
            "both": math.sqrt(job.requested * job.policy_time),
        }[self.hold["by"]]
        z = min(max(log(x / self.hold["from_s"]) / log(self.hold["factor"]), 0), 1)
        back = self.hold["share"] * most * z
        back /= 1 + (now - job.submit) / self.hold["erode_s"]
        return min(most, own + round(float(back)))

    def width_of(self, job: Job) -> int:
        """Return how many processors a job takes."""
        return job.processors

    @property
    def size(self) -> int:
        """How many processors there are."""
        return self.processors

    def primary_order(self, now: int) -> list[Job]:
        """Return the queue in the order of the policy, starved jobs first (rules 4, 6)."""
        by_score = sorted(self.queue, key=lambda job: -self.policy(job, now))
        if self.threshold is None:
            return by_score
        starved = [job for job in self.queue if now - job.submit > self.threshold]
        return starved + [job for job in by_score if now - job.submit <= self.threshold]

    def candidates(self, now: int) -> list[Job]:
        """Return the queue in the order in which jobs are tried behind the head (rule 12)."""
        if self.backfill_order == "fcfs":
            return list(self.queue)
        if self.backfill_order == "sjbf":
            return sorted(self.queue, key=lambda job: job.predicted)
        score = self.by_policy_time(score_of(self.backfill_order))
        return sorted(self.queue, key=lambda job: -score(job, now))


# --- Backfilling as Slurm does it: rule 23 --------------------------------------------------------


class SlurmPasses(Reservations):
    """Passes at events, and passes of a second kind, which make reservations."""

    def schedule_like_slurm(self, now: int) -> None:
        """Rule 23."""
        every = self.slurm["bf_interval"]
        self.drop_reservations()
        self.join_ends(now)
        interval, self.all_due, most = self.slurm["sched_interval"], None, None
        if now % interval:
            most = self.slurm["default_queue_depth"] + 1
        started = self.started
        outcome = self.start_in_order(now, most)
        self.happened |= self.started > started
        self.open_partitions()
        if outcome is TOO_MANY:
            self.all_due = (now // interval + 1) * interval
        if every == -1:
            return
        if self.plan_due is None and (self.happened or self.look_due == now):
            self.plan_due = self.next_look(now)
        if self.plan_due != now:
            return
        waited, self.last_planned = bool(self.queue), now
        began = sum(job.start == now for job in self.running)
        self.join_ends(now)
        most = self.slurm["bf_job_part_count_reserve"] or math.inf
        most_of_user = self.slurm["bf_max_job_user"] or math.inf
        looked, kept, head = 0, 0, None
        self.look_who_could_start(now)
        of_user: dict[int, int] = {}
        order = list(self.primary_order(now))
        for job in order:
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
            if job is head:
                self.promise_head(job, job.reservation)
        started = sum(job.start == now for job in self.running) > began
        again = (
            self.goes_on(waited, started, order)
            or self.happened
            or (self.queued_before and not waited)
        )
        self.plan_due = now + every if again else None

    def next_look(self, now: int) -> int:
        """Rule 23."""
        last = self.last_planned
        return now if last is None else max(now, last + self.slurm["bf_interval"])

    def open_partitions(self) -> None:
        """Let jobs have the nodes of all partitions again."""

    def goes_on(self, waited: bool, started: bool, order: Sequence[Job]) -> bool:
        """Whether there is another pass of the second kind, though nothing else happens."""
        return waited

    def join_ends(self, now: int) -> None:
        """Let running jobs end together in profiles, rule 23."""
        ends = sorted({job.predicted_end for job in self.running if job.predicted_end > now})
        last: dict[int, int] = {}
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
        """Return the first span that reaches so far."""
        linear = self.slurm["bf_window_linear"]
        if linear:  # one by one takes too long where ends are years apart
            return int(span + math.ceil((least - span) / linear) * linear)
        while span < least:
            span *= 2
        return span
