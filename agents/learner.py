"""What learns while it schedules: what it is asked, what it is told, and when.

:func:`hpcgym.evaluation.prequential` lets learners go through a whole trace once.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]  # (n_ended,)


class Ended(NamedTuple):
    """The jobs that have ended since the decision before; (n_ended,) each, in order of submission.

    Attributes
    ----------
    row : int64, their places in the stream, by which ``info["window"]`` names jobs, too.
    submit_time_s, wait_s, run_time_s, requested_time_s : int64 [s]; when a job started and ended
        follows from them.
    processors, user : int64, requested processors, and whose the job was (-1: not known).
    bsld : float64, bounded slowdowns.
    """

    row: Numbers
    submit_time_s: Numbers
    wait_s: Numbers
    run_time_s: Numbers
    requested_time_s: Numbers
    processors: Numbers
    user: Numbers
    bsld: NDArray[np.float64]


class Learner(Protocol):
    """What learns while it schedules. It is asked and told in turns, from the first job on.

    It may have an attribute ``features``, names of
    :data:`hpcgym.scheduler.policies.FEATURES`: what its actions weigh. By default these are the six
    of Legrand et al. 2018, :data:`hpcgym.scheduler.policies.WEIGHTED_FEATURES`.
    """

    def act(self, observation: dict[str, NDArray[Any]], info: dict[str, Any]) -> Any:
        """Return the weights that order the queue until the next decision, (n_features,).

        Parameters
        ----------
        observation : of :class:`hpcgym.envs.MixedPolicy`, with its usual arguments.
        info : "time", the time now [s]; "window", the rows of the visible jobs in the stream. What
            else the environment says tells run times of jobs that still run.
        """
        ...

    def observe(self, observation: dict[str, NDArray[Any]], reward: float, ended: Ended) -> None:
        """Learn what has come of the decisions so far. It need not be there.

        It is called at the end of each stretch of time, before :meth:`act` is asked again, and once
        after the last job has ended.

        Parameters
        ----------
        observation : at the end of the stretch; the same as :meth:`act` sees next.
        reward : minus the sum of the bounded slowdowns of the jobs that have ended in the stretch,
            whenever they were submitted or started. The reward of the environment is paid when jobs
            start, and tells how long they will run: here it is paid once that is known.
        ended : these jobs.
        """
        ...
