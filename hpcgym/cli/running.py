"""How a command runs whose docstring tells of its options: help, and files that are checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial, wraps
from typing import Any

import click

from hpcgym.cli.files import check_files, digests_of_read, streamed
from hpcgym.cli.groups import HEADINGS, joined, options_of, sections
from hpcgym.errors import HpcgymError, reworded
from hpcgym.files.recorded import Command, commanded, date_text

# --- How commands run -----------------------------------------------------------------------------

_ARGUMENTS = "hpcgym.arguments"  # in what contexts keep: those that were typed
_WHOLE = "hpcgym.whole"  # whether ``--help-all`` was typed


def _tell_rule(error: Any, known: Collection[str | None]) -> None:
    """Tell how schedulers and rules are given, of words and options that a command has not."""
    from hpcgym.scheduler.rules import RULES

    option = str(getattr(error, "option_name", ""))
    if "scheduler" in known and "extra argument" in str(getattr(error, "message", "")):
        _add(error, "Schedulers are joined by commas: --scheduler easy,saf")
    rule = option.removeprefix("--").replace("-", "_")
    if rule in RULES and "scheduler" in known:
        error.possibilities = None
        _add(error, f"Give the rule with the scheduler: --scheduler easy:{rule}=...")


def _add(error: Any, sentence: str) -> None:
    error.message = f"{error.message.removesuffix('.')}. {sentence}"


def _by_options(ctx: Any, message: str) -> str:
    """Return a message that says which option to give, where it says which argument of Python."""
    known = {parameter.name for parameter in ctx.command.params}

    def option(match: re.Match[str]) -> str:
        name = match[1]
        return f"give --{name.replace('_', '-')} " if name in known else match[0]

    message = message.replace("give simulate() speedups", "give speedups=")
    return re.sub(r"\bgive (\w+)=", option, message)


_FIRST = 2  # examples at the top of help
_SCREEN = 60  # lines of help


#: Title of a list in the help of a command -> function that returns (name, what it is).
Lists = Mapping[str, Callable[[], Iterable[tuple[str, str]]]]


class _Helped(click.Command):
    """A command whose help has the options of each call: click keeps those of the first one."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option that shows help, made anew where the program calls it otherwise."""
        kept = self._help_option
        if kept is not None and kept.opts != self.get_help_option_names(ctx):
            self._help_option = None
        return super().get_help_option(ctx)


