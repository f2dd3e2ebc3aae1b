"""The commands of ``hpcgym``, put together."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from hpcgym.cli.calibrate import calibrate
from hpcgym.cli.evaluate import evaluate
from hpcgym.cli.explore import explain, explore
from hpcgym.cli.generate import generate
from hpcgym.cli.machines import machines
from hpcgym.cli.reproduce import reproduce
from hpcgym.cli.running import Commands, ExplainedCommand
from hpcgym.cli.simulate import compare, simulate
from hpcgym.cli.slurm import drive, replay
from hpcgym.cli.suite import suite
from hpcgym.cli.sweep import sweep
from hpcgym.cli.traces import traces
from hpcgym.cli.train import train
from hpcgym.cli.tune import tune
from hpcgym.cli.verify import verify
from hpcgym.version import __version__

app = typer.Typer(
    name="hpcgym",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={  # commands have them from here
        "help_option_names": ["-h", "--help"],
        "max_content_width": 120,
    },
)
for command in (
    *(simulate, compare, explain, explore, replay, drive, verify, evaluate, tune, calibrate),
    *(machines, generate),
):
    app.command(cls=ExplainedCommand)(command)
for group in (train, reproduce, suite, sweep, traces):
    app.add_typer(group)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hpcgym {__version__}")
        raise typer.Exit


@app.callback(epilog="hpcgym COMMAND --help explains a command, with examples.")
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Exact simulation of batch scheduling on HPC machines: real traces in, schedules out."""


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode is no reason to fail
    app(prog_name="hpcgym")
