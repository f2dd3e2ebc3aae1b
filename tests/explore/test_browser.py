"""Pages in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import served

from hpcgym.explanation import explain
from hpcgym.explore import show, write_page
from hpcgym.explore.document import Cell, sheet, table
from hpcgym.explore.fans import fans_of
from hpcgym.explore.live import Server, Session
from hpcgym.report.canvas import time_axis
from hpcgym.report.gantt import busiest_week
from hpcgym.simulation.run import simulate
from hpcgym.units import WEEK_S, duration
from hpcgym.workload import load_workload

JOB = 4034  # of KTH-SP2; under EASY it waits for three days


@pytest.fixture(scope="module")
def kth(trace: Callable[[str], Path]) -> Any:
    return load_workload(trace("KTH-SP2-1996-2.swf.gz"), clean="glesser")


@pytest.fixture(scope="module")
def year(kth: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of KTH-SP2 under EASY and SAF."""
    file = tmp_path_factory.mktemp("page") / "kth.html"
    write_page({"EASY": simulate(kth, "easy"), "SAF": simulate(kth, "saf")}, file)
    assert file.stat().st_size < 500_000
    return file.as_uri()


def state(tab: Any, what: str) -> Any:
    return tab.evaluate(f"explorer.state.{what}")


def settled(tab: Any) -> None:
    """Wait until what was asked for is drawn, and the address is written."""
    tab.wait_for_timeout(300)


def test_a_job_is_found_clicked_and_read(visit: Any, year: str, kth: Any) -> None:
    tab = visit(year)
    tab.keyboard.press("/")
    tab.keyboard.type(f"{JOB}\n")
    tab.keyboard.press("Escape")
    tab.keyboard.press("Escape")  # once to leave the field, once to pick none
    assert tab.get_attribute("body", "data-job") == ""
    place = tab.evaluate(f"explorer.locate({JOB})")
    tab.mouse.move(place["x"], place["y"])
    assert f"job {JOB}" in tab.inner_text("#tip")
    tab.mouse.down()
    tab.mouse.up()
    tab.wait_for_selector(f'body[data-job="{JOB}"]', state="attached")
    text = tab.inner_text("#detail")
    for k, (name, rule) in enumerate([("EASY", "easy"), ("SAF", "saf")]):
        result = simulate(kth, rule)
        row = int(np.flatnonzero(kth.job_number == JOB)[0])
        wait, start = int(result.wait[row]), result.start[row]
        later = (kth.submit_time > kth.submit_time[row]) & (result.start < start)
        later[[other for other, _ in state(tab, f"runs[{k}].why.delayed")]] = False
        part = text[text.index(name, text.index("requested")) :]
        assert f"waited\n{duration(wait)}\n" in part
        assert f"{later.sum()} other later jobs started before it" in part
    assert "3 d" in text


def test_a_year_opens_on_its_busiest_week(visit: Any, year: str, kth: Any) -> None:
    schedules = {name: simulate(kth, name) for name in ("easy", "saf")}
    _, first = busiest_week(schedules, time_axis(schedules))
    tab = visit(year)
    begin = first - int(kth.submit_time[0])
    assert state(tab, "view") == {"t0": begin, "t1": begin + WEEK_S}
    tab.keyboard.press("0")
    settled(tab)
    assert state(tab, "view.t1 - explorer.state.view.t0") > 300 * 86_400


def test_a_year_shows_shares_and_waits_and_a_click_a_week_of_jobs(visit: Any, year: str) -> None:
    tab = visit(year)
    label = "share of the machine by user, each day"
    assert label not in tab.inner_text("#label0")
    assert not tab.is_visible("#daily-waits")
    tab.keyboard.press("0")
    settled(tab)
    for k, name in enumerate(["EASY", "SAF"]):
        assert tab.inner_text(f"#label{k}") == f"{name}: {label}"
    assert tab.is_visible("#daily-waits")
    assert not tab.is_visible("#used")
    assert "median, up to the 90th percentile" in tab.evaluate("explorer.svgText()")
    tab.locator("#gantt0").hover(position={"x": 500, "y": 90})
    assert "% of the machine" in tab.inner_text("#tip")
    tab.locator("#gantt0").click(position={"x": 500, "y": 90})
    settled(tab)
    assert state(tab, "view.t1 - explorer.state.view.t0") == pytest.approx(WEEK_S)
    assert tab.inner_text("#label0") == "EASY"
    assert tab.is_visible("#used")
    tab.keyboard.press("0")
    tab.select_option("#colour", "wait_time")
    settled(tab)
    assert "by wait time, each day" in tab.inner_text("#label1")


