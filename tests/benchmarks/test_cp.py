"""The study of dispatchers: what is simulated and kept, its sentences, and a small whole."""

from __future__ import annotations

import json
import math
import pickle
import statistics
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

from hpcgym.benchmarks.cp import items, run, runs
from hpcgym.benchmarks.cp.items import STATEMENTS, TIMES, VARIABLES_BELOW
from hpcgym.benchmarks.cp.runs import BARE, LISTS, MACHINES, Findings, Machine, Run
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.study import read_results
from hpcgym.workload import load_workload

HOUR = 3600


# --- What is simulated ----------------------------------------------------------------------------


def test_every_published_time_has_a_run_beside_it() -> None:
    for machine, times in TIMES.items():
        published = {Run(name, letter) for letter, of in times.items() for name in of}
        assert published <= {*MACHINES[machine].runs()}


def test_orders_of_published_times_are_all_compared() -> None:
    """Of both tables: each pair of runs by the same duration that ended, in both columns."""
    said = {str(statement) for statement in STATEMENTS if statement.item.startswith("table")}
    expected = set()
    for of in TIMES.values():
        for letter, by in of.items():
            for first, other in permutations([name for name in by if by[name]], 2):
                for column, measure in enumerate(("dispatch mean", "simulation total")):
                    if by[first][column] < by[other][column]:
                        expected.add(f"{measure}: {first} {letter} below {other} {letter}")
    assert said == expected


def test_every_statement_can_be_looked_at() -> None:
    where = {
        name: {f"{dispatcher} {letter}" for dispatcher in of.dispatchers for letter in of.durations}
        for name, of in MACHINES.items()
    }
    columns = {*run.ended(findings(prb_W=[1.0]))[Run("prb:as=published", "W")].columns}
    assert len({*STATEMENTS}) == len(STATEMENTS)
    for said in STATEMENTS:
        (first, measure), (second, other) = said.pair
        machines = items.machines_of(said.item)
        assert any({first, second} <= where[name] for name in machines), said
        assert said.relation in ("below", "about", "at most")
        assert said.item in items.JUDGES
        assert {items.column_of(measure), items.column_of(other)} <= columns, said


def test_runs_are_as_published_but_for_pure_cp_and_the_later_ones() -> None:
    assert [str(planned) for planned in MACHINES["eurora"].runs(["easy", "prb"])][:4] == [
        "easy W", "easy D", "easy R", "prb:as=published W",
    ]  # fmt: skip
    assert MACHINES["eurora-cp"].runs(["cp-0"])[0] == Run("cp-0", "W")
    assert Run(BARE, "L2") in MACHINES["kit-forhlr-ii"].runs()


def test_durations_are_those_of_the_documents() -> None:
    assert runs.rules_of(Run("prb", "L2"), "prb").estimate == "ave2"
    rules = runs.rules_of(Run("easy", "W"), None)
    assert (rules.estimate, rules.correction) == ("requested", "incremental")
    learned = [runs.rules_of(Run("prb", "D"), "prb").estimate for _ in range(2)]
    assert learned[0] is not learned[1]  # nothing is handed on from run to run


def test_solvers_have_the_work_of_the_study() -> None:
    pytest.importorskip("ortools")
    assert runs.dispatcher_of("cph-0:as=published").limits.work == runs.CPH_WORK
    pcp19 = runs.dispatcher_of("pcp19").limits
    assert runs.dispatcher_of(BARE).limits == pcp19


# --- What is kept of a schedule -------------------------------------------------------------------


def test_shapes_are_those_of_the_jobs_of_a_class() -> None:
    run_time = np.array([10, HOUR, HOUR + 1, 12 * HOUR, 12 * HOUR + 1])
    wait = np.array([90, 0, 0, 12 * HOUR, 0])
    result: Any = SimpleNamespace(run_time=run_time, wait=wait)
    shapes = runs.shapes_of(result)
    assert [shapes[name]["jobs"] for name in ("all", "short", "medium", "long")] == [5, 2, 2, 1]
    assert shapes["short"]["slowdown"]["mean"] == pytest.approx((10 + 1) / 2)
    assert shapes["medium"]["slowed"] == {
        "number": 1, "mean": 2.0, "std": 0.0,
        "low": 2.0, "q1": 2.0, "median": 2.0, "q3": 2.0, "high": 2.0,
    }  # fmt: skip
    assert shapes["long"]["waited"]["number"] == 0
    assert np.isnan(shapes["long"]["waited"]["mean"])


