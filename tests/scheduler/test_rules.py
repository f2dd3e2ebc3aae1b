"""Rules of a scheduler: as values, as texts and in files."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from preemption_strategies import urgent

import hpcgym
from hpcgym import Scheduler, load_workload, simulate
from hpcgym.baselines import find_scheduler
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadWarning
from hpcgym.scheduler.asked_for import OF_JOBS, OF_MACHINES, SITE_RULES, settled
from hpcgym.scheduler.backfilling import Hold, SlurmBackfill
from hpcgym.scheduler.estimates import JOB_FEATURES, Regression
from hpcgym.scheduler.estimates.by_name import check_estimate
from hpcgym.scheduler.files import read_scheduler, write_scheduler
from hpcgym.scheduler.policies import index
from hpcgym.scheduler.restrictions import Preemption, Quota, Window
from hpcgym.scheduler.rules import RULES

EASY = {
    "policy": "fcfs",
    "backfill": "easy",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "threshold": None,
    "hold": None,
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
    with pytest.raises(FrozenInstanceError):
        easy.policy = "saf"  # type: ignore[misc]


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


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"backfill": "eazy"}, "unknown backfill 'eazy'; did you mean 'easy'? known are none, ea"),
        ({"backfill": ["easy"]}, "unknown backfill ['easy']"),
        ({"correction": "zzz"}, "unknown correction 'zzz'; known are requested, incremental, rec"),
        ({"passes": "per_event"}, "unknown passes 'per_event'; did you mean 'per-event'"),
        (
            {"backfill_order": "sjbg"},
            "unknown backfill_order 'sjbg'; did you mean 'sjbf'? known are",
        ),
        ({"backfill_order": "zzz"}, "unknown backfill_order 'zzz'; known are sjbf, fcfs, lcfs"),
        ({"backfill_order": (1, 2)}, "backfill_order: a policy has 6 weights"),
        ({"backfill_order": {"q": 1}}, "unknown feature in backfill_order 'q'; known are proces"),
        ({"backfill_order": np.zeros(6)}, "backfill_order: a policy needs a weight other than 0"),
        ({"backfill_order": 3}, "backfill_order must be a name, six weights or weights by fe"),
        ({"policy": "sjbf"}, "unknown policy 'sjbf'; did you mean 'sjf'"),
        ({"estimate": "guess"}, "unknown estimate 'guess'"),
        ({"threshold": -1}, "threshold must be a number of at least 0 s, not -1"),
        ({"threshold": "soon"}, "threshold must be a number of at least 0 s, or a time such as"),
        ({"threshold": "-5h"}, "or a time such as '5h' or '2d', not '-5h'"),
        ({"threshold": np.array([1.0])}, "threshold must be a number of at least 0 s"),
        ({"backfil": "easy"}, "unknown rule 'backfil'; did you mean 'backfill'"),
        ({"depth": 1}, "unknown rule 'depth'; known are policy, backfill, backfill_order"),
    ],
)
def test_wrong_rules_are_named(rules: dict[str, Any], message: str) -> None:
    for make in (Scheduler().but, lambda **words: hpcgym.simulate(tiny(), "easy", **words)):
        with pytest.raises(HpcgymError) as caught:
            make(**rules)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("polcy = 'saf'", "rules.toml: unknown rule 'polcy'; did you mean 'policy'"),
        ("policy = 'swf'", "rules.toml: unknown policy 'swf'"),
        ("hold = { share = 2 }", "rules.toml: hold: share must be a number from 0 to 1"),
        ("policy = ", "rules.toml"),
        ("threshold = 'soon'", "rules.toml: threshold"),
        ("backfill = ['easy']", "rules.toml: unknown backfill"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(HpcgymError, match=said):
        find_scheduler(str(path))


def test_no_file_holds_a_function_or_an_array(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    with pytest.raises(HpcgymError, match=r"policy: .* cannot be written to a file"):
        write_scheduler(path, Scheduler(lambda view: view.wait))
    with pytest.raises(HpcgymError, match=r"estimate: .* cannot be written to a file"):
        write_scheduler(path, Scheduler(estimate=np.array([1, 2])))
    assert not path.exists()


def test_a_missing_file_is_named() -> None:
    with pytest.raises(HpcgymError, match=r"nowhere\.toml"):
        simulate(load_workload("lublin:jobs=2,processors=2"), "nowhere.toml")


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
    of_rules = [(one, "parse") for one in (Quota, Window, Preemption, SlurmBackfill)]
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


def test_names_of_the_log() -> None:
    jobs = replace(urgent(), header={"Queue": ["1 low", "2 high"]})
    assert hpcgym.simulate(jobs, preemption="qos:high>low").restarts.sum() == 2
    with pytest.warns(WorkloadWarning) as told:
        hpcgym.simulate(jobs, preemption="qos:hihg>low")
    texts = [str(one.message) for one in told]
    assert any("nothing is called 'hihg' in queue; did you mean 'high'?" in one for one in texts)
    assert "workload: preemption qos:hihg>low: no job may stop another" in texts
    with pytest.warns(WorkloadWarning, match="qos:high>low;gold>low: there is no job of gold$"):
        hpcgym.simulate(jobs, preemption="qos:high>low;gold>low")


NAMES = st.sampled_from(["1", "a b", "x-y", "high", "é"])


@given(st.sets(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_as_text_and_back(pairs: set[tuple[str, str]]) -> None:
    for mode in ("requeue", "cancel", "suspend"):
        rule = Preemption("partition", tuple(sorted(pairs)), mode)
        assert Preemption.parse(str(rule)) == rule
        times = rule.stopped if mode != "suspend" else ()
        for some in (times, times[:1]):
            exempt = Preemption("partition", rule.pairs, mode, tuple((one, 60) for one in some))
            assert Preemption.parse(str(exempt)) == exempt
        assert all(rule.levels[one] > rule.levels[other] for one, other in pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue", "preemption 'queue' is neither a file nor a rule such as 'partition:"),
        ("queue:1", "neither a file nor a rule"),
        ("queue:1>2;qos:2>3", "one column is for all names, queue: '2' stands with another, qos"),
        ("queue:1>2;3", "'3' does not say who stops whom"),
        ("queues:1>2", "unknown column 'queues'"),
        ("queue:1>2,suspended", "unknown mode 'suspended'; did you mean 'suspend'"),
        ("queue:1>2;2>1", "jobs could stop each other in a circle"),
        ("queue:1>1", "jobs could stop each other in a circle"),
        ("queue:1>", "a name is missing"),
        ("queue:1>2,suspend,exempt=60", "exempt goes with requeue and cancel; with suspend Slurm"),
        ("queue:1>2,exempt=1=60", "exempt: nobody may stop jobs of '1'"),
        ("queue:1>2,exempt=2=60;2=70", "exempt: '2' is there twice"),
        ("queue:1>2,exempt=0", "exempt: seconds must be a whole number from 1 to 1,000,000,000"),
        ("qos.txt", "qos.txt: no such file"),
        (7, "preemption must be a text such as"),
    ],
)
def test_what_is_no_preemption_is_one_line(text: Any, message: str) -> None:
    with pytest.raises(HpcgymError) as error:
        hpcgym.simulate(urgent(), preemption=text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_of_qos(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    rows = ["low|0|00:00:00||cluster", "high|9|00:00:00|low,free|cluster", "free|0|00:05:00||"]
    file.write_text("\n".join(["Name|Priority|GraceTime|Preempt|PreemptMode", *rows]) + "\n")
    with pytest.warns(HpcgymWarning, match=r"not followed by preemption: free: GraceTime$"):
        scheduler = hpcgym.Scheduler(preemption=str(file))
    assert str(scheduler.preemption) == "qos:high>low;high>free"
    assert hpcgym.Scheduler(preemption=scheduler.preemption) == scheduler
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||cancel\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,cancel"
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||gang,suspend\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,suspend"
    file.write_text("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||OFF\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,cancel"
    times = "Name|Preempt|PreemptMode|PreemptExemptTime\na|b,c|{0}|\nb||{0}|00:01:00\nc||{0}|\n"
    file.write_text(times.format("cancel"))
    assert (
        str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b;a>c,cancel,exempt=b=60"
    )
    file.write_text(times.format("suspend"))
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b;a>c,suspend"
    file.write_text("Name|Preempt|MaxJobsPU|MaxWall|GrpTRES\na|b|3||cpu=4\nb|||1-00:00:00|\n")
    with pytest.warns(HpcgymWarning, match="by preemption: a: MaxJobsPU, a: GrpTRES, b: MaxWall$"):
        hpcgym.Scheduler(preemption=str(file))
    for text, told in (
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||requeue\n", "several ways, cancel, req"),
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||cluster\n", "ways, cancel, requeue"),
        ("Name|Preempt|PreemptMode\na|b|\nb||gang\n", "unknown mode 'gang'"),
        ("Name|Preempt|PreemptMode\na|b|\nb||off\n", "the PreemptMode of all is OFF"),
        ("Name|Preempt\na|\n", "no QOS may stop another"),
    ):
        file.write_text(text)
        with pytest.raises(HpcgymError, match=told):
            hpcgym.Scheduler(preemption=str(file))


PLAIN = "regression:over=squared,under=squared,weight=1"


def test_the_usual_values_are_those_of_the_published_campaign() -> None:
    usual = Regression()
    assert (usual.over_scale, usual.under_scale, usual.threshold) == (1.0, 1.0, 0.0)
    assert (usual.eta, usual.l2, usual.degree) == (5000.0, 4e9, 2)
    assert usual.features == tuple(JOB_FEATURES)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"over": "absolute", "under": "exponential"}, "over=absolute,under=exponential,weight=1"),
        ({"weight": "wide"}, "over=squared,under=squared,weight=wide"),
        (
            {"over_scale": 0.25, "threshold": 60},
            "over=squared,under=squared,over_scale=0.25,threshold=60,weight=1",
        ),
        (
            {"under_scale": 1e-7, "eta": 2.5, "l2": 0, "degree": 1},
            "over=squared,under=squared,under_scale=1e-07,weight=1,eta=2.5,l2=0,degree=1",
        ),
        (
            {"features": ["requested", "ave2"], "l2": 1e30},
            "over=squared,under=squared,weight=1,l2=1e+30,features=requested+ave2",
        ),
        ({"features": ("week_sin",)}, "over=squared,under=squared,weight=1,features=week_sin"),
    ],
)
def test_a_text_says_all_of_a_regression(given: dict[str, Any], text: str) -> None:
    regression = Regression(**given)
    assert str(regression) == f"regression:{text}"
    assert Regression.parse(f"regression:{text}") == regression
    assert check_estimate(regression) == check_estimate(str(regression)) == str(regression)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regresion:over=squared", "unknown regression 'regresion:over=squared'"),
        ("regression:ovr=squared", "'ovr'; did you mean 'over'"),
        ("regression:over=linear", "unknown over 'linear'; known are absolute, squared, expon"),
        ("regression:weight=2", "unknown weight '2'"),
        ("regression:eta=fast", "eta must be a number, not 'fast'"),
        ("regression:eta=0", "eta must be a number above 0, not 0.0"),
        ("regression:threshold=nan", "threshold must be a number of at least 0, not nan"),
        ("regression:degree=1.5", "degree must be a number, not '1.5'"),
        ("regression:degree=3", "degree must be 1 or 2, not 3"),
        ("regression:features=ave9", "unknown feature 'ave9'; did you mean 'ave"),
        ("regression:features=", "unknown feature ''"),
        ("regression:features=ave2+ave2", "features: a feature is named twice"),
        # features are joined by "+"
        ("regression:features=ave2,last", "'last' is no attribute=value"),
        ("regression:squared", "'squared' is no attribute=value"),
    ],
)
def test_texts_that_are_no_regression(text: str, message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        Regression.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"over": None}, "unknown over None"),
        ({"eta": "5"}, "eta must be a number above 0, not '5'"),
        ({"features": "ave2"}, "features must be names of features, at least one, not 'ave2'"),
        ({"features": ()}, "features must be names of features, at least one"),
        ({"degree": 0}, "degree must be 1 or 2, not 0"),
    ],
)
def test_values_that_no_regression_has(given: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        Regression(**given)
    assert message in str(caught.value)
