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


def refused(path: Path, folder: Path, places: tuple[Any, ...], change: Any, message: str) -> None:
    """Check that a file with another value in one place is refused in one line that names it."""
    bad = folder / "bad.pt"
    torch.save(changed(torch.load(path, weights_only=True), places, change), bad)
    with pytest.raises(HpcgymError, match=message) as caught:
        load(bad)
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value * math.nan, "has values that no training leads to"),
        (lambda value: value + math.inf, "has values that no training leads to"),
        (lambda value: value.double() * 0 + 1e300, "has values that no training leads to"),
        (lambda value: value.to(torch.complex64), "must be a tensor of real numbers"),
        (lambda value: value.long(), "must be a tensor of real numbers"),
        (lambda value: "x", "must be a tensor of real numbers"),
        (lambda value: value[None], "has the shape"),
        (lambda value: torch.zeros(1).expand(value.shape[0], 10**5), "not all numbers are stored"),
    ],
)
def test_weights_that_cannot_be_are_refused(
    kind: str, change: Any, message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    refused(files[kind], tmp_path, ("weights", "score.3.weight"), change, message)


@pytest.mark.parametrize(
    ("kind", "places", "change", "message"),
    [
        ("clone", ("env_id",), lambda value: "x", "'env_id' is 'x'"),
        *((kind, ("format",), lambda value: torch.zeros(3), "is not the file") for kind in KINDS),
        *((kind, ("env_options",), lambda value: 3, "is of another kind") for kind in KINDS),
        *(
            (kind, ("seed",), lambda value: torch.zeros(1).expand(10**6), "not all numbers are")
            for kind in KINDS
        ),
        *(
            (kind, ("weights",), lambda of: {**of, "other": of}, "not those of such a network")
            for kind in ("clone", "job-ppo", "maskable-ppo")
        ),
        ("maskable-ppo", ("value", "bias"), lambda value: value[:0], "has the shape"),
        ("job-ppo", ("kind",), lambda value: "weights", "unknown kind 'weights'"),
        ("job-ppo", ("order",), lambda value: "lifo", "unknown order 'lifo'"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_are_refused(
    kind: str, places: Any, change: Any, message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    refused(files[kind], tmp_path, places, change, message)


def test_weights_without_numbers_are_not_written(files: dict[str, Path], tmp_path: Path) -> None:
    (path := tmp_path / "agent.pt").write_bytes(files["clone"].read_bytes())
    agent = load(path)
    torch.nn.init.constant_(agent.network.of_job.bias, math.nan)
    with pytest.raises(HpcgymError, match="a lower learning_rate may help"):
        agent.save(path)
    assert path.read_bytes() == files["clone"].read_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"passes": "x"}, "unknown passes 'x'"),
        ({"passez": "per-event"}, r"bad\.pt: env_options: .* did you mean 'passes'"),
    ],
)
def test_an_evaluation_names_the_file_of_wrong_rules(
    wrong: dict[str, str], message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pt"
    network_files.write(bad, {**contents_of(files["maskable-ppo"]), "env_options": wrong})
    with pytest.raises(HpcgymError, match=message):
        evaluate([str(bad)], WORKLOAD, jobs=20, n=1, budget=0)


def test_older_files_say_what_is_decided_in_other_words(files: dict[str, Path]) -> None:
    contents = contents_of(files["job-ppo"])
    for word, kind in (("selection", "select"), ("ordering", "order")):
        assert job_ppo_of({**contents, "kind": word}).kind == kind
    with pytest.raises(HpcgymError, match="unknown kind 'weights'"):
        job_ppo_of({**contents, "kind": "weights"})


# --- Files that hold no agent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pt", "nothing", "is not the file of an agent of this version: it is not JSON"),
        ("a.zip", "nothing", "a.zip is no archive: it is damaged, or no model of Stable-Baselines"),
        ("a.pt", {"weights": 1}, "is not the file of an agent"),
        ("a.pt", {"format": 1, "agent": "x"}, "holds an agent that this version does not know"),
        ("a.json", "{}", "holds no agent: it names none"),
        ("a.json", '{"agent": "xness"}', "does not know: did you mean 'xnes'"),
        ("a.json", '{"agent": ["xnes"]}', "does not know"),
        ("a.json", "[]", "it holds no object of JSON"),
        (
            "a.json",
            '{"agent": "clone"}',
            "is not the file of an agent of this version: clone has fil",
        ),
        ("a.json", None, "a.json: no such file"),
    ],
)
def test_files_that_hold_no_agent(name: str, content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if isinstance(content, dict):
        torch.save(content, path)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(HpcgymError, match=message):
        load(path)


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
    assert done.stdout.count("pip install '.[agents]'") == 2
