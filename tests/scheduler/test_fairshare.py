"""Shares and accounts as users give them, and where nobody counts usage."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import plain_envs
import pytest
from mistakes import mistakes_of
from plain_envs import plain

import hpcgym
from hpcgym import Scheduler, simulate
from hpcgym.agents.lookahead import Lookahead
from hpcgym.baselines import find_baseline
from hpcgym.envs.ids import id_of
from hpcgym.errors import WorkloadWarning
from hpcgym.scheduler.policies import FairShare
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study import evaluate, read_table, run_experiment

JOBS = hpcgym.load_workload("lublin:jobs=60,processors=16,seed=1,load=1.2")


def test_what_is_given_is_kept_and_told() -> None:
    given = {"physics": 3, 12: 0.5}
    fair = FairShare(86_400, 2, given, {12: "physics", "13": "physics"})
    given["physics"] = 7
    assert fair.shares == {"physics": 3.0, 12: 0.5}
    assert fair.accounts == {12: "physics", 13: "physics"}
    assert str(fair) == (
        "half_life_s=86400, damping=2, shares physics=3 12=0.5, accounts 12<physics 13<physics"
    )
    described = Scheduler("fairshare", fair_share=fair).describe()
    assert described["fair_share"] == str(fair)
    assert Scheduler("fairshare").describe()["fair_share"] is None


def test_a_text_and_a_file_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "shares.toml"
    file.write_text(
        "half_life_s = 3600\ndamping = 2.5\n[shares]\nbiology = 2\n-1 = 3\n"
        '[accounts]\n7 = "biology"\nbiology = "science"\n'
    )
    expected = FairShare(3600, 2.5, {"biology": 2, -1: 3}, {7: "biology", "biology": "science"})
    assert Scheduler("fairshare", fair_share=str(file)).fair_share == expected
    short = Scheduler("fairshare", fair_share="half_life_s=inf, damping=2.5, accounts=group")
    assert short.fair_share == FairShare(math.inf, 2.5, accounts="group")
    tree = Scheduler("fairshare", fair_share="formula=fair-tree,accounts=group")
    assert tree.fair_share == FairShare(accounts="group", formula="fair-tree")
    assert FairShare.parse(tree.fair_share.table()) == tree.fair_share


def test_sweeps_take_shares(tmp_path: Path) -> None:
    (tmp_path / "shares.toml").write_text("half_life_s = 60\n[shares]\n1 = 30\n")
    experiment = tmp_path / "x.toml"
    experiment.write_text(
        """
        schedulers = [
          "fairshare",
          { name = "by file", scheduler = "fairshare", fair_share = "shares.toml" },
          { name = "by table", scheduler = "fs+efs", fair_share = { shares = { 1 = 30 } } },
        ]
        metrics = ["mean_bsld"]
        [[workloads]]
        workload = "lublin:jobs=300,processors=16,seed=1,load=1.2"
        """
    )
    folder = tmp_path / "x.sweep"
    run_experiment(experiment, folder, "serial")
    table = read_table(folder).set_index("scheduler")["mean_bsld"]
    jobs = hpcgym.load_workload("lublin:jobs=300,processors=16,seed=1,load=1.2")
    shares = {"by file": FairShare(60, shares={1: 30}), "by table": FairShare(shares={1: 30})}
    for name, fair in shares.items():
        ours = simulate(jobs, "fairshare", fair_share=fair).metrics["mean_bsld"]
        assert table[name] == ours
    assert table["by table"] != table["fairshare"]


# --- Who does not count usage ---------------------------------------------------------------


def mixed() -> Any:
    """An environment of weights of waiting and of usage."""
    options = {"workload": JOBS, "jobs": 5, "policy_features": ["wait", "fairshare"]}
    return plain_envs.make("hpcgym/MixedPolicy-v2", **options)


def test_a_baseline_by_usage_weighs_it() -> None:
    weighs = find_baseline("fairshare")
    weighs.begin(mixed())
    assert weighs.act({}, {}).tolist() == [0.0, 1.0]


DARK = hpcgym.Cluster(16, busy_power_w=0.0)


def test_processors_are_shared_without_power() -> None:
    simulate(JOBS, "fairshare", cluster=DARK)


# --- Shares that do nothing -----------------------------------------------------------------------


def weighing(*features: str) -> None:
    """Evaluate an agent that weighs features of jobs, of users with shares."""
    arguments: dict[str, Any] = {"jobs": 10, "n": 1, "budget": 0, "fair_share": "damping=2"}
    acting = {"agent": lambda observation, info: [1.0, 0.0]}
    options = {"policy_features": features}
    evaluate(acting, JOBS, env="hpcgym/MixedPolicy-v2", env_options=options, **arguments)


@pytest.mark.slow
def test_an_agent_that_weighs_usage_looks_at_shares() -> None:
    weighing("wait", "fairshare")


def test_a_scheduler_beside_it_keeps_its_own_shares() -> None:
    board = evaluate("fairshare", JOBS, jobs=10, n=1, budget=10, fair_share="damping=2")
    assert any(name.startswith("fairshare") for name in board.schedulers)
    for name, scheduler in board.schedulers.items():
        assert scheduler is not None
        looks = name.startswith("fairshare")
        assert scheduler.fair_share == (FairShare(damping=2) if looks else None)


def test_jobs_of_nobody() -> None:
    nobody = JOBS.with_columns(user_id=[-1] * len(JOBS))
    with pytest.warns(WorkloadWarning, match="fair share: no job tells its: user_id"):
        simulate(nobody, "fairshare")
    with pytest.warns(WorkloadWarning, match="fair share: no job tells its: group_id"):
        simulate(
            JOBS.with_columns(group_id=[-1] * len(JOBS)), "fairshare", fair_share="accounts=group"
        )


@pytest.mark.parametrize(
    "fair",
    [
        FairShare(shares={901: 2, 902: 3}),
        FairShare(accounts={901: "a", 902: "a"}),
        FairShare(shares={"group:901": 2, "group:902": 2}, accounts="group"),
    ],
)
def test_shares_of_nobody(fair: FairShare) -> None:
    jobs = JOBS.with_columns(group_id=[1] * len(JOBS))
    with pytest.warns(WorkloadWarning, match=r"there is no job of: (group:)?901, (group:)?902$"):
        simulate(jobs, "fairshare", fair_share=fair)


def warned(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def test_a_share_without_jobs_is_named_once() -> None:
    user = int(JOBS.user_id[0])
    (caught,) = warned(
        lambda: simulate(JOBS, "fairshare", fair_share=FairShare(shares={901: 2, user: 2}))
    )
    assert str(caught.message).endswith("fair share: there is no job of: 901")
    assert caught.filename == __file__
    assert not warned(lambda: simulate(JOBS, "fairshare", fair_share=FairShare(shares={user: 2})))
    accounts = {user: "physics", 901: "biology", "physics": "science", "biology": "science"}
    fair = FairShare(shares={"science": 2, "physics": 2, "biology": 3}, accounts=accounts)
    (caught,) = warned(lambda: simulate(JOBS, "fairshare", fair_share=fair))
    assert str(caught.message).endswith("fair share: there is no job of: biology")
    names = ["fairshare", "fs+efs"]
    (caught,) = warned(lambda: evaluate(names, JOBS, jobs=8, n=2, budget=10, fair_share=fair))
    assert str(caught.message).endswith("fair share: there is no job of: biology")
    assert caught.filename == __file__


def test_environments_and_batches_tell_it_too() -> None:
    fair = FairShare(shares={901: 2})
    options: dict[str, Any] = {"workload": JOBS, "episodes": "whole", "fair_share": fair}

    def made(*features: str) -> Any:
        given = plain("MixedPolicy", {"policy_features": features, **options})
        return gymnasium.make("hpcgym/MixedPolicy-v2", **given)

    (warning,) = warned(lambda: made("fairshare", "wait"))
    assert (str(warning.message)[-7:], warning.filename) == ("of: 901", __file__)
    batch = warned(lambda: BatchSimulator([JOBS], ["fairshare"], Scheduler(fair_share=fair)))
    assert [str(warning.message)[-7:] for warning in batch] == ["of: 901"]


def test_a_baseline_by_usage_says_where_it_can_act() -> None:
    env = plain_envs.make("hpcgym/QueueOrdering-v2", workload=JOBS, episodes="whole")
    env.reset()


def test_no_accounts_are_not_named() -> None:
    assert str(FairShare(accounts={})) == str(FairShare())


test_mistakes = mistakes_of(globals(), BatchSimulator, Lookahead, id_of)
