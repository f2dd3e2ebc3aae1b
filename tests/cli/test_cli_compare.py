"""``hpcgym compare``: each row is the schedule of the library; who is left out; what tables say."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from commands import (
    CODE_JOBS,
    JOBS,
    PAIRS,
    SHARED,
    TAURUS_JOBS,
    as_csv,
    as_json,
    in_words,
    succeed,
    table_file,
)
from drawing import given, settings
from drawing import strategies as st

import hpcgym
from hpcgym import generate_speedups, load_workload, simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.cli.simulate import DEFAULT, SHARED_DEFAULT
from hpcgym.machine import cluster_toml, find_cluster
from hpcgym.report.tables import who_pays
from hpcgym.schedule import gains
from hpcgym.schedule.provenance import schedule_digest
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.policies import POLICIES

ABOVE = ("above", "above_low", "above_high")


def compared(*words: Any) -> dict[str, str]:
    """The SHA-256 of the schedules of a comparison, by their rows."""
    schedules = as_json("compare", *words)["provenance"]["schedules"]
    return {schedule["name"]: schedule["sha256"] for schedule in schedules}


def every(option: str, *values: Any) -> tuple[Any, ...]:
    """The words that give an option several times."""
    return tuple(word for value in values for word in (option, value))


def made(jobs: Any, scheduler: Any = "easy", **rules: Any) -> str:
    jobs = load_workload(jobs) if isinstance(jobs, str) else jobs
    return schedule_digest(simulate(jobs, scheduler, **rules))


# --- Rules ------------------------------------------------------------------------------------

#: Rule -> texts on the command line and what they are in Python; in the order of the options.
RULES: dict[str, dict[str, Any]] = {
    "policy": {"saf": "saf", "wait - area": "wait - area", "1,0,0,0,0,-2": (1, 0, 0, 0, 0, -2)},
    "backfill": {"easy": "easy", "none": "none", "until-shadow": "until-shadow"},
    "backfill_order": {"fcfs": "fcfs", "sjbf": "sjbf", "spf": "spf"},
    "estimate": {"requested": "requested", "ave2": "ave2", "clairvoyant": "clairvoyant"},
    "policy_estimate": {"requested": "requested", "clairvoyant": "clairvoyant"},
    "threshold": {"none": None, "600": 600, "18000": 18_000},
    "hold": {"none": None, "0.2": 0.2, "share=0.1,from_s=600": {"share": 0.1, "from_s": 600}},
    "correction": {"requested": "requested", "incremental": "incremental"},
    "passes": {"per-timestamp": "per-timestamp", "per-event": "per-event"},
}


def _one_or_two(texts: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(texts), min_size=1, max_size=2, unique=True)


@st.composite
def some_rules(draw: st.DrawFn) -> dict[str, list[str]]:
    names = draw(st.lists(st.sampled_from(list(RULES)), min_size=1, max_size=3, unique=True))
    return {name: draw(_one_or_two(list(RULES[name]))) for name in names}


@settings(max_examples=15)
@given(rules=some_rules(), names=st.sampled_from([["easy-sjbf"], ["easy", "saf"]]))
def test_all_combinations_of_rules(rules: dict[str, list[str]], names: list[str]) -> None:
    given = (every(f"--{rule.replace('_', '-')}", *texts) for rule, texts in rules.items())
    order = [rule for rule in RULES if rule in rules]
    schedulers = {}
    for name, texts in product(names, product(*(rules[rule] for rule in order))):
        chosen = dict(zip(order, texts, strict=True))
        row = [name, *(f"{rule}={chosen[rule]}" for rule in order if len(rules[rule]) > 1)]
        values = {rule: RULES[rule][text] for rule, text in chosen.items()}
        schedulers[", ".join(row)] = SCHEDULERS[name].but(**values)
    digests_of_rows = compared(JOBS, "--scheduler", ",".join(names), *chain(*given))
    assert list(digests_of_rows) == list(schedulers)
    assert digests_of_rows == {row: made(JOBS, scheduler) for row, scheduler in schedulers.items()}


OWN = "wait - max(area, 9)"
HEEDED = ("--scheduler", "easy,fairshare,prb", "--fair-share", "half_life_s=60")
CAP = "percent=60,start=20000,end=60000"


def _sizes() -> dict[str, str]:
    jobs = {size: load_workload(JOBS, processors=size) for size in (8, 24)}
    return {
        f"{name} on {size} processors": made(jobs[size], name, processors=size)
        for size in jobs
        for name in ("fcfs", "easy", "saf")
    }


def _capped() -> dict[str, str]:
    """The cap is a share of the power of each machine."""
    rows = {}
    for name in ("taurus", "small.toml"):
        machine = find_cluster(name)
        cap = PowerCap.of(machine, 0.6, start=20_000, end=60_000)
        jobs = load_workload(TAURUS_JOBS, cluster=machine)
        rows[f"easy on {name}"] = made(jobs, cluster=machine, limits=[cap])
    return rows


def _powers() -> dict[str, str]:
    cap = PowerCap.of(find_cluster("taurus"), 0.6, start=20_000, end=60_000)
    return {
        f"{name}, power={power}": made(
            TAURUS_JOBS, name, cluster="taurus", limits=[cap], power=power
        )
        for name in ("easy", "saf")
        for power in ("none", "shut", "mix")
    }


CAPPED = (TAURUS_JOBS, "--cluster", "taurus", "--cap", CAP)
#: The words of a comparison -> its rows, in their order.
SAME: dict[tuple[Any, ...], Callable[[], dict[str, str]]] = {
    (JOBS, "--passes", "per-event"): lambda: {
        name: made(JOBS, name, passes="per-event") for name in DEFAULT
    },
    (JOBS, *every("--policy", *POLICIES)): lambda: {
        "easy" if name == "fcfs" else name: made(JOBS, "easy" if name == "fcfs" else name)
        for name in POLICIES
    },
    (JOBS, "--policy", OWN, "--policy", "spf"): lambda: {
        OWN: made(JOBS, policy=OWN, backfill_order="spf"), "spf": made(JOBS, "spf"),
    },
    (JOBS, *every("--policy", "saf", "spf"), *every("--threshold", "600", "none")): lambda: {
        f"{name}, threshold={text}": made(JOBS, name, threshold=RULES["threshold"][text])
        for name in ("saf", "spf")
        for text in ("600", "none")
    },
    (JOBS, "--policy", "1,0,0,0,0,-2"): lambda: {
        "1,0,0,0,0,-2": made(JOBS, policy=(1, 0, 0, 0, 0, -2), backfill_order="spf")
    },
    (
        JOBS, *HEEDED, "--fair-share", "half_life_s=86400", *every("--dispatch-time", 0, 500),
    ): lambda: {
        "easy": made(JOBS),
        **{
            f"fairshare, fair_share={text}": made(JOBS, "fairshare", fair_share=text)
            for text in ("half_life_s=60", "half_life_s=86400")
        },
        **{f"prb, dispatch_time={s}": made(JOBS, "prb", dispatch_time=s) for s in (0, 500)},
    },
    (JOBS, *every("--processors", 8, 24), "--scheduler", "fcfs,easy,saf"): _sizes,
    (*CAPPED, "--cluster", "small.toml", "--scheduler", "easy"): _capped,
    (*CAPPED, "--scheduler", "easy,saf", *every("--power", "none", "shut", "mix")): _powers,
    SHARED: lambda: {
        name: made(CODE_JOBS, name, cluster="16x2x4", speedups=PAIRS) for name in SHARED_DEFAULT
    },
}  # fmt: skip


@pytest.mark.parametrize("words", SAME, ids=lambda words: " ".join(map(str, words[1:]))[:90])
def test_each_row_is_the_schedule_of_the_library(words: tuple[Any, ...]) -> None:
    small = cluster_toml(find_cluster("taurus")).replace("nodes = 16", "nodes = 8")
    Path("small.toml").write_text(small.replace('"taurus"', '"small"'))
    digests_of_rows, rows = compared(*words), SAME[words]()
    assert list(digests_of_rows) == list(rows)
    assert digests_of_rows == rows


def test_who_is_compared_by_default() -> None:
    assert set(DEFAULT) <= set(SCHEDULERS)
    assert {*COSCHEDULERS, "fcfs", "easy", "conservative"} == set(SHARED_DEFAULT)
    assert list(compared(*CAPPED)) == [name for name in DEFAULT if name != "conservative"]


def test_facts_and_columns_of_several_machines() -> None:
    words = ("compare", JOBS, *every("--processors", 8, 24), "--scheduler", "fcfs,easy,saf")
    value = as_json(*words)
    assert (value["workload"], "processors" in value) == (load_workload(JOBS).name, False)
    jobs = {size: load_workload(JOBS, processors=size) for size in (8, 24)}
    assert {machine["processors"]: machine["cleaning"] for machine in value["machines"]} == {
        size: dict(of_size.cleaning) for size, of_size in jobs.items()
    }
    printed, rows = succeed(*words).stdout.partition("Who pays")[0], as_csv(*words)
    text = printed[printed.index("\nscheduler ") :]  # behind the findings
    for entry, row in zip(value["results"], rows, strict=True):
        size, mean = entry["processors"], entry["mean_bsld"]
        assert (row["processors"], float(row["mean_bsld"])) == (str(size), mean)
        name = row["scheduler"]
        assert name == entry["scheduler"]["name"]
        (shown,) = (line for line in text.splitlines() if line.startswith(f"{name} on {size} "))
        first = shown.removeprefix(f"{name} on {size} processors").split()[0]
        best = min(
            result["mean_bsld"] for result in value["results"] if result["processors"] == size
        )
        assert first.endswith("*") == (mean == best)
    assert "cleaning on 8 processors:" in printed
    assert "* best of its column and machine" in text


def test_columns_that_only_some_have() -> None:
    Path("plain.toml").write_text('name = "plain"\n[[group]]\nname = "a"\nnodes = 4\ncore = 48\n')
    words = (TAURUS_JOBS, "--cluster", "taurus", "--cluster", "plain.toml", "--scheduler", "easy")
    rows = as_csv("compare", *words)
    assert [(row["cluster"], bool(row["energy_j"])) for row in rows] == [
        ("taurus", True), ("plain", False)
    ]  # fmt: skip
    lines = as_csv("compare", JOBS, "--scheduler", "easy,prb", "--dispatch-time", "500")
    assert [line["mean_dispatch_s"] for line in lines] == ["", "500.0"]
    rows = as_csv("compare", *SHARED)
    spans = [float(row["makespan_s"]) for row in rows]
    assert [float(row["makespan_improvement"]) for row in rows] == [
        spans[0] / span - 1 for span in spans
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (CAPPED, ["limits: cap 60 % (", "energy", "above"]),
        (
            (*CAPPED, "--cluster", "taurus.toml"),
            ["limits on taurus: cap", "limits on taurus.toml:"],
        ),
        (SHARED, ["improvement (%)", "down (%)", "(jobs/h)", "utilization"]),
    ],
)
def test_tables_for_people(words: tuple[str, ...], said: list[str]) -> None:
    Path("taurus.toml").write_text(cluster_toml(find_cluster("taurus")))
    text = in_words(succeed("compare", *words, "--scheduler", "easy,saf").stdout)
    assert [text_said for text_said in said if text_said not in text] == []


def test_it_says_who_pays() -> None:
    words = ("compare", JOBS, "--scheduler")
    text = in_words(succeed(*words, "easy,saf").stdout)
    results = {name: simulate(load_workload(JOBS), name) for name in ("easy", "saf")}
    paid = who_pays(results)
    assert paid is not None
    rows = (" ".join(" ".join(row).split()) for row in paid.rows)
    texts = [paid.title, *rows, *paid.below]
    assert [text_of_table for text_of_table in texts if text_of_table not in text] == []
    assert "Who pays" not in succeed(*words, "easy").stdout
    larger = succeed(*words, "easy", *every("--processors", 24, 64), "--errors", "skip").stdout
    assert "Who pays" not in larger  # the smaller machine has fewer jobs


def test_intervals_and_who_pays_are_in_every_format() -> None:
    """As Python's ``compare`` has them; of a schedule that is not compared nothing is told."""
    log, few = "lublin:jobs=24000,processors=64,seed=3,load=0.6", "few:=easy:quota=user:submitted=3"
    words = ("compare", log, "--scheduler", f"easy,saf,{few}")
    rules = {"easy": "easy", "saf": "saf", "few": "easy:quota=user:submitted=3"}
    comparison = hpcgym.compare(log, rules)
    assert comparison.above["saf"].low == comparison.above["saf"].low  # there are weeks enough
    shown = succeed(*words).stdout.splitlines()
    assert shown[: len(comparison.findings)] == comparison.findings
    assert set(comparison.remarks) <= {*shown}
    paid = gains.who_pays(comparison)
    assert list(paid) == ["easy", "saf"]
    results = {row["scheduler"]["name"]: row for row in as_json(*words)["results"]}
    assert [results["saf"][key] for key in ABOVE] == [*comparison.above["saf"]]
    assert results["saf"]["who_pays"] == paid["saf"].facts()
    assert [results["few"][key] for key in (*ABOVE, "who_pays")] == [None] * 4
    rows = {row["scheduler"]: row for row in as_csv(*words)}
    assert [float(rows["saf"][key]) for key in ABOVE] == [*comparison.above["saf"]]
    for key, value in paid["saf"].columns().items():
        assert float(rows["saf"][key]) == value
        assert rows["few"][key] == ""
    large = paid["saf"].classes["large"]
    assert (
        float(rows["saf"]["large_ratio"])
        == large.mean_bsld / paid["easy"].classes["large"].mean_bsld
    )
    (alone,) = as_json("compare", JOBS, "--scheduler", "easy")["results"]
    assert not {*ABOVE, "who_pays"} & alone.keys()


