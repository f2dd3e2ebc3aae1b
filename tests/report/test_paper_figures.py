"""Figures for papers: their size, fonts and greys, and what the figures of waits show."""

import re
import warnings
from itertools import combinations

import pytest
from mistakes import mistakes_of

from hpcgym.report import canvas, save_figures
from hpcgym.report.canvas import LINE_COLOURS, line_style, shortened
from hpcgym.report.figures import COLUMN_INCHES, draw_figure, drawings_of, save_drawings
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

NAMES = ["slowdown", "utilization", "queue"]


@pytest.fixture(scope="module")
def two(schedule):
    return {"$easy_1$": schedule(), "saf": schedule(scheduler="saf")}


@pytest.mark.slow
def test_each_figure_is_a_pdf_and_a_png_of_the_width_of_a_column(two, tmp_path):
    files = save_figures(two, tmp_path / "figures")
    *pictures, metrics, paid, lost = files
    assert [path.name for path in pictures] == [f"{n}{s}" for n in NAMES for s in (".pdf", ".png")]
    assert [path.name for path in (metrics, paid, lost)] == [f"table-{n}.tex" for n in (1, 2, 3)]
    for path in pictures:
        data = path.read_bytes()
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", data)
            assert float(box[1]) == pytest.approx(COLUMN_INCHES * 72)
            assert 2 * 72 < float(box[2]) < 5 * 72
            assert b"/CIDFontType2" in data  # TrueType
            assert not re.search(rb"/Subtype\s*/Type3", data)
        else:
            assert int.from_bytes(data[16:20], "big") == COLUMN_INCHES * 300  # pixels
    again = save_figures(two, tmp_path / "again")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_no_title_and_nothing_of_it_is_cut_off(two, name):
    figure = draw_figure(two, name)
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    for axes in figure.axes:
        panel = len(figure.axes) > 1
        assert axes.get_title("left") in ({*two} if panel else {""})
        for part in (axes, axes.xaxis.label, axes.yaxis.label):
            box = part.get_window_extent()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
    assert sum(axes.get_window_extent().height for axes in figure.axes) > 0.4 * height


def test_names_stand_beside_their_curves_and_overlap_nothing(two):
    figure = draw_figure(two, "slowdown")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_legend() is None
    assert [text.get_text() for text in axes.texts] == [*two]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(box.overlaps(other) for box, other in combinations(boxes, 2))
    lines = {line.get_label(): line for line in axes.get_lines()}
    for text, box in zip(axes.texts, boxes, strict=True):
        assert axes.get_window_extent().fully_containsx(box.x1)
        assert text.get_color() == lines[text.get_text()].get_color()
        for line in lines.values():
            places = axes.transData.transform(line.get_xydata())
            assert not any(box.contains(*place) for place in places)


def test_the_first_and_the_best_others_are_drawn_and_the_figure_says_so(schedule):
    """The others are compared with the first, even if it is the worst."""
    names = ["fcfs", "easy", "easy-sjbf", "saf", "spf", "conservative"]
    results = {name: schedule(scheduler=name) for name in names}
    by_loss = sorted(names, key=lambda name: results[name].metrics["mean_bsld"])
    assert "fcfs" in by_loss[4:]
    best = ["fcfs", *by_loss[:3]]
    (axes,) = draw_figure(results, "slowdown").axes
    drawn = [line.get_label() for line in axes.get_lines() if line.get_label() in names]
    assert drawn == [name for name in names if name in best]
    assert axes.get_xlabel().endswith("fcfs and the best 3 of 5 others")
    panels = draw_figure(results, "queue").axes
    assert [axes.get_title("left") for axes in panels] == drawn
    (limits,) = {axes.get_ylim() for axes in panels}
    assert limits[1] >= max(results[name].metrics["max_queue_length"] for name in drawn)


def test_panels_of_unequal_queues_have_one_logarithmic_axis(two):
    """As the curves in one panel of other pictures have."""
    jobs = load_workload("lublin:jobs=3000,processors=64,load=0.8,seed=1")
    parts = {name: simulate(jobs, name) for name in ("fcfs", "saf")}
    short, long = sorted(result.metrics["mean_queue_length"] for result in parts.values())
    assert long > 20 * short
    panels = draw_figure(parts, "queue").axes
    assert {axes.get_yscale() for axes in panels} == {"symlog"}
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert {axes.get_yscale() for axes in draw_figure(two, "queue").axes} == {"linear"}


def test_bands_are_explained(two):
    """Where a line is of means, a band is about it; where it has all steps there is none."""
    long = simulate(load_workload("lublin:jobs=3000,processors=64,load=0.9"))
    for name in ("utilization", "queue"):
        said = draw_figure({"easy": long}, name).axes[-1].get_xlabel()
        assert said.endswith("bands: from the least to the greatest value")
        assert "bands" not in draw_figure(two, name).axes[-1].get_xlabel()


def test_drawings_stand_below_each_other_in_a_picture(two, tmp_path):
    path = tmp_path / "all.png"
    save_drawings(drawings_of(two).values(), path, {"hpcgym": "1"})
    assert int.from_bytes(path.read_bytes()[20:24], "big") > 150 * sum(
        drawing.inches for drawing in [*drawings_of(two).values()][1:]
    )


def lightness(colour):
    """Relative luminance of a colour, of the definition of sRGB."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_lines_differ_where_colours_are_greys():
    styles = [line_style(place) for place in range(28)]
    assert len({(style["color"], style["linestyle"]) for style in styles}) == 28
    for style, other in combinations(styles[: len(LINE_COLOURS)], 2):
        apart = abs(lightness(style["color"]) - lightness(other["color"]))
        assert style["linestyle"] != other["linestyle"] or apart > 0.1


def test_names_that_have_no_room_beside_curves_stand_in_a_legend_in_full(schedule, monkeypatch):
    """However narrow the figure is: what was compared is what differs."""
    monkeypatch.setattr(canvas, "label_curves", lambda axes: False)
    rules, machines = ("easy", "saf:threshold=288000"), ("128", "136")
    names = [f"{rule} on {size} processors" for size in machines for rule in rules]
    drawn = draw_figure({name: schedule() for name in names}, "slowdown", 3.5)
    drawn.draw_without_rendering()
    legend = drawn.axes[0].get_legend()
    assert [" ".join(text.get_text().split()) for text in legend.get_texts()] == names
    assert legend.get_window_extent().x1 <= drawn.bbox.x1
    assert legend.get_window_extent().y1 <= drawn.bbox.y1 + 1


def test_long_names_leave_room_for_what_is_drawn(schedule):
    """Different ones stay different, and matplotlib warns of nothing."""
    long = "a very long name of a scheduler that goes on and on and does not end, threshold="
    results = {f"{long}{hours}h": schedule() for hours in (1, 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures = [draw_figure(results, name) for name in NAMES]
    for figure in figures:
        figure.draw_without_rendering()
        assert figure.axes[0].get_window_extent().width > 0.5 * figure.bbox.width
    short = shortened([*results, "easy on 128 nodes", "saf"], 3.5)
    assert list(short.values()) == [
        "a very long…reshold=1h", "a very long…reshold=2h", "easy on 128 nodes", "saf"
    ]  # fmt: skip
    alike = shortened((f"{'a' * 40}{k}{'b' * 40}" for k in range(3)), 3.5)
    assert len({*alike.values()}) == 3


test_mistakes = mistakes_of(globals(), fixtures=("two",))
