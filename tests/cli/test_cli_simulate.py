"""``hpcgym simulate``: what it prints and writes is what the library returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import (
    CODE_JOBS,
    EURORA_JOBS,
    JOBS,
    PAIRS,
    SHARED,
    TAURUS_JOBS,
    as_csv,
    as_json,
    digests,
    run,
    succeed,
    table_file,
    typed,
)
from mistakes import mistakes_of

from hpcgym import generate_speedups, simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.schedulers import described
from hpcgym.machine import failures_of, find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.machine.speedups import write_speedups
from hpcgym.schedule.metrics import told_metrics
from hpcgym.schedule.provenance import schedule_digest
from hpcgym.schedule.signals import read_signal, total_of
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.units import duration
from hpcgym.version import __version__
from hpcgym.workload import assign_codes, fitting, load_workload, read_swf, write_swf
from hpcgym.workload.needs import FITS_NOWHERE

TAURUS = find_cluster("taurus")
WATTS = greatest_w(TAURUS)
BUDGET = EnergyBudget.of(TAURUS, 0.6, 0, 172_800, shutdown=True)
USERS = "lublin:jobs=800,processors=32,load=1.2,users=6"
WEEKS = "lublin:jobs=3000,processors=128,load=0.5"


@pytest.fixture
def here(here: Path) -> Path:
    """Files of prices, shares and speedups in the folder."""
    Path("prices.csv").write_text("time_s,eur_per_mwh\n0,40\n43200,100\n")
    Path("shares.toml").write_text("half_life_s = 600\n[shares]\n1 = 30\n")
    write_speedups(generate_speedups(4, seed=9), Path("false.json"))
    return here


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of two weeks, with jobs that cleaning drops and repairs."""
    workload = load_workload("lublin:jobs=3000,processors=32,load=0.5")
    run_time = workload.run_time.copy()
    run_time[3] = 0
    run_time[5] = workload.requested_time[5] + 7
    path = tmp_path_factory.mktemp("traces") / "small.swf.gz"
    write_swf(workload.with_columns(run_time=run_time), path)
    return path


def of(workload: str, scheduler: str = "easy", **given: Any) -> Callable[[], Any]:
    return lambda: simulate(load_workload(workload), scheduler, **given)


def on_nodes(scheduler: str, **given: Any) -> Callable[[], Any]:
    return of(CODE_JOBS, scheduler, cluster="16x2x4", speedups=PAIRS, **given)


def limited(power: str, *limits: Any) -> Callable[[], Any]:
    return of(TAURUS_JOBS, cluster="taurus", limits=limits, power=power)


def _week_of_codes() -> Any:
    """A job has the same code in a week as in the whole."""
    whole = assign_codes(load_workload(WEEKS), generate_speedups(4).codes, seed=7)
    return simulate(whole.weeks()[0], "easy-co", cluster="16x2x4", speedups=PAIRS)


PRICED = ("--price", "prices.csv", "--repeat", "day")

