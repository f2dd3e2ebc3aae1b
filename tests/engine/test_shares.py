"""Schedules by what users have used equal those of the oracle; what follows from the rules."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of
from share_strategies import SlowOrder

import hpcgym
from hpcgym import Cluster, Scheduler, simulate
from hpcgym.errors import RuleWarning
from hpcgym.machine import NodeGroup, Partition
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import weighted
from hpcgym.reference.pool import simulate_pool
from hpcgym.reference.shares import AccountTree
from hpcgym.scheduler.policies import FairShare
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.prepare import pool_of
from hpcgym.workload.model import Workload

# --- Equations 6.1 to 6.4 -----------------------------------------------------------------------


def priorities(
    workload: Workload, fair: FairShare, cluster: Cluster, feature: str = "fairshare"
) -> list[float]:
    """The priority of each job's user when it was submitted, or when the last job ended after."""
    # the second weight makes the score the priority itself, and not an order like it
    policy = {feature: 1.0, "wait": 1e-9}
    scheduler = Scheduler(policy=policy, backfill_order="fcfs", fair_share=fair)
    simulation = new_simulation(workload, scheduler, pool_of(workload, cluster))
    simulation.drive()
    return simulation.native.scores()[::2].tolist()


HOUR = 3600


def users_workload(rows: list[tuple[int, int, int, int]], processors: int) -> Workload:
    """Jobs of (submit time, user, processors, run time), which request their run times."""
    submit, user, width, run = (list(column) for column in zip(*rows, strict=True))
    return few_jobs(processors, submit, run, width, user_id=user)


def test_the_example_of_the_thesis() -> None:
    """50 processors, 100 hours, five jobs of 30 hours on 10 processors: U is 0.3."""
    five = [(0, 1, 10, 30 * HOUR)] * 5
    after = [(100 * HOUR, 1, 50, HOUR)]
    workload = users_workload(five + after, 50)
    forever = FairShare(math.inf)  # of what has been used in these 100 hours nothing is forgotten
    (*_, priority) = priorities(workload, forever, Cluster(50))
    assert -math.log2(priority) == pytest.approx(0.3, rel=1e-12)
    (*_, halved) = priorities(workload, FairShare(math.inf, damping=2), Cluster(50))
    assert -math.log2(halved) == pytest.approx(0.15, rel=1e-12)


def test_half_life_is_the_limit_of_many_periods() -> None:
    """Equations 6.2 and 6.3, with periods of a second."""
    rows = [(0, 1, 3, 400), (700, 1, 2, 300), (2000, 1, 8, 10)]
    workload, half_life = users_workload(rows, 8), 500
    (*_, priority) = priorities(workload, FairShare(half_life), Cluster(8))
    decay = 0.5 ** (1 / half_life)
    periods = range(2000)  # the first is the last second before now
    used = {2000 - 400: 3 * 400, 2000 - 1000: 2 * 300}  # when a job ends
    above = sum(decay**k * used.get(k, 0) for k in range(2001))
    below = sum(decay**k * 8 for k in periods)
    assert -math.log2(priority) == pytest.approx(above / below, rel=1e-3)


def test_energy_is_over_what_the_machine_could_use() -> None:
    rows = [(0, 1, 10, HOUR), (HOUR, 1, 1, HOUR)]
    workload = users_workload(rows, 20).with_columns(power_w=[50.0, -1.0])
    forever = FairShare(math.inf)
    cluster = Cluster(20, busy_power_w=100.0)
    (*_, priority) = priorities(workload, forever, cluster, "energy_fairshare")
    assert -math.log2(priority) == pytest.approx(10 * 50 / (20 * 100), rel=1e-12)


#: Users 1 and 2 are of one account, 3 and 4 of another.
ACCOUNTS = {1: "a", 2: "a", 3: "b", 4: "b"}


