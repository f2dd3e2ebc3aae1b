"""Settings of agents: each with its default, its meaning and its allowed values.

A frozen dataclass holds the settings of an agent. The agent's class or ``train`` takes them by name
(:func:`takes`), and ``hpcgym train`` makes its options from the same fields, so a new one is
written here and nowhere else. The command line reads this module at each start: it imports nothing
slow.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter
from typing import Any, NamedTuple, TypeVar, get_type_hints

from hpcgym.errors import HpcgymError, check_choice, check_whole, is_number

Taker = TypeVar("Taker", bound=Callable[..., Any])

_MOST = sys.float_info.max  # finite

# --- How settings are declared --------------------------------------------------------------------


class Setting(NamedTuple):
    """The properties of a setting beside its name, type and default.

    Attributes
    ----------
    meaning : description for docstrings and for help.
    metavar : placeholder of its value in help.
    check : a function of name and value that returns the value, or raises an HpcgymError that names
        it; None: the code that uses it checks it.
    shown : the default in words, if None stands for a default.
    options : the names of the option, if not that of the field; None: there is no option.
    """

    meaning: str
    metavar: str
    check: Callable[[str, Any], Any] | None = None
    shown: str | None = None
    options: tuple[str, ...] | None = ()


def setting(default: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a field with this default; for what follows see :class:`Setting`."""
    return field(default=default, metadata={"setting": Setting(*args, **kwargs)})


def whole(default: int | None, meaning: str, least: int, **more: Any) -> Any:
    """Return the field of a whole number."""
    return setting(default, meaning, "N", lambda n, value: check_whole(n, value, least), **more)


def real(
    default: float,
    meaning: str,
    metavar: str,
    *,
    above: bool = False,
    most: float = _MOST,
    **more: Any,
) -> Any:
    """Return the field of a number of at least 0, or above 0."""

    def check(name: str, value: Any) -> float:
        if not is_number(value) or not 0 <= value <= most or (above and value == 0):
            which = f"from 0 to {most:g}" if most < _MOST else "of at least 0"
            which = "above 0" if above else which
            raise HpcgymError(f"{name} must be a number {which}, not {value!r}")
        return float(value)

    return setting(default, meaning, metavar, check, **more)


def choice(default: str, meaning: str, *words: str) -> Any:
    """Return the field of one of several words."""
    return setting(
        default, meaning, "|".join(words), lambda n, value: check_choice(n, value, words)
    )


