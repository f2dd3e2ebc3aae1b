"""Heatmaps from files, of ELiSE too, and from a seed; and by name.

What memory does is what makes speedups differ. A code that is bound by memory bandwidth or cache
gains much on half sockets, where each of its processes has more of both, and costs its neighbour
much; one that is bound by its cores gains nothing, and is the best of neighbours. So::

    log speedup(a, b) = sensitivity of a - pressure of b + noise of (a, b)

with a sensitivity and a pressure that go together. That is what the public measurements of ELiSE
look like (NAS on ARIS and Grvingt, SPEC on ARIS): of the variance of the logarithms 47 to 55 % are
between codes, 33 to 44 % between neighbours, 8 to 13 % neither; sensitivity and pressure have a
correlation of 0.81 to 0.97; and the logarithms are nearly symmetric about their mean (skewness -0.1
to 0.4), the speedups are less so (0.4 to 0.8).
"""

from __future__ import annotations

import inspect
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, check_choice, real, unknown, whole_argument
from hpcgym.files import check_is_there, json_of, text_of
from hpcgym.files.tables import csv_rows_of, write_csv_frame
from hpcgym.files.writing import whole_text
from hpcgym.machine.speedups.heatmap import (
    IO_OF_CODES,
    MOST_CODES,
    UNKNOWN_PROCESSES,
    Floats,
    Heatmap,
    positive,
)

# --- Load files of ELiSE --------------------------------------------------------------------------
#
# A load is an object of JSON, or a text that is one: its name, its processes, its run times on
# whole nodes and, for each other load, its run times on half sockets beside it::
#
#     {"machine": ..., "suite": ..., "loads": [
#         {"load_name": "lu.D.64", "num_of_processes": 64, "compact_timelogs": [280.5, 281.0],
#          "coscheduled_timelogs": {"mg.E.128": [[301.0, 299.5], [302.0]]}}, ...]}
#
# Runs of a pair are lists of lists, one for each time that the pair was started: a load that ends
# before its neighbour is started again and again.

LOADS = "loads"

_NAME, _PROCESSES = "load_name", "num_of_processes"
_COMPACT, _BESIDE = "compact_timelogs", "coscheduled_timelogs"


def heatmap_of_loads(where: str, loads: Sequence[Any]) -> Heatmap:
    """Return the heatmap of loads: mean compact time over the mean of all times beside another.

    Times beside a load that is not among ``loads`` are left out; ``dropped`` counts these pairs.

    Raises
    ------
    HpcgymError : an invalid load, without times, or with one that is not above 0; the message
        begins with ``where`` and names the load.
    """
    by_name: dict[str, Mapping[str, Any]] = {}
    for number, given in enumerate(loads, 1):
        load = _load(f"{where}, load {number}", given)
        if load[_NAME] in by_name:
            raise HpcgymError(f"{where}, load {number}: {load[_NAME]!r} stands there twice")
        by_name[load[_NAME]] = load
    rows = {name: row for row, name in enumerate(by_name)}
    if len(rows) > MOST_CODES:
        raise HpcgymError(f"{where} has {len(rows):,} codes, at most {MOST_CODES:,}")
    speedup = np.full((len(rows), len(rows)), np.nan)
    compact_s = np.full(len(rows), np.nan)
    dropped = 0
    for name, load in by_name.items():
        row, what = rows[name], f"{where}, load {name!r}"
        compact_s[row] = _mean(f"{what}, compact", load[_COMPACT])
        for other, times in load[_BESIDE].items():
            beside_s = _mean(f"{what} beside {other!r}", times)
            if other in rows:
                speedup[row, rows[other]] = compact_s[row] / beside_s
            else:
                dropped += 1
    processes: Any = [load.get(_PROCESSES, UNKNOWN_PROCESSES) for load in by_name.values()]
    return Heatmap(
        tuple(rows),
        speedup,
        compact_s=compact_s,
        processes=processes,
        source=where,
        dropped=dropped,
    )


def _load(where: str, given: Any) -> Mapping[str, Any]:
    """Return a load as an object with all that is needed of it."""
    if isinstance(given, str):
        given = json_of(given, where, finite=False)
    if not isinstance(given, dict):
        raise HpcgymError(f"{where} is no object")
    for key, kind in ((_NAME, str), (_COMPACT, list), (_BESIDE, dict)):
        if not isinstance(given.get(key), kind):
            raise HpcgymError(f"{where} has no {key!r} that is of kind {kind.__name__}")
    if not isinstance(given.get(_PROCESSES, 1), int):
        raise HpcgymError(f"{where}: {_PROCESSES!r} must be a whole number")
    return given


