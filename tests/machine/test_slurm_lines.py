"""Files that slurmctld accepts are read; what cannot be followed costs its line, with a warning."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from mistakes import mistakes_of

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymWarning, Remarks, warn_of_file
from hpcgym.machine import Cluster, NodeGroup, Partition, cluster_toml, read_cluster
from hpcgym.machine.partitions import hosts, text_of_hosts
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.machine.slurm import SlurmConf, read_slurm_conf
from hpcgym.workload import Workload
from hpcgym.workload.needs import with_whole_nodes

MAIN = "NodeName=n[1-4] CPUs=8\nPartitionName=main Nodes=ALL\n"


def read(folder: Path, text: str | bytes, name: str = "slurm.conf") -> SlurmConf:
    """Return what a file says that gives no warning."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_slurm_conf(folder / name)


def read_with_warnings(folder: Path, text: str | bytes) -> tuple[SlurmConf, list[str]]:
    """Return what a file says, and the warnings, without the name of the file."""
    path = folder / "slurm.conf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        conf = read_slurm_conf(path)
    return conf, [str(warning.message).removeprefix(f"{path}: ") for warning in caught]


def jobs_of(folder: Path, columns: str, *rows: str) -> Workload:
    (folder / "jobs.csv").write_text("\n".join([f"submit_time,run_time,{columns}", *rows, ""]))
    return hpcgym.load_workload(folder / "jobs.csv", processors=8)


# --- Lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_any_encoding_of_comments_and_reasons(encoding: str, ending: str, tmp_path: Path) -> None:
    lines = ["# für Knoten", 'NodeName=n[1-2] CPUs=3 Reason="d\xe9j\xe0" # à']
    if encoding == "cp1252":  # its ellipsis is a line end elsewhere, its quotes cannot be printed
        lines = ["# and so on\u2026NodeName=x", "NodeName=n[1-2] CPUs=3 Reason=\u201cold\u201d"]
    conf = read(tmp_path, ending.join([*lines, ""]).encode(encoding))
    assert conf.node_names == ("n1", "n2")
    assert conf.cluster.processors == 6


def test_names_in_any_encoding_are_kept(tmp_path: Path) -> None:
    text = "NodeName=n1\nPartitionName=gro\xdf Nodes=n1\n"
    for encoding in ("utf-8", "latin-1"):
        assert read(tmp_path, text.encode(encoding)).cluster.partitions[0].name == "gro\xdf"


def test_lines_go_on_and_characters_are_escaped(tmp_path: Path) -> None:
    lines = ["nodeNAME=n[1-2] \\ ", "  cpus=4 \\", '\tREASON="a \\# b" # and \\', "nodename=m"]
    lines += [
        "PARTITIONNAME=p \\ # a comment before the end of a line",
        "NODES=n1",
        "NodeName=o \\",
    ]
    conf, warned = read_with_warnings(tmp_path, "\n".join(lines))
    assert conf.cluster.capacity[:, 0].tolist() == [4, 4, 1, 1]
    assert conf.node_names == ("n1", "n2", "m", "o")
    assert conf.cluster.partitions[0].nodes == (0,)
    assert [text[:21] for text in warned] == ["nodes in no partition"]


def test_what_of_two_counts_and_quotes_within_values(tmp_path: Path) -> None:
    text = (
        'AuthInfo="cred_expire=1","ttl=2"\nNodeName=a Feature=x Features=y\nNodeName=b Features=y\n'
        "NodeSet=s Feature=y\nPartitionName=p Nodes=s\nPartitionName=all Nodes=ALL\n"
    )
    assert read(tmp_path, text).cluster.partitions[0].nodes == (1,)


def test_unknown_keys_and_words_cost_themselves(tmp_path: Path) -> None:
    text = "what is this\nNodeName=a Colour=red CPUs=2 here Boards=1\nStrange+=1\n" + MAIN
    conf, warned = read_with_warnings(tmp_path, text)
    assert conf.cluster.nodes == 5
    assert [setting.name for setting in conf.others] == ["a: Colour", "Strange"]
    warning, of_keys = warned
    assert of_keys == ("keys that Slurm 22.05 to 25.05 does not have: 2, such as line 2: a: Colour")
    assert warning == (
        "lines or parts of lines not read: 2, such as line 1: 'what is this' is no setting such as"
        " Name=value"
    )


# --- Included files -------------------------------------------------------------------------------


