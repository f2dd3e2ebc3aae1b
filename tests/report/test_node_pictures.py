"""Schedules on nodes: jobs are drawn on the nodes that they have, and pages tell of the machine."""

from dataclasses import replace

import numpy as np
import pytest
from html_pages import Page

from hpcgym import simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.labels import describe, scheduler_name
from hpcgym.explore import page, write_page
from hpcgym.machine import Cluster, Failures, NodeGroup
from hpcgym.report import draw_gantt, save_picture
from hpcgym.report.gantt import _spread
from hpcgym.report.placement import place_jobs
from hpcgym.report.tables import subtitle
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import Workload

GPUS = NodeGroup("gpu", 2, {"core": 4, "mem": 16, "gpu": 2})
FAT = NodeGroup("fat", 1, {"core": 8, "mem": 64})
MACHINE = Cluster(groups=(GPUS, FAT), name="little")  # rows 0-4, 4-8, 8-16


def jobs(*rows, **columns):
    """A workload of rows (submit, run, units, cores a unit, memory a unit)."""
    submit, run, units, core, mem = (np.array(column) for column in zip(*rows, strict=True))
    times = {"submit_time": submit, "run_time": run, "requested_time": run}
    demands = {"core": core, "mem": mem}
    return Workload.from_columns(
        {**times, **columns}, processors=16, name="made", units=units, per_unit=demands
    )


@pytest.mark.parametrize(
    ("rows", "drawn"),
    [
        # 0 has 3 cores of each of two nodes, 1 one of each; 2 needs the memory of the third
        (
            ((0, 50, 2, 3, 1), (0, 20, 2, 1, 1), (0, 50, 1, 2, 60), (30, 10, 1, 1, 1)),
            [
                *((0, 0, 50, 0, 3), (0, 0, 50, 4, 7), (1, 0, 20, 3, 4), (1, 0, 20, 7, 8)),
                *((2, 0, 50, 8, 10), (3, 30, 40, 3, 4)),
            ],
        ),
        # what a job has of adjacent nodes is one piece
        (((0, 50, 2, 4, 1), (0, 50, 2, 4, 1)), [(0, 0, 50, 0, 8), (1, 0, 50, 8, 16)]),
    ],
)
def test_a_job_is_drawn_on_its_nodes(rows, drawn):
    placed = place_jobs(simulate(jobs(*rows), "easy", cluster=MACHINE))
    assert list(zip(*(part.tolist() for part in placed), strict=True)) == drawn


def test_group_names_do_not_lie_upon_each_other():
    assert _spread([0.2, 0.5, 0.9], 0.1) == [0.2, 0.5, 0.9]
    assert _spread([0.90, 0.95, 0.99], 0.1) == pytest.approx([0.8, 0.9, 1.0])
    assert _spread([0.01, 0.02], 0.1) == pytest.approx([0.01, 0.11])


# --- Pictures and pages ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    rows = [(5 * k, 30 + 7 * (k % 5), 1 + k % 3, 1 + k % 4, k % 9) for k in range(60)]
    users = np.arange(60) % 4
    return simulate(jobs(*rows, user_id=users), "easy", cluster=MACHINE)


def test_the_axis_names_nodes_and_groups(result):
    axes = draw_gantt(result)
    assert (axes.get_ylabel(), axes.get_ylim()) == ("node", (0, 16))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]
    assert axes.get_yticks().tolist() == [2, 6, 12]
    places = {text.get_text(): text.xy for text in axes.texts if hasattr(text, "xy")}
    assert (places["gpu (2)"], places["fat (1)"]) == ((1, 0.25), (1, 0.75))
    # nodes that have names are called by them, and one group needs none
    named = Cluster(groups=(replace(GPUS, name="n[07-08]"),))
    axes = draw_gantt(simulate(jobs((0, 50, 1, 1, 1)), "easy", cluster=named))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n07", "n08"]
    assert not any("n[" in text.get_text() for text in axes.texts)


def test_many_nodes_have_round_numbers():
    groups = (NodeGroup("thin", 1152, {"core": 20}), NodeGroup("fat", 21, {"core": 48}))
    workload = Workload.from_columns(
        {"submit_time": [0, 0], "run_time": [50, 20], "requested_time": [50, 20]},
        processors=24_048,
        units=[100, 1],
        per_unit={"core": [20, 48]},
    )
    axes = draw_gantt(simulate(workload, "easy", cluster=Cluster(groups=groups)))
    numbers = [label.get_text() for label in axes.get_yticklabels()]
    assert numbers[0] == "0"
    assert "1,050" in numbers
    assert len(numbers) < 12