#: The words of a command -> what the library makes.
SAME: dict[tuple[Any, ...], Callable[[], Any]] = {
    (JOBS, "--passes", "per-event"): of(JOBS, passes="per-event"),
    (JOBS, "--cluster", 160): of(JOBS, cluster=160),
    (WEEKS, "--week", 1): lambda: simulate(load_workload(WEEKS).weeks()[0], "easy"),
    (USERS, "--scheduler", "fairshare", "--fair-share", "shares.toml"): lambda: simulate(
        load_workload(USERS), "fairshare", fair_share="shares.toml"
    ),
    (EURORA_JOBS, "--cluster", "eurora", "--allocation", "worst-fit"): of(
        EURORA_JOBS, cluster="eurora", allocation="worst-fit"
    ),
    (*SHARED, "--scheduler", "easy-co"): on_nodes("easy-co"),
    (
        *SHARED, "--scheduler", "filler-co", "--partners", "first", "--pairs-above", 1.05,
        "--pair-estimate", "learned", "--allocation", "part:4",
    ): on_nodes(
        "filler-co", partners="first", pairs_above=1.05, pair_estimate="learned",
        allocation="part:4",
    ),
    (
        *SHARED, "--scheduler", "easy-co", "--pairs-above", 1.1, "--pair-estimate", "false.json",
    ): on_nodes("easy-co", pairs_above=1.1, pair_estimate=generate_speedups(4, seed=9)),
    (WEEKS, *SHARED[1:], "--codes", 7, "--scheduler", "easy-co", "--week", 1): _week_of_codes,
    (
        TAURUS_JOBS, "--cluster", "taurus", "--power", "shut",
        "--cap", "percent=70,start=20000,end=60000,announced=15000,kills",
    ): limited("shut", PowerCap(0.7 * WATTS, 20000, 60000, announced=15000, kills=True)),
    (
        TAURUS_JOBS, "--cluster", "taurus", "--power", "reduce-pc",
        "--budget", "joules=2e8,start=20000,end=100000,period=60",
        "--budget", "percent=70,start=100000,end=150000", "--cap", "watts=3000,end=9000",
    ): limited(
        "reduce-pc", PowerCap(3000, 0, 9000), EnergyBudget(2e8, 20_000, 100_000, 60),
        EnergyBudget.of(TAURUS, 0.7, 100_000, 150_000),
    ),
    (
        TAURUS_JOBS, "--cluster", "taurus", "--power", "powercap", *PRICED,
        "--budget", "percent=60,start=0,end=172800,shutdown,free_node_w=97,follow=price,swing=0.3",
    ): limited(
        "powercap",
        *(
            EnergyBudget(
                BUDGET.joules / 4 * part, 43_200 * k, 43_200 * (k + 1), shutdown=True,
                free_node_w=97,
            )
            for k, part in enumerate((1.3, 0.7, 1.3, 0.7))
        ),
    ),
    (
        TAURUS_JOBS, "--cluster", "taurus", "--power", "none", *PRICED,
        "--cap", "percent=60, start=0, end=86400, follow = price, swing = 0.3",
    ): limited(
        "none",
        *(
            PowerCap(0.6 * p * WATTS, 43_200 * k, 43_200 * k + 43_200)
            for k, p in ((0, 1.3), (1, 0.7))
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", SAME, ids=lambda words: " ".join(map(str, words[1:])))
def test_the_schedule_is_that_of_the_library(words: tuple[Any, ...], here: Path) -> None:
    value, result = as_json("simulate", *words), SAME[words]()
    assert digests(value) == [schedule_digest(result)]
    for name, metric in told_metrics(result).items():
        assert value[name] == (metric if metric == metric else None), name
    if "--pair-estimate" not in words:  # a file is called by its name
        assert value["scheduler"].items() >= described(result.scheduler).items()
    if "--price" in words:
        cost = total_of(result, read_signal("prices.csv", repeat="day"))
        assert value["cost"] == pytest.approx(cost)


def test_facts_say_what_a_result_was_computed_from(log: Path) -> None:
    value = as_json("simulate", log, "--clean", "glesser")
    assert (value["workload"], value["jobs"], value["processors"]) == ("small", 2999, 32)
    assert (value["clean"], value["hpcgym"]) == ("glesser", __version__)
    assert value["cleaning"] == {
        "dropped: no run time": 1,
        "repaired: run_time cut at requested_time": 1,
    }
    assert not any(name.startswith("energy_") for name in value)  # nobody gave watts
    text = succeed("simulate", log).stdout
    assert "small · 2,999 jobs · 32 processors · easy · per-timestamp passes" in text
    assert "1 dropped: no run time" in text
    value = as_json("simulate", EURORA_JOBS, "--cluster", "eurora")
    assert (value["cluster"], value["nodes"], value["processors"]) == ("eurora", 64, 1024)
    assert value["queues"] == dict(find_cluster("eurora").queues)
    (row,) = as_csv("simulate", EURORA_JOBS, "--cluster", "eurora")
    assert (row["nodes"], "queues" in row) == ("64", False)
    value = as_json("simulate", *SHARED)
    assert value["speedups"] == generate_speedups(4, seed=1).describe()
    assert value["codes_seed"] is None
    assert as_csv("simulate", *SHARED)[0]["speedups"] == PAIRS


def test_what_is_no_number_is_null() -> None:
    value = as_json("simulate", "lublin:jobs=1")
    classes = [value[f"mean_bsld_{length}"] for length in ("short", "medium", "long")]
    assert sorted(classes, key=str) == [1.0, None, None]
    (row,) = as_csv("simulate", "lublin:jobs=1")
    assert sorted(row[f"mean_bsld_{length}"] for length in ("short", "medium", "long")) == [
        "",
        "",
        "1.0",
    ]


ON_TAURUS = (TAURUS_JOBS, "--cluster", "taurus")
GIVEN = ("--cap", "percent=60,start=90000,end=93600", "--budget", "percent=50,start=0,end=3600")
SHARES = ("--scheduler", "fairshare", "--fair-share", "half_life_s=86400")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*ON_TAURUS, *GIVEN), "\nlimits: cap 60 % ("),
        ((*ON_TAURUS, *GIVEN), " W) from 90,000 s to 93,600 s; budget 50 %"),
        ((*ON_TAURUS, "--allocation", "contiguous"), "easy, contiguous allocation ·"),
        ((TAURUS_JOBS, *SHARES), "half_life_s=86400"),
        ((*SHARED, "--scheduler", "easy-co"), f"per-timestamp passes · speedups {PAIRS}"),
        ((*SHARED, "--scheduler", "easy-co"), "mean job speedup"),
    ],
)  # fmt: skip
def test_tables_for_people_name_the_rules_once(words: tuple[str, ...], said: str) -> None:
    text = succeed("simulate", *words).stdout
    assert text.count(said) == 1
    assert ("limits:" in text) == ("--cap" in words)


