"""Completion at TAB in bash, zsh and fish."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import get_completion_class

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: Shell -> what it reads at its start. The script of fish lies there, and those of the others
#: beside it.
_READ = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/hpcgym.fish"}


def _complete(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the script of the user's shell, or put it where the shell finds it; then end."""
    if not wanted or ctx.resilient_parsing:
        return
    shell = Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if shell not in _READ or kind is None:
        raise click.UsageError(f"the shell must be {', '.join(_READ)}, not {shell or 'unknown'}")
    script = kind(click.Group(), {}, "hpcgym", "_HPCGYM_COMPLETE").source()
    if option.name == "show_completion":
        click.echo(script)
        ctx.exit()
    read = Path.home() / _READ[shell]
    file = read if shell == "fish" else Path.home() / f".hpcgym-complete.{shell}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script)
    line = f". {file}\n"
    if file != read and line not in (read.read_text() if read.exists() else ""):
        with read.open("a") as begins:
            begins.write(line)
    click.echo(f"wrote {file}; {shell} completes hpcgym when it starts anew")
    ctx.exit()


def offered(command: Decorated) -> Decorated:
    """Give a command the two options of completion."""
    for name, meaning in _OPTIONS.items():
        command = click.option(
            name, is_flag=True, is_eager=True, expose_value=False, callback=_complete, help=meaning
        )(command)
    return command


#: The last stands first in help.
_OPTIONS = {
    "--show-completion": "Show completion for the current shell, to copy it or customize the"
    " installation.",
    "--install-completion": "Install completion for the current shell.",
}
