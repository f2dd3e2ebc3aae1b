"""Submissions side by side: scores with intervals, who pays for them, and who was verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_whole
from hpcgym.evaluation.intervals import FEWEST, draw, how_often, iqm
from hpcgym.naming import printable
from hpcgym.progress import Progress, silent
from hpcgym.report.tables import Cell, latex, markdown, shown
from hpcgym.suite.ground import LONGEST, METRICS, Ground
from hpcgym.suite.proofs import PROVED, Proof, prove
from hpcgym.suite.submissions import Submission, easy_of, static_of
from hpcgym.suite.tasks import suite, tasks

if TYPE_CHECKING:
    import pandas as pd


# --- Scores ---------------------------------------------------------------------------------------

Floats = NDArray[np.float64]

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
    tasks = list(values)
    whole = np.concatenate([scores_of(values[t], easy[t][0], best[t][0]) for t in tasks])
    if min(values[task].shape[1] for task in tasks) < FEWEST:
        return iqm(whole), float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    drawn = []
    for task in tasks:
        one, base = values[task], easy[task][0]
        seeds, n = one.shape
        slices = how_often(n, resamples, rng)
        means, bases = slices @ one.T / n, slices @ base / n  # (resamples, seeds), (resamples,)
        scores = np.log(bases[:, None] / means) / _unit(base, best[task][0])
        drawn.append(scores if seeds == 1 else _resampled(scores, rng))
    every = np.concatenate(drawn, axis=1)
    low, high = np.percentile([iqm(row) for row in every], [2.5, 97.5])
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


def _resampled(scores: Floats, rng: np.random.Generator) -> Floats:
    """Return for each resample as many trainings, drawn with replacement, (resamples, seeds)."""
    resamples, seeds = scores.shape
    times = how_often(seeds, resamples, rng)
    drawn = np.repeat(np.tile(np.arange(seeds), resamples), times.ravel())
    found: Floats = np.take_along_axis(scores, drawn.reshape(resamples, seeds), axis=1)
    return found


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
    easy, best : task -> metric -> (1, slices), of EASY and of the best static scheduler, played
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

    def better(self, agent: str, other: str) -> float:
        """Return the probability that an agent is better than another; nan unless proved."""
        if self.failed(agent) or self.failed(other):
            return float("nan")
        one, two = self.scores(agent), self.scores(other)
        return probability_of_improvement([*one.values()], [two[task] for task in one])

    @property
    def table(self) -> pd.DataFrame:
        """One row an agent, the best first; behind them those that were not proved in all tasks.

        These have no score and no figures, nan: they were told, and not found in schedules.

        - ``score``, ``score_low``, ``score_high``: see :func:`hpcgym.suite.board.stratified`.
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

        by_task = self.by_task
        rows = {}
        for agent, told in self.values.items():
            mine = by_task[by_task.agent == agent]
            figures = self._figures(agent, mine)
            rows[agent] = {
                **(dict.fromkeys(figures, float("nan")) if self.failed(agent) else figures),
                **{mark: int(mine[mark].sum()) for mark in ("starving", "leaving", "gated")},
                "seeds": max(len(one[METRICS[0]]) for one in told.values()),
                "tasks": len(told),
                "verified": int(mine.verified.sum()),
            }
        table = pd.DataFrame.from_dict(rows, orient="index")
        return table.rename_axis("agent").sort_values("score", ascending=False, kind="stable")

    def _figures(self, agent: str, mine: pd.DataFrame) -> dict[str, float]:
        """Return what the table has of an agent, of its rows of :attr:`by_task`."""
        told, name = self.values[agent], METRICS[0]
        score, low, high = stratified(
            {task: one[name] for task, one in told.items()},
            {task: one[name] for task, one in self.easy.items()},
            {task: one[name] for task, one in self.best.items()},
            self.resamples,
            self.seed,
        )
        zero = [np.zeros(1)] * len(told)
        ratios = mine.p99_wait_s.to_numpy() / mine.easy_p99_wait_s.replace(0, np.nan)
        longest = mine[LONGEST] / mine[f"easy_{LONGEST}"].replace(0, np.nan)
        return {
            "score": score,
            "score_low": low,
            "score_high": high,
            "above_easy": probability_of_improvement([*self.scores(agent).values()], zero),
            "p99_wait": float(np.exp(np.log(ratios.dropna()).mean())),
            "longest_wait": float(longest.max()),
            "unserved_jobs": float(mine.unserved_jobs.sum()),
            "utilization": float(mine.utilization.mean()),
        }

    @property
    def by_task(self) -> pd.DataFrame:
        """One row an agent and task: its score, metrics, EASY's waits, and what was proved.

        With the intervals of :func:`hpcgym.suite.board.ends_of_task`.
        All are nan where the proof failed. Metrics are means over slices and seeds, but for
        ``max_wait_s`` and ``longest_wait_s``, the longest of all, and ``unserved_jobs``, a sum over
        slices.
        """
        import pandas as pd

        rows = []
        for agent, told in self.values.items():
            scores = self.scores(agent)
            for task, metrics in told.items():
                mine, easy = _summed(metrics), _summed(self.easy[task])
                proof = self.proofs.get(agent, {}).get(task)
                count = tasks()[task].window * metrics[METRICS[0]].shape[1]
                name = METRICS[0]
                ends = ends_of_task(
                    metrics[name], self.easy[task][name][0], self.best[task][name][0],
                    self.resamples, self.seed,
                )  # fmt: skip
                starving = mine[LONGEST] > STARVING * easy[LONGEST]
                leaving = mine["unserved_jobs"] - easy["unserved_jobs"] > LEAVING * count
                rows.append(
                    {
                        "agent": agent,
                        "task": task,
                        "seeds": len(metrics[name]),
                        "slices": metrics[name].shape[1],
                        "score": float(scores[task].mean()),
                        **ends,
                        **mine,
                        "easy_mean_bsld": float(self.easy[task][name].mean()),
                        "best_mean_bsld": float(self.best[task][name].mean()),
                        "easy_p99_wait_s": easy["p99_wait_s"],
                        f"easy_{LONGEST}": easy[LONGEST],
                        "easy_unserved_jobs": easy["unserved_jobs"],
                        "starving": starving,
                        "leaving": leaving,
                        "gated": starving or leaving,
                        "verified": proof is not None and proof.equal,
                        "proof": "" if proof is None else proof.text,
                    }
                )
        return pd.DataFrame(rows)

    def rows(self) -> list[dict[str, Any]]:
        """Return everything as rows: of each agent one of all tasks, then one a task."""
        every = [
            {"agent": a, "task": "all", **row} for a, row in self.table.to_dict("index").items()
        ]
        return every + [
            {str(k): v for k, v in row.items()} for row in self.by_task.to_dict("records")
        ]

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
            "probability_of_improvement": {
                one: {other: self.better(one, other) for other in self.values if other != one}
                for one in self.values
            },
        }

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and rows of the table for people."""
        table = self.table
        interval = [
            "-" if np.isnan(low) else f"{shown(low)} to {shown(high)}"
            for low, high in zip(table.score_low, table.score_high, strict=True)
        ]
        marked = {
            name: [
                f"{shown(value)}{' !' if bad else ''}"
                for value, bad in zip(table[name], table[mark], strict=True)
            ]
            for name, mark in (("longest_wait", "starving"), ("unserved_jobs", "leaving"))
        }
        verified = [f"{a} of {b}" for a, b in zip(table.verified, table.tasks, strict=True)]
        columns = {
            "agent": [str(name) for name in table.index],
            "score": [shown(value) for value in table.score],
            "95 % interval": interval,
            "P(above EASY)": [shown(value) for value in table.above_easy],
            "p99 wait / EASY": [shown(value) for value in table.p99_wait],
            "longest wait / EASY": marked["longest_wait"],
            "unserved": marked["unserved_jobs"],
            "utilization (%)": [shown(100 * value) for value in table.utilization],
            "seeds": [str(value) for value in table.seeds],
            "verified": verified,
        }
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]

    def cells_by_task(self) -> tuple[list[str], list[list[str]]]:
        """Return the same of a table with the score of each agent in each task."""
        told = self.by_task
        texts = [
            f"{shown(score)}{' !' if gated else ''}"
            for score, gated in zip(told.score, told.gated, strict=True)
        ]
        scores = dict(zip(zip(told.agent, told.task, strict=True), texts, strict=True))
        agents = list(self.table.index)
        rows = [[task, *(scores[agent, task] for agent in agents)] for task in self.tasks]
        return ["score by task", *map(str, agents)], rows

    def to_latex(self) -> str:
        """Return the table for people as LaTeX's ``tabular``, with the package booktabs."""
        return latex(*_unmarked(*self.cells()))

    def to_markdown(self) -> str:
        """Return the scores over all tasks, and task by task, as Markdown."""
        tables = self.cells(), self.cells_by_task()
        return "\n".join(markdown(*_unmarked(*one)) for one in tables)


