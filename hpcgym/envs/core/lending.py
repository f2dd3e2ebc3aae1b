"""Arrays for what is told of environments.

Callers may keep them. Those that nobody keeps are used again, which is cheaper than new ones.
"""

from __future__ import annotations

from sys import getrefcount

import numpy as np

from hpcgym.envs.core.arrays import Outputs
from hpcgym.envs.core.layout import Layout, Observation, PairLayout

MOST = 3  # sets of arrays: that of a step, of the one before, and of infos


class Lent:
    """A set of arrays, and what callers are given of them.

    Parameters
    ----------
    out : the arrays.
    layout : of observations.
    copy : whether observations and masks are lent as well; else each step overwrites them.

    Attributes
    ----------
    rewards : (num_envs,) the first reward.
    """

    def __init__(self, out: Outputs, layout: Layout | PairLayout, copy: bool) -> None:
        self.out, self.rewards = out, out.rewards[:, 0]
        # what can be done must stay known, whatever is made of an observation
        self._masks = out.masks.copy() if copy else out.masks
        self._views = layout.of(out.observations, self._masks)
        self._lent = [*out[0 if copy else 2 :], self.rewards]
        if copy:
            seen = self._views.values() if isinstance(self._views, dict) else [self._views]
            self._lent += [self._masks, *seen]
        self._kept = 0

    def begin(self) -> None:
        """Note that nobody has them yet."""
        self._kept = sum(map(getrefcount, self._lent))

    def is_kept(self) -> bool:
        """Return whether anybody has one of the arrays, or a view of one."""
        return sum(map(getrefcount, self._lent)) != self._kept

    def observation(self) -> Observation:
        """Return the observation, of arrays that are lent."""
        if not isinstance(self._views, dict):
            return self._views
        if self._masks is not self.out.masks:
            np.copyto(self._masks, self.out.masks)
        return self._views.copy()
