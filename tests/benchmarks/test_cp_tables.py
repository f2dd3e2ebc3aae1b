"""The tables and pictures of the study of dispatchers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cp_states import crowded

from hpcgym.benchmarks.cp import configurations, instances, run, tables
from hpcgym.benchmarks.cp.configurations import Run
from hpcgym.benchmarks.cp.published import MONTHS, SECONDS_BETWEEN, VARIABLES_BELOW


def findings(**means: float) -> Any:
    """What came out with these mean slowdowns; ``prb_D=3`` is PRB by D."""
    outcomes = {}
    for name, mean in means.items():
        dispatcher, duration = name.rsplit("_", 1)
        part = {
            key: {**configurations.box([mean]), "mean": mean}
            for key in ("slowdown", "wait", "slowed", "waited")
        }
        outcomes[Run(dispatcher.replace("_", "-"), duration)] = {
            "shapes": {key: {"jobs": 1, **part} for key in configurations.CLASSES},
            "queues": {"passes": 4, "queue": configurations.box([mean]), "queue_in_time": mean},
            "by_seed": {"slowdown": [mean - 1, mean + 1], "wait": [mean]},
            "total_s": 2.0,
            "calls": 2,
            "dispatch_ms": configurations.box([10.0, 30.0]),
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


def test_means_are_over_seeds_with_an_interval() -> None:
    row = tables.slowdowns(findings(prb_D=3)).iloc[0]
    # of 2 and 4: a standard error of 1
    assert (row["mean"], row["± over seeds"]) == (3, pytest.approx(12.706))
    assert "± over seeds" not in tables.waits(findings(prb_D=3))  # of one seed
    assert tables.half_interval([1, 2, 3]) == pytest.approx(4.303 / np.sqrt(3))


def test_boxes_of_the_jobs_that_waited_are_whole() -> None:
    """What Remediani 2017 draws: least, quartiles, largest, and a triangle: the mean."""
    found = findings(prb_D=3)
    shape = found.outcomes[Run("prb", "D")]["shapes"]["all"]
    shape["slowed"] = configurations.box([2, 3, 4, 5, 96])
    shape["waited"] = configurations.box([1, 2, 3, 4, 90])
    parts = ("low", "q1", "median", "q3", "high", "mean")
    row = tables.slowdowns(found).iloc[0]
    assert [row[f"{part}, waited"] for part in parts] == [2, 3, 4, 5, 96, 22]
    row = tables.waits(found).iloc[0]
    assert [row[f"{part}, waited"] for part in parts] == [1, 2, 3, 4, 90, 20]
    assert row["mean"] == 3  # of all jobs


def test_classes_of_which_no_job_waits_have_no_panel() -> None:
    found = findings(prb_D=3)
    found.outcomes[Run("prb", "D")]["shapes"]["long"]["slowed"] = configurations.box([])
    assert tables.classes_of(found) == ["short", "medium"]


def test_deviations_end_at_the_least_value_of_all_runs() -> None:
    found = findings(easy_W=2.0, prb_W=2.0, pcp20_D=2.0)
    waits = configurations.box([0, 0, 0, 1000])
    for outcome in found.outcomes.values():
        outcome["shapes"]["all"] |= {"wait": waits, "slowdown": configurations.box([1, 1, 1, 11])}
    for axes, mean, std, least in zip(
        tables.draw_means(found).axes, (3.5, 250), (waits["std"] / 100, waits["std"]), (1, 0),
        strict=True,
    ):  # fmt: skip
        (bars,) = (part.get_segments() for part in axes.collections)
        assert len(bars) == 3
        for bar in bars:
            assert bar[:, 1] == pytest.approx([least, mean + std])


def test_queues_are_drawn_from_zero_up() -> None:
    pytest.importorskip("matplotlib")
    axes = tables.draw_queues(findings(easy_W=2.0, prb_W=0.0)).axes[0]
    assert axes.get_ylim()[0] == 0
    assert not axes.texts or "no job waits" not in [text.get_text() for text in axes.texts]
    idle = tables.draw_queues(findings(easy_W=0.0, prb_W=0.0)).axes[0]
    assert "no job waits" in [text.get_text() for text in idle.texts]
    assert len(idle.patches) == 0
    slow = tables.draw_slowdowns(findings(easy_W=2.0))
    said = [text.get_text() for text in slow.findobj() if hasattr(text, "get_text")]
    assert any("of the jobs that waited" in text for text in said)


def test_statements_are_judged_by_means() -> None:
    table = tables.statements(findings(sdprb_R=3, sdprb_D=2, sdprb_W=2.01)).set_index(
        "Remediani 2017 says"
    )
    assert table.loc["slowdown: sdprb R below sdprb D", "ours"] == "not so"
    assert table.loc["slowdown: sdprb D below sdprb W", "ours"] == "equal within 1 %"
    assert table.loc["wait: sdprb R below sdprb D", "ours"] == "not so"


def test_statements_that_both_are_about_the_same_are_judged_both_ways() -> None:
    heading = "Remediani 2017 says"
    found = findings(cph_3_D=10.9, cph_3_R=10, cph_1_D=11.1, cph_1_R=10, cph_2_W=8.9, cph_0_W=10)
    table = tables.statements(found).set_index(heading)
    assert table.loc["slowdown: cph-3 D about cph-3 R", "ours"] == "so"
    assert table.loc["slowdown: cph-1 D about cph-1 R", "ours"] == "not so"
    assert table.loc["queue: cph-2 W about cph-0 W", "ours"] == "not so"
    assert set(table["added"]) == {"later"}


def test_boxes_are_compared_by_their_upper_quartiles() -> None:
    found = findings(cph_0_W=9, cph_0_D=1)
    for letter, values in (("W", [0, 0, 0, 4, 96]), ("D", [0, 0, 5, 5, 5])):
        outcome = found.outcomes[Run("cph-0", letter)]
        outcome["shapes"]["all"]["slowed"] = outcome["queues"]["queue"] = configurations.box(values)
    table = tables.statements(found).set_index("Remediani 2017 says")
    for measure in ("slowdown", "queue"):
        row = table.loc[f"box of {measure}: cph-0 W below cph-0 D"]
        assert (row["the first"], row["the second"], row["ours"]) == (4, 5, "so")


def test_statements_of_slowdowns_are_of_the_jobs_that_document_000_draws() -> None:
    """Those whose slowdown is not 1; of waits all jobs count."""
    found = findings(sdprb_R=3, sdprb_D=2, prb_R=5)
    first = found.outcomes[Run("sdprb", "R")]["shapes"]["all"]
    first["slowed"] = configurations.box([1.5])
    first["waited"] = configurations.box([1.5])
    table = tables.statements(found).set_index("Remediani 2017 says")
    row = table.loc["slowdown: sdprb R below sdprb D"]
    assert (row["the first"], row["the second"], row["ours"]) == (1.5, 2, "so")
    row = table.loc["wait: sdprb R below sdprb D"]
    assert (row["the first"], row["the second"], row["ours"]) == (3, 2, "not so")


def test_the_text_has_what_is_published() -> None:
    texts = {name: note for name, (_, note) in run.COMMON.items()}
    low, high = SECONDS_BETWEEN
    assert f"below {VARIABLES_BELOW:g} on all instances" in texts["sizes"]
    assert f"between {low:g} and {high:g} on almost all" in texts["sizes"]
    text = run.head_of([])
    for months in MONTHS.values():
        assert str(months) in text


def test_ratios_are_those_of_the_same_state() -> None:
    found = findings()
    found.instances = {
        Run("pcp19", "D"): {
            "variables": [[1, 20], [9, 60], [None, 5]],
            "as_published": [[1, 20], [3, 10], [1, 100]],
            "seconds": [[0.1, 0.2], [0.3, 0.2], [0.1, 0.1]],
            "objective": [[5.0, 5.0], [6.0, 5.0], [7.0, 7.0]],
        }
    }
    row = tables.sizes([found]).iloc[0]
    assert row["ours: largest ratio"] == pytest.approx(0.15)
    assert row["ours: share below 0.1"] == 0.5
    assert row["as published: share below 0.1"] == pytest.approx(2 / 3)
    assert row["seconds: median ratio"] == 1
    assert row["objective: share at 1"] == pytest.approx(2 / 3)
    assert row["objective: largest ratio"] == pytest.approx(1.2)
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
    solving = pytest.importorskip("hpcgym.baselines.cp.dispatcher")
    hinted, solve = [], solving.solve

    def noting(problem: Any, model: Any, *limits: Any, **how: Any) -> Any:
        hinted.append(len(model.cp.proto.solution_hint.vars))
        return solve(problem, model, *limits, **how)

    monkeypatch.setattr(solving, "solve", noting)
    view = crowded(8)
    asked = [instances._asked(name, view, hint=hint) for hint in (True, False)]
    assert hinted[0] >= asked[0]["variables"] / 2 > hinted[1] == 0
    assert all(one["open"] for one in asked)
    assert asked[0]["found"]
    for one in asked:
        assert 0 <= one["gap"] < 1