@dataclass(frozen=True)
class Settings:
    """The settings of an agent; values are checked when it is made.

    Raises
    ------
    HpcgymError : an invalid value; the message names the setting.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            check = item.metadata["setting"].check if "setting" in item.metadata else None
            value = getattr(self, item.name)
            if check is not None and not (value is None and item.default is None):
                object.__setattr__(self, item.name, check(item.name, value))


def takes(kind: type[Settings]) -> Callable[[Taker], Taker]:
    """Let a function or a class with ``**settings`` show the settings of a kind.

    They replace ``**settings`` in its signature, and the line that begins so in its docstring.
    """

    def show(taker: Taker) -> Taker:
        hints = get_type_hints(kind)
        signature = inspect.signature(taker)
        own = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        shown: Any = taker
        shown.__signature__ = signature.replace(
            parameters=[
                *own,
                *(_parameter(item.name, item.default, hints) for item in fields(kind)),
            ]
        )
        if taker.__doc__:
            lines = "\n".join(_line(item.name, item.metadata["setting"]) for item in fields(kind))
            mark = re.compile(r"^ *\*\*settings : .*$", re.MULTILINE)
            shown.__doc__ = mark.sub(lambda _: lines, taker.__doc__)
        return taker

    return show


def _parameter(name: str, default: Any, hints: Mapping[str, Any]) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])


def _line(name: str, about: Setting) -> str:
    """Return the lines of a setting in a docstring."""
    words = f" One of {about.metavar.replace('|', ', ')}." if "|" in about.metavar else ""
    default = f" By default {about.shown}." if about.shown else ""
    text = f"{name} : {about.meaning[:1].lower()}{about.meaning[1:]}{words}{default}"
    return textwrap.fill(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8)


# --- Where to learn -------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpisodeSettings(Settings):
    """The episodes to learn from; :class:`hpcgym.envs.core.episodes.Episodes` checks them."""

    part: str = setting(
        "train",
        "Part of the workload in time to learn from; the rest is for hpcgym evaluate.",
        "train|test|all",
    )
    train_share: float = setting(0.5, "Share of the log's time that is for training.", "SHARE")
    episodes: str = setting(
        "windows",
        "What an episode is: a window of jobs from anywhere, a week, a month, or all of the part.",
        "windows|weeks|months|whole",
    )
    jobs: int = setting(256, "Jobs of a window.", "N")

    def of_episodes(self) -> dict[str, Any]:
        """Return these four as the arguments of environments and their episodes."""
        return {item.name: getattr(self, item.name) for item in fields(EpisodeSettings)}


# --- Searches -------------------------------------------------------------------------------------

#: Name -> what it is.
METHODS = {
    "xnes": "exponential natural evolution strategy, the search of Legrand et al. 2018",
    "cma-es": "covariance matrix adaptation evolution strategy",
    "random": "random vectors only",
}


@dataclass(frozen=True)
class XnesSettings(Settings):
    """The search for weights; see :class:`hpcgym.agents.xnes.Xnes`."""

    budget: int = whole(500, "Weight vectors to try; each is simulated on every training slice.", 1)
    method: str = choice("xnes", "How to search.", *METHODS)
    seed: int = whole(0, "Seed of the search and of drawn slices.", 0)
    samples: int | None = whole(
        None,
        "How many of the vectors are pure policies and random ones, before the search itself.",
        0,
        shown="two of five",
    )
    restarts: int = whole(6, "Runs of the method, from different good vectors.", 1)
    population: int | None = whole(
        None, "Vectors of a generation.", 2, shown="4 + 3 ln(number of features)"
    )
    sigma: float = real(0.1, "First step size of a run.", "S", above=True)
    penalty: float = real(10.0, "Weight of ||w|| + 1/||w|| in the minimised value.", "L")
    scale: str = choice(
        "spread",
        "Search in weights times the spread of their features, or in weights as they are.",
        *("spread", "none"),
    )
    metric: str = setting(
        "mean_bsld", "The metric to minimise: mean_bsld, mean_wait_s, ...", "NAME", None
    )

    @property
    def n_samples(self) -> int:
        """How many vectors come before the first run."""
        return min(self.budget * 2 // 5 if self.samples is None else self.samples, self.budget)


# --- What policies do, and clones of it -----------------------------------------------------------


@dataclass(frozen=True)
class RecordSettings(EpisodeSettings):
    """The recorded episodes; see :func:`hpcgym.agents.recordings.record`."""

    record_episodes: int = whole(20, "Number of episodes to record.", 1, options=("--number", "-n"))
    seed: int = whole(0, "Seed of the choice of episodes.", 0)


@dataclass(frozen=True)
class CloneSettings(Settings):
    """How a clone is trained; see :func:`hpcgym.agents.behaviour_cloning.train`."""

    steps: int = whole(2000, "Batches to learn from.", 1)
    seed: int = whole(0, "Seed of the network, and of the order of batches.", 0)
    batch_size: int = whole(256, "Samples of one step of Adam.", 1, options=None)
    # one that is too high, even infinite, ends as the training tells
    learning_rate: float = real(
        3e-3, "Learning rate at the beginning; it falls to 0.", "R", most=math.inf, options=None
    )
    width: int = whole(32, "Units of each hidden layer.", 1, options=None)


# --- Searches on replays --------------------------------------------------------------------------

_SHARE = "Share of the log's time to learn from, from its beginning."


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """The jobs from which an agent learns that replays whole logs."""

    train_share: float = setting(0.5, _SHARE, "SHARE")
    seed: int = whole(0, "Seed of the search.", 0)


@dataclass(frozen=True)
class SearchSettings(Settings):
    """A search on replays; see :class:`hpcgym.agents.replays.ReplaySearch`."""

    generations: int = whole(40, "Generations of vectors, if the search does not end before.", 1)
    population: int = whole(12, "Vectors of a generation.", 4)
    sigma: float = real(0.3, "Standard deviation of the first generation.", "S", above=True)
    densest: float = real(
        0.8,
        "Logs are replayed with the times between submissions times a number from this on, drawn"
        " in each generation.",
        "F",
        above=True,
    )
    sparsest: float = real(1.1, "The greatest such number.", "F", above=True)
    worlds: int = whole(2, "Generated worlds in each generation, beside the logs.", 0)
    most_jobs: int = whole(40_000, "Jobs of each log to learn from at most: its last ones.", 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.densest > self.sparsest:
            raise HpcgymError(
                f"densest must be at most sparsest, {self.sparsest:g}, not {self.densest:g}"
            )


@dataclass(frozen=True)
class RuleEsSettings(SearchSettings):
    """How a rule is searched; see :class:`hpcgym.agents.rule_es.RuleEs`."""

    scheduler: str | None = setting(
        None,
        "A scheduler. The search replaces its order of the queue, or of the jobs to backfill, and"
        " the numbers of its hold and threshold, if it has them, and keeps its other rules.",
        "NAME",
        shown="saf-typical-80h with a hold of 1 percent; for Backfill EASY with its typical times",
    )


@dataclass(frozen=True)
class NetEsSettings(SearchSettings):
    """How a network is evolved; see :class:`hpcgym.agents.net_es.NetEs`."""

    generations: int = whole(24, "Generations of vectors, if the search does not end before.", 1)
    population: int = whole(24, "Vectors of a generation, two for each move.", 4)
    sigma: float = real(0.3, "Standard deviation of the moves that are tried.", "S", above=True)
    step: float = real(0.2, "Step of Adam.", "S", above=True)
    units: int = whole(24, "Hidden units of the network.", 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population % 2:
            raise HpcgymError(f"population must be even, not {self.population}")
