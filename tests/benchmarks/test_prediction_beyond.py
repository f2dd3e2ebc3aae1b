"""What goes past the thesis, on a small trace made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcgym import load_workload, simulate
from hpcgym.benchmarks.prediction import beyond
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.benchmarks.studies.weeks import cut_weeks, weekly_slowdowns
from hpcgym.errors import HpcgymError
from hpcgym.naming import WEEK_S
from hpcgym.simulation.run import learn_before
from hpcgym.study import read_results
from hpcgym.workload.io.swf import write_swf

#: A trace of five weeks, the last four of which are simulated: few jobs, of a slower machine.
DRAWN = load_workload("lublin:jobs=1500,processors=64,seed=1,load=0.95")
TIMES = ("submit_time", "run_time", "requested_time")
TRACE = DRAWN.with_columns(**{name: 12 * DRAWN.columns[name] for name in TIMES})


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.swf"
    write_swf(TRACE, path)
    return path


def pages(source: Path, folder: Path, *families: str) -> str:
    return beyond.tables([str(source)], families, 1, Folder(folder, "serial"))


@pytest.mark.parametrize("family", ["order", "backfill"])
def test_all_rows_are_there_and_are_computed_once(
    trace_file: Path, tmp_path: Path, family: str
) -> None:
    pytest.importorskip("river")
    folder = tmp_path / "found"
    page = pages(trace_file, folder, family)
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows == beyond._rows(family)
    assert f"{trace_file}, {family}, 1 cuts" in page
    once = read_results(folder)
    assert len(once) == len(rows)
    assert pages(trace_file, folder, family) == page
    assert read_results(folder) == once


def test_other_jobs_are_other_tasks(trace_file: Path) -> None:
    [first, *_] = beyond._tasks(str(trace_file), ["backfill"], 1)
    beyond.compute(first)
    for name in ("run_time", "user_id", "group_id", "queue"):
        changed = TRACE.columns[name].copy()
        changed[1000] += 1
        write_swf(TRACE.with_columns(**{name: changed}), trace_file)
        [task, *_] = beyond._tasks(str(trace_file), ["backfill"], 1)
        assert task["jobs_sha256"] != first["jobs_sha256"]
        # where the new jobs are, the old task is refused
        with pytest.raises(HpcgymError, match=r"trace\.swf: it has other jobs here"):
            beyond._cut.__wrapped__(first["source"], first["shift"], first["jobs_sha256"])


def test_weeks_begin_with_what_was_learned_before_them() -> None:
    weeks = cut_weeks(TRACE, 0)
    scheduler = beyond.lineup("order")["typical-ratio"]
    values = weekly_slowdowns(weeks, scheduler, fresh=False)
    fresh = weekly_slowdowns(weeks, scheduler, fresh=True)
    assert fresh == [float(simulate(week, scheduler).bsld.mean()) for week in weeks.values()]
    assert values[0] == fresh[0]
    assert values[1:] != fresh[1:]
    first, second, *_ = weeks
    learned = learn_before(weeks[first], scheduler, (first + 1) * WEEK_S)
    assert values[1] == simulate(weeks[second], scheduler, learned=learned).bsld.mean()


def test_a_week_hangs_on_no_later_one() -> None:
    weeks = cut_weeks(TRACE, 0)
    scheduler = beyond.lineup("order")["ave2"]
    before = weekly_slowdowns(weeks, scheduler, fresh=False)
    last = list(weeks)[-1]
    longer = weeks[last].with_columns(run_time=weeks[last].requested_time)
    after = weekly_slowdowns({**weeks, last: longer}, scheduler, fresh=False)
    assert after[:-1] == before[:-1]
    assert np.isfinite(before).all()
    assert after[-1] != before[-1]


def test_a_result_says_which_weeks(trace_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "found"
    pages(trace_file, folder, "backfill")
    for record in read_results(folder):
        result = record["result"]
        assert result["weeks"] == list(cut_weeks(TRACE, 0))
        assert len(result["values"]) == len(result["weeks"])
