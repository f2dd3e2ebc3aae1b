"""What a twin has said, and what came of it: a file of JSON lines that survives any end.

Each line is appended in one write. So a twin that is killed loses at most a line that it was
writing, which is left out when the file is read again. Once most lines are of no use any more the
file is written anew, with what they taught in the first line: it takes the place of the old one as
a whole.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.files import is_there, json_of, lines_of
from hpcgym.files.writing import whole_text
from hpcgym.forecasting.forecasts import quantiles
from hpcgym.forecasting.pool import Pool, Recalibration
from hpcgym.forecasting.scores import LEVELS, Floats, crps, places
from hpcgym.slurm.queue import QueuedJob, latest_ended

#: Methods of the pool: futures, and all jobs running as long as they request.
METHODS = ("futures", "requested")
#: So many of the last scores count.
_KEPT = 2000
_LOW, _HIGH = int(np.abs(LEVELS - 0.1).argmin()), int(np.abs(LEVELS - 0.9).argmin())
#: A file is written anew with so many lines more than twice as many as are of use.
_SPARE = 5000


#: What lines are about, of which each has one.
_KINDS = {"said", "planned", "started", "gone", "ended", "learned", "scored"}


class Score(NamedTuple):
    """How good a forecast was whose job has started.

    Attributes
    ----------
    crps : method -> CRPS of log(1 + wait / 60 s); also of the pool, which was shown, and of Slurm's
        own start time, if it told one soon.
    inside : whether the 80 % interval of the pool held.
    """

    crps: dict[str, float]
    inside: bool


class TwinRecord:
    """Forecasts, scores, and what they teach.

    Parameters
    ----------
    path : of the file, which is read first if it is there; None: nothing is kept.

    Attributes
    ----------
    pending : job -> its forecast: the line of the file.
    scored : the last scores.
    ended : jobs that have ended, by their keys.

    Raises
    ------
    HpcgymError : a file that is none of a twin, or cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.pending: dict[str, dict[str, Any]] = {}
        self.scored: list[Score] = []
        self.ended: dict[str, QueuedJob] = {}
        self.past, self.pool = Recalibration(), Pool(METHODS)
        self._users: dict[str, int] = {}
        self._path, self._lines = path, 0
        self._torn = False  # whether the file ends within a line
        if path is not None and is_there(path):
            self._read(path)

    # -- what is written ---------------------------------------------------------------------------

    def said(
        self, job: str, time: int, user: str, samples: Floats, requested: float, slurm: int
    ) -> None:
        """Keep the first forecast of a job.

        Parameters
        ----------
        job : which, by a key that no other job ever has.
        time : when it is said [s since 1970].
        user : whose it is.
        samples : its waits from then in the futures [s], rising.
        requested : its wait if all run as long as they request, and none come [s].
        slurm : its wait as Slurm plans it [s]; -1: it does not say.
        """
        each = self._by_method(user, samples, requested)
        self._keep(
            {
                "said": job,
                "time": time,
                "user": user,
                "samples": [_short(x) for x in samples.tolist()],
                "futures": [_short(x) for x in each["futures"].tolist()],
                "requested": _short(requested),
                "pool": [_short(x) for x in self._pooled(each).tolist()],
                "slurm": slurm,
            }
        )

    def planned(self, job: str, slurm: int) -> None:
        """Keep what Slurm planned first of a job, from the time of its forecast [s]."""
        self._keep({"planned": job, "slurm": slurm})

    def started(self, job: str, wait: int) -> None:
        """Score the forecast of a job that has started; ``wait``: from the forecast on [s]."""
        self._keep({"started": job, "wait": wait})

    def gone(self, job: str) -> None:
        """Forget a job that left the queue, and nobody knows how, or that is held."""
        self._keep({"gone": job})

    def has_ended(self, key: str, job: QueuedJob) -> None:
        """Remember a job that has ended."""
        self._keep({"ended": key, "job": [*job]})

    # -- what is known -----------------------------------------------------------------------------

    def quantiles(self, user: str, samples: Floats, requested: float) -> Floats:
        """Return the pool's quantiles of a wait, which are shown and scored, (n_levels,) [s].

        Parameters
        ----------
        user, samples, requested : as of :meth:`said`.

        Returns
        -------
        quantiles : inf, never, where methods say so that have half of the weight.
        """
        return self._pooled(self._by_method(user, samples, requested))

    def _by_method(self, user: str, samples: Floats, requested: float) -> dict[str, Floats]:
        """Return the quantiles of each method, those of the futures recalibrated."""
        levels = self.past.levels(self._number(user))
        return {
            "futures": quantiles(samples, levels.tolist()),
            "requested": np.full(len(LEVELS), requested),
        }

    def _pooled(self, each: Mapping[str, Floats]) -> Floats:
        never = (
            np.array([*self.pool.weights.values()]) @ [np.isinf(each[name]) for name in METHODS]
            >= 1 / 2
        )
        return np.where(never, np.inf, self.pool.quantiles(each))

    def scores(self) -> dict[str, Any]:
        """Return how good the last forecasts were: how many, mean CRPS, and 80 % coverage."""
        n = len(self.scored)
        methods = dict.fromkeys(name for score in self.scored for name in score.crps)
        means = {
            name: float(np.mean([s.crps[name] for s in self.scored if name in s.crps]))
            for name in methods
        }
        by_both = [score for score in self.scored if "squeue" in score.crps]
        beside = {
            name: float(np.mean([score.crps[name] for score in by_both]))
            for name in ("pool", "squeue")
            if by_both
        }
        coverage = float(np.mean([score.inside for score in self.scored])) if n else None
        weights = self.pool.weights
        return {
            "scored": n, "pending": len(self.pending), "crps": means, "coverage_80": coverage,
            "where_slurm_told": len(by_both), "crps_where_slurm_told": beside, "weights": weights,
        }  # fmt: skip

    # -- what a line means -------------------------------------------------------------------------

    def _keep(self, line: dict[str, Any]) -> None:
        self._write(_text(line))
        self._take(line)
        if self._path is not None and self._lines > _SPARE + 2 * self._of_use():
            self._write_anew(self._path)

    def _write(self, text: str) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(b"\n" * self._torn + text.encode())
        except OSError as error:
            raise HpcgymError(f"{self._path}: {error.strerror}") from None
        self._torn = False

    def _of_use(self) -> int:
        return 1 + len(self.scored) + len(self.pending) + len(self.ended)

    def _write_anew(self, path: Path) -> None:
        """Put what is known in the place of the file."""
        self.ended = latest_ended(self.ended)
        try:
            with whole_text(path) as file:
                file.writelines(map(_text, self._known()))
        except OSError as error:
            raise HpcgymError(f"{path}: {error.strerror}") from None
        self._lines = self._of_use()

    def _known(self) -> Iterator[dict[str, Any]]:
        """Yield lines that say what is known."""
        users = sorted(self._users, key=self._users.__getitem__)
        yield {"learned": {"past": self.past.saved(), "pool": self.pool.saved(), "users": users}}
        for score in self.scored:
            yield {"scored": score.crps, "inside": score.inside}
        yield from self.pending.values()
        for key, job in self.ended.items():
            yield {"ended": key, "job": [*job]}

    def _read(self, path: Path) -> None:
        """Know what the whole lines of a file say."""
        first = True
        for text, is_whole in lines_of(path, "a twin's log"):
            self._torn = not is_whole and bool(text)
            try:
                if is_whole and text:
                    self._take(json_of(text, str(path)))
            except (HpcgymError, ValueError, TypeError, KeyError, AttributeError):
                if first:
                    raise HpcgymError(f"{path}: not a log of hpcgym twin") from None
            first = False

    def _take(self, line: Mapping[str, Any]) -> None:
        """Know what a line says.

        Raises
        ------
        ValueError, TypeError, KeyError : it is none of a twin.
        """
        if not _KINDS & line.keys():
            raise ValueError
        self._lines += 1
        if "said" in line:
            self.pending[line["said"]] = dict(line)
            self._number(line["user"])
        elif "planned" in line and line["planned"] in self.pending:
            self.pending[line["planned"]]["slurm"] = line["slurm"]
        elif "started" in line and line["started"] in self.pending:
            job = line["started"]
            self._score(job, self.pending.pop(job), float(line["wait"]))
        elif "gone" in line:
            self.pending.pop(line["gone"], None)
        elif "ended" in line:
            fields = list(line["job"])
            fields[6] = tuple(fields[6])
            self.ended[line["ended"]] = QueuedJob(*fields)
        elif "scored" in line:
            self.scored.append(Score(dict(line["scored"]), bool(line["inside"])))
        elif "learned" in line:
            self._take_learned(line["learned"])

    def _take_learned(self, learned: Mapping[str, Any]) -> None:
        for user in learned["users"]:
            self._number(user)
        self.past = Recalibration.of(learned["past"])
        with suppress(HpcgymError):  # of other methods: weights begin anew
            pool = Pool.of(learned["pool"])
            if pool.methods == METHODS:
                self.pool = pool

    def _score(self, job: str, line: Mapping[str, Any], wait: float) -> None:
        n = len(LEVELS)
        said = {
            "futures": _long(line["futures"]),
            "requested": np.full(n, _long([line["requested"]])[0]),
        }
        # the first versions said what futures say alone
        all_said = said | {"pool": _long(line.get("pool", line["futures"]))}
        if line["slurm"] >= 0:
            all_said["squeue"] = np.full(n, float(line["slurm"]))
        was, finite = np.array([wait]), 1e9
        each = {
            name: float(crps(np.minimum(quantiles, finite)[np.newaxis], was)[0])
            for name, quantiles in all_said.items()
        }
        mixed = all_said["pool"]
        self.scored.append(Score(each, bool(mixed[_LOW] <= wait <= mixed[_HIGH])))
        del self.scored[:-_KEPT]
        # the same draw among equals whenever this is read
        rng = np.random.default_rng(zlib.crc32(job.encode()))
        place = places(_long(line["samples"])[np.newaxis], was, rng)[0]
        self.past.learn(place, self._number(line["user"]))
        self.pool.learn(said, wait)

    def _number(self, user: str) -> int:
        return self._users.setdefault(user, len(self._users))


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"


def _short(wait: float) -> float | None:
    """Return a wait as JSON has it; None: for ever."""
    return round(wait, 1) if np.isfinite(wait) else None


def _long(waits: list[float | None]) -> Floats:
    """Return waits as they were [s]."""
    return np.array([np.inf if wait is None else wait for wait in waits], np.float64)
