"""How commands run: help with lists of names, errors in one line, progress for people only."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from hpcgym.cli.files import as_given, check_files, digests_of_read, standard_streams
from hpcgym.cli.groups import PANELS
from hpcgym.cli.interruption import interruptible
from hpcgym.errors import HpcgymError, HpcgymWarning, nearest, reworded
from hpcgym.files import toml_file
from hpcgym.files.recorded import Command, commanded, date_text

# --- ``hpcgym --config FILE COMMAND`` -------------------------------------------------------------
#
# [simulate] scheduler = "saf" threshold = "5h"
#
# [train.xnes] budget = 2000

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


# --- How commands run -----------------------------------------------------------------------------

#: What typer says of a value that is no number -> what is said.
_NO_NUMBER = {
    "Input should be a valid integer, unable to parse string as an integer": "no whole number",
    "Input should be a valid number, unable to parse string as a number": "no number",
}
_ARGUMENTS = "hpcgym.arguments"  # of the command line, in what contexts keep


class Commands(TyperGroup):
    """The whole program: whatever a user can cause ends in one line and an exit code."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **more: Any) -> Any:
        """Keep the arguments: what commands write tells them."""
        given = tuple(args)  # parsing empties the list
        with interruptible():
            ctx = super().make_context(info_name, args, *rest, **more)
        ctx.meta[_ARGUMENTS] = given
        return ctx

    def invoke(self, ctx: Any) -> Any:
        """Run a command; 1 after an error, 130 after Ctrl-C."""
        try:
            with interruptible(), _warnings_in_a_line():
                value = super().invoke(ctx)
            sys.stdout.flush()  # an output that has been closed is noticed here, not at exit
        except BrokenPipeError:
            raise  # the reader, such as head, has gone: typer ends quietly, with 1
        except HpcgymError as error:
            _fail(str(error))
        except typer.BadParameter as error:
            message = error.message.removeprefix("Value error, ")  # of whom typer asks
            error.message = _NO_NUMBER.get(message, message)
            if (said := wrong_in_file(error)) is None:
                raise
            _fail(said)
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError:
            _fail("not enough memory for this workload")
        return value


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show hpcgym's own warnings once each, without the place in the code that gave them."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        said: set[str] = set()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, HpcgymWarning):
                if str(message) in said:  # by another part of the library
                    return
                said.add(str(message))
                note(f"hpcgym: {as_given(str(message), 'standard input')}")
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _by_options(ctx: Any, message: str) -> str:
    """Return a message that says which option to give, where it says which argument of Python."""
    known = {one.name for one in ctx.command.params}

    def option(found: re.Match[str]) -> str:
        name = found[1]
        return f"give --{name.replace('_', '-')} " if name in known else found[0]

    return re.sub(r"\bgive (\w+)=", option, message)


def _fail(message: str) -> NoReturn:
    """End the program with one line on the error stream."""
    typer.echo(f"hpcgym: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


_FIRST = 2  # examples at the top of help


class ExplainedCommand(TyperCommand):
    """A command whose help has examples, and lists of names that are looked up only then.

    Help is plain text, which pipes and old terminals show as well: typer's panels by rich are off,
    and options stand below plain headings instead (:data:`PANELS`). The files that a command is to
    write are checked before it runs.
    """

    callback: Any  # what :func:`hpcgym.cli.groups.grouped` has made

    def invoke(self, ctx: Any) -> Any:
        """Run the command, if it can write the files that it is to write."""
        with standard_streams(self.callback, ctx.params):
            check_files(self.callback, ctx.params)
            find_files = partial(digests_of_read, self.callback, ctx.params)
            arguments = arguments_of(ctx, ctx.meta.get(_ARGUMENTS, ()))
            try:
                with commanded(Command(arguments, find_files, date_text())):
                    return super().invoke(ctx)
            except HpcgymError as error:
                raise reworded(error, _by_options(ctx, named_in(ctx, str(error)))) from None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does, with examples behind the first sentence."""
        short, _, rest = inspect.cleandoc(self.help or "").partition("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(short)
            formatter.write_paragraph()
            with formatter.indentation():
                _write_lines(formatter, self.callback.told.examples[:_FIRST])
            if rest:
                formatter.write_paragraph()
                formatter.write_text(rest)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options below their headings."""
        found: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in ("Arguments", "Options", *PANELS)
        }
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is not None:
                found[_heading(one)].append(record)
        for heading, records in found.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write files, more examples and lists below the options."""
        told = self.callback.told
        for title, text in told.files.items():
            with formatter.section(title):
                _write_lines(formatter, text.splitlines())
        if more := told.examples[_FIRST:]:
            with formatter.section("More examples"):
                _write_lines(formatter, more)
        for title, entries in told.lists.items():
            with formatter.section(title):
                formatter.write_dl(list(entries()), col_max=28)
        for title, entries in told.brief.items():
            with formatter.section(title):
                text = ", ".join(name for name, _ in entries())
                width = formatter.width - formatter.current_indent
                _write_lines(formatter, wrap(text, width, break_on_hyphens=False))
        if told.brief:
            formatter.write_paragraph()
            formatter.write_text("hpcgym simulate -h says what these names mean.")


def _heading(parameter: Any) -> str:
    """Return the heading of an argument or option in help; that of --help itself is the last."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name == "help":
        return "Running"
    return parameter.rich_help_panel or "Options"


def _write_lines(formatter: Any, lines: Iterable[str]) -> None:
    """Write lines as they are, to be copied."""
    for line in lines:
        formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")


def note(text: str) -> None:
    """Tell the user something that is no result."""
    typer.echo(text, err=True)
