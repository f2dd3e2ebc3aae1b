"""Measured speedups, which are never part of the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.coscheduling import Heatmap, read_speedups
from hpcgym.workload.archive import data_folders

BESIDE_THE_REPOSITORY = Path(__file__).parents[3] / "shared" / "coscheduling"


@pytest.fixture(scope="session")
def measured() -> Callable[[str], Heatmap]:
    """Return a function that reads a load file of ELiSE, or skips the test.

    It looks in the folders of ``HPCGYM_DATA``, and in ``../shared/coscheduling`` beside the
    repository.
    """

    def read(file: str) -> Heatmap:
        for folder in (*data_folders(), BESIDE_THE_REPOSITORY):
            if (folder / file).is_file():
                return read_speedups(folder / file)
        pytest.skip(f"needs {file} of the ELiSE project: put it into HPCGYM_DATA")

    return read
