"""Reading and writing SWF, and its two ways to read a line."""

import gzip
import re
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mistakes import mistakes_of, why_not

from hpcgym._engine import parse_lines
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.names import SWF_COLUMNS
from hpcgym.schedule.signals import zero_of
from hpcgym.workload import Workload, read_swf, write_swf
from hpcgym.workload.columns import kind_of
from hpcgym.workload.io import swf as swf_module
from hpcgym.workload.io.swf import KINDS, parse_line
from hpcgym.workload.io.swf_header import clock_of
from hpcgym.workload.model import REORDERED

JOB = "1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 2 -1 -1 -1"
HEADER = "; Version: 2.2\n; MaxProcs: 64\n"


def job(**fields):
    values = dict(zip(SWF_COLUMNS, JOB.split(), strict=True)) | fields
    return " ".join(str(v) for v in values.values())


def read(tmp_path, text, *, name="log.swf", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_swf(path, **options)


def same(a: Workload, b: Workload) -> bool:
    return all(np.array_equal(a.columns[c], b.columns[c]) for c in SWF_COLUMNS)


def test_reads_all_fields_in_order(tmp_path):
    line = "1 2 3 4 5 6.5 7 8 9 10 1 12 13 14 15 16 17 18"
    workload = read(tmp_path, HEADER + line + "\n")
    assert [workload.columns[c][0] for c in SWF_COLUMNS] == [float(v) for v in line.split()]
    assert (workload.processors, workload.name, workload.cleaning) == (64, "log", {})
    assert not workload.killed.any()
    for column, values in workload.columns.items():
        assert values.dtype == kind_of(column).dtype
        assert not values.flags.writeable


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log"])
def test_line_ends_blank_lines_tabs_and_comments_in_the_middle(tmp_path, end, name):
    """Packed or not: the content tells which."""
    lines = [*HEADER.split("\n"), JOB, "", "   ", "  ; a remark", job(submit_time=3), "\t"]
    tabbed = job(submit_time=9).replace(" ", "\t") + "\t "
    text = end.join([*lines, tabbed])  # no line end at the end
    for content in (text, f"\ufeff{text}", gzip.compress(text.encode())):
        workload = read(tmp_path, content, name=name)
        assert workload.submit_time.tolist() == [0, 3, 9]
        assert (workload.header["MaxProcs"], workload.header[""]) == (["64"], ["a remark"])
        assert workload.cleaning == {}
        assert workload.used_memory.strides == (0,)  # what no job has takes no memory


ROUNDED = "repaired: {} rounded to a whole number"


@pytest.mark.parametrize(
    ("lines", "columns", "cleaning"),
    [
        (
            [job(job_number=n, submit_time=t) for n, t in ((1, 5), (2, 9), (3, 5), (4, 2), (5, 9))],
            {"job_number": [4, 1, 3, 2, 5]},
            {REORDERED: 2},
        ),
        (
            [
                job(run_time="12.5", wait_time="3.0", average_cpu_time="2.25"),
                job(run_time="12.49", used_memory="-0.4", requested_processors="4."),
                job(run_time="1.25e2", submit_time="1E1", requested_time=".5"),
            ],
            {
                "run_time": [13, 12, 125],
                "requested_time": [200, 200, 1],
                "average_cpu_time": [2.25, -1, -1],
                "submit_time": [0, 0, 10],
            },
            {
                ROUNDED.format("run_time"): 2,
                ROUNDED.format("used_memory"): 1,
                ROUNDED.format("requested_time"): 1,
            },
        ),
        (
            [JOB + " 19 text", JOB, job(run_time="1e2") + " 19"],
            {"run_time": [100, 100, 100]},
            {"repaired: columns after the 18th ignored": 2},
        ),
        (
            [job(submit_time=2**40, run_time=2**53, user_id=2**63 - 1, group_id=10**18)],
            {"submit_time": [2**40], "run_time": [2**53], "user_id": [2**63 - 1]},
            {},
        ),
    ],
    ids=["order", "decimals", "further", "large"],
)
def test_what_is_repaired_is_counted(tmp_path, lines, columns, cleaning):
    workload = read(tmp_path, HEADER + "\n".join(lines))
    assert {name: workload.columns[name].tolist() for name in columns} == columns
    assert workload.cleaning == cleaning


def beside(line):
    """Return a log of a line between two others, and once more."""
    return HEADER + f"{JOB}\n\n{line}\n{JOB}\n{line}\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (" ".join(JOB.split()[:17]), "fewer than 18"),
        ("1 2 3", "fewer than 18"),
        (job(run_time="abc"), "text"),
        (job(submit_time="nan"), "text"),
        (job(user_id="1_000"), "text"),
        (job(status="--1"), "text"),
        (JOB.replace(" ", ","), "text"),
        (job(requested_processors="2.5"), "fraction"),
        (job(submit_time=2**53 + 1), "too large"),
        (job(submit_time="9" * 400), "too large"),
        (job(run_time="1e9999"), "too large"),
        (job(user_id=2**63), "too large"),
        (job(average_cpu_time="1e999"), "too large"),
        (f"{JOB}\r{JOB}", "carriage return"),
        (f"{JOB} 19\r{JOB}", "carriage return"),
        (job(executable="\x01"), "text"),
        (job(executable="\u00e9"), "text"),
    ],
)
def test_a_bad_line_is_dropped_and_counted(tmp_path, line, reason):
    workload = read(tmp_path, beside(line), errors="skip")
    assert len(workload) == 2
    ((counted, number),) = workload.cleaning.items()
    assert counted.startswith("dropped: ")
    assert reason in counted
    assert number == 2


