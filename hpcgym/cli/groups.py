"""Groups of options: a frozen dataclass stands in a command for the options that are its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from hpcgym.agents.settings import Setting


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are dataclasses have become options, one a field.

    typer, and with it the help, sees the fields in their order in place of the dataclass; the
    command is called with an instance of it. A field is written as a parameter is,
    ``name: Annotated[type, typer.Option(...)] = default``, or as
    :class:`hpcgym.agents.settings.Setting` has it.

    Raises
    ------
    TypeError : two options of one name.
    """
    groups: dict[str, type] = {}
    shown: dict[str, Parameter] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        options = [parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)]
        if is_dataclass(kind) and isinstance(kind, type):
            groups[name], options = kind, list(_options_of(kind))
        for option in options:
            if option.name in shown:
                raise TypeError(f"{command.__name__} has the option {option.name!r} twice")
            shown[option.name] = option

    @wraps(command)
    def run(**values: Any) -> None:
        made = {name: _made(kind, values) for name, kind in groups.items()}
        command(**values, **made)

    seen: Any = run
    seen.__signature__ = Signature(list(shown.values()))
    seen.__annotations__ = {name: option.annotation for name, option in shown.items()}
    return run


def _made(group: Any, values: dict[str, Any]) -> Any:
    """Take what is a group's out of the values of a command, and return the group."""
    given = {one.name: values.pop(one.name) for one in _options_of(group)}
    for field in fields(group):
        told, value = field.metadata.get("setting"), given.get(field.name)
        # an option of another name than the field's: its user knows no other
        if told is not None and told.options and told.check is not None and value is not None:
            told.check(told.options[0], value)
    return group(**given)


def _options_of(group: Any) -> Iterator[Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        kind, told = hints[field.name], field.metadata.get("setting")
        if told is not None:
            if told.options is None:
                continue
            kind = Annotated[kind, _option(told, field.default)]
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _option(told: Setting, default: Any) -> Any:
    """Return the option of an agent's setting."""
    shown = told.shown or default is not None
    return typer.Option(
        *told.options or (), metavar=told.metavar, help=told.meaning, show_default=shown
    )
