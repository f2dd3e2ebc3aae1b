"""A report of a study, which is Markdown beside its pictures, as one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hpcgym.errors import HpcgymError
from hpcgym.explore.document import image_of, sheet
from hpcgym.files import MEGABYTE, bytes_of, text_of
from hpcgym.schedule.provenance import provenance_of_workloads

_MOST = 64 * MEGABYTE  # of a report or a picture


def study_page(report: Path) -> str:
    """Return a page with the tables, which can be sorted, and the pictures of a report.

    Parameters
    ----------
    report : the file, in Markdown with tables; its first line is the title. HTML in it stays text.
        Pictures are PNG, named relative to its folder.

    Raises
    ------
    HpcgymError : the report or one of its pictures cannot be read.
    """
    title, _, text = text_of(report, _MOST, "a report").partition("\n")
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for begin, inline, end in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if [one.type for one in inline.children or ()] == ["image"]:
            begin.hidden = end.hidden = True  # a picture is no paragraph
        if begin.type in ("td_open", "th_open"):  # names of schedulers may look like marks
            inline.children = [Token("text", "", 0, content=inline.content)]
    rules: dict[str, Callable[..., str]] = {
        "image": lambda _, tokens, at, *more: _image(tokens[at], report.parent),
        "table_open": lambda *_: '<div class="scroll"><table class="sortable">',
        "table_close": lambda *_: "</table></div>",
        "th_open": _opened('<th scope="col"{}><button>'),
        "th_close": lambda *_: "</button></th>",
        "td_open": _opened("<td{}>"),
    }
    for name, rule in rules.items():
        reader.add_render_rule(name, rule)
    parts = reader.renderer.render(tokens, reader.options, {})
    return sheet(title.removeprefix("# ").strip(), [], parts, provenance_of_workloads([]))


def _opened(tag: str) -> Callable[..., str]:
    """Return what opens cells; columns of words are those that are not set to the right."""

    def opened(renderer: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
        right = "right" in str(tokens[at].attrGet("style"))
        return tag.format("" if right else ' class="text"')

    return opened


def _image(token: Token, folder: Path) -> str:
    """Return a picture of the report's own folder: its text may name any file."""
    path = folder / unquote(str(token.attrGet("src")))
    if not path.resolve().is_relative_to(folder.resolve()):
        raise HpcgymError(f"{path} is not in the folder of the report")
    return image_of(bytes_of(path, _MOST, HpcgymError), token.content)