def test_rules_of_sharing_leave_the_others_as_they_are() -> None:
    options = ("--scheduler", "easy,easy-co,easy-spread", "--allocation", "part:4")
    value = as_json("compare", *SHARED, *options, "--partners", "best")
    rules = [
        (result["scheduler"]["allocation"], result["scheduler"]["partners"])
        for result in value["results"]
    ]
    assert rules == [("first-fit", "fill"), ("part:4", "best"), ("spread", "fill")]
    assert value["speedups"]["digest"] == generate_speedups(4, seed=1).digest


@pytest.mark.slow
def test_pictures_and_pages() -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    files = ("a.png", "a.html")
    words = ("compare", JOBS, "--picture", files[0], "--html", files[1], "--scheduler")
    succeed("compare", JOBS, "--scheduler", "fcfs,easy,saf")  # who compiles for long says how far
    done = succeed(*words, "fcfs,easy,saf")
    assert done.stderr == "".join(f"wrote {file}\n" for file in files)
    assert all(Path(file).stat().st_size > 10_000 for file in files)
    missing = (
        "no Gantt charts to print, because 4 would be too small to read: for charts, name at most 3"
        " schedulers"
    )
    four = (*words, "fcfs,easy,easy-sjbf,saf", "--force")
    assert succeed(*four).stderr == "".join(f"wrote {file}\n{file}: {missing}\n" for file in files)
    assert missing in Path("a.html").read_text()
    succeed(*four, *every("--processors", 24, 32))
    page = Path("a.html").read_text()
    assert page.count("How many jobs have a bounded slowdown above x.</figcaption>") == 1
    assert "best of its row and machine" in page
    assert "saf on 24 processors" in page


