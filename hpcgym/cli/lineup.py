"""Who is compared: schedulers by name, each under every combination of the rules that are given."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.cli.running import note
from hpcgym.errors import (
    ApartError,
    HpcgymError,
    MachineOnlyWarning,
    ReplacedRuleWarning,
    check_each_once,
    reworded,
    warn_caller,
)
from hpcgym.names import MOST_OF_LIST, name_problem
from hpcgym.progress import working

if TYPE_CHECKING:
    from hpcgym.cli import loading
    from hpcgym.cli.groups import Several
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler


# --- Schedulers by name ---------------------------------------------------------------------------


def rules_of(name: str, overrides: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, or the one that asks a dispatcher, with rules changed.

    What is wrong is said before the work: an unknown name, a dispatcher that needs what is not
    installed, or a rule of the queue beside a dispatcher.
    """
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.dispatchers import DISPATCHERS, find_dispatcher
    from hpcgym.baselines.schedulers import COSCHEDULERS, is_scheduler, no_scheduler, scheduler_of
    from hpcgym.scheduler.rules import OF_THE_QUEUE, POWER, not_beside_a_dispatcher

    if name in DISPATCHERS:
        find_dispatcher(name)
        per_event = ["passes"] if overrides.get("passes") == "per-event" else []
        for rule in (*OF_THE_QUEUE, *per_event):
            if rule in overrides:
                raise HpcgymError(not_beside_a_dispatcher(f"--{rule.replace('_', '-')}", name))
    elif not is_scheduler(name):
        known = [*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS]
        if name in POWER:
            raise HpcgymError(
                f"{name} is a way to keep limits, not a scheduler: --power {name}, beside --cap or"
                " --budget"
            )
        if "," in name and {part.strip() for part in name.split(",")} <= set(known):
            raise HpcgymError(f"{name} are several schedulers: hpcgym compare --scheduler {name}")
        raise no_scheduler(name, known, "scheduler or dispatcher")
    _not_machine_only(name)
    with _replaced_first():
        begin = scheduler_of(name, {})
        _warn_of_replaced(site_of(name), begin, overrides)
    return scheduler_of(begin, overrides)


