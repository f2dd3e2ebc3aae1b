"""Evaluations under limits of power and energy: which baselines there are, and what is measured."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcgym.baselines import SCHEDULERS
from hpcgym.envs import VERSIONS
from hpcgym.envs.core.episodes import USUAL_START, Episodes
from hpcgym.errors import HpcgymError, TrainingWarning, check_each_once, warn_caller
from hpcgym.naming import seconds_of
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, Limit
from hpcgym.scheduler.own_code import named_object, names_code
from hpcgym.scheduler.rules import POWER, Scheduler
from hpcgym.simulation.limited import check_for_limits
from hpcgym.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


# --- Several trainings of one agent as one row of a leaderboard -----------------------------------

_GROUP = re.compile(r"\s*([^\W\d][\w .+-]*?)\s*=(?!=)(.*)")

#: Groups, by their rows: the rows of their members.
Groups = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Seeds:
    """A row of several policies.

    Attributes
    ----------
    name : of the row.
    members : what each is, by what the user calls it.
    """

    name: str
    members: Mapping[str, Any]

    def found(self, find: Callable[[Any], Any]) -> Seeds:
        """Return the same with what ``find`` says that each member is."""
        return Seeds(self.name, {name: find(one) for name, one in self.members.items()})


def seeds_of(name: str, members: Any) -> Seeds:
    """Return the row of a list of policies.

    Raises
    ------
    HpcgymError : no members, or one twice.
    """
    texts = [str(one) for one in members if isinstance(one, str | Path)]
    check_each_once(name, texts)
    if not members or "" in texts:
        raise HpcgymError(f"{name} needs files or policies, such as {name}=a.pt,b.pt")
    called = [
        str(one) if isinstance(one, str | Path) else f"seed {place}"
        for place, one in enumerate(members)
    ]
    return Seeds(name, dict(zip(called, members, strict=True)))


def read_seeds(policy: Any) -> Any:
    """Return the row that a text such as "ppo=ppo-0.pt,ppo-1.pt" means; what else is given, as is.

    Raises
    ------
    HpcgymError : as of :func:`seeds_of`.
    """
    if not isinstance(policy, str) or os.path.exists(policy):
        return policy
    match = _GROUP.fullmatch(policy)
    if match is None:
        return policy
    return seeds_of(match[1], [part.strip() for part in match[2].split(",")])


def runs_own_code(policy: str) -> bool:
    """Tell whether a text, or one of its trainings, is of a user's module, or a model with code.

    Raises
    ------
    HpcgymError : as of :func:`seeds_of`.
    """
    given = read_seeds(policy)
    texts = given.members if isinstance(given, Seeds) else [given]
    return any(names_code(text) or text.endswith(".zip") for text in texts)


def unfolded(policies: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Return policies with the members of groups as rows of their own, and which these are."""
    rows: dict[str, Any] = {}
    groups: Groups = {}
    for name, one in policies.items():
        if not isinstance(one, Seeds):
            rows[name] = one
            continue
        members = {f"{name}: {member}": policy for member, policy in one.members.items()}
        groups[name] = tuple(members)
        rows |= members
    return rows, groups


def folded(frame: pd.DataFrame, groups: Groups) -> pd.DataFrame:
    """Return a frame, a column a row of the table, with the mean of each group in its place."""
    import pandas as pd

    group_of = {member: name for name, members in groups.items() for member in members}
    columns: dict[Any, Any] = {}
    for row in frame:
        name = group_of.get(str(row))
        if name is None:
            columns[row] = frame[row]
        elif name not in columns:
            columns[name] = frame[list(groups[name])].mean(axis=1, skipna=False)
    return pd.DataFrame(columns, index=frame.index)


def folded_failures(
    failures: Mapping[tuple[str, str], str], groups: Groups
) -> dict[tuple[str, str], str]:
    """Return failures with those of members at their group, which they name."""
    group_of = {member: name for name, members in groups.items() for member in members}
    found: dict[tuple[str, str], str] = {}
    for (row, where), error in failures.items():
        key = (group_of.get(row, row), where)
        told = error if row not in group_of else f"{row.removeprefix(f'{key[0]}: ')}: {error}"
        found[key] = f"{found[key]}; {told}" if key in found else told
    return found


# --- What users bring to an evaluation ------------------------------------------------------------

#: Files of agents.
ENDINGS = (".json", ".pt", ".zip")


