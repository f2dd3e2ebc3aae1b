"""The campaign's tasks and what came out of them, as tables beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.prediction import runs
from hpcgym.benchmarks.prediction.published import (
    MEASURES,
    REDUCTIONS,
    TABLE_7_1,
    TABLE_7_6,
    TABLE_7_8,
    Published,
)
from hpcgym.benchmarks.prediction.runs import e_loss
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

# --- The campaign on some traces: its tasks, and the table of what came out -----------------------

QUICK_JOBS = 1500  # of a trace, in a quick cut


@dataclass
class Findings:
    """What came out on one trace.

    Attributes
    ----------
    source, workload : what the trace was loaded from; its jobs.
    published : its published results; None without.
    table : a row for each configuration, by its text.
    configurations : those of the rows.
    accuracy : predictor -> its predictions at submission and the run times, (2, n_jobs) [s].
    """

    source: str
    workload: Workload
    published: Published | None
    table: pd.DataFrame
    configurations: dict[str, runs.Configuration]
    accuracy: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return self.workload.name

    @property
    def of_thesis(self) -> pd.DataFrame:
        """The rows of the table whose configurations are the thesis's."""
        names = [
            name
            for name, one in self.configurations.items()
            if not isinstance(one.estimate, runs.Loss) or one.estimate.of_thesis
        ]
        return self.table.loc[names]

    @property
    def learned(self) -> pd.DataFrame:
        """Those of them that learn."""
        table = self.of_thesis
        return table[table["estimate"] == "regression"]

    def ours(self, configuration: runs.Configuration) -> float:
        """Return the mean bounded slowdown of a configuration."""
        return float(self.table["mean_bsld"][str(configuration)])

    def theirs(self, configuration: runs.Configuration) -> float:
        """Return the published one, nan if there is none."""
        return float(self.table["published"][str(configuration)])


def load_traces(sources: Sequence[str], quick: bool) -> dict[str, tuple[str, Workload]]:
    """Return name -> source and jobs of each trace.

    Raises
    ------
    HpcgymError : a trace that cannot be read or has no requested times, or two of the same name.
    """
    found: dict[str, tuple[str, Workload]] = {}
    for source in sources:
        try:
            workload = runs.load_trace(source, QUICK_JOBS if quick else None)
        except WorkloadError as error:
            raise _explained(source, error) from None
        if workload.name in found:
            raise HpcgymError(f"two workloads are called {workload.name}: {source} is one of them")
        found[workload.name] = source, workload
    return found


def _explained(source: str, error: WorkloadError) -> HpcgymError:
    """Return the error, or what can be done if the trace lacks requested times."""
    try:
        jobs = load_workload(source, clean="none")
    except WorkloadError:
        return error
    if (jobs.requested_time > 0).any():
        return error
    return HpcgymError(
        f"{source} has no requested times, which predictions are compared with: name another trace,"
        " or the generator, lublin:jobs=10000, which has them"
    )


def run_campaign(
    traces: Mapping[str, tuple[str, Workload]],
    configurations: Sequence[runs.Configuration],
    folder: Folder,
    *,
    quick: bool,
) -> dict[str, pd.DataFrame]:
    """Simulate every configuration on every trace that has not been yet.

    Parameters
    ----------
    traces : name -> source and jobs.
    folder : where the study is run.

    Returns
    -------
    Name of a trace -> a row for each configuration, by its text, with what it is and what
    :func:`hpcgym.benchmarks.prediction.runs.simulate_one` returns.
    """
    tasks: list[dict[str, Any]] = [
        {
            "source": source,
            "trace": name,
            "first_jobs": QUICK_JOBS if quick else None,
            "jobs_sha256": fingerprint([workload]),
            "rules": one.words(),
            "eta": runs.ETA,
            "l2": runs.L2,
        }
        for name, (source, workload) in traces.items()
        for one in configurations
    ]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in traces}
    for task, outcome in zip(
        tasks, folder.run(runs.simulate_one, tasks, "simulations"), strict=True
    ):
        rows[task["trace"]].append({**task["rules"], **outcome})
    index = pd.Index([str(one) for one in configurations], name="configuration")
    return {name: pd.DataFrame(of, index=index) for name, of in rows.items()}


def findings_of(
    source: str,
    workload: Workload,
    configurations: Sequence[runs.Configuration],
    table: pd.DataFrame,
    published: Published | None,
) -> Findings:
    """Return what came out on a trace, the published values beside ours."""
    found = table.copy()
    for measure in MEASURES:
        name = "published" if measure == "mean_bsld" else f"published {measure}"
        found[name] = float("nan") if published is None else published.table[measure]
    by_text = {str(one): one for one in configurations}
    return Findings(source, workload, published, found, by_text)


# --- The thesis's tables, ours beside the published values, as DataFrames -------------------------

_NONE = float("nan")


def exactness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return the configurations without learning, which have to meet the published values."""
    rows = [
        {
            "trace": found.trace,
            "jobs": int(found.table["jobs"].iloc[0]),
            "configuration": str(one),
            "ours": found.ours(one),
            "published": found.theirs(one),
            "difference": f"{found.ours(one) - found.theirs(one):+.1e}",
            "relative": f"{found.ours(one) / found.theirs(one) - 1:+.1e}",
        }
        for found in findings
        for one in runs.without_learning()
        if np.isfinite(found.theirs(one))
    ]
    return pd.DataFrame(rows)


def table_7_1(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.1: EASY with requested and with known run times."""
    rows = []
    for found in findings:
        easy, known = found.ours(runs.EASY), found.ours(runs.CLAIRVOYANT["fcfs"])
        printed = TABLE_7_1.get(found.trace, (_NONE, _NONE, _NONE))
        rows.append(
            {
                "trace": found.trace,
                "EASY": easy,
                "thesis: EASY": printed[0],
                "EASY-CLAIRVOYANT": known,
                "thesis: CLAIRVOYANT": printed[1],
                "decrease %": reduction(known, easy),
                "thesis: decrease %": printed[2],
            }
        )
    return pd.DataFrame(rows)


