"""A small suite of its own, in place of that of the package: one task of each kind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpcgym.suite import tasks as module

sys.path.append(str(Path(__file__).parents[2] / "scripts"))  # for freeze_suite

SMALL = """
suite = "small-v1"
split = [0.6, 0.2]
seeds = [0, 1]

[kinds.select]
env = "hpcgym/JobSelection-v1"
easy = "easy"
options = { start = "warm", warmup = "3h", arrivals = "continue", horizon = "1d", \
backfill = "none", reservation = "kept", skip_forced = true, window = 16 }

[kinds.order]
env = "hpcgym/QueueOrdering-v1"
easy = "easy"
options = { start = "warm", warmup = "3h", arrivals = "continue", horizon = "1d", window = 16 }

[kinds.weights]
env = "hpcgym/MixedPolicy-v1"
easy = "easy"
options = { start = "warm", warmup = "3h", arrivals = "continue", horizon = "1d", window = 16, \
scale = "spread" }

[kinds.power]
env = "hpcgym/EnergyBudget-v0"
easy = "easy"
options = { share = 0.6, window = 16 }

[kinds.pairs]
env = "hpcgym/CoSchedule-v0"
easy = "easy-co"
options = { window = 8, neighbours = 4 }

[traces.pool]
kinds = ["select", "order", "weights"]
workload = "lublin:jobs=1200,processors=32,load=0.7,seed=3"
processors = 32
digest = "1efd41c28881a248456a324172d44100f96370a039d4533216ac931dcee9995b"
best = { area = -1.0 }
window = 40
steps = 30

[traces.nodes]
kinds = ["power"]
workload = "lublin:jobs=600,processors=16,load=0.7,seed=4"
processors = 16
digest = "1ab0a3510f36ca2574d7afcc25b3b3ac403d02ae4de90f70629b90927b548f61"
best = { area = -1.0 }
window = 40
steps = 30

[traces.codes]
kinds = ["pairs"]
workload = "codes:jobs=600,processes=96,processors=768"
processors = 768
digest = "b29dbb06b109f9d8aa9fa612cbd3b6bf4708bbaa62bfa30766c72c30fe7c0374"
best = "sjf-co"
window = 40
steps = 30

[traces.tiny]
mini = true
kinds = ["order"]
workload = "lublin:jobs=400,processors=32,load=0.7,seed=5"
processors = 32
digest = "9e9ed9b3ed861152a1cb5fb346580e352cd7f826b41cd2a9b812fe2c403cc012"
best = { area = -1.0 }
window = 40
steps = 30

[traces.open]
kinds = ["order"]
workload = "CTC-SP2"
processors = 338
window = 40
steps = 30
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small suite; its file."""
    path = tmp_path / "tasks.toml"
    path.write_text(SMALL)
    monkeypatch.setattr(module, "FILE", path)
    for kept in (module.tasks, module.suite, module._contents):
        kept.cache_clear()
    yield path
    for kept in (module.tasks, module.suite, module._contents):
        kept.cache_clear()
