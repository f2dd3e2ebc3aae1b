"""Submissions side by side: scores with intervals, who pays for them, and who was verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError, check_each_once, check_whole
from hpcgym.naming import printable
from hpcgym.progress import Progress, silent
from hpcgym.report.tables import shown
from hpcgym.schedule.metrics import Metric
from hpcgym.study.evaluation.leaderboard import interval_in_words
from hpcgym.study.intervals import FEWEST, Floats, draw, iqm
from hpcgym.study.suite.evaluation import LONGEST, METRICS, Evaluation
from hpcgym.study.suite.proofs import PROVED, Proof, prove
from hpcgym.study.suite.submissions import Submission, easy_of, static_of
from hpcgym.study.suite.tasks import suite, tasks

if TYPE_CHECKING:
    import pandas as pd


# --- Scores ---------------------------------------------------------------------------------------

#: Of tasks, the values of an agent, (seeds, slices).
Values = Mapping[str, Floats]


def scores_of(values: Floats, easy: Floats, best: Floats) -> Floats:
    """Return the score of each training in a task, (seeds,) float64.

    Parameters
    ----------
    values : (seeds, slices) mean bounded slowdowns of the agent.
    easy, best : (slices,) those of EASY and of the best static scheduler.
    """
    scores: Floats = np.log(easy.mean() / values.mean(axis=1)) / _unit(easy, best)
    return scores


def _unit(easy: Floats, best: Floats) -> float:
    return float(np.log(easy.mean() / best.mean()))


def stratified(
    values: Values,
    easy: Values,
    best: Values,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return the interquartile mean of the scores over tasks, and its 95 % interval.

    Parameters
    ----------
    values : of the agent, for each task (seeds, slices).
    easy, best : of these tasks (1, slices).
    resamples, seed : of the bootstrap. It is stratified: in each task trainings and slices are
        drawn anew by themselves, tasks stay. EASY meets the slices that the agent meets; log(E /
        B), which is the unit of a task, stays what it is.

    Returns
    -------
    iqm, low, high : the interval is nan where a task has fewer than five slices.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    whole = np.concatenate([scores_of(one, easy[t][0], best[t][0]) for t, one in values.items()])
    if min(one.shape[1] for one in values.values()) < FEWEST:
        return iqm(whole), float("nan"), float("nan")
    rng, every = np.random.default_rng(seed), []
    for task, one in values.items():
        drawn = draw([one], resamples, rng)
        means, bases = drawn.slices @ one.T, drawn.slices @ easy[task][0]
        scores = np.log(bases[:, None] / means) / _unit(easy[task][0], best[task][0])
        if (times := drawn.seeds[0]) is not None:  # each training as often as it was drawn
            which = np.repeat(np.tile(np.arange(len(one)), resamples), times.ravel())
            scores = np.take_along_axis(scores, which.reshape(scores.shape), axis=1)
        every.append(scores)
    low, high = np.percentile([iqm(row) for row in np.concatenate(every, axis=1)], [2.5, 97.5])
    return iqm(whole), float(low), float(high)


def ends_of_task(
    values: Floats, easy: Floats, best: Floats, resamples: int = 2000, seed: int = 0
) -> dict[str, float]:
    """Return 95 % intervals of a task: trainings and slices are drawn anew, for all policies alike.

    Parameters
    ----------
    values, easy, best : as of :func:`scores_of`.
    resamples, seed : of the bootstrap.

    Returns
    -------
    ends : ``score_low``, ``score_high`` of the agent's score, the mean over its trainings;
        ``best_low``, ``best_high`` of that of the best static scheduler, which is 1; ``gain``,
        ``gain_low``, ``gain_high`` of log(B / A), the mean over trainings, on the same slices:
        above 0 the agent is better. nan with fewer than five slices.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    unit = _unit(easy, best)
    ends = {"gain": float(np.log(best.mean() / values.mean(axis=1)).mean())}
    names = ("score", "best", "gain")
    if len(easy) < FEWEST:
        return ends | {f"{name}_{end}": float("nan") for name in names for end in ("low", "high")}
    drawn = draw([values], resamples, seed)
    agents, base, static = (np.log(drawn.slices @ one.T) for one in (values, easy, best))
    times = 1.0 if drawn.seeds[0] is None else drawn.seeds[0]
    agent = (times * agents).sum(axis=1) / len(values)
    found = [(base - agent) / unit, (base - static) / unit, static - agent]
    for name, values_of in zip(names, found, strict=True):
        low, high = np.percentile(values_of, [2.5, 97.5])
        ends |= {f"{name}_low": float(low), f"{name}_high": float(high)}
    return ends


