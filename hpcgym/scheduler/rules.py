"""A scheduler: the rules that turn a queue of jobs into a schedule."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np

from hpcgym.errors import HpcgymError, check_choice, is_number
from hpcgym.files import check_is_there, is_there
from hpcgym.own_code import check_takes
from hpcgym.scheduler import restrictions
from hpcgym.scheduler.allocations import check_allocation_name
from hpcgym.scheduler.backfilling import BackfillRule, Hold, SlurmBackfill
from hpcgym.scheduler.capabilities import FEATURES, check
from hpcgym.scheduler.estimates.by_name import (
    CORRECTIONS,
    Estimate,
    average_of,
    check_estimate,
    learns,
    predictor_of,
)
from hpcgym.scheduler.policies.expressions import Expression
from hpcgym.scheduler.policies.fair_share import FAIR_TREE, FairShare
from hpcgym.scheduler.policies.features import runs_looked_at
from hpcgym.scheduler.policies.index import (
    IndexPolicy,
    PolicyLike,
    parse_policy,
    usual_backfill_order,
    weight_text,
)
from hpcgym.units import in_seconds

POWER = {
    "none": "jobs wait until limits allow them; nothing is switched off or slowed down",
    "shut": "caps: nodes are switched off while they hold",
    "dvfs": "caps: jobs run at lower frequencies",
    "mix": "caps: both, with the higher frequencies only",
    "powercap": "budgets: power stays below their mean",
    "reduce-pc": "budgets: what was saved is for jobs in order; others have a lower mean",
    "energy-bud": "budgets: what was saved is for all jobs, less what the first waiting job needs",
}
PARTNERS = {
    "fill": "nodes in use first, beside the jobs with which it is fastest",
    "best": "nodes on which the job is fastest first; on an idle node it runs alone",
    "first": "nodes by number",
    "used": "nodes in use first, each kind by number",
}
DEPENDENCIES = {
    "none": "all jobs are submitted when the log says, also those that follow others",
    "after": "likewise, but not before the job that they follow has ended and think time is over",
    "closed-loop": "jobs that follow others are submitted just then, whatever the log says",
}
PASSES = {
    "per-timestamp": "one scheduling pass after all events of a second",
    "per-event": "a pass after each submission and each end, as the original simulators do",
}


# --- Values that rules can have: each checked, and made one of its own ----------------------------

#: The word for measured times of a dispatcher's calls, and the longest that a call may take [s].
MEASURED = "measured"
MOST_DISPATCH_TIME = 10**9

#: How relaxed backfilling judges jobs if no run times are named, and its greatest limit [s].
USUAL_OF_CANDIDATES = "typical-ratio"
MOST_RELAXED_S = 2**53


def _number_or_none(rule: str, value: Any) -> float | None:
    """Return a finite number, or None, checked."""
    if value is None:
        return None
    if not is_number(value) or not math.isfinite(value):
        raise HpcgymError(f"{rule} must be a finite number or None, not {value!r}")
    return float(value)


def _pair_estimate(value: Any) -> Any:
    """Return the estimate of pair speedups, checked; of an estimate that learns, a copy."""
    if isinstance(value, str):
        check_choice("pair_estimate", value, ("known", "learned"))
        return value
    if hasattr(value, "learn") and hasattr(value, "matrix"):
        return copy.deepcopy(value)
    if hasattr(value, "speedup") and hasattr(value, "codes"):
        return value
    raise HpcgymError(
        "pair_estimate must be 'known', 'learned', a Heatmap or LearnedSpeedups, not "
        f"{type(value).__name__}"
    )


def _threshold(threshold: Any) -> float | None:
    """Return a starvation threshold [s], checked; a text may have units, such as ``"80h"``."""
    if threshold is None:
        return None
    number = in_seconds(
        threshold.item() if isinstance(threshold, np.generic) else threshold, "threshold"
    )
    if not is_number(number) or math.isnan(number) or number < 0:
        hint = ", or a time such as '5h' or '2d'" if isinstance(threshold, str) else ""
        raise HpcgymError(f"threshold must be a number of at least 0 s{hint}, not {threshold!r}")
    return number


def _relax(value: Any) -> float | None:
    """Return up to which wait of the head backfilling is relaxed [s], checked; None: never."""
    value = in_seconds(value.item() if isinstance(value, np.generic) else value, "relax")
    if value is None:
        return None
    if not is_number(value) or not 0 <= value <= MOST_RELAXED_S:
        hint = ", or a time such as '24h'" if isinstance(value, str) else ""
        raise HpcgymError(f"relax must be 0 to 2^53 s{hint}, not {value!r}")
    return value or None


def _fair_share(value: Any, orders: Sequence[IndexPolicy | None]) -> FairShare:
    """Return shares of users, checked beside the orders of a scheduler.

    Raises
    ------
    HpcgymError : they are wrong, or one of the orders adds up usages that only have places.
    """
    shares = FairShare.parse(value)
    if shares.formula == FAIR_TREE and any(order is not None and order.summed for order in orders):
        raise HpcgymError(
            "fs+efs adds up what users have used, and by formula=fair-tree they only have places:"
            " weigh the features fairshare and energy_fairshare"
        )
    return shares


def _dispatch_time(value: Any) -> Any:
    """Return how long a dispatcher takes [s], checked."""
    value = value.item() if isinstance(value, np.generic) else value
    if callable(value):
        check_takes("dispatch_time", value, "the PassView of a pass")
        return value
    if value is None or (isinstance(value, str) and value == MEASURED):
        return value
    value = in_seconds(value, "dispatch_time")
    if not (is_number(value) and 0 <= value <= MOST_DISPATCH_TIME):
        raise HpcgymError(
            f"dispatch_time must be 0 to {MOST_DISPATCH_TIME:,} s, 'measured' or a callable, not"
            f" {value!r}"
        )
    return value


def typed(value: Any) -> Any:
    """Return a rule's value as a user would give it: parsed values become texts again."""
    if isinstance(value, tuple) and all(
        isinstance(part, restrictions.Quota | restrictions.Window) for part in value
    ):
        return "; ".join(map(str, value)) or None
    return str(value) if isinstance(value, restrictions.Preemption) else value


