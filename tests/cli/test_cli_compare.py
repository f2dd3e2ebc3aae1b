"""``hpcgym compare`` over rules, sizes of the machine and limits, beside ``hpcgym.simulate``."""

from __future__ import annotations

import csv
import io
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from commands import JOBS, as_csv, as_json, line, run, succeed
from drawing import given, settings
from drawing import strategies as st

from hpcgym import load_workload, simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.cli.simulate import DEFAULT
from hpcgym.cluster import find_cluster
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.policies import POLICIES

TAURUS_JOBS = "lublin:jobs=100,processors=192,seed=1,load=1.3"


def results(*arguments: Any) -> dict[str, dict[str, Any]]:
    """The results of a comparison by the names of their schedulers."""
    entries = as_json("compare", *arguments)["results"]
    found = {entry["scheduler"]["name"]: entry for entry in entries}
    assert len(found) == len(entries)
    return found


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
def test_each_row_is_what_simulate_returns(rules: dict[str, list[str]], names: list[str]) -> None:
    options = [
        word
        for rule, texts in rules.items()
        for text in texts
        for word in (f"--{rule.replace('_', '-')}", text)
    ]
    order = [rule for rule in RULES if rule in rules]
    schedulers = {}
    for name, texts in product(names, product(*(rules[rule] for rule in order))):
        chosen = dict(zip(order, texts, strict=True))
        row = [name, *(f"{rule}={chosen[rule]}" for rule in order if len(rules[rule]) > 1)]
        values = {rule: RULES[rule][text] for rule, text in chosen.items()}
        schedulers[", ".join(row)] = SCHEDULERS[name].but(**values)
    arguments = (JOBS, "--scheduler", ",".join(names), *options)
    different = {tuple(one.describe().values()) for one in schedulers.values()}
    if len(different) < len(schedulers):
        assert "come to the same rules" in line("compare", *arguments)
        return
    found = results(*arguments)
    assert list(found) == list(schedulers)
    for row, scheduler in schedulers.items():
        expected = simulate(load_workload(JOBS), scheduler).metrics
        for metric in ("mean_bsld", "max_wait_s", "backfilled_share"):
            assert found[row][metric] == expected[metric]


def test_commas_join_names_and_numbers() -> None:
    several = ("--threshold", "600", "--threshold", "none", "--estimate", "ave2")
    joined = ("--threshold", "600,none", "--estimate", "ave2")
    assert results(JOBS, "--scheduler", "saf", *several) == results(
        JOBS, "--scheduler", "saf", *joined
    )
    names = list(results(JOBS, "--policy", "saf,spf", "--threshold", "600, none"))
    assert names == [f"{one}, threshold={t}" for one in ("saf", "spf") for t in ("600", "none")]
    # six weights and the keys of hold are one value
    assert list(results(JOBS, "--policy", "1,0,0,0,0,-2")) == ["1,0,0,0,0,-2"]
    hold = results(JOBS, "--scheduler", "saf", "--hold", "share=0.1,from_s=600")
    assert list(hold) == ["saf"]


def test_policies_without_schedulers_are_easy_with_each() -> None:
    jobs = load_workload(JOBS)
    found = results(JOBS, "--policy", ",".join(POLICIES))
    assert list(found) == ["easy" if name == "fcfs" else name for name in POLICIES]
    for name in found:
        assert found[name]["mean_bsld"] == simulate(jobs, SCHEDULERS[name]).metrics["mean_bsld"]
    own = results(JOBS, "--policy", "wait - max(area, 9)", "--policy", "spf")
    expected = simulate(jobs, policy="wait - max(area, 9)", backfill_order="spf")
    assert own["wait - max(area, 9)"]["mean_bsld"] == expected.metrics["mean_bsld"]


def test_rules_are_for_those_that_heed_them() -> None:
    options = ("--scheduler", "easy,fairshare,prb", "--fair-share", "half_life_s=60")
    found = results(JOBS, *options, "--fair-share", "half_life_s=86400", "--dispatch-time", "0,500")
    shares = [f"fairshare, fair_share=half_life_s={seconds}" for seconds in (60, 86400)]
    late = [f"prb, dispatch_time={seconds}" for seconds in (0, 500)]
    assert list(found) == ["easy", *shares, *late]
    jobs = load_workload(JOBS)
    expected = simulate(jobs, "prb", dispatch_time=500).metrics["mean_bsld"]
    assert found["prb, dispatch_time=500"]["mean_bsld"] == expected
    lines = as_csv("compare", JOBS, "--scheduler", "easy,prb", "--dispatch-time", "500")
    assert [line["mean_dispatch_s"] for line in lines] == ["", "500.0"]


# --- Machines ---------------------------------------------------------------------------------


