"""Limits of power and energy: their rules as a program to read.

The rules of the pool hold for events, predictions and the order of the queue; here stands what
whole nodes, their states, frequencies, caps and budgets add. Everything is worked out again
whenever it is needed, node by node and job by job.

Rules
-----
Nodes and power (whole milliwatts: of machines rounded up, of limits down)
 1. A job has nodes of its own. Those of the lowest numbers that are on come first, then of
    the lowest numbers the others. `contiguous`: the lowest row of nodes that are on, else of
    free ones.
 2. True power: a node is idle, off, switching off, booting, or busy at the level of its job;
    one that waits for the other nodes of its job is idle. A component is off, and the off
    power of nodes below it is saved, while all nodes below are off.
 3. Charged power: a free node that is on, or switching off, counts as REST = max(idle,
    shutdown), or idle where nothing is ever switched off; off as off; a free one that boots
    as max(boot, REST). A job that runs counts as max(busy, REST) for each node, or its
    measured power if that is more; while it waits for nodes max(boot, REST) for each node if
    that is more. Components as in 2.
 4. A node takes OFF seconds to switch off and BOOT to boot, and is never stopped half-way. A
    job that takes nodes which are not on begins when the last one is. At level f a job takes
    ceil(time * slowdown): run, requested and predicted time, and corrections count with
    these. Averages of ended jobs, and ratios, are of these times, too.
Times of passes
 5. Besides ends and submissions: when a cap is announced, starts, ends, or OFF before it
    starts if it has nodes off; when a budget starts, ends, and every period between; when
    nodes have been switched, or have been idle so long that they are to be. Without limits
    there are no passes at these times.
 6. At each time: nodes that are done, jobs whose nodes are on, expiries, ends, submissions;
    caps are announced; nodes for caps; kills; meters; the pass; idle nodes begin to switch
    off.
Caps
 7. A cap has its first K nodes off. From OFF before its start up to its end, free ones among
    them begin to switch off. A job may not have them if it is given nodes before the end of
    the cap and its requested time ends later than OFF before the start.
 8. At the end of a cap its K nodes, free and off or on the way, boot, unless a cap lies
    near: its start, less OFF, comes before they are on, and its end is to come. One that is
    still switching off boots then, if no cap lies near by then. From the lowest on, each boots
    only if 13 holds with it for all budgets in use: those that have begun, or into whose period a
    job that has its nodes may run by its requested end.
 9. A job may start if the charged power with it is within all caps in force, and the forecast
    with it within all announced caps that start before its requested end. The forecast for a
    cap's start: the K nodes off that can be, others at REST or as booting if they still do,
    and the jobs whose requested end is later than the start, waiting if they still do;
    components below which all nodes are off and without such a job are off. A free node can be
    off by then if it is, or if OFF is left once it is on, one with a job from its requested
    end.
10. Levels are tried from the highest. The head, and each backfilled job, takes the first that
    works.
11. A cap that kills: at its start, or its announcement if that is later, the jobs that began
    last, but before now, are killed until the charged power is within it.
Budgets: joules B, [a, b), L = B / (b - a) rounded down
12. The meter reads the true energy since a. saved = L * (t - a) - that, at the last look.
13. What a job starts with must be left: read + what is charged until b if nothing else starts
    and all jobs take their requested time <= B. Free nodes stay as they are; where the budget
    switches idle nodes off they do that at once, also those that jobs leave. Components stay
    as they are. That goes for budgets that the job may run into, and where it takes nodes that
    are off or switching off, for all others in use (8) too; of these nothing else is asked.
14. P is the charged power with the job, now. E is P - L, times what the job may run in the
    period by its requested end. Both are asked only of jobs that may run into the period; E may
    be negative.
15. `powercap`: P <= L. `reduce-pc`: P <= L or E <= saved; a job that is backfilled, P <= L - R /
    (s - now), or - a if a is to come, s the shadow time. `energy-bud`: E <= saved, of a job that is
    backfilled E <= saved - R. R is what is reserved: at the beginning of backfilling the head's E
    at s (17), 0 under `reduce-pc` if its P <= L there; under `energy-bud` each backfilled job adds
    its E. After the pass nothing is reserved.
16. With other rules only 13 holds for a budget; of a backfilled job with what the head adds to its
    nodes' power times its requested time from s on in the period.
The head's reservation
17. The shadow time s is the first of now, predicted ends, ends of caps, starts and ends of
    budgets and looks at meters, at which the head fits at some level, if nothing starts and
    jobs end as predicted. Caps: as in 9, with predicted ends and no waiting; components below
    the K nodes are off. Budgets: free nodes that are off or switching off are off, all others
    that have no job are off if the budget switches nodes off, else at REST; components stay
    as now. All that is drawn until b, with the head, is <= B; and by the budget's rule 15, for
    jobs that are not backfilled, with the power at s and what is saved by s: saved, less the
    power above L from now on. The head takes nodes that are on first. Ready at once.
18. Spare at s: nodes, and watts below each cap. A backfilled job that is predicted to end after s
    must not take more than is spare of any, watts counted from REST. `contiguous`: it must not
    have the head's row.
19. Nothing fits at any time: s is now, and nothing is backfilled that would end later.
20. A budget may have a fixed power for free nodes: in 14, 15 and 17 these count as that in every
    state, and every component as on. In 13 a node that is off counts as REST then, and every
    component, now and later. What is read (12) is true.
Rules of the queue
21. `until-shadow`: a backfilled job must be predicted to end before s; 13, 15 and 16 hold as under
    `easy`.
22. Quotas: a job that would exceed one is passed over, as head and behind it. A job counts from
    when it has its nodes.
23. Where submit times depend on the schedule, caps kill before any job comes: jobs that follow
    killed jobs, or wait outside the queue for them, may come, and be predicted, in that second.
Extracts
24. Rule 18 of the pool, and all nodes are on at B. Jobs that run then have nodes as 1 says, in the
    order of their starts, and the highest level. A job that finds none is queued. Caps may have
    begun before B, and do what they do from B on; budgets have not.
Nodes that are free
25. `hold` counts nodes where rule 21 of the pool counts processors. A job starts only if as many
    are free, on or off, as it needs; the head has them at s, and what is spare is left beside them.
26. The state (rule 30 of the pool) is of nodes: those are free that have no job, on or off; a job
    fits if as many are free as it needs, whatever limits say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hpcgym.reference.budgets import BUDGET_RULES, Plans
from hpcgym.reference.own_nodes import (
    BOOTING,
    NEVER,
    OFF,
    ON,
    SHUTTING,
    Budget,
    Cap,
    LimitedJob,
    PossibleStart,
    slowed,
)


class LimitedSimulation(Plans):
    """All rules."""

    def begin(self, begin: int, end: float) -> None:
        """Rule 24."""
        self.without_nodes: list[LimitedJob] = []
        for node in self.nodes:
            node.since = begin
        super().begin(begin, end)
        past = {job for jobs in self.terminated.values() for job in jobs}
        later = {*self.coming, *self.queue, *self.running} - past
        self.jobs = [job for job in self.jobs if job in later]
        self.now = begin - 1

    def has_room(self, job: Any) -> bool:
        """Rule 24, of those for whom rule 18 finds processors."""
        held = [*self.running, *self.without_nodes]
        if job.processors > self.processors - sum(other.processors for other in held):
            return False
        cells = self.pick(job, 0, range(0))
        if cells is None:
            self.without_nodes.append(job)
            return False
        for n in cells:
            self.nodes[n].job = job
        job.level, job.cells, job.passed = len(self.m.busy) - 1, cells, job.start
        job.began, job.asked, job.until = True, job.requested, job.start + job.requested
        job.real, job.order = job.actual, self.started
        self.started += 1
        return True

    # Time

    def run(self) -> list[Any]:
        """Simulate to the end; return the jobs in the order of their numbers."""
        while self.coming or self.running or self.queue:
            now = self.next_time()
            assert now < NEVER, "nothing happens any more, and jobs wait"
            due, self.due = self.due is not None, None
            self.read_meters(now)
            control = now in self.controls()
            self.now = now
            self.finish_switching(now)
            for job in self.running:
                job.began |= job.start <= now
            self.expire(now)
            ended = [job for job in self.running if job.end == now]
            for job in sorted(ended, key=lambda job: job.order):
                self.terminate(job)
            self.boot_late(now)
            limited = bool(self.caps or self.budgets)
            if self.depends and control and limited:
                self.keep_caps(now)
            submitted = self.take_submitted(now)
            for job in submitted:
                self.predict(job, now)
            self.queue += submitted
            if ended or submitted or due or (control and limited):
                self.renew(now)
                self.find_state(now)
                self.schedule(now)
                self.switch_off_idle(now)
            elif control:
                self.switch_off_idle(now)
        last = max((job.end for job in self.jobs), default=0)
        for n, node in enumerate(self.nodes):
            if node.state != ON and node.since < last:
                self.intervals.append((n, node.state, node.since, last))
        return self.jobs

    def next_time(self) -> int:
        """Return when something happens next."""
        if self.due is not None:
            return self.due
        times = [min(job.end, job.predicted_end) for job in self.running]
        times += [self.coming[-1].submit] if self.coming else []
        return min(times + self.controls(), default=NEVER)

    def controls(self) -> list[int]:
        """Rule 5."""
        m = self.m
        times = [node.until for node in self.nodes if node.state in (SHUTTING, BOOTING)]
        times += [job.start for job in self.running if not job.began]
        if m.timeout is not None:
            idle = [node for node in self.nodes if node.job is None and node.state == ON]
            times += [node.since + m.timeout for node in idle]
        for cap in self.caps:
            if not cap.known:
                times.append(cap.announced)
                continue
            times += [cap.start, cap.end]
            if cap.off:
                times.append(cap.start - m.off_time)
        for budget in self.budgets:
            times += [budget.start, budget.end, *range(budget.start, budget.end, budget.period)]
        return [time for time in times if self.now < time < NEVER]

    def boot_late(self, now: int) -> None:
        """Rule 8: of nodes that were switching off as a cap ended."""
        late = [n for n, node in enumerate(self.nodes) if node.boots and node.state == OFF]
        for n in late:
            self.nodes[n].boots = False
        if not self.cap_near(now):
            self.boot_free(late)

    def boot_free(self, numbers: Iterable[int]) -> None:
        """Rule 8."""
        for n in numbers:
            node = self.nodes[n]
            if node.job is None and (node.state == SHUTTING or self.within_budgets(n)):
                self.boot(n)

    def switch_off_idle(self, now: int) -> None:
        """Let nodes begin to switch off at the end of a time: rule 6."""
        if any(b.shuts and b.start <= now < b.end for b in self.budgets):
            self.shut_free(range(self.m.nodes), NEVER)
        elif self.m.timeout is not None:
            self.shut_free(range(self.m.nodes), now - self.m.timeout)

    def terminate(self, job: Any) -> None:
        """Let a job end."""
        for n in job.cells:
            self.nodes[n].job = None
            self.nodes[n].since = self.now
        super().terminate(job)
        job.requested = job.asked if job.asked >= 0 else job.requested

    def keep_caps(self, now: int) -> None:
        """Announce caps, switch nodes for them, and kill."""
        for cap in self.caps:
            cap.known = cap.known or cap.announced <= now
        self.nodes_for_caps(now)
        for cap in self.announced():
            if cap.kills and now == max(cap.start, cap.announced) and now < cap.end:
                self.kill(cap, now)

    def nodes_for_caps(self, now: int) -> None:
        """Rules 7 and 8."""
        for cap in self.announced():
            if cap.off and cap.end == now and not self.cap_near(now):
                self.boot_free(range(cap.off))
        for cap in self.announced():
            if cap.off and cap.start - self.m.off_time <= now < cap.end:
                self.shut_free(range(cap.off), NEVER)

    def kill(self, cap: Cap, now: int) -> None:
        """Rule 11."""
        while self.charged() > cap.mw:
            begun = [job for job in self.running if job.start < now]
            if not begun:
                break
            job = max(begun, key=lambda job: job.order)
            job.real = now - job.start
            job.end = job.killed_at = now
            self.terminate(job)
            self.nodes_for_caps(now)

    # May it start

    def best(self, job: Any, backfills: bool) -> PossibleStart | None:
        """Rules 10 and 25."""
        if self.hold is not None and self.need(job, self.now) > self.free(self.now):
            return None
        for level in self.levels():
            also = self.try_level(job, level, backfills)
            if also is not None:
                return also
        return None

    def try_level(self, job: LimitedJob, level: int, backfills: bool) -> PossibleStart | None:
        """Return how a job may start at a level; None: it may not."""
        asked = slowed(job.requested, job.factors[level])
        chosen = self.choose(job, asked)
        if chosen is not None and backfills:
            chosen = self.leaves_room(job, level, asked, chosen)
        if chosen is None:
            return None
        also = PossibleStart(job, level, *chosen)
        until = also.ready + asked
        for cap in self.announced():
            if cap.end <= self.now or cap.start >= until:
                continue
            in_force = cap.start <= self.now
            if (self.charged(also) if in_force else self.forecast(cap, also)) > cap.mw:
                return None
        for budget in self.budgets:
            if budget.start >= until:
                wakes = any(self.nodes[n].state in (OFF, SHUTTING) for n in also.cells)
                used = budget.read + self.ahead(budget, also, asked)
                if wakes and self.in_use(budget) and used > budget.mj:
                    return None
            elif not budget.binds or budget.end <= self.now:
                continue
            elif not self.budget_allows(budget, also, asked, backfills):
                return None
        return also

    def budget_allows(
        self, budget: Budget, also: PossibleStart, asked: int, backfills: bool
    ) -> bool:
        """Rules 13, 15 and 16."""
        total = budget.read + self.ahead(budget, also, asked)
        if total > budget.mj:
            return False
        reserved = self.spare.reserved[id(budget)] if backfills else 0
        if self.rule not in BUDGET_RULES:
            return total + reserved <= budget.mj
        power = self.power_with(budget, also)
        above = budget.above(power, self.now, also.ready + asked)
        if self.rule == "energy-bud":
            return above <= budget.saved - reserved
        if self.rule == "powercap" or backfills:
            seconds = max(self.spare.shadow - max(self.now, budget.start), 0) if backfills else 0
            return power <= budget.mean and (budget.mean - power) * seconds >= reserved
        return power <= budget.mean or above <= budget.saved

    def leaves_room(self, job: LimitedJob, level: int, asked: int, chosen: Any) -> Any:
        """Rules 18 and 21: the nodes, maybe others, or None."""
        end = chosen[1] + slowed(job.predicted, job.factors[level])
        if self.backfill == "until-shadow":
            return chosen if end < self.spare.shadow else None
        if end <= self.spare.shadow:
            return chosen
        if job.width > self.spare.nodes and (self.hold is not None or not self.contiguous):
            return None
        if self.contiguous:
            chosen = self.choose(job, asked, self.spare.row)
        more = self.work(job, level) - job.width * self.m.rest
        return chosen if all(more <= spare for spare in self.spare.watts) else None

    # The pass

    def schedule(self, now: int) -> None:
        """Make a pass."""
        self.keep_caps(now)
        self.look(now)
        head = self.start_in_order(now)
        if head is None or self.backfill == "none":
            return
        self.plan(head, now)
        if head.reserved_start == -1 and not self.order_changes():
            head.reserved_start = self.spare.shadow
        for job in self.candidates(now):
            if job is head or self.barred(job):
                continue
            also = self.best(job, backfills=True)
            if also is not None:
                self.start_as(also, backfills=True)

    def start_in_order(self, now: int, most: int | None = None) -> Any:
        """Start heads; return the first that may not start."""
        for job in self.primary_order(now):
            if self.barred(job):
                continue
            also = self.best(job, backfills=False)
            if also is None:
                return job
            self.start_as(also, backfills=False)
        return None

    def start_as(self, also: PossibleStart, backfills: bool) -> None:
        """Start a job of the queue, on nodes that may have to be switched on before."""
        job, level, cells, ready = also
        asked = slowed(job.requested, job.factors[level])
        predicted = slowed(job.predicted, job.factors[level])
        job.until, job.asked = ready + asked, asked
        for budget in self.budgets:
            if backfills and self.rule == "energy-bud" and budget.binds and budget.end > self.now:
                above = budget.above(self.power_with(budget, also), self.now, job.until)
                self.spare.reserved[id(budget)] += above
        if backfills and ready + predicted > self.spare.shadow:
            more = self.work(job, level) - job.width * self.m.rest
            watts = [spare - more for spare in self.spare.watts]
            self.spare = self.spare._replace(nodes=self.spare.nodes - job.width, watts=watts)
        for n in cells:
            self.nodes[n].job = job
            self.boot(n)
        self.queue.remove(job)
        self.running.append(job)
        job.level, job.cells, job.passed = level, cells, self.now
        job.start = ready
        kills = self.correction == "kill"
        length = min(job.actual, job.predicted) if kills else job.actual
        job.real = slowed(length, job.factors[level])
        job.end = ready + job.real
        job.prediction = predicted
        job.began = ready == self.now
        job.backfilled = backfills
        job.order = self.started
        self.started += 1

    def corrected(self, job: Any, now: int) -> int:
        """Return the prediction by the pool's rule, with the times of a job at its level."""
        given = job.predicted, job.requested
        job.predicted = slowed(job.predicted, job.factors[job.level])
        job.requested = job.asked
        try:
            return super().corrected(job, now)
        finally:
            job.predicted, job.requested = given
