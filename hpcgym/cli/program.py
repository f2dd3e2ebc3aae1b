"""The program ``hpcgym``: commands that are imported when they are called, errors in one line."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import click

from hpcgym.cli.completion import offered
from hpcgym.cli.files import as_given
from hpcgym.cli.interrupts import interruptible
from hpcgym.cli.running import Commands, note
from hpcgym.errors import DroppedJobsWarning, HpcgymError, HpcgymWarning, ReplacedRuleWarning
from hpcgym.starting import hear
from hpcgym.version import __version__
from hpcgym.words import counted

#: Heading -> command -> its module, with the function if it has another name, and what it does.
COMMANDS = {
    "Begin": {
        "demo": ("demo", "A week of a machine under two rules, and why one job waited."),
    },
    "Simulate": {
        "simulate": ("simulate", "One scheduler on a workload: its metrics, its schedule."),
        "compare": ("simulate", "Several schedulers, the best of each metric marked."),
        "explain": ("explore", "Why a job waited, or what all jobs waited for."),
        "explore": ("explore", "Look into a schedule in the browser, down to each job."),
        "when": ("when", "When jobs start that wait, or that you may submit: with what chance."),
        "tune": ("tune", "Search for the scheduler that serves your log best."),
        "sweep": ("sweep", "Many simulations, on one core or on a cluster."),
    },
    "Workloads and machines": {
        "traces": ("traces", "List, show and fetch real traces; look at your own log."),
        "generate": ("generate", "Write a generated workload into a file."),
        "machines": ("machines", "List the ready-made machines, or print one."),
        "list": ("names:list_names", "The names of schedulers, policies, estimates and the like."),
    },
    "Learn": {
        "train": ("train", "Train agents that learn to schedule."),
        "evaluate": ("evaluate", "Compare agents and schedulers on unseen parts of a workload."),
        "suite": ("suite", "Play the tasks of the benchmark, and compare what is reached."),
    },
    "Your own Slurm": {
        "calibrate": ("calibrate", "Which settings explain how a log's past differs."),
        "replay": ("slurm", "Run a workload on a private, unmodified Slurm, and compare."),
        "drive": ("slurm", "Let a policy order the queue of this machine's Slurm."),
        "twin": ("twin", "When all jobs of this machine's Slurm start: kept, scored, served."),
    },
    "Results that others can trust": {
        "reproduce": ("reproduce", "Compute a published study anew, beside its published values."),
        "verify": ("verify", "Make files again by the command that each has recorded."),
    },
}  # fmt: skip
_MODULES = {name: module for of in COMMANDS.values() for name, (module, _) in of.items()}


_EXPLAINS = "hpcgym.explains"  # whether ``--explain-warnings`` was typed, in what contexts keep
_MOST_WARNINGS = 5  # lines of a command
_ALWAYS = (DroppedJobsWarning, ReplacedRuleWarning)  # however many other lines there are


@contextmanager
def _warnings_in_a_line(values: Mapping[str, Any]) -> Iterator[None]:
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
            if hides and not values.get(_EXPLAINS):
                left.append(text)
                return
            note(text)
            if values.get(_EXPLAINS):
                for detail in message.details:
                    note(f"    {as_given(detail)}")

        warnings.showwarning = show
        try:
            yield
        finally:
            if len(left) > 1 or (left and shortened):
                more = counted(len(left), "more warning")
                note(f"hpcgym: {more}: hpcgym --explain-warnings COMMAND lists all of all kinds")
            elif left:
                note(left[0])
            elif shortened and not values.get(_EXPLAINS):
                note("hpcgym: hpcgym --explain-warnings COMMAND lists all of each kind")


def _fail(message: str) -> NoReturn:
    """End the program with one line on the error stream."""
    note(f"hpcgym: {' '.join(message.split())}")
    raise click.exceptions.Exit(1)


class Program(Commands):
    """All commands, of which only the one that is called is imported.

    Whatever a user can cause ends in one line and an exit code.
    """

    def __init__(self, **settings: Any) -> None:
        """Know the names of all commands, of which click suggests the nearest for an unknown."""
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(_MODULES)

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command by its name; None if the command is unknown."""
        if name in _MODULES and self.commands[name] is None:
            module, _, function = _MODULES[name].partition(":")
            self.commands[name] = getattr(import_module(f"hpcgym.cli.{module}"), function or name)
            hear()  # from here on there may be something to save
        return self.commands.get(name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what the commands do, below headings."""
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, meaning) for name, (_, meaning) in commands.items()])

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
            raise  # the reader, such as head, has gone: click ends quietly, with 1
        except HpcgymError as error:
            _fail(str(error))
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError:
            _fail("not enough memory for this workload")
        return value


@click.group(
    "hpcgym",
    cls=Program,
    epilog="hpcgym COMMAND -h explains a command, with examples.",
    context_settings={  # commands have them from here
        "help_option_names": ["-h", "--help", "--help-all"],
        "max_content_width": 120,
    },
)
@click.version_option(__version__, message="hpcgym %(version)s", help="Print the version.")
@click.option("--explain-warnings", is_flag=True, help="List all that warnings sum up.")
@offered
@click.pass_context
def app(ctx: click.Context, explain_warnings: bool) -> None:
    """Exact simulation of batch scheduling on HPC machines: real traces in, schedules out."""
    ctx.meta[_EXPLAINS] = explain_warnings


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode is no reason to fail
    app(prog_name="hpcgym")
