"""Files of networks that are damaged, and what stays of a file where a training fails."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import hpcgym
from hpcgym.agents import behaviour_cloning, load, maskable_ppo, recordings
from hpcgym.study import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
SMALL = {"jobs": 20, "n_envs": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "width": 4}
OPTIONS = {
    "maskable-ppo": {"window": 16, "backfill": "none"},
    "clone": {"window": 32, "backfill": "none"},
}


def train(kind: str, recording: Any, **given: Any) -> Any:
    """Train an agent of a kind for a moment."""
    if kind == "clone":
        return behaviour_cloning.train(recording=recording, width=4, **{"steps": 4, **given})
    options = {} if given.get("resume") else {"env_options": OPTIONS[kind]}
    return maskable_ppo.train(WORKLOAD, **{**SMALL, "steps": 64, **options, **given})


@pytest.fixture(scope="module")
def recording() -> Any:
    """What a policy did in two episodes."""
    options = OPTIONS["clone"]
    return recordings.record("sjf", WORKLOAD, jobs=40, record_episodes=2, env_options=options)


@pytest.fixture(scope="module")
def files(recording, tmp_path_factory) -> dict[str, Path]:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("networks")
    paths = {kind: folder / f"{kind}.pt" for kind in OPTIONS}
    for kind, path in paths.items():
        train(kind, recording, output=path)
    return paths


def changed(contents: Any, places: tuple[Any, ...], change: Any) -> Any:
    """Return contents with another value in one place; ``change`` is given what stands there."""
    if not places:
        return change(contents)
    return {**contents, places[0]: changed(contents[places[0]], places[1:], change)}


def spread_out(numbers: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape of which one number is stored."""
    return torch.zeros(1).expand(numbers.shape)


KINDS = sorted(OPTIONS)

#: Where in the file of a network, what to make of what stands there, and what is said of it.
OF_WEIGHTS = [
    (lambda one: one * math.nan, "has values that no training leads to"),
    (lambda one: one + math.inf, "has values that no training leads to"),
    (lambda one: one.double() * 0 + 1e300, "has values that no training leads to"),
    (lambda one: one.to(torch.complex64), "must be a tensor of real numbers"),
    (lambda one: one.long(), "must be a tensor of real numbers"),
    (lambda one: "x", "must be a tensor of real numbers"),
    (lambda one: one[None], "has the shape"),
]
EVERYWHERE = [
    (("env_id",), lambda one: "lublin", "'env_id' is 'lublin'"),
    (("weights",), lambda one: {**one, "other": one}, "'weights' are not those of such a network"),
    (("steps",), lambda one: 2**70, "'steps' is"),
    (("steps",), lambda one: -1, "'steps' is"),
    (("format",), lambda one: torch.zeros(3), "is not the file of an agent"),
    (("seed",), lambda one: torch.zeros(1).expand(10**6), "not all numbers are stored"),
]
OF_RESUMED = [
    (("env_options", "passes"), lambda one: "x", "unknown passes 'x'"),
    (("env_options", "features"), lambda one: [["a"]], "features must be names of features"),
    (("env_options",), lambda one: {**one, "reward": "x"}, "unknown reward 'x'"),
    (("optimizer", "state", 3, "exp_avg"), lambda one: "x", r"state\[3\]\['exp_avg'\] must be a"),
    (("optimizer", "state", 4, "step"), lambda one: one * 0 - 1, r"state\[4\]\['step'\] is below"),
    (("optimizer", "state", 4, "exp_avg_sq"), lambda one: one - 1, "is below 0"),
    (("optimizer", "state", 4, "exp_avg"), lambda one: one * math.nan, "no training leads to"),
    (("optimizer", "state", 0, "exp_avg"), lambda one: one[:1], "has the shape"),
    (("optimizer", "state", 0, "exp_avg"), spread_out, "not all numbers are stored"),
    (("optimizer", "state", 4), lambda one: {}, "is not that of Adam"),
    (("optimizer", "state"), lambda one: {10**6: one[0]}, "no such parameter"),
    (("optimizer",), lambda one: {}, "is not the file of a"),
]


def damaged(path: Path, folder: Path, places: tuple[Any, ...], change: Any) -> Path:
    """Write a file with another value in one place."""
    bad = folder / "bad.pt"
    torch.save(changed(torch.load(path, weights_only=True), places, change), bad)
    return bad


def refused(bad: Path, message: str, act: Any) -> None:
    """Check that a file is refused in one line that names it."""
    with pytest.raises(hpcgym.HpcgymError, match=message) as caught:
        act()
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("change", "message"), OF_WEIGHTS)
def test_weights_that_cannot_be_are_refused(kind, change, message, files, recording, tmp_path):
    bad = damaged(files[kind], tmp_path, ("weights", "score.3.weight"), change)
    refused(bad, message, lambda: load(bad))
    refused(bad, message, lambda: train(kind, recording, resume=bad))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("places", "change", "message"), EVERYWHERE)
def test_files_that_cannot_be_are_refused(
    kind, places, change, message, files, recording, tmp_path
):
    bad = damaged(files[kind], tmp_path, places, change)
    refused(bad, message, lambda: load(bad))
    refused(bad, message, lambda: train(kind, recording, resume=bad))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("places", "change", "message"), OF_RESUMED)
