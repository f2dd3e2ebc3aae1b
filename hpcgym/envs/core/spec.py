"""What environments say of how they were made, and which ways to draw them there are."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.util import find_spec

from gymnasium.envs.registration import EnvSpec

from hpcgym.errors import HpcgymError


class Spec(EnvSpec):
    """Gymnasium's description of an environment, which says what of it JSON cannot hold."""

    def to_json(self) -> str:
        """Return the description as JSON.

        What ``EnvSpec.from_json`` makes of it makes the same environment. It is not equal where an
        argument is a tuple, such as ``hours``: JSON has lists in their place.

        Raises
        ------
        HpcgymError : an argument that is an object, such as a ``Workload``, a ``Cluster`` or a
            function. What was given by its name, or as the path of a file, can be written.
        """
        for name, value in self.kwargs.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError):
                raise HpcgymError(
                    f"{name} is a {type(value).__name__}, which JSON cannot hold: make the"
                    " environment with a text in its place, a name or a path, where it takes one"
                ) from None
        return super().to_json()


def spec_of(given: EnvSpec | None) -> Spec | None:
    """Return the same description as a :class:`Spec`."""
    if given is None:
        return None
    return Spec(**{each.name: getattr(given, each.name) for each in fields(given) if each.init})


def has_matplotlib() -> bool:
    """Return whether matplotlib can be found; it is not imported."""
    try:
        return find_spec("matplotlib") is not None
    except ImportError:
        return False
