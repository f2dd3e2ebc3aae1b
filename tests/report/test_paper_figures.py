"""Figures for papers: their size, fonts and greys, and what the figures of waits show."""

import re
import warnings
from itertools import combinations

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.report import save_figures
from hpcgym.report.canvas import LINE_COLOURS, line_style, shortened
from hpcgym.report.overview import draw_figure

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

NAMES = ["slowdown", "utilization", "queue"]


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


def test_what_figures_cannot_be(two, tmp_path):
    (tmp_path / "file").write_text("")
    for wrong, message in (
        (lambda: save_figures(two, tmp_path, width=1), "are from 2.5 to 12 inches wide, not 1"),
        (lambda: draw_figure(two, "cube"), "figure"),
        (lambda: save_figures(two, tmp_path / "file"), "file"),
    ):
        with pytest.raises(HpcgymError, match=message):
            wrong()


def test_legends_have_names_in_full_in_several_lines(schedule):
    """However narrow the figure is: what was compared is what differs."""
    rules, machines = ("easy", "saf:threshold=288000"), ("128", "136")
    names = [f"{rule} on {size} processors" for size in machines for rule in rules]
    results = {name: schedule() for name in names}
    for figure in NAMES:
        drawn = draw_figure(results, figure, 3.5)
        drawn.draw_without_rendering()
        legend = drawn.axes[0].get_legend()
        texts = [" ".join(text.get_text().split()) for text in legend.get_texts()]
        assert [text.partition(": mean")[0] for text in texts[:4]] == names
        lines = "\n".join(text.get_text() for text in legend.get_texts()).split("\n")
        assert not any(line.split()[-1] in ("mean", "max") for line in lines[:-1])
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
