"""Which jobs may start before others: ways to backfill, and the rule that holds long jobs back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.elementary import log
from hpcgym.errors import HpcgymError, check_choice, is_number, number_in, unknown
from hpcgym.units import count_of, in_seconds

# --- The rule that holds long jobs back -----------------------------------------------------------

#: The run times by which a job is held back -> what they are.
HOLD_BY = {
    "requested": "the requested time",
    "policy_estimate": "the run time that the policy looks at",
    "both": "the geometric mean of these two",
}
BY_REQUESTED, BY_PREDICTED, BY_BOTH = range(3)
_CODES = dict(zip(HOLD_BY, (BY_REQUESTED, BY_PREDICTED, BY_BOTH), strict=True))
#: The numbers of the rule as the engine takes them: processors that the longest jobs hold back,
#: share P; from [s]; the logarithm of factor; by which run times.
MOST, FROM, LOG_FACTOR, BY = range(4)
_MOST_S = 2**53


@dataclass(frozen=True)
class Hold:
    """Hold jobs back that are probably long: they start only if some processors stay free.

    On a machine of P processors, a job of q starts only if so many are free:
    min(P, q + round(share P z / (1 + wait / erode_s))), where z = ln(x / from_s) / ln(factor), cut
    to 0 ... 1, of a run time x. Halves are rounded to even numbers. docs/semantics.md tells what
    this means for the reservation of the head and for backfilling.

    Attributes
    ----------
    share : the part of the machine that the longest jobs leave free, 0 to 1.
    from_s : run time from which on jobs are held back [s].
    factor : above 1: jobs ``factor`` times as long as ``from_s``, and longer ones, leave the whole
        share free.
    erode_s : whole seconds of waiting after which a job leaves half as much free; ``math.inf``:
        waiting changes nothing.
    by : the run time x, a name of :data:`HOLD_BY`.

    Raises
    ------
    HpcgymError : a value that is not one of these.

    Examples
    --------
    >>> from hpcgym.scheduler.backfilling import Hold
    >>> print(Hold(0.1))
    share=0.1,from_s=3600,factor=64,erode_s=14400,by=requested
    """

    share: float
    from_s: float = 3600.0
    factor: float = 64.0
    erode_s: float = 14400
    by: str = "requested"

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "share", _number("share", self.share, 0, 1))
        settle(
            self, "from_s", _number("from_s", in_seconds(self.from_s, "hold: from_s"), 1, _MOST_S)
        )
        settle(self, "factor", _number("factor", self.factor, 1, 1e12))
        if self.factor == 1:
            raise HpcgymError("hold: factor must be above 1")
        settle(self, "erode_s", _erode(self.erode_s))
        check_choice("hold: by", self.by, HOLD_BY)

    def __str__(self) -> str:
        return ",".join(
            f"{name}={value if isinstance(value, str) else repr(value).removesuffix('.0')}"
            for name, value in self.table().items()
        )

    @classmethod
    def parse(cls, given: Any) -> Hold | None:
        """Return the rule that a value describes; None if it holds no job back.

        The value is a share, ``0.1``; a text, ``share=0.1,from_s=3600``; or a mapping of the
        attributes.

        Raises
        ------
        HpcgymError : an unknown name or a value that is wrong.
        """
        if given is None or isinstance(given, Hold):
            hold = given
        elif isinstance(given, Mapping):
            hold = cls._of(given)
        elif isinstance(given, str):
            hold = cls._of(_pairs(given))
        else:
            hold = cls(given)
        return None if hold is None or hold.share == 0 else hold

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Hold:
        known = [each.name for each in fields(cls)]
        for name in entries:
            if name not in known:
                raise HpcgymError(unknown("entry in hold", name, known))
        if "share" not in entries:
            raise HpcgymError("hold: share is missing, the part of the machine to leave free")
        return cls(**entries)

    def table(self) -> dict[str, Any]:
        """Return the attributes as JSON can hold them; :meth:`parse` takes them back."""
        table = {each.name: getattr(self, each.name) for each in fields(self)}
        return table | ({"erode_s": "inf"} if self.erode_s == math.inf else {})

    def numbers(self, processors: int) -> NDArray[np.float64]:
        """Return the numbers of the rule as the engine takes them, on so many processors."""
        numbers = np.empty(4)
        numbers[MOST] = self.share * processors
        numbers[FROM] = self.from_s
        numbers[LOG_FACTOR] = log(self.factor)
        numbers[BY] = _CODES[self.by]
        return numbers

    def held_back(
        self, requested: NDArray[np.int64], predicted: NDArray[np.int64], processors: int
    ) -> NDArray[np.float64]:
        """Return how many processors each job holds back before it has waited, (n_jobs,).

        Parameters
        ----------
        requested, predicted : (n_jobs,) [s], requested times, and run times that policies look at.
        processors : of the machine.
        """
        most, least, log_factor, by = self.numbers(processors)
        x = requested.astype(np.float64)
        if by == BY_PREDICTED:
            x = predicted.astype(np.float64)
        elif by == BY_BOTH:
            x = np.sqrt(x * predicted)
        held = most * np.minimum(log(x / least) / log_factor, 1.0)
        return np.where(x > least, held, 0.0)

    @property
    def looks_at_estimate(self) -> bool:
        """Whether it looks at the run times that policies look at."""
        return self.by != "requested"


def _pairs(text: str) -> dict[str, Any]:
    """Return the entries of a text; a value without a name is the share."""
    entries: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            name, value = "share", name
        if name in entries:
            raise HpcgymError(f"hold: {name} is there twice in {text!r}")
        timed = name in ("from_s", "erode_s")
        entries[name] = in_seconds(value, f"hold: {name}") if timed else value
        if isinstance(entries[name], str) and name != "by":
            entries[name] = number_in(f"hold: {name}", value)
    return entries


def _erode(value: Any) -> float:
    """Return after how long half as much is held back [s], checked."""
    if value in (math.inf, "inf"):
        return math.inf
    value = in_seconds(value.item() if isinstance(value, np.generic) else value, "hold: erode_s")
    if not is_number(value) or not 1 <= value <= _MOST_S or value != int(value):
        raise HpcgymError(f"hold: erode_s must be whole seconds from 1 on, or inf, not {value!r}")
    return float(value)


def _number(name: str, value: Any, least: float, most: float) -> float:
    """Return a number within bounds, checked."""
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value) or not least <= value <= most:
        raise HpcgymError(f"hold: {name} must be a number from {least} to {most:g}, not {value!r}")
    return float(value)


# --- Backfilling as Slurm's ``sched/backfill`` does it --------------------------------------------

NAME = "slurm"
_MOST = 10**9
#: As ``bf_interval``, in Slurm too: no pass backfills.
NEVER = -1
#: At multiples of what budgets count what jobs have used [s], as Slurm's PriorityCalcPeriod has it.
BUDGET_PERIOD_S = 300
_MAY_BE_ZERO = (
    "bf_job_part_count_reserve", "bf_window_linear", "bf_max_job_user", "calc_period",
)  # fmt: skip


@dataclass(frozen=True)
class SlurmBackfill:
    """Slurm's way to backfill: jobs start in order at events; a pass now and then backfills.

    docs/slurm.md tells which schedules it makes, and what else Slurm does.

    Attributes
    ----------
    bf_interval : [s] from one pass that backfills to the next; -1: no such pass, and jobs of each
        partition start in order, as under ``sched/builtin``.
    bf_max_job_test : how many queued jobs such a pass looks at.
    bf_window : [min] reservations begin within this time from the pass on.
    bf_job_part_count_reserve : how many jobs may have reservations; 0: all that are looked at.
    bf_resolution : [s] reservations begin and end at multiples of it in plans.
    bf_window_linear : [s] running jobs that end within a span count as ending together when a pass
        looks for a job's start, as in Slurm; each span is longer than the last by this. 0: spans
        double.
    bf_max_job_user : how many queued jobs of one user such a pass looks at; 0: any number. It skips
        the others, which do not count in ``bf_max_job_test``.
    default_queue_depth : a pass at an event looks at so many queued jobs and one more, as Slurm
        counts.
    sched_interval : [s] at multiples of it a pass at an event looks at all queued jobs.
    calc_period : [s] at multiples of it the time that jobs have run counts, in limits of what they
        still may use (PriorityCalcPeriod); 0: not before they end, as under PriorityType=
        priority/basic.

    Raises
    ------
    HpcgymError : a value that is no whole number, or out of bounds.

    Examples
    --------
    >>> from hpcgym.scheduler.backfilling import SlurmBackfill
    >>> print(SlurmBackfill(bf_interval=60, bf_max_job_test=1000))
    slurm:bf_interval=60+bf_max_job_test=1000
    >>> print(SlurmBackfill())
    slurm
    """

    bf_interval: int = 30
    bf_max_job_test: int = 500
    bf_window: int = 1440
    bf_job_part_count_reserve: int = 0
    bf_resolution: int = 60
    bf_window_linear: int = 0
    bf_max_job_user: int = 0
    default_queue_depth: int = 100
    sched_interval: int = 60
    calc_period: int = 300

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name in _MAY_BE_ZERO else 1
            off = each.name == "bf_interval"
            if off and is_number(value) and value == NEVER:
                continue
            if not (is_number(value) and least <= value <= _MOST and value == int(value)):
                raise HpcgymError(
                    f"backfill: {each.name} must be a whole number from {least} to {_MOST:,}"
                    f"{', or -1 for no backfill passes' if off else ''}, not {value!r}"
                )
            object.__setattr__(self, each.name, int(value))

    def __str__(self) -> str:
        usual = SlurmBackfill()
        changed = [
            f"{each.name}={getattr(self, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(usual, each.name)
        ]
        return ":".join([NAME, "+".join(changed)]) if changed else NAME

    @property
    def reservations(self) -> int:
        """How many jobs may have reservations."""
        if self.bf_interval == NEVER:
            return 0
        return min(self.bf_job_part_count_reserve or self.bf_max_job_test, self.bf_max_job_test)

    @classmethod
    def parse(cls, text: str) -> SlurmBackfill | None:
        """Return what a text says, such as ``slurm:bf_interval=60``; None if it is another rule.

        Raises
        ------
        HpcgymError : an unknown setting, none behind a colon, one that stands twice, or a value
            that it cannot have.
        """
        name, _, rest = text.partition(":")
        if name != NAME:
            return None
        if "," in rest:
            raise HpcgymError(
                f"backfill {text!r}: settings of slurm are joined by +, not by commas, as in"
                " slurm:bf_interval=60+bf_window=2880"
            )
        if text != NAME and not rest.strip():
            raise HpcgymError(
                f"backfill {text!r}: a setting is missing behind it, such as bf_interval=60; slurm"
                " alone has Slurm's own"
            )
        known = [each.name for each in fields(cls)]
        settings: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in rest.split("+"))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            if key not in known:
                raise HpcgymError(f"backfill {text!r}: {unknown('setting', key, known)}")
            if key in settings:
                raise HpcgymError(f"backfill {text!r}: {key} is there twice")
            number = count_of(value, signed=True)
            settings[key] = value if number is None else number
        return cls(**settings)


# --- Ways to backfill -----------------------------------------------------------------------------

BACKFILL = {
    "none": "no job starts before one that comes earlier in the queue",
    "easy": "jobs may start earlier if they do not delay the first that waits",
    "until-shadow": "as easy, and they must end before the first that waits can start",
    "depth:K": "jobs may start earlier if they do not delay the first K that wait",
    "slurm": "jobs start in order; every 30 s a pass backfills among the first 500",
    "conservative": "jobs may start earlier if they delay none that waits",
    "fill": "any job that fits starts, without reservations; only where jobs share nodes",
    "first-come:K": "the job that came first has a reservation, and the next K may start if they"
    " are over by then as requested, whatever their speeds; only where jobs share nodes",
}
#: How many jobs that wait may have reservations, where the name says it; None: all.
_DEPTHS = {"none": 0, "fill": 0, "easy": 1, "until-shadow": 1, "conservative": None}
#: Names with a number behind a colon -> the least number.
_NUMBERED = {"depth": 0, "first-come": 1}


@dataclass(frozen=True)
class BackfillRule:
    """A way to backfill: how many waiting jobs have reservations, and which others may start.

    Attributes
    ----------
    kind : a name of :data:`BACKFILL`, without a number behind it.
    depth : how many jobs that wait may have reservations; None: all.
    slurm : the settings of Slurm's way; None under others.
    behind : how many jobs behind the one that came first may start before it; 0 under others than
        "first-come:K".

    Examples
    --------
    >>> from hpcgym.scheduler.backfilling import BackfillRule
    >>> print(BackfillRule.parse("depth:4"), BackfillRule.parse(1))
    depth:4 easy
    """

    kind: str
    depth: int | None
    slurm: SlurmBackfill | None = None
    behind: int = 0

    @classmethod
    def parse(cls, given: Any, rule: str = "backfill") -> BackfillRule:
        """Return what a name, a text with settings, a number or one of these says.

        Raises
        ------
        HpcgymError : none of the names, a setting of Slurm that is wrong, or a depth that is no
            whole number of at least 0.
        """
        if isinstance(given, cls):
            return given
        text = str(given).strip()
        slurm = SlurmBackfill.parse(text)
        if slurm is not None:
            return cls(NAME, slurm.reservations, slurm)
        if text in _DEPTHS:
            return cls(text, _DEPTHS[text])
        named = ":" in text
        kind, digits = text.split(":", 1) if named else ("depth", text)  # a number alone is a depth
        number = count_of(digits, signed=True)
        if kind not in _NUMBERED or not (named or digits.removeprefix("-").isdecimal()):
            check_choice(rule, given, BACKFILL)
        least = _NUMBERED[kind]
        if number is None or not least <= number <= _MOST:
            raise HpcgymError(
                f"{rule} {kind}:K needs a whole number from {least} to {_MOST:,}, not {digits!r}"
            )
        if kind == "first-come":
            return cls(kind, 1, behind=number)
        return cls(("none", "easy")[number] if number < 2 else kind, number)

    def __str__(self) -> str:
        if self.slurm is not None:
            return str(self.slurm)
        number = {"depth": self.depth, "first-come": self.behind}.get(self.kind)
        return self.kind if number is None else f"{self.kind}:{number}"

    @property
    def conservative(self) -> bool:
        """Whether each job that waits has a reservation, from its submission on."""
        return self.kind == "conservative"

    @property
    def one(self) -> bool:
        """Whether one job that waits has a reservation, around which others are backfilled."""
        return self.kind in ("easy", "until-shadow")

    @property
    def counts_time_s(self) -> int:
        """At multiples of what the time counts that jobs have run [s]; 0: not before they end."""
        return 1 if self.slurm is None else self.slurm.calc_period

    @property
    def counts_use_s(self) -> int:
        """At multiples of what budgets count what jobs have used [s], beside as they stop."""
        return BUDGET_PERIOD_S if self.slurm is None else self.slurm.calc_period or BUDGET_PERIOD_S

    @property
    def shares(self) -> bool:
        """Whether it is for jobs that share nodes only."""
        return self.kind in ("fill", "first-come")

    @property
    def anew(self) -> bool:
        """Whether several jobs that wait have reservations, made anew at each pass."""
        return self.kind in ("depth", NAME)

    @property
    def several(self) -> bool:
        """Whether several jobs that wait have reservations."""
        return (self.anew and self.depth != 0) or self.conservative

    @property
    def sweeps(self) -> bool:
        """Whether jobs without reservations are tried in an order of their own."""
        return self.one or self.kind == "depth"
