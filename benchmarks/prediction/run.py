"""The whole study: the campaign on every trace, then its tables, pictures and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pandas as pd

from hpcgym.benchmarks.prediction import figures, runs, tables
from hpcgym.benchmarks.prediction.published import Published, read_published
from hpcgym.benchmarks.studies.harness import Folder, folder_name, write_csv
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.tables import read_texts
from hpcgym.errors import HpcgymError
from hpcgym.version import __version__

# --- The report -----------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = read_texts(__file__)


#: Name of a picture of one trace -> its heading.
_PICTURES = {
    "errors": "prediction errors (figure 7.3)",
    "predicted": "predicted run times (figure 7.4)",
    "published": "ours and the published values",
}


def _counts(findings: Sequence[tables.Findings], values: Mapping[str, Published]) -> str:
    """Say how much was simulated, and how much was published."""
    lines = [
        f"- {found.trace}: {len(found.table):,} configurations of {len(found.workload):,} jobs."
        for found in findings
    ]
    for trace, one in values.items():
        lines.append(
            f"- Published of {trace}: {one.rows:,} rows; {one.unfinished:,} of them, of runs that"
            " did not come to their end, are ignored."
        )
    if len(findings) < 2:
        lines.append("- Figure 7.2 is of two traces: it is drawn if --workload names a second one.")
    return "\n".join(lines) + "\n"


# --- The whole study ------------------------------------------------------------------------------

#: Name of a table -> what makes it; but for table 7.7, which takes the published values too.
TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "without-learning": tables.exactness,
    "7.1": tables.table_7_1,
    "7.6": tables.table_7_6,
    "claim": tables.claim,
    "spread": figures.spread,
    "7.8": tables.table_7_8,
    "best-medians": figures.best_medians,
    "correlations": figures.correlations,
    "steadiness": figures.steadiness,
}


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    published: Path | None = None,
    full: bool = False,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    published : folder with the published results; None: only the values that the thesis prints.
    full : all configurations that there are published results of, not only the thesis's.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read, a folder without published results, both ``full``
        and ``quick``, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    if full and quick:
        raise HpcgymError("full and quick: a study is one or the other")
    values = read_published(published)  # a wrong folder is said of a quick cut too
    if quick:
        values = {}
    traces = tables.load_traces(sources, quick)
    folder.begin(HEAD)
    which = runs.quick() if quick else runs.usual()
    if full:
        which = runs.published()
    outcomes = tables.run_campaign(traces, which, folder, quick=quick)
    findings = [
        tables.findings_of(source, workload, which, outcomes[name], values.get(name))
        for name, (source, workload) in traces.items()
    ]
    store = Store(folder.path / "steps")
    for place, found in enumerate(findings):
        folder.progress("predictions", place, len(findings))
        found.accuracy = runs.predictions_of(found.workload, store)
    by_published = {"7.7": figures.table_7_7(findings, values)}
    made = {name: make(findings) for name, make in TABLES.items()} | by_published
    for found in findings:
        file = folder.path / folder_name(found.trace) / "configurations.csv"
        write_csv(found.table.reset_index(), file)
    head = f"{HEAD.format(version=__version__)}\n{_counts(findings, values)}"
    cut = "few jobs and configurations" * quick
    return folder.publish(head, made, TEXTS, _draw(findings, folder), cut)


def _draw(findings: Sequence[tables.Findings], folder: Folder) -> dict[str, Path]:
    """Draw the pictures of each pair of traces, and of each trace; return heading -> file."""
    pictures = {}
    for first, second in combinations(findings, 2):
        file = f"{folder_name(f'{first.trace}-{second.trace}')}.png"
        drawn = folder.picture(figures.draw_two_traces(first, second), file)
        pictures[f"{first.trace} and {second.trace} (figure 7.2)"] = drawn
    for found in findings:
        figure_of = {
            "errors": figures.draw_errors(found.accuracy, found.trace),
            "predicted": figures.draw_predicted(found.accuracy, found.trace),
        }
        if found.published is not None:
            figure_of["published"] = figures.draw_against_published(found)
        for name, figure in figure_of.items():
            drawn = folder.picture(figure, f"{folder_name(found.trace)}/{name}.png")
            pictures[f"{found.trace}: {_PICTURES[name]}"] = drawn
    return pictures
