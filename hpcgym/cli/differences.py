"""What differs between a file and the same one made again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from hpcgym.cli.output import Outcome, draw, write_jobs
from hpcgym.errors import HpcgymError
from hpcgym.files import csv_rows, json_of, lines_of, parquet_frame
from hpcgym.files.opening import bytes_of
from hpcgym.files.plain import csv_text, json_text, plain
from hpcgym.files.recorded import KEY, PICTURE_KEYS, beside, ending_of, record_of_file
from hpcgym.files.tables import csv_rows_of
from hpcgym.files.texts import MOST_JSON
from hpcgym.naming import ONCE_CALLED, SWF_COLUMNS

_MOST = 1024**3  # bytes of a page or a picture
_SHOWN = 60  # letters of a value in a message


def of_records(told: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two records, apart from versions and files."""
    found = []
    if _digests(told["workloads"]) != _digests(now["workloads"]):
        found.append("the jobs are others" + _cleaned_otherwise(told, now))
    none: dict[str, Any] = {}
    for was, one in zip_longest(told["schedules"], now["schedules"], fillvalue=none):
        name = one.get("name") or was.get("name")
        for part in ("rules", "machine", "limits", "speedups", "metrics"):
            if part in was and was[part] != plain(one.get(part)):
                difference = first_difference(was[part], one.get(part))
                found.append(f"the {part} of {name}: {difference}")
        if was.get("sha256") != one.get("sha256"):
            found.append(f"the schedule {name} is another")
    return found


