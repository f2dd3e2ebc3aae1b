"""All items of the five documents, collected from the studies, and their verdicts from results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import pandas as pd

from hpcgym import HpcgymError
from hpcgym.benchmarks.coscheduling import items as coscheduling
from hpcgym.benchmarks.cp import items as cp
from hpcgym.benchmarks.energy import budget_run, powercap_run, shares_run
from hpcgym.benchmarks.mixed_policies import items as mixed_policies
from hpcgym.benchmarks.prediction import items as prediction
from hpcgym.benchmarks.studies import items
from hpcgym.benchmarks.studies.harness import write_csv
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.files.tables import csv_frame

# --- All items of the five documents --------------------------------------------------------------

#: All items, those of a document one after the other; what their page says above its tables.
_ITEMS, _PAGE = (Path(__file__).with_name(name) for name in ("items.csv", "page.md"))

#: Verdicts of the studies' last runs; scripts/pages.py writes them by :func:`record`.
RECORDED = Path(__file__).with_name("verdicts.csv")

#: Command of a study, which is also the folder that it writes into -> what makes the verdicts of
#: its items, by their places, and where its published values stand.
_STUDIES: dict[str, tuple[dict[str, items.Judge], str]] = {
    "cp": (cp.JUDGES, "benchmarks/cp/items.py"),
    "mixed-policies": (mixed_policies.JUDGES, "benchmarks/mixed_policies/items.py"),
    "coscheduling": (coscheduling.JUDGES, "benchmarks/coscheduling/items.py"),
    "powercap": (powercap_run.JUDGES, "benchmarks/energy/powercap_run.py"),
    "energy-budget": (budget_run.JUDGES, "benchmarks/energy/budget_run.py"),
    "energy-fairshare": (shares_run.JUDGES, "benchmarks/energy/shares_run.py"),
    "prediction": (prediction.JUDGES, "benchmarks/prediction/items.py"),
}


class Entry(NamedTuple):
    """A table, figure, equation or sentence of a document, with its verdict.

    Attributes
    ----------
    document, place, what : the document's name, where it is there, and what it is in words.
    study : that makes it; "" if none does.
    options : of the study's command, without which it does not make the item.
    stands : where the published values are: a name in the study's module of published values, or a
        section of the document; "" if nothing is published.
    fixed : whether there is nothing to compute.
    verdict : of results, or where or why there are none.
    computed : when, and by which commit, if the verdict is recorded.
    """

    document: str
    place: str
    what: str
    study: str
    options: str
    stands: str
    fixed: bool
    verdict: items.Verdict
    computed: str = ""

    @property
    def command(self) -> str:
        """The command that makes it; "" if none does."""
        return "" if self.fixed else f"hpcgym reproduce {self.study} {self.options}".rstrip()

    @property
    def published(self) -> str:
        """Where the published values stand: a name and its file, or a section of the document."""
        file = _STUDIES[self.study][1] if self.stands.isupper() else ""
        return f"{self.stands} in {file}" if file else self.stands


def all_items(results: Path | None = None, recorded: Path = RECORDED) -> list[Entry]:
    """Return all items in the order of the documents.

    Parameters
    ----------
    results : the folder that the studies' folders are in; None: verdicts as recorded.
    recorded : the file of :func:`record` with these.

    Raises
    ------
    HpcgymError : there is no such folder, or a table in it cannot be read.
    """
    if results is not None and not results.is_dir():
        raise HpcgymError(f"{results}: there is no such folder, which results of studies are in")
    known_before, entries = read_recorded(recorded), []
    for row in csv_frame(_ITEMS, keep_default_na=False, dtype=str).to_dict("records"):
        document, place, study = row["document"], row["item"], row["study"]
        verdict, computed = items.Verdict(row["verdict"] or "not run", row["why"]), ""
        if not row["verdict"] and results is not None:
            verdict = items.judged(_STUDIES[study][0][place], items.Stored(results / study))
        elif not row["verdict"]:
            verdict, computed = known_before.get((document, place), (verdict, computed))
        told = document, place, row["what"], study, row["options"], row["published"]
        entries.append(Entry(*told, row["verdict"] != "", verdict, computed))
    return entries


def read_recorded(path: Path) -> dict[tuple[str, str], tuple[items.Verdict, str]]:
    """Return (document, place) -> the verdict of a file of :func:`record`, and when it was made."""
    if not path.exists():
        return {}
    rows = csv_frame(path, keep_default_na=False, dtype=str)
    return {
        (row["document"], row["item"]): (items.Verdict(row["verdict"], row["why"]), row["computed"])
        for row in rows.to_dict("records")
    }


def record(results: Path, computed: str, path: Path = RECORDED) -> None:
    """Write the verdicts of results into a file, beside those that others have left in it.

    Parameters
    ----------
    results : the folder that the studies' folders are in.
    computed : when, and by which commit.
    path : a CSV file.
    """
    found = read_recorded(path)
    for entry in all_items(results):
        if not entry.fixed and entry.verdict.verdict not in ("not run", "quick cut"):
            found[entry.document, entry.place] = (entry.verdict, computed)
    keys = [(entry.document, entry.place) for entry in all_items()]
    rows = [(*key, *found[key][0], found[key][1]) for key in keys if key in found]
    columns = ["document", "item", "verdict", "why", "computed"]
    write_csv(pd.DataFrame(rows, columns=columns), path)


def table_of(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return a row for each item."""
    rows = [
        (e.document, e.place, e.what, e.computed, *e.verdict, e.published, e.command)
        for e in entries
    ]
    names = ["document", "item", "what", "computed", "verdict", "why", "published", "command"]
    return pd.DataFrame(rows, columns=names)


def counts_text(entries: Sequence[Entry]) -> str:
    """Return how many items have which verdict, in words."""
    found = [entry.verdict.verdict for entry in entries]
    return ", ".join(f"{name} {found.count(name)}" for name in items.VERDICTS if name in found)


def page_text(entries: Sequence[Entry], results: bool) -> str:
    """Return a page with a table for each document.

    Parameters
    ----------
    entries : of :func:`all_items`.
    results : whether verdicts are of results; else they are recorded, and the page says how to get
        the others.
    """
    head, recorded, computed = _PAGE.read_text(encoding="utf-8").split("\n---\n")
    meanings = table_text(pd.DataFrame(items.VERDICTS.items(), columns=["verdict", ""]))
    parts = [head, computed if results else recorded, f"{counts_text(entries)}.\n", meanings]
    for document, title in items.DOCUMENTS.items():
        of_document = [entry for entry in entries if entry.document == document]
        rows = table_of(of_document).drop(columns=["document", *(["computed"] if results else [])])
        decided = rows["why"].str.replace(r"[.;:] undecided: .*", "; ...", regex=True)
        rows["why"] = [shorten(why, 200, placeholder=" ...") for why in decided]
        rows["command"] = [f"`{command}`" if command else "" for command in rows["command"]]
        parts += [f"## {document}\n", f"{title}.\n", table_text(rows)]
    return "\n".join(parts)
