"""Files of agents that are damaged, or of other kinds."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from mistakes import mistakes_of

from hpcgym.agents import load, network_files
from hpcgym.agents.behaviour_cloning import Clone, MaskedJobNetwork
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError
from hpcgym.study import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
CONTEXT = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a network."""
    agent = Clone()
    agent.network = MaskedJobNetwork(8, CONTEXT, 4)
    agent.made_for({})
    agent.save(path := tmp_path_factory.mktemp("networks") / "clone.pt")
    return path


def changed(contents: Any, places: tuple[Any, ...], change: Any) -> Any:
    """Return contents with another value in one place; ``change`` is given what stands there."""
    if not places:
        return change(contents)
    return {**contents, places[0]: changed(contents.get(places[0]), places[1:], change)}


def other(path: Path, folder: Path, places: tuple[Any, ...], change: Any) -> Path:
    """Write a file with another value in one place."""
    bad = folder / "bad.pt"
    torch.save(changed(torch.load(path, weights_only=True), places, change), bad)
    return bad


#: Where its last weights are.
LAST = ("weights", "score.3.weight")


def without_numbers(path: Path) -> Any:
    """Return the agent of a file, whose weights have become no numbers."""
    agent = load(path)
    torch.nn.init.constant_(agent.network.of_job.bias, math.nan)
    return agent


# --- Files that hold no agent ---------------------------------------------------------------------


def test_loading_runs_no_code_from_the_file(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "harm"), "w"))

    path = tmp_path / "agent.pt"
    torch.save({"format": network_files.FORMAT, "agent": Harmful()}, path)
    with pytest.raises(HpcgymError, match="is not the file of an agent"):
        load(path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("before", [b"\n \t", "\ufeff\n".encode()], ids=["blank", "mark"])
def test_what_stands_before_json_makes_it_no_network(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "xnes.json"
    agent = Xnes("xnes3")
    agent.weights_ = {"wait": 1.0}
    agent.save(path)
    path.write_bytes(before + path.read_bytes())
    assert load(path).weights_ == {"wait": 1.0}


def test_the_package_alone_loads_no_torch_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save({}, path)
    code = (
        "import sys, hpcgym.agents as agents\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        f"for do in (lambda: agents.load({str(path)!r}), lambda: agents.behaviour_cloning):\n"
        "    try:\n        do()\n    except ValueError as error:\n        print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'hpcgym[agents]'") == 2


test_mistakes = mistakes_of(globals(), evaluate, fixtures=("clone",))