def test_wheel_and_drag_keep_what_is_under_the_pointer(visit: Any, year: str) -> None:
    tab = visit(year)
    box = tab.locator("#gantt0").bounding_box()
    x, y = round(box["x"] + box["width"] / 4), round(box["y"] + 50)

    def time_at(place: float) -> float:
        view = state(tab, "view")
        return view["t0"] + (place - box["x"]) / box["width"] * (view["t1"] - view["t0"])

    tab.mouse.move(x, y)
    before, width = time_at(x), state(tab, "view.t1 - explorer.state.view.t0")
    for _ in range(10):
        tab.mouse.wheel(0, -200)
    settled(tab)
    now = state(tab, "view.t1 - explorer.state.view.t0")
    assert now < width / 20
    assert abs(time_at(x) - before) < now / 1000
    held = time_at(x)
    tab.mouse.down()
    tab.mouse.move(x + 100, y, steps=5)
    tab.mouse.up()
    assert abs(time_at(x + 100) - held) < now / 1000
    assert tab.get_attribute("body", "data-job") == ""  # a drag is no click


def test_keys_brush_map_and_rows(visit: Any, year: str, kth: Any) -> None:
    tab = visit(year)
    width = "view.t1 - explorer.state.view.t0"
    whole = state(tab, width)
    for key in "wwww":
        tab.keyboard.press(key)
    assert state(tab, width) == pytest.approx(whole * 0.7**4)
    before = state(tab, "view.t0")
    tab.keyboard.press("d")
    assert state(tab, "view.t0") == pytest.approx(before + 0.2 * state(tab, width))
    tab.keyboard.press("+")
    rows = state(tab, "rows")
    assert rows["high"] - rows["low"] == pytest.approx(70)
    tab.keyboard.press("0")
    assert state(tab, "rows") == {"low": 0, "high": 100}
    tab.keyboard.type(f"/{JOB}\n")
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("n")
    rows = np.flatnonzero(kth.user_id == kth.user_id[kth.job_number == JOB])
    following = kth.job_number[rows][kth.job_number[rows] > JOB][0]
    assert tab.get_attribute("body", "data-job") == str(following)
    tab.keyboard.press("p")
    assert tab.get_attribute("body", "data-job") == str(JOB)
    box = tab.locator("#gantt0").bounding_box()
    view = state(tab, "view")
    tab.keyboard.down("Shift")
    tab.mouse.move(box["x"] + 100, box["y"] + 30)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 200, box["y"] + 30, steps=3)
    tab.mouse.up()
    tab.keyboard.up("Shift")
    share = 100 / box["width"]
    assert state(tab, width) == pytest.approx(share * (view["t1"] - view["t0"]), rel=0.02)
    place = tab.locator("#map").bounding_box()
    tab.mouse.click(place["x"] + 0.7 * place["width"], place["y"] + 10)
    middle = (state(tab, "view.t0") + state(tab, "view.t1")) / 2
    assert middle == pytest.approx(0.7 * state(tab, "whole.t1"), rel=0.01)


def test_an_address_brings_the_same_view_and_the_same_pixels(visit: Any, year: str) -> None:
    tab = visit(year)
    tab.fill("#find", "wait > 2h user 3")
    tab.press("#find", "Enter")
    tab.select_option("#colour", "wait_time")
    tab.locator("#gantt0").hover(position={"x": 400, "y": 60})
    for _ in range(6):
        tab.mouse.wheel(0, -300)
    tab.mouse.move(5, 5)
    settled(tab)
    again, third = visit(tab.url), visit(tab.url)
    settled(third)
    pixels = "document.getElementById('{}').toDataURL()"
    for name in ("gantt0", "gantt1", "used", "queue", "axis", "map"):
        assert again.evaluate(pixels.format(name)) == third.evaluate(pixels.format(name)), name
    for end in ("t0", "t1"):
        assert abs(state(again, f"view.{end}") - state(tab, f"view.{end}")) <= 0.5  # seconds
    assert state(again, "colour") == "wait_time"
    assert again.input_value("#find") == "wait > 2h user 3"
    again.fill("#find", str(JOB))  # a job is picked, and the filter stays
    again.press("#find", "Enter")
    settled(again)
    assert visit(again.url).input_value("#find") == "wait > 2h user 3"
    again.fill("#find", "")
    settled(again)
    assert "filter" not in again.url


