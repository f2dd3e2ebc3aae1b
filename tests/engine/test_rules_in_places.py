"""Each rule in each place: the engine's schedules are the reference's, to the second and the node.

The two share no code. What is drawn is said to both in words of their own, and now and then to the
reference in the engine's; the engine stops anywhere and goes on as a copy; what is compared is
proved as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from expression_strategies import general, names_in, networks, of_state, slow_order
from extract_strategies import parts_of, recorded, usable
from failure_strategies import failing_cases, table_of
from few_jobs import few_jobs
from mistakes import why_not
from node_strategies import node_cases, partitioned_cases, slow_jobs_and_nodes
from pieces import same_in_pieces
from predictors import REGRESSIONS, CompiledRegression, Crooked, Whim
from preemption_strategies import CLOSE, crowded
from quota_strategies import fitted
from restrictions import DRAWN, around_windows, restrict, with_numbers
from same_results import assert_same, assert_same_results, cells_of
from share_strategies import BUSY_W, SlowOrder, accounts, heeded, order, watts_of, with_power
from strategies import SLURM, cases, plans, predictions, with_few_looks
from submission_strategies import fitted as as_moved

import hpcgym
from hpcgym.machine import Cluster
from hpcgym.reference import spending
from hpcgym.reference.failures import simulate_failures
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.nodes import NoRoomError, simulate_nodes
from hpcgym.reference.orders import ByExpression, weighted
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler import backfilling
from hpcgym.workload.model import Workload

pytestmark = [
    *DRAWN,
    pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions"),
    pytest.mark.filterwarnings("ignore:.*no failure is between"),
    pytest.mark.filterwarnings("ignore:.*fair share"),
    pytest.mark.filterwarnings("ignore:.*no job f"),
]
#: A machine, jobs, rules as both take them, and failures.
MACHINES = {
    "pool": cases().map(lambda case: (Cluster(case[0].processors, busy_power_w=BUSY_W), *case, [])),
    "nodes": st.one_of(node_cases(), partitioned_cases()).map(lambda case: (*case, [])),
    "failing": failing_cases(),
}
#: What is in force there, beside the rules that are drawn for any machine.
RULES = {
    "pool": (
        *("", "killed", "learned", "slurm", "each second", "anew", "usage", "usage learned"),
        *("learned slurm", "learned anew"),
        *("state", "killed state", "learned state", "slurm state", "each second state"),
        *("windows state", "quota state", "stop state", "follow state", "places state"),
        *("places follow state", "extract state", "extract learned state"),
        *("extract stop state", "usage learned state", "stop follow state", "slurm stop state"),
        *(
            "quota",
            "windows",
            "windows quota",
            "follow",
            "follow learned",
            "follow windows quota",
            "windows anew",
        ),
        *("places", "places follow", "places windows", "stop", "stop learned", "stop anew"),
        *("stop quota windows", "stop follow", "stop usage", "follow anew", "places anew"),
        *("stop places", "slurm stop places", "extract stop places", "stop places anew"),
        *("follow usage", "places usage", "follow places usage"),
        *("function", "function quota", "function windows", "function follow places"),
        *("function stop", "function stop quota windows", "function stop follow"),
        *("extract", "extract quota", "extract windows", "extract places", "extract stop"),
        *("extract usage", "extract usage learned", "slurm usage", "extract slurm usage"),
        *("minutes", "minutes learned", "minutes places", "minutes windows", "minutes state"),
        *("slurm minutes", "stop minutes", "extract minutes", "minutes usage", "function minutes"),
        *("slurm stop minutes", "extract slurm minutes", "killed minutes", "extract stop minutes"),
        *("budget", "budget learned", "budget windows", "budget minutes", "budget quota"),
        *("budget places", "budget follow", "slurm budget", "stop budget", "extract budget"),
        *("budget usage", "slurm budget usage", "extract slurm budget", "extract stop budget"),
        *(
            "slurm stop budget",
            "budget state",
            "killed budget",
            "function budget",
            "relaxed budget",
        ),
        *("network", "learned network", "slurm network", "each second network", "windows network"),
        *("quota network", "stop network", "follow network", "extract learned network"),
        *("relaxed", "relaxed learned", "relaxed killed", "relaxed state", "relaxed anew"),
        *("relaxed usage", "relaxed quota", "relaxed follow learned", "relaxed places"),
        *("relaxed function", "relaxed extract", "relaxed extract learned", "relaxed minutes"),
    ),
    "nodes": (
        *("", "slurm", "anew", "usage", "quota", "windows", "windows quota", "follow", "places"),
        *(
            "slurm windows",
            "places follow",
            "stop",
            "stop quota windows",
            "stop follow",
            "stop usage",
        ),
        *("state", "windows state", "stop state", "extract state"),
        *("quota state", "places state", "slurm state", "extract learned state", "stop places"),
        *(
            "follow usage",
            "places usage",
            "extract",
            "extract windows",
            "extract learned",
            "function",
            "function stop",
        ),
        *("minutes", "slurm minutes", "stop minutes", "extract minutes", "minutes windows"),
        *("slurm stop minutes", "extract slurm minutes", "slurm usage", "slurm usage minutes"),
        *("budget", "slurm budget", "stop budget", "extract budget", "budget windows"),
        *("budget minutes", "slurm stop budget", "extract slurm budget"),
        *("network", "stop network", "extract learned network"),
        *("relaxed", "relaxed learned", "relaxed quota", "relaxed extract", "relaxed anew"),
    ),
    "failing": (
        *("", "learned", "killed", "usage", "extract", "quota", "windows quota", "follow"),
        *("places", "stop", "stop quota", "stop follow", "function", "state", "stop state"),
        *("quota state", "places state", "usage state"),
        *("minutes", "stop minutes", "extract minutes"),
        *("budget", "stop budget", "extract budget"),
        *("network", "stop network"),
        *("relaxed", "relaxed learned", "relaxed quota"),
    ),
}
QUEUES = st.lists(st.integers(1, 4), min_size=1, max_size=6)
ORDERS, TIMES = ("policy", "backfill_order"), ("estimate", "policy_estimate")
NAMED = ("ave1", "ave2", "ave3", "user-ratio", "typical-ratio")
#: Estimates that learn, as the engine and as the reference take them.
LEARNED = [
    *((name, name) for name in NAMED),
    (Crooked(), Crooked()),
    *((rules, CompiledRegression(rules)) for rules in REGRESSIONS),
]
#: Expressions that are worked out once where run times are known.
BY_TIME = ("-requested", "-(requested * processors)", "16 * wait - area", "expansion")


@pytest.fixture(scope="module", autouse=True)
def use_counts_often() -> Iterator[None]:
    """Let budgets count each minute: the jobs that are drawn are short."""
    with (
        mock.patch.object(backfilling, "BUDGET_PERIOD_S", 60),
        mock.patch.object(spending, "USE_PERIOD_S", 60),
    ):
        yield


#: What the proof of a schedule must have looked at.
PROVED = {
    "dependencies": "follows",
    "submitted": "places",
    "windows": "windows",
    "preemption": "preemption",
}


def marks(place: str, rules: str) -> list[pytest.MarkDecorator]:
    """Orders beside restrictions, most of those on nodes, and two kinds of minutes are slow."""
    slow = "usage|anew|state|network" if " " in rules else "anew"
    slow += {
        "pool": "|budget minutes",
        "nodes": "|stop|follow",
        "failing": "|stop|learned|function",
    }[place]
    return [pytest.mark.slow] * bool(re.search(slow, rules))


@pytest.mark.parametrize(
    ("place", "rules"),
    [
        pytest.param(place, rules, marks=marks(place, rules), id=f"{place}-{rules or 'alone'}")
        for place, each in RULES.items()
        for rules in each
    ],
)
@settings(max_examples=100)
@given(data=st.data())
def test_schedules_are_those_of_the_reference(place: str, rules: str, data: st.DataObject) -> None:
    cluster, log, drawn, failures = data.draw(MACHINES[place])
    which, log = {*rules.split()}, with_numbers(log, data.draw(QUEUES))
    if which & {"stop", "usage"}:
        log = crowded(log, data.draw(CLOSE))
    if "learned" in which and "usage" not in which and data.draw(st.booleans()):
        log = log.with_columns(user_id=log.user_id * 10**9)
    if "usage" in which and place == "pool":
        log = data.draw(with_power(log))
    common = chosen(data, which, usable(drawn), log)
    if place == "failing" and "budget" in which:  # not settled there: when Slurm looks again
        assume(not common["backfill"].startswith("slurm"))
    part, begin, end = log, None, math.inf
    if "extract" in which:
        log = recorded(data, log)
        part, common, begin, end = parts_of(data, log, common, last=place != "nodes")
        assume(part is not None)
    ours, theirs = dict[str, Any](), dict[str, Any]()
    if "learned" in which:
        learn(data, which, ours, theirs)
    if "relaxed" in which:
        relax(data, which, log, part, ours, theirs)
    log = restrict(data, which | {place}, log, ours, theirs, cluster)
    part = part if "extract" in which else log
    put_in_order(data, which, cluster, log, ours, theirs)
    ours, theirs = common | ours, common | theirs
    if "usage" in which:
        ours = heeded(ours)
    if failures or place == "failing":
        ours["failures"] = table_of(failures)
    lost: list[Any] = []
    if place == "pool":
        whole = {"lost": lost, "begin": begin, "end": end}
        expected = simulate_pool(jobs_of(log), log.processors, **whole, **theirs)
    else:
        jobs, capacity = slow_jobs_and_nodes(cluster, log)
        if place == "failing":
            expected, lost = simulate_failures(jobs, capacity, failures, begin, end, **theirs)
        else:
            try:
                expected = simulate_nodes(jobs, capacity, lost=lost, begin=begin, **theirs)
            except NoRoomError:
                why = why_not(hpcgym.simulate, part, cluster=cluster, **ours)
                assert "finds no room on the nodes" in why
                return
    if ours.get("fair_share") is not None:  # numbers end at a thousand half-lives
        assume(is_remembered(expected, ours["fair_share"].half_life_s))
    simulate = partial(hpcgym.simulate, part, cluster=cluster, **ours)
    result = same_in_pieces(data.draw(st.integers(0, 10**6)), simulate)
    if begin is not None:
        expected = [job for job in expected if job.end > begin or was_stopped(job)]
    assert_same(result, expected, lost)
    came = sorted(expected, key=lambda job: (job.submit, job.number))
    assert result.workload.job_number.tolist() == [job.number + 1 for job in came]
    proved = hpcgym.validate_schedule(result)
    assert {name for name, rule in PROVED.items() if theirs.get(rule)} <= {*proved}
    public = not any(rule in [*REGRESSIONS, *BY_TIME] for rule in ours.values() if rule is not None)
    public = public and not which & {"usage", "extract", "function"}
    if public and data.draw(st.sampled_from([False, False, True])):
        assert_same_results(simulate(engine="reference"), result)


@pytest.mark.parametrize(
    "rule",
    [
        {"quota": "all:jobs=1000"},
        {"quota": "user:processors=100000"},
        {"quota": "user:submitted=1000"},
        {"quota": "user:processor-minutes=100000000"},
        {"preemption": "queue:8>1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("place", ["pool", "nodes"])
@settings(max_examples=60)
@given(data=st.data())
def test_what_restricts_nobody_changes_nothing(
    place: str, rule: dict[str, Any], data: st.DataObject
) -> None:
    cluster, log, drawn, _ = data.draw(MACHINES[place])
    log = with_numbers(log, [1])
    rules = as_moved(fitted(usable(drawn))) | {"cluster": cluster}
    if place == "pool":
        rules["passes"] = "per-timestamp"  # else there would be more passes
    if place == "nodes" and "preemption" in rule:  # reservations are of nodes by name
        nobody_meets = {"maintenance": "10000000/10000001:nodes=0"}  # so they are here
        rules = around_windows(rules, log) | nobody_meets
    plain = hpcgym.simulate(log, **rules)
    bound = hpcgym.simulate(log, **rules, **rule)
    for name in ("start", "reserved_start", "backfilled", "wait"):
        assert getattr(bound, name).tolist() == getattr(plain, name).tolist()


GOES_ON = [
    *(("pool", rules) for rules in ("", "slurm", "anew", "state", "usage", "quota", "minutes")),
    ("pool", "network"),
    *((place, rules) for place in ("pool", "nodes") for rules in ("budget", "slurm budget")),
    *(("nodes", rules) for rules in ("", "slurm", "state", "quota", "usage", "minutes")),
    *(("pool", "slurm minutes"), ("nodes", "slurm minutes")),
]


@pytest.mark.parametrize(("place", "rules"), GOES_ON)
@settings(max_examples=100)
@given(data=st.data())
def test_a_simulation_goes_on_as_if_never_interrupted(
    place: str, rules: str, data: st.DataObject
) -> None:
    cluster, log, drawn, _ = data.draw(MACHINES[place])
    which, log = {*rules.split()}, with_numbers(log, data.draw(QUEUES))
    ours: dict[str, Any] = {}
    common = chosen(data, which, usable(drawn), log)
    restrict(data, which, log, ours, {}, cluster)
    put_in_order(data, which, cluster, log, ours, {})
    ours = common | ours
    ours = (heeded(ours) if "usage" in which else ours) | {"cluster": cluster}
    long = hpcgym.simulate(log, **ours)
    events = {*log.submit_time.tolist(), *long.start.tolist(), *long.end.tolist()}
    near = sorted({max(time + more, 0) for time in events for more in (-1, 0, 1)})
    begin = data.draw(st.one_of(st.sampled_from(near), st.integers(0, near[-1])))
    assume((long.end >= begin).any())
    for _ in range(2):  # what has gone on may do so again
        goes_on = long.end >= begin
        if not goes_on.any():
            break
        if not isinstance(ours["estimate"], str):
            some = zip(ours["estimate"], goes_on, strict=True)
            ours = ours | {"estimate": [seconds for seconds, on in some if on]}
        simulate = partial(hpcgym.simulate, hpcgym.continued(long, begin), **ours)
        result = same_in_pieces(data.draw(st.integers(0, 10**6)), simulate)
        for name in ("start", "end", "killed", "predicted_run_time", "reserved_start"):
            assert getattr(result, name).tolist() == getattr(long, name)[goes_on].tolist(), name
        later = result.start >= begin
        assert result.backfilled[later].tolist() == long.backfilled[goes_on][later].tolist()
        if result.allocation is not None:
            before = np.array(cells_of(long.allocation), object)[goes_on]
            same = ~later if result.workload.units is None else np.full(len(later), True)
            assert np.array(cells_of(result.allocation), object)[same].tolist() == (
                before[same].tolist()
            )
        hpcgym.validate_schedule(result)
        long, begin = result, data.draw(st.integers(begin + 1, near[-1] + 1))


def chosen(
    data: st.DataObject, which: set[str], rules: dict[str, Any], log: Workload
) -> dict[str, Any]:
    """The rules that go with what is in force, as both take them."""
    if which & {"slurm", "second"}:
        settings_drawn = data.draw(SLURM if "slurm" in which else plans(1, 7))
        rules = rules | {"backfill": with_few_looks(settings_drawn, log), "hold": None}
        rules |= {"passes": "per-timestamp"} if "passes" in rules else {}
        if which >= {"slurm", "budget"}:
            rules["backfill"] += f"+calc_period={data.draw(st.sampled_from([0, 40, 60, 100]))}"
        elif which >= {"slurm", "minutes"}:
            rules["backfill"] += f"+calc_period={data.draw(st.sampled_from([0, 1, 1, 7, 60, 300]))}"
    if "killed" in which:
        rules["correction"] = "kill"
    if which & {"quota", "minutes", "budget", "stop", "places"}:
        rules = fitted(rules, holds=which <= {"quota", "minutes", "budget"})
    if which & {"follow", "places"}:
        rules = as_moved(rules, alone=which == {"follow"})
    if "windows" in which:
        rules = around_windows(rules, log)
    if "extract" in which and rules["correction"] == "kill":  # other jobs would have run then
        rules["correction"] = "requested"
        rules = around_windows(rules, log)
    return rules


def learn(
    data: st.DataObject, which: set[str], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """Draw what predicts run times by those of jobs that have ended."""
    moved = bool(which & {"follow", "places"})
    rules = data.draw(st.sampled_from([TIMES, TIMES[:1], TIMES[1:]]))
    for rule in TIMES[1:] if moved else rules:
        some = LEARNED[: len(NAMED)] if moved else LEARNED
        ours[rule], theirs[rule] = data.draw(st.sampled_from(some))
    if "estimate" in ours:
        known = ["requested", "incremental", "recursive-doubling", "predicted-again"]
        ours["correction"] = theirs["correction"] = data.draw(st.sampled_from(known))


#: Up to which wait of the head backfilling is relaxed [s].
LIMITS = st.sampled_from([0.5, 1, 5, 20, 100, 2000, 10**9])


def relax(
    data: st.DataObject,
    which: set[str],
    log: Workload,
    part: Workload,
    ours: dict[str, Any],
    theirs: dict[str, Any],
) -> None:
    """Draw how relaxed backfilling is, and by which run times candidates are judged."""
    backfill, limit = (
        data.draw(st.sampled_from(["easy", "easy", "until-shadow"])),
        data.draw(LIMITS),
    )
    for rules in (ours, theirs):
        rules["backfill"], rules["relax"] = backfill, limit
    if "policy_estimate" in ours and data.draw(st.booleans()):  # it stands for candidates, too
        theirs["candidate_estimate"] = theirs["policy_estimate"]
        return
    some: list[Any] = [(name, name) for name in ("requested", "clairvoyant", "double-requested")]
    if part is log and not which & {"follow", "places"}:
        seconds = data.draw(predictions(log))
        some.append((seconds, seconds))
    if "policy_estimate" not in ours and not which & {"follow", "places"}:
        some += LEARNED
    rule = "candidate_estimate"
    ours[rule], theirs[rule] = data.draw(st.sampled_from(some))


def put_in_order(
    data: st.DataObject,
    which: set[str],
    cluster: Cluster,
    log: Workload,
    ours: dict[str, Any],
    theirs: dict[str, Any],
) -> None:
    """Draw orders by expressions that waiting changes, or by what users have used."""
    if "anew" in which:
        for rule in data.draw(st.sampled_from([ORDERS, ORDERS[:1], ORDERS[1:]])):
            texts = general()
            if "policy_estimate" in ours:
                texts = st.one_of(texts, st.sampled_from(BY_TIME))
            text = data.draw(texts)
            assume(not (which & {"follow", "places"} and re.search("submit|clock|f1|f4", text)))
            ours[rule], theirs[rule] = text, ByExpression(text, log)
    if "function" in which:
        ours["policy"], theirs["policy"] = Whim(), Whim()
    if which & {"state", "network"}:
        for rule in data.draw(st.sampled_from([ORDERS, ORDERS[:1], ORDERS[1:]])):
            drawn = data.draw(of_state() if "state" in which else networks())
            names = names_in(drawn)
            assume(not (which & {"follow", "places"} and re.search("submit|clock|f1|f4", names)))
            ours[rule], theirs[rule] = drawn, slow_order(drawn, log)
    if "usage" in which:
        ours["fair_share"], slow = data.draw(accounts(log))
        if cluster.groups:
            wait = data.draw(st.sampled_from([0.0101, -0.0101]))
            rest, size = weighted((0, 0, wait, 0, 0, 0)), cluster.processors
            watts = [1.0] * len(log)
            alone = "fairshare", SlowOrder("cpu", slow, watts, 1.0, processors=size)
            mixed = (
                {"fairshare": 1.0, "wait": wait},
                SlowOrder((1.0, 0.0), slow, watts, 1.0, rest, processors=size),
            )
            by_usage: list[Any] = [alone, mixed]
        else:
            by_usage = [data.draw(order(slow, watts_of(log))) for _ in range(2)]
        others = [(name, name) for name in ("fcfs", "sjbf", "spf")]
        first = data.draw(st.sampled_from([*by_usage, *by_usage, others[0]]))
        second = data.draw(st.sampled_from([first, *by_usage, *others]))
        for rule, both in zip(ORDERS, (first, second), strict=True):
            ours[rule], theirs[rule] = both


def is_remembered(jobs: list[Any], half_life: int | None) -> bool:
    """Whether what jobs have used has not decayed beyond the smallest number."""
    last = max((job.end for job in jobs), default=0)
    first = min((job.submit for job in jobs), default=0)
    return half_life is None or last - first < 900 * half_life


def was_stopped(job: Any) -> bool:
    """Whether a job was cancelled, maybe as an extract began."""
    return bool(job.start >= 0 and job.end - job.start < job.actual)


def test_a_head_that_a_quota_bars_since_leaves_its_place() -> None:
    """Job 2 has started behind job 1, of the same user, and so nothing is reserved for job 1."""
    log = few_jobs(5, [0, 1, 2, 3], [100, 50, 50, 200], [3, 5, 1, 1], user_id=[9, 1, 1, 2])
    rules = {"quota": "user:jobs=1"}
    for engine in (None, "reference"):
        result = hpcgym.simulate(log, "easy", engine=engine, **rules)
        assert result.start.tolist() == [0, 203, 2, 3]


def test_scores_follow_predictions_that_change_while_jobs_wait() -> None:
    """What an expression has of a job is worked out anew once its user's jobs have ended."""
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        run = rng.integers(1, 60, 40)
        log = few_jobs(
            4, np.sort(rng.integers(0, 400, 40)), run, rng.integers(1, 4, 40),
            requested=run * rng.integers(1, 9, 40), user_id=rng.integers(1, 5, 40),
        )  # fmt: skip
        rules = {"policy": "wait*free-log(requested)", "policy_estimate": "typical-ratio"}
        result = hpcgym.simulate(log, "easy", **rules)
        slow = hpcgym.simulate(log, "easy", engine="reference", **rules)
        assert result.start.tolist() == slow.start.tolist()
        fixed = hpcgym.simulate(log, "easy", **{**rules, "policy_estimate": "requested"})
        changed += result.start.tolist() != fixed.start.tolist()
    assert changed > 10
