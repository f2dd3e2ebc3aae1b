"""Policies that are expressions: what they order, what they refuse, where they may stand."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
from click.testing import CliRunner
from drawing import given, settings
from drawing import strategies as st
from expression_strategies import trees
from few_jobs import few_jobs
from mistakes import mistakes_of
from strategies import workloads

import hpcgym
from hpcgym._engine import values_of
from hpcgym.baselines import find_baseline
from hpcgym.cli import app
from hpcgym.envs.ids import id_of
from hpcgym.errors import WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import ByExpression
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.policies.expressions import (
    FUNCTIONS,
    NAMES,
    OF_AMOUNTS,
    is_expression,
    read_expression,
)
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.study import evaluate
from hpcgym.workload.model import Workload

WFP3 = "(wait / requested) ** 3 * processors"
#: Policies by name or weights, and expressions that say the same.
SAME: list[tuple[Any, str]] = [
    ("fcfs", "wait"),
    ("fcfs", "2 * wait + 3"),
    ("lcfs", "-wait"),
    ("lcfs", "submit"),
    ("fcfs", "-submit"),
    ("spf", "-requested"),
    ("saf", "-(requested * processors)"),
    ("saf", "-area"),
    ("sqf", "-processors / 3"),
    ("lrf", "requested / processors"),
    ("lexp", "expansion"),
    ("lexp", "(wait + requested) / requested"),
    ("unicef", "unicef"),
    ("f1", "-f1"),
    ("f3", "-f3"),
    ({"area": -1.0, "wait": 20.0}, "-(requested * processors) + 20 * wait"),
    ({"wait": 2.0, "expansion": 300.0}, "2 * wait + 300 * (1 + wait / requested)"),
    ("fairshare", "fairshare"),
    ({"fairshare": 3.0, "wait": 1e-4}, "3 * fairshare + wait / 10_000"),
    ({"fairshare": -1.5, "area": -1e-6}, "-area * 1e-6 - fairshare / (2 / 3)"),
]


@settings(max_examples=40)
@given(
    workloads(), st.sampled_from(SAME), st.sampled_from(["none", "easy", "depth:3", "conservative"])
)
def test_they_order_as_policies_by_name_do(
    workload: Workload, same: tuple[Any, str], backfill: str
) -> None:
    rules: dict[str, Any] = {"backfill": backfill, "backfill_order": "spf", "threshold": 100}
    named = hpcgym.simulate(workload, policy=same[0], **rules)
    result = hpcgym.simulate(workload, policy=same[1], **rules)
    assert result.start.tolist() == named.start.tolist()
    second = hpcgym.simulate(workload, backfill_order=same[0])
    assert hpcgym.simulate(workload, backfill_order=same[1]).start.tolist() == second.start.tolist()


# --- Against Python -------------------------------------------------------------------------------


@settings(max_examples=300)
@given(trees(), workloads(), st.integers(0, 2**16))
def test_values_are_those_of_python(text: str, workload: Workload, seed: int) -> None:
    """Also of those that are worked out once, before jobs wait."""
    slow = ByExpression(text, workload)
    jobs = [replace(job, number=k) for k, job in enumerate(jobs_of(workload))]
    waits = np.random.default_rng(seed).integers(0, 10**4, len(jobs))
    columns, rows = JobColumns(workload), np.arange(len(jobs))
    anew = read_expression(f"{text} + 0 * wait ** 2")
    assert anew.general
    expected = [
        slow(job, job.submit + wait) for job, wait in zip(jobs, waits.tolist(), strict=True)
    ]
    values = values_of(anew.program(columns), len(jobs), rows, waits.astype(np.float64))
    assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)
    at_first = [slow(job, job.submit) for job in jobs]
    assert anew.values(columns) == pytest.approx(at_first, rel=1e-12, abs=1e-12)


@settings(max_examples=200)
@given(trees(leaves=["wait", "processors", "1", "(0 / 0)", "(0 / 0)"]), workloads())
def test_values_without_a_number_are_those_of_python(text: str, workload: Workload) -> None:
    slow = ByExpression(text, workload)
    jobs = [replace(job, number=k) for k, job in enumerate(jobs_of(workload))]
    program = read_expression(f"{text} + 0 * wait ** 2").program(JobColumns(workload))
    values = values_of(program, len(jobs), np.arange(len(jobs)), np.full(len(jobs), 5.0))
    expected = [slow(job, job.submit + 5) for job in jobs]
    assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min(wait, 0 / 0)", 5.0),
        ("min(0 / 0, wait)", -math.inf),
        ("max(wait, 0 / 0)", 5.0),
        ("max(0 / 0, wait)", -math.inf),
        ("max(wait, 0 / 0, 7)", 7.0),
        ("min(0 / 0, wait, 7)", -math.inf),
        ("min(9, max(wait, 0 / 0))", 5.0),
        ("1 / min(0, -0 * wait)", math.inf),  # of equal values the first
    ],
)
def test_least_and_greatest_pass_over_what_is_no_number(text: str, expected: float) -> None:
    """As in Python, unless it comes first; no number is the least of all scores."""
    workload = few_jobs(1, [0], [1], [1])
    columns = JobColumns(workload)
    program = read_expression(f"({text}) + 0 * wait ** 2 * processors").program(columns)
    assert values_of(program, 1, np.zeros(1, np.int64), np.array([5.0])) == [expected]
    (job,) = jobs_of(workload)
    assert ByExpression(text, workload)(replace(job, number=0), 5) == expected


# --- Amounts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        "-requested * asked(gpu) - 60 * wait ** 0.5 * asked('mic')",
        "wait - asked(mem) / 1000 * in_use(gpu) - in_use(jobs) % 3 * area",
        "-asked(gpu) if in_use(gpu) > 30 else in_use('mic') * asked(processors) + wait",
    ],
)
def test_amounts_are_those_of_the_reference_and_the_proof(policy: str) -> None:
    workload = hpcgym.load_workload("eurora:jobs=200,seed=1,load=9")
    given = {"policy": policy, "backfill_order": policy, "cluster": "eurora"}
    result = hpcgym.simulate(workload, **given)
    slow = hpcgym.simulate(workload, engine="reference", **given)
    assert result.start.tolist() == slow.start.tolist()
    hpcgym.validate_schedule(result)
    assert result.start.tolist() != hpcgym.simulate(workload, cluster="eurora").start.tolist()


def test_what_is_asked_for_by_hand() -> None:
    columns = JobColumns(
        few_jobs(
            8, [0] * 3, [5] * 3, [2, 2, 4], units=[1, 2, 2],
            per_unit={"core": [2, 1, 2], "gpu": [0, 3, 1]},
        ).with_columns(**{"licence.x@y": [4, 0, 1]})
    )  # fmt: skip
    for text, expected in (
        ("asked(gpu)", [0, 6, 2]),
        ("asked(processors) + asked(jobs)", [3, 3, 5]),
        ('asked("licence.x@y") * 2', [8, 0, 2]),
    ):
        assert read_expression(text).values(columns).tolist() == expected
    with pytest.warns(WorkloadWarning, match="no job asks for 'mic'"):
        read_expression("asked(mic) + wait").values(columns)


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["2 * (0 * fairshare) + area", "-fairshare * 0 * 2 + area"])
def test_usage_of_no_weight_is_none(text: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=40,processors=16,load=2,seed=1")
    named = hpcgym.simulate(workload, policy="laf")
    assert np.array_equal(hpcgym.simulate(workload, policy=text).start, named.start)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("saf", False),
        ("saf-typical", False),
        ("fs+efs", False),
        ("energy-fairshare", False),
        ("-0.1,0,0,0,0,1e-3", False),
        (" 1, 2, 3, 4, 5, 6", False),
        ("runs/agent.pt", False),
        ("runs/best", False),
        ("models/queue/v2", False),
        ("/home/user/agent", False),
        ("./queue/user", False),
        ("not", False),
        ("None", False),
        ("wait", True),
        ("-area", True),
        ("wait/requested", True),
        ("not queue", True),
        ("20*wiat", True),
        ("wiat - area", True),
        ("waits / requested", True),
    ],
)
def test_which_texts_are_expressions(text: str, meant: bool) -> None:
    assert is_expression(text) == meant


def test_the_docs_name_all_of_it() -> None:
    docs = Path(__file__).parents[2] / "docs" / "semantics.md"
    section = docs.read_text(encoding="utf-8").partition("An **expression**")[2]
    section = section.partition("## Events and passes")[0]
    for name in (*NAMES, *FUNCTIONS, *OF_AMOUNTS):
        assert f"`{name}`" in section, name


def both(policy: Any) -> dict[str, Any]:
    """Return rules of which both orders are the same."""
    return {"policy": policy, "backfill_order": policy}


# --- Other machines, and where simulations begin --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("estimate", ["requested", "ave2"])
def test_passes_without_an_event_have_scores_of_their_own(backfill: str, estimate: str) -> None:
    """Where caps begin and end, and at controls of power, too."""
    power = NodePower(20.0, 100.0)
    cluster = Cluster(groups=(NodeGroup("a", 16, {"core": 4}, power),))
    workload = hpcgym.load_workload("lublin:jobs=300,processors=64,load=1.2,seed=8")
    span = int(workload.submit_time[-1])
    caps = [PowerCap(600 + k % 3 * 300, k * span // 40, (k + 1) * span // 40) for k in range(40)]
    rules: dict[str, Any] = {"backfill": backfill, "policy_estimate": estimate}
    rules |= {"cluster": cluster, "limits": caps}
    named = hpcgym.simulate(workload, **both("wfp3"), **rules)
    result = hpcgym.simulate(workload, **both(WFP3), **rules)
    assert result.start.tolist() == named.start.tolist()
    moments = {*workload.submit_time.tolist(), *result.end.tolist()}
    assert not moments.issuperset(result.start.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["easy", "fill"])
def test_on_nodes_that_jobs_share(backfill: str) -> None:
    jobs = hpcgym.load_workload(
        "codes:jobs=80,processes=8,processors=64,seed=1,arrivals=poisson,interval=9"
    )
    rules: dict[str, Any] = {"cluster": "8x2x4", "speedups": "generated:codes=16"}
    text = "(wait ** 2 < 4e4) * processors - requested"
    named = hpcgym.simulate(jobs, "easy-co", backfill=backfill, **both("-requested"), **rules)
    result = hpcgym.simulate(
        jobs, "easy-co", backfill=backfill, **both("-requested + 0 * wait ** 2"), **rules
    )
    assert result.start.tolist() == named.start.tolist()
    other = hpcgym.simulate(jobs, "easy-co", backfill=backfill, **both(text), **rules)
    assert other.start.tolist() != named.start.tolist()
    hpcgym.validate_schedule(other)


# --- Where they may stand -------------------------------------------------------------------------


def small() -> Workload:
    return hpcgym.load_workload("lublin:jobs=120,processors=32,load=1.3,seed=4")


@pytest.mark.parametrize(
    ("columns", "short"),
    [
        ("wait_time - requested_processors * requested_time", "wait - processors * time_limit"),
        ("submit_time", "submit"),
        ("wait_time ** 2 / requested_time", "wait ** 2 / time_limit"),
    ],
)
def test_columns_of_jobs_are_words_too(columns: str, short: str) -> None:
    """With a predicted run time, `requested` is that, and `requested_time` still the column."""
    assert is_expression(columns)
    rules: dict[str, Any] = {"policy_estimate": "clairvoyant", "backfill": "none"}
    results = [hpcgym.simulate(small(), policy=policy, **rules) for policy in (columns, short)]
    assert results[0].start.tolist() == results[1].start.tolist()


def test_an_estimate_stands_for_requested_but_not_for_time_limit() -> None:
    workload = small()
    rules: dict[str, Any] = {"policy_estimate": "clairvoyant", "backfill": "none"}
    known = hpcgym.simulate(workload, policy="spf", **rules)
    assert np.array_equal(
        hpcgym.simulate(workload, policy="-requested", **rules).start, known.start
    )
    requested = hpcgym.simulate(workload, policy="spf", backfill="none")
    result = hpcgym.simulate(workload, policy="-time_limit", **rules)
    assert np.array_equal(result.start, requested.start)


@pytest.mark.parametrize(
    ("text", "estimate", "anew"),
    [
        ("-requested * processors", "requested", False),
        ("20 * wait - area / 60", "clairvoyant", True),
        ("wait * processors + 3 * fairshare", "requested", True),
        ("3 * fairshare - area", "requested", False),
        ("2 * wait + 3", "requested", False),
        ("-time_limit * processors", "ave2", False),
        ("processors - submit", "ave2", False),
        ("-requested", "ave2", True),
        ("20 * wait - area", "ave2", True),
        ("expansion", "ave2", True),
        ("wait ** 2", "requested", True),
        ("wait * wait", "requested", True),
        ("area / wait", "requested", True),
        ("expansion * clock", "requested", True),
        ("max(wait, 3600)", "requested", True),
        ("wait // 60", "requested", True),
        ("abs(wait)", "requested", True),
        ("not wait", "requested", True),
        ("(wait > 60) * area", "requested", True),
        ("area if wait else 0", "requested", True),
        ("log(1 + wait) + 3 * fairshare", "requested", True),
    ],
)
def test_which_forms_are_worked_out_anew(text: str, estimate: str, anew: bool) -> None:
    rules: dict[str, Any] = {"policy_estimate": estimate, "backfill_order": text}
    expressions = hpcgym.Scheduler(policy=text, **rules).anew
    assert [expression is not None for expression in expressions] == [anew, anew]
    swept = hpcgym.Scheduler(policy=text, backfill="conservative", **rules).anew
    assert swept[1] is None  # there is no order of backfilling


def test_scores_at_a_pass_may_be_infinite_or_no_number() -> None:
    """A holds the machine; of those that wait B is infinite, C 3, D and E no number: the least."""
    workload = few_jobs(1, [0, 1, 1, 1, 1], [10] * 5, [1] * 5, queue=[0, 3, 2, 1, 0])
    text = "1 / (wait - 9) if queue == 3 else wait / 3 if queue == 2 else log(-wait)"
    result = hpcgym.simulate(workload, policy=text)
    assert result.start.tolist() == [0, 10, 20, 30, 40]
    last = hpcgym.simulate(workload, policy=text.replace("1 / (", "-1 / ("))
    assert last.start.tolist() == [0, 20, 10, 30, 40]


def test_baselines_and_boards_take_them() -> None:
    workload = small()
    env = plain_envs.make("hpcgym/JobSelection-v2", workload=workload, jobs=60)
    assert played(env, find_baseline("-requested * processors")) == played(
        env, find_baseline("saf")
    )
    for name in ("JobSelection", "QueueOrdering"):
        env = plain_envs.make(id_of(name), workload=workload, jobs=60)
        assert played(env, find_baseline(WFP3)) == played(env, find_baseline("wfp3"))
    board = evaluate("-requested * processors", workload, jobs=7, n=4, budget=0)
    values = board.by_slice
    assert values["-requested * processors"].tolist() == values["saf"].tolist()


def played(env: Any, policy: Any) -> dict[str, float]:
    """Play an episode to its end; return its metrics."""
    observation, info = env.reset(seed=3)
    policy.begin(env)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(policy.act(observation, info))
        over = terminated or truncated
    return dict(env.unwrapped.result().metrics)


QUEUES = {1: "slow", 2: 'it\'s "fast"', 4: "7"}


def with_queues(workload: Workload) -> Workload:
    """Return the jobs in queues 1 to 7 in turn, of which some have names; 7 is also that of 4."""
    header = {"Queue": [f"{number} {name}" for number, name in QUEUES.items()]}
    turns = [1 + row % 7 for row in range(len(workload))]
    return replace(workload.with_columns(queue=turns), header=header)


@pytest.mark.parametrize("rest", ["-area", "wait ** 2 / requested", "fairshare"])
@pytest.mark.parametrize("name", ["slow", 'it\'s "fast"', "7", "3", "none"])
@settings(max_examples=5)
@given(workload=workloads())
def test_names_stand_for_their_numbers(rest: str, name: str, workload: Workload) -> None:
    """A number without a name is called by its digits, unless another number is called so."""
    jobs = with_queues(workload)
    numbers = [number for number, called in QUEUES.items() if called == name]
    numbers += [7] * (name == "7") + [3] * (name == "3")
    said = " + ".join(f"(queue == {number})" for number in numbers) or "0 * processors"
    named = hpcgym.simulate(jobs, policy=f"5 * (queue == {name!r}) + {rest}")
    by_number = hpcgym.simulate(jobs, policy=f"5 * ({said}) + {rest}")
    assert named.start.tolist() == by_number.start.tolist()
    unlike = hpcgym.simulate(jobs, policy=f"-5 * ({name!r} != queue) + {rest}")
    assert (
        unlike.start.tolist()
        == hpcgym.simulate(jobs, policy=f"-5 * (1 - ({said})) + {rest}").start.tolist()
    )


def test_a_name_that_is_nearly_one_of_the_log_gives_a_warning() -> None:
    """And no error: a slurm.conf may have a partition that no job was in."""
    jobs = with_queues(hpcgym.load_workload("lublin:jobs=9,processors=8,seed=0"))
    with pytest.warns(WorkloadWarning, match="nothing is called 'slwo' in queue; did you mean 'sl"):
        result = hpcgym.simulate(jobs, policy="(queue == 'slwo') - area")
    assert result.start.tolist() == hpcgym.simulate(jobs, policy="-area").start.tolist()


@pytest.mark.parametrize(
    ("named", "text", "said"),
    [
        (
            True,
            "queue == 'debug'",
            "nothing is called 'debug' in queue; the log has 7, it's \"fast\", slow",
        ),
        (False, "queue == 'slow'", "nothing is called 'slow' in queue; the log has no names there"),
        (True, "(queue == 'a') - (queue != 'b')", "nothing is called 'a' or 'b' in queue"),
        (True, "(queue == 'slow') - (queue == 'b')", ""),
        (False, "queue == '3'", ""),
    ],
)
def test_names_that_no_log_has_give_a_warning(named: bool, text: str, said: str) -> None:
    """Also where none is nearly so; but a slurm.conf may have partitions that no job was in."""
    jobs = with_queues(hpcgym.load_workload("lublin:jobs=9,processors=8,seed=0"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hpcgym.simulate(jobs if named else replace(jobs, header={}), policy=f"({text}) - area")
    messages = {str(warning.message) for warning in caught}
    assert len(messages) == bool(said)
    assert all(message.startswith(said) for message in messages)


def test_names_that_no_log_has_are_told_on_the_command_line(tmp_path: Path) -> None:
    """Once by each command, also of many slices; by each worker of a sweep."""
    source, text = "lublin:jobs=60,processors=32,load=1.3,seed=4", "(queue == 'slow') - area"
    said = "nothing is called 'slow' in queue; the log has batch, interactive"
    run = CliRunner().invoke
    slices = ["--workload", source, "--jobs", "9", "--number", "3", "--budget", "0"]
    for words in (["simulate", source, "--policy", text], ["compare", source, "--policy", text],
                  ["evaluate", text, *slices]):  # fmt: skip
        assert run(app, words).stderr.count(said) == 1
    experiment = tmp_path / "one.toml"
    table = f'[[workloads]]\nworkload = "{source}"\n'
    experiment.write_text(f'schedulers = [{{ name = "a", policy = "{text}" }}]\n{table}')
    words = [*("--output", str(tmp_path / "sweep")), *("--executor", "serial")]
    assert said in run(app, ["sweep", "run", str(experiment), *words]).stderr


test_mistakes = mistakes_of(globals())
