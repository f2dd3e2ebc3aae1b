"""Conditions in which jobs are asked for by their columns: see :meth:`hpcgym.Workload.query`."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, unknown, warn_caller
from hpcgym.names import NAMED
from hpcgym.units import WITH_UNITS, in_seconds
from hpcgym.workload.columns import is_missing
from hpcgym.workload.io.swf_header import called_in, names_of
from hpcgym.workload.model import Workload

#: Short names of columns.
_SHORT = {
    "user": "user_id",
    "group": "group_id",
    "processors": "requested_processors",
    "requested": "requested_time",
    "submit": "submit_time",
    "wait": "wait_time",
}
_DURATION = re.compile(rf"(?<![\w.])(?:{WITH_UNITS.pattern})(?![\w.])")


def jobs_of(workload: Workload, condition: str) -> NDArray[np.bool_]:
    """Return for which jobs a condition holds, (n_jobs,).

    Warns
    -----
    WorkloadWarning : it asks of what is unknown for all jobs.

    Raises
    ------
    WorkloadError : an unknown name, or no condition.
    """
    if not isinstance(condition, str):
        raise WorkloadError(f"a condition is a text, such as 'user == 3', not {condition!r}")
    table = workload.to_pandas()
    asked = _DURATION.sub(lambda match: str(in_seconds(match[0])), condition)
    short = {name: column for name, column in _SHORT.items() if name not in table}
    table = table.assign(**{name: table[column] for name, column in short.items()})
    asked, called = _with_names(workload, asked, condition)
    try:
        kept = table.assign(**called).eval(asked)
    except NameError as error:
        known = [*short, *(str(column) for column in table if column not in short)]
        problem = unknown("column", str(error).split("'")[1], known)
        raise _wrong(condition, problem) from None
    except Exception as error:  # whatever pandas raises for the text
        example = "as 'wait > 2h and processors > 16' can"
        raise WorkloadError(f"{condition!r} cannot be asked of jobs, {example}: {error}") from None
    if getattr(kept, "dtype", None) != np.bool_:
        raise WorkloadError(f"{condition!r} is no condition: it must be true or false of each job")
    return np.asarray(kept)


def _with_names(workload: Workload, asked: str, condition: str) -> tuple[str, dict[str, Any]]:
    """Return a condition in which names are compared with columns of names, and these columns."""
    try:
        tree = ast.parse(asked.strip(), mode="eval")
    except SyntaxError:  # which pandas says better
        return asked, {}
    for word in _words_in(tree):
        values = workload.columns.get(_SHORT.get(word.id, word.id))
        if values is not None and is_missing(values):
            text = f"{condition!r}: {word.id} is unknown for all jobs of {workload.name}"
            warn_caller(text, WorkloadWarning)
    columns: dict[str, Any] = {}
    for compared in ast.walk(tree):  # user == 'alice', user.isin(['alice'])
        if not isinstance(compared, ast.Compare | ast.Call):
            continue
        constants = (part for part in ast.walk(compared) if isinstance(part, ast.Constant))
        texts = [constant.value for constant in constants if isinstance(constant.value, str)]
        for word in _words_in(compared) if texts else ():
            column = NAMED.get(word.id, word.id)
            if column not in NAMED.values():
                continue
            called = called_in(workload, column)
            known = dict.fromkeys([*names_of(workload, column).values(), *called])
            if not any(known):
                raise _wrong(condition, f"{word.id} is unknown for all jobs of {workload.name}")
            if wrong := next((text for text in texts if text not in known), None):
                raise _wrong(condition, unknown(word.id, wrong, known))
            word.id = f"{column}_called"
            columns[word.id] = called
    return ast.unparse(tree) if columns else asked, columns


def _words_in(tree: ast.AST) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _wrong(condition: str, problem: str) -> WorkloadError:
    return WorkloadError(f"{condition!r} cannot be asked of jobs: {problem}")
