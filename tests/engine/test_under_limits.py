"""Under limits of power and energy: schedules are the slow simulator's; rules there by hand."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from expression_strategies import at_states, names_in, slow_order
from few_jobs import few_jobs
from limit_strategies import Case, extracted, limited, possible, simulate_pool
from pieces import same_in_pieces
from predictors import Crooked, Told, Whim
from restrictions import DRAWN, restrict, with_numbers
from same_results import agreed, assert_same_results
from share_strategies import SlowOrder
from strategies import POLICY, holds, predictions
from submission_strategies import fitted

import hpcgym
from hpcgym import simulate, validate_schedule
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, NodeGroup, NodePower
from hpcgym.reference.limits import LimitedSimulation
from hpcgym.reference.orders import weighted
from hpcgym.reference.shares import AccountTree
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import STATE_NAMES
from hpcgym.scheduler.limits import PowerCap
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload.model import Workload

pytestmark = DRAWN
KINDS = ["none", "caps", "switching", "budgets", "both"]
WHAT = (
    *("alone", "kills", "extract", "learned", "restricted", "restricted learned"),
    *("function", "restricted function", "usage"),
    *("hold", "extract hold", "restricted hold", "state", "extract state", "restricted state"),
)
CODES = {"off": "off", "shutting": "switching_off", "booting": "switching_on"}
QUEUES = st.lists(st.integers(1, 3), min_size=1, max_size=5)
RESTRICTIONS = st.sampled_from(
    [
        *[("quota",), ("quota",), ("follow",), ("follow",), ("places",)],
        *[("follow", "quota"), ("follow", "places"), ("places", "quota")],
    ]
)
#: Estimates that look at users' ended jobs, and a predictor in Python that looks at all features.
LEARNED: tuple[Any, ...] = ("ave2", "ave3", "user-ratio", "typical-ratio", Crooked())


def marks(kinds: str, what: str) -> list[pytest.MarkDecorator]:
    """Two things beside limits are slow, but where limits are of both kinds."""
    return [pytest.mark.slow] * (" " in what and kinds != "both")


@pytest.mark.parametrize(
    ("kinds", "what"),
    [pytest.param(*case, marks=marks(*case)) for case in itertools.product(KINDS, WHAT)],
)
@settings(max_examples=60)
@given(data=st.data())
def test_schedules_are_the_slow_simulators(kinds: str, what: str, data: st.DataObject) -> None:
    case, slow = data.draw(limited(kinds)), dict[str, Any]()
    if "kills" in what:
        known = st.one_of(st.sampled_from(["ave1", "ave2"]), predictions(case.workload))
        case.rules |= {"correction": "kill", "estimate": data.draw(known)}
    whole = case
    if "extract" in what:  # jobs that run then have the lowest nodes, all of which are on
        cases = extracted(data, case)
        assume(cases is not None)
        whole, case, slow["extract"] = cases
    if "restricted" in what:
        case, slow = restricted(data, case)
    if "learned" in what:
        case.rules |= learned(data, case, "restricted" in what)
    if "hold" in what:
        held = holds().filter(lambda hold: hold is not None)
        case.rules |= {"hold": data.draw(held)}
        whole.rules |= {"hold": case.rules["hold"]}
    ours: dict[str, Any] = {}
    if "state" in what:
        ours, more = by_state(data, whole if "extract" in what else case)
        slow |= more
    if "function" in what:
        case = replace(case, rules=case.rules | {"policy": Whim()})
    if "usage" in what:
        ours, more = by_usage(data, case)
        slow |= more
    given_rules = {"cluster": case.cluster, "limits": case.limits} | case.rules | ours
    made = partial(simulate, case.workload, **given_rules)
    result = possible(partial(same_in_pieces, data.draw(st.integers(0, 10**6)), made))
    try:
        expected = simulate_pool(whole if "extract" in what else case, **slow)
    except HpcgymError as error:  # of a job that had ended before the extract
        assume("can never start" not in str(error))
        raise
    check_same(result, expected)
    validate_schedule(result)
    public = what in ("alone", "kills", "hold", "state")
    public |= "restricted" in what and "function" not in what
    if public and not isinstance(case.rules["estimate"], Crooked):
        assert_same_results(made(engine="reference"), result)


def check_same(result: Result, slow: LimitedSimulation) -> None:
    jobs = sorted(slow.jobs, key=lambda job: (job.submit, job.number))  # as they came
    levels = [job.level for job in jobs]
    highest = len(slow.m.busy) - 1
    assert (result.frequency is None) == (min(levels) == highest)
    if result.frequency is not None:
        assert result.frequency.tolist() == levels
    assert result.workload.submit_time.tolist() == [job.submit for job in jobs]
    assert result.start.tolist() == [job.start for job in jobs]
    assert result.end.tolist() == [job.end for job in jobs]
    assert result.predicted_run_time.tolist() == [job.predicted for job in jobs]
    assert result.reserved_start.tolist() == [job.reserved_start for job in jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in jobs]
    assert result.allocation is not None
    first, node, _ = result.allocation
    for job, (begin, end) in enumerate(itertools.pairwise(first)):
        assert node[begin:end].tolist() == list(jobs[job].cells)
    intervals = sorted((n, CODES[state], begin, end) for n, state, begin, end in slow.intervals)
    states = result.node_states
    if states is None:
        assert intervals == []
    else:
        rows = zip(*(np.asarray(c).tolist() for c in vars(states).values()), strict=True)
        assert sorted((n, STATE_NAMES[code], b, e) for n, code, b, e in rows) == intervals


def restricted(data: st.DataObject, case: Case) -> tuple[Case, dict[str, Any]]:
    """The case under restrictions, and these as the slow simulator takes them."""
    which = data.draw(RESTRICTIONS)
    workload = with_numbers(case.workload, data.draw(QUEUES))
    rules: dict[str, Any] = dict(case.rules)
    slow: dict[str, Any] = {}
    if {"follow", "places"} & {*which}:
        rules = fitted(rules, alone=True)
        rules.pop("passes", None)
    workload = restrict(data, which, workload, rules, slow)
    return replace(case, workload=workload, rules=rules), slow


def learned(data: st.DataObject, case: Case, is_restricted: bool) -> dict[str, Any]:
    """Rules that look at what has been learned."""
    if is_restricted:
        known = st.sampled_from(["ave2", "user-ratio"])
        return {"estimate": data.draw(known), "policy_estimate": data.draw(known)}
    # the ratio that the slow predictor learns is by the time that was requested
    slowed = case.rules["power"] not in ("none", "shut")
    some = [estimate for estimate in LEARNED if not (slowed and estimate == "typical-ratio")]
    return {
        "policy": data.draw(POLICY),
        "estimate": data.draw(st.sampled_from(["requested", *some])),
        "policy_estimate": data.draw(st.sampled_from(some)),
    }


def by_state(data: st.DataObject, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Orders by expressions of the state, as hpcgym and as the slow simulator take them."""
    ours: dict[str, Any] = {}
    for rule in data.draw(st.sampled_from([("policy", "backfill_order"), ("policy",)])):
        ours[rule] = data.draw(at_states())
    moves = {"dependencies", "quota"} & {*case.rules}
    assume(
        not (
            moves and any(re.search("submit|clock|f1|f4", names_in(each)) for each in ours.values())
        )
    )
    return ours, {rule: slow_order(each, case.workload) for rule, each in ours.items()}


