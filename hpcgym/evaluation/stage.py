"""Where policies act: an environment that goes through the slices of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hpcgym.baselines.chance import KINDS
from hpcgym.cluster import Cluster
from hpcgym.envs import any_version
from hpcgym.envs.core.episodes import Episode, Episodes
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.evaluation.brought import (
    Limits,
    limits_of,
    measured,
    misfit_of_spaces,
    options_of,
    same_limits,
)
from hpcgym.files import shaped
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import (
    OF_ENVIRONMENTS,
    OF_MACHINES,
    counts_usage,
    lifted_by,
    settled,
)
from hpcgym.scheduler.backfilling import Backfill
from hpcgym.scheduler.own_code import failure, own_rules, place_in
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.prepare import machine_of
from hpcgym.workload import Workload

#: Kinds of actions that are about the jobs of a window alone.
_ABOUT_A_WINDOW = ("ordering", "selection")

_BACKFILLING = ("backfill", "backfill_order")

_COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors")


class MisfitError(HpcgymError):
    """A policy and an environment that do not go together: with them the evaluation ends."""


@contextmanager
def fitting() -> Iterator[None]:
    """Turn an HpcgymError of an environment's reset or a policy's begin into a MisfitError."""
    try:
        yield
    except HpcgymError as error:
        raise MisfitError(error) from error


def restrictions(
    rules: Mapping[str, Any],
    env: Any,
    env_options: Mapping[str, Any] | None,
    policies: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the quotas and windows of an evaluation: those given, or those of environments.

    Parameters
    ----------
    rules, env, env_options, policies : as :class:`Stage` takes them.
    """
    there: list[Any] = [env_options or {}]
    if env is not None and not isinstance(env, str):
        there.append(getattr(getattr(env, "unwrapped", None), "scheduler_rules", {}))
    there += map(options_of, policies.values())
    found = settled(OF_MACHINES, rules, there)
    return {rule: value for rule, value in found.items() if value is not None}


