"""Forecasts: when jobs that wait, or that may be submitted, start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError, WorkloadError, check_whole, did_you_mean, unknown
from hpcgym.forecasting.arrivals import LOOKS_BACK_S, NOBODY, Arrivals, Block, supposed_run_time
from hpcgym.forecasting.clocks import first_passes
from hpcgym.forecasting.futures import Futures
from hpcgym.forecasting.reasons import correlations, least_told, sentence_of
from hpcgym.forecasting.run_times import Floats, RunTimes
from hpcgym.forecasting.state import MachineState
from hpcgym.forecasting.times import time_by
from hpcgym.names import CORE
from hpcgym.simulation.plans import planned_starts
from hpcgym.simulation.restricted import within_quotas
from hpcgym.units import HOUR_S, whole_seconds
from hpcgym.workload.columns import MISSING, Ints
from hpcgym.workload.extracts import joined, stacked
from hpcgym.workload.io.swf_header import HEADER_KEYS, name_lines, names_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import os

    import pandas as pd

    from hpcgym.scheduler.rules import Rules, Scheduler

#: Blocks of jobs to come that the futures of a forecast share.
BLOCKS = 16
LEVELS = (0.1, 0.5, 0.9)
#: A time that does not come; as a number that is far from all times [s].
_NEVER, _FAR = np.inf, 1e18
_Amounts = Mapping[str, int] | None


@dataclass(frozen=True, eq=False)
class StartForecast:
    """When one job starts.

    Attributes
    ----------
    job : its number; -1 of one that has not been submitted.
    time : [s] of the log's clock, at which this is known.
    starts : (n_futures,) float64 [s] of the log's clock, rising; inf where it never starts.
    header : of the log: when its second 0 was, and in which time zone.
    """

    job: int
    time: int
    starts: Floats
    header: Mapping[str, list[str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        called = f"job {self.job}" if self.job >= 0 else "a job like that"
        hours = ", ".join(
            f"{name} {(start - self.time) / HOUR_S:.3g} h"
            for name, start in zip(("10 %", "50 %", "90 %"), self.quantiles(LEVELS), strict=True)
        )
        return f"StartForecast({called} starts in: {hours})"

    def quantiles(self, levels: Sequence[float] = LEVELS) -> Floats:
        """Return the times [s] of the log's clock by which it has started with these chances."""
        return quantiles(self.starts, levels)

    @property
    def median(self) -> float:
        """The time [s] of the log's clock by which it has started with a chance of one half."""
        return float(self.quantiles((0.5,))[0])

    def by(self, when: str | float) -> float:
        """Return the chance that the job has started by a time.

        Parameters
        ----------
        when : a time of day, such as "18:00" or "Tue 18:00", which is the next one; a date,
            "2024-05-03 18:00"; how long from now, "6h"; or [s] of the log's clock.

        Raises
        ------
        HpcgymError : none of these; or a date, and the log tells none.
        """
        return float((self.starts <= self.second_of(when)).mean())

    def second_of(self, when: str | float) -> int:
        """Return a time as ``by`` takes it, [s] of the log's clock."""
        return time_by(when, self.time, self.header)


