"""Errors and warnings that a user can cause, and the checks that raise them."""

from __future__ import annotations

import math
import numbers
import operator
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# --- The errors that a user can cause, each one clear line ----------------------------------------

_BEGIN, _END = 1500, 400  # characters that are left of a longer text


class HpcgymError(ValueError):
    """Bad input: a file, an argument or a workload that cannot be used.

    The message names the file, line or argument; the command line prints it without a traceback. It
    is one line, whatever stood in a damaged file.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


class WorkloadError(HpcgymError):
    """A workload that cannot be read, or cannot be simulated."""


class NoJobError(WorkloadError):
    """A file in which no job stands, or none that is looked for."""


class ApartError(HpcgymError):
    """Two things that do not go together: a rule and a machine, or two rules."""


E = TypeVar("E", bound=HpcgymError)
T = TypeVar("T")
U = TypeVar("U")


def reworded(error: E, message: str) -> E:
    """Return an error of the same kind with another message; the same one if it is the same."""
    return error if message == str(error) else type(error)(message)


class HpcgymWarning(UserWarning):
    """Work goes on, but a user should know something, which is told in one line.

    Attributes
    ----------
    details : what the line sums up, each in a line of its own; none of most warnings.
    """

    def __init__(self, message: object = "", details: Sequence[str] = ()) -> None:
        super().__init__(one_line(message))
        self.details = tuple(map(one_line, details))


class MachineOnlyWarning(HpcgymWarning):
    """A file that says more than what the machine is, of which nothing else is taken."""


class WorkloadWarning(HpcgymWarning):
    """A workload that can be simulated, but perhaps not as it was meant."""


class ReplacedRuleWarning(HpcgymWarning):
    """A rule of a site that an option replaces: commands tell it first, and always."""


class RuleWarning(WorkloadWarning):
    """A rule that means nothing to the jobs of a workload, or not to all of them."""


class PolicyWarning(HpcgymWarning):
    """A policy that failed in an evaluation: it has no value there, and no mean."""


class TrainingWarning(HpcgymWarning):
    """An agent that is evaluated on jobs that it has learned from."""


class DroppedJobsWarning(WorkloadWarning):
    """Many jobs were dropped: commands tell it, however many other warnings there are."""


def warn_caller(message: str, category: type[HpcgymWarning], details: Sequence[str] = ()) -> None:
    """Warn, at the line from which hpcgym was called, however deep in it this is.

    Gymnasium, through which environments are made and reset, counts as hpcgym. ``details`` are what
    the message sums up.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(category(message, details), stacklevel=level)


#: What is to be said of a file: a kind, in the plural, as messages call it -> each of that kind.
Remarks = defaultdict[str, list[str]]
_MOST_LINES = 4  # a fifth is for whoever reads the file, and does not follow all of it


def warn_of_file(path: object, remarks: Remarks, category: type[HpcgymWarning]) -> None:
    """Warn of what was found in a file, in four lines at most: of more the last sums up the rest.

    There is a line for each kind, with their number and the first; those that matter most come
    first.
    """
    present = [(kind, texts) for kind, texts in remarks.items() if texts]
    lines = []
    for kind, texts in present:
        such = ", such as" if len(texts) > 1 else ";"
        first = texts[0].removeprefix(f"{path}, ")
        lines.append((f"{kind}: {len(texts):,}{such} {first}", texts))
    if len(lines) > _MOST_LINES:
        rest = present[_MOST_LINES - 1 :]
        last = f"other remarks: {len(rest)}, such as {lines[_MOST_LINES - 1][0]}"
        each = [f"{kind}: {text}" for kind, texts in rest for text in texts]
        lines[_MOST_LINES - 1 :] = [(last, each)]
    for line, details in lines:
        warn_caller(f"{path}: {line}", category, details)


def _is_ours(module: str) -> bool:
    """Tell whether a module stands between a user's line and a warning.

    So does functools, whose ``cached_property`` calls what is worked out when it is asked for.
    """
    return module.partition(".")[0] in ("hpcgym", "gymnasium", "functools")


def one_line(message: object) -> str:
    """Return a message as one line that any terminal can show.

    Line ends become blanks, other control characters and halves of characters their numbers; of
    what is longer than 2,000 characters the begin and the end are left.
    """
    text = str(message)
    if len(text) > _BEGIN + _END + 100:
        text = f"{text[:_BEGIN]} [{len(text) - _BEGIN - _END:,} characters] {text[-_END:]}"
    if text.isprintable():
        return text
    return "".join(map(_shown, " ".join(text.splitlines())))


def _shown(character: str) -> str:
    """Return a character, or its number if it cannot be seen."""
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


_MOST_SHOWN = 16  # names in a message


