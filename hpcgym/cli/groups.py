"""Parameters and dataclasses of commands as options, which their docstrings tell of.

Also values that may be given several times.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from inspect import Parameter
from itertools import product
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from hpcgym.cli.files import Written, WrittenFolder
from hpcgym.errors import check_each_once

if TYPE_CHECKING:
    from hpcgym.agents.settings import Setting


# --- Groups of options ----------------------------------------------------------------------------

T = TypeVar("T")


class Option:
    """What a docstring does not tell of an option; stands in its ``Annotated`` type.

    Attributes
    ----------
    names : as they are typed, such as ``--number`` and ``-n``; none: that of the parameter.
    settings : of :class:`click.Option`.
    """

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names, self.settings = names, settings


class ExplainedOption(click.Option):
    """An option.

    Attributes
    ----------
    heading : of help, under which it stands.
    written : what marks it if it names what to write.
    """

    heading: str
    written: Written | WrittenFolder | None


class ExplainedArgument(click.Argument):
    """An argument, likewise; what may be left out stands in brackets."""

    heading = "Arguments"
    written: Written | WrittenFolder | None

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what stands for it in the line of usage."""
        pieces = super().get_usage_pieces(ctx)
        return pieces if self.required else [f"[{piece}]" for piece in pieces]


@dataclass(frozen=True)
class Several(Generic[T]):
    """A group of options, some of which may be given several times.

    A parameter of a command is ``Several[Group]``, or ``Annotated[Several[Group], "a", "b"]`` if
    only some options of the group may.

    Attributes
    ----------
    each : the group with each combination of their values, those of later options change first.
    varied : the fields that have several values.
    """

    each: tuple[T, ...]
    varied: tuple[str, ...]

    def only(self, *names: str) -> Several[T]:
        """Return the same with the combinations of these fields only, others at their first."""
        firsts: dict[tuple[Any, ...], T] = {}
        for combination in self.each:
            firsts.setdefault(tuple(getattr(combination, name) for name in names), combination)
        return Several(tuple(firsts.values()), tuple(x for x in self.varied if x in names))


class OptionGroup(NamedTuple):
    """The options of a command, of a dataclass, or of one parameter or field.

    Attributes
    ----------
    options : in their order.
    made : what makes their value of the values of options: of a command its arguments.
    """

    options: list[ExplainedOption | ExplainedArgument]
    made: Callable[[Mapping[str, Any]], Any]


class _Common:
    """What options mean of which a command's docstring says nothing.

    Arguments
    ---------
    workload WORKLOAD : A file, a trace of hpcgym traces list, or a generator such as lublin: files
        are .swf, .swf.gz, .csv, .parquet, .json, or a site's own log (what sacct -P or --json
        prints, accounting of PBS, LSF or Grid Engine); - is standard input. Generators are
        lublin:jobs=10000,seed=1, eurora:days=30, kit:days=7, light-esp:processors=180 and
        codes:jobs=500,processes=256.

    Machine
    -------
    failures FILE : Failures of nodes on a machine of --cluster: CSV with the columns node (from 0),
        time and repaired (seconds of the workload). Jobs on a node that fails wait again and start
        from the beginning.

    Output
    ------
    format table|json|csv|markdown|latex : How to print the result; numbers are in full in json and
        csv.
    force : Overwrite files to write that are there already.
    """


def options_of(command: Callable[..., None]) -> OptionGroup:
    """Return the options of a command, those of its dataclasses in their place, one a field.

    The command is to be called with an instance of a dataclass, or with :class:`Several`. A field
    is written as a parameter is, ``name: type = default``, and told in the docstring, or in that of
    :class:`_Common`: see :func:`entries_in`. What docstrings do not tell is :class:`Option` in
    ``Annotated``, or an :class:`Entry` there; or a field is written as
    :class:`hpcgym.agents.settings.Setting` has it.

    Raises
    ------
    TypeError : two options of one name.
    """
    hints = get_type_hints(command, include_extras=True)
    entries = {**entries_in(_Common.__doc__), **entries_in(command.__doc__)}
    parts = {
        name: _part(name, hints[name], parameter.default, entries)
        for name, parameter in inspect.signature(command).parameters.items()
    }
    group = _joined_parts(parts, dict)
    names = [option.name for option in group.options]
    if twice := [name for name in names if names.count(name) > 1]:
        raise TypeError(f"{command.__name__} has the option {twice[0]!r} twice")
    return group


def _joined_parts(parts: Mapping[str, OptionGroup], make: Callable[..., Any]) -> OptionGroup:
    """Return parts as one group, of whose values something is made by name."""
    return OptionGroup(
        [option for part in parts.values() for option in part.options],
        lambda values: make(**{name: part.made(values) for name, part in parts.items()}),
    )