def probability_of_improvement(one: Sequence[Floats], other: Sequence[Floats]) -> float:
    """Return how likely one agent is better than another in a task: P(X > Y), a mean over tasks.

    Agarwal et al. 2021, section 4.3: with the scores x_1..x_N of one and y_1..y_M of the other in a
    task,

        P = sum over i, j of S(x_i, y_j) / (N M),  S = 1 if x_i > y_j, 1/2 if equal, else 0,

    the Mann-Whitney U statistic over N M. It says how often, not how much.

    Parameters
    ----------
    one, other : for each task, in the same order, the scores of trainings.
    """
    shares = []
    for x, y in zip(one, other, strict=True):
        above = np.sign(np.asarray(x)[:, None] - np.asarray(y)[None, :])
        shares.append(float((above + 1).mean() / 2))
    return float(np.mean(shares))


# --- Submissions side by side ---------------------------------------------------------------------

_SCORE = Metric("score", "score")

#: Headings of the table for people -> what stands there, of a row of the table.
_SHOWN: tuple[tuple[str, Callable[[Mapping[Any, Any]], str]], ...] = (
    ("agent", lambda row: str(row["agent"])),
    ("score", lambda row: shown(row["score"])),
    ("95 % interval", lambda row: interval_in_words(_SCORE, row["score_low"], row["score_high"])),
    ("P(above EASY)", lambda row: shown(row["above_easy"])),
    ("p99 wait / EASY", lambda row: shown(row["p99_wait"])),
    ("longest wait / EASY", lambda row: _marked(row["longest_wait"], row["starving"])),
    ("unserved", lambda row: _marked(row["unserved_jobs"], row["leaving"])),
    ("utilization (%)", lambda row: shown(100 * row["utilization"])),
    ("seeds", lambda row: str(row["seeds"])),
    ("verified", lambda row: f"{row['verified']} of {row['tasks']}"),
)


def _marked(value: float, marked: float) -> str:
    """Return a number for people, marked if it is bad."""
    return f"{shown(value)}{' !' if marked else ''}"


#: An agent is marked that lets somebody wait so many times as long as EASY's longest wait,
STARVING = 2.0
#: or leaves more jobs waiting than EASY by this share of the jobs that count.
LEAVING = 0.01


