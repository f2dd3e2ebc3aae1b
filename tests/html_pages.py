"""What stands in a page of HTML: elements, texts, and the cells of its tables."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """Elements with their attributes, texts, and cells by table and row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if {"td", "th"} & {*self.open}:
            self.tables[-1][-1][-1] += data

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.found]

    def values(self, name: str) -> list[Any]:
        """The values of an attribute, wherever it stands."""
        return [given[name] for _, given in self.found if name in given]
