"""Submissions: written, gone on with, proved, and found out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import bringing
import numpy as np
import pytest
from bringing import play

from hpcgym.baselines import find_baseline
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.study import evaluate
from hpcgym.study.suite.board import board_of
from hpcgym.study.suite.evaluation import METRICS, Evaluation
from hpcgym.study.suite.proofs import verify
from hpcgym.study.suite.submissions import FACTS, SCHEDULES, easy_of, read, run
from hpcgym.study.suite.tasks import environment, find_tasks, jobs_of, part_of, tasks

pytestmark = pytest.mark.usefixtures("small")

REFERENCES = ("random", "fcfs", "easy", "sjf", "saf", "f1", "best-static", "saf-typical")


@pytest.mark.slow
@pytest.mark.parametrize("agent", REFERENCES)
def test_references_play_what_they_can_and_are_proved(agent: str, tmp_path: Path) -> None:
    told: list[str] = []
    done = run(agent, find_tasks(), tmp_path / "made", note=told.append)
    known = agent in ("easy", "sjf", "best-static")
    assert len(done.tasks) == (5 if known else 4)
    assert len(told) == (0 if known else 1)
    proofs = verify(read(tmp_path / "made"))
    assert [proof.text for proof in proofs if not proof.equal] == []
    assert [proof.task for proof in proofs] == list(done.tasks)
    assert all("capacity" in proof.text or "parts" in proof.text for proof in proofs)


def test_metrics_are_those_of_the_environment(tmp_path: Path) -> None:
    """An agent's, as the episode itself tells them at its end."""
    done = play("bringing:Shortest", "pool-order", tmp_path / "made")
    with environment(tasks()["pool-order"], "test") as env:
        agent, unserved = bringing.Shortest(), 0
        for place, name in enumerate(done.tasks["pool-order"]["slices"]):
            observation, info = env.reset(options={"slice": name})
            over = False
            while not over:
                observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
                over = terminated or truncated
            for metric in METRICS:
                assert done.values("pool-order", metric)[0, place] == info["metrics"][metric]
            unserved += info["metrics"]["unserved_jobs"]
    assert unserved > 0  # or else the end of slices is not looked at


@pytest.mark.parametrize("name", ["saf", "easy++"])
def test_metrics_are_those_of_evaluations(name: str, tmp_path: Path) -> None:
    """A scheduler's, as leaderboards have them; EASY++ has learned from the jobs before a slice."""
    task = tasks()["pool-order"]
    done = play(name, "pool-order", tmp_path / "made")
    jobs = jobs_of(task)
    around = {n: task.options[n] for n in ("start", "warmup", "arrivals", "horizon")}
    n = len(done.tasks["pool-order"]["slices"])
    share = part_of(jobs, task, "test")[1]["train_share"]
    for metric in ("mean_bsld", "p99_wait_s", "max_wait_s"):
        board = evaluate(
            name, jobs, jobs=task.window, train_share=share, n=n,
            budget=0, metric=metric, **around,
        )  # fmt: skip
        assert board.by_slice[name].tolist() == done.values("pool-order", metric)[0].tolist()


@pytest.mark.parametrize("policy", ["saf", {"area": -1.0, "wait": 300.0, "processors": -9e4}])
def test_a_baseline_that_acts_is_the_scheduler_that_is_simulated(policy: Any) -> None:
    """The environment scales weights, the scheduler does not."""
    task = tasks()["pool-weights"]
    with Evaluation(task) as evaluation:
        for episode in evaluation.slices:
            acted = evaluation.run(find_baseline(policy), episode)
            rules = find_scheduler("saf").but(policy=policy, backfill_order="spf")
            same = evaluation.run(rules, episode)
            assert np.array_equal(acted["start"], same["start"])


@pytest.mark.parametrize("power", ["none", "powercap"])
def test_schedulers_keep_limits_by_the_rule_of_the_task(power: str) -> None:
    task = tasks()["nodes-power"]
    with Evaluation(replace(task, options={**task.options, "power": power})) as evaluation:
        episode, env = evaluation.slices[0], evaluation.env.unwrapped
        kept = evaluation.run(easy_of(task), episode)
        evaluation.env.reset(options={"slice": episode.name})
        jobs = env.episode_workload
        rules, limits = easy_of(task).but(power=power), env.limits_of(jobs)
        expected = simulate(jobs, rules, cluster=env.options.cluster, limits=limits)
        assert kept["start"].tolist() == expected.start.tolist()


