"""Results, numbers and machines in words that people know."""

import re
from dataclasses import replace

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym.report.cells import latex, shown_p
from hpcgym.report.tables import drawable, named, subtitle, tables_of, who_lose_most, who_pays
from hpcgym.simulation.run import simulate
from hpcgym.validation.validate import validate_schedule
from hpcgym.words import shown
from hpcgym.workload import interesting_extracts, load_workload


def test_results_of_one_scheduler_get_different_names(schedule):
    first, second = schedule(), schedule("lublin:jobs=50,processors=64,seed=7")
    jobs = [result.workload.name for result in (first, second)]
    rows = [f"easy, {jobs[0]}", f"easy, {jobs[1]}", f"easy, {jobs[0]} (2)"]
    assert list(named([first, second, first])) == rows
    small = schedule("lublin:jobs=50,processors=32")
    assert list(named([second, small])) == ["easy, 64 processors", "easy, 32 processors"]
    assert list(named(first)) == ["easy"]
    assert named({"mine": first}) == {"mine": first}
    other = replace(first, scheduler=first.scheduler.but(passes="per-event"))
    rows = ["easy, per-timestamp passes", "easy, per-event passes", "saf"]
    assert list(named([first, other, schedule(scheduler="saf")])) == rows


def test_the_subtitle_names_workload_machine_scheduler_and_passes(schedule, make):
    result = schedule()
    rest = "300 jobs · 64 processors · easy · per-timestamp passes"
    assert subtitle({"easy": result}) == f"{result.workload.name} · {rest}"
    assert "easy" not in subtitle({"easy": result, "saf": schedule(scheduler="saf")})
    assert "1 job · 1 processor · " in subtitle(named(make([(0, 5, 1)], processors=1)))
    sizes = {f"{k}": simulate(result.workload, processors=k) for k in (64, 80, 96)}
    assert " · 64 processors, 80 processors and 96 processors · " in subtitle(sizes)


def test_a_result_without_jobs_has_a_name(schedule):
    empty = simulate(schedule().workload.take(slice(0)))
    assert list(named(empty)) == ["easy"]


def test_an_extract_tells_how_many_jobs_it_did_not_start():
    trace = simulate(load_workload("lublin:jobs=50,processors=8,load=1.2")).as_workload()
    part = trace.extract(int(trace.submit_time[25]))
    running = int(part.initial.running.sum())
    assert running > 0
    text = subtitle({"easy": simulate(part)})
    assert f"{len(part)} jobs, of which {running} run at the beginning · " in text
    assert repr(part.initial).startswith(f"Initial(begin={part.initial.begin}: {running} jobs run")
    assert len(repr(part.initial)) < 120


@pytest.mark.slow
def test_the_subtitle_of_several_tells_the_rules_that_all_have():
    workload = load_workload("lublin:jobs=30,processors=16")
    rules = {"threshold": 600, "estimate": "ave2", "policy": "saf"}
    names = ("easy", "easy-sjbf")
    text = subtitle({name: simulate(workload, name, **rules) for name in names})
    assert text.endswith("passes · queue by SAF · estimate ave2 · threshold 600 s")
    usual = subtitle({name: simulate(workload, name) for name in names})
    assert usual.endswith(" · per-timestamp passes")
    mixed = {"easy": simulate(workload, "easy"), "prb": simulate(workload, "prb")}
    assert subtitle(mixed).endswith(" · per-timestamp passes")
    own = {name: simulate(workload, name, policy=lambda view: -view.duration) for name in names}
    assert " · queue by " in subtitle(own)


NUMBERS = {
    92.57653973362949: "92.58", 0.685613241: "0.6856", 1.0: "1.000", 9.99996: "10.00",
    999.96: "1,000", 14805.2: "14,805", 1234567.8: "1,234,568", 0.0: "0", -12.345: "-12.35",
    1.2e-7: "1.200e-07", 28481: "28,481", float("nan"): "-", float("inf"): "inf",
}  # fmt: skip


def test_numbers_have_four_digits_and_whole_ones_all_of_theirs():
    for value, text in NUMBERS.items():
        assert shown(value) == text
        assert shown(np.float64(value)) == text or value == 28481
    assert (shown(7), shown(np.int64(12345))) == ("7", "12,345")
    ps = (1.0, 0.5, 0.012345, 2e-5, float("nan"))
    assert [shown_p(p) for p in ps] == ["1", "0.5", "0.0123", "2e-05", "-"]


def columns_of(text):
    """The headings of each table in LaTeX, in one line each."""
    heads = re.findall(r"toprule\n(.*)\n", text)
    plain = (re.sub(r"\\shortstack\[r\]\{(.*?)\}", r"\1", line) for line in heads)
    return [[cell.strip() for cell in line.removesuffix(r" \\").split("&")] for line in plain]


