"""The episodes of a workload: windows, weeks or months of it, or all of it.

Training and evaluation are kept apart by time: "train" is the first share of a log's time (or of
its weeks or months), "test" the rest, and no episode that is drawn or listed reaches into the
other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.samplers import MOST, SAMPLERS, EpisodeChoice, choice_of, difficulty
from hpcgym.envs.core.slices import (
    PERIODS,
    Episode,
    check_beginning,
    periods_alone,
    periods_of,
)
from hpcgym.envs.core.surroundings import (
    WarmMachine,
    check_surroundable,
    read_surroundings,
    rows_around,
    surrounded,
)
from hpcgym.errors import HpcgymError, check_choice, check_whole
from hpcgym.machine.pool import Cluster
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

#: Ways to cut a workload into episodes.
KINDS = ("windows", "weeks", "months", "whole", "stream")

#: Chronological parts of a workload.
PARTS = ("all", "train", "test")

_WINDOWS = 100

_WINDOW = re.compile(r"window ([0-9]{4,18})")
_ROWS = re.compile(r"rows ([0-9]{1,18}):([0-9]{1,18})")


class Episodes:
    """The episodes that a workload offers.

    Every episode has a name by which :meth:`find` finds it again: "window 0017" (the window of that
    place among those of the part that follow one another, from 0), "week 12" (its number in the
    trace), "month 3", "whole", "train" or "test" (a whole workload or part), and "rows 300:556" for
    a window that begins anywhere.

    The episodes of an extract begin as it does, with its first job, and so are "whole"; none leaves
    out a job that was submitted before the extract began.

    Parameters
    ----------
    workload : the jobs.
    episodes : "windows" (a fixed number of jobs, from anywhere), "weeks" or "months" (see
        :func:`hpcgym.workload.extracts.slices`: the first is left out, and so are jobs that cross a
        boundary), "whole" (all jobs of the part) or "stream" (the same up to the last submission,
        when it is truncated: it never ends by itself).
    jobs : jobs of a window; only windows heed it.
    part : "all", "train" (the jobs before ``train_share`` of the time from the first submission to
        the last, see :meth:`hpcgym.Workload.row_at`; of weeks or months that share of their number,
        to the nearest) or "test" (the rest).
    train_share : between 0 and 1.
    start : "empty", or the scheduler that left the machine as an episode finds it: a Scheduler, its
        rules by name, or a name; "warm" is EASY. Windows are then those that follow one another.
    warmup : for how long before its slice an episode begins: [s], or such as "7d". The jobs of the
        slice count, no others.
    arrivals : "stop" behind the last job of the slice, or "continue", up to the horizon or the end
        of the part. These jobs do not count, but want their processors.
    horizon : how long after the first submission of its slice an episode is truncated, as
        ``warmup``; None: never.
    sampler : how episodes are drawn: "uniform", "hard" or "filtered"; see
        :mod:`hpcgym.envs.core.samplers`. The slices themselves stay.
    cluster : the machine; None: a pool of the workload's processors.
    past_jobs : how many jobs of each user episodes that begin with jobs know that had ended, the
        last; infinity: all.
    rules : rules that the scheduler has which left the machine, whatever it is: quotas and windows.

    Attributes
    ----------
    log : the jobs of all slices of both parts as the log has them. For windows and whole it is the
        workload that was given.
    around : the arguments from ``start`` to ``horizon``.
    submitted : [s] when the first and the last job of the part are submitted.

    Raises
    ------
    HpcgymError : an argument that is not one of these, a part without an episode, or episodes of
        an extract that would not begin as it does.
    """

    def __init__(
        self,
        workload: Workload,
        episodes: str = "windows",
        jobs: int = 256,
        part: str = "all",
        train_share: float = 0.5,
        *,
        start: str | Scheduler | Mapping[str, Any] = "empty",
        warmup: str | float | None = None,
        arrivals: str = "stop",
        horizon: str | float | None = None,
        sampler: str = "uniform",
        cluster: Cluster | None = None,
        past_jobs: float = 0,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = check_choice("episodes", episodes, KINDS)
        self._surroundings = read_surroundings(start, warmup, arrivals, horizon, rules or {})
        plain = start.given() if isinstance(start, Scheduler) else start
        around = {"start": plain, "warmup": warmup, "arrivals": arrivals, "horizon": horizon}
        self.around: dict[str, Any] = around
        self.part = check_choice("part", part, PARTS)
        self.jobs = check_whole("jobs", jobs, 1)
        self.sampler = check_choice("sampler", sampler, SAMPLERS)
        if sampler != "uniform" and self.kind in ("whole", "stream"):
            raise HpcgymError(f"sampler={sampler!r}: episodes={self.kind!r} are a single one")
        self._cluster, self._past_jobs = cluster, past_jobs
        self.train_share = read_share("train_share", train_share)
        self.log = workload
        self._origin = workload.first_submit_s
        if workload.initial is not None and self.kind != "whole":
            raise HpcgymError(
                f"episodes={self.kind!r} begin with an empty machine, and {workload.name} with the "
                f"jobs that run at {workload.initial.begin} s: use episodes='whole', or {self.kind}"
                " of the whole trace"
            )
        self._periods: list[Episode] = []
        if self.kind in PERIODS:
            if self.alone:
                self.log, periods = periods_alone(workload, self.kind)
            else:
                periods = periods_of(workload, self.kind)
            cut = int(self.train_share * len(periods) + 0.5)
            first, stop = self._bounds(cut, len(periods))
            self._periods = periods[first:stop]
            self._check_periods(len(periods))
            self._first, self._stop = self._periods[0].start, self._periods[-1].stop
        else:
            cut = workload.row_at(self.train_share)
            self._first, self._stop = self._bounds(cut, len(workload))
            self._check_rows()
            if self.kind == "whole":
                check_beginning(self.log, f"part={self.part!r}", self._first, self._stop)
        submit = self.log.submit_time
        self.submitted = int(submit[self._first]), int(submit[self._stop - 1])
        if not self.alone:
            check_surroundable(self.log, self.kind, self._surroundings)

    # -- what is around slices, worked out when an episode is first asked for ----------------------

    @cached_property
    def _warm(self) -> WarmMachine | None:
        """The machine as slices find it; None where it is empty then."""
        if self._surroundings.start is None:
            return None
        return WarmMachine(
            self.log, self._cut, self._surroundings, self._stop, self._cluster, self._past_jobs
        )

    @property
    def workload(self) -> Workload:
        """The jobs of the log, of which slices are rows."""
        return self.log

    @property
    def beginning(self) -> Workload | None:
        """The jobs of an extract, with the state that its episodes begin with; else None."""
        return None if self.log.initial is None else self.log

    def within(self, episode: Episode) -> Episodes:
        """Return an episode that begins with jobs, of the same rows, as an extract of its own."""
        own = copy(self)
        own.log = replace(self.workload_of(episode), name=self.log.name)
        vars(own).update(_warm=None, longest=len(own.log))
        return own

    def rows_of(self, episode: Episode) -> slice | NDArray[np.int64]:
        """Return which rows of ``self.workload`` the jobs of an episode are."""
        if self._warm is None:
            return slice(episode.start, episode.stop)
        return self._warm.rows(episode.beginning)

    @cached_property
    def longest(self) -> int:
        """Most jobs that an episode can have."""
        if self._warm is not None:
            return max(episode.stop for episode in self._warm.listing)
        if self.kind == "windows":  # which may begin anywhere
            firsts = np.arange(self._first, self._stop - self.jobs + 1)
            lasts = firsts + self.jobs
        else:
            firsts, lasts = np.array([(e.start, e.stop) for e in self._cut]).T
        starts, stops, _ = rows_around(
            self.log.submit_time, firsts, lasts, self._surroundings, self._stop
        )
        return int((stops - starts).max())

    @property
    def start(self) -> Scheduler | None:
        """The scheduler that left the machine as episodes find it; None: it is empty."""
        return self._surroundings.start

    @property
    def have_all_rows(self) -> bool:
        """Whether ``workload`` is all that was given, row by row."""
        return self._surroundings.start is None and not (self.kind in PERIODS and self.alone)

    def _around_of(self, episode: Episode) -> Episode:
        """Return an episode with the jobs that are around it."""
        if self.alone or episode.beginning >= 0 or episode.endless:
            return episode
        return surrounded(episode, self.log, self._surroundings, self._stop)

    def __repr__(self) -> str:
        return f"Episodes({self.log!r}, {self.kind!r}, part={self.part!r})"

    @cached_property
    def listing(self) -> list[Episode]:
        """The episodes to evaluate on, in order of time; no slice has a job of another.

        Weeks, months and whole: all of the part. Windows: those of the part that follow one
        another, from its first job; what is left at its end is less than a window.
        """
        slices = self._cut if self._warm is None else self._warm.listing
        return [self._around_of(episode) for episode in slices]

    @cached_property
    def _cut(self) -> list[Episode]:
        """The same without what is around them."""
        if self.kind == "windows":
            return [self._window(number) for number in range(self._n_windows)]
        if self.kind == "stream":
            rows, until = (self._first, self._stop), int(self.log.submit_time[self._stop - 1])
            return [Episode("stream", *rows, *rows, until, endless=True)]
        if self.kind == "whole":
            name = "whole" if self.part == "all" else self.part
            return [Episode(name, self._first, self._stop)]
        return list(self._periods)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Return a random episode of the part, by one call of ``rng``.

        Windows begin at any job from which there is room for one, or where samplers look at them;
        others, and those that begin with jobs that run, are any of the listing.
        """
        if self.sampler != "uniform":
            return self._by_difficulty.draw(rng)
        if self._anywhere:
            start = int(rng.integers(self._first, self._stop - self.jobs + 1))
            return self._around_of(_rows(start, start + self.jobs))
        return self.listing[int(rng.integers(len(self.listing)))]

    @cached_property
    def _by_difficulty(self) -> EpisodeChoice:
        """What a sampler draws from; it is simulated once, when an episode is drawn first."""
        among = self.named(min(self.count, MOST))
        processors = (self._cluster or self.log).processors
        hard = [difficulty(self.workload_of(episode), episode, processors) for episode in among]
        return choice_of(self.sampler, among, np.array(hard))

    def find(self, options: Mapping[str, Any]) -> Episode:
        """Return the episode that the options of ``reset`` ask for.

        Parameters
        ----------
        options : ``{"slice": name}``, an episode of this part by its name, or ``{"start": row,
            "jobs": n}``, the same as ``{"slice": "rows START:STOP"}``: any rows of
            ``self.workload``, also of the other part, but at most ``longest``.

        Raises
        ------
        HpcgymError : other options, a name that is not known, or rows that are not there.
        """
        for key in options:
            check_choice("key of options", key, ("slice", "start", "jobs"))
        if set(options) == {"slice"}:
            return self._named(options["slice"])
        if set(options) == {"start", "jobs"}:
            start = check_whole("options['start']", options["start"], 0)
            return self._any_rows(start, check_whole("options['jobs']", options["jobs"], 1))
        given = ", ".join(map(repr, options)) or "nothing"
        raise HpcgymError(f"options need either 'slice' or both 'start' and 'jobs', not {given}")

    @property
    def count(self) -> int:
        """How many different episodes there are: windows may begin at any job with room for one."""
        if self._anywhere:
            return self._stop - self._first - self.jobs + 1
        return len(self.listing)

    @property
    def usual(self) -> int | None:
        """How many episodes to learn from: 100 windows, as far as there are, else all (None)."""
        return min(_WINDOWS, self.count) if self.kind == "windows" else None

    def named(self, n: int | None = None, seed: int = 0) -> list[Episode]:
        """Return episodes to learn from, in order of time.

        Parameters
        ----------
        n : how many, at most as many as there are. Windows then begin at ``n`` different random
            jobs, and may overlap; others are a random sample. None: the whole listing.
        seed : of the random choice.

        Raises
        ------
        HpcgymError : more episodes than there are.
        """
        if n is None:
            return list(self.listing)
        chosen = self._choice(n, self.count, seed)
        return self._windows_at(chosen) if self._anywhere else [self.listing[c] for c in chosen]

    def apart(self, n: int | None = None, seed: int = 0) -> list[Episode]:
        """Return the episodes to evaluate on, in order of time; no slice has a job of another.

        Slices that share jobs are no independent draws: of the mean of many overlapping ones the
        interval would be too narrow, and p-values too small.

        Parameters
        ----------
        n : how many, a random sample of the listing; None: all of it, of windows 100 at most.
        seed : of the random choice.

        Raises
        ------
        HpcgymError : more episodes than there are.
        """
        windows = self.kind == "windows"
        available = self._n_windows if windows else len(self.listing)
        most = min(available, _WINDOWS) if windows else available
        chosen = self._choice(most if n is None else n, available, seed, apart=True)
        if self._anywhere:
            return self._windows_at([c * self.jobs for c in chosen])
        return [self.listing[c] for c in chosen]

    def _choice(self, n: int, available: int, seed: int, *, apart: bool = False) -> list[int]:
        """Return ``n`` different places, ascending, of so many that are available."""
        number = check_whole("n", n, 1)
        if number > available:
            more = f"{self._where} has no more {self.kind}"
            if apart and self.kind == "windows":
                more += f" of {self.jobs:,} jobs that share none"
                room = (self._stop - self._first) // number
                more += f"; give jobs={room} or less, or a longer log" if room else ""
            raise HpcgymError(f"n must be at most {available}, not {number}: {more}")
        rng = np.random.default_rng(check_whole("seed", seed, 0))
        places: list[int] = np.sort(rng.choice(available, size=number, replace=False)).tolist()
        return places

    def _windows_at(self, places: Sequence[int]) -> list[Episode]:
        """Return the windows that begin so many jobs after the first of the part."""
        starts = [self._first + place for place in places]
        return [self._around_of(_rows(start, start + self.jobs)) for start in starts]

    def workload_of(self, episode: Episode) -> Workload:
        """Return the jobs of an episode, which share the memory of ``self.workload``.

        Its ``cleaning`` is empty: the counts of the whole are not those of an episode.
        """
        name = f"{self.workload.name} {episode.name}"
        if self._warm is not None:
            return replace(self._warm.jobs(episode.beginning), name=name)
        rows = slice(episode.start, episode.stop)
        return replace(self.workload.take(rows, name=name), cleaning={})

    def number_counting(self, episode: Episode) -> int:
        """Return how many jobs of a slice count: those that come before it is truncated."""
        submit = self.workload.submit_time[episode.first : episode.last]
        return int(np.searchsorted(submit, episode.until, side="right"))

    def span_of(self, episode: Episode) -> tuple[int, int]:
        """Return what an agent may see an episode's progress in: what is known of it beforehand.

        Returns
        -------
        span : its number of jobs where episodes are windows, for it is a setting; the length [s] of
            a week or month; 0 of all others, whose end depends on jobs that are still to come.
        since : when that time begins [s]; -1 where jobs are counted.
        """
        if self.kind == "windows":
            first, last, _ = episode.counting
            return last - first, -1
        if episode.period < 0:
            return 0, -1
        length, _ = PERIODS[self.kind]
        return length, self._origin + episode.period * length

    @property
    def alone(self) -> bool:
        """Whether episodes have nothing around their jobs, and end with the last of them."""
        return self._surroundings.plain and self.kind != "stream"

    @property
    def _where(self) -> str:
        """What errors call the jobs to choose from."""
        whole = self.part == "all"
        return self.log.name if whole else f"the {self.part} part of {self.log.name}"

    @property
    def _anywhere(self) -> bool:
        """Whether episodes begin at any job: not where a state is known only for some."""
        return self.kind == "windows" and self._surroundings.start is None

    @property
    def _n_windows(self) -> int:
        return (self._stop - self._first) // self.jobs

    def _bounds(self, cut: int, n: int) -> tuple[int, int]:
        """Return the first and the last (exclusive) of ``n`` jobs or periods in the part.

        ``cut``: the first of the test part.
        """
        return (cut if self.part == "test" else 0), (cut if self.part == "train" else n)

    def _check_periods(self, n_all: int) -> None:
        if not self._periods:
            raise HpcgymError(
                f"episodes={self.kind!r}: part={self.part!r} with train_share={self.train_share:g}"
                f" has none of the {n_all} {self.kind} of {self.log.name}"
            )

    def _check_rows(self) -> None:
        n = self._stop - self._first
        if self.kind == "windows" and n < self.jobs:
            hint = f"; give jobs={n} or less" if n else ""
            raise HpcgymError(
                f"windows of jobs={self.jobs} need more jobs: {self._where} has {n}{hint}"
            )
        if n == 0:
            raise HpcgymError(f"episodes={self.kind!r}: {self._where} has no jobs")

    def _window(self, number: int) -> Episode:
        start = self._first + number * self.jobs
        return Episode(f"window {number:04d}", start, start + self.jobs)

    def _named(self, name: Any) -> Episode:
        """Return the episode of this name, without listing a million windows."""
        text = str(name)
        if rows := _ROWS.fullmatch(text):
            start, stop = int(rows[1]), int(rows[2])
            if stop <= start:
                raise HpcgymError(f"options['slice'] {text!r} has no jobs")
            return self._any_rows(start, stop - start)
        if not self._anywhere:
            matching = [e for e in self.listing if e.name == text]
        elif (match := _WINDOW.fullmatch(text)) and int(match[1]) < self._n_windows:
            matching = [self._around_of(self._window(int(match[1])))]
        else:
            matching = []
        if not matching or matching[0].name != text:
            raise HpcgymError(f"unknown options['slice'] {name!r}; {self._where} has {self._names}")
        return matching[0]

    @property
    def _names(self) -> str:
        """The names of the episodes, in words."""
        if self._anywhere:
            first, last = self._window(0), self._window(self._n_windows - 1)
        else:
            first, last = self.listing[0], self.listing[-1]
        to = f" to {last.name!r}" if last != first else ""
        rows = ", and rows by 'rows START:STOP'" if self._surroundings.start is None else ""
        return f"{first.name!r}{to}{rows}"

    def _any_rows(self, start: int, jobs: int) -> Episode:
        n = len(self.workload)
        if self._surroundings.start is not None:
            raise HpcgymError(
                f"options ask for rows {start}:{start + jobs}; where the machine is not empty, it"
                f" is known for slices alone: {self._names}"
            )
        if jobs > self.longest:
            raise HpcgymError(f"options ask for {jobs} jobs; an episode has at most {self.longest}")
        if start + jobs > n:
            raise HpcgymError(
                f"options ask for rows {start}:{start + jobs}; {self.workload.name} has {n} jobs"
            )
        check_beginning(self.workload, f"rows {start}:{start + jobs}", start, start + jobs)
        episode = self._around_of(_rows(start, start + jobs))
        if episode.stop - episode.start > self.longest:
            raise HpcgymError(
                f"options ask for {jobs} jobs, and with those around them these are"
                f" {episode.stop - episode.start}; an episode has at most {self.longest}"
            )
        return episode


def _rows(start: int, stop: int) -> Episode:
    return Episode(f"rows {start}:{stop}", start, stop)


def read_share(name: str, value: Any) -> float:
    """Return a share, a number above 0 and below 1, or raise an error."""
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 < share < 1:
        raise HpcgymError(f"{name} must be a number between 0 and 1, not {value!r}")
    return share
