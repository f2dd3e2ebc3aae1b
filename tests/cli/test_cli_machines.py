"""``hpcgym machines``; machines by slurm.conf; dispatchers on nodes; speedups."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import EURORA_JOBS, PAIRS, as_csv, as_json, succeed, table_file

from hpcgym import generate_speedups, load_workload, read_speedups, simulate
from hpcgym.machine.speedups import write_speedups

SMALL = 'name = "small"\n\n[[group]]\nname = "node"\nnodes = 4\ncore = 4\n'


def test_queues_without_names_are_said_where_they_matter() -> None:
    """JSON and CSV keep the names of queues; without them PRB finds no expected waits."""
    words = ("--cluster", "eurora", "--scheduler")
    for name in ("jobs.json", "jobs.csv"):
        succeed("generate", EURORA_JOBS, name)
        assert succeed("compare", name, *words, "prb").stderr == ""
    pd.read_csv("jobs.csv").drop(columns="queue_name").to_csv("jobs.csv", index=False)
    strange = (
        r"hpcgym: .* queues that the machine does not have, 1, 2, 3: .* 86400 s; .* write names\n"
    )
    assert re.fullmatch(strange, succeed("compare", "jobs.csv", *words, "prb,sdprb").stderr)
    assert succeed("compare", "jobs.csv", *words, "easy").stderr == ""


# --- slurm.conf -----------------------------------------------------------------------------------

CONF = """\
SelectType=select/cons_tres
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=bf_interval=60,bf_continue
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n[1-4] CPUs=2
PartitionName=a Nodes=n[1-4] Default=YES
PartitionName=b Nodes=n[1-4] PriorityTier=2 MinNodes=2 LLN=YES
"""
FOLLOWED = "# Followed: the rules of --scheduler slurm.conf, each with its settings:"
LEFT = "# Not followed, and why:"
OF_JOBS = ("simulate", "lublin:jobs=20,processors=8")


def settings_below(text: str, title: str) -> list[str]:
    """What ``hpcgym machines`` tells of the settings of a slurm.conf below a title."""
    Path("slurm.conf").write_text(text)
    part = succeed("machines", "slurm.conf").stdout.partition(title)[2].partition("\n\n")[0]
    return [line.split(": ", 1)[1] for line in part.splitlines() if ", line" in line]


def test_settings_that_are_not_of_the_machine_are_told() -> None:
    text = CONF + "PriorityWieghtAge=4\nPartitionName=c Nodes=n1 State=DOWN QOS=own\n"
    followed = {"PriorityWeightAge=1000", "b: PriorityTier=2", "PreemptMode=REQUEUE"}
    assert followed <= {*settings_below(text, FOLLOWED)}
    assert settings_below(text, LEFT) == [
        "SchedulerParameters bf_continue: not simulated",
        "b: LLN=YES: not simulated",
        "PriorityWieghtAge=4: Slurm has no such setting; did you mean 'priorityweightage'?",
        "c: QOS=own: only with a file of QOS, --scheduler slurm.conf:qos=FILE",
    ]
    wrong = CONF.replace("bf_continue", "bf_window=x,bf_windw=2")
    begin = (
        "SchedulerParameters: bf_window must be",
        "SchedulerParameters bf_windw=2: Slurm has no",
    )
    assert [
        setting[: len(part)]
        for setting, part in zip(settings_below(wrong, LEFT), begin, strict=False)
    ] == [*begin]
    Path("slurm.conf").write_text(text)
    assert (
        "# c: 1 node, default_time_s=31536000, qos=own, state=down\n"
        in succeed("machines", "slurm.conf").stdout
    )
    Path("slurm.conf").write_text(CONF)
    (line,) = of_conf("simulate", OF_JOBS[1], "--cluster", "slurm.conf")
    assert line.startswith("settings that do not describe the machine: 8; hpcgym machines slurm")


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", OF_JOBS[1], "--scheduler", "slurm.conf"),
        ("compare", OF_JOBS[1], "--scheduler", "easy,slurm.conf"),
        ("calibrate", "log.swf", "--most", "1"),  # whose scheduler is that of the machine
    ],
    ids=lambda words: words[0],
)
def test_of_a_slurm_conf_that_is_both_it_is_said_what_is_not_followed(
    command: tuple[str, ...],
) -> None:
    Path("slurm.conf").write_text(CONF)
    succeed(*OF_JOBS, "--output", "log.swf")
    (line,) = of_conf(*command, "--cluster", "slurm.conf+2")
    assert line.startswith("not followed: SchedulerParameters bf_continue, b: LLN")
    for name in ("PriorityWeightAge", "bf_interval", "PriorityTier"):
        assert name not in line


def of_conf(*command: str) -> list[str]:
    """What a command says of slurm.conf."""
    begin = "hpcgym: slurm.conf: "
    lines = succeed(*command).stderr.splitlines()
    return [line.removeprefix(begin) for line in lines if line.startswith(begin)]


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        (
            ["--backfill", "slurm:bf_interval=30"],
            "--backfill replaces .* slurm:bf_interval=60.bf_window=9",
        ),
        (["--quota", "none"], "--quota replaces .* queue=own/user:jobs=3"),
        (["--policy", "saf"], "--policy replaces .*partition == .b.*"),
        (["--fair-share", "half_life_s=60"], "--fair-share replaces .*=fair-tree, period_s=300"),
        (["--threshold", "1h"], ""),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_settings_that_an_option_replaces(command: str, options: list[str], lost: str) -> None:
    text = CONF.replace("bf_continue", "bf_window=9") + "PriorityWeightFairshare=1000\n"
    Path("slurm.conf").write_text(text)
    Path("qos.txt").write_text("Name|MaxJobsPU\nown|3\n")
    words = (OF_JOBS[1], "--scheduler", "slurm.conf:qos=qos.txt", "--processors", "8")
    said = succeed(command, *words, *options).stderr
    assert re.search(f"slurm.conf:qos=qos.txt: {lost}\n", said) if lost else "replaces" not in said


def test_a_wrong_grace_time_is_named_also_where_no_job_is_stopped() -> None:
    Path("slurm.conf").write_text(CONF.replace("PriorityTier=2", "PriorityTier=2 GraceTime=x"))
    left = succeed("machines", "slurm.conf").stdout.partition(LEFT)[2]
    assert "# partition 'b': GraceTime=x: seconds must be a whole number; Slurm's default" in left
    text = CONF.replace("Default=YES", "Default=YES GraceTime=60")
    assert "a: GraceTime=60" in settings_below(text, FOLLOWED)


def test_a_slurm_conf_that_slurm_refuses() -> None:
    said = "line 6: PreemptMode=SUSPEND: Slurm refuses it without GANG; write"
    text = CONF.replace("REQUEUE", "suspend")
    assert [
        setting
        for setting in settings_below(text, LEFT)
        if setting.startswith("PreemptMode=SUSPEND: Slurm refuses")
    ]
    (of_it,) = [text for text in of_conf(*OF_JOBS, "--scheduler", "slurm.conf") if "values" in text]
    assert of_it.endswith(f"defaults: 1; {said} SUSPEND,GANG")


# --- Dispatchers ----------------------------------------------------------------------------------


def test_rules_that_dispatchers_do_without_are_left_blank() -> None:
    value = as_json("simulate", EURORA_JOBS, "--cluster", "eurora", "--scheduler", "prb")
    assert value["scheduler"]["name"] == value["scheduler"]["dispatcher"] == "prb"
    easy, prb = as_csv("compare", EURORA_JOBS, "--cluster", "eurora", "--scheduler", "easy,prb")
    for rule in ("policy", "backfill", "backfill_order", "threshold", "policy_estimate"):
        assert (value["scheduler"][rule], prb[rule]) == (None, "")
    assert (easy["policy"], easy["backfill"]) == ("fcfs", "easy")


SOLVED = ("lublin:jobs=25,processors=16,load=1.2,seed=3", "--cluster", "small.toml", "--scheduler")


@pytest.mark.slow
def test_who_chooses_nodes_has_no_allocation() -> None:
    pytest.importorskip("ortools", reason="the models need OR-Tools")
    Path("small.toml").write_text(SMALL)
    best = ("--allocation", "best-fit")
    for more, name in (((), "first-fit"), (best, "best-fit")):
        words = ("compare", *SOLVED, "easy,cph-3,pcp20", *more)
        results = as_json(*words)["results"]
        assert [result["scheduler"]["allocation"] for result in results] == [name, name, None]
        assert [row["allocation"] for row in as_csv(*words)] == [name, name, ""]
    done = succeed("simulate", *SOLVED, "pcp20", *best, "--html", "a.html")
    assert "best-fit" not in done.stdout
    text = Path("a.html").read_text()
    assert "pcp20(jobs=12, units=400, work=0.03, seed=0)" in text
    assert re.search(r": \d+ dispatches, \d+ of them with a model to solve; ", text)
    assert re.search(rf"<td[^>]*>ortools</td><td[^>]*>{re.escape(version('ortools'))}</td>", text)
    succeed("simulate", *SOLVED, "prb", "--html", "a.html", "--force")
    assert "ortools" not in Path("a.html").read_text()
    board = ("evaluate", "pcp20", "--workload", *SOLVED[:3], "--episodes", "whole", *best)
    (row,) = (row for row in as_csv(*board, "--budget", "0") if row["name"] == "pcp20")
    assert (row["dispatcher"], row["allocation"]) == ("pcp20", "")


def test_a_summary_of_solved_models() -> None:
    pytest.importorskip("ortools", reason="the models need OR-Tools")
    Path("small.toml").write_text(SMALL)
    easy, cph = as_json("compare", *SOLVED, "easy,cph-3")["results"]
    assert "dispatches" not in easy
    log = simulate(load_workload(SOLVED[0]), "cph-3", cluster="small.toml").dispatcher.log
    dispatching: Any = cph["dispatches"]
    assert dispatching["dispatches"] == len(log) > dispatching["models"] > 0
    assert dispatching["models"] == sum(dispatch["status"] != "plan is optimal" for dispatch in log)
    assert dispatching["mean_gap"] == pytest.approx(
        np.mean([dispatch["gap"] for dispatch in log]), abs=1e-12
    )
    assert dispatching["postponed"] == sum(dispatch["postponed"] for dispatch in log)
    assert 0 < dispatching["mean_s"] <= dispatching["max_s"]
    assert 0 < dispatching["proved"] <= 1
    lines = succeed("compare", *SOLVED, "easy,cph-3").stdout.splitlines()
    (line,) = (text for text in lines if text.startswith("cph-3: ") and "dispatches" in text)
    assert (
        f"{dispatching['dispatches']} dispatches, {dispatching['models']} of them with a model"
        in line
    )
    assert f"{100 * dispatching['proved']:.1f} % proved optimal" in line


def test_machines_in_json_say_where_they_are_from() -> None:
    whole, taurus = as_json("machines"), as_json("machines", "taurus")
    assert next(each for each in whole["machines"] if each["name"] == "taurus")["groups"]
    assert whole["provenance"]["command"] == ["machines", "--format", "json"]
    assert taurus["provenance"]["command"] == ["machines", "taurus", "--format", "json"]


# --- Speedups -------------------------------------------------------------------------------------


def test_speedups_are_told() -> None:
    pairs = table_file("pairs.csv", "code,a,b", "a,1,1.5", "b,0.5,")
    value = as_json("machines", "--speedups", pairs)
    assert (value["unknown_pairs"], value["mean_speedup"]) == (1, 1.0)
    assert value["digest"] == read_speedups(pairs).digest
    assert value["provenance"]["files"].keys() == {"pairs.csv"}
    a, b = value["codes"]
    assert a == {
        "code": "a", "processes": None, "compact_s": None, "alone": 1.5, "mean_speedup": 1.25,
        "least": 1.0, "greatest": 1.5, "mean_of_others": 0.75, "unknown_pairs": 0,
    }  # fmt: skip
    assert (b["mean_speedup"], b["mean_of_others"], b["unknown_pairs"]) == (0.5, 1.5, 1)
    assert [row["mean_speedup"] for row in as_csv("machines", "--speedups", pairs)] == [
        "1.25",
        "0.5",
    ]
    text = succeed("machines", "--speedups", pairs).stdout
    assert "2 codes · mean 1.0000 · 1 of 4 pairs unknown" in text.replace("\n", " ")
    assert value["digest"] in text


def test_speedups_are_written_in_another_form() -> None:
    source = generate_speedups(3, seed=5)
    write_speedups(source, Path("pairs.json"))
    words = (
        "machines",
        "--speedups",
        "pairs.json",
        "--output",
        "pairs.csv",
        "--picture",
        "heatmap.svg",
    )
    assert succeed(*words).stderr.count("wrote ") == 2
    np.testing.assert_array_equal(read_speedups("pairs.csv").speedup, source.speedup)
    assert "speedup of" in Path("heatmap.svg").read_text()
    succeed("machines", "--speedups", PAIRS, "--output", "other.json")
    assert read_speedups("other.json").digest == generate_speedups(4, seed=1).digest
