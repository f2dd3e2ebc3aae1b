"""Who may stop whom, as a text: names, what is none, and files of QOS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drawing import given
from drawing import strategies as st
from preemption_strategies import urgent

import hpcgym
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadWarning
from hpcgym.scheduler.restrictions import Preemption


def test_names_of_the_log() -> None:
    jobs = replace(urgent(), header={"Queue": ["1 low", "2 high"]})
    assert hpcgym.simulate(jobs, preemption="qos:high>low").restarts.sum() == 2
    with pytest.warns(WorkloadWarning) as told:
        hpcgym.simulate(jobs, preemption="qos:hihg>low")
    texts = [str(one.message) for one in told]
    assert any("nothing is called 'hihg' in queue; did you mean 'high'?" in one for one in texts)
    assert "workload: preemption qos:hihg>low: no job may stop another" in texts
    with pytest.warns(WorkloadWarning, match="qos:high>low;gold>low: there is no job of gold$"):
        hpcgym.simulate(jobs, preemption="qos:high>low;gold>low")


NAMES = st.sampled_from(["1", "a b", "x-y", "high", "é"])


@given(st.sets(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_as_text_and_back(pairs: set[tuple[str, str]]) -> None:
    for mode in ("requeue", "cancel", "suspend"):
        rule = Preemption("partition", tuple(sorted(pairs)), mode)
        assert Preemption.parse(str(rule)) == rule
        times = rule.stopped if mode != "suspend" else ()
        for some in (times, times[:1]):
            exempt = Preemption("partition", rule.pairs, mode, tuple((one, 60) for one in some))
            assert Preemption.parse(str(exempt)) == exempt
        assert all(rule.levels[one] > rule.levels[other] for one, other in pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue", "preemption 'queue' is neither a file nor a rule such as 'partition:"),
        ("queue:1", "neither a file nor a rule"),
        ("queue:1>2;qos:2>3", "one column is for all names, queue: '2' stands with another, qos"),
        ("queue:1>2;3", "'3' does not say who stops whom"),
        ("queues:1>2", "unknown column 'queues'"),
        ("queue:1>2,suspended", "unknown mode 'suspended'; did you mean 'suspend'"),
        ("queue:1>2;2>1", "jobs could stop each other in a circle"),
        ("queue:1>1", "jobs could stop each other in a circle"),
        ("queue:1>", "a name is missing"),
        ("queue:1>2,suspend,exempt=60", "exempt goes with requeue and cancel; with suspend Slurm"),
        ("queue:1>2,exempt=1=60", "exempt: nobody may stop jobs of '1'"),
        ("queue:1>2,exempt=2=60;2=70", "exempt: '2' is there twice"),
        ("queue:1>2,exempt=0", "exempt: seconds must be a whole number from 1 to 1,000,000,000"),
        ("queue:1>2,exempt=1h", "exempt: seconds must be a whole number from 1 to 1,000,000,000"),
        ("qos.txt", "qos.txt: no such file"),
        ("../qos", "../qos: no such file"),
        (7, "preemption must be a text such as"),
    ],
)
def test_what_is_no_preemption_is_one_line(text: Any, message: str) -> None:
    with pytest.raises(HpcgymError) as error:
        hpcgym.simulate(urgent(), preemption=text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_column_may_be_said_again() -> None:
    assert Preemption.parse("queue:1>2;queue:2>3") == Preemption.parse("queue:1>2;2>3")


def test_a_file_of_qos(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    rows = ["low|0|00:00:00||cluster", "high|9|00:00:00|low,free|cluster", "free|0|00:05:00||"]
    file.write_text("\n".join(["Name|Priority|GraceTime|Preempt|PreemptMode", *rows]) + "\n")
    with pytest.warns(HpcgymWarning, match=r"not followed by preemption: free: GraceTime$"):
        scheduler = hpcgym.Scheduler(preemption=str(file))
    assert str(scheduler.preemption) == "qos:high>low;high>free"
    assert hpcgym.Scheduler(preemption=scheduler.preemption) == scheduler
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||cancel\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,cancel"
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||gang,suspend\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,suspend"
    file.write_text("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||OFF\n")
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b,cancel"
    times = "Name|Preempt|PreemptMode|PreemptExemptTime\na|b,c|{0}|\nb||{0}|00:01:00\nc||{0}|\n"
    file.write_text(times.format("cancel"))
    assert (
        str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b;a>c,cancel,exempt=b=60"
    )
    file.write_text(times.format("suspend"))
    assert str(hpcgym.Scheduler(preemption=str(file)).preemption) == "qos:a>b;a>c,suspend"
    file.write_text("Name|Preempt|MaxJobsPU|MaxWall|GrpTRES\na|b|3||cpu=4\nb|||1-00:00:00|\n")
    with pytest.warns(HpcgymWarning, match="by preemption: a: MaxJobsPU, a: GrpTRES, b: MaxWall$"):
        hpcgym.Scheduler(preemption=str(file))
    for text, told in (
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||requeue\n", "several ways, cancel, req"),
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||cluster\n", "ways, cancel, requeue"),
        ("Name|Preempt|PreemptMode\na|b|\nb||gang\n", "unknown mode 'gang'"),
        ("Name|Preempt|PreemptMode\na|b|\nb||off\n", "the PreemptMode of all is OFF"),
        ("Name|Preempt\na|\n", "no QOS may stop another"),
    ):
        file.write_text(text)
        with pytest.raises(HpcgymError, match=told):
            hpcgym.Scheduler(preemption=str(file))