def by_usage(data: st.DataObject, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Orders by what users have used, as hpcgym and as the slow simulator take them."""
    workload, cluster = case.workload, case.cluster
    half_life = data.draw(st.sampled_from([40, 1000, 604_800, None]))
    shares: dict[Any, float] = data.draw(st.sampled_from([{}, {0: 2.0}, {0: 0.5, 1: 4.0}]))
    slow = AccountTree({*workload.user_id.tolist()}, shares, half_life=half_life)
    power = cluster.groups[0].power
    assert power is not None
    busy = power.busy_levels_w[-1] / cluster.groups[0].resources["core"]
    watts = [busy if w < 0 else w for w in workload.power_w.tolist()]
    name = data.draw(st.sampled_from(["fairshare", "energy-fairshare", "mixed"]))
    kind: Any = {"fairshare": "cpu", "energy-fairshare": "energy", "mixed": (1.0, 0.5)}[name]
    assume(name == "fairshare" or any(watts))
    rest = weighted((-0.25, 0, 0.01, 0, 0, 0))

    def order() -> SlowOrder:
        made = SlowOrder(kind, slow, watts, busy, rest, processors=cluster.processors)
        made.drawn = lambda job: part_drawn(made.simulation, job)
        made.counts = lambda job, now: job.killed_at < now
        return made

    weights = {"fairshare": 1.0, "energy_fairshare": 0.5, "wait": 0.01, "processors": -0.25}
    orders = ["policy", "backfill_order"] if data.draw(st.booleans()) else ["policy"]
    ours = dict.fromkeys(orders, weights if name == "mixed" else name)
    fair = FairShare(half_life or math.inf, 1.0, shares)
    return ours | {"fair_share": fair}, {which: order() for which in orders}


def part_drawn(simulation: Any, job: Any) -> Decimal:
    """What a job has drawn at its frequency, of what it would have drawn at the highest."""
    draws = simulation.m.busy if job.measured is None else job.measured
    return Decimal(draws[job.level]) / draws[-1] if draws[-1] else Decimal(1)


# --- By hand --------------------------------------------------------------------------------------

NODES = Cluster(groups=(NodeGroup("a", 3, {"core": 2}, NodePower(10.0, 100.0)),))
FOUR = Cluster(groups=(replace(NODES.groups[0], nodes=4),))
SLOW = NodePower(10.0, 100.0, 0.0, shutdown_time_s=5, boot_time_s=50, boot_w=60.0)
BOOTS = Cluster(groups=(NodeGroup("n", 3, {"core": 1}, SLOW),))
#: Two of three nodes may be busy.
CAP = PowerCap(210.0)


def jobs(**columns: list[int]) -> Workload:
    """Return four jobs of one node each, which two users submit at once."""
    given = {
        "job_number": [1, 2, 3, 4],
        "submit_time": [0, 0, 0, 0],
        "run_time": [10, 20, 10, 5],
        "requested_time": [20] * 4,
        "requested_processors": [2, 1, 2, 2],
        "user_id": [1, 1, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=6)


FOLLOW: dict[str, list[int]] = {"preceding_job": [-1, -1, 2, 1], "think_time": [0, 0, 0, 12]}
#: At 5 s it leaves one node busy, and kills job 2.
SUDDEN = PowerCap(120.0, start=5, announced=5, kills=True)
ONE_USER: dict[str, list[int]] = {"user_id": [1] * 4, "preceding_job": [-1, -1, 2, 3]}


def wide(requested: int) -> Workload:
    """Return three jobs; the second needs two nodes, and has one of four before 20 s."""
    return few_jobs(8, [0, 0, 0], [20, 10, requested], [4, 4, 2])


@pytest.mark.parametrize(
    ("workload", "rules", "expected"),
    [
        # two at once: the head is job 3, then job 4
        (jobs(), {}, {"start": [0, 0, 10, 20]}),
        # job 2 is passed over, and job 4 has its power up to 5 s, then nobody up to 10 s
        (jobs(), {"quota": "user:jobs=1"}, {"start": [0, 10, 30, 0]}),
        # it counts the processors that jobs ask for: jobs 1 and 2, then 2 and 3
        (jobs(), {"quota": "user:processors=3"}, {"start": [0, 0, 10, 20]}),
        (jobs(), {"quota": "user:processors=3", "limits": []}, {"start": [0, 0, 10, 0]}),
        (jobs(), {"quota": "all:jobs=1", "limits": []}, {"start": [0, 10, 30, 40]}),
        # job 3 follows job 2, and job 4 job 1, 12 s after its end or as late as the log says
        *(
            (
                jobs(submit_time=[0, 0, 0, 27], **FOLLOW),
                {"dependencies": dependencies},
                {"start": [0, 0, 20, last], "submit_time": [0, 0, 20, last]},
            )
            for dependencies, last in (("after", 27), ("closed-loop", 22))
        ),
        # who comes as a cap kills: job 3, which waits for job 1
        *(
            (
                jobs(**ONE_USER, think_time=[0] * 4),
                {"limits": [SUDDEN], **rule},
                {"start": [0, 0, 10, 20], "end": [10, 5, 20, 25], "submit_time": [0, 0, 5, last]},
            )
            for rule, last in (({"dependencies": "after"}, 20), ({"quota": "user:submitted=2"}, 10))
        ),
        # at 5 s job 2 is killed, and one node is left. The prediction of job 1 expires at 7 s; no
        # pass comes before 12 s, and looks at job 3 anew: it is 7 s since job 2 of its user ended
        (
            few_jobs(6, [0, 0, 5, 5], [12, 20, 5, 5], [2] * 4, [20] * 4, user_id=[3, 1, 1, 2]),
            {
                "limits": [SUDDEN],
                "policy": "spf",
                "policy_estimate": Told(lambda x: x["break_time"] or 5),
                "estimate": [7, 20, 5, 5],
            },
            {"start": [0, 0, 17, 12], "end": [12, 5, 22, 17], "policy_run_time": [5, 5, 7, 5]},
        ),
        # two nodes are off from 40 s on, and boot at 100 s; the cap announced at 110 s begins
        # while they still do, and counts 60 W for each
        *(
            (
                few_jobs(3, [0, 112, 112], [300, 50, 50], [1, 1, 1]),
                {
                    "cluster": BOOTS,
                    "limits": [PowerCap(110.0, 40, 100), PowerCap(watts, 120, 400, 110)],
                    "power": "shut",
                },
                {"start": [0, *starts]},
            )
            for watts, starts in ((255.0, [150, 200]), (260.0, [150, 200]), (300.0, [150, 150]))
        ),
        # two are off from 100 s on, and begin to switch off at 95 s
        *(
            (
                few_jobs(3, [0] * 3, [seconds] * 3, [1] * 3),
                {"cluster": BOOTS, "limits": [PowerCap(110.0, 100, 200)], "power": "shut"},
                {"start": starts},
            )
            for seconds, starts in ((95, [0, 0, 0]), (96, [0, 96, 192]))
        ),
        # three of four may be busy; a job ends when job 2 is to start, and leaves a node
        *(
            (
                wide(requested),
                {"cluster": FOUR, "limits": [PowerCap(310.0)], "backfill": backfill},
                {"start": [0, 20, last]},
            )
            for backfill, requested, last in (
                *(("easy", 20, 0), ("until-shadow", 20, 20), ("until-shadow", 19, 0)),
                *(("easy", 21, 0), ("until-shadow", 21, 20)),
            )
        ),
    ],
)
def test_by_hand(workload: Workload, rules: dict[str, Any], expected: dict[str, list[int]]) -> None:
    result = agreed(workload, **{"cluster": NODES, "limits": [CAP], **rules})
    for name, values in expected.items():
        holder = result.workload if name == "submit_time" else result
        assert getattr(holder, name).tolist() == values, name


def test_a_function_by_hand() -> None:
    """It sees what limits let start, and its best job starts first."""
    seen, rules = [], {"cluster": NODES, "limits": [CAP], "backfill": "none"}

    def last_first(view: Any) -> Any:
        seen.append((view.time, view.job.tolist(), view.allowed.tolist(), view.units.tolist()))
        return view.job

    result = hpcgym.simulate(jobs(), **rules, policy=last_first)
    assert result.start.tolist() == [10, 5, 0, 0]
    assert seen == [
        (0, [0, 1, 2, 3], [True] * 4, [1] * 4),
        (5, [0, 1], [True] * 2, [1] * 2),
        (10, [0], [True], [1]),
    ]


def test_a_cap_may_kill_all_jobs_as_an_extract_begins() -> None:
    log = few_jobs(6, [0], [100], [2], wait_time=[0])
    sudden = PowerCap(50.0, start=50, end=200, announced=50, kills=True)
    result = simulate(log.extract(50), cluster=NODES, limits=[sudden])
    assert (result.start.tolist(), result.end.tolist()) == ([0], [50])
    assert "caps" in validate_schedule(result)


def test_the_state_is_that_before_a_cap_kills() -> None:
    """Rule 30: it is read before the pass, in which the cap then makes room."""
    policies = ("(user_running > 0)*processors*10-requested", "processors*(free > 0.3)-requested")
    killed = 0
    nodes = Cluster(groups=(NodeGroup("a", 8, {"core": 1}, NodePower(50.0, 100.0)),))
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n, begin = 30, int(rng.integers(30, 60))
        run_time = rng.integers(1, 60, n)
        log = few_jobs(
            8, np.sort(rng.integers(0, 60, n)), run_time, rng.integers(1, 5, n),
            requested=run_time + rng.integers(0, 40, n), user_id=rng.integers(1, 3, n),
        )  # fmt: skip
        cap = PowerCap(
            float(rng.integers(450, 700)), start=begin, end=begin + 20, kills=True, announced=begin
        )
        rules = {"policy": policies[seed % 2], "cluster": nodes, "limits": [cap]}
        result = agreed(log, **rules)
        killed += int((result.end - result.start < run_time).sum())
    assert killed > 0