@dataclass(frozen=True, eq=False)
class Forecast:
    """When the jobs of a state start, and others that may be submitted.

    All comes from the same futures. Of each job that runs or waits a run time is drawn from its
    distribution (:class:`hpcgym.forecasting.run_times.RunTimes`); jobs to come are blocks of past
    weeks (:class:`hpcgym.forecasting.arrivals.Arrivals`); and the rules say what follows. So
    differences between what is asked are of the same futures, too.

    Attributes
    ----------
    state, scheduler : of what, and by which rules.
    past : the jobs from which it is learned: waits and run times of those that have ended.
    futures, seed : how many, and of what draws.
    threads : that work on it; nothing depends on it.
    learned : the distributions of run times; None: those of ``past``.
    """

    state: MachineState
    scheduler: Scheduler
    past: Workload
    futures: int = 64
    seed: int = 0
    threads: int | None = None
    learned: RunTimes | None = None

    def __repr__(self) -> str:
        return f"Forecast({self.state!r}, by {self.scheduler}, {self.futures} futures)"

    # -- what is asked -----------------------------------------------------------------------------

    def table(self, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
        """Return when the waiting jobs start: a row for each, in the order of submission.

        Columns: job, its number; user; processors; requested and waited [s]; then for each level,
        such as p10, the time [s] of the log's clock by which the job has started with that chance,
        inf: never.
        """
        import pandas as pd

        jobs = self.state.jobs.take(~self.state.running)
        starts = quantiles(self.starts, levels)
        return pd.DataFrame(
            {
                "job": jobs.job_number,
                "user": jobs.user_id,
                "processors": jobs.requested_processors,
                "requested": jobs.requested_time,
                "waited": self.state.time - jobs.submit_time,
                **{level_name(level): starts[k] for k, level in enumerate(levels)},
            }
        )

    def of(self, job: int) -> StartForecast:
        """Return when a waiting job starts, by its number.

        Raises
        ------
        WorkloadError : no such job waits.
        """
        place = self._place_of(job)
        return self._forecast(int(job), self.starts[:, place])

    def depends_on(self, job: int) -> pd.DataFrame:
        """Return on which running jobs the start of a waiting job depends, the most first.

        Columns: job, its number; user; processors; correlation, over futures, of the ranks of its
        run time and of the start in question; share, the median of its run time over its request.

        Raises
        ------
        WorkloadError : no such job waits.
        """
        import pandas as pd

        place = self._place_of(job)
        jobs = self.state.jobs.take(self.state.running)
        table = pd.DataFrame(
            {
                "job": jobs.job_number,
                "user": jobs.user_id,
                "processors": jobs.requested_processors,
                "correlation": self._correlations[:, place],
                "share": self._usual_shares,
            }
        )
        order = table.correlation.argsort(kind="stable")[::-1]
        return table.iloc[order].reset_index(drop=True)

    def reasons(self) -> pd.DataFrame:
        """Return on which running job the start of each waiting job depends most.

        Columns: job, the waiting one's number; on, the running one's, or -1 where the start depends
        on none more than chance would have it; correlation and share, as of :meth:`depends_on`.
        """
        import pandas as pd

        running = self.state.jobs.job_number[self.state.running]
        waiting = self.state.jobs.job_number[self.targets]
        if not len(running):
            none = np.zeros(len(waiting))
            return pd.DataFrame({"job": waiting, "on": MISSING, "correlation": none, "share": none})
        most = self._correlations.argmax(axis=0)
        correlation = self._correlations.max(axis=0)
        above_chance = correlation >= least_told(self.futures, len(running))
        return pd.DataFrame(
            {
                "job": waiting,
                "on": np.where(above_chance, running[most], MISSING),
                "correlation": correlation,
                "share": self._usual_shares[most],
            }
        )

    def why(self, job: int) -> str:
        """Return on which running job a waiting one's start depends most, in words; "": on none.

        Raises
        ------
        WorkloadError : no such job waits.
        """
        return sentence_of(self.reasons().iloc[self._place_of(job)])

    @cached_property
    def _usual_shares(self) -> Floats:
        """The median of the run time over the request of each running job, (n_running,)."""
        requested = np.maximum(self.state.jobs.requested_time[self.state.running], 1)
        shares: Floats = np.median(self._own_runs[:, self.state.running] / requested, axis=0)
        return shares

    @cached_property
    def _correlations(self) -> Floats:
        return correlations(self._own_runs[:, self.state.running], self.starts)

    def _place_of(self, job: int) -> int:
        """Return the place of a job among those that wait."""
        places = np.flatnonzero(self.state.jobs.job_number[self.targets] == job)
        if not len(places):
            runs = bool((self.state.jobs.job_number[self.state.running] == job).any())
            raise WorkloadError(
                f"{self.state.jobs.name}: job {job} {'runs already' if runs else 'does not wait'}"
            )
        return int(places[0])

    def if_submitted(
        self,
        processors: int,
        requested: float | str,
        *,
        user: int | str | None = None,
        partition: int | str | None = None,
        per_unit: _Amounts = None,
    ) -> StartForecast:
        """Return when a job would start that were submitted now.

        Parameters
        ----------
        processors : that it asks for.
        requested : time [s], or a text such as "4h" or "4:00:00". A number alone is seconds, also
            as a text: "240" is 4 minutes, where sbatch takes it for 240 minutes.
        user : whose, by name or by the log's number: their usage, limits and habits count.
        partition : that it asks for, by name or by the log's number. By default the machine's
            default partition, or none where the machine has none.
        per_unit : what each of its equal parts asks for, each on one node, such as
            ``{"core": 4, "gpu": 1}``, of a log that tells of these. By default a processor.

        Raises
        ------
        HpcgymError, WorkloadError : it cannot be simulated.
        """
        job = self._new_job(processors, requested, user, partition, per_unit)
        return self._forecast(MISSING, self.new_starts(job))

    def shapes(
        self,
        processors: Sequence[int],
        requested: Sequence[float | str] | None = None,
        *,
        work: str | float | None = None,
        user: int | str | None = None,
        partition: int | str | None = None,
        per_unit: _Amounts = None,
        levels: Sequence[float] = LEVELS,
    ) -> pd.DataFrame:
        """Return when jobs of some shapes would start, of which one were submitted now.

        Parameters
        ----------
        processors : to ask for.
        requested : times to ask for, as of :meth:`if_submitted`, each with each number of
            processors.
        work : processor seconds, or a text such as "512h" for processor hours: each job requests
            this over its processors. Either this or ``requested``.
        user, partition, per_unit : as of :meth:`if_submitted`.

        Returns
        -------
        table : a row for each shape; one that is given twice has one. Columns: processors,
            requested [s], and the levels, such as p50, of how long it waits [s]; earlier: how much
            earlier than the first shape it starts, in the mean [s]; earlier_share, in how many
            futures; earlier_p50 and so on, the levels of that difference over the same futures [s];
            ends, in how many futures the run time that is drawn of the first shape is within what
            this one requests.

        Raises
        ------
        HpcgymError : both or neither of ``requested`` and ``work``, or no shape.
        """
        if (requested is None) == (work is None):
            raise HpcgymError("shapes: give either requested or work")
        if work is not None:
            total = whole_seconds("work", work, 1, 2**53)
            for width in processors:
                check_whole("processors", width, 1)
            pairs: list[tuple[int, Any]] = [(width, -(-total // width)) for width in processors]
        else:
            pairs = [(width, time) for width in processors for time in requested or ()]
        if not pairs:
            raise HpcgymError("shapes: at least one number of processors, and one requested time")
        made = [self._new_job(width, time, user, partition, per_unit) for width, time in pairs]
        # each shape once, whatever it was called
        jobs = {(int(job.requested_processors[0]), int(job.requested_time[0])): job for job in made}
        starts = np.column_stack([self.new_starts(job) for job in jobs.values()])
        return self._compared([*jobs], starts, self._runs(made[0])[:, -1], levels)

    def shorter(
        self, job: int, requested: Sequence[float | str], *, levels: Sequence[float] = LEVELS
    ) -> pd.DataFrame:
        """Return when a waiting job would start if it requested other times from now on.

        Parameters
        ----------
        job : its number.
        requested : times [s] or texts, such as "2h".

        Returns
        -------
        table : as of :meth:`shapes`; the first row is the job as it is. In each future it and all
            others run as long as they do there, at most the requested time.

        Raises
        ------
        WorkloadError : no such job waits.
        HpcgymError : no such time.
        """
        row, jobs = int(self.targets[self._place_of(job)]), self.state.jobs
        runs, now = self._own_runs[:, row], int(jobs.requested_time[row])
        others = (whole_seconds("requested", time, 1) for time in requested)
        times = [*dict.fromkeys([now, *others])]
        starts = []
        for time in times:
            asked, own = jobs.requested_time.copy(), self._own_runs.copy()
            asked[row], own[:, row] = time, np.minimum(runs, time)
            state = replace(self.state, jobs=jobs.with_columns(requested_time=asked))
            made = Futures(state, self.scheduler, self._come, self._blocks)
            starts.append(self._starts(made, own, np.array([row])))
        asked_for = [(int(jobs.requested_processors[row]), time) for time in times]
        return self._compared(asked_for, np.column_stack(starts), runs, levels)

    def _compared(
        self, shapes: list[tuple[int, int]], starts: Floats, runs: Ints, levels: Sequence[float]
    ) -> pd.DataFrame:
        """Return the table of shapes: starts (n_futures, n_shapes) and run times (n_futures,)."""
        import pandas as pd

        table = pd.DataFrame(shapes, columns=["processors", "requested"])
        with np.errstate(invalid="ignore"):
            earlier = starts[:, :1] - starts
            earlier[np.isnan(earlier)] = 0.0  # neither ever starts
            mean = earlier.mean(axis=0)
        waits, saved = quantiles(starts, levels) - self.state.time, quantiles(earlier, levels)
        names = [level_name(level) for level in levels]
        return table.assign(
            **dict(zip(names, waits, strict=True)),
            earlier=mean,
            earlier_share=(earlier > 0).mean(axis=0),
            **{f"earlier_{name}": row for name, row in zip(names, saved, strict=True)},
            ends=(runs[:, np.newaxis] <= table.requested.to_numpy()).mean(axis=0),
        )

    def plan(self) -> pd.DataFrame:
        """Return when the waiting jobs start by the plan of a pass at the time of the state.

        It takes requested times at their word, and knows of no job to come: under Slurm's rules it
        is Slurm's own estimate, ``StartTime`` of ``squeue``, as its backfilling makes it at that
        second; under conservative backfilling the reservations. No future is simulated.

        Returns
        -------
        table : a row for each waiting job, in the order of submission. Columns: job, its number;
            planned [s] of the log's clock, int64: the time of the state if this pass starts it, -1
            if it has no reservation, as it is barred, too far behind in the queue (bf_max_job_test)
            or would start too late (bf_window).

        Raises
        ------
        HpcgymError : rules whose passes do not plan the starts of all waiting jobs.
        """
        import pandas as pd

        jobs = self.state.jobs
        known = jobs.with_columns(run_time=jobs.requested_time)
        planned = planned_starts(known, self.scheduler, self.state.cluster)[self.targets]
        return pd.DataFrame({"job": jobs.job_number[self.targets], "planned": planned})

    # -- the futures -------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> Floats:
        """When the waiting jobs start in each future, (n_futures, n_waiting) [s]; inf: never."""
        return self.starts_of(self.targets) if len(self.targets) else np.zeros((self.futures, 0))

    @cached_property
    def targets(self) -> Ints:
        """The rows of the state's jobs that wait, (n_waiting,)."""
        return np.flatnonzero(~self.state.running)

    def starts_of(self, rows: Ints) -> Floats:
        """Return when jobs of the state start that wait, (n_futures, n_rows) [s]; inf: never."""
        return self._starts(self._made, self._own_runs, rows)

    def _starts(self, made: Futures, runs: Ints, rows: Ints) -> Floats:
        return _floats(made.starts(runs, self._block_of, rows, self.threads, self._passes))

    @cached_property
    def _passes(self) -> Ints | None:
        rng = np.random.default_rng([self.seed, _OF_CLOCKS])
        return first_passes(self.state, self.scheduler, self.futures, rng)

    @cached_property
    def _made(self) -> Futures:
        return Futures(self.state, self.scheduler, self._come, self._blocks)

    @cached_property
    def _own_runs(self) -> Ints:
        return self._runs()

    @cached_property
    def _run_times(self) -> RunTimes:
        return RunTimes(self.past) if self.learned is None else self.learned

    @cached_property
    def _came(self) -> Workload:
        """The jobs of which blocks are made. Jobs that have not ended have the run time -1."""
        first = int(self.past.submit_time.searchsorted(self.state.time - LOOKS_BACK_S))
        past = self.past.take(slice(first, None))
        if len(past) and self.scheduler.quota:  # which may not have held then
            past = within_quotas(past, self.scheduler.quota)
        return joined(past, replace(self.state.jobs, initial=None))

    @cached_property
    def _come(self) -> Workload:
        """The same, each with the run time that it has if it comes again."""
        came, state = self._came, self.state
        start = np.where(came.wait_time >= 0, came.submit_time + came.wait_time, -1)
        run = supposed_run_time(came, start, state.time, self._run_times)
        return came.with_columns(run_time=run)

    @cached_property
    def _blocks(self) -> list[Block]:
        arrivals = Arrivals(self._come, self._come.run_time)
        number = min(BLOCKS, self.futures)
        return arrivals.sample(
            self.state.time, number, np.random.default_rng([self.seed, _OF_ARRIVALS])
        )

    @cached_property
    def _block_of(self) -> Ints:
        return np.arange(self.futures) % len(self._blocks)

    def _runs(self, first: Workload | None = None) -> Ints:
        """Return run times in each future, (n_futures, n_jobs) [s].

        They are of the jobs of the state, and behind them of others that are submitted now.
        """
        state, jobs = self.state, replace(self.state.jobs, initial=None)
        none = np.full(0 if first is None else len(first), -1)
        both = jobs if first is None else stacked([jobs, first])
        start, seed = np.concatenate([state.start, none]), [self.seed, _OF_RUNS]
        return self._run_times.sample(both, start, state.time, self.futures, seed)

    @cached_property
    def _of_jobs(self) -> dict[str, int]:
        """The partitions that jobs of the log are in, name -> number."""
        names = names_of(self._came, "partition")
        numbers = np.unique(self._came.partition[self._came.partition >= 0]).tolist()
        return {names.get(number, str(number)): number for number in numbers}

    @property
    def partitions(self) -> dict[str, int]:
        """The partitions that a job may ask for, by name: the log's number, or a new one."""
        known = self._of_jobs
        more = [part.name for part in self.state.cluster.partitions if part.name not in known]
        used = [0, *names_of(self._came, "partition"), *known.values()]
        return known | dict(zip(more, count(max(used) + 1), strict=False))

    def _partition(self, asked: int | str | None) -> tuple[int, Mapping[str, list[str]]]:
        """Return the log's number of a partition, and a header that has its name."""
        header, names = self.state.jobs.header, names_of(self.state.jobs, "partition")
        known = self.partitions
        if asked is None:
            ours = self.state.cluster.partitions
            # where jobs are in none of the machine's, all may have any nodes
            if any(part.name in self._of_jobs for part in ours):
                asked = next((part.name for part in ours if part.default), None)
        elif str(asked) not in known:
            by_number = {number: name for name, number in known.items()}
            if asked not in by_number:
                if not known:
                    raise HpcgymError(f"partition: {self.state.jobs.name} tells of no partitions")
                raise HpcgymError(unknown("partition", asked, known))
            asked = by_number[int(asked)]
        if asked is None:
            return MISSING, header
        number = known[str(asked)]
        if number not in names and str(asked) != str(number):
            lines = name_lines({**names, number: str(asked)})
            header = {**header, HEADER_KEYS["partition"]: lines}
        return number, header

    @property
    def users(self) -> dict[str, int]:
        """Names of users -> their numbers, where they are told."""
        return {name: number for number, name in names_of(self.state.jobs, "user_id").items()}

    def _user(self, asked: int | str | None) -> int:
        """Return the log's number of a user; -1 of nobody known."""
        if not isinstance(asked, str):
            return MISSING if asked is None else check_whole("user", asked, 0)
        numbers = self.users
        if asked not in numbers and asked.isdecimal():
            return int(asked)
        if asked not in numbers:
            hint = f"{did_you_mean(asked, numbers)}" if numbers else "it tells no names of users"
            raise HpcgymError(f"no job of {self.state.jobs.name} is of a user {asked!r}; {hint}")
        return numbers[asked]

    def _new_job(
        self,
        processors: int,
        requested: float | str,
        user: int | str | None,
        partition: int | str | None,
        per_unit: _Amounts,
    ) -> Workload:
        """Return a job that is submitted now, alone."""
        jobs = self.state.jobs
        in_partition, header = self._partition(partition)
        width = check_whole("processors", processors, 1, self.state.cluster.processors)
        asked, units, amounts = {CORE: 1, **(per_unit or {})}, None, None
        for name, amount in asked.items():
            check_whole(name, amount, int(name == CORE))
            if name not in (CORE, *jobs.per_unit):
                raise HpcgymError(
                    f"per_unit: {jobs.name} does not tell how much {name!r} jobs ask for"
                )
        if width % asked[CORE]:
            raise HpcgymError(f"per_unit: {width} processors are no parts of {asked[CORE]}")
        if jobs.units is not None:
            units = [width // asked[CORE]]
            amounts = {name: [asked.get(name, 0)] for name in jobs.per_unit}
        return Workload.from_columns(
            {
                "submit_time": [self.state.time],
                "requested_processors": [width],
                "requested_time": [whole_seconds("requested", requested, 1)],
                "user_id": [self._user(user)],
                "partition": [in_partition],
            },
            processors=jobs.processors,
            name=jobs.name,
            header=header,
            units=units,
            per_unit=amounts,
            first_submit_s=jobs.first_submit_s,
        )

    def new_starts(self, jobs: Workload, points: bool = False) -> Floats:
        """Return when the last of some jobs starts that are submitted now, (n_futures,) [s].

        With ``points`` (n_futures + 2,): then two futures in which no jobs come, one in which all
        run as long as requested, and one for the medians of their distributions.
        """
        blocks, block, runs = self._blocks, self._block_of, self._runs(jobs)
        passes = self._passes
        if points:
            state = self.state
            both = stacked([replace(state.jobs, initial=None), jobs])
            start = np.concatenate([state.start, np.full(len(jobs), -1)])
            median = self._run_times.medians(both, start, state.time)
            runs = np.concatenate([runs, [both.requested_time, median]])
            block = np.concatenate([block, np.full(2, len(blocks))])
            blocks = [*blocks, NOBODY]
            if passes is not None:
                passes = np.append(passes, np.repeat(int(np.median(passes)), 2))
        come = replace(self._come, header=jobs.header)
        made = Futures(self.state, self.scheduler, come, blocks, jobs)
        target = np.array([made.n_own - 1])
        return _floats(made.starts(runs, block, target, self.threads, passes))[:, 0]

    def _forecast(self, job: int, starts: Floats) -> StartForecast:
        state = self.state
        return StartForecast(job, state.time, np.sort(starts), state.jobs.header)


#: Streams of draws, beside the seed.
_OF_RUNS, _OF_ARRIVALS, _OF_CLOCKS = range(3)


def forecast(
    state: MachineState,
    scheduler: str | Scheduler = "easy",
    *,
    past: Workload | str | os.PathLike[str] | pd.DataFrame | None = None,
    futures: int = 64,
    seed: int = 0,
    threads: int | None = None,
    **rules: Unpack[Rules],
) -> Forecast:
    """Return when jobs start, from futures of a state.

    Parameters
    ----------
    state : of :func:`hpcgym.snapshot`.
    scheduler, rules : as :func:`hpcgym.simulate` takes them; but no actual run times, which nobody
        knows, and no Python that is called as jobs are scheduled.
    past : a log, on the clock of the state, from which run times and arrivals are learned in place
        of the past of the state; of it only what had happened by then.
    futures : how many; chances are in steps of one over this.
    seed : of all draws; the same seed gives the same forecast, with any number of threads.
    threads : that work on it; by default one for each processor that this process may use.

    Returns
    -------
    forecast : whose futures are simulated when something is asked of them.

    Raises
    ------
    HpcgymError : rules that forecasts do not know, or no whole numbers.
    WorkloadError : jobs that cannot be simulated, when their futures are.

    Notes
    -----
    Bounds of waits from waits alone, as of QBETS (Nurmi, Brevik and Wolski, JSSPP 2007), hold, but
    are wide: they know neither the queue nor what runs. What runs in which order by which rules,
    with run times as they usually are, was first simulated by Smith, Taylor and Foster (JSSPP
    1999), with a point for each run time. Here it is many draws of their distributions, with jobs
    to come.

    Examples
    --------
    >>> import hpcgym
    >>> result = hpcgym.simulate("lublin:jobs=800,processors=64,load=1.1,seed=0", "easy")
    >>> state = hpcgym.snapshot(result, at="3d")
    >>> told = hpcgym.forecast(state, "easy", futures=16)
    >>> list(told.table())
    ['job', 'user', 'processors', 'requested', 'waited', 'p10', 'p50', 'p90']
    >>> 0 <= told.if_submitted(processors=8, requested="1h").by("12h") <= 1
    True
    """
    futures = check_whole("futures", futures, 1, 100_000)
    seed = check_whole("seed", seed, 0, 2**63)
    if not isinstance(state, MachineState):
        raise HpcgymError(f"forecast: of a state, of hpcgym.snapshot(), not {state!r}")
    if threads is not None:
        check_whole("threads", threads, 1)
    chosen = scheduler_of(scheduler, rules)
    return Forecast(state, chosen, _known_past(state, past), futures, seed, threads)


def _known_past(state: MachineState, past: Any) -> Workload:
    """Return the jobs to learn from: those that had ended."""
    if past is None:
        return state.past
    log = past if isinstance(past, Workload) else load_workload(past)
    end = log.submit_time + log.wait_time + log.run_time
    return log.take((log.wait_time >= 0) & (log.run_time >= 1) & (end <= state.time))


def quantiles(starts: Floats, levels: Sequence[float]) -> Floats:
    """Return quantiles over futures, (n_levels,) or (n_levels, n_jobs) of (n_futures, n_jobs)."""
    at = np.asarray(levels, np.float64)
    if not ((at >= 0) & (at <= 1)).all():
        raise HpcgymError(f"levels are from 0 to 1, not {list(levels)}")
    # between a time and never there is never, in whatever direction
    finite = np.isfinite(starts)
    seconds = np.quantile(np.clip(starts, -_FAR, _FAR), at, axis=0, method="median_unbiased")
    latest = np.max(starts, axis=0, where=finite, initial=0.0)
    earliest = np.min(starts, axis=0, where=finite, initial=0.0)
    return np.select([seconds > latest, seconds < earliest], [_NEVER, -_NEVER], seconds)


def level_name(level: float) -> str:
    """Return what a level is called as a column: p10, p97.5."""
    return f"p{100 * level:.4g}"


def _floats(starts: Ints) -> Floats:
    """Return starts with inf in place of -1."""
    return np.where(starts < 0, _NEVER, starts.astype(np.float64))
