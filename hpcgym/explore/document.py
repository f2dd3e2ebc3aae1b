"""One file of HTML: the same head, style and provenance for each page that hpcgym writes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from hpcgym.explore.markup import paragraphs, table
from hpcgym.files.recorded import meta_of
from hpcgym.report.origin import origin_rows

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
    rows = origin_rows(record)
    return f"<h2>Where this is from</h2>\n{table([], rows, words=True)}\n"


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
