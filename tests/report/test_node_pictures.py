"""Schedules on nodes: jobs are drawn on the nodes that they have, and pages tell of the machine."""

from dataclasses import replace

import numpy as np
import pytest

from hpcgym import simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.labels import describe, scheduler_name
from hpcgym.cluster import Cluster, Failures, NodeGroup
from hpcgym.explore import page, write_page
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


def rectangles(result):
    return list(zip(*(part.tolist() for part in place_jobs(result)), strict=True))


@pytest.mark.slow
def test_a_job_is_drawn_on_its_nodes():
    # job 0 has 3 cores of each of two nodes, job 1 one of each; job 2 needs the memory of the third
    workload = jobs((0, 50, 2, 3, 1), (0, 20, 2, 1, 1), (0, 50, 1, 2, 60), (30, 10, 1, 1, 1))
    result = simulate(workload, "easy", cluster=MACHINE)
    assert rectangles(result) == [
        (0, 0, 50, 0, 3),
        (0, 0, 50, 4, 7),
        (1, 0, 20, 3, 4),
        (1, 0, 20, 7, 8),
        (2, 0, 50, 8, 10),
        (3, 30, 40, 3, 4),
    ]


@pytest.mark.slow
def test_what_a_job_has_of_adjacent_nodes_is_one_piece():
    result = simulate(jobs((0, 50, 2, 4, 1), (0, 50, 2, 4, 1)), "easy", cluster=MACHINE)
    assert rectangles(result) == [(0, 0, 50, 0, 8), (1, 0, 50, 8, 16)]


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
    assert axes.get_ylabel() == "node"
    assert axes.get_ylim() == (0, 16)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]
    assert axes.get_yticks().tolist() == [2, 6, 12]
    texts = {text.get_text(): text for text in axes.texts}
    assert texts["gpu (2)"].xy == (1, 0.25)
    assert texts["fat (1)"].xy == (1, 0.75)


def test_the_axis_has_the_names_of_nodes_that_have_some():
    cluster = Cluster(groups=(replace(GPUS, name="n[07-08]"),))
    axes = draw_gantt(simulate(jobs((0, 50, 1, 1, 1)), "easy", cluster=cluster))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n07", "n08"]


def test_one_group_needs_no_name():
    axes = draw_gantt(simulate(jobs((0, 50, 1, 1, 1)), "easy", cluster=Cluster(groups=(GPUS,))))
    assert not any("gpu" in text.get_text() for text in axes.texts)


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
def test_overview_and_page_work_with_nodes(result, tmp_path):
    save_picture({"easy": result, "again": result}, tmp_path / "overview.png")
    assert (tmp_path / "overview.png").read_bytes().startswith(b"\x89PNG")
    write_page(result, tmp_path / "page.html", report=True)
    text = page(result, report=True)
    assert (tmp_path / "page.html").read_text() == text
    assert "who uses which nodes when" in text
    assert "<h2>Machine</h2>" in text
    assert "<tr><td>gpu</td><td>2</td><td>4</td><td>16</td><td>2</td></tr>" in text
    assert "mem (MB)" in text


@pytest.mark.slow
def test_a_page_tells_the_queues_of_the_machine():
    queues = {"short": 600, "long": 43_200}
    machine = Cluster(groups=(GPUS, FAT), queues=queues, name="little")
    text = page(simulate(jobs((0, 50, 1, 2, 1)), "prb", cluster=machine), report=True)
    assert '<th scope="col">queue</th><th scope="col">expected wait (s)</th>' in text
    assert "<tr><td>short</td><td>600</td></tr>" in text
    assert "<tr><td>long</td><td>43,200</td></tr>" in text
    assert "expected wait" not in page(
        simulate(jobs((0, 50, 1, 2, 1)), cluster=MACHINE), report=True
    )


@pytest.mark.slow
def test_a_page_leaves_out_what_a_dispatcher_does_without():
    text = page(simulate(jobs((0, 50, 1, 2, 1)), "prb", cluster=MACHINE), report=True)
    assert list(Scheduler().describe())[:4] == ["policy", "backfill", "backfill_order", "estimate"]
    cells = ("prb", "-", "-", "-", "requested")
    assert "<tr>" + "".join(f'<td class="text">{cell}</td>' for cell in cells) in text


def test_a_page_of_a_pool_has_no_nodes(schedule):
    text = page(schedule(), report=True)
    assert "<h2>Machine</h2>" not in text
    assert "who uses which processors when" in text


def test_the_subtitle_names_the_machine(result):
    assert "made · 60 jobs · little: 3 nodes with 16 cores · easy" in subtitle({"easy": result})


def test_the_subtitle_of_several_names_other_allocations(result):
    other = simulate(result.workload, "prb", cluster=MACHINE, allocation="best-fit")
    assert "allocation" not in subtitle({"easy": result, "again": result})
    assert subtitle({"prb": other, "again": other}).endswith(" passes · best-fit allocation")
    both = subtitle({"easy": result, "prb": other})
    assert both.endswith(" passes · first-fit allocation and best-fit allocation")
    assert subtitle({"prb, best-fit allocation": other}).count("allocation") == 1


def test_the_allocation_is_named_where_it_is_not_the_usual_one():
    assert describe(Scheduler(allocation="best-fit")).endswith(", best-fit allocation")
    assert "allocation" not in describe(Scheduler())
    assert scheduler_name(SCHEDULERS["easy"].but(allocation="random:3")) == (
        "easy, random:3 allocation"
    )


def test_of_a_dispatcher_the_rules_that_it_has_none_of_are_not_told():
    text = describe(Scheduler(dispatcher="prb", estimate="ave2", correction="incremental"))
    assert text.startswith("dispatcher prb, mean of the user's last 2 run times, incremental")
    assert "queue" not in text


@pytest.mark.slow
def test_lost_runs_and_nodes_that_are_down_are_drawn(tmp_path):
    workload = jobs((0, 50, 1, 4, 1), (0, 20, 1, 8, 1))
    result = simulate(workload, cluster=MACHINE, failures=Failures([0, 1], [10, 10], [30, 40]))
    axes = draw_gantt({"EASY": result})
    from matplotlib.collections import PolyCollection

    drawn, down = (one for one in axes.collections if isinstance(one, PolyCollection))
    boxes = [path.get_extents() for path in drawn.get_paths()]
    assert sorted((box.y0, box.y1) for box in boxes) == [(0, 4), (8, 12), (8, 16)]
    boxes = [path.get_extents() for path in down.get_paths()]
    assert [(box.y0, box.y1) for box in boxes] == [(0, 4), (4, 8)]
    assert [round(box.width / boxes[0].width, 6) for box in boxes] == [1, 1.5]
    write_page({"EASY": result}, tmp_path / "page.html", report=True)
    assert "lost runs" in (tmp_path / "page.html").read_text()
