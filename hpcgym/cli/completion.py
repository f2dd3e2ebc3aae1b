"""Names that a shell completes at TAB. What takes long to import is not imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hpcgym.cli import names
from hpcgym.errors import HpcgymError

#: Schedulers, dispatchers and estimates are written out: their modules take half a second.
#: Schedulers named after policies are left out. A test compares.
SCHEDULERS = (
    *("easy", "conservative", "easy-sjbf", "easy++", "easy-e-loss"),
    *("saf-typical", "saf-typical-20h-hold", "saf-typical-80h", "aged", "aged-safe"),
)
DISPATCHERS = (
    *("fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb"),
    *("cph-0", "cph-1", "cph-2", "cph-3", "cp-0", "cp-1", "cp-2", "cp-3"),
    *("hcp19", "pcp19", "pcp20"),
)
ESTIMATES = (
    *("requested", "double-requested", "clairvoyant", "ave2", "user-ratio", "typical-ratio"),
    *("data-driven", "e-loss", "regression"),
)


def _completing(found: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what completes one of these names, or the last of several that commas join."""

    def complete(incomplete: str) -> list[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return [before + name for name in found()]

    return complete


def _of(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [name for name, _ in pairs]


def _policies() -> list[str]:
    return _of(names.policies())


def _traces() -> list[str]:
    from hpcgym.workload.archive import TRACES, own_traces

    try:
        own = own_traces()
    except HpcgymError:  # a wrong HPCGYM_DATA is said by commands, not between the letters of one
        own = {}
    copies = {
        name for name, path in own.items() for t in TRACES.values() if t.is_archive_file(path)
    }
    return [*TRACES, *(name for name in own if name not in copies)]


def _machines() -> list[str]:
    from hpcgym.cluster import machine_names

    return list(machine_names())


policies = _completing(_policies)
schedulers = _completing(lambda: [*SCHEDULERS, *_policies(), *DISPATCHERS, *names.COSCHEDULERS])
estimates = _completing(lambda: ESTIMATES)
traces = _completing(_traces)
machines = _completing(_machines)
metrics = _completing(lambda: _of(names.ranking_metrics()))
recipes = _completing(lambda: _of(names.recipes()))
