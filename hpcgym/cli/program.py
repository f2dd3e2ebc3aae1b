"""The commands of ``hpcgym``, each imported when it is called."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

import click

from hpcgym.cli import completion
from hpcgym.cli.running import EXPLAINS, Program
from hpcgym.starting import hear
from hpcgym.version import __version__

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
    },
    "Results that others can trust": {
        "reproduce": ("reproduce", "Compute a published study anew, beside its published values."),
        "verify": ("verify", "Make files again by the command that each has recorded."),
    },
}  # fmt: skip
_MODULES = {name: module for of in COMMANDS.values() for name, (module, _) in of.items()}


class _Commands(Program):
    """All commands, of which only the one that is called is imported."""

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


@click.group(
    "hpcgym",
    cls=_Commands,
    epilog="hpcgym COMMAND -h explains a command, with examples.",
    context_settings={  # commands have them from here
        "help_option_names": ["-h", "--help", "--help-all"],
        "max_content_width": 120,
    },
)
@click.version_option(__version__, message="hpcgym %(version)s", help="Print the version.")
@click.option("--explain-warnings", is_flag=True, help="List all that warnings sum up.")
@completion.install
@completion.show
@click.pass_context
def app(ctx: click.Context, explain_warnings: bool) -> None:
    """Exact simulation of batch scheduling on HPC machines: real traces in, schedules out."""
    ctx.meta[EXPLAINS] = explain_warnings


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode is no reason to fail
    app(prog_name="hpcgym")