@pytest.mark.slow
def test_overview_and_page_work_with_nodes(result, schedule, tmp_path):
    save_picture({"easy": result, "again": result}, tmp_path / "overview.png")
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")
    write_page(result, tmp_path / "page.html", report=True)
    text = page(result, report=True)
    assert (tmp_path / "page.html").read_text() == text
    assert "who uses which nodes when" in text
    tables = {table[0][0]: table for table in Page(text).tables if table and table[0]}
    assert tables["group of nodes"][:2] == [
        ["group of nodes", "nodes", "core", "mem (MB)", "gpu"],
        ["gpu", "2", "4", "16", "2"],
    ]
    pool = page(schedule(), report=True)
    assert "group of nodes" not in " ".join(Page(pool).text)
    assert "who uses which processors when" in pool


@pytest.mark.slow
def test_a_page_tells_of_queues_and_dispatchers():
    """Of a dispatcher not the rules that it does without."""
    queues = {"short": 600, "long": 43_200}
    machine = Cluster(groups=(GPUS, FAT), queues=queues, name="little")
    text = page(simulate(jobs((0, 50, 1, 2, 1)), "prb", cluster=machine), report=True)
    tables = [table for table in Page(text).tables if table]
    waits = [["queue", "expected wait (s)"], ["short", "600"], ["long", "43,200"]]
    assert waits in tables
    (rules,) = (table for table in tables if table[0][:2] == ["scheduler", "policy"])
    rules_told = dict(zip(*rules, strict=True))
    assert list(rules_told)[1:5] == ["policy", "backfill", "backfill_order", "estimate"]
    assert [rules_told[name] for name in list(rules_told)[:5]] == [
        "prb",
        "-",
        "-",
        "-",
        "requested",
    ]
    plain = page(simulate(jobs((0, 50, 1, 2, 1)), cluster=MACHINE), report=True)
    assert "expected wait" not in plain


def test_the_subtitle_names_the_machine_and_other_allocations(result):
    assert "made · 60 jobs · little: 3 nodes with 16 cores · easy" in subtitle({"easy": result})
    other = simulate(result.workload, "prb", cluster=MACHINE, allocation="best-fit")
    assert "allocation" not in subtitle({"easy": result, "again": result})
    assert subtitle({"prb": other, "again": other}).endswith(" passes · best-fit allocation")
    both = subtitle({"easy": result, "prb": other})
    assert both.endswith(" passes · first-fit allocation and best-fit allocation")
    assert subtitle({"prb, best-fit allocation": other}).count("allocation") == 1


def test_rules_that_are_not_the_usual_ones_are_told():
    assert describe(Scheduler(allocation="best-fit")).endswith(", best-fit allocation")
    assert "allocation" not in describe(Scheduler())
    name = scheduler_name(SCHEDULERS["easy"].but(allocation="random:3"))
    assert name == "easy, random:3 allocation"
    text = describe(Scheduler(dispatcher="prb", estimate="ave2", correction="incremental"))
    assert text.startswith("dispatcher prb, mean of the user's last 2 run times, incremental")
    assert "queue" not in text


@pytest.mark.slow
def test_lost_runs_and_nodes_that_are_down_are_drawn(tmp_path):
    workload = jobs((0, 50, 1, 4, 1), (0, 20, 1, 8, 1))
    result = simulate(workload, cluster=MACHINE, failures=Failures([0, 1], [10, 10], [30, 40]))
    axes = draw_gantt({"EASY": result})
    from matplotlib.collections import PolyCollection

    drawn, down = (
        collection for collection in axes.collections if isinstance(collection, PolyCollection)
    )
    boxes = [path.get_extents() for path in drawn.get_paths()]
    assert sorted((box.y0, box.y1) for box in boxes) == [(0, 4), (8, 12), (8, 16)]
    boxes = [path.get_extents() for path in down.get_paths()]
    assert [(box.y0, box.y1) for box in boxes] == [(0, 4), (4, 8)]
    assert [round(box.width / boxes[0].width, 6) for box in boxes] == [1, 1.5]
    write_page({"EASY": result}, tmp_path / "page.html", report=True)
    assert "lost runs" in (tmp_path / "page.html").read_text()
