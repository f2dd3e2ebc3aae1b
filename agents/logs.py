"""Where the numbers of a training go: a table, TensorBoard, Weights & Biases, or all of them.

A log is called with the steps done and a flat dictionary of numbers, ``log(2048,
{"train/mean_bsld": 31.5})``; any function of these two is one.

>>> from hpcgym.agents.logs import joined
>>> log = joined(lambda steps, values: print(steps, values))
>>> log(64, {"train/mean_bsld": 2.5})
64 {'train/mean_bsld': 2.5}
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, installing
from hpcgym.files.writing import whole_text

Log = Callable[[int, Mapping[str, float]], None]


def csv_log(path: str | Path) -> Log:
    """Return a log that is a table: a row a call, a column "steps" and one for each key.

    The file is written anew at each call, whole.
    """
    rows: list[dict[str, float]] = []

    def log(steps: int, values: Mapping[str, float]) -> None:
        rows.append({"steps": steps, **values})
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with whole_text(path, folders=True) as file:
            table = csv.DictWriter(file, columns, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)

    return log


def tensorboard_log(folder: str | Path) -> Log:
    """Return a log for TensorBoard.

    Raises
    ------
    HpcgymError : PyTorch or TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise HpcgymError(f"TensorBoard's logs need it: {installing('agents')} ({error})") from None
    writer: Any = SummaryWriter(str(folder))

    def log(steps: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, steps)
        writer.flush()

    return log


def wandb_log(**settings: Any) -> Log:
    """Return a log for Weights & Biases; ``settings`` are those of ``wandb.init``.

    Raises
    ------
    HpcgymError : wandb is not installed.
    """
    try:
        wandb = import_module("wandb")
    except ImportError:
        raise HpcgymError("logs for Weights & Biases need the package wandb") from None
    run: Any = wandb.init(**settings)

    def log(steps: int, values: Mapping[str, float]) -> None:
        run.log(dict(values), step=steps)

    return log


def joined(*logs: Log | None) -> Log:
    """Return a log that hands on what it is told to all of these but None."""

    def log(steps: int, values: Mapping[str, float]) -> None:
        for one in logs:
            if one is not None:
                one(steps, values)

    return log