def test_long_times_are_in_words_too() -> None:
    makespan = as_json("simulate", JOBS)["makespan_s"]
    (line,) = (text for text in succeed("simulate", JOBS).stdout.splitlines() if "makespan" in text)
    words = ["makespan", f"{makespan:,}", "s", "=", *duration(makespan).split()]
    assert makespan > 3600
    assert line.split() == words


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_can_be_named(name: str) -> None:
    assert as_json("simulate", JOBS, "--scheduler", name)["scheduler"]["name"] == name


AGED = "4*log(wait+72000)-log(max(requested,1))-0.2*log(processors)"
SAFE = "5*log(wait+50400)-0.6*log(max(requested,1))-0.4*log(max(time_limit,1))-0.1*log(processors)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aged", ("--policy", AGED)),
        ("aged-safe", ("--policy", SAFE, "--hold", "share=0.02,by=both")),
    ],
)
def test_schedulers_that_age_are_long_commands(name: str, words: tuple[str, ...]) -> None:
    typical = ("simulate", USERS, "--scheduler", "saf-typical")
    named = as_json("simulate", USERS, "--scheduler", name)
    assert digests(as_json(*typical, *words)) == digests(named) != digests(as_json(*typical))


def test_bad_lines_are_skipped_on_demand() -> None:
    write_swf(load_workload("lublin:jobs=9"), "bad.swf")
    Path("bad.swf").write_text(Path("bad.swf").read_text() + "10 some text\n")
    assert as_json("simulate", "bad.swf", "--errors", "skip")["jobs"] == 9


