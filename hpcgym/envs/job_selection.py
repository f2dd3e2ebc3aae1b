"""The environment in which an agent selects the next job."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hpcgym.envs.core import arrays
from hpcgym.envs.core.options import DEFAULT_WORKLOAD
from hpcgym.envs.pages.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice

RESERVATIONS = ("revised", "kept")


def read_reservation(reservation: Any) -> bool:
    """Return whether a selected job stays selected."""
    return check_choice("reservation", reservation, RESERVATIONS) == "kept"


@page
class JobSelection(SchedulingEnv):
    """Select the job that starts next, or gets the reservation.

    | | |
    |---|---|
    | id | `"hpcgym/JobSelection-v0"` |
    | action | `Discrete(window)`: the place of a job in the window; with a mask |
    | observation | `Dict` of five fields, or one flat `Box` |
    | reward | minus the bounded slowdown by default; dense |

    ## Description

    The setting of the published reinforcement-learning schedulers. Whenever a job could start, the
    agent names one of those that it sees waiting. If enough processors are free the job starts, and
    the agent is asked again. If not, it is the head of the queue: with `backfill="easy"` it gets
    the reservation, and others may start around it; with `backfill="none"` all wait behind it.

    {description}

    ## Decision points

    - `reservation="revised"`: a scheduling pass asks as long as some waiting job, visible or not,
      fits the free processors. A selected job that fits starts, and the pass goes on. One that does
      not fit ends the questions: under EASY it gets the reservation of this pass, and the other
      jobs, also those outside the window, are back-filled in `backfill_order`. The next pass asks
      anew.
    - `reservation="kept"`: a pass asks as long as jobs wait and none is selected, also if none of
      them fits. A selected job that does not fit stays selected until it starts, and at each pass
      until then the others are back-filled around it. This is what the published RL schedulers do.

    No time passes between the questions of a pass. An agent that always selects the job that a
    policy puts first makes the schedule that `hpcgym.simulate` makes of this policy and the same
    rules, if reservations are revised and no more jobs wait than the window shows.

    ## Action Space

    `Discrete(window)`: a place in the window. `info["action_mask"]`, (window,) int8, is 1 where
    there is a job, which are the first places; `env.unwrapped.action_masks()` is the same as bool,
    under the name that sb3-contrib looks for. A masked action stands for the job that was submitted
    first. A number beyond the space raises `HpcgymError`.

    With `shutdown_action=True` it is `Discrete(window + 1)`, and the last action begins to switch
    all idle processors off. It is masked if there are none. No time passes, and the same question
    is asked again. A job that takes processors which are off starts when they have been switched
    on; the powers and times are those of `cluster`.

    ## Observation Space

    {observation}

    ## Rewards

    {rewards}

    ## Starting State

    {episodes} The clock goes on to the first question, which comes with the first submission.

    {extract}

    ## Episode End

    {end}

    ## Determinism

    {determinism}

    ## Arguments

    | argument | default | what |
    |---|---|---|
    | `reservation` | `"revised"` | or `"kept"`; see Decision points |
    | `shutdown_action` | `False` | whether one more action switches idle processors off |
    {arguments}

    ## Vectorized environment

    {vector} Its `action_masks()` are (num_envs, n_actions) bool.

    ## Reference

    How policies do that do not learn, and agents, on unseen slices of a workload:

    ```sh
    hpcgym evaluate sjf wfp3 --workload lublin:jobs=10000,processors=256,seed=0 --backfill none
    hpcgym evaluate agent.pt --workload KTH-SP2 --number 100    # agents know their environment
    ```

    ## Version History

    - v0: the first.
    """

    action_kind: ClassVar[str] = "selection"

    def __init__(
        self,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        episodes: str = "windows",
        jobs: int = 256,
        part: str = "all",
        train_share: float = 0.5,
        reservation: str = "revised",
        shutdown_action: bool = False,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        rules = {
            "keeps": read_reservation(reservation),
            "shutdown_action": read_flag(shutdown_action),
        }
        self.reservation = reservation
        super().__init__(
            arrays.SELECTION_KIND,
            workload, episodes, jobs, part, train_share, render_mode, rules, arguments,
        )  # fmt: skip
        self.action_space = spaces.Discrete(self.simulations.out.masks.shape[1])

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions can be done, (n_actions,); the name is sb3-contrib's."""
        mask: NDArray[np.bool_] = self.simulations.out.masks[0].astype(np.bool_)
        return mask

    def _set_action(self, action: Any) -> None:
        self.simulations.chosen[0] = read_index(action, self.simulations.out.masks.shape[1])


def read_flag(shutdown_action: Any) -> bool:
    """Return whether an action may be to switch processors off."""
    if not isinstance(shutdown_action, bool):
        raise HpcgymError(f"shutdown_action must be True or False, not {shutdown_action!r}")
    return shutdown_action


def read_index(action: Any, number: int) -> int:
    """Return an action as one of that many indices, or say that it is none."""
    try:
        index = operator.index(action.item() if isinstance(action, np.ndarray) else action)
    except (TypeError, ValueError):
        index = -1
    if not 0 <= index < number:
        raise HpcgymError(f"action must be an index from 0 to {number - 1}, not {action!r}")
    return index


class JobSelectionVector(SchedulingVectorEnv):
    """Many environments :class:`JobSelection` in one."""

    action_kind: ClassVar[str] = "selection"

    def __init__(
        self,
        num_envs: int = 1,
        workload: Any = DEFAULT_WORKLOAD,
        *,
        reservation: str = "revised",
        shutdown_action: bool = False,
        **arguments: Any,
    ) -> None:
        rules = {
            "keeps": read_reservation(reservation),
            "shutdown_action": read_flag(shutdown_action),
        }
        super().__init__(arrays.SELECTION_KIND, num_envs, workload, rules, **arguments)
        self._set_spaces(spaces.Discrete(self.simulations.out.masks.shape[1]))

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions can be done, (num_envs, n_actions)."""
        masks: NDArray[np.bool_] = self.simulations.out.masks.astype(np.bool_)
        return masks

    def _set_actions(self, actions: Any) -> None:
        number = self.simulations.out.masks.shape[1]
        self.simulations.chosen[:] = read_indices(actions, self.num_envs, number)


def read_indices(actions: Any, num_envs: int, number: int) -> NDArray[np.int64]:
    """Return actions, one for each environment, of that many indices, or say that they are none."""
    given = np.asarray(actions)
    if given.shape != (num_envs,) or given.dtype.kind not in "iu":
        raise HpcgymError(
            f"actions must be {num_envs} whole numbers, one for each environment, "
            f"not an array of {given.dtype} of shape {given.shape}"
        )
    indices = given.astype(np.int64, copy=False)
    # of whole numbers without a sign: negative ones are very large
    if indices.view(np.uint64).max() >= number:
        raise HpcgymError(f"actions must be indices from 0 to {number - 1}")
    return indices