@contextmanager
def _replaced_first() -> Iterator[None]:
    """Give warnings of what a command replaces before the others."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield
    finally:
        for warning in sorted(
            caught, key=lambda warning: warning.category is not ReplacedRuleWarning
        ):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def _warn_of_replaced(site: str, begin: Scheduler, given: Collection[str]) -> None:
    """Warn of rules that a slurm.conf has, and for which an option gives others."""
    from hpcgym.baselines.labels import in_short
    from hpcgym.scheduler.rules import plain

    for rule in ("policy", "backfill", "fair_share", "quota", "preemption") if site else ():
        of_file = plain(getattr(begin, rule))
        if rule in given and of_file not in (None, "fcfs", ""):
            option = f"--{rule.replace('_', '-')}"
            text = f"{site}: {option} replaces the whole rule of the file, {in_short(str(of_file))}"
            warn_caller(text, ReplacedRuleWarning, [str(of_file)])


def _not_machine_only(name: str) -> None:
    """Let nobody say of a slurm.conf that its rules are not taken, if it is the scheduler, too.

    What the scheduler does not follow is named. It holds until the command ends.
    """
    if site_of(name):
        warnings.simplefilter("ignore", MachineOnlyWarning)


# --- Who is compared ------------------------------------------------------------------------------


class RuleCombination(NamedTuple):
    """One combination of rules.

    Attributes
    ----------
    rules : as :meth:`hpcgym.scheduler.rules.Scheduler.but` takes them.
    told : rule -> its text, of those that differ between combinations; for the names of rows.
    """

    rules: dict[str, Any]
    told: dict[str, str]


def choices_of(*groups: Several[Any]) -> list[RuleCombination]:
    """Return all combinations of the rules of groups of options that have a method ``given``."""
    combinations = []
    for parts in product(*(group.each for group in groups)):
        choice = RuleCombination({}, {})
        for group, part in zip(groups, parts, strict=True):
            choice.rules.update(part.given())
            choice.told.update({rule: str(getattr(part, rule)) for rule in group.varied})
        combinations.append(choice)
    return combinations


#: Between a name of one's own and its scheduler: no rule of a variant, ``rule=value``, has it.
_NAMES = ":="


def given_schedulers(given: list[str] | None) -> dict[str, str]:
    """Return the schedulers that were given by what they are called: ``mine:=saf:hold=0.1``.

    Raises
    ------
    HpcgymError : nothing but commas, the same name twice, one that no table can have, or that of
        another scheduler.
    """
    from hpcgym.baselines.labels import check_label
    from hpcgym.baselines.schedulers import is_scheduler
    from hpcgym.schedule.schedule import check_not_past

    if not given:
        return {}
    parts = [part for text in given for part in _split(text)]
    pairs = [part.rpartition(_NAMES) if _NAMES in part else (part, "", part) for part in parts]
    names = [name.strip() for name, _, _ in pairs]
    named = [text for text in given if _NAMES in text]
    if not names:
        raise HpcgymError("--scheduler names no scheduler")
    check_each_once("--scheduler", names)
    for name in names:
        if problem := name_problem(name, MOST_OF_LIST):
            raise HpcgymError(f"--scheduler NAME{_NAMES}SCHEDULER: a name must be {problem}")
        check_not_past(name)
    chosen = dict(zip(names, (text.strip() for _, _, text in pairs), strict=True))
    for name, text in chosen.items():
        check_label(name, text)
        _not_machine_only(text)
        if name == text and any(
            f"{name}," in text_named.partition(_NAMES)[0] for text_named in named
        ):
            _check_no_comma(name)
        if "=" in text.partition(":")[0] and not is_scheduler(text):
            own = text.replace("=", _NAMES, 1)
            raise HpcgymError(f"--scheduler {text}: a name of your own is written {own}")
    return chosen


def _check_no_comma(name: str) -> None:
    """Raise an HpcgymError if what stands before a comma is no scheduler, but part of a name."""
    from hpcgym.baselines.dispatchers import DISPATCHERS
    from hpcgym.baselines.schedulers import is_scheduler

    if name not in DISPATCHERS and not is_scheduler(name):
        raise HpcgymError(
            f"--scheduler: {name!r} is no scheduler. A comma separates schedulers, so a name of"
            " your own cannot have one"
        )


def _split(text: str) -> list[str]:
    """Return names joined by commas; a rule belongs to the variant before it."""
    from hpcgym.baselines.schedulers import at_commas

    names: list[str] = []
    for part in filter(None, (part.strip() for part in at_commas(text))):
        of_variant = bool(names) and ":" in names[-1].rpartition(_NAMES)[2]
        if of_variant and "=" in part.partition(":")[0]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def simulated_each(
    names: Mapping[str, str],
    workload: str,
    reading: loading.PeriodReading,
    failures: Path | None = None,
) -> dict[str, Result]:
    """Return the schedules of :func:`given_schedulers` on the same jobs.

    Raises
    ------
    HpcgymError : an unknown name, or what rules, jobs or machine cannot be.
    """
    chosen = {name: rules_of(text, reading.given()) for name, text in names.items()}
    machine = reading.machine
    jobs = reading.load(workload, schedulers=chosen.values())

    from hpcgym.simulation.run import simulate

    with working(f"simulating {len(jobs):,} jobs"):
        return {
            name: simulate(jobs, scheduler, cluster=machine, failures=failures)
            for name, scheduler in chosen.items()
        }


class Entrant(NamedTuple):
    """What is compared: rules under one choice, and the site whose slurm.conf they are from."""

    rules: Scheduler
    site: str


def site_of(name: str) -> str:
    """Return a scheduler as it was given, if it is a site's own slurm.conf; else nothing."""
    from hpcgym.machine.slurm import conf_in

    return name if conf_in(name) else ""


