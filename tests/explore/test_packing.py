"""Columns come back as they were: read by numpy here, and by the page's own script in Node."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcgym.errors import HpcgymError
from hpcgym.explore.page import as_text, pack, smallest

DTYPES = {"u1": "<u1", "u2": "<u2", "i4": "<i4", "f8": "<f8"}
whole = st.integers(-(2**53), 2**53)
near_bounds = st.sampled_from([0, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -1, -(2**31)])
columns = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.lists(whole | near_bounds, max_size=9) | st.lists(st.floats(-1e9, 1e9), max_size=9),
    max_size=5,
)


def unpacked(data: bytes):
    """Header and columns, read as the docstring of ``pack`` has them."""
    (length,) = struct.unpack("<I", data[:4])
    head, at = json.loads(data[4 : 4 + length]), -(-(4 + length) // 8) * 8
    found = {}
    for name, kind, count in head["columns"]:
        found[name] = np.frombuffer(data, DTYPES[kind], count, at)
        at += -(-found[name].nbytes // 8) * 8
    assert at == len(data)
    return head, found


@settings(deadline=None)
@given(columns)
def test_columns_come_back(given_columns):
    arrays = {name: np.array(values) for name, values in given_columns.items()}
    head, found = unpacked(pack({"name": "x"}, arrays))
    assert head["name"] == "x"
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert np.array_equal(found[name], values)


@given(st.lists(whole | near_bounds, min_size=1, max_size=9))
def test_no_smaller_kind_would_do(values):
    kind, _ = smallest(np.array(values))
    sizes = list(DTYPES)
    for smaller in sizes[: sizes.index(kind)]:
        bounds = np.iinfo(DTYPES[smaller])
        assert min(values) < bounds.min or max(values) > bounds.max


def test_a_number_that_javascript_does_not_hold_is_said():
    with pytest.raises(HpcgymError, match=r"cannot hold 9,007,199,254,740,993"):
        smallest(np.array([1, 2**53 + 1]))


@pytest.mark.slow
def test_the_page_reads_what_was_packed(node):
    arrays = {"a": [1, 255], "b": [0, 65535, 3], "c": [-5, 2**31 - 1], "d": [0.5, 2.0**52], "e": []}
    text = as_text(pack({"name": "</script>é", "deep": {"a": [1, None]}}, arrays))
    assert base64.b64decode(text)[:2] == b"\x1f\x8b"
    body = """
      const { head, columns } = unpack(await gunzip(given));
      for (const name of Object.keys(columns)) columns[name] = Array.from(columns[name]);
      return { head, columns };"""
    found = node(["arrays", "decode"], body, text)
    assert found["columns"] == arrays
    assert found["head"]["name"] == "</script>é"
    assert found["head"]["deep"] == {"a": [1, None]}