def test_includes_lie_where_slurm_looks(tmp_path: Path) -> None:
    """Names are of the first file's folder, also in other files; %c is the cluster."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "all.conf").write_text('include nodes.conf\nINCLUDE "deep-one.conf"\n')
    (tmp_path / "nodes.conf").write_text("NodeName=a CPUs=2\n")
    (tmp_path / "sub" / "nodes.conf").write_text("NodeName=wrong\n")
    (tmp_path / "deep-one.conf").write_text(f"Include {tmp_path}/sub/parts.conf # absolute\n")
    (tmp_path / "sub" / "parts.conf").write_text("PartitionName=p Nodes=ALL\n")
    conf = read(tmp_path, "ClusterName=One\nInclude sub/all.conf\n")
    assert conf.node_names == ("a",)
    assert conf.cluster.partitions[0].name == "p"
    (tmp_path / "nodes-one.conf").write_text("NodeName=b\n")
    assert read(tmp_path, "ClusterName=One\nInclude nodes-%c.conf").node_names == ("b",)


@pytest.mark.parametrize("name", ["/etc/none/conf.d/nodes.conf", "gone/conf.d/nodes.conf"])
@pytest.mark.parametrize("place", ["conf.d/nodes.conf", "nodes.conf", "etc/none/conf.d/nodes.conf"])
def test_a_copied_file_has_its_includes_beside_it(name: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MAIN)
    if place.startswith("etc") and name.startswith("gone"):
        return
    conf, (warning,) = read_with_warnings(tmp_path, f"Include {name}\n")
    assert conf.cluster.nodes == 4
    assert warning == (
        f"included files found beside this file: 1; line 1: {name} is {tmp_path / place}"
    )


def test_a_missing_include_costs_its_line(tmp_path: Path) -> None:
    conf, (warning,) = read_with_warnings(tmp_path, f"Include {os.devnull}x/none.conf\n{MAIN}")
    assert conf.cluster.nodes == 4
    assert "line 1: Include" in warning
    assert "none.conf: no such file" in warning


def test_a_missing_include_hides_no_line_that_is_wrong(tmp_path: Path) -> None:
    _, warned = read_with_warnings(
        tmp_path, f"Include {os.devnull}x/none.conf\nNodeName=x[1-\n{MAIN}"
    )
    wrong, missing = warned
    assert wrong.startswith("lines or parts of lines not read: 1; line 2, nodes 'x[1-'")
    assert missing.startswith("included files that are missing: 1; line 1: Include")


# --- Nodes ----------------------------------------------------------------------------------------


def test_nested_ranges_defaults_and_blanks(tmp_path: Path) -> None:
    text = (
        "NodeName=DEFAULT CPUs=4\nNodeName=DEFAULT Sockets=2 CoresPerSocket=2 Feature=old\n"
        "NodeName=n[1-3,5]-[0-9]\nNodeName=DEFAULT Feature=new\nNodeName=m1,,m2,\n"
        "NodeSet=fresh Feature=new\nNodeSet=both Nodes=n1-[0-1] Feature=new\n"
        "PartitionName=DEFAULT MaxTime=60 Nodes=ALL\nPartitionName=DEFAULT MaxTime=30\n"
        'PartitionName=a\nPartitionName=b Nodes="m1 n5-[8, 9]"\nPartitionName=c Nodes=fresh\n'
        "PartitionName=d Nodes=both,n1-9 Default=YES\nPartitionName=e Default=yes Nodes=m1\n"
    )
    conf = read(tmp_path, text)
    assert conf.node_names[9:12] == ("n1-9", "n2-0", "n2-1")
    assert set(conf.cluster.capacity[:, 0].tolist()) == {4}
    a, b, c, d, e = conf.cluster.partitions
    assert {partition.max_time_s for partition in (a, b, c, d, e)} == {1800}
    assert a.nodes == tuple(range(42))
    assert [conf.node_names[node] for node in b.nodes] == ["n5-8", "n5-9", "m1"]
    assert [conf.node_names[node] for node in c.nodes] == ["m1", "m2"]
    assert d.nodes == (0, 1, 9, 40, 41)
    assert [partition.default for partition in (a, b, c, d, e)] == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_processors_are_those_that_slurm_counts(tmp_path: Path) -> None:
    """By hand, from the rules that slurmctld has for numbers which do not go together."""
    cases = {
        "CPUs=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2": 64,
        "CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2": 32,
        "Sockets=2 CoresPerSocket=16 ThreadsPerCore=2": 64,
        "Boards=2 SocketsPerBoard=2 CoresPerSocket=4": 16,
        "Boards=2 CoresPerSocket=4": 8,
        "Procs=12": 12,
        "CPUs=12 Procs=10": 12,
        "CPUs=0": 1,
        "Sockets=0 CoresPerSocket=4": 4,
        "CPUs=16 CoresPerSocket=4 ThreadsPerCore=2": 16,
    }
    for line, cpus in cases.items():
        assert read(tmp_path, f"NodeName=a {line}\n").cluster.processors == cpus, line
    conf, (warning,) = read_with_warnings(
        tmp_path, "NodeName=a[1-2] CPUs=30 Sockets=2 CoresPerSocket=16\n"
    )
    assert conf.cluster.processors == 64
    assert "CPUs=30 counts as 32" in warning


def test_cores_and_memory_of_the_system_are_not_for_jobs(tmp_path: Path) -> None:
    """By hand, from the rules that slurmctld has."""
    shape = "Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000"
    cases = {
        "CoreSpecCount=3 MemSpecLimit=100": (10, 900),
        "CPUs=8 CoreSpecCount=3": (5, 1000),
        "CoreSpecCount=8 MemSpecLimit=1000": (14, 1000),  # too many: one core, and no memory
        "CpuSpecList=0,1,5-6": (10, 1000),  # of cores 0, 2 and 3
        "CPUs=8 CpuSpecList=0,7": (6, 1000),
        "CPUs=8 CpuSpecList=0,7,8 CoreSpecCount=1": (7, 1000),  # there is no CPU 8
    }
    for line, (cpus, memory) in cases.items():
        text = f"SelectTypeParameters=CR_Core_Memory\nNodeName=a {shape} {line}\n"
        assert dict(read(tmp_path, text).cluster.groups[0].resources) == {
            "core": cpus, "mem": memory,
        }, line  # fmt: skip


@pytest.mark.parametrize(
    ("general", "nodes", "counts"),
    [
        ("SelectType=select/cons_tres", "NodeName=a RealMemory=500", True),
        ("SelectType=select/cons_tres", "NodeName=a", False),
        ("SelectType=select/cons_tres", "NodeName=DEFAULT RealMemory=500\nNodeName=a", True),
        (
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core",
            "NodeName=a RealMemory=5",
            False,
        ),
        ("SelectType=select/linear", "NodeName=a RealMemory=500", False),
        (
            "SelectType=select/linear\nSelectTypeParameters=CR_Memory",
            "NodeName=a RealMemory=5",
            True,
        ),
        ("", "NodeName=a RealMemory=500", False),
    ],
)
def test_memory_counts_by_default_with_cons_tres(
    tmp_path: Path, general: str, nodes: str, counts: bool
) -> None:
    """CR_Core_Memory is its default (man page slurm.conf, SelectTypeParameters)."""
    resources = read(tmp_path, f"{general}\n{nodes}\n").cluster.groups[0].resources
    assert ("mem" in resources) == counts


def test_nodes_without_memory_are_told_where_memory_counts(tmp_path: Path) -> None:
    lines = "SelectTypeParameters=CR_CPU_Memory\nNodeName=a[1-2]\nNodeName=b RealMemory=500\n"
    conf, (warning,) = read_with_warnings(tmp_path, f"{lines}NodeName=c State=FUTURE\n")
    assert [dict(group.resources) for group in conf.cluster.groups] == [
        {"core": 1, "mem": 1}, {"core": 1, "mem": 500},
    ]  # fmt: skip
    assert warning == "nodes without RealMemory, which have 1 MB then: 2, such as line 2: a1"


def test_jobs_have_whole_nodes_of_select_linear(tmp_path: Path) -> None:
    parts = "PartitionName=p Nodes=ALL\nPartitionName=q Nodes=ALL OverSubscribe=FORCE\n"
    text = f"SelectType=select/LINEAR\nNodeName=n[1-2] CPUs=4\n{parts}"
    conf = read(tmp_path, text)
    assert [partition.exclusive for partition in conf.cluster.partitions] == [True, False]
    assert [setting.name for setting in conf.others] == ["q: OverSubscribe"]
    (tmp_path / "jobs.csv").write_text(
        "submit_time,run_time,requested_processors,partition\n0,10,1,p\n0,10,1,p\n0,10,1,p\n"
    )
    jobs = hpcgym.load_workload(tmp_path / "jobs.csv", cluster=conf.cluster)
    assert hpcgym.simulate(jobs, "fcfs", cluster=conf.cluster).start.tolist() == [0, 0, 10]
    consumed = read(tmp_path, text.replace("LINEAR", "cons_tres")).cluster.partitions
    assert not any(partition.exclusive for partition in consumed)


def test_nodes_on_which_no_job_may_start_are_left_out_and_told(tmp_path: Path) -> None:
    text = (
        "NodeName=DEFAULT CPUs=2\nNodeName=a[1-3] State=UNKNOWN\nNodeName=b[1-2] State=DRAINED\n"
        "NodeName=c1 State=CLOUD\nNodeName=c2 State=Future\nNodeName=c3 State=fail\n"
        "NodeName=c[4-5] State=DOWN\nDownNodes=a2,c5 Reason=broken\n"
        "DownNodes=a3 State=UNKNOWN\nDownNodes=c4 State=IDLE\nPartitionName=p Nodes=ALL\n"
        "PartitionName=q Nodes=a[1-2],b1,c2\n"
    )
    conf, (warning,) = read_with_warnings(tmp_path, text)
    assert conf.node_names == ("a1", "a3", "c1", "c4")
    assert [group.name for group in conf.cluster.groups] == ["a[1,3],c[1,4]"]
    assert [partition.nodes for partition in conf.cluster.partitions] == [(0, 1, 2, 3), (0,)]
    assert warning == (
        "nodes left out, since the file says that no job may start on them: 5, such as line 8: a2"
        " is DOWN"
    )


def test_nodes_of_the_least_weight_come_first(tmp_path: Path) -> None:
    lines = ["a[1-2] Weight=10", "b[1-2] CPUs=2", "c Weight=2", "d Weight=10"]
    text = "".join(f"NodeName={line}\n" for line in lines)
    conf = read(tmp_path, f"{text}PartitionName=p Nodes=a1,b2\nPartitionName=q Nodes=ALL\n")
    assert conf.node_names == ("b1", "b2", "c", "a1", "a2", "d")
    assert [partition.nodes for partition in conf.cluster.partitions] == [
        (1, 3),
        (0, 1, 2, 3, 4, 5),
    ]
    jobs = jobs_of(tmp_path, "requested_processors,partition", "0,10,2,q", "0,10,1,p", "0,10,1,q")
    placed = hpcgym.simulate(jobs, "fcfs", cluster=conf.cluster)
    assert placed.allocation is not None
    assert [conf.node_names[node] for node in placed.allocation.node] == ["b1", "b2", "b2"]


def test_resources_that_nobody_uses_up_and_counts_with_suffixes(tmp_path: Path) -> None:
    gres = "gpu:a100_3g.20gb:4(S:0,2),gpu:2,tmp:1K,b:fs:no_consume:4G,c:no_consume,d:2MB,e:3KiB,f:x"
    conf = read(tmp_path, f"NodeName=n1 Gres={gres}\nNodeName=n2 Gres=tmp:2k,gpu:0\n")
    first, second = conf.cluster.groups
    assert dict(first.resources) == {
        "core": 1, "gpu": 6, "gpu-a100_3g_20gb": 4, "tmp": 1024, "b": ANY_NUMBER,
        "c": ANY_NUMBER, "d": 2_000_000, "e": 3072, "f": 1,
    }  # fmt: skip
    assert dict(second.resources) == {"core": 1, "gpu": 0, "tmp": 2048}
    (tmp_path / "same.toml").write_text(cluster_toml(conf.cluster))
    assert read_cluster(tmp_path / "same.toml") == conf.cluster
    for form, text in (("json", '"b": "any"'), ("csv", "any b")):
        command = ["machines", str(tmp_path / "slurm.conf"), "--format", form]
        assert text in CliRunner().invoke(app, command).stdout


def test_resources_that_cannot_be_counted_cost_themselves(tmp_path: Path) -> None:
    gres = "gpu:2080ti,user:3,core:4,tmp:960G,GPU:1,fine:7"
    text = f"NodeName=n1 CPUs=2 Gres={gres}\nNodeName=n2 Gres=gpu\n"
    conf, warned = read_with_warnings(tmp_path, text)
    assert dict(conf.cluster.groups[0].resources) == {
        "core": 2, "tmp": ANY_NUMBER, "GPU": 1, "fine": 7,
    }  # fmt: skip
    assert dict(conf.cluster.groups[1].resources) == {"core": 1}
    assert [message.split(": ")[0] for message in warned] == [
        "resources of nodes left out", "resources of nodes that limit nobody",
    ]  # fmt: skip


def test_what_nobody_uses_up_limits_no_job(tmp_path: Path) -> None:
    conf = read(tmp_path, "NodeName=n1 CPUs=8 Gres=fs:no_consume:1\nPartitionName=p Nodes=ALL\n")
    rows = [f"0,10,1,1,{2**30},p"] * 6
    jobs = jobs_of(tmp_path, "units,core,fs,partition", *rows)
    assert hpcgym.simulate(jobs, "easy", cluster=conf.cluster).start.tolist() == [0] * 6
    exclusive = (Partition("p", (0,), exclusive=True),)
    whole = with_whole_nodes(jobs, Cluster(groups=conf.cluster.groups, partitions=exclusive))
    assert whole.per_unit["core"].tolist() == [8] * 6
    started = hpcgym.simulate(whole, "easy", cluster=conf.cluster).start.tolist()
    assert started == [0, 10, 20, 30, 40, 50]


@given(
    st.lists(
        st.from_regex(r"[a-c]?[0-9]{1,3}[a-c]?|[a-c]{1,2}-?[0-9]{0,2}", fullmatch=True), min_size=1
    )
)
def test_a_list_of_names_is_read_as_those(names: list[str]) -> None:
    assert hosts(text_of_hosts(names), "here") == names


def test_lines_that_are_alike_are_one_group(tmp_path: Path) -> None:
    nodes = "".join(f"NodeName=n{n} CPUs=4 NodeAddr=10.0.0.{n}\n" for n in range(8, 12))
    conf = read(tmp_path, f"{nodes}NodeName=login,db CPUs=2\nNodeName=n1 CPUs=4\n")
    assert [(group.name, group.nodes) for group in conf.cluster.groups] == [
        ("n[8-11]", 4), ("login,db", 2), ("n1", 1),
    ]  # fmt: skip
    assert tuple(conf.cluster.node_names) == conf.node_names


# --- Partitions -----------------------------------------------------------------------------------


def test_partitions_without_nodes(tmp_path: Path) -> None:
    text = f'NodeName=f[1-9] State=FUTURE\n{MAIN}PartitionName=blank Nodes=""\nPartitionName=bare\n'
    conf = read(tmp_path, f"{text}PartitionName=cloud Nodes=f[1-4]\nPartitionName=x Nodes=f1,n2\n")
    nodes = [partition.nodes for partition in conf.cluster.partitions]
    assert nodes == [(0, 1, 2, 3), (), (), (), (1,)]
    (tmp_path / "same.toml").write_text(cluster_toml(conf.cluster))
    assert read_cluster(tmp_path / "same.toml") == conf.cluster


def in_no_node(folder: Path) -> None:
    """Simulate two jobs of a partition without nodes, and one of another."""
    machine = read(folder, f'{MAIN}PartitionName=blank Nodes=""\n').cluster
    rows = ["0,10,2,main", "0,10,2,blank", "0,10,2,blank"]
    jobs = jobs_of(folder, "requested_processors,partition", *rows)
    hpcgym.simulate(jobs, "easy", cluster=machine)


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("PartitionName=p Nodes= MaxTime=3", "'p': there is no node 'MaxTime=3'"),
        ("PartitionName=p Nodes=n1,b,c", "line 3, partition 'p': there is no node 'b', nor 1 more"),
        ("PartitionName=p Nodes=n[1-3", "partition 'p': 'n[1-3' has brackets that are not closed"),
    ],
)
def test_nodes_that_are_none_cost_themselves(line: str, warning: str, tmp_path: Path) -> None:
    conf, (said,) = read_with_warnings(tmp_path, f"{MAIN}{line}\n")
    assert conf.cluster.partitions[1].nodes == ((0,) if "n1," in line else ())
    assert warning in said


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (
            "PartitionName=p Nodes=n1 MaxTime=soon",
            "partition 'p': MaxTime is 'soon', no duration such as 90",
        ),
        ("PartitionName=main Nodes=n1", "line 3: partition 'main' stands there twice"),
        ("PartitionName=p State=DWON", "State: unknown state 'DWON'; did you mean 'down'?"),
        ("PartitionName=p Nodes=n1 MinNodes=3 MaxNodes=2", "'p': its MinNodes, 3"),
        ("NodeName=n2,n7", "line 3: node 'n2' stands there twice"),
        ("NodeName=b CPUs=two", "line 3, nodes 'b': CPUs is 'two', no whole number"),
        ("DownNodes=n9", "line 3: DownNodes: there is no node 'n9'"),
    ],
)
def test_a_line_that_cannot_be_costs_itself(line: str, warning: str, tmp_path: Path) -> None:
    conf, (said,) = read_with_warnings(tmp_path, f"{MAIN}{line}\n")
    assert conf.cluster == read(tmp_path, MAIN).cluster
    assert warning in said


def test_states_and_priorities_of_partitions(tmp_path: Path) -> None:
    lines = "PartitionName=a State=Drained Priority=7\nPartitionName=b State=up AllowAccounts=X, \n"
    lines += "PartitionName=c Nodes=n\n"
    a, b, _ = read(tmp_path, "NodeName=n\n" + lines).cluster.partitions
    assert (a.state, a.priority_tier, a.priority_factor) == ("drain", 7, 7)
    assert (b.state, b.allow_accounts) == ("up", ("x",))


def test_a_file_is_told_in_four_lines_at_most(tmp_path: Path) -> None:
    (tmp_path / "beside.conf").write_text("")
    text = (
        f"{MAIN}what\nInclude /etc/none/beside.conf\nNodeName=a CPUs=3 Sockets=2 Gres=user:1,t:9G\n"
        "NodeName=d[1-3] State=DOWN\n"
    )
    _, warned = read_with_warnings(tmp_path, text)
    assert len(warned) == 4
    assert warned[-1].startswith("other remarks: 3, ")
    shown = CliRunner().invoke(app, ["machines", str(tmp_path / "slurm.conf")])
    assert shown.exit_code == 0
    assert shown.stderr.count(f"hpcgym: {tmp_path}") == 4


def test_details_are_all_of_a_kind(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(f"one\ntwo\n{MAIN}")
    with pytest.warns(HpcgymWarning) as caught:
        read_slurm_conf(tmp_path / "slurm.conf")
    (warning,) = [warning.message for warning in caught]
    assert isinstance(warning, HpcgymWarning)
    assert [detail.rpartition(", line ")[2][:8] for detail in warning.details] == [
        "1: 'one'",
        "2: 'two'",
    ]


def test_groups_have_any_number_of_a_resource_but_not_of_cores(tmp_path: Path) -> None:
    assert NodeGroup("a", 1, {"core": 1, "x": ANY_NUMBER}).resources["x"] == ANY_NUMBER


def test_all_of_a_kind_are_told_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(f"{MAIN}one\ntwo\nPartitionName=b LLN=YES\nPartitionName=c LLN=YES\n")
    short = CliRunner().invoke(app, ["machines", str(path)])
    assert short.stderr.splitlines() == [
        f"hpcgym: {path}: lines or parts of lines not read: 2, such as line 3: 'one' is no setting"
        " such as Name=value",
        "hpcgym: hpcgym --explain-warnings COMMAND lists all of each kind",
    ]
    assert short.stdout.endswith(
        f"# {path}, line 5: b: LLN=YES (and 1 more such line): not simulated\n"
    )
    long = CliRunner().invoke(app, ["--explain-warnings", "machines", str(path)])
    assert long.stdout == short.stdout
    assert long.stderr.splitlines()[1:] == [
        f"    {path}, line {line}: {word!r} is no setting such as Name=value"
        for line, word in ((3, "one"), (4, "two"))
    ]


def test_the_last_line_of_a_file_sums_up_the_rest() -> None:
    kinds = {f"kind {n}": [f"log, line {n}", f"log, line {n + 7}"] for n in range(6)}
    with pytest.warns(HpcgymWarning) as caught:
        warn_of_file("log", Remarks(list, {**kinds, "none": []}), HpcgymWarning)
    messages = [warning.message for warning in caught]
    assert [str(message) for message in messages] == [
        *(f"log: kind {n}: 2, such as line {n}" for n in range(3)),
        "log: other remarks: 3, such as kind 3: 2, such as line 3",
    ]
    last = messages[-1]
    assert isinstance(last, HpcgymWarning)
    assert last.details == tuple(
        f"{kind}: {text}" for kind, texts in list(kinds.items())[3:] for text in texts
    )


test_mistakes = mistakes_of(globals(), errors=ValueError)
