"""What all tests share: which are slow, how random cases are drawn, and the real traces.

``scripts/test`` leaves out what is marked ``slow``; folders of which all is slow stand in ``SLOW``,
and are not even imported then. ``scripts/test --all`` runs everything.

How many cases a property test draws at most, it says itself: ``scripts/test --all`` draws half of
them, and a third where slow tests are left out, in which all of ``scripts/mutants.py`` are noticed.
Where hypothesis draws them it is a tenth, and half of all that where a test is ``costly``
(``drawing.py``). Its mark is ``drawn``. ``HPCGYM_EXAMPLES`` sets another number for all. They are
the same in each run, so that no run fails by chance; ``--hypothesis-seed=N`` draws those of another
seed.
"""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import drawing
import pytest
import seeded
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from hpcgym.machine.speedups import Heatmap, read_speedups
from hpcgym.workload.archive import TRACES, cache_folder, data_folders

#: Folders of tests/ that are slow as a whole.
SLOW = ("benchmarks", "replay")
_TESTS = Path(__file__).parent

# Where others use the machine, no limit of time means anything. This module is imported before all
# tests; their own settings start from the profile that is loaded at their import.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("fixed", derandomize=True, database=None, **_COMMON)
# what hypothesis is set to before, with CI=1 in the environment, draws the same cases each time
settings.register_profile("seeded", settings.get_profile("default"), **_COMMON)
settings.load_profile("fixed")

# What is made while tests are collected stays: to look for garbage among it takes two fifths of
# that time.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Let ``--hypothesis-seed`` draw other cases; let fixed ones be fixed."""
    seed = config.getoption("--hypothesis-seed")
    if seed is not None:
        seeded.seed = int(seed)
        settings.load_profile("seeded")
    elif hasattr(providers, "_get_local_constants"):
        # hypothesis mixes in constants of whatever modules are imported by now: other tests that
        # were run before, and in which order, would change the cases
        none = providers._local_constants
        providers._get_local_constants = lambda: none


def is_slow(path: Path) -> bool:
    """Return whether all tests in a folder, or in the folder of a file, are slow."""
    folder = path if path.is_dir() else path.parent
    return folder.is_relative_to(_TESTS) and folder.relative_to(_TESTS).as_posix() in SLOW


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders without a quick test: to import what they use takes long."""
    return True if is_quick(config) and is_slow(collection_path) else None


def is_quick(config: pytest.Config) -> bool:
    """Return whether slow tests are left out."""
    return config.option.markexpr == "not slow"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in slow folders, and give property tests their number of cases."""
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test) or hasattr(test, "is_seeded"):
            item.add_marker("drawn")
    part = 3 if is_quick(config) else 10 if drawing.BY_HYPOTHESIS else 2
    # a test with parameters is several items
    for test in {id(test): test for item in items if (test := getattr(item, "obj", None))}.values():
        if is_hypothesis_test(test):
            own = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(
                own, max_examples=_cases(own.max_examples, test, part)
            )
        elif hasattr(test, "is_seeded"):
            own = test.settings.max_examples
            test.settings = seeded.settings(max_examples=_cases(own, test, part))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage from now on, but not among what is there."""
    gc.freeze()
    gc.enable()


def _cases(own: int, test: Any, part: int) -> int:
    """Return how many cases a test draws that asks for so many: one in ``part`` of them."""
    given = os.environ.get("HPCGYM_EXAMPLES")
    if given is None:
        return max(own // (2 * part if hasattr(test, "costly") else part), 1)
    if not (given.isdecimal() and int(given) > 0):
        raise pytest.UsageError(f"HPCGYM_EXAMPLES must be a whole number above 0, not {given!r}")
    return int(given)


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