def test_sizes() -> None:
    arguments = ("compare", JOBS, "--processors", "8,24,32", "--scheduler", "fcfs,easy,saf")
    value = as_json(*arguments)
    assert value["workload"] == load_workload(JOBS).name
    assert "processors" not in value
    jobs = {size: load_workload(JOBS, processors=size) for size in (8, 24, 32)}
    assert {one["processors"]: one["cleaning"] for one in value["machines"]} == {
        size: dict(of_size.cleaning) for size, of_size in jobs.items()
    }
    means: dict[int, dict[str, float]] = {size: {} for size in jobs}
    for entry, row in zip(value["results"], as_csv(*arguments), strict=True):
        size, name = entry["processors"], entry["scheduler"]["name"]
        means[size][name] = simulate(jobs[size], name, processors=size).metrics["mean_bsld"]
        assert entry["mean_bsld"] == means[size][name] == float(row["mean_bsld"])
        assert (row["processors"], row["scheduler"]) == (str(size), name)
    text = succeed(*arguments).stdout
    assert "cleaning on 8 processors:" in text
    assert "* best of its column and machine" in text
    for size, of_size in means.items():
        for name, mean in of_size.items():
            (shown,) = (one for one in text.splitlines() if one.startswith(f"{name} on {size} "))
            first = shown.removeprefix(f"{name} on {size} processors").split()[0]
            assert first.endswith("*") == (mean == min(of_size.values()))


