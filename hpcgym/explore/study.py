"""A report of a study, which is Markdown beside its pictures, as one page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.explore.document import image_of, sheet, table
from hpcgym.files import MEGABYTE, bytes_of, text_of
from hpcgym.schedule.provenance import provenance_of_workloads

_MOST = 64 * MEGABYTE  # of a report or a picture
_IMAGE = re.compile(r"!\[(.*)\]\(([^()]+\.png)\)")
_HEADING = re.compile(r"(#{2,4}) (.*)")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_CELLS = re.compile(r"(?<!\\)\|")  # what stands between two cells
# in escaped text: code, strong, emphasis, a link to a page or within the report
_MARKS = (
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"(?<![*\w])\*([^*\s][^*]*)\*(?![*\w])"), r"<em>\1</em>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^()\s]+)\)"), r'<a href="\2">\1</a>'),
)


def study_page(report: Path) -> str:
    """Return a page with the tables, which can be sorted, and the pictures of a report.

    Parameters
    ----------
    report : the file; pictures are PNG, named relative to its folder. Of Markdown it has headings,
        paragraphs, lists, tables and pictures, which each stand in lines of their own.

    Raises
    ------
    HpcgymError : the report or one of its pictures cannot be read.
    """
    first, *lines = text_of(report, _MOST, "a report").splitlines()
    title = first.removeprefix("# ").strip()
    parts = "\n".join(_part(block, report.parent) for block in _blocks(lines))
    return sheet(title, [], parts, provenance_of_workloads([]))


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Give the lines that belong together: those between blank ones, and headings alone."""
    block: list[str] = []
    for line in [*lines, ""]:
        alone = bool(_HEADING.fullmatch(line.strip()))
        if block and (alone or not line.strip()):
            yield block
            block = []
        if alone:
            yield [line]
        elif line.strip():
            block.append(line)


def _part(block: Sequence[str], folder: Path) -> str:
    """Return a block as HTML."""
    if heading := _HEADING.fullmatch(block[0].strip()):
        level = len(heading[1])
        return f"<h{level}>{_inline(heading[2])}</h{level}>"
    if len(block) > 1 and _RULE.fullmatch(block[1].strip()):
        return _table(block)
    if image := _IMAGE.fullmatch(block[0].strip()):
        return image_of(_picture(folder / image[2], folder), image[1])
    if block[0].lstrip().startswith("- "):
        text = "\n".join(block)
        items = (" ".join(one.split()) for one in re.split(r"(?m)^\s*- ", text)[1:])
        return f"<ul>{''.join(f'<li>{_inline(one)}</li>' for one in items)}</ul>"
    return f"<p>{_inline(' '.join(line.strip() for line in block))}</p>"


def _table(block: Sequence[str]) -> str:
    """Return a table; columns of words are those that its second line does not set to the right."""
    rows = [_cells(line) for line in block]
    words = [place for place, rule in enumerate(rows[1]) if not rule.endswith(":")]
    return table(rows[0], rows[2:], words=words, sortable=True)


def _cells(line: str) -> list[str]:
    cells = _CELLS.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _picture(path: Path, folder: Path) -> bytes:
    """Return a picture of the report's own folder: its text may name any file."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise HpcgymError(f"{path} is not in the folder of the report")
    return bytes_of(path, _MOST, HpcgymError)


def _inline(text: str) -> str:
    """Return a text with what Markdown marks in it; all else is escaped."""
    found = escape(text)
    for pattern, markup in _MARKS:
        found = pattern.sub(markup, found)
    return found