@pytest.mark.parametrize(
    ("used", "accounts", "expected"),
    [
        # a, b and user 5 have a third each. Of 400 s, a and b have used 100 each, user 5 has used
        # 200. So a and b tie, at 4/3, and their users are sorted together: user 2 has used nothing,
        # 3 and 4 have 1/2 of b's shares and usage, user 1 has 1/2 of a's shares and all of its
        # usage. User 5, at 2/3, is the last
        ([100, 0, 50, 50, 200], ACCOUNTS, [0.4, 1.0, 0.8, 0.8, 0.2]),
        # a user that ties with an account has the place of its first user
        ([100, 0, 50, 50, 100], ACCOUNTS, [0.2, 1.0, 0.6, 0.6, 1.0]),
        # user 1 has used less than anybody, but her account has used the most
        ([10, 400, 100, 200], ACCOUNTS, [0.5, 0.25, 1.0, 0.75]),
        ([0, 0, 0], {1: "a"}, [1.0, 1.0, 1.0]),
    ],
)
def test_places_in_a_tree(used: list[int], accounts: dict[int, str], expected: list[float]) -> None:
    """Level fair share is share / usage: https://slurm.schedmd.com/fair_tree.html."""
    rows = [(0, user, 1, seconds) for user, seconds in enumerate(used, 1) if seconds]
    asked = [(max(used), user, 1, 10) for user in range(1, len(used) + 1)]
    fair = FairShare(math.inf, accounts=accounts, formula="fair-tree")
    order = priorities(users_workload(rows + asked, 10), fair, Cluster(10))[len(rows) :]
    assert order == pytest.approx(expected, rel=1e-12)


def test_shares_of_accounts_multiply_along_the_path() -> None:
    fair = FairShare(
        shares={"a": 3, 1: 1, 2: 3, "b": 1}, accounts={1: "a", 2: "a", 3: "b", "a": "top"}
    )
    tree = fair.tree(np.array([1, 2, 3, 4, 3]), np.full(5, -1))
    assert tree.leaves == 4
    assert tree.owner.tolist() == [0, 1, 2, 3, 2]
    # top, b and user 4 have a third each; a has all of top
    assert tree.share[:4] == pytest.approx([1 / 3 / 4, 1 / 3 * 3 / 4, 1 / 3, 1 / 3])
    assert tree.share[:4].sum() == pytest.approx(1.0)


def test_shares_that_come_to_the_same_are_a_tie() -> None:
    """User 0 has 1/9 of an account's shares and has used 250 J, user 1 has 8/9 and 16,000 J.

    For their shares, both have used what the account has and 2,000 J more; in floating point one of
    the sums is larger. The drawn cases had found it.
    """
    rows = [(0, 0, 1, 1), (0, 0, 1, 1), (0, 1, 8, 10), (0, 0, 1, 1), (0, 1, 15, 1), (0, 0, 15, 1)]
    watts = [-1.0, -1.0, 200.0, 50.0, -1.0, -1.0]
    workload = users_workload(rows, 15).with_columns(power_w=watts)
    fair = FairShare(math.inf, 1.0, {0: 0.5, 1: 4.0}, {0: "a", 1: "a"})
    cluster = Cluster(15, busy_power_w=100.0)
    rules = {"policy": "energy-fairshare", "backfill": "none", "fair_share": fair}
    result = simulate(workload, cluster=cluster, **rules)
    assert result.start.tolist() == [0, 0, 0, 0, 10, 11]


LUBLIN = hpcgym.load_workload("lublin:jobs=1500,processors=32,seed=3,load=1.1,users=12")


def test_groups_of_the_workload_are_accounts() -> None:
    fair = FairShare(accounts="group", shares={"group:7": 3})
    tree = fair.tree(np.array([1, 1, 2, 3]), np.array([7, 8, 7, 8]))
    assert tree.leaves == 4  # user 1 is charged in both of her groups apart
    assert tree.share[tree.owner] == pytest.approx([3 / 8, 1 / 8, 3 / 8, 1 / 8])
    usual = simulate(LUBLIN, "fairshare")
    grouped = LUBLIN.with_columns(group_id=LUBLIN.user_id % 3)
    other = simulate(grouped, "fairshare", fair_share=FairShare(accounts="group"))
    mapped = FairShare(
        accounts={user: f"group {user % 3}" for user in set(LUBLIN.user_id.tolist())}
    )
    assert not np.array_equal(other.start, usual.start)
    assert np.array_equal(other.start, simulate(LUBLIN, "fairshare", fair_share=mapped).start)


def test_usage_stays_in_proportion_over_millions_of_half_lives() -> None:
    """The epoch moves on, and nothing but very old usage is lost."""
    rows = []
    for turn in range(200):
        time = turn * 100_000
        rows += [(time, 1, 4, 50), (time, 2, 2, 50), (time + 1, 1, 4, 10), (time + 2, 2, 4, 10)]
    result = simulate(users_workload(rows, 6), "fairshare", fair_share="half_life_s=10")
    slow = SlowOrder("cpu", AccountTree({1, 2}, half_life=10), [], 1.0)
    expected = simulate_pool(
        jobs_of(result.workload), 6, policy=slow, backfill="easy", backfill_order=slow
    )
    assert result.start.tolist() == [job.start for job in expected]
    first, second = result.start[2::4], result.start[3::4]
    assert (second < first).all()  # user 2, who came later, has always used less


