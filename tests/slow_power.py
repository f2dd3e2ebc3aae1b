"""A slow, obvious machine whose idle processors are switched off, and schedules that it makes.

Single processors lie in a list, and everything is worked out again at each pass. It shares no code
with hpcgym, of which it takes only the attributes of workloads and clusters.

- Idle processors are a stack: a job takes those that became idle last.
- One that became idle at t begins to be switched off when ``shutdown_after_s`` seconds have passed,
  or when an action says so; in that very second a job still gets it at once. Later it must first be
  off, and is then switched on.
- A job starts when the last of its processors is on; the others wait idle.
- A pass plans as if processors were ready at once. Once a job has its processors, its predicted end
  is counted from its start: in the same pass already where no job before it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

STATES = ("idle", "off", "switching_off", "switching_on")
NEVER = 10**15  # [s] later than anything
SWITCH_OFF = -1  # instead of a job: switch idle processors off


class Stretch(NamedTuple):
    """What one processor does from one time to another [s]."""

    state: str
    since: int
    until: int


@dataclass
class Idle:
    """A processor without a job."""

    since: int
    off_from: int


@dataclass
class SlowPower:
    """What processors without a job do."""

    cluster: Any
    stack: list[Idle] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)

    def put_back(self, processors: int, now: int) -> None:
        after = self.cluster.shutdown_after_s
        off_from = NEVER if after is None else now + after
        self.stack += [Idle(now, off_from) for _ in range(processors)]

    def take(self, processors: int, now: int) -> int:
        """Take processors from the top for a job; return when all of them are on."""
        ready = []
        for _ in range(processors):
            idle = self.stack.pop()
            if now <= idle.off_from:
                self.note("idle", idle.since, now)
                ready.append(now)
                continue
            off = idle.off_from + self.cluster.shutdown_time_s
            boot = max(now, off)
            self.note("idle", idle.since, idle.off_from)
            self.note("switching_off", idle.off_from, off)
            self.note("off", off, boot)
            self.note("switching_on", boot, boot + self.cluster.boot_time_s)
            ready.append(boot + self.cluster.boot_time_s)
        start = max(ready)
        for time in ready:
            self.note("idle", time, start)
        return start

    def on(self, now: int) -> int:
        """How many processors a job would get at once."""
        return sum(now <= idle.off_from for idle in self.stack)

    def can_switch(self, now: int) -> bool:
        return any(now < idle.off_from for idle in self.stack)

    def switch_off(self, now: int) -> None:
        for idle in self.stack:
            idle.off_from = min(idle.off_from, now)

    def note(self, state: str, since: int, until: int) -> None:
        assert until >= since
        self.stretches.append(Stretch(state, since, until))

    def close(self, end: int) -> None:
        """Let the processors that are left do what they do until the end of the schedule."""
        for idle in self.stack:
            off = idle.off_from + self.cluster.shutdown_time_s
            self.note("idle", idle.since, min(idle.off_from, end))
            self.note("switching_off", min(idle.off_from, end), min(off, end))
            self.note("off", min(off, end), end)

    def seconds(self) -> dict[str, int]:
        """Processor seconds by state."""
        total: Counter[str] = Counter(dict.fromkeys(STATES, 0))
        for stretch in self.stretches:
            total[stretch.state] += stretch.until - stretch.since
        return dict(total)


@dataclass
class Slow:
    """A schedule, and what was known when a job was asked for."""

    starts: list[int]
    power: SlowPower
    busy: list[Stretch] = field(default_factory=list)  # one for each processor of each job
    on: list[int] = field(default_factory=list)  # at each question: free and on
    can_switch: list[bool] = field(default_factory=list)


Follows = dict[int, tuple[list[int], int, int]]
Ask = Callable[[int, list[int], bool], int]  # (time, queue, can switch) -> a job, or SWITCH_OFF


def first(now: int, queue: list[int], can_switch: bool) -> int:
    return queue[0]


def schedule_slowly(
    workload: Any,
    cluster: Any,
    backfill: str = "none",
    sjbf: bool = False,
    ask: Ask = first,
    follows: Follows | None = None,
) -> Slow:
    """Schedule with requested times as predictions: all ends, all submissions, then one pass.

    Parameters
    ----------
    backfill : "none", "easy" or "depth:K", with the shortest request first if ``sjbf``.
    ask : which job is the next one, asked for as long as some queued job fits.
    follows : of jobs that follow others: those, the time to think [s], and an earliest time.
    """
    submit, size = workload.submit_time.tolist(), workload.requested_processors.tolist()
    asked = workload.requested_time.tolist()
    run = [min(pair) for pair in zip(workload.run_time.tolist(), asked, strict=True)]
    slow = Slow([-1] * len(submit), SlowPower(cluster))
    power, starts = slow.power, slow.starts
    follows, ended = dict(follows or {}), set[int]()
    coming = [job for job in range(len(submit)) if job not in follows]
    power.put_back(cluster.processors, min(submit[job] for job in coming))
    running: list[int] = []
    queue: list[int] = []

    def start(job: int, now: int) -> None:
        queue.remove(job)
        running.append(job)
        starts[job] = power.take(size[job], now)
        slow.busy.extend([Stretch("busy", starts[job], starts[job] + run[job])] * size[job])

    while coming or running:
        ends = [starts[job] + run[job] for job in running]
        now = min(ends + [submit[job] for job in coming])
        for job in [job for job in running if starts[job] + run[job] == now]:
            running.remove(job)
            power.put_back(size[job], now)
            ended.add(job)
        for job in [job for job, (others, *_) in follows.items() if ended.issuperset(others)]:
            _, think, least = follows.pop(job)
            submit[job] = max(now + think, least)
            coming = sorted([*coming, job])
        queue += [job for job in coming if submit[job] == now]
        coming = [job for job in coming if submit[job] > now]
        if backfill.startswith("depth:"):
            most = int(backfill.split(":")[1])
            held = [(now, starts[job] + asked[job], size[job]) for job in running]
            waits: list[int] = []
            for job in list(queue):
                if len(waits) == most:
                    break
                time = earliest(held, cluster.processors, size[job], asked[job], now)
                end = time + asked[job]
                if time > now:
                    waits.append(job)
                else:
                    start(job, now)
                    end = end if waits else starts[job] + asked[job]
                held.append((time, end, size[job]))
            others = [job for job in queue if job not in waits and len(waits) == most]
            for job in sorted(others, key=lambda job: asked[job] if sjbf else 0):
                if earliest(held, cluster.processors, size[job], asked[job], now) == now:
                    start(job, now)
                    held.append((now, now + asked[job], size[job]))
            continue
        head = None
        while head is None and any(size[job] <= len(power.stack) for job in queue):
            slow.on.append(power.on(now))
            slow.can_switch.append(power.can_switch(now))
            job = ask(now, list(queue), slow.can_switch[-1])
            if job == SWITCH_OFF:
                power.switch_off(now)
            elif size[job] <= len(power.stack):
                start(job, now)
            else:
                head = job
        if head is not None and backfill == "easy":
            # the ends of running jobs are known with their delays
            leaving = sorted((starts[job] + asked[job], size[job]) for job in running)
            free, shadow = len(power.stack), now
            for end, width in leaving:
                if free >= size[head] and end > shadow:
                    break
                free, shadow = free + width, end
            extra = free - size[head]
            others = [job for job in queue if job != head]
            for job in sorted(others, key=lambda job: asked[job] if sjbf else 0):
                # but a job is planned as if it could start at once
                in_time = now + asked[job] <= shadow
                if size[job] <= len(power.stack) and (in_time or size[job] <= extra):
                    extra -= 0 if in_time else size[job]
                    start(job, now)
    assert not queue
    assert len(power.stack) == cluster.processors
    assert not follows
    power.close(max(stretch.until for stretch in slow.busy))
    return slow


def earliest(
    held: list[tuple[int, int, int]], processors: int, size: int, seconds: int, now: int
) -> int:
    """When so many processors are first free for so long; held: from, to, and how many."""

    def free(time: int) -> int:
        return processors - sum(width for begin, end, width in held if begin <= time < end)

    for time in sorted({now, *(end for _, end, _ in held if end > now)}):
        moments = [time, *(begin for begin, _, _ in held if time < begin < time + seconds)]
        if min(map(free, moments)) >= size:
            return time
    raise AssertionError("the job is larger than the machine")


def watts_of(cluster: Any) -> dict[str, float]:
    """The powers of a processor by state, with the defaults as they are documented."""
    shutdown, boot = cluster.shutdown_power_w, cluster.boot_power_w
    return {
        "busy": cluster.busy_power_w,
        "idle": cluster.idle_power_w,
        "off": cluster.off_power_w,
        "switching_off": cluster.idle_power_w if shutdown is None else shutdown,
        "switching_on": cluster.busy_power_w if boot is None else boot,
    }


def integral_of_power(slow: Slow, cluster: Any) -> float:
    """Return the integral of the power of the whole machine, from change to change [J]."""
    watts = watts_of(cluster)
    changes: dict[int, float] = {}
    for stretch in slow.power.stretches + slow.busy:
        changes[stretch.since] = changes.get(stretch.since, 0) + watts[stretch.state]
        changes[stretch.until] = changes.get(stretch.until, 0) - watts[stretch.state]
    joules, power, before = 0.0, 0.0, min(changes)
    for time in sorted(changes):
        joules += power * (time - before)
        power, before = power + changes[time], time
    assert abs(power) < 1e-6
    return joules
