"""The whole study: each network on each part of its log, then tables and a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import HpcgymError
from hpcgym.agents.rlscheduler import PublishedNetwork
from hpcgym.benchmarks.rlscheduler import runs
from hpcgym.benchmarks.rlscheduler.runs import BEST, DRAWN, LOGS, WHOLE
from hpcgym.benchmarks.studies.harness import Folder, Studied
from hpcgym.benchmarks.studies.tables import Rows, interval, of_rows, read_texts
from hpcgym.errors import WorkloadWarning, warn_caller
from hpcgym.files import sha256_of
from hpcgym.files.tables import csv_frame
from hpcgym.workload.fingerprint import fingerprint

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, _TEXTS = read_texts(__file__)

#: The values of their repository: log, backfilling, and a column for each policy.
PUBLISHED = csv_frame(Path(__file__).with_name("published.csv"))

#: What a quick cut has.
QUICK_LOG, QUICK_SEQUENCES = "Lublin-1", 2


def reproduce(models: Path, folder: Folder, *, quick: bool = False) -> Studied:
    """Run the study and write tables and a report; what was played before is kept.

    Parameters
    ----------
    models : their folder ``trained_models/bsld``, with a folder for each log.
    folder : where the study is run; what was played is in its folder ``tasks``.
    quick : a small cut: one log, two sequences.

    Returns
    -------
    The file of the report, and the tables by name: "theirs", "later", "ran" if a log has jobs that
    never ran, "ours"; "played", which has a row for each sequence, and "means" over them, with the
    longest waits of all.

    Raises
    ------
    HpcgymError : no log of theirs is here, a network that cannot be read, a file that cannot be
        written, or what fails while it is played.

    Warns
    -----
    WorkloadWarning : for each log that is not here, and is left out.
    """
    folder.begin(HEAD)
    logs = [QUICK_LOG] if quick else [*LOGS]
    tasks = [task for log in logs for task in _tasks(log, models, quick)]
    if not tasks:
        sources = ", ".join(log.source for log in LOGS.values())
        raise HpcgymError(f"none of their logs is on this machine: {sources} (see HPCGYM_DATA)")
    outcomes = folder.run(runs.play_part, tasks, "parts of logs")
    named = ("log", "part", "setting", "policy", "seed")
    played = pd.concat(
        pd.DataFrame({**{name: task[name] for name in named}, **of})
        for task, of in zip(tasks, outcomes, strict=True)
    )
    made = {
        "theirs": theirs(played),
        "later": by_part(played, {"theirs": "no", "theirs, backfilling": "yes"}),
        "ran": by_part(played, {"what ran": "no", "what ran, backfilling": "yes"}),
        "ours": by_part(played, {"ours": "EASY"}, runs.OURS),
    }
    means = played.groupby([*named], sort=False, dropna=False, as_index=False).agg(
        {"mean_bsld": "mean", "mean_wait_h": "mean", "max_wait_h": "max"}
    )
    cut = f"{QUICK_SEQUENCES} sequences of {QUICK_LOG}" if quick else ""
    folder.write_tables({"played": played, "means": means})
    report, made = folder.publish(HEAD, made, _TEXTS, {}, cut)
    return report, {**made, "played": played, "means": means}


def _tasks(log: str, models: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Return what is to be played on a log; nothing, with a warning, if it cannot be read here."""
    source, name = LOGS[log]
    try:
        logs = {setting: of.load(source) for setting, of in runs.SETTINGS.items()}
    except HpcgymError as error:
        warn_caller(f"{log} is left out: {error}", WorkloadWarning)
        return
    weights = sha256_of(PublishedNetwork(models / name).data_file)
    network = {"folder": str(models / name), "weights_sha256": weights}
    most = QUICK_SEQUENCES if quick else None
    for setting, jobs in logs.items():
        backfill = runs.SETTINGS[setting].backfill
        if setting.startswith("what ran") and len(jobs) == len(logs["theirs"]):
            continue  # all did
        same = {"log": log, "source": source, "setting": setting}
        same["jobs_sha256"] = fingerprint([jobs])
        for part, sequences in runs.parts_of(len(jobs)).items():
            if quick and part == WHOLE:
                continue
            common = {**same, "part": part, "sequences": sequences[:most]}
            for policy in runs.THEIRS if backfill is not None else runs.OURS:
                yield {**common, "policy": policy, "seed": None}
            yield {**common, **network, "policy": BEST, "seed": None}
            for seed in range(1 if quick or part == WHOLE else runs.SEEDS):
                yield {**common, **network, "policy": DRAWN, "seed": seed}


# --- The tables -----------------------------------------------------------------------------------

#: The part that has the sequences of their table.
_FIRST = next(iter(runs.parts_of(runs.PART)))

_AGAINST = ("network / SAF", "95 %")


def theirs(played: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each cell of their table: mean bounded slowdowns, and longest waits."""
    first = played[played["part"] == _FIRST]
    published = PUBLISHED.set_index(["log", "backfilling"])["rlscheduler"]
    table = by_part(first, {"theirs": "no", "theirs, backfilling": "yes"})
    cells = zip(table["log"], table["backfilling"], strict=True)
    table.insert(6, "RLScheduler, published", [float(published[cell]) for cell in cells])
    return table.drop(columns=["jobs", *_AGAINST])


@of_rows
def by_part(
    played: pd.DataFrame, settings: Mapping[str, str], policies: Sequence[str] = runs.THEIRS
) -> Rows:
    """Return a row for each part of a log and each setting: mean bounded slowdowns, longest waits.

    Parameters
    ----------
    played : a row for each sequence.
    settings : of these -> what they are called in the column "backfilling".
    policies : beside the network; the longest waits are those of the first, of SAF and its own.
    """
    of_these = played[played["setting"].isin([*settings])]
    parts: Any = of_these.groupby(["log", "setting", "part"], sort=False)
    for (log, setting, part), cell in parts:
        of: dict[str, pd.DataFrame] = dict(iter(cell.groupby("policy", sort=False)))
        row = {"log": log, "backfilling": settings[setting], "jobs": part}
        row |= {
            _head(policy): float(of[policy]["mean_bsld"].mean()) for policy in (*policies, BEST)
        }
        row |= {DRAWN: _drawn(of[DRAWN]), **_against(of[BEST], of["saf"])}
        longest = {
            policy: float(of[policy]["max_wait_h"].max()) for policy in (policies[0], "saf", BEST)
        }
        yield row | {f"longest wait, {_head(policy)} [h]": wait for policy, wait in longest.items()}


def _head(policy: str) -> str:
    return policy if policy in (BEST, "saf-typical-80h") else policy.upper()


def _drawn(rows: pd.DataFrame) -> str:
    """Return what a network reaches by actions that are drawn, and of which seeds how much."""
    means = rows.groupby("seed")["mean_bsld"].mean()
    least = f" ({means.min():,.0f} to {means.max():,.0f})" if len(means) > 1 else ""
    return f"{means.mean():,.0f}{least}"


def _against(network: pd.DataFrame, saf: pd.DataFrame) -> dict[str, Any]:
    """Return the geometric mean of the ratios to SAF over sequences, and its interval."""
    logs: Any = np.log(network["mean_bsld"].to_numpy() / saf["mean_bsld"].to_numpy())
    shown = interval(logs, 4)
    if shown != "-":
        low, high = (np.exp(float(end)) for end in shown.strip("[]").split(", "))
        shown = f"[{low:.2f}, {high:.2f}]"
    return dict(zip(_AGAINST, (float(np.exp(logs.mean())), shown), strict=True))