class ExplainedCommand(_Helped):
    """A command whose options its function's docstring tells of, with examples.

    Options stand below headings (:data:`hpcgym.cli.groups.HEADINGS`); lists of names are looked up
    only for help. The files that a command is to write are checked before it runs.

    Attributes
    ----------
    examples, files : lines of its docstring; of files by their titles.
    lists : title -> what lists names with what they are.
    written : name of a parameter that names what to write -> what marks it.
    """

    callback: Callable[..., None]

    def __init__(
        self, name: str, callback: Callable[..., None], lists: Lists | None = None, **settings: Any
    ) -> None:
        group, parts = options_of(callback), sections(callback.__doc__)

        @wraps(callback)
        def run(**values: Any) -> None:
            callback(**group.made(values))

        settings |= {"params": group.options, "help": parts.pop("")}
        super().__init__(name, callback=run, **settings)
        marks = {str(option.name): option.written for option in group.options}
        self.written = {name: mark for name, mark in marks.items() if mark is not None}
        self.examples, self.lists = joined(parts.pop("Examples", "")), lists or {}
        self.files = {
            title: text.splitlines() for title, text in parts.items() if title not in HEADINGS
        }

    def parse_args(self, ctx: Any, args: Any) -> Any:
        """Read the options; keep the words for files that are written."""
        ctx.meta[_ARGUMENTS] = [*ctx.command_path.split()[1:], *args]  # parsing empties the list
        ctx.meta[_WHOLE] = "--help-all" in args
        try:
            self._check_once(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _tell_rule(error, {parameter.name for parameter in self.params})
            raise

    def _check_once(self, ctx: Any, args: Any) -> None:
        """Refuse an option of one value that is given twice: the first would count for nothing."""
        for option in (order := self.make_parser(ctx).parse_args([*args])[2]):
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
            if single and order.count(option) > 1:
                raise click.UsageError(f"{option.opts[0]} is there twice; it takes one value", ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, if it can write the files that it is to write."""
        with streamed(ctx.params):
            check_files(self.written, ctx.params)
            find_files = partial(digests_of_read, self.written, ctx.params)
            try:
                with commanded(Command(ctx.meta[_ARGUMENTS], find_files, date_text())):
                    return super().invoke(ctx)
            except HpcgymError as error:
                raise reworded(error, _by_options(ctx, str(error))) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write all help if it fits a screen, or with ``--help-all``; else what most people use."""
        whole = ctx.make_formatter()
        self._write_help(ctx, whole, brief=False)
        text = whole.getvalue()
        if ctx.meta.get(_WHOLE) or len(text.splitlines()) <= _SCREEN:
            formatter.write(text)
        else:
            self._write_help(ctx, formatter, brief=True)

    def _write_help(self, ctx: Any, formatter: Any, *, brief: bool) -> None:
        """Write what the command does, examples behind the first sentence, and the options.

        Then files, more examples and lists, or where they are told of.
        """
        self.format_usage(ctx, formatter)
        short, _, rest = str(self.help).partition("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(short)
            formatter.write_paragraph()
            with formatter.indentation():
                _write_lines(formatter, self.examples[:_FIRST])
            if rest and not brief:
                formatter.write_paragraph()
                formatter.write_text(rest)
        options = self.get_params(ctx)
        shown = [_brief(option) for option in options if not _rare(option)] if brief else options
        for heading in HEADINGS:
            if below := [
                option.get_help_record(ctx) for option in shown if _heading(option) == heading
            ]:
                with formatter.section(heading):
                    formatter.write_dl(below)
        if brief:
            left = len(options) - len(shown)
            formatter.write_paragraph()
            formatter.write_text(f"--help-all explains these and {left} more options in full.")
            if any(option.name == "clean" for option in options):
                formatter.write_text("hpcgym list names schedulers, policies, estimates, machines.")
            return
        for title, lines in (*self.files.items(), ("More examples", self.examples[_FIRST:])):
            if lines:
                with formatter.section(title):
                    _write_lines(formatter, lines)
        for title, entries in self.lists.items():
            with formatter.section(title):
                formatter.write_dl(list(entries()), col_max=28)


class Commands(_Helped, click.Group):
    """A command that has such commands below it, in their order."""

    command_class = ExplainedCommand

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names."""
        return [*self.commands]


#: Makes a command of a function, of which more is in :class:`ExplainedCommand`.
explained = partial(click.command, cls=ExplainedCommand)

#: What ``-h`` leaves out: headings, and options below others.
_RARE_HEADINGS = ("Power", "Shared nodes", "Running")
_RARE = {
    "arrivals", "backfill_order", "candidate_estimate", "correction", "dependencies",
    "dispatch_time", "errors", "failures", "fair_share", "fields", "figures", "force",
    "hold", "horizon", "log", "maintenance", "pair_estimate", "passes", "penalty",
    "policy_estimate", "population", "preemption", "quota", "reference", "relax", "restarts",
    "samples", "scale", "sigma", "start", "tensorboard", "train_share", "tz",
    "warmup",
}  # fmt: skip


def _rare(parameter: Any) -> bool:
    if "--help" in parameter.opts:
        return False
    return parameter.name in _RARE or _heading(parameter) in _RARE_HEADINGS


_MOST = 16  # letters that short help has of what an option takes
_LEAST = 12  # of what it is


def _brief(parameter: Any) -> Any:
    """Return a parameter whose help is its first clause, and what it takes in a few letters."""
    short = copy.copy(parameter)
    text = parameter.help or ""
    ends = (match.start() for match in re.finditer("[.:;] |[.;]$", text))
    short.help = f"{text[: next((end for end in ends if end >= _LEAST), len(text))]}."
    if len(str(getattr(short, "show_default", ""))) > _MOST:
        short.show_default = False
    takes = parameter.metavar or ""
    if len(takes) > _MOST:
        first = takes[:_MOST].rpartition("|")[0] or takes.partition("|")[0]
        short.metavar = f"{first.removesuffix('|...')}|..."
    return short


def _heading(parameter: Any) -> str:
    """Return the heading of an argument or option in help; that of --help itself is the last."""
    return str(getattr(parameter, "heading", HEADINGS[-1]))


def _write_lines(formatter: Any, lines: Iterable[str]) -> None:
    """Write lines as they are, to be copied."""
    for line in lines:
        formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")


def note(text: str) -> None:
    """Tell the user something that is no result."""
    click.echo(text, err=True)
