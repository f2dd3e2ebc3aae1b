"""Jobs in JSON: a list of objects, or an object that also tells the machine's size and queues.

::

    {"processors": 1024,
     "queues": {"debug": 1, "parallel": 2},
     "jobs": [{"submit_time": 0, "run_time": 60, "requested_time": 3600, "queue": "debug",
               "units": 2, "core": 8, "mem": 4000, "gpu": 1, "code": "lu.D.64"}, ...]}

Fields of jobs are the columns of tables (:mod:`hpcgym.workload.io.tables`); what a job leaves out
is unknown. ``processors`` and ``queues`` may be left out. With ``begin``, a time [s], it is an
extract from then on, as a table with such a column is.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import WorkloadError
from hpcgym.files import MOST_COLUMNS, bytes_of, check_value, check_values, json_of
from hpcgym.files.writing import whole_text
from hpcgym.naming import JOB_COLUMNS
from hpcgym.workload.io.table_names import with_names
from hpcgym.workload.model import Workload, check_processors
from hpcgym.workload.needs import queue_names

if TYPE_CHECKING:
    import pandas as pd

_KEYS = ("processors", "queues", "begin", "jobs")
_LARGE = 1 << 63
_MOST_BYTES = 1 << 30  # in the memory they take ten times as much


def is_json(path: Path) -> bool:
    """Tell whether a file's name ends as that of a file of jobs in JSON does."""
    return path.name.casefold().endswith((".json", ".json.gz"))


def read_json(path: Path) -> tuple[pd.DataFrame, int | None, dict[str, int] | None]:
    """Return the jobs as a table, and the processors and queues if the file tells them.

    Raises
    ------
    WorkloadError : a file that is no JSON of this form; the message names the job.
    """
    import pandas as pd

    text = bytes_of(path, _MOST_BYTES, WorkloadError)
    given = json_of(text, str(path), WorkloadError, flat=True)
    top = {"jobs": given} if isinstance(given, list) else given
    if not isinstance(top, dict) or not isinstance(top.get("jobs"), list):
        raise WorkloadError(f"{path} holds neither a list of jobs nor an object with 'jobs'")
    others = {key: value for key, value in top.items() if key != "jobs"}
    check_values(others, str(path), WorkloadError)
    for key in others:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_KEYS)}"
            raise WorkloadError(f"{path} has an unknown entry {key!r}; {hint}")
    for number, job in enumerate(top["jobs"], 1):
        _check_job(f"{path}, job {number}", job)
    columns = _columns(top["jobs"])
    check_values(columns, str(path), WorkloadError)
    if len(columns) > MOST_COLUMNS:
        raise WorkloadError(f"{path}: jobs have {len(columns):,} fields, over {MOST_COLUMNS:,}")
    frame = pd.DataFrame(top["jobs"], columns=columns)
    if "begin" in top:
        if type(top["begin"]) is not int:
            raise WorkloadError(f"{path}: 'begin' is {_shown(top['begin'])}, not whole seconds")
        frame["begin"] = top["begin"]
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="job")
    told = _processors(path, top.get("processors")), _queues(path, top.get("queues"))
    if not top["jobs"]:
        raise WorkloadError(f"{path} holds no job")
    return frame, *told


def write_json(workload: Workload, path: Path, begin: int | None = None) -> None:
    """Write the jobs, one a line, with the columns that any job has; of an extract its begin."""
    frame = with_names(workload.to_pandas(), workload, without=("queue_name",))
    known = [c for c in JOB_COLUMNS if c in frame and c != "submit_time"]
    unknown = [c for c in known if (frame[c] == -1).all()]
    rows = frame.drop(columns=unknown).to_dict("records")
    queues = {name: number for number, name in queue_names(workload).items()}
    with whole_text(path) as file:
        file.write(f'{{"processors": {workload.processors},\n')
        if queues:
            file.write(f' "queues": {json.dumps(queues)},\n')
        if begin is not None:
            file.write(f' "begin": {begin},\n')
        file.write(' "jobs": [\n  ')
        file.write(",\n  ".join(json.dumps(row) for row in rows))
        file.write("]}\n")


def _check_job(where: str, job: Any) -> None:
    """Say so if a job is none: an object of numbers, and of texts where names may stand."""
    if not isinstance(job, dict):
        raise WorkloadError(f"{where} is not an object but {_shown(job)}")
    for field, value in job.items():
        if type(value) is int and -_LARGE < value < _LARGE:
            continue  # nearly all: of many million values none is looked at twice
        if isinstance(value, bool | list | dict):
            raise WorkloadError(f"{where}: {field} is {_shown(value)}, not a number")
        check_value(value, f"{where}, {field}", WorkloadError)


def _shown(value: Any) -> str:
    """Return a value as JSON has it; of a list or an object, only which of the two it is."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value)[:24]


def _columns(jobs: list[dict[str, Any]]) -> list[str]:
    """Return the fields that any job has, in order of first appearance."""
    return list(dict.fromkeys(field for job in jobs for field in job))


def _processors(path: Path, processors: Any) -> int | None:
    """Return the machine's size if it is told, or say that it cannot be one."""
    if processors is None:
        return None
    try:
        return check_processors(processors)
    except WorkloadError as error:
        raise WorkloadError(f"{path}: {error}") from None


def _queues(path: Path, queues: Any) -> dict[str, int] | None:
    """Return the numbers of queues by name, or say that they are none."""
    if queues is None:
        return None
    if not isinstance(queues, dict) or not all(type(number) is int for number in queues.values()):
        raise WorkloadError(f"{path}: 'queues' must tell the number of each name")
    if min(queues.values(), default=0) < 0:
        raise WorkloadError(f"{path}: the number of one of the 'queues' is below 0")
    if len({*queues.values()}) < len(queues):
        raise WorkloadError(f"{path}: two of the 'queues' have the same number")
    return queues
