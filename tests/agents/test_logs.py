"""Where the numbers of a training go."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from hpcgym.agents.practice import csv_log, joined, tensorboard_log, wandb_log
from hpcgym.errors import HpcgymError


def test_a_table_has_a_column_for_each_key(tmp_path) -> None:
    log = csv_log(tmp_path / "new" / "log.csv")
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25, "validation/mean_bsld": 3.0})
    text = (tmp_path / "new" / "log.csv").read_text()
    assert text == "steps,train/loss,validation/mean_bsld\n64,0.5,\n128,0.25,3.0\n"


def test_tensorboard_is_told(tmp_path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = tensorboard_log(tmp_path)
    log(64, {"train/loss": 0.5})
    log(128, {"train/loss": 0.25})
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("train/loss")
    assert [(event.step, event.value) for event in events] == [(64, 0.5), (128, 0.25)]


def test_wandb_is_told(monkeypatch) -> None:
    told: list = []
    run = SimpleNamespace(log=lambda values, step: told.append((step, values)))
    fake = SimpleNamespace(init=lambda **settings: told.append(settings) or run)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    wandb_log(project="mine")(64, {"train/loss": 0.5})
    assert told == [{"project": "mine"}, (64, {"train/loss": 0.5})]


def test_what_is_missing_is_said(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(HpcgymError, match="need the package wandb"):
        wandb_log()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(HpcgymError, match="TensorBoard's logs need it: pip install"):
        tensorboard_log(tmp_path)


def test_several_are_told() -> None:
    told: list = []
    log = joined(lambda *one: told.append(one), None, lambda *one: told.append(one))
    log(1, {"a": 2.0})
    assert told == [(1, {"a": 2.0})] * 2
