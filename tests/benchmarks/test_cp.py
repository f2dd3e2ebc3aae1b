"""The study of dispatchers: what is simulated and kept, and the whole of it, small."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cp_states import crowded
from typer.testing import CliRunner

from hpcgym.benchmarks.cp import configurations, instances, simulations
from hpcgym.benchmarks.cp import run as whole
from hpcgym.benchmarks.cp.configurations import HEURISTICS, MACHINES, Machine, Run
from hpcgym.benchmarks.cp.published import STATEMENTS, TIMES, VARIABLES_BELOW
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.cli import app
from hpcgym.cli.reproduce import _with_workloads
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.study import read_results
from hpcgym.workload import load_workload

HOUR = 3600


# --- What is simulated ----------------------------------------------------------------------------


def test_every_published_time_has_a_run_beside_it() -> None:
    for machine, times in TIMES.items():
        runs = {(run.dispatcher, run.duration) for run in MACHINES[machine].runs()}
        assert set(times) <= runs


def test_every_statement_of_document_000_can_be_looked_at() -> None:
    runs = {f"{run.dispatcher} {run.duration}" for run in MACHINES["eurora"].runs()}
    for said in STATEMENTS:
        assert {said.first, said.second} <= runs
    assert "pcp20 W" not in runs  # Galleguillos et al. 2020 has D and R alone


def test_durations_are_those_of_the_documents() -> None:
    assert configurations.rules_of(Run("prb", "L2"), "prb").estimate == "ave2"
    rules = configurations.rules_of(Run("easy", "W"), None)
    assert (rules.estimate, rules.correction) == ("requested", "incremental")
    learned = [configurations.duration_of("D") for _ in range(2)]
    assert learned[0] is not learned[1]  # nothing is handed on from run to run


def test_eurora_with_few_units_is_the_same_machine_with_the_same_jobs_but_for_units() -> None:
    source = MACHINES["eurora-figure-6"].source(0.4, 2)
    assert source == MACHINES["eurora"].source(0.4, 2) + ",units=figure-6"
    jobs, cluster = simulations.load_jobs("eurora-figure-6", 0.05, 2)
    others, same = simulations.load_jobs("eurora", 0.05, 2)
    assert (cluster, len(jobs)) == (same, len(others))
    assert jobs.units.sum() < others.units.sum()


def test_a_short_study_leaves_some_runs_out() -> None:
    few = {str(run) for run in MACHINES["eurora"].runs(full=False)}
    assert {"cp-1 D", "cph-0 W", "prb W, best fit", "pcp19 D", "pcp20 lists D"} <= few
    assert not few & {"cp-1 W", "cph-3 W", "cp-3 D, best fit"}


def test_lists_only_solve_nothing() -> None:
    pytest.importorskip("ortools")
    solving, lists = (configurations.dispatcher_of(name) for name in ("cph-3", "cph-3 lists"))
    view = crowded(8)
    assert len(lists(view)) > 0
    solving(view)
    assert (lists.log[0]["status"], lists.limits.work) == ("unknown", 0)
    assert lists.log[0]["objective"] == lists.log[0]["heuristic"]
    assert solving.limits.work > 0
    assert lists.name == "cph-3 lists"


# --- What is kept of a schedule -------------------------------------------------------------------


def test_shapes_are_those_of_the_jobs_of_a_class() -> None:
    run = np.array([10, HOUR, HOUR + 1, 12 * HOUR, 12 * HOUR + 1])
    wait = np.array([90, 0, 0, 12 * HOUR, 0])
    result: Any = SimpleNamespace(run_time=run, wait=wait)
    found = configurations.shapes_of([result])
    assert [found[name]["jobs"] for name in ("all", "short", "medium", "long")] == [5, 2, 2, 1]
    assert found["short"]["slowdown"]["mean"] == pytest.approx((10 + 1) / 2)
    assert found["medium"]["slowed"] == {
        "number": 1, "mean": 2.0, "std": 0.0,
        "low": 2.0, "q1": 2.0, "median": 2.0, "q3": 2.0, "high": 2.0,
    }  # fmt: skip
    assert found["long"]["waited"]["number"] == 0
    assert np.isnan(found["long"]["waited"]["mean"])


def test_the_queue_is_what_waits_after_a_pass() -> None:
    # one machine, jobs one after the other: 0-10, 10-20, 20-30, and one later by itself
    result: Any = SimpleNamespace(
        workload=SimpleNamespace(submit_time=np.array([0, 2, 4, 50])),
        start=np.array([0, 10, 20, 50]),
        end=np.array([10, 20, 30, 60]),
        wait=np.array([0, 8, 16, 0]),
    )
    found = configurations.queues_of([result])
    # asked at 0, 2, 4, 10, 20 and 50: then wait 0, 1, 2, 1, 0 and 0
    assert found["passes"] == 6
    assert found["queue"]["mean"] == pytest.approx(4 / 6)
    assert found["queue"]["high"] == 2
    assert found["queue_in_time"] == pytest.approx(24 / 60)


def test_the_mean_queue_over_time_is_that_of_the_metrics() -> None:
    result = simulate(load_workload("lublin:jobs=300,processors=32,seed=1,load=1.2"), "easy")
    found = configurations.queues_of([result])
    assert found["queue_in_time"] == pytest.approx(result.metrics["mean_queue_length"])
    slowdown = configurations.shapes_of([result])["all"]["slowdown"]["mean"]
    assert slowdown == pytest.approx(result.metrics["mean_slowdown"])


def test_times_are_grouped_by_powers_of_two() -> None:
    timed = simulations.Timed(lambda view: view.job)
    timed.queued, timed.seconds = [1, 3, 2, 9], [0.001, 0.002, 0.004, 0.5]
    assert simulations.by_queue(timed) == [
        {"queued": 1, "calls": 1, "mean_ms": 1.0, "max_ms": 1.0},
        {"queued": 2, "calls": 2, "mean_ms": 3.0, "max_ms": 4.0},
        {"queued": 8, "calls": 1, "mean_ms": 500.0, "max_ms": 500.0},
    ]
    assert simulations.by_queue(simulations.Timed(list)) == []


def test_models_are_counted_by_what_was_found() -> None:
    entry = {"considered": 4, "postponed": 1, "objective": 5.0, "heuristic": 5.0, "gap": 0.0}
    log: list[dict[str, Any]] = [
        {**entry, "variables": 0, "status": "plan is optimal"},
        {**entry, "variables": 10, "status": "optimal", "objective": 4.0},
        {**entry, "variables": 30, "status": "feasible", "gap": 0.5},
        {**entry, "variables": 20, "status": "unknown", "gap": 0.3},
    ]
    assert simulations.solved(log) == {
        "dispatches": 4, "plan optimal": 1, "optimal": 1, "feasible": 1, "infeasible": 0,
        "unknown": 1, "unknown %": pytest.approx(100 / 3), "better than heuristic": 1,
        "mean gap %": pytest.approx(40),
        "considered": 4, "variables": 20, "postponed": 4,
    }  # fmt: skip


def test_saved_states_are_spread_over_the_run() -> None:
    saving = instances.Saving(lambda view: [], 4)
    for number in range(21):
        saving(number)
    assert [pickle.loads(one) for one in saving.saved] == [0, 4, 8, 12, 16, 20]
    assert saving.stride == 4


def test_sizes_are_counted_as_the_paper_does() -> None:
    # 2 nodes of 16 cores and 2 GPUs, 1 of 16 cores alone
    capacity = np.array([[16, 2], [16, 2], [16, 0]])
    per_unit = np.array([[4, 1], [8, 0]])
    # positions: 2 jobs + (1 + 3) units x 2 types; alternatives: 2 + (1 + 1 + 0) + (2 + 2 + 2)
    assert instances.published_sizes(np.array([1, 3]), per_unit, capacity) == (10, 10)


@pytest.mark.parametrize(
    ("per_unit", "most"),
    [
        ([16, 500, 0, 0], 1),  # its units fill their nodes
        ([8, 500, 0, 0], 2),
        ([4, 500, 0, 0], 6),
        ([1, 500, 0, 0], 25),
        ([1, 500, 1, 0], 0),  # with a GPU: not even a single unit
        ([1, 500, 0, 2], 0),
    ],
)
def test_of_what_units_a_job_of_eurora_is_that_figure_6_allows(
    per_unit: list[int], most: int
) -> None:
    """As the docstring of the generator says: k < 1.6 c, or none with GPUs or MICs."""
    gpus, mics = [16, 16_000, 2, 0], [16, 16_000, 0, 2]
    capacity = np.array([gpus] * 32 + [mics] * 32)
    kept = []
    for units in range(1, 33):
        sizes = instances.published_sizes(np.array([units]), np.array([per_unit]), capacity)
        if sizes[0] < VARIABLES_BELOW * sizes[1]:
            kept.append(units)
    assert kept == list(range(1, most + 1))


# --- The whole ------------------------------------------------------------------------------------


SMALL = Machine(
    "eurora",
    "eurora:days={days},seed={seed}",
    "generated workloads",
    ("W", "D"),
    ("prb", "easy", "cph-3", "pcp20", "pcp20 lists"),
    nodes_matter=True,
    full_days=1,
    usual_days=0.02,
    seeds=(1, 4),  # jobs wait in the second
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of a few minutes of Eurora."""
    pytest.importorskip("ortools")
    monkeypatch.setitem(MACHINES, "eurora", SMALL)
    monkeypatch.setitem(instances.DRIVERS, "eurora", (Run("pcp20", "D"),))
    monkeypatch.setattr(instances, "NUMBER", 2)


