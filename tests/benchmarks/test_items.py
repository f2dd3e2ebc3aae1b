"""The items of the documents: that none is missing, and that pages and commands tell them."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpcgym.benchmarks.studies import documents, items
from hpcgym.cli import app

ROOT = Path(__file__).parents[2]

#: The captions of the documents, by hand: kind -> numbers.
CAPTIONS: dict[str, dict[str, list[str]]] = {
    "Remediani 2017": {
        "figure": [
            "2.1",
            "2.2",
            *(f"3.{k}" for k in range(1, 6)),
            *(f"5.{k}" for k in range(1, 12)),
        ],
        "algorithm": ["1", "2"],
    },
    "Galleguillos et al. 2020": {"figure": [str(k) for k in range(1, 8)], "table": ["1", "2"]},
    "Legrand et al. 2018": {
        "figure": [str(k) for k in range(1, 16)],
        "table": [str(k) for k in range(1, 8)],
        "equation": [str(k) for k in range(1, 7)],
    },
    "Glesser 2016": {
        "figure": [
            "2.1",
            *(f"3.{k}" for k in range(1, 8)),
            *(f"4.{k}" for k in range(1, 7)),
            *(f"5.{k}" for k in range(1, 4)),
            *(f"6.{k}" for k in range(1, 9)),
            *(f"7.{k}" for k in range(1, 5)),
        ],
        "table": ["4.1", "4.2", "4.3", "5.1", "6.1", "6.2", *(f"7.{k}" for k in range(1, 9))],
        "algorithm": ["1", "2", "3", "4"],
        "equation": ["6.1", "6.2", "6.3", "6.4", "7.1", "7.2", "7.3"],
    },
}


def named(place: str, kind: str) -> list[str]:
    """Return the numbers that a place such as "figures 3.5 to 3.7" names."""
    numbers_named = []
    for part in re.findall(rf"{kind}s? ((?:\d[\d.]*(?:, | and | to )?)+)", place):
        numbers = re.findall(r"\d+(?:\.\d+)?", part)
        if " to " in part:
            first, last = numbers[-2:]
            chapter, _, low = first.rpartition(".")
            high = last.rpartition(".")[2]
            dot = "." if chapter else ""
            numbers = numbers[:-2]
            numbers += [f"{chapter}{dot}{k}" for k in range(int(low), int(high) + 1)]
        numbers_named += numbers
    return numbers_named


@pytest.mark.parametrize(
    ("document", "kind"), [(number, kind) for number, of in CAPTIONS.items() for kind in of]
)
def test_every_caption_of_the_documents_is_an_item(document: str, kind: str) -> None:
    places = [item.place for item in documents.all_items() if item.document == document]
    numbers = [number for place in places for number in named(place, kind)]
    assert {*CAPTIONS[document][kind]} <= {*numbers}
    # a table may have its text apart
    assert {*numbers} <= {*CAPTIONS[document][kind]}


def test_items_are_whole() -> None:
    entries = documents.all_items()
    assert {item.document for item in entries} == {*items.DOCUMENTS}
    places = [(item.document, item.place) for item in entries]
    assert len({*places}) == len(places)
    for item in entries:
        if item.fixed:
            assert item.verdict.verdict in items.VERDICTS
            assert bool(item.verdict.why) == (item.verdict.verdict != "no result"), item
        if item.verdict.verdict == "built" and "`" not in item.verdict.why:
            assert (ROOT / item.verdict.why).is_file(), item
        name, _, file = item.published.partition(" in ")
        if file:
            module = import_module(f"hpcgym.{file.removesuffix('.py').replace('/', '.')}")
            assert hasattr(module, name), item


def test_the_commands_of_items_are_understood() -> None:
    group: Any = app
    commands = {item.command for item in documents.all_items()} - {""}
    assert len(commands) > 7
    for line in commands:
        _, _, study, *words = line.split()
        group.get_command(None, "reproduce").commands[study].make_context("hpcgym", words)


def test_the_page_is_that_of_the_code() -> None:
    entries = documents.all_items()
    text = documents.page_text(entries, results=False)
    assert (ROOT / "docs" / "documents.md").read_text() == text, "run scripts/pages.py"


def test_the_page_has_a_verdict_of_each_item_and_when_it_was_computed() -> None:
    entries = documents.all_items()
    assert all(entry.verdict.verdict in items.VERDICTS for entry in entries)
    known = [entry for entry in entries if entry.computed]
    assert len(known) == len(documents.read_recorded(documents.RECORDED)) > 0
    for entry in known:
        assert not entry.fixed
        assert entry.verdict.verdict not in ("not run", "quick cut")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d, [0-9a-f]{8}", entry.computed)
    for entry in entries:
        if entry.verdict.verdict == "not run":
            assert entry.command.startswith("hpcgym reproduce ")


def test_the_page_has_reasons_in_full_and_items_without_a_result_apart() -> None:
    entries = documents.all_items()
    by_document, _, without = documents.page_text(entries, results=False).partition(
        "## Items without a result"
    )
    for entry in entries:
        row = f"| {entry.place} | {entry.what} |"
        if entry.fixed:
            assert f"| {entry.document} {row} {entry.verdict.verdict} |" in without
        else:
            assert row in by_document
            assert f"*{entry.place}*, {entry.verdict.verdict}: {entry.account}\n" in by_document
    outcomes = re.findall(r"\*\*[A-Z][a-z ]+\*\* \((\d+)\): ", by_document)
    assert sum(map(int, outcomes)) == sum(not entry.fixed for entry in entries)


def test_what_is_not_settled_says_what_was_tried() -> None:
    entries = documents.all_items()
    for entry in entries:
        unsettled = not entry.fixed and entry.verdict.verdict in documents.UNSETTLED
        assert bool(entry.tried) == unsettled, entry
        assert entry.verdict.why in entry.account
        assert entry.account.endswith(entry.tried)
    named = {document: {*of} for document, of in items.notes_of(documents.__file__).items()}
    for document, keys in named.items():
        mine = [item for item in entries if item.document == document]
        assert keys <= {key for item in mine for key in (item.place, item.study)}, document


def test_the_sample_has_an_item_of_each_document_by_a_command_that_is_understood() -> None:
    assert [*items.SAMPLE] == [*items.DOCUMENTS]
    places = {(item.document, item.place): item.study for item in documents.all_items()}
    group: Any = app
    for document, cheapest in items.SAMPLE.items():
        assert places[document, cheapest["item"]] == cheapest["study"]
        command = group.get_command(None, "reproduce").commands[cheapest["study"]]
        command.make_context("hpcgym", cheapest["options"].split())


def test_the_command_prints_all_items_and_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "documents.md"
    arguments = ["reproduce", "items", "--results", str(tmp_path)]
    number = len(documents.all_items())
    result = CliRunner().invoke(app, [*arguments, "--format", "json", "--output", str(page)])
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert len(rows) == number
    assert rows[0]["document"] == "Remediani 2017"
    assert "not run" in page.read_text()
    assert "| table 7.6 | overview of all triples | not run |" in page.read_text()
    csv = CliRunner().invoke(app, [*arguments, "--format", "csv"])
    assert len(csv.stdout.splitlines()) == number + 1
    recorded = json.loads(CliRunner().invoke(app, [*arguments[:2], "--format", "json"]).stdout)[
        "rows"
    ]
    (of_table,) = [row for row in recorded if row["item"] == "table 7.1"]
    assert (of_table["verdict"], of_table["computed"][:2]) == ("close", "20")
    table = CliRunner().invoke(app, arguments)
    assert "hpcgym reproduce prediction" in table.stdout
    assert "left out" in table.stderr


def test_files_of_published_values_are_there_as_named_from_the_root() -> None:
    text = (ROOT / "docs" / "documents.md").read_text()
    paths = set(re.findall(r"[A-Z_0-9]{4,} in (benchmarks/\S+\.py)", text))
    assert len(paths) > 5
    for path in paths:
        assert (ROOT / path).is_file(), path
    head = text[: text.index("| verdict")]
    assert head.index("hpcgym reproduce items") < head.index("reads them there")
