"""Items of the documents: tables, figures, equations and sentences, each with its verdict.

``items.csv`` lists them. What makes the verdict of an item stands beside the study's published
values, and computes it from tables that the study has written; it is never typed in.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hpcgym import HpcgymError
from hpcgym.benchmarks.studies.tables import filled
from hpcgym.files import text_of, toml_file
from hpcgym.files.tables import csv_frame

#: The document contradicts itself, so that no program could have both.
CONTRADICTION = "contradiction"

#: Verdicts -> what each means; documents by name.
_WORDS = toml_file(Path(__file__).with_name("words.toml"))
VERDICTS, DOCUMENTS = _WORDS["verdicts"], _WORDS["documents"]
#: What becomes of an item, in words -> the verdicts that say so.
OUTCOMES: dict[str, list[str]] = _WORDS["outcomes"]
#: Document -> the item whose result is had the fastest: "item", and the "study" and its "options".
SAMPLE: dict[str, dict[str, str]] = _WORDS["sample"]

CLOSE = 0.1
MOST_REPORT = 16 * 1024 * 1024
TREND = 0.75
_ROUNDING = 1e-9

#: How the reports of studies begin a paragraph which says that they are a small cut.
_QUICK = "**A quick cut"


class Verdict(NamedTuple):
    """One of :data:`VERDICTS`, and why, in words."""

    verdict: str
    why: str

    def noted(self, *notes: str) -> Verdict:
        """Return it with more of why; empty notes say nothing."""
        return self._replace(why="; ".join(filter(None, (self.why, *notes))))


class NotThereError(Exception):
    """A table that the study has not written."""


class Stored:
    """What a study has written into its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def table(self, name: str, *columns: str) -> Any:
        """Return a DataFrame.

        Parameters
        ----------
        name : of its file without the suffix.
        columns : that it must have, as this version of the study writes it.

        Raises
        ------
        NotThereError : it was not written.
        HpcgymError : it cannot be read, or lacks a column.
        """
        path = self.folder / f"{name}.csv"
        if not path.exists():
            raise NotThereError(f"no {path.name}")
        # "none" of a threshold and the like are words, and empty cells are what nothing is
        table = csv_frame(path, keep_default_na=False, na_values=[""])
        for column in columns:
            if column not in table.columns:
                raise HpcgymError(
                    f"{self.folder} has tables of another version of the study (no column"
                    f" {column!r} in {path.name}): run it again"
                )
        return table

    def each(self, names: Mapping[str, str], *columns: str) -> Iterator[tuple[str, Any]]:
        """Return what :meth:`table` does of those that were written, by what they are of."""
        for key, name in names.items():
            if self.has(f"{name}.csv"):
                yield key, self.table(name, *columns)

    def has(self, name: str) -> bool:
        """Return whether a file was written."""
        return (self.folder / name).exists()

    def state(self) -> Verdict | None:
        """Return why nothing here is to be compared; None if it is."""
        report = self.folder / "report.md"
        if not report.exists():
            return Verdict("not run", "")
        text = text_of(report, MOST_REPORT, "a report")
        if _QUICK in text:
            return Verdict("quick cut", "")
        if len(text.splitlines()) < 4:  # the mark of an unfinished study
            return Verdict("not run", "not finished yet")
        return None


Judge = Callable[[Stored], Verdict]
#: What sentences are about, by name: all of it at once, or of one trace after another.
Frames = Iterator[Mapping[str, Any]]


# --- What is published ----------------------------------------------------------------------------


def csv_cells(module: str, file: str = "published.csv") -> list[list[str]]:
    """Return the cells of a CSV file beside a module, whose file is given."""
    with Path(module).with_name(file).open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def csv_rows(module: str, file: str, of: Sequence[str]) -> list[dict[str, str]]:
    """Return rows of a CSV file beside a module, of some items, by the names of its first row."""
    head, *rows = csv_cells(module, file)
    entries = [dict(zip(head, row, strict=True)) for row in rows]
    return [row for row in entries if row["item"] in of]


