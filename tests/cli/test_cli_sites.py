"""What-ifs of a site: a dump of sacct on the machine of a slurm.conf, as its Slurm places jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import as_csv, as_json, run, succeed

from hpcgym import load_workload, simulate
from hpcgym.errors import HpcgymWarning

HEAD = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS"
    "|NNodes"
)
DAY = "2024-03-01T10:0"
CONF = """ClusterName=h
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={nodes}
PartitionName=p Nodes=ALL Default=YES{limit}
"""


def dump(*jobs: tuple[int, int, str, int, int]) -> str:
    """Jobs of (minute of submission and start, seconds, minutes of the limit, cores, nodes)."""
    rows = [
        f"{job}|{job}|u|a|p|n|COMPLETED|{DAY}{at}:00|{DAY}{at}:00|{ran}|{limit}|{cores}|{nodes}"
        for job, (at, ran, limit, cores, nodes) in enumerate(jobs, 1)
    ]
    return "\n".join([HEAD, *rows, ""])


@pytest.mark.parametrize("limit", ["", " MaxTime=UNLIMITED"])
@pytest.mark.parametrize(
    ("nodes", "jobs", "starts", "places"),
    [
        # job 3 asks for 4 cores of one node, and each has 2 free
        (
            "n[1-2] CPUs=8",
            [(0, 100, "10", 6, 1), (0, 100, "10", 6, 1), (0, 100, "10", 4, 1)],
            ["0", "0", "100"],
            ["0:1", "1:1", "0:1"],
        ),
        # job 2 asks for 4 cores on two nodes, of which one is full
        (
            "n[1-2] CPUs=8",
            [(0, 100, "10", 8, 1), (0, 100, "10", 4, 2)],
            ["0", "100"],
            ["0:1", "0:1 1:1"],
        ),
        # job 5 asks for 3 cores on two nodes, and each has one free
        (
            "n[1-4] CPUs=4",
            [*[(0, 100, "10", 3, 1)] * 4, (0, 100, "10", 3, 2)],
            [*["0"] * 4, "100"],
            ["0:1", "1:1", "2:1", "3:1", "0:1 1:1"],
        ),
        # nobody expects job 1 to end, so job 2 has no reservation that keeps job 3 back
        (
            "n1 CPUs=4",
            [(0, 1200, "UNLIMITED", 2, 1), (1, 600, "60", 4, 1), (2, 600, "60", 2, 1)],
            ["0", "1200", "120"],
            ["0:1", "0:1", "0:1"],
        ),
        # nor where its limit is that of the partition, which has none
        (
            "n1 CPUs=4",
            [(0, 1200, "Partition_Limit", 2, 1), (1, 600, "60", 4, 1), (2, 1500, "60", 2, 1)],
            ["0", "1620", "120"],
            ["0:1", "0:1", "0:1"],
        ),
    ],
)
def test_jobs_lie_where_slurm_places_them(
    here: Path,
    nodes: str,
    jobs: list[tuple[int, int, str, int, int]],
    starts: list[str],
    places: list[str],
    limit: str,
) -> None:
    Path("jobs.txt").write_text(dump(*jobs))
    Path("slurm.conf").write_text(CONF.format(nodes=nodes, limit=limit))
    asked = ("simulate", "jobs.txt", "--cluster", "slurm.conf", "--scheduler", "slurm.conf")
    jobs_placed = as_csv(*asked, "--output", "-")
    assert [job["start_time"] for job in jobs_placed] == starts
    assert [job["nodes"] for job in jobs_placed] == places
    assert [str(job["start_time"]) for job in as_json(*asked, "--output", "-")] == starts


def test_uneven_shares_on_whole_nodes(here: Path) -> None:
    """Five cores on four nodes are four whole nodes, and more than three are too many there."""
    Path("jobs.txt").write_text(dump((0, 100, "10", 5, 4), (0, 100, "10", 4, 1)))
    given = ("simulate", "jobs.txt", "--cluster", "slurm.conf", "--output", "-")
    rule = " OverSubscribe=EXCLUSIVE MaxNodes=4"
    Path("slurm.conf").write_text(CONF.format(nodes="n[1-4] CPUs=4", limit=rule))
    jobs_placed = as_csv(*given)
    assert [job["nodes"] for job in jobs_placed] == ["0:1 1:1 2:1 3:1", "0:1"]
    assert [job["start_time"] for job in jobs_placed] == ["0", "100"]
    Path("slurm.conf").write_text(CONF.format(nodes="n[1-4] CPUs=4", limit=" MaxNodes=3"))
    assert "needs more than 3 nodes, the MaxNodes of partition 'p'" in run(*given).stderr


def test_warnings_of_a_command_are_five_lines(here: Path) -> None:
    """Those of the machine, of the scheduler and of the log together."""
    conf = CONF.format(nodes="n[1-4] CPUs=4", limit="")
    wrong = "PriorityWeightAge=much\nSchedulerParameters=bf_window=none,bf_interval=20\n"
    more = "NodeName=d1 State=DOWN\nInclude none.conf\none\ntwo\nPriorityFlags=DEPTH_OBLIVIOUS\n"
    Path("slurm.conf").write_text(f"{conf}{more}{wrong}")
    Path("jobs.txt").write_text(dump((0, 100, "Partition_Limit", 3, 1), (0, 99, "UNLIMITED", 4, 1)))
    both = ("--cluster", "slurm.conf", "--scheduler", "slurm.conf")
    for of_log in ("", "|x"):  # of which one has a line that is no job
        Path("jobs.txt").write_text(Path("jobs.txt").read_text().rstrip() + f"{of_log}\n")
        given = ("simulate", "jobs.txt", *both, "--output", "-", "--errors", "skip")
        short = run(*given).stderr.splitlines()
        assert len(short) == 5
        assert "more warnings: hpcgym --explain-warnings COMMAND lists all" in short[-1]
        explained = run("--explain-warnings", *given).stderr.splitlines()
        assert explained[0] == short[0]
        lines = [line for line in explained if line.startswith("hpcgym: ")]
        assert int(short[-1].split()[1]) == len(lines) - 4
        first = run(*given, "--policy", "saf", "--backfill", "easy").stderr.splitlines()[0]
        assert first.startswith(
            "hpcgym: slurm.conf: --backfill replaces the whole rule of the file"
        )
        usual = "hpcgym: slurm.conf: invalid values, replaced by Slurm's defaults"
        assert any(line.startswith(f"{usual}: 2, such as line ") for line in lines)
        assert any("jobs.txt: 1 job without a told time limit" in line for line in lines)


def test_a_dump_in_utf_16(here: Path) -> None:
    for name in ("jobs.txt", "jobs.csv", "slurm.conf"):
        Path(name).write_text(dump((0, 100, "10", 3, 1)), "utf-16")
        where = ("--cluster", name) if name == "slurm.conf" else ()
        said = run("simulate", "lublin:jobs=9" if where else name, *where).stderr
        assert said.startswith(f"hpcgym: {name} is ")
        assert "a text in UTF-16, of which iconv -f UTF-16 -t UTF-8 makes one in UTF-8" in said


TYPES = """ClusterName=h
NodeName=a[1-2] CPUs=8 Gres=gpu:v100:2
NodeName=b1 CPUs=8 Gres=gpu:a100:4
PartitionName=p Nodes=ALL Default=YES
"""


@pytest.mark.parametrize("typed", [True, False])
def test_gpus_of_a_type_are_of_nodes_that_have_it(here: Path, typed: bool) -> None:
    """Job 2 asks for any GPUs, and was given some of a type; job 4 for one that nobody has.

    What job 3 asked for is not told, so it takes any. Where all GPUs of the machine are alike their
    type is not known, and job 4 runs on any.
    """
    rows = [
        ("gres/gpu:a100=2,gres/gpu=2", "gres/gpu:a100=2,gres/gpu=2"),
        ("gres/gpu=2", "gres/gpu:a100=2,gres/gpu=2"),
        ("", "gres/gpu:a100=3"),
        ("gres/gpu:h100=1,gres/gpu=1", "gres/gpu:h100=1,gres/gpu=1"),
        ("gres/gpu:v100=2,gres/gpu=2", ""),
    ]
    lines = dump(*[(0, 100, "10", 2, 1)] * len(rows)).splitlines()
    pairs = [("ReqTRES", "AllocTRES"), *rows]
    Path("jobs.txt").write_text(
        "\n".join(
            f"{line}|{asked}|{given}" for line, (asked, given) in zip(lines, pairs, strict=True)
        )
    )
    Path("slurm.conf").write_text(TYPES if typed else TYPES.replace("v100", "a100"))
    given = ("simulate", "jobs.txt", "--cluster", "slurm.conf", "--errors", "skip")
    jobs_placed = as_csv(*given, "--output", "-")
    by_type = [("1", "0", "2:1"), ("2", "0", "0:1"), ("3", "100", "2:1")]
    by_type.append(("5", "0", "1:1"))
    any_type = [("1", "0", "0:1"), ("2", "0", "1:1"), ("3", "0", "2:1"), ("4", "0", "2:1")]
    any_type.append(("5", "100", "0:1"))
    places = [(job["job_number"], job["start_time"], job["nodes"]) for job in jobs_placed]
    assert places == (by_type if typed else any_type)
    reason = "types of gres/gpu by which the machine does not tell nodes apart"
    line = "1 dropped: fits no empty machine" if typed else f"4 not used: {reason}"
    assert line in succeed(*given).stdout
    done = run(*given[:-2])
    assert (done.exit_code, "job 4 asks for 1 'gpu-h100'" in done.stderr) == (int(typed), typed)


def test_generic_resources_of_an_old_slurm(here: Path) -> None:
    """By hand: four GPUs, of which three jobs have two each, whatever type they name."""
    head, *jobs = dump(*[(0, 100, "10", 1, 1)] * 4).splitlines()
    asked = ("gpu:2", "gpu:k80:2", "gpu:2", "")
    lines = [f"{head}|AllocGRES", *(f"{job}|{gres}" for job, gres in zip(jobs, asked, strict=True))]
    Path("jobs.txt").write_text("\n".join(lines) + "\n")
    Path("slurm.conf").write_text(
        "NodeName=g1 CPUs=16 Gres=gpu:k80:4\nPartitionName=p Nodes=g1 Default=YES\n"
    )
    jobs_placed = as_csv("simulate", "jobs.txt", "--cluster", "slurm.conf", "--output", "-")
    assert [int(job["start_time"]) for job in jobs_placed] == [0, 0, 100, 0]
    newer = [f"{head}|ReqGRES|AllocTRES", f"{jobs[0]}|PER_NODE:gpu:2|cpu=1,gres/gpu=2,node=1"]
    newer.append(f"{jobs[1]}|PER_NODE:gpu:k80:3(IDX:0-2)|cpu=1,gres/gpu=3,node=1")
    Path("jobs.txt").write_text("\n".join(newer) + "\n")
    jobs_placed = as_csv("simulate", "jobs.txt", "--cluster", "slurm.conf", "--output", "-")
    assert [int(job["start_time"]) for job in jobs_placed] == [0, 100]
    Path("jobs.txt").write_text("\n".join([lines[0], f"{jobs[0]}|gpu=x"]) + "\n")
    assert "line 2: AllocGRES is 'gpu=x'" in run("traces", "show", "jobs.txt").stderr


@pytest.mark.parametrize(
    ("asked", "submitted", "waits", "untold"),
    [
        ("", "", 0, 2),
        ("gres/gpu=4", "", 0, 0),
        ("gres/gpu=4,gres/gpu:a100=4", "", 100, 0),
        ("", "sbatch --gres=gpu:4 run.sh", 0, 0),
        ("", "sbatch --gpus-per-node a100:4 run.sh", 100, 0),
        ("", "srun -G a100:4 ./a", 100, 0),
        ("", "sbatch --tres-per-node=gres/gpu:a100:4 run.sh", 100, 0),
        ("", "sbatch run.sh", 0, 2),  # what it asks for may stand in the script
        ("gres/gpu=4", "sbatch --gres=gpu:A100:4 run.sh", 100, 0),  # where types are not tracked
    ],
)
def test_bought_gpus_of_another_type_serve_who_asks_for_any(
    here: Path, asked: str, submitted: str, waits: int, untold: int
) -> None:
    """By hand: of two jobs that were both given the four of a100, the second may have others."""
    head, *jobs = dump(*[(0, 100, "10", 1, 1)] * 2).splitlines()
    given = "gres/gpu=4" if "A100" in submitted else "gres/gpu:a100=4,gres/gpu=4"
    lines = [f"{head}|ReqTRES|AllocTRES|SubmitLine"]
    lines += [f"{job}|{asked}|{given}|{submitted}" for job in jobs]
    Path("jobs.txt").write_text("\n".join(lines) + "\n")
    Path("slurm.conf").write_text(TYPES.replace("Gres=gpu:v100:2", "Gres=gpu:v100:4"))
    command = ("simulate", "jobs.txt", "--cluster", "slurm.conf")
    jobs_placed = as_csv(*command, "--output", "-")
    assert [int(job["start_time"]) for job in jobs_placed] == [0, waits]
    reason = (
        "not used: types of gres/gpu that jobs were given; ReqTRES would tell which they ask for"
    )
    shown = succeed(*command).stdout
    assert (f"{untold} {reason}" in shown) == (untold > 0)
    assert reason not in shown or untold


def test_what_is_followed_is_told_once(here: Path) -> None:
    """In Python, where a file is machine and scheduler."""
    Path("jobs.txt").write_text(dump((0, 100, "10", 3, 1)))
    Path("slurm.conf").write_text(CONF.format(nodes="n1 CPUs=4", limit=" LLN=YES"))
    jobs = load_workload("jobs.txt", processors=4)
    for scheduler, lines in (("slurm.conf", ["not followed: p: LLN"]), ("easy", ["settings that"])):
        with pytest.warns(HpcgymWarning) as caught:
            simulate(jobs, scheduler, cluster="slurm.conf")
        messages = [str(warning.message).removeprefix("slurm.conf: ") for warning in caught]
        assert [text[: len(line)] for text, line in zip(messages, lines, strict=True)] == lines


def test_the_recorded_past_stands_beside_simulations(here: Path) -> None:
    """Job 1 waited 1,000 s though the machine was free: so says the log, and no rule."""
    text = dump((0, 100, "10", 8, 1), (0, 100, "10", 8, 1))
    Path("jobs.txt").write_text(
        text.replace("|2024-03-01T10:00:00|100|", "|2024-03-01T10:16:40|100|", 1)
    )
    Path("slurm.conf").write_text(CONF.format(nodes="n[1-2] CPUs=8", limit=""))
    given = ("jobs.txt", "--cluster", "slurm.conf", "--scheduler", "slurm.conf")
    simulated, past = as_csv("simulate", *given)
    assert (simulated["mean_wait_s"], past["mean_wait_s"]) == ("0.0", "500.0")
    assert (past["scheduler"], past["policy"], past["backfilled_share"]) == ("recorded", "", "")
    shown = succeed("simulate", *given).stdout
    assert [*map(str.strip, shown.splitlines()[3].split()[1:3])] == ["simulated", "recorded"]
    assert "mean wait 0 s simulated, 8 min 20 s recorded; before you believe a what-if" in shown
    Path("larger.conf").write_text(CONF.format(nodes="n[1-4] CPUs=8", limit=""))
    today = ("compare", "jobs.txt", "--scheduler", "slurm.conf", "--cluster", "slurm.conf")
    doubt = "slurm.conf on slurm.conf: mean wait 0 s simulated"
    assert succeed(*today, "--cluster", "larger.conf").stdout.count("what-if") == 1
    assert doubt in succeed(*today, "--cluster", "larger.conf").stdout
    *_, last = as_csv("compare", "jobs.txt", "--processors", "16")
    assert (last["scheduler"], last["max_wait_s"]) == ("recorded", "1000")
    assert "busy at once" not in shown
    Path("slurm.conf").write_text(
        CONF.format(nodes="n1 CPUs=8", limit="")
    )  # the jobs overlap with both
    Path("jobs.txt").write_text(text)
    more = "slurm.conf: the log shows 16 processors busy at once, the machine has 8"
    assert more in succeed("simulate", *given).stdout
    assert more in succeed("compare", *given).stdout
    assert "recorded" not in succeed("simulate", "lublin:jobs=20").stdout  # which has no past


def test_what_explains_a_past(here: Path) -> None:
    jobs = load_workload("lublin:jobs=1500,processors=64,load=1.0,users=5,seed=1")
    jobs = jobs.with_columns(requested_processors=jobs.requested_processors.clip(max=32))
    simulate(jobs, "easy", processors=51, quota="user:processors=32").to_swf("log.swf")
    given = ("calibrate", "log.swf", "--processors", "64")
    chosen = [row["settings"] for row in as_csv(*given) if row["chosen"] == "True"]
    assert "at most 32 processors of each user run at once" in chosen[-1].split("; ")
    facts = as_json(*given)
    assert [row["settings"] for row in facts["rows"] if row["chosen"]] == chosen
    assert facts["provenance"]["files"].keys() == {"log.swf"}
    text = succeed(*given).stdout
    assert "explains 100% of the difference in the first half" in text
    assert "does not bear it out" not in text
    assert "* marks the settings as given, where the search began, and then what each" in text


def test_a_past_that_the_rules_simulate_exactly(here: Path) -> None:
    simulate("lublin:jobs=200,processors=64,load=1.1,seed=1", "easy").to_swf("log.swf")
    text = succeed("calibrate", "log.swf", "--most", "1").stdout
    assert "do not differ: each job waits as long in both" in text
    assert "explain" not in text
    other = succeed("calibrate", "log.swf", "--scheduler", "saf", "--most", "1").stdout
    assert "do not differ" not in other


def test_of_how_many_jobs_nodes_are_told(here: Path) -> None:
    text = dump((0, 100, "10", 8, 1), (0, 100, "10", 8, 1), (0, 100, "10", 8, 1))
    Path("jobs.txt").write_text(text.replace("|8|1\n", "|8|\n", 1))
    shown = succeed("traces", "show", "jobs.txt", "--processors", "16").stdout
    assert "nodes: told of 2 jobs; the cores of the 1 others may lie on any" in shown
