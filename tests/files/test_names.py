"""Names, times and origins that files tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawing import given
from drawing import strategies as st
from hypothesis import given as given_texts
from hypothesis import strategies as texts
from mistakes import mistakes_of

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler, rule_value
from hpcgym.cli.loading import time_of_log
from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import (
    Command,
    beside,
    commanded,
    date_text,
    meta_of,
    note_of,
    origin,
    record_of_file,
    write_beside,
)
from hpcgym.machine import Cluster, Level, NodeGroup, Partition
from hpcgym.machine.slurm import read_slurm_conf
from hpcgym.machine.speedups import Heatmap
from hpcgym.names import MOST_NAME, name_problem, printable
from hpcgym.report.canvas import new_figure, save_figure
from hpcgym.scheduler.slurm_qos import read_qos
from hpcgym.study.sweep.experiment import load_experiment
from hpcgym.units import duration, seconds_in, seconds_of, whole_seconds
from hpcgym.version import __version__
from hpcgym.workload.io.swf_header import names_of

RED = "\x1b[31msaf\x1b[0m"
LONG = "x" * 5000
JOB = "1 0 -1 10 1 -1 -1 1 10 -1 1 7 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize("name", [RED, "saf\neasy", "saf\u202e", " saf", "saf\xa0", "", LONG, 7])
def test_a_name_that_would_not_be_shown_as_it_is_is_none(name: Any) -> None:
    assert name_problem(name)


def test_other_names_stay_and_long_ones_of_a_log_are_cut_and_stay_apart() -> None:
    for name in ("saf", "Größe 数", "[bold]saf[/]", "x" * MOST_NAME):
        assert (name_problem(name), printable(name)) == ("", name)
    first, two = printable(f"{LONG}1"), printable(f"{LONG}2")
    assert first != two
    assert len(first) == len(two) == MOST_NAME
    assert first.startswith("x" * 150)
    assert printable("al\x1b[31mice\n") == "al?[31mice?"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.swf", f"; MaxProcs: 4\n; User: 7 {RED}{LONG}\n{JOB}"),
        ("log.csv", f"submit_time,run_time,requested_processors,user\n0,10,1,{LONG}\n"),
        (
            "log.txt",
            "JobID|JobIDRaw|User|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS\n"
            f"1|1|{RED}{LONG}|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|10|1|1\n",
        ),
    ],
)
def test_users_of_a_log_have_names_that_can_be_shown(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    jobs = hpcgym.load_workload(path, processors=4)
    (called,) = names_of(jobs, "user_id").values()
    assert called.isprintable()
    assert len(called) == MOST_NAME
    renamed = path.rename(tmp_path / f"{RED}{path.suffix}")
    name = hpcgym.load_workload(renamed, processors=4).name
    assert name.removesuffix(path.suffix) == "?[31msaf?[0m"


def test_names_of_slurm_have_no_escape_codes(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(f"NodeName=n1 CPUs=4\nPartitionName={RED} Nodes=n1\n")
    assert read_slurm_conf(path).cluster.partitions[0].name == "?[31msaf?[0m"


UNITS = st.sampled_from(["s", "m", "min", "h", "d"])
#: pandas counts nanoseconds, up to 106,751 days.
PART = st.tuples(st.integers(0, 26_000), UNITS, st.sampled_from(["", " "]))


@given(st.lists(PART, min_size=1, max_size=4), st.sampled_from(["", " "]))
def test_sums_of_units_are_those_of_pandas(parts: list[Any], between: str) -> None:
    text = between.join(f"{number}{blank}{unit}" for number, unit, blank in parts)
    assert (
        seconds_of(text) == pd.Timedelta(text.replace("min", "m").replace("d", "D")).total_seconds()
    )


@given(st.integers(0, 10**6 - 1), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_clocks_are_those_of_pandas(days: int, hours: int, minutes: int, seconds: int) -> None:
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    known = pd.Timedelta(clock).total_seconds()
    assert seconds_of(clock) == seconds_in(clock) == known
    assert seconds_of(f"{days}-{clock}") == known + 86_400 * days


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (-0.4, "0 s"),
        (0.5, "1 s"),
        (59.4, "59 s"),
        (59.5, "1 min"),
        (90.5, "1 min 31 s"),
        (3571, "59 min 31 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h"),
        (3629.6, "1 h"),  # 3630 s would be 1 h 1 min: nothing is rounded twice
        (4971, "1 h 23 min"),
        (7169, "1 h 59 min"),
        (7170, "2 h"),
        (86_369, "23 h 59 min"),
        (86_370, "1 d"),
        (-4971, "-1 h 23 min"),
        (266_000, "3 d 2 h"),
        (172_799, "2 d"),
    ],
)
def test_durations_are_rounded_to_the_unit_that_is_shown(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(st.integers(0, 10**9))
def test_a_time_in_words_is_read_again(seconds: int) -> None:
    again = seconds_of(duration(seconds))
    assert again is not None
    smaller = 3600 if seconds >= 86_400 else 60 if seconds >= 3600 else 1
    assert again == (seconds + smaller // 2) // smaller * smaller


@pytest.mark.parametrize(
    "text",
    ["", "h", "5x", "5 h 3", "-5h", "1e3", "5H 2", "nan", "inf", "1d-2:00", "5h,3m", "1 2 h"],
)
def test_what_is_no_time(text: str) -> None:
    assert seconds_of(text) is None


def test_rules_in_texts_take_times_and_no_other_numbers_do() -> None:
    assert rule_value("threshold", "5h") == 18_000
    assert rule_value("dispatch_time", "1.5m") == 90
    assert rule_value("pairs_above", "5h") == "5h"
    assert find_scheduler("saf:threshold=80h") == find_scheduler("saf:threshold=288000")
    assert find_scheduler("saf:hold=0.1,from_s=2h,erode_s=4h") == find_scheduler(
        "saf:hold=0.1,from_s=7200,erode_s=14400"
    )
    assert [time_of_log(text) for text in ("84d", "60", "-2h")] == [84 * 86_400, 60, -7_200]


TEXTS = texts.text(texts.characters(exclude_categories=["Cs"]), max_size=30)


def record(text: str) -> dict[str, Any]:
    """A record with a text that may be anything at all, as names of workloads are."""
    written = {"hpcgym": "1", "date": "2000", "command": ["simulate", text], "files": {text: "ab"}}
    return {**written, "workloads": [{"name": text}], "schedules": [{"name": text}]}


def test_the_date_may_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, text in (("0", "1970-01-01T00:00:00Z"), ("86399", "1970-01-01T23:59:59Z")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        assert date_text() == text


def test_what_is_written_during_a_command_tells_of_it() -> None:
    asked = []

    def files() -> dict[str, str]:
        asked.append(1)
        return {"b": "2", "a": "1"}

    with commanded(Command(["simulate", "x"], files, "2000")):
        assert not asked  # nothing is read where nothing is written
        first = origin()
        assert origin() == first
        assert (first["command"], list(first["files"])) == (["simulate", "x"], ["a", "b"])
        assert first["date"] == "2000"
    assert asked == [1]
    after = origin()
    assert (after["hpcgym"], after["command"], after["files"]) == (__version__, None, {})


@given_texts(TEXTS)
def test_a_note_is_one_line_of_ascii(text: str) -> None:
    note = note_of(record(text))
    assert note.isascii()
    assert note.isprintable()
    assert json.loads(note.partition(": ")[2]) == record(text)


@pytest.mark.parametrize("text", ["plain", '</meta> "q" & <b>', "(a) \\( )) \\n \n", "café — ☃ 𝄞"])
@pytest.mark.parametrize("ending", ["swf", "csv", "html", "png", "svg", "pdf", "parquet"])
def test_what_is_read_is_what_was_written(tmp_path: Path, ending: str, text: str) -> None:
    path, written = tmp_path / f"a.{ending}", record(text)
    if ending == "swf":
        path.write_text(f"; Version: 2.2\n; Note: {note_of(written)}\n1 2\n")
    elif ending == "csv":
        path.write_text("a,b\n1,2\n")
        write_beside(path, written)
    elif ending == "html":
        path.write_text(f"<!DOCTYPE html><head>{meta_of(written)}</head>")
    elif ending == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
        from hpcgym.files.recorded import NAME, record_text
        from hpcgym.files.tables import write_parquet

        write_parquet(pd.DataFrame({"a": [1]}), path, {NAME: record_text(written)})
        assert pd.read_parquet(path).to_dict("list") == {"a": [1]}
    else:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib")
        save_figure(new_figure(1, 1), path, path.suffix, written)
    assert record_of_file(path) == written


def test_the_metadata_of_a_png_are_what_other_programs_read(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    image = pytest.importorskip("PIL.Image")
    save_figure(new_figure(1, 1), tmp_path / "a.png", ".png", record("x"))
    with image.open(tmp_path / "a.png") as opened:
        assert json.loads(opened.text["Description"]) == record("x")


test_mistakes = mistakes_of(
    globals(), Cluster, Heatmap, Level, NodeGroup, Partition, beside, load_experiment, np,
    read_qos, whole_seconds, errors=(HpcgymError, ValueError), fixtures=("monkeypatch",),
)  # fmt: skip
