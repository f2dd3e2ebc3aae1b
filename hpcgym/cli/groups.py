"""Groups of options: a frozen dataclass stands in a command for the options that are its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are dataclasses have become options, one a field.

    typer, and with it the help, sees the fields in their order in place of the dataclass; the
    command is called with an instance of it. A field is written as a parameter is:
    ``name: Annotated[type, typer.Option(...)] = default``.

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
        made = {
            name: kind(**{one.name: values.pop(one.name) for one in _options_of(kind)})
            for name, kind in groups.items()
        }
        command(**values, **made)

    seen: Any = run
    seen.__signature__ = Signature(list(shown.values()))
    seen.__annotations__ = {name: option.annotation for name, option in shown.items()}
    return run


def _options_of(group: Any) -> Iterator[Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=_default_of(field),
            annotation=hints[field.name],
        )


def _default_of(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default
