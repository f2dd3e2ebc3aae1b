"""The command line on machines with nodes, and with dispatchers."""

import re
from importlib.metadata import version

import numpy as np
import pytest
from commands import as_csv, as_json, run, succeed

from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

#: Waits, and tells the schedulers and allocations below apart.
JOBS = "eurora:jobs=200,load=1.3,seed=1"


SMALL = """
name = "small"

[[group]]
name = "node"
nodes = 4
core = 4
"""


@pytest.fixture
def small(tmp_path):
    """A file of a machine with 4 nodes of 4 cores."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


# --- machines ------------------------------------------------------------------------------------


def test_queues_without_names_are_said_where_they_matter(tmp_path):
    """JSON and CSV keep the names of queues; without them PRB finds no expected waits."""
    import pandas as pd

    arguments = ("--cluster", "eurora", "--scheduler")
    for name in ("jobs.json", "jobs.csv"):
        succeed("generate", JOBS, tmp_path / name)
        named = succeed("compare", tmp_path / name, *arguments, "prb")
        assert named.stderr == ""
    table = pd.read_csv(tmp_path / "jobs.csv").drop(columns="queue_name")
    table.to_csv(tmp_path / "jobs.csv", index=False)
    numbered = succeed("compare", tmp_path / "jobs.csv", *arguments, "prb,sdprb")
    strange = r"hpcgym: .* queues that the machine does not have, 1, 2, 3: .* 86400 s; JSON .*\n"
    assert re.fullmatch(strange, numbered.stderr)
    assert succeed("compare", tmp_path / "jobs.csv", *arguments, "easy").stderr == ""


SLURM_CONF = """\
SelectType=select/cons_tres
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=bf_interval=60,bf_continue
PreemptType=preempt/partition_prio
PreemptMode={mode}
NodeName=n[1-4] CPUs=2
PartitionName=a Nodes=n[1-4] Default=YES
PartitionName=b Nodes=n[1-4] PriorityTier=2 MinNodes=2 LLN=YES
"""


@pytest.mark.slow
def test_what_a_scheduler_follows_of_a_slurm_conf_is_not_called_unfollowed(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text(SLURM_CONF.format(mode="REQUEUE"))
    text = succeed("machines", conf).stdout
    text = text.partition("# Not of the machine; followed by --scheduler with this file:")[2]
    followed, others = text.split("# Followed by no simulation:")
    named = {
        title: [line.split(": ", 1)[1] for line in part.splitlines() if f"{conf}, line" in line]
        for title, part in (("followed", followed), ("others", others))
    }
    assert named["followed"] == [
        "PriorityType=priority/multifactor", "PriorityWeightAge=1000",
        "SchedulerParameters=bf_interval=60", "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE", "b: PriorityTier=2",
    ]  # fmt: skip
    assert named["others"] == ["SchedulerParameters=bf_continue", "b: LLN=YES"]
    jobs = ("simulate", "lublin:jobs=20,processors=8", "--cluster", conf, "--scheduler", conf)
    said = succeed(*jobs).stderr
    assert (
        f"{conf}: settings that do not describe the machine: 7; hpcgym machines {conf} lists"
        in said
    )
    (line,) = (line for line in said.splitlines() if "not followed: " in line)
    assert all(name not in line for name in ("PriorityWeightAge", "bf_interval", "PriorityTier"))
    # by submission, and in strict order
    plain = SLURM_CONF.replace("multifactor", "basic") + "SchedulerType=sched/builtin\n"
    conf.write_text(plain.format(mode="OFF"))
    followed, others = succeed("machines", conf).stdout.split("# Followed by no simulation:")
    assert "PriorityWeightAge=1000" in others
    assert "bf_interval=60" in others
    assert "bf_interval" not in followed


def test_what_a_slurm_conf_follows_beside_qos_is_told(tmp_path):
    conf = tmp_path / "slurm.conf"
    text = SLURM_CONF.format(mode="REQUEUE").replace("partition_prio", "qos")
    text += "PriorityWeightQOS=5\nPriorityWieghtAge=4\n"
    conf.write_text(f"{text}PartitionName=c Nodes=n1 State=DOWN LLN=YES\n")
    done = succeed("machines", conf)
    hint = "unknown setting PriorityWieghtAge; did you mean PriorityWeightAge?"
    assert done.stderr == f"hpcgym: {conf}, line 11: {hint}\n"
    title = f"# Followed by --scheduler {conf}:qos=FILE, what sacctmgr -P show qos printed:"
    with_qos, others = done.stdout.split(title)[1].split("# Followed by no simulation:")
    names = [line.split(": ", 1)[1] for line in with_qos.splitlines() if ", line" in line]
    assert names == ["PreemptType=preempt/qos", "PreemptMode=REQUEUE", "PriorityWeightQOS=5"]
    assert "PriorityWieghtAge=4 (unknown; did you mean PriorityWeightAge?)\n" in others
    assert "c: LLN=YES\n" in others
    assert "# c: 1 node, down\n" in done.stdout


def test_a_slurm_conf_that_slurm_refuses(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text(SLURM_CONF.format(mode="suspend"))
    told = f"{conf}, line 6: PreemptMode=SUSPEND: Slurm refuses it without GANG; write SUSPEND,GANG"
    text = succeed("machines", conf).stdout
    assert f"# As a --scheduler the file is refused: {told}\n" in text
    assert "PreemptMode=suspend" in text.split("# Not of the machine:")[1]
    failed = run("simulate", "lublin:jobs=20,processors=8", "--scheduler", conf)
    assert failed.exit_code == 1
    assert failed.stderr == f"hpcgym: {told}\n"


# --- dispatchers ---------------------------------------------------------------------------------


def test_rules_that_dispatchers_do_without_are_left_blank():
    value = as_json("simulate", JOBS, "--cluster", "eurora", "--scheduler", "prb")
    assert value["scheduler"]["name"] == value["scheduler"]["dispatcher"] == "prb"
    easy, prb = as_csv("compare", JOBS, "--cluster", "eurora", "--scheduler", "easy,prb")
    for rule in ("policy", "backfill", "backfill_order", "threshold", "policy_estimate"):
        assert value["scheduler"][rule] is None
        assert prb[rule] == ""
    assert (easy["policy"], easy["backfill"]) == ("fcfs", "easy")


@pytest.mark.slow
def test_who_chooses_nodes_has_no_allocation(small, tmp_path):
    pytest.importorskip("ortools", reason="the models need OR-Tools")
    jobs = "lublin:jobs=25,processors=16,load=1.2,seed=3"
    arguments = ("compare", jobs, "--cluster", small, "--scheduler", "easy,cph-3,pcp20")
    best = ("--allocation", "best-fit")
    for more, told in (((), "first-fit"), (best, "best-fit")):
        found = as_json(*arguments, *more)["results"]
        assert [one["scheduler"]["allocation"] for one in found] == [told, told, None]
        assert [one["allocation"] for one in as_csv(*arguments, *more)] == [told, told, ""]
    page = tmp_path / "page.html"
    done = succeed("simulate", *arguments[1:-1], "pcp20", *best, "--html", page)
    assert "best-fit" not in done.stdout
    text = page.read_text()
    assert "pcp20(jobs=12, units=400, work=0.03, seed=0)" in text
    assert re.search(r"<td[^>]*>\d+ dispatches, \d+ of them with a model to solve; ", text)
    assert re.search(rf"<td[^>]*>ortools</td><td[^>]*>{re.escape(version('ortools'))}</td>", text)
    succeed("simulate", *arguments[1:-1], "prb", "--html", page, "--force")
    assert "ortools" not in page.read_text()
    board = ("evaluate", "pcp20", "--workload", jobs, *arguments[2:4], "--episodes", "whole", *best)
    (row,) = (row for row in as_csv(*board, "--budget", "0") if row["name"] == "pcp20")
    assert (row["dispatcher"], row["allocation"]) == ("pcp20", "")


def test_a_summary_of_solved_models(small):
    pytest.importorskip("ortools", reason="the models need OR-Tools")
    jobs = "lublin:jobs=25,processors=16,load=1.2,seed=3"
    arguments = ("compare", jobs, "--cluster", small, "--scheduler", "easy,cph-3")
    easy, cph = as_json(*arguments)["results"]
    assert "dispatches" not in easy
    found = cph["dispatches"]
    result = simulate(load_workload(jobs), "cph-3", cluster=small)
    log = result.dispatcher.log
    assert found["dispatches"] == len(log) > found["models"] > 0
    assert found["models"] == sum(one["status"] != "plan is optimal" for one in log)
    assert found["mean_gap"] == pytest.approx(np.mean([one["gap"] for one in log]), abs=1e-12)
    assert found["postponed"] == sum(one["postponed"] for one in log)
    assert 0 < found["mean_s"] <= found["max_s"]
    assert 0 < found["proved"] <= 1
    (line,) = [s for s in succeed(*arguments).stdout.splitlines() if s.startswith("cph-3: ")]
    assert f"{found['dispatches']} dispatches, {found['models']} of them with a model" in line
    assert f"{100 * found['proved']:.1f} % proved optimal" in line


# --- help and errors -----------------------------------------------------------------------------
