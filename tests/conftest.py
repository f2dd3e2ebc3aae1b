"""What all tests share: their tiers, how random cases are drawn, and the real traces.

A test is quick, or has tiers: marks for what makes it slow. Those of its folder stand in
``tiers.py``; a module or a test marks itself where the folder does not tell. With ``--quick`` only
quick tests are run, and folders that have none are not even imported.

A profile says how many cases a property test draws, and which. Under ``ci``, the default, they are
as many as the test says, half as many where it is ``costly`` (``drawing.py``), and the same in each
run: no run fails by chance. Under ``dev`` they are few, and the same too. Under ``nightly`` they
are many more, and others each time. With
``--hypothesis-seed`` they are those of the seed, as many as the profile says; with
``HPCGYM_EXAMPLES`` they are that many.
"""

import gc
import os
from collections.abc import Callable
from functools import cache
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from tiers import NAMES, tiers_of

from hpcgym.speedups import Heatmap, read_speedups
from hpcgym.workload.archive import TRACES, cache_folder, data_folders

#: Profile -> how many cases it makes of those that a test asks for, which may be costly.
CASES: dict[str, Callable[[int, bool], int]] = {
    "dev": lambda own, costly: min(max(own // 10, 1), 5),
    "ci": lambda own, costly: own // 2 if costly else own,
    "nightly": lambda own, costly: 10 * own,
}

# The first case compiles the engine: no limit of time means anything. This module is imported
# before all tests; their own settings start from the profile that is loaded at their import.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
for _name in ("dev", "ci"):
    settings.register_profile(_name, derandomize=True, database=None, **_COMMON)
# what hypothesis is set to before, with CI=1 in the environment, draws the same cases each time
settings.register_profile("nightly", settings.get_profile("default"), **_COMMON)
settings.load_profile("ci")

# What is made while tests are collected stays: to look for garbage among it takes two fifths of
# that time.
gc.disable()

# typer's runner makes all commands of a program anew for each call, which takes longer than most
# calls; the program itself makes them once
if hasattr(typer.testing, "_get_command"):
    typer.testing._get_command = cache(typer.testing._get_command)


@pytest.hookimpl(trylast=True)  # hypothesis loads --hypothesis-profile before
def pytest_configure(config: pytest.Config) -> None:
    """Take ``--hypothesis-seed`` for a wish for random cases; let fixed ones be fixed."""
    seeded = config.getoption("--hypothesis-seed") is not None
    settings.load_profile("nightly" if seeded else _profile(config))
    if settings.default.derandomize and hasattr(providers, "_get_local_constants"):
        # hypothesis mixes in constants of whatever modules are imported by now: other tests that
        # were run before, and in which order, would change the cases
        none = providers._local_constants
        providers._get_local_constants = lambda: none


def _profile(config: pytest.Config) -> str:
    return config.getoption("--hypothesis-profile") or "ci"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what asks for quick tests."""
    parser.addoption("--quick", action="store_true", help="run only tests without a tier")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders without a quick test: to import what they use takes long."""
    return True if config.getoption("--quick") and tiers_of(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests the tiers of their folder, and property tests their number of cases."""
    for item in items:
        for tier in tiers_of(item.path):
            item.add_marker(tier)
    if config.getoption("--quick"):
        slow = [any(map(item.get_closest_marker, NAMES)) for item in items]
        config.hook.pytest_deselected(items=list(compress(items, slow)))
        items[:] = compress(items, map(not_, slow))
    cases = _cases(config)
    for item in items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            own = test._hypothesis_internal_use_settings
            number = cases(own.max_examples, hasattr(test, "costly"))
            test._hypothesis_internal_use_settings = settings(own, max_examples=number)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for garbage from now on, but not among what is there."""
    gc.freeze()
    gc.enable()


def _cases(config: pytest.Config) -> Callable[[int, bool], int]:
    """Return how many cases a test draws, by how many it asks for, and whether it is costly."""
    given = os.environ.get("HPCGYM_EXAMPLES")
    if given is None:
        return CASES.get(_profile(config), CASES["ci"])
    if not (given.isdecimal() and int(given) > 0):
        raise pytest.UsageError(f"HPCGYM_EXAMPLES must be a whole number above 0, not {given!r}")
    return lambda own, costly: int(given)


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
