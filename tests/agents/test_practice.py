"""Where the numbers of a training go."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpcgym.agents.practice import csv_log, tensorboard_log
from hpcgym.errors import HpcgymError


def test_a_table_has_a_column_for_each_key(tmp_path: Path) -> None:
    log = csv_log(tmp_path / "new" / "log.csv")
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25, "validation/mean_bsld": 3.0})
    text = (tmp_path / "new" / "log.csv").read_text()
    assert text == "steps,train/loss,validation/mean_bsld\n64,0.5,\n128,0.25,3.0\n"


def test_tensorboard_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = tensorboard_log(tmp_path)
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25})
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("train/loss")
    assert [(event.step, event.value) for event in events] == [(64, 0.5), (128, 0.25)]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(HpcgymError, match="TensorBoard's logs need it: pip install"):
        tensorboard_log(tmp_path)
