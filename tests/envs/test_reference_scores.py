"""The reference scores of the environments' pages are what their commands print."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from hpcgym.cli import app
from hpcgym.envs import CoSchedule, QueueOrdering

pytestmark = pytest.mark.slow


# the others take minutes
@pytest.mark.parametrize("environment", [QueueOrdering, CoSchedule])
def test_scores_are_those_of_the_command(environment: type) -> None:
    reference = (environment.__doc__ or "").partition("## Reference")[2].partition("## Version")[0]
    (command,) = re.findall(r"^hpcgym (evaluate .*)$", reference, re.MULTILINE)
    shown = CliRunner().invoke(app, [*shlex.split(command), "--format=json"])
    assert shown.exit_code == 0, shown.stderr
    policies = json.loads(shown.stdout)["policies"]
    named = {row["name"].removesuffix(" (backfill fcfs)"): row for row in policies}
    rows = re.findall(r"^\| (`.+`) \| (\S+) \((\S+) to (\S+)\) \|$", reference, re.MULTILINE)
    found_there = {name: bounds for names, *bounds in rows for name in re.findall("`(.+?)`", names)}
    assert len(found_there) >= 5
    for policy, bounds in found_there.items():
        row = named[policy]
        assert [f"{row[f'mean_bsld{end}']:.1f}" for end in ("", "_low", "_high")] == bounds, policy
