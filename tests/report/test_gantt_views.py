"""Gantt charts show what is in view: a part that was asked for, or the busiest week."""

from itertools import pairwise

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.report import draw_gantt
from hpcgym.report.canvas import time_axis
from hpcgym.report.gantt import MOST_RECTANGLES
from hpcgym.report.overview import draw_overview
from hpcgym.report.tables import named

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

WEEK = 7 * 86_400
MANY = [(10 * k, 10, 6) for k in range(MOST_RECTANGLES + 2)]
# a small job each 1,000 s of 46 days; in the third week all other processors run for a day
LONG = sorted([*((1000 * k, 600, 1) for k in range(4000)), (2 * WEEK + 100, 86_400, 7)])


def boxes(axes):
    """Return the corners of the jobs that are drawn, (n, 4): left, right, low, high."""
    (collection,) = axes.collections
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)[:, [0, 2, 1, 3]]


def shown(axes, result, span=None):
    """Return from when until when a picture shows a schedule, on the axis of a span [s]."""
    return [time_axis(named(result), span).seconds(place) for place in axes.get_xlim()]


def test_jobs_are_drawn_with_their_numbers_where_there_is_room(make):
    axes = draw_gantt(make(MANY), begin=1003, end=1047)
    place = time_axis({"": make(MANY)}, (1003, 1047)).place
    edges = np.array([1003, *range(1010, 1050, 10), 1047])
    wanted = [(place(a), place(b), 0, 6) for a, b in pairwise(edges)]
    np.testing.assert_allclose(boxes(axes), wanted)
    numbers = [text.get_text() for text in axes.texts if text.get_text().isdigit()]
    assert numbers == ["100", "101", "102", "103", "104"]
    axes = draw_gantt(make(MANY))
    assert not any(text.get_text().isdigit() for text in axes.texts)
    (many,), (few,) = axes.collections, draw_gantt(make(MANY[:20])).collections
    assert (many.get_rasterized(), few.get_rasterized()) == (True, False)


def test_a_part_is_drawn_if_it_is_asked_for(make):
    result = make(MANY)
    for begin, end, drawn in ((1005, 1035, (1005, 1035)), (1005, None, (1005, 30_020))):
        axes = draw_gantt(result, begin=begin, end=end)
        assert shown(axes, result, drawn) == pytest.approx(drawn)
    assert len(boxes(draw_gantt(result, begin=1005, end=1035))) == 4


def test_of_a_long_schedule_the_busiest_week_is_drawn_unless_asked(make):
    result = make(LONG)
    axes = draw_gantt(result)
    assert shown(axes, result) == pytest.approx([2 * WEEK, 3 * WEEK])
    assert axes.get_xlabel() == "time (days), the busiest week: 3 of 7"
    whole = draw_gantt(result, begin=0)
    assert shown(whole, result) == pytest.approx([0, result.end.max()])
    assert whole.get_xlabel() == "time (days)"
    figure = draw_overview({"easy": result, "again": result})
    times = {axes.get_title("left"): shown(axes, result) for axes in figure.axes}
    for name in ("easy", "again"):
        assert times[name] == pytest.approx([2 * WEEK, 3 * WEEK])
    assert times["Utilization"] == pytest.approx([0, result.end.max()])


def test_users_are_those_of_the_part_that_is_drawn(make):
    result = make(LONG, user_id=np.where([size > 1 for _, _, size in LONG], 2, 1))
    texts = [text.get_text() for text in draw_gantt(result).get_legend().get_texts()]
    # by hand: 86,400 x 7 processor seconds, and 604 x 600 + 400 of user 1
    assert texts == ["user 2 (63%)", "user 1 (37%)"]


test_mistakes = mistakes_of(globals(), fixtures=("make",))
