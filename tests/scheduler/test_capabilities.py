"""Each rule in each place: what goes together makes the schedule of `simulate`, and no other."""

from __future__ import annotations

import dataclasses
import itertools
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
from mistakes import mistakes_of, why_not

import hpcgym
from hpcgym import Cluster, Scheduler, Workload, simulate, validate_schedule
from hpcgym.agents.lookahead import Lookahead
from hpcgym.envs import Submit
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.machine import Failures, NodeGroup, NodePower, Partition
from hpcgym.scheduler.capabilities import APART, FEATURES, PLACES, check, table
from hpcgym.scheduler.limits import PowerCap
from hpcgym.simulation.batch import METRICS, BatchSimulator
from hpcgym.workload.codes import with_codes

#: Place -> others whose refusals hold there too.
WITHIN = {
    "failures": ("nodes",),
    "whole nodes": ("nodes",),
    "shared nodes": ("nodes",),
    "limits": ("whole nodes", "nodes"),
    "environments": ("pool",),
    "job selection": ("environments", "pool"),
    "environments by rule": ("environments", "pool"),
    "submissions": ("environments by rule", "environments", "pool"),
    "environments on nodes": ("environments", "nodes"),
    "environments under limits": ("environments", "limits", "whole nodes", "nodes"),
    "batches": ("pool",),
    "batches on nodes": ("batches", "nodes"),
    "look-ahead": ("pool",),
}


#: Feature -> another that who asks for it asks for, too.
ALSO = {
    "last runs": ("state",),
    "dispatch time": ("dispatcher",),
    "submitted": ("quota",),
    "minutes": ("quota",),
    "unforgotten": ("quota", "minutes"),
    "contiguous": ("whole nodes",),
    "shutdown": ("whole nodes",),
}
PAIRS = [set(pair) for pair in APART]


def refuses(place: str, feature: str) -> bool:
    """Return whether a feature does not go with a place, or with what that is within."""
    places = (place, *WITHIN.get(place, ()))
    features = (feature, *ALSO.get(feature, ()))
    if "nodes" not in places:  # of nodes' own there is nothing
        features = tuple(name for name in features if name != "whole nodes")
    return any({each, where} in PAIRS for each in features for where in places)


