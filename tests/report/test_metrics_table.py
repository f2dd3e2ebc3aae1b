"""Tables hold the metrics as they are and mark the best ones."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of
from rich.console import Console

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.report import metrics_table
from hpcgym.report.tables import (
    COMPARED,
    best,
    comparison,
    described,
    in_order,
    remarks,
    rich_comparison,
    rich_metrics,
    text_of,
)
from hpcgym.schedule.metrics import LESS, METRICS, MORE, NEITHER
from hpcgym.schedule.schedule import RECORDED
from hpcgym.scheduler.limits import PowerCap

#: Those that any schedule has.
USUAL = [metric for metric in METRICS if metric.formula is not None and not metric.of]


def with_metrics(processors=8, limits=None, replayed_on="", **metrics):
    return SimpleNamespace(
        metrics=metrics,
        cluster=Cluster(processors),
        limits=limits,
        replayed_on=replayed_on,
        workload=few_jobs(1, [0], [1], [1]),
    )


def printed(table):
    console = Console(width=200, no_color=True)
    with console.capture() as text:
        console.print(table)
    return text.get()


def with_watts(result):
    """Return the schedule on a machine whose powers somebody gave, so that it tells energies."""
    return replace(result, cluster=Cluster(result.cluster.processors, 117, 358))


def test_every_metric_in_full_a_row_a_scheduler(schedule):
    easy, saf = with_watts(schedule()), with_watts(schedule(scheduler="saf"))
    table = metrics_table({"a": easy, "b": saf})
    assert (table.index.tolist(), table.index.name) == (["a", "b"], "scheduler")
    assert table.loc["b"].to_dict() == pytest.approx(saf.metrics, rel=0, abs=0, nan_ok=True)
    assert table.columns.tolist() == list(easy.metrics)
    assert metrics_table([easy, saf]).index.tolist() == ["easy", "saf"]
    assert [metric.name for metric in in_order(easy.metrics)] == [metric.name for metric in USUAL]
    assert {metric.name for metric in USUAL} == set(easy.metrics)
    text = printed(rich_metrics(easy))
    for metric in USUAL:
        assert metric.title in text
        assert text_of(metric, easy.metrics[metric.name]) in text
    alone = printed(rich_comparison(easy))  # one alone has no marks
    assert "easy" in alone
    assert "*" not in alone


def test_an_unknown_metric_is_shown_under_its_own_name():
    (metric,) = described(["number_of_moons"])
    assert metric.heading == "number of moons"
    assert best(metric, [1, 2]) == [False, False]
    assert [m.name for m in in_order({"number_of_moons": 1, "jobs": 2})] == [
        "jobs",
        "number_of_moons",
    ]


@pytest.mark.parametrize(
    ("better", "values", "expected"),
    [
        (LESS, [3.0, 1.0, 2.0], [False, True, False]),
        (MORE, [3.0, 1.0, 2.0], [True, False, False]),
        (NEITHER, [3.0, 1.0, 2.0], [False, False, False]),
        (LESS, [1.0, 1.0, 2.0], [True, True, False]),
        (LESS, [1.0, 1.0 + 1e-9, 2.0], [True, True, False]),  # shown alike
        (LESS, [1.0, 1.0], [False, False]),
        (LESS, [1.0], [False]),
        (LESS, [float("nan"), 2.0, 3.0], [False, True, False]),
        (MORE, [float("nan")] * 2, [False, False]),
    ],
)
def test_best(better, values, expected):
    metric = next(metric for metric in METRICS if metric.better == better)
    assert best(metric, values) == expected


def test_less_is_better_but_for_utilization():
    better = {metric.name: metric.better for metric in METRICS}
    more = {"utilization", "makespan_improvement", "mean_job_speedup", "throughput_per_h"}
    neutral = {"jobs", "killed_jobs", "backfilled_share", "compact_share"}
    neutral |= {"starved_share"}  # by a threshold that each scheduler has for itself
    assert {name for name, sign in better.items() if sign == MORE} == more
    assert {name for name, sign in better.items() if sign == NEITHER} == neutral
    assert all(better[name] == LESS for name in better if name not in neutral | more)


def test_the_table_marks_the_best_of_each_column():
    values = dict.fromkeys(COMPARED, 2.0)
    results = {
        "one": with_metrics(**{**values, "mean_bsld": 1.5, "utilization": 0.25}),
        "two": with_metrics(**{**values, "mean_bsld": 2.5, "utilization": 0.75}),
    }
    heading, first, two = comparison(results)
    place = {text: column for column, (text, _) in enumerate(heading)}
    assert first[place["mean BSLD"]] == ("1.500", True)
    assert two[place["mean BSLD"]] == ("2.500", False)
    assert first[place["utilization (%)"]] == ("25.00", False)
    assert two[place["utilization (%)"]] == ("75.00", True)
    assert sum(top for row in (first, two) for _, top in row) == 2
    text = printed(rich_comparison(results))
    assert "1.500*" in text
    assert "75.00*" in text
    assert "25.00*" not in text
    assert "* best of its column" in text


def test_the_best_are_those_of_each_machine():
    usual = dict.fromkeys(COMPARED, 2.0)
    bslds = {"a on 8": 3.0, "b on 8": 2.5, "a on 16": 1.5, "b on 16": 1.0}
    results = {
        name: with_metrics(int(name.rpartition(" ")[2]), **usual | {"mean_bsld": bsld})
        for name, bsld in bslds.items()
    }
    at = COMPARED.index("mean_bsld") + 1
    assert [row[at][1] for row in comparison(results)[1:]] == [False, True, False, True]
    mixed = {name: results[name] for name in ("b on 16", "a on 8", "a on 16", "b on 8")}
    assert [row[at][1] for row in comparison(mixed)[1:]] == [True, False, False, True]
    assert "* best of its column and machine" in printed(rich_comparison(results))
    same = {name: with_metrics(8, **result.metrics) for name, result in results.items()}
    assert [row[at][1] for row in comparison(same)[1:]] == [False, False, False, True]
    assert "and machine" not in printed(rich_comparison(same))


def test_energies_are_compared_where_limits_hold_or_energy_costs_something():
    usual = dict.fromkeys([*COMPARED, "energy_j"], 2.0)
    of_power = {"none": (None, {}), "free": ((), {}), "cap": ((1,), {"cap_exceeded_s": 0.0})}
    of_power["price"] = (None, {"cost": 1.0})
    columns = {}
    for name, (limits, more) in of_power.items():
        results = {
            name_of_schedule: with_metrics(limits=limits, **usual, **more)
            for name_of_schedule in "ab"
        }
        columns[name] = len(comparison(results)[0]) - 1 - len(COMPARED)
    assert columns == {"none": 0, "free": 1, "cap": 2, "price": 2}


def test_a_past_has_no_energy_and_hides_none() -> None:
    usual = dict.fromkeys([*COMPARED, "energy_j"], 2.0)
    results = {
        "shut": with_metrics(limits=(1,), **usual, cap_exceeded_s=3.0),
        RECORDED: with_metrics(replayed_on=RECORDED, **usual),
    }
    heading, shut, past = comparison(results)
    assert [text for text, _ in heading[-2:]] == ["energy (MWh)", "above caps (s)"]
    assert shut[-1][0] == "3.000"
    assert [text for text, _ in past[-2:]] == ["-", "-"]


def test_what_who_pays_leaves_out_is_said() -> None:
    """Quotas of submitted jobs let some come later: waits are then no longer of the same jobs."""
    log = hpcgym.load_workload("lublin:jobs=300,processors=64,load=0.9,seed=1")
    rules = {"easy": {}, "saf": {"policy": "saf"}, "few": {"quota": "all:submitted=3"}}
    parts = {name: hpcgym.simulate(log, **more) for name, more in rules.items()}
    left_out, later = remarks(parts)
    assert left_out.startswith("not compared with easy by stars, intervals or 'who pays': few. The")
    assert later.startswith("few: jobs were submitted ")


def test_no_star_where_jobs_come_at_other_times() -> None:
    """The schedule of fewer jobs at a time has the shortest waits, and no star."""
    log = hpcgym.load_workload("lublin:jobs=300,processors=64,load=0.9,seed=1")
    rules = {"easy": {}, "saf": {"policy": "saf"}, "few": {"quota": "all:submitted=3"}}
    parts = {name: hpcgym.simulate(log, **more) for name, more in rules.items()}
    waits = {name: result.metrics.mean_wait_s for name, result in parts.items()}
    assert min(waits, key=waits.__getitem__) == "few"
    rows = {name: mark for (name, _), (_, mark) in comparison(parts, ["mean_wait_s"])[1:]}
    assert rows == {name: waits[name] == min(waits["easy"], waits["saf"]) for name in waits}
    others = {name: parts[name] for name in ("few", "easy", "saf")}
    assert {name: mark for (name, _), (_, mark) in comparison(others, ["mean_wait_s"])[1:]} == rows


def test_that_limits_give_jobs_nodes_of_their_own_is_said_once() -> None:
    """Only where jobs would share nodes; not of no limits, which are asked for by their name."""
    nodes = Cluster(groups=(NodeGroup("a", 4, {"core": 4}, power=NodePower(1, 2)),))
    caps = {"none": None, "no cap": [], "cap": PowerCap(7), "high": PowerCap(8)}

    def said(processors: int) -> list[str]:
        jobs = few_jobs(16, range(6), [10] * 6, [processors] * 6)
        parts = {
            name: hpcgym.simulate(jobs, cluster=nodes, limits=cap) for name, cap in caps.items()
        }
        return [line for line in remarks(parts) if "nodes of its own" in line]

    assert said(4) == []
    (line,) = said(2)
    assert "also the 6 of 6 jobs that do not fill theirs" in line
    assert "--cap none --power none" in line


def test_shares_beyond_different_thresholds_are_not_compared():
    """Job 1 waits for 100 s, which is long for one scheduler, and not for the other."""
    jobs = few_jobs(4, [0, 0], [100, 5], [4, 4])
    results = {
        f"after {seconds} s": hpcgym.simulate(jobs, "easy", threshold=seconds)
        for seconds in (60, 600)
    }
    _, *rows = comparison(results, ["starved_share"])
    assert [row[1] for row in rows] == [("50.00", False), ("0", False)]


test_mistakes = mistakes_of(globals())