def test_the_queue_is_what_waits_after_a_pass() -> None:
    # one machine, jobs one after the other: 0-10, 10-20, 20-30, and one later by itself
    result: Any = SimpleNamespace(
        workload=SimpleNamespace(submit_time=np.array([0, 2, 4, 50])),
        start=np.array([0, 10, 20, 50]),
        end=np.array([10, 20, 30, 60]),
    )
    queue = runs.queue_of(result)
    # asked at 0, 2, 4, 10, 20 and 50: then wait 0, 1, 2, 1, 0 and 0
    assert queue["number"] == 6
    assert queue["mean"] == pytest.approx(4 / 6)
    assert queue["high"] == 2


def test_slowdowns_are_those_of_the_metrics() -> None:
    result = simulate(load_workload("lublin:jobs=300,processors=32,seed=1,load=1.2"), "easy")
    slowdown = runs.shapes_of(result)["all"]["slowdown"]["mean"]
    assert slowdown == pytest.approx(result.metrics["mean_slowdown"])


def test_models_are_counted_by_what_was_found() -> None:
    entry = {"considered": 4, "postponed": 1, "objective": 5.0, "heuristic": 5.0}
    log: list[dict[str, Any]] = [
        {**entry, "variables": 0, "status": "plan is optimal"},
        {**entry, "variables": 10, "status": "optimal", "objective": 4.0},
        {**entry, "variables": 30, "status": "feasible"},
        {**entry, "variables": 20, "status": "unknown", "objective": float("nan")},
    ]
    assert runs.solved(log) == {
        "dispatches": 4, "plan optimal": 1, "optimal": 1, "feasible": 1, "infeasible": 0,
        "unknown": 1, "better than heuristic": 1, "considered": 4, "variables": 20, "postponed": 4,
    }  # fmt: skip


def test_saved_states_are_spread_over_the_run() -> None:
    saving = runs.Watched(lambda view: [], 4)
    for number in range(21):
        saving(number)
    assert [pickle.loads(state) for state in saving.saved] == [0, 4, 8, 12, 16, 20]
    assert saving.stride == 4


def test_sizes_are_counted_as_the_paper_does() -> None:
    # 2 nodes of 16 cores and 2 GPUs, 1 of 16 cores alone
    capacity = np.array([[16, 2], [16, 2], [16, 0]])
    per_unit = np.array([[4, 1], [8, 0]])
    # positions: 2 jobs + (1 + 3) units x 2 types; alternatives: 2 + (1 + 1 + 0) + (2 + 2 + 2)
    assert runs.published_sizes(np.array([1, 3]), per_unit, capacity) == (10, 10)


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
        sizes = runs.published_sizes(np.array([units]), np.array([per_unit]), capacity)
        if sizes[0] < VARIABLES_BELOW * sizes[1]:
            kept.append(units)
    assert kept == list(range(1, most + 1))


# --- Sentences by intervals -----------------------------------------------------------------------


def test_an_interval_is_that_of_paired_logarithms() -> None:
    """By hand: ratios 2, 4 and 8; logarithms ln 2 times 1, 2 and 3; t of 2 degrees 4.303."""
    low, high = items.ratio_interval([2, 4, 8], [1, 1, 1])
    half = 4.303 * math.log(2) / math.sqrt(3)
    assert (low, high) == pytest.approx((4 / math.exp(half), 4 * math.exp(half)))
    assert items.ratio_interval([1, 2, 3], [1, 2, 3]) == (1.0, 1.0)
    assert items.ratio_interval([0, 2, 3, 5], [0, 2, 3, 5]) == (1.0, 1.0)
    nothing = items.ratio_interval([0, 2, float("nan"), 5], [1, 2, 3, 5])
    assert math.isnan(nothing[0])  # two seeds are left


def test_t_quantiles_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for degrees, t in enumerate(items._T, 1):
        assert t == pytest.approx(stats.t.ppf(0.975, degrees), abs=5e-4)


@pytest.mark.parametrize(
    ("low", "high", "below", "about", "at_most"),
    [
        (0.5, 0.8, "held", "contradicted", "held"),
        (0.5, 0.95, "held", "undecided", "held"),
        (0.95, 0.99, "held", "held", "held"),
        (0.95, 1.02, "undecided", "held", "undecided"),
        (1.0, 1.0, "contradicted", "held", "held"),
        (0.6, 1.5, "undecided", "undecided", "undecided"),
        (1.02, 1.05, "contradicted", "held", "contradicted"),
        (1.2, 2.0, "contradicted", "contradicted", "contradicted"),
    ],
)
def test_sentences_are_judged_by_intervals(
    low: float, high: float, below: str, about: str, at_most: str
) -> None:
    verdicts = [
        items.judge_ratio(low, high, relation) for relation in ("below", "about", "at most")
    ]
    assert verdicts == [below, about, at_most]