# --- Names of one's own, and columns ----------------------------------------------------------


def test_schedulers_have_names_of_ones_own() -> None:
    """Also between commas, where rule=value belongs to the variant before it."""
    given = "easy,my SAF:=saf:threshold=5h,hold=0.1,late:=easy:policy=max(wait, 5),mine:=easy-sjbf"
    rules = {
        "easy": {"scheduler": "easy"},
        "my SAF": {"scheduler": "saf", "threshold": 18_000, "hold": 0.1},
        "late": {"scheduler": "easy", "policy": "max(wait, 5)"},
        "mine": {"scheduler": "easy-sjbf"},
    }
    assert compared(JOBS, "--scheduler", given) == {
        name: made(JOBS, **rules) for name, rules in rules.items()
    }
    varied = ("--scheduler", "a:=saf", "--threshold", "600", "--threshold", "none")
    assert [row["scheduler"] for row in as_csv("compare", JOBS, *varied)] == [
        "a, threshold=600",
        "a, threshold=none",
    ]
    waits = as_json("explain", JOBS, "--scheduler", "easy,b:=saf")["waited_for"]
    assert [row["scheduler"] for row in waits] == ["easy", "b"]


def test_the_columns_of_the_table_are_chosen() -> None:
    chosen = ("--metric", "max_wait_s,backfilled_share", "--metric", "p99_bsld")
    words = ("compare", JOBS, "--scheduler", "easy,saf")
    table = succeed(*words, *chosen, "--format", "markdown").stdout.splitlines()[0]
    assert table == "| scheduler | max wait (s) | backfilled (%) | P99 of BSLD |"


