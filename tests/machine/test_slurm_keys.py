"""The table of the keys of slurm.conf: each once, all of Slurm's own page, and done as it says."""

from __future__ import annotations

import gzip
import re
import tomllib
import warnings
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from hpcgym.errors import HpcgymWarning
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.machine.slurm.keys import (
    GENERAL,
    IRRELEVANT,
    MACHINE,
    NAMED,
    PARAMETERS,
    SCHEDULER,
    known,
)
from hpcgym.scheduler.slurm_conf import scheduler_of_slurm

PAGE = Path("/usr/share/man/man5/slurm.conf.5.gz")  # of Debian's package slurm-client
_READ = tomllib.loads(files("hpcgym.machine").joinpath("slurm", "settings.toml").read_text("utf-8"))
TABLE = {kind: lists for kind, lists in _READ.items() if kind.casefold() != PARAMETERS}
LISTS = {MACHINE, SCHEDULER, NAMED, IRRELEVANT}
#: Kinds of lines by the headings of the page.
HEADINGS = {
    "PARAMETERS": GENERAL, "NODE CONFIGURATION": "nodename", "NODESET CONFIGURATION": "nodeset",
    "PARTITION CONFIGURATION": "partitionname", "DOWN NODE CONFIGURATION": "downnodes",
    "FRONTEND NODE CONFIGURATION": "frontendname",
}  # fmt: skip
#: Values of what a scheduler follows, beside PriorityType=priority/multifactor.
FOLLOWED = {
    "fairsharedampeningfactor": "2", "preemptexempttime": "60", "preemptmode": "REQUEUE",
    "preemptparameters": "youngest_first", "preempttype": "preempt/partition_prio",
    "prioritydecayhalflife": "7-0", "priorityfavorsmall": "YES", "priorityflags": "NO_FAIR_TREE",
    "prioritymaxage": "1-0", "priorityweightage": "10", "priorityweightfairshare": "10",
    "priorityweightjobsize": "10", "priorityweightpartition": "10", "priorityweightqos": "10",
    "schedulerparameters": "bf_interval=60", "schedulertype": "sched/builtin",
    "prioritytype": "priority/multifactor", "tresbillingweights": "cpu=1",
}  # fmt: skip


def keys_of_page(text: str) -> list[tuple[str, str]]:
    """Return the keys that the man page explains, each with its kind of line, in lower case."""
    keys, kind, depth, before = [], "", 0, ""
    for line in text.splitlines():
        if line.startswith(".SH"):
            kind, depth = HEADINGS.get(line[3:].strip(' "'), ""), 0
        elif line.startswith((".RS", ".RE")):  # values of keys are set in
            depth = max(depth + (1 if line.startswith(".RS") else -1), 0)
        elif kind and not depth and before.startswith(".TP"):
            name = re.fullmatch(r"\\fB(\w+)\\f[RP]\s*", line)
            keys += [(kind, name[1].casefold())] if name else []
        before = line
    return keys


def test_all_keys_of_the_man_page_are_in_the_table() -> None:
    if not PAGE.exists():
        pytest.skip("the man page of slurm.conf is not installed")
    keys = keys_of_page(gzip.decompress(PAGE.read_bytes()).decode())
    assert len(keys) > 250
    lines = set(known(GENERAL))  # NodeName and its like are explained below their own headings
    assert [key for key in keys if key[1] not in {*known(key[0])} | lines] == []


def test_all_parameters_of_the_man_page_are_in_the_table() -> None:
    if not PAGE.exists():
        pytest.skip("the man page of slurm.conf is not installed")
    text = gzip.decompress(PAGE.read_bytes()).decode()
    text = text.partition("\\fBSchedulerParameters\\fR\n")[2].partition(
        "\\fBSchedulerTimeSlice\\fR"
    )[0]
    parameters = re.findall(r"^\.TP\n\\fB([a-z]+_\w+)(?:=[^\n]*)?\\fR", text, re.MULTILINE)
    assert len(parameters) > 50
    assert {*parameters} <= {*known(PARAMETERS)}


def test_each_key_is_in_one_list() -> None:
    for kind, lists in TABLE.items():
        assert {*lists} - {"usual"} == LISTS, kind
        keys = Counter(key.casefold() for what in LISTS for key in lists[what])
        assert {*keys.values()} == {1}, kind
        assert {key.casefold() for key in lists.get("usual", {})} <= {*keys}
    assert [key for key in TABLE if key != GENERAL and key.casefold() not in known(GENERAL)] == []


def not_followed(path: Path) -> str:
    """Return what a scheduler of the file does not follow, as it is told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler_of_slurm(path)
    not_followed_told = [
        str(warning.message) for warning in caught if ": not followed: " in str(warning.message)
    ]
    return (
        not_followed_told[0].partition(": not followed: ")[2].partition(". ")[0]
        if not_followed_told
        else ""
    )


@pytest.mark.parametrize("kind", [kind.casefold() for kind in TABLE])
def test_what_the_table_says_is_done(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    objects = {"nodename": "n2", "partitionname": "p", "nodeset": "s", "downnodes": "n2"}
    for key, what in known(kind).items():
        if kind == GENERAL and key in known_lines():
            continue
        value = FOLLOWED.get(key, "1" if kind == "nodename" and what == MACHINE else "7")
        of_thing = f"{kind}={objects.get(kind, 'x')} "
        lines = ["NodeName=n1", "PriorityType=priority/multifactor", "PriorityWeightAge=1"]
        if key.startswith("preempt"):
            lines += ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"]
            lines += ["PartitionName=a Nodes=n1", "PartitionName=b Nodes=n1 PriorityTier=2"]
        lines += [f"{'' if kind == GENERAL else of_thing}{key}={value}"]
        path.write_text("\n".join([*lines, ""]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HpcgymWarning)
            others = {setting.key.partition(" ")[0] for setting in read_slurm_conf(path).others}
        assert (key in others) == (what in (SCHEDULER, NAMED) or key in SOMETIMES), key
        if what == NAMED:
            assert key in not_followed(path), key
        elsewhere = key in ("priorityweightqos", "prioritycalcperiod")
        elsewhere |= kind != GENERAL and key == "preemptmode"
        if what == SCHEDULER and not elsewhere:  # these need QOS, or other partitions
            assert key not in not_followed(path), key


#: Of the machine, but not with any value.
SOMETIMES = ("selecttype", "selecttypeparameters", "oversubscribe", "shared")


def known_lines() -> set[str]:
    """Return the keys that begin lines about things."""
    return {kind.casefold() for kind in TABLE} - {GENERAL}


def test_parameters_are_found_whatever_stands_between(tmp_path: Path) -> None:
    """As Slurm looks for them in the whole text."""
    path = tmp_path / "slurm.conf"
    text = 'SchedulerParameters="bf_interval=60 bf_window=10;defer, bf_interval=9"'
    path.write_text(f"NodeName=n CPUs=8\n{text}\n")
    assert read_slurm_conf(path).parameters == {"bf_interval": "60", "bf_window": "10", "defer": ""}


def test_nodes_in_no_partition_are_told(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("NodeName=n[1-2] CPUs=8\nNodeName=x[1-3] CPUs=8\nPartitionName=p Nodes=n1\n")
    with pytest.warns(HpcgymWarning, match=r"nodes in no partition.*: 4, such as .*n2"):
        assert read_slurm_conf(path).cluster.nodes == 5
