"""The scripts of the page in Node, against hpcgym's own pictures and against slow code here."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.explore.document import SHEET, source
from hpcgym.explore.page import SCRIPTS, of_schedule, of_workload
from hpcgym.machine import find_cluster
from hpcgym.report.placement import envelope, place_jobs
from hpcgym.simulation.run import simulate
from hpcgym.units import duration
from hpcgym.workload import load_workload

pytestmark = pytest.mark.slow

LISTED = """
  const listed = ({ job, low, high }) => Array.from(job, (j, i) => [j, low[i], high[i]]);"""
PLACED = """
  return given.map(({ start, end, size, rows }) => listed(placeOnPool(start, end, size, rows)));"""


def pieces_of(result):
    """Jobs and their rows, as report/placement.py has them."""
    rectangles = place_jobs(result)
    return sorted(
        zip(*(getattr(rectangles, name).tolist() for name in ("job", "low", "high")), strict=True)
    )


@pytest.mark.parametrize("rule", ["easy", "saf", "conservative", "fcfs"])
@pytest.mark.parametrize("load", [0.6, 1.3])
def test_jobs_of_a_pool_are_placed_as_in_pictures(node, rule, load):
    workloads = [
        load_workload(f"lublin:jobs={n},processors={p},load={load},seed={seed}")
        for seed, (n, p) in enumerate([(400, 16), (400, 128), (60, 3)])
    ]
    results = [simulate(workload, rule) for workload in workloads]
    schedules = [
        {
            "start": result.start.tolist(),
            "end": result.end.tolist(),
            "size": result.workload.requested_processors.tolist(),
            "rows": result.cluster.processors,
        }
        for result in results
    ]
    placed = node(["arrays", "place"], LISTED + PLACED, schedules)
    assert len(placed[0]) > 400  # some jobs are in several pieces
    for result, pieces in zip(results, placed, strict=True):
        assert sorted(map(tuple, pieces)) == pieces_of(result)


def test_pieces_on_nodes_are_told_as_in_pictures(node):
    cluster = find_cluster("eurora")
    result = simulate(load_workload("eurora:jobs=300", cluster=cluster), "easy", cluster=cluster)
    head, columns = of_schedule(result, "EASY", 0, result, 1)
    given_columns = {name: columns[column].tolist() for name, column in head["columns"].items()}
    body = """
      const pieces = orderPieces(given.start, given.pieces, given.low, given.width);
      const begins = Array.from(pieces.job, (j) => given.start[j]);
      return { found: listed(pieces), rising: isSorted(begins) };"""
    answer = node(
        ["arrays", "place"], LISTED + body, {**given_columns, "start": result.start.tolist()}
    )
    assert answer["rising"]
    assert sorted(map(tuple, answer["found"])) == pieces_of(result)
    assert head["rows"] == sum(given_columns["nodes"]) == cluster.processors
    assert head["nodes"] == cluster.node_names


values = st.lists(st.integers(-50, 50) | st.floats(-5, 5), max_size=30)


@settings(max_examples=5)
@given(st.lists(values, min_size=20, max_size=40))
def test_sorting_keeps_the_order_of_equal_values(node, lists):
    orders = node(["arrays"], "return given.map((values) => Array.from(argsort(values)));", lists)
    for values, order in zip(lists, orders, strict=True):
        assert order == np.argsort(np.array(values, dtype=float), kind="stable").tolist()


def test_curves_are_those_of_pictures(node):
    result = simulate(load_workload("lublin:jobs=500,processors=32,load=1.1,seed=5"), "easy")
    start, end = result.start.tolist(), result.end.tolist()
    size = result.workload.requested_processors.tolist()
    body = """
      const curve = stacked(given.start, given.end, given.size), { t0, t1 } = given;
      const { mean, low, high } = envelope(curve, t0, t1, 97);
      return { times: Array.from(curve.times), values: Array.from(curve.values),
        mean: Array.from(mean), low: Array.from(low), high: Array.from(high) };"""
    t0, t1 = min(start), max(end)
    schedule = {"start": start, "end": end, "size": size, "t0": t0, "t1": t1}
    curves = node(["arrays", "curves"], body, schedule)
    for time, value in zip(curves["times"][::7], curves["values"][::7], strict=True):
        running = (result.start <= time) & (result.end > time)
        assert value == result.workload.requested_processors[running].sum()
    drawn = envelope(np.array(curves["times"]), np.array(curves["values"]), np.linspace(t0, t1, 98))
    np.testing.assert_allclose(curves["mean"], drawn.mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(curves["low"], drawn.low)
    np.testing.assert_array_equal(curves["high"], drawn.high)


PIXELS = """
  globalThis.ImageData = class {
    constructor(width, height) {
      Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
    }
  };
  const { start, end, size, rows, frame } = given, { t0, t1, low, high, width } = frame;
  const pieces = timed(placeOnPool(start, end, size, rows), start, end);
  const classes = Uint8Array.from(start, (_, j) => j % given.table.length);
  const palette = { rgb: given.table, pixels: Uint32Array.from(given.table, pixel) };
  const asked = frameOf(t0, t1, low, high, width, frame.height);
  return Array.from(rasterise(pieces, classes, palette, given.background, asked).image.data);"""
TABLE, BACKGROUND = [[0, 114, 178], [230, 159, 0], [204, 121, 167]], [255, 255, 255]


def pixels(node, result, **frame):
    """Pixels of a frame by the script, (rows, width, 3)."""
    schedule = {
        "start": result.start.tolist(),
        "end": result.end.tolist(),
        "size": result.workload.requested_processors.tolist(),
        "rows": result.cluster.processors,
    }
    schedule |= {"frame": frame, "table": TABLE, "background": BACKGROUND}
    drawn = node(["arrays", "words", "place", "colours", "raster"], PIXELS, schedule)
    return np.reshape(drawn, (-1, frame["width"], 4))[..., :3]


@pytest.mark.parametrize("height", [16, 7])
@pytest.mark.parametrize("part", [(0, 1), (0.3, 0.42)])
def test_pixels_have_the_mean_colour_of_what_lies_in_them(node, part, height):
    """As a picture that is much finer, averaged."""
    result = simulate(load_workload("lublin:jobs=120,processors=16,load=1.1,seed=8"), "easy")
    last, fine, width = int(result.end.max()), 64, 40
    t0, t1 = (share * last for share in part)
    drawn = pixels(node, result, t0=t0, t1=t1, low=0, high=16, width=width, height=height)
    table, rectangles = np.array([*TABLE, BACKGROUND], float), place_jobs(result)
    times = t0 + (np.arange(width * fine) + 0.5) * (t1 - t0) / (width * fine)
    places = (np.arange(height * 16) + 0.5) * 16 / (height * 16)
    of = np.full((len(places), len(times)), len(TABLE))
    for job, begin, end, low, high in zip(*rectangles, strict=True):
        rows = (places > low) & (places < high)
        of[np.ix_(rows, (times >= begin) & (times < end))] = job % len(TABLE)
    wanted = table[of].reshape(height, 16, width, fine, 3).mean(axis=(1, 3))
    assert np.abs(drawn - wanted).max() < 255 * 3 / fine


FAR = """
  const { clock, t0, t1, start, end, submit, size, classes, steps } = given;
  return steps.map((seconds) => {
    const edges = edgesOf(clock, STEPS.find((step) => step.seconds === seconds), t0, t1);
    const { median, high } = waitsIn(edges, submit, start);
    const busy = Array.from(busyIn(edges, start, end, size, classes));
    return { edges, busy, median: Array.from(median), high: Array.from(high) };
  });"""


def test_from_afar_shares_and_waits_are_those_of_pandas_in_bins_of_the_calendar(node):
    jobs = load_workload("lublin:jobs=900,processors=32,load=0.9,seed=4")
    result, origin = simulate(jobs, "easy"), pd.Timestamp("2024-02-27 13:20")
    submit = jobs.submit_time - jobs.submit_time[0]
    start, end = (times - jobs.submit_time[0] for times in (result.start, result.end))
    group = np.arange(len(jobs)) % 11  # what the filter leaves out is 10
    schedule = {"start": start, "end": end, "submit": submit, "classes": group}
    schedule = {name: column.tolist() for name, column in schedule.items()}
    schedule |= {"size": jobs.requested_processors.tolist(), "t0": 0, "t1": int(end.max())}
    days = {"6h": 21_600, "D": 86_400, "W-SUN": 604_800, "M": 30 * 86_400}
    schedule |= {"steps": list(days.values())}
    schedule |= {"clock": {"dated": True, "origin": int(origin.timestamp())}}
    files = ["arrays", "words", "calendar", "shares"]
    for of, period in zip(node(files, FAR, schedule), days, strict=True):
        if period == "6h":
            begin = origin.floor("6h") + pd.Timedelta("6h") * np.arange(len(of["edges"]))
        else:
            first = origin.to_period(period)
            begin = [(first + k).start_time for k in range(len(of["edges"]))]
        assert of["edges"] == [(time - origin).total_seconds() for time in begin]
        assert of["edges"][-2] <= end.max() < of["edges"][-1]
        busy = np.reshape(of["busy"], (-1, 9))
        for bin_, (left, right) in enumerate(itertools.pairwise(of["edges"])):
            inside = np.clip(np.minimum(end, right) - np.maximum(start, left), 0, None)
            area = inside * jobs.requested_processors
            shown = np.where(group == 10, 8, np.minimum(group, 7))
            assert busy[bin_].tolist() == [area[shown == k].sum() for k in range(9)]
            waits = result.wait[(submit >= left) & (submit < right)]
            for share, name in [(0.5, "median"), (0.9, "high")]:
                wanted = np.quantile(waits, share, method="inverted_cdf") if len(waits) else 0
                assert of[name][bin_] == wanted


def test_levels_of_curves_are_round_and_three_at_most(node):
    tops = [1, 3, 7, 10, 99, 100, 128, 3456, 1_000_000]
    levels = node(["words", "calendar"], "return given.map((top) => roundLevels(top));", tops)
    for top, of in zip(tops, levels, strict=True):
        assert 1 <= len(of) <= 3
        assert of[-1] <= top
        assert f"{of[0]:e}".startswith(("1.0", "2.0", "5.0"))
        assert of == pytest.approx([of[0] * (i + 1) for i in range(len(of))])


#: Halves, and what lies beside them, where one unit becomes another.
SECONDS = st.tuples(
    st.sampled_from([0, 59.5, 90, 3599.5, 3630, 4971, 86_370, 171_000, 172_799.5]),
    st.floats(-1, 1) | st.sampled_from([-0.5, 0.0, 0.5]),
).map(sum)


@settings(max_examples=3)
@given(st.lists(st.integers(0, 10**7) | SECONDS | SECONDS, min_size=60, max_size=120))
def test_durations_are_those_of_explanations(node, seconds):
    spans = node(["words"], "return given.map(span);", seconds)
    assert spans == [duration(given_seconds) for given_seconds in seconds]


@pytest.fixture(scope="module")
def filtered(node, made):
    """A function that returns the numbers of the jobs that a filter leaves in, or its error."""
    jobs = [(0, 100, 8), (10, 4000, 4), (20, 50, 8), (30, 7300, 1)]
    header = {"User": ["1 alice", "2 bob the second"]}
    result = made(jobs, header=header, user_id=np.array([1, 2, 1, 3]), group_id=np.ones(4, int))
    head, columns = of_workload(result.workload)
    listed = {name: np.asarray(column).tolist() for name, column in columns.items()}
    schedule = {"head": head, "columns": listed}
    schedule |= {"start": result.start.tolist(), "end": result.end.tolist()}
    body = """
      const jobs = jobsOf(given.head, given.columns);
      try {
        const found = matching(jobs, given, parseFilter(given.text));
        return Array.from(jobs.number).filter((_, j) => !found || found[j]);
      } catch (error) { return error.message; }"""
    files = ["arrays", "decode", "words", "filter"]
    return result, lambda text: node(files, body, {**schedule, "text": text})


@pytest.mark.parametrize("name", ["super user bob", 'a "quoted" one', "user user 7", "alice"])
def test_what_the_legend_filters_by_means_its_name(node, name):
    files = ["decode", "words", "filter"]
    body = """
      const [{ what, name }] = parseFilter(`user ${quoted(given)}`);
      return [what, name, meant([given, `${given} too`], "user", name)];"""
    assert node(files, body, name) == ["user", name, [True, False]]


def test_filters(filtered):
    result, numbers = filtered
    assert result.wait.tolist() == [0, 90, 4080, 4120]
    assert numbers("") == [1, 2, 3, 4]
    assert numbers("user alice") == [1, 3]
    assert numbers('user "bob the second"') == numbers("user bob") == [2]
    assert numbers("user 3") == [4]
    assert numbers("wait_time > 1h") == [3, 4]
    assert numbers("wait_time>=70 and requested_processors < 8") == [2, 4]
    assert numbers("run_time > 2h, user 3") == [4]
    assert numbers("bsld > 10 user alice") == [3]


def test_filters_are_of_the_columns_of_jobs(filtered):
    """Their shorter words, and those of earlier pages, mean the same."""
    result, numbers = filtered
    bounds = {"wait_time": 90, "run_time": 50, "requested_time": 50, "requested_processors": 4}
    bounds |= {"bsld": 1.5, "job_number": 2, "submit_time": 20}
    bounds |= {"start_time": 100, "end_time": 100}
    jobs = result.jobs[list(bounds)]
    some = result.jobs["job_number"][(jobs >= bounds).all(axis=1)].tolist()
    assert some == [3]
    assert numbers(" ".join(f"{name} >= {bound}" for name, bound in bounds.items())) == some
    short = "wait >= 90 run >= 50 requested >= 50 processors >= 4 size >= 4 slowdown >= 1.5"
    assert numbers(short) == some
    assert numbers("submit < 20 start < 60 end <= 100 job = 1") == [1]
    assert numbers("user_id = 1") == "no user is called 1"  # it has a name
    assert numbers("user_id = 3") == [4]


def test_help_tells_all_words_of_filters(node):
    from importlib.resources import files

    body = """return [...new Set([...Object.values(SHORT), ...Object.keys(NUMBERS)])];"""
    page = files("hpcgym.explore").joinpath("browser", "explorer.html").read_text()
    help_text = page.partition('<dialog id="help">')[2].partition("</dialog>")[0]
    for word in node(["decode", "words", "filter"], body, None):
        assert re.search(rf"\b{word}\b", help_text), word


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user carol", "no user is called carol"),
        ("group 7", "these jobs have no groups that differ"),
        (
            "tall > 3",
            "no job number and no filter: tall > 3. Try user 7, wait_time > 2h,"
            " requested_processors >= 64",
        ),
        ("size > 3 h", "size has no unit h"),
    ],
)
def test_what_is_no_filter_is_said(filtered, text, message):
    assert filtered[1](text) == message


def test_who_delayed_a_job_is_apart_from_who_merely_came_later(node):
    """By hand: 1 and 2 ran before job 2 came or came with it; 3 and 4 came later, 4 delays it."""
    body = """
      const jobs = { n: 5, submit: [0, 5, 5, 6, 7] };
      const run = { start: [0, 6, 50, 7, 8], end: [50, 20, 60, 9, 50] };
      const plain = storyOf(jobs, run, 2);
      run.why = { job: 2, delayed: [[0, 30], [4, 10]] };
      const other = storyOf(jobs, run, 3);
      return [plain, storyOf(jobs, run, 2), other.delayed];"""
    plain, late, other = node(["overlay"], body, None)
    assert plain == {"delayed": [], "overtook": [3, 4], "freed": [0, 4]}
    assert late == {"delayed": [[0, 30], [4, 10]], "overtook": [3], "freed": [0, 4]}
    assert other == []  # it is known of job 2 alone


MEASURED = """
  const jobs = jobsOf(given.head, given.columns), runs = given.runs.map((told) => {
    const used = stacked(told.start, told.end, jobs.size);
    const queue = stacked(jobs.submit, told.start, null);
    return { ...told, used, queue, row: "processor" };
  });"""
MEASURES = ["arrays", "decode", "curves", "words", "filter", "measures"]


@pytest.fixture(scope="module")
def queued():
    """Two schedules of one workload that has queues, and what the scripts are told of them."""
    jobs = load_workload("lublin:jobs=900,processors=32,load=1.1,users=60,seed=6")
    results = [simulate(jobs, name) for name in ("easy", "saf")]
    head, columns = of_workload(jobs)
    page = {
        "head": head,
        "columns": {name: np.asarray(column).tolist() for name, column in columns.items()},
    }
    first = int(jobs.submit_time[0])
    page["runs"] = [
        {
            "start": (result.start - first).tolist(),
            "end": (result.end - first).tolist(),
            "processors": 32,
        }
        for result in results
    ]
    return results, page


def steps(times, changes, t0, t1):
    """A step function in an interval, of what changes when: its mean and its greatest value."""
    order = np.argsort(times, kind="stable")
    moments, first = np.unique(np.asarray(times)[order], return_index=True)
    level = np.add.reduceat(np.asarray(changes)[order], first).cumsum()
    inside = (moments > t0) & (moments < t1)
    before = level[moments <= t0][-1:] if (moments <= t0).any() else [0]
    values = np.concatenate([before, level[inside]])
    lengths = np.diff(np.concatenate([[t0], moments[inside], [t1]]))
    return (values * lengths).sum() / (t1 - t0), values.max()


@pytest.mark.parametrize("part", [(0, 1), (0.2, 0.45), (0.9995, 1)])
def test_measures_of_a_time_are_those_of_its_jobs(node, queued, part):
    """As pandas has them of the table of jobs; the last part has no job."""
    results, page = queued
    last = max(max(run["end"]) for run in page["runs"])
    t0, t1 = (share * last for share in part)
    body = (
        MEASURED
        + """
      const rows = selectedJobs(jobs, runs, given.t0, given.t1);
      const each = runs.map((run) => measuresOf(jobs, run, rows, given.t0, given.t1));
      const plain = each.map(({ waits, slowdowns, areas, ...one }) => one);
      const bins = histogram(each[1].waits, 0, logarithmicEdges(each[1].max_wait, 4));
      const { of, names } = jobs.kinds.user;
      const groups = groupsOf(rows, of, names.length, each, 5);
      const { above } = bins, shares = Array.from(bins.bins);
      return { rows: Array.from(rows), plain, above, bins: shares, groups, names };"""
    )
    measured_all = node(MEASURES, body, {**page, "t0": t0, "t1": t1})
    tables = []
    for result, measured in zip(results, measured_all["plain"], strict=True):
        table = result.jobs
        first = table["submit_time"].iloc[0]
        since = table["submit_time"] - first
        part_of = table[(since >= t0) & (since < t1)]
        tables.append(part_of)
        assert (table.index[(since >= t0) & (since < t1)] == measured_all["rows"]).all()
        wait, size = part_of["wait_time"], table["requested_processors"]
        start, end = (table[f"{name}_time"] - first for name in ("start", "end"))
        used, _ = steps([*start, *end], [*size, *-size], t0, t1)
        ones = np.ones(len(table))
        _, queue = steps([*since, *start], [*ones, *-ones], t0, t1)
        area = part_of["requested_processors"] * part_of["run_time"]
        wanted = {
            "core_hours": area.sum() / 3600,
            "utilization": used / 32,
            "mean_wait": wait.mean(),
            "median_wait": wait.median(),
            "p95_wait": wait.quantile(0.95),
            "max_wait": wait.max(),
            "mean_bsld": part_of["bsld"].mean(),
            "max_bsld": part_of["bsld"].max(),
            "max_queue": queue,
        }
        assert {name for name, value in measured.items() if value is None} == {
            name for name, value in wanted.items() if np.isnan(value)
        }
        for name, value in wanted.items():
            if not np.isnan(value):
                assert measured[name] == pytest.approx(value, rel=1e-6), name
    wait = tables[1]["wait_time"].to_numpy()
    if not len(wait):
        assert measured_all["groups"] == []
        assert measured_all["above"] == 0
        return
    assert measured_all["above"] == pytest.approx((wait > 0).mean())
    edges = 10 ** (np.arange(len(measured_all["bins"]) + 1) / 4)
    assert measured_all["bins"] == pytest.approx(np.histogram(wait, edges)[0] / len(wait))
    assert sum(measured_all["bins"]) == pytest.approx(measured_all["above"])
    check_groups(measured_all["groups"], measured_all["names"], tables)


def check_groups(groups, names, tables):
    """The five users with the largest area, and all others in one row, as pandas groups them."""
    easy, saf = (
        table.assign(area=table["requested_processors"] * table["run_time"]) for table in tables
    )
    area = easy.groupby("user_id")["area"].sum().sort_values(ascending=False)
    assert len(area) > 7
    for group, user in zip(groups, [*area.index[:5], None], strict=True):
        mine = [
            table[table["user_id"] == user]
            if user is not None
            else table[table["user_id"].isin(area.index[5:])]
            for table in (easy, saf)
        ]
        assert (names[group["place"]] if user is not None else group["groups"]) == (
            f"user {user}" if user is not None else len(area) - 5
        )
        assert group["jobs"] == len(mine[0])
        assert group["share"] == pytest.approx(mine[0]["area"].sum() / area.sum())
        assert group["waits"] == pytest.approx([mates["wait_time"].mean() for mates in mine])
        assert group["slowdowns"] == pytest.approx([mates["bsld"].mean() for mates in mine])


def test_a_filter_selects_what_it_leaves_in_any_schedule(node, queued):
    results, page = queued
    body = (
        MEASURED
        + """
      const [a, b] = runs.map((run) => matching(jobs, run, parseFilter("wait_time > 1h user 3")));
      runs[0].matches = a; runs[1].matches = b;
      runs[1].counted = jobs.submit.map((_, j) => j % 2);
      return Array.from(selectedJobs(jobs, runs, 0, 1e12));"""
    )
    rows = np.array(node(MEASURES, body, page))
    long = (results[0].wait > 3600) | (results[1].wait > 3600)
    mine = results[0].workload.user_id == 3
    odd = np.arange(len(mine)) % 2 == 1
    assert len(rows)
    assert rows.tolist() == np.flatnonzero(long & mine & odd).tolist()


def room(result, j, without=None):
    """The first second from its submission on that has room for a job's run, by each second."""
    start, end, size = result.start, result.end, result.workload.requested_processors
    others = np.ones(len(start), bool)
    others[[j] if without is None else [j, without]] = False
    submit, run = int(result.workload.submit_time[j]), int(result.run_time[j])
    used = np.zeros(int(start[j]) + run - submit + 1, int)
    for i in np.flatnonzero(others & (end > submit) & (start < submit + len(used))):
        used[max(start[i] - submit, 0) : end[i] - submit] += size[i]
    fits = used + size[j] <= result.cluster.processors
    first = next(t for t in range(len(used) - run) if fits[t : t + run].all())
    return submit + first, int(fits[: start[j] - submit].sum())