def test_clusters_rules_and_columns_that_only_some_have(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text('name = "small"\n[[group]]\nname = "a"\nnodes = 4\ncore = 48\n')
    rules = ("--allocation", "first-fit,best-fit", "--scheduler", "easy")
    lines = as_csv("compare", TAURUS_JOBS, "--cluster", "taurus", "--cluster", small, *rules)
    assert [line["cluster"] for line in lines] == ["taurus", "taurus", "small", "small"]
    assert [line["allocation"] for line in lines] == ["first-fit", "best-fit"] * 2
    assert [line["scheduler"] for line in lines[:2]] == [
        "easy, allocation=first-fit", "easy, allocation=best-fit"
    ]  # fmt: skip
    assert [bool(row["energy_j"]) for row in lines] == [True, True, False, False]
    for row in lines:
        cluster = find_cluster("taurus" if row["cluster"] == "taurus" else small)
        jobs = load_workload(TAURUS_JOBS, cluster=cluster)
        expected = simulate(jobs, cluster=cluster, allocation=row["allocation"])
        assert float(row["mean_bsld"]) == expected.metrics["mean_bsld"]


@pytest.mark.slow
def test_pictures_of_several_machines(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    files = [tmp_path / "a.png", tmp_path / "a.html"]
    sizes = ("--processors", "24,32", "--scheduler", "fcfs,easy,easy-sjbf,saf")
    succeed("compare", JOBS, *sizes, "--picture", files[0], "--html", files[1])
    page = files[1].read_text()
    assert page.count("How many jobs have a bounded slowdown above x.</figcaption>") == 2
    assert "best of its row and machine" in page
    assert "saf on 24 processors" in page


# --- Limits -----------------------------------------------------------------------------------

CAP = "percent=60,start=20000,end=60000"


@pytest.mark.slow
def test_rules_of_power_under_a_cap(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    limited = ("--cluster", "taurus", "--cap", CAP, "--scheduler", "easy,saf")
    page = tmp_path / "a.html"
    powers_given = ("--power", "none,shut", "--power", "mix", "--html", page)
    found = results(TAURUS_JOBS, *limited, *powers_given)
    assert "limits: cap 60 % (" in page.read_text()
    powers = ("none", "shut", "mix")
    assert list(found) == [f"{name}, power={p}" for name in ("easy", "saf") for p in powers]
    cap = PowerCap.of(find_cluster("taurus"), 0.6, start=20_000, end=60_000)
    for name, power in product(("easy", "saf"), powers):
        expected = simulate(
            load_workload(TAURUS_JOBS), name, cluster="taurus", limits=[cap], power=power
        )
        entry = found[f"{name}, power={power}"]
        for metric in ("mean_bsld", "energy_j", "cap_exceeded_s"):
            assert entry[metric] == expected.metrics[metric]
    text = succeed("compare", TAURUS_JOBS, *limited, "--power", "shut,mix").stdout
    assert "\nlimits: cap 60 % (" in text
    heading = " ".join(text.split("─")[0].split())
    assert "energy" in heading
    assert "above" in heading


@pytest.mark.slow
def test_those_that_are_compared_under_limits_if_none_is_named() -> None:
    found = results(TAURUS_JOBS, "--cluster", "taurus", "--cap", CAP)
    assert list(found) == [name for name in DEFAULT if name != "conservative"]


def test_a_cap_on_two_machines_is_a_share_of_each(tmp_path: Path) -> None:
    half = tmp_path / "half.toml"
    text = succeed("machines", "taurus").stdout
    nodes = find_cluster("taurus").nodes
    assert f"nodes = {nodes}" in text
    half.write_text(text.replace(f"nodes = {nodes}", f"nodes = {nodes // 2}"))
    machines = ("--cluster", "taurus", "--cluster", half, "--scheduler", "easy")
    entries = as_json("compare", TAURUS_JOBS, *machines, "--cap", CAP)["results"]
    for entry, machine in zip(entries, ("taurus", half), strict=True):
        cluster = find_cluster(machine)
        cap = PowerCap.of(cluster, 0.6, start=20_000, end=60_000)
        jobs = load_workload(TAURUS_JOBS, cluster=cluster)
        expected = simulate(jobs, cluster=cluster, limits=[cap]).metrics
        assert entry["mean_bsld"] == expected["mean_bsld"]
        assert entry["energy_j"] == expected["energy_j"]
    told = succeed("compare", TAURUS_JOBS, *machines, "--cap", CAP).stdout
    assert told.count("limits on ") == 2


# --- What cannot be compared ------------------------------------------------------------------


def test_help_tells_which_options_may_be_given_several_times() -> None:
    text = " ".join(succeed("compare", "--help").stdout.split())
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
    found = results(JOBS, "--scheduler", "saf", f"--{option}", f"none,{value}")
    assert list(found) == [f"saf, {option}=none", f"saf, {option}={value}"]
    behind = results(JOBS, "--scheduler", "saf", f"--{option}", f"{value},none")
    assert list(behind) == list(found)[::-1]
    for command in (["simulate", JOBS], ["evaluate", "saf", "--workload", JOBS]):
        for joined in (f"none,{value}", f"{value};none"):
            failed = run(*command, f"--{option}", joined)
            assert failed.exit_code == 1
            assert f"{option} {joined!r}: a scheduler has none or the rest" in failed.stderr


def test_a_row_says_which_of_its_own_rules_it_has_lost() -> None:
    own = "saf:quota=user:jobs=1,threshold=600"
    found = results(JOBS, "--scheduler", f"{own},saf", "--quota", "none")
    assert list(found) == [f"{own} (no quota)", "saf"]
    assert list(results(JOBS, "--scheduler", own, "--threshold", "900")) == [
        f"{own} (threshold 900 s)"
    ]
    passes = "saf:passes=per-event"
    assert list(results(JOBS, "--scheduler", passes, "--passes", "per-timestamp")) == [
        f"{passes} (per-timestamp passes)"
    ]
    both = results(JOBS, "--scheduler", own, "--quota", "none,user:jobs=2")
    assert list(both) == [f"{own}, quota=none", f"{own}, quota=user:jobs=2"]


def test_time_outside_of_the_queue_is_told(tmp_path: Path) -> None:
    """By hand: of two jobs of one user the second is submitted once the first has run 10 min."""
    log = tmp_path / "two.csv"
    log.write_text(
        "submit_time,run_time,requested_time,requested_processors,user\n"
        "0,600,600,1,ann\n0,600,600,1,ann\n"
    )
    arguments = (log, "--processors", 4, "--quota", "user:submitted=1", "--scheduler", "easy")
    told = "jobs were submitted 5 min later than in the log on average; no wait counts this"
    assert told in succeed("simulate", *arguments).stdout.splitlines()
    lines = succeed("compare", *arguments, "--policy", "fcfs,saf").stdout.splitlines()
    assert sum(line.endswith(f": {told}") for line in lines) == 2
    plain = succeed("compare", log, "--processors", 4, "--scheduler", "easy").stdout
    assert "no wait counts" not in plain


# --- Who is left out --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((JOBS, "--preemption", "user:2>1"), "hold and preemption='user:2>1'"),
        ((JOBS, "--maintenance", "100/2000"), "hold and maintenance="),
        ((JOBS, "--backfill", "conservative"), "hold and backfill='conservative'"),
        (
            (TAURUS_JOBS, "--cluster", "taurus", "--cap", "percent=60,end=9000"),
            "hold and limits of power",
        ),
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
    assert left.endswith("; aged-safe:hold=none has not)")
    alone = line("compare", *arguments, "--scheduler", "aged-safe")
    assert f"aged-safe: {reason}" in alone
    assert "; aged-safe:hold=none has not)" in alone


def test_what_goes_with_no_scheduler_is_refused() -> None:
    said = line(
        "compare", JOBS, "--scheduler", "easy,saf", "--hold", "0.1", "--maintenance", "100/2000"
    )
    assert "easy: hold and maintenance='100/2000' do not go together" in said
    assert "has not" not in said  # whoever gave it knows it


def test_who_does_not_go_with_one_value_of_a_rule_is_left_out_there() -> None:
    given = ("--scheduler", "easy,saf-typical-20h-hold", "--maintenance", "none,100/2000")
    done = succeed("compare", JOBS, *given, "--format", "csv")
    names = [row["scheduler"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert names == [
        "easy, maintenance=none", "easy, maintenance=100/2000",
        "saf-typical-20h-hold, maintenance=none",
    ]  # fmt: skip
    assert "left out: saf-typical-20h-hold, maintenance=100/2000: hold and" in done.stderr