def test_a_filter_leaves_the_table_with_what_it_means(visit: Any, year: str, kth: Any) -> None:
    tab = visit(year)
    tab.keyboard.press("0")  # the whole year
    tab.fill("#find", "user 3 requested_processors >= 64")
    tab.press("#find", "Enter")
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("t")
    count = int(((kth.user_id == 3) & (kth.requested_processors >= 64)).sum())
    tab.wait_for_selector("#jobs tbody tr")
    assert f"{count} jobs in view" in tab.inner_text("#count")
    tab.click("#jobs thead button:text-is('waited, EASY')")
    tab.click("#jobs thead button:text('waited, EASY')")
    first = tab.inner_text("#jobs tbody tr:first-child th")
    wait = np.where((kth.user_id == 3) & (kth.requested_processors >= 64), simulate(kth).wait, -1)
    assert int(first) == kth.job_number[wait.argmax()]
    assert tab.get_attribute("#jobs th[aria-sort=descending]", "scope") == "col"
    tab.fill("#find", "user nobody")
    tab.press("#find", "Enter")
    assert tab.inner_text("#wrong") == "no user is called nobody"


def selected(tab: Any, act: Callable[[], Any]) -> None:
    """Do something, and wait until the selected range has followed."""
    tab.evaluate("() => { explorer.state.selected = null; }")
    act()
    tab.wait_for_function("() => explorer.state.selected")


def test_the_selected_range_has_what_pandas_finds(visit: Any, year: str, kth: Any) -> None:
    t0, t1 = 4_900_000, 5_700_000
    tab = visit(f"{year}#t={t0}_{t1}")
    selected(tab, lambda: tab.click("#selected summary"))
    tables = []
    for rule in ("easy", "saf"):
        jobs = simulate(kth, rule).jobs
        since = jobs["submit_time"] - jobs["submit_time"].iloc[0]
        tables.append(jobs[(since >= t0) & (since < t1)])
    first = tables[0]
    assert f": {len(first)} jobs" in tab.inner_text("#selected summary")
    cells = {
        row.get_attribute("data-measure"): row.locator("td").all_inner_texts()
        for row in tab.locator("#measures tbody tr").all()
    }
    waits = [table["wait_time"] for table in tables]
    for name, values in {
        "mean_wait": [wait.mean() for wait in waits],
        "median_wait": [wait.median() for wait in waits],
        "p95_wait": [wait.quantile(0.95) for wait in waits],
        "max_wait": [wait.max() for wait in waits],
    }.items():
        by = values[1] - values[0]
        sign = "+" if by > 0 else "-"
        assert cells[name] == [*map(duration, values), f"{sign}{duration(abs(by))}"]
    means = [table["bsld"].mean() for table in tables]
    by = f"{means[1] - means[0]:+,.2f}"
    assert cells["mean_bsld"] == [f"{means[0]:,.2f}", f"{means[1]:,.2f}", by]
    area = first["requested_processors"] * first["run_time"]
    hours = f"{area.sum() / 3600:,.0f}"
    assert cells["core_hours"] == [hours, hours, "same"]
    by_user = area.groupby(first["user_id"]).sum().sort_values(ascending=False)
    rows = tab.locator("#groups tbody tr")
    assert rows.count() == 21
    assert f"{len(by_user) - 20} others" in rows.last.inner_text()
    assert rows.first.locator("button").inner_text() == f"user {by_user.index[0]}"
    some = first[first["user_id"].isin(by_user.index[:20])]
    mean = some.groupby("user_id")["wait_time"].mean()
    heading = tab.locator("#groups thead button:text-is('mean wait, EASY')")
    for order in ("ascending", "descending"):
        selected(tab, heading.click)
        assert tab.get_attribute(f"#groups th[aria-sort={order}]", "scope") == "col"
    assert duration(mean.max()) in rows.first.inner_text()
    assert "others" in rows.last.inner_text()
    selected(tab, rows.first.locator("button").click)
    assert tab.input_value("#find") == f'user "user {mean.idxmax()}"'
    count = (first["user_id"] == mean.idxmax()).sum()
    assert f": {count} job" in tab.inner_text("#selected summary")


