"""Scores: against hand-computed cases, and computed again with numpy from the files alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import freeze_suite
import numpy as np
import pytest
from bringing import arrays_in, play
from freeze_suite import chosen, in_pairs, ranked, text_of, told_of
from mistakes import mistakes_of

from hpcgym.agents.practice import Make
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.schedule.gains import Felt, gain
from hpcgym.simulation.run import simulate
from hpcgym.study.suite.board import OnLog, board_of, row_of, scored
from hpcgym.study.suite.proofs import Proof
from hpcgym.study.suite.submissions import metrics_of, read
from hpcgym.study.suite.tasks import jobs_of, late, practice, tasks
from hpcgym.workload.archive import find


def test_a_tiny_case_by_hand() -> None:
    """Two logs, two seeds; the reference gains 1/2 on the first log and nothing on the second."""
    first = np.array([[1.0, 3.0], [2.0, 2.0]])
    second = np.array([[0.0, 0.0, 0.0], [3.0, 3.0, 0.0]])
    result = scored([(first, np.full(2, 0.5)), (second, np.zeros(3))])
    # of seed 0: (2 + 0) / 2 = 1; of seed 1: (2 + 2) / 2 = 2
    assert result.score.value == pytest.approx(1.5)
    assert result.above.value == pytest.approx(1.25)
    assert np.isnan([result.score.low, result.above.low]).all()  # too few weeks
    assert (result.seeds, result.winning, result.wins) == (2, 0, False)


@pytest.mark.parametrize(
    ("gains", "winning", "wins"),
    [
        ([0.3, 0.3, 0.3, 0.3, 0.3], 5, True),
        ([0.9, 0.9, 0.9, -0.3, -0.3], 3, True),
        ([0.9, 0.9, -0.1, -0.1, -0.1], 2, False),  # the mean alone is not enough
        ([0.2, 0.2, 0.2, -0.9, -0.9], 3, False),  # nor are three seeds
        ([0.0, 0.0, 0.0, 0.0, 0.0], 0, False),
    ],
)
def test_who_wins(gains: list[float], winning: int, wins: bool) -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 40)
    ours = np.array(gains)[:, None] + 1.0 + noise
    result = scored([(ours, np.ones(40)), (ours[:, :24], np.ones(24))])
    assert (result.winning, result.wins) == (winning, wins)


def test_a_log_that_breaks_the_gate_counts_nothing_with_that_seed_alone() -> None:
    weeks = np.full(8, 40)
    easy = Felt(weeks, np.full(8, 8.0), 100.0, 10.0)
    kept = gain(easy, Felt(weeks, np.full(8, 2.0), 200.0, 20.0))
    broken = gain(easy, Felt(weeks, np.full(8, 2.0), 201.0, 20.0))
    ours = np.array([kept.counted, broken.counted])
    assert scored([(ours, np.zeros(8))]).score.value == pytest.approx(np.log(4) / 2)


@pytest.mark.usefixtures("small")
def test_where_nothing_waits_under_easy_a_row_says_so() -> None:
    weeks = np.full(8, 40)
    idle, waits = (Felt(weeks, np.ones(8), *both) for both in ((0.0, 0.0), (3.0, 1.0)))
    for ours, times in ((idle, 0.0), (waits, np.inf)):
        row = row_of(tasks()["order"], "saf", {"pool": on_log([ours], idle, idle)})
        assert row["longest_wait"] == row["area_weighted_wait"] == times


def on_log(ours: list[Felt], easy: Felt, rival: Felt) -> OnLog:
    """What seeds have reached on a log."""
    gains = [gain(easy, felt_then) for felt_then in ours]
    proof = Proof("order", "pool", equal=True, text="")
    return OnLog(gains, gain(easy, rival), [[felt] for felt in ours], [easy], [rival], proof)


@pytest.mark.usefixtures("small")
def test_plain_means_and_weeks_disagree_by_hand() -> None:
    """One week of 960 jobs decides the mean over jobs; the gate is broken with the second seed."""
    jobs = np.array([40] * 4 + [960])

    def schedule(quiet: float, crowded: float, longest: float = 10.0) -> Felt:
        return Felt(jobs, np.array([quiet] * 4 + [crowded]), longest, 1.0)

    easy, rival = schedule(8.0, 10.0), schedule(4.0, 10.0)
    logs = {
        "pool": on_log([schedule(2.0, 20.0), schedule(4.0, 5.0, 73.0)], easy, rival),
        "pond": on_log([easy, easy], easy, easy),
    }
    row = row_of(tasks()["order"], "saf", logs)
    means = {name: (160 * a + 960 * b) / 1120 for name, a, b in (
        ("easy", 8, 10), ("rival", 4, 10), ("first", 2, 20), ("second", 4, 5))}  # fmt: skip
    first = (4 * np.log(4) - np.log(2)) / 5
    assert row["score"] == pytest.approx(first / 2 / 2)  # of seeds, of logs
    assert row["gain"] == pytest.approx((first + np.log(2)) / 2 / 2)
    once, two = means["first"] / means["easy"], means["second"] / means["easy"]
    assert once > 1 > two
    assert row["mean_ratio"] == pytest.approx(np.sqrt((once + two) / 2))
    assert row["gated_mean_ratio"] == pytest.approx(np.sqrt((once + 1) / 2))
    to_rival = (means["first"] + means["second"]) / 2 / means["rival"]
    assert row["mean_ratio_to_reference"] == pytest.approx(np.sqrt(to_rival))
    assert (row["gate"], row["longest_wait"]) == ("pool", 7.3)


@pytest.mark.usefixtures("small")
def test_scores_are_those_of_the_schedules_that_were_written(tmp_path: Path) -> None:
    """Computed again from the arrays of the file, replay by replay and week by week in a loop."""
    play("random", "replayed", tmp_path / "random")
    play("aged", "replayed", tmp_path / "aged")
    board = board_of([read(tmp_path / name) for name in ("random", "aged")])
    arrays = arrays_in(tmp_path / "random")
    scores, above = [], []
    for name in ("pool", "pond"):
        jobs = jobs_of(tasks()["order"].log(name))
        run, half = jobs.run_time, late(tasks()["order"], jobs)
        submit, factors = jobs.submit_time, (1.0, 0.98, 1.02)
        replays = [submit[0] + np.floor((submit - submit[0]) * k).astype(int) for k in factors]
        area = jobs.requested_processors * run
        week = (submit - submit[0]) // 604_800

        def felt(
            wait: np.ndarray, run=run, half=half, area=area, week=week
        ) -> tuple[dict[int, float], float, float]:
            bsld = np.maximum(1.0, (wait + run) / np.maximum(run, 10))
            numbers = [k for k in range(week.max() + 1) if (half & (week == k)).sum() >= 20]
            means = {k: bsld[half & (week == k)].mean() for k in numbers}
            return means, wait[half].max(), (area * wait)[half].sum() / area[half].sum()

        easy, saf = (
            [
                felt(simulate(jobs.with_columns(submit_time=then), scheduler).start - then)
                for then in replays
            ]
            for scheduler in ("easy", "saf")
        )

        def starves(ours, easy, wider: float) -> bool:
            (longest, weighted), (longest_of_easy, weighted_of_easy) = ours, easy
            return longest > wider * max(2 * longest_of_easy, 72 * 3600) or weighted > wider * max(
                2 * weighted_of_easy, 3600
            )

        def counted(ours, easy=easy) -> float:
            both = [[replay[1:] for replay in replays] for replays in (ours, easy)]
            if starves(*(np.mean(each, axis=0) for each in both), 1.0) or any(
                starves(*pair, 1.25) for pair in zip(*both, strict=True)
            ):
                return 0.0
            return np.mean(
                [np.log(b[0][k] / a[0][k]) for a, b in zip(ours, easy, strict=True) for k in b[0]]
            )

        seeds = [
            counted([felt(arrays[f"replayed/{name}/{seed}/{place}/wait"]) for place in (0, 1, 2)])
            for seed in (0, 1)
        ]
        scores.append(np.mean(seeds))
        above.append(np.mean(seeds) - counted(saf))
    row = board.table.set_index("agent").loc["random"]
    assert row.score == pytest.approx(np.mean(scores))
    assert row.above == pytest.approx(np.mean(above))
    by_log = board.by_log.set_index(["agent", "log"]).loc["random"]
    assert by_log.score.tolist() == pytest.approx(scores)
    assert json.dumps(board.facts(), default=float)


@pytest.mark.usefixtures("small")
def test_a_board_has_the_logs_that_all_have_the_best_first(tmp_path: Path) -> None:
    play("saf", "order,nodes-power", tmp_path / "saf")
    play("easy", "order,backfill", tmp_path / "easy", logs=["pond"])
    notes: list[str] = []
    board = board_of([read(tmp_path / name) for name in ("easy", "saf")], note=notes.append)
    table = board.table
    assert [*zip(table.task, table.agent, table.logs, table.of_logs, strict=True)] == [
        ("order", "saf", 1, 2), ("order", "easy", 1, 2), ("backfill", "easy", 1, 2),
        ("nodes-power", "saf", 1, 1),
    ]  # fmt: skip
    assert not table.wins.any()
    easy = table[table.agent == "easy"]
    assert (easy.score == 0).all()
    assert (easy.longest_wait == 1).all()
    assert (easy.area_weighted_wait == 1).all()
    won, paid = board.tables(table[table.task == "order"])
    assert won.title == "order, 1 of 2 logs"
    assert paid.title.startswith("order: mean BSLD, and waits: the longest")
    assert won.heads[:3] == ["agent", "score", "log(reference / agent)"]
    assert [row[0] for row in won.rows] == [row[0] for row in paid.rows] == ["saf", "easy"]
    assert {row[won.heads.index("verified")] for row in won.rows} == {"yes"}
    assert paid.rows[1][1:5] == ["0.00", "0.00", "1.00", "1.00"]
    assert paid.rows[1][6:9] == ["1.00", "1.00", "1.00"]
    on_logs = board.tables(board.by_log[board.by_log.task == "order"])
    for table in (won, paid, *on_logs):
        assert max(map(len, table.text().splitlines())) <= 115
    done = read(tmp_path / "saf")
    assert sorted(
        board_of([done, play("saf", "order", tmp_path / "two")]).found["order"]
    ) == sorted(f"saf ({tmp_path / name})" for name in ("saf", "two"))


@pytest.mark.usefixtures("small")
def test_what_a_task_tells() -> None:
    task = tasks()["backfill"]
    found = told_of(task)
    assert {*found} == {"easy", "easy-sjbf", "clairvoyant", "random"}
    for log in found["easy"].values():
        assert not log.counted.any()
    text = text_of(task, found)
    reference = next(line for line in text.splitlines() if line.startswith("| easy-sjbf"))
    assert reference.split(" | ")[2].startswith("0.00")
    assert text.count("| easy-sjbf") == 2
    weeks = np.full(60, 40)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, 60)
    easy = Felt(weeks, np.full(60, 8.0), 1.0, 1.0)
    gained = {"easy": np.zeros(60), "easy-sjbf": 0.5 + noise, "good": 1.0 + noise,
              "same": 1.0 + rng.normal(0, 0.1, 60)}  # fmt: skip
    made = {
        name: {"pool": on_log([easy._replace(bsld=8.0 / np.exp(gain))], easy, easy)}
        for name, gain in gained.items()
    }
    alike = text_of(task, made).splitlines()[-1]
    assert alike in ("Not told apart: `good` and `same`.", "Not told apart: `same` and `good`.")


@pytest.mark.usefixtures("small")
def test_schedulers_are_ranked_as_references_are_chosen() -> None:
    task = tasks()["order"]
    _, _, scores = chosen(task)
    names = [name for name in scores if not name.startswith("static")][::-1]
    heading, _, *lines = ranked(task, names).splitlines()
    assert heading.split(" | ")[2] == f"above `{names[0]}`"
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert [row[0].strip("`") for row in rows] == sorted(names, key=lambda name: -scores[name])
    assert [row[1].split()[0] for row in rows] == [
        f"{scores[row[0].strip('`')]:.2f}" for row in rows
    ]
    (own,) = (row for row in rows if row[0] == f"`{names[0]}`")
    assert own[2].startswith("0.00")


def test_submissions_are_compared_in_pairs(played: Callable[[str, str], Path]) -> None:
    folders = [played(agent, "mini-order") for agent in ("saf", "easy")]
    board = board_of([read(folder) for folder in folders])
    ours, easy = (board.found["mini-order"][agent]["lake"] for agent in ("saf", "easy"))
    weekly = np.mean([each.weeks.mean() for each in ours.gains])
    lines = [line.strip("| ").split(" | ") for line in in_pairs(board).splitlines()]
    (pair,) = (line for line in lines if len(line) == 5 and line[0] == "`easy`")
    assert pair[1].split()[0] == f"{ours.counted.mean():.3f}"
    assert pair[2].split()[0] == f"{weekly:.3f}"
    plain = [metrics_of(each.felt[0])["mean_bsld"] for each in (ours, easy)]
    assert pair[4] == f"{int(plain[0] <= plain[1])} of 1"
    shares = {line[0]: float(line[1]) for line in lines if len(line) == 2 and line[0][0] == "`"}
    assert 0 < shares["`easy`"] <= 0.5 < shares["`saf`"]


def test_each_log_is_played_by_an_agent_that_has_not_seen_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task, seen = tasks()["order"], []
    if missing := [log.name for log in task.logs if find(log.workload) is None]:
        pytest.skip(f"{', '.join(missing)} are not on this machine")

    class Learner:
        scheduler = find_scheduler("saf")

        def train(self, make: Make, *_: int) -> Learner:
            seen.append({*make.logs})
            return self

    monkeypatch.setattr(freeze_suite, "found_agent", lambda *_: Learner())
    found = freeze_suite.without(task, "learner")
    every = {log.name for log in task.logs}
    assert [every - names for names in seen] == [{log.name} for log in task.logs]
    for name, ours in found["learner"].items():
        known = found["saf"][name]
        assert ours.broken == known.broken
        np.testing.assert_array_equal(ours.counted, known.counted)


@pytest.mark.usefixtures("small")
def test_a_task_of_one_log_leaves_none_to_learn_from() -> None:
    task = tasks()["mini-order"]
    assert not practice(task, []).logs


test_mistakes = mistakes_of(globals(), fixtures=("played", "small"))