def plain(value: object) -> str | float | None:
    """Return a rule's value as a word or number."""
    value = typed(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, FairShare | Hold):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={weight_text(weight)}" for name, weight in value.items())
    if isinstance(value, tuple):
        return ",".join(map(weight_text, value))
    if isinstance(value, np.ndarray):
        return "given"
    named = getattr(value, "name", None) or getattr(value, "__name__", None)
    named = named or getattr(value, "source", None)  # of a heatmap
    return str(named or f"{type(value).__name__} in Python")


def read_quotas(value: Any) -> tuple[restrictions.Quota, ...]:
    """Return the quotas that a text, a file or Quotas describe; none for None.

    Raises
    ------
    HpcgymError : the value is no quota, or the file holds neither Slurm's QOS nor throttles.

    Examples
    --------
    >>> from hpcgym.scheduler.rules import read_quotas
    >>> [quota.running["jobs"] for quota in read_quotas("user:jobs=10; group=physics:jobs=100")]
    [10, 100]
    """
    if value is None:
        return ()
    if isinstance(value, str | os.PathLike) and is_there(value):
        from hpcgym.scheduler.slurm_qos import quotas_of_slurm

        value = quotas_of_slurm(value)
    elif isinstance(value, restrictions.Quota | str | os.PathLike):
        check_is_there(value)
        if ":" not in str(value):
            raise HpcgymError(
                f"quota {value!r} is neither a file nor a quota such as 'user:jobs=10'"
            )
        value = [restrictions.Quota.parse(part) for part in str(value).split(";") if part.strip()]
    if not isinstance(value, list | tuple) or not all(
        isinstance(quota, restrictions.Quota) for quota in value
    ):
        raise HpcgymError(f"quota must be a text such as 'user:jobs=10', not {value!r}")
    return tuple(value)


def read_preemption(value: Any) -> restrictions.Preemption | None:
    """Return the preemption that a text or a Preemption describes; None for None.

    Raises
    ------
    HpcgymError : invalid rules.
    """
    if value is None:
        return None
    if isinstance(value, str):
        value = restrictions.Preemption.parse(value)
    if not isinstance(value, restrictions.Preemption):
        raise HpcgymError(f"preemption must be a text such as {restrictions.SUCH}, not {value!r}")
    return value


