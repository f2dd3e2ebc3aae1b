"""Heatmaps: what they hold, what they refuse, and their files."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mistakes import mistakes_of

from hpcgym.machine.speedups import Heatmap, read_speedups, write_speedups

NAN = math.nan

#: lu beside mg was measured, mg beside itself was not, and of ep nothing was.
SMALL = Heatmap(("lu", "mg", "ep"), np.array([[1.0, 0.5, NAN], [1.5, NAN, 2.0], [NAN] * 3]))


# --- What a heatmap holds -------------------------------------------------------------------


def test_gaps_are_the_means_of_their_rows() -> None:
    assert SMALL.filled.tolist() == [[1.0, 0.5, 0.75], [1.5, 1.75, 2.0], [1.0, 1.0, 1.0]]
    assert SMALL.unknown == 5
    assert SMALL.mean_speedup == 1.25
    assert np.isnan(SMALL.speedup).sum() == 5  # as it was


def test_alone_is_the_greatest_of_a_row_where_it_is_not_given() -> None:
    assert SMALL.alone.tolist() == [1.0, 2.0, 1.0]
    given_some = Heatmap(SMALL.codes, SMALL.speedup, np.array([0.9, NAN, NAN]))
    assert given_some.alone.tolist() == [0.9, 2.0, 1.0]
    assert np.isnan(SMALL.compact_s).all()
    assert SMALL.processes.tolist() == [-1, -1, -1]
    assert SMALL.processes.dtype == np.int64


def test_arrays_are_copies_that_nobody_changes() -> None:
    given = np.ones((2, 2))
    heatmap = Heatmap(("a", "b"), given, [3.0, 1.0], [4.0, 1.0], [5, 1], "mine", 6)  # type: ignore[arg-type]
    given[0, 0] = 7.0
    assert heatmap.speedup[0, 0] == 1.0
    for copied in (heatmap, pickle.loads(pickle.dumps(heatmap)), copy.deepcopy(heatmap)):
        assert copied.describe() == heatmap.describe()
        assert (copied.alone[0], copied.compact_s[0], copied.processes[0]) == (3, 4, 5)
        for name in ("speedup", "alone", "compact_s", "processes", "filled"):
            assert not getattr(copied, name).flags.writeable


def test_taking_codes() -> None:
    taken = SMALL.take(["mg", "lu"])
    assert taken.codes == ("mg", "lu")
    np.testing.assert_array_equal(taken.speedup, [[NAN, 1.5], [0.5, 1.0]])
    assert taken.alone.tolist() == [2.0, 1.0]  # mg's best neighbour is not there any more


def test_the_table() -> None:
    table = SMALL.to_frame()
    assert table.loc["mg", "ep"] == 2.0
    assert table.loc["lu", "mg"] == 0.5
    assert (table.index.name, table.columns.name) == ("code", "beside")


def test_manifests_tell_heatmaps_apart() -> None:
    manifest = json.loads(json.dumps(SMALL.describe()))
    assert manifest["codes"] == ["lu", "mg", "ep"]
    assert (manifest["unknown_pairs"], manifest["dropped"], manifest["source"]) == (
        5,
        0,
        "the heatmap",
    )
    same = Heatmap(SMALL.codes, SMALL.speedup, SMALL.alone, source="elsewhere")
    assert same.digest == SMALL.digest == manifest["digest"]
    others = [
        Heatmap(("lu", "mg", "ft"), SMALL.speedup),
        Heatmap(SMALL.codes, SMALL.filled),
        Heatmap(SMALL.codes, SMALL.speedup, np.ones(3)),
        Heatmap(SMALL.codes, SMALL.speedup, compact_s=np.ones(3)),
        Heatmap(SMALL.codes, SMALL.speedup, processes=np.ones(3, np.int64)),
        with_io(SMALL, [0.5, 0, 0], [1, 0, 0]),
        with_io(SMALL, [0.5, 0, 0], [2, 0, 0]),
    ]
    assert len({SMALL.digest, *(other.digest for other in others)}) == 8


def with_io(heatmap: Heatmap, share: Any, demand: Any) -> Heatmap:
    return dataclasses.replace(heatmap, io_share=share, io_demand_mb_s=demand)


def test_what_codes_read_and_write() -> None:
    assert (SMALL.io_share, SMALL.io_demand_mb_s) == (None, None)
    heatmap = with_io(SMALL, [0.25, 0, NAN], [2.5, 0, NAN])
    for copied in (heatmap, pickle.loads(pickle.dumps(heatmap)), copy.deepcopy(heatmap)):
        assert copied.io_share is not None
        assert copied.io_demand_mb_s is not None
        assert copied.io_share.tolist() == [0.25, 0, 0]
        assert copied.io_demand_mb_s.tolist() == [2.5, 0, 0]
        assert not copied.io_share.flags.writeable
    taken = heatmap.take(["ep", "lu"])
    assert taken.io_share is not None
    assert taken.io_share.tolist() == [0, 0.25]
    assert SMALL.take(["ep"]).io_share is None


# --- Files ----------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "speedups.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


FORMS = {
    "square.csv": "code,lu,mg,ep\nlu,1,0.5,\nmg,1.5,,2\n\nep,,,\n",
    "other-order.csv": "code,lu,mg,ep\nep, , ,\nmg,1.5,,2\nlu,1,0.5,\n",
    "table.json": '{"codes": ["lu", "mg", "ep"], "speedup": [[1, 0.5, null], [1.5, null, 2],'
    " [null, null, null]]}",
    "no ending": '\ufeff{"codes": ["lu", "mg", "ep"], "speedup": [[1, 0.5, null], [1.5, null, 2],'
    " [null, null, null]]}",
    "no ending either": ",lu,mg,ep\nlu,1,0.5,\nmg,1.5,,2\nep,,,\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_all_forms_say_the_same(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, FORMS[name], name)
    heatmap = read_speedups(path)
    assert heatmap.digest == SMALL.digest
    assert heatmap.codes == SMALL.codes
    assert heatmap.source == str(path)


def test_json_tells_more(tmp_path: Path) -> None:
    text = """{"codes": ["a", "b"], "speedup": [[1, 2], [3, null]], "alone": [1.5, null],
               "compact_s": [null, 60], "processes": [64, null]}"""
    heatmap = read_speedups(written(tmp_path, text, "a.json"))
    assert heatmap.alone.tolist() == [1.5, 3.0]
    assert np.isnan(heatmap.compact_s).tolist() == [True, False]
    assert heatmap.processes.tolist() == [64, -1]


def test_json_tells_what_codes_read_and_write(tmp_path: Path) -> None:
    text = MORE % '"io_share": [0.25], "io_demand_mb_s": [2.5]'
    heatmap = read_speedups(written(tmp_path, text, "c.json"))
    assert heatmap.digest == with_io(Heatmap(("a",), np.ones((1, 1))), [0.25], [2.5]).digest
    write_speedups(heatmap, tmp_path / "again.json")
    assert read_speedups(tmp_path / "again.json").digest == heatmap.digest


NAMES = st.text(st.characters(blacklist_categories=("C", "Z")), min_size=1, max_size=6)


@st.composite
def heatmaps(draw: st.DrawFn) -> Heatmap:
    codes = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    value = st.floats(1e-3, 1e3) | st.just(NAN)
    speedup = draw(arrays(np.float64, (len(codes), len(codes)), elements=value))
    alone, compact_s = (draw(arrays(np.float64, len(codes), elements=value)) for _ in range(2))
    number = st.just(-1) | st.integers(1, 2**31)
    processes = draw(arrays(np.int64, len(codes), elements=number))
    return Heatmap(tuple(codes), speedup, alone, compact_s, processes)


@settings(max_examples=60, deadline=None)
@given(heatmaps())
def test_files_hold_what_was_written(tmp_path_factory: Any, heatmap: Heatmap) -> None:
    folder = tmp_path_factory.mktemp("written")
    write_speedups(heatmap, folder / "all.json")
    assert read_speedups(folder / "all.json").digest == heatmap.digest
    plain = Heatmap(heatmap.codes, heatmap.speedup)
    write_speedups(plain, folder / "plain.csv")
    assert read_speedups(folder / "plain.csv").digest == plain.digest


def test_csv_does_not_lose_a_speedup_alone(tmp_path: Path) -> None:
    assert not list(tmp_path.iterdir())


MORE = '{"codes": ["a"], "speedup": [[1]], %s}'


# --- Load files of ELiSE --------------------------------------------------------------------


def load(name: str, compact: Any, beside: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "load_name": name,
        "num_of_processes": 4,
        "compact_timelogs": compact,
        "coscheduled_timelogs": beside,
        **others,
    }


def loads(folder: Path, *all_loads: Any) -> Path:
    text = json.dumps({"machine": "m", "suite": "s", "loads": all_loads})
    return written(folder, text, "loads.json")


def test_speedups_of_loads(tmp_path: Path) -> None:
    """The mean of all times beside the other: 4, 5, 9 is 6, and not of 4.5 and 9."""
    first = load("a", [9.0, 15.0], {"b": [[4.0, 5.0], [9.0]], "a": [24]}, ipc=0)
    second = load("b", [30.0], {}, num_of_processes=16)
    heatmap = read_speedups(loads(tmp_path, json.dumps(first), second))
    assert heatmap.codes == ("a", "b")
    np.testing.assert_array_equal(heatmap.speedup, [[0.5, 2.0], [NAN, NAN]])
    assert heatmap.compact_s.tolist() == [12.0, 30.0]
    assert heatmap.processes.tolist() == [4, 16]
    assert heatmap.alone.tolist() == [2.0, 1.0]
    assert heatmap.dropped == 0


def test_neighbours_without_a_load_are_counted(tmp_path: Path) -> None:
    path = loads(tmp_path, load("a", [2.0], {"b": [[1.0]], "c": [[1.0]], "a": [[2.0]]}))
    heatmap = read_speedups(path)
    assert (heatmap.codes, heatmap.dropped, heatmap.describe()["dropped"]) == (("a",), 2, 2)


def test_the_loads_of_aris(measured: Callable[[str], Heatmap], tmp_path: Path) -> None:
    heatmap = measured("lm-aris.compute-NAS.json")
    assert (len(heatmap), heatmap.unknown, heatmap.dropped) == (33, 280, 0)
    lu = heatmap.place("lu.E.2048")
    # of the file's first lines, by hand
    compact = (163.17 + 163.02 + 163.54) / 3
    assert heatmap.compact_s[lu] == pytest.approx(compact, rel=1e-15)
    beside = compact / ((147.62 + 149.41 + 146.26) / 3)
    assert heatmap.speedup[lu, heatmap.place("ft.E.2048")] == pytest.approx(beside, rel=1e-15)
    assert heatmap.processes[lu] == 2048
    assert not np.isnan(heatmap.filled).any()
    write_speedups(heatmap, tmp_path / "aris.json")
    assert read_speedups(tmp_path / "aris.json").digest == heatmap.digest


test_mistakes = mistakes_of(globals())