def acts(policy: Any) -> bool:
    """Tell whether this is a policy that acts in environments."""
    return callable(getattr(policy, "act", None))


def as_policy(policy: Any) -> Any:
    """Return a policy that acts where something of the user's is one, with what it must take.

    A class with ``act`` is made without arguments; a function of an observation and an info acts.
    Anything else is returned as it is, among it functions that can be called with one argument,
    which are dispatchers.

    Raises
    ------
    HpcgymError : an ``act`` or a ``begin`` that takes other arguments, a class that cannot be made,
        or a function that is neither a policy nor a dispatcher.
    """
    if isinstance(policy, type):
        if not acts(policy):
            return policy
        policy = _made(policy)
    if acts(policy):
        _check_methods(policy)
        return policy
    if not callable(policy) or _takes(policy, 1):
        return policy
    name = own_name(policy)
    if not _takes(policy, 2):
        raise HpcgymError(
            f"{name} must take one argument, as a dispatcher (the view of a pass), or two, as a"
            f" policy that acts (observation, info); it is {name}{inspect.signature(policy)}"
        )
    return SimpleNamespace(act=policy, name=name)


def own_name(policy: Any) -> str:
    """Return what an object or a function is called."""
    told = getattr(policy, "name", None) or getattr(policy, "__name__", None)
    return str(told or type(policy).__name__.lower())


def imported(text: str) -> Any:
    """Return the policy, dispatcher or scheduler that ``package.module:name`` names.

    Modules are found as Python finds them; the command line looks in the current folder first.

    Raises
    ------
    HpcgymError : there is no such module, importing it fails, or it has no such name; what has the
        name is none, as of :func:`as_policy`.
    """
    found = named_object(text)
    if isinstance(found, Scheduler):
        return found
    if not (acts(found) or callable(found)):
        raise HpcgymError(
            f"{text} is no policy: it is of the type {type(found).__name__}, and has no act"
        )
    try:
        return as_policy(_made(found) if isinstance(found, type) else found)
    except HpcgymError as error:
        raise HpcgymError(f"{text}: {error}") from None


def load_agent(path: str | Path) -> Any:
    """Return a saved agent.

    Raises
    ------
    HpcgymError : there is no such file, it holds no agent, or what agents need is not installed.
    """
    try:
        from hpcgym.agents import load
        from hpcgym.agents.saved import is_released

        if not is_released(path) and not os.path.exists(path):
            raise HpcgymError(f"{path}: there is no such file")
        return load(path)
    except ImportError as error:
        raise HpcgymError(f"{path}: {error}") from None


def misfit_of_spaces(policy: Any, env: Any) -> str:
    """Return how a policy's spaces differ from an environment's, in a few words; "" if they do not.

    Parameters
    ----------
    policy : with ``observation_space`` and ``action_space`` of what it was trained in, or without.
    env : a single environment.
    """
    found = []
    for what, space in (("observations", "observation_space"), ("actions", "action_space")):
        theirs, here = getattr(policy, space, None), getattr(env, space, None)
        if theirs is None or here is None or theirs == here:
            continue
        if not (hasattr(theirs, "spaces") and hasattr(here, "spaces")):
            found.append(f"its {what} are {_shape(theirs)}, not {_shape(here)}")
            continue
        fields = [
            (name, theirs.spaces.get(name), here.spaces.get(name))
            for name in {**theirs.spaces, **here.spaces}
        ]
        differ = [
            f"{name} is {_shape(one)}, not {_shape(other)}"
            for name, one, other in fields
            if one != other
        ]
        found.append(f"in its {what} {', '.join(differ)}")
    return "; ".join(found)


def _shape(space: Any) -> str:
    """Return a space in a few words; one of the same size may differ in its bounds."""
    if space is None:
        return "none"
    if hasattr(space, "spaces"):
        return f"Dict({', '.join(space.spaces)})"
    if getattr(space, "shape", None):
        return f"{type(space).__name__}{tuple(space.shape)}"
    return str(space)