def act_out(env: Any, policy: Any, first: tuple[Any, Any]) -> tuple[bool, Mapping[str, Any]]:
    """Let a policy act from what a reset returned to the end of an episode.

    Returns
    -------
    whole : whether the episode ended by itself; else it was cut short.
    info : the last.

    Raises
    ------
    MisfitError : the policy cannot act in this environment.
    """
    (observation, info), terminated, truncated = first, False, False
    if getattr(policy, "begin", None) is not None:  # it wants to look at the episode
        with fitting():
            policy.begin(env.unwrapped)
    while not (terminated or truncated):
        action = policy.act(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
    return terminated, info


class Stage:
    """The environments of an evaluation, made when they are needed.

    Parameters
    ----------
    workload, machine, part : the whole workload, what it runs on and the slices to evaluate on;
        machine None: the usual one of the workload, or that of environments under limits.
    rules : rules that the user has given.
    env : an environment, the id of one, or None: that of each policy, its ``env_id``.
    env_options : arguments of the environment, beside those that the evaluation gives.
    policies : those that will act.
    seed : of resets.

    Attributes
    ----------
    workload : the whole.
    lifted : rules of a site that no row has.
    rules : the rules that all environments have: those given, and where policies act, the others
        too, but for the usual correction.
    features : what static weights are for: those of MixedPolicy, or the six of Legrand et al. 2018.
    counts_usage : whether an environment looks at what users have used.
    limits : of power and energy, that all environments set; None: none does.
    machine : what all run on.
    unseen : policy -> places of the window it acts on, and how many jobs waited at once at most; of
        those for which these were more.

    Raises
    ------
    HpcgymError : a policy without an environment, or environments of different rules.
    """

    def __init__(
        self,
        workload: Workload,
        machine: Cluster | None,
        part: Episodes,
        rules: Mapping[str, Any],
        env: Any,
        env_options: Mapping[str, Any] | None,
        policies: Mapping[str, Any],
        seed: int,
    ) -> None:
        self.rules, self.lifted = checked_rules(rules), lifted_by(rules)
        self.features: tuple[str, ...] = WEIGHTED_FEATURES
        self.workload, self._given, self._part, self._seed = workload, machine, part, seed
        self.machine = machine_of(workload, machine, None)
        self.limits: Limits | None = None
        self.counts_usage = False
        self.unseen: dict[str, tuple[int, int]] = {}
        self._made: list[Any] = []
        options = dict(env_options or {})
        for name in ("cluster", "processors"):
            if name in options:
                raise HpcgymError(f"env_options: give {name} to the evaluation or the workload")
        if env is None:
            self._envs = {name: self._own(name, one, options) for name, one in policies.items()}
        else:
            one = self._make(env, options) if isinstance(env, str) else _as_made(env, options)
            self._envs = dict.fromkeys(policies, one) or {"env": one}
            for name, policy in policies.items():  # what an agent was made for, it brings along
                if isinstance(env, str) and getattr(policy, "env_id", None) == env:
                    self._envs[name] = self._own(name, policy, options)
        for name, one in self._envs.items():
            check_spaces(name, policies.get(name), one.unwrapped)
            self._agree(name, one.unwrapped)
            self.counts_usage |= _counts_usage(one.unwrapped)
        self._settle_limits()
        usual = Scheduler().correction
        if rules.get("correction") is None and self.rules.get("correction") == usual:
            del self.rules["correction"]  # nobody asked for it, and dispatchers have another

    def close(self) -> None:
        """Close the environments that were made here."""
        for env in self._made:
            env.close()

    def add_random(self, name: str) -> bool:
        """Let a policy of random actions act where others do; return whether there is a place."""
        kinds = {one: getattr(env.unwrapped, "action_kind", "") for one, env in self._envs.items()}
        place = next((one for one, kind in kinds.items() if kind in KINDS), None)
        if place is not None:
            self._envs[name] = self._envs[place]
        return place is not None

    def _enter(self, name: str, episode: Episode) -> tuple[Any, Any]:
        """Reset a policy's environment to a slice; return the first observation and info.

        Raises
        ------
        MisfitError : the environment has no such slice, or other jobs in it.
        """
        env = self._envs[name]
        options: dict[str, Any] = {"slice": episode.name}
        if (
            self._part.kind == "whole" and self._part.alone
        ):  # what a part is called, an environment of all does not know
            options = {"start": episode.start, "jobs": episode.stop - episode.start}
        with fitting():
            observation, info = env.reset(seed=self._seed, options=options)
        there, wanted = env.unwrapped.episode_workload, self._part.workload_of(episode)
        same = all(np.array_equal(there.columns[c], wanted.columns[c]) for c in _COLUMNS)
        if not same or not _alike(env.unwrapped.result().cluster, self.machine):
            raise MisfitError(
                f"the environment of {name} has another workload in {episode.name} than"
                f" {wanted.name} on {_in_words(self.machine)}"
            )
        return observation, info

    def play(self, name: str, policy: Any, episode: Episode) -> Mapping[str, float | int]:
        """Let a policy act to the end of a slice; return the metrics of its schedule.

        Raises
        ------
        MisfitError : the environment has other jobs, or the policy cannot act in it.
        """
        env = self._envs[name]
        whole, info = act_out(env, policy, self._enter(name, episode))
        if not whole and self._part.around["horizon"] is None:
            raise RuntimeError("truncated before all jobs of the slice had started")
        metrics: Mapping[str, float | int] = info["metrics"]
        self._note_unseen(name, int(metrics.get("max_queue_length", 0)))
        if self.limits is not None:
            return {**metrics, **measured(env.unwrapped.result())}
        return metrics

    def _note_unseen(self, name: str, waiting: int) -> None:
        """Keep how many jobs waited at once at most, if a policy acts on a window of fewer."""
        env = self._envs[name].unwrapped
        if env.action_kind in _ABOUT_A_WINDOW and waiting > env.options.window:
            most = self.unseen.get(name, (0, 0))[1]
            self.unseen[name] = env.options.window, max(most, waiting)

    def result_of(self, name: str) -> Result:
        """Return the schedule of the slice that a policy has just played."""
        result: Result = self._envs[name].unwrapped.result()
        return result

    def _own(self, name: str, policy: Any, given: Mapping[str, Any]) -> Any:
        """Return an environment such as a policy was made for."""
        env_id = getattr(policy, "env_id", None)
        if env_id is None:
            raise HpcgymError(
                f"{name} acts in an environment: give env='hpcgym/JobSelection-v0' or another"
                " (--env), or write that of a model beside it, with hpcgym.agents.save_spec"
            )
        with shaped(name, "an agent for which an environment can be made"):
            return self._make(env_id, {**getattr(policy, "env_options", {}), **given})

    def _make(self, env_id: str, options: Mapping[str, Any]) -> Any:
        """Make an environment that has the slices of this evaluation."""
        import gymnasium

        part = self._part
        ours = {
            "workload": self.workload,
            "processors": None,
            "cluster": self._given,
            "episodes": part.kind,
            "jobs": part.jobs,
            "part": "all" if part.alone else part.part,
            "train_share": part.train_share,
            **part.around,
            **self.rules,
        }
        given = {**options, **ours}
        given.pop("sampler", None)  # slices are named here, not drawn
        for rule in OF_ENVIRONMENTS:
            if rule in given and given[rule] is None:  # which not all environments know
                del given[rule]
        order = Scheduler(**{rule: given[rule] for rule in _BACKFILLING if rule in given})
        if not counts_usage(order, given.get("policy_features") or ()):
            given.pop("fair_share", None)  # it is for others: this environment would refuse it
        try:
            with any_version():  # what newer ones have by default is given
                env = gymnasium.make(env_id, disable_env_checker=True, **given)
        except gymnasium.error.Error as error:
            raise HpcgymError(f"env {env_id!r}: {error}") from None
        self._made.append(env)
        return env

    def _settle_limits(self) -> None:
        """Take over the limits of the environments, or say which differ."""
        found = {name: (one, limits_of(one.unwrapped)) for name, one in self._envs.items()}
        slices = [self._part.workload_of(episode) for episode in self._part.named()]
        first = next(iter(found), "")
        for number, (name, (env, limits)) in enumerate(found.items()):
            if number == 0:
                self.limits = limits
            elif not same_limits(self.limits, limits, slices):
                raise HpcgymError(
                    f"the environments of {first} and {name} set other limits; evaluate apart"
                )
            if limits is not None:
                self.machine = env.unwrapped.options.cluster

    def _agree(self, name: str, env: Any) -> None:
        """Take over the rules of an environment, or say how they differ."""
        theirs = {rule: env.scheduler_rules[rule] for rule in OF_ENVIRONMENTS}
        if not _counts_usage(env):
            theirs["fair_share"] = self.rules.get("fair_share")  # it is for others
        for rule in ("estimate", "policy_estimate"):
            if not isinstance(theirs[rule], str):
                raise HpcgymError(f"the environment of {name} has run times given as {rule}")
        one, other = Scheduler(**theirs).describe(), Scheduler().but(**self.rules).describe()
        for rule in self.rules:
            if one[rule] != other[rule]:
                raise HpcgymError(
                    f"the environment of {name} has {rule}={one[rule]!r}, and the evaluation"
                    f" {other[rule]!r}; give {rule} (--{rule.replace('_', '-')}), or evaluate apart"
                )
        self.rules = theirs
        if env.action_kind == "weights":
            self.features = tuple(env.policy_features)


def _counts_usage(env: Any) -> bool:
    """Return whether an environment looks at what users have used."""
    rules = {rule: env.scheduler_rules[rule] for rule in _BACKFILLING}
    return counts_usage(Scheduler(**rules), getattr(env, "policy_features", ()))


def checked_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return rules that are given, as names.

    A rule that may be None, as a quota, is kept if it is. Any other that is None was not given.
    """
    usual = Scheduler()
    may_be_none = [rule for rule, value in usual.given().items() if value is None]
    given = {
        rule: value for rule, value in rules.items() if value is not None or rule in may_be_none
    }
    for rule in given:
        check_choice("argument", rule, OF_ENVIRONMENTS)
    usual.but(**given)
    for rule in ("estimate", "policy_estimate"):
        if not isinstance(given.get(rule, ""), str):
            raise HpcgymError(f"{rule} must be a name here: its run times would be of other slices")
    backfill = Backfill.parse(given.get("backfill", "easy"))
    if not (backfill.one or backfill.anew or backfill.kind == "none"):
        raise HpcgymError(
            "backfill must be 'easy', 'until-shadow', 'depth:K', 'slurm' or 'none' here; evaluate"
            f" {str(backfill)!r} by name, as easy:backfill={backfill}"
        )
    return given


def _alike(one: Cluster, other: Cluster) -> bool:
    """Tell whether machines have the same processors, on the same nodes."""
    if not one.groups and not other.groups:
        return one.processors == other.processors
    same = one.resources == other.resources and bool(one.groups) == bool(other.groups)
    return same and np.array_equal(one.capacity, other.capacity)


def _in_words(machine: Cluster) -> str:
    """Return a machine in words."""
    if machine.groups:
        return f"the {machine.nodes} nodes of {machine.name or 'the cluster'}"
    return f"{machine.processors} processors"


def check_spaces(name: str, policy: Any, env: Any) -> None:
    """Raise an HpcgymError if a policy was trained with other spaces than an environment has."""
    if differ := misfit_of_spaces(policy, env):
        raise HpcgymError(
            f"{name} was trained in another environment than this: {differ}; give env_options, or"
            " write what it was trained in beside it, with hpcgym.agents.save_spec"
        )


def _as_made(env: Any, options: Mapping[str, Any]) -> Any:
    """Return an environment that the user has made."""
    if options:
        raise HpcgymError("env_options are for the id of an environment, and env is made already")
    if not callable(getattr(env, "reset", None)):
        raise HpcgymError(f"env must be the id of an environment or an environment, not {env!r}")
    return env


# --- One policy after another on the slices of an evaluation --------------------------------------

#: (policy, slice) -> what went wrong.
Failures = dict[tuple[str, str], str]


def measured_on(
    chosen: Sequence[Episode],
    name: str,
    policy: Any,
    metrics: Sequence[str],
    play: Callable[[Episode], Mapping[str, float | int]],
    failures: Failures,
) -> list[dict[str, float]]:
    """Return the metrics of a policy on each slice, nan where it failed.

    Parameters
    ----------
    name : of the policy.
    metrics : those that are kept.
    play : returns the metrics of the policy's schedule of a slice.
    failures : gets what code of the user's does wrong, and where.

    Raises
    ------
    MisfitError : a policy that cannot act in its environment.
    Exception : what the schedulers of this library raise.
    """
    values = []
    for episode in chosen:
        found: Mapping[str, float | int] = {}
        try:
            found = play(episode)
        except MisfitError:
            raise
        except Exception as error:  # whatever a user's policy does
            own = own_rules(policy).values() if isinstance(policy, Scheduler) else [policy]
            if not own:
                raise
            guilty = next((one for one in own if place_in(one, error)), None)
            failures[name, episode.name] = failure(error, guilty)
        values.append({metric: float(found.get(metric, "nan")) for metric in metrics})
    return values