@pytest.mark.parametrize("rule", ["fcfs", "easy", "saf"])
def test_what_was_in_the_way_of_a_job(node, made, rule):
    """Against a count of each second: of each job that waited, with each other one taken out."""
    rng = np.random.default_rng(5)
    jobs = [(int(t), int(r), int(p)) for t, r, p in zip(
        np.sort(rng.integers(0, 400, 40)), rng.integers(5, 90, 40), rng.integers(1, 9, 40),
        strict=True,
    )]  # fmt: skip
    result = made(jobs, rule, requested_time=np.array([2 * run for _, run, _ in jobs]))
    waited = np.flatnonzero(result.wait > 0)
    assert len(waited) > 15
    asked = {"rows": waited.tolist()} | {
        name: np.asarray(column).tolist()
        for name, column in {
            "submit": result.workload.submit_time,
            "size": result.workload.requested_processors,
            "start": result.start,
            "end": result.end,
        }.items()
    }
    body = """
      const jobs = { n: given.submit.length, submit: given.submit, size: given.size };
      const used = stacked(given.start, given.end, given.size);
      const run = { start: given.start, end: given.end, used, processors: 8, row: "processor" };
      return given.rows.map((j) => {
        const { room, ...found } = waitOf(jobs, run, j);
        return { ...found, first: room.first, free: room.free };
      });"""
    helped = 0
    for j, in_the_way in zip(
        waited, node(["arrays", "curves", "waiting"], body, asked), strict=True
    ):
        submit, start = int(result.workload.submit_time[j]), int(result.start[j])
        first, free = room(result, j)
        assert (in_the_way["first"], in_the_way["free"]) == (first, free)
        running = (result.start <= submit) & (result.end > submit)
        running[j] = False
        assert in_the_way["running"] == running.sum()
        assert in_the_way["used"] == result.workload.requested_processors[running].sum()
        assert in_the_way["ahead"] == (result.start[:j] > submit).sum()
        meanwhile = np.minimum(result.end, start) - np.maximum(result.start, submit)
        meanwhile[j] = 0
        assert {i for i, _ in in_the_way["meanwhile"]} == {*np.flatnonzero(meanwhile > 0).tolist()}
        earlier = {i: first - room(result, j, i)[0] for i in np.flatnonzero(meanwhile > 0).tolist()}
        assert dict(in_the_way["inWay"]) == {i: by for i, by in earlier.items() if by > 0}
        helped += len(in_the_way["inWay"])
    assert helped > 3


