"""Reports of studies as pages: what of Markdown becomes what, and what stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.explore.study import study_page

REPORT = """\
# Rules of <b>

Two lines of
one paragraph, *some* `code * here` and **strong**; 2 * 3 * 4, [a page](https://example.org/x?a=1&b).

## Table of <script>alert(1)</script>
| log | value % |
|---|---:|
| a \\| <i>b</i> | 1,234.5 |
| [x](javascript:alert(1)) | |

![What it <shows>](sub/one.png)

- first
  goes on
- second
"""


class Read(HTMLParser):
    """Elements of the body in order: (tag, attributes), and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
        self.feed(text[text.index("<main") : text.index("<h2>Where this is from")])

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.png").write_bytes(b"\x89PNG")
    file = tmp_path / "report.md"
    file.write_text(REPORT)
    return file


def test_marks_become_elements_and_names_stay_text(report: Path) -> None:
    text = study_page(report)
    read = Read(text)
    tags = [tag for tag, _ in read.found]
    assert tags.count("p") == 1
    assert [tags.count(one) for one in ("em", "strong", "code", "h2")] == [1, 1, 1, 1]
    assert [tags.count(one) for one in ("tr", "li", "img")] == [3, 2, 1]
    assert not {"script", "b", "i", "shows"} & set(tags)
    assert [told["href"] for tag, told in read.found if tag == "a"] == [
        "https://example.org/x?a=1&b"
    ]
    for kept in ("code * here", "2 * 3 * 4", "a | <i>b</i>", "[x](javascript:alert(1))", "1,234.5"):
        assert kept in read.text
    assert "first goes on" in read.text
    assert "<title>Rules of &lt;b&gt;</title>" in text
    (source,) = (told["src"] for tag, told in read.found if tag == "img")
    assert source == "data:image/png;base64,iVBORw=="
    classes = [told.get("class") for tag, told in read.found if tag == "th"]
    assert classes == ["text", None]


@pytest.mark.parametrize("name", ["none.png", "../secret.png"])
def test_a_picture_that_is_not_there_or_not_of_the_report(report: Path, name: str) -> None:
    folder = report.parent / "inner"
    folder.mkdir()
    (report.parent / "secret.png").write_bytes(b"\x89PNG")
    (folder / "report.md").write_text(f"# A\n\n![x]({name})\n")
    with pytest.raises(HpcgymError, match=re.escape(name.removeprefix("../"))):
        study_page(folder / "report.md")