#: (submit time, user, processors, run time) of jobs on two or four processors, and their starts,
#: with usage that counts each 100 s and is never forgotten.
BY_PERIOD = {
    # at 120 s, up to 100 s both users have used the same: job 2 came first. Charged as jobs end,
    # user 2 has used 120 s and user 1 nothing
    "running jobs count": (
        2,
        [(0, 1, 1, 250), (0, 2, 1, 120), (10, 2, 1, 50), (11, 1, 1, 50)],
        120,
    ),
    # after 100 s user 2, who has used nothing, comes before user 1, whose job waits for room
    "the order changes with time": (4, [(0, 1, 2, 250), (10, 1, 4, 50), (11, 2, 1, 50)], 101),
}


@pytest.mark.parametrize(("processors", "rows", "start"), BY_PERIOD.values(), ids=[*BY_PERIOD])
def test_usage_that_counts_by_period(
    processors: int, rows: list[tuple[int, int, int, int]], start: int
) -> None:
    """By hand: what starts at a time, under strict order."""
    workload = users_workload(rows, processors)
    fair = FairShare(math.inf, formula="fair-tree", period_s=100)
    result = simulate(workload, "fairshare", backfill="none", fair_share=fair)
    assert result.start[2] == start
    at_ends = simulate(workload, "fairshare", backfill="none", fair_share=replace(fair, period_s=0))
    assert at_ends.start[2] > start


def test_a_multiple_of_the_period_counts_from_the_next_second_on() -> None:
    """Job 2 starts in the second of the first multiple, by the order of before it."""
    jobs = users_workload([(0, 1, 1, 250), (0, 2, 1, 100), (10, 2, 1, 50), (11, 1, 1, 50)], 2)
    for period, first in ((101, 2), (100, 2), (99, 3)):
        fair = FairShare(math.inf, shares={2: 1, 1: 4}, formula="fair-tree", period_s=period)
        result = simulate(jobs, "fairshare", backfill="none", fair_share=fair)
        assert result.start[first] == 100


def test_charges_by_period_decay_as_in_slurm() -> None:
    """Priorities of _decay_thread and _apply_new_usage, step by step, with a factor each second."""
    rows = [(0, 1, 3, 430), (0, 2, 1, 1000), (500, 1, 2, 400), (2000, 1, 4, 10), (2000, 2, 4, 10)]
    workload, half_life, period = users_workload(rows, 4), 700, 300
    factor = 1 - 0.693 / half_life
    fair = FairShare(half_life, period_s=period)
    runs = [(1, 3, 0, 430), (2, 1, 0, 1000), (1, 2, 500, 900)]
    used = {1: 0.0, 2: 0.0}
    for step in range(period, 2000, period):
        for user, width, begin, end in runs:  # jobs that have ended since the last step
            if step - period < end <= step:
                seconds = end - max(begin, step - period)
                used[user] += width * seconds * factor**seconds
        used = {user: usage * factor**period for user, usage in used.items()}
        for user, width, begin, end in runs:
            if begin < step < end:
                seconds = step - max(begin, step - period)
                used[user] += width * seconds * factor**seconds
    last = 2000 // period * period
    available = 4 * half_life / math.log(2) * (1 - 0.5 ** (last / half_life))
    expected = [2 ** (-used[user] / available / 0.5) for user in (1, 2)]
    assert priorities(workload, fair, Cluster(4))[3:] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("period", [0, 300])
def test_queues_multiply_what_their_jobs_are_charged(period: int) -> None:
    """As if the jobs of the queue had asked for half as much of what is charged."""
    jobs = hpcgym.load_workload("lublin:jobs=300,processors=32,seed=4,load=2.5,users=8")
    queue = jobs.user_id % 2
    jobs = jobs.with_columns(queue=queue, billing=2 * jobs.requested_processors)
    halved = jobs.with_columns(billing=jobs.requested_processors * (1 + queue))
    rules = f"half_life_s=3600,charged=billing,formula=fair-tree,period_s={period}"
    fair = FairShare.parse(rules)
    result = simulate(jobs, "fairshare", fair_share=replace(fair, factors={"interactive": 0.5}))
    assert result.start.tolist() == simulate(halved, "fairshare", fair_share=fair).start.tolist()
    assert result.start.tolist() != simulate(jobs, "fairshare", fair_share=fair).start.tolist()


