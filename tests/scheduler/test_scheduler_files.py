"""Schedulers in TOML files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.baselines import SCHEDULERS, find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.files import read_scheduler, write_scheduler

FINITE = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x != 0)
POLICIES = st.one_of(
    st.sampled_from(["saf", "wfp3", "20 * wait - requested * processors"]),
    st.dictionaries(st.sampled_from(["area", "wait", "expansion"]), FINITE, min_size=1),
    st.tuples(*[FINITE] * 6),
)
HOLDS = st.none() | st.builds(
    Hold, st.floats(0.01, 1), st.floats(1, 1e6), erode_s=st.sampled_from([1, 3600, float("inf")])
)


@given(
    policy=POLICIES,
    backfill_order=st.one_of(st.just("sjbf"), POLICIES),
    threshold=st.none() | st.integers(0, 10**9) | st.floats(0, 1e9),
    hold=HOLDS,
    estimate=st.sampled_from(["requested", "ave2", "regression:over=squared"]),
    fair_share=st.none() | st.just({"half_life_s": 3600, "shares": {1: 2.0, 2: 0.5}}),
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, **rules: object) -> None:
    path = tmp_path_factory.getbasetemp() / "rules.toml"
    scheduler = Scheduler(**rules)  # type: ignore[arg-type]
    write_scheduler(path, scheduler, "why\nand when")
    read = read_scheduler(path)
    assert read.describe() == scheduler.describe()
    assert read.hold == scheduler.hold
    assert read.fair_share == scheduler.fair_share
    assert path.read_text().startswith("# why\n# and when\n")


@pytest.mark.parametrize("name", ["easy", "saf-typical-20h-hold", "easy++", "conservative"])
def test_named_ones(name: str, tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    write_scheduler(path, SCHEDULERS[name])
    assert find_scheduler(str(path)) == SCHEDULERS[name]
    jobs = load_workload("lublin:jobs=50,processors=16,seed=1,load=1.2")
    assert np.array_equal(simulate(jobs, str(path)).start, simulate(jobs, name).start)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("polcy = 'saf'", "rules.toml: unknown rule 'polcy'; did you mean 'policy'"),
        ("policy = 'swf'", "rules.toml: unknown policy 'swf'"),
        ("hold = { share = 2 }", "rules.toml: hold: share must be a number from 0 to 1"),
        ("policy = ", "rules.toml"),
        ("threshold = 'soon'", "rules.toml: threshold"),
        ("backfill = ['easy']", "rules.toml: unknown backfill"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(HpcgymError, match=said):
        find_scheduler(str(path))


def test_no_file_holds_a_function_or_an_array(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    with pytest.raises(HpcgymError, match=r"policy: .* cannot be written to a file"):
        write_scheduler(path, Scheduler(lambda view: view.wait))
    with pytest.raises(HpcgymError, match=r"estimate: .* cannot be written to a file"):
        write_scheduler(path, Scheduler(estimate=np.array([1, 2])))
    assert not path.exists()


def test_a_missing_file_is_named() -> None:
    with pytest.raises(HpcgymError, match=r"nowhere\.toml"):
        simulate(load_workload("lublin:jobs=2,processors=2"), "nowhere.toml")
