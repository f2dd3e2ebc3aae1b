"""What the environments must do, as slowly and obviously as it can be said.

Machines are those of `hpcgym.reference`: pools, nodes, and, without limits, those where jobs have
nodes of their own. All their rules hold but for who decides:

- Selection, "revised": a pass asks for a job as long as some queued job fits. One that fits starts;
  for one that does not, the others are backfilled around its reservation, and it is forgotten.
- Selection, "kept": a pass asks as long as jobs are queued and none is selected. A selected job
  that does not fit stays selected until it starts; each pass backfills the others around it.
- Picking: a pass starts jobs by a policy. While some may start before the head, as EASY says, it
  asks which of them does, or none.
- Inspecting: a pass starts jobs by a policy, and asks about each before. One that is put off is
  passed over in this pass; there is another after the delay, and so often it may be put off.
- Ordering: each pass at which some queued job fits asks for scores, once. The highest goes first,
  ties and jobs outside the window (after all others) by submission.
- With a threshold [s] jobs that have waited longer come before all others, by submission; nobody
  is asked for them.
- Weights: as ordering, by the weights of the last decision. One is made before each pass at which
  some queued job fits; or at the start of each stretch of seconds in which jobs wait or come; or
  each time that the next submission would be one too many for the last; or once.
- The window is the queued jobs submitted first. A job *fits* if it would start as the first of the
  queue.
- An extract begins with a pass at its beginning, and with the predictions of that time.
- A reward is what jobs have cost more at a decision, or at the end, than at the decision before.
  What they had cost before the first decision is in no reward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.limits import LimitedSimulation
from hpcgym.reference.nodes import NodeSimulation
from hpcgym.reference.orders import weighted
from hpcgym.reference.own_nodes import ON
from hpcgym.reference.pool import PoolSimulation

#: When jobs cost something.
PAID = ("start", "end", "waiting")


def cost(jobs: Iterable[tuple[int, int, int]], now: int, paid: str) -> tuple[float, float]:
    """Return what jobs have cost by now: their bounded slowdowns and waits [s], summed.

    Of those that have started (``paid`` "start") or ended ("end"); or of all, as if those that wait
    started now ("waiting").

    Parameters
    ----------
    jobs : of each that has been submitted, when that was, when it started (-1: it waits), and how
        long it runs [s].
    """
    bslds = waits = 0.0
    for submit, start, run in jobs:
        if paid == "waiting" or (start >= 0 and (paid == "start" or start + run <= now)):
            wait = (now if start < 0 else start) - submit
            bslds += max((wait + run) / max(run, 10), 1.0)
            waits += wait
    return bslds, waits


class Asking(PoolSimulation):
    """Notes at each decision in `seen` what of the machine is free, and how much of that is on.

    ``at_first``: by when it is paid, what jobs had cost at the first decision.
    """

    begun = 0  # [s] who started before has run at the beginning of an extract

    def __init__(self, *given: Any, **rules: Any) -> None:
        super().__init__(*given, **rules)
        self.seen: list[tuple[int, int]] = []
        self.at_first: dict[str, tuple[float, float]] = {}

    def note(self, now: int) -> None:
        if not self.seen:
            here = [job for job in self.jobs if job.start >= self.begun or job in self.queue]
            jobs_here = [(job.submit, job.start, job.actual) for job in here]
            self.at_first = {paid: cost(jobs_here, now, paid) for paid in PAID}
        self.seen.append(self.free_and_on(now))

    def some_fit(self, now: int) -> bool:
        return any(self.fits(job, now) for job in self.queue)

    def starved_first(self, order: list[Any], now: int) -> list[Any]:
        if self.threshold is None:
            return order
        starved = [job for job in self.queue if now - job.submit > self.threshold]
        return starved + [job for job in order if job not in starved]

    def before(self, now: int) -> None:
        """See that time is about to go on to the events of ``now``."""

    def next_time(self) -> int:
        now = super().next_time()
        self.before(now)
        return now

    # what machines do differently

    def start_first(self, job: Any, now: int) -> None:
        self.start(job, now, backfilled=False)

    def free_and_on(self, now: int) -> tuple[int, int]:
        raise NotImplementedError


# --- Who decides --------------------------------------------------------------------------------


class Selecting(Asking):
    """``choose(now, rows)``: the place of a job among the visible ones, given by their rows."""

    def __init__(
        self,
        choose: Callable[[int, list[int]], int],
        kept: bool,
        window: int,
        *given: Any,
        **r: Any,
    ) -> None:
        super().__init__(*given, **r)
        self.choose_job, self.keeps, self.window = choose, kept, window
        self.selected: Any = None

    def start_in_order(self, now: int) -> Any:
        while self.queue:
            if not self.keeps and not self.some_fit(now):
                return None
            starved = self.starved_first([], now)
            if self.selected not in self.queue:
                self.selected = None
            if not starved and self.selected is None:
                visible = self.queue[: self.window]
                self.note(now)
                self.selected = visible[self.choose_job(now, [job.number for job in visible])]
            head = starved[0] if starved else self.selected
            if not self.fits(head, now):
                if not self.keeps:
                    self.selected = None
                return head
            self.start_first(head, now)
            if head is self.selected:
                self.selected = None
        return None


class Ordering(Asking):
    """``choose(now, rows)``: a score for each of the visible jobs, given by their rows."""

    def __init__(
        self, choose: Callable[[int, list[int]], Any], window: int, *given: Any, **rules: Any
    ) -> None:
        super().__init__(*given, **rules)
        self.choose_scores, self.window = choose, window

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit(now):
            return []
        visible, beyond = self.queue[: self.window], self.queue[self.window :]
        self.note(now)
        chosen = self.choose_scores(now, [job.number for job in visible])
        scores = {job.number: score for job, score in zip(visible, chosen, strict=True)}
        return self.starved_first(sorted(visible, key=lambda j: -scores[j.number]) + beyond, now)


class Weighing(Asking):
    """``choose(k)``: the k-th decision, six weights whose sizes add up to 1, or are all 0."""

    def __init__(
        self, choose: Callable[[int], Any], interval: Any, *given: Any, **rules: Any
    ) -> None:
        super().__init__(*given, **rules)
        self.choose_weights, self.interval = choose, interval
        self.first = self.jobs[0].submit
        self.stretch = -1  # the last stretch of seconds that a decision was looked at for
        self.last = -1  # the last second that a decision made by submissions holds for
        self.weights: Any = None

    def decide(self, now: int) -> None:
        self.weights = self.choose_weights(len(self.seen))
        self.note(now)

    def before(self, now: int) -> None:
        if all(job.start >= 0 for job in self.jobs):
            return
        if self.interval == "episode" and self.weights is None:
            self.decide(now)
        elif isinstance(self.interval, int) and now > self.last:
            self.decide(now)
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
                    self.decide(now)

    def primary_order(self, now: int) -> list[Any]:
        if not self.some_fit(now):
            return []
        if self.interval == "pass":
            self.decide(now)
        order = list(self.queue)
        if any(self.weights):
            score = self.by_policy_time(self.score_by(self.weights))
            order = sorted(order, key=lambda job: -score(job, now))
        return self.starved_first(order, now)

    def score_by(self, weights: Any) -> Any:
        return weighted(weights)


class Picking(Asking):
    """``choose(now, rows)``: the place of who starts; the first, the head, stands for none."""

    def __init__(
        self, choose: Callable[[int, list[int]], int], window: int, *given: Any, **rules: Any
    ) -> None:
        super().__init__(*given, **rules)
        self.choose_job, self.window = choose, window

    breaks_s = 0  # up to which wait of the head any job that fits may start

    def in_time(self, job: Any, head: Any, now: int, shadow: int) -> bool:
        if now - head.submit < self.breaks_s:
            return True
        return bool(super().in_time(job, head, now, shadow))

    def backfill_around(self, head: Any, now: int) -> None:
        shadow, extra = self.shadow(head, now)
        self.promise_head(head, shadow)
        if self.backfill == "until-shadow":
            extra = 0
        while True:
            legal = [
                job
                for job in self.queue
                if job is not head
                and not self.barred(job)
                and self.fits(job, now)
                and (self.in_time(job, head, now, shadow) or job.processors <= extra)
            ]
            if not legal:
                return
            visible = [head, *legal][: self.window]
            self.note(now)
            job = visible[self.choose_job(now, [job.number for job in visible])]
            if job is head:
                return
            if not self.in_time(job, head, now, shadow):
                extra -= job.processors
            self.start(job, now, backfilled=True)


class Inspecting(Asking):
    """``choose(now, rows)``: 1 to put off the first of these, which is about to start."""

    def __init__(
        self,
        choose: Callable[[int, list[int]], int],
        window: int,
        bounds: tuple[int, int],
        *given: Any,
        **rules: Any,
    ) -> None:
        super().__init__(*given, **rules)
        self.is_put_off, self.window, (self.most, self.delay) = choose, window, bounds
        self.times: dict[int, int] = {}  # by number, how often a job has been put off
        self.left_out: list[Any] = []  # those of this pass
        self.again: list[int] = []  # when there is another in any case

    def reopenings(self) -> list[int]:
        return [*super().reopenings(), *self.again]

    def schedule(self, now: int) -> None:
        self.left_out, self.again = [], []
        super().schedule(now)

    def start_unless_put_off(self, job: Any, now: int, backfilled: bool) -> bool:
        times = self.times.get(job.number, 0)
        if times < self.most:
            others = [other.number for other in self.queue if other is not job]
            self.note(now)
            if self.is_put_off(now, [job.number, *others][: self.window]):
                self.times[job.number] = times + 1
                self.left_out.append(job)
                self.again = [now + self.delay]
                return False
        self.start(job, now, backfilled=backfilled)
        return True

    def start_in_order(self, now: int) -> Any:
        self.look_who_could_start(now)
        for job in self.primary_order(now):
            if self.barred(job):
                continue
            if not self.fits(job, now):
                return job
            self.start_unless_put_off(job, now, backfilled=False)
            if job in self.left_out:
                self.look_who_could_start(now)
            else:  # it could
                self.promises = True
        return None

    def barred(self, job: Any) -> bool:
        return job in self.left_out or bool(super().barred(job))

    def backfill_around(self, head: Any, now: int) -> None:
        shadow, extra = self.shadow(head, now)
        self.promise_head(head, shadow)
        if self.backfill == "until-shadow":
            extra = 0
        for job in self.candidates(now):
            passed = job is head or job in self.left_out or self.barred(job)
            if passed or not self.fits(job, now):
                continue
            ends = self.in_time(job, head, now, shadow)
            if (ends or job.processors <= extra) and self.start_unless_put_off(job, now, True):
                extra -= 0 if ends else job.processors


# --- On which machine ---------------------------------------------------------------------------


class OnPool(Asking):
    """What is free are processors, all of which are on."""

    @classmethod
    def of(cls, workload: Any, *deciding: Any, **rules: Any) -> Any:
        """Return one that has simulated a workload; ``deciding``: what its decider takes."""
        usual = {"backfill": "easy", "backfill_order": "fcfs"}
        made = cls(*deciding, jobs_of(workload), workload.processors, **usual | rules)
        if workload.initial is not None:
            made.begin_as(workload.initial)
        made.run()
        return made

    def begin_as(self, initial: Any) -> None:
        """Begin as an extract does, but for what estimates have learned but averages."""
        now = self.begun = initial.begin
        self.extracted = True
        ended = jobs_of(initial.past)
        for job in ended:
            job.start = job.submit + job.recorded_wait
            job.end = job.start + job.actual
        for job in sorted(ended, key=lambda job: (job.end, job.start)):
            self.terminated.setdefault(job.user, []).append(job)
        before = [job for job in self.jobs if job.submit < now]
        self.coming = [job for job in self.coming if job.submit >= now]
        for job in before:
            if initial.start[job.number] >= 0:
                job.start = job.since = int(initial.start[job.number])
                job.end = job.start + job.actual
        self.queue = [job for job in before if job.start < 0]
        self.running = sorted((j for j in before if j.start >= 0), key=lambda job: job.start)
        for job in before:
            self.predict(job, now)
        for time in range(min((job.start for job in self.running), default=now), now + 1):
            self.expire(time)
        if not before:
            return
        self.first = now
        if self.passes == "per-event":  # its pass comes before all else that happens now
            self.before(now)
            self.find_state(now)
            self.make_pass(now)
        else:
            self.due = now

    def free_and_on(self, now: int) -> tuple[int, int]:
        free = self.processors - sum(job.processors for job in self.running)
        return free, free


class OnNodes(Asking, NodeSimulation):
    """What is free are cores, all of which are on."""

    def free_and_on(self, now: int) -> tuple[int, int]:
        cores = sum(free[0] for free in self.free_nodes(now))
        return cores, cores


class OnOwnNodes(Asking, LimitedSimulation):
    """What is free are nodes."""

    def fits(self, job: Any, now: int) -> bool:
        return self.best(job, backfills=False) is not None

    def start_first(self, job: Any, now: int) -> None:
        self.start_as(self.best(job, backfills=False), backfills=False)

    def free_and_on(self, now: int) -> tuple[int, int]:
        free = [node for node in self.nodes if node.job is None]
        return len(free), sum(node.state == ON for node in free)


def agent_on(machine: type[Asking], who: type[Asking]) -> Any:
    """Return the slow environment of who decides, on a kind of machine."""
    return type(f"{who.__name__}{machine.__name__}", (who, machine), {})
