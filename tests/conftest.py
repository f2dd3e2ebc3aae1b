"""What all tests share: how random cases are drawn, and the real traces.

Under the profile ``fixed``, the default, a property test draws the same cases in each run: no run
fails by chance. Under ``random`` it draws others each time, or those of ``--hypothesis-seed``. With
``HPCGYM_EXAMPLES`` it draws that many.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from hpcgym.speedups import Heatmap, read_speedups
from hpcgym.workload.archive import TRACES, cache_folder, data_folders

# The first case compiles the engine: no limit of time means anything. This module is imported
# before all tests; their own settings start from the profile that is loaded at their import.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("fixed", derandomize=True, database=None, **_COMMON)
# what hypothesis is set to before, with CI=1 in the environment, draws the same cases each time
settings.register_profile("random", settings.get_profile("default"), **_COMMON)
settings.load_profile("fixed")


@pytest.hookimpl(trylast=True)  # hypothesis loads --hypothesis-profile before
def pytest_configure(config: pytest.Config) -> None:
    """Take ``--hypothesis-seed`` for a wish for random cases; let fixed ones be fixed."""
    if config.getoption("--hypothesis-profile") is None:
        given = config.getoption("--hypothesis-seed") is not None
        settings.load_profile("random" if given else "fixed")
    if settings.default.derandomize and hasattr(providers, "_get_local_constants"):
        # hypothesis mixes in constants of whatever modules are imported by now: other tests that
        # were run before, and in which order, would change the cases
        none = providers._local_constants
        providers._get_local_constants = lambda: none


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let property tests draw as many cases as ``HPCGYM_EXAMPLES`` says."""
    given = os.environ.get("HPCGYM_EXAMPLES")
    if given is None:
        return
    if not (given.isdecimal() and int(given) > 0):
        raise pytest.UsageError(f"HPCGYM_EXAMPLES must be a whole number above 0, not {given!r}")
    for item in items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            own = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(own, max_examples=int(given))


BESIDE_THE_REPOSITORY = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def trace() -> Callable[[str], Path]:
    """Return a function that finds the file of a real trace, or skips the test.

    It looks in the folders of ``HPCGYM_DATA``, in ``../shared/traces`` beside the repository and in
    the cache that ``hpcgym traces fetch`` fills. With ``HPCGYM_REQUIRE_TRACES=1`` a missing trace
    is a failure.
    """

    def find(file: str) -> Path:
        for folder in (*data_folders(), BESIDE_THE_REPOSITORY / "traces", cache_folder()):
            if (folder / file).is_file():
                return folder / file
        names = [known.name for known in TRACES.values() if known.file == file]
        how = f"`hpcgym traces fetch {names[0]}` gets it" if names else "put it into HPCGYM_DATA"
        reason = f"needs the trace {file}, which is not on this machine: {how}"
        if os.environ.get("HPCGYM_REQUIRE_TRACES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return find


@pytest.fixture(scope="session")
def measured() -> Callable[[str], Heatmap]:
    """Return a function that reads a load file of ELiSE, or skips the test.

    It looks in the folders of ``HPCGYM_DATA``, and in ``../shared/coscheduling`` beside the
    repository.
    """

    def read(file: str) -> Heatmap:
        for folder in (*data_folders(), BESIDE_THE_REPOSITORY / "coscheduling"):
            if (folder / file).is_file():
                return read_speedups(folder / file)
        pytest.skip(f"needs {file} of the ELiSE project: put it into HPCGYM_DATA")

    return read