def notes_of(module: str) -> dict[str, str]:
    """Return what verdicts tell beside their counts, by name, of ``notes.toml`` beside a module."""
    return toml_file(Path(module).with_name("notes.toml"))


def published_values(module: str, file: str = "published.csv") -> dict[str, Any]:
    """Return the numbers of each row by its words: the table, then what it is of, dicts in dicts.

    Parameters
    ----------
    module, file : see :func:`csv_cells`; the last word of a row is before its first number.
    """
    values: dict[str, Any] = {}
    for cells in csv_cells(module, file):
        words = list(takewhile(lambda cell: not _NUMBER.fullmatch(cell), cells))
        place = values
        for word in words[:-1]:
            place = place.setdefault(word, {})
        place[words[-1]] = tuple(
            float(cell) if "." in cell else int(cell) for cell in cells[len(words) :]
        )
    return values


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


# --- Verdicts -------------------------------------------------------------------------------------


def of_values(ours: ArrayLike, printed: ArrayLike, step: float, what: str) -> Verdict:
    """Return the verdict of values beside those that are printed.

    Parameters
    ----------
    ours, printed : (n,) in the same order.
    step : the unit of the last printed digit, such as 0.1; 0: all digits are known.
    what : the values are called.
    """
    mine, theirs = np.asarray(ours, np.float64), np.asarray(printed, np.float64)
    if not len(mine) or not np.isfinite(mine).all():
        raise NotThereError(f"no {what}")
    apart = np.abs(mine - theirs)
    exact = apart <= np.maximum(step / 2, _ROUNDING * np.abs(theirs)) * (1 + _ROUNDING)
    if exact.all():
        return Verdict("exact", f"{len(mine)} {what}")
    size = np.abs(theirs)
    relative = apart / np.where(size > 0, size, max(float(size.mean()), _ROUNDING))
    near = relative <= CLOSE
    words = f"{int(exact.sum())} of {len(mine)} {what} equal"
    words += f", {int(near.sum())} within 10 %, the farthest by {100 * relative.max():.3g} %"
    if near.all():
        return Verdict("close", words)
    pairs = [(a, b) for a, b in combinations(range(len(mine)), 2) if theirs[a] != theirs[b]]
    same = sum(bool((mine[a] < mine[b]) == (theirs[a] < theirs[b])) for a, b in pairs)
    return of_count(same, len(pairs), "pairs in the published order", words)


def of_count(holds: int, number: int, what: str, more: str = "") -> Verdict:
    """Return the verdict of orders, signs or sentences of which some hold."""
    if not number:
        raise NotThereError(f"no {what}")
    words = f"{holds} of {number} {what}" + (f"; {more}" if more else "")
    return Verdict("trend" if holds >= TREND * number else "not met", words)


def of_sentences(so: Mapping[str, bool]) -> Verdict:
    """Return the verdict of sentences of the text: sentence -> whether it holds."""
    if not so:
        raise NotThereError("nothing that the sentences are of")
    failing = [words for words, holds in so.items() if not holds]
    more = f"not: {'; '.join(failing)}" if failing else ""
    return of_count(len(so) - len(failing), len(so), "sentences hold", more)


def of_intervals(so: Mapping[str, str], what: str = "sentences") -> Verdict:
    """Return the verdict of what is decided by intervals, or by several readings.

    Parameters
    ----------
    so : what is said -> ``held``, ``contradicted`` or ``undecided``.
    what : the name of what is said.
    """
    by = {how: [words for words, of in so.items() if of == how] for how in set(so.values())}
    held, against = (len(by.get(how, ())) for how in ("held", "contradicted"))
    listed = [f"{how}: {'; '.join(by[how])}" for how in ("contradicted", "undecided") if how in by]
    why = ". ".join([f"{held} of {len(so)} {what} hold", *listed])
    least = TREND * len(so)
    failed = "not met" if len(so) - against < least else "undecided"
    return Verdict("trend" if held >= least else failed, why)


