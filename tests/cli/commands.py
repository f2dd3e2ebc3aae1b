"""How tests start the command line."""

import csv
import io
import json
from pathlib import Path

from click.testing import CliRunner

from hpcgym.cli import app
from hpcgym.errors import HpcgymError

JOBS = "lublin:jobs=200,processors=32,load=0.9"
TAURUS_JOBS = "lublin:jobs=200,processors=192,seed=1,load=1.3"
#: Waits, and tells schedulers and allocations apart.
EURORA_JOBS = "eurora:jobs=200,load=1.3,seed=1"
PAIRS = "generated:codes=4,mean=1.1,spread=0.1,seed=1"
CODE_JOBS = "codes:speedups=generated:codes=4,jobs=60,processes=40,seed=2"
SHARED = (CODE_JOBS, "--cluster", "16x2x4", "--speedups", PAIRS)


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def instead(arguments, *options):
    """Return arguments of a command with other options of one value, in place of the same there."""
    given = [*arguments]
    for option in [word for word in options if word.startswith("--") and word in given]:
        del given[given.index(option) : given.index(option) + 2]
    return (*given, *options)


def as_json(*arguments, **options):
    return json.loads(succeed(*arguments, "--format", "json", **options).stdout)


def as_csv(*arguments, **options):
    text = succeed(*arguments, "--format", "csv", **options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def digests(value):
    """Return the SHA-256 of each schedule that a command has printed as JSON."""
    return [schedule["sha256"] for schedule in value["provenance"]["schedules"]]


def typed(*arguments, **options):
    """Run a command; raise the one line that it ends in if it cannot be done."""
    result = run(*arguments, **options)
    if result.exit_code == 1:
        assert result.stdout == ""
        (said,) = result.stderr.splitlines()
        assert said.startswith("hpcgym: ")
        raise HpcgymError(said.removeprefix("hpcgym: "))


def in_words(text):
    """Return a text in one line, as tables and help break it."""
    return " ".join(text.split())


def table_file(path, header, *rows):
    """Write jobs as CSV, and return the file."""
    Path(path).write_text("\n".join([header, *rows]) + "\n")
    return path


def commands(group, *before):
    """Return all commands of a group, by their words."""
    by_words = {}
    for name in group.list_commands(None):
        words, command = (*before, name), group.get_command(None, name)
        by_words |= commands(command, *words) if hasattr(command, "commands") else {words: command}
    return by_words


COMMANDS = commands(app)