@pytest.mark.usefixtures("small")
def test_a_small_study_is_written_and_goes_on(tmp_path: Path) -> None:
    which = ["--machine", "eurora", "--days", "0.02", "--executor", "serial", "--format", "json"]
    arguments = ["reproduce", "cp", *which, "--output", str(tmp_path)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {row["workload"] for row in rows} == {"eurora"}
    assert [row["run"] for row in rows] == [str(run) for run in SMALL.runs()]
    text = (tmp_path / "report.md").read_text()
    for heading in (
        "Slowdown (Remediani 2017",
        "Time (Galleguillos et al. 2020",
        "Models of the same instances",
    ):
        assert heading in text
    assert "eurora:days=0.02,seed=1; eurora:days=0.02,seed=4" in text
    for picture in ("slowdown", "classes", "queue", "wait", "means", "ratios"):
        assert (tmp_path / "eurora" / f"{picture}.png").stat().st_size > 5_000
        assert f"eurora/{picture}.png" in text
    kept = read_results(tmp_path / "runs")
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["rows"] == rows
    assert read_results(tmp_path / "runs") == kept
    assert (tmp_path / "report.md").read_text() == text


def test_a_quick_cut_needs_no_solver_and_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing_solver(name: str) -> Any:
        raise HpcgymError("no OR-Tools")

    monkeypatch.setattr(whole, "find_dispatcher", missing_solver)
    which = ["--quick", "--executor", "serial", "--format", "json", "--output", str(tmp_path)]
    found = CliRunner().invoke(app, ["reproduce", "cp", *which])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {row["workload"] for row in rows} == {"eurora"}
    assert {row["run"].split()[0].rstrip(",") for row in rows} == set(HEURISTICS)
    assert "**A quick cut" in (tmp_path / "report.md").read_text()
    for more in (["--full"], ["--days", "1"]):
        refused = CliRunner().invoke(app, ["reproduce", "cp", *which, *more])
        assert "quick" in refused.stderr
        assert "a study is one or the other" in refused.stderr


@pytest.mark.usefixtures("small")
def test_some_dispatchers_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing_solver(name: str) -> Any:
        raise HpcgymError("no OR-Tools")

    monkeypatch.setattr(whole, "find_dispatcher", missing_solver)
    given: dict[str, Any] = {"days": 0.02}
    for solving in ((), ("pcp20",), ("prb", "cph-3 lists")):
        with pytest.raises(HpcgymError, match="no OR-Tools"):
            whole.reproduce(["eurora"], Folder(tmp_path, "serial"), dispatchers=solving, **given)
    path, shown = whole.reproduce(
        ["eurora"], Folder(tmp_path, "serial"), dispatchers=["prb", "easy"], **given
    )
    runs = {str(run) for run in SMALL.runs() if run.dispatcher in ("prb", "easy")}
    assert set(shown["eurora"]["run"]) == runs
    text = path.read_text()
    assert "of these dispatchers alone: prb, easy" in text
    assert "eurora/means.png" in text
    assert "ratios.png" not in text
    assert not (tmp_path / "eurora" / "ratios.png").exists()
    # what is done counts for all
    kept = read_results(tmp_path / "runs")
    before = {tmp_path / "eurora" / name for name in ("ratios.png", "table-solving.csv")}
    before |= {tmp_path / "table-hints.csv"}
    for file in (*before, tmp_path / "eurora" / "mine.png"):
        file.write_text("of before")
    path, shown = whole.reproduce(
        ["eurora"], Folder(tmp_path, "serial"), dispatchers=["easy"], **given
    )
    assert not any(file.exists() for file in before)
    assert (tmp_path / "eurora" / "mine.png").exists()
    assert read_results(tmp_path / "runs") == kept


def test_machines_without_the_dispatchers_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert _with_workloads(("cp-0", "cp-1")) == ["eurora"]
    told = capsys.readouterr().err.splitlines()
    assert "kit-forhlr-ii is left out: none of these dispatchers runs there" in told
    assert len(told) == 3  # with eurora-figure-6 and kth-sp2
    assert "eurora" in _with_workloads(("pcp21",))  # what is wrong is said of the name
    assert "left out: none" not in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_an_interrupted_study_leaves_no_results_and_goes_on(tmp_path: Path) -> None:
    def interrupted(what: str, done: int, total: int) -> None:
        if (what, done) == ("simulations", 2):
            raise KeyboardInterrupt

    given: dict[str, Any] = {"days": 0.02, "dispatchers": ["prb"]}
    with pytest.raises(KeyboardInterrupt):
        whole.reproduce(["eurora"], Folder(tmp_path, "serial", None, interrupted), **given)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.md", "runs"]
    assert "Not finished yet." in (tmp_path / "report.md").read_text()
    kept = read_results(tmp_path / "runs")
    assert len(kept) == 2
    path, _ = whole.reproduce(["eurora"], Folder(tmp_path, "serial"), **given)
    assert all(one in read_results(tmp_path / "runs") for one in kept)
    text = path.read_text()
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(KeyboardInterrupt):
        whole.reproduce(["eurora"], Folder(tmp_path, "serial", None, _interrupt), **given)
    assert path.read_text() == text


def _interrupt(what: str, done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_other_jobs_than_at_the_start_are_noticed() -> None:
    simulations.loaded.cache_clear()
    with pytest.raises(HpcgymError, match="eurora: it has other jobs here"):
        simulations.loaded("eurora", 0.1, (1,), "0" * 64)
