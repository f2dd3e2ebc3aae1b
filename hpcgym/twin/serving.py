"""What a twin answers to a browser and to programs on this machine."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.explore.live import HttpAnswer
from hpcgym.explore.twin_page import NEVER, SHAPE, policies_page, shape_page, twin_page
from hpcgym.twin.policies import FUTURES, UnderPolicy, under_policies
from hpcgym.twin.polls import Twin, TwinPoll
from hpcgym.words import counted

#: So much less is that of a time that does not come: sums and quantiles make huge numbers of it.
_FOR_EVER_S = 1e12


class TwinSession:
    """Answers of a twin, from its last poll.

    Parameters
    ----------
    twin : that polls, in another thread.
    every_s : how often [s]; pages come again as often.
    """

    def __init__(self, twin: Twin, every_s: int) -> None:
        self._twin, self._every_s = twin, every_s
        self._one = threading.Lock()  # one what-if at a time
        self._policies: tuple[TwinPoll, int, list[UnderPolicy]] | None = None
        #: What went wrong at the last poll, "" if nothing did.
        self.problem = ""

    @property
    def asks(self) -> Mapping[str, Callable[[Mapping[str, Any]], HttpAnswer]]:
        """Questions in JSON: ``shape``, with processors and requested."""
        return {"shape": lambda question: HttpAnswer.json(self._shapes(question)[1])}

    def got(self, name: str, given: Mapping[str, str]) -> HttpAnswer | None:
        """Return a page, or facts as JSON; None: there is none of that name."""
        if name == "":
            return HttpAnswer.page(twin_page(self.facts()), self._every_s)
        if name == "forecasts.json":
            return HttpAnswer.json(self.facts())
        if name == "policies.json":
            return HttpAnswer.json([_of_policy(row) for row in self._under_policies()[1]])
        if name == "policies":
            futures, policies = self._under_policies()
            rows = [_of_policy(row) for row in policies]
            lines = [f"The same {counted(futures, 'future')} under each: run times, jobs to come."]
            return HttpAnswer.page(policies_page("What if the policy were another", lines, rows))
        if name == "shape":
            shape, rows = self._shapes(given)
            title = f"{shape[0]} processors for {shape[1]}, submitted now"
            return HttpAnswer.page(shape_page(title, rows, shape))
        return None

    def facts(self) -> dict[str, Any]:
        """Return all that is said of waiting jobs, and how good the last forecasts were."""
        poll, record = self._poll(), self._twin.record
        rows = [
            {
                **{name: getattr(job, name) for name in ("job", "user", "processors")},
                "requested_s": job.requested,
                "waited_s": job.waited,
                **{f"{name}_s": _when(getattr(job, name)) for name in ("p10", "p50", "p90")},
                "slurm_s": job.slurm if job.slurm >= 0 else None,
            }
            for job in poll.waiting
        ]
        plan = None if poll.plan is None else poll.plan._asdict()
        return {
            "machine": poll.state.jobs.name,
            "time": poll.state.time,
            "lines": lines_of_poll(poll, record.scores(), self.problem),
            "waiting": rows,
            "scores": record.scores(),
            "plan": plan,
            "futures": poll.forecast.futures,
            "problem": self.problem,
        }

    def _poll(self) -> TwinPoll:
        poll = self._twin.last
        if poll is None:
            raise HpcgymError(self.problem or "Slurm has not been looked at yet")
        return poll

    def _shapes(self, given: Mapping[str, Any]) -> tuple[tuple[str, str], list[dict[str, Any]]]:
        """Return what a shape would mean, and half and a quarter of the time that it requests."""
        processors = str(given.get("processors", SHAPE[0])).strip()
        requested = str(given.get("requested", SHAPE[1])).strip()
        if not processors.isdecimal() or len(processors) > 9:
            raise HpcgymError(f"processors must be a whole number, not {processors[:20]!r}")
        from hpcgym.units import whole_seconds

        asked = whole_seconds("requested", requested, 4, 2**31)
        with self._one:
            forecast = self._poll().forecast
            table = forecast.shapes([int(processors)], [asked, asked // 2, asked // 4])
        rows = [
            {
                str(name): _less(x) if str(name).startswith("earlier") else _when(x)
                for name, x in row.items()
            }
            for row in table.to_dict("records")
        ]
        return (processors, requested), rows

    def _under_policies(self) -> tuple[int, list[UnderPolicy]]:
        """Return in how many futures other policies do what; it is asked once of each poll."""
        poll = self._poll()
        with self._one:
            if self._policies is None or self._policies[0] is not poll:
                futures = min(FUTURES, poll.forecast.futures)
                self._policies = poll, futures, under_policies(poll.forecast, futures=futures)
            return self._policies[1:]


def lines_of_poll(poll: TwinPoll, scores: Mapping[str, Any], problem: str = "") -> list[str]:
    """Return what people are told of a poll, in sentences."""
    state = poll.state
    running = int(state.running.sum())
    busy = int(state.jobs.requested_processors[state.running].sum())
    lines = [
        f"{counted(running, 'job')} on {busy:,} of {state.cluster.processors:,} processors,"
        f" {len(poll.waiting):,} waiting; {counted(poll.forecast.futures, 'future')}"
    ]
    if poll.plan is not None and poll.plan.told:
        plan = poll.plan
        lines.append(f"the plan here is Slurm's for {plan.same:,} of {counted(plan.told, 'job')}")
    if scores["scored"]:
        text = f"{counted(scores['scored'], 'forecast')} scored:"
        text += (
            f" CRPS {scores['crps']['pool']:.3f}, 80 % intervals held {scores['coverage_80']:.0%}"
        )
        if scores["where_slurm_told"]:
            beside = scores["crps_where_slurm_told"]
            text += f"; where Slurm told a time {beside['pool']:.3f} beside {beside['squeue']:.3f}"
        lines.append(text)
    else:
        lines.append("no forecast is scored yet: nobody knows how good they are")
    return [*lines, problem] if problem else lines


def _of_policy(row: UnderPolicy) -> dict[str, Any]:
    names = ("less_p10", "less_p50", "less_p90")
    return {
        "policy": row.policy,
        "wait_s": _when(row.wait),
        **{f"{name}_s": _less(getattr(row, name)) for name in names},
    }


def _when(value: Any) -> Any:
    """Return a time as JSON has it; :data:`NEVER`: it does not come."""
    return NEVER if isinstance(value, float) and math.isinf(value) else value


def _less(value: float) -> float | None:
    """Return a difference of times as JSON has it; None: one of both does not come."""
    return value if abs(value) < _FOR_EVER_S else None
