"""Rules of a scheduler: as values, as texts and in files."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from mistakes import mistakes_of
from preemption_strategies import urgent

import hpcgym
from hpcgym import Scheduler, load_workload, simulate
from hpcgym.baselines import find_scheduler
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.scheduler.asked_for import OF_JOBS, OF_MACHINES, SITE_RULES, settled
from hpcgym.scheduler.backfilling import Hold, SlurmBackfill
from hpcgym.scheduler.files import read_scheduler, write_scheduler
from hpcgym.scheduler.limits import EnergyBudget, PowerCap, read_limits
from hpcgym.scheduler.policies import index
from hpcgym.scheduler.restrictions import Preemption, Quota, Window, read_windows
from hpcgym.scheduler.rules import RULES, read_quotas
from hpcgym.workload.model import pairs_of

EASY = {
    "policy": "fcfs",
    "backfill": "easy",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
    "hold": None,
    "relax": None,
    "candidate_estimate": None,
    "quota": None,
    "maintenance": None,
    "preemption": None,
    "dependencies": "none",
    "passes": "per-timestamp",
    "policy_estimate": "requested",
    "allocation": "first-fit",
    "dispatcher": None,
    "dispatch_time": None,
    "fair_share": None,
    "power": "none",
    "partners": "fill",
    "pairs_above": None,
    "pair_estimate": "known",
}


def test_the_default_is_easy() -> None:
    assert Scheduler().describe() == EASY
    assert hpcgym.simulate(tiny(), Scheduler()).scheduler == Scheduler()


def tiny() -> hpcgym.Workload:
    return hpcgym.load_workload("lublin:jobs=20,processors=8,seed=1")


def test_but_changes_what_it_names_and_nothing_else() -> None:
    easy = Scheduler()
    other = easy.but(backfill_order="sjbf", threshold=60)
    assert other.describe() == {**EASY, "backfill_order": "sjbf", "threshold": 60}
    assert easy.describe() == EASY


def test_the_usual_correction_goes_by_whether_there_is_a_dispatcher() -> None:
    assert Scheduler().but(dispatcher="prb").correction == "next-second"
    assert Scheduler(dispatcher="prb") == Scheduler(dispatcher="prb", correction="next-second")
    changed = Scheduler(dispatcher="prb").but(allocation="best-fit")
    assert changed.correction == "next-second"
    assert changed.but(dispatcher=None).correction == "requested"
    assert Scheduler().but(correction=None) == Scheduler()
    kept = pickle.loads(pickle.dumps(Scheduler()))
    assert kept.but(dispatcher="prb").correction == "next-second"


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fcfs", "fcfs"), (" fcfs ", "fcfs"), ("sjf", "spf"), ("lcfs", "spf"), ("wait", "spf"),
        ((0, 0, 1, 0, 0, 0), "spf"), ({"area": -1}, "spf"), (lambda view: view.wait, "spf"),
        ("fairshare", "fairshare"), ("fs+efs", "fs+efs"), ("fairshare + wait", "spf"),
        ("popularity", "fcfs"),
    ],
)  # fmt: skip
def test_a_policy_alone_brings_its_usual_backfill_order(policy: Any, order: str) -> None:
    for alone in (
        Scheduler(policy), Scheduler().but(policy=policy), Scheduler("saf").but(policy=policy),
        pickle.loads(pickle.dumps(Scheduler("saf"))).but(policy=policy),
        Scheduler(policy, backfill_order="sqf").but(backfill_order=None),
    ):  # fmt: skip
        assert alone.backfill_order == order
    for kept in (
        Scheduler(policy, backfill_order="sqf"), Scheduler(backfill_order="sqf").but(policy=policy)
    ):  # fmt: skip
        assert kept.backfill_order == "sqf"


@pytest.mark.parametrize("given", ["requested", "incremental", "kill"])
def test_a_correction_that_is_given_is_kept(given: str) -> None:
    for begin in (Scheduler(correction=given), Scheduler().but(correction=given)):
        assert begin.but(dispatcher="prb").correction == given
        assert begin.but(dispatcher="prb").but(dispatcher=None).correction == given
    assert Scheduler(dispatcher="prb", correction=given).correction == given
    assert Scheduler(dispatcher="prb").but(correction=given).correction == given


ALL = few_jobs(
    *(4, [0, 1, 2], [10] * 3, [2] * 3, [20] * 3),
    job_number=[5, 7, 9],
    preceding_job=[-1, 5, 7],
    header={"UnixStartTime": ["1772352000"], "TimeZoneString": ["Europe/Berlin"]},
)
MACHINE = Cluster(
    groups=(NodeGroup("thin", 2, {"core": 2}), NodeGroup("gpu", 1, {"core": 2, "gpu": 1}))
)
CALLED = Cluster(groups=(NodeGroup("n[01-03]", 3, {"core": 2}),))


def test_a_prediction_that_kills_goes_with_windows() -> None:
    hpcgym.simulate(ALL, maintenance="5/10", estimate="ave2", correction="kill")


FOLLOWS = {"dependencies": "after"}
NAMED = replace(urgent(job_number=[5, 7, 9, 11]), header={"Queue": ["1 low", "2 high"]})


@pytest.mark.parametrize(
    ("columns", "rules", "message"),
    [
        (
            {},
            {"preemption": "qos:hihg>low"},
            "nothing is called 'hihg' in queue; did you mean 'high",
        ),
        ({}, {"preemption": "qos:hihg>low"}, "preemption qos:hihg>low: there is no job of: hihg"),
        ({}, {"preemption": "qos:high>low;gold>low"}, "gold>low: there is no job of: gold$"),
        ({}, {"quota": "queue=hgih:jobs=1"}, "'hgih' in queue; did you mean 'high'"),
        ({}, {"quota": "queue=hgih:jobs=1"}, "no job falls under these quotas: queue=hgih:jobs=1"),
        ({}, {"maintenance": "500/600"}, "no window is between .*: 500/600"),
        (
            {"preceding_job": [-1, 5, 77, -1]},
            FOLLOWS,
            "follow only missing jobs",
        ),
        ({}, FOLLOWS, "no job follows another by its preceding_job"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_in_no_log_is_said(
    columns: dict[str, Any], rules: dict[str, Any], message: str
) -> None:
    with pytest.warns(WorkloadWarning, match=message):
        hpcgym.simulate(NAMED.with_columns(**columns), **rules)


def test_descriptions_are_exact() -> None:
    """Two schedulers that differ have descriptions that differ, and weights can be read back."""
    weights = (0.1, 1 / 3, -1e-17, 0, 12345678.9, 2.0)
    text = Scheduler(policy=weights).describe()["policy"]
    assert text == "0.1,0.3333333333333333,-1e-17,0,12345678.9,2"
    assert isinstance(text, str)
    assert Scheduler(policy=tuple(map(float, text.split(",")))) == Scheduler(policy=weights)
    named = Scheduler(backfill_order={"wait": 1 / 3, "f1": -2})
    assert named.describe()["backfill_order"] == "wait=0.3333333333333333, f1=-2"
    assert Scheduler(estimate=[1, 2]).describe()["estimate"] == "given"
    assert Scheduler(threshold=np.int64(60)).describe()["threshold"] == 60  # type: ignore[arg-type]
    assert Scheduler(threshold="80h").describe()["threshold"] == 288_000  # type: ignore[arg-type]


def test_what_the_caller_changes_later_does_not_change_the_scheduler() -> None:
    weights, named = np.ones(6), {"wait": 1.0}
    scheduler = Scheduler(policy=weights, backfill_order=named)
    weights[0] = named["wait"] = 9
    assert scheduler.policy == (1.0,) * 6
    assert scheduler.backfill_order == {"wait": 1.0}


def test_numpy_and_python_numbers_make_one_scheduler() -> None:
    assert Scheduler(policy=np.arange(6), threshold=np.float32(1.5)) == Scheduler(  # type: ignore[arg-type]
        policy=[0, 1, 2, 3, 4, 5], threshold=1.5
    )


@pytest.mark.parametrize("threshold", [0, 0.5, 10**30, float("inf")])
def test_any_threshold_from_0_on(threshold: float) -> None:
    workload = hpcgym.load_workload("lublin:jobs=300,processors=32,seed=2,load=1.5")
    result = hpcgym.simulate(workload, "saf", threshold=threshold)
    hpcgym.validate_schedule(result)
    first_come = hpcgym.simulate(workload, "easy", backfill_order="spf")
    never = hpcgym.simulate(workload, "saf")
    # waits are whole seconds: longer than half a second is longer than none
    same = first_come if threshold < 1 else never
    assert result.start.tolist() == same.start.tolist()
    assert never.start.tolist() != first_come.start.tolist()


FINITE = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x != 0)
ANY_POLICY = st.one_of(
    st.sampled_from(["saf", "wfp3", "20 * wait - requested * processors"]),
    st.dictionaries(st.sampled_from(["area", "wait", "expansion"]), FINITE, min_size=1),
    st.tuples(*[FINITE] * 6),
)
HOLDS = st.none() | st.builds(
    Hold, st.floats(0.01, 1), st.floats(1, 1e6), erode_s=st.sampled_from([1, 3600, float("inf")])
)


@given(
    policy=ANY_POLICY,
    backfill_order=st.one_of(st.just("sjbf"), ANY_POLICY),
    threshold=st.none() | st.integers(0, 10**9) | st.floats(0, 1e9),
    hold=HOLDS,
    estimate=st.sampled_from(["requested", "ave2", "regression:over=squared"]),
    fair_share=st.none() | st.just({"half_life_s": 3600, "shares": {1: 2.0, 2: 0.5}}),
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, **rules: object) -> None:
    path = tmp_path_factory.getbasetemp() / "rules.toml"
    scheduler = Scheduler(**rules)  # type: ignore[arg-type]
    write_scheduler(path, scheduler, "why\nand when")
    read = read_scheduler(path)
    assert read.describe() == scheduler.describe()
    assert read.hold == scheduler.hold
    assert read.fair_share == scheduler.fair_share
    assert path.read_text().startswith("# why\n# and when\n")


def test_no_file_holds_a_function_or_an_array(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    assert not path.exists()


def test_all_are_rules_of_schedulers() -> None:
    assert {*OF_JOBS, *OF_MACHINES} < {*SITE_RULES} <= {*RULES}


def test_what_is_given_comes_first_then_what_was_brought_first() -> None:
    brought = [{"quota": None, "dependencies": "after"}, {"quota": "user:jobs=1", "threshold": 5}]
    assert settled(OF_JOBS, {}, brought) == {"dependencies": "after", "quota": "user:jobs=1"}
    assert settled(OF_JOBS, {"quota": None, "hold": 0.1}, brought) == {
        "quota": None,
        "dependencies": "after",
    }


def count(monkeypatch: pytest.MonkeyPatch, *parsers: tuple[Any, str]) -> Counter[str]:
    """Return how often each parser has run, from now on."""
    runs: Counter[str] = Counter()

    def counting(name: str, parse: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            runs[name] += 1
            return parse(*args, **options)

        return counted

    for owner, parser in parsers:
        name = f"{owner.__name__}.{parser}"
        monkeypatch.setattr(owner, parser, counting(name, getattr(owner, parser)))
    return runs


def test_a_simulation_parses_each_rule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = hpcgym.load_workload("lublin:jobs=20,processors=8,seed=1")
    hpcgym.simulate(jobs)  # named schedulers are parsed as they are first asked for
    of_rules = [(rule, "parse") for rule in (Quota, Window, Preemption, SlurmBackfill)]
    runs = count(monkeypatch, *of_rules, (index, "read_expression"))
    rules = {"quota": "user:jobs=10", "maintenance": "90000/90060"}
    scheduler = hpcgym.Scheduler("wait - area / 3600", backfill="slurm:bf_interval=60")
    hpcgym.simulate(jobs, scheduler, **rules)
    once = [
        "Quota.parse",
        "Window.parse",
        "SlurmBackfill.parse",
        f"{index.__name__}.read_expression",
    ]
    assert runs == dict.fromkeys(once, 1)


def test_percents_of_limits_are_of_all_nodes_busy() -> None:
    taurus = find_cluster("taurus")
    limits = read_limits(taurus, ["percent=60,start=5"], ["percent=50,start=0,end=100,shutdown"])
    budget = EnergyBudget.of(taurus, 0.5, 0, 100, shutdown=True)
    assert limits == (PowerCap.of(taurus, 0.6, 5), budget)


NAMES = st.sampled_from(["1", "a b", "x-y", "high", "é"])
WORDS = st.sampled_from(["user", "group", "queue", "array"])
DATES = st.sampled_from(["2026-03-01", "2026-03-01T08:00", "2026-03-01 08:00:01+01:00"])
AMOUNTS = ["jobs", "processors", "submitted", "gpu", "mem"]
QUOTAS = st.builds(
    Quota,
    each=st.lists(WORDS, max_size=3, unique=True).map(tuple),
    where=st.lists(st.tuples(WORDS, NAMES), max_size=2).map(tuple),
    bounds=st.lists(st.sampled_from(AMOUNTS), min_size=1, unique=True).flatmap(
        lambda names: st.tuples(
            *(st.tuples(st.just(name), st.integers(1, 10**12 - 1)) for name in names)
        )
    ),
)
MOST = st.one_of(st.none(), st.integers(1, 2**31))
WINDOWS = st.one_of(
    st.builds(Window, st.integers(0, 100), st.integers(101, 2**53), MOST),
    st.builds(Window, DATES, DATES, nodes=st.sampled_from(["", "gpu", "thin,0-3,7"])),
)


@given(st.lists(QUOTAS, max_size=3), st.lists(WINDOWS, max_size=3), HOLDS)
def test_texts_can_be_read_back(quotas: Any, windows: Any, hold: Hold | None) -> None:
    """And tables, where a rule has one."""
    for read, given_ in ((read_quotas, quotas), (read_windows, windows)):
        text = "; ".join(map(str, given_)) or None
        assert read(text) == read(given_) == tuple(given_)
    if hold is not None:
        assert Hold.parse(str(hold)) == Hold.parse(json.loads(json.dumps(hold.table()))) == hold


@given(st.sets(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_preemption_as_text_and_back(pairs: set[tuple[str, str]]) -> None:
    for mode in ("requeue", "cancel", "suspend"):
        rule = Preemption("partition", tuple(sorted(pairs)), mode)
        assert Preemption.parse(str(rule)) == rule
        times = rule.stopped if mode != "suspend" else ()
        for some in (times, times[:1]):
            exempted = tuple((level, 60) for level in some)
            for exempt, grace in ((exempted, ()), ((), exempted), (exempted, exempted[:1])):
                timed = Preemption("partition", rule.pairs, mode, exempt, grace)
                assert Preemption.parse(str(timed)) == timed
        assert all(rule.levels[level] > rule.levels[other] for level, other in pairs)


def test_what_texts_and_numbers_stand_for() -> None:
    both = Hold(0.14, 3272, 64, math.inf, "both")
    assert Scheduler(hold="0.14,from_s=3272,erode_s=inf,by=both").hold == both
    assert Scheduler(hold=0) == Scheduler(hold={"share": 0, "from_s": 1}) == Scheduler()
    assert Scheduler(hold="0.1,").hold == Hold(0.1)
    assert Scheduler(backfill="slurm:bf_interval=30").backfill == "slurm"
    assert Scheduler(backfill=SlurmBackfill(60)).backfill == "slurm:bf_interval=60"  # type: ignore[arg-type]
    named = {0: "none", 1: "easy", 2: "depth:2", "3": "depth:3", "depth:1": "easy"}
    for given_, name in named.items():
        assert Scheduler(backfill=given_).backfill == name  # type: ignore[arg-type]
    for text, depth in (("depth:5", 5), ("conservative", None), ("slurm:bf_max_job_test=7", 7)):
        assert Scheduler(backfill=text).reserve.depth == depth


test_mistakes = mistakes_of(
    globals(),
    find_scheduler,
    load_workload,
    pairs_of,
    simulate,
    errors=(AttributeError, HpcgymError),
)