def not_beside_a_dispatcher(rule: str, name: object) -> str:
    """Return the message that a rule does not go with the dispatcher of this name."""
    why = "is asked once at each time" if rule.endswith("passes") else "says itself what starts"
    return (
        f"{rule} does not go with the dispatcher {name}, which {why}: leave {rule} out, or name a"
        " scheduler in place of the dispatcher"
    )


# --- What may be given, for type checkers ---------------------------------------------------------


class RulesOfEnvironments(TypedDict, total=False):
    """Rules that environments have, too, with what may be given for each: see Scheduler."""

    backfill: str | int | SlurmBackfill
    backfill_order: PolicyLike | None
    estimate: Estimate
    policy_estimate: Estimate
    correction: str | None
    passes: str
    allocation: str
    threshold: float | str | None
    hold: Any
    relax: float | str | None
    candidate_estimate: Estimate | None
    fair_share: Any
    quota: Any
    maintenance: Any
    preemption: Any
    dependencies: str


class Rules(RulesOfEnvironments, total=False):
    """All rules, with what may be given for each: the attributes of a Scheduler."""

    policy: PolicyLike
    dispatcher: str | Callable[..., Any] | None
    dispatch_time: float | str | Callable[..., Any] | None
    power: str
    partners: str
    pairs_above: float | None
    pair_estimate: Any


