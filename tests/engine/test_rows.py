"""Rows of many simulations: each array is shared or has a row for each, and none is both."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from hpcgym.engine.answers.share_rows import begin_shares, make_share_rows
from hpcgym.engine.answers.shares import ShareRows, Shares
from hpcgym.engine.machines.corun.files.rows import FileRows
from hpcgym.engine.machines.corun.files.shared import SharedFiles
from hpcgym.engine.machines.corun.rows import CorunRows
from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.engine.machines.limited.rows import LimitedRows
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.machines.nodes.rows import Rooms
from hpcgym.engine.rows import (
    Rows,
    Shared,
    arrays_of_rows,
    empty_rows,
    names_of,
    shared_arrays,
)
from hpcgym.engine.state import State
from hpcgym.envs.core import arrays
from hpcgym.scheduler.estimates.learned import Learner


class One(NamedTuple):
    """A machine of one simulation."""

    size: Any
    free: Any
    scalars: Any


class Many(NamedTuple):
    """The same of many, with an array more of each kind."""

    size: Shared
    start: Shared
    free: Rows
    scalars: Rows
    extra: Rows


def test_annotations_tell_what_is_shared() -> None:
    assert names_of(Shared, Many) == ("size", "start")
    assert names_of(Rows, Many) == ("free", "scalars", "extra")
    assert names_of(Shared, Many, One) == ("size",)
    assert names_of(Rows, Many, One) == ("free", "scalars")


def test_rows_are_like_the_arrays_of_one() -> None:
    record = np.zeros(1, [("time", np.int64)])[0]
    one = One(np.arange(3), np.ones((2, 4), np.int32), record)
    rows = empty_rows(one, 5, names_of(Rows, Many, One))
    assert {name: (array.shape, array.dtype) for name, array in rows.items()} == {
        "free": ((5, 2, 4), np.int32),
        "scalars": ((5,), record.dtype),
    }
    many = Many(one.size, np.zeros(1), **rows, extra=np.zeros(5))
    assert [id(array) for array in shared_arrays(many)] == [id(many.size), id(many.start)]
    assert [id(array) for array in arrays_of_rows(many)] == [id(array) for array in many[2:]]


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (Nodes, Rooms),
        (LimitedNodes, LimitedRows),
        (CorunNodes, CorunRows),
        (SharedFiles, FileRows),
    ],
)
def test_every_array_of_a_machine_is_one_or_the_other(one: Any, many: Any) -> None:
    kinds = [*names_of(Shared, many), *names_of(Rows, many)]
    # files that jobs share have rows of their own
    assert sorted(kinds) == sorted({*many._fields} - {"io"})
    # what the rows lack is made of others, such as where the nodes of a job begin
    assert {*one._fields} <= {*many._fields}


def test_many_simulations_have_all_arrays_of_one() -> None:
    """They are spelt out there: an array of State, or of a Learner, that was forgotten is found."""
    assert arrays.Batch._fields[: len(State._fields)] == State._fields
    assert set(Learner._fields) <= {*arrays.Batch._fields}


def test_accounts_begin_as_copies() -> None:
    """Nothing is left in a row of what ran there before: a field that nobody copies is found."""
    rng = np.random.default_rng(0)
    rows = make_share_rows(2, 2, 5, 3, 4)
    for array in rows:
        whole = array.view(np.uint8) if array.dtype.names else array
        whole[...] = rng.integers(1, 100, whole.shape)
    kept = [array.copy() for array in rows]
    begin_shares.py_func(ShareRows(rows, np.array([0, 1])), 3, 1, 5)
    for name, array, before in zip(Shares._fields, rows, kept, strict=True):
        empty = name in ("base", "greatest", "places", "terms", "stamp")
        # a tree is written whenever users are ranked, before anything is read of it
        copied = before[1] if name == "tree" else before[-1]
        expected = np.zeros_like(array[1]) if empty else copied
        np.testing.assert_array_equal(array[1], expected, err_msg=name)
        others = [e for e in range(len(array)) if e != 1]
        np.testing.assert_array_equal(array[others], before[others], err_msg=name)
