"""Property tests draw the same cases in each run, and others when they are asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

pytestmark = pytest.mark.distributed

TESTS = Path(__file__).parent
COMMAND = [sys.executable, "-m", "pytest", "-q", "-p", "hypothesispytest", "-p", "conftest"]
COMMAND += ["-p", "no:cacheprovider"]

PROFILE = "--hypothesis-profile={}"
DRAWING = """
import os
from pathlib import Path
from hypothesis import given, settings
from hypothesis import strategies as st

OWN = settings(max_examples=30)
OUTER = globals().get("OUTER", lambda test: test)

@OUTER
@settings(OWN)
@given(st.lists(st.one_of(st.integers(), st.floats(), st.text())), st.sampled_from(["a", "b"]))
def test_it(drawn, letter):
    with Path(os.environ["DRAWN"]).open("a", encoding="utf-8") as lines:
        lines.write(ascii((drawn, letter)) + "\\n")
"""


def drawn(folder: Path, *arguments: str, before: str = "", **environment: str) -> list[str]:
    """Return the cases that a test draws in a process of its own, where others have run before."""
    (folder / "test_drawing.py").write_text(f"{before}\n{DRAWING}")
    (folder / "lines").unlink(missing_ok=True)
    known = {**os.environ, "PYTHONPATH": str(TESTS), "DRAWN": str(folder / "lines")}
    known["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others draw nothing, and load for long
    known.pop("HPCGYM_EXAMPLES", None)
    run = subprocess.run(
        [*COMMAND, *arguments, "test_drawing.py"],
        env=known | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return (folder / "lines").read_text(encoding="utf-8").splitlines()


def test_the_same_cases_in_each_run(tmp_path: Path) -> None:
    first = drawn(tmp_path, PYTHONHASHSEED="1")
    assert 30 <= len(set(first)) <= len(first)
    # hypothesis knows the constants of modules that are imported
    (tmp_path / "library.py").write_text("\n".join(f"a{n} = {n}" for n in range(10**6, 10**6 + 99)))
    again = drawn(tmp_path, before="import library, hpcgym.simulation.run", PYTHONHASHSEED="2")
    assert again == first


@pytest.mark.parametrize("machine", [{}, {"CI": "true"}])
def test_other_cases_on_request(tmp_path: Path, machine: dict[str, str]) -> None:
    nightly = PROFILE.format("nightly")
    fixed, one, other = (drawn(tmp_path, *more, **machine) for more in ((), (nightly,), (nightly,)))
    assert len({str(cases) for cases in (fixed, one, other)}) == 3
    assert min(len(one), len(other)) >= 10 * 30


def test_a_seed_asks_for_random_cases_as_many_as_the_profile_says(tmp_path: Path) -> None:
    fixed, seeded, again = (
        drawn(tmp_path, *more)
        for more in ((), ("--hypothesis-seed=7",), ("--hypothesis-seed=7", PROFILE.format("ci")))
    )
    assert seeded == again
    assert seeded not in (fixed, drawn(tmp_path, "--hypothesis-seed=8"))
    assert 30 <= len(seeded) < 60
    assert len(drawn(tmp_path, "--hypothesis-seed=7", PROFILE.format("dev"))) < 20
    assert len(drawn(tmp_path, "--hypothesis-seed=7", PROFILE.format("nightly"))) >= 300


def test_few_cases_are_the_same_in_each_run_too(tmp_path: Path) -> None:
    few = drawn(tmp_path, PROFILE.format("dev"))
    assert 3 <= len(few) < 20
    assert few == drawn(tmp_path, PROFILE.format("dev"))


def test_half_as_many_where_each_takes_long(tmp_path: Path) -> None:
    before = "from drawing import costly as OUTER"
    costly = drawn(tmp_path, before=before)
    assert 15 <= len(costly) < 30
    assert costly == drawn(tmp_path, PROFILE.format("ci"), before=before)
    assert len(drawn(tmp_path, PROFILE.format("nightly"), before=before)) >= 300
    assert len(drawn(tmp_path, before=before, HPCGYM_EXAMPLES="70")) >= 70


def test_as_many_cases_as_one_likes(tmp_path: Path) -> None:
    assert 70 <= len(drawn(tmp_path, HPCGYM_EXAMPLES="70")) < 100
    assert 70 <= len(drawn(tmp_path, PROFILE.format("dev"), HPCGYM_EXAMPLES="70")) < 100


def test_a_number_of_cases_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="HPCGYM_EXAMPLES must be a whole number above 0, not"):
        drawn(tmp_path, HPCGYM_EXAMPLES="many")


def test_no_test_leaves_the_profile(request: pytest.FixtureRequest) -> None:
    """Settings of a test's own say how many cases there are, not which."""
    wanted = settings.default
    assert wanted is not None
    for item in request.session.items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            own = test._hypothesis_internal_use_settings
            assert own.derandomize == wanted.derandomize, item.nodeid
            assert own.deadline is None, item.nodeid
            assert (own.database is None) == (wanted.database is None), item.nodeid
            assert set(wanted.suppress_health_check) <= set(own.suppress_health_check), item.nodeid