def test_what_a_training_cannot_go_on_from_is_said(
    kind, places, change, message, files, recording, tmp_path
):
    bad = damaged(files[kind], tmp_path, places, change)
    output = tmp_path / "good.pt"
    output.write_bytes(files[kind].read_bytes())
    refused(bad, message, lambda: train(kind, recording, resume=bad, output=output))
    assert output.read_bytes() == files[kind].read_bytes()


def test_what_is_set_of_an_optimiser_is_that_of_the_new_training(files, recording, tmp_path):
    """A file may say of it what it likes: the same weights come out."""

    def odd(groups: Any) -> Any:
        return [{**groups[0], "betas": "x", "params": [10**9], "weight_decay": math.nan}]

    for kind in KINDS:
        bad = damaged(files[kind], tmp_path, ("optimizer", "param_groups"), odd)
        usual = train(kind, recording, resume=files[kind], seed=4)
        other = train(kind, recording, resume=bad, seed=4)
        one, two = (agent.network.state_dict() for agent in (usual, other))
        assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_file_of_another_agent_is_refused(files, recording):
    """A clone goes on from clones only; MaskablePPO begins with one, too."""
    other = files["maskable-ppo"]
    refused(other, "holds no clone", lambda: train("clone", recording, resume=other))


# --- What stays where a training fails ------------------------------------------------------------


class BrokenError(RuntimeError):
    """What goes wrong in the middle of a training."""


def stop_at(monkeypatch: pytest.MonkeyPatch, updates: int, error: BaseException) -> None:
    """Let optimisers raise an error in place of an update, after some."""
    step, count = torch.optim.Adam.step, [0]

    def counted(self: Any, *arguments: Any, **more: Any) -> Any:
        count[0] += 1
        if count[0] > updates:
            raise error
        return step(self, *arguments, **more)

    monkeypatch.setattr(torch.optim.Adam, "step", counted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resumed", [True, False])
def test_an_error_leaves_the_file_that_was_there(
    kind, resumed, files, recording, tmp_path, monkeypatch
):
    output = tmp_path / "good.pt"
    output.write_bytes(files[kind].read_bytes())
    stop_at(monkeypatch, 3, BrokenError())
    resume = {"resume": output} if resumed else {}
    with pytest.raises(BrokenError):
        train(kind, recording, output=output, **resume)
    assert output.read_bytes() == files[kind].read_bytes()
    assert [one.name for one in tmp_path.iterdir()] == ["good.pt"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_training_is_saved_if_it_has_learned(
    kind, files, recording, tmp_path, monkeypatch
):
    output = tmp_path / "good.pt"
    output.write_bytes(files[kind].read_bytes())
    for updates, saved in ((0, False), (3, True)):
        with monkeypatch.context() as patch:
            stop_at(patch, updates, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                train(kind, recording, output=output, resume=files[kind])
        assert (output.read_bytes() != files[kind].read_bytes()) == saved
    assert load(output).name == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 64])
def test_a_training_without_numbers_is_said_and_not_written(
    kind, steps, files, recording, tmp_path
):
    """Steps of this length lead to infinite weights: at the end, or before the next update."""
    output = tmp_path / "good.pt"
    output.write_bytes(files[kind].read_bytes())
    with pytest.raises(hpcgym.HpcgymError, match="a lower learning_rate may help"):
        train(kind, recording, output=output, steps=steps, learning_rate=math.inf)
    assert output.read_bytes() == files[kind].read_bytes()


def test_so_it_is_where_distributions_refuse_nothing(tmp_path):
    """Some libraries tell torch not to look at what distributions are given."""
    validates = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        with pytest.raises(hpcgym.HpcgymError, match="a lower learning_rate may help"):
            train("maskable-ppo", None, output=tmp_path / "a.pt", learning_rate=math.inf)
    finally:
        torch.distributions.Distribution.set_default_validate_args(validates)


def test_a_checkpoint_stays_after_an_error(recording, tmp_path, monkeypatch):
    output = tmp_path / "new.pt"
    stop_at(monkeypatch, 3, BrokenError())
    with pytest.raises(BrokenError):
        train("clone", recording, output=output, checkpoint_s=0.0)
    assert torch.load(output, weights_only=True)["steps"] == 3


def test_a_mistake_in_a_value_stays_what_it_is():
    """Only a network without numbers explains that a value was refused."""
    network, saved = torch.nn.Linear(2, 1), []
    arguments = (lambda: saved.append(1), lambda: True, network)
    with pytest.raises(ValueError, match="other"), maskable_ppo.keeping(*arguments):
        raise ValueError("other")
    torch.nn.init.constant_(network.bias, math.nan)
    message = "weights that are no numbers"
    with pytest.raises(hpcgym.HpcgymError, match=message), maskable_ppo.keeping(*arguments):
        raise ValueError("other")
    assert not saved


# --- Options of environments ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"passes": "x"}, "unknown passes 'x'"), ({"passez": "per-event"}, "bad.pt is not ")],
)
def test_an_evaluation_names_the_file_of_wrong_rules(kind, wrong, message, files, tmp_path):
    bad = damaged(files[kind], tmp_path, ("env_options",), lambda one: {**one, **wrong})
    refused(bad, message, lambda: evaluate([str(bad)], WORKLOAD, jobs=20, n=1, budget=0))
