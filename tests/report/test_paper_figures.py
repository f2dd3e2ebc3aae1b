"""Figures for papers: their size, fonts and greys, and what the figures of waits show."""

import re
import warnings
from itertools import combinations

import numpy as np
import pytest

from hpcgym.errors import HpcgymError
from hpcgym.explanation import waits, waits_by
from hpcgym.report import draw_class_waits, save_figures
from hpcgym.report.canvas import LINE_COLOURS, line_style, shortened
from hpcgym.report.overview import draw_figure

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

NAMES = ["slowdown", "utilization", "queue", "waits-by-size", "waits-by-length"]


@pytest.fixture(scope="module")
def two(schedule):
    return {"$easy_1$": schedule(), "saf": schedule(scheduler="saf")}


@pytest.mark.slow
def test_each_figure_is_a_pdf_and_an_svg_of_the_width_of_a_column(two, tmp_path):
    files = save_figures(two, tmp_path / "figures")
    assert [path.name for path in files] == [f"{n}{s}" for n in NAMES for s in (".pdf", ".svg")]
    for path in files:
        data = path.read_bytes()
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", data)
            assert float(box[1]) == 3.5 * 72
            assert 2 * 72 < float(box[2]) < 5 * 72
            assert b"/CIDFontType2" in data  # TrueType
            assert not re.search(rb"/Subtype\s*/Type3", data)
        else:
            assert re.search(rb'width="([\d.]+)pt"', data)[1] == b"252"
    again = save_figures(two, tmp_path / "again")
    assert [one.read_bytes() for one in files] == [one.read_bytes() for one in again]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_no_title_and_nothing_of_it_is_cut_off(two, name):
    figure = draw_figure(two, name)
    (axes,) = figure.axes
    assert axes.get_title("left") == ""
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[0].startswith("$easy_1$: mean ")
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    for part in (axes, axes.get_legend(), axes.xaxis.label, axes.yaxis.label):
        box = part.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    assert axes.get_window_extent().height > 0.4 * height


def lightness(colour):
    """Relative luminance of a colour, of the definition of sRGB."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_lines_differ_where_colours_are_greys():
    styles = [line_style(place) for place in range(28)]
    assert len({(one["color"], one["linestyle"]) for one in styles}) == 28
    for one, other in combinations(styles[: len(LINE_COLOURS)], 2):
        apart = abs(lightness(one["color"]) - lightness(other["color"]))
        assert one["linestyle"] != other["linestyle"] or apart > 0.1


@pytest.mark.parametrize("by", ["size", "length"])
def test_waits_of_classes_are_means_of_their_jobs(schedule, by):
    result = schedule(scheduler="saf")
    axes = draw_class_waits({"saf": result}, by)
    (line,) = axes.get_lines()
    classes = {}
    for wait, run, size in zip(
        result.wait.tolist(),
        result.run_time.tolist(),
        result.workload.requested_processors.tolist(),
        strict=True,
    ):
        length = 0 if run < 600 else 1 if run < 7200 else 2
        classes.setdefault((size - 1).bit_length() if by == "size" else length, []).append(wait)
    unit = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    per = unit[re.search(r"\((\w+)\)", axes.get_ylabel())[1]]
    means = [sum(waits) / len(waits) / per for _, waits in sorted(classes.items())]
    assert line.get_ydata() == pytest.approx(means)
    assert line.get_linestyle() == "None"  # nothing lies between classes
    assert len(axes.get_xticklabels()) == len(means)


def test_classes_end_at_the_machine_and_schedulers_stand_side_by_side(make):
    jobs = [(0, 10, 100), (0, 10, 66), (0, 10, 2), (0, 10, 3)]
    result = make(jobs, processors=100)
    axes = draw_class_waits({"one": result, "two": result})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "3-4", "65-100"]
    first, second = (line.get_xdata() for line in axes.get_lines())
    assert second - first == pytest.approx(0.3)
    assert (first < np.arange(3)).all()
    assert waits_by(result, waits(result), "requested_processors").index.tolist() == [
        "2",
        "3 to 4",
        "65 to 100",
    ]
    lengths = make([(0, 599, 1), (0, 600, 1), (0, 7200, 1)])
    texts = [text.get_text() for text in draw_class_waits(lengths, "length").get_xticklabels()]
    assert texts == ["< 10 min", "10 min to 2 h", "≥ 2 h"]
    alone = make([(0, 10, 65)], processors=65)
    assert waits_by(alone, waits(alone), "requested_processors").index.tolist() == ["65"]


def test_what_figures_cannot_be(two, tmp_path):
    (tmp_path / "file").write_text("")
    for wrong, message in (
        (lambda: save_figures(two, tmp_path, width=1), "are from 2.5 to 12 inches wide, not 1"),
        (lambda: draw_figure(two, "cube"), "figure"),
        (lambda: draw_class_waits(two, "colour"), "by"),
        (lambda: save_figures(two, tmp_path / "file"), "file"),
    ):
        with pytest.raises(HpcgymError, match=message):
            wrong()


def test_legends_have_names_in_full_in_several_lines(schedule):
    """However narrow the figure is: what was compared is what differs."""
    rules, machines = ("easy", "saf:threshold=288000"), ("128", "136")
    names = [f"{rule} on {size} processors" for size in machines for rule in rules]
    results = {name: schedule() for name in names}
    for figure in ("queue", "slowdown", "utilization", "waits-by-size", "waits-by-length"):
        drawn = draw_figure(results, figure, 3.5)
        drawn.draw_without_rendering()
        legend = drawn.axes[0].get_legend()
        texts = [" ".join(text.get_text().split()) for text in legend.get_texts()]
        assert [text.partition(": mean")[0] for text in texts[:4]] == names
        lines = "\n".join(text.get_text() for text in legend.get_texts()).split("\n")
        assert not any(line.split()[-1] in ("mean", "max") for line in lines[:-1])
        assert legend.get_window_extent().x1 <= drawn.bbox.x1
        assert legend.get_window_extent().y1 <= drawn.bbox.y1 + 1


def test_both_figures_of_waits_have_the_unit_of_the_legend(schedule):
    results = {"one": schedule(), "two": schedule()}
    axes = [draw_figure(results, f"waits-by-{by}").axes[0] for by in ("size", "length")]
    labels = {one.get_ylabel() for one in axes}
    assert len(labels) == 1
    short = {"days": "d", "hours": "h", "minutes": "min", "seconds": "s"}
    unit = short[labels.pop().removeprefix("mean wait (").removesuffix(")")]
    for one in axes:
        assert all(text.get_text().endswith(f" {unit}") for text in one.get_legend().get_texts())


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
    short = shortened(results, 3.5)
    assert list(short.values()) == [
        "a very long na…hold=1h", "a very long na…hold=2h"
    ]  # fmt: skip
    assert "…" not in "".join(shortened(["easy on 128 nodes", "saf on 128 nodes"], 3.5).values())
    middle = [f"{'a' * 30}{k}{'b' * 30}" for k in "xy"]
    assert all(k in short for k, short in zip("xy", shortened(middle, 5.5).values(), strict=True))
    alike = shortened([f"{'a' * 40}{k}{'b' * 40}" for k in range(3)] + ["saf"], 3.5)
    assert len({*alike.values()}) == 4
    assert alike["saf"] == "saf"
