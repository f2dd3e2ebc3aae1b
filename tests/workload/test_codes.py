"""Codes of jobs: names, given to any jobs or drawn, and jobs that are runs of known codes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym.errors import HpcgymError, WorkloadError
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


def coded() -> Workload:
    return with_codes(plain(), NAMES)


# --- Names ----------------------------------------------------------------------------------


def test_codes_are_numbered_in_the_order_in_which_they_come() -> None:
    workload = coded()
    assert workload.executable.tolist() == [1, 2, 1, 3]
    assert workload.header["Code"] == ["1 lu.E.2048", "2 cg.D.64", "3 628.pot3d s"]
    assert code_names(workload) == {1: "lu.E.2048", 2: "cg.D.64", 3: "628.pot3d s"}
    assert code_names(plain()) == {}
    assert np.array_equal(workload.run_time, plain().run_time)


def test_codes_are_found_in_a_list() -> None:
    found = codes_of(coded(), ["628.pot3d s", "other", "cg.D.64", "lu.E.2048"])
    assert (found.tolist(), found.dtype) == ([3, 2, 3, 0], np.int64)
    nobody = coded().take(slice(0, 0))
    assert codes_of(nobody, ["cg.D.64"]).shape == (0,)


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        (plain(), r"job 1 has no code: .* its executable, -1; so it is with 4 of 4"),
        (coded().take([1, 3]), r"log: job 4 runs '628.pot3d s', .* 1 of 2 jobs"),
        (with_codes(plain(), ["cg.D.64"] * 3 + ["lu.E.204"]), "did you mean 'lu.E.2048'"),
        (with_codes(plain(), ["zzz"] * 4), "none of the 2 codes; known are cg.D.64, lu.E.2048"),
    ],
)
def test_jobs_without_a_known_code(workload: Workload, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        codes_of(workload, ["cg.D.64", "lu.E.2048"])


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a\x00", 3, None])
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(WorkloadError, match="one name for each of the 4 jobs"):
        with_codes(plain(), "abcd")
    with pytest.raises(WorkloadError, match="is no name of a code"):
        with_codes(plain(), ["a", "b", "c", name])  # type: ignore[list-item]
    with pytest.raises(WorkloadError, match="is no name of a code"):
        assign_codes(plain(), [name])  # type: ignore[list-item]


def test_extracts_have_a_past() -> None:
    extract = plain(wait_time=[0, 0, 0, 0]).extract(8)
    for give in (lambda: with_codes(extract, ["a"] * len(extract)), lambda: shuffled(extract)):
        with pytest.raises(WorkloadError, match=r"extract|begins with jobs that run"):
            give()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", 0, 1.0), "code 'a': processes must be a whole number from 1 to"),
        (("a", 1.5, 1.0), "code 'a': processes must be a whole number from 1 to"),
        (("a", 1, 0.0), "code 'a': compact_s must be a number above 0 s, not 0.0"),
        (("a", 1, float("nan")), "compact_s must be a number above 0 s"),
        (("", 1, 1.0), "'' is no name of a code"),
    ],
)
def test_codes_that_are_none(arguments: tuple[str, int, float], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        Code(*arguments)


# --- Files ----------------------------------------------------------------------------------


def test_a_simulation_hangs_on_its_codes() -> None:
    other = with_codes(plain(), ["lu.E.2048", "cg.D.64", "cg.D.64", "628.pot3d s"])
    renamed = with_codes(plain(), [f"{name}x" for name in NAMES])
    prints = {fingerprint([workload]) for workload in (plain(), coded(), other, renamed)}
    assert len(prints) == 4
    assert fingerprint([coded()]) in prints


# --- Codes for any trace --------------------------------------------------------------------


def test_codes_are_drawn_for_a_trace() -> None:
    trace = load_workload("lublin:jobs=3000,processors=64,seed=1")
    first, again = assign_codes(trace, ["a", "b"], seed=3), assign_codes(trace, ["a", "b"], seed=3)
    assert np.array_equal(first.executable, again.executable)
    assert not np.array_equal(first.executable, assign_codes(trace, ["a", "b"]).executable)
    assert first.header["Code"] == ["1 a", "2 b"]
    for column in ("submit_time", "run_time", "requested_time", "requested_processors", "user_id"):
        assert np.array_equal(first.columns[column], trace.columns[column])
    shares = np.bincount(first.executable) / len(first)
    assert shares[1:] == pytest.approx([0.5, 0.5], abs=0.04)  # four deviations


def test_codes_are_drawn_by_weight() -> None:
    trace = load_workload("lublin:jobs=3000,processors=64,seed=1")
    drawn = assign_codes(trace, ["a", "b", "c"], weights=[3, 0, 1])
    assert np.bincount(drawn.executable, minlength=4).tolist()[2] == 0
    assert (drawn.executable == 1).mean() == pytest.approx(0.75, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"codes": []}, "codes must be names, at least one"),
        ({"codes": "abc"}, "codes must be names, at least one, not 'abc'"),
        ({"codes": ["a"], "weights": [0]}, "weights must be 1 numbers of at least 0"),
        ({"codes": ["a", "b"], "weights": [1]}, r"weights must be 2 numbers .*, not \[1\]"),
        ({"codes": ["a", "b"], "weights": [2, -1]}, "weights must be 2 numbers"),
        ({"codes": ["a", "b"], "weights": [1, float("nan")]}, "weights must be 2 numbers"),
        ({"codes": ["a", "b"], "weights": [1, float("inf")]}, "weights must be 2 numbers"),
        ({"codes": ["a"], "seed": -1}, "assign_codes: seed must be a whole number from 0"),
    ],
)
def test_codes_that_cannot_be_drawn(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        assign_codes(plain(), **arguments)  # type: ignore[arg-type]


# --- Another order --------------------------------------------------------------------------


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
    assert np.array_equal(mixed.submit_time, workload.submit_time)
    order = mixed.job_number
    assert Counter(order.tolist()) == Counter(range(jobs))
    assert np.array_equal(mixed.run_time, workload.run_time[order])
    assert np.array_equal(mixed.killed, workload.killed[order])
    assert np.array_equal(mixed.per_unit["gpu"], order)
    assert np.array_equal(mixed.requested_processors, 2 * (1 + order))
    assert np.array_equal(order, shuffled(workload, seed).job_number)


def test_codes_go_with_their_jobs() -> None:
    workload = coded()
    mixed = shuffled(workload, 5)
    assert mixed.name == "log shuffle 5"
    names = [code_names(mixed)[number] for number in mixed.executable.tolist()]
    assert names == [NAMES[number - 1] for number in mixed.job_number.tolist()]
    with pytest.raises(WorkloadError, match="shuffled: seed must be a whole number"):
        shuffled(workload, -1)


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


# --- Jobs -----------------------------------------------------------------------------------


def test_jobs_are_those_that_document_003_prints() -> None:
    workload = generate_code_jobs(PRINTED, 4, mix="list")
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
    one, other = (generate_code_jobs(PRINTED, 10, mix="shuffle", seed=seed) for seed in (1, 2))
    assert sorted(listed(one)) == sorted(listed(other)) == listed(in_order)
    assert listed(one) != listed(other)
    again = generate_code_jobs(PRINTED, 10, mix="shuffle", seed=1)
    assert listed(again) == listed(one)
    assert np.array_equal(one.run_time, [[4540, 3470, 2630, 3580][n] for n in listed(one)])


@pytest.mark.parametrize("jobs", [None, 5])
def test_lists_with_frequencies(jobs: int | None) -> None:
    often = {"ft.D.32": 3, "bt.D.121": 0, "lu.D.64": 2}
    in_order, mixed = (
        listed(generate_code_jobs(PRINTED, jobs, mix=mix, frequencies=often))
        for mix in ("list", "shuffle")
    )
    assert (in_order, sorted(mixed)) == ([2, 2, 2, 0, 0], [0, 0, 2, 2, 2])


def test_codes_are_drawn_alike() -> None:
    workload = generate_code_jobs(PRINTED, 4000, seed=1)
    counts = np.bincount(listed(workload))
    assert counts == pytest.approx([1000] * 4, abs=110)  # four deviations
    assert listed(workload) != listed(generate_code_jobs(PRINTED, 4000, seed=2))


# --- Arrivals -------------------------------------------------------------------------------


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
    both = generate_code_jobs(PRINTED, jobs, seed=seed, mix=mix, arrivals=arrivals, interval_s=9.5)
    at_once = generate_code_jobs(PRINTED, jobs, seed=seed, mix=mix)
    others = generate_code_jobs(
        PRINTED, jobs, seed=seed, mix="list", arrivals=arrivals, interval_s=9.5
    )
    assert listed(both) == listed(at_once)
    assert np.array_equal(both.submit_time, others.submit_time)
    assert codes_of(both, [code.name for code in PRINTED]).tolist() == listed(both)


# --- What cannot be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"codes": ()}, "codes must be Code after Code, at least one"),
        ({"codes": ("lu",)}, "codes must be Code after Code"),
        ({"codes": (*PRINTED, PRINTED[1])}, "the code 'cg.D.32' stands there twice"),
        ({"jobs": 0}, "jobs must be a whole number from 1 to"),
        ({"jobs": None}, "jobs must be a whole number from 1 to .*, not None"),
        ({"processors": 120}, "'bt.D.121' has 121 processes, the machine 120 processors"),
        ({"processors": 0}, "processors must be a whole number from 1"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"mix": "shufle"}, "unknown mix 'shufle'; did you mean 'shuffle'.* random, list, shuffle"),
        ({"mix": []}, "unknown mix"),
        (
            {"arrivals": "now"},
            "unknown arrivals 'now'; known are at-once, constant, poi",
        ),
        ({"arrivals": "poisson"}, "poisson arrivals need an interval"),
        ({"arrivals": "constant", "interval_s": 0}, "interval must be a number above 0, not 0"),
        ({"interval_s": 5}, "arrivals at once have no interval, 5 s"),
        ({"arrivals": "constant", "interval_s": 2.0**60}, r"over more than 2\^53 s"),
        ({"requested_factor": 0.99}, "requested must be a factor of at least 1, not 0.99"),
        ({"requested_factor": None}, "requested must be a factor of at least 1, not None"),
        ({"frequencies": {"lu.D.64": 1}}, "frequencies are of the mixes list and shuffle"),
        (
            {"mix": "list", "frequencies": {"lu.D.46": 9}},
            "frequencies: unknown code 'lu.D.46'; did you mean 'lu.D.64'",
        ),
        (
            {"mix": "list", "frequencies": {"lu.D.64": 8}},
            "jobs are the sum of the frequencies, 8; .*, not 9",
        ),
        (
            {"mix": "list", "jobs": None, "frequencies": {}},
            "jobs are the sum of the frequencies, 0; they must be from 1",
        ),
        (
            {"mix": "list", "frequencies": {"lu.D.64": -1}},
            "the frequency of 'lu.D.64' must be a whole number from 0",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(WorkloadError, match=f"codes: .*{problem}"):
        generate_code_jobs(**{"codes": PRINTED, "jobs": 9, **arguments})  # type: ignore[arg-type]


# --- Codes of speedups ----------------------------------------------------------------------


def test_codes_of_a_table_of_speedups(speedups: Path) -> None:
    table = read_speedups(speedups)
    assert codes_in(table) == [Code("lu", 64, 99.2), Code("mg", 16, 0.25)]
    assert codes_in(table.take(["mg"])) == [Code("mg", 16, 0.25)]
    with pytest.raises(WorkloadError, match=r"two\.json tells the processes of all its codes"):
        codes_in(table, processes=4)


def test_what_a_table_does_not_tell() -> None:
    table = generate_speedups(40)
    with pytest.raises(WorkloadError, match="does not tell the processes of 'code-1'; give"):
        codes_in(table)
    codes = codes_in(table, processes=256, seed=1)
    assert [code.name for code in codes] == list(table.codes)
    assert {code.processes for code in codes} == {256}
    times = [code.compact_s for code in codes]
    assert all(SHORTEST_S <= time <= LONGEST_S for time in times)
    assert len({*times}) == 40
    assert codes == codes_in(table, processes=256, seed=1)
    assert times[:16] == [c.compact_s for c in codes_in(generate_speedups(), processes=2, seed=1)]
    assert codes != codes_in(table, processes=256, seed=2)


def test_what_is_told_is_kept() -> None:
    table = Heatmap(("a", "b"), np.ones((2, 2)), compact_s=[50, np.nan], processes=[-1, 8])
    first, second = codes_in(table, processes=4)
    assert (first.processes, first.compact_s, second.processes) == (4, 50, 8)
    assert SHORTEST_S <= second.compact_s <= LONGEST_S


# --- By name --------------------------------------------------------------------------------


def test_the_text_is_the_function(speedups: Path) -> None:
    workload = load_workload(
        f"codes:speedups={speedups},jobs=7,processors=80,seed=3,mix=shuffle,arrivals=poisson,"
        "interval=30,requested=2"
    )
    rules = {"mix": "shuffle", "arrivals": "poisson", "interval_s": 30, "requested_factor": 2}
    codes = codes_in(read_speedups(speedups))
    expected = generate_code_jobs(codes, 7, processors=80, seed=3, **rules)  # type: ignore[arg-type]
    for name, column in expected.columns.items():
        assert np.array_equal(column, workload.columns[name])
    assert (workload.header, workload.processors) == (expected.header, 80)
    assert "arrivals=poisson, interval_s=30" in workload.header["Note"][0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("codes", "give processes"),
        ("codes:processes=0", "codes: processes must be a whole number from 1"),
        ("codes:processes=two", "processes=two is not a number"),
        ("codes:speedups=nowhere.json", r"nowhere\.json: no such file"),
        ("codes:interval_s=4", "has no argument 'interval_s', only speedups, jobs"),
        ("codes:processes=1,arrivals=", "codes: unknown arrivals"),
    ],
)
def test_texts_that_name_no_jobs(text: str, problem: str) -> None:
    with pytest.raises(HpcgymError, match=problem):
        load_workload(text)