def _made(kind: type) -> Any:
    """Return an object of a user's class."""
    name = kind.__name__
    called = any("__call__" in vars(base) for base in kind.__mro__)  # as a dispatcher is
    if not (acts(kind) or called):
        raise HpcgymError(f"the class {name} is no policy: it has no act(observation, info)")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise HpcgymError(
            f"the class {name} cannot be made without arguments ({error}): give defaults, or name a"
            " function or an object"
        ) from None
    except ValueError:  # of some compiled ones nothing is known
        pass
    try:
        return kind()
    except Exception as error:  # whatever a user's class does
        said = f"{type(error).__name__}: {error}"
        raise HpcgymError(f"the class {name} cannot be made: {said}") from None


def _check_methods(policy: Any) -> None:
    """Raise an HpcgymError for an ``act`` or a ``begin`` that takes other arguments."""
    wanted = {"act": ("two arguments, (observation, info)", 2), "begin": ("one, (env)", 1)}
    for method, (words, number) in wanted.items():
        function = getattr(policy, method, None)
        if function is not None and not _takes(function, number):
            told = inspect.signature(function)
            raise HpcgymError(
                f"{own_name(policy)}: {method} must take {words}; it is {method}{told}"
            )


def _takes(function: Callable[..., Any], number: int) -> bool:
    """Tell whether a function can be called with so many arguments, as far as it tells."""
    try:
        inspect.signature(function).bind(*range(number))
    except TypeError:
        return False
    except ValueError:  # of some compiled ones nothing is known
        pass
    return True


# --- What agents say of their training ------------------------------------------------------------

#: What is around slices, if nobody says.
PLAIN: dict[str, Any] = {"start": "empty", "warmup": None, "arrivals": "stop", "horizon": None}


