#!/usr/bin/env python3
"""What makers of the suite need: what a task is frozen with, and what it tells.

    python scripts/freeze_suite.py freeze mini-order order

prints the digests of the logs of tasks, and their references, as lines of ``tasks.toml``. The
reference is the best of the task's ``references`` on what agents may learn from, by the score of
the suite; "static" stands there for the best of 200 weights that do not change.

    python scripts/freeze_suite.py rank order aged-hold aged:relax=12h

prints the scores of schedulers on what agents may learn from, and how far they are above the first.
By this a rule is chosen that is to be named: not by the test.

    python scripts/freeze_suite.py tell order

prints what random actions, EASY and all references reach on the test, as the suite scores it, what
jobs pay for that, which of them it does not tell apart, and what an order that knew all run times
would reach.

    python scripts/freeze_suite.py without order rule-es

trains an agent once for each log of the task, on all others, and prints what it reaches on the test
of that one, which it has not seen. This is half an hour of one core for ``rule-es``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hpcgym.agents import search
from hpcgym.baselines.chance import RANDOM
from hpcgym.errors import HpcgymError
from hpcgym.schedule.gains import Gain, used
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.intervals import mean_of
from hpcgym.study.suite.agents import found_agent, is_trained
from hpcgym.study.suite.board import Board, OnLog, block_of, board_of, on_log
from hpcgym.study.suite.evaluation import Evaluation
from hpcgym.study.suite.proofs import Proof
from hpcgym.study.suite.submissions import metrics_of, read
from hpcgym.study.suite.tasks import Task, digest_of, find_tasks, jobs_of, practice, read_reference

BUDGET = 200

#: Kind of decisions, or task -> what is to be gained at most, about: the rule that knows all run
#: times. Who may not break promises can only order by them.
CLAIRVOYANT = {
    "order": "aged:policy_estimate=clairvoyant,estimate=clairvoyant",
    "select": "aged:policy_estimate=clairvoyant,estimate=clairvoyant",
    "weights": "saf:threshold=80h,policy_estimate=clairvoyant,estimate=clairvoyant",
    "backfill": "easy:backfill_order=saf,policy_estimate=clairvoyant",
    "relaxed": "easy:backfill_order=saf,policy_estimate=clairvoyant,estimate=clairvoyant",
}


# --- What a task is frozen with -------------------------------------------------------------------


def evaluations(task: Task, part: str) -> list[Evaluation]:
    """Return the evaluation of each log of a task."""
    return [Evaluation(task, log, part) for log in task.logs]


def gains(logs: Sequence[Evaluation], text: str, weights: Sequence[float] = ()) -> list[Gain]:
    """Return what a reference gains on each log."""
    return [
        log.gain(log.felt(log.run(read_reference(log.task, log.log, text, weights))))
        for log in logs
    ]


def chosen(task: Task) -> tuple[str, list[float], dict[str, float]]:
    """Return the reference of a task, its weights, and the scores of all on the training part."""
    logs = evaluations(task, "train")
    scores: dict[str, float] = {}
    weights: dict[str, list[float]] = {}
    rng = np.random.default_rng(0)
    vectors = search.normalised(search.candidates(rng, len(WEIGHTED_FEATURES), BUDGET)).tolist()
    for text in task.references:
        tried = vectors if text.partition(":")[0] == "static" else [[]]
        values = [np.mean([gain.score for gain in gains(logs, text, vector)]) for vector in tried]
        best = int(np.argmax(values))
        scores[text], weights[text] = float(values[best]), tried[best]
    reference = max(scores, key=lambda text: scores[text])
    return reference, weights[reference], scores


def lines_of(task: Task) -> str:
    """Return what is to stand in ``tasks.toml``."""
    further = [log for log in task.further if os.path.isfile(log.workload)]  # to be sealed
    every = {log.name: log for log in (*task.logs, *task.training, *further)}.values()
    lines = [
        f'[logs.{log.name}]\nprocessors = {jobs.processors}\ndigest = "{digest_of(log)}"\n'
        for log, jobs in ((log, jobs_of(log)) for log in every)  # all are as they were frozen
        if not log.digest
    ]
    reference, weights, scores = chosen(task)
    table = [f'[tasks.{task.name}]\nreference = "{reference}"']
    table += [f"weights = {weights}"] if weights else []
    ranked = sorted(scores.items(), key=lambda name_and_score: -name_and_score[1])
    table += ["# on training: " + ", ".join(f"{text} {value:.3f}" for text, value in ranked)]
    return "\n".join([*lines, *table])


# --- What is chosen on training -------------------------------------------------------------------


def ranked(task: Task, texts: Sequence[str]) -> str:
    """Return scores of schedulers on the training part as a table in Markdown, the best first."""
    logs = evaluations(task, "train")
    every = {text: gains(logs, text) for text in texts}
    first, block, rows = every[texts[0]], block_of(task), []
    for text, reached in every.items():
        score, above = (
            mean_of(weeks, block=block)
            for weeks in (
                [gain.counted for gain in reached],
                [own.counted - other.counted for own, other in zip(reached, first, strict=True)],
            )
        )
        broken = ", ".join(
            log.log.name for log, gain in zip(logs, reached, strict=True) if gain.broken
        )
        cells = [f"{m.value:.2f} [{m.low:.2f}, {m.high:.2f}]" for m in (score, above)]
        rows.append((score.value, " | ".join([f"`{text}`", *cells, broken or "kept"])))
    headings = f"scheduler | score on training | above `{texts[0]}` | gate"
    return _markdown(headings, [line for _, line in sorted(rows, key=lambda row: -row[0])])


# --- What a task can tell -------------------------------------------------------------------------

#: Who -> log -> what it reached there.
Found = dict[str, dict[str, OnLog]]


def told_of(task: Task) -> Found:
    """Return what random actions, EASY, all references and who knows all run times reach."""
    names = dict.fromkeys([task.easy, *task.references, task.reference])
    texts = {name: name for name in names if not name.startswith("static")}
    if task.reference not in texts:
        texts[task.reference] = task.reference
    if known := CLAIRVOYANT.get(task.name, CLAIRVOYANT.get(task.kind)):
        texts["clairvoyant"] = known
    found: Found = {name: {} for name in texts}
    for log in evaluations(task, "test"):
        for name, text in texts.items():
            rule = read_reference(task, log.log, text, task.weights)
            found[name][log.log.name] = reached(log, rule)
        if task.kind != "pairs":
            found.setdefault(RANDOM, {})[log.log.name] = reached(log, log.chance(0))
    return found


def reached(log: Evaluation, policy: Any) -> OnLog:
    """Return what a policy reaches on a log."""
    felt = {0: log.felt(log.run(policy))}
    return on_log(log, Proof(log.task.name, log.log.name, True, "", felt), ())


def text_of(task: Task, found: Found) -> str:
    """Return tables of what these reach, and who is not told apart, in Markdown."""
    board = Board({task.name: task}, {task.name: found})
    order = board.table.query("without == ''").agent.tolist()
    weeks = {name: [found[name][log].counted.mean(axis=0) for log in found[name]] for name in order}

    def differ(one: str, other: str) -> bool:
        pairs = zip(weeks[one], weeks[other], strict=True)
        return mean_of([a - b for a, b in pairs], block=block_of(task)).low > 0

    alike = [
        f"`{name}` and `{other}`"
        for name, other in combinations(order, 2)
        if not differ(name, other)
    ]
    number = sum(each.shape[-1] for each in weeks[task.reference])
    return "\n\n".join(
        [
            f"`{task.name}`, {number} weeks; the reference is `{task.reference}`:",
            *(table.markdown() for table in board.tables(board.table)),
            f"Not told apart: {', '.join(alike) or 'none'}.",
        ]
    )


# --- Logs that an agent has not seen -------------------------------------------------------------


def without(task: Task, agent: str, seed: int = 0) -> Found:
    """Return as :func:`told_of`, of references and of an agent that was trained on all other logs.

    Raises
    ------
    HpcgymError : a task of one log; an agent that is not trained, or acts by itself: only one that
        becomes a scheduler is asked here.
    """
    logs = evaluations(task, "test")
    if len(logs) < 2 or not is_trained(agent, found_agent(agent, task, task.logs[0])):
        raise HpcgymError(
            f"{task.name} has one log, or {agent} does not learn: nothing to leave out"
        )
    texts = [text for text in task.references if not text.startswith("static")]
    found: Found = {name: {} for name in (*texts, agent)}
    for held_out in logs:
        for text in texts:
            rule = read_reference(task, held_out.log, text)
            found[text][held_out.log.name] = reached(held_out, rule)
        make = practice(task, [log for log in task.logs if log is not held_out.log])
        learned = found_agent(agent, task, held_out.log).train(make, seed, task.steps)
        formula = getattr(learned, "scheduler", None)
        if not isinstance(formula, Scheduler):
            raise HpcgymError(f"{agent} does not become a scheduler when it is trained")
        print(f"# {held_out.log.name}: {formula.policy}", flush=True)
        found[agent][held_out.log.name] = reached(held_out, formula)
    return found


# --- Submissions in pairs -------------------------------------------------------------------------


def in_pairs(board: Board) -> str:
    """Return how far the first agent of each task is above each other, and gates, in Markdown."""
    parts = []
    for name, found in board.found.items():
        rows = board.table.query("task == @name")
        parts += [table.markdown() for table in board.tables(rows)]
        first, *others = found
        lines = [_pair(found[first], found[other], board.tasks[name]) for other in others]
        headings = f"`{first}` above | gated | ungated | replays above 0 | plain mean no worse on"
        rows_of = [f"`{other}` | {line}" for other, line in zip(others, lines, strict=True)]
        parts.append(_markdown(headings, rows_of))
        logs = [*found[first]]
        worst = [
            " | ".join([f"`{agent}`", *(_worst(found[agent][log]) for log in logs)])
            for agent in found
        ]
        parts.append(_markdown(" | ".join(["share of the gate, worst replay", *logs]), worst))
    return "\n\n".join(parts)


def _pair(ours: dict[str, OnLog], theirs: dict[str, OnLog], task: Task) -> str:
    def ungated(each: OnLog) -> Any:
        return np.mean([gain.weeks for gain in each.gains], axis=0)

    def plain(each: OnLog) -> float:
        return float(np.mean([metrics_of(replays)["mean_bsld"] for replays in each.felt]))

    logs = [log for log in ours if log in theirs]
    counted = [ours[log].counted.mean(axis=0) - theirs[log].counted.mean(axis=0) for log in logs]
    weeks = [ungated(ours[log]) - ungated(theirs[log]) for log in logs]
    means = [mean_of(each, block=block_of(task)) for each in (counted, weeks)]
    by_replay = np.mean([each.mean(axis=1) for each in counted], axis=0)
    no_worse = sum(plain(ours[log]) <= plain(theirs[log]) for log in logs)
    cells = [f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in means]
    cells += [f"{(by_replay > 0).sum()} of {len(by_replay)}", f"{no_worse} of {len(logs)}"]
    return " | ".join(cells)


def _worst(each: OnLog) -> str:
    """Return how much of the gate the worst replay uses, by seed, as of ``gains.used``."""
    most = [
        max(max(used(*pair)) for pair in zip(each.easy, replays, strict=True))
        for replays in each.felt
    ]
    return " ".join(f"{value:.2f}" for value in most)


def _markdown(headings: str, rows: Sequence[str]) -> str:
    rule = "|".join(["---"] * (headings.count("|") + 1))
    return "\n".join(f"| {line} |" for line in (headings, rule, *rows))


def main(arguments: Sequence[str]) -> None:
    """Print what tasks are to be frozen with and tell, or what schedulers and agents reach."""
    word, *names = arguments or [""]
    if word == "freeze":
        for task in find_tasks(",".join(names) or None):
            print(f"{lines_of(task)}\n", flush=True)
    elif word == "rank" and len(names) > 1:
        for task in find_tasks(names[0]):
            print(ranked(task, names[1:]), flush=True)
    elif word == "tell":
        for task in find_tasks(",".join(names) or None):
            print(text_of(task, told_of(task)), flush=True)
    elif word == "pairs" and len(names) > 1:
        print(in_pairs(board_of([read(folder) for folder in names])), flush=True)
    elif word == "without" and len(names) > 1:
        *tasks, agent = names
        for task in find_tasks(",".join(tasks)):
            print(text_of(task, without(task, agent)), flush=True)
    else:
        raise HpcgymError(
            "usage: freeze TASK..., rank TASK NAME..., tell TASK..., without TASK... AGENT, or"
            " pairs FOLDER FOLDER..."
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HpcgymError as error:
        sys.exit(f"hpcgym: {error}")
