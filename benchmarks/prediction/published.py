"""What is published. These numbers are only shown beside ours; nothing is computed from them.

The tables that D. Glesser's thesis prints (Road to exascale: improving scheduling performances and
reducing energy consumption with the help of end-users, 2016, chapter 7), and the results of the
original experiment at full precision, if a folder with them is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.prediction.configurations import Configuration, Loss
from hpcgym.errors import HpcgymError
from hpcgym.files import csv_frame
from hpcgym.workload.archive import TRACES

if TYPE_CHECKING:
    import pandas as pd

#: The thesis's logs by their names in the archive.
LOGS = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie", "MetaCentrum")

#: Table 7.1: mean bounded slowdown of EASY and of EASY-CLAIRVOYANT, and the decrease [%].
TABLE_7_1 = {
    "KTH-SP2": (92.6, 71.7, 22),
    "CTC-SP2": (49.6, 37.2, 25),
    "SDSC-SP2": (87.9, 70.5, 19),
    "SDSC-BLUE": (36.5, 30.6, 16),
    "CEA-Curie": (202.1, 69.9, 65),
    "MetaCentrum": (97.6, 81.7, 16),
}

#: Table 7.6: clairvoyant FCFS and SJBF, EASY, EASY++, learning: best and worst of FCFS, of SJBF.
TABLE_7_6 = {
    "KTH-SP2": (71.7, 49.8, 92.6, 63.5, 62.6, 93.2, 51.4, 74.5),
    "CTC-SP2": (37.2, 17.6, 49.6, 85.8, 25.5, 163.5, 16.3, 134.7),
    "SDSC-SP2": (70.5, 56.8, 87.9, 79.4, 70.9, 102.3, 69.7, 194.8),
    "SDSC-BLUE": (30.6, 13.2, 36.5, 21.0, 16.5, 48.0, 12.6, 47.8),
    "CEA-Curie": (69.9, 12.1, 202.1, 193.5, 26.3, 9348.8, 24.3, 4010.0),
    "MetaCentrum": (81.7, 67.2, 97.6, 87.2, 86.3, 98.1, 81.5, 89.8),
}

#: Table 7.7: the triple chosen on the other logs, EASY, EASY++.
TABLE_7_7 = {
    "KTH-SP2": (51.4, 92.6, 63.5),
    "CTC-SP2": (20.5, 49.6, 85.8),
    "SDSC-SP2": (75.0, 87.9, 79.4),
    "SDSC-BLUE": (34.7, 36.5, 21.0),
    "CEA-Curie": (27.9, 202.1, 193.5),
    "MetaCentrum": (84.2, 97.6, 87.2),
}

#: Section 7.5.3: how much lower the E-Loss triple is than EASY and EASY++, on average [%].
REDUCTIONS = (28, 11)

#: Section 7.5.3: least and largest correlation of triples on two of the logs (Pearson).
PEARSON = (0.01, 0.80)

#: Table 7.8, on Curie: mean absolute error [s] and mean E-Loss.
TABLE_7_8 = {"AVE2": (5217.0, 10.2e8), "E-Loss": (6762.0, 2.35e5)}

#: The columns of the published files that say how a run came out.
MEASURES = ("jobs", "mean_bsld", "max_bsld", "rms_bsld", "mean_response_s", "max_response_s")

_SCHEDULERS = {
    "easy_backfill_scheduler": "fcfs",
    "easy_prediction_backfill_scheduler": "fcfs",
    "easy_sjbf_scheduler": "sjbf",
    "easy_plus_plus_scheduler": "sjbf",
}
_CORRECTIONS = {
    "reqtime": "requested",
    "tsafrir": "incremental",
    "recursive_doubling": "recursive-doubling",
    "throw_an_error": "requested",  # it is never asked
    "NA": "requested",
}
_PREDICTORS = {
    "predictor_tsafrir": "ave2",
    "predictor_clairvoyant": "clairvoyant",
    "predictor_reqtime": "requested",
    "predictor_double_reqtime": "double-requested",
    "NA": "requested",
}
_BRANCHES = {"abs": "absolute", "square": "squared", "exp": "exponential"}
_WEIGHTS = {
    "1": "1",
    "5+log(r/m)": "long",
    "5+log(m/r)": "wide",
    "11+log(1/(r*m))": "small",
    "1+log(m*r)": "large",
}


@dataclass(frozen=True)
class Published:
    """The published results of one trace.

    Attributes
    ----------
    rows : in the file.
    unfinished : rows of runs that did not come to their end; they are ignored.
    table : a row for each other configuration, by its text; columns :data:`MEASURES`.
    configurations : the configurations of the rows of the table.
    """

    rows: int
    unfinished: int
    table: pd.DataFrame
    configurations: dict[str, Configuration]


def read_published(folder: Path | None) -> dict[str, Published]:
    """Return the published results of each trace; none without a folder.

    Raises
    ------
    HpcgymError : there is no such folder, it has no such files, or one of them is not as it should
        be.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise HpcgymError(
            f"{folder}: there is no such folder, which published results are to be in"
        )
    names = {name.casefold(): name for name in TRACES}
    files = sorted(folder.glob("glesser-ch7-*.csv.gz"))
    if not files:
        raise HpcgymError(f"{folder}: no published results (glesser-ch7-TRACE.csv.gz) are there")
    found = {}
    for file in files:
        trace = file.name.removeprefix("glesser-ch7-").removesuffix(".csv.gz")
        found[names.get(trace.casefold(), trace)] = _read(file)
    return found


def _read(path: Path) -> Published:
    """Return the published results of one file."""
    import pandas as pd

    rows = csv_frame(path, keep_default_na=False, dtype=str)
    try:
        kept = [configuration_of_row(row) for row in rows.to_dict("records")]
        numbers = rows[list(MEASURES)].apply(pd.to_numeric, errors="coerce")
    except (ValueError, KeyError) as error:
        raise HpcgymError(f"{path}: no published results: {error}") from None
    numbers.index = pd.Index([str(one) for one in kept], name="configuration")
    whole = (numbers["jobs"] == numbers["jobs"].max()) & numbers["mean_bsld"].notna()
    # EASY is there twice: by itself, and as the one that takes the request for a prediction
    table = numbers[whole]
    table = table[~table.index.duplicated()]
    by_text = {str(one): one for one in kept}
    return Published(
        rows=len(rows),
        unfinished=int((~whole).sum()),
        table=table,
        configurations={name: by_text[name] for name in table.index},
    )


def configuration_of_row(row: Mapping[Any, Any]) -> Configuration:
    """Return the configuration of a row of the published files.

    Raises
    ------
    KeyError, ValueError : it has none of the known names, or no number where one has to be.
    """
    order, correction = _SCHEDULERS[row["scheduler"]], _CORRECTIONS[row["correction"]]
    if row["predictor"] != "predictor_sgdlinear":
        return Configuration(order, correction, _PREDICTORS[row["predictor"]])
    loss = Loss(
        _BRANCHES[row["over_loss"]],
        _BRANCHES[row["under_loss"]],
        _WEIGHTS[row["weight"]],
        float(row["over_param"]),
        float(row["under_param"]),
        float(row["threshold"]),
    )
    return Configuration(order, correction, loss)
