"""Recordings of what policies do: what they hold, and that Minari reads what is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
from gymnasium.envs.registration import EnvSpec
from mistakes import mistakes_of
from plain_envs import plain

import hpcgym
from hpcgym.agents.recordings import Recording, load_recording, load_selections, record
from hpcgym.scheduler.rules import Scheduler

minari = pytest.importorskip("minari")

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
MIXED = ["random", "easy", "saf"]
SMALL: dict[str, Any] = {"jobs": 30, "record_episodes": 2}


def without_part(options: dict[str, Any]) -> dict[str, Any]:
    """Options of an environment that a recording may be given."""
    return {name: value for name, value in options.items() if name != "part"}


WINDOW = without_part(plain("JobSelection", {"window": 16}))

#: Environment -> policies, and its options.
ENVIRONMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "hpcgym/JobSelection-v2": (MIXED, {"window": 16, "horizon": "2h"}),
    "hpcgym/QueueOrdering-v2": (["saf", "sjf-list"], {"window": 6}),
    "hpcgym/MixedPolicy-v2": (["0.1,0.7,-0.3,0,0,0.2"], {"observation": "flat", "interval": 5}),
}


def arrays_of(recording: Recording) -> dict[str, Any]:
    """All arrays of a recording by name."""
    last = {f"last {name}": field for name, field in recording.last.items()}
    done = {name: getattr(recording, name) for name in recording._fields[1:5]}
    return {**recording.observations, **last, **done}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path]:
    """A recording of three policies, and its data set."""
    path = tmp_path_factory.mktemp("sets") / "mixed-v0"
    return record(MIXED, WORKLOAD, path, **SMALL, env_options=WINDOW), path


@pytest.fixture
def copied(mixed: tuple[Recording, Path], tmp_path: Path) -> Path:
    """The same data set, to be damaged."""
    return Path(shutil.copytree(mixed[1], tmp_path / "mixed-v0"))


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_minari_reads_what_is_written_and_plays_it_again(
    env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each episode, by its seed and its actions, in the environment that Minari recovers."""
    policies, options = ENVIRONMENTS[env_id]
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    path = tmp_path / "hpcgym" / "small-v3"
    recording = record(policies, WORKLOAD, path, env_id=env_id, **SMALL, env_options=options)
    read = load_recording(path)
    assert read.about == json.loads(json.dumps(recording.about))
    kept = arrays_of(read)
    for name, array in arrays_of(recording).items():
        assert kept[name].dtype == array.dtype
        np.testing.assert_array_equal(kept[name], array)
    data = minari.load_dataset("hpcgym/small-v3")
    assert (data.id, data.total_steps) == ("hpcgym/small-v3", len(recording.actions))
    env = data.recover_environment()
    assert data.observation_space == env.observation_space
    assert data.action_space == env.action_space
    told_of_episodes = data.storage.get_episode_metadata(data.episode_indices)
    for episode, about in zip(data, told_of_episodes, strict=True):
        seen = [env.reset(seed=about["seed"])[0]]
        for action, *rest in zip(
            episode.actions, episode.rewards, episode.terminations, episode.truncations,
            strict=True,
        ):  # fmt: skip
            observation, *outcome, _ = env.step(action)
            seen.append(observation)
            assert outcome == rest
        assert rest[1:].count(True) == 1
        assert env.unwrapped.episode_name == about["episode"]
        flat = not isinstance(observation, dict)
        for name in [None] if flat else list(observation):
            field = episode.observations if name is None else episode.observations[name]
            mine = seen if name is None else [observation_then[name] for observation_then in seen]
            np.testing.assert_array_equal(field, np.stack(mine))


