"""Heatmaps from and to files: tables in CSV and JSON, and load files of ELiSE.

A square table has a row for each code and a column for each neighbour; what was not measured is
empty::

    code,lu,mg
    lu,1.04,0.94
    mg,1.25,

The same as a list, whatever the order, and as JSON, where null is what was not measured::

    code,beside,speedup         {"codes": ["lu", "mg"],
    lu,lu,1.04                   "speedup": [[1.04, 0.94], [1.25, null]],
    lu,mg,0.94                   "alone": [1.1, 1.3], "compact_s": [280, 150],
    mg,lu,1.25                   "processes": [64, 64]}

and as JSON in short: ``{"lu": {"lu": 1.04, "mg": 0.94}, "mg": {"lu": 1.25}}``.

What codes read and write is in columns behind the codes of a square table, and in keys of JSON with
``codes``; empty, or null, is nothing::

    code,lu,mg,io_share,io_demand_mb_s
    lu,1.04,0.94,0.05,2
    mg,1.25,,0.3,8.5
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown
from hpcgym.files import csv_rows_of, json_of, text_of
from hpcgym.files.writing import whole_text
from hpcgym.speedups.checks import positive, positive_text, unknown_pairs, within, within_text
from hpcgym.speedups.elise import LOADS, heatmap_of_loads
from hpcgym.speedups.heatmap import IO_OF_CODES, Heatmap

_MOST_BYTES = 32 << 20
_LIST = {"code", "beside", "speedup"}
_OF_CODES = ("alone", "compact_s", "processes")
_TABLE = ("codes", "speedup", *_OF_CODES, *IO_OF_CODES)


def read_speedups(path: str | os.PathLike[str]) -> Heatmap:
    """Return the heatmap in a file.

    Parameters
    ----------
    path : of a file in CSV or JSON, in one of the forms above, or a load file of ELiSE, whose
        speedups are the mean compact time over the mean of all times beside the other. The ending
        .csv or .json tells which; without one of them what begins with a brace is JSON.

    Returns
    -------
    Heatmap
        A code that is only named as a neighbour is one with nothing measured of its own; a load of
        ELiSE that is only named so is left out, and counted in ``dropped``.

    Raises
    ------
    HpcgymError : a file that cannot be read, a table that is not square, a value that is no number
        above 0, a pair or a key that stands there twice; the message names the file and the line,
        the key or the load.
    """
    path = Path(path)
    text = text_of(path, _MOST_BYTES, "CSV or JSON")
    is_json = text.lstrip().startswith("{")
    if path.suffix.casefold() in (".csv", ".json"):
        is_json = path.suffix.casefold() == ".json"
    return _of_json(str(path), text) if is_json else _of_csv(str(path), text)


def write_speedups(heatmap: Heatmap, path: str | os.PathLike[str]) -> None:
    """Write a heatmap as a file that :func:`read_speedups` reads.

    A JSON file holds all of it but the source. A square table in CSV holds the speedups beside each
    other, and what codes read and write; run times and numbers of processes have no place in it.

    Raises
    ------
    HpcgymError : the name ends neither in .csv nor in .json, the file cannot be written, or it is
        CSV and would not tell all: a speedup alone is not the greatest of its code, or a code is
        called as a column of what codes read and write.
    """
    path = Path(path)
    suffix = path.suffix.casefold()
    if suffix not in (".csv", ".json"):
        raise HpcgymError(f"{path}: speedups are written as .csv or .json")
    text = _csv(heatmap, path) if suffix == ".csv" else _json(heatmap)
    with whole_text(path) as file:
        file.write(text)


def _of_csv(where: str, text: str) -> Heatmap:
    """Return the heatmap of a table in CSV, square or a list."""
    found = csv_rows_of(text, where)
    rows = [(line, [cell.strip() for cell in row]) for line, row in found]
    if len(rows) < 2:
        raise HpcgymError(f"{where} has no speedups below a line with names")
    (_, names), body = rows[0], rows[1:]
    for line, row in body:
        if len(row) != len(names):
            raise HpcgymError(f"{where}, line {line}: {len(row)} columns, not {len(names)}")
    if {name.casefold() for name in names} == _LIST and len(names) == len(_LIST):
        return _of_list(where, [name.casefold() for name in names], body)
    return _of_square(where, names[1:], body)


def _of_list(where: str, names: list[str], body: list[tuple[int, list[str]]]) -> Heatmap:
    """Return the heatmap of lines with a code, its neighbour and a speedup."""
    pairs: dict[tuple[str, str], float] = {}
    for line, row in body:
        one = dict(zip(names, row, strict=True))
        pair = one["code"], one["beside"]
        what = f"{where}, line {line}: speedup of {pair[0]!r} beside {pair[1]!r}"
        if pair in pairs:
            raise HpcgymError(f"{what} stands there twice")
        pairs[pair] = positive_text(what, one["speedup"])
    return _of_pairs(where, [code for code, _ in pairs], pairs)


def _of_square(where: str, codes: list[str], body: list[tuple[int, list[str]]]) -> Heatmap:
    """Return the heatmap of a table whose header has the neighbours, and then what of files."""
    codes, body, io = _io_columns(where, codes, body)
    table: dict[str, list[float]] = {}
    for line, (code, *cells) in body:
        if code in table:
            raise HpcgymError(f"{where}, line {line}: the code {code!r} stands there twice")
        if code not in codes:
            raise HpcgymError(f"{where}, line {line}: no column for {code!r}; a table is square")
        table[code] = [
            positive_text(f"{where}, line {line}: speedup of {code!r} beside {other!r}", cell)
            for other, cell in zip(codes, cells, strict=True)
        ]
    missing = [code for code in codes if code not in table]
    if missing:
        raise HpcgymError(f"{where}: no row for {missing[0]!r}; a table is square")
    in_order = {name: [of[code] for code in codes] for name, of in io.items()}
    speedup = np.array([table[code] for code in codes])
    return Heatmap(tuple(codes), speedup, **in_order, source=where)  # type: ignore[arg-type]


def _io_columns(
    where: str, names: list[str], body: list[tuple[int, list[str]]]
) -> tuple[list[str], list[tuple[int, list[str]]], dict[str, dict[str, float]]]:
    """Return codes and lines of a table, and column -> code -> what the code reads and writes."""
    rows = {row[0] for _, row in body}
    places = {name: names.index(name) for name in IO_OF_CODES if name in {*names} - rows}
    io = {
        name: {
            row[0]: within_text(f"{where}, line {line}: {name} of {row[0]!r}", row[place + 1], most)
            for line, row in body
        }
        for name, most in IO_OF_CODES.items()
        if (place := places.get(name)) is not None
    }
    kept = [place for place in range(len(names)) if place not in places.values()]
    lines = [(line, [row[0], *(row[place + 1] for place in kept)]) for line, row in body]
    return [names[place] for place in kept], lines, io


def _of_pairs(
    where: str, rows_of: Iterable[str], pairs: Mapping[tuple[str, str], float]
) -> Heatmap:
    """Return the heatmap of pairs; codes that are only neighbours come after those with rows."""
    codes = tuple(dict.fromkeys([*rows_of, *(beside for _, beside in pairs)]))
    rows = {code: row for row, code in enumerate(codes)}
    speedup = unknown_pairs(where, len(codes))
    for (a, b), value in pairs.items():
        speedup[rows[a], rows[b]] = value
    return Heatmap(codes, speedup, source=where)


def _of_json(where: str, text: str) -> Heatmap:
    """Return the heatmap of a JSON file in any of its forms."""
    given = json_of(text, where, finite=False)
    if isinstance(given, dict) and isinstance(given.get(LOADS), list):
        return heatmap_of_loads(where, given[LOADS])
    if isinstance(given, dict) and isinstance(given.get("codes"), list):
        return _of_table(where, given)
    if not isinstance(given, dict) or not given:
        raise HpcgymError(_forms(where))
    if not all(isinstance(row, dict) for row in given.values()):
        raise HpcgymError(_forms(where))
    pairs = {
        (a, b): _known(f"{where}: speedup of {a!r} beside {b!r}", value)
        for a, row in given.items()
        for b, value in row.items()
    }
    return _of_pairs(where, given, pairs)


def _forms(where: str) -> str:
    return (
        f"{where} holds no speedups: neither 'codes' and 'speedup', nor the speedups of each code"
        f" by neighbour, nor the {LOADS!r} of ELiSE"
    )


def _of_table(where: str, given: Mapping[str, Any]) -> Heatmap:
    """Return the heatmap of codes and arrays in JSON."""
    for key in given:
        if key not in _TABLE:
            raise HpcgymError(f"{where}: {unknown('key', key, _TABLE)}")
    if "speedup" not in given:
        raise HpcgymError(f"{where}: 'codes' without 'speedup'")
    codes = given["codes"]
    rows = _list(f"{where}: 'speedup'", given["speedup"], len(codes))
    speedup = [
        [
            _known(f"{where}: speedup of {a!r} beside {b!r}", value)
            for b, value in zip(
                codes, _list(f"{where}: speedups of {a!r}", row, len(codes)), strict=True
            )
        ]
        for a, row in zip(codes, rows, strict=True)
    ]
    others: dict[str, Any] = {}
    for name in _OF_CODES:
        if name in given:
            values = _list(f"{where}: {name!r}", given[name], len(codes))
            others[name] = [
                _known(f"{where}: {name} of {code!r}", value)
                for code, value in zip(codes, values, strict=True)
            ]
    for name, most in IO_OF_CODES.items():
        if given.get(name) is not None:
            values = _list(f"{where}: {name!r}", given[name], len(codes))
            others[name] = [
                math.nan if value is None else within(f"{where}: {name} of {code!r}", value, most)
                for code, value in zip(codes, values, strict=True)
            ]
    if "processes" in others:
        others["processes"] = [-1 if math.isnan(n) else n for n in others["processes"]]
    return Heatmap(tuple(codes), np.array(speedup), **others, source=where)


def _list(what: str, values: Any, length: int) -> list[Any]:
    """Return a list of as many values as there are codes, or say that it is none."""
    if not isinstance(values, list) or len(values) != length:
        raise HpcgymError(f"{what} must be a list of {length} values, one for each code")
    return values


def _known(what: str, value: Any) -> float:
    """Return a number above 0 of a JSON file, NaN where it is null."""
    return math.nan if value is None else positive(what, value)


def _csv(heatmap: Heatmap, path: Path) -> str:
    """Return the square table in CSV."""
    usual = Heatmap(heatmap.codes, heatmap.speedup).alone
    for code, own, greatest in zip(heatmap.codes, heatmap.alone, usual, strict=True):
        if own != greatest:
            raise HpcgymError(
                f"{path}: a table in CSV does not tell that the speedup of {code!r} alone is"
                f" {own:g}; write it as .json"
            )
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    of_files = _io_of(heatmap)
    for name in of_files:
        if name in heatmap.codes:
            raise HpcgymError(f"{path}: in CSV {name!r} is a column, not a code; write it as .json")
    # with "code" it could look like the head of a list
    writer.writerow(["", *heatmap.codes, *of_files])
    table = np.column_stack([heatmap.speedup, *of_files.values()])
    for code, row in zip(heatmap.codes, map(_nulls, table.tolist()), strict=True):
        writer.writerow([code, *("" if value is None else repr(value) for value in row)])
    return file.getvalue()


def _json(heatmap: Heatmap) -> str:
    """Return all of a heatmap as JSON, a line for each code's speedups."""
    rows = ",\n  ".join(json.dumps(_nulls(row)) for row in heatmap.speedup.tolist())
    entries = {
        "codes": json.dumps(list(heatmap.codes), ensure_ascii=False),
        "speedup": f"[\n  {rows}]",
        "alone": json.dumps(heatmap.alone.tolist()),
        "compact_s": json.dumps(_nulls(heatmap.compact_s.tolist())),
        "processes": json.dumps([n if n > 0 else None for n in heatmap.processes.tolist()]),
    }
    entries |= {name: json.dumps(values.tolist()) for name, values in _io_of(heatmap).items()}
    return "{" + ",\n ".join(f'"{name}": {text}' for name, text in entries.items()) + "}\n"


def _io_of(heatmap: Heatmap) -> dict[str, NDArray[np.float64]]:
    """Return what is known of a code's files by name, nothing if it is not known."""
    values = {name: getattr(heatmap, name) for name in IO_OF_CODES}
    return {name: of for name, of in values.items() if of is not None}


def _nulls(values: Sequence[float]) -> list[float | None]:
    """Return numbers with None for what is unknown."""
    return [None if math.isnan(value) else value for value in values]
