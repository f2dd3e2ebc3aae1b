"""Recordings as data sets of Minari, read by the real library and by hpcgym."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

import hpcgym
from hpcgym.agents import behaviour_cloning
from hpcgym.agents.recordings import Recording, load_recording, record, write_minari

pytest.importorskip("pyarrow")

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
MIXED = ["random", "easy", "saf"]
SMALL: dict[str, Any] = {"jobs": 30, "record_episodes": 2}

#: Environment -> policies, and its options.
ENVIRONMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "hpcgym/JobSelection-v0": (MIXED, {"window": 16}),
    "hpcgym/JobSelection-v1": (["random", "saf"], {"window": 16, "horizon": "2h"}),
    "hpcgym/QueueOrdering-v0": (["saf", "sjf-list"], {"window": 6}),
    "hpcgym/MixedPolicy-v0": ("saf", {"observation": "flat", "interval": 5}),
}


def stored(recording: Recording) -> list[Any]:
    """All that a data set keeps of a recording, in one order."""
    arrays = [recording.actions, recording.rewards, recording.terminations, recording.truncations]
    return [
        *arrays,
        *(field for _, field in sorted(recording.observations.items())),
        *(field for _, field in sorted(recording.last.items())),
    ]


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def both(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path]:
    """A recording of an environment, and its data set."""
    policies, options = ENVIRONMENTS[request.param]
    path = tmp_path_factory.mktemp("sets") / "hpcgym" / "small-v3"
    given = {**SMALL, "env_options": options}
    return record(policies, WORKLOAD, path, env_id=request.param, **given), path


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed-v0"
    record(MIXED, WORKLOAD, path, **SMALL, env_options={"window": 16})
    return path


@pytest.mark.slow
def test_what_is_written_is_read(both: tuple[Recording, Path]) -> None:
    recording, path = both
    read = load_recording(path)
    assert read.about == json.loads(json.dumps(recording.about))
    assert set(read.observations) == set(recording.observations)
    for mine, theirs in zip(stored(recording), stored(read), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_minari_reads_it_and_recovers_the_environment(
    both: tuple[Recording, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each episode is played again, by its seed and its actions."""
    minari = pytest.importorskip("minari")
    recording, path = both
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(path.parent))
    data = minari.load_dataset("small-v3")
    assert (data.id, data.total_steps) == ("small-v3", len(recording.actions))
    assert len(data) == len(recording.about["episodes"])
    with hpcgym.envs.any_version():
        env = data.recover_environment()
    assert data.observation_space == env.observation_space
    assert data.action_space == env.action_space
    begin = 0
    told = data.storage.get_episode_metadata(data.episode_indices)
    for episode, about in zip(data, told, strict=True):
        steps = slice(begin, begin + len(episode))
        begin += len(episode)
        np.testing.assert_array_equal(episode.actions, recording.actions[steps])
        rewards, over = [], []
        seen = [env.reset(seed=about["seed"])[0]]
        for action in episode.actions:
            observation, reward, terminated, truncated, info = env.step(action)
            seen.append(observation)
            rewards.append(reward)
            over.append((terminated, truncated))
        assert rewards == episode.rewards.tolist()
        ends = zip(episode.terminations, episode.truncations, strict=True)
        assert over == [tuple(map(bool, one)) for one in ends]
        assert over.count((False, False)) == len(over) - 1
        assert info["episode_name"] == about["episode"]
        if isinstance(observation, dict):
            for name, field in episode.observations.items():
                np.testing.assert_array_equal(field, np.stack([one[name] for one in seen]))
        else:
            np.testing.assert_array_equal(episode.observations, np.stack(seen))


def test_policies_play_the_same_episodes_in_one_recording(mixed: Path) -> None:
    read = load_recording(mixed)
    about = read.about
    assert about["policy"] == "random, easy, saf"
    assert about["policies"] == ["random", "random", "easy", "easy", "saf", "saf"]
    assert about["episodes"][:2] * 3 == about["episodes"]
    alone = record("saf", WORKLOAD, **SMALL, env_options={"window": 16})
    first = read.ends[3] + 1
    np.testing.assert_array_equal(read.actions[first:], alone.actions)
    np.testing.assert_array_equal(read.rewards[first:], alone.rewards)