def _mean(what: str, times: Any) -> float:
    """Return the mean of all times [s], which may be in lists of lists."""
    if not isinstance(times, list):
        raise HpcgymError(f"{what}: times must be a list")
    flat = [time for part in times for time in (part if isinstance(part, list) else [part])]
    if not flat:
        raise HpcgymError(f"{what}: there is no time")
    return math.fsum(positive(f"{what}: a time", time) for time in flat) / len(flat)


# --- Heatmaps from and to files -------------------------------------------------------------------
#
# A square table in CSV has a row for each code and a column for each neighbour; what was not
# measured is empty. JSON holds all that is known, with null for what is not::
#
#     code,lu,mg                {"codes": ["lu", "mg"], "speedup": [[1.04, 0.94], [1.25, null]],
#     lu,1.04,0.94               "alone": [1.1, 1.3], "compact_s": [280, 150],
#     mg,1.25,                   "processes": [64, 64]}

_MOST_BYTES = 32 << 20
#: Keys of JSON with a value for each code -> the most that it can be, None: any above 0.
_OF_CODES = {"alone": None, "compact_s": None, "processes": None, **IO_OF_CODES}
_TABLE = ("codes", "speedup", *_OF_CODES)


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
        A load of ELiSE that is only named as a neighbour is left out, and counted in ``dropped``.

    Raises
    ------
    HpcgymError : a file that cannot be read, a table that is not square, a value that is no number
        above 0, a code or a key that stands there twice; the message names the file and the line,
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

    A JSON file holds all of it but the source; a square table in CSV the speedups of pairs.

    Raises
    ------
    HpcgymError : the name ends neither in .csv nor in .json, the file cannot be written, or it is
        CSV and would not tell all that simulations go by: speedups alone that are not the greatest
        of their codes, or what codes read and write.
    """
    path = Path(path)
    if path.suffix.casefold() == ".csv":
        usual = Heatmap(heatmap.codes, heatmap.speedup)
        if heatmap.io_share is not None or (heatmap.alone != usual.alone).any():
            raise HpcgymError(
                f"{path}: a table in CSV has the speedups of pairs only, and these have more: of"
                " codes alone, or what they read and write; write them as .json"
            )
        table = io.StringIO()
        write_csv_frame(heatmap.to_frame(), table, index=True)
        text = table.getvalue()
    elif path.suffix.casefold() == ".json":
        values = {name: getattr(heatmap, name) for name in ("codes", "speedup", *_OF_CODES)}
        held = {name: np.array(of).tolist() for name, of in values.items() if of is not None}
        held["processes"] = [n if n > 0 else None for n in held["processes"]]
        text = json.dumps(_nulls(held), ensure_ascii=False) + "\n"
    else:
        raise HpcgymError(f"{path}: speedups are written as .csv or .json")
    with whole_text(path) as file:
        file.write(text)


def _nulls(value: Any) -> Any:
    """Return lists and numbers with None for what is not known."""
    if isinstance(value, dict):
        return {name: _nulls(of) for name, of in value.items()}
    if isinstance(value, list):
        return [_nulls(item) for item in value]
    return None if value != value else value


def _of_csv(where: str, text: str) -> Heatmap:
    """Return the heatmap of a square table in CSV."""
    rows = [(line, [cell.strip() for cell in row]) for line, row in csv_rows_of(text, where)]
    if len(rows) < 2:
        raise HpcgymError(f"{where} has no speedups below a line with names")
    codes = rows[0][1][1:]
    table: dict[str, list[float]] = {}
    for line, (code, *cells) in rows[1:]:
        here = f"{where}, line {line}"
        if len(cells) != len(codes):
            raise HpcgymError(f"{here}: {1 + len(cells)} columns, not {1 + len(codes)}")
        if code in table or code not in codes:
            problem = "stands there twice" if code in table else "has no column: a table is square"
            raise HpcgymError(f"{here}: the code {code!r} {problem}")
        pairs = zip(codes, cells, strict=True)
        table[code] = [
            _cell(f"{here}: speedup of {code!r} beside {b!r}", cell) for b, cell in pairs
        ]
    for code in codes:
        if code not in table:
            raise HpcgymError(f"{where}: the code {code!r} has no row: a table is square")
    return Heatmap(tuple(codes), np.array([table[code] for code in codes]), source=where)


def _cell(what: str, text: str) -> float:
    """Return the number in a cell, NaN of an empty one."""
    return _known(what, real(text) if real(text) > 0 else text or None)


def _of_json(where: str, text: str) -> Heatmap:
    """Return the heatmap of a JSON file: codes and arrays, or loads."""
    given = json_of(text, where, finite=False)
    if isinstance(given, dict) and isinstance(given.get(LOADS), list):
        return heatmap_of_loads(where, given[LOADS])
    if not isinstance(given, dict) or not isinstance(given.get("codes"), list):
        raise HpcgymError(
            f"{where} holds no speedups: neither 'codes' and 'speedup', nor the {LOADS!r} of ELiSE"
        )
    for key in given:
        if key not in _TABLE:
            raise HpcgymError(f"{where}: {unknown('key', key, _TABLE)}")
    if "speedup" not in given:
        raise HpcgymError(f"{where}: 'codes' without 'speedup'")
    codes = given["codes"]

    def of_each(values: Any, called: str) -> list[Any]:
        if not isinstance(values, list) or len(values) != len(codes):
            raise HpcgymError(
                f"{where}: {called} must be a list of {len(codes)} values, one for each code"
            )
        return values

    def numbers(values: Any, called: str, what: str, most: float | None = None) -> list[float]:
        pairs = zip(codes, of_each(values, called), strict=True)
        return [_known(f"{where}: {what} {code!r}", value, most) for code, value in pairs]

    speedup = [
        numbers(row, f"speedups of {code!r}", f"speedup of {code!r} beside")
        for code, row in zip(codes, of_each(given["speedup"], "'speedup'"), strict=True)
    ]
    others: dict[str, Any] = {
        name: numbers(given[name], repr(name), f"{name} of", most)
        for name, most in _OF_CODES.items()
        if given.get(name) is not None
    }
    if "processes" in others:
        others["processes"] = [-1 if math.isnan(n) else n for n in others["processes"]]
    return Heatmap(tuple(codes), np.array(speedup), **others, source=where)


def _known(what: str, value: Any, most: float | None = None) -> float:
    """Return a number above 0, or from 0 to ``most``, of a file; NaN if it is missing."""
    return math.nan if value is None else positive(what, value, most)


# --- Heatmaps from a seed, and heatmaps by name ---------------------------------------------------

# Shares of the variance between codes and between neighbours, and how sensitivity and pressure go
# together: about the middle of what was measured.
_SENSITIVITY, _PRESSURE, _CORRELATION = 0.5, 0.4, 0.87

#: The greatest standard deviation of the logarithm of speedups; that of ELiSE's is 0.1 to 0.2.
_MOST_SPREAD = 2.0

_GENERATED = "generated"
_WHAT = f"{_GENERATED} speedups"  # in messages


def generate_speedups(
    codes: int = 16, mean: float = 1.1, spread: float = 0.1, seed: int = 0
) -> Heatmap:
    """Generate a heatmap of a given mean and spread, as of codes more or less bound by memory.

    The same arguments give the same heatmap to the last bit, whatever the machine: of random
    numbers there are only sums, products and roots.

    Parameters
    ----------
    codes : how many; they are called code-1, code-2 and so on.
    mean : of all pairs' speedups, each code beside itself among them; above 0.
    spread : standard deviation of all pairs' speedups, at least 0. Both are met to 1e-12.
    seed : of the random numbers, at least 0.

    Raises
    ------
    HpcgymError : an argument out of range, or a spread that is too large for mean and codes, so
        that speedups would come close to 0; the message names it.
    """
    codes = whole_argument(_WHAT, "codes", codes, 1, 1000)
    seed = whole_argument(_WHAT, "seed", seed, 0, 2**64)
    mean, spread = _real("mean", mean), _real("spread", spread)
    if mean <= 0 or spread < 0:
        name, value = ("mean", mean) if mean <= 0 else ("spread", spread)
        least = "above 0" if name == "mean" else "of at least 0"
        raise HpcgymError(f"{_WHAT}: {name} must be a number {least}, not {value:g}")
    logarithms = _logarithms(codes, np.random.default_rng(seed))
    relative = _with_variation(logarithms, spread / mean)
    if relative is None:
        most = mean * _variation(_exponential(_MOST_SPREAD * logarithms))
        raise HpcgymError(
            f"{_WHAT}: spread must be at most {most:.3g} for a mean of {mean:g} and"
            f" {codes} codes, not {spread:g}"
        )
    speedup = relative * (mean / _mean_speedup(relative))
    names = tuple(f"code-{number}" for number in range(1, codes + 1))
    source = f"{_GENERATED}:codes={codes},mean={mean!r},spread={spread!r},seed={seed}"
    return Heatmap(names, speedup, source=source)


def find_speedups(source: str | os.PathLike[str] | Heatmap) -> Heatmap:
    """Return the heatmap that ``source`` names.

    Parameters
    ----------
    source : a heatmap; a file of :func:`read_speedups`; or "generated" with any
        arguments of :func:`generate_speedups`, "generated:codes=16,mean=1.1,spread=0.1,seed=0".

    Raises
    ------
    HpcgymError : no such file, or one that cannot be read; an unknown or wrong argument.
    """
    if isinstance(source, Heatmap):
        return source
    if not isinstance(source, str | os.PathLike):
        raise HpcgymError(
            f"speedups must be a heatmap, a file or a text, not a {type(source).__name__}"
        )
    if isinstance(source, str) and source.partition(":")[0] == _GENERATED:
        return generate_speedups(**_arguments(source))
    path = Path(os.path.expanduser(source))
    if not os.path.exists(path):
        check_is_there(source)
        raise HpcgymError(
            f"there are no speedups {str(source)!r}: neither such a file (CSV, JSON, loads of"
            f" ELiSE) nor {_GENERATED}:codes=16,mean=1.1,spread=0.1,seed=0"
        )
    return read_speedups(path)


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments in a text, "generated:name=number,name=number"."""
    known = inspect.signature(generate_speedups).parameters
    arguments: dict[str, Any] = {}
    for part in filter(None, text.partition(":")[2].split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        check_choice(f"argument of {_WHAT}", name, known)
        if name in arguments:
            raise HpcgymError(f"{_WHAT}: {name} is given twice")
        # a seed may be too long for a float
        arguments[name] = int(value) if value.isdecimal() else _real(name, value)
    return arguments


def _real(name: str, value: Any) -> float:
    """Return an argument as a float, or say that it is no number."""
    number = real(value)
    if not math.isfinite(number):
        raise HpcgymError(f"{_WHAT}: {name} must be a number, not {value!r}")
    return number


def _logarithms(codes: int, rng: np.random.Generator) -> Floats:
    """Return log speedups of each pair, (codes, codes), with mean 0 and standard deviation 1."""
    sensitivity, own, noise = (
        rng.standard_normal(codes),
        rng.standard_normal(codes),
        rng.standard_normal((codes, codes)),
    )
    pressure = _CORRELATION * sensitivity + math.sqrt(1 - _CORRELATION**2) * own
    logarithms = (
        math.sqrt(_SENSITIVITY) * sensitivity[:, np.newaxis]
        - math.sqrt(_PRESSURE) * pressure
        + math.sqrt(1 - _SENSITIVITY - _PRESSURE) * noise
    )
    logarithms -= _mean_speedup(logarithms)
    deviation = math.sqrt(_mean_speedup(logarithms * logarithms))
    return logarithms / deviation if deviation > 0 else logarithms


def _with_variation(logarithms: Floats, variation: float) -> Floats | None:
    """Return exp(t x) with t such that standard deviation over mean are ``variation``, if it can.

    They rise with t, and the search ends where there is no float in between.
    """
    low, high = 0.0, _MOST_SPREAD
    if variation == 0:
        return np.ones(logarithms.shape)
    if _variation(_exponential(high * logarithms)) < variation:
        return None
    while low < (middle := (low + high) / 2) < high:
        if _variation(_exponential(middle * logarithms)) < variation:
            low = middle
        else:
            high = middle
    return _exponential(high * logarithms)


def _exponential(x: Floats) -> Floats:
    """Return nearly exp(x), (1 + x / 2^10)^(2^10).

    Only by products, which have the same bits on every machine; numpy's exp has not.
    """
    power = 1 + x / 2**10
    for _ in range(10):
        power *= power
    return power


def _mean_speedup(values: Floats) -> float:
    """Return the mean, rounded once, so that it is the same on every machine."""
    return math.fsum(values.ravel().tolist()) / values.size


def _variation(values: Floats) -> float:
    """Return the standard deviation over the mean."""
    mean = _mean_speedup(values)
    deviations = values - mean
    return math.sqrt(_mean_speedup(deviations * deviations)) / mean
