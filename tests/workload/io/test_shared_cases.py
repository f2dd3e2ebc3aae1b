"""Small logs of the kinds that sites have, each with the right answer; see ../shared/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym import load_workload

CASES = Path(__file__).parents[4] / "shared" / "cases"

pytestmark = [
    pytest.mark.skipif(not CASES.is_dir(), reason=f"{CASES} is not there"),
    pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning"),
]


def test_a_delimiter_of_several_characters() -> None:
    workload = load_workload(CASES / "odd-delimiter" / "jobs.txt", "none", processors=8)
    assert workload.requested_processors.tolist() == [4]
    assert workload.run_time.tolist() == [36_000]
    assert workload.requested_time.tolist() == [43_200]
    assert workload.wait_time.tolist() == [0]
