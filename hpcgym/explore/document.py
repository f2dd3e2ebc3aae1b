"""Pages of HTML: markup, and one builder for all."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.files.recorded import meta_of
from hpcgym.report.canvas import save_figure
from hpcgym.report.tables import origin_rows
from hpcgym.words import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --- Tables and pictures as HTML. All texts are escaped -------------------------------------------


class Cell(NamedTuple):
    """A cell of a table.

    Attributes
    ----------
    text : what is shown.
    best : whether it is marked as the best.
    """

    text: str
    best: bool = False


def table(
    heading: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    words: bool | Sequence[int] = False,
    sortable: bool = False,
) -> str:
    """Return a table.

    Parameters
    ----------
    heading : of the columns; an empty one leaves the table without a heading.
    rows : of cells, each a :class:`Cell` or what its text is.
    caption : below the table.
    words : whether all cells are words, to be set from the left and in lines; or the columns that
        are.
    sortable : whether a click on a heading sorts the rows.
    """
    texts = range(len(heading) or 2) if words is True else words or ()
    wide = set(texts)

    def cell(place: int, given: Any) -> str:
        content = given if isinstance(given, Cell) else Cell(str(given))
        kind = " ".join(["text"] * (place in wide) + ["best"] * content.best)
        marks = f' class="{kind}"' if kind else ""
        text = escape(content.text) + (" ★" if content.best else "")
        return f"<td{marks}>{text}</td>"

    def head(place: int, text: str) -> str:
        mark = ' class="text"' if place in wide else ""
        inside = f"<button>{escape(text)}</button>" if sortable else escape(text)
        return f'<th scope="col"{mark}>{inside}</th>'

    heads = "".join(head(*place_and_text) for place_and_text in enumerate(heading))
    lines = "\n".join(
        f"<tr>{''.join(cell(*place_and_cell) for place_and_cell in enumerate(row))}</tr>"
        for row in rows
    )
    below = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{heads}</tr></thead>\n" if heading else ""
    kind = ' class="sortable"' if sortable else ""
    return f'<div class="scroll"><table{kind}>{below}{top}<tbody>\n{lines}\n</tbody></table></div>'


def paragraphs(lines: Iterable[str]) -> str:
    """Return lines of text, each a paragraph in grey."""
    return "\n".join(f'<p class="soft">{escape(line)}</p>' for line in lines)


def cleaning_table(cleaning: Mapping[str, int]) -> str:
    """Return what cleaning dropped and repaired: reason -> jobs."""
    counts = [(reason, shown(number)) for reason, number in cleaning.items()]
    return table(["cleaning", "jobs"], counts or [("nothing dropped or repaired", "0")])


def picture(figure: Figure, text: str) -> str:
    """Return a picture with what it shows below it."""
    image = BytesIO()
    save_figure(figure, image, ".png")
    data, caption = b64encode(image.getvalue()).decode("ascii"), escape(text)
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}"'
        f' width="{round(figure.get_figwidth() * 96)}"><figcaption>{caption}</figcaption></figure>'
    )


# --- One file of HTML -----------------------------------------------------------------------------

#: Files of the script of a page without an explorer, in their order: each uses those before it.
SHEET = ("theme", "sorting", "sheet")


def document(
    title: str,
    body: str,
    *,
    record: Mapping[str, Any] | None,
    scripts: Sequence[str],
    styles: Sequence[str],
) -> str:
    """Return a page. Whatever stands in its data, the browser runs no other script than its own.

    It asks nobody over the network but the server that it came from.

    Parameters
    ----------
    title : of the page, any text.
    body : markup; names from traces in it are escaped.
    record : where it is from, see :mod:`hpcgym.schedule.provenance`; None: it does not say.
    scripts, styles : names of files in ``browser/``, without their endings, in their order.
    """
    script = script_of(tuple(scripts))
    style = "".join(source(f"{name}.css") for name in styles)
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}';"
        f" style-src 'sha256-{_digest(style)}'; img-src data: blob:; connect-src 'self'"
    )
    meta = "" if record is None else f"{meta_of(record)}\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n{meta}'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def sheet(
    title: str, about: Sequence[str], sections: str, record: Mapping[str, Any] | None = None
) -> str:
    """Return a page of tables and pictures, without an explorer.

    Parameters
    ----------
    title : of the page.
    about : lines below the title, any texts.
    sections : markup.
    record : where it is from; None: it does not say.
    """
    body = (
        f'<header>\n<h1>{escape(title)}</h1><button id="theme" aria-label="Light or dark">◐'
        f'</button>\n</header>\n<main class="report">\n{paragraphs(about)}\n{sections}\n'
        f"{origin_section(record)}</main>"
    )
    return document(title, body, record=record, scripts=SHEET, styles=("style",))


def origin_section(record: Mapping[str, Any] | None) -> str:
    """Return where a page is from as a section of it; "" if it does not say."""
    if record is None:
        return ""
    return f"<h2>Where this is from</h2>\n{table([], origin_rows(record), words=True)}\n"


@cache
def source(name: str) -> str:
    """Return a file of the page."""
    return files("hpcgym.explore").joinpath("browser", name).read_text(encoding="utf-8")


@cache
def script_of(names: tuple[str, ...]) -> str:
    """Return a script: files one after the other, in a function of their own."""
    parts = "\n".join(source(f"{name}.js") for name in names)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _digest(text: str) -> str:
    """Return the SHA-256 by which the policy allows a script or a style."""
    return b64encode(sha256(text.encode()).digest()).decode("ascii")
