"""Dumps of sacct, of which plain pieces are read at once: as line by line, odd ones as well."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from drawing import given
from drawing import strategies as st
from sacct_dumps import dump

from hpcgym import files, load_workload
from hpcgym.dates import Clock
from hpcgym.errors import WorkloadError
from hpcgym.workload.io import sacct_lines
from hpcgym.workload.plain import as_plain

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")

_DATES = ("Unknown", "None", "", "2024-03-31T02:30:00", "2024-10-27T02:30:00", "1705305600",
          "2024-02-30T00:00:00", "2024-01-15T09:00:00+01:00", "2024-01-15 09:00:00",
          "2024-01-15T09:59:60", "soon")  # fmt: skip
_COUNTS = ("0", "", "1e3", "4", "-1", "٤")
#: Fields -> texts that some lines have there, right and wrong ones.
ODD = {
    "JobID": ("12_[3-5%2]", "12+1", "12+0", "12_7", "12", "7.batch", "7.", "007", "x7", "", " 7 "),
    "JobIDRaw": ("12", "13", "", "x", "12.0", "1" * 19),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _DATES),
    "Elapsed": ("1-02:03:04", "02:03:04.500", "03:04", "", "long"),
    "ElapsedRaw": ("1", "", "-5", "x"),
    "Timelimit": ("UNLIMITED", "unlimited", "Partition_Limit", "1-00:00:00", "", "90", "x"),
    "TimelimitRaw": ("UNLIMITED", "", "0", "x"),
    "State": ("CANCELLED by 12", "CANCELLED by émile", "COMPLETED+", "completed", "PENDING",
              "REQUEUED", "COMPLETE", "", "NODE_FAIL"),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "ReqNodes"), _COUNTS),
    "NodeList": ("None assigned", "n[1-3,7]", "n[", ""),
    "ReqMem": ("4Gn", "2000Mc", "0n", "1.5T", "512K", "4000M", "4G", "?", "", "2147487648Mn"),
    "AllocTRES": ("cpu=4,mem=4G,node=2,gres/gpu:a100=2", "billing=3", "cpu", "", "cpu=x",
                  "license/matlab=2,cpu=1", "bb/a=1G"),
    **dict.fromkeys(("User", "Account", "Partition", "QOS"), ("émile", "", "a\x1fb", "n\u2028m",
                    " x ", "a" * 300, '"q"')),
    "JobName": ("a|b", 'a"b', '"', "a b c", "a\tb", "\xa0"),
    "Reason": ("None", "Priority", "(null)"),
}  # fmt: skip


def odd_dump(seed: int) -> bytes:
    """A dump of some sixty lines, of which some are odd."""
    random = Random(seed)
    head, *lines = dump(seed, random.choice([8, 15, 30])).text.rstrip("\n").split("\n")
    lines = [line for line in lines if line != head]
    names = head.rstrip("|").split("|")
    share = random.choice([0, 0, 0.003, 0.03])
    for place, line in enumerate(lines):
        fields = line.split("|")
        for k, name in enumerate(names):
            if name in ODD and random.random() < share:
                fields[k] = random.choice(ODD[name])
        lines[place] = "|".join(fields)
    for _ in range(random.choice([0, 0, 0, 1, 3])):  # what may stand between lines
        between = ["", "  ", "sacct: error: no connection", head, "7|8", "|" * (len(names) - 1)]
        between += [random.choice(lines)] * 4 + ["7.x" + "|" * (len(names) - 1)]
        lines.insert(random.randrange(len(lines) + 1), random.choice(between))
    end = random.choice(["\n", "\n", "\n", "\r\n"])
    text = end.join([head, *lines]) + random.choice([end, end, ""])
    content = text.encode("latin-1" if random.random() < 0.1 else "utf-8", "replace")
    return gzip.compress(content) if random.random() < 0.1 else content


def outcome(path: Path, **options: Any) -> Any:
    """All that is read of a file, or what is wrong with it."""
    try:
        return json.loads(json.dumps(as_plain(load_workload(path, "none", **options))))
    except WorkloadError as error:
        return str(error)


@contextmanager
def line_by_line() -> Iterator[None]:
    with patch.object(sacct_lines._Dump, "_lines", return_value=[]):
        yield


def ways(random: Random) -> dict[str, Any]:
    """Options of a drawn way of reading."""
    return {
        "errors": random.choice(["raise", "skip", "skip", "skip"]),
        "tz": random.choice([None, "Europe/Berlin", "America/St_Johns"]),
        "processors": random.choice([None, 64, 4096]),
    }


@given(seed=st.integers(0, 10**9))
def test_pieces_are_read_as_their_lines(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("dump") / "jobs.txt"
    path.write_bytes(odd_dump(seed))
    how = ways(Random(seed))
    with line_by_line():
        expected = outcome(path, **how)
    assert outcome(path, **how) == expected
    for size in (1, 300, 2000):
        with patch.object(files, "PIECE", size):
            assert outcome(path, **how) == expected


HEAD = "JobID|Submit|Start|ElapsedRaw|AllocCPUS|SubmitLine"
ROW = "{}|2024-03-01T12:00:00|2024-03-01T12:00:10|50|4|sbatch run.sh"


def test_pieces_of_plain_lines_have_no_row(tmp_path: Path) -> None:
    """Else all tests would be of lines."""
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([HEAD, *(ROW.format(job) for job in range(1, 9)), ""]))
    with patch.object(sacct_lines, "_split", side_effect=sacct_lines._split) as split:
        load_workload(path, "none")
        assert split.call_count == 1  # the last record may go on: it is looked at by itself
        with line_by_line():
            load_workload(path, "none")
        assert split.call_count == 1 + 8


@pytest.mark.parametrize("size", [1, 80, 100, 130, 200, 1000])
def test_a_record_that_goes_on_in_the_next_piece(tmp_path: Path, size: int) -> None:
    path = tmp_path / "jobs.txt"
    rows = [ROW.format(job) for job in range(1, 9)]
    rows[3] += "\n--wrap=a"
    path.write_text("\n".join([HEAD, *rows, ""]))
    with patch.object(files, "PIECE", size):
        workload = load_workload(path, "none", processors=8)
    assert workload.job_number.tolist() == [*range(1, 9)]
    broken = "repaired: line with which a record goes on after a line break in a field"
    assert workload.cleaning == {broken: 1}


@given(seed=st.integers(0, 10**9))
def test_dates_by_their_hours(seed: int) -> None:
    """A clock reads dates by the first second of their hour, also where clocks are changed."""
    random = Random(seed)
    zones = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", None]
    clock = Clock(random.choice(zones))
    day = random.choice(["2024-03-31", "2024-10-27", "2007-03-11", "2007-11-04", "2024-04-07",
                         "1986-01-01", "2024-10-06", "2024-02-30"])  # fmt: skip
    for _ in range(20):
        text = (
            f"{day}T{random.randrange(25):02}:{random.randrange(61):02}:{random.randrange(61):02}"
        )
        for later in (False, True):
            try:
                expected: Any = clock._seconds(text, later)
            except ValueError as problem:
                with pytest.raises(ValueError, match=str(problem)):
                    clock.seconds(text, later)
            else:
                assert clock.seconds(text, later) == expected
