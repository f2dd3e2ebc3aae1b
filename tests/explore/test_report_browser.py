"""Pages with a report in a browser: what stands first, choosing schedules, sorting, odd names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.explore import write_page
from hpcgym.explore.document import Cell, sheet, table
from hpcgym.naming import duration
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

HOSTILE = '</script><img src=x onerror=alert(1)><b>"&'
NAMES = ("fcfs", "easy", "saf")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    jobs = load_workload("lublin:jobs=400,processors=64,load=1.1,seed=3")
    return {name: simulate(jobs, name) for name in NAMES}


@pytest.fixture(scope="module")
def compared(results: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "compared.html"
    write_page(results, file, report=True)
    return file.as_uri()


PIXELS = (
    "['gantt0', 'gantt1', 'used', 'queue'].map((one) => document.getElementById(one).toDataURL())"
)


def drawn(tab: Any) -> Any:
    tab.wait_for_timeout(300)
    return tab.evaluate(PIXELS)


def test_metrics_of_all_schedules_come_first(
    visit: Any, compared: str, results: dict[str, Any]
) -> None:
    tab = visit(compared)
    cells = tab.locator('#statistics td[data-metric="mean_wait_s"]')
    told = [text.removesuffix(" ★") for text in cells.all_inner_texts()]
    assert told == [duration(one.metrics["mean_wait_s"]) for one in results.values()]
    box = tab.locator("#statistics").bounding_box()
    assert box["y"] + box["height"] < 200
    assert tab.locator("#report").bounding_box()["y"] < 850  # it can be seen that more follows
    tab.click("#down")
    tab.wait_for_timeout(100)
    assert abs(tab.locator("#report").bounding_box()["y"]) < 5


def test_two_of_the_schedules_are_chosen(
    visit: Any, compared: str, results: dict[str, Any], tmp_path: Path
) -> None:
    tab = visit(compared)
    tab.select_option("#shown1", label="saf")
    tab.select_option("#shown0", label="easy")
    assert tab.inner_text("#label0") == "easy"
    assert tab.inner_text("#label1") == "saf"
    own = visit(f"{compared}#schedules=1_2")
    assert drawn(tab) == drawn(own)
    assert "schedules=1_2" in tab.evaluate("location.hash")
    starts = tab.evaluate("explorer.state.runs.map((run) => Array.from(run.start))")
    for name, told in zip(("easy", "saf"), starts, strict=True):
        first = results[name].workload.submit_time[0]
        assert np.array_equal(first + np.array(told), results[name].start)
    tab.select_option("#shown0", label="saf")  # which is below: they change places
    assert [tab.inner_text(f"#label{k}") for k in (0, 1)] == ["saf", "easy"]
    back = visit(f"{compared}#schedules=2_1")
    assert drawn(tab) == drawn(back)


@pytest.mark.parametrize("odd", ["0_7", "1_1", "x", "1", "0_1_2"])
def test_an_address_without_such_schedules_shows_the_first(
    visit: Any, compared: str, odd: str
) -> None:
    tab = visit(f"{compared}#schedules={odd}")
    assert [tab.inner_text(f"#label{k}") for k in (0, 1)] == ["fcfs", "easy"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_a_small_screen(visit: Any, compared: str, scheme: str) -> None:
    tab = visit(compared, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 27)"}[scheme]


def test_a_report_of_hostile_names_runs_no_script(
    visit: Any, made: Callable[..., Any], tmp_path: Path
) -> None:
    name = f"{HOSTILE}@DATA@@REPORT@"
    header = {"Computer": [HOSTILE], "User": [f"1 {HOSTILE}"], "Queue": [f"1 {HOSTILE}", "2 b"]}
    columns = {"user_id": np.array([1, 2]), "queue": np.array([1, 2])}
    result = made([(0, 100, 8), (10, 400, 4)], header=header, name=name, **columns)
    other = made([(0, 100, 8)], name=HOSTILE)
    results = {HOSTILE: result, "<i>": result, "@ORIGIN@": result, f"{HOSTILE} 2": other}
    write_page(results, tmp_path / "page.html", report=True)
    tab = visit((tmp_path / "page.html").as_uri())
    alerts: list[str] = []
    tab.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    tab.select_option("#shown0", label="@ORIGIN@")
    tab.wait_for_timeout(300)
    report = tab.inner_text("#report")
    assert f"Not in the picture above: {HOSTILE} 2, which is of other jobs" in report
    assert name in report
    assert tab.locator("#shown0 option").count() == 3
    assert tab.locator("img:not([src^='data:image/png;'])").count() == 0
    assert tab.locator("b, i i, #report i").count() == 0
    assert alerts == []


def test_headings_sort(visit: Any, tmp_path: Path) -> None:
    cells = ["1,234", Cell("9.5", best=True), "-", "12", Cell("k", value="11"), "-3"]
    rows = [[str(place), cell] for place, cell in enumerate(cells)]
    body = table([HOSTILE, "value"], rows, sortable=True) + '<p data-x="1"></p>'
    text = sheet(HOSTILE, [HOSTILE], body).replace("<body>", "<body data-ready>")
    (tmp_path / "sheet.html").write_text(text)
    tab = visit((tmp_path / "sheet.html").as_uri(), color_scheme="dark")
    order = "tbody td:first-child"
    tab.click("th button >> text=value")
    assert tab.locator(order).all_inner_texts() == ["5", "1", "4", "3", "0", "2"]
    assert tab.get_attribute("th:nth-child(2)", "aria-sort") == "ascending"
    tab.click("th button >> text=value")
    assert tab.locator(order).all_inner_texts() == ["0", "3", "4", "1", "5", "2"]
    assert tab.title() == HOSTILE
    assert tab.locator("b, img").count() == 0
    assert tab.evaluate("document.documentElement.className") == "dark"
    tab.click("#theme")
    assert tab.evaluate("document.documentElement.className") == ""