def _unmarked(heading: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[Cell]]]:
    """Return a table in which nothing is marked as the best."""
    return heading, [[(text, False) for text in row] for row in rows]


def board_of(
    submissions: Sequence[Submission],
    *,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Board:
    """Return submissions side by side, each proved again; EASY and the best static one are played.

    Parameters
    ----------
    submissions : over the tasks that all of them have; the small ones only if there are no others.
    resamples, seed : of the intervals.
    progress : as of :func:`hpcgym.evaluation.evaluate`.

    Raises
    ------
    HpcgymError : submissions without a common task, or jobs that are not on this machine.
    """  # fmt: skip
    common = [name for name in tasks() if all(name in one.tasks for one in submissions)]
    common = [name for name in common if not tasks()[name].mini] or common
    if not common:
        raise HpcgymError("the submissions have no task in common")
    board = Board({}, {}, {}, {}, resamples, seed)
    agents = _names(submissions)
    with (progress or silent)("verifying", len(common) * len(submissions)) as step:
        for name in common:
            with Ground(tasks()[name]) as ground:
                board.easy[name] = _played(ground, easy_of(ground.task))
                board.best[name] = _played(ground, static_of(ground.task))
                for agent, one in zip(agents, submissions, strict=True):
                    step(f"{agent}: {name}")
                    proof = prove(one, ground)
                    values = _proved(one, proof, len(ground.slices))
                    board.values.setdefault(agent, {})[name] = values
                    board.proofs.setdefault(agent, {})[name] = proof
    return board


def _names(submissions: Sequence[Submission]) -> list[str]:
    """Return what rows are called: agents, with their folders where there are two of a name."""
    agents = [one.agent for one in submissions]
    names = [
        one.agent if agents.count(one.agent) == 1 else f"{one.agent} ({printable(str(one.folder))})"
        for one in submissions
    ]
    for name in names:
        if names.count(name) > 1:
            raise HpcgymError(f"the submission {name} is there twice")
    return names


def _proved(one: Submission, proof: Proof, slices: int) -> dict[str, Floats]:
    """Return the metrics of a submission in a task, which are as told if they were proved."""
    if proof.longest is None:
        seeds = len(one.tasks[proof.task]["seeds"])
        return {metric: np.full((seeds, slices), np.nan) for metric in (*METRICS, LONGEST)}
    told = {metric: one.values(proof.task, metric) for metric in METRICS}
    return {**told, LONGEST: proof.longest}


def _played(ground: Ground, scheduler: Any) -> dict[str, Floats]:
    """Return the metrics of a scheduler in a task, (1, slices) each."""
    rows = []
    for episode in ground.slices:
        result = ground.result(ground.play(scheduler, episode), episode)
        rows.append(ground.metrics(result, episode))
    return {name: np.array([[row[name] for row in rows]]) for name in (*METRICS, LONGEST)}


def _summed(metrics: dict[str, Floats]) -> dict[str, float]:
    """Return the metrics of a task over its slices and seeds."""
    found = {name: float(values.mean()) for name, values in metrics.items()}
    found |= {name: float(metrics[name].max()) for name in ("max_wait_s", LONGEST)}
    found["unserved_jobs"] = float(metrics["unserved_jobs"].sum(axis=1).mean())
    return found