BLOCKS = HEADER + "; more\n" * 20 + f"{JOB}\n" * 50 + "1 x\n" + f"{JOB}\n1 x\n" * 20 + ";\n" * 10


@pytest.fixture
def few_bytes(monkeypatch):
    """Read in small blocks; return so much of a log that there are several."""
    monkeypatch.setattr(swf_module, "BLOCK_BYTES", 200)
    monkeypatch.setattr(swf_module, "_SPECIAL_LINES", 3)
    return BLOCKS


def test_lines_are_counted_over_blocks(tmp_path, few_bytes):
    workload = read(tmp_path, few_bytes, errors="skip")
    assert len(workload) == 70
    assert workload.cleaning == {"dropped: line with text in a numeric field": 21}


def test_truncated_last_line(tmp_path):
    text = HEADER + JOB + "\n" + JOB[:20]
    assert len(read(tmp_path, text, errors="skip")) == 1


_NO_SIZE = "no size of a machine: taken to be"


@pytest.mark.parametrize(
    ("header", "size", "doubt"),
    [
        ("MaxNodes: 8; MaxProcs: 32", 32, ""),
        ("maxprocs:32 (of 40)", 32, ""),
        ("MaxProcs: 1152 (72*16)", 1152, ""),
        ("MaxNodes: 100 nodes", 100, ""),
        ("MaxProcs: 128[8 spare]", 128, ""),
        ("MaxProcs: 128, of which 8 are spare", 128, ""),
        ("MaxProcs: 1024 processors in 128 nodes", 1024, ""),
        ("MaxProcs: 1024 = 8 * 128", 1024, ""),
        ("MaxProcs: 1024 processors, 128 nodes", 1024, ""),
        ("MaxProcs: 128.;   8 of them are spare", 128, ""),
        ("MaxProcs: 32; MaxNodes: 6 4", 32, ""),
        ("MaxProcs: 128; MaxProcs: 128 (16*8); MaxProcs: -1; MaxNodes: 16", 128, ""),
        ("MaxProcs:; MaxNodes: 8", 8, ""),
        ("MaxNodes: 8; MaxProcs: -1", 8, rf"MaxProcs is '-1' \(line 2\), {_NO_SIZE} 8 proc"),
        ("MaxNodes: 8; MaxProcs: 0", 8, rf"MaxProcs is '0' \(line 2\), {_NO_SIZE} 8 proc"),
        (
            "MaxProcs: 128; MaxProcs: 256",
            128,
            r"MaxProcs is '128' \(line 1\) and '256' \(line 2\): taken to be 128 processors",
        ),
        (
            "MaxProcs: -1; MaxProcs: 64; Note: x; MaxProcs: 12k",
            64,
            r"MaxProcs is '64' \(line 2\) and '12k' \(line 4\): taken to be 64 processors",
        ),
        ("MaxNodes: 8; MaxNodes: 9", 8, r"MaxNodes is '8' \(line 1\) and '9' \(line 2\): taken to"),
        ("Note: x; MaxProcs: many", 6, rf"'many' \(line 2\), {_NO_SIZE} its largest job, 6 proc"),
        ("MaxProcs:", 6, "log.swf does not say how large its machine was: taken to be its largest"),
    ],
)
def test_machine_size(tmp_path, header, size, doubt):
    """What is odd is said in one line, and nothing if the size is given."""
    text = "".join(f"; {line}\n" for line in header.split("; "))
    jobs = [job(allocated_processors=6, requested_processors=5, wait_time=-1), JOB]
    text += "\n".join(jobs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read(tmp_path, text).processors == size
        assert len(caught) == bool(doubt)
        assert read(tmp_path, text, processors=3).processors == 3
    assert len(caught) == bool(doubt)
    assert all(re.search(doubt, str(warning.message)) for warning in caught)


NO_NUMBERS = (
    *("1,024", "1e3", "6 4", "1.024", "1_024", "128.0", "about 128", "~128", "12k", "2 x 64"),
    *("100-128", "2 racks of 64", "128 nodes with 2 processors each", "8 cpus x 16", "2 of 64"),
    *("0x40", "128/256", "6\t4", "9" * 5000, "\u0661\u0662\u0668", "1\u00b2"),
)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_machine_size_that_is_no_plain_number(tmp_path, value):
    """Each of these was read as its first digits, and nearly all jobs were dropped."""
    text = f"; Version: 2.2\n; MaxNodes: 8\n; MaxProcs: {value}\n{JOB}"
    why = why_not(read, tmp_path, text)
    assert re.search(r"log\.swf, line 3: MaxProcs is ['\"].*--processors", why)
    for size in (16, 8):  # 8 as MaxNodes says: MaxProcs is still wrong
        workload = read(tmp_path, text, processors=size)
        write_swf(workload, tmp_path / "copy.swf")
        assert workload.processors == read_swf(tmp_path / "copy.swf").processors == size


def test_begin_that_is_no_plain_number(tmp_path):
    text = f"; UnixStartTime: 843,480,031\n; MaxProcs: 8\n{JOB}"
    with pytest.warns(WorkloadWarning, match=r"log\.swf, line 1: UnixStartTime is '843,480,031'"):
        workload = read(tmp_path, text)
    assert zero_of(workload.header) is None
    assert clock_of(workload) == 0
    dated = read(tmp_path, f"; UnixStartTime: 345600 (a Monday)\n; MaxProcs: 8\n{JOB}")
    assert zero_of(dated.header) == 345_600
    assert clock_of(dated) == 0
    assert clock_of(read(tmp_path, f"; UnixStartTime: 0\n; MaxProcs: 8\n{JOB}")) == 259_200


def test_machine_size_that_nothing_tells(tmp_path):
    text = job(allocated_processors=-1, requested_processors=-1)
    assert read(tmp_path, text, processors=10).processors == 10


def test_header(tmp_path):
    text = (
        ";stray text\n"
        "; Computer: IBM SP2\n"
        "; Information: http://one.example/\n"
        ";              http://two.example/\n"
        "; Queue:  0  interactive \n"
        "; Queue:  1  batch\n"
        "; Note: first\n"
        ";\n"
        ";       jobs: of a continued note\n"
        "; Local: of the site\n"
        ";\n"
        f"{JOB}\n"
        "; caf\u00e9\n"
    )
    header = read(tmp_path, text).header
    assert header == {
        "": ["stray text", "caf\u00e9"],
        "Computer": ["IBM SP2"],
        "Information": ["http://one.example/\nhttp://two.example/"],
        "Queue": ["0  interactive", "1  batch"],
        "Note": ["first\n\njobs: of a continued note"],
        "Local": ["of the site"],
    }
    latin = read(tmp_path, f"; Computer: caf\u00e9\n{JOB}".encode("latin-1")).header
    assert latin == {"Computer": ["caf\u00e9"]}


@pytest.mark.parametrize(
    ("file", "jobs", "processors"),
    [
        ("KTH-SP2-1996-2.swf.gz", 28_489, 100),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", 59_715, 128),
        ("lublin_256.swf.gz", 10_000, 256),
    ],
)
def test_real_traces_equal_a_plain_reading(trace, tmp_path, file, jobs, processors):
    path = trace(file)
    workload = read_swf(path)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    table = np.array([line.split() for line in lines if not line.startswith(";")], dtype=float)
    assert (len(workload), workload.processors, workload.cleaning) == (jobs, processors, {})
    for k, column in enumerate(SWF_COLUMNS):
        assert np.array_equal(workload.columns[column], table[:, k])
    write_swf(workload, tmp_path / "copy.swf")
    copy = read_swf(tmp_path / "copy.swf")
    assert (copy.header, copy.processors) == (workload.header, processors)
    assert same(copy, workload)


token = st.from_regex(rb"[+-]?[0-9]{0,19}(\.[0-9]{0,6})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
junk = st.sampled_from([b"-", b"", b"x", b"1;", b";", b"-1", b"9007199254740993", b"0.5", b"\xff"])
blanks = st.sampled_from([b" ", b"  ", b"\t", b" \t "])


@settings(deadline=None, max_examples=500)
@given(
    fields=st.lists(token | junk | st.just(b"7"), min_size=1, max_size=20),
    gap=blanks,
    end=st.sampled_from([b"\n", b"\r\n", b" \n"]),
)
@example(fields=[b"9007199254740992.5"] * 18, gap=b" ", end=b"\n")
@example(
    fields=[b"0.1234567890123456"] * 5 + [b"0.12345678901234567"] + [b"1"] * 12, gap=b" ", end=b"\n"
)
def test_the_fast_path_agrees_with_the_exact_one(fields, gap, end):
    line = gap.join(fields) + end
    if not line.strip() or line.lstrip().startswith(b";"):
        return
    whole = np.zeros((18, 1), dtype=np.int64)
    decimal = np.zeros(1)
    special = np.zeros((1, 4), dtype=np.int64)
    rounded = np.zeros(18, dtype=np.int64)
    done = parse_lines(line, 0, 0, KINDS, whole, decimal, special, rounded)
    assert done[:3] == (len(line), 1, 1)
    if done[3]:  # left to the exact path
        assert special[0].tolist() == [0, len(line) - 1, 1, 0]
        return
    values, mask, extra = parse_line(line)
    whole[5, 0] = 0
    assert [*whole[:5, 0], decimal[0], *whole[6:, 0]] == values
    assert rounded.tolist() == [(mask >> k) & 1 for k in range(18)]
    assert done[4] == extra


def test_a_text_that_could_be_read_beyond_its_end_is_refused():
    sizes = ((18, 1), (1,), (1, 4), (18,))
    filled = [np.zeros(size, float if size == (1,) else np.int64) for size in sizes]
    assert parse_lines(b"1\n", 9, 5, KINDS, *filled) == (9, 5, 0, 0, 0)


def test_the_fast_path_takes_ordinary_lines(tmp_path, monkeypatch):
    def refuse(line):
        raise AssertionError(line)

    monkeypatch.setattr("hpcgym.workload.io.swf.parse_line", refuse)
    line = "  1\t0 5.0 100.25 4 27.123 -1 4 200 -1 1 7 3 -1 2 -1 +1 -1 \r\n"
    path = tmp_path / "log.swf"
    path.write_text(line * 3)
    assert len(read_swf(path)) == 3


test_mistakes = mistakes_of(globals(), errors=(ValueError, WorkloadError), fixtures=("few_bytes",))