# --- What is tampered with ------------------------------------------------------------------------


def changed(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> list[str]:
    """What verification says of each task that is not equal, once files were changed.

    ``change`` takes what is told of the first task, and the arrays.
    """
    facts = json.loads((folder / FACTS).read_text())
    arrays = dict(np.load(folder / SCHEDULES))
    change(next(iter(facts["tasks"].values())), arrays)
    (folder / FACTS).write_text(json.dumps(facts))
    np.savez_compressed(folder / SCHEDULES, **arrays)
    return [proof.text for proof in verify(read(folder)) if not proof.equal]


def shifted(by: int) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Move the start of the last job."""

    def shift(told: dict[str, Any], arrays: dict[str, Any]) -> None:
        start = arrays["pool-select/0/0/start"]
        start[np.flatnonzero(start > start.min())[-1]] += by

    return shift


def lie(values: list[float], by: float) -> None:
    """Tell another value of the third slice."""
    values[2] += by


def far(value: int) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Put the starts of most jobs far away."""
    return lambda told, arrays: arrays["pool-order/0/0/start"].__setitem__(slice(3, None), value)


def of_one_seed(told: dict[str, Any]) -> dict[str, Any]:
    return {name: rows[:1] for name, rows in told["metrics"].items()}


ARRAYS = [np.zeros(3), np.zeros((2, 2), int), np.array(["a"]), np.array(5), np.zeros(0, int)]
NODES, POOL = "nodes-power/0/0", "pool-order/0/1/start"

#: Task, who played it, what is changed, and what is said of it.
TAMPERED: list[tuple[str, str, Callable[[dict[str, Any], dict[str, Any]], Any], str]] = [
    *(("pool-order", "easy",
       lambda told, arrays, m=metric, by=by: lie(told["metrics"][m][0], by),
       f"window 0002, seed 0: {metric} is told as") for metric in METRICS for by in (-1e-3, 1e-3)),
    *(("pool-select", "easy", shifted(by), "") for by in (-1, 1)),
    *(("pool-order", "easy", far(value), "") for value in (2**62, -(2**62), -2)),
    *(("nodes-power", "easy",
       lambda told, arrays, k=key, one=array: arrays.update({k: one}),
       "window 0000, seed 0: ")
      for key in (f"{NODES}/start", f"{NODES}/cells_first") for array in ARRAYS),
    ("pool-order", "easy", lambda told, arrays: told.update(jobs="0" * 64), "other jobs or rules"),
    ("pool-order", "random", lambda told, arrays: told.update(seeds=[0, 2]),
     "it has seeds [0, 2], not [0, 1]"),
    ("pool-order", "bringing:Trained",
     lambda told, arrays: told.update(seeds=[0], metrics=of_one_seed(told)),
     "it has seeds [0], not [0, 1]"),
    ("nodes-power", "easy", lambda told, arrays: arrays[f"{NODES}/start"].__setitem__(-1, -1),
     "starts at -1 s"),
    ("codes-pairs", "easy", lambda told, arrays: told.update(
        slices=told["slices"][1:], metrics={k: [v[0][1:]] for k, v in told["metrics"].items()}),
     "it has other slices than the 3 of the task"),
    ("pool-order", "easy", lambda told, arrays: arrays.update({POOL: arrays[POOL][:-1]}),
     "window 0001, seed 0: start has"),
    ("pool-order", "easy", lambda told, arrays: arrays.pop(POOL),
     "its arrays are [], not ['start']"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "agent", "change", "said"), TAMPERED)
def test_what_is_changed_is_found(
    task: str, agent: str, change: Any, said: str, played: Callable[[str, str], Path]
) -> None:
    (found,) = changed(played(agent, task), change)
    assert said in found


@pytest.mark.slow
def test_schedules_that_are_impossible_are_found_though_their_metrics_are_right(
    played: Callable[[str, str], Path],
) -> None:
    def at_once(told: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Each job starts when it is submitted."""
        for key in arrays:
            if key.endswith(("/start", "/start_ticks")):
                with Evaluation(tasks()[name]) as evaluation:
                    blank = evaluation._blank(evaluation.slices[int(key.split("/")[2])])
                    ticks = 1 if blank.coschedule is None else blank.coschedule.ticks
                    initial = blank.workload.initial
                    moved = blank.workload.submit_time * ticks
                    begin = arrays[key].min() if initial is None else initial.begin
                    free = np.ones(len(moved), bool) if initial is None else ~initial.running
                    arrays[key][free] = np.maximum(moved, begin)[free]

    wrong = {
        "pool-order": "processors over-used",
        "nodes-power": "running jobs hold 2 of 1 core",
        "codes-pairs": "not a valid schedule",
    }
    for name, said in wrong.items():
        folder = played("easy", name)
        changed(folder, at_once)
        facts = json.loads((folder / FACTS).read_text())
        found = read(folder)
        with Evaluation(tasks()[name]) as evaluation:  # a liar who computes well
            for place, episode in enumerate(evaluation.slices):
                values = evaluation.reached(found.kept(name, 0, place), episode)
                for metric in METRICS:
                    facts["tasks"][name]["metrics"][metric][0][place] = values[metric]
        (folder / FACTS).write_text(json.dumps(facts))
        (proof,) = verify(read(folder))
        assert not proof.equal
        assert said in proof.text


def told(agent: Any = "a", seeds: Any = None) -> str:
    """Facts of a submission, of a task if there are seeds."""
    metrics = dict.fromkeys(METRICS, [[1.0]] * len(seeds or ()))
    task = {"pool-order": {"seeds": seeds, "slices": ["a"], "metrics": metrics}}
    facts = {"suite": "small-v1", "agent": agent, "sha256": None, "tasks": task if seeds else {}}
    return json.dumps(facts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a submission"),
        ('{"suite": "small-v0"}', "is of small-v0, and this is small-v1"),
        ('{"suite": "small-v1", "tasks": {"x": {"seeds": [0]}}}', "there is no task 'x'"),
        ('{"suite": "small-v1", "tasks": {"pool-order": {"seeds": [0]}}}', "is not a submission"),
        (
            '{"suite": "small-v1", "tasks": {"pool-order": {"seeds": [0], "slices": ["a"],'
            ' "metrics": {"mean_bsld": [["b"]]}}}}',
            "mean_bsld of pool-order must have a number for each of 1 seeds and 1 slices",
        ),
        # an agent is called by what can be shown
        (told("saf\nsaf  1.2  3 of 3"), "printable, on one line"),
        (told("\x1b[32msaf"), "printable, on one line"),
        (told("saf "), "without blanks at its ends"),
        (told("saf" * 100), "at most 200 characters, and has 300"),
        (told(["saf"]), "the name of the agent must be a text, not"),
        # Python takes False for 0: nobody has played with such a seed
        *((told(seeds=seeds), "seeds of pool-order must be whole numbers")
          for seeds in ([False], [0, True], [0.0], ["0"])),
    ],
)  # fmt: skip
def test_damaged_facts_are_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / FACTS).write_text(text)
    with pytest.raises(HpcgymError, match=said) as found:
        read(tmp_path)
    assert str(tmp_path) in str(found.value)


def test_no_submission_is_said(tmp_path: Path, played: Callable[[str, str], Path]) -> None:
    with pytest.raises(HpcgymError, match=r"holds no submission: there is no submission\.json"):
        read(tmp_path)
    folder = played("easy", "pool-order")
    (folder / SCHEDULES).write_bytes(b"no archive")
    with pytest.raises(HpcgymError, match=r"schedules\.npz"):
        read(folder)


# --- Who plays ------------------------------------------------------------------------------------


def test_a_run_goes_on_with_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = "bringing:Stops"
    play(agent, "pool-order", tmp_path)
    before = (tmp_path / FACTS).read_text()
    monkeypatch.setattr(bringing.Stops, "left", 5)
    with pytest.raises(HpcgymError, match=r"Stops on tiny-order, window 0000: KeyError: 'lost'"):
        play(agent, "pool-order,tiny-order", tmp_path)
    assert (tmp_path / FACTS).read_text() == before
    monkeypatch.setattr(bringing.Stops, "left", 10**9)
    bringing.calls.clear()
    told: list[str] = []
    done = run(agent, find_tasks("pool-order,tiny-order"), tmp_path, named=True, note=told.append)
    assert told == [f"{tmp_path} has 1 of these tasks already"]
    assert list(done.tasks) == ["pool-order", "tiny-order"]
    whole = play(agent, "tiny-order,pool-order", tmp_path / "at-once")
    assert whole.tasks == done.tasks
    assert all(proof.equal for proof in verify(read(tmp_path)))
    with pytest.raises(HpcgymError, match=f"holds the submission of {agent}: choose another"):
        play("easy", "pool-order", tmp_path)


def test_an_agent_is_trained_with_each_seed_on_its_part(tmp_path: Path) -> None:
    bringing.calls.clear()
    done = play("bringing:Trained", "pool-order", tmp_path)
    told = [one for one in bringing.calls if one != "act"]
    assert told == [(0, 30, 720, 960), (1, 30, 720, 960)]  # 60 % and 80 % of 1,200 jobs
    values = done.values("pool-order")
    assert values.shape[0] == 2
    assert values[0].mean() < values[1].mean()  # seed 1 has the longest first
    same = play("bringing:Shortest", "pool-order", tmp_path / "same")
    assert same.values("pool-order")[0].tolist() == values[0].tolist()
    (proof,) = verify(read(tmp_path))
    assert proof.equal


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("bringing:NoAgent", "the class NoAgent is no policy: it has no act"),
        ("bringing:Nobody", "there is no 'Nobody' in it"),
        ("no_module:Agent", "there is no module 'no_module'"),
        ("safe", "unknown policy 'safe'; did you mean 'saf"),
        ("missing.zip", "missing.zip: there is no such file"),
        ("bringing:WrongShape", "WrongShape on pool-order, window 0000: action must"),
        ("bringing:Selects", "acts in hpcgym/JobSelection-v1, and pool-order is hpcgym/QueueOrd"),
        ("bringing:Cheats", "training with seed 0: cheats: nobody trains on the test part"),
        ("lookahead", "lookahead acts in hpcgym/MixedPolicy-v1, and pool-order is"),
        ("xnes", "xnes acts in environments of weights, not in this one"),
        ("maskable-ppo", "maskable-ppo acts in environments of selection"),
    ],
)
def test_wrong_agents_are_one_line(agent: str, said: str, tmp_path: Path) -> None:
    if "ppo" in agent:
        pytest.importorskip("torch")
    with pytest.raises(HpcgymError, match=said) as found:
        play(agent, "pool-order", tmp_path / "made")
    assert "\n" not in str(found.value)
    assert not (tmp_path / "made" / FACTS).exists()


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    bringing.calls.clear()
    with pytest.raises(HpcgymError, match=r"submission\.json cannot be written"):
        play("bringing:Trained", "pool-order", tmp_path / "file")
    assert bringing.calls == []


def test_actions_mean_what_they_were_learned_for(tmp_path: Path) -> None:
    said = "OtherScale is for scale='none', and pool-weights has 'spread'"
    with pytest.raises(HpcgymError, match=said):
        play("bringing:OtherScale", "pool-weights", tmp_path / "made")
    play("bringing:SameScale", "pool-weights", tmp_path / "made")


def test_who_fits_no_task_is_told_why(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match=r"NoAgent plays none of these tasks: .* is no policy"):
        play("bringing:NoAgent", None, tmp_path / "made")
    done = play("bringing:Selects", None, tmp_path / "selects")
    assert list(done.tasks) == ["pool-select"]


# --- Side by side ---------------------------------------------------------------------------------


def test_a_board_ranks_by_score_and_says_who_was_verified(tmp_path: Path) -> None:
    agents = ("fcfs", "easy", "best-static", "random")
    for agent in agents:
        play(agent, "pool-order,nodes-power,tiny-order", tmp_path / agent)

    facts = json.loads((tmp_path / "fcfs" / FACTS).read_text())
    facts["tasks"]["nodes-power"]["metrics"]["mean_bsld"][0][0] = 1.0
    (tmp_path / "fcfs" / FACTS).write_text(json.dumps(facts))
    board = board_of([read(tmp_path / agent) for agent in agents])
    table = board.table
    assert board.tasks == ["pool-order", "nodes-power"]  # not the small one
    assert table.score["easy"] == 0
    assert table.score["best-static"] == pytest.approx(1)
    assert table.above_easy["easy"] == 0.5
    assert table.longest_wait["easy"] == table.p99_wait["easy"] == 1
    assert table.verified.to_dict() == {"fcfs": 1, "easy": 2, "best-static": 2, "random": 2}
    assert table.seeds["random"] == 2
    assert table.score.iloc[:-1].is_monotonic_decreasing
    assert table.index[-1] == "fcfs"  # not ranked: nothing that it told counts
    assert np.isnan(
        [table.score["fcfs"], table.above_easy["fcfs"], table.utilization["fcfs"]]
    ).all()
    by_task = board.by_task.set_index(["agent", "task"])
    wrong = by_task.loc["fcfs", "nodes-power"]
    assert "mean_bsld is told as 1" in wrong.proof
    longest = by_task.longest_wait_s / by_task.easy_longest_wait_s
    assert (by_task.starving == (longest > 2)).all()
    assert (by_task.gated == (by_task.starving | by_task.leaving)).all()
    assert np.isnan([wrong.score, wrong.mean_bsld, wrong.longest_wait_s]).all()
    assert np.isfinite(by_task.loc["fcfs", "pool-order"].score)
    assert len(board.rows()) == 4 * 3
    assert json.dumps(board.facts(), default=float)


def test_who_starves_jobs_is_seen_whenever_they_came(tmp_path: Path) -> None:
    """The longest wait by hand: of all jobs of a slice and before it, and of who still waits."""
    play("lcfs", "pool-order", tmp_path)
    done = read(tmp_path)
    longest, before = [], 0
    with Evaluation(tasks()["pool-order"]) as evaluation:
        for place, episode in enumerate(evaluation.slices):
            start = done.kept("pool-order", 0, place)["start"].tolist()
            jobs = evaluation._blank(episode).workload
            initial, stop = jobs.initial, episode.last - episode.start
            first = episode.first - episode.start
            over = max(start[first:stop])
            if min(start[first:stop]) < 0:
                over = int(jobs.submit_time[first]) + 86_400
            waits = {}
            for row in range(stop):
                if initial is not None and initial.running[:stop][row : row + 1].any():
                    continue
                begun = start[row] if 0 <= start[row] <= over else over
                waits[row] = begun - int(jobs.submit_time[row])
            longest.append(max(waits.values()))
            before += max(waits, key=lambda row: waits[row]) < first
    assert before > 0  # or max_wait_s would do
    board = board_of([done])
    assert board.values["lcfs"]["pool-order"]["longest_wait_s"].tolist() == [longest]
    assert board.by_task.longest_wait_s.tolist() == [max(longest)]


def test_who_leaves_jobs_is_marked(tmp_path: Path) -> None:
    board = board_of([play("easy", "pool-order", tmp_path)])
    assert not board.by_task.gated.any()
    unserved = board.values["easy"]["pool-order"]["unserved_jobs"]
    slices = unserved.shape[1]
    few = slices * 40 // 100  # of 40 jobs a slice
    for more, marked in ((few, False), (few + 1, True)):
        unserved[0, 0] = board.easy["pool-order"]["unserved_jobs"][0, 0] + more
        assert board.by_task.leaving.tolist() == board.by_task.gated.tolist() == [marked]
        assert board.table.leaving["easy"] == marked
        assert not board.by_task.starving.any()
    heading, rows = board.cells()
    column = [row[heading.index("unserved")] for row in rows]
    assert column[0].endswith(" !")


def test_a_board_needs_common_tasks_and_names(tmp_path: Path) -> None:
    one = play("easy", "pool-order", tmp_path / "one")
    two = play("easy", "tiny-order", tmp_path / "two")
    with pytest.raises(HpcgymError, match="no task in common"):
        board_of([one, two])
    same = play("easy", "pool-order", tmp_path / "same")
    assert list(board_of([one, same]).table.index) == [
        f"easy ({tmp_path / 'one'})", f"easy ({tmp_path / 'same'})",
    ]  # fmt: skip
    with pytest.raises(HpcgymError, match="is there twice"):
        board_of([one, one])
