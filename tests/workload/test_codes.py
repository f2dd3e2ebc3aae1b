"""Codes of jobs: names, given to any jobs or drawn, and jobs that are runs of known codes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.machine.speedups import Heatmap, generate_speedups, read_speedups
from hpcgym.workload import (
    Code,
    Workload,
    assign_codes,
    code_names,
    codes_in,
    codes_of,
    generate_code_jobs,
    load_workload,
    shuffled,
    with_codes,
)
from hpcgym.workload.archive import data_folders
from hpcgym.workload.codes import ARRIVALS, LONGEST_S, MIXES, SHORTEST_S
from hpcgym.workload.fingerprint import fingerprint

JOBS = {
    "job_number": [1, 2, 3, 4],
    "submit_time": [0, 10, 10, 20],
    "run_time": [5, 6, 7, 8],
    "requested_time": [9, 9, 9, 9],
    "requested_processors": [4, 2, 1, 4],
}
NAMES = ["lu.E.2048", "cg.D.64", "lu.E.2048", "628.pot3d s"]


def plain(**columns: object) -> Workload:
    return Workload.from_columns({**JOBS, **columns}, processors=4, name="log")


def coded(names: list[str] = NAMES) -> Workload:
    return with_codes(plain(), names)


# --- Names ----------------------------------------------------------------------------------


def test_codes_are_numbered_and_found_by_name() -> None:
    workload = coded()
    assert workload.executable.tolist() == [1, 2, 1, 3]
    assert workload.header["Code"] == ["1 lu.E.2048", "2 cg.D.64", "3 628.pot3d s"]
    assert code_names(workload) == {1: "lu.E.2048", 2: "cg.D.64", 3: "628.pot3d s"}
    assert code_names(plain()) == {}
    assert np.array_equal(workload.run_time, plain().run_time)
    known = ["628.pot3d s", "other", "cg.D.64", "lu.E.2048"]
    assert codes_of(workload, known).tolist() == [3, 2, 3, 0]
    assert codes_of(workload.take(slice(0, 0)), known).shape == (0,)
    others = [coded(NAMES[::-1]), coded([f"{name}x" for name in NAMES]), plain()]
    assert len({fingerprint([jobs]) for jobs in (workload, coded(), *others)}) == 4


EXTRACT = plain(wait_time=[0, 0, 0, 0]).extract(8)


def test_codes_are_drawn_for_a_trace_by_weight() -> None:
    trace = load_workload("lublin:jobs=3000,processors=64,seed=1")
    drawn = assign_codes(trace, ["a", "b", "c"], seed=3, weights=[3, 0, 1])
    again, other = (assign_codes(trace, ["a", "b", "c"], seed=k, weights=[3, 0, 1]) for k in (3, 0))
    assert np.array_equal(drawn.executable, again.executable)
    assert not np.array_equal(drawn.executable, other.executable)
    assert drawn.header["Code"] == ["1 a", "2 b", "3 c"]
    for column in ("submit_time", "run_time", "requested_time", "requested_processors", "user_id"):
        assert np.array_equal(drawn.columns[column], trace.columns[column])
    shares = np.bincount(drawn.executable, minlength=4)[1:] / len(drawn)
    assert shares == pytest.approx([0.75, 0, 0.25], abs=0.04)  # four deviations
    alike = assign_codes(trace, ["a", "b"])
    assert (alike.executable == 1).mean() == pytest.approx(0.5, abs=0.04)


@given(seed=st.integers(0, 2**64), jobs=st.integers(1, 12))
def test_shuffled_jobs_are_the_same_jobs(seed: int, jobs: int) -> None:
    columns = {
        "job_number": np.arange(jobs),
        "submit_time": 7 * np.arange(jobs),
        "run_time": 10 + np.arange(jobs) % 3,
        "requested_processors": 2 * (1 + np.arange(jobs)),
    }
    workload = Workload.from_columns(
        columns, processors=64, killed=np.arange(jobs) % 2 == 0, per_unit={"gpu": np.arange(jobs)}
    )
    mixed = shuffled(workload, seed)
    order = mixed.job_number
    assert mixed.name == f"workload shuffle {seed}"
    assert np.array_equal(mixed.submit_time, workload.submit_time)
    assert Counter(order.tolist()) == Counter(range(jobs))
    assert np.array_equal(mixed.run_time, workload.run_time[order])
    assert np.array_equal(mixed.killed, workload.killed[order])
    assert np.array_equal(mixed.per_unit["gpu"], order)
    assert np.array_equal(mixed.requested_processors, 2 * (1 + order))
    assert np.array_equal(order, shuffled(workload, seed).job_number)


# --- Jobs that are runs of known codes -------------------------------------------------------

#: Jobs 40, 41, 42 and 43 of the table in ELiSE; their codes are those of Grvingt.
PRINTED = (
    Code("lu.D.64", 64, 4540),
    Code("cg.D.32", 32, 3470),
    Code("ft.D.32", 32, 2630),
    Code("bt.D.121", 121, 3580),
)
GRVINGT = "lm-remake-g5k.nancy.grvingt-NASx10.json"
FOLDERS = (*data_folders(), Path(__file__).parents[3] / "shared" / "coscheduling")


@pytest.fixture
def speedups(tmp_path: Path) -> Path:
    """A file of speedups with all that is known of codes."""
    path = tmp_path / "two.json"
    table = {
        "codes": ["lu", "mg"],
        "speedup": [[1.0, 0.9], [1.2, 1.1]],
        "compact_s": [99.2, 0.25],
        "processes": [64, 16],
    }
    path.write_text(json.dumps(table))
    return path


def listed(workload: Workload) -> list[int]:
    return (workload.executable - 1).tolist()


def test_jobs_are_those_that_document_003_prints() -> None:
    workload = generate_code_jobs(PRINTED, mix="list")
    assert workload.requested_processors.tolist() == [64, 32, 32, 121]
    assert workload.run_time.tolist() == [4540, 3470, 2630, 3580]
    assert workload.requested_time.tolist() == [6356, 4858, 3682, 5012]
    assert workload.submit_time.tolist() == [0, 0, 0, 0]
    assert workload.job_number.tolist() == [1, 2, 3, 4]
    assert workload.header["Code"] == ["1 lu.D.64", "2 cg.D.32", "3 ft.D.32", "4 bt.D.121"]
    assert workload.processors == 121
    assert workload.cleaning == {}


def test_measured_codes_have_the_printed_run_times() -> None:
    path = next((f / GRVINGT for f in FOLDERS if (f / GRVINGT).is_file()), None)
    if path is None:
        pytest.skip(f"needs {GRVINGT} of the ELiSE project: put it into HPCGYM_DATA")
    known = {code.name: code for code in codes_in(read_speedups(path))}
    assert [known[code.name] for code in PRINTED] == list(PRINTED)


@pytest.mark.parametrize(
    ("compact_s", "factor", "run_time", "requested_time"),
    [(0.2, 1.0, 1, 1), (10.0, 1.1, 10, 11), (10.2, 1.0, 11, 11), (3.0, 1.5, 3, 5)],
)
def test_times_are_rounded_up(
    compact_s: float, factor: float, run_time: int, requested_time: int
) -> None:
    workload = generate_code_jobs([Code("a", 1, compact_s)], 1, requested_factor=factor)
    assert workload.run_time.tolist() == [run_time]
    assert workload.requested_time.tolist() == [requested_time]


def test_lists_have_codes_equally_often_and_shuffles_have_the_same() -> None:
    in_order = generate_code_jobs(PRINTED, 10, mix="list")
    assert listed(in_order) == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    first, other = (generate_code_jobs(PRINTED, 10, mix="shuffle", seed=seed) for seed in (1, 2))
    assert sorted(listed(first)) == sorted(listed(other)) == listed(in_order)
    assert listed(first) != listed(other)
    assert np.array_equal(first.run_time, [[4540, 3470, 2630, 3580][n] for n in listed(first)])
    often = [*(PRINTED[2],) * 3, *(PRINTED[0],) * 2]
    for mix in ("list", "shuffle"):
        jobs = generate_code_jobs(often, mix=mix)
        assert sorted(listed(jobs)) == [0, 0, 0, 1, 1]
        assert jobs.header["Code"] == ["1 ft.D.32", "2 lu.D.64"]


def test_codes_are_drawn_alike() -> None:
    workload = generate_code_jobs(PRINTED, 4000, seed=1)
    counts = np.bincount(listed(workload))
    assert counts == pytest.approx([1000] * 4, abs=110)  # four deviations
    assert listed(workload) != listed(generate_code_jobs(PRINTED, 4000, seed=2))


def test_when_jobs_come() -> None:
    """Limits are four deviations; the share of distances above two means is e^-2."""
    workload = generate_code_jobs(PRINTED, 5, arrivals="constant", interval_s=2.5)
    assert workload.submit_time.tolist() == [0, 2, 5, 7, 10]
    poisson, uniform = (
        generate_code_jobs(PRINTED, 5000, arrivals=name, interval_s=60).submit_time
        for name in ("poisson", "random")
    )
    distances = np.diff(poisson)
    assert poisson[0] == 0
    assert distances.mean() == pytest.approx(60, abs=4 * 60 / np.sqrt(5000))
    assert (distances > 120).mean() == pytest.approx(np.exp(-2), abs=0.02)
    assert (np.diff(uniform) >= 0).all()
    quarters = np.bincount(uniform // (5000 * 15), minlength=4)
    assert quarters == pytest.approx([1250] * 4, abs=123)


@given(
    mix=st.sampled_from(list(MIXES)),
    arrivals=st.sampled_from([name for name in ARRIVALS if name != "at-once"]),
    jobs=st.integers(1, 40),
    seed=st.integers(0, 2**64),
)
def test_mix_and_arrivals_have_nothing_to_do_with_each_other(
    mix: str, arrivals: str, jobs: int, seed: int
) -> None:
    when: dict[str, Any] = {"arrivals": arrivals, "interval_s": 9.5}
    both = generate_code_jobs(PRINTED, jobs, seed=seed, mix=mix, **when)
    at_once = generate_code_jobs(PRINTED, jobs, seed=seed, mix=mix)
    others = generate_code_jobs(PRINTED, jobs, seed=seed, mix="list", **when)
    assert listed(both) == listed(at_once)
    assert np.array_equal(both.submit_time, others.submit_time)
    assert codes_of(both, [code.name for code in PRINTED]).tolist() == listed(both)


# --- Codes of speedups ----------------------------------------------------------------------


def test_codes_of_a_table_of_speedups(speedups: Path) -> None:
    table = read_speedups(speedups)
    assert codes_in(table) == [Code("lu", 64, 99.2), Code("mg", 16, 0.25)]
    untold = generate_speedups(40)
    codes = codes_in(untold, processes=256, seed=1)
    assert [code.name for code in codes] == list(untold.codes)
    assert {code.processes for code in codes} == {256}
    times = [code.compact_s for code in codes]
    assert all(SHORTEST_S <= time <= LONGEST_S for time in times)
    assert len({*times}) == 40
    assert times[:16] == [c.compact_s for c in codes_in(generate_speedups(), processes=2, seed=1)]
    assert codes != codes_in(untold, processes=256, seed=2)
    some = Heatmap(("a", "b"), np.ones((2, 2)), compact_s=[50, np.nan], processes=[-1, 8])
    first, second = codes_in(some, processes=4)
    assert (first.processes, first.compact_s, second.processes) == (4, 50, 8)
    assert SHORTEST_S <= second.compact_s <= LONGEST_S


def test_the_text_is_the_function(speedups: Path) -> None:
    workload = load_workload(
        f"codes:speedups={speedups},jobs=7,processors=80,seed=3,mix=shuffle,arrivals=poisson,"
        "interval=30,requested=2"
    )
    rules: dict[str, Any] = {"mix": "shuffle", "arrivals": "poisson", "interval_s": 30}
    codes = codes_in(read_speedups(speedups))
    expected = generate_code_jobs(codes, 7, processors=80, seed=3, requested_factor=2, **rules)
    for name, column in expected.columns.items():
        assert np.array_equal(column, workload.columns[name])
    assert (workload.header, workload.processors) == (expected.header, 80)
    assert "arrivals=poisson, interval_s=30" in workload.header["Note"][0]


test_mistakes = mistakes_of(globals(), fixtures=("speedups",))
