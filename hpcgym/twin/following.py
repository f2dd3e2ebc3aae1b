"""Which policy to follow: the one under which the futures of a Slurm that runs are best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hpcgym.errors import HpcgymError
from hpcgym.forecasting.forecasts import Forecast
from hpcgym.forecasting.state import SlurmStates
from hpcgym.scheduler.rules import Scheduler
from hpcgym.twin.policies import FUTURES, OTHERS, UnderPolicy, under_policies


class Follower:
    """Chooses a policy anew from time to time.

    Another one is followed only if the jobs that wait wait less under it, in the mean, in nine of
    ten futures: run times and jobs to come are the same in each, whatever the policy.

    Parameters
    ----------
    states : of Slurm, which is only looked at.
    rules : of this Slurm; all but the order of the queue stay.
    first : whose policy is followed at first.
    every_s : how often to choose [s].
    policies, futures : as of :func:`hpcgym.twin.policies.under_policies`.
    tell : is told of a policy that is followed from now on, and of problems: what Slurm does not
        answer changes nothing.

    Attributes
    ----------
    last : what was compared last, the best first.
    """

    def __init__(
        self,
        states: SlurmStates,
        rules: Scheduler,
        first: Scheduler,
        every_s: float,
        tell: Callable[[str], None],
        policies: Sequence[str] = OTHERS,
        futures: int = FUTURES,
    ) -> None:
        self._states, self._every_s, self._tell = states, every_s, tell
        self._rules = rules.but(policy=first.policy, threshold=first.threshold)
        self._policies, self._futures = policies, futures
        self._next = time.monotonic()
        self.last: list[UnderPolicy] = []

    def choose(self) -> Scheduler | None:
        """Return whose policy is followed from now on; None: nothing changes."""
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + self._every_s
        try:
            self.last = self._compared()
        except HpcgymError as error:
            self._tell(f"no futures: {error}")
            return None
        best, present = self.last[0], str(self._rules.describe()["policy"])
        if best.policy == present or best.less_p10 <= 0:
            return None
        self._tell(
            f"{best.policy} in place of {present}: jobs wait {best.less_p50:,.0f} s less,"
            f" 80 %: {best.less_p10:,.0f} to {best.less_p90:,.0f} s"
        )
        self._rules = self._rules.but(policy=best.policy)
        return self._rules

    def _compared(self) -> list[UnderPolicy]:
        state = self._states.now()
        forecast = Forecast(state, self._rules, state.past, self._futures, state.time % 2**31)
        return under_policies(forecast, self._policies, self._futures)
