"""Parameters and dataclasses of commands as options, which their docstrings tell of.

Also values that may be given several times, and what a recorded command may cost.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from itertools import product
from math import prod
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

from hpcgym.cli.names import COMPLETED
from hpcgym.errors import HpcgymError, check_each_once

if TYPE_CHECKING:
    from hpcgym.agents.settings import Setting


# --- What a recorded command may cost -------------------------------------------------------------
#
# A file that tells five jobs is not made again from a hundred million. What is checked here is
# known before the work: how many jobs a generator is asked for, and how many simulations there
# would be. Logs that are read from files are bounded by these files.

#: Jobs that may be generated whatever is told, for each job that is told (a week of many may have
#: been simulated), and at most.
_FREE, _EACH, _MOST = 100_000, 100, 10_000_000
#: Jobs that a file counts for which does not tell them.
UNTOLD = _MOST // _EACH
#: The same of combinations of options; some of them come to one row.
_FREE_ROWS = 1_000
#: More than any generator makes.
_JOBS_A_DAY = 1_000


class Told(NamedTuple):
    """What a file tells: how many jobs it has, and schedules."""

    jobs: int
    schedules: int


_TOLD: ContextVar[Told | None] = ContextVar("what the file of a command tells", default=None)


@contextmanager
def bounded(told: Told) -> Iterator[None]:
    """Refuse meanwhile what would cost far more than a file tells."""
    before = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(before)


def check_generated(source: str) -> None:
    """Raise an HpcgymError within :func:`bounded` for far more jobs than are told."""
    told, (name, _, given) = _TOLD.get(), source.partition(":")
    if told is None:
        return
    most = min(_FREE + _EACH * told.jobs, _MOST)
    for pair in given.split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        try:
            asked = float(value) * {"jobs": 1, "days": _JOBS_A_DAY}.get(key, 0)
        except ValueError:
            continue  # the generator says what is wrong with it
        if asked > most:
            raise HpcgymError(
                f"its command generates far more jobs, {name}:{key}={value}, than the {most:,}"
                " that are generated for a file of its size: if you trust it, give them by"
                " --workload"
            )


def check_combinations(number: int) -> None:
    """Raise an HpcgymError within :func:`bounded` for far more combinations than schedules."""
    told = _TOLD.get()
    if told is not None and number > _FREE_ROWS + _EACH * told.schedules:
        raise HpcgymError(_too_many(number, told))


def check_simulations(number: int) -> None:
    """Raise an HpcgymError within :func:`bounded` for more simulations than schedules."""
    told = _TOLD.get()
    if told is not None and number > told.schedules:
        raise HpcgymError(_too_many(number, told))


def _too_many(number: int, told: Told) -> str:
    return f"its command makes {number:,} schedules, and the file tells {told.schedules:,}"


# --- Groups of options ----------------------------------------------------------------------------

T = TypeVar("T")

#: Title of a list in the help of a command -> function that returns (name, what it is).
Lists = dict[str, Callable[[], Iterable[tuple[str, str]]]]

#: Marks an option whose values may have commas: they separate values only where all are names, or
#: ``module:name`` of the user's own, and beside a first or last "none".
OWN_COMMAS = "own commas"
_NONE = "none"  # a rule's value that is lifted: it has no commas
_NAME = re.compile(r"[A-Za-z][\w+-]*|[^\W\d][\w.]*:[^\W\d][\w.]*")


@dataclass(frozen=True)
class Several(Generic[T]):
    """A group of options, some of which may be given several times, or several joined by commas.

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


class _Group(NamedTuple):
    """A dataclass that stands for options; the ``repeated`` ones may be given several times."""

    kind: Any
    repeated: tuple[str, ...] | None = None


