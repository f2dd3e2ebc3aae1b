"""Associations of Slurm, accounts and their users: shares and limits of a scheduler."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym import Scheduler
from hpcgym.baselines.schedulers import find_scheduler, is_scheduler
from hpcgym.cli.lineup import given_schedulers
from hpcgym.errors import HpcgymWarning
from hpcgym.machine.slurm.lines import files_of
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.slurm_assoc import limits_as_quotas, read_associations, with_shares
from hpcgym.scheduler.slurm_tables import LIMITS
from hpcgym.workload.model import Workload

#: As Slurm 22.05 to 25.05 print associations.
HEAD = (
    "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|"
    "MaxJobs|MaxTRES|MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins"
)
COLUMNS = HEAD.split("|")
#: root above science and other, science above physics and biology, as ``tree`` prints them.
TREE = (
    ("root", "", {}),
    (" root", "root", {}),
    (" other", "", {"Share": "10"}),
    ("  other", "dora", {}),
    (" science", "", {"Share": "30"}),
    ("  biology", "", {}),
    ("   biology", "carol", {}),
    ("  physics", "", {"Share": "3"}),
    ("   physics", "alice", {"Share": "2"}),
    ("   physics", "bob", {"Share": "parent"}),
)
ABOVE = {"other": "root", "science": "root", "biology": "science", "physics": "science"}


def written(folder: Path, rows: Any = TREE, head: str = HEAD, **changes: dict[str, str]) -> str:
    """Write a file of rows (account, user, columns), some with other columns; return its path."""
    lines = [head]
    for account, user, columns in rows:
        name = f"{user}@{account.strip()}" if user else account.strip()
        row = dict.fromkeys(head.split("|"), "") | {"Cluster": "mine", "Share": "1"}
        row |= {"Account": account, "User": user} | columns | changes.get(name, {})
        lines.append("|".join(row.values()))
    path = folder / "assoc.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def shares_of(read: Any) -> dict[str, Any]:
    fair = with_shares(FairShare(), read)
    return {"shares": fair.shares, "accounts": fair.accounts}


def quotas_of(path: str) -> list[str]:
    return [str(quota) for quota in limits_as_quotas(read_associations(path))[0]]


SHARES = {
    "root@root": 1, "@other": 10, "dora@other": 1, "@science": 30, "@biology": 1,
    "carol@biology": 1, "@physics": 3, "alice@physics": 2, "bob@physics": "parent",
}  # fmt: skip


def test_shares_of_a_tree(tmp_path: Path) -> None:
    """The tree is told by blanks, or by the column ParentName."""
    whole_tree = {"shares": SHARES, "accounts": {"@biology": "@science", "@physics": "@science"}}
    assert shares_of(read_associations(written(tmp_path))) == whole_tree
    rows = [
        (
            account.strip(),
            user,
            more | ({} if user else {"Par Name": ABOVE.get(account.strip(), "")}),
        )
        for account, user, more in TREE
    ]
    assert shares_of(read_associations(written(tmp_path, rows, f"{HEAD}|Par Name"))) == whole_tree
    fair = FairShare(**whole_tree)
    tree = fair.tree_of_names([("alice", "physics", ""), ("carol", "biology", "")])
    # science has 30 of 41 shares beside other's 10 and root's 1, and physics 3 of its 4
    expected = [30 / 41 * 3 / 4, 30 / 41 * 1 / 4]
    assert tree.share[tree.owner] == pytest.approx(expected)


def test_without_a_tree_all_accounts_stand_below_root(tmp_path: Path) -> None:
    rows = [(account.strip(), user, more) for account, user, more in TREE]
    with pytest.warns(HpcgymWarning, match="all stand below root; sacctmgr -P show assoc tree"):
        associations = read_associations(written(tmp_path, rows))
    assert shares_of(associations) == {"shares": SHARES, "accounts": {}}


def test_those_below_an_account_without_shares_of_its_own(tmp_path: Path) -> None:
    """They count among those below the account above that."""
    path = written(tmp_path, physics={"Share": "parent"}, **{"carol@biology": {"Share": "0"}})
    converted = shares_of(read_associations(path))
    shares = {name: share for name, share in SHARES.items() if name != "@physics"}
    assert converted["shares"] == shares | {"carol@biology": 1e-99}
    assert converted["accounts"] == {
        "@biology": "@science", "alice@physics": "@science", "bob@physics": "@science"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "quotas"),
    [
        ({}, []),
        ({"root": {"GrpJobs": "9"}}, ["all:jobs=9"]),
        # all:licence.x would be what the cluster has
        (
            {"root": {"GrpTRES": "cpu=9,license/x=2"}},
            ["all:processors=9", "group=root|other|science|biology|physics:licence.x=2"],
        ),
        (  # of science and of all below it; what is alike of accounts without others is one
            {name: {"GrpTRES": "cpu=64,mem=1T"} for name in ("science", "other", "physics")},
            [
                "group=science|biology|physics:processors=64+mem=1048576",
                "group=other|physics/group:processors=64+mem=1048576",
            ],
        ),
        (
            {"physics": {"GrpSubmit": "7", "GrpJobs": "2"}},
            ["group=physics/group:jobs=2+submitted=7"],
        ),
        # of each user of an account, and of the accounts below it
        (
            {"science": {"MaxJobs": "5"}},
            ["group=biology|physics/group/user:jobs=5"],
        ),
        (
            {"science": {"MaxJobs": "5"}, "physics": {"MaxJobs": "3"}},
            ["group=biology/group/user:jobs=5", "group=physics/group/user:jobs=3"],
        ),
        # a user's own limit, and of her limits the lesser
        (
            {
                "science": {"MaxSubmit": "5"},
                "alice@physics": {"MaxSubmit": "9", "GrpSubmit": "8", "GrpTRES": "cpu=4"},
            },
            [
                "group=biology/group/user:submitted=5",
                "user=alice/group/user:processors=4+submitted=8",
                "user=bob/group/user:submitted=5",
            ],
        ),
        (
            {"dora@other": {"GrpTRES": "gres/gpu=4,gres/gpu:v100=2"}},
            ["group=other/group/user:gpu=4+gpu-v100=2"],
        ),
        (
            {"science": {"GrpTRESRunMins": "cpu=100,gres/gpu:v100=2"}},
            ["group=science|biology|physics:gpu-v100-minutes=2+processor-minutes=100"],
        ),
        ({"science": {"MaxJobs": "-1", "GrpJobs": "UNLIMITED", "GrpTRES": "cpu=-1"}}, []),
        (
            {"alice@physics": {"Partition": "gpu", "MaxJobs": "1"}},
            ["group=physics/partition=gpu/group/user:jobs=1"],
        ),
    ],
)
def test_limits_are_quotas(tmp_path: Path, changes: Any, quotas: list[str]) -> None:
    path = written(tmp_path, **changes)
    assert quotas_of(path) == quotas
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = Scheduler(quota=path).quota if quotas else ()
    assert [str(quota) for quota in read] == quotas
    assert not quotas or Scheduler(quota="; ".join(quotas)).quota == read


def test_a_user_with_other_limits_in_another_account(tmp_path: Path) -> None:
    rows = (*TREE, ("  other", "alice", {"MaxJobs": "1"}))
    changes = {name: {"MaxJobs": "2"} for name in ("alice@physics", "dora@other")}
    assert quotas_of(written(tmp_path, rows, **changes)) == [
        "group=other/user=alice:jobs=1",
        "group=physics/user=alice:jobs=2",
        "user=dora/group/user:jobs=2",
    ]


@pytest.mark.parametrize("column", COLUMNS)
def test_each_column_is_followed_or_named(tmp_path: Path, column: str) -> None:
    used = ("Cluster", "Account", "User", "Partition", "Share", "QOS", "Def QOS")
    if column in used:
        return
    value = "cpu=7" if "TRES" in column else "7"
    path = written(tmp_path, **{"alice@physics": {column: value}})
    quotas, left = limits_as_quotas(read_associations(path))
    followed = column in LIMITS
    assert len(quotas) == followed
    assert [str(unfollowed) for unfollowed in left] == (
        [] if followed else [f"alice@physics: {column}"]
    )


def test_associations_of_other_clusters_are_counted(tmp_path: Path) -> None:
    head = "Cluster|Account|User|Partition|Share\n"
    file = tmp_path / "assoc.txt"
    file.write_text(f"{head}beta|root|||1\nbeta|a|u||1\nAlpha|a|u||2\n")
    with pytest.warns(HpcgymWarning, match="left out: 2 associations of other clusters, beta"):
        clusters = [association.cluster for association in read_associations(file, "alpha")]
    assert clusters == ["Alpha"]
    file.write_text(f"{head}beta|a|u||1\n")
    assert len(read_associations(file)) == 1  # nobody says of which machine


def test_a_machine_takes_those_of_its_cluster(tmp_path: Path) -> None:
    path = tmp_path / "assoc.txt"
    path.write_text("Cluster|Account|User|MaxJobs\none|a|x|1\ntwo|a|x|2\n")
    (association,) = read_associations(path, "Two")
    assert association.limits == {"MaxJobs": {"jobs": 2}}


# --- Beside a slurm.conf --------------------------------------------------------------------------

CONF = (
    "ClusterName=mine\nNodeName=n[1-4] CPUs=2\nSchedulerType=sched/builtin\n"
    "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityDecayHalfLife=0\n"
)


def named(jobs: Workload, users: list[str], accounts: list[str]) -> Workload:
    """Call the users and groups of jobs so."""
    ids = {"User": sorted({*users}), "Group": sorted({*accounts})}
    changed = jobs.with_columns(
        user_id=[ids["User"].index(user) for user in users],
        group_id=[ids["Group"].index(account) for account in accounts],
    )
    header = {key: [f"{k} {name}" for k, name in enumerate(names)] for key, names in ids.items()}
    return replace(changed, header=header)


def test_shares_and_limits_beside_a_slurm_conf(tmp_path: Path) -> None:
    """By hand, on 8 processors; physics and biology have at most 4 together.

    Jobs 0 and 1 take them, job 2 of biology is passed over, and job 3 of other starts. At 600 s
    alice and carol have used 1200 processor s each, and dora 2160 with her job 3 that still runs.
    So science has used 2400 for 30 shares, other 2160 for 10; in science physics has used as much
    for 3 shares as biology for 1. So alice's job 4 is first, and takes all that the limit lets;
    carol's job 2 starts when that has ended, and dora's job 5 when job 3 has.
    """
    file, path = tmp_path / "slurm.conf", written(tmp_path, science={"GrpTRES": "cpu=4"})
    file.write_text(CONF + "PriorityCalcPeriod=1\n")
    name = f"{file}:assoc={path}"
    assert is_scheduler(name)
    users = ["alice", "carol", "carol", "dora", "alice", "dora"]
    accounts = ["physics", "biology", "biology", "other", "physics", "other"]
    jobs = few_jobs(8, [0, 0, 0, 60, 120, 180], [600] * 6, [2, 2, 2, 4, 4, 4])
    jobs = named(jobs, users, accounts)
    result = hpcgym.simulate(jobs, name, processors=8)
    assert result.start.tolist() == [0, 0, 1200, 60, 600, 660]
    hpcgym.validate_schedule(result)
    scheduler = find_scheduler(name)
    assert isinstance(scheduler.fair_share, FairShare)
    assert scheduler.fair_share.half_life_s == math.inf
    assert scheduler.fair_share.shares == SHARES
    assert scheduler.describe()["quota"] == "group=science|biology|physics:processors=4"
    # without shares users are alike, and without the limit job 2 starts at once
    assert hpcgym.simulate(jobs, str(file), processors=8).start.tolist()[2] == 0


def test_limits_of_qos_and_of_associations(tmp_path: Path) -> None:
    file, path = tmp_path / "slurm.conf", written(tmp_path, science={"GrpJobs": "4"})
    file.write_text(CONF)
    qos = tmp_path / "qos+1.txt"
    qos.write_text("Name|GrpJobs|MaxSubmitPU\nnormal|2|9\n")
    name = f"{file}:assoc={path}+qos={qos}"
    assert files_of(name) == (str(file), str(qos), path)
    assert find_scheduler(name).describe()["quota"] == (
        "queue=normal/user:submitted=9; queue=normal:jobs=2;"
        " group=science|biology|physics/spares=normal:jobs=4"
    )
    for text, rules in ({"policy=saf": {"policy": "saf"}, "quota=none": {"quota": None}}).items():
        other = f"{name}+{text},estimate=clairvoyant"
        assert is_scheduler(other)
        assert files_of(other) is None  # it is more than the files
        expected = find_scheduler(name).but(estimate="clairvoyant", **rules)
        assert find_scheduler(other).describe() == expected.describe()
    alone = find_scheduler(f"{file}+policy=saf")
    assert (alone.describe()["policy"], alone.quota) == ("saf", ())


def test_an_order_of_the_file_beside_another_under_the_same_limits(tmp_path: Path) -> None:
    file, path = tmp_path / "slurm.conf", written(tmp_path, science={"GrpTRES": "cpu=4"})
    file.write_text(CONF)
    today = f"{file}:assoc={path}"
    names = given_schedulers([f"today:={today},SAF:={today}+policy=saf"])
    assert names == {"today": today, "SAF": f"{today}+policy=saf"}
    comparison = hpcgym.compare("lublin:jobs=50,processors=8,seed=1", names)
    rules = [result.scheduler.describe() for result in comparison.values()]
    assert rules[1]["policy"] == "saf" != rules[0]["policy"]
    assert rules[0]["quota"] == rules[1]["quota"] != ""


@pytest.mark.parametrize(
    ("of_qos", "quotas"),
    [
        # each limit in place of the same alone: who goes by it counts, and is spared
        ({"GrpJobs": "1"}, ["group/spares=q:jobs=4", "group:processors=8", "users:jobs=3"]),
        ({"GrpTRES": "cpu=2"}, ["group:jobs=4", "group/spares=q:processors=8", "users:jobs=3"]),
        ({"GrpSubmit": "2"}, ["group:jobs=4+processors=8", "users:jobs=3"]),
        # of each user of an account where the QOS bounds each user, or each account
        ({"MaxJobsPU": "1"}, ["group:jobs=4+processors=8", "users/spares=q:jobs=3"]),
        ({"MaxJobsPA": "1"}, ["group:jobs=4+processors=8", "users/spares=q:jobs=3"]),
        ({"MaxTRESPU": "cpu=1"}, ["group:jobs=4+processors=8", "users:jobs=3"]),
    ],
)
def test_a_limit_of_a_qos_stands_in_place_of_the_same(
    tmp_path: Path, of_qos: dict[str, str], quotas: list[str]
) -> None:
    limits = {"GrpJobs": "4", "GrpTRES": "cpu=8", "MaxJobs": "3"}
    file, path = tmp_path / "slurm.conf", written(tmp_path, physics=limits)
    file.write_text(CONF)
    qos = tmp_path / "qos.txt"
    columns, values = zip(*of_qos.items(), strict=True)
    qos.write_text(f"Name|{'|'.join(columns)}\nq|{'|'.join(values)}\nother|{'|' * 0}\n")
    scheduler = find_scheduler(f"{file}:assoc={path}+qos={qos}")
    full = {"group": "group=physics/group", "users": "group=physics/group/user"}
    expected = []
    for quota in quotas:
        word, _, rest = quota.partition(":")
        name, *spares = word.split("/")
        expected.append(f"{'/'.join([full[name], *spares])}:{rest}")
    own = [str(quota) for quota in scheduler.quota if dict(quota.where).get("queue") is None]
    assert own == expected
    assert Scheduler(quota="; ".join(own)).quota == tuple(
        quota for quota in scheduler.quota if str(quota) in own
    )


def test_whoever_is_spared_counts(tmp_path: Path) -> None:
    """By hand: physics may run 1 job; jobs of q count, and go by the limit of q, 2.

    Job 0 of q runs, and job 1 of none waits for it, though job 2 of q starts; job 3 of q is one too
    many of q until 10 s, when it comes first, so that job 1 waits until all of q have ended.
    """
    file, path = tmp_path / "slurm.conf", written(tmp_path, physics={"GrpJobs": "1"})
    file.write_text("ClusterName=mine\nNodeName=n[1-4] CPUs=2\nSchedulerType=sched/builtin\n")
    qos = tmp_path / "qos.txt"
    qos.write_text("Name|GrpJobs\nq|2\nplain|\n")
    jobs = few_jobs(8, [0, 1, 2, 3, 4], [10, 10, 10, 10, 5], [1] * 5)
    jobs = named(jobs, ["alice"] * 5, ["physics"] * 4 + ["other"])
    jobs = replace(
        jobs.with_columns(queue=[0, 1, 0, 0, 1]),
        header={**jobs.header, "Queue": ["0 q", "1 plain"]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = hpcgym.simulate(jobs, f"{file}:assoc={path}+qos={qos}", processors=8)
    assert result.start.tolist() == [0, 20, 2, 10, 4]
    hpcgym.validate_schedule(result)


def test_factors_of_qos(tmp_path: Path) -> None:
    """By hand: physics may have 4 processors, and jobs of high twice as many, beside all others.

    Job 0 has 4, so job 1 waits for it, though job 2 of high starts; at 100 s job 1 is one too many
    beside job 2 up to its end.
    """
    limits = {"GrpJobs": "4", "GrpTRES": "cpu=4", "MaxTRES": "cpu=6", "MaxTRESPerNode": "cpu=6"}
    file, path = tmp_path / "slurm.conf", written(tmp_path, physics=limits)
    file.write_text(CONF)
    qos = tmp_path / "qos.txt"
    text = "Name|UsageFactor|LimitFactor\nhigh|2|2.000000\nlow|0.5|\nnormal|1.000000|0\n"
    qos.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler = find_scheduler(f"{file}:assoc={path}+qos={qos}")
    assert isinstance(scheduler.fair_share, FairShare)
    assert scheduler.fair_share.factors == {"high": 2, "low": 0.5}
    assert [*map(str, scheduler.quota)] == [
        "group=physics/group:jobs=4",
        "group=physics/group/spares=high:processors=4",
        "group=physics/group/spares=low|normal:processors=8",
        "group=physics/job:processors-a-node=6",
        "group=physics/job/spares=high:processors=6",
        "group=physics/job/spares=low|normal:processors=12",
    ]
    jobs = few_jobs(8, [0, 1, 2], [100, 10, 200], [4, 1, 4])
    jobs = named(jobs, ["alice"] * 3, ["physics"] * 3).with_columns(queue=[0, 0, 1])
    jobs = replace(jobs, header={**jobs.header, "Queue": ["0 normal", "1 high"]})
    result = hpcgym.simulate(jobs, scheduler, processors=8)
    assert result.start.tolist() == [0, 202, 2]
    hpcgym.validate_schedule(result)


def test_limits_of_one_job(tmp_path: Path) -> None:
    """A job goes by those of its user, else of the account above; a QOS that has one replaces it.

    By ``acct_policy_validate`` of Slurm 22.05 to 25.05: max_tres_pj, max_tres_pn and max_wall_pj.
    """
    path = written(
        tmp_path,
        science={"MaxTRES": "cpu=8,gres/gpu=2", "MaxWall": "1:00:00"},
        **{"bob@physics": {"MaxTRES": "cpu=4"}, "dora@other": {"MaxTRESPerNode": "gres/gpu=1"}},
    )
    qos = tmp_path / "qos.txt"
    qos.write_text("Name|MaxTRES|MaxWall|MaxTRESPU\nlong||1-00:00:00|gres/gpu=1\nwide|cpu=64||\n")
    own = [*map(str, limits_as_quotas(read_associations(path))[0])]
    assert own == [
        "group=other/job:gpu-a-node=1", "group=biology/job:processors=8+gpu=2+requested_time=3600",
        "user=alice/job:processors=8+gpu=2+requested_time=3600",
        "user=bob/job:processors=4+gpu=2+requested_time=3600",
    ]  # fmt: skip
    file = tmp_path / "slurm.conf"
    file.write_text("ClusterName=mine\nNodeName=n CPUs=2\n")
    both = [*map(str, find_scheduler(f"{file}:assoc={path}+qos={qos}").quota)]
    assert both == [
        "queue=long/user:gpu=1", "queue=long/job:requested_time=86400",
        "queue=wide/job:processors=64",
        "group=other/job:gpu-a-node=1",
        "group=biology/job/spares=wide:processors=8", "group=biology/job:gpu=2",
        "group=biology/job/spares=long:requested_time=3600",
        "user=alice/job/spares=wide:processors=8", "user=alice/job:gpu=2",
        "user=alice/job/spares=long:requested_time=3600",
        "user=bob/job/spares=wide:processors=4", "user=bob/job:gpu=2",
        "user=bob/job/spares=long:requested_time=3600",
    ]  # fmt: skip


def test_what_is_not_followed_is_one_line(tmp_path: Path) -> None:
    changes = {
        f"{user}@{account}": {"Priority": "9"}
        for user, account in (("alice", "physics"), ("bob", "physics"), ("carol", "biology"))
    }
    changes |= {"dora@other": {"Priority": "8", "GrpTRES": "energy=4"}}
    path = written(tmp_path, **changes, other={"MaxJobs": "0"})
    text = "by quotas: dora@other: Priority|Priority of 4 associations"
    with pytest.warns(HpcgymWarning, match=text) as caught:
        assert Scheduler(quota=path).quota == ()
    assert str(caught[0].message).endswith(
        "not followed by quotas: @other: MaxJobs=0 (lets no such job run),"
        " Priority of 4 associations, dora@other: GrpTRES energy"
    )


test_mistakes = mistakes_of(globals())