@pytest.mark.parametrize("policy", ["fairshare", {"fairshare": 100.0, "wait": 0.0101}])
def test_what_is_charged_may_be_another_amount(policy: Any) -> None:
    """Against the slow order, which is told what each job is billed."""
    jobs = hpcgym.load_workload("lublin:jobs=120,processors=32,seed=3,load=2.5,users=4")
    billing = 1 + jobs.requested_processors * 10 ** (jobs.user_id % 3)
    jobs = jobs.with_columns(billing=billing)
    rules = {"policy": policy, "backfill_order": policy}
    result = simulate(jobs, **rules, fair_share="half_life_s=3600,charged=billing")
    whole = 32 * billing.sum() / jobs.requested_processors.sum()
    tree = AccountTree({*jobs.user_id.tolist()}, half_life=3600)
    kind, wait = ("cpu", 0) if policy == "fairshare" else ((100.0, 0.0), 0.0101)
    rest = weighted((0, 0, wait, 0, 0, 0))
    slow = SlowOrder(kind, tree, [], 1.0, rest, processors=whole, charged=billing.tolist())
    expected = simulate_pool(jobs_of(jobs), 32, policy=slow, backfill="easy", backfill_order=slow)
    assert result.start.tolist() == [job.start for job in expected]
    usual = simulate(jobs, **rules, fair_share="half_life_s=3600")
    assert result.start.tolist() != usual.start.tolist()


