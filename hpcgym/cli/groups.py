"""Parameters and dataclasses of commands as options, which their docstrings tell of.

Also values that may be given several times.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, wraps
from inspect import Parameter, Signature
from itertools import product
from operator import itemgetter
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

import typer

from hpcgym.errors import check_each_once

if TYPE_CHECKING:
    from hpcgym.agents.settings import Setting


# --- Groups of options ----------------------------------------------------------------------------

T = TypeVar("T")

#: Title of a list in the help of a command -> function that returns (name, what it is).
Lists = dict[str, Callable[[], Iterable[tuple[str, str]]]]


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
        found: dict[tuple[Any, ...], T] = {}
        for one in self.each:
            found.setdefault(tuple(getattr(one, name) for name in names), one)
        return Several(tuple(found.values()), tuple(x for x in self.varied if x in names))


class _OptionGroup(NamedTuple):
    """The options of a parameter or field, and what makes its value of the values of options."""

    options: list[Parameter]
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


class Help(NamedTuple):
    """What help tells of a command beside its options.

    Attributes
    ----------
    examples, files : of its docstring; title -> text.
    lists : title -> what lists names with what they are.
    """

    examples: list[str]
    files: dict[str, str]
    lists: Lists


def grouped(lists: Lists | None = None) -> Callable[[Callable[..., None]], Any]:
    """Return what makes a command of a function, with lists of names in its help."""
    return lambda command: _grouped(command, lists or {})


def _grouped(command: Callable[..., None], lists: Lists) -> Any:
    """Return a command whose parameters that are dataclasses have become options, one a field.

    typer, and with it the help, sees the fields in their order in place of the dataclass, and those
    of dataclasses in it; the command is called with an instance of it, or with :class:`Several`. A
    field is written as a parameter is, ``name: type = default``, and told in the docstring, or in
    that of :class:`_Common`: see :func:`entries_in`. Or it has ``Annotated[type,
    typer.Option(...)]`` for what docstrings do not tell, or is written as
    :class:`hpcgym.agents.settings.Setting` has it.

    Raises
    ------
    TypeError : two options of one name.
    """
    hints = get_type_hints(command, include_extras=True)
    told = sections(command.__doc__)
    entries = {**entries_in(_Common.__doc__), **entries_in(command.__doc__)}
    parts = {
        name: _part(name, hints[name], parameter.default, entries)
        for name, parameter in inspect.signature(command).parameters.items()
    }
    shown: dict[str, Parameter] = {}
    for option in _options(parts):
        if option.name in shown:
            raise TypeError(f"{command.__name__} has the option {option.name!r} twice")
        shown[option.name] = option

    def arguments(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: part.made(values) for name, part in parts.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        command(**arguments(values))

    seen: Any = run
    files = {title: text for title, text in told.items() if title not in (*_KNOWN, *PANELS)}
    seen.arguments = arguments
    seen.told = Help(_joined(told.get("Examples", "")), files, lists)
    seen.__doc__ = told[""]
    seen.__signature__ = Signature(list(shown.values()))
    seen.__annotations__ = {name: option.annotation for name, option in shown.items()}
    return run


def _options(parts: Mapping[str, _OptionGroup]) -> list[Parameter]:
    return [option for part in parts.values() for option in part.options]


def _parted(annotation: Any) -> tuple[Any, ...]:
    """Return a type, and what marks it."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _part(name: str, hint: Any, default: Any, entries: Mapping[str, Entry]) -> _OptionGroup:
    """Return a parameter or a field as an option, or a dataclass as those of its fields."""
    bare, *marks = _parted(hint)
    if get_origin(bare) is Several:
        return _several(get_args(bare)[0], marks)
    if isinstance(bare, type) and is_dataclass(bare):
        parts = _parts_of(bare)
        return _OptionGroup(
            _options(parts), lambda v: bare(**{k: part.made(v) for k, part in parts.items()})
        )
    return _alone(name, _explained(name, hint, default, entries), default)


def _alone(name: str, annotation: Any, default: Any) -> _OptionGroup:
    one = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    return _OptionGroup([one], itemgetter(name))


def _parts_of(group: Any) -> dict[str, _OptionGroup]:
    """Return the fields of a dataclass by name."""
    hints = get_type_hints(group, include_extras=True)
    entries: dict[str, Entry] = {}
    for one in (_Common, *reversed(group.__mro__)):
        entries |= entries_in(one.__dict__.get("__doc__"))
    found = {}
    for field in fields(group):
        name, hint, told = field.name, hints[field.name], field.metadata.get("setting")
        default = Parameter.empty if field.default is MISSING else field.default
        if told is None:
            found[name] = _part(name, hint, default, entries)
        elif told.options is not None:
            found[name] = _setting(name, hint, default, told)
    return found


