"""Heatmaps: each cell has the colour and the number of its pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hpcgym.machine.speedups import Heatmap, generate_speedups
from hpcgym.report import draw_speedups
from hpcgym.report.canvas import new_figure

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

SMALL = Heatmap(("lu", "mg"), np.array([[1.0, 0.5], [1.25, math.nan]]), source="/folder/small.csv")


def colour_at(axes: Any, row: int, column: int) -> tuple[int, int, int]:
    """The colour in the upper left part of a cell, where no number stands."""
    figure = axes.figure
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())
    x, y = axes.transData.transform((column - 0.4, row - 0.4))
    red, green, blue = image[image.shape[0] - int(y) - 1, int(x), :3].tolist()
    return red, green, blue


def test_cells_are_where_the_pairs_are() -> None:
    axes = draw_speedups(SMALL)
    assert min(colour_at(axes, 0, 0)) > 250
    red, _, blue = colour_at(axes, 0, 1)  # the slowest: orange
    assert red > 200 > 50 > blue
    red, _, blue = colour_at(axes, 1, 0)  # half as far from 1, and faster: a light blue
    assert 100 < red < 150 < 200 < blue
    grey = colour_at(axes, 1, 1)
    assert max(grey) - min(grey) < 3
    assert max(grey) < 240
    written = {text.get_position(): text.get_text() for text in axes.texts[:3]}
    assert written == {(0, 0): "1.00", (1, 0): "0.50", (0, 1): "1.25"}


def test_what_stands_around() -> None:
    axes = new_figure(6, 5).add_subplot()
    assert draw_speedups(SMALL, axes) is axes
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["lu", "mg"]
    assert axes.yaxis.get_inverted()  # the first code on top
    assert axes.get_title("left") == "Speedups side by side: mean 0.917"
    assert "small.csv · 2 codes · 1 of 4 pairs not measured" in axes.texts[-1].get_text()


@pytest.mark.slow
@pytest.mark.parametrize("codes", [1, 8, 40, 41, 200])
def test_any_number_of_codes(codes: int) -> None:
    names = tuple(f"a rather long name {number}" for number in range(codes))
    heatmap = Heatmap(names, generate_speedups(codes, spread=0.1 if codes > 1 else 0).speedup)
    axes = draw_speedups(heatmap)
    axes.figure.canvas.draw()
    numbers = [text for text in axes.texts if text.get_text().count(".") == 1]
    assert len(numbers) == (codes**2 if codes <= 40 else 0)
    box = axes.get_window_extent()
    assert box.width == pytest.approx(box.height)
    assert box.width > 0.5 * axes.figure.bbox.width
    if codes <= 40:  # a number stays in its cell
        width = max(text.get_window_extent().width for text in numbers)
        assert width < box.width / codes


def test_nothing_known() -> None:
    axes = draw_speedups(Heatmap(("a", "b"), np.full((2, 2), math.nan)))
    axes.figure.canvas.draw()
    assert axes.get_title("left") == "Speedups side by side"
    assert "4 of 4 pairs not measured" in axes.texts[-1].get_text()
