"""How commands run: help with lists of names, errors in one line, progress for people only."""

from __future__ import annotations

import copy
import inspect
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from hpcgym.cli.files import as_given, check_files, digests_of_read, streamed
from hpcgym.cli.groups import PANELS
from hpcgym.cli.interrupts import interruptible
from hpcgym.errors import (
    DroppedJobsWarning,
    HpcgymError,
    HpcgymWarning,
    ReplacedRuleWarning,
    reworded,
)
from hpcgym.files.recorded import Command, commanded, date_text
from hpcgym.words import counted

# --- How commands run -----------------------------------------------------------------------------

_ARGUMENTS = "hpcgym.arguments"  # in what contexts keep: those that were typed
#: Whether ``--explain-warnings`` was typed, in what contexts keep.
EXPLAINS = "hpcgym.explains"
#: Whether help tells everything, in what contexts keep.
WHOLE = "hpcgym.whole"


class Program(TyperGroup):
    """The whole program: whatever a user can cause ends in one line and an exit code."""

    def make_context(self, info_name: Any, args: Any, *rest: Any, **more: Any) -> Any:
        """Read the options; 130 after Ctrl-C, 143 after SIGTERM."""
        with interruptible():
            return super().make_context(info_name, args, *rest, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; 1 after an error, 130 after Ctrl-C, 143 after SIGTERM."""
        try:
            with interruptible(), _warnings_in_a_line(ctx.meta):
                value = super().invoke(ctx)
            sys.stdout.flush()  # an output that has been closed is noticed here, not at exit
        except BrokenPipeError:
            raise  # the reader, such as head, has gone: typer ends quietly, with 1
        except HpcgymError as error:
            _fail(str(error))
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # typer adds this
            raise
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError:
            _fail("not enough memory for this workload")
        return value


_MOST_WARNINGS = 5  # lines of a command
_ALWAYS = (DroppedJobsWarning, ReplacedRuleWarning)  # however many other lines there are


def group_of(name: str) -> typer.Typer:
    """Return a command that has others below it."""
    return typer.Typer(name=name, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@contextmanager
def _warnings_in_a_line(told: Mapping[str, Any]) -> Iterator[None]:
    """Show hpcgym's own warnings once each, without the place in the code that gave them.

    They are five lines at most: the last says what is left. With ``--explain-warnings`` all are
    shown, and those that sum something up are followed by all of it.
    """
    with warnings.catch_warnings():
        usual = warnings.showwarning
        said: set[str] = set()
        shortened = False
        left: list[str] = []  # of which nothing has been shown yet

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            nonlocal shortened
            if not issubclass(category, HpcgymWarning):
                usual(message, category, *where, **more)
                return
            if str(message) in said:  # by another part of the library
                return
            said.add(str(message))
            text = f"hpcgym: {as_given(str(message))}"
            shortened |= len(message.details) > 1
            hides = len(said) >= _MOST_WARNINGS and not issubclass(category, _ALWAYS)
            if hides and not told.get(EXPLAINS):
                left.append(text)
                return
            note(text)
            if told.get(EXPLAINS):
                for one in message.details:
                    note(f"    {as_given(one)}")

        warnings.showwarning = show
        try:
            yield
        finally:
            if len(left) > 1 or (left and shortened):
                more = counted(len(left), "more warning")
                note(f"hpcgym: {more}: hpcgym --explain-warnings COMMAND lists all of all kinds")
            elif left:
                note(left[0])
            elif shortened and not told.get(EXPLAINS):
                note("hpcgym: hpcgym --explain-warnings COMMAND lists all of each kind")


def _tell_rule(error: Any, known: Collection[str | None]) -> None:
    """Tell how schedulers and rules are given, of words and options that a command has not."""
    from hpcgym.scheduler.rules import RULES

    option = str(getattr(error, "option_name", ""))
    if "scheduler" in known and "extra argument" in str(getattr(error, "message", "")):
        error.message += ". Schedulers are joined by commas: --scheduler easy,saf"
    rule = option.removeprefix("--").replace("-", "_")
    if rule in RULES and "scheduler" in known:
        error.possibilities = None
        error.message += f". Give the rule with the scheduler: --scheduler easy:{rule}=..."


def _by_options(ctx: Any, message: str) -> str:
    """Return a message that says which option to give, where it says which argument of Python."""
    known = {one.name for one in ctx.command.params}

    def option(found: re.Match[str]) -> str:
        name = found[1]
        return f"give --{name.replace('_', '-')} " if name in known else found[0]

    message = message.replace("give simulate() speedups", "give speedups=")
    return re.sub(r"\bgive (\w+)=", option, message)


def _fail(message: str) -> NoReturn:
    """End the program with one line on the error stream."""
    typer.echo(f"hpcgym: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


_FIRST = 2  # examples at the top of help
_SCREEN = 60  # lines of help


class ExplainedCommand(TyperCommand):
    """A command whose help has examples, and lists of names that are looked up only then.

    Help is plain text, which pipes and old terminals show as well: typer's panels by rich are off,
    and options stand below plain headings instead (:data:`PANELS`). The files that a command is to
    write are checked before it runs.
    """

    callback: Any  # what :func:`hpcgym.cli.groups.grouped` has made

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **more: Any) -> Any:
        """Read the options; keep the words for files that are written."""
        words = () if parent is None else (*parent.command_path.split()[1:], info_name)
        ctx = super().make_context(info_name, [*args], parent, **more)  # parsing empties the list
        ctx.meta[_ARGUMENTS] = [*words, *args]
        return ctx

    def parse_args(self, ctx: Any, args: Any) -> Any:
        """Read the options; --help-all tells everything, and -h what most people use."""
        ctx.meta[WHOLE] = "--help-all" in args
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _tell_rule(error, {one.name for one in self.params})
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command, if it can write the files that it is to write."""
        with streamed(ctx.params):
            check_files(self.callback, ctx.params)
            find_files = partial(digests_of_read, self.callback, ctx.params)
            try:
                with commanded(Command(ctx.meta[_ARGUMENTS], find_files, date_text())):
                    return super().invoke(ctx)
            except HpcgymError as error:
                raise reworded(error, _by_options(ctx, str(error))) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write all help if it fits a screen, or with ``--help-all``; else what most people use."""
        short = not _whole(ctx)
        ctx.meta[WHOLE] = True
        whole = ctx.make_formatter()
        super().format_help(ctx, whole)
        text = whole.getvalue()
        if short and len(text.splitlines()) > _SCREEN:
            ctx.meta[WHOLE] = False
            super().format_help(ctx, formatter)
        else:
            formatter.write(text)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does, with examples behind the first sentence."""
        short, _, rest = inspect.cleandoc(self.help or "").partition("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(short)
            formatter.write_paragraph()
            with formatter.indentation():
                _write_lines(formatter, self.callback.told.examples[:_FIRST])
            if rest and _whole(ctx):
                formatter.write_paragraph()
                formatter.write_text(rest)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options below their headings."""
        found: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in ("Arguments", "Options", *PANELS)
        }
        for one in self._shown(ctx):
            record = one.get_help_record(ctx)
            if record is not None:
                found[_heading(one)].append(record)
        for heading, records in found.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def _shown(self, ctx: Any) -> list[Any]:
        """Return the options that help tells of: all, or what most people use, in a line each."""
        params = self.get_params(ctx)
        return params if _whole(ctx) else [_brief(one) for one in params if not _rare(one)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write files, more examples and lists below the options, or where they are told of."""
        if not _whole(ctx):
            left = sum(map(_rare, self.get_params(ctx)))
            formatter.write_paragraph()
            formatter.write_text(f"--help-all explains these and {left} more options in full.")
            if any(one.name == "clean" for one in self.params):
                formatter.write_text("hpcgym list names schedulers, policies, estimates, machines.")
            return
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


#: What ``-h`` leaves out: headings, and options below others.
_RARE_HEADINGS = ("Power", "Shared nodes", "Running")
_RARE = {
    "arrivals", "backfill_order", "correction", "dependencies", "dispatch_time",
    "errors", "failures", "fair_share", "fields", "figures", "force",
    "hold", "horizon", "log", "maintenance", "pair_estimate", "passes", "penalty",
    "policy_estimate", "population", "preemption", "quota", "reference", "restarts",
    "samples", "scale", "sigma", "start", "tensorboard", "train_share", "tz",
    "warmup",
}  # fmt: skip


def _whole(ctx: Any) -> bool:
    """Return whether help tells everything."""
    return bool(ctx.meta.get(WHOLE))


def _rare(parameter: Any) -> bool:
    if parameter.name == "help":
        return False
    return parameter.name in _RARE or parameter.rich_help_panel in _RARE_HEADINGS


_MOST = 16  # letters that short help has of what an option takes
_LEAST = 12  # of what it is


def _brief(parameter: Any) -> Any:
    """Return a parameter whose help is its first clause, and what it takes in a few letters."""
    short = copy.copy(parameter)
    text = parameter.help or ""
    ends = (found.start() for found in re.finditer("[.:;] |[.;]$", text))
    short.help = f"{text[: next((end for end in ends if end >= _LEAST), len(text))]}."
    if isinstance(short.show_default, str) and len(short.show_default) > _MOST:
        short.show_default = False
    takes = parameter.metavar or ""
    if len(takes) > _MOST:
        first = takes[:_MOST].rpartition("|")[0] or takes.partition("|")[0]
        short.metavar = f"{first.removesuffix('|...')}|..."
    return short


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
