"""How commands run: help with lists of names, errors in one line, progress for people only."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from hpcgym.cli import interruptible
from hpcgym.cli.files import as_given, check_files, digests_of_read, standard_streams
from hpcgym.cli.groups import PANELS
from hpcgym.errors import HpcgymError, HpcgymWarning, nearest, reworded
from hpcgym.files import toml_file
from hpcgym.files.recorded import Command, commanded, date_text

# --- ``hpcgym --config FILE COMMAND`` -------------------------------------------------------------
#
# [simulate] scheduler = "saf" threshold = "5h"
#
# [train.xnes] budget = 2000

_FILE = "hpcgym.config"  # in what contexts keep: the path, and what of_group returns

#: Words of a command -> option -> the arguments that the file has in place of it.
Given = dict[tuple[str, ...], dict[Any, list[str]]]


def follow(context: Any, path: Path) -> None:
    """Put the options of a file before those of the command line, which win.

    Raises
    ------
    HpcgymError : it cannot be read, or names no command or option, or gives an option what it does
        not take; the message names the file and the key.
    """
    try:
        context.meta[_FILE] = path, _of_group(context.command, toml_file(path), ())
    except TypeError as error:
        raise HpcgymError(f"{path}: {error}") from None


def _of_group(group: Any, table: Mapping[str, Any], before: tuple[str, ...]) -> Given:
    """Return the arguments of all commands of a group; a TypeError says what is wrong."""
    found: Given = {}
    for name, values in table.items():
        words = (*before, name)
        command = group.commands.get(name)
        if command is None:
            known = nearest(name, group.commands)
            raise TypeError(f"hpcgym has no command {' '.join(words)}; {known}")
        if not isinstance(values, Mapping):
            raise TypeError(f"{name} is a command: its options stand below [{name}]")
        if hasattr(command, "commands"):
            found |= _of_group(command, values, words)
            continue
        options = {name: one for one in command.params for name in one.opts if name[:2] == "--"}
        found[words] = {}
        for key, value in values.items():
            if (option := options.get(f"--{key}")) is None:
                known = nearest(key, [name[2:] for name in options])
                raise TypeError(f"hpcgym {' '.join(words)} has no option --{key}; {known}")
            try:
                found[words][option] = _arguments(f"--{key}", option, value)
            except TypeError as error:
                raise TypeError(f"{'.'.join(words)}.{key} {error}") from None
    return found


def _arguments(name: str, option: Any, value: Any) -> list[str]:
    """Return a value of the file as arguments of the command line."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise TypeError(f"must be true or false, not {value!r}")
        return [name] if value else option.secondary_opts[:1]
    if isinstance(value, list) and not option.multiple:
        raise TypeError("takes one value, not a list")
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise TypeError(f"must be a text or a number, not {one!r}")
    return [f"{name}={one}" for one in values]


def _from_file(context: Any, words: Sequence[str], typed: Iterable[str]) -> list[str]:
    """Return the arguments that the file has for a command, but for options that are typed."""
    names = {one.partition("=")[0] for one in typed}
    options = context.meta.get(_FILE, (None, {}))[1].get(tuple(words), {})
    parts = [more for one, more in options.items() if names.isdisjoint(one.opts)]
    return [argument for part in parts for argument in part]


# --- How commands run -----------------------------------------------------------------------------

#: What typer says of a value that is no number -> what is said.
_NO_NUMBER = {
    "Input should be a valid integer, unable to parse string as an integer": "no whole number",
    "Input should be a valid number, unable to parse string as a number": "no number",
}
_ARGUMENTS = "hpcgym.arguments"  # in what contexts keep: those of the file, and typed ones
_OF_FILE = "hpcgym.options"  # likewise: the file, if it has options of the command


class Commands(TyperGroup):
    """The whole program: whatever a user can cause ends in one line and an exit code."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **more: Any) -> Any:
        """Read the options; 130 after Ctrl-C."""
        with interruptible():
            return super().make_context(info_name, args, *rest, **more)

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
            if (file := error.ctx and error.ctx.meta.get(_OF_FILE)) is None:
                raise
            _fail(f"{error.format_message()} (with the options of {file})")
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

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **more: Any) -> Any:
        """Read the options of the file before those that are typed; keep all for files written."""
        words = () if parent is None else (*parent.command_path.split()[1:], info_name)
        given = [] if parent is None else _from_file(parent, words, args)
        if given:
            parent.meta[_OF_FILE] = parent.meta[_FILE][0]
        arguments = [*given, *args]  # parsing empties the list
        ctx = super().make_context(info_name, [*arguments], parent, **more)
        ctx.meta[_ARGUMENTS] = [*words, *arguments]
        return ctx

    def invoke(self, ctx: Any) -> Any:
        """Run the command, if it can write the files that it is to write."""
        with standard_streams(self.callback, ctx.params):
            check_files(self.callback, ctx.params)
            find_files = partial(digests_of_read, self.callback, ctx.params)
            try:
                with commanded(Command(ctx.meta[_ARGUMENTS], find_files, date_text())):
                    return super().invoke(ctx)
            except HpcgymError as error:
                file = ctx.meta.get(_OF_FILE)
                also = f" (with the options of {file})" if file else ""
                raise reworded(error, _by_options(ctx, str(error)) + also) from None

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