def _digests(parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [part.get("sha256") for part in parts]


def _cleaned_otherwise(told: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how numbers of jobs or their cleaning differ; "" if they do not, or are not told."""
    for was, one in zip(told["workloads"], now["workloads"], strict=False):
        for part in ("jobs", "processors", "cleaning"):
            if part in was and was[part] != one[part]:
                return f" ({part}: {first_difference(was[part], one[part])})"
    return ""


def of_contents(path: Path, outcome: Outcome, *, same_version: bool) -> str:
    """Return the first thing in which a file differs from the same one made again; "" if none.

    Parameters
    ----------
    path : of the file; its ending tells what it is.
    outcome : what its command computes.
    same_version : whether this version wrote it. Of what another one wrote, pages and pictures are
        not compared, nor the header of SWF.
    """
    ending = ending_of(path)
    if ending in (".html", ".png", ".svg", ".pdf") or not outcome.report:
        return _of_drawn(path, outcome) if same_version else ""
    if ending in (".csv", ".json") and not beside(path).is_file():
        return (_of_result_rows if ending == ".csv" else _of_facts)(path, outcome)
    if len(outcome.results) != 1:
        return "its command writes no schedule"  # only simulate does
    ((name, result),) = outcome.results.items()
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, path.name)
        if ending == ".swf":
            result.to_swf(new, name=name)
            return _of_swf(path, new, header=same_version)
        write_jobs(result, new, {})
        return _of_jobs(_table(path, ending), _table(new, ending))


def _of_swf(path: Path, new: Path, *, header: bool) -> str:
    """Return how two SWF files differ; without ``header`` only in their jobs."""
    files = [
        [text for text, _ in lines_of(one, "SWF") if header or not text.startswith(";")]
        for one in (path, new)
    ]
    for number, (is_, should) in enumerate(zip_longest(*files, fillvalue=""), 1):
        if is_ == should:
            continue
        values, expected = is_.split(), should.split()
        if should.startswith(";") or is_.startswith(";") or len(values) != len(expected):
            return f"line {number} is {_short(is_)}, and should be {_short(should)}"
        for column, value, wanted in zip(SWF_COLUMNS, values, expected, strict=True):
            if value != wanted:
                return _of_job(expected[0], column, value, wanted)
        return f"line {number} has other blanks"
    return ""


def _of_job(job: Any, column: str, value: Any, wanted: Any) -> str:
    return f"job {job} differs: {column} is {_short(value)}, and should be {_short(wanted)}"


def _table(path: Path, ending: str) -> list[list[Any]]:
    """Return the names of the columns of a table, and its rows."""
    if ending == ".csv":
        return [row for _, row in csv_rows(path, "CSV")]
    if ending == ".parquet":
        frame = parquet_frame(path)
        return [list(frame.columns), *map(list, frame.itertuples(index=False, name=None))]
    rows = json_of(bytes_of(path, MOST_JSON, HpcgymError), str(path), flat=True)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return [[f"no table but {_short(rows)}"]]
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    return [names, *([row.get(name) for name in names] for row in rows)]


def _of_jobs(table: list[list[Any]], wanted: list[list[Any]]) -> str:
    """Return how two tables of jobs differ; their first column has the numbers of the jobs."""
    columns = [[ONCE_CALLED.get(name, name) for name in names] for names in table[:1]]
    if columns != wanted[:1]:
        return f"its columns are {_short(table[:1])}, and should be {_short(wanted[:1])}"
    names = wanted[0]
    for row, expected in zip(table[1:], wanted[1:], strict=False):
        for name, value, right in zip_longest(names, row, expected):
            if value != right:
                return _of_job(expected[0], name, value, right)
    if len(table) != len(wanted):
        return f"it has {len(table) - 1:,} jobs, and should have {len(wanted) - 1:,}"
    return ""


def _of_result_rows(path: Path, outcome: Outcome) -> str:
    """Return how a table of results differs."""
    rows = [row for _, row in csv_rows(path, "CSV")]
    expected = [row for _, row in csv_rows_of(csv_text(outcome.rows()), "")]
    names = expected[0]
    if rows[:1] != expected[:1]:
        return f"its columns are {_short(rows[:1])}, and should be {_short(expected[:1])}"
    none: list[str] = []
    for number, (row, wanted) in enumerate(zip_longest(rows[1:], expected[1:], fillvalue=none), 1):
        for name, value, right in zip_longest(names, row, wanted):
            if value != right and name != "hpcgym":
                return f"row {number}: {name} is {_short(value)}, and should be {_short(right)}"
    return ""


def _of_facts(path: Path, outcome: Outcome) -> str:
    """Return how results in JSON differ, but for the record and the version."""
    told = json_of(bytes_of(path, MOST_JSON, HpcgymError), str(path), flat=True)
    now = json_of(json_text(outcome.facts()), "", flat=True)
    for facts in (told, now):
        for key in (KEY, "hpcgym"):
            facts.pop(key, None)
    return "" if told == now else first_difference(told, now)


def _of_drawn(path: Path, outcome: Outcome) -> str:
    """Return how a page, a trace of events or a picture differs from the one that is made now."""
    is_picture = path.suffix.casefold() in PICTURE_KEYS
    figure = record_of_file(path).get("figure") if is_picture else None
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, path.name)
        if figure is None:
            draw(outcome.results, new, report=outcome.report)
        else:
            from hpcgym.report.figures import figure_again

            figure_again(outcome.results, figure, new)
        is_, should = (bytes_of(one, _MOST, HpcgymError) for one in (path, new))
    if is_ == should:
        return ""
    if is_picture:
        return "it is not the picture that is drawn now"
    pairs = zip_longest(is_.splitlines(), should.splitlines(), fillvalue=b"")
    number = next(n for n, (one, other) in enumerate(pairs, 1) if one != other)
    return f"line {number} differs from that of now"


def first_difference(told: Any, now: Any, where: str = "") -> str:
    """Return where two values of JSON differ first, and how."""
    told, now = plain(told), plain(now)
    if isinstance(told, dict) and isinstance(now, dict):
        keys = [key for key in {**told, **now} if told.get(key) != now.get(key)]
        if keys:
            key = keys[0]
            return first_difference(told.get(key), now.get(key), f"{where}.{key}".lstrip("."))
    if isinstance(told, list) and isinstance(now, list):
        for place, (one, other) in enumerate(zip(told, now, strict=False)):
            if one != other:
                return first_difference(one, other, f"{where}[{place}]")
    return f"{where} is {_short(told)}, and should be {_short(now)}".lstrip()


def _short(value: Any) -> str:
    """Return a value in a message: one short line."""
    text = value if isinstance(value, str) else json.dumps(plain(value), default=str)
    text = "nothing" if value is None or text == "" else " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
