"""How tests start the command line."""

import json

from typer.testing import CliRunner

from hpcgym.cli import app

JOBS = "lublin:jobs=200,processors=32,load=0.9"


def run(*arguments, env=None):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=env)


def succeed(*arguments, env=None):
    result = run(*arguments, env=env)
    assert result.exit_code == 0, result.output
    return result


def as_json(*arguments):
    return json.loads(succeed(*arguments, "--format", "json").stdout)