FANS = {
    "now": 100,
    "jobs": [
        [7, [110, 120, 130, 140, 150, 160, None], 3, 0.35],
        [8, [None] * 7, None, None],
        [9, [100, 100, 105, 110, 120, 130, 140], None, None],
    ],
}


def test_fans_lie_where_their_times_are(node):
    """By hand: 1 s is 2 pixels; rows are 8 high; the first to start is above, never is last."""
    body = """
      const fans = fansOf(given, (number) => number - 7), start = [145, 190, 100];
      const room = roomOfFans(fans, -1, 26 + 3 * 8, 1);
      const shapes = fanShapes(room, start, (time) => (time - 100) * 2, 200, 1);
      return { order: fans.rows.map(({ j }) => j), each: room.each, ...shapes };"""
    found = node(["fans"], body, FANS)
    assert (found["order"], found["each"]) == ([2, 0, 1], 8)
    beyond = 209
    assert found["boxes"] == [
        *([0, 22, 80, 7, 0.2], [0, 22, 60, 7, 0.4], [10, 22, 30, 7, 0.75]),
        *([20, 30, beyond - 20, 7, 0.2], [40, 30, 80, 7, 0.4], [60, 30, 40, 7, 0.75]),
        *([beyond, 38, 1, 7, opacity] for opacity in (0.2, 0.4, 0.75)),
    ]
    assert found["medians"] == [[20, 22, 7], [80, 30, 7], [beyond, 38, 7]]
    assert found["dots"] == [[0, 25.5, 3.5], [90, 33.5, 3.5], [180, 41.5, 3.5]]


def test_where_there_is_little_room_the_first_and_the_picked_have_fans(node):
    body = """
      const fans = fansOf(given, (number) => number - 7);
      const shown = (picked, height) => roomOfFans(fans, picked, height, 1).shown.map(({ j }) => j);
      return [shown(-1, 36), shown(1, 36), shown(0, 36), shown(1, 500), shown(1, 1)];"""
    assert node(["fans"], body, FANS) == [[2, 0], [2, 1], [2, 0], [2, 0, 1], [1]]


def test_all_files_of_the_script_are_in_the_page():
    from importlib.resources import files

    folder = files("hpcgym.explore").joinpath("browser")
    scripts = {file.name for file in folder.iterdir() if file.name.endswith(".js")}
    assert scripts == {f"{name}.js" for name in (*SCRIPTS, *SHEET)}


def test_no_script_makes_markup_of_text():
    """The words by which a text could become markup or code, wherever it came from."""
    for name in {*SCRIPTS, *SHEET}:
        text = source(f"{name}.js")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, name
