"""Scores that are worked out only where they may say who comes first, beside all of them.

Nobody looks at a simulation that runs to its end: there scores are put off, and of long queues only
those of contenders are worked out. One that is looked at after each pass has them all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from expression_strategies import networks

from hpcgym import load_workload
from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster, NodeGroup
from hpcgym.scheduler.policies.networks import Network, aged_network
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import place_of
from hpcgym.simulation.prepare import Place, pool_of
from hpcgym.workload.model import Workload

LOG = "lublin:jobs=2500,processors=128,seed={seed},load=1.15"

#: All that an expression may do, with values that are not numbers, and ties.
EXPRESSIONS = [
    "4*log(wait+72000)-log(max(requested,1))-0.2*log(processors)",
    "(1-free_1h)*log(requested)-queued/100+log(wait+60)",
    "free*log(wait+1)-requested/3600+2*fits-leaves",
    "wait/requested-0.1*processors",
    "-(requested**2)*processors+wait**3",
    "sqrt(wait)*(wait > 3600)-requested",
    "log(wait-5000)",
    "wait // 600 - requested % 7",
    "exp(-wait/36000)*processors",
    "(wait/1000)**1.5-abs(requested-3600)",
    "min(wait,7200)+max(-requested,-7200)",
    "(log10(wait+1) if wait > 600 and not queued > 50 else -requested/600)-log2(processors)",
    "expansion+hour/24-weekday",
    "unicef-wait/7200",
    "floor(wait/3600)",
    "1/(wait-3600)",
    # scores without end, of which the first by submission is served
    "log(wait+60)+exp(min(wait,time_limit)**1.5)",
    "log(wait+3600)+(processors//0)/420",
    "exp(wait+requested)",
    "1/(wait < 30000)-requested",
    # what is no number is passed over in the second place
    "min(requested, -abs(log(wait-5000)))",
    "-max(-requested, log(wait-20000)**2)",
    "-max(wait/1000-requested/100, exp(log(wait-40000)))",
]


@pytest.mark.parametrize("policy", ["wait*(fits > 0)-requested", "wait*(leaves < 0.2)-requested"])
@pytest.mark.parametrize("seed", range(3))
def test_room_on_nodes_is_that_of_the_beginning_of_a_pass(policy: str, seed: int) -> None:
    log = load_workload(f"lublin:jobs=1500,processors=128,seed={seed},load=1.3")
    random = np.random.default_rng(seed)
    cores, memory = random.choice([1, 2, 4, 8], len(log)), random.integers(1, 17, len(log))
    most = 16 * np.minimum(8 // cores, 16 // memory)
    jobs = Workload.from_columns(
        {name: log.columns[name] for name in ("submit_time", "run_time", "requested_time")},
        processors=128,
        units=np.clip(log.requested_processors // cores, 1, most),
        per_unit={"core": cores, "mem": memory},
    )
    cluster = Cluster(groups=(NodeGroup("thin", 16, {"core": 8, "mem": 16}),))
    scheduler = scheduler_of("easy", {"policy": policy})
    place = place_of(jobs, scheduler, cluster)
    given, expected = (starts_on(place, jobs, scheduler, by_pass) for by_pass in (False, True))
    assert (given == expected).all()


NUMBERS = st.sampled_from(["0", "0.5", "1", "2", "10", "60", "3600", "72000"])
NAMES = st.sampled_from(
    [
        *("wait", "requested", "processors", "time_limit", "free", "free_1h", "queued", "hour"),
        *("area", "ratio", "expansion", "unicef", "fits", "leaves", "user_running", "mean_run"),
    ]
)


def combined(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "and"])
    functions = st.sampled_from(
        ["log", "sqrt", "exp", "log2", "log10", "abs", "floor", "-", "not "]
    )
    powers = st.sampled_from(["2", "3", "0.5", "1.5", "-1"])
    return st.one_of(
        st.builds("({} {} {})".format, part, operators, part),
        st.builds("{}({})".format, functions, part),
        st.builds("({})**{}".format, part, powers),
        st.builds("{}({},{})".format, st.sampled_from(["min", "max"]), part, part),
        st.builds("({} if {} > {} else {})".format, part, part, part, part),
    )


POLICIES = st.builds("log(wait+{})+{}".format, NUMBERS, st.recursive(NAMES | NUMBERS, combined))


def starts(log: str, policy: str | Network, by_pass: bool, **rules: object) -> np.ndarray:
    workload = load_workload(log)
    scheduler = scheduler_of("easy", {"policy": policy, **rules})
    return starts_on(pool_of(workload, Cluster(128)), workload, scheduler, by_pass)


def starts_on(place: Place, workload: Workload, scheduler: Scheduler, by_pass: bool) -> np.ndarray:
    simulation = new_simulation(workload, scheduler, place)
    if by_pass:
        while simulation.drive(passes=1):
            pass
    else:
        simulation.drive()
    return simulation.schedule()["start"]


@pytest.mark.parametrize("policy", EXPRESSIONS)
def test_the_first_is_the_first_of_all(policy: str) -> None:
    log = LOG.format(seed=1)
    given = starts(log, policy, False, policy_estimate="typical-ratio", backfill_order="spf")
    expected = starts(log, policy, True, policy_estimate="typical-ratio", backfill_order="spf")
    assert (given == expected).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("output", [0.0, 0.02, 0.3])
def test_the_first_by_a_network_is_the_first_of_all(output: float, seed: int) -> None:
    begin, random = aged_network(seed=seed), np.random.default_rng(seed)
    network = replace(begin, output=random.normal(0, output, 24))
    log, rules = LOG.format(seed=seed), {"policy_estimate": "typical-ratio"}
    given, expected = (starts(log, network, by_pass, **rules) for by_pass in (False, True))
    assert (given == expected).all()


@settings(max_examples=20)
@given(networks(), st.integers(0, 5), st.sampled_from(["typical-ratio", "requested"]))
def test_whatever_a_network_is_of(network: Network, seed: int, estimate: str) -> None:
    log, rules = LOG.format(seed=seed), {"policy_estimate": estimate}
    given, expected = (starts(log, network, by_pass, **rules) for by_pass in (False, True))
    assert (given == expected).all()


@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize(
    "rules", [{"threshold": 40_000}, {"hold": 0.2}, {"backfill_order": "aged"}]
)
def test_under_other_rules(seed: int, rules: dict[str, object]) -> None:
    rules = {**rules}
    if rules.get("backfill_order") == "aged":
        rules["backfill_order"] = "log(wait+60)-requested/3600"
    log, policy = LOG.format(seed=seed), EXPRESSIONS[0]
    assert (starts(log, policy, False, **rules) == starts(log, policy, True, **rules)).all()


@settings(max_examples=60)
@given(POLICIES, st.integers(0, 5), st.sampled_from(["typical-ratio", "user-ratio", "requested"]))
def test_whatever_an_expression_says(policy: str, seed: int, estimate: str) -> None:
    rules = {"policy_estimate": estimate, "backfill_order": "sjbf"}
    log = LOG.format(seed=seed)
    try:
        given = starts(log, policy, False, **rules)
    except HpcgymError:  # as it is no order
        return
    assert (given == starts(log, policy, True, **rules)).all()
