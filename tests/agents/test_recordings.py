"""Recordings that are damaged."""

from __future__ import annotations

import numpy as np
import pytest

import hpcgym
from hpcgym.agents import behaviour_cloning as cloning
from hpcgym.agents.recordings import check_selections, load_recording, record

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A recording of two episodes."""
    path = tmp_path_factory.mktemp("recordings") / "sjf.npz"
    options = {"window": 16, "backfill": "none"}
    record("sjf", WORKLOAD, path, jobs=20, record_episodes=2, env_options=options)
    return path


def hidden(mask):
    """Return a mask of which the first row shows nothing."""
    mask[0] = 0
    return mask


def with_nan(field):
    """Return a field with a value that is none."""
    field[3, 1] = np.nan
    return field


def with_nan_at_an_end(field):
    field[1, 0] = np.nan
    return field


#: Entry, what is made of it (None: it is left out), and what is said.
DAMAGES = [
    ("jobs", with_nan, r"jobs\[3, 1, 0\] is nan"),
    ("queue", with_nan, r"queue\[3, 1\] is nan"),
    ("time", lambda one: one + 9, r"time\[0, 0\] is "),
    ("cluster", lambda one: one.astype(np.float64) + 1e300, r"cluster\[0, 0\] is 1e\+300"),
    ("jobs", lambda one: one.astype(complex), "'jobs' has values of a kind"),
    ("jobs", lambda one: one.astype(str), "'jobs' has values of a kind"),
    ("queue", lambda one: one.astype("M8[s]"), "'queue' has values of a kind"),
    ("queue", lambda one: one[..., None], "'queue' has the shape"),
    ("queue", lambda one: one[:-1], "'queue' has the shape"),
    ("queue", lambda one: one[:, :0], "'queue' is empty"),
    ("jobs", lambda one: one[:, :, 0], "'jobs' has the shape"),
    ("jobs", None, "'jobs' is missing"),
    ("mask", None, "'mask' is missing"),
    ("mask", lambda one: one[:, :-1], r"'mask' has the shape \(\d+, 15\), at the ends \(2, 16\)"),
    ("mask", hidden, r"actions\[0\] is a place of the window without a job"),
    ("mask", lambda one: one * 0, "without a job"),
    ("actions", lambda one: one * 0 + 10**6, r"actions\[0\] is 1000000"),
    ("actions", lambda one: one * 0 - 5, r"actions\[0\] is -5"),
    ("actions", lambda one: one * 0 + 16, r"actions\[0\] is 16"),
    ("actions", lambda one: one * 0.5, "'actions' has values of a kind"),
    ("actions", lambda one: one[:, None], "'actions' has the shape"),
    ("actions", lambda one: one[0], "no transitions"),
    ("rewards", lambda one: one * np.nan, r"rewards\[0\] is "),
    ("rewards", lambda one: one[:, None], "'rewards' has the shape"),
    ("terminations", lambda one: one.astype(float), "'terminations' has values of a kind"),
    ("terminations", lambda one: one & False, "its last episode does not end"),
    ("terminations", lambda one: one | True, r"'about' does not name its \d+ episodes"),
    ("truncations", None, "an older hpcgym has written it, without truncations: record it anew"),
    ("last.jobs", None, "'jobs' at the ends of episodes is missing"),
    ("last.jobs", with_nan_at_an_end, r"last\.jobs\[1, 0, 0\] is nan"),
    ("last.queue", lambda one: one[1:], r"'last\.queue' has the shape \(1, \d+\), with 2 episodes"),
    ("orders", lambda one: one - 2, r"orders\[0, 0\] is "),
    ("bounds", lambda one: one.astype(str), "'bounds' has values of a kind"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGES)
def test_a_damaged_recording_is_said_in_one_line(name, change, message, path, tmp_path):
    arrays = dict(np.load(path))
    if name == "orders":
        arrays["orders"] = np.zeros((len(arrays["actions"]), 2), np.int32)
    entry = arrays.pop(name)
    if change is not None:
        arrays[name] = change(entry)
    bad, output = tmp_path / "bad.npz", tmp_path / "good.pt"
    np.savez(bad, **arrays)
    output.write_bytes(b"what was there")
    with pytest.raises(hpcgym.HpcgymError, match=message) as caught:
        cloning.train(recording=bad, steps=1, output=output)
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert output.read_bytes() == b"what was there"


def test_names_of_episodes_are_texts(path):
    read = load_recording(path)
    for named in ([3, 4], ["one"], None):
        wrong = read._replace(about={**read.about, "episodes": named})
        with pytest.raises(hpcgym.HpcgymError, match="'about' does not name its 2 episodes"):
            check_selections(wrong)


def test_a_recording_in_memory_is_looked_at_too(path):
    read = load_recording(path)
    wrong = read._replace(actions=read.actions + 16)
    with pytest.raises(hpcgym.HpcgymError, match="recording: actions"):
        cloning.train(recording=wrong, steps=1)
    narrow = [{**each, "mask": each["mask"][:, :-1]} for each in (read.observations, read.last)]
    with pytest.raises(hpcgym.HpcgymError, match="'mask' and 'jobs' are of windows of different"):
        check_selections(read._replace(observations=narrow[0], last=narrow[1]))


def test_numbers_may_have_other_types(path, tmp_path):
    """Wide, narrow or of another byte order: what they are is what counts."""
    arrays = dict(np.load(path))
    kinds = {"jobs": "f8", "queue": ">f4", "actions": "u2", "mask": "?"}
    other = tmp_path / "other.npz"
    np.savez(
        other, **{name: one.astype(kinds.get(name, one.dtype)) for name, one in arrays.items()}
    )
    one, two = (cloning.train(recording=each, steps=3) for each in (path, other))
    for mine, theirs in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert (mine == theirs).all()