def test_a_recording_is_what_happened() -> None:
    given: dict[str, Any] = {"jobs": 40, "record_episodes": 3}
    options = plain("JobSelection", {"window": 32, "backfill": "none"})
    done = record("sjf", WORKLOAD, **given, env_options=without_part(options))
    n = len(done.actions)
    assert done.observations["jobs"].shape == (n, 32, 14)
    assert done.terminations.sum() == len(done.about["episodes"]) == 3
    # shortest first, in what the observation shows
    requested = done.observations["jobs"][:, :, 1]
    shortest = np.where(done.observations["mask"] == 0, np.inf, requested).min(axis=1)
    assert np.array_equal(requested[np.arange(n), done.actions], shortest)
    # the rewards of an episode add up to what the same schedule has
    start, stop = map(int, done.about["episodes"][0].removeprefix("rows ").split(":"))
    jobs = hpcgym.load_workload(WORKLOAD).take(slice(start, stop))
    result = hpcgym.simulate(jobs, policy="sjf", backfill="none")
    first = done.rewards[: done.ends[0] + 1]
    assert -first.sum() == pytest.approx(result.metrics["mean_bsld"])


def test_policies_play_the_same_episodes(mixed: tuple[Recording, Path]) -> None:
    both, about = mixed[0], mixed[0].about
    assert about["policy"] == "random, easy, saf"
    assert about["policies"] == ["random", "random", "easy", "easy", "saf", "saf"]
    assert about["episodes"][:2] * 3 == about["episodes"]
    alone = record("saf", WORKLOAD, **SMALL, env_options=WINDOW)
    first = both.ends[3] + 1
    np.testing.assert_array_equal(both.actions[first:], alone.actions)
    np.testing.assert_array_equal(both.rewards[first:], alone.rewards)


def test_rules_of_a_name_are_those_of_the_recording() -> None:
    done = record("easy-sjbf", WORKLOAD, jobs=20, record_episodes=1)
    assert done.about["env_options"]["backfill_order"] == "sjbf"
    done = record("sjf-list", WORKLOAD, jobs=20, record_episodes=1)
    assert done.about["env_options"]["backfill"] == "none"


def test_policies_of_ones_own_are_recorded() -> None:
    class First:
        def act(self, observation: Any, info: Any) -> int:
            return 0

    def first(view: Any) -> Any:
        return view.in_order(range(len(view.job)))

    done = record(First(), WORKLOAD, **SMALL)
    assert done.about["policy"] == "First"
    assert set(done.actions.tolist()) == {0}
    assert record(first, WORKLOAD, **SMALL).about["policy"] == "first"


def test_what_minari_has_collected_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own functions, with infos, which are passed over."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = plain_envs.make("hpcgym/JobSelection-v2", workload=WORKLOAD, window=8, jobs=10)
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
                observations={name: [step[name] for step in seen] for name in observation},
                actions=actions,
                rewards=rewards,
                terminations=[False] * (len(actions) - 1) + [True],
                truncations=[False] * len(actions),
                infos={"window": windows},
            )
        )
    with pytest.warns(UserWarning, match="author"):
        minari.create_dataset_from_buffers("own-v1", buffers, env=env, data_format="parquet")
    read = load_selections(tmp_path / "own-v1")
    assert read.actions.tolist() == [*buffers[0].actions, *buffers[1].actions]
    assert read.rewards.tolist() == [*buffers[0].rewards, *buffers[1].rewards]
    assert read.about["env_options"] == WINDOW | {"window": 8}
    assert read.about["seeds"] == [0, 1]


# --- How the environment is told ------------------------------------------------------------------


def spec_in(path: Path) -> Any:
    metadata = json.loads((path / "data" / "metadata.json").read_text())
    return EnvSpec.from_json(metadata["env_spec"])


def test_the_environment_that_is_told_is_the_whole_one(mixed: tuple[Recording, Path]) -> None:
    """Also what nobody has given, so that it stays the same when defaults change."""
    kwargs = spec_in(mixed[1]).kwargs
    assert kwargs["workload"] == WORKLOAD
    assert (kwargs["backfill"], kwargs["reservation"]) == ("easy", "revised")