# --- Schedulers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scheduler:
    """The rules of a scheduler; see :data:`hpcgym.baselines.SCHEDULERS` for named ones.

    Attributes
    ----------
    policy : order of the queue: a name of :data:`hpcgym.scheduler.policies.POLICIES`; an expression
        such as ``"20 * wait - requested * processors"``, highest value first, over the names of
        :data:`hpcgym.scheduler.policies.expressions.NAMES`; six weights over the features of
        Legrand et al. 2018; a mapping of feature names to weights; or a function that takes the
        :class:`hpcgym.scheduler.dispatchers.PassView` of each pass at which a queued job fits, and
        returns a score for each queued job, highest first.
    backfill : "none"; "easy": one job has a reservation, and others may start if they end before it
        or leave it enough processors; "until-shadow": they must end before it, as in Slurm;
        "depth:K", or the number K: the first K waiting jobs have reservations, made anew at each
        pass (0 is "none", 1 "easy"); "slurm": periodic passes as in Slurm, with its settings behind
        a colon, or a :class:`hpcgym.scheduler.backfilling.SlurmBackfill`; or "conservative": each
        waiting job has a reservation from its submission on. Where jobs share nodes also "fill":
        any job that finds room starts; "first-come:K": the job that came first has a reservation,
        and of the next K those start that are over by then as requested.
    backfill_order : order in which EASY, and "depth:K", look for jobs to start early: "fcfs",
        "sjbf" (shortest predicted run time) or any policy. None, the default: the usual one of the
        policy, see :func:`hpcgym.scheduler.policies.usual_backfill_order`; :meth:`but` then settles
        it anew.
    estimate : the run times that backfilling reckons with: a name of
        :data:`hpcgym.scheduler.estimates.ESTIMATES`, a
        :class:`hpcgym.scheduler.estimates.Regression`, predicted run times, (n_jobs,) seconds, or a
        regressor of river or anything else with ``predict_one`` and ``learn_one`` (see
        :class:`hpcgym.scheduler.estimates.Predictor`). A copy is kept.
    correction : a name of :data:`hpcgym.scheduler.estimates.CORRECTIONS`: the new prediction for a
        job that outlives its prediction. None, the default: "next-second" with a dispatcher
        (Galleguillos et al. 2020, section 2.2), else "requested"; :meth:`but` then settles it anew.
    threshold : seconds of waiting after which a job goes to the head of the queue, or a text with
        units, such as ``"80h"``; None: never.
    hold : how jobs that are probably long are held back, a
        :class:`hpcgym.scheduler.backfilling.Hold` or what its ``parse`` takes: a share of the
        machine, a text, a mapping. None, as 0: they are not.
    relax : relaxed backfilling, with "easy" and "until-shadow": until the first job that waits has
        waited for so many seconds, or as long as a text says, such as ``"24h"``, jobs may also
        start before it if they end in time by ``candidate_estimate``, whatever ``estimate`` says of
        them. They may break what was promised to it. None, as 0: never.
    candidate_estimate : the run times by which ``relax`` judges jobs, as ``policy_estimate``, which
        it must be if both learn. None, the default, with ``relax``: ``policy_estimate``, or
        "typical-ratio" in place of requested times.
    quota : how much jobs may have at once, ``jobs`` that run, ``processors`` or any resource that
        they ask for: of each user (``"user:gpu=4"``), of a queue
        (``"queue=normal:processors=512"``), of each user in it (``"queue=normal/user:jobs=10"``),
        several between ``;``. A text, a file that ``sacctmgr -P show qos``, ``show assoc`` or
        ``sacct`` printed, a :class:`hpcgym.scheduler.restrictions.Quota` or several; kept as a
        tuple. Jobs that would exceed one are passed over. ``submitted=50`` bounds the jobs that run
        or wait: others are submitted later. None: any number.
    maintenance : windows in which the machine is closed to jobs, known from the beginning
        (``"2026-03-01T08:00/2026-03-02T08:00"``), or a part of it (``"0/60:processors=32"``,
        ``"0/60:nodes=gpu,0-3"``), several between ``;``. A text, a CSV file as of failures, a
        :class:`hpcgym.scheduler.restrictions.Window` or several; kept as a tuple. None: none.
    preemption : which partitions' or queues' jobs may stop those of which others to start at once:
        ``"partition:interactive>batch"``; docs/site-rules.md lists its options. A text or a
        :class:`hpcgym.scheduler.restrictions.Preemption`; kept as the latter. None: no job stops
        another.
    dependencies : what becomes of jobs that follow others, by ``preceding_job``, ``think_time`` and
        ``more_preceding`` of the workload: a name of :data:`DEPENDENCIES`.
    passes : "per-timestamp" or "per-event".
    policy_estimate : the run times that ``policy`` and ``backfill_order`` look at in place of
        requested ones; as ``estimate``. Predictions that learn are cut at the requested time.
    allocation : the order in which nodes are filled, on machines that have nodes: a name of
        :data:`hpcgym.scheduler.allocations.ALLOCATIONS`, "random:SEED" too; or "contiguous": nodes
        of its own, in a row, for each job.
    power : how limits of power and energy are kept, see :func:`hpcgym.simulate`: "none", "shut",
        "dvfs" or "mix" under caps, "powercap", "reduce-pc" or "energy-bud" under budgets.
    fair_share : shares of users, and how fast what they have used is forgotten, where ``policy`` or
        ``backfill_order`` looks at usage: a :class:`hpcgym.scheduler.policies.FairShare`, or what
        its ``parse`` takes: a text, a file, a mapping. None: equal shares, half in a week.
    partners : which nodes a job that shares nodes takes: a name of :data:`PARTNERS`.
    pairs_above : a job starts beside another only if the mean of their two speedups is above this;
        else it takes idle nodes, or waits. None: any two jobs may run side by side.
    pair_estimate : the speedups of pairs that the scheduler assumes before they run: "known", the
        true ones; a :class:`hpcgym.machine.speedups.Heatmap`; a
        :class:`hpcgym.machine.speedups.LearnedSpeedups`, which learns them and of which a copy is
        kept; or "learned", a new one of these.
    dispatcher : chooses at each pass the jobs that start, in place of ``policy`` and ``backfill``:
        a name of :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, or a callable; see
        :func:`hpcgym.simulate`. With it ``backfill`` is "none".
    dispatch_time : how long each call of the dispatcher takes, in whole seconds, rounded up; its
        jobs start so much later, and it is not called meanwhile. Seconds, or a text such as
        ``"5s"``; "measured", the time on the clock that the call takes, which differs from run to
        run; or a callable that takes the :class:`hpcgym.scheduler.dispatchers.PassView`, after the
        dispatcher answered, and returns seconds. None, as 0: no time.
    order : ``policy``, parsed: what simulations go by.
    sweep_order : ``backfill_order``, parsed; None where jobs are backfilled by predicted run
        times, or in the order of the queue.
    reserve : ``backfill``, parsed.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    policy: PolicyLike = "fcfs"
    backfill: str = "easy"  # numbers and settings are kept as their names
    backfill_order: PolicyLike = None  # type: ignore[assignment]  # None: the policy's usual one
    estimate: Estimate = "requested"
    correction: str = None  # type: ignore[assignment]  # None: the usual one
    threshold: float | None = None
    hold: Any = None  # as a Hold or None
    relax: float | None = None
    candidate_estimate: Estimate | None = None  # None: the usual one, or without ``relax``
    quota: Any = None  # kept as a tuple of Quota
    maintenance: Any = None  # as a tuple of Window
    preemption: Any = None  # as a Preemption or None
    dependencies: str = "none"
    passes: str = "per-timestamp"
    policy_estimate: Estimate = "requested"
    allocation: str = "first-fit"
    dispatcher: str | Callable[..., Any] | None = None
    dispatch_time: float | str | Callable[..., Any] | None = None
    fair_share: Any = None  # as a FairShare or None
    power: str = "none"
    partners: str = "fill"
    pairs_above: float | None = None
    pair_estimate: Any = "known"
    order: IndexPolicy = field(init=False, repr=False, compare=False)
    sweep_order: IndexPolicy | None = field(init=False, repr=False, compare=False)
    reserve: BackfillRule = field(init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return the rules that differ from those of ``Scheduler()``."""
        usual, shown = Scheduler(), (rule.name for rule in fields(self) if rule.repr)
        values = {name: getattr(self, name) for name in shown}
        differing = (
            f"{name}={v!r}"
            for name, v in values.items()
            if isinstance(v, np.ndarray) or v != getattr(usual, name)
        )
        return f"Scheduler({', '.join(differing)})"

    def __post_init__(self) -> None:
        settle = object.__setattr__  # what was given, so that no caller can change it afterwards
        usual = {
            "backfill_order": self.backfill_order,
            "correction": self.correction,
            "candidate_estimate": self.candidate_estimate,
        }
        vars(self)["_usual"] = [rule for rule, given in usual.items() if given is None]
        settle(self, "order", parse_policy(self.policy))
        settle(self, "policy", self.order.given)
        if self.backfill_order is None:
            settle(self, "backfill_order", usual_backfill_order(self.order))
        if self.correction is None:
            asked = self.dispatcher is not None
            settle(self, "correction", "next-second" if asked else "requested")
        settle(self, "reserve", BackfillRule.parse(self.backfill))
        settle(self, "backfill", str(self.reserve))
        settle(self, "sweep_order", self._sweep_order())
        check_choice("correction", self.correction, CORRECTIONS)
        check_choice("dependencies", self.dependencies, DEPENDENCIES)
        check_choice("passes", self.passes, PASSES)
        check_choice("power", self.power, POWER)
        check_choice("partners", self.partners, PARTNERS)
        settle(self, "pairs_above", _number_or_none("pairs_above", self.pairs_above))
        settle(self, "pair_estimate", _pair_estimate(self.pair_estimate))
        settle(self, "estimate", check_estimate(self.estimate))
        settle(self, "policy_estimate", check_estimate(self.policy_estimate, "policy_estimate"))
        if self.correction == "predicted-again" and not learns(self.estimate):
            raise HpcgymError("correction 'predicted-again' needs an estimate that learns")
        settle(self, "threshold", _threshold(self.threshold))
        settle(self, "hold", Hold.parse(self.hold))
        settle(self, "relax", _relax(self.relax))
        settle(self, "candidate_estimate", self._candidate_estimate())
        places = ("nodes", "shared nodes") if self.reserve.shares else ()
        check(words=self.at_passes | dict.fromkeys(places, self.said("backfill")))
        settle(self, "quota", read_quotas(self.quota))
        has_windows = self.maintenance not in (None, ())
        windows = restrictions.read_windows(self.maintenance) if has_windows else ()
        settle(self, "maintenance", windows)
        settle(self, "preemption", read_preemption(self.preemption))
        check_allocation_name(self.allocation)
        if self.fair_share is not None:
            settle(self, "fair_share", _fair_share(self.fair_share, self.orders))
        settle(self, "dispatch_time", _dispatch_time(self.dispatch_time))
        self._check_dispatcher()

    def _check_dispatcher(self) -> None:
        """Raise unless the other rules go together with the dispatcher, or with none."""
        if self.dispatcher is None and self.correction == "next-second":
            raise HpcgymError("correction 'next-second' is for dispatchers only")
        if self.dispatcher is None:
            if self.dispatch_time is not None:
                raise HpcgymError("dispatch_time is for dispatchers only")
            return
        if not (isinstance(self.dispatcher, str) or callable(self.dispatcher)):
            raise HpcgymError(f"dispatcher must be a name or a callable, not {self.dispatcher!r}")
        if isinstance(self.dispatcher, type):
            name = self.dispatcher.__name__
            raise HpcgymError(f"dispatcher must not be the class {name}; give {name}()")
        if callable(self.dispatcher):
            check_takes("dispatcher", self.dispatcher, "the PassView of a pass")
        for rule, usual in _NOT_BESIDE_A_DISPATCHER.items():
            given = getattr(self, rule)
            if not (isinstance(given, type(usual[0])) and given in usual):
                raise HpcgymError(not_beside_a_dispatcher(rule, plain(self.dispatcher)))
        object.__setattr__(self, "backfill", "none")
        object.__setattr__(self, "reserve", BackfillRule.parse("none"))
        object.__setattr__(self, "sweep_order", None)

    def _candidate_estimate(self) -> Estimate | None:
        """Return the run times by which candidates are judged, checked; None without ``relax``."""
        given = self.candidate_estimate
        if self.relax is None:
            if given is not None:
                raise HpcgymError("candidate_estimate is for relaxed backfilling: give relax, too")
            return None
        if not self.reserve.one:
            raise HpcgymError(
                f"relax does not go with {self.said('backfill')}: it is for 'easy' and"
                " 'until-shadow', where the first job that waits has the only reservation"
            )
        of_policies = self.policy_estimate
        if given is None:
            requested = isinstance(of_policies, str) and of_policies == "requested"
            return USUAL_OF_CANDIDATES if requested else of_policies
        checked = check_estimate(given, "candidate_estimate")
        same = given is self.policy_estimate or (
            isinstance(checked, str) and isinstance(of_policies, str) and checked == of_policies
        )
        if learns(of_policies) and learns(checked) and not same:
            raise HpcgymError(
                "candidate_estimate and policy_estimate both learn, and may not differ: not built:"
                " leave candidate_estimate out"
            )
        return checked

    def _sweep_order(self) -> IndexPolicy | None:
        """Return the order of backfilling, which is checked, and kept as it was given."""
        if isinstance(self.backfill_order, str) and self.backfill_order == "sjbf":
            return None
        order = parse_policy(self.backfill_order, "backfill_order", others=["sjbf"])
        if order.function is not None:
            raise HpcgymError(
                "backfill_order must be a name, an expression or weights; policy may be a function"
            )
        object.__setattr__(self, "backfill_order", order.given)
        return order if self.reserve.sweeps else None

    @cached_property
    def coschedules(self) -> bool:
        """Whether a rule is for jobs that share nodes."""
        of_nodes = (self.reserve.shares, self.parts != 0, self.allocation == "compact")
        known = isinstance(self.pair_estimate, str) and self.pair_estimate == "known"
        of_pairs = (self.partners != "fill", self.pairs_above is not None, not known)
        return any((*of_nodes, *of_pairs, self.order.looks_at_pass))

    @property
    def at_passes(self) -> dict[str, str]:
        """How passes go, as :func:`hpcgym.scheduler.capabilities.check` takes it."""
        backfill, kind = self.said("backfill"), self.reserve.kind
        things = {
            "conservative": (self.reserve.conservative, backfill),
            "depth": (kind == "depth", backfill),
            "slurm": (self.reserve.slurm is not None, backfill),
            "per-event": (self.passes == "per-event", FEATURES["per-event"]),
            "function": (self.order.function is not None, f"policy={plain(self.policy)}"),
            "hold": (self.hold is not None, FEATURES["hold"]),
            "relax": (self.relax is not None, self.said("relax")),
            "until-shadow": (kind == "until-shadow", backfill),
        }
        return {thing: words for thing, (asked, words) in things.items() if asked}

    @cached_property
    def asks_for(self) -> dict[str, str]:
        """Its features, in the words of its rules: ``words`` of :func:`capabilities.check`."""
        said = self.said
        things = {
            "kill": (self.correction == "kill", FEATURES["kill"]),
            "dispatcher": (self.dispatcher is not None, said("dispatcher")),
            "dispatch time": (bool(self.dispatch_time), said("dispatch_time")),
            "threshold": (self.threshold is not None, "threshold"),
            "quota": (restrictions.bind_jobs(self.quota), said("quota")),
            "submitted": (
                restrictions.bound_submissions(self.quota), f"{said('quota')} (submitted)"
            ),
            "minutes": (restrictions.weigh_time(self.quota), f"{said('quota')} (minutes)"),
            "unforgotten": (
                any(q.half_life_s is None and restrictions.are_budgets([q]) for q in self.quota),
                f"{said('quota')} (without half-life=)",
            ),
            "maintenance": (bool(self.maintenance), said("maintenance")),
            "preemption": (self.preemption is not None, said("preemption")),
            "dependencies": (self.dependencies != "none", said("dependencies")),
            "contiguous": (self.allocation == "contiguous", FEATURES["contiguous"]),
        }  # fmt: skip
        words = self.at_passes | {thing: text for thing, (asked, text) in things.items() if asked}
        for rule in reversed(PREDICTING):
            estimate = getattr(self, rule)
            if estimate is None:
                continue
            if learns(estimate):
                words["averages" if self.averaged_jobs else "learned"] = said(rule)
            if predictor_of(estimate) is not None:
                words["predictor"] = said(rule)
        orders = zip(("policy", "backfill_order"), self.usage_orders, self.anew, strict=True)
        for rule, looks, expression in orders:
            if looks:  # the order of backfilling may only follow the policy
                words.setdefault("usage", said(rule))
            if expression is not None:
                words["anew"] = said(rule)
            if expression is not None and expression.state:
                words["state"] = said(rule)
                if runs_looked_at(expression.state):
                    words["last runs"] = said(rule)
        return words

    @cached_property
    def is_plain(self) -> bool:
        """Whether its rules are names and numbers that hold for any jobs on a pool."""
        estimates = (self.estimate, self.policy_estimate)
        orders = [order for order in self.orders if order is not None]
        return (
            not (self.asks_for or self.coschedules)
            and (self.allocation, self.power) == ("first-fit", "none")
            and all(isinstance(estimate, str) for estimate in estimates)
            and all(order.is_named for order in orders)
        )

    @cached_property
    def restricts(self) -> bool:
        """Whether quotas, windows, other jobs or preemption restrict when jobs may start."""
        bound = restrictions.bind_jobs(self.quota), self.maintenance, self.preemption
        return any(bound) or self.dependencies != "none"

    @cached_property
    def plans(self) -> bool:
        """Whether all reservations are made anew at each pass."""
        if self.reserve.conservative:
            return False
        by_hold = self.hold is not None and not self.maintenance  # around one reservation, as alone
        return self.reserve.anew or (self.restricts and not by_hold)

    @cached_property
    def moves_submissions(self) -> bool:
        """Whether submit times depend on the schedule: jobs follow others, or quotas delay them."""
        return self.dependencies != "none" or restrictions.bound_submissions(self.quota)

    @cached_property
    def parts(self) -> int:
        """How many jobs may share a node; 0 if jobs fill their nodes.

        1 stands for spread jobs: they have half of each socket, and the other half stays free.
        """
        name, _, number = self.allocation.partition(":")
        known = {"spread": 1, "half-socket": 2, "part": int(number or 2)}
        return known.get(name, 0)

    @property
    def orders(self) -> tuple[IndexPolicy, IndexPolicy | None]:
        """The order of the queue, and that of backfilling where a policy says it."""
        return self.order, self.sweep_order

    @cached_property
    def usage_orders(self) -> tuple[bool, bool]:
        """Whether ``policy``, and the order of backfilling, look at what users have used."""
        first, second = self.orders
        return first.looks_at_usage, second is not None and second.looks_at_usage

    @cached_property
    def anew(self) -> tuple[Expression | None, Expression | None]:
        """The expressions of both orders that are worked out at each pass, see :meth:`_anew`."""
        return self._anew(self.order), self._anew(self.sweep_order)

    def _anew(self, order: IndexPolicy | None) -> Expression | None:
        """Return the expression of an order if it is general, or looks at learned run times."""
        expression = None if order is None else order.expression
        if expression is None or expression.general:
            return expression
        return expression if expression.looks_at_time and learns(self.policy_estimate) else None

    @cached_property
    def state(self) -> frozenset[str]:
        """What the expressions of both orders name of the state of machine, queue and users."""
        return frozenset().union(*(order.state for order in self.anew if order is not None))

    @cached_property
    def remembered(self) -> int:
        """How many run times of each user's last jobs these expressions look at."""
        return runs_looked_at(self.state)

    @cached_property
    def averaged_jobs(self) -> int:
        """The number k if the estimate is a mean of k jobs that the simulator keeps, else 0."""
        if learns(self.second_estimate) or self.correction == "predicted-again":
            return 0
        return (average_of(self.estimate) or 0) if isinstance(self.estimate, str) else 0

    @property
    def second_estimate(self) -> Estimate:
        """What is predicted beside ``estimate``: for policies, or for candidates if that learns."""
        of_candidates = self.candidate_estimate
        if of_candidates is None or learns(self.policy_estimate) or not learns(of_candidates):
            return self.policy_estimate
        return of_candidates

    @cached_property
    def asks_for_predictions(self) -> bool:
        """Whether the simulator stops at each submission, for a prediction."""
        if self.averaged_jobs:
            return False
        return learns(self.estimate) or learns(self.second_estimate)

    def but(self, **changes: Unpack[Rules]) -> Scheduler:
        """Return the scheduler with some rules changed.

        A backfill order that was never given becomes the usual one of the new policy; likewise a
        correction becomes the usual one with, or without, a dispatcher.

        Raises
        ------
        HpcgymError : an unknown rule, or a value that it cannot have.
        """
        for name in changes:
            check_choice("rule", name, RULES)
        parsed: dict[str, Any] = {"policy": self.order, "backfill": self.reserve}  # not read again
        return replace(self, **{**parsed, **dict.fromkeys(vars(self)["_usual"]), **changes})

    def for_weights(self) -> Scheduler:
        """Return the rules with the backfill order that they have if the policy is weights."""
        if self.dispatcher is not None or "backfill_order" not in vars(self)["_usual"]:
            return self  # callers with weights refuse a dispatcher themselves
        return self.but(backfill_order=usual_backfill_order("spf"))

    def given(self, names: Iterable[str] = ()) -> dict[str, Any]:
        """Return rules as a user would give them, such as texts; all, unless ``names`` says which.

        ``Scheduler(**scheduler.given())`` is the same again.
        """
        return {name: typed(getattr(self, name)) for name in names or RULES}

    def said(self, rule: str) -> str:
        """Return a rule as messages have it, such as ``quota='user:jobs=10'``."""
        return f"{rule}={plain(getattr(self, rule))!r}"

    def describe(self) -> dict[str, str | float | None]:
        """Return the rules as plain words and numbers, for tables and manifests.

        Rules of the queue are None beside a dispatcher, which does without them.
        """
        rules = {rule: plain(value) for rule, value in self.given().items()}
        return rules if self.dispatcher is None else {**rules, **dict.fromkeys(OF_THE_QUEUE)}


#: The names of all rules.
RULES = tuple(each.name for each in fields(Scheduler) if each.init)

#: The values that these rules may have beside a dispatcher, which ignores them.
_NOT_BESIDE_A_DISPATCHER: dict[str, tuple[Any, ...]] = {
    "policy": ("fcfs",),
    "backfill": ("easy", "none"),
    "backfill_order": ("fcfs",),
    "threshold": (None,),
    "hold": (None,),
    "relax": (None,),
    "quota": ((),),
    "maintenance": ((),),
    "preemption": (None,),
    "dependencies": ("none",),
    "passes": ("per-timestamp",),
    "policy_estimate": ("requested",),
}

#: The rules that say how run times are predicted; the last is None without ``relax``.
PREDICTING = ("estimate", "policy_estimate", "candidate_estimate")

#: The rules for jobs that share nodes.
OF_SHARED_NODES = ("partners", "pairs_above", "pair_estimate")

#: The rules that mean nothing beside a dispatcher; ``passes`` still does.
OF_THE_QUEUE = tuple(rule for rule in _NOT_BESIDE_A_DISPATCHER if rule != "passes")
