"""Submissions side by side: scores with intervals, wins, the gate, and which are verified."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError, check_each_once
from hpcgym.names import printable
from hpcgym.progress import Progress, silent
from hpcgym.report.cells import Table, two_lines
from hpcgym.schedule.gains import Felt, Gain, times
from hpcgym.study.intervals import BLOCK, Floats, Mean, mean_of
from hpcgym.study.suite.evaluation import PROMISES, Evaluation
from hpcgym.study.suite.proofs import COUNTED, PROVED, Proof, prove
from hpcgym.study.suite.submissions import Submission, metrics_of
from hpcgym.study.suite.tasks import Task, apart, suite, tasks
from hpcgym.words import shown

if TYPE_CHECKING:
    import pandas as pd

#: To win, an agent must win with this share of its seeds by themselves, and with their mean.
WINS = 0.6


#: Why scores are of weeks, and what is said of plain means.
WEEKLY = (
    "score: each week counts alike. In a mean over all jobs a few crowded weeks decide, and who is"
    " best in these need not be in others; so both are shown. BSLD: the mean over all jobs of a"
    " log, divided by that of EASY's schedule or of the reference's, and then the geometric mean"
    " over logs. Waits: over EASY's, too, the greatest of all logs; of wide jobs, which ask for"
    " over a quarter of the machine, a mean as of BSLD. gated: a log that breaks the gate counts as"
    " EASY's. All are means over the replays of a log"
)

#: Heading of a table -> the text of a row below it.
_Columns = Mapping[str, Callable[[Mapping[Any, Any]], str]]

#: Of the tables for people: who wins; and what jobs wait for that, in a task and on a log.
_WON: _Columns = {
    "score": lambda row: _interval(row, "score"),
    "log(reference / agent)": lambda row: _interval(row, "above"),
    "seeds that win": lambda row: f"{row['seeds_winning']} of {row['seeds']}",
    "wins": lambda row: "yes" if row["wins"] else "no",
    "steps": lambda row: _steps(row),
    "verified": lambda row: "yes" if row["verified"] else "no",
}
_PAID: _Columns = {
    "score": lambda row: _number(row["score"]),
    "ungated score": lambda row: _number(row["gain"]),
    "BSLD / EASY's": lambda row: _number(row["mean_ratio"]),
    "same, gated": lambda row: _number(row["gated_mean_ratio"]),
    "BSLD / reference": lambda row: _number(row["mean_ratio_to_reference"]),
    "longest / EASY's": lambda row: _number(row["longest_wait"]),
    "weighted / EASY's": lambda row: _number(row["area_weighted_wait"]),
    "of wide / EASY's": lambda row: _number(row["wide_wait"]),
    "promises broken": lambda row: _share(row["promises_broken"]),
    "gate": lambda row: (
        f"{len(row['gate'].split(', '))} broken" if row["gate"] else _kept(row["gain"])
    ),
}
_OF_LOGS = ("score", "same, gated", "BSLD / EASY's", "gate")  # a log shows otherwise
_PAID_ON_LOG: _Columns = {
    "BSLD": lambda row: shown(row["mean_bsld"]),
    "EASY's": lambda row: shown(row["easy_mean_bsld"]),
    **{heading: text for heading, text in _PAID.items() if heading not in _OF_LOGS},
    "gate": lambda row: "broken" if row["gate"] else _kept(row["gain"]),
}


def _kept(gain: float) -> str:
    """Return what is said of a gate that is not broken; "-" without a schedule, and so a gain."""
    return "-" if gain != gain else "kept"


def _steps(row: Mapping[Any, Any]) -> str:
    """Return how many steps a training took; "-" without one."""
    if not row["trained"]:
        return "-"
    steps = row["steps"]
    return "unknown" if steps != steps else f"{steps:,.0f}"


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"


def _share(value: float) -> str:
    """Return a share in per cent; "-" where it is not known."""
    return "-" if value != value else "0 %" if value == 0 else f"{100 * value:.2g} %"


def _interval(row: Mapping[Any, Any], name: str) -> str:
    """Return a mean with its interval for people."""
    value, low, high = (row[name + end] for end in ("", "_low", "_high"))
    return _number(value) if low != low else f"{value:.2f} [{low:.2f}, {high:.2f}]"


class OnLog(NamedTuple):
    """The results of an agent on a log, and those of EASY and the reference.

    Attributes
    ----------
    gains : what the agent gains on EASY, by seed.
    reference : what the reference gains.
    felt, easy, rival : slowdowns and waits of jobs in each replay: for the agent by seed, for EASY
        and the reference.
    proof : what was proved.
    steps : of trainings, as they were counted; empty of an agent that was not trained, None of one
        whose steps were not counted.
    """

    gains: Sequence[Gain]
    reference: Gain
    felt: Sequence[Sequence[Felt]]
    easy: Sequence[Felt]
    rival: Sequence[Felt]
    proof: Proof
    steps: Sequence[int] | None = ()

    @property
    def counted(self) -> Floats:
        """(seeds, n_replays, n_weeks) float64, the gains that count: 0 where the gate is broken."""
        return np.array([gain.counted for gain in self.gains])

    @property
    def broken(self) -> str:
        """The measures that break the gate with some seed, in words; "" if none does."""
        return next((", ".join(gain.broken) for gain in self.gains if gain.broken), "")

    def ratios(self, metric: str, other: Sequence[Felt]) -> Floats:
        """Return a metric of each seed over that of another schedule, (seeds,)."""
        theirs = metrics_of(other)[metric]
        return np.array([times(metrics_of(felt)[metric], theirs) for felt in self.felt])


class Scored(NamedTuple):
    """What an agent reached in a task.

    Attributes
    ----------
    score : the mean over logs of the mean over weeks of log(EASY / agent), a mean over seeds.
    above : the same of log(reference / agent), how much it gains above the reference.
    seeds, winning : how many seeds there are, and with how many the interval of log(reference /
        agent) is above 0.
    """

    score: Mean
    above: Mean
    seeds: int
    winning: int

    @property
    def wins(self) -> bool:
        """Whether the agent is better than the reference: with the mean and three of five seeds."""
        return self.above.low > 0 and self.winning >= WINS * self.seeds


def scored(logs: Sequence[tuple[Floats, Floats]], block: int = BLOCK) -> Scored:
    """Return what an agent reached, from its gains and those of the reference.

    Parameters
    ----------
    logs : of each log (seeds, n_weeks) of the agent and (n_weeks,) of the reference, or with
        replays (seeds, n_replays, n_weeks) and (n_replays, n_weeks): gains over EASY as they count.
    block : weeks that are drawn together, see :func:`hpcgym.study.intervals.mean_of`.
    """
    ours = [weeks for weeks, _ in logs]
    more = [weeks - reference for weeks, reference in logs]
    each = [mean_of([gains[seed] for gains in more], block=block) for seed in range(len(ours[0]))]
    score, above = (
        mean_of([gains.mean(axis=0) for gains in every], block=block) for every in (ours, more)
    )
    return Scored(score, above, len(each), sum(mean.low > 0 for mean in each))


class Board(NamedTuple):
    """Submissions side by side.

    Attributes
    ----------
    tasks : name -> task; also those on logs of one's own.
    found : task -> agent -> log -> its results there.
    """

    tasks: dict[str, Task]
    found: dict[str, dict[str, dict[str, OnLog]]]

    @property
    def failed(self) -> list[tuple[str, Proof]]:
        """Agents with proofs that failed."""
        return [
            (agent, on_log.proof)
            for agents in self.found.values()
            for agent, logs in agents.items()
            for on_log in logs.values()
            if not on_log.proof.equal
        ]

    @property
    def table(self) -> pd.DataFrame:
        """One row a task and agent, the best of a task first, and behind it one without a log.

        - ``without``: the log that the row leaves out, see ``apart`` in ``tasks.toml``; "" of a row
          that has all.
        - ``score``, ``score_low``, ``score_high``: see :class:`Scored`.
        - ``above``, ``above_low``, ``above_high``: of log(reference / agent).
        - ``wins``, ``seeds_winning``, ``seeds``; a task is won on all its logs alone.
        - ``gain``: the score without the gate.
        - ``mean_ratio``: of plain mean bounded slowdowns, agent / EASY: a mean over seeds for each
          log, then the geometric mean over logs; ``gated_mean_ratio``: with 1 for a log and seed
          that breaks the gate; ``mean_ratio_to_reference``: agent / reference.
        - ``longest_wait``, ``area_weighted_wait``: over EASY's, the greatest of all logs and seeds.
        - ``wide_wait``: mean wait of jobs that ask for over a quarter of the machine, over EASY's:
          as ``mean_ratio``, of logs where such jobs wait; nan without any.
        - ``promises_broken``: the mean share of promises to heads that were broken; nan where it is
          not known of all logs.
        - ``gate``: logs on which the gate is broken, which count 0.
        - ``trained``: whether it was trained for this; ``steps``: the most that were counted of one
          of its trainings, nan where they were not; ``allowed_steps``: those of the task.
        - ``logs``, ``of_logs``: how many of the task's logs these are of.
        - ``verified``: whether all schedules were proved; else there are no numbers.
        """
        import pandas as pd

        rows = []
        for name, agents in self.found.items():
            task = self.tasks[name]
            own = {log.name for log in task.logs}
            common = [log for log in next(iter(agents.values())) if log in own]
            if not common:  # all are further logs
                continue
            scored_rows = [self._row(task, agent, common) for agent in agents]
            scored_rows.sort(key=lambda row: -np.nan_to_num(row["score"], nan=-np.inf))
            rest = [log for log in common if log != apart()]
            for row in scored_rows:
                rows.append(row)
                if 0 < len(rest) < len(common):
                    rows.append({**self._row(task, row["agent"], rest), "without": apart()})
        return pd.DataFrame(rows)

    def _row(self, task: Task, agent: str, logs: Sequence[str]) -> dict[str, Any]:
        row = row_of(task, agent, {log: self.found[task.name][agent][log] for log in logs})
        every = len(logs) == len(task.logs)
        return {**row, "wins": row["wins"] and every, "of_logs": len(task.logs), "without": ""}

    @property
    def by_log(self) -> pd.DataFrame:
        """One row a task, log and agent: as :attr:`table`, with the metrics and EASY's."""
        import pandas as pd

        rows = []
        for name, agents in self.found.items():
            for agent, logs in agents.items():
                for log, on_log in logs.items():
                    row = row_of(self.tasks[name], agent, {log: on_log})
                    row = {"task": name, "log": log, "agent": agent, **row, "gate": on_log.broken}
                    every = [metrics_of(each) for each in on_log.felt]
                    for metric, easy in metrics_of(on_log.easy).items():
                        row[metric] = float(np.mean([each[metric] for each in every] or [np.nan]))
                        row[f"easy_{metric}"] = easy
                    rows.append(
                        {
                            **row,
                            "weeks": on_log.reference.weeks.shape[-1],
                            "proof": on_log.proof.text,
                        }
                    )
        return pd.DataFrame(rows)

    @staticmethod
    def tables(rows: pd.DataFrame) -> list[Table]:
        """Return the tables that people see of rows of a task: who wins, and what jobs wait."""
        every: list[dict[Any, Any]] = rows.to_dict("records")
        on_logs = "log" in rows
        words = ["log", "agent"] if on_logs else ["agent"]
        task, paid = every[0]["task"], _PAID_ON_LOG if on_logs else _PAID
        of = "" if on_logs else f", {every[0]['logs']} of {every[0]['of_logs']} logs"
        whole = [row for row in every if not row.get("without")]
        named = [
            {**row, "agent": f"- without {row['without']}"} if row.get("without") else row
            for row in every
        ]

        def made(title: str, columns: _Columns, rows: list[dict[Any, Any]]) -> Table:
            cells = [[*(row[word] for word in words), *(text(row) for text in columns.values())]
                     for row in rows]  # fmt: skip
            return Table([*words, *map(two_lines, columns)], cells, len(words), title)

        return [
            made(f"{task}{of}", _WON, whole),
            made(
                f"{task}: mean BSLD, and waits: the longest, weighted by area, and of wide jobs",
                paid,
                named,
            ),
        ]

    @staticmethod
    def broken(rows: pd.DataFrame) -> list[str]:
        """Return which agents break the gate, or promises, and where, in lines."""
        whole = [row for row in rows.to_dict("records") if not row.get("without")]
        return [
            f"{row['agent']} breaks the gate of {row['task']} on {row.get('log', row['gate'])}"
            + (f": {row['gate']}" if "log" in row else "")
            for row in whole
            if row["gate"]
        ] + [
            f"{row['agent']} breaks {_share(row['promises_broken'])} of its promises to heads in"
            f" {row['task']}" + (f" on {row['log']}" if "log" in row else "")
            for row in whole
            if row["promises_broken"] > 0
        ]

    def facts(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, for JSON."""
        every = {"agents": self.table, "by_log": self.by_log}
        records = {key: table.to_dict("records") for key, table in every.items()}
        return {"suite": suite(), "proved": PROVED, "counted": COUNTED, "weekly": WEEKLY, **records}


def row_of(task: Task, agent: str, logs: Mapping[str, OnLog]) -> dict[str, Any]:
    """Return a row of a table: what an agent reached on some logs of a task."""
    row: dict[str, Any] = {"task": task.name, "agent": agent}
    verified = all(on_log.proof.equal for on_log in logs.values())
    if verified:
        every = [*logs.values()]
        score = scored(
            [(on_log.counted, on_log.reference.counted) for on_log in every],
            block_of(task),
        )
        paid = _paid(every)
    else:
        nothing = Mean(*[float("nan")] * 3)
        score, paid = Scored(nothing, nothing, 0, 0), dict.fromkeys(_PAID_COLUMNS, float("nan"))
    for name, mean in (("score", score.score), ("above", score.above)):
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), mean, strict=True))
    return row | {
        "wins": score.wins,
        "seeds_winning": score.winning,
        "seeds": score.seeds,
        **paid,
        "gate": ", ".join(log for log, on_log in logs.items() if on_log.broken),
        **_trainings(logs.values()),
        "allowed_steps": task.steps,
        "logs": len(logs),
        "verified": verified,
    }


def _trainings(logs: Collection[OnLog]) -> dict[str, Any]:
    """Return whether an agent was trained, and with how many steps at most."""
    known = [step for on_log in logs for step in on_log.steps or ()]
    all_known = all(on_log.steps is not None for on_log in logs)
    return {
        "trained": bool(known) or not all_known,
        "steps": float(max(known)) if known and all_known else float("nan"),
    }


_PAID_COLUMNS = (
    "gain", "mean_ratio", "gated_mean_ratio", "mean_ratio_to_reference", "longest_wait",
    "area_weighted_wait", "wide_wait", "promises_broken",
)  # fmt: skip


def _paid(logs: Sequence[OnLog]) -> dict[str, float]:
    """Return the weekly gain without the gate, plain means, waits and promises on some logs."""

    def over_logs(ratios: Iterable[Floats]) -> float:
        means = [ratio.mean() for ratio in ratios]
        known = [np.log(mean) for mean in means if 0 < mean < np.inf]  # nor nan: nobody waits
        return float(np.exp(np.mean(known))) if known else float("nan")

    def of_easy(metric: str) -> list[Floats]:
        return [on_log.ratios(metric, on_log.easy) for on_log in logs]

    plain = of_easy("mean_bsld")
    kept = [np.array([not gain.broken for gain in on_log.gains]) for on_log in logs]
    broken = [[metrics_of(felt)[PROMISES] for felt in on_log.felt] for on_log in logs]
    values = (
        np.mean([np.mean([gain.weeks for gain in on_log.gains]) for on_log in logs]),
        over_logs(plain),
        over_logs(np.where(*each, 1.0) for each in zip(kept, plain, strict=True)),
        over_logs(on_log.ratios("mean_bsld", on_log.rival) for on_log in logs),
        np.max([ratios.max() for ratios in of_easy("longest_wait_h")]),
        np.max([ratios.max() for ratios in of_easy("area_weighted_wait_h")]),
        over_logs(of_easy("wide_wait_h")),
        np.mean([np.mean(each) for each in broken]),
    )
    return dict(zip(_PAID_COLUMNS, map(float, values), strict=True))


def block_of(task: Task) -> int:
    """Return how many weeks are drawn together; slices have nothing to do with one another."""
    return 1 if task.window else BLOCK


def board_of(
    submissions: Sequence[Submission],
    *,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Board:
    """Return submissions side by side, each proved again; EASY and references are run.

    Parameters
    ----------
    submissions : each task is reported of those that have it, over the logs that all of these have.
    progress : as of :func:`hpcgym.study.evaluate`.
    note : is told of logs that are not on this machine, which are left out.

    Raises
    ------
    HpcgymError : nothing is left.
    """
    agents = [submission.agent for submission in submissions]
    agents = [  # with their folders where there are two of a name
        name if agents.count(name) == 1 else f"{name} ({printable(str(submission.folder))})"
        for name, submission in zip(agents, submissions, strict=True)
    ]
    check_each_once("submissions", agents)
    board = Board({}, {})
    every = dict.fromkeys(name for submission in submissions for name in submission.tasks)
    for name in sorted(every, key=[*tasks(), *every].index):
        those = {
            a: submission
            for a, submission in zip(agents, submissions, strict=True)
            if name in submission.tasks
        }
        task = board.tasks[name] = next(iter(those.values())).task(name)
        if any(submission.task(name) != task for submission in those.values()):
            raise HpcgymError(f"{name}: these submissions are of different logs")
        logs = [set(submission.tasks[name]["logs"]) for submission in those.values()]
        common = [
            log for log in (*task.logs, *task.further) if all(log.name in played for played in logs)
        ]
        for log in task.further:
            if log.digest and log not in common:
                note(f"{name}: not played by all: {log.name}, which is sealed")
        with (progress or silent)(f"verifying {name}", len(common) * len(those)) as step:
            for log in common:
                try:
                    evaluation = Evaluation(task, log)
                except HpcgymError as error:
                    note(f"{name}: left out: {log.name}: {error}")
                    continue
                for agent, submission in those.items():
                    step(f"{agent}: {name}, {log.name}")
                    results = board.found.setdefault(name, {}).setdefault(agent, {})
                    steps = _steps_of(submission, name, log.name)
                    results[log.name] = on_log(evaluation, prove(submission, evaluation), steps)
    if not board.found:
        raise HpcgymError("the submissions have no task and log in common that is on this machine")
    return board


def _steps_of(submission: Submission, task: str, log: str) -> Sequence[int] | None:
    """Return :attr:`OnLog.steps`."""
    if not submission.tasks[task].get("trained"):
        return ()
    steps = submission.steps(task, log)
    return [*steps.values()] if [*steps] == [*submission.told(task, log)] else None


def on_log(evaluation: Evaluation, proof: Proof, steps: Sequence[int] | None) -> OnLog:
    """Return the results of an agent on a log, from what was proved of it.

    ``steps``: :attr:`OnLog.steps`.
    """
    felt = [*proof.felt.values()] if proof.equal else []
    gains = [evaluation.gain(replays) for replays in felt]
    easy, rival = evaluation.easy, evaluation.rival
    return OnLog(gains, evaluation.reference, felt, easy, rival, proof, steps)
