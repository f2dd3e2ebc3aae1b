"""Files of agents that are damaged, or of other kinds."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mistakes import mistakes_of

from hpcgym.agents import contents_of, load, network_files
from hpcgym.agents.job_ppo import JobPpo
from hpcgym.agents.job_ppo import load as job_ppo_of
from hpcgym.agents.maskable_ppo import MaskablePpo, MaskedJobNetwork
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError
from hpcgym.study import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
CONTEXT = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE


def maskable(path: Path) -> None:
    """As older versions wrote it, with the state of an optimiser."""
    agent = MaskablePpo()
    agent.network = MaskedJobNetwork(8, CONTEXT, 4)
    agent.made_for({"window": 16})
    agent.head = torch.nn.Linear(8, 1).state_dict()
    agent.save(path)
    network_files.write(path, {**contents_of(path), "steps": 64, "seed": 1, "optimizer": {}})


def clone(path: Path) -> None:
    agent = MaskablePpo()
    agent.name, agent.network = "clone", MaskedJobNetwork(8, CONTEXT, 4)
    agent.made_for({})
    agent.save(path)


def job_ppo(path: Path) -> None:
    agent = JobPpo()
    agent.kind, agent.env_id, agent.env_options = "select", "hpcgym/JobSelection-v2", {}
    agent.save(path)


KINDS: dict[str, Callable[[Path], None]] = {
    "maskable-ppo": maskable,
    "clone": clone,
    "job-ppo": job_ppo,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("networks")
    for kind, write in KINDS.items():
        write(folder / f"{kind}.pt")
    return {kind: folder / f"{kind}.pt" for kind in KINDS}


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


#: Where the last weights of all networks are.
LAST = ("weights", "score.3.weight")


def without_numbers(path: Path) -> Any:
    """Return the agent of a file, whose weights have become no numbers."""
    agent = load(path)
    torch.nn.init.constant_(agent.network.of_job.bias, math.nan)
    return agent


def test_older_files_say_what_is_decided_in_other_words(files: dict[str, Path]) -> None:
    contents = contents_of(files["job-ppo"])
    for word, kind in (("selection", "select"), ("ordering", "order")):
        assert job_ppo_of({**contents, "kind": word}).kind == kind


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
        f"for do in (lambda: agents.load({str(path)!r}), lambda: agents.maskable_ppo):\n"
        "    try:\n        do()\n    except ValueError as error:\n        print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'hpcgym[agents]'") == 2


test_mistakes = mistakes_of(globals(), evaluate, fixtures=("files",))
