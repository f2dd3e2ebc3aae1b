"""Pictures of schedules in which jobs share nodes: lanes, colours, boxes, and what is over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym.explore import page
from hpcgym.machine.speedups import Heatmap
from hpcgym.report import (
    draw_gantt,
    draw_job_speedups,
    save_picture,
)
from hpcgym.report.canvas import (
    SPEEDUP_COLOURS,
    palette_of,
    speedup_classes,
    time_axis,
)
from hpcgym.report.placement import place_jobs, rows_of
from hpcgym.report.tables import comparison
from hpcgym.schedule.result import Result
from hpcgym.workload import with_codes

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

PAIR = Heatmap(("a", "b"), [[1.0, 1.25], [0.8, 1.0]], alone=[1.0, 1.0])


def together(*rows: tuple[int, int, int, str], scheduler: str = "easy-co") -> Result:
    """Rows of (submit, run, processors, code) on two nodes of two sockets of two cores."""
    submit, run, processors, codes = zip(*rows, strict=True)
    work = with_codes(few_jobs(8, submit, run, processors, name="made"), codes)
    return hpcgym.simulate(work, scheduler, cluster="2x2x2", speedups=PAIR)


@pytest.fixture(scope="module")
def three() -> Result:
    """Jobs a and b on both nodes, and another a on the first when the first job ends, at 80 s.

    b is slower throughout, 125 s. By then the third has done 56.25 s of its work; the rest takes
    43.75 s alone.
    """
    return together((0, 100, 4, "a"), (0, 100, 4, "b"), (0, 100, 2, "a"))


def test_lanes_by_hand(three: Result) -> None:
    assert rows_of(three).tolist() == [0, 2, 4]
    # the third job takes the lane that the first has left
    first = [(0, 0, 80, 0, 1), (0, 0, 80, 2, 3), (1, 0, 125, 1, 2), (1, 0, 125, 3, 4)]
    assert pieces(three) == [*first, (2, 80, 168.75, 0, 1)]
    # too large to be spread: compact on both nodes
    compact = together((0, 100, 8, "a"), (0, 50, 4, "a"))
    assert pieces(compact) == [(0, 0, 100, 0, 4), (1, 100, 150, 0, 1), (1, 100, 150, 2, 3)]


def pieces(result: Result) -> list[Any]:
    return list(zip(*(column.tolist() for column in place_jobs(result)), strict=True))


def test_classes_of_speedups(three: Result) -> None:
    assert three.job_speedup.tolist() == [1.25, 0.8, 100 / 88.75]
    assert speedup_classes(three).tolist() == [6, 1, 5]
    compact = together((0, 100, 4, "a"), scheduler="easy")
    assert speedup_classes(compact).tolist() == [3]


def pixel(axes: Any, time: float, row: float) -> str:
    """The colour at a time and a row."""
    axes.figure.canvas.draw()
    image = np.asarray(axes.figure.canvas.buffer_rgba())
    x, y = axes.transData.transform((time, row))
    red, green, blue = image[image.shape[0] - int(y) - 1, int(x), :3].tolist()
    return f"#{red:02X}{green:02X}{blue:02X}"


def test_the_gantt_chart_has_lanes_in_the_colours_of_speedups(three: Result) -> None:
    axes = draw_gantt(three)
    place = time_axis({"": three}).place
    expected = [SPEEDUP_COLOURS[k] for k in palette_of(three).of_job]
    for row, job in ((0.3, 0), (1.3, 1), (2.3, 0), (3.3, 1)):
        assert pixel(axes, place(30), row) == expected[job]
    assert pixel(axes, place(110), 0.3) == expected[2]
    assert pixel(axes, place(110), 2.3) == "#FFFFFF"  # nobody
    assert axes.get_ylim() == (0, 4)


def test_usual_colours(three: Result) -> None:
    assert "job speedup 0.8 to 0.9 (33% of jobs)" in palette_of(three).meaning
    compact = together((0, 100, 4, "a"), scheduler="easy")
    assert palette_of(compact).meaning == {}  # one user


def texts(axes: Any) -> list[str]:
    """What stands at the right of the boxes."""
    (right,) = axes.child_axes
    return [label.get_text() for label in right.get_yticklabels()]


def test_boxes_by_code_and_by_scheduler(three: Result) -> None:
    axes = draw_job_speedups(three)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert texts(axes) == [
        "mean 1.188 · 0 % slowed · 2 jobs",
        "mean 0.800 · 100 % slowed · 1 job",
    ]
    assert axes.get_title("left") == "Job speedups by code"
    both = {"one": three, "other": together((0, 100, 4, "a"), scheduler="easy")}
    axes = draw_job_speedups(both)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "other"]
    assert "mean 1.000 · 0 % slowed · 1 job" in texts(axes)


def test_many_codes_are_told_to_be_left_out() -> None:
    names = tuple(f"code {number}" for number in range(45))
    heatmap = Heatmap(names, np.ones((45, 45)))
    work = with_codes(few_jobs(8, [0] * 45, [10] * 45, [1] * 45), names)
    result = hpcgym.simulate(work, "easy-co", cluster="2x2x2", speedups=heatmap)
    axes = draw_job_speedups(result)
    assert len(axes.get_yticklabels()) == 40
    assert axes.get_title("left") == "Job speedups by code, 5 codes left out"


def test_overview_and_page(three: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    compact = together((0, 100, 4, "a"), scheduler="easy")
    save_picture(three, tmp_path / "one.png")
    save_picture({"shared": three, "compact": compact}, tmp_path / "two.png")
    for name in ("one.png", "two.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    text = page(three, report=True)
    for words in ("Speedups of jobs by code", "beside each other"):
        assert words in text
    assert "mean job speedup" in text
    assert text == page(three, report=True)
    heading = [text for text, _ in comparison({"x": three, "y": three})[0]]
    assert "mean job speedup" in heading
    plain = page(hpcgym.simulate(three.workload, "easy"), report=True)
    assert "speedup" not in plain


test_mistakes = mistakes_of(globals(), fixtures=("three",))