def test_a_page_says_why_a_job_waited_and_what_the_live_app_adds(
    visit: Any, made: Callable[..., Any], tmp_path: Path
) -> None:
    """By hand: 2 asks for all, 1 runs until 100, and 3 fits behind the promise to 2."""
    result = made([(0, 100, 4), (10, 50, 8), (20, 30, 4), (30, 500, 1)])
    assert result.start.tolist() == [0, 100, 20, 150]
    write_page(result, tmp_path / "page.html")
    tab = visit(f"{(tmp_path / 'page.html').as_uri()}#job=2")
    text = " ".join(tab.inner_text("#detail").split())
    assert "In its way: 1 job 1 by 40 s" not in text  # then 3 is there until 50
    assert "In its way: 1 job 1 by 50 s" in text
    assert "As it came, 1 job had 4 of 8 processors, and 0 earlier jobs waited." in text
    assert "8 processors were not free at once until it started." in text
    assert "Who had most of the machine in its wait: 1 50% 3 17%" in text
    assert "1 other later job started before it" in text
    assert "hpcgym explain … --job 2 simulates again without each of these jobs" in text
    assert "The live app, hpcgym explore …, does so, too." in text
    tab.fill("#find", "4")
    tab.press("#find", "Enter")
    text = " ".join(tab.inner_text("#detail").split())
    assert "For 50 s of its wait 1 processor was free. Then the rules kept it" in text
    assert "No single job was in its way" not in text
    tab.fill("#find", "3")
    tab.press("#find", "Enter")
    assert "The live app" not in tab.inner_text("#detail")  # it did not wait


def test_pictures_are_saved(visit: Any, year: str, tmp_path: Path) -> None:
    tab = visit(f"{year}#job={JOB}")
    for name, begins in (("png", b"\x89PNG"), ("svg", b"<svg")):
        with tab.expect_download() as saving:
            tab.click(f"#{name}")
        saving.value.save_as(tmp_path / "picture")
        assert (tmp_path / "picture").read_bytes().startswith(begins)
        assert saving.value.suggested_filename == f"KTH-SP2-1996-2.{name}"


@pytest.mark.parametrize("height", [800, 400])
def test_help_opens_at_its_beginning(visit: Any, year: str, height: int) -> None:
    tab = visit(year, viewport={"width": 400, "height": height})
    place = """() => {
      const help = document.querySelector("#help"), box = help.querySelector("h2").getBoundingClientRect();
      return [help.open, help.scrollTop, 0 < box.top && box.bottom < innerHeight];
    }"""  # noqa: E501
    tab.keyboard.press("?")
    assert tab.evaluate(place) == [True, 0, True]
    assert tab.evaluate("document.querySelector('#help').scrollHeight") > height  # it may scroll
    tab.locator("#help button").click()
    tab.click("#keys")
    assert tab.evaluate(place) == [True, 0, True]


