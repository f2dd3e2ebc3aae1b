"""Schedules of the same jobs beside each other."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym import HpcgymError
from hpcgym.explore import page
from hpcgym.report import save_figures
from hpcgym.report.tables import tables_of
from hpcgym.schedule import gains

LOG = "lublin:jobs=24000,processors=64,seed=3,load=0.6"


@pytest.fixture(scope="module")
def comparison() -> hpcgym.Comparison:
    return hpcgym.compare(LOG, ["easy", "saf", "easy:estimate=clairvoyant"])


def test_the_table_has_metrics_and_paired_differences(comparison: hpcgym.Comparison) -> None:
    table = comparison.table
    easy, saf = comparison["easy"], comparison["saf"]
    assert (
        list(table.index) == ["easy", "saf", "FCFS, EASY by FCFS, clairvoyant"] or len(table) == 3
    )
    assert table.loc["saf", "mean_bsld"] == saf.metrics.mean_bsld
    assert table.loc["saf", "above"] == pytest.approx((saf.bsld - easy.bsld).mean())
    assert np.isnan(table.loc["easy", "above"])
    assert (
        table.loc["saf", "above_low"] < table.loc["saf", "above"] < table.loc["saf", "above_high"]
    )
    assert "saf: slowdown " in repr(comparison)
    assert "<table" in comparison._repr_html_()
    for line in [*comparison.findings, *comparison.remarks]:
        assert line in repr(comparison).splitlines()
        assert f"<p>{line}</p>" in comparison._repr_html_()


def test_intervals_are_of_blocks_of_weeks(comparison: hpcgym.Comparison) -> None:
    """By resamples that are drawn one by one, from the text of the docstring alone."""
    easy, saf = comparison["easy"], comparison["saf"]
    week = (easy.workload.submit_time - easy.workload.submit_time[0]) // (7 * 86400)
    n = int(week.max()) + 1
    length = next(k for k in range(1, n + 1) if k**3 >= n)
    rng = np.random.default_rng(1)
    means = []
    for _ in range(500):
        drawn: list[int] = []
        while len(drawn) < n:
            first = int(rng.integers(n))
            drawn += [(first + later) % n for later in range(length)]
        rows = np.concatenate([np.flatnonzero(week == number) for number in drawn[:n]])
        means.append((saf.bsld - easy.bsld)[rows].mean())
    low, high = np.percentile(means, [2.5, 97.5])
    _, found_low, found_high = hpcgym.paired(saf, easy)
    wide = high - low
    assert n // length >= 5
    assert found_low == pytest.approx(low, abs=0.12 * wide)
    assert found_high == pytest.approx(high, abs=0.12 * wide)


def test_who_pays(comparison: hpcgym.Comparison) -> None:
    by_class = comparison.by("class")
    assert by_class.index.names == ["class", "scheduler"]
    assert list(by_class.index[:4]) == [
        *(("short", name) for name in comparison),
        ("medium", "easy"),
    ]
    for name, result in comparison.items():
        alone = result.by("class")
        pd.testing.assert_frame_equal(by_class.xs(name, level="scheduler"), alone)
        assert alone["jobs"].sum() == 24000
    waits = comparison.by("user", "mean_wait_s")
    assert list(comparison["saf"].by("user", "mean_wait_s")) == ["jobs", "mean_wait_s"]
    assert list(waits) == ["jobs", "mean_wait_s", "mean_wait_s_ratio"]
    easy, saf = (waits.xs(name, level="scheduler") for name in ("easy", "saf"))
    assert (easy["mean_wait_s_ratio"].dropna() == 1).all()
    means = saf["mean_wait_s"] / easy["mean_wait_s"]
    pd.testing.assert_series_equal(saf["mean_wait_s_ratio"], means, check_names=False)
    first = comparison["saf"].workload.user_id == comparison["saf"].workload.user_id.min()
    assert waits["mean_wait_s"].iloc[1] == pytest.approx(comparison["saf"].wait[first].mean())


def test_sizes_and_queues_are_groups_too(comparison: hpcgym.Comparison) -> None:
    jobs = comparison["saf"].jobs
    sizes = comparison["saf"].by("size", "mean_wait_s", "max_bsld")
    queues = comparison["saf"].by("queue", "mean_wait_s")
    small = jobs["requested_processors"] <= 64 / 8
    assert list(sizes.index) == ["small", "large"]
    assert list(sizes["jobs"]) == [small.sum(), (~small).sum()]
    assert sizes.loc["large", "mean_wait_s"] == pytest.approx(jobs["wait_time"][~small].mean())
    by_queue = jobs.groupby("queue_name")["wait_time"].mean()
    assert queues["mean_wait_s"].to_dict() == pytest.approx(by_queue.to_dict())


def test_tables_in_latex(comparison: hpcgym.Comparison) -> None:
    _, *of_users = tables_of(comparison)
    paid = "\n".join(table.latex() for table in of_users)
    assert comparison.to_latex().endswith(paid)
    assert paid.startswith("% Who pays: mean bounded slowdown, and in brackets the ratio to easy's")
    assert "\n% classes of jobs by run time: short" in paid
    few = comparison.to_latex("mean_bsld", "max_wait_s").removesuffix(paid)
    assert few.count("tabular") == 2
    assert few.count("&") == 2 * (1 + len(comparison))
    assert comparison.to_latex(["mean_bsld", "max_wait_s"]) == comparison.to_latex(
        "mean_bsld", "max_wait_s"
    )


def test_intervals_are_columns_for_a_paper(comparison: hpcgym.Comparison) -> None:
    lines = comparison.to_latex("above", "above_low", "above_high").splitlines()
    cells = next(line for line in lines if line[:6] == "saf & ").removesuffix(r" \\").split(" & ")
    cells_expected = comparison.table.loc["saf", ["above", "above_low", "above_high"]]
    assert [float(cell.replace("$-$", "-").replace(",", "")) for cell in cells[1:]] == (
        pytest.approx(list(cells_expected), rel=0.01)
    )
    assert "easy & - & - & - " in "\n".join(lines)


def test_findings_come_first(comparison: hpcgym.Comparison) -> None:
    text = page(comparison, report=True)
    finding, _ = comparison.findings
    lost = gains.who_pays(comparison)["saf"]
    assert finding.startswith("saf: slowdown better than easy")
    assert finding.endswith(f"; {lost.lose} of {lost.users} users lose")
    assert repr(comparison).splitlines()[0] == finding
    assert 0 < text.index(escape(finding)) < text.index("<h2>Metrics</h2>")
    for line in comparison.remarks:
        assert escape(line) in text


def test_a_past_is_a_row_everywhere() -> None:
    log = hpcgym.simulate("lublin:jobs=500,processors=64", "fcfs").as_workload()
    comparison = hpcgym.compare(log, ["easy", "saf"])
    assert list(comparison.table.index) == ["easy", "saf", "recorded"]
    assert repr(comparison).splitlines()[6].startswith("recorded")
    assert "recorded &" in comparison.to_latex()
    assert '<th scope="col">recorded' in page(comparison, report=True)


def test_no_number_is_printed_with_an_exponent(comparison: hpcgym.Comparison) -> None:
    assert comparison.table["max_wait_s"].max() > 99_999
    for text in (repr(comparison), comparison._repr_html_(), comparison["easy"]._repr_html_()):
        assert re.search(r"\d,\d{3}", text)
        assert not re.search(r"\de[+-]\d", text)


def test_equal_schedules_are_said_to_be_equal() -> None:
    same = hpcgym.compare("lublin:jobs=500,processors=64", {"a": "easy", "b": "easy", "c": "saf"})
    assert repr(same).endswith("\nthe same schedule, start by start: a; b")


def test_a_part_of_a_log_has_no_weeks_before_it() -> None:
    """Weeks before the first job that counts are no draws of slowdowns of 0."""
    log = hpcgym.load_workload(LOG)
    late = log[np.arange(len(log)) >= 23_000]
    first, last = late.since_first_submit[[0, -1]] // (7 * 86400)
    assert first > 9
    assert last - first < 4
    saf, easy = hpcgym.simulate(late, "saf"), hpcgym.simulate(late, "easy")
    assert np.isnan(hpcgym.paired(saf, easy).low)


def test_no_interval_in_per_cent_goes_below_nothing() -> None:
    """SAF's interval of differences is wider than EASY's mean; that of their ratio is not."""
    comparison = hpcgym.compare("lublin:jobs=40000,processors=64,seed=0,load=0.8")
    assert comparison.above["saf"].low < -comparison["easy"].metrics.mean_bsld
    ((low, high),) = re.findall(r" % \[(.*?), (.*?)\]", repr(comparison))
    assert -100 < int(low) < int(high) < 0


def test_schedules_of_jobs_that_come_later_are_not_compared() -> None:
    """Under a quota of submitted jobs; all else is as if they were not there."""
    log = hpcgym.load_workload(LOG)
    quota = {"easy": "easy", "few": "easy:quota=user:submitted=3", "saf": "saf"}
    comparison = hpcgym.compare(log, quota)
    without = hpcgym.compare(log, ["easy", "saf"])
    said = [line for line in comparison.remarks if line.startswith(("not", "few:"))]
    assert comparison.findings == without.findings
    assert said[0].startswith("not compared with easy by stars, intervals or 'who pays': few.")
    assert re.fullmatch("few: jobs were submitted .* later than in the log .*", said[1])
    assert repr(comparison).endswith("\n".join(said))
    assert np.isnan(comparison.above["few"]).all()
    assert comparison.above["saf"] == without.above["saf"]
    assert comparison.table["above"].isna().to_dict() == {"easy": True, "few": True, "saf": False}
    ratios = comparison.by("size", "mean_bsld")["mean_bsld_ratio"]
    assert ratios.xs("few", level="scheduler").isna().all()
    assert ratios.xs("saf", level="scheduler").gt(0).all()
    assert [label.get_text() for label in comparison.plot().get_yticklabels()] == ["saf"]
    assert tables_of(comparison)[1].rows == tables_of(without)[1].rows


def test_no_jobs_have_no_numbers() -> None:
    log = hpcgym.load_workload("lublin:jobs=50,processors=64,seed=3")
    text = repr(hpcgym.compare(log[:0], ["easy", "saf"]))
    assert "saf: slowdown not compared with easy: no jobs" in text
    assert "nan" not in text


def test_few_weeks_have_no_interval() -> None:
    short = hpcgym.compare("lublin:jobs=50,processors=64,seed=3")
    assert np.isnan(short.above["saf"].low)
    assert re.search(r"\(no interval: it needs 15 weeks, the log has \d\)", repr(short))


def test_rules_have_names_too() -> None:
    rules = hpcgym.Scheduler(policy="saf", backfill_order="spf")
    assert list(hpcgym.compare("lublin:jobs=9", ["easy", rules]).results) == ["easy", "saf"]


def test_names_of_ones_own() -> None:
    """A mapping's schedulers are simulated, not its names."""
    named = {"SAF": "easy", "mine": hpcgym.Scheduler(policy="20 * wait - area")}
    own = hpcgym.compare(LOG, named)
    assert list(own) == ["SAF", "mine"]
    assert own["SAF"].scheduler == hpcgym.simulate(LOG, "easy").scheduler
    assert own["mine"].scheduler.policy == "20 * wait - area"
    assert "Mine" not in own


