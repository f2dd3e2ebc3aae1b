"""The reference scores of the environments' pages are what their commands print."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.envs.pages.texts import SCORES

pytestmark = pytest.mark.slow


# the others take minutes
@pytest.mark.parametrize("name", ["QueueOrdering", "CoSchedule"])
def test_scores_are_those_of_the_command(name: str) -> None:
    reference = SCORES[name]
    found = CliRunner().invoke(app, ["evaluate", *shlex.split(reference.command), "--format=json"])
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)["policies"]
    rows = {one["name"].removesuffix(" (backfill fcfs)"): one for one in told}
    for policy, mean, low, high, wait_h in reference.rows:
        one = rows[policy]
        bsld = [one[f"mean_bsld{end}"] for end in ("", "_low", "_high")]
        assert [round(value, 1) for value in bsld] == [mean, low, high]
        assert round(one["mean_wait_s"] / 3600, 2) == wait_h
