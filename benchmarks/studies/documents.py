"""All items of the five documents, collected from the studies, and their verdicts from results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
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
from hpcgym.files.recorded import record_of_file
from hpcgym.files.tables import csv_frame

# --- All items of the five documents --------------------------------------------------------------

#: All items, those of a document one after the other; what their page says above its tables.
_ITEMS, _PAGE = (Path(__file__).with_name(name) for name in ("items.csv", "page.md"))

#: Document -> item, or study for its others -> what was tried of it.
_TRIED: dict[str, dict[str, str]] = items.notes_of(__file__)  # type: ignore[assignment]
#: Verdicts of items that are not settled, so that it is told what was tried.
UNSETTLED = ("not met", "undecided", "not run")

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
    made_by : the command that made the results of the verdict; "" if it is not known.
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
    made_by: str = ""
    computed: str = ""

    @property
    def tried(self) -> str:
        """What was tried of the item; "" if it is settled."""
        of = _TRIED.get(self.document, {}) if self.verdict.verdict in UNSETTLED else {}
        return "" if self.fixed else of.get(self.place, of.get(self.study, ""))

    @property
    def account(self) -> str:
        """Why the verdict is so, and what was tried."""
        return self.verdict.noted(f"tried: {self.tried}" if self.tried else "").why

    @property
    def command(self) -> str:
        """The command that made the verdict, or that makes one; "" if none does."""
        usual = f"hpcgym reproduce {self.study} {self.options}".rstrip()
        return "" if self.fixed else self.made_by or usual

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
    kept, entries = read_recorded(recorded), []
    for row in csv_frame(_ITEMS, keep_default_na=False, dtype=str).to_dict("records"):
        document, place, study = row["document"], row["item"], row["study"]
        verdict, made_by, computed = items.Verdict(row["verdict"] or "not run", row["why"]), "", ""
        if not row["verdict"] and results is not None:
            verdict = items.judged(_STUDIES[study][0][place], items.Stored(results / study))
            made_by = command_of(results / study)
        elif not row["verdict"]:
            usual = Recorded(verdict, made_by, computed)
            verdict, made_by, computed = kept.get((document, place), usual)
        about = document, place, row["what"], study, row["options"], row["published"]
        entries.append(Entry(*about, row["verdict"] != "", verdict, made_by, computed))
    return entries


class Recorded(NamedTuple):
    """A verdict, the command that made its results, and when and by which commit."""

    verdict: items.Verdict
    made_by: str
    computed: str


def command_of(folder: Path) -> str:
    """Return the command that made the results in a study's folder; "" if it is not known.

    Where it wrote and how it ran, which change no result, are left out.
    """
    words: list[str] = []
    with suppress(HpcgymError):
        words = record_of_file(folder / "report.md")["command"] or []
    kept, rest = [], iter(words)
    for word in rest:
        name, joined, _ = word.partition("=")
        if name not in _NO_RESULT:
            kept.append(word)
        elif not joined:
            next(rest, "")  # its value
    return shlex.join(["hpcgym", *kept]) if kept else ""


#: Options that change no result; each has a value.
_NO_RESULT = {"--output", "--executor", "--format"}


def read_recorded(path: Path) -> dict[tuple[str, str], Recorded]:
    """Return (document, place) -> what a file of :func:`record` has of the item."""
    if not path.exists():
        return {}
    rows = csv_frame(path, keep_default_na=False, dtype=str)
    return {
        (row["document"], row["item"]): Recorded(
            items.Verdict(row["verdict"], row["why"]), row["command"], row["computed"]
        )
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
    kept = read_recorded(path)
    for entry in all_items(results):
        if not entry.fixed and entry.verdict.verdict not in ("not run", "quick cut"):
            kept[entry.document, entry.place] = Recorded(entry.verdict, entry.made_by, computed)
    keys = [(entry.document, entry.place) for entry in all_items()]
    rows = [(*key, *kept[key].verdict, *kept[key][1:]) for key in keys if key in kept]
    columns = ["document", "item", "verdict", "why", "command", "computed"]
    write_csv(pd.DataFrame(rows, columns=columns), path)


def table_of(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return a row for each item."""
    rows = [
        (*e[:3], e.computed, e.verdict.verdict, e.account, e.published, e.command) for e in entries
    ]
    names = ["document", "item", "what", "computed", "verdict", "why", "published", "command"]
    return pd.DataFrame(rows, columns=names)


def counts_text(entries: Sequence[Entry]) -> str:
    """Return how many items have which verdict, in words."""
    verdicts = [entry.verdict.verdict for entry in entries]
    return ", ".join(
        f"{name} {verdicts.count(name)}" for name in items.VERDICTS if name in verdicts
    )


def page_text(entries: Sequence[Entry], results: bool) -> str:
    """Return a page: of each document what holds, its items and why; then those without a result.

    Parameters
    ----------
    entries : of :func:`all_items`.
    results : whether verdicts are of results; else they are recorded, and the page says how to get
        the others.
    """
    head, recorded, computed, without = _PAGE.read_text(encoding="utf-8").split("\n---\n")
    meanings = table_text(pd.DataFrame(items.VERDICTS.items(), columns=["verdict", ""]))
    parts = [head, computed if results else recorded, f"{counts_text(entries)}.\n", meanings]
    for document, title in items.DOCUMENTS.items():
        judged = [e for e in entries if e.document == document and not e.fixed]
        rows = table_of(judged).drop(
            columns=["document", "why", *(["computed"] if results else [])]
        )
        rows["command"] = [f"`{command}`" for command in rows["command"]]
        whys = "\n".join(f"- *{e.place}*, {e.verdict.verdict}: {e.account}" for e in judged)
        parts += [f"## {document}\n", f"{title}.\n", f"{'; '.join(_outcome(judged))}.\n"]
        parts += [table_text(rows), f"{whys}\n"]
    fixed = [e for e in entries if e.fixed]
    return "\n".join([*parts, without, table_text(table_of(fixed)[_OF_FIXED])])


_OF_FIXED = ["document", "item", "what", "verdict", "why"]


def _outcome(judged: Sequence[Entry]) -> Iterator[str]:
    """Yield what holds of a document, what does not, and so on, item by item."""
    for words, verdicts in items.OUTCOMES.items():
        places = [entry.place for entry in judged if entry.verdict.verdict in verdicts]
        if places:
            yield f"**{words}** ({len(places)}): {', '.join(places)}"