def findings(name: str = "eurora", **values: list[float]) -> Findings:
    """Runs of which a part of each box is a value, one for each seed: ``prb_D=[1, 2, 3]``."""
    outcomes = {}
    for run_name, of in values.items():
        dispatcher, letter = run_name.rsplit("_", 1)
        named = MACHINES[name].named(dispatcher.replace("_", "-"))
        outcomes[Run(named, letter)] = [
            {
                "shapes": {
                    key: dict.fromkeys(("slowdown", "wait", "slowed", "waited"), runs.box([value]))
                    | {"jobs": 1}
                    for key in runs.CLASSES
                },
                "queue": runs.box([value] * 4),
                "total_s": 2.0,
                "dispatch_ms": runs.box([10.0, 30.0]),
                "solved": {},
            }
            for value in of
        ]
    seeds = max((len(of) for of in values.values()), default=0)
    return Findings(name, 1.0, list(range(1, seeds + 1)), 3, outcomes, {})


def test_statements_are_of_the_runs_of_the_machine() -> None:
    table = run.statements(findings(prb_W=[1, 2, 3], prb_D=[1, 2, 3], sdprb_D=[0.5, 1.1, 1.4]))
    so = dict(zip(table["what is said"], table["so"], strict=True))
    assert so["slowdown q3: prb W below prb D"] == "contradicted"
    assert so["queue q3: prb D about prb W"] == "held"
    assert so["slowdown q3: sdprb D below prb D"] == "held"
    assert so["slowdown q3, short: prb D about prb D, all"] == "held"
    assert "slowdown q3: sdprb R below sdprb D" not in so
    assert {*table["jobs"]} == {"eurora:days=1,load=1,seed=1 to 3"}
    assert len(run.statements(findings("kit-forhlr-ii", prb_R=[1.0]))) == 0
    few = run.statements(findings(prb_W=[1, 2], prb_D=[1, 2]))
    assert few["so"].isna().all()  # too few seeds


def test_times_are_over_all_passes_with_published_ones_beside() -> None:
    row = run.times(findings("eurora-later", pcp20_D=[2, 2])).iloc[0]
    assert (row["dispatch (ms)"], row["a call (ms)"]) == (10, 20)  # 80 ms of 8 passes, 4 calls
    assert (row["published (ms)"], row["published (s)"]) == ("252", "134,240")
    kit = run.times(findings("kit-forhlr-ii", pcp19_R=[2]))
    assert kit.iloc[0]["published (ms)"] == "none finished"


def test_where_pcp19_stops_is_in_its_own_table() -> None:
    findings_of_log = findings("kit-forhlr-ii", pcp19_L2=[1.0, 2.0])
    stopped = {"stopped": 50, "started": 7, "jobs": 9}
    whole = findings_of_log.outcomes.pop(Run("pcp19", "L2"))
    whole[0]["solved"] = {"unknown": 3}
    findings_of_log.outcomes[Run(BARE, "L2")] = [whole[0], stopped]
    table = run.as_published(findings_of_log)
    assert table["ours"].tolist() == ["finished", "none finished"]
    assert table["started"].tolist() == [1, 7]
    assert set(table["published"]) == {"none finished"}
    assert len(run.TABLES["slowdown"](findings_of_log)) == 0


def test_statements_of_all_jobs_and_of_times_by_seed() -> None:
    values = [1.0, 2.0, 4.0]
    findings_by_seed = findings(
        "eurora-later", hcp19_D=[2 * value for value in values], pcp20_D=values
    )
    findings_by_seed.outcomes[Run("pcp20", "D")][0]["shapes"]["all"]["slowed"] = runs.box([])
    table = run.statements(findings_by_seed).set_index("what is said")
    row = table.loc["slowdown (all jobs) mean: hcp19 D about pcp20 D"]
    assert (row["ratio, low"], row["ratio, high"]) == pytest.approx((2, 2))
    assert row["the first"] == 2 * statistics.mean(values)
    # 40 ms of 4 passes each
    assert table.loc["dispatch mean: pcp20 D below hcp19 D", "the second"] == 10


def test_ratios_are_those_of_the_same_state() -> None:
    findings_of_states = findings()
    findings_of_states.instances = {
        Run("pcp19", "D"): {
            "variables": [[1, 20], [9, 60], [None, 5]],
            "as_published": [[1, 20], [3, 10], [1, 100]],
            "seconds": [[0.1, 0.2], [0.3, 0.2], [0.1, 0.1]],
            "objective": [[5.0, 5.0], [6.0, 5.0], [7.0, 7.0]],
        }
    }
    row = run.sizes([findings_of_states]).iloc[0]
    assert row["ours: largest ratio"] == pytest.approx(0.15)
    assert row["ours: share below 0.1"] == 0.5
    assert row["as published: share below 0.1"] == pytest.approx(2 / 3)
    assert row["seconds: median ratio"] == 1
    assert row["objective: share at 1"] == pytest.approx(2 / 3)
    assert row["seconds: share within 0.01 to 1"] == pytest.approx(2 / 3)