def test_a_variant_may_have_the_name_of_its_scheduler() -> None:
    saf = hpcgym.Scheduler(policy="saf", backfill_order="spf", threshold=600)
    for named in ({"saf": "saf:threshold=600"}, {"saf": saf}, {"easy": hpcgym.Scheduler()}):
        assert list(hpcgym.compare("lublin:jobs=50,processors=64", named)) == [*named]


def test_figures_of_a_comparison(comparison: hpcgym.Comparison, tmp_path: Path) -> None:
    paths = save_figures(comparison, tmp_path)
    assert paths[0].name == "slowdown.pdf"
    assert [path.name for path in paths[-3:]] == ["table-1.tex", "table-2.tex", "table-3.tex"]
    assert "".join(path.read_text() for path in paths[-3:]).count(r"\toprule") == 5


def test_an_order_may_have_commas() -> None:
    rules = "easy:policy=max(wait, min(requested, 60)),threshold=5h"
    comparison = hpcgym.compare("lublin:jobs=9", ["easy", rules])
    assert comparison[rules].scheduler.policy == "max(wait, min(requested, 60))"
    assert comparison[rules].scheduler.threshold == 5 * 3600


def test_a_figure(comparison: hpcgym.Comparison) -> None:
    axes = comparison.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [*comparison.results][1:]
    assert "above that of easy" in axes.get_xlabel()


def oldest(view: Any) -> Any:
    return view.wait


test_mistakes = mistakes_of(globals(), errors=(HpcgymError, KeyError), fixtures=("comparison",))
