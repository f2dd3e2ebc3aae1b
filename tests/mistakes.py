"""Files of mistakes: in each line Python that fails, and what the one line of its error says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hpcgym.errors import HpcgymError


def mistakes_in(test: str) -> list[tuple[str, str]]:
    """Return the rows of ``mistakes.txt`` beside a test: those under headings that name it.

    A heading is ``# test_module: what``; rows under one that names no test are of the test that no
    heading names.
    """
    rows: dict[str, list[tuple[str, str]]] = {}
    named = ""
    for row in Path(test).with_name("mistakes.txt").read_text().splitlines():
        given, arrow, message = row.partition("  =>  ")
        if arrow:
            rows.setdefault(named, []).append((given, message))
        elif row.startswith("# "):
            module, colon, _ = row.removeprefix("# ").partition(": ")
            named = module if colon and module.startswith("test_") else ""
    return rows.get(Path(test).stem) or rows[""]


def is_told(
    given: str,
    names: Mapping[str, Any],
    message: str,
    errors: type[Exception] | tuple[type[Exception], ...] = HpcgymError,
) -> str:
    """Check that this fails with a message of one line, which begins so after ``^``; return it."""
    with pytest.raises(errors) as caught:
        eval(given, {**names})
    text = str(caught.value)
    if message.startswith("^"):
        assert text.startswith(message[1:])
    else:
        assert message in text
    assert "\n" not in text
    return text


def why_not(
    function: Callable[..., object],
    *arguments: Any,
    errors: type[Exception] | tuple[type[Exception], ...] = HpcgymError,
    **options: Any,
) -> str:
    """Call a function; return what its error says, or "" where it succeeds."""
    try:
        function(*arguments, **options)
    except errors as error:
        return str(error)
    return ""


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file that a row is about; return where it is."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mistakes_of(
    names: Mapping[str, Any],
    *imported: object,
    errors: type[Exception] | tuple[type[Exception], ...] = HpcgymError,
    fixtures: tuple[str, ...] = (),
) -> Callable[..., None]:
    """Return the test of the mistakes under headings that name a module.

    Parameters
    ----------
    names : of the module, its ``globals()``; a row may use ``tmp_path``, too, and
        ``written(name, content)``, the path of a file there.
    *imported : what the module imports for its rows alone.
    errors : what the rows may end in.
    fixtures : that rows may use; those that a row names are made for it.
    """

    @pytest.mark.parametrize(("given", "message"), mistakes_in(names["__file__"]))
    def test_mistakes(given: str, message: str, request: pytest.FixtureRequest) -> None:
        there = {
            name: request.getfixturevalue(name)
            for name in (*fixtures, "tmp_path")
            if re.search(rf"\b{name}\b", given)
        }
        if "written(" in given:
            there["written"] = partial(written, request.getfixturevalue("tmp_path"))
        is_told(given, {**names, **there}, message, errors)

    return test_mistakes