def test_equal_schedules_are_said_to_be_equal() -> None:
    words = ("compare", JOBS, "--scheduler", "easy,b:=easy,saf")
    said = "the same schedule, start by start: easy; b"
    assert said in succeed(*words).stdout.splitlines()
    assert "one schedule" not in succeed("compare", JOBS, "--scheduler", "easy,saf").stdout


# --- What cannot be compared, and who is left out -------------------------------------------------


def test_help_tells_which_options_may_be_given_several_times() -> None:
    text = " ".join(succeed("compare", "--help-all").stdout.split())
    for option in ("--threshold TIME|none...", "--processors N...", "--power none|shut|dvfs"):
        assert option in text
    assert "--week N " in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("quota", "user:jobs=1"),
        ("maintenance", "100/2000:processors=3"),
        ("preemption", "user:1>2"),
    ],
)
def test_none_beside_a_rule_of_a_site(option: str, value: str) -> None:
    rows = compared(JOBS, "--scheduler", "saf", *every(f"--{option}", "none", value))
    assert list(rows) == [f"saf, {option}=none", f"saf, {option}={value}"]


def test_a_row_says_which_of_its_own_rules_it_has_lost() -> None:
    own = "saf:quota=user:jobs=1,threshold=600"
    rows = compared(JOBS, "--scheduler", f"{own},saf", "--quota", "none")
    assert list(rows) == [f"{own} (no quota)", "saf"]
    assert list(compared(JOBS, "--scheduler", own, "--threshold", "900")) == [
        f"{own} (threshold 900 s)"
    ]
    passes = "saf:passes=per-event"
    assert list(compared(JOBS, "--scheduler", passes, "--passes", "per-timestamp")) == [
        f"{passes} (per-timestamp passes)"
    ]
    both = compared(JOBS, "--scheduler", own, *every("--quota", "none", "user:jobs=2"))
    assert list(both) == [f"{own}, quota=none", f"{own}, quota=user:jobs=2"]