def test_it_fits_a_small_screen_in_the_dark(visit: Any, year: str) -> None:
    options = {"viewport": {"width": 400, "height": 800}, "color_scheme": "dark"}
    tab = visit(year, **options)
    tab.click("#whole")
    settled(tab)
    selected(tab, lambda: tab.click("#selected summary"))
    tab.click("#listed summary")
    settled(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    assert tab.locator("#groups tbody tr").count() == 21
    assert state(tab, "dark") is True
    width = "view.t1 - explorer.state.view.t0"
    whole = state(tab, width)
    for button, share in (("closer", 0.5), ("closer", 0.25), ("farther", 0.5), ("whole", 1)):
        tab.click(f"#{button}")
        assert state(tab, width) == pytest.approx(share * whole)
    assert tab.locator("#gantt0").bounding_box()["width"] > 350


def test_on_a_small_screen_a_tap_shows_facts_below_the_job(visit: Any, year: str) -> None:
    tab = visit(f"{year}#job={JOB}", viewport={"width": 400, "height": 800}, has_touch=True)
    tab.keyboard.press("Escape")
    tab.evaluate("scrollTo(0, 0)")
    assert tab.evaluate("getComputedStyle(document.getElementById('detail')).position") == "static"
    place = tab.evaluate(f"explorer.locate({JOB})")
    tab.touchscreen.tap(place["x"], place["y"])
    tab.wait_for_selector(f'body[data-job="{JOB}"]', state="attached")
    settled(tab)
    facts, title = (tab.locator(part).bounding_box() for part in ("#detail", "#detail h2"))
    assert 0 <= facts["y"] <= title["y"]
    assert title["y"] + 100 < facts["y"] + facts["height"] <= 800
    place = tab.evaluate(f"explorer.locate({JOB})")
    assert 0 <= place["y"] < facts["y"]


def test_two_fingers_zoom_and_one_moves(visit: Any, year: str) -> None:
    tab = visit(year, viewport={"width": 400, "height": 800}, has_touch=True)
    session, box = tab.context.new_cdp_session(tab), tab.locator("#gantt0").bounding_box()
    y = box["y"] + 60

    def touch(kind: str, *places: float) -> None:
        points = [{"x": x, "y": y, "id": finger} for finger, x in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    whole = state(tab, "view")
    touch("touchStart", 180, 220)
    for step in range(1, 9):
        touch("touchMove", 180 - 5 * step, 220 + 5 * step)
    touch("touchEnd")
    near = state(tab, "view")
    width, before = (view["t1"] - view["t0"] for view in (near, whole))
    assert width == pytest.approx(before / 3, rel=0.1)
    touch("touchStart", 150)
    for step in range(1, 11):
        touch("touchMove", 150 + 5 * step)
    touch("touchEnd")
    moved = state(tab, "view.t0") - near["t0"]
    assert moved == pytest.approx(-50 / box["width"] * width, rel=0.3)
    assert tab.get_attribute("body", "data-job") == ""


HOSTILE = '</script><img src=x onerror=alert(1)><b>"&'


def test_a_hostile_trace_runs_no_script(
    visit: Any, made: Callable[..., Any], tmp_path: Path
) -> None:
    jobs = [(0, 100, 8), (10, 4000, 4), (20, 50, 8)]
    header = {"User": [f"1 {HOSTILE}", "2 @SCRIPT@"], "Queue": [f"1 {HOSTILE}", "2 b"]}
    columns = {"user_id": np.array([1, 2, 1]), "queue": np.array([1, 2, 2])}
    name = f"{HOSTILE}<!--<script>@DATA@"
    result = made(jobs, header=header, name=name, **columns)
    write_page({HOSTILE: result, "<i>": result}, tmp_path / "page.html")
    tab = visit((tmp_path / "page.html").as_uri())
    alerts: list[str] = []
    tab.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    assert tab.title() == name
    tab.locator("#gantt0").hover(position={"x": 5, "y": 5})
    tab.evaluate("location.hash = 'job=1'")
    tab.wait_for_selector('body[data-job="1"]', state="attached")
    tab.click("#listed summary")
    tab.wait_for_selector("#jobs tbody tr")
    tab.fill("#find", f'user "{HOSTILE[:8]}')
    tab.press("#find", "Enter")
    settled(tab)
    for part in ("#detail", "#legend", "#jobs"):
        assert HOSTILE in tab.inner_text(part)
    assert tab.locator("img, b b, i i, #name b").count() == 0
    assert "<img" not in tab.evaluate("explorer.svgText()")
    assert alerts == []


def test_a_notebook_shows_it(visit: Any, made: Callable[..., Any], tmp_path: Path) -> None:
    frame = show(made([(0, 100, 8), (10, 4000, 4), (20, 50, 8)]))._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<body data-ready>{frame}</body>")
    tab = visit((tmp_path / "notebook.html").as_uri())
    inside = tab.frame_locator("iframe")
    inside.locator("body[data-ready]").wait_for()
    assert inside.locator("#about").inner_text() == "3 jobs, 8 processors"


@pytest.fixture
def live(kth: Any) -> Iterator[Server]:
    session = Session({"EASY": simulate(kth, "easy")}, ["hpcgym", "simulate", "KTH-SP2"])
    with served(session) as server:
        yield server


NOW = 6_400_000  # s after the first submission of KTH-SP2, 34 jobs wait under EASY


def fan_of(tab: Any, number: int) -> dict[str, Any]:
    rows = state(tab, "fans.rows.map(({ j, ...row }) => [explorer.state.jobs.number[j], row])")
    return dict(rows)[number]  # type: ignore[no-any-return]


def test_the_slider_shows_what_was_expected(visit: Any, live: Server, kth: Any) -> None:
    tab = visit(f"{live.address}#t={NOW - 40_000}_{NOW + 160_000}")
    assert not tab.is_visible("#fans")
    box = tab.locator("#now").bounding_box()
    tab.mouse.click(box["x"] + 8 + (box["width"] - 16) / 5, box["y"] + 10)
    tab.wait_for_selector("body[data-expected]", state="attached")
    tab.wait_for_selector("#fans")
    now = state(tab, "now")
    assert abs(now - NOW) < 600
    expected = fans_of(simulate(kth, "easy"), now + int(kth.submit_time[0]))
    assert len(state(tab, "fans.rows")) == len(expected["jobs"]) > 20
    for number, levels, on, share in expected["jobs"]:
        row = fan_of(tab, number)
        assert (row["levels"], row["on"], row["share"]) == (levels, on, share)
    assert re.match(r"\d+ of \d+ waiting jobs: 50, 80, 95 %", tab.inner_text("#label-fans"))
    line, pane = (tab.locator(part).bounding_box() for part in ("#now-line", "#gantt0"))
    assert abs(line["x"] + 1 - pane["x"] - pane["width"] / 5) < 5
    fans = tab.locator("#fans").bounding_box()
    place = fans["x"] + 300, fans["y"] + 40
    tab.mouse.move(*place)
    assert "expected in " in tab.inner_text("#tip")
    tab.mouse.click(*place)
    tab.wait_for_selector("#expected")
    job = int(tab.get_attribute("body", "data-job"))
    start = int(simulate(kth, "easy").start[kth.job_number == job].item() - kth.submit_time[0])
    text = tab.inner_text("#expected")
    assert f"it was in {duration(start - now)}." in text
    on = fan_of(tab, job)["on"]
    words = "on no running job alone" if on is None else f"on job {on}, which usually ends at"
    assert words in " ".join(text.split())
    assert "<rect" in tab.evaluate("explorer.svgText()")


@pytest.mark.parametrize("width", [1400, 400])
def test_a_page_of_a_moment_has_its_fans(visit: Any, kth: Any, tmp_path: Path, width: int) -> None:
    results = [simulate(kth, name) for name in ("easy", "saf", "fcfs")]
    at = NOW + int(kth.submit_time[0])
    write_page(results, tmp_path / "page.html", at=at)
    tab = visit((tmp_path / "page.html").as_uri(), viewport={"width": width, "height": 850})
    assert tab.is_visible("#fans")
    assert not tab.is_visible("#now")
    assert len(state(tab, "fans.rows")) == len(fans_of(results[0], at)["jobs"])
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.select_option("#shown0", "2")  # forecasts are of the first schedule
    settled(tab)
    assert not tab.is_visible("#fans")


def test_rules_between_the_steps_of_sliders_stay(visit: Any, kth: Any) -> None:
    begin = simulate(kth, "saf", threshold=20_000, hold={"share": 0.123, "from_s": 60})
    with served(Session({"mine": begin}, [])) as server:
        tab = visit(server.address)
        tab.select_option('[name="policy"]', "sqf")
        tab.wait_for_selector("body[data-live='1']", state="attached")
        wanted = simulate(kth, begin.scheduler.but(policy="sqf"))
        assert metric(tab, "mean_wait_s", 1) == duration(wanted.metrics["mean_wait_s"])
        assert metric(tab, "max_wait_s", 1) == duration(wanted.metrics["max_wait_s"])


def metric(tab: Any, name: str, row: int) -> str:
    cells = tab.locator(f'#statistics td[data-metric="{name}"]')
    return str(cells.nth(row).inner_text()).removesuffix(" ★")


@pytest.mark.parametrize(("width", "height"), [(1400, 600), (400, 500)])
def test_nothing_lies_over_the_controls(visit: Any, live: Server, width: int, height: int) -> None:
    """However far the panel is scrolled: a click on a control meets it."""
    tab = visit(f"{live.address}#job={JOB}", viewport={"width": width, "height": height})
    settled(tab)
    if width < 760:
        tab.keyboard.press("Escape")  # facts of a job lie over the lower half of a narrow page
    else:
        higher = "aside => aside.scrollHeight > aside.clientHeight"
        assert tab.locator("aside").evaluate(higher)
    hidden = """() => {
      const controls = document.querySelectorAll("#live button, #live select, #live input");
      const shown = Array.from(controls).filter((one) => one.offsetParent);
      const covered = (one, block) => {
        one.scrollIntoView({ block });
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const met = [top + 2, bottom - 2].map((y) => document.elementFromPoint((left + right) / 2, y));
        return !met.every((other) => one.contains(other));
      };
      const named = ({ id, name }) => id || name;
      return [shown.length, ["start", "end"].flatMap((block) => shown.filter((one) => covered(one, block)).map(named))];
    }"""  # noqa: E501
    number, hidden_controls = tab.evaluate(hidden)
    assert number > 6
    assert hidden_controls == []


def test_a_slider_changes_the_schedule_to_what_simulate_says(
    visit: Any, live: Server, kth: Any
) -> None:
    tab = visit(live.address)
    assert metric(tab, "mean_wait_s", 1) == duration(simulate(kth).metrics["mean_wait_s"])
    box = tab.locator('[name="processors"]').bounding_box()
    tab.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    tab.mouse.down()
    for step in range(1, 20):
        tab.mouse.move(box["x"] + 8 + 4 * step, box["y"] + box["height"] / 2)
    tab.mouse.up()
    size = int(tab.input_value('[name="processors"]'))
    assert size > 110
    tab.wait_for_function("size => explorer.state.runs[1].processors === size", arg=size)
    settled(tab)
    wanted = simulate(kth, "easy", processors=size)
    assert metric(tab, "mean_wait_s", 1) == duration(wanted.metrics["mean_wait_s"])
    assert metric(tab, "mean_wait_s", 0) == duration(simulate(kth).metrics["mean_wait_s"])
    assert tab.inner_text("#label1").startswith(f"{size} processors: ")


def test_rules_are_chosen_and_typed_and_explained(visit: Any, live: Server, kth: Any) -> None:
    tab = visit(live.address)
    tab.select_option('[name="policy"]', "weights")
    assert tab.locator("#controls .weights").count() == 6
    tab.wait_for_selector("body[data-live='1']", state="attached")
    weighed = simulate(kth, "easy", policy=(0, 0, 0, 0, 0, -1))  # where the sliders begin
    assert metric(tab, "mean_wait_s", 1) == duration(weighed.metrics["mean_wait_s"])
    tab.select_option('[name="policy"]', "expression")
    tab.fill('[name="expression"]', "wait +")
    tab.wait_for_selector("#state.wrong")
    assert "column" in tab.inner_text("#state")
    rules = {"policy": "wait - 2 * area", "backfill": "conservative"}
    tab.fill('[name="expression"]', rules["policy"])
    tab.select_option('[name="backfill"]', rules["backfill"])
    result = simulate(kth, "easy", **rules)
    text = duration(result.metrics["mean_wait_s"])
    tab.wait_for_function(
        "text => document.querySelectorAll('td[data-metric=mean_wait_s]')[1]"
        ".textContent.startsWith(text)",
        arg=text,
    )
    tab.fill("#find", str(JOB))
    tab.press("#find", "Enter")
    tab.wait_for_selector("#why1 p")
    for k in (0, 1):
        assert "It asked for 98 processors for 4 h" in tab.inner_text(f"#why{k}")
    late = explain(result, JOB, most=100).delayed
    for number in list(late)[:8]:  # a button each, before all that is said
        by = tab.locator("#detail section").nth(1).locator(f"div > button:text-is('{number}')")
        assert by.count() == 1
    delayed = state(tab, "runs[1].why.delayed")
    assert [[int(kth.job_number[row]), seconds] for row, seconds in delayed] == [
        *map(list, late.items())
    ]
    tab.click("#save-command")
    tab.wait_for_selector("#saved[open]")
    assert tab.input_value("#command") == (
        "hpcgym simulate KTH-SP2 --policy 'wait - 2 * area' --backfill conservative"
    )
    assert re.match(r"#t=-?\d+_\d+&colour=user&job=4034$", tab.evaluate("location.hash"))


NAMES = ("fcfs", "easy", "saf")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
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
    waits_shown = [text.removesuffix(" ★") for text in cells.all_inner_texts()]
    assert waits_shown == [duration(result.metrics["mean_wait_s"]) for result in results.values()]
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
    for name, begun in zip(("easy", "saf"), starts, strict=True):
        first = results[name].workload.submit_time[0]
        assert np.array_equal(first + np.array(begun), results[name].start)
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
    cells = ["1,234", Cell("9.5", best=True), "-", "12", "11", "-3"]
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