def by_sentences(module: str, items: Sequence[str], frames: Callable[[Stored], Frames]) -> Judge:
    """Return what judges the sentences of items, of ``sentences.csv`` beside a module.

    Parameters
    ----------
    frames : yields what ``filled`` takes.
    """

    def judge(stored: Stored) -> Verdict:
        said = csv_rows(module, "sentences.csv", items)
        return of_sentences(dict(chain(*(filled(said, of).items() for of in frames(stored)))))

    return judge


def noted(judge: Judge, *notes: str | Callable[[Stored], str]) -> Judge:
    """Return a judge that tells more of why, after its own words."""

    def judged(stored: Stored) -> Verdict:
        verdict = judge(stored)
        return verdict.noted(*(note if isinstance(note, str) else note(stored) for note in notes))

    return judged


def of_picture(*files: str) -> Judge:
    """Return what says whether a picture is drawn, any of some files."""

    def judge(stored: Stored) -> Verdict:
        there = [name for name in files if stored.has(name)]
        if not there:
            raise NotThereError(f"no {files[0]}")
        return Verdict("drawn", ", ".join(there))

    return judge


def said(item: str, table: str = "table-statements", *, every: bool = False) -> Judge:
    """Return what judges the sentences of an item by a table of statements.

    Parameters
    ----------
    item : as the table calls it; see :func:`hpcgym.benchmarks.studies.tables.statements_table`.
    table : its name.
    every : the document does not tell which reading is its own: a sentence is undecided unless all
        agree. Otherwise the first reading is judged, and it is told how many hold by the others.
    """

    def judge(stored: Stored) -> Verdict:
        rows = stored.table(table, "item", "sentence").fillna("")
        rows = rows[rows["item"] == item]
        readings = [name[4:] for name in rows if name.startswith("so, ")]
        rows = rows[(rows[[f"so, {name}" for name in readings]] != "").all(axis="columns")]
        if not len(rows):
            raise NotThereError(f"no sentences of {item}")
        so_by_sentence: dict[str, Any] = {}
        for row in rows.to_dict("records"):
            so = {name: row[f"so, {name}"] for name in readings}
            if every:
                how = _HOW_SO.get("".join({*so.values()}), "undecided")
                each = ", ".join(f"{name}: {of}" for name, of in so.items())
                so_by_sentence[
                    row["sentence"] if how == "held" else f"{row['sentence']} ({each})"
                ] = how
            else:
                holds = so[readings[0]] == "yes"
                ours = "" if holds else f" ({row[f'ours, {readings[0]}']})"
                so_by_sentence[f"{row['sentence']}{ours}"] = holds
        if every:
            return of_intervals(so_by_sentence, "sentences")
        verdict, why = of_sentences(so_by_sentence)
        more = [f"{name}: {(rows[f'so, {name}'] == 'yes').sum()} hold" for name in readings[1:]]
        return Verdict(verdict, "; ".join([f"{readings[0]}: {why}", *more]))

    return judge


_HOW_SO = {"yes": "held", "no": "contradicted"}


def judged(judge: Judge, stored: Stored) -> Verdict:
    """Return the verdict of an item, also where what it is of was not written."""
    try:
        return stored.state() or judge(stored)
    except NotThereError as missing:
        return Verdict("not run", str(missing))


def columns_of(table: Any, *names: str) -> list[Any]:
    """Return columns of a table, only the rows that have a value in each.

    Raises
    ------
    NotThereError : a column is missing: that of published values, where the trace has none.
    """
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise NotThereError(f"nothing published of these: no column {missing[0]}")
    rows = table.dropna(subset=list(names))
    return [rows[name].to_numpy() for name in names]
