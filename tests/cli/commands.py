"""How tests start the command line."""

import csv
import io
import json

import typer
from typer.testing import CliRunner

from hpcgym.cli import app

JOBS = "lublin:jobs=200,processors=32,load=0.9"


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments, **options):
    return json.loads(succeed(*arguments, "--format", "json", **options).stdout)


def as_csv(*arguments, **options):
    text = succeed(*arguments, "--format", "csv", **options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def line(*arguments, **options):
    """Return the one line that a command ends in that cannot be done."""
    result = run(*arguments, **options)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    (said,) = result.stderr.splitlines()
    assert said.startswith("hpcgym: ")
    return said


def commands(group, *before):
    """Return all commands of a group, by their words."""
    found = {}
    for name, command in group.commands.items():
        words = (*before, name)
        found |= commands(command, *words) if hasattr(command, "commands") else {words: command}
    return found


COMMANDS = commands(typer.main.get_command(app))
