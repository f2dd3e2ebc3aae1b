"""A policy that is named alone is the same scheduler wherever it is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcgym import Scheduler, load_workload, simulate
from hpcgym.baselines.schedulers import SCHEDULERS, find_scheduler
from hpcgym.cli.lineup import RuleCombination, lineup, rules_of
from hpcgym.explore.live import options_of
from hpcgym.scheduler.files import scheduler_text
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study import load_experiment
from hpcgym.study.evaluation.policies import queue_order, scheduler_of

JOBS = load_workload("lublin:jobs=120,processors=32,load=2,seed=4,users=5")
BATCH = "lublin:jobs=50,processors=16"


def only(rows: dict[str, Scheduler]) -> Scheduler:
    """The scheduler of the only row."""
    (scheduler,) = rows.values()
    return scheduler


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("sjf", "spf"),
        ("lqf", "spf"),
        ("20 * wait - area", "spf"),
        ("0,0,0,0,0,-1", "spf"),
        ("fairshare", "fairshare"),
        ("fcfs", "fcfs"),
    ],
)
def test_a_policy_alone_is_one_scheduler_everywhere(
    policy: str, order: str, tmp_path: Path
) -> None:
    rule = {"policy": policy}
    text = f"policy = {policy!r}\n"
    (tmp_path / "one.toml").write_text(text)
    (tmp_path / "sweep.toml").write_text(
        f"schedulers = [{{ name = 'one', {text.strip()} }}]\n[[workloads]]\nworkload = '{BATCH}'\n"
    )
    schedulers = {
        "Python": Scheduler(policy),
        "simulate": rules_of("easy", rule),
        "compare": only(lineup({}, [RuleCombination(rule, {})], sharing=False)).rules,
        "compare easy": only(
            lineup({"easy": "easy"}, [RuleCombination(rule, {})], sharing=False)
        ).rules,
        "file": find_scheduler(str(tmp_path / "one.toml")),
        "sweep": load_experiment(tmp_path / "sweep.toml").schedulers["one"],
    }
    if policy != "fcfs":  # as a scheduler, this is the queue without backfilling
        schedulers |= {"evaluate": scheduler_of(policy, {}), "drive": queue_order(policy)}
    if policy in SCHEDULERS and policy != "fcfs":
        schedulers |= {"scheduler": find_scheduler(policy)}
        assert np.array_equal(simulate(JOBS, policy).start, simulate(JOBS, **rule).start)
    expected = Scheduler(policy, backfill_order=order).describe()
    assert {name: scheduler.describe() for name, scheduler in schedulers.items()} == dict.fromkeys(
        schedulers, expected
    )
    assert scheduler_text(Scheduler(policy)).strip() == (
        "" if policy == "fcfs" else text.strip().replace("'", '"')
    )


@pytest.mark.parametrize("given", ["fcfs", "sqf"])
def test_a_backfill_order_that_is_given_stays_and_is_told(given: str) -> None:
    scheduler = Scheduler("saf", backfill_order=given)
    assert options_of(scheduler) == ["--policy", "saf", "--backfill-order", given]
    assert scheduler_text(scheduler) == f'policy = "saf"\nbackfill_order = "{given}"\n'
    assert options_of(Scheduler("saf")) == ["--policy", "saf"]


@pytest.mark.parametrize("begin", ["easy", "easy-sjbf", "spf", "easy:backfill_order=fcfs"])
def test_a_batch_backfills_as_simulate_does_under_weights(begin: str) -> None:
    weights = {"area": -1.0, "wait": 20.0}
    batch = BatchSimulator([JOBS], [*weights], begin)
    result = simulate(JOBS, begin, policy=weights)
    assert batch.run([[*weights.values()]])[0, 0] == pytest.approx(result.metrics["mean_bsld"])