def test_what_is_charged_has_a_fraction_where_weights_have() -> None:
    """Against the slow order: by weights of 0.25 a core jobs are charged more than is billed."""
    jobs = hpcgym.load_workload("lublin:jobs=120,processors=32,seed=3,load=2.5,users=4")
    jobs = jobs.with_columns(partition=[1] * len(jobs), billing=jobs.requested_processors // 4)
    part = Partition("1", (0,), billing="cpu=0.25")
    machine = Cluster(groups=(NodeGroup("n", 1, {"core": 32}),), partitions=(part,))
    share = "half_life_s=3600,charged=billing"
    result = simulate(jobs, "fairshare", cluster=machine, fair_share=share)
    weights = (jobs.requested_processors / 4).tolist()
    tree = AccountTree({*jobs.user_id.tolist()}, half_life=3600)
    slow = SlowOrder("cpu", tree, [], 1.0, charged=weights)
    expected = simulate_pool(jobs_of(jobs), 32, policy=slow, backfill="easy", backfill_order=slow)
    assert result.start.tolist() == [job.start for job in expected]


@pytest.mark.parametrize("begin", [0, 10**9, 2**40, 2**52])
@pytest.mark.parametrize("gap", [0, 2**50])
def test_clocks_may_count_billions_of_half_lives(begin: int, gap: int) -> None:
    """Before anybody has used anything, and after a long pause."""
    rows = [(begin, 1, 3, 4), (begin, 2, 2, 8), (begin + 1, 1, 3, 4), (begin + 1, 2, 2, 8)]
    rows += [(submit + 100 + gap, *rest) for submit, *rest in rows]
    policy = {"fairshare": 1.0, "processors": -0.25}
    result = simulate(users_workload(rows, 4), "easy", policy=policy, fair_share="half_life_s=1")
    waits = result.start - result.workload.submit_time
    rows = [
        (submit - begin - gap * (place > 3), *rest) for place, (submit, *rest) in enumerate(rows)
    ]
    usual = simulate(users_workload(rows, 4), "easy", policy=policy, fair_share="half_life_s=1")
    expected = usual.start - usual.workload.submit_time
    assert waits.tolist() == expected.tolist()
    assert expected.max() > 0


# --- Users and accounts by names of the log -------------------------------------------------------


def by_names(fair: FairShare) -> FairShare:
    """Return the same shares where user 3 is called u3, in the account above her, or in top."""
    above = fair.accounts if isinstance(fair.accounts, dict) else {}

    def named(account: Any) -> str:
        return (
            f"@{account}"
            if isinstance(account, str)
            else f"u{account}@{above.get(account, 'root')}"
        )

    accounts = {f"@{a}": f"@{b}" for a, b in above.items() if isinstance(a, str)}
    shares = {named(user): 1.0 for user in range(5)}
    shares |= {named(account): share for account, share in fair.shares.items()}
    return replace(fair, shares=shares, accounts=accounts)


@pytest.mark.parametrize("formula", ["classic", "fair-tree"])
def test_names_mean_what_numbers_mean(formula: str) -> None:
    """The same tree of users and accounts, whose groups are the accounts right above users."""
    above = {0: "a", 1: "a", 2: "b", 3: "c", "a": "top", "c": "top"}
    fair = FairShare(3600, shares={"a": 3, 1: 2, "b": 5, 3: 7}, accounts=above, formula=formula)
    jobs = LUBLIN.with_columns(user_id=LUBLIN.user_id % 5)
    groups = {"root": 0, "a": 1, "b": 2, "c": 3}
    of = [groups[above.get(user, "root")] for user in jobs.user_id.tolist()]
    header = {"User": [f"{user} u{user}" for user in range(5)]}
    header["Group"] = [f"{number} {name}" for name, number in groups.items()]
    jobs = replace(jobs.with_columns(group_id=of), header=header)
    usual, named = (
        simulate(jobs, "fairshare", fair_share=shares_so) for shares_so in (fair, by_names(fair))
    )
    assert np.array_equal(named.start, usual.start)
    assert not np.array_equal(usual.start, simulate(jobs, "fairshare").start)
    again = FairShare.parse(by_names(fair).table())
    assert again == by_names(fair)


def test_a_user_of_two_accounts_and_partitions_is_charged_apart() -> None:
    fair = FairShare(shares={"@a": 1, "@b": 3, "x@a": 1, "y@a": 3, "x@b:gpu": 1, "x@b": 1})
    jobs = [("x", "a", "p"), ("x", "b", "gpu"), ("x", "b", "p"), ("y", "a", "p"), ("z", "a", "p")]
    tree = fair.tree_of_names(jobs)
    assert tree.owner.tolist() == [0, 1, 2, 3, 4]
    # a has a quarter, of which z, who is not named, has one of five parts
    expected = [1 / 4 / 5, 3 / 4 / 2, 3 / 4 / 2, 3 / 4 / 5, 1 / 4 / 5]
    assert tree.share[tree.owner] == pytest.approx(expected)
    assert tree.part[tree.owner] == pytest.approx([1 / 5, 1 / 2, 1 / 2, 3 / 5, 1 / 5])


def charged_jobs(*rows: tuple[str, str, int]) -> Any:
    """Jobs of users and accounts on 4 processors, each for so long; all come at 0 s."""
    users, accounts, run = zip(*rows, strict=True)
    ids = [sorted({*names}) for names in (users, accounts)]
    jobs = few_jobs(
        *(4, [0] * len(rows), list(run), [4] * len(rows)),
        user_id=[ids[0].index(user) for user in users],
        group_id=[ids[1].index(account) for account in accounts],
    )
    header = {
        key: [f"{number} {name}" for number, name in enumerate(names)]
        for key, names in zip(("User", "Group"), ids, strict=True)
    }
    return replace(jobs, header=header)


def test_users_who_stand_for_their_account() -> None:
    """By hand; y and z are "parent" in a. Job 0 is first, as nobody has used anything.

    Then job 5 comes, since b has used nothing; then the jobs of y and z, who are first in a and
    have one place whatever they have used, in the order of the log; and x is last.
    """
    rows = [("x", "a", 10), ("y", "a", 10), ("x", "a", 1), ("y", "a", 1), ("z", "a", 1)]
    jobs = charged_jobs(*rows, ("z", "b", 1))
    shares = {"x@a": 1, "y@a": "parent", "z@a": "parent", "z@b": 1}
    fair = FairShare(math.inf, shares=shares, formula="fair-tree")
    rules = {"backfill": "none", "fair_share": fair}
    result = simulate(jobs, policy={"fairshare": 1.0, "wait": 1e-9}, **rules)
    assert result.start.tolist() == [0, 11, 23, 21, 22, 10]
    # by the classic formula both have the usage and the share of the account
    classic = replace(fair, formula="classic")
    tree = classic.tree_of_names([("x", "a", ""), ("y", "a", ""), ("z", "b", "")])
    assert tree.part[tree.owner].tolist() == [1, 1, 1]
    assert tree.share[tree.owner].tolist() == [1 / 2, 1 / 2, 1 / 2]


def test_who_has_no_share_is_told() -> None:
    jobs = charged_jobs(("x", "a", 1), ("y", "a", 1), ("y", "b", 1))
    with pytest.warns(RuleWarning, match="no share of their own, and 1 each: y@a, y@b$"):
        simulate(jobs, "fairshare", fair_share=FairShare(shares={"x@a": 2}))


test_mistakes = mistakes_of(globals())
