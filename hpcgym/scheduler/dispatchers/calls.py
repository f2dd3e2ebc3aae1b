"""When a dispatcher was asked that takes time, and how long it took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Dispatching(NamedTuple):
    """The calls of a dispatcher that takes time, and the call that each job started by.

    Attributes
    ----------
    time : (n_calls,) int64 [s] when it was asked, in that order.
    seconds : (n_calls,) int64 [s] how long it took; what it answered starts so much later.
    call : (n_jobs,) int64, place in ``time`` of the call that said that the job starts; -1 for jobs
        that ran when the schedule began.
    """

    time: NDArray[np.int64]
    seconds: NDArray[np.int64]
    call: NDArray[np.int64]

    @property
    def decided(self) -> NDArray[np.int64]:
        """When the dispatcher was asked that said that the job starts, (n_jobs,) [s], or -1."""
        return self._of_jobs(self.time, -1)

    @property
    def late(self) -> NDArray[np.int64]:
        """How long the dispatcher took for the answer that starts the job, (n_jobs,) [s]."""
        return self._of_jobs(self.seconds, 0)

    def _of_jobs(self, of_calls: NDArray[np.int64], none: int) -> NDArray[np.int64]:
        """Return what is true of each job's call, (n_jobs,)."""
        return np.append(of_calls, none)[self.call]