def lineup(
    names: Mapping[str, str], choices: Sequence[RuleCombination], *, sharing: bool
) -> dict[str, Entrant]:
    """Return the schedulers of a comparison by the names of their rows.

    A row is called by its scheduler and by those rules that vary, as in ``saf, threshold=18000``.
    A single value in place of one that the name tells is behind it, as "saf:hold=0.1 (no hold)".
    Rules that mean nothing to a scheduler leave it as it is, in one row: ``dispatch_time`` is for
    dispatchers, ``fair_share`` for who looks at usage, and rules of pairs, with ``sharing`` the
    allocation too, for who shares nodes.

    Parameters
    ----------
    names : what a scheduler or dispatcher is called -> the text that names it; none: EASY with each
        policy of the choices, by its name.
    choices : of :func:`choices_of`.
    sharing : whether jobs share nodes.

    A scheduler with rules that do not go together is left out with a line, unless none is left.

    Raises
    ------
    HpcgymError : an unknown name, a rule that a scheduler cannot have or that means nothing to any
        of them.
    """
    from hpcgym.baselines.schedulers import is_variant, read_variant

    begins = {name: rules_of(text, {}) for name, text in names.items()} or _of_policies(choices)
    of_variants = {name: read_variant(text)[1] for name, text in names.items() if is_variant(text)}
    if not names:
        choices = [RuleCombination(*map(_but_policy, choice)) for choice in choices]
    entrants: dict[str, Entrant] = {}
    heeded: set[str] = set()
    apart: list[ApartError] = []
    for name, begin in begins.items():
        site, named = site_of(names.get(name, "")), of_variants.get(name, ())
        for rules, varied in choices:
            try:
                scheduler, idle = _under(begin, rules, sharing)
            except ApartError as error:
                apart.append(reworded(error, f"{_row(name, varied)}: {error}"))
                continue
            except HpcgymError as error:
                raise HpcgymError(f"{_row(name, varied)}: {error}") from None
            _warn_of_replaced(site, begin, rules)
            given = rules.keys() - varied
            row = _but_given(_row(name, varied, idle), named, begin, scheduler, given)
            entrants[row] = Entrant(scheduler, site)
            heeded |= rules.keys() - idle
    leave_out(apart, entrants)
    _check_heeded(choices[0].rules, heeded)
    return entrants


def leave_out(apart: Sequence[ApartError], others: Collection[Any]) -> None:
    """Say which schedulers of a comparison are left out, and why; the others go on.

    Such as one that holds jobs back, beside ``--quota``: it is not compared under another rule by
    the same name.

    Raises
    ------
    ApartError : the first of them, if there are no others.
    """
    for error in apart:
        if not others:
            raise error
        note(f"left out: {error}")


def _row(name: str, varied: Mapping[str, str], idle: Iterable[str] = ()) -> str:
    """Return what a row is called, without rules that are idle in it."""
    return ", ".join([name, *(f"{rule}={varied[rule]}" for rule in varied if rule not in idle)])


def _but_given(
    row: str, named: Iterable[str], begin: Scheduler, scheduler: Scheduler, given: Iterable[str]
) -> str:
    """Return a row with rules behind it that options gave, where its scheduler has others itself.

    Such as "saf:quota=user:jobs=2 (no quota)". Those are told that a variant names (``named``), or
    of a site.
    """
    from hpcgym.baselines.labels import labelled
    from hpcgym.scheduler.asked_for import own_site_rules

    return labelled(row, begin, scheduler, {*own_site_rules(begin), *named} & {*given})


def _but_policy(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {rule: value for rule, value in rules.items() if rule != "policy"}


def _of_policies(choices: Iterable[RuleCombination]) -> dict[str, Scheduler]:
    """Return EASY with each policy, by its name.

    FCFS is called ``easy``, since the scheduler ``fcfs`` does not backfill.
    """
    from hpcgym.scheduler.rules import Scheduler

    policies = dict.fromkeys(choice.rules["policy"] for choice in choices)
    return {"easy" if policy == "fcfs" else policy: Scheduler(policy=policy) for policy in policies}


def _under(begin: Scheduler, rules: Mapping[str, Any], sharing: bool) -> tuple[Scheduler, set[str]]:
    """Return a scheduler under those rules that mean something to it, and the names of others."""
    from hpcgym.baselines.schedulers import scheduler_of

    of_some = {*pair_rules(sharing), "fair_share", "dispatch_time"}
    of_all = {rule: value for rule, value in rules.items() if rule not in of_some}
    scheduler = scheduler_of(begin, of_all)
    idle = set() if scheduler.parts > 1 else {*pair_rules(sharing)}
    idle |= set() if any(scheduler.usage_orders) else {"fair_share"}
    idle |= {"dispatch_time"} if scheduler.dispatcher is None else set()
    more = {rule: rules[rule] for rule in of_some - idle if rule in rules}
    return scheduler_of(scheduler, more), idle & rules.keys()


def pair_rules(sharing: bool) -> tuple[str, ...]:
    """Return the rules that are only for jobs that share nodes."""
    from hpcgym.scheduler.rules import OF_SHARED_NODES

    return (*OF_SHARED_NODES, "allocation") if sharing else OF_SHARED_NODES


def _check_heeded(rules: Mapping[str, Any], heeded: set[str]) -> None:
    """Raise if shares of users or dispatch times are given, and no scheduler uses them."""
    from hpcgym.scheduler.asked_for import check_fair_share

    check_fair_share(rules.get("fair_share"), "fair_share" in heeded)
    if "dispatch_time" in rules.keys() - heeded:
        raise HpcgymError("--dispatch-time is for dispatchers, which --scheduler names")
