"""The rule that evolution finds: its formula, that seeds make it, and the file that it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.agents import TRAINED, ending_of, import_agent
from hpcgym.agents.practice import maker
from hpcgym.agents.rule_es import RuleEs, formula_of
from hpcgym.baselines.schedulers import find_scheduler

WORKLOAD = "lublin:jobs=1500,processors=32,seed=3,load=0.5"
SMALL = {"generations": 3, "population": 4, "worlds": 0}


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
    held = aged.but(hold={"share": 0.01, "by": "both"})
    assert (simulate(jobs, RuleEs().scheduler).start == simulate(jobs, held).start).all()


def test_the_threshold_is_a_term_that_grows_with_what_the_machine_is_behind() -> None:
    """As that of the engine, if what the machine is behind does not count."""
    jobs = load_workload("lublin:jobs=1500,processors=32,seed=3,load=1.2")
    agent = RuleEs(scheduler="saf-typical-20h-hold")
    multiple = len(agent.vector) - 2
    agent.vector[multiple] = -40
    term = agent.scheduler
    assert "max(wait-max(72000,1.03e-09*behind),0)" in str(term.policy)
    rule = RuleEs(scheduler="saf-typical").scheduler.but(threshold=72_000, hold=term.hold)
    starts = simulate(jobs, rule).start
    assert (simulate(jobs, term).start == starts).all()
    assert (simulate(jobs, rule.but(threshold=None)).start != starts).any()
    agent.vector[multiple] = 4
    assert (simulate(jobs, agent.scheduler).start != starts).any()


def test_the_hold_is_searched_in_powers() -> None:
    agent = RuleEs()
    for moved, share in ((0, 0.01), (2, 0.0272), (-2, 0.00368), (9, 0.1)):
        agent.vector[-1] = moved
        assert agent.scheduler.hold.share == share
        assert agent.scheduler.hold.by == "both"


def test_seeds_make_rules() -> None:
    agent, again, other = trained(), trained(), trained(seed=1)
    assert agent.scheduler == again.scheduler
    assert agent.scheduler.policy != other.scheduler.policy
    assert agent.scheduler.but(policy="fcfs", hold=None) == find_scheduler("saf-typical").but(
        policy="fcfs"
    )


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
    assert "requested" in str(scheduler.backfill_order)
    assert scheduler.hold.by == "both"
    assert scheduler.threshold is None


def test_of_a_scheduler_one_rule_is_searched() -> None:
    """The order of the queue, or of the jobs to backfill; all others are what they were."""
    for name in ("easy", "saf", "fairshare", "aged", "conservative"):
        rules = find_scheduler(name)
        scheduler = trained(scheduler=name, generations=1).scheduler
        assert scheduler.backfill_order == rules.backfill_order
        assert scheduler == rules.but(policy=scheduler.policy, backfill_order=rules.backfill_order)
        assert "behind" not in str(scheduler.policy)
        if name != "conservative":  # which has no such order
            filled = trained("Backfill", scheduler=name, generations=1).scheduler
            assert filled == rules.but(backfill_order=filled.backfill_order)


def test_where_features_are_weighed_only_their_weights_depend_on_the_state() -> None:
    formula = trained("MixedPolicy").scheduler.policy
    assert "free" in str(formula)
    for other in ("fits", "leaves", "behind"):
        assert other not in str(formula)


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


# --- What cannot be -------------------------------------------------------------------------------


test_mistakes = mistakes_of(globals())