def test_a_file_of_jobs_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hpcgym.workload.write_swf(hpcgym.load_workload(WORKLOAD), Path("jobs.swf"))
    record("saf", "jobs.swf", "own-v0", **SMALL)
    assert spec_in(Path("own-v0")).kwargs["workload"] == str(tmp_path / "jobs.swf")


@pytest.mark.parametrize("what", ["workload", "cluster"])
def test_an_environment_of_objects_is_not_recovered_as_another_one(
    what: str, tmp_path: Path
) -> None:
    """It has no workload any more, so that no environment can be made of what is left."""
    jobs, machine = hpcgym.load_workload(WORKLOAD), hpcgym.Cluster(32)
    given = (jobs, None) if what == "workload" else (WORKLOAD, machine)
    done = record("saf", given[0], tmp_path / "own-v0", cluster=given[1], **SMALL)
    assert spec_in(tmp_path / "own-v0").kwargs.keys().isdisjoint({what, "workload"})
    read = load_recording(tmp_path / "own-v0")
    np.testing.assert_array_equal(read.rewards, done.rewards)
    assert read.about["env_options"] == json.loads(json.dumps(done.about["env_options"]))


# --- What is wrong --------------------------------------------------------------------------------


def without_mask(metadata: Any) -> Any:
    space = json.loads(metadata["observation_space"])
    del space["subspaces"]["mask"]
    return {**metadata, "observation_space": json.dumps(space)}


def of_other_environment(metadata: Any) -> Any:
    other = metadata["env_spec"].replace("JobSelection-v2", "QueueOrdering-v2")
    return {**metadata, "env_spec": other}


def without_spaces(metadata: Any) -> Any:
    return {name: value for name, value in metadata.items() if name != "action_space"}


def retold(folder: Path, place: str, change: Callable[[Any], Any]) -> Path:
    """Change what a file of a data set tells; return the data set."""
    file = folder / "data" / place
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    return folder


def steps_in(folder: Path) -> Path:
    return next((folder / "data" / "1").glob("*.parquet"))


def cut(folder: Path) -> Path:
    """Leave half of a file of steps; return the data set."""
    file = steps_in(folder)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return folder


def with_column(folder: Path, column: str, value: Any) -> Path:
    """Give all steps of an episode the same value of a column; return the data set."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(steps_in(folder))
    wrong = pa.array([value] * len(table), type=table[column].type)
    place = table.column_names.index(column)
    parquet.write_table(table.set_column(place, column, wrong), steps_in(folder))
    return folder


def with_value(name: str, place: Any, value: float) -> Callable[[Recording], Recording]:
    """What puts a value into the observations, or into the actions."""

    def change(recording: Recording) -> Recording:
        fields = {**recording.observations, "actions": recording.actions}
        fields[name] = fields[name].copy()
        fields[name][place] = value
        actions = fields.pop("actions")
        return recording._replace(observations=fields, actions=actions)

    return change


def test_a_data_set_is_replaced_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "saf-v0"
    for number in (2, 1):
        record("saf", WORKLOAD, path, replace=True, **{**SMALL, "record_episodes": number})
        assert len(load_recording(path).about["episodes"]) == number
    assert [*tmp_path.iterdir()] == [path]


def test_a_scheduler_is_of_the_environment() -> None:
    rules = Scheduler(backfill="none", estimate="ave2")
    about = record("saf", WORKLOAD, env_options={"scheduler": rules}, **SMALL).about
    assert about["env_options"]["estimate"] == "ave2"


def test_without_minari_it_says_what_to_install(tmp_path: Path) -> None:
    """And what is recorded without a file needs none of it."""
    code = (
        "import sys; sys.modules['minari'] = None\n"
        "from hpcgym.agents.recordings import record\n"
        f"record('saf', {WORKLOAD!r}, jobs=20, record_episodes=1)\n"
        f"record('no policy', {WORKLOAD!r}, {str(tmp_path / 'saf-v0')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "files of recordings need Minari: pip install 'hpcgym[agents]'" in done.stderr


test_mistakes = mistakes_of(globals(), fixtures=("copied", "mixed", "monkeypatch"))