def test_episodes_that_are_cut_are_told_apart() -> None:
    """A horizon of two hours, in which not all jobs of an episode can have ended."""
    options = {"window": 16, "horizon": "2h"}
    done = record(
        "saf", WORKLOAD, env_id="hpcgym/JobSelection-v1", **SMALL, env_options=options
    )  # fmt: skip
    assert done.truncations.sum() == 2
    assert not done.terminations.any()
    assert done.about["env_options"]["skip_forced"] is True
    agent = behaviour_cloning.train(recording=done, steps=3)
    assert agent.env_options["horizon"] == "2h"


def test_agents_learn_the_same_of_both_kinds_of_files(mixed: Path, tmp_path: Path) -> None:
    file = tmp_path / "mixed.npz"
    record(MIXED, WORKLOAD, file, **SMALL, env_options={"window": 16})
    one, other = (
        behaviour_cloning.train(recording=path, steps=4).network.state_dict()
        for path in (mixed, file)
    )
    assert all((one[name] == other[name]).all() for name in one)


def test_what_minari_has_collected_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own functions, with infos, which are passed over."""
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gymnasium.make("hpcgym/JobSelection-v0", workload=WORKLOAD, window=8, jobs=10)
    buffers = []
    for seed in range(2):
        observation, info = env.reset(seed=seed)
        seen, actions, rewards, windows, over = [observation], [], [], [info["window"]], False
        while not over:
            actions.append(int(np.flatnonzero(info["action_mask"])[-1]))
            observation, reward, over, _, info = env.step(actions[-1])
            seen.append(observation)
            rewards.append(reward)
            windows.append(info["window"])
        buffers.append(
            minari.data_collector.EpisodeBuffer(
                seed=seed,
                observations={name: [one[name] for one in seen] for name in observation},
                actions=actions,
                rewards=rewards,
                terminations=[False] * (len(actions) - 1) + [True],
                truncations=[False] * len(actions),
                infos={"window": windows},
            )
        )
    with pytest.warns(UserWarning, match="author"):
        minari.create_dataset_from_buffers("own-v1", buffers, env=env, data_format="parquet")
    read = load_recording(tmp_path / "own-v1")
    assert read.actions.tolist() == [*buffers[0].actions, *buffers[1].actions]
    assert read.rewards.tolist() == [*buffers[0].rewards, *buffers[1].rewards]
    assert read.about["env_options"] == {"window": 8}
    assert read.about["seeds"] == [0, 1]
    for field in read.observations.values():
        assert len(field) == len(read.actions)
    assert behaviour_cloning.train(recording=read, steps=2).env_options == {"window": 8}


def test_the_environment_that_is_told_is_the_whole_one(mixed: Path) -> None:
    """Also what nobody has given, so that it stays the same when defaults change."""
    told = json.loads((mixed / "data" / "metadata.json").read_text())
    kwargs = EnvSpec.from_json(told["env_spec"]).kwargs
    assert kwargs["workload"] == WORKLOAD
    assert (kwargs["backfill"], kwargs["reservation"]) == ("easy", "revised")


def test_a_file_of_jobs_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hpcgym.workload.write_swf(hpcgym.load_workload(WORKLOAD), Path("jobs.swf"))
    record("saf", "jobs.swf", "own-v0", **SMALL)
    told = json.loads(Path("own-v0/data/metadata.json").read_text())
    assert json.loads(told["env_spec"])["kwargs"]["workload"] == str(tmp_path / "jobs.swf")


def test_names_on_the_way_are_the_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    for folder, name in ((tmp_path / "hpc" / "kth", "hpc/kth/saf-v0"), (tmp_path, "saf-v0")):
        record("saf", WORKLOAD, folder / "saf-v0", **SMALL)
        told = json.loads((folder / "saf-v0" / "data" / "metadata.json").read_text())
        assert told["dataset_id"] == name


# --- What is wrong --------------------------------------------------------------------------------


def damage(mixed: Path, place: str, change: Any) -> None:
    """Write a file of JSON anew, with what a function makes of it."""
    path = mixed / "data" / place
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def without_mask(told: Any) -> Any:
    space = json.loads(told["observation_space"])
    del space["subspaces"]["mask"]
    return {**told, "observation_space": json.dumps(space)}


def of_other_environment(told: Any) -> Any:
    other = told["env_spec"].replace("JobSelection-v0", "QueueOrdering-v0")
    return {**told, "env_spec": other}


#: Which file, what is made of it, and what is said.
TOLD = [
    ("metadata.json", without_mask, "'mask' is missing"),
    ("metadata.json", of_other_environment, "only what was done in hpcgym/JobSelection-v0 or -v1"),
    ("metadata.json", lambda one: {**one, "data_format": "hdf5"}, "its format is 'hdf5'"),
    ("metadata.json", lambda one: {**one, "total_episodes": 0}, "total_episodes must be a whole"),
    ("metadata.json", lambda one: {**one, "total_episodes": 7}, "has 0 files of Parquet"),
    ("metadata.json", lambda one: {**one, "env_spec": "x"}, "'env_spec' is not JSON"),
    ("metadata.json", lambda one: [], "is not that of a data set of Minari"),
    ("0/metadata.json", lambda one: [], "is not that of an episode of a data set of Minari"),
]


@pytest.mark.parametrize(("place", "change", "message"), TOLD)
def test_what_is_wrong_is_said_in_one_line(
    place: str, change: Any, message: str, mixed: Path
) -> None:
    damage(mixed, place, change)
    with pytest.raises(hpcgym.HpcgymError, match=message) as caught:
        behaviour_cloning.train(recording=mixed, steps=1)
    assert str(mixed) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_cut_or_missing_are_named(mixed: Path) -> None:
    file = mixed / "data" / "1" / "part-0.parquet"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(hpcgym.HpcgymError, match="not a Parquet file, or a damaged one") as caught:
        load_recording(mixed)
    assert str(file) in str(caught.value)
    file.unlink()
    with pytest.raises(hpcgym.HpcgymError, match="1 has 0 files of Parquet; an episode has one"):
        load_recording(mixed)
    shutil.rmtree(mixed / "data")
    with pytest.raises(hpcgym.HpcgymError, match=r"it has no data/metadata\.json"):
        load_recording(mixed)


@pytest.mark.slow
def test_lists_of_no_end_take_no_memory(mixed: Path) -> None:
    """Two rows of lists of a hundred million zeros each are a few kilobytes in a file."""
    import pyarrow as pa
    from pyarrow import parquet

    zeros = pa.array(np.zeros(2 * 10**8, np.int8))
    column = pa.FixedSizeListArray.from_arrays(zeros, 10**8)
    file = mixed / "data" / "0" / "part-0.parquet"
    parquet.write_table(pa.table({"rewards": column}), file, compression="zstd")
    with pytest.raises(hpcgym.HpcgymError, match=r"200,000,000 numbers in .* it is damaged"):
        load_recording(mixed)


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    jobs = hpcgym.load_workload(WORKLOAD)
    with pytest.raises(hpcgym.HpcgymError, match="workload is a Workload, which JSON cannot hold"):
        record("saf", jobs, tmp_path / "saf-v0", **SMALL)
    assert not list(tmp_path.iterdir())


def test_a_data_set_is_never_replaced(mixed: Path) -> None:
    """Which is said before the work: this policy cannot act."""
    before = sorted(mixed.rglob("*"))
    with pytest.raises(hpcgym.HpcgymError, match="is there already, and is not replaced"):
        record("no policy", WORKLOAD, mixed, **SMALL)
    assert sorted(mixed.rglob("*")) == before
    assert sorted(mixed.parent.iterdir()) == [mixed]


def test_spaces_that_it_has_no_words_for_are_refused(mixed: Path) -> None:
    read = load_recording(mixed)
    text = spaces.Text(3)
    with pytest.raises(hpcgym.HpcgymError, match="no data set of Minari has such a space here"):
        write_minari(mixed.with_name("other-v0"), read, text, text, "{}")
    assert sorted(mixed.parent.iterdir()) == [mixed]


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from hpcgym.agents.recordings import record\n"
        f"record('no policy', {WORKLOAD!r}, {str(tmp_path / 'saf-v0')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a data set of Minari needs pyarrow: pip install '.[parquet]'" in done.stderr
