"""The ids of the environments with Gymnasium."""

from __future__ import annotations

from hpcgym.errors import HpcgymError, unknown

#: Name with Gymnasium -> where the class is. The vector environment of X or XEnv is XVector.
IDS = {
    "hpcgym/JobSelection-v2": "hpcgym.envs.job_selection:JobSelection",
    "hpcgym/QueueOrdering-v2": "hpcgym.envs.queue_ordering:QueueOrdering",
    "hpcgym/MixedPolicy-v2": "hpcgym.envs.mixed_policy:MixedPolicy",
    "hpcgym/Backfill-v2": "hpcgym.envs.backfill:Backfill",
    "hpcgym/Inspector-v2": "hpcgym.envs.inspector:Inspector",
    "hpcgym/PowerCap-v1": "hpcgym.envs.power_limits:PowerCapEnv",
    "hpcgym/EnergyBudget-v1": "hpcgym.envs.power_limits:EnergyBudgetEnv",
    "hpcgym/CoSchedule-v1": "hpcgym.envs.co_schedule:CoSchedule",
    "hpcgym/Submit-v0": "hpcgym.envs.submit:Submit",
}


def id_of(name: str) -> str:
    """Return the id of an environment that may be named without hpcgym/ and its version.

    Raises
    ------
    HpcgymError : no such environment.
    """
    for env_id in IDS:
        if name in forms(env_id):
            return env_id
    raise HpcgymError(unknown("env", name, [forms(env_id)[-1] for env_id in IDS]))


def forms(env_id: str) -> tuple[str, str, str]:
    """Return how an id may be written: as it is, without hpcgym/, and without its version, too."""
    short = env_id.removeprefix("hpcgym/")
    return env_id, short, short.rpartition("-v")[0]


def successor(name: str) -> str:
    """Return the id that has taken the place of one by its last version; others as they are.

    Saved agents name the ids of their time. They may go on where only rewards have changed, or more
    is to be seen.
    """
    before, _, version = name.removeprefix("hpcgym/").rpartition("-v")
    for env_id in IDS:
        now, _, present = env_id.removeprefix("hpcgym/").rpartition("-v")
        if before == now and version == str(int(present) - 1):
            return env_id
    return name


def full_id(name: str) -> str:
    """Return the id of an environment as :func:`id_of` does; what has a ``/`` may be of others."""
    return name if "/" in name else id_of(name)


def register() -> None:
    """Register the environments with Gymnasium, once."""
    import gymnasium

    for name, entry_point in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=entry_point,
                vector_entry_point=f"{entry_point.removesuffix('Env')}Vector",
                # the tests check them; at each step that would cost more than the step
                disable_env_checker=True,
            )
