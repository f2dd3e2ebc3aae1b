"""The usage of users, and the order of jobs by it.

Glesser 2016, section 6.2.2: usage is counted when a job terminates, in processor seconds or joules,
and halves in each half-life from then on (equation 6.2, with the shortest possible periods). Users
are below accounts, accounts below others, the machine above all.

- Share S: product, along the path up, of the parts of the shares below one account (equation 6.1).
- Usage of an account: the sum of those below it. Its effective usage E is E of the account above,
  times its part of that one's shares, and its own usage times the rest; at the top its own usage.
- U: E over all that there was to use, which halves likewise (equation 6.3).
- Priority F = 2^(-U / S / damping) (equation 6.4).

Or, in a tree (https://slurm.schedmd.com/fair_tree.html), F is a place: all users are put into a
row, the first of n has n / n, the last 1 / n.

- Those directly below one account are sorted by part of the shares / part of the usage, the
  greatest first; without usage it is infinite. At equal ratios users come before accounts, and all
  those accounts count as one, whose members are sorted together.
- An account is replaced in the row by those below it.
- A user has the same place as the one before her if they tie. If an account ties, the first below
  it ties likewise.

With a period, as in Slurm, usage counts at its multiples only, for all orders alike, at the end of
that second: who comes in it sees that of before. A job that runs after that second is charged there
what it has run since the multiple before, or since its start: s seconds as s f^s, f = 1 - 0.693 /
half-life, in which usage is multiplied by f in each second. A job that has ended by then is charged
its last seconds likewise, but at the multiple before. A suspended job is charged as if it ran. A
pass follows in the second after each multiple at which jobs wait; under slurm, as rule 31 says of
time alone.

Numbers have 50 digits, and are then rounded to 12, so that exact ties stay ties.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any

DIGITS = Context(prec=50)
LN2 = DIGITS.ln(Decimal(2))


@cache
def halves(seconds: int, half_life: int | None) -> Decimal:
    """Return what is left of 1 after so many seconds."""
    return Decimal(1) if half_life is None else Decimal(2) ** (Decimal(-seconds) / half_life)


class AccountTree:
    """The tree of accounts, with their shares and usage."""

    def __init__(
        self,
        users: set[int],
        shares: Mapping[Any, float] | None = None,
        above: Mapping[Any, str] | None = None,
        half_life: int | None = 604_800,
        damping: float = 1.0,
        in_a_tree: bool = False,
        period: int = 0,
    ):
        self.shares, self.above = dict(shares or {}), dict(above or {})
        self.all = set(users) | set(self.shares) | set(self.above) | set(self.above.values())
        self.users = [account for account in self.all if not isinstance(account, str)]
        self.half_life, self.damping = half_life, Decimal(damping)
        self.in_a_tree, self.period = in_a_tree, period

    def given(self, account: Any) -> Decimal:
        """Return the shares that an account was given."""
        return Decimal(self.shares.get(account, 1.0))

    def part(self, account: Any) -> Decimal:
        """Return its part of the shares of those that have the same account above them."""
        above = self.above.get(account)
        siblings = [other for other in self.all if self.above.get(other) == above]
        return self.given(account) / sum(self.given(other) for other in siblings)

    def share(self, account: Any) -> Decimal:
        """Equation 6.1."""
        above = self.above.get(account)
        return self.part(account) * (1 if above is None else self.share(above))

    def below(self, account: Any, user: int) -> bool:
        """Return whether a user is the account, or stands below it."""
        while user != account and user is not None:
            user = self.above.get(user)  # type: ignore[assignment]
        return bool(user == account)

    def left(self, seconds: int) -> Decimal:
        """Return what is left of 1 after so many seconds."""
        if self.period and self.half_life is not None:
            return Decimal(1 - 0.693 / self.half_life) ** seconds
        return halves(seconds, self.half_life)

    def usage(self, account: Any, charges: list[tuple[int, int, Decimal]], now: int) -> Decimal:
        """Equation 6.2: charges are (time, user, amount)."""
        mine = [charge for charge in charges if self.below(account, charge[1])]
        left = [amount * self.left(now - time) for time, _, amount in mine]
        return sum(left, Decimal(0))

    def effective(self, account: Any, charges: list[Any], now: int) -> Decimal:
        """Return the effective usage E of an account."""
        own, above = self.usage(account, charges, now), self.above.get(account)
        if above is None:
            return own
        part = self.part(account)
        return own * (1 - part) + self.effective(above, charges, now) * part

    def served(self, account: Any, charges: list[Any], now: int) -> float:
        """Return shares for usage, both as parts of what those with the same account above have."""
        above = self.above.get(account)
        siblings = [other for other in self.all if self.above.get(other) == above]
        mine, all_of_them = (
            sum((self.usage(member, charges, now) for member in those), Decimal(0))
            for those in ([account], siblings)
        )
        return float(f"{self.part(account) * all_of_them / mine:.11e}") if mine else math.inf

    def row(self, accounts: set[Any], charges: list[Any], now: int) -> list[tuple[int, bool]]:
        """Return users below accounts in order, each with whether she ties with the one before.

        The machine is None.
        """
        members = [other for other in self.all if self.above.get(other) in accounts]
        by_service: dict[float, list[Any]] = {}
        for member in members:
            by_service.setdefault(self.served(member, charges, now), []).append(member)
        ranked: list[tuple[int, bool]] = []
        for _, equal in sorted(by_service.items(), reverse=True):
            users = [member for member in equal if not isinstance(member, str)]
            ranked += [(user, user != users[0]) for user in users]
            below = self.row({member for member in equal if isinstance(member, str)}, charges, now)
            if users and below:
                below[0] = below[0][0], True
            ranked += below
        return ranked

    def places(self, charges: list[Any], now: int) -> dict[int, Decimal]:
        """Return the place of each user."""
        row, places, place = self.row({None}, charges, now), {}, Decimal(0)
        for before, (user, ties) in enumerate(row):
            place = place if ties else Decimal(len(row) - before) / len(row)
            places[user] = place
        return places

    def available(self, capacity: Decimal, seconds: int) -> Decimal:
        """Return the denominator of equation 6.3, of a machine that has existed for so long."""
        if self.half_life is None:
            return capacity * seconds
        return capacity * self.half_life / LN2 * (1 - halves(seconds, self.half_life))

    def priority(self, ratio: Decimal, capacity: Decimal, seconds: int) -> Decimal:
        """Equation 6.4; ``ratio`` is effective usage over share."""
        if ratio == 0:
            return Decimal(1)
        return Decimal(2) ** -(ratio / self.available(capacity, seconds) / self.damping)


class ByUsage:
    """An order of the queue by usage, as the oracle takes it.

    ``kind`` is "cpu", "energy", "both" or two weights of the priorities, beside ``rest``, a score
    of the oracle. ``watts`` are of each processor of each job, ``busy`` of the machine's, and
    ``drawn`` tells which part of its watts a job has drawn; ``counts``, whether a job that has
    ended counts yet. ``processors`` are the machine's, where they are not the simulation's own.
    ``charged`` is what each job is charged for a second, by its number, in place of processors: of
    what is billed a sum with its fraction, not what limits count.
    """

    def __init__(
        self,
        kind: Any,
        accounts: AccountTree,
        watts: list[float],
        busy: float,
        rest: Any = lambda job, now: 0.0,
        drawn: Any = lambda job: 1,
        processors: int | None = None,
        charged: Sequence[float] | None = None,
    ):
        self.charged = charged
        self.kind, self.accounts, self.watts, self.busy, self.rest = (
            kind, accounts, watts, busy, rest,
        )  # fmt: skip
        self.drawn, self.processors = drawn, processors
        self.counts: Any = lambda job, now: True

    def doubt(self) -> None:
        """Do nothing. Called when rounding alone decides whether a small number is above 0.

        Comparisons with another program leave such cases out.
        """

    def begin(self, simulation: Any) -> None:
        """Look at what terminates in a simulation."""
        self.simulation = simulation
        self.known: dict[Any, Decimal] = {}
        self.rows: dict[Any, dict[int, Decimal]] = {}

    def ended(self, now: int) -> list[Any]:
        """Return the jobs that have ended and count."""
        jobs = [job for jobs in self.simulation.terminated.values() for job in jobs]
        return [job for job in jobs if self.counts(job, now)]

    def stopped(self, now: int) -> list[tuple[int, int, int, int]]:
        """Return runs that other jobs ended in passes before, or nodes that failed, up to now."""
        failed = getattr(self.simulation, "failed", []) + getattr(self.simulation, "cut", [])
        preemption = getattr(self.simulation, "preemption", None)  # some simulators have none
        if preemption is None or preemption[2] == "suspend":
            return list(failed)
        runs = self.simulation.lost + self.simulation.cancelled
        return [run for run in runs if run[2] < now or run in failed]

    @property
    def period(self) -> int:
        """At multiples of which usage counts [s]; 0: at any time."""
        return self.accounts.period

    def seen(self, now: int) -> int:
        """Return up to when usage counts: a multiple of the period once its second is over."""
        return (-(-now // self.period) - 1) * self.period if self.period else now

    def runs(self) -> list[tuple[Any, int, float]]:
        """Return all runs so far, with their begin, and end: none of those that go on."""
        made, jobs = self.simulation, self.simulation.jobs
        stopped = list(getattr(made, "failed", []))
        preemption = getattr(made, "preemption", None)
        if preemption is not None and preemption[2] != "suspend":
            stopped = made.lost + made.cancelled
        ended = [job for jobs in made.terminated.values() for job in jobs]
        held = made.running + getattr(made, "suspended", [])
        held = [job for job in held if job.number < len(jobs)]  # none that stands for a failure
        return [
            *((jobs[n], begin, end) for n, begin, end, *_ in stopped),
            *((job, job.start, job.end) for job in ended),
            *((job, job.start, math.inf) for job in held),
        ]

    def charges_by_period(self, what: str, now: int) -> list[tuple[int, int, Decimal]]:
        """Return when whom what was charged, at multiples of the period up to one of them."""
        period, charges = self.period, []
        for job, begin, end in self.runs():
            weight = self.weight(what, job) * (1 if what == "cpu" else self.drawn(job))
            while begin < min(end, now):
                until = (begin // period + 1) * period
                seconds = int(min(end, until)) - begin
                amount = seconds * self.accounts.left(seconds) * weight
                charges.append((until if end > until else until - period, job.user, amount))
                begin += seconds
        return charges

    def charges(self, what: str, now: int) -> list[tuple[int, int, Decimal]]:
        """Return when whom what was charged, runs that others ended too."""
        if self.period:
            return self.charges_by_period(what, now)
        jobs = self.simulation.jobs
        stopped = [
            (end, jobs[n].user, Decimal(end - begin) * self.weight(what, jobs[n]))
            for n, begin, end, _ in self.stopped(now)
        ]
        return stopped + [
            (
                job.end,
                job.user,
                Decimal(job.actual)
                * self.weight(what, job)
                * (1 if what == "cpu" else self.drawn(job)),
            )
            for job in self.ended(now)
        ]

    def first_of(self, job: Any) -> int:
        """Return when the first job of the log was submitted, wherever that one comes now."""
        return int(getattr(job, "first_submit", self.simulation.jobs[0].submit))

    def weight(self, what: str, job: Any) -> Decimal:
        """Return what a second of a job counts."""
        if what != "cpu":
            return Decimal(job.processors) * Decimal(self.watts[job.number])
        return Decimal(job.processors if self.charged is None else self.charged[job.number])

    def known_at(self, now: int) -> tuple[int, ...]:
        """Return what usage depends on."""
        if self.period:
            return (self.seen(now),)
        return now, len(self.ended(now)), len(self.stopped(now))

    def ratio(self, what: str, user: int, now: int) -> Decimal:
        """Return effective usage over share."""
        key = (what, user, *self.known_at(now))
        now = self.seen(now)
        if key not in self.known:
            charges = self.charges(what, now)
            used = self.accounts.effective(user, charges, now)
            self.known[key] = used / self.accounts.share(user)
        return self.known[key]

    def place(self, what: str, user: int, now: int) -> Decimal:
        """Return the place of a user in the tree."""
        key = ("place", what, *self.known_at(now))
        now = self.seen(now)
        if key not in self.rows:
            self.rows[key] = self.accounts.places(self.charges(what, now), now)
        return self.rows[key][user]

    def __call__(self, job: Any, now: int) -> float:
        """Return the score of a job: the highest is first."""
        with localcontext(DIGITS):
            return self.score(job, now)

    def score(self, job: Any, now: int) -> float:
        """Return it, with 50 digits."""
        if self.accounts.in_a_tree:
            both = {"cpu": (1, 0), "energy": (0, 1)}.get(self.kind, self.kind)
            value = Decimal(self.rest(job, now))
            for what, weight in zip(("cpu", "energy"), both, strict=True):
                value += Decimal(weight) * self.place(what, job.user, now) if weight else 0
        elif self.kind == "both":
            value = Decimal(0)
            for what in ("cpu", "energy"):
                most = max(self.ratio(what, user, now) for user in self.accounts.users)
                value -= self.ratio(what, job.user, now) / most if most else 0
        elif isinstance(self.kind, str):
            value = -self.ratio(self.kind, job.user, now)
        else:
            rest, priorities = Decimal(self.rest(job, now)), Decimal(0)
            processors = Decimal(self.processors or self.simulation.processors)
            capacities = (processors, processors * Decimal(self.busy))
            for what, weight, capacity in zip(
                ("cpu", "energy"), self.kind, capacities, strict=True
            ):
                if weight:
                    ratio = self.ratio(what, job.user, now)
                    key = ("priority", ratio, capacity, self.seen(now))
                    if key not in self.known:
                        seconds = self.seen(now) - self.first_of(job)
                        self.known[key] = self.accounts.priority(ratio, capacity, seconds)
                    priorities += Decimal(weight) * self.known[key]
            if rest and 0 < abs(priorities) < 1e-9:
                self.doubt()
            value = rest + priorities
        return float(f"{value:.11e}")