@dataclass(frozen=True)
class Board:
    """What is to be said of submissions, over the tasks that all of them have.

    Attributes
    ----------
    values : agent -> task -> metric -> (seeds, slices), as they were proved; nan in a task whose
        proof failed.
    easy, best : task -> metric -> (1, slices), of EASY and of the best static scheduler, run
        here.
    proofs : agent -> task -> whether its schedules and metrics were proved; who is not there, was.
    resamples, seed : of the intervals.
    """

    values: dict[str, dict[str, dict[str, Floats]]]
    easy: dict[str, dict[str, Floats]]
    best: dict[str, dict[str, Floats]]
    proofs: dict[str, dict[str, Proof]] = field(default_factory=dict)
    resamples: int = 2000
    seed: int = 0

    @property
    def tasks(self) -> list[str]:
        """The tasks, by their ids."""
        return list(self.easy)

    def failed(self, agent: str) -> list[str]:
        """Return the tasks in which the proof of an agent failed."""
        return [name for name, one in self.proofs.get(agent, {}).items() if not one.equal]

    def scores(self, agent: str) -> dict[str, Floats]:
        """Return the scores of an agent in each task, (seeds,)."""
        name = METRICS[0]
        return {
            task: scores_of(told[name], self.easy[task][name][0], self.best[task][name][0])
            for task, told in self.values[agent].items()
        }

    @property
    def table(self) -> pd.DataFrame:
        """One row an agent, the best first; behind them those that were not proved in all tasks.

        These have no score and no figures, nan: they were told, and not found in schedules.

        - ``score``, ``score_low``, ``score_high``: see :func:`hpcgym.study.suite.board.stratified`.
        - ``above_easy``: probability of improvement over EASY, whose scores are 0.
        - ``p99_wait``: 99th percentile of waits over EASY's, the geometric mean over tasks of means
          over slices and seeds; tasks where EASY's is 0 are left out.
        - ``longest_wait``: longest wait over EASY's, the greatest of all tasks; of all jobs that
          have come by the end of a slice, and of those that wait then so far. Tasks where EASY's is
          0 are left out.
        - ``unserved_jobs``: that wait at the end of a slice, all slices, a mean over seeds.
        - ``utilization``: mean over tasks.
        - ``starving``: tasks in which the longest wait is over twice EASY's.
        - ``leaving``: tasks in which more jobs are unserved than of EASY, by over 1 % of the jobs
          that count in all slices.
        - ``gated``: tasks in which it is either.
        - ``seeds``, ``tasks``, ``verified``: of the last two how many there are, and were proved.
        """
        import pandas as pd

        name, zero = METRICS[0], np.zeros(1)
        rows = {}
        for agent, mine in self.by_task.groupby("agent", sort=False):
            told, easy, best = (
                {task: one[name] for task, one in of.items()}
                for of in (self.values[str(agent)], self.easy, self.best)
            )
            score, low, high = stratified(told, easy, best, self.resamples, self.seed)
            scores = self.scores(str(agent)).values()
            ratios = {
                of: mine[of] / mine[f"easy_{of}"].replace(0, np.nan)
                for of in ("p99_wait_s", LONGEST)
            }
            figures = {
                "score": score,
                "score_low": low,
                "score_high": high,
                "above_easy": probability_of_improvement([*scores], [zero] * len(told)),
                "p99_wait": float(np.exp(np.log(ratios["p99_wait_s"].dropna()).mean())),
                "longest_wait": float(ratios[LONGEST].max()),
                "unserved_jobs": float(mine.unserved_jobs.sum()),
                "utilization": float(mine.utilization.mean()),
            }
            proved = not self.failed(str(agent))
            rows[agent] = {
                **(figures if proved else dict.fromkeys(figures, float("nan"))),
                **{mark: int(mine[mark].sum()) for mark in ("starving", "leaving", "gated")},
                "seeds": int(mine.seeds.max()),
                "tasks": len(told),
                "verified": int(mine.verified.sum()),
            }
        table = pd.DataFrame.from_dict(rows, orient="index")
        return table.rename_axis("agent").sort_values("score", ascending=False, kind="stable")

    @property
    def by_task(self) -> pd.DataFrame:
        """One row an agent and task: its score, metrics, EASY's waits, and what was proved.

        With the intervals of :func:`hpcgym.study.suite.board.ends_of_task`.
        All are nan where the proof failed. Metrics are means over slices and seeds, but for
        ``max_wait_s`` and ``longest_wait_s``, the longest of all, and ``unserved_jobs``, a sum over
        slices.
        """
        import pandas as pd

        name, rows = METRICS[0], []
        for agent, told in self.values.items():
            scores = self.scores(agent)
            for task, metrics in told.items():
                easy, best = self.easy[task], self.best[task]
                seeds, slices = metrics[name].shape
                mine, theirs = _summed(metrics), _summed(easy)
                starving = mine[LONGEST] > STARVING * theirs[LONGEST]
                more = mine["unserved_jobs"] - theirs["unserved_jobs"]
                leaving = more > LEAVING * tasks()[task].window * slices
                proof = self.proofs.get(agent, {}).get(task)
                ends = ends_of_task(
                    metrics[name], easy[name][0], best[name][0], self.resamples, self.seed
                )
                beside = ("p99_wait_s", LONGEST, "unserved_jobs")
                rows.append({
                    "agent": agent, "task": task, "seeds": seeds, "slices": slices,
                    "score": float(scores[task].mean()), **ends, **mine,
                    "easy_mean_bsld": theirs[name], "best_mean_bsld": float(best[name].mean()),
                    **{f"easy_{one}": theirs[one] for one in beside},
                    "starving": starving, "leaving": leaving, "gated": starving or leaving,
                    "verified": proof is not None and proof.equal,
                    "proof": "" if proof is None else proof.text,
                })  # fmt: skip
        return pd.DataFrame(rows)

    def rows(self) -> list[dict[Any, Any]]:
        """Return everything as rows: of each agent one of all tasks, then one a task."""
        every = self.table.reset_index()
        every.insert(1, "task", "all")
        return every.to_dict("records") + self.by_task.to_dict("records")

    def facts(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, for JSON."""
        return {
            "suite": suite(),
            "tasks": self.tasks,
            "resamples": self.resamples,
            "seed": self.seed,
            "proved": PROVED,
            "agents": self.table.reset_index().to_dict("records"),
            "by_task": self.by_task.to_dict("records"),
        }

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and rows of the table for people."""
        heading = [title for title, _ in _SHOWN]
        table = self.table.reset_index().to_dict("records")
        return heading, [[of(row) for _, of in _SHOWN] for row in table]

    def cells_by_task(self) -> tuple[list[str], list[list[str]]]:
        """Return the same of a table with the score of each agent in each task."""
        told = self.by_task
        scores = {
            (row["agent"], row["task"]): _marked(row["score"], row["gated"])
            for row in told.to_dict("records")
        }
        agents = list(self.table.index)
        rows = [[task, *(scores[agent, task] for agent in agents)] for task in self.tasks]
        return ["score by task", *map(str, agents)], rows


def board_of(
    submissions: Sequence[Submission],
    *,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Board:
    """Return submissions side by side, each proved again; EASY and the best static one are run.

    Parameters
    ----------
    submissions : over the tasks that all of them have; the small ones only if there are no others.
    resamples, seed : of the intervals.
    progress : as of :func:`hpcgym.study.evaluate`.

    Raises
    ------
    HpcgymError : submissions without a common task, or jobs that are not on this machine.
    """  # fmt: skip
    common = [name for name in tasks() if all(name in one.tasks for one in submissions)]
    common = [name for name in common if not tasks()[name].mini] or common
    if not common:
        raise HpcgymError("the submissions have no task in common")
    board = Board({}, {}, {}, {}, resamples, seed)
    agents = [one.agent for one in submissions]
    agents = [  # with their folders where there are two of a name
        name if agents.count(name) == 1 else f"{name} ({printable(str(one.folder))})"
        for name, one in zip(agents, submissions, strict=True)
    ]
    check_each_once("submissions", agents)
    with (progress or silent)("verifying", len(common) * len(submissions)) as step:
        for name in common:
            with Evaluation(tasks()[name]) as evaluation:
                board.easy[name] = _found(evaluation, easy_of(evaluation.task))
                board.best[name] = _found(evaluation, static_of(evaluation.task))
                for agent, one in zip(agents, submissions, strict=True):
                    step(f"{agent}: {name}")
                    proof = prove(one, evaluation)
                    values = _proved(one, proof, len(evaluation.slices))
                    board.values.setdefault(agent, {})[name] = values
                    board.proofs.setdefault(agent, {})[name] = proof
    return board


def _proved(one: Submission, proof: Proof, slices: int) -> dict[str, Floats]:
    """Return the metrics of a submission in a task, which are as told if they were proved."""
    if proof.longest is None:
        seeds = len(one.tasks[proof.task]["seeds"])
        return {metric: np.full((seeds, slices), np.nan) for metric in (*METRICS, LONGEST)}
    told = {metric: one.values(proof.task, metric) for metric in METRICS}
    return {**told, LONGEST: proof.longest}


def _found(evaluation: Evaluation, scheduler: Any) -> dict[str, Floats]:
    """Return the metrics of a scheduler in a task, (1, slices) each."""
    rows = [evaluation.reached(evaluation.run(scheduler, one), one) for one in evaluation.slices]
    return {name: np.array([[row[name] for row in rows]]) for name in (*METRICS, LONGEST)}


def _summed(metrics: dict[str, Floats]) -> dict[str, float]:
    """Return the metrics of a task over its slices and seeds."""
    found = {name: float(values.mean()) for name, values in metrics.items()}
    found |= {name: float(metrics[name].max()) for name in ("max_wait_s", LONGEST)}
    found["unserved_jobs"] = float(metrics["unserved_jobs"].sum(axis=1).mean())
    return found
