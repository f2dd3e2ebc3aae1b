"""The file of a sweep, looked at and changed behind its back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hpcgym.study.sweep.records import FILE, append, locked, reading


def changed(folder: Path, statement: str, *values: object) -> None:
    """Change the file of a sweep behind its back."""
    with closing(sqlite3.connect(folder / FILE)) as file, file:
        file.execute(statement, values)


def resealed(folder: Path, name: str, value: Any) -> None:
    """Let a sweep say something else of itself, as if it had been written so."""
    changed(folder, "DELETE FROM about WHERE name = ?", name)
    with locked(folder) as file:
        append(file, about=[(name, json.dumps(value))])


def contents(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return all rows of a sweep, damaged or not, by their tables, in the order of their names."""
    with reading(folder) as file:
        return {
            table: sorted(file.execute(f"SELECT name, text FROM {table}"))
            for table in ("about", "results", "failures")
        }


def cut(folder: Path, results: int) -> None:
    """Leave so many results of a sweep."""
    changed(folder, "DELETE FROM results WHERE rowid > ?", results)
