"""The rule that evolution finds: what it is worth, that seeds make it, and the file that it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.agents import TRAINED, ending_of, import_agent, rule_es
from hpcgym.agents.practice import maker
from hpcgym.agents.rule_es import RuleEs, formula_of
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.workload.stretching import stretched

WORKLOAD = "lublin:jobs=1500,processors=32,seed=3,load=0.5"
SMALL = {"generations": 3, "population": 4}


def make_of(env: str = "QueueOrdering", workload: object = WORKLOAD):
    return maker(workload, f"hpcgym/{env}-v2", {})


def trained(env: str = "QueueOrdering", seed: int = 0, **settings: object) -> RuleEs:
    return RuleEs(**{**SMALL, **settings}).train(make_of(env), seed, 10**9)


def test_it_is_the_agent_of_its_name() -> None:
    module, name = TRAINED["rule-es"]
    assert getattr(import_agent(module), name) is RuleEs
    assert ending_of("rule-es") == ".toml"


def test_it_begins_as_the_scheduler_aged() -> None:
    jobs, aged = load_workload(WORKLOAD), find_scheduler("aged")
    begun = RuleEs(scheduler="saf-typical").scheduler
    assert (simulate(jobs, begun).start == simulate(jobs, aged).start).all()


def test_seeds_make_rules() -> None:
    agent, again, other = trained(), trained(), trained(seed=1)
    assert agent.scheduler == again.scheduler
    assert agent.scheduler.policy != other.scheduler.policy
    assert agent.scheduler.but(policy="fcfs") == find_scheduler("saf-typical-80h").but(
        policy="fcfs"
    )


def test_it_ends_with_its_steps_or_its_generations() -> None:
    steps_told: list[int] = []
    jobs = len(make_of().logs[load_workload(WORKLOAD).name])
    agent = RuleEs(population=4, generations=9)
    agent.train(make_of(), 0, 2 * 5 * jobs, lambda steps, values: steps_told.append(steps))
    assert steps_told == [5 * jobs, 10 * jobs]  # EASY and four vectors in each generation
    steps_told.clear()
    RuleEs(**SMALL).train(make_of(), 0, 10**9, lambda steps, values: steps_told.append(steps))
    assert len(steps_told) == 3


def test_a_formula_is_the_sum_of_features_by_their_weights() -> None:
    terms = {"wait": ("1", "free", "log(1+queued)"), "processors": ("1",)}
    weighed = {
        (0, 0, 0, 0): "0",
        (-1, 0, 0, 0.25): "-1*wait+0.25*processors",
        (0, 2, 0, -3): "2*free*wait-3*processors",
        (1, -2, 5, 0): "(1-2*free+1*log(1+queued))*wait",  # a fifth of the move for queues
    }
    for weights, formula in weighed.items():
        assert formula_of(terms, np.array(weights, float)) == formula


def test_where_jobs_are_backfilled_the_head_is_the_environments() -> None:
    scheduler = trained("Backfill").scheduler
    assert scheduler.policy == "fcfs"
    assert "free" in str(scheduler.backfill_order)
    assert scheduler.threshold is None


def test_of_a_scheduler_one_rule_is_searched() -> None:
    """The order of the queue, or of the jobs to backfill; all others are what they were."""
    for name in ("easy", "saf", "fairshare", "aged", "conservative"):
        rules = find_scheduler(name)
        scheduler = trained(scheduler=name, generations=1).scheduler
        assert scheduler.backfill_order == rules.backfill_order
        assert scheduler == rules.but(policy=scheduler.policy, backfill_order=rules.backfill_order)
        if name != "conservative":  # which has no such order
            filled = trained("Backfill", scheduler=name, generations=1).scheduler
            assert filled == rules.but(backfill_order=filled.backfill_order)


def test_where_features_are_weighed_only_their_weights_depend_on_the_state() -> None:
    formula = trained("MixedPolicy").scheduler.policy
    assert "free" in str(formula)
    assert "fits" not in str(formula)
    assert "leaves" not in str(formula)


def test_the_environments_of_one_question_have_one_rule() -> None:
    assert len({trained(env).scheduler for env in ("QueueOrdering", "JobSelection")}) == 1


def test_it_is_a_scheduler_in_a_file(tmp_path: Path) -> None:
    agent = trained()
    agent.save(tmp_path / "rule.toml")
    read, jobs = find_scheduler(str(tmp_path / "rule.toml")), load_workload(WORKLOAD)
    assert (simulate(jobs, read).start == simulate(jobs, agent.scheduler).start).all()


def test_several_logs_are_learned_from() -> None:
    other = "lublin:jobs=900,processors=64,seed=4,load=0.5"
    both = RuleEs(**SMALL).train(make_of(workload=[WORKLOAD, other]), 0, 10**9)
    assert both.scheduler not in (trained().scheduler, RuleEs().scheduler)


# --- What a rule is worth -------------------------------------------------------------------------


def test_easy_is_worth_nothing_and_what_starves_costs() -> None:
    met = rule_es._meet(load_workload(WORKLOAD))
    assert rule_es._value(met, Scheduler()) == 0.0
    saf = rule_es._value(met, Scheduler("saf"))
    assert saf > 0
    lazy = Scheduler("-log(max(requested,1))-3*log(processors)", backfill="none")
    ours = simulate(met.jobs, lazy)
    waits = np.sort(ours.wait)[-1] / 3600 / max(2 * met.easy.longest_wait_h, 72)
    areas = np.asarray(ours.workload.requested_processors * ours.run_time, float)
    weighted = float((areas * ours.wait).sum() / areas.sum()) / 3600
    used = np.array([waits, weighted / (2 * met.easy.area_weighted_wait_h)])
    weeks = (met.jobs.submit_time - met.jobs.submit_time[0]) // 604_800
    easy = simulate(met.jobs, Scheduler())
    logs = [
        np.log(easy.bsld[weeks == week].mean() / ours.bsld[weeks == week].mean())
        for week in np.unique(weeks)
        if (weeks == week).sum() >= 20
    ]
    cost = 2 * np.log(np.maximum(used / 0.9, 1)).sum()
    assert cost > 0
    assert rule_es._value(met, lazy) == pytest.approx(np.mean(logs) - cost)


def test_where_nothing_waits_under_easy_a_wait_of_minutes_keeps_the_gate() -> None:
    met = rule_es._meet(few_jobs(64, range(0, 1000, 50), [100] * 20, [1] * 20))
    assert rule_es._value(met, Scheduler("saf")) == met.easy.area_weighted_wait_h == 0
    waits = Scheduler("saf", quota="user:jobs=1")
    slowdown = simulate(met.jobs, waits).bsld.mean()
    assert rule_es._value(met, waits) == pytest.approx(-np.log(slowdown))


def test_logs_are_more_or_less_crowded() -> None:
    jobs = load_workload(WORKLOAD)
    slow = stretched(jobs, 2.0)
    assert (np.diff(slow.submit_time) == 2 * np.diff(jobs.submit_time)).all()
    assert (slow.run_time == jobs.run_time).all()
    same = trained(stretch=0.0)
    assert same.scheduler != trained().scheduler


# --- What cannot be -------------------------------------------------------------------------------


test_mistakes = mistakes_of(globals())
