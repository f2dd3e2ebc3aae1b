"""Whatever has happened to a submission, it is proved, or one line says what is wrong with it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from damages import damages

from hpcgym.errors import HpcgymError
from hpcgym.suite.board import board_of
from hpcgym.suite.proofs import verify
from hpcgym.suite.submissions import FACTS, SCHEDULES, read, run
from hpcgym.suite.tasks import find_tasks

_GIVEN = os.environ.get("HPCGYM_DAMAGES", "30,0").split(",")
CASES, SEED = int(_GIVEN[0]), int(_GIVEN[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "easy"
    run("easy", find_tasks("mini-order"), folder)
    return folder


@pytest.mark.parametrize("name", [FACTS, SCHEDULES])
def test_a_damaged_submission_is_proved_or_said_to_be_wrong(
    name: str, made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    shutil.copytree(made, folder)
    content = (made / name).read_bytes()
    equal = 0
    for damaged in damages(content, name == FACTS, CASES, (name, SEED)):
        (folder / name).write_bytes(damaged)
        for look in (lambda: verify(read(folder)), lambda: board_of([read(folder)])):
            found, said = None, ""
            try:
                found = look()
            except HpcgymError as error:
                said = str(error)
            assert said.isprintable()
            if isinstance(found, list):
                equal += all(proof.equal for proof in found)
                assert all(proof.text.isprintable() for proof in found)
            elif found is not None:
                assert len(found.table) == 1
    assert equal < CASES
