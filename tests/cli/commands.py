"""How tests start the command line."""

import json

from typer.testing import CliRunner

from hpcgym.cli import app

JOBS = "lublin:jobs=200,processors=32,load=0.9"


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments):
    return json.loads(succeed(*arguments, "--format", "json").stdout)