def reduction(value: float, reference: float) -> float:
    """Return by how many percent a value is below another."""
    return 100 * (1 - value / reference)


def table_7_6(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.6: known run times, EASY, EASY++, and the best and the worst that learn."""
    rows = []
    for found in findings:
        ours, theirs = (_overview(found, column) for column in ("mean_bsld", "published"))
        printed = TABLE_7_6.get(found.trace, (_NONE,) * len(ours))
        for (name, value), other, thesis_value in zip(
            ours.items(), theirs.values(), printed, strict=True
        ):
            rows.append(
                {
                    "trace": found.trace,
                    "what": name,
                    "ours": value,
                    "published": other,
                    "thesis": thesis_value,
                    "ours / published": value / other,
                }
            )
    return pd.DataFrame(rows)


def _overview(found: Findings, column: str) -> dict[str, float]:
    """Return the entries of a row of table 7.6, from a column of the findings.

    The thesis's ends are over its 120 configurations that learn and the same with the thresholds of
    60 and 600 s: so its values are found in the published ones, all but those of SDSC-BLUE that are
    of runs that did not come to their end.
    """
    table = found.table
    named = {
        "clairvoyant, FCFS": runs.CLAIRVOYANT["fcfs"],
        "clairvoyant, SJBF": runs.CLAIRVOYANT["sjbf"],
        "EASY": runs.EASY,
        "EASY++": runs.EASY_PLUS_PLUS,
    }
    entries = {name: float(table[column][str(one)]) for name, one in named.items()}
    plain = table["over"].isin(runs.BRANCHES) & table["under"].isin(runs.BRANCHES)
    learned = table[plain & (table["over_scale"] == 1) & (table["under_scale"] == 1)]
    for order in runs.ORDERS:
        values = learned.loc[learned["order"] == order, column]
        entries[f"learning, {order.upper()}: best"] = float(values.min())
        entries[f"learning, {order.upper()}: worst"] = float(values.max())
    return entries


# --- The claim, and what predictions are like -----------------------------------------------------


def claim(findings: Sequence[Findings]) -> pd.DataFrame:
    """Section 7.5.3: E-Loss, incremental correction and SJBF against EASY and EASY++."""
    rows: list[dict[str, Any]] = []
    for by in ("ours", "published"):
        part = [_claimed(found, by) for found in findings]
        part = [row for row in part if np.isfinite(row["E-Loss triple"])]
        if part:
            gains = [key for key in part[0] if "%" in key]
            mean = {key: float(np.mean([row[key] for row in part])) for key in gains}
            rows += [*part, {"trace": "mean", "values": by, **mean}]
    printed = dict(zip(("below EASY %", "below EASY++ %"), REDUCTIONS, strict=True))
    rows.append({"trace": "thesis, six logs", "values": "printed", **printed})
    return pd.DataFrame(rows)


def _claimed(found: Findings, by: str) -> dict[str, Any]:
    """Return a row of the claim: our values, or the published."""
    value = found.ours if by == "ours" else found.theirs
    triple, easy, plus = map(value, (runs.E_LOSS_TRIPLE, runs.EASY, runs.EASY_PLUS_PLUS))
    return {
        "trace": found.trace,
        "values": by,
        "E-Loss triple": triple,
        "EASY": easy,
        "EASY++": plus,
        "below EASY %": reduction(triple, easy),
        "below EASY++ %": reduction(triple, plus),
    }


def table_7_8(findings: Sequence[Findings]) -> pd.DataFrame:
    """Table 7.8: mean absolute error and mean E-Loss of predictions at submission.

    Those of simulations with incremental correction and SJBF: AVE2's are EASY++'s.
    """
    rows: list[dict[str, Any]] = []
    for found in findings:
        processors = found.workload.requested_processors
        for name, (predicted, run) in found.accuracy.items():
            error = (predicted - run).astype(np.float64)
            rows.append(
                {
                    "trace": found.trace,
                    "prediction": name,
                    "MAE (s)": float(np.abs(error).mean()),
                    "mean E-Loss": f"{e_loss(predicted, run, processors).mean():.3g}",
                    "share too short": float((error < 0).mean()),
                    "median (s)": float(np.median(predicted)),
                }
            )
    for name, (mae, loss) in TABLE_7_8.items():
        rows.append(
            {
                "trace": "thesis, Curie",
                "prediction": name,
                "MAE (s)": mae,
                "mean E-Loss": f"{loss:.3g}",
                "share too short": _NONE,
                "median (s)": _NONE,
            }
        )
    return pd.DataFrame(rows)


def name_of(configuration: runs.Configuration) -> str:
    """Return what pictures call a configuration."""
    named = {
        runs.EASY: "EASY",
        runs.EASY_PLUS_PLUS: "EASY++",
        runs.E_LOSS_TRIPLE: "E-Loss, incremental, SJBF",
    }
    named |= {one: f"clairvoyant, {order.upper()}" for order, one in runs.CLAIRVOYANT.items()}
    return named.get(configuration, str(configuration))