N = 30
JOBS = hpcgym.load_workload(f"lublin:jobs={N},processors=8,seed=1").with_columns(
    wait_time=[0] * N, user_id=[job % 3 for job in range(N)]
)
PLAIN_NODES = Cluster(groups=(NodeGroup("a", 4, {"core": 4}, power=NodePower(10.0, 100.0)),))
NODES = Cluster(groups=(NodeGroup("a", 4, {"core": 4, "mem": 8}, power=NodePower(10.0, 100.0)),))
#: Each unit needs memory too: else a machine of nodes is a pool of cores.
NEEDY = Workload.from_columns(
    {name: column for name, column in JOBS.columns.items() if name != "job_number"},
    processors=16,
    units=JOBS.requested_processors,
    per_unit={"core": [1] * N, "mem": [1] * N},
)
CODED = with_codes(JOBS, ["code-1", "code-2"] * (N // 2))
POOL = Cluster(8)
FAILURES = Failures([0, 3], [100, 4000], [500, 9000])


class Twice:
    """A predictor in Python."""

    def predict_one(self, x: dict[str, Any]) -> float:
        return 2 * float(x["last"])

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        pass


RULES: dict[str, dict[str, Any]] = {
    "conservative": {"backfill": "conservative"},
    "depth": {"backfill": "depth:3"},
    "slurm": {"backfill": "slurm"},
    "per-event": {"passes": "per-event"},
    "kill": {"correction": "kill"},
    "averages": {"estimate": "ave2"},
    "learned": {"estimate": "e-loss"},
    "predictor": {"estimate": Twice()},
    "usage": {"backfill_order": "fairshare"},
    "anew": {"backfill_order": "log(1 + wait) - requested"},
    "state": {"backfill_order": "(free > 0.3) * processors - user_waiting * queued"},
    "last runs": {"backfill_order": "(free > 0.3) * processors - user_waiting * last_run"},
    "dispatcher": {"dispatcher": "prb"},
    "dispatch time": {"dispatcher": "prb", "dispatch_time": 60},
    "threshold": {"threshold": 60},
    "function": {"policy": lambda view: -view.submit},
    "hold": {"hold": 0.1},
    "relax": {"relax": 3600, "candidate_estimate": "requested"},
    "until-shadow": {"backfill": "until-shadow"},
    "quota": {"quota": "user:jobs=100"},
    "submitted": {"quota": "user:submitted=100"},
    "minutes": {
        "quota": "user:processor-minutes=10000000; all/half-life=1h:processor-minutes-used=200"
    },
    "unforgotten": {"quota": "user:processor-minutes-used=10000000"},
    "maintenance": {"maintenance": f"{JOBS.submit_time[5]}/{JOBS.submit_time[9]}"},
    "preemption": {"preemption": "user:1>0"},
    "dependencies": {"dependencies": "after"},
    "contiguous": {"allocation": "contiguous"},
    "shutdown": {},
    "partitions": {},
    "extract": {},
}


#: The order of the queue wherever weights or an agent make it: small area first.
SAF = {"area": -1.0}
#: What environments and batches have unless they are told otherwise; `simulate` is told, too.
PLAIN = {"backfill": "easy", "backfill_order": "fcfs", "estimate": "requested"}


def plain(rules: dict[str, Any]) -> dict[str, Any]:
    """Return the rules with what is usual; a dispatcher has no order of backfilling."""
    return rules if "dispatcher" in rules else PLAIN | rules


def proved(jobs: Workload, *, cluster: Cluster, **rules: Any) -> None:
    """Simulate; what makes no code of the engine's says whether the schedule is one."""
    validate_schedule(simulate(jobs, cluster=cluster, **rules))


def as_simulated(jobs: Workload, cluster: Cluster, rules: dict[str, Any]) -> Any:
    """The schedule that all other places are to make: there weights stand for any policy."""
    rules = rules | {"policy": SAF}
    return simulate(jobs, cluster=cluster, **plain(rules))


def played(
    name: str, jobs: Workload, *, cluster: Cluster, limits: Any = None, **rules: Any
) -> None:
    """Play an environment by a rule that `simulate` has, too."""
    given = {"workload": jobs, "cluster": cluster, "episodes": "whole", "window": 64}
    if limits is not None:
        given |= {"limits": limits}
    if name == "Inspector-v2":
        given |= {"policy": SAF}
    env = plain_envs.make(f"hpcgym/{name}", **given | plain(rules)).unwrapped
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, info = env.step(ACTIONS[name](env, jobs, info))
    if limits is not None:
        expected = simulate(jobs, cluster=cluster, limits=limits, **plain(rules))
    else:
        expected = as_simulated(jobs, cluster, rules)
    assert env.result().start.tolist() == expected.start.tolist()


def least_area(env: Any, jobs: Workload, info: dict[str, Any]) -> int:
    """The place of the visible job with the smallest area, the first of equals."""
    area = jobs.requested_processors * jobs.requested_time
    window = info["window"]
    return int(np.argmin(np.where(window >= 0, area[window], np.inf)))


ACTIONS: dict[str, Callable[..., Any]] = {
    "MixedPolicy-v2": lambda env, jobs, info: (
        -1.0 * np.array([name == "area" for name in env.policy_features])
    ),
    "JobSelection-v2": least_area,
    "Inspector-v2": lambda env, jobs, info: 0,
    "PowerCap-v1": lambda env, jobs, info: np.ones(env.action_space.shape),  # nothing is limited
}


def submitted(jobs: Workload, *, cluster: Cluster, **rules: Any) -> None:
    """Submit the jobs of a user in the only shape that there is, the logged one."""
    env = Submit(
        jobs, cluster=cluster, episodes="whole", user=0, widths=(1,), requests=(1,),
        **{"policy": SAF} | plain(rules)
    )  # fmt: skip
    env.reset(seed=0)
    while not env.step(0)[2]:
        pass
    expected = as_simulated(jobs, cluster, rules)
    assert env.result().start.tolist() == expected.start.tolist()


def batch(jobs: Workload, *, cluster: Cluster, **rules: Any) -> None:
    """Simulate in a batch, with all metrics of batches."""
    run = BatchSimulator([jobs], ["area"], Scheduler(**plain(rules)), cluster=cluster).run
    values = run([[-1.0]], list(METRICS))[0, 0]
    expected = as_simulated(jobs, cluster, rules).metrics
    assert values.tolist() == pytest.approx([expected[metric] for metric in METRICS], rel=1e-12)


def look_ahead(jobs: Workload, *, cluster: Cluster, **rules: Any) -> None:
    """Follow one policy by looking ahead: there is no other to be followed."""
    result = Lookahead(portfolio=["saf"]).run(jobs, Scheduler(**plain(rules)), cluster=cluster)
    assert result.start.tolist() == as_simulated(jobs, cluster, rules).start.tolist()


def foresee(jobs: Workload, *, cluster: Cluster, **rules: Any) -> None:
    """Ask when a job of one processor starts that would be submitted amid the log."""
    state = hpcgym.snapshot(jobs, int(JOBS.submit_time[10]) + 1, cluster=cluster)
    forecasts = hpcgym.forecast(state, Scheduler(**plain(rules)), futures=2)
    assert (forecasts.if_submitted(1, "1h").starts >= state.time).all()


#: Who tries it with which jobs on which machine.
TRIED: dict[str, tuple[Callable[..., Any], Workload, Cluster]] = {
    "pool": (proved, JOBS, POOL),
    "nodes": (proved, NEEDY, NODES),
    "failures": (partial(proved, failures=FAILURES), NEEDY, NODES),
    "whole nodes": (partial(proved, limits=[]), NEEDY, NODES),
    "limits": (partial(proved, limits=[PowerCap(300)]), NEEDY, NODES),
    "shared nodes": (partial(proved, speedups="generated:codes=2"), CODED, PLAIN_NODES),
    "environments": (partial(played, "MixedPolicy-v2"), JOBS, POOL),
    "job selection": (partial(played, "JobSelection-v2"), JOBS, POOL),
    "environments by rule": (partial(played, "Inspector-v2"), JOBS, POOL),
    "submissions": (submitted, JOBS, POOL),
    "environments on nodes": (partial(played, "MixedPolicy-v2"), NEEDY, NODES),
    "environments under limits": (partial(played, "PowerCap-v1", limits=[]), NEEDY, NODES),
    "batches": (batch, JOBS, POOL),
    "batches on nodes": (batch, NEEDY, NODES),
    "look-ahead": (look_ahead, JOBS, POOL),
    "forecasts": (foresee, JOBS, POOL),
}


REFUSED = (HpcgymError, TypeError)
BY_THE_TABLE = "do not go together"
#: What is refused before the table is asked: an argument that there is not, or a value.
OTHERWISE: dict[tuple[str, str], str] = {
    **{
        (place, feature): "unexpected keyword argument"
        for place in PLACES
        for feature in ("dispatcher", "dispatch time", "function")
        if "env" in place and (place, feature) != ("environments by rule", "function")
    },
    **{
        ("submissions", feature): "unexpected keyword argument"
        for feature in ("dispatcher", "dispatch time")
    },
    ("shared nodes", "contiguous"): "^allocation: with speedups",
    **{
        ("shared nodes", feature): "^estimate: with speedups .* are not learned"
        for feature in ("averages", "learned", "predictor")
    },
    **{
        (place, "contiguous"): "for machines with nodes"
        for place in (
            "pool",
            "batches",
            "look-ahead",
            "environments",
            "job selection",
            "submissions",
        )
    },
    ("environments by rule", "contiguous"): "for machines with nodes",
    # a state is an extract, with what that does not know
    ("forecasts", "contiguous"): BY_THE_TABLE,
    ("forecasts", "dependencies"): "and an extract do not go together",
    ("forecasts", "shutdown"): "which processors were off at its beginning is not known",
    ("forecasts", "extract"): "is an extract itself",
}
for feature, words in (
    ("dispatcher", "unexpected keyword"),
    ("dispatch time", "unexpected keyword"),
    ("function", "unexpected keyword"),
):
    OTHERWISE["job selection", feature] = words


#: Places that compile much for each rule: what goes there is slow to try.
COMPILED = [place for place in PLACES if place != "pool"]


@pytest.mark.parametrize(
    ("place", "feature"),
    [
        pytest.param(
            place,
            feature,
            marks=[pytest.mark.slow] * (not refuses(place, feature) and place in COMPILED),
        )
        for place, feature in itertools.product(PLACES, FEATURES)
        if feature != "partitions" or TRIED[place][2].groups  # a pool has none
    ],
)
def test_each_rule_in_each_place(place: str, feature: str) -> None:
    run, jobs, cluster = TRIED[place]
    if feature == "shutdown":
        cluster = dataclasses.replace(cluster, shutdown_after_s=60)
    if feature == "partitions":
        cluster = dataclasses.replace(cluster, partitions=(Partition("1", (0, 1)),))
        jobs = jobs.with_columns(partition=[1] * len(jobs))
    if feature == "extract":
        jobs = jobs.extract(int(jobs.submit_time[10]))
    expected = BY_THE_TABLE if refuses(place, feature) else "^$"
    why = why_not(run, jobs, errors=REFUSED, cluster=cluster, **RULES[feature])
    assert re.search(OTHERWISE.get((place, feature), expected), why), why


@pytest.mark.parametrize("pair", [pair for pair in APART if {*pair} <= FEATURES.keys()], ids=str)
def test_two_things_that_no_machine_takes_together(pair: tuple[str, str]) -> None:
    jobs = JOBS.extract(int(JOBS.submit_time[10])) if "extract" in pair else JOBS
    cluster = dataclasses.replace(POOL, shutdown_after_s=60) if "shutdown" in pair else POOL
    rules = RULES[pair[0]] | RULES[pair[1]]
    assert BY_THE_TABLE in why_not(simulate, jobs, cluster=cluster, **rules)


def test_rules_that_a_scheduler_has_together() -> None:
    for rule in ("function", "hold", "per-event"):
        for backfill in ("none", "easy", "until-shadow"):
            Scheduler(**RULES[rule] | {"backfill": backfill})
    Scheduler(**RULES["per-event"] | RULES["conservative"])


def test_all_names_are_known() -> None:
    assert {name for pair in APART for name in pair} <= {*PLACES, *FEATURES}
    assert len({frozenset(pair) for pair in APART}) == len(APART)
    assert list(RULES) == list(FEATURES)


def test_the_docs_show_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "semantics.md"
    assert table() in page.read_text(encoding="utf-8"), "run scripts/pages.py"


@pytest.mark.slow
def test_nodes_of_their_own_are_not_given_in_silence() -> None:
    asleep = dataclasses.replace(NODES, shutdown_after_s=60)
    with pytest.warns(HpcgymWarning, match=r"^shutdown_after_s: nodes are switched off"):
        loud = simulate(NEEDY, cluster=asleep)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = simulate(NEEDY, cluster=asleep, limits=[])
        simulate(NEEDY, cluster=asleep, allocation="contiguous")
    assert loud.start.tolist() == meant.start.tolist()


test_mistakes = mistakes_of(globals(), check)
