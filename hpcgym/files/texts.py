"""JSON and TOML: what a text holds, or one line that says why it holds nothing."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.files.opening import MEGABYTE, bytes_of, decoded

#: Bytes of the files that people and agents write: machines, experiments, shares, weights.
MOST_TOML = 4 * MEGABYTE
MOST_JSON = 16 * MEGABYTE

MOST_DEPTH = 64  # of lists and tables in each other
MOST_PARTS = 32  # of a dotted key: the time that tomllib takes grows with their square
MOST_DIGITS = 300  # of a number: what is longer is no float

_DIGITS = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")
# TOML's strings and comments, also those that do not end; linear, since nothing is tried twice
_QUOTED = re.compile(
    r'''"""(?:\\.|[^\\"]|"(?!""))*+(?:""")?'''
    r"""|'''(?:[^']|'(?!''))*+(?:''')?"""
    r"""|"(?:\\[^\n]|[^"\\\n])*+"?"""
    r"""|'[^'\n]*+'?"""
    r"""|\#[^\n]*+""",
    re.DOTALL,
)
_BRACKETS = re.compile(r"[\[\]{}]")
_ENDS_OF_KEYS = re.compile(r"[=,\[\]{}\n]")


def json_file(path: str | os.PathLike[str], most: int = MOST_JSON, *, finite: bool = True) -> Any:
    """Return what a file in JSON holds.

    Parameters
    ----------
    path : of the file.
    most : bytes that it may have.
    finite : as for :func:`json_of`.

    Raises
    ------
    HpcgymError : it cannot be read, it is too large, or as of :func:`json_of`.
    """
    return json_of(bytes_of(path, most, HpcgymError), str(path), finite=finite)


def json_of(
    text: str | bytes,
    where: str,
    error: type[HpcgymError] = HpcgymError,
    *,
    flat: bool = False,
    finite: bool = True,
) -> Any:
    """Return what a text in JSON holds.

    Parameters
    ----------
    text : in JSON; bytes are UTF-8, or UTF-16 or UTF-32, as the beginning tells.
    where : what messages call it: the file, the line.
    error : what is raised.
    flat : the caller looks at every value by itself (:func:`check_values`), of which there may be
        many million.
    finite : infinity, and what is no number, is wrong; Python writes both.

    Raises
    ------
    HpcgymError : it is no JSON, a key stands twice in an object, of which Python would drop the
        first, a number is no finite one or has over 300 digits, a text has half a character, or
        lists and objects are more than 64 deep in each other.
    """

    def once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(entries)
        if len(found) < len(entries):
            seen: set[str] = set()
            for key, _ in entries:
                if key in seen:
                    raise error(f"{where}: the key {key!r} stands there twice")
                seen.add(key)
        return found

    def infinite(name: str) -> float:
        raise error(f"{where}: {name} is no finite number")

    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))
        constant = infinite if finite else None
        parsed = json.loads(text, parse_constant=constant, object_pairs_hook=once)
    except json.JSONDecodeError as problem:
        raise error(f"{where} is not JSON: {problem}") from None
    except UnicodeDecodeError:
        raise error(f"{where} is not JSON: it is binary, or not in UTF-8") from None
    except RecursionError:
        raise error(_too_deep(where)) from None
    except HpcgymError:
        raise
    except ValueError:  # of Python, for whole numbers of over 4,300 digits
        raise error(_too_long(where, str(text))) from None
    if not flat:
        check_values(parsed, where, error, finite)
    return parsed


def toml_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    HpcgymError : it cannot be read, it has over 4 MiB, or as of :func:`toml_of`.
    """
    return toml_of(bytes_of(path, MOST_TOML, HpcgymError), str(path))


def toml_of(text: str | bytes, where: str) -> dict[str, Any]:
    """Return what a text in TOML holds.

    Parameters
    ----------
    text : in TOML; bytes are UTF-8.
    where : what messages call it.

    Raises
    ------
    HpcgymError : it is no TOML, a key has over 32 parts, tables and lists are more than 64 deep in
        each other, or a number has over 300 digits.
    """
    if isinstance(text, bytes):
        text = decoded(text, where, "TOML")
    bare = _QUOTED.sub("_", text)
    if _depth(bare) > MOST_DEPTH:
        raise HpcgymError(_too_deep(where))
    if max(key.count(".") for key in _ENDS_OF_KEYS.split(bare)) >= MOST_PARTS:
        raise HpcgymError(f"{where} has a key of more than {MOST_PARTS} parts between points")
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise HpcgymError(f"{where} is not TOML: {problem}") from None
    except RecursionError:
        raise HpcgymError(_too_deep(where)) from None
    except ValueError:
        raise HpcgymError(_too_long(where, text)) from None
    check_values(parsed, where, finite=False)
    return parsed


def _depth(bare: str) -> int:
    """Return how deep brackets stand in each other."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(bare):
        depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def check_values(
    parsed: Any, where: str, error: type[HpcgymError] = HpcgymError, finite: bool = True
) -> None:
    """Raise an error if some value is one that no reader can do anything with.

    Parameters
    ----------
    parsed : what a text held: a value, or lists and dicts of them.
    where : what messages call it.
    error : what is raised.
    finite : infinity and what is no number are wrong, too.

    Raises
    ------
    HpcgymError : lists and objects are more than 64 deep in each other, or a value is one that
        :func:`check_value` refuses.
    """
    level = [parsed]
    for _ in range(MOST_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
            else:
                check_value(value, where, error, finite)
        level = below
        if not level:
            return
    raise error(_too_deep(where))


def check_value(
    value: Any, where: str, error: type[HpcgymError] = HpcgymError, finite: bool = True
) -> None:
    """Raise an error if a text or a number is one that no reader can do anything with.

    Raises
    ------
    HpcgymError : a text with half a character, which nobody could print or write; a number that is
        infinite or has over 300 digits.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            shown = ascii(value[:40])
            raise error(f"{where}: the text {shown} has half a character in it") from None
    elif isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise error(_too_long(where, ""))
    elif isinstance(value, float) and finite and not math.isfinite(value):
        raise error(f"{where} has a number that is too large")


def _too_deep(where: str) -> str:
    return f"{where} has lists or tables that are more than {MOST_DEPTH} deep in each other"


def _too_long(where: str, text: str) -> str:
    """Say that a number is too long, and in which line, if that can be told."""
    found = _DIGITS.search(text)
    if found:
        where += f", line {text.count(chr(10), 0, found.start()) + 1}"
    return f"{where}: a number has more than {MOST_DIGITS} digits"
