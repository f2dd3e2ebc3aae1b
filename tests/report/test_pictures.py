"""Pictures are there, of the right size, and show what they should."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from mistakes import mistakes_of

from hpcgym.errors import HpcgymError
from hpcgym.report import (
    draw_bsld,
    draw_gantt,
    draw_queue_length,
    draw_utilization,
    save_picture,
)
from hpcgym.report.canvas import USER_COLOURS, save_figure, time_axis
from hpcgym.report.gantt import MOST_RECTANGLES
from hpcgym.report.overview import draw_overview, why_no_gantts
from hpcgym.report.placement import place_jobs
from hpcgym.report.tables import named
from hpcgym.report.timeline import BINS, bins_of, rows_beside_first
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

DRAWINGS = (draw_gantt, draw_utilization, draw_queue_length, draw_bsld)
LARGE = "lublin:jobs=3000,processors=64,load=0.9"


def pixels(axes):
    """Return the picture as an array of shape (height, width, 3)."""
    figure = axes.get_figure(root=True)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def inside(axes):
    """Return the pixels between the axes."""
    image = pixels(axes)
    box = axes.get_window_extent()
    rows = slice(image.shape[0] - int(box.y1) + 1, image.shape[0] - int(box.y0) - 1)
    return image[rows, int(box.x0) + 1 : int(box.x1) - 1]


def colour_share(image, colour):
    """Return the share of pixels that have a colour, given as #RRGGBB."""
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return np.isclose(image, wanted, atol=2).all(axis=-1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("schedulers", [1, 2, 3, 4, 9])
def test_an_overview_of_any_number_of_schedulers(schedule, tmp_path, schedulers):
    from matplotlib.image import imread

    results = {f"scheduler {place}": schedule() for place in range(schedulers)}
    save_picture(results, tmp_path / "overview.png")
    image = imread(tmp_path / "overview.png")
    assert image.shape[1] == 1800
    assert image.shape[0] > 1000
    assert image[..., :3].std() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_results_give_the_same_picture(schedule, tmp_path, suffix):
    picture, other = tmp_path / f"a{suffix}", tmp_path / f"b{suffix.upper()}"
    for path in (picture, other):
        save_picture(schedule(LARGE), path)
    assert picture.read_bytes() == other.read_bytes()
    begin = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert picture.read_bytes().startswith(begin)


@pytest.mark.filterwarnings("error")
def test_users_of_any_name_are_in_the_legend(make):
    names = ["_www", r"a$\fro$b", "<b>x", "HOST$"]
    header = {"User": [f"{number} {name}" for number, name in enumerate(names)]}
    axes = draw_gantt(make([(k, 5, 1) for k in range(4)], 4, user_id=range(4), header=header))
    axes.get_figure(root=True).canvas.draw()
    texts = [text.get_text().strip() for text in axes.get_legend().get_texts()]
    assert texts == [f"{name} (25%)" for name in names]


def test_a_small_gantt_chart_has_the_jobs_where_they_ran(make):
    # processors 0 to 3 are busy in the first half, 4 and 5 always, 6 and 7 never
    result = make([(0, 50, 2), (0, 50, 2), (0, 100, 2)], user_id=np.array([1, 2, 2]))
    image = inside(draw_gantt(result))
    assert colour_share(image, USER_COLOURS[0]) == pytest.approx(3 / 8, abs=0.02)  # user 2
    assert colour_share(image, USER_COLOURS[1]) == pytest.approx(1 / 8, abs=0.02)
    height, width, _ = image.shape
    assert colour_share(image[height // 2 + 5 :, width // 2 + 5 :], "#FFFFFF") > 0.99
    assert colour_share(image[: height // 4 - 5], "#FFFFFF") > 0.99


def test_a_large_gantt_chart_shows_the_share_of_busy_processors(schedule):
    result = schedule(LARGE)
    assert place_jobs(result).job.size > MOST_RECTANGLES
    image = inside(draw_gantt(result, begin=0))
    idle = (image.min(axis=2) > 253).mean()
    assert idle == pytest.approx(1 - result.metrics["utilization"], abs=0.02)


def test_a_large_gantt_chart_has_the_colours_of_users_where_they_ran(make):
    # user 1 in the first half, user 2 in the second, in very many jobs on the lowest processors
    jobs = [(10 * k, 10, 6) for k in range(MOST_RECTANGLES + 2)]
    users = np.where(np.arange(len(jobs)) < len(jobs) // 2, 1, 2)
    image = inside(draw_gantt(make(jobs, user_id=users)))
    height, width, _ = image.shape
    lower = image[height // 4 + 2 :]
    assert colour_share(image[: height // 4 - 2], "#FFFFFF") > 0.99
    assert colour_share(lower[:, : width // 2 - 2], USER_COLOURS[0]) > 0.99
    assert colour_share(lower[:, width // 2 + 2 :], USER_COLOURS[1]) > 0.99


def test_unknown_users_and_a_single_one_give_jobs_colours_in_turn(make):
    for users in (np.full(3, -1), np.full(3, 7)):
        axes = draw_gantt(make([(0, 50, 2)] * 3, user_id=users))
        assert axes.get_legend() is None
        image = inside(axes)
        for colour in USER_COLOURS[:3]:
            assert colour_share(image, colour) == pytest.approx(1 / 4, abs=0.03)


#: One job holds the machine for a day, a thousand wait for a second of it; then nobody waits.
PEAK = [(0, 86_400, 8)] + [(86_399, 1, 8)] * 1000 + [(10**8 + 10 * k, 1, 1) for k in range(2000)]


def test_the_queue_shows_its_peak(make):
    axes = draw_queue_length(make(PEAK))
    assert axes.get_ylim()[1] >= 1000
    assert "max 1,000" in axes.get_legend().get_texts()[0].get_text()


def test_several_queues_are_means_without_dots_above_them(make):
    results = {"a": make(PEAK), "b": make(PEAK[:1] + PEAK[1:301] + PEAK[1001:])}
    axes = draw_queue_length(results)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [text.rpartition(", ")[2] for text in texts] == ["max 1,000", "max 300"]
    weeks = 10**8 // 604_800 + 1  # a day would be too many
    assert [len(line.get_xdata()) for line in axes.get_lines()] == [weeks, weeks]
    # the curves are means, as the axis says: far below what the legend calls the greatest
    assert axes.get_ylim()[1] < 100
    assert axes.get_ylabel() == "queued jobs,\nmeans of weeks"


def test_bins_are_those_of_a_calendar(make):
    """From midnight in the log's zone, where days are what there is room for."""
    header = {"UnixStartTime": ["823996800"], "TimeZoneString": ["Europe/Stockholm"]}
    result = make([(3 * 3600, 86_400, 1), (200 * 86_400, 100, 1)], header=header)
    edges, means = bins_of(12, time_axis({"a": result}))
    assert means == "means of days"
    assert edges[0] == 3 * 3600
    assert edges[1:-1].tolist() == [23 * 3600 + 86_400 * day for day in range(200)]
    assert len(edges) <= BINS + 1


def test_of_many_schedules_each_is_drawn_beside_the_first(make):
    parts = {name: make([(0, 100 * k, 4), (50, 50, 2)]) for k, name in enumerate("abc", 1)}
    rows = rows_beside_first(parts, time_axis(parts), 6)
    figure = Figure()
    for row, name in zip(rows, "bc", strict=True):
        used, queued = figure.subplots(1, 2)
        row(used, queued)
        assert used.get_title(loc="left").startswith(f"{name}, utilization: mean ")
        other = used.get_lines()[1]
        busy = 100 * parts[name].metrics["utilization"]
        over = other.get_ydata()[: 10 * "abc".index(name) + 10]
        assert over.mean() == pytest.approx(busy, rel=0.02)
        assert queued.get_ylim() == (0, 1)


def test_curves_are_steps_or_means_all_of_them(make):
    few, many = make([(0, 100, 4), (50, 50, 2)]), make(PEAK)
    axes = draw_utilization({"few": few, "many": many})
    assert len({len(line.get_xdata()) for line in axes.get_lines()}) == 1
    assert "means of" in axes.get_ylabel()
    axes = draw_utilization({"few": few, "again": few})
    assert axes.get_ylabel() == "in use (% of processors)"
    assert "max" not in [text.get_text() for text in axes.get_legend().get_texts()]


def test_utilization_is_drawn_in_percent_of_the_machine(make):
    axes = draw_utilization(make([(0, 100, 4), (50, 50, 2)]))
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [50, 75, 0]
    assert line.get_xdata().tolist() == pytest.approx([0, 50, 100])
    # of several that begin and end at other times, each is 0 elsewhere
    later = make([(20, 30, 8), (45, 5, 8)])
    lines = draw_utilization({"a": make([(0, 10, 4)]), "b": later}).get_lines()
    points = [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines]
    assert points[0] == [(0, 50), (10, 0), (55, 0)]
    assert points[1] == [(0, 0), (20, 100), (50, 100), (55, 0)]


def test_the_curve_of_slowdowns_ends_at_the_worst_job_and_has_its_mean_marked(make):
    result = make([(0, 100, 8), (0, 10, 8)])  # slowdowns 1 and 11
    curve, dot = draw_bsld(result).get_lines()
    assert curve.get_xdata().tolist() == [1, 11, 11]
    assert curve.get_ydata().tolist() == [1, 0.5, 0]
    assert curve.get_drawstyle() == "steps-pre"
    assert dot.get_xdata().tolist() == [6]
    assert dot.get_ydata().tolist() == [0.5]


def test_nobody_waits(make):
    result = make([(0, 100, 4), (50, 50, 2)])
    assert "no job waits" in [text.get_text() for text in draw_bsld(result).texts]
    assert draw_queue_length(result).get_ylim() == (0, 1)


def test_pictures_can_share_a_figure(schedule):
    from matplotlib.figure import Figure

    figure = Figure()
    for axes, drawing in zip(figure.subplots(4), DRAWINGS, strict=True):
        assert drawing(schedule(), axes) is axes
    figure.savefig(BytesIO(), format="png")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_full_disk_ends_in_one_line(suffix, schedule):
    with pytest.raises(HpcgymError, match="/dev/full cannot be written: No space left"):
        save_figure(draw_bsld(schedule()).figure, Path("/dev/full"), suffix)


SWEDEN = {"UnixStartTime": ["843480031"], "TimeZoneString": ["Europe/Stockholm"]}


@pytest.mark.parametrize(
    ("job", "header", "label", "zero"),
    [
        ((0, 86_400, 1), SWEDEN, "1996 (Europe/Stockholm time)", 843_480_031 / 86_400),
        ((0, 172_800, 1), {}, "time (days)", 0),
        ((0, 172_800, 1), {"UnixStartTime": ["0"]}, "time (days)", 0),
        ((0, 172_800, 1), {"UnixStartTime": ["unknown"]}, "time (days)", 0),
        ((0, 9, 1), SWEDEN | {"TimeZoneString": ["the moon"]}, "1996 (UTC time)", None),
        ((0, 2**45, 1), SWEDEN, "time (days)", 0),  # beyond all dates
        ((0, 100, 1), {}, "time (seconds)", 0),
        ((0, 3_000, 1), {}, "time (minutes)", 0),
        ((0, 9_000, 1), {}, "time (hours)", 0),
        ((10**9, 3_000, 1), {}, "time since the first submission (minutes)", -(10**9) / 60),
    ],
)
def test_the_axis_of_time(make, job, header, label, zero):
    axis = time_axis(named(make([job], header=header)))
    assert axis.label == label
    assert zero is None or axis.place(0) == pytest.approx(zero, rel=1e-12)


def kinds_of_fonts(path):
    """Return the subtypes of the fonts of a PDF that nothing has packed."""
    return {
        *re.findall(rb"/Subtype\s*/(Type0|Type1|Type3|TrueType|CIDFontType2)", path.read_bytes())
    }


@pytest.mark.slow
def test_fonts_are_such_as_journals_take_and_settings_of_the_user_stay(schedule, tmp_path):
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure()
    figure.suptitle("text")
    figure.savefig(tmp_path / "usual.pdf")
    assert kinds_of_fonts(tmp_path / "usual.pdf") == {b"Type3"}  # the way of looking finds them
    result = schedule()
    draw_utilization(result).figure.savefig(tmp_path / "drawn.eps")
    kinds = re.findall(rb"/FontType\s+(\d+)", (tmp_path / "drawn.eps").read_bytes())
    assert {*kinds} == {b"42"}
    with matplotlib.rc_context({"pdf.fonttype": 3, "ps.fonttype": 3}):
        before = dict(matplotlib.rcParams)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: save_picture(result, tmp_path / f"{n}.pdf"), range(6)))
        draw_utilization(result).figure.savefig(tmp_path / "6.pdf")
        with pytest.raises(OSError, match="No such file"):
            draw_utilization(result).figure.savefig(tmp_path / "none" / "a.pdf")
        assert dict(matplotlib.rcParams) == before
    true_type = {b"Type0", b"CIDFontType2"}
    assert all(kinds_of_fonts(tmp_path / f"{n}.pdf") == true_type for n in range(7))
    assert len({(tmp_path / f"{n}.pdf").read_bytes() for n in range(6)}) == 1


@pytest.mark.slow
def test_matplotlib_is_imported_late_and_without_its_global_state(tmp_path):
    code = f"""
import sys, hpcgym.report
assert "matplotlib" not in sys.modules
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload
hpcgym.report.save_picture(simulate(load_workload("lublin:jobs=9")), {str(tmp_path / "a.png")!r})
assert "matplotlib.figure" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_of_many_schedulers_there_are_no_gantt_charts(schedule):
    parts = {f"{k}": schedule() for k in range(4)}
    assert why_no_gantts(dict(list(parts.items())[:3])) == ""
    assert "because 4 would be too small" in why_no_gantts(parts)


def test_schedulers_and_users_are_named_once_in_an_overview():
    workload = load_workload("lublin:jobs=60,processors=16,load=0.9")
    figure = draw_overview({name: simulate(workload, name) for name in ("easy", "saf", "fcfs")})
    texts = [
        text.get_text()
        for axes in figure.axes
        if axes.get_legend() is not None
        for text in axes.get_legend().get_texts()
    ]
    assert [sum(text.startswith(f"{name}: ") for text in texts) for name in ("easy", "saf")] == [
        1,
        1,
    ]
    users = [text for text in texts if text.startswith("user ")]
    assert len(users) == len({*users}) > 1


def test_names_of_many_schedules_have_room(schedule):
    parts = {f"scheduler {number}": schedule() for number in range(24)}
    figure = draw_overview(parts)
    figure.canvas.draw()
    (legend,) = [axes.get_legend() for axes in figure.axes if axes.get_legend() is not None]
    below = [axes for axes in figure.axes if "utilization" in axes.get_title("left")]
    assert legend.get_window_extent().y0 > below[0].get_window_extent().y1


@pytest.mark.slow
@pytest.mark.filterwarnings("error:constrained_layout not applied")
@pytest.mark.parametrize("long", ["area + " * 40 + "wait", "x" * 300, "short"])
def test_long_names_in_a_table_are_on_several_lines(schedule, long):
    result = schedule()
    figure = draw_overview({"easy": result, long: result, f"2 {long}": result})
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    ((axes, table),) = [
        (axes_with_table, axes_with_table.tables[0])
        for axes_with_table in figure.axes
        if axes_with_table.tables
    ]
    assert table.get_window_extent(renderer).y0 >= 0
    cells = table.get_celld()
    for row in range(4):
        name, value = (cells[row, column].get_text() for column in (0, 1))
        extent, frame = name.get_window_extent(renderer), axes.get_window_extent(renderer)
        assert frame.x0 <= extent.x0 < extent.x1 < value.get_window_extent(renderer).x0
        box = cells[row, 0].get_window_extent(renderer)
        assert box.y0 <= extent.y0 < extent.y1 <= box.y1
    text = cells[2, 0].get_text().get_text()
    assert max(len(axes_drawn.get_title("left")) for axes_drawn in figure.axes) <= 78
    assert ("\n" in text) == (long != "short")
    assert text.replace("\n", "").replace(" ", "") == long.replace(" ", "")


test_mistakes = mistakes_of(globals(), fixtures=("monkeypatch", "schedule"))
