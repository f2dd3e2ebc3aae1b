"""How settings are declared: a field each, with its default, what it is and what it may be.

Signatures, docstrings and options of the command line are made from such fields. The command line
reads this module at each start: it imports nothing slow.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter
from typing import Any, NamedTuple, TypeVar, get_type_hints

from hpcgym.errors import HpcgymError, check_choice, check_whole, is_number, nearest

Taker = TypeVar("Taker", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound="Settings")

_MOST = sys.float_info.max  # finite


class Setting(NamedTuple):
    """What is known of a setting beside its name, type and default.

    Attributes
    ----------
    meaning : what it is, for docstrings and for help.
    metavar : what stands for its value in help.
    check : returns a value of this name, or raises an HpcgymError that names it; None: whoever uses
        it checks it.
    shown : the default in words, where None stands for one.
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
    """What an agent is told; values are checked when it is made.

    Raises
    ------
    HpcgymError : a value that cannot be; the message names the setting.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            check = one.metadata["setting"].check if "setting" in one.metadata else None
            value = getattr(self, one.name)
            if check is not None and not (value is None and one.default is None):
                object.__setattr__(self, one.name, check(one.name, value))

    @classmethod
    def of(cls: type[Kind], taker: str, given: Mapping[str, Any]) -> Kind:
        """Return the settings that a function or class of this name was called with.

        Raises
        ------
        TypeError : a name that is no setting, as Python says it of an unknown argument.
        """
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise TypeError(
                    f"{taker}() got an unexpected keyword argument {name!r}; {nearest(name, known)}"
                )
        return cls(**given)


def takes(kind: type[Settings]) -> Callable[[Taker], Taker]:
    """Let a function or a class that has ``**settings`` show those of a kind.

    In its signature they stand in place of ``**settings``, in its docstring in place of the line
    that begins with this.
    """

    def show(taker: Taker) -> Taker:
        hints = get_type_hints(kind)
        signature = inspect.signature(taker)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        shown: Any = taker
        shown.__signature__ = signature.replace(
            parameters=[*own, *(_parameter(one.name, one.default, hints) for one in fields(kind))]
        )
        if taker.__doc__:
            lines = "\n".join(_line(one.name, one.metadata["setting"]) for one in fields(kind))
            mark = re.compile(r"^ *\*\*settings : .*$", re.MULTILINE)
            shown.__doc__ = mark.sub(lambda _: lines, taker.__doc__)
        return taker

    return show


def _parameter(name: str, default: Any, hints: Mapping[str, Any]) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])


def _line(name: str, told: Setting) -> str:
    """Return the lines of a setting in a docstring."""
    words = f" One of {told.metavar.replace('|', ', ')}." if "|" in told.metavar else ""
    default = f" By default {told.shown}." if told.shown else ""
    text = f"{name} : {told.meaning[:1].lower()}{told.meaning[1:]}{words}{default}"
    return textwrap.fill(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8)