def around_of(
    given: Mapping[str, Any],
    env: Any,
    env_options: Mapping[str, Any] | None,
    acting: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is around the slices of an evaluation.

    Parameters
    ----------
    given : the four arguments of :data:`PLAIN`; None: as environments have it.
    env, env_options : as :func:`hpcgym.evaluation.evaluate` takes them.
    acting : the policies that act.

    Raises
    ------
    HpcgymError : environments that differ in what is not given.
    """
    around = dict(PLAIN)
    told: dict[str, str] = {}  # by whom
    for name, theirs in _environments(env, env_options or {}, acting):
        for key in PLAIN:
            if given[key] is not None or key not in theirs:
                continue
            if key not in told:
                around[key], told[key] = theirs[key], name
            elif _meant(around[key]) != _meant(theirs[key]):
                raise HpcgymError(
                    f"the environment of {name} has {key}={theirs[key]!r}, and that of {told[key]}"
                    f" {around[key]!r}; give {key} (--{key}), or evaluate apart"
                )
    for key, value in given.items():
        if value is not None:
            around[key] = PLAIN[key] if value == "none" and PLAIN[key] is None else value
    return around


def _environments(
    env: Any, env_options: Mapping[str, Any], acting: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the arguments of each environment of an evaluation, as far as they are told."""
    if env is not None and not isinstance(env, str):
        episodes = getattr(getattr(env, "unwrapped", None), "episodes", None)
        yield "env", getattr(episodes, "around", {})
        return
    if env is not None:
        yield env, {**VERSIONS.get(env, {}), **env_options}
    for name, policy in acting.items():
        own = getattr(policy, "env_id", None)
        if own is not None and env in (None, own):
            yield name, {**VERSIONS.get(own, {}), **options_of(policy), **env_options}


def options_of(policy: Any) -> Mapping[str, Any]:
    """Return the arguments of the environment that a policy was made for, as far as it has any."""
    return getattr(policy, "env_options", None) or {}


def _meant(value: Any) -> Any:
    """Return a value that is equal for all ways to write the same."""
    if value == "warm":
        return USUAL_START
    seconds = seconds_of(value) if isinstance(value, str) else None
    return value if seconds is None else seconds


def warn_of_seen(acting: Mapping[str, Any], whole: Workload, part: Episodes) -> None:
    """Say which policies have been trained on jobs of the slices; not if these are "train".

    The same log is known by its name, and by the seconds in which the first and the last job of the
    training were submitted.

    Warns
    -----
    TrainingWarning : for each of them.
    """
    first, last = part.submitted
    for name, policy in acting.items():
        seen = getattr(policy, "trained_on", None)
        if not seen or part.part == "train" or seen["workload"] != whole.name:
            continue
        span = seen["first_s"], seen["last_s"]
        overlaps = span[0] < last and first < span[1]
        if overlaps and np.isin(span, whole.submit_time).all():
            where = "the whole workload" if part.part == "all" else f"the {part.part} part"
            warn_caller(
                f"{name} was trained with part={seen['part']!r} on {whole.name}, and has seen jobs"
                f" of {where}: its row tells nothing of new jobs; train with part='train'",
                TrainingWarning,
            )


# --- Evaluations under limits of power and energy -------------------------------------------------

#: Metrics of a schedule under limits that have intervals of their own [J].
ENERGIES = ("energy_j", "limited_energy_j")

#: The rule that all are compared with where there are budgets: the plainest of those made for them.
REFERENCE = "powercap"

_FOR_BUDGETS = ("powercap", "reduce-pc", "energy-bud")
_FOR_CAPS = ("shut", "dvfs", "mix")


class Limits(NamedTuple):
    """The limits that an environment sets, and how it keeps them.

    Attributes
    ----------
    of : returns the limits of an episode's jobs, in seconds of their clock.
    power : a name of :data:`hpcgym.scheduler.rules.POWER`.
    """

    of: Callable[[Workload], tuple[Limit, ...]]
    power: str


def limits_of(env: Any) -> Limits | None:
    """Return the limits of an environment; None if it has none."""
    from hpcgym.envs import SchedulingEnv  # takes long to import

    limits = env.simulations.machines.limits_of if isinstance(env, SchedulingEnv) else None
    return None if limits is None else Limits(limits, env.options.scheduler.power)


def ruled(name: str) -> tuple[str, str] | None:
    """Return the rule and the scheduler of a row such as "powercap" or "reduce-pc+saf".

    A rule alone stands for EASY under it. None: the name is of another kind.
    """
    rule, plus, order = name.partition("+")
    if rule not in POWER or (plus and order not in SCHEDULERS):
        return None
    return rule, order if plus else "easy"


def check_rows(
    lineup: Mapping[str, Any], limits: Limits | None, slices: Sequence[Workload]
) -> None:
    """Raise an HpcgymError for rows that keep no limits, or keep such as there are not.

    Parameters
    ----------
    lineup : name of each row -> its scheduler, or what acts.
    limits : of the environment.
    slices : the jobs of each slice.
    """
    found = {isinstance(one, EnergyBudget) for jobs in slices for one in _of(limits, jobs)}
    for name, scheduler in lineup.items():
        if not isinstance(scheduler, Scheduler):
            continue
        rule = scheduler.power
        if limits is None and (rule != "none" or ruled(name) is not None):
            raise HpcgymError(
                f"{name} keeps limits, and there are none: give env='hpcgym/EnergyBudget-v0'"
                " (--env EnergyBudget), or a saved agent of such an environment"
            )
        if limits is None:
            continue
        try:
            check_for_limits(scheduler)
        except HpcgymError as error:
            raise HpcgymError(f"{name} keeps no limits of power and energy: {error}") from None
        if rule in _FOR_BUDGETS and True not in found:
            raise HpcgymError(f"{name} is for budgets, and the environment has none")
        if rule in _FOR_CAPS and rule != limits.power and False not in found:
            raise HpcgymError(f"{name} is for caps, and the environment has none")


def _of(limits: Limits | None, jobs: Workload) -> tuple[Limit, ...]:
    return () if limits is None else limits.of(jobs)


def references(limits: Limits | None, slices: Sequence[Workload]) -> tuple[str, ...]:
    """Return the rules that are always among the rows."""
    budgets = any(isinstance(one, EnergyBudget) for jobs in slices for one in _of(limits, jobs))
    return (REFERENCE,) if budgets else ()


def measured(result: Result) -> dict[str, float]:
    """Return the energy of a schedule: all of it, and that while limits hold [J].

    A second in which several limits hold counts once.
    """
    books = result.books
    used, done, last = 0.0, 0, int(books.time[-1])
    windows = [(one.start, last if one.end is None else one.end) for one in result.limits or ()]
    for start, end in sorted(windows):
        begin = max(start, done)
        if end <= begin:
            continue
        used += books.joules(begin, end)
        done = end
    return {"energy_j": float(result.metrics["energy_j"]), "limited_energy_j": used}


def same_limits(one: Limits | None, other: Limits | None, slices: Sequence[Workload]) -> bool:
    """Tell whether two environments set the same limits to the same slices, and keep them alike."""
    if one is None or other is None:
        return one is other
    return one.power == other.power and all(one.of(jobs) == other.of(jobs) for jobs in slices)
