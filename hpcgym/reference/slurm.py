"""Backfilling as Slurm does it: rule 23."""

from __future__ import annotations

import math

from hpcgym.reference.reservations import TOO_MANY, Reservations


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
        looked, kept, head = 0, 0, None
        of_user: dict[int, int] = {}
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
