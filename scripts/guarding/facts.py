"""What a case says, as hashes: the same values have the same hash in each process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

SHOWN = 8  # values of an array


def hashed(value: Any) -> str:
    """Return the SHA-256 of a value: an array, a table, a number, a text, or several of these."""
    return hashlib.sha256(_encoded(value)).hexdigest()


def parts(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a value consists of, each with a dotted name."""
    found = _items(value)
    if found is None:
        yield name, value
        return
    for key, part in found:
        yield from parts(part, f"{name}.{key}" if name else key)


def described(value: Any) -> str:
    """Return a line about a value: its kind, its hash and what it begins with."""
    short = hashed(value)[:12]
    if not isinstance(value, np.ndarray):
        return f"{short}  {_text(value)}"
    first = " ".join(_text(one) for one in value.reshape(-1)[:SHOWN].tolist())
    more = " ..." if value.size > SHOWN else ""
    return f"{short}  {value.dtype.name} {value.shape}  {first}{more}"


def _encoded(value: Any) -> bytes:
    """Return bytes that are the same for the same value, and others for others."""
    found = _items(value)
    if found is not None:
        rows = [f"{key} {hashed(part)}" for key, part in found]
        return "\n".join([f"{len(rows)} parts", *rows]).encode()
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)  # one nan for all
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return f"array {array.dtype.str} {value.shape} ".encode() + array.tobytes()
    return f"{type(value).__name__} {_text(value)}".encode()


def _items(value: Any) -> list[tuple[str, Any]] | None:
    """Return the named parts of a value, None of one that has none."""
    if isinstance(value, Mapping):
        return sorted((str(key), part) for key, part in _simple(value.items()))
    if hasattr(value, "_asdict"):
        return [(str(key), part) for key, part in _simple(value._asdict().items())]
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a table of pandas
        return [(str(name), _column(value[name].to_numpy())) for name in value.columns]
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        listed = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
        return [(str(place), part) for place, part in _simple(enumerate(listed))]
    return None


def _simple(pairs: Any) -> list[tuple[Any, Any]]:
    """Return pairs whose values are Python's own numbers where they are single ones of numpy."""
    return [(key, part.item() if isinstance(part, np.generic) else part) for key, part in pairs]


def _column(column: Any) -> Any:
    """Return a column of a table: texts as a list, whatever kind of text pandas has."""
    return column if column.dtype.kind in "biuf" else [str(one) for one in column]


def _text(value: Any) -> str:
    """Return a number, exactly, a text or None as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return "nan" if value != value else value.hex()
    if value is None or isinstance(value, str | int | bool):
        return repr(value)
    raise TypeError(f"the guard knows no hash of a {type(value).__name__}: {value!r}")