def _parted(annotation: Any) -> tuple[Any, ...]:
    """Return a type, and what marks it."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _part(name: str, hint: Any, default: Any, entries: Mapping[str, Entry]) -> OptionGroup:
    """Return a parameter or a field as an option, or a dataclass as those of its fields."""
    bare, *marks = _parted(hint)
    if get_origin(bare) is Several:
        return _several(get_args(bare)[0], marks)
    if isinstance(bare, type) and is_dataclass(bare):
        return _joined_parts(_parts_of(bare), bare)
    option = _option(name, hint, default, entries.get(name, _UNTOLD))

    def made(values: Mapping[str, Any]) -> Any:
        value = values[name]
        return (list(value) or default) if isinstance(value, tuple) else value

    return OptionGroup([option], made)


def _parts_of(group: Any) -> dict[str, OptionGroup]:
    """Return the fields of a dataclass by name."""
    hints = get_type_hints(group, include_extras=True)
    entries: dict[str, Entry] = {}
    for kind in (_Common, *reversed(group.__mro__)):
        entries |= entries_in(kind.__dict__.get("__doc__"))
    parts = {}
    for field in fields(group):
        name, hint, setting = field.name, hints[field.name], field.metadata.get("setting")
        default = Parameter.empty if field.default is MISSING else field.default
        if setting is None:
            parts[name] = _part(name, hint, default, entries)
        elif setting.options is not None:
            parts[name] = _setting(name, hint, default, setting)
    return parts


def _setting(name: str, hint: Any, default: Any, setting: Setting) -> OptionGroup:
    """Return the option of an agent's setting."""
    names = setting.options or ()
    entry = Entry(setting.metavar, setting.meaning, setting.shown, "Experiment")
    part = _part(name, Annotated[hint, Option(*names)], default, {name: entry})

    def made(values: Mapping[str, Any]) -> Any:
        if names and setting.check is not None and values[name] is not None:
            setting.check(names[0], values[name])  # its user knows no other name
        return values[name]

    return part._replace(made=made)


def _several(group: Any, repeated: Sequence[str]) -> OptionGroup:
    """Return a group of options some of which, or else all, may be given several times."""
    parts = _parts_of(group)
    whole = _joined_parts(parts, group)
    repeated = repeated or [*parts]

    def choices_of(name: str, values: Mapping[str, Any]) -> list[Any]:
        if name not in repeated or not values[name]:
            return [parts[name].made(values)]
        check_each_once(f"--{name.replace('_', '-')}", [str(value) for value in values[name]])
        return list(values[name])

    def made(values: Mapping[str, Any]) -> Several[Any]:
        choices = {name: choices_of(name, values) for name in parts}
        each = (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))
        varied = tuple(name for name, known in choices.items() if len(known) > 1)
        return Several(tuple(group(**chosen) for chosen in each), varied)

    options = [
        _repeatable(option) if option.name in repeated else option for option in whole.options
    ]
    return OptionGroup(options, made)


def _repeatable(option: Any) -> Any:
    """Return an option that may be given several times."""
    several = copy.copy(option)
    several.multiple, several.default = True, None
    several.metavar = f"{str(option.metavar).removesuffix('...')}..."
    return several


def _option(name: str, hint: Any, default: Any, entry: Entry) -> Any:
    """Return a parameter as an option, or as an argument if it stands below that heading."""
    bare, *marks = _parted(hint)
    entry = next((mark for mark in marks if isinstance(mark, Entry)), entry)
    mark = next((mark for mark in marks if isinstance(mark, Option)), Option())
    if get_origin(bare) is UnionType:
        (bare,) = (kind for kind in get_args(bare) if kind is not NoneType)
    many = get_origin(bare) is list
    settings = {"type": _read_as(get_args(bare)[0] if many else bare), "metavar": entry.metavar}
    settings |= {"help": entry.help, "required": default is Parameter.empty}
    settings |= {} if default is Parameter.empty else {"default": default}
    option: Any
    if entry.heading == ExplainedArgument.heading:
        option = ExplainedArgument([name], **settings, nargs=-1 if many else 1)
    else:
        names = mark.names or (f"--{name.replace('_', '-')}",)
        settings |= {"is_flag": bare is bool or None, "multiple": many, "show_envvar": True}
        settings |= {"show_default": entry.default or True, **mark.settings}
        option = ExplainedOption([*names, name], **settings)
        option.heading = entry.heading
    written = (mark for mark in marks if isinstance(mark, Written | WrittenFolder))
    option.written = next(written, None)
    return option


def _read_as(kind: Any) -> Any:
    """Return what click calls the type of a value."""
    if kind is Path:
        return click.Path(path_type=Path)
    return click.Choice(list(kind)) if isinstance(kind, type) and issubclass(kind, Enum) else kind


# --- What docstrings tell of options --------------------------------------------------------------
#
# A command, or a dataclass that stands for options, has sections in its docstring, called as the
# headings of help, with a line for each option:
#
#     name METAVAR : what it is. [default: what stands for no value]

#: Headings of help, in their order; options of a command alone stand above all others.
HEADINGS = (
    *(ExplainedArgument.heading, "Options", "Workload", "Scheduler", "Machine", "Experiment"),
    *("Output", "Power", "Shared nodes", "Running"),
)
_ENTRY = re.compile(r"(\w+)(?: (\S+))? :(?: (.*?))?(?: \[default: (.*)\])?")


class Entry(NamedTuple):
    """What a docstring tells of an option; None: nothing."""

    metavar: str | None
    help: str | None
    default: str | None
    heading: str


_UNTOLD = Entry(None, None, None, "Options")


def sections(docstring: str | None) -> dict[str, str]:
    """Return the sections of a docstring, by heading; of "" all before them."""
    text, *parts = re.split(r"^(.+)\n-+\n", inspect.cleandoc(docstring or ""), flags=re.MULTILINE)
    return {"": text.strip()} | dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def joined(text: str) -> list[str]:
    """Return the entries of a section, which go on in lines that are indented."""
    return re.sub(r"\n +", " ", text).splitlines()


@cache
def entries_in(docstring: str | None) -> Mapping[str, Entry]:
    """Return what a docstring tells of options, by their names."""
    entries = {}
    for heading, text in sections(docstring).items():
        for entry in joined(text) if heading in HEADINGS else ():
            match = _ENTRY.fullmatch(entry)
            assert match is not None, entry
            name, metavar, text, default = match.groups()
            entries[name] = Entry(metavar, text, default, heading)
    return entries
