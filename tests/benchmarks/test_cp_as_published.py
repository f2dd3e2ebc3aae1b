"""PCP'19 without a hint and a fallback: what it starts, and what the study says where it stops."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cp_states import crowded
from typer.testing import CliRunner

from hpcgym.benchmarks.cp import configurations, simulations, tables
from hpcgym.benchmarks.cp.configurations import (
    MACHINES,
    NAME,
    AsPublished,
    Run,
    dispatcher_of,
    summary,
)
from hpcgym.cli import app
from hpcgym.errors import HpcgymError

pytest.importorskip("ortools")

from hpcgym.baselines.cp.dispatcher import Limits
from hpcgym.baselines.cp.dispatchers import PCP19


def task(days: float) -> dict[str, Any]:
    """The task of the row, of the first seed."""
    workload, _ = simulations.load_jobs("kit-forhlr-ii", days, 1)
    return {
        "machine": "kit-forhlr-ii",
        "days": days,
        "seeds": [1],
        "jobs_sha256": simulations.hash_of([workload]),
        "dispatcher": NAME,
        "duration": "L2",
        "allocation": "first-fit",
    }


def row_of(outcome: dict[str, Any]) -> dict[str, Any]:
    """The row of the report's table."""
    found: Any = SimpleNamespace(
        machine="kit-forhlr-ii",
        load=SimpleNamespace(seeds=(1,)),
        outcomes={} if "stopped" in outcome else {Run(NAME, "L2"): outcome},
        stopped={Run(NAME, "L2"): outcome} if "stopped" in outcome else {},
    )
    row: dict[str, Any] = tables.as_published(found).iloc[0].to_dict()
    return row


def test_it_is_a_row_of_kit() -> None:
    assert {Run(NAME, "L2"), Run(NAME, "R")} <= set(MACHINES["kit-forhlr-ii"].runs(full=False))
    assert isinstance(dispatcher_of(NAME), AsPublished)


def test_where_the_solver_finds_nothing_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PCP19, "usual", Limits(work=0.0))
    outcome = simulations.simulate_one(task(0.05))
    (one,) = outcome["alone"]
    assert set(outcome) == {"stopped", "alone"}
    assert (one["started"], one["nothing found"], one["idle"]) == (0, one["calls"], one["calls"])
    row = row_of(outcome)
    assert (row["ours"], row["published"]) == ("none finished", "none finished")
    assert row["started"] == 0 < row["jobs"]
    assert np.isnan(row["last start (days)"])


def test_it_ends_where_the_solver_always_finds_a_schedule() -> None:
    outcome = simulations.simulate_one(task(0.05))
    (one,) = outcome["alone"]
    assert (one["started"], one["nothing found"]) == (one["jobs"], 0)
    assert outcome["shapes"]["all"]["jobs"] == one["jobs"]
    assert row_of(outcome)["ours"] == "finished"


def test_the_solver_gets_nothing_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    from hpcgym.baselines.cp import dispatcher

    seen, search = [], dispatcher.search

    def noting(model: Any, *limits: Any, **how: Any) -> Any:
        domains = [list(model.cp.proto.variables[one.index].domain) for one in model.starts]
        seen.append((len(model.cp.proto.solution_hint.vars), domains))
        return search(model, *limits, **how)

    monkeypatch.setattr(dispatcher, "search", noting)
    view = crowded(8)
    AsPublished()(view)
    PCP19()(view)
    (hints, bare), (given, bounded) = seen
    assert hints == 0 < given
    assert {first for first, _ in bare} == {0}
    # [t, eoh]: the sum of all that waits and runs
    left = view.running_end - view.time
    assert {last for _, last in bare} == {view.duration.sum() + left.sum()}
    assert len({last for _, last in bounded}) > 1


def test_errors_that_are_no_stop_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: AsPublished, view: Any) -> list[int]:
        self.asked.append({"time": int(view.time), "idle": True, "found": True, "started": 1})
        return [len(view.job)]

    monkeypatch.setattr(configurations.AsPublished, "__call__", wrong)
    with pytest.raises(HpcgymError, match="is no place"):
        simulations.simulate_one(task(0.05))


def test_a_summary_counts_from_the_first_submission() -> None:
    asked = [
        {"time": 100, "idle": True, "found": True, "started": 2},
        {"time": 43_300, "idle": False, "found": False, "started": 0},
        {"time": 43_300, "idle": False, "found": True, "started": 1},
        {"time": 86_500, "idle": True, "found": False, "started": 0},
    ]
    assert summary(asked, np.array([100, 200, 300, 100 + 2 * 86_400])) == {
        "jobs": 4, "started": 3, "calls": 4, "nothing found": 2, "idle": 1, "days": 2.0,
        "last_day": 0.5,
    }  # fmt: skip


def test_it_stops_at_an_idle_machine_alone() -> None:
    dispatcher = AsPublished()
    assert not dispatcher.stopped
    dispatcher.asked = [{"time": 1, "idle": False, "found": False, "started": 0}]
    assert not dispatcher.stopped
    dispatcher.asked.append({"time": 2, "idle": True, "found": False, "started": 0})
    assert dispatcher.stopped


def test_the_study_of_it_alone_is_written_where_it_stops(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PCP19, "usual", Limits(work=0.0))
    which = ["--machine", "kit-forhlr-ii", "--dispatcher", NAME, "--days", "0.02"]
    which += ["--executor", "serial", "--format", "json", "--output", str(tmp_path)]
    found = CliRunner().invoke(app, ["reproduce", "cp", *which])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["rows"] == []  # no schedule, no slowdown
    text = (tmp_path / "report.md").read_text()
    assert "PCP'19 as published: no hint, no fallback" in text
    assert text.count("| none finished | none finished |") == 6  # L2 and R, three seeds