def _setting(name: str, hint: Any, default: Any, told: Setting) -> _OptionGroup:
    """Return the option of an agent's setting."""
    option = typer.Option(
        *told.options or (), metavar=told.metavar, help=told.meaning,
        show_default=told.shown or default is not None, rich_help_panel="Experiment",
    )  # fmt: skip

    def made(values: Mapping[str, Any]) -> Any:
        if told.options and told.check is not None and values[name] is not None:
            told.check(told.options[0], values[name])  # its user knows no other name
        return values[name]

    return _alone(name, Annotated[hint, option], default)._replace(made=made)


def _several(group: Any, repeated: Sequence[str]) -> _OptionGroup:
    """Return a group of options some of which, or else all, may be given several times."""
    options = _options(_parts_of(group))
    repeated = repeated or [option.name for option in options]

    def choices_of(name: str, given: Any) -> list[Any]:
        if name not in repeated or not given:
            return [given]
        check_each_once(f"--{name.replace('_', '-')}", [str(one) for one in given])
        return list(given)

    def made(values: Mapping[str, Any]) -> Several[Any]:
        choices = {one.name: choices_of(one.name, values[one.name]) for one in options}
        each = (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))
        varied = tuple(name for name, known in choices.items() if len(known) > 1)
        return Several(tuple(group(**one) for one in each), varied)

    return _OptionGroup(
        [_repeatable(one) if one.name in repeated else one for one in options], made
    )


def _repeatable(option: Parameter) -> Parameter:
    """Return an option that may be given several times."""
    kind, *_ = _parted(option.annotation)
    if get_origin(kind) is UnionType:
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    told = copy.copy(_told(option.annotation))
    told.metavar = f"{str(told.metavar).removesuffix('...')}..."
    of_each: Any = kind if get_origin(kind) is list else list[kind]  # type: ignore[valid-type]
    return option.replace(annotation=Annotated[of_each | None, told])


def _told(annotation: Any) -> Any:
    """Return what an annotation says of an option or argument; None if it says nothing."""
    return next((one for one in _parted(annotation)[1:] if isinstance(one, _INFO)), None)


# --- What docstrings tell of options --------------------------------------------------------------
#
# A command, or a dataclass that stands for options, has sections in its docstring, called as the
# headings of help, with a line for each option:
#
#     name METAVAR : what it is. [default: what stands for no value]

#: Headings of options in help, in their order; those of a command alone stand above, as "Options".
PANELS = (
    *("Workload", "Scheduler", "Machine", "Experiment", "Output", "Power", "Shared nodes"),
    "Running",
)
_OWN = ("Arguments", "Options")  # those that have no heading of their own
_KNOWN = ("", *_OWN, "Examples")  # other sections, but for those of PANELS, are files in help
_INFO = (typer.models.OptionInfo, typer.models.ArgumentInfo)
_ENTRY = re.compile(r"(\w+)(?: (\S+))? :(?: (.*?))?(?: \[default: (.*)\])?")


class Entry(NamedTuple):
    """What a docstring tells of an option; None: nothing."""

    metavar: str | None
    help: str | None
    default: str | None
    panel: str | None


def sections(docstring: str | None) -> dict[str, str]:
    """Return the sections of a docstring, by heading; of "" all before them."""
    text, *parts = re.split(r"^(.+)\n-+\n", inspect.cleandoc(docstring or ""), flags=re.MULTILINE)
    return {"": text.strip()} | dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def _joined(text: str) -> list[str]:
    """Return the entries of a section, which go on in lines that are indented."""
    return re.sub(r"\n +", " ", text).splitlines()


@cache
def entries_in(docstring: str | None) -> Mapping[str, Entry]:
    """Return what a docstring tells of options, by their names."""
    found = {}
    for heading, text in sections(docstring).items():
        panel = heading if heading in PANELS else None
        for entry in _joined(text) if panel or heading in _OWN else ():
            match = _ENTRY.fullmatch(entry)
            assert match is not None, entry
            name, metavar, text, default = match.groups()
            found[name] = Entry(metavar, text, default, panel)
    return found


def _explained(name: str, kind: Any, default: Any, entries: Mapping[str, Entry]) -> Any:
    """Return the annotation of an option or argument with what is known of it."""
    bare, *marks = _parted(kind)
    told, entry = _told(kind), entries.get(name)
    if told is None and entry is None:
        return kind
    if told is None and bare is bool:
        told = typer.Option(f"--{name.replace('_', '-')}")  # without --no-
    elif told is None:
        told = typer.Argument() if default is Parameter.empty else typer.Option()
    elif told.help:
        entry = None  # that of a class below it
    shown: Any = copy.copy(told)
    if entry is not None:
        shown.help, shown.metavar = entry.help, told.metavar or entry.metavar
        shown.rich_help_panel = entry.panel or told.rich_help_panel
        shown.show_default = entry.default or told.show_default
    return Annotated[(bare, *(one for one in marks if one is not told), shown)]
