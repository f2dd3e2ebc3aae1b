"""What all tests share: the real traces, which are never part of the repository."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.workload.archive import TRACES, cache_folder, data_folders

BESIDE_THE_REPOSITORY = Path(__file__).parents[2] / "shared" / "traces"


@pytest.fixture(scope="session")
def trace() -> Callable[[str], Path]:
    """Return a function that finds the file of a real trace, or skips the test.

    It looks in the folders of ``HPCGYM_DATA``, in ``../shared/traces`` beside the repository and in
    the cache that ``hpcgym traces fetch`` fills. With ``HPCGYM_REQUIRE_TRACES=1`` a missing trace
    is a failure.
    """

    def find(file: str) -> Path:
        for folder in (*data_folders(), BESIDE_THE_REPOSITORY, cache_folder()):
            if (folder / file).is_file():
                return folder / file
        names = [known.name for known in TRACES.values() if known.file == file]
        how = f"`hpcgym traces fetch {names[0]}` gets it" if names else "put it into HPCGYM_DATA"
        reason = f"needs the trace {file}, which is not on this machine: {how}"
        if os.environ.get("HPCGYM_REQUIRE_TRACES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return find