def unknown(
    kind: str,
    name: object,
    known: Iterable[str],
    also: str = "",
    others: Mapping[str, str] | None = None,
) -> str:
    """Return the message that a name is not one of the known ones, with those nearest to it.

    Parameters
    ----------
    kind : what the name should have been: an argument or a thing.
    name : what was given.
    known : the names there are, in lower case.
    also : what else could have been given, in words.
    others : names that other packages have -> package and version.
    """
    return f"unknown {kind} {name!r}; {did_you_mean(name, known, others)}{also and f', or {also}'}"


#: What others call it -> its name here, which is written otherwise.
_SYNONYMS = {"fifo": "fcfs", "lifo": "lcfs"}


def did_you_mean(
    name: object, known: Iterable[str], others: Mapping[str, str] | None = None
) -> str:
    """Return which of the known names come near one, and which there are, in words.

    Of many names the first are shown, and how many more there are; then those of ``others``, see
    :func:`unknown`.
    """
    packages = others or {}
    ours = list(known)
    names = [*ours, *packages]
    written = str(name).casefold()
    swapped = [word for word in names if sorted(word) == sorted(written)]
    longer = [word for word in names if written in word.split("_")]  # bsld: mean_bsld
    same = [word for word in names if word == _SYNONYMS.get(written)]
    near = [*dict.fromkeys([*same, *swapped, *longer, *get_close_matches(written, names, n=3)])][:3]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    more = ""
    for package in dict.fromkeys(packages.values()):
        theirs = [each for each, of in packages.items() if of == package]
        more += f"; of {package} {_first_of(theirs)}"
    return f"{hint}known are {_first_of(ours)}{more}"


def _first_of(names: Sequence[str]) -> str:
    """Return the first of some names in words, and how many more there are."""
    if len(names) <= _MOST_SHOWN:
        return ", ".join(names)
    shown = names[: _MOST_SHOWN - 2]
    return f"{', '.join(shown)} and {len(names) - len(shown)} more"


def installing(extra: str) -> str:
    """Return how to install what an extra of hpcgym needs, such as "cp", wherever hpcgym is from.

    Of an hpcgym that was installed from a clone, too, pip adds what its extra names.
    """
    return f"pip install 'hpcgym[{extra}]'"


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a real number, Python's or NumPy's. A bool is not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def number_in(what: str, text: str) -> float:
    """Return the number that a text is, or raise an error that says what it should have been."""
    try:
        return float(text)
    except ValueError:
        raise HpcgymError(f"{what} must be a number, not {text!r}") from None


def check_whole(
    argument: str, value: Any, least: int, most: int | None = None, what: str = "a whole number"
) -> int:
    """Return a whole number, Python's or NumPy's, or raise an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        within = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise HpcgymError(f"{argument} must be {what} {within}, not {value!r}")
    return number


def whole_argument(generator: str, name: str, value: Any, least: int, most: int) -> int:
    """Return an argument as an int; a float from a command line may stand for one (1e6).

    Raises
    ------
    WorkloadError : it is no whole number from ``least`` to ``most``.
    """
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if not least <= number <= most or number != value:
        raise WorkloadError(
            f"{generator}: {name} must be a whole number from {least} to {most}, not {value!r}"
        )
    return number


def positive_argument(generator: str, name: str, value: Any) -> float | None:
    """Return an argument as a float above 0, or None as it is.

    Raises
    ------
    WorkloadError : it is no number above 0.
    """
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise WorkloadError(f"{generator}: {name} must be a number above 0, not {value!r}")
    return number


def check_choice(argument: str, value: Any, known: Iterable[str]) -> str:
    """Return one of the known words, or raise an error that names the argument."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise HpcgymError(unknown(argument, value, words))
    return value


def check_each_once(where: str, values: Iterable[object]) -> None:
    """Raise an HpcgymError if a value is there twice; ``where`` is what the list is called."""
    seen = set()
    for value in values:
        if value in seen:
            raise HpcgymError(f"{where}: {value!r} is there twice")
        seen.add(value)


# --- Numbers that describe machines, checked ------------------------------------------------------


def watts(name: str, power: Any) -> float:
    """Return a power as a float, or say that it is not one."""
    number = real(power)
    if not (math.isfinite(number) and number >= 0):
        raise HpcgymError(f"{name} must be a power of at least 0 W, not {power!r}")
    return number


def whole_column(name: str, values: Any) -> NDArray[np.int64]:
    """Return values as an int64 array, or say that they are no whole numbers."""
    import numpy as np

    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise HpcgymError(f"{name} must hold whole numbers, not {array.dtype}")
    return array.astype(np.int64)


def real(number: Any) -> float:
    """Return a number as a float; NaN of what is not one."""
    try:
        return float(number)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def all_of(check: Callable[[T], U], given: Iterable[T]) -> list[U]:
    """Return what a check returns of each of some things.

    Raises
    ------
    HpcgymError : what it refuses, all in one message.
    """
    results, refused = [], []
    for value in given:
        try:
            results.append(check(value))
        except HpcgymError as error:
            refused.append(str(error))
    if refused:
        raise HpcgymError("; ".join(refused))
    return results