class _Common:
    """What options mean of which a command's docstring says nothing.

    Arguments
    ---------
    workload WORKLOAD : A file (.swf, .swf.gz, .csv, .parquet, .json, or a site's own log: what
        sacct -P prints, accounting of PBS; - is standard input), a trace (see hpcgym traces list)
        or a generator (lublin:jobs=10000,seed=1; eurora:days=30; kit:days=7;
        light-esp:processors=180; codes:jobs=500,processes=256).

    Machine
    -------
    failures FILE : Failures of nodes on a machine of --cluster: CSV with the columns node (from 0),
        time and repaired (seconds of the workload). Jobs on a node that fails wait again and start
        from the beginning.

    Output
    ------
    format : How to print the result; numbers are in full in json and csv.
    force : Overwrite files to write that are there already.
    """


class Help(NamedTuple):
    """What help tells of a command beside its options.

    Attributes
    ----------
    examples, files : of its docstring; title -> text.
    lists : title -> what lists names with what they are; of the ``brief`` ones only the names.
    """

    examples: list[str]
    files: dict[str, str]
    lists: Lists
    brief: Lists


def grouped(
    lists: Lists | None = None, *, brief: Lists | None = None, common: Any = _Common
) -> Callable[[Callable[..., None]], Any]:
    """Return what makes a command of a function, with lists of names in its help."""
    return lambda command: _grouped(command, lists or {}, brief or {}, common)


def _grouped(command: Callable[..., None], lists: Lists, brief: Lists, common: Any) -> Any:
    """Return a command whose parameters that are dataclasses have become options, one a field.

    typer, and with it the help, sees the fields in their order in place of the dataclass; the
    command is called with an instance of it, or with :class:`Several`. A field is written as a
    parameter is, ``name: type = default``, and told in the docstring, or in that of ``common``: see
    :func:`entries_in`. Or it has ``Annotated[type, typer.Option(...)]`` for what docstrings do not
    tell, or is written as :class:`hpcgym.agents.settings.Setting` has it.

    Raises
    ------
    TypeError : two options of one name.
    """
    groups: dict[str, _Group] = {}
    shown: dict[str, Parameter] = {}
    hints = get_type_hints(command, include_extras=True)
    told = sections(command.__doc__)
    entries = entries_in(common.__doc__) | entries_in(command.__doc__)
    for name, parameter in inspect.signature(command).parameters.items():
        group = _group_of(hints[name])
        if group is not None:
            groups[name], options = group, list(_shown_options(group))
        else:
            kind = _explained(name, hints[name], parameter.default, entries)
            options = [parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)]
        for option in options:
            if option.name in shown:
                raise TypeError(f"{command.__name__} has the option {option.name!r} twice")
            shown[option.name] = option

    def arguments(values: dict[str, Any]) -> dict[str, Any]:
        made = {name: _made(*group, values) for name, group in groups.items()}
        return {**values, **made}

    @wraps(command)
    def run(**values: Any) -> None:
        command(**arguments(values))

    seen: Any = run
    files = {title: text for title, text in told.items() if title not in (*_KNOWN, *PANELS)}
    seen.arguments = arguments
    seen.told = Help(_joined(told.get("Examples", "")), files, lists, brief)
    seen.__doc__ = told[""]
    seen.__signature__ = Signature(list(shown.values()))
    seen.__annotations__ = {name: option.annotation for name, option in shown.items()}
    return run


