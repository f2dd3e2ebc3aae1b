"""The study of constraint programming dispatchers: what is kept, its tables, and a small whole."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.benchmarks.cp import (
    campaign,
    configurations,
    figures,
    growth,
    instances,
    known,
    report,
    shapes,
    simulations,
    tables,
)
from hpcgym.benchmarks.cp import run as whole
from hpcgym.benchmarks.cp.configurations import MACHINES, Machine, Run
from hpcgym.benchmarks.cp.published import (
    MONTHS,
    SECONDS_BETWEEN,
    STATEMENTS,
    TIMES,
    VARIABLES_BELOW,
)
from hpcgym.cli import app
from hpcgym.cli.reproduce import _with_workloads
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

HOUR = 3600


# --- What is simulated ----------------------------------------------------------------------------


def test_eurora_has_what_document_000_compares() -> None:
    runs = {str(run) for run in MACHINES["eurora"].runs()}
    for name in ("prb", "sdprb", "easy", "cph-0", "cph-3", "cp-0", "cp-3"):
        assert {f"{name} {duration}" for duration in "WDR"} <= runs
    assert "fcfs-list" in runs
    assert "pcp20 W" not in runs  # document 001 has D and R alone


def test_every_published_time_has_a_run_beside_it() -> None:
    for machine, times in TIMES.items():
        runs = {(run.dispatcher, run.duration) for run in MACHINES[machine].runs()}
        assert set(times) <= runs


def test_every_statement_of_document_000_can_be_looked_at() -> None:
    runs = {f"{run.dispatcher} {run.duration}" for run in MACHINES["eurora"].runs()}
    for better, than, _, _ in STATEMENTS:
        assert {better, than} <= runs


def test_durations_are_those_of_the_documents() -> None:
    assert configurations.rules_of(Run("prb", "L2"), "prb").estimate == "ave2"
    rules = configurations.rules_of(Run("easy", "W"), None)
    assert (rules.estimate, rules.correction) == ("requested", "incremental")
    learned = [configurations.duration_of("D") for _ in range(2)]
    assert learned[0] is not learned[1]  # nothing is handed on from run to run


def test_the_loads_and_seeds_of_generated_workloads_are_named() -> None:
    for name, load in (("eurora", "load=1"), ("kit-forhlr-ii", "load=0.9")):
        machine = MACHINES[name]
        assert machine.source(2, 3).split(":")[1] == f"days=2,{load},seed=3"
        assert (machine.seeds_of(full=False), machine.seeds_of(full=True)) == ((1, 2, 3), (1,))
    assert MACHINES["kth-sp2"].seeds_of(full=False) == (1,)


def test_a_short_study_leaves_some_runs_out() -> None:
    few = {str(run) for run in MACHINES["eurora"].runs(full=False)}
    assert {"cp-1 D", "cph-0 W", "prb W, best fit", "pcp19 D", "pcp20 lists D"} <= few
    assert not few & {"cp-1 W", "cph-2 R", "cp-3 D, best fit"}


def test_lists_only_solve_nothing() -> None:
    pytest.importorskip("ortools")
    solving, lists = (configurations.dispatcher_of(name) for name in ("cph-3", "cph-3 lists"))
    view = growth.state_of(64, 8, 1)
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
    found = shapes.shapes_of([result])
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
    found = shapes.queues_of([result])
    # asked at 0, 2, 4, 10, 20 and 50: then wait 0, 1, 2, 1, 0 and 0
    assert found["passes"] == 6
    assert found["queue"]["mean"] == pytest.approx(4 / 6)
    assert found["queue"]["high"] == 2
    assert found["queue_in_time"] == pytest.approx(24 / 60)


def test_the_mean_queue_over_time_is_that_of_the_metrics() -> None:
    result = simulate(load_workload("lublin:jobs=300,processors=32,seed=1,load=1.2"), "easy")
    found = shapes.queues_of([result])
    assert found["queue_in_time"] == pytest.approx(result.metrics["mean_queue_length"])
    slowdown = shapes.shapes_of([result])["all"]["slowdown"]["mean"]
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


# --- Tables ---------------------------------------------------------------------------------------


def findings(**means: float) -> Any:
    """What came out with these mean slowdowns; ``prb_D=3`` is PRB by D."""
    outcomes = {}
    for name, mean in means.items():
        dispatcher, duration = name.rsplit("_", 1)
        part = {
            key: {**shapes.box([mean]), "mean": mean}
            for key in ("slowdown", "wait", "slowed", "waited")
        }
        outcomes[Run(dispatcher.replace("_", "-"), duration)] = {
            "shapes": {key: {"jobs": 1, **part} for key in shapes.CLASSES},
            "queues": {"passes": 4, "queue": shapes.box([mean]), "queue_in_time": mean},
            "by_seed": {"slowdown": [mean - 1, mean + 1], "wait": [mean]},
            "total_s": 2.0,
            "calls": 2,
            "dispatch_ms": shapes.box([10.0, 30.0]),
            "by_queue": [{"queued": 8, "calls": 2, "mean_ms": 20.0, "max_ms": 30.0}],
            "solved": {},
        }
    return SimpleNamespace(machine="eurora", outcomes=outcomes, instances={})


def test_times_are_over_all_passes_with_published_ones_beside() -> None:
    row = tables.times(findings(pcp20_D=2)).iloc[0]
    assert (row["dispatch (ms)"], row["a call (ms)"]) == (10, 20)  # 40 ms of 4 passes, 2 calls
    assert (row["published (ms)"], row["published (s)"]) == ("252", "134,240")
    kit = findings(pcp19_R=2)
    kit.machine = "kit-forhlr-ii"
    assert tables.times(kit).iloc[0]["published (ms)"] == "none finished"


def test_gains_are_against_the_same_durations_with_each_allocation() -> None:
    found = findings(easy_D=8, easy_R=1, prb_D=5, pcp20_D=4)
    found.outcomes[Run("easy", "D", "best-fit")] = findings(easy_D=2).outcomes[Run("easy", "D")]
    table = tables.gains(found).set_index("run")
    assert table.loc["pcp20 D", "below EASY, first-fit %"] == 50
    assert table.loc["pcp20 D", "below EASY, best-fit %"] == -100
    assert table.loc["pcp20 D", "below PRB, first-fit %"] == pytest.approx(20)
    assert np.isnan(table.loc["easy R", "below PRB, first-fit %"])
    assert "below PRB, best-fit %" not in table  # there is none
    assert len(tables.gains(findings(pcp20_D=4))) == 0  # nor anything else to compare with


def test_means_are_over_seeds_with_an_interval() -> None:
    row = tables.slowdowns(findings(prb_D=3)).iloc[0]
    # of 2 and 4: a standard error of 1
    assert (row["mean"], row["± over seeds"]) == (3, pytest.approx(12.706))
    assert "± over seeds" not in tables.waits(findings(prb_D=3))  # of one seed
    assert tables.half_interval([1, 2, 3]) == pytest.approx(4.303 / np.sqrt(3))


def test_classes_of_which_no_job_waits_have_no_panel() -> None:
    found = findings(prb_D=3)
    found.outcomes[Run("prb", "D")]["shapes"]["long"]["slowed"] = shapes.box([])
    assert figures.classes_of(found) == ["short", "medium"]


def test_deviations_end_at_the_least_value_of_all_runs() -> None:
    found = findings(easy_W=2.0, prb_W=2.0, pcp20_D=2.0)
    waits = shapes.box([0, 0, 0, 1000])
    for outcome in found.outcomes.values():
        outcome["shapes"]["all"] |= {"wait": waits, "slowdown": shapes.box([1, 1, 1, 11])}
    for axes, mean, std, least in zip(
        figures.draw_means(found).axes, (3.5, 250), (waits["std"] / 100, waits["std"]), (1, 0),
        strict=True,
    ):  # fmt: skip
        (bars,) = (part.get_segments() for part in axes.collections)
        assert len(bars) == 3
        for bar in bars:
            assert bar[:, 1] == pytest.approx([least, mean + std])


def test_queues_are_drawn_from_zero_up() -> None:
    pytest.importorskip("matplotlib")
    axes = figures.draw_queues(findings(easy_W=2.0, prb_W=0.0)).axes[0]
    assert axes.get_ylim()[0] == 0
    assert not axes.texts or "no job waits" not in [text.get_text() for text in axes.texts]
    idle = figures.draw_queues(findings(easy_W=0.0, prb_W=0.0)).axes[0]
    assert "no job waits" in [text.get_text() for text in idle.texts]
    assert len(idle.patches) == 0
    slow = figures.draw_slowdowns(findings(easy_W=2.0))
    said = [text.get_text() for text in slow.findobj() if hasattr(text, "get_text")]
    assert any("of the jobs that waited" in text for text in said)


def test_statements_are_judged_by_means() -> None:
    table = tables.statements(findings(sdprb_R=3, sdprb_D=2, sdprb_W=2.01)).set_index(
        "document 000 says"
    )
    assert table.loc["slowdown: sdprb R below sdprb D", "ours"] == "not so"
    assert table.loc["slowdown: sdprb D below sdprb W", "ours"] == "equal within 1 %"
    assert table.loc["wait: sdprb R below sdprb D", "ours"] == "not so"


def test_statements_of_slowdowns_are_of_the_jobs_that_document_000_draws() -> None:
    """Those whose slowdown is not 1; of waits all jobs count, and so do they in the gains."""
    found = findings(sdprb_R=3, sdprb_D=2, prb_R=5)
    first = found.outcomes[Run("sdprb", "R")]["shapes"]["all"]
    first["slowed"] = shapes.box([1.5])
    first["waited"] = shapes.box([1.5])
    table = tables.statements(found).set_index("document 000 says")
    row = table.loc["slowdown: sdprb R below sdprb D"]
    assert (row["the first"], row["the second"], row["ours"]) == (1.5, 2, "so")
    row = table.loc["wait: sdprb R below sdprb D"]
    assert (row["the first"], row["the second"], row["ours"]) == (3, 2, "not so")
    assert tables.gains(found).set_index("run").loc["sdprb R", "mean slowdown"] == 3


def test_the_text_has_what_is_published() -> None:
    texts = {name: note for name, (_, note) in report.COMMON.items()}
    low, high = SECONDS_BETWEEN
    assert f"below {VARIABLES_BELOW:g} on all instances" in texts["sizes"]
    assert f"between {low:g} and {high:g} on almost all" in texts["sizes"]
    text = report.report_text([], {}, {}, {})
    for months in MONTHS.values():
        assert str(months) in text


def test_the_code_of_outcomes_names_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    before = campaign.code_of()
    monkeypatch.setattr(campaign, "version", lambda name: {"ortools": "1.2.3"}[name])
    assert campaign.code_of() == before.partition(", ")[0] + ", OR-Tools 1.2.3"
    assert campaign.code_of() != before


def test_ratios_are_those_of_the_same_state() -> None:
    found = findings()
    found.instances = {
        Run("pcp19", "D"): {
            "variables": [[1, 20], [9, 60], [None, 5]],
            "as_published": [[1, 20], [3, 10], [1, 100]],
            "seconds": [[0.1, 0.2], [0.3, 0.2], [0.1, 0.1]],
        }
    }
    row = tables.sizes([found]).iloc[0]
    assert row["ours: largest ratio"] == pytest.approx(0.15)
    assert row["ours: share below 0.1"] == 0.5
    assert row["as published: share below 0.1"] == pytest.approx(2 / 3)
    assert row["seconds: median ratio"] == 1
    assert row["seconds: share within 0.01 to 1"] == pytest.approx(2 / 3)


def test_what_solvers_find_is_told_with_the_hint_and_without() -> None:
    found = findings()
    asked = (
        ("pcp20", True, 9, True, False, 0.2), ("pcp19", True, 9, True, True, 0.1),
        ("pcp20", False, 9, False, False, 0.3), ("pcp19", False, 9, True, False, 0.2),
        ("pcp20", True, 6, True, True, 0.0), ("pcp20", False, 6, True, False, 0.1),
    )  # fmt: skip
    keys = ("dispatcher", "hint", "considered", "found", "better", "gap")
    hints = [dict(zip(keys, one, strict=True)) for one in asked]
    found.instances = {Run("pcp19", "D"): {"hints": hints}, Run("pcp19", "R"): {"hints": []}}
    table = tables.hints([found])
    assert table["instances of"].unique().tolist() == ["pcp19 D"]
    table = table.set_index(["dispatcher", "hint"])
    row = table.loc[("pcp20", "the list")]
    assert (row["models"], row["found %"], row["better than the list %"]) == (2, 100, 50)
    row = table.loc[("pcp20", "none")]
    assert (row["found %"], row["mean gap %"]) == (50, pytest.approx(20))
    assert row["considered"] == 7.5
    assert table.loc[("pcp19", "none"), "models"] == 1
    assert len(tables.hints([findings()])) == 0


@pytest.mark.parametrize("name", instances.ASKED)
def test_a_model_without_the_hint_has_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solving = pytest.importorskip("hpcgym.baselines.cp.solve")
    hinted, solve = [], solving.solve

    def noting(problem: Any, model: Any, *limits: Any, **how: Any) -> Any:
        hinted.append(len(model.cp.proto.solution_hint.vars))
        return solve(problem, model, *limits, **how)

    monkeypatch.setattr(solving, "solve", noting)
    view = growth.state_of(64, 8, 1)
    asked = [instances._asked(name, view, hint=hint) for hint in (True, False)]
    assert hinted[0] >= asked[0]["variables"] / 2 > hinted[1] == 0
    assert all(one["open"] for one in asked)
    assert asked[0]["found"]
    for one in asked:
        assert 0 <= one["gap"] < 1


def test_growth_is_a_row_a_dispatcher() -> None:
    rows = [
        {"dispatcher": "prb", "nodes": nodes, "queued": 20, "ms": nodes / 64}
        for nodes in (1024, 64)
    ]
    table = tables.grown(growth.by_nodes(rows), "nodes")
    assert table.to_dict("records") == [{"dispatcher": "prb", "64 nodes": 1, "1,024 nodes": 16}]


def test_made_up_states_are_crowded_and_hold() -> None:
    view = growth.state_of(64, 20, 0)
    assert (view.free >= 0).all()
    busy = (view.free[:, 0] == 0).mean()
    assert busy == pytest.approx(56 / 64)
    assert view.fits().any()


def test_small_states_are_of_several_kinds_of_nodes_and_shared() -> None:
    view = known.small_state(2, 6, 0)
    assert len(np.unique(view.capacity, axis=0)) == 3
    assert (view.free >= 0).all()
    used = (view.free < view.capacity)[:, 0] & (view.free[:, 0] > 0)
    assert used.any()  # a node that runs something and has room
    assert np.bincount(view.running_node).max() > 1
    assert 0 < view.per_unit[:, 2].sum() < 6
    empty = view.capacity[:, None, :] // np.maximum(view.per_unit, 1)
    held = np.where(view.per_unit > 0, empty, 99).min(axis=2).sum(axis=0)
    assert (held >= view.units).all()


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
    monkeypatch.setattr(whole, "NUMBER", 2)
    monkeypatch.setattr(growth, "NODES", (8,))
    monkeypatch.setattr(growth, "QUEUED", (3,))
    monkeypatch.setattr(growth, "MEASURED", ("prb", "pcp20"))
    monkeypatch.setattr(growth, "USUAL_NODES", 8)
    monkeypatch.setattr(growth, "USUAL_QUEUED", 3)
    monkeypatch.setattr(known, "STATES", ((1, 3, 0),))


@pytest.mark.usefixtures("small")
def test_a_small_study_is_written_and_goes_on(tmp_path: Path) -> None:
    told: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        told.append(what)

    path, shown = whole.reproduce(
        ["eurora"], tmp_path, days=0.02, executor="serial", progress=progress
    )
    text = path.read_text()
    for heading in ("Slowdown (document 000", "Time (document 001", "Models of the same instances"):
        assert heading in text
    assert "eurora:days=0.02,seed=1; eurora:days=0.02,seed=4" in text
    assert list(shown) == ["eurora"]
    assert set(shown["eurora"]["run"]) == {str(run) for run in SMALL.runs()}
    for picture in ("slowdown", "classes", "queue", "wait", "means", "by-queue", "ratios"):
        assert (tmp_path / "eurora" / f"{picture}.png").stat().st_size > 5_000
        assert f"eurora/{picture}.png" in text
    kept = (tmp_path / "runs" / "results.jsonl").read_text()
    whole.reproduce(["eurora"], tmp_path, days=0.02, executor="serial")
    assert (tmp_path / "runs" / "results.jsonl").read_text() == kept
    assert path.read_text() == text


@pytest.mark.usefixtures("small")
def test_the_command_prints_slowdowns(tmp_path: Path) -> None:
    which = ["--machine", "eurora", "--days", "0.02", "--executor", "serial", "--format", "json"]
    found = CliRunner().invoke(app, ["reproduce", "cp", *which, "--output", str(tmp_path)])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {row["workload"] for row in rows} == {"eurora"}
    runs = len(SMALL.runs())
    assert len(rows) == runs
    # nobody watches: a line for each task
    steps = [line.split(",")[0] for line in found.stderr.splitlines()]
    assert steps[: runs + 1] == [f"simulations: {done} of {runs}" for done in range(runs + 1)]
    for what in ("the same instances: 1 of 1", "growth: 2 of 2", "small states: 1 of 1"):
        assert what in steps


@pytest.mark.usefixtures("small")
def test_some_dispatchers_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing_solver(name: str) -> Any:
        raise HpcgymError("no OR-Tools")

    monkeypatch.setattr(whole, "find_dispatcher", missing_solver)
    given: dict[str, Any] = {"days": 0.02, "executor": "serial"}
    for solving in ((), ("pcp20",), ("prb", "cph-3 lists")):
        with pytest.raises(HpcgymError, match="no OR-Tools"):
            whole.reproduce(["eurora"], tmp_path, dispatchers=solving, **given)
    path, shown = whole.reproduce(["eurora"], tmp_path, dispatchers=["prb", "easy"], **given)
    runs = {str(run) for run in SMALL.runs() if run.dispatcher in ("prb", "easy")}
    assert set(shown["eurora"]["run"]) == runs
    text = path.read_text()
    assert "of these dispatchers alone: prb, easy" in text
    assert "below PRB" in text
    assert "eurora/means.png" in text
    for missing in ("by-queue", "ratios"):
        assert f"{missing}.png" not in text
        assert not (tmp_path / "eurora" / f"{missing}.png").exists()
    assert not (tmp_path / "known").exists()
    grown = (tmp_path / "growth" / "results.jsonl").read_text()
    assert '"prb"' in grown
    assert '"pcp20"' not in grown
    # what is done counts for all
    kept = (tmp_path / "runs" / "results.jsonl").read_text()
    before = {tmp_path / "eurora" / name for name in ("by-queue.png", "table-solving.csv")}
    before |= {tmp_path / "eurora" / "ratios.png", tmp_path / "table-known-best.csv"}
    for file in (*before, tmp_path / "eurora" / "mine.png"):
        file.write_text("of before")
    path, shown = whole.reproduce(["eurora"], tmp_path, dispatchers=["easy"], **given)
    assert not any(file.exists() for file in before | {tmp_path / "by-nodes.png"})
    assert (tmp_path / "eurora" / "mine.png").exists()
    assert (tmp_path / "runs" / "results.jsonl").read_text() == kept
    assert "below PRB" not in path.read_text()


def test_machines_without_the_dispatchers_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert _with_workloads(("cp-0", "cp-1")) == ["eurora"]
    told = capsys.readouterr().err.splitlines()
    assert "kit-forhlr-ii is left out: none of these dispatchers runs there" in told
    assert len(told) == 2
    assert "eurora" in _with_workloads(("pcp21",))  # what is wrong is said of the name
    assert "left out: none" not in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_an_interrupted_study_leaves_no_results_and_goes_on(tmp_path: Path) -> None:
    def interrupted(what: str, done: int, total: int) -> None:
        if (what, done) == ("simulations", 2):
            raise KeyboardInterrupt

    given: dict[str, Any] = {"days": 0.02, "executor": "serial", "dispatchers": ["prb"]}
    with pytest.raises(KeyboardInterrupt):
        whole.reproduce(["eurora"], tmp_path, **given, progress=interrupted)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.md", "runs"]
    assert "Not finished yet." in (tmp_path / "report.md").read_text()
    kept = (tmp_path / "runs" / "results.jsonl").read_text()
    assert kept.count("\n") == 2
    path, _ = whole.reproduce(["eurora"], tmp_path, **given)
    assert (tmp_path / "runs" / "results.jsonl").read_text().startswith(kept)
    text = path.read_text()
    (tmp_path / "runs" / "results.jsonl").write_text(kept)
    with pytest.raises(KeyboardInterrupt):
        whole.reproduce(["eurora"], tmp_path, **given, progress=_interrupt)
    assert path.read_text() == text


def _interrupt(what: str, done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("ortools")
    command = [sys.executable, "-m", "hpcgym", "reproduce", "cp", "--machine", "eurora"]
    command += ["--days", "0.02", "--dispatcher", "prb", "--executor", "serial"]
    command += ["--output", str(tmp_path)]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **quiet) as process:
        assert process.stderr is not None
        seen = [line for line in iter(process.stderr.readline, "") if _ends(line, process)]
    assert process.returncode == -signal.SIGTERM, seen
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.md", "runs"]
    assert "Not finished yet." in (tmp_path / "report.md").read_text()
    kept = (tmp_path / "runs" / "results.jsonl").read_text()
    again = subprocess.run(command, check=False, **quiet)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "runs" / "results.jsonl").read_text().startswith(kept)
    assert (tmp_path / "report.md").read_text().startswith("# ")


def _ends(line: str, process: subprocess.Popen[str]) -> bool:
    """End a process that has done a task; tell whether a line is anything else."""
    if line.startswith("simulations: 1 of"):
        process.send_signal(signal.SIGTERM)
    return not line.startswith("simulations:")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"machines": ["euroa"]}, "unknown machine of the study 'euroa'; did you mean 'eurora'"),
        ({"days": 0}, "days must be a number above 0, not 0"),
        ({"days": 2, "full": True}, "full and days: a study is one or the other"),
        (
            {"dispatchers": ["pcp21"]},
            "unknown dispatcher of the study 'pcp21'; did you mean 'pcp20'",
        ),
        (
            {"machines": ["kit-forhlr-ii"], "dispatchers": ["cp-0"]},
            "cp-0: not in the study of kit-forhlr-ii",
        ),
    ],
)
def test_wrong_arguments_are_said(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=message):
        whole.reproduce(**{"machines": ["eurora"], "folder": tmp_path, **given})


def test_other_jobs_than_at_the_start_are_noticed() -> None:
    simulations.loaded.cache_clear()
    with pytest.raises(HpcgymError, match="eurora: it has other jobs here"):
        simulations.loaded("eurora", 0.1, (1,), "0" * 64)


def test_machines_can_be_made_smaller() -> None:
    assert replace(SMALL, durations=("W",)).runs()[0] == Run("prb", "W")
