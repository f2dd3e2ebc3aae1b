"""Items that no study makes: rules that hpcgym has, and what inputs do not allow."""

from __future__ import annotations

from hpcgym.benchmarks.studies.items import Item, built, left_out, no_result, still_open

DOCUMENT = "Glesser 2016"

_MEASURED = "measured on a machine with sensors; a simulator has watts only as its input"

ITEMS: tuple[Item, ...] = (
    no_result(DOCUMENT, "figure 2.1", "an example of backfilling"),
    built(DOCUMENT, "algorithm 1", "EASY backfilling", "docs/semantics.md"),
    built(DOCUMENT, "section 3.2.1", "extracts of a trace, chosen by a rule", "docs/extracts.md"),
    built(
        DOCUMENT,
        "section 3.2.2",
        "a model of machine failures, on machines of nodes",
        "docs/semantics.md",
    ),
    still_open(
        DOCUMENT,
        "figure 3.1",
        "utilization and queue around an extract of Curie",
        "no study draws it; `hpcgym simulate CEA-Curie --processors 80640 --html` draws both",
    ),
    built(
        DOCUMENT,
        "sections 3.2.3 and 3.3, figures 3.2 and 3.3",
        "replay on a real resource manager",
        "docs/replay.md",
    ),
    no_result(DOCUMENT, "figure 3.4", "the architecture of SLURM's monitoring"),
    left_out(DOCUMENT, "section 3.4.5", "what monitoring costs", _MEASURED),
    left_out(
        DOCUMENT,
        "figures 3.5 to 3.7",
        "energy and time of Linpack, IMB and Stream by frequency",
        _MEASURED,
    ),
    built(
        DOCUMENT,
        "section 8.2, prices",
        "budgets that follow a price or what of energy is green",
        "docs/power-limits.md",
    ),
)