def test_queues_are_drawn_from_zero_up() -> None:
    pytest.importorskip("matplotlib")
    slowdown, queue = (
        draw for draw, name in run.PICTURES.values() if name in ("slowdown", "queue")
    )
    axes = queue(findings(easy_W=[2.0], prb_W=[0.0])).axes[0]
    assert axes.get_ylim()[0] == 0
    nothing = findings(easy_W=[float("nan")])
    idle = slowdown(nothing).axes[0]
    assert "no job waits" in [text.get_text() for text in idle.texts]


# --- The whole ------------------------------------------------------------------------------------


SMALL = Machine(
    "eurora",
    "eurora:days={days},load=2,seed={seed}",
    0.02,
    3,
    ("W", "D"),
    ("prb", "easy", "cph-3", "pcp20"),
    False,
    "a few generated jobs",
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of an hour of Eurora."""
    pytest.importorskip("ortools")
    monkeypatch.setitem(MACHINES, "eurora", SMALL)
    monkeypatch.setitem(runs.DRIVERS, "eurora", (Run("pcp20", "D"),))
    monkeypatch.setattr(runs, "NUMBER", 2)


@pytest.mark.usefixtures("small")
def test_a_small_study_is_written_and_goes_on(tmp_path: Path) -> None:
    which = ["--machine", "eurora", "--executor", "serial", "--format", "json"]
    arguments = ["reproduce", "cp", *which, "--output", str(tmp_path)]
    finished = CliRunner().invoke(app, arguments)
    assert finished.exit_code == 0, finished.output
    rows = json.loads(finished.stdout)["rows"]
    assert {row["workload"] for row in rows} == {"eurora"}
    assert [row["run"] for row in rows] == [str(planned) for planned in SMALL.runs()]
    text = (tmp_path / "report.md").read_text()
    for heading in ("Slowdown (Remediani 2017", "Time (Galleguillos", "Models of the same"):
        assert heading in text
    assert "`eurora:days=0.02,load=2,seed=1 to 3`" in text
    for picture in ("slowdown", "queue", "wait", "means", "ratios"):
        assert (tmp_path / "eurora" / f"{picture}.png").stat().st_size > 5_000
        assert f"eurora/{picture}.png" in text
    kept = read_results(tmp_path / "runs")
    assert len(kept) == 3 * len(rows)
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["rows"] == rows
    assert read_results(tmp_path / "runs") == kept
    assert (tmp_path / "report.md").read_text() == text
    # of fewer dispatchers, what was of the others goes, and what is done counts for all
    (tmp_path / "eurora" / "mine.png").write_text("mine")
    path, shown = run.reproduce(["eurora"], Folder(tmp_path, "serial"), dispatchers=["easy"])
    assert {str(planned) for planned in SMALL.runs(["easy"])} == set(shown["eurora"]["run"])
    assert "ratios.png" not in path.read_text()
    left = {file.name for file in (tmp_path / "eurora").iterdir()}
    assert "mine.png" in left
    assert not left & {"ratios.png", "table-solving.csv", "table-times.csv"}
    assert read_results(tmp_path / "runs") == kept


def test_a_quick_cut_needs_no_solver_and_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_dispatcher", _missing_solver)
    which = ["--quick", "--executor", "serial", "--days", "0.1", "--format", "json"]
    finished = CliRunner().invoke(app, ["reproduce", "cp", *which, "--output", str(tmp_path)])
    assert finished.exit_code == 0, finished.output
    rows = json.loads(finished.stdout)["rows"]
    assert {row["run"].split()[0].partition(":")[0] for row in rows} == set(LISTS)
    assert "**A quick cut" in (tmp_path / "report.md").read_text()


def _missing_solver(name: str) -> Any:
    raise HpcgymError("no OR-Tools")


@pytest.mark.usefixtures("small")
def test_an_interrupted_study_leaves_no_results_and_goes_on(tmp_path: Path) -> None:
    def interrupted(what: str, done: int, total: int) -> None:
        if (what, done) == ("simulations", 2):
            raise KeyboardInterrupt

    given: dict[str, Any] = {"days": 0.02, "dispatchers": ["prb"]}
    with pytest.raises(KeyboardInterrupt):
        run.reproduce(["eurora"], Folder(tmp_path, "serial", None, interrupted), **given)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.md", "runs"]
    assert "Not finished yet." in (tmp_path / "report.md").read_text()
    kept = read_results(tmp_path / "runs")
    assert len(kept) == 2
    run.reproduce(["eurora"], Folder(tmp_path, "serial"), **given)
    assert all(record in read_results(tmp_path / "runs") for record in kept)


test_mistakes = mistakes_of(globals(), fixtures=("monkeypatch", "small"))