def arguments_of(command: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a grouped command is called with, from the values of its options."""
    found: dict[str, Any] = command.arguments(dict(values))
    return found


def _group_of(kind: Any) -> _Group | None:
    """Return the group of options that an annotation is, if it is one."""
    bare, *names = _parted(kind)
    if get_origin(bare) is Several:
        (group,) = get_args(bare)
        return _Group(group, tuple(names) or tuple(field.name for field in fields(group)))
    return _Group(kind) if is_dataclass(kind) and isinstance(kind, type) else None


def _parted(annotation: Any) -> tuple[Any, ...]:
    """Return a type, and what marks it."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def _made(group: Any, repeated: Sequence[str] | None, values: dict[str, Any]) -> Any:
    """Take what is a group's out of the values of a command, and return the group."""
    given = {one.name: values.pop(one.name) for one in _options_of(group)}
    if repeated is not None:
        return _each(group, repeated, given)
    for field in fields(group):
        told, value = field.metadata.get("setting"), given.get(field.name)
        # an option of another name than the field's: its user knows no other
        if told is not None and told.options and told.check is not None and value is not None:
            told.check(told.options[0], value)
    return group(**given)


def _each(group: Any, repeated: Sequence[str], given: dict[str, Any]) -> Several[Any]:
    """Return a group with each combination of the values that options were given."""
    hints = get_type_hints(group, include_extras=True)
    named = [name for name in repeated if given[name] is not None]
    choices = {name: _values(name, given[name], hints[name]) for name in named}
    check_combinations(prod(map(len, choices.values())))
    combinations = product(*choices.values())
    each = (given | dict(zip(choices, chosen, strict=True)) for chosen in combinations)
    varied = tuple(name for name, values in choices.items() if len(values) > 1)
    return Several(tuple(group(**one) for one in each), varied)


def _values(name: str, texts: Sequence[str], hint: Any) -> list[Any]:
    """Return the values of an option that was given several times.

    Raises
    ------
    HpcgymError : what is no number of an option that takes one, or a value that is there twice.
    """
    kind, *marks = _parted(hint)
    option = f"--{name.replace('_', '-')}"
    parts = [part for text in texts for part in _parts(text, OWN_COMMAS in marks)]
    check_each_once(option, parts)
    if int not in get_args(kind):
        return list(parts)
    try:
        return [int(part) for part in parts]
    except ValueError as error:
        wrong = str(error).rpartition(": ")[2]
        raise HpcgymError(f"{option} must be a whole number, not {wrong}") from None


def _parts(text: str, own_commas: bool) -> list[str]:
    """Return the values that are joined by commas in one text."""
    if own_commas:
        first, _, rest = text.partition(",")
        if first.strip() == _NONE and rest:
            return [_NONE, *_parts(rest.strip(), own_commas)]
        rest, _, last = text.rpartition(",")
        if last.strip() == _NONE and rest:
            return [*_parts(rest.strip(), own_commas), _NONE]
        return names_in(text) or [text]
    return _split(text)


def names_in(text: str) -> list[str]:
    """Return the names that a text joins by commas; no names if a part of it is not one."""
    parts = _split(text)
    return parts if all(map(_NAME.fullmatch, parts)) else []


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _shown_options(group: _Group) -> Iterator[Parameter]:
    """Return the fields of a group as parameters of a command: lists if they may be repeated."""
    for option in _options_of(group.kind):
        if option.name not in (group.repeated or ()):
            yield option
            continue
        told = copy.copy(_told(option.annotation))
        told.metavar = f"{str(told.metavar).removesuffix('...')}..."
        yield option.replace(annotation=Annotated[list[str] | None, told])


def _told(annotation: Any) -> Any:
    """Return what an annotation says of an option or argument; None if it says nothing."""
    return next((one for one in _parted(annotation)[1:] if isinstance(one, _INFO)), None)


def _options_of(group: Any) -> Iterator[Parameter]:
    """Return the fields of a dataclass as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    entries: dict[str, Entry] = {}
    for one in (_Common, *reversed(group.__mro__)):
        entries |= entries_in(one.__dict__.get("__doc__"))
    for field in fields(group):
        kind, told = hints[field.name], field.metadata.get("setting")
        default = Parameter.empty if field.default is MISSING else field.default
        if told is None:
            kind = _explained(field.name, kind, default, entries)
        elif told.options is None:
            continue
        else:
            kind = Annotated[kind, _option(told, field.default)]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _option(told: Setting, default: Any) -> Any:
    """Return the option of an agent's setting."""
    shown = told.shown or default is not None
    return typer.Option(
        *told.options or (),
        metavar=told.metavar,
        help=told.meaning,
        show_default=shown,
        rich_help_panel="Experiment",
    )


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


def entries_in(docstring: str | None) -> dict[str, Entry]:
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
        shown.autocompletion = told.autocompletion or COMPLETED.get(name)
    return Annotated[(bare, *(one for one in marks if one is not told), shown)]
