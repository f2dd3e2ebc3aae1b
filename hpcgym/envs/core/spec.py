"""How environments are told by their specs, and specs by JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gymnasium.envs.registration import EnvSpec

from hpcgym.envs.core.base import plain_settings_of
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload
from hpcgym.workload.plain import as_plain


class Spec(EnvSpec):
    """How Gymnasium has made an environment; JSON holds its workload, too."""

    def __eq__(self, other: object) -> bool:
        """Return whether another says the same; what is read from JSON is of Gymnasium's class."""
        return isinstance(other, EnvSpec) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # as of Gymnasium's

    def to_json(self) -> str:
        """Return it as JSON, which :meth:`from_json` reads; a workload with all its jobs.

        Raises
        ------
        HpcgymError, WorkloadError : an argument that JSON cannot hold, such as a function, or an
            extract.
        """
        plain = {name: _as_plain(value) for name, value in self.kwargs.items()}
        for name, value in plain.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError):
                raise HpcgymError(
                    f"spec: JSON cannot hold {name}={value!r}; environments that are given it by"
                    " name, or by plain values, have a spec that it can"
                ) from None
        return EnvSpec.to_json(replace(self, kwargs=plain))


def _as_plain(value: Any) -> Any:
    """Return a workload, or those of a list, as plain values, and all else as it is."""
    if isinstance(value, list | tuple):
        return [_as_plain(item) for item in value]
    return as_plain(value) if isinstance(value, Workload) else value


class ToldBySpec:
    """An environment that is told by its spec."""

    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium has made it; schedulers are told by their rules, which JSON can hold."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            given = spec.kwargs
            if any(isinstance(value, Scheduler | Mapping) for value in given.values()):
                given = plain_settings_of(type(self), given)
            taken = [field.name for field in fields(spec) if field.init]
            spec = Spec(**{name: getattr(spec, name) for name in taken} | {"kwargs": given})
        self._spec = spec
