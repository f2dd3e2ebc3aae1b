"""Columns of numbers as few bytes, which ``browser/decode.js`` reads."""

from __future__ import annotations

import gzip
import json
import struct
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.files.plain import plain

#: Kind of a column -> least and greatest whole number that it holds, the smallest kind first.
_WHOLE = {"u1": (0, 2**8 - 1), "u2": (0, 2**16 - 1), "i4": (-(2**31), 2**31 - 1)}
_MOST = 2**53  # numbers of JavaScript are float64
_ALIGNED = 8  # bytes: a column of float64 begins at a multiple of its size


def smallest(values: Any) -> tuple[str, NDArray[Any]]:
    """Return the kind of the smallest column that holds some numbers exactly, and the column.

    Parameters
    ----------
    values : (n,) whole numbers, or float64.

    Returns
    -------
    kind, column : "u1", "u2" or "i4" of whole numbers, "f8" of others; (n,), little-endian.

    Raises
    ------
    HpcgymError : a whole number beyond 2^53.
    """
    column = np.asarray(values)
    least, most = (column.min(), column.max()) if column.size else (0, 0)
    if column.dtype.kind != "f" or np.array_equal(column, np.rint(column)):
        if max(-int(least), int(most)) > _MOST:
            raise HpcgymError(f"a page cannot hold {int(most):,}: its numbers end at 2^53")
        for kind, (low, high) in _WHOLE.items():
            if low <= least and most <= high:
                return kind, column.astype(f"<{kind}")
    return "f8", column.astype("<f8")


def pack(head: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """Return a header and columns as bytes.

    They are: the length of the header, uint32; the header, JSON in UTF-8, in which ``columns``
    lists name, kind and length of each column; and the columns. Each part begins at a multiple of
    8 bytes, numbers are little-endian.

    Parameters
    ----------
    head : what JSON can hold.
    columns : name -> (n,) numbers; see :func:`smallest`.

    Raises
    ------
    HpcgymError : a whole number beyond 2^53.
    """
    small = {name: smallest(values) for name, values in columns.items()}
    listed = [[name, kind, len(column)] for name, (kind, column) in small.items()]
    text = json.dumps(plain({**head, "columns": listed}), allow_nan=False).encode()
    parts = [struct.pack("<I", len(text)) + text, *(one.tobytes() for _, one in small.values())]
    return b"".join(part + bytes(-len(part) % _ALIGNED) for part in parts)


def as_text(packed: bytes) -> str:
    """Return bytes as gzip in base64: letters that no page takes for an end of its script."""
    return b64encode(gzip.compress(packed, 9, mtime=0)).decode("ascii")
