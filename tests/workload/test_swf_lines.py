import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpcgym._engine import parse_lines
from hpcgym.workload import read_swf
from hpcgym.workload.io.swf import KINDS, BadLineError, parse_line

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
    filled = (
        np.zeros((18, 1), np.int64),
        np.zeros(1),
        np.zeros((1, 4), np.int64),
        np.zeros(18, np.int64),
    )
    for text in (b"", b"1 0"):
        with pytest.raises(ValueError, match="each with its end"):
            parse_lines(text, 0, 0, KINDS, *filled)
    with pytest.raises(ValueError, match="as many rows"):
        parse_lines(b"1\n", 0, 0, KINDS, filled[0], np.zeros(2), *filled[2:])
    assert parse_lines(b"1\n", 9, 5, KINDS, *filled) == (9, 5, 0, 0, 0)


def test_the_fast_path_takes_ordinary_lines(tmp_path, monkeypatch):
    def refuse(line):
        raise AssertionError(line)

    monkeypatch.setattr("hpcgym.workload.io.swf.parse_line", refuse)
    line = "  1\t0 5.0 100.25 4 27.123 -1 4 200 -1 1 7 3 -1 2 -1 +1 -1 \r\n"
    path = tmp_path / "log.swf"
    path.write_text(line * 3)
    assert len(read_swf(path)) == 3


@pytest.mark.parametrize(
    "number", ["7.3785690282684228", "7524304.1405630618", "0.1", "-121.04192482052569", "1e-7"]
)
def test_decimals_are_the_nearest_doubles(tmp_path, number):
    path = tmp_path / "log.swf"
    path.write_text(f"1 0 0 9 1 {number}" + " 1" * 12)
    assert read_swf(path).average_cpu_time[0] == float(number)


def test_bad_line_error_carries_its_reason():
    with pytest.raises(BadLineError) as error:
        parse_line(b"1 2 3")
    assert error.value.reason == "line with fewer than 18 fields"
    assert str(error.value).startswith("3 fields")