def test_time_outside_of_the_queue_is_told() -> None:
    """By hand: of two jobs of one user the second is submitted once the first has run 10 min."""
    head = "submit_time,run_time,requested_time,requested_processors,user"
    log = table_file("two.csv", head, "0,600,600,1,ann", "0,600,600,1,ann")
    arguments = (log, "--processors", 4, "--quota", "user:submitted=1", "--scheduler", "easy")
    remark = "jobs were submitted 5 min later than in the log on average; no wait counts this"
    assert remark in succeed("simulate", *arguments).stdout.splitlines()
    lines = succeed("compare", *arguments, *every("--policy", "fcfs", "saf")).stdout.splitlines()
    assert sum(line.endswith(f": {remark}") for line in lines) == 2
    plain = succeed("compare", log, "--processors", 4, "--scheduler", "easy").stdout
    assert "no wait counts" not in plain


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((JOBS, "--preemption", "user:2>1"), "hold and preemption='user:2>1'"),
        ((JOBS, "--backfill", "conservative"), "hold and backfill='conservative'"),
    ],
)
def test_who_does_not_go_with_a_rule_is_left_out_with_a_line(arguments: Any, reason: str) -> None:
    """The others are compared; what has no hold is another row, by another name."""
    schedulers = "easy,aged-safe,aged-safe:hold=none"
    done = succeed("compare", *arguments, "--scheduler", schedulers, "--format", "csv")
    names = [row["scheduler"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert names == ["easy", "aged-safe:hold=none"]
    (left,) = done.stderr.splitlines()
    assert left.startswith(f"left out: aged-safe: {reason}")


def test_who_does_not_go_with_one_value_of_a_rule_is_left_out_there() -> None:
    given = ("--scheduler", "easy,saf-typical-20h-hold")
    given += every("--preemption", "none", "user:2>1")
    done = succeed("compare", JOBS, *given, "--format", "csv")
    names = [row["scheduler"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert names == [
        "easy, preemption=none", "easy, preemption=user:2>1",
        "saf-typical-20h-hold, preemption=none",
    ]  # fmt: skip
    assert "left out: saf-typical-20h-hold, preemption=user:2>1: hold and" in done.stderr