# --- Schedules in files ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz"])
def test_the_schedule_as_swf(name: str) -> None:
    result = succeed("simulate", JOBS, "--output", name, "--format", "json")
    assert result.stderr == f"wrote {name}\n"
    written, expected = read_swf(name), simulate(load_workload(JOBS), "easy")
    np.testing.assert_array_equal(written.wait_time, expected.wait)
    np.testing.assert_array_equal(written.run_time, expected.run_time)
    assert json.loads(result.stdout)["mean_wait_s"] == pytest.approx(written.wait_time.mean())


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_the_table_of_a_schedule_has_the_nodes(name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
    succeed("simulate", EURORA_JOBS, "--cluster", "eurora", "--output", name)
    workload = load_workload(EURORA_JOBS)
    expected = simulate(workload, "easy", cluster="eurora")
    first, node, units = expected.allocation
    frame = (pd.read_parquet if name.endswith("parquet") else pd.read_csv)(name)
    pd.testing.assert_frame_equal(frame.drop(columns="nodes"), expected.jobs, check_dtype=False)
    cells_of_jobs = [
        [tuple(map(int, cell.split(":"))) for cell in text.split()] for text in frame["nodes"]
    ]
    assert [sum(units for _, units in cells) for cells in cells_of_jobs] == workload.units.tolist()
    for job, cells in enumerate(cells_of_jobs):
        own = slice(first[job], first[job + 1])
        assert cells == list(zip(node[own], units[own], strict=True))


def test_nodes_that_fail() -> None:
    words = (TAURUS_JOBS, "--cluster", "taurus", "--failures", "failures.csv")
    failures_of(TAURUS, 10**6, mtbf=2e5, repair=7200, seed=1).write(Path("failures.csv"))
    facts = as_json("simulate", *words, "--output", "jobs.csv")
    result = simulate(load_workload(TAURUS_JOBS), cluster="taurus", failures="failures.csv")
    assert facts["lost_runs"] == result.restarts.sum() > 0
    assert facts["lost_core_seconds"] == result.lost_core_seconds.sum()
    assert pd.read_csv("jobs.csv")["restarts"].tolist() == result.restarts.tolist()
    assert "lost core time" in succeed("simulate", *words).stdout
    job = int(result.workload.job_number[result.restarts.argmax()])
    stops = as_json("explain", *words, "--job", job)["stops"]
    assert len(stops) == result.restarts.max()
    assert all(stop["nodes"] and stop["how"] == "failed" for stop in stops)


# --- Preemption -----------------------------------------------------------------------------------

SACCT = (
    "JobID|User|Partition|QOS|State|Submit|Start|Elapsed|Timelimit|AllocCPUS",
    "1|ann|batch|low|COMPLETED|2024-03-01T12:00:00|2024-03-01T12:00:00|01:00:00|02:00:00|64",
    "2|bob|debug|high|COMPLETED|2024-03-01T12:10:00|2024-03-01T13:00:00|00:20:00|00:30:00|32",
)


def test_a_job_stops_another() -> None:
    """By hand: job 2 stops job 1, which begins anew once it has ended."""
    words = (table_file("jobs.txt", *SACCT), "--processors", "64")
    for preemption in ("partition:debug>batch", "qos:high>low"):
        given = ("--preemption", preemption, "--output", "jobs.csv", "--force")
        succeed("simulate", *words, *given)
        jobs = pd.read_csv("jobs.csv")
        assert jobs["start_time"].tolist() == [1800, 600]
        assert jobs["restarts"].tolist() == [1, 0]
        assert jobs["lost_core_seconds"].tolist() == [600 * 64, 0]
    asked = ("explain", *words, "--scheduler", f"easy:preemption={given[1]}", "--job", "1")
    said = "stopped 10 min after it came, for job 2, when it had run for 10 min"
    assert said in succeed(*asked).stdout
    (stop,) = as_json(*asked)["stops"]
    assert (stop["how"], stop["began"], stop["stopped"]) == ("requeued", 0, 600)
    assert (stop["jobs"], stop["nodes"]) == ([2], [])
    several = [
        x for rule in ("none", given[1], f"{given[1]},cancel") for x in ("--preemption", rule)
    ]
    *metrics, past = as_json("compare", *words, "--scheduler", "easy", *several)["results"]
    assert past["scheduler"] == {"name": "recorded"}  # the log tells waits
    assert [result["max_wait_s"] for result in metrics] == [3000, 1800, 0]
    assert [result.get("lost_runs") for result in metrics] == [None, 1, 0]
    assert [result.get("cancelled_jobs") for result in metrics] == [None, None, 1]


# --- Jobs that do not fit -------------------------------------------------------------------------

SMALL = 'name = "small"\n\n[[group]]\nname = "node"\nnodes = 4\ncore = 4\n'
CONF = "NodeName=a[1-4] CPUs=4\nPartitionName=batch Nodes=ALL MaxTime=60\n"
OF_PARTITIONS = "submit_time,partition_name,requested_processors,run_time,requested_time"
OF_QUEUES = "submit_time,queue_name,requested_processors,run_time,requested_time"


def test_jobs_that_never_fit_are_dropped_on_demand() -> None:
    machine, mics = find_cluster("kit-forhlr-ii"), "eurora:jobs=200,load=1.3,seed=0"
    kept = fitting(load_workload(mics), machine.resources, machine.capacity)
    words = (mics, "--cluster", "kit-forhlr-ii")
    value = as_json("simulate", *words, "--errors", "skip")
    assert 0 < value["jobs"] == len(kept) < 200
    assert value["cleaning"] == kept.cleaning == {FITS_NOWHERE: 200 - len(kept)}
    whole = as_json("simulate", mics, "--cluster", "eurora", "--errors", "skip")
    assert (whole["jobs"], whole["cleaning"]) == (200, {})
    rows = as_csv("compare", *words, "--errors", "skip", "--scheduler", "easy,prb")
    assert [int(row["jobs"]) for row in rows] == [len(kept)] * 2


@pytest.mark.parametrize(
    ("jobs", "where", "why", "dropped"),
    [
        (
            (OF_PARTITIONS, "0,batch,8,60,3600", "1,batch,8,60,3601"),
            ("--cluster", "slurm.conf"),
            "job 2 asks for more than 3600 s, the MaxTime of partition 'batch'",
            {"dropped: its partition does not let it run": 1},
        ),
        (
            (OF_QUEUES, "0,low,8,60,3600", "1,low,2,60,3600", "2,high,8,60,3600", "3,low,9,9,60"),
            ("--processors", "16", "--quota", "qos=low:processors=4"),
            "jobs.csv: job 1 asks for 8 processors, more than the quota qos=low:processors=4 lets"
            " run: it would wait for ever. The same holds for 2 of 4 jobs",
            {"dropped: asks for more than a quota lets run": 2},
        ),
        (
            ("submit_time,requested_processors,run_time,requested_time", "0,3,9,9", "1,30,9,9"),
            ("--clean", "none", "--processors", "24"),
            "requested_processors must be from 1 to 24",
            {"dropped: more processors than the machine": 1},
        ),
        (
            ("submit_time,requested_processors,run_time,requested_time", "0,3,9,9", "1,30,9,9"),
            ("--clean", "none", "--cluster", "pool.toml"),
            "requested_processors must be from 1 to 24",
            {"dropped: more processors than the machine": 1},
        ),
    ],
)
def test_jobs_that_may_never_run_are_refused_or_dropped(
    jobs: tuple[str, ...], where: tuple[str, ...], why: str, dropped: dict[str, int]
) -> None:
    Path("slurm.conf").write_text(CONF)
    Path("pool.toml").write_text("processors = 24\n")
    words = ("simulate", table_file("jobs.csv", *jobs), *where)
    assert why in run(*words).stderr
    if "must be from" not in why:
        assert "--errors skip drops such jobs, counted" in run(*words).stderr
    value = as_json(*words, "--errors", "skip")
    assert value["cleaning"] == dropped
    assert value["jobs"] == len(jobs) - 1 - sum(dropped.values())


def test_jobs_are_those_that_the_quotas_of_all_rows_let_run() -> None:
    jobs = (OF_QUEUES, "0,low,8,60,3600", "1,low,2,60,3600", "2,high,8,60,3600", "3,low,9,9,60")
    where = (table_file("jobs.csv", *jobs), "--processors", "16", "--errors", "skip")
    words = (*where, "--quota")
    several = (*words, "qos=low:processors=4", "--quota", "none", "--scheduler", "easy")
    assert [int(row["jobs"]) for row in as_csv("compare", *several)] == [2, 2]
    bounded = "easy:quota=qos=low:processors=4"
    assert "2 jobs" in succeed("explain", *where, "--scheduler", bounded).stdout


test_mistakes = mistakes_of(globals(), typed, fixtures=("log",))