@pytest.mark.parametrize(
    ("groups", "widths"),
    [
        ("", [6]),
        ("aaabbbc", [3, 4]),
        ("aabbbccc", [5, 3]),
        ("abcdefgh", [4, 4]),
        ("aaaaaaabb", [5, 4]),
        ("aabbccddeeffg", [4, 4, 5]),
    ],
)
def test_wide_tables_in_latex_keep_groups_together(groups, widths):
    names = [f"c{place}" for place in range(len(groups) or 6)]
    rows = [[(str(place), False) for place in range(len(names) + 1)]]
    headings = columns_of(latex(["name", *names], rows, 1, groups))
    assert [len(heading) - 1 for heading in headings] == widths
    assert [heading[0] for heading in headings] == ["name"] * len(widths)
    assert [name for heading in headings for name in heading[1:]] == names


def test_a_part_of_a_wide_table_has_no_empty_rows():
    rows = [[("all", False), *[("1", False)] * 6, ("", False)], [(str(k), False) for k in range(8)]]
    first, second = latex(["name", *"abcdefg"], rows, 1, "aaaaaab").split("% part")[1:]
    assert "all &" in first
    assert "all &" not in second


def test_metrics_of_one_unit_stay_in_one_table(schedule):
    parts = {"easy": schedule(), "saf": schedule(scheduler="saf")}
    table, paid, *_ = tables_of(parts)
    assert list(dict.fromkeys(table.groups)) == ["", "s", "%"]
    assert [len(headings) for headings in columns_of(table.latex()) if "BSLD" in headings[1]] == [4]
    assert len(paid.groups) == len(paid.heads) - 1
    few, *_ = tables_of(parts, ["max_wait_s"])
    assert few.heads == ["scheduler", "max wait (s)"]


def test_who_pays_is_what_pandas_finds():
    """Classes by run time and by an eighth of the machine, users by the ratio of their means."""
    jobs = load_workload("lublin:jobs=900,processors=64,load=1.1,users=40,seed=2")
    results = {name: simulate(jobs, name) for name in ("easy", "saf")}
    paid = who_pays(results)
    table = results["easy"].jobs.assign(saf=results["saf"].bsld)
    run, size = table["run_time"], table["requested_processors"]
    classes = {
        "short": run < 600,
        "medium": (run >= 600) & (run < 7200),
        "long": run >= 7200,
        "small": size <= 8,
        "large": size > 8,
    }
    means = {name: table.loc[jobs, ["bsld", "saf"]].mean() for name, jobs in classes.items()}
    users = table.groupby("user_id")[["bsld", "saf"]].mean()
    ratio = (users["saf"] / users["bsld"]).sort_values(ascending=False)
    gain, lose = (ratio < 1).sum(), (ratio > 1).sum()
    assert min(gain, lose) > 1
    more = [f"users who gain (of {len(ratio)})", "who lose", "median ratio"]
    assert paid.heads == ["scheduler", *classes, *more]
    counts, first, other = paid.rows
    assert counts == ["jobs", *(str(jobs.sum()) for jobs in classes.values()), "", "", ""]
    assert first == ["easy", *(shown(mean["bsld"]) for mean in means.values()), "", "", ""]
    assert other == [
        "saf",
        *(f"{shown(mean['saf'])} ({mean['saf'] / mean['bsld']:.2f})" for mean in means.values()),
        str(gain),
        str(lose),
        f"{ratio.median():.2f}",
    ]
    losers = who_lose_most(results)
    assert losers is not None
    most = ratio[ratio > 1].index[:5]
    named = [f"user {user}: {ratio[user]:,.2f}" for user in most]
    assert losers.heads == ["", "saf"]
    assert [cell.rpartition(" (")[0] for _, cell in losers.rows] == named


def test_nobody_pays_where_there_is_nothing_to_compare(make):
    jobs = [(0, 700, 8), (1, 10, 8), (2, 10, 8)]
    first = make(jobs)
    assert who_pays({"a": first}) is None
    assert who_pays({"a": first, "b": make(jobs[:2])}) is None  # other jobs
    same = who_pays({"a": first, "b": make(jobs), "c": make(jobs[:2])})
    assert [row[0] for row in same.rows] == ["jobs", "a", "b"]
    assert same.heads == ["scheduler", "short", "medium", "long", "small", "large"]
    assert same.rows[0] == ["jobs", "2", "1", "0", "0", "3"]
    assert same.rows[2][1:4] == [f"{same.rows[1][1]} (1.00)", "1.000 (1.00)", "-"]
    assert len(same.below) == 1


test_mistakes = mistakes_of(
    globals(), drawable, interesting_extracts, validate_schedule, fixtures=("schedule",)
)
