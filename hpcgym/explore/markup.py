"""Tables and pictures as HTML. All texts are escaped: names from traces are data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.report.canvas import save_figure
from hpcgym.report.numbers import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Cell(NamedTuple):
    """A cell of a table.

    Attributes
    ----------
    text : what is shown.
    best : whether it is marked as the best.
    value : what it is sorted by, if not by its text; "" comes last.
    link : an address that it leads to; None: to none.
    """

    text: str
    best: bool = False
    value: str | None = None
    link: str | None = None


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
        one = given if isinstance(given, Cell) else Cell(str(given))
        kind = " ".join(["text"] * (place in wide) + ["best"] * one.best)
        marks = f' class="{kind}"' if kind else ""
        marks += "" if one.value is None else f' data-value="{escape(one.value)}"'
        text = escape(one.text) + (" ★" if one.best else "")
        if one.link is not None:
            text = f'<a href="{escape(one.link)}">{text}</a>'
        return f"<td{marks}>{text}</td>"

    def head(place: int, text: str) -> str:
        mark = ' class="text"' if place in wide else ""
        inside = f"<button>{escape(text)}</button>" if sortable else escape(text)
        return f'<th scope="col"{mark}>{inside}</th>'

    heads = "".join(head(*one) for one in enumerate(heading))
    lines = "\n".join(f"<tr>{''.join(cell(*one) for one in enumerate(row))}</tr>" for row in rows)
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
    return image_of(image.getvalue(), text, round(figure.get_figwidth() * 96))


def image_of(png: bytes, text: str, width: int | None = None) -> str:
    """Return a PNG with what it shows below it; ``width`` is in pixels of the page."""
    data, caption = b64encode(png).decode("ascii"), escape(text)
    wide = "" if width is None else f' width="{width}"'
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}"{wide}>'
        f"<figcaption>{caption}</figcaption></figure>"
    )
