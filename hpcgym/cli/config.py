"""``hpcgym --config FILE COMMAND``: options that one gives daily, in a TOML file.

[simulate]
scheduler = "saf"
threshold = "5h"

[train.xnes]
budget = 2000
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, nearest
from hpcgym.files import toml_file

_FILE = "hpcgym.config"  # in what contexts keep
_SOURCE = "DEFAULT_MAP"  # of an option that the file gave


def follow(context: Any, path: Path) -> None:
    """Give options of commands the values of a file, unless the command line has them.

    Raises
    ------
    HpcgymError : it cannot be read, or names no command or option, or gives an option what it does
        not take; the message names the file and the key.
    """
    context.meta[_FILE] = path
    context.default_map = _of_group(path, context.command, toml_file(path), ())


def _of_group(
    path: Path, group: Any, table: Mapping[str, Any], words: tuple[str, ...]
) -> dict[str, Any]:
    """Return the values of all commands of a group, by command and parameter."""
    found = {}
    for name, values in table.items():
        where = (*words, name)
        if name not in group.commands:
            what = f"hpcgym has no command {' '.join(where)}; {nearest(name, group.commands)}"
            raise HpcgymError(f"{path}: {what}")
        if not isinstance(values, Mapping):
            raise HpcgymError(f"{path}: {name} is a command: its options stand below [{name}]")
        command = group.commands[name]
        of = _of_group if hasattr(command, "commands") else _of_command
        found[name] = of(path, command, values, where)
    return found


def _of_command(
    path: Path, command: Any, table: Mapping[str, Any], words: tuple[str, ...]
) -> dict[str, Any]:
    """Return the values of the options of a command, by parameter."""
    options = {
        _long(one).removeprefix("--"): one
        for one in command.params
        if one.param_type_name == "option"
    }
    found = {}
    for key, value in table.items():
        if key not in options:
            what = f"hpcgym {' '.join(words)} has no option --{key}; {nearest(key, options)}"
            raise HpcgymError(f"{path}: {what}")
        try:
            found[options[key].name] = _value(options[key], value)
        except TypeError as error:
            raise HpcgymError(f"{path}: {'.'.join(words)}.{key} {error}") from None
    return found


def _value(option: Any, value: Any) -> Any:
    """Return a value as the command line would give it: text, a list of texts, or a switch."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise TypeError(f"must be true or false, not {value!r}")
        return value
    if option.multiple:
        return [_text(one) for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        raise TypeError("takes one value, not a list")
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"must be a text or a number, not {value!r}")
    return str(value)


def _long(option: Any) -> str:
    """Return the long name of an option."""
    return str(next(one for one in option.opts if one.startswith("--")))


def arguments_of(context: Any, given: tuple[str, ...]) -> list[str]:
    """Return the command line that does the same without the file.

    Parameters
    ----------
    context : of the command.
    given : the arguments of the command line.
    """
    words = context.command_path.split()[1:]
    first = 0
    while given[first : first + 1] and given[first] != words[0]:
        first += 1 if "=" in given[first] else 2  # --config FILE
    rest = given[first + len(words) :]
    return [*words, *_from_file(context), *rest]


def _from_file(context: Any) -> list[str]:
    """Return the options that the file gave, as arguments."""
    found: list[str] = []
    for option in context.command.params:
        if not is_from_file(context, option):
            continue
        value = context.default_map[option.name]
        if isinstance(value, bool):
            found += [_long(option)] if value else option.secondary_opts[:1]
        else:
            values = value if isinstance(value, list) else [value]
            found += [f"{_long(option)}={one}" for one in values]
    return found


def is_from_file(context: Any, parameter: Any) -> bool:
    """Return whether the file gave a parameter its value."""
    source = context.get_parameter_source(parameter.name)
    return source is not None and source.name == _SOURCE


def named_in(context: Any, message: str) -> str:
    """Return an error with the file before it, if it quotes what the file alone gave."""
    wrong = message.partition("; did you mean")[0]
    given = [argument.partition("=")[2] for argument in _from_file(context)]
    named = [one.name for one in context.command.params if is_from_file(context, one)]
    if re.split(r"[ :]", message, maxsplit=1)[0] in named:  # "hold: share must be ..."
        return f"{context.meta[_FILE]}: {message}"
    typed = [
        str(one)
        for option in context.command.params
        if not is_from_file(context, option)
        for one in _as_list(context.params.get(option.name))
    ]
    if _quotes(wrong, given) and not _quotes(wrong, typed):
        return f"{context.meta[_FILE]}: {message}"
    return message


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _quotes(message: str, texts: list[str]) -> bool:
    """Return whether a message quotes one of these texts, or the part of one that is wrong."""
    parts = {part for text in texts for part in re.split(r"[=,;:]", text) if part}
    return any(repr(one) in message for one in {*texts, *parts})


def wrong_in_file(error: Any) -> str | None:
    """Return what to say of a wrong value that the file gave; None if it is not the file's."""
    context, parameter = error.ctx, getattr(error, "param", None)
    if context is None or parameter is None or not is_from_file(context, parameter):
        return None
    return f"{context.meta[_FILE]}: {error.format_message()}"
