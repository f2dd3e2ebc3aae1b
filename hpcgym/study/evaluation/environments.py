"""Where policies of an evaluation act, and on what all of them are simulated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.saved import seen_by
from hpcgym.baselines.chance import KINDS
from hpcgym.envs.core.base import usual_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import Episode
from hpcgym.envs.core.surroundings import NOTHING_AROUND, USUAL_START
from hpcgym.errors import HpcgymError, TrainingWarning, check_choice, warn_caller
from hpcgym.files import shaped
from hpcgym.machine import Cluster
from hpcgym.schedule.measures import metrics_within
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import (
    OF_ENVIRONMENTS,
    OF_MACHINES,
    counts_usage,
    lifted_by,
    settled,
)
from hpcgym.scheduler.backfilling import BackfillRule
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import PREDICTING, Scheduler
from hpcgym.study.evaluation.platform import Platform, energies, platform_of
from hpcgym.study.evaluation.policies import env_of, options_of
from hpcgym.study.evaluation.user_policies import REMEDY, check_spaces
from hpcgym.units import in_seconds
from hpcgym.workload import Workload
from hpcgym.workload.load import machine_of

#: The environment in which jobs share nodes.
SHARED = "hpcgym/CoSchedule-v1"

#: What policies without an environment of their own see there.
_WINDOW = 64

#: Arguments of environments that the evaluation itself gives.
_OF_EVALUATIONS = ("cluster", "processors", "workload", "episodes", "jobs", "part", "train_share")

#: Kinds of actions that are about the jobs of a window alone.
_ABOUT_A_WINDOW = ("select", "order")

#: What Python says of an argument that is not there.
_NO_ARGUMENT = "unexpected keyword argument"

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


class Ran(NamedTuple):
    """What became of an episode.

    Attributes
    ----------
    result : returns its schedule.
    metrics : returns its metrics.
    whole : whether it ended by itself; else it was cut short.
    info : the last of its environment; empty where it was simulated.
    """

    result: Callable[[], Result]
    metrics: Callable[[], Mapping[str, float | int]]
    whole: bool = True
    info: Mapping[str, Any] = MappingProxyType({})


def run_episode(
    policy: Any,
    episode: Episode,
    slices: Episodes,
    platform: Platform,
    enter: Callable[[], tuple[Any, Any, Any]],
    learned: Learned | None = None,
) -> Ran:
    """Simulate an episode under a scheduler, or let a policy act from its beginning to its end.

    A policy that acts may have ``begin(env)``, called before, and ``end(observation, info)``,
    called after.

    Parameters
    ----------
    slices : which have the jobs for a scheduler.
    platform : on which it is simulated.
    enter : returns an environment that is reset to the episode, with its observation and info.
    learned : what a scheduler knows of run times before.

    Raises
    ------
    MisfitError : the policy cannot act in this environment.
    """
    if isinstance(policy, Scheduler):
        jobs, rows = slices.workload_of(episode), slices.rows_of(episode)
        result = platform.simulate(jobs, policy, rows, learned)
        return Ran(lambda: result, lambda: result.metrics)
    env, observation, info = enter()
    terminated, info = act_out(policy, env, observation, info)
    return Ran(env.unwrapped.result, env.unwrapped.metrics, terminated, info)


def act_out(policy: Any, env: Any, observation: Any, info: Any) -> tuple[bool, Any]:
    """Let a policy act to the end of an episode; return whether it was terminated, and the info."""
    terminated = truncated = False
    if getattr(policy, "begin", None) is not None:  # it wants to look at the episode
        with fitting():
            policy.begin(env.unwrapped)
    while not (terminated or truncated):
        observation, _, terminated, truncated, info = env.step(policy.act(observation, info))
    if getattr(policy, "end", None) is not None:
        policy.end(observation, info)
    return terminated, info


class Agents(NamedTuple):
    """The policies that act, their environment and the rules.

    Attributes
    ----------
    acting : policies that will act, by the names of their rows.
    rules : rules that the user has given.
    env : the id of an environment, or None: each policy's own ``env_id``.
    options : arguments of the environment, beside those that the evaluation gives.
    """

    acting: Mapping[str, Any]
    rules: Mapping[str, Any]
    env: str | None = None
    options: Mapping[str, Any] = MappingProxyType({})

    def environments(self, usual: bool = True) -> dict[str, Mapping[str, Any]]:
        """Return the known arguments of each environment, by the name of the policy there.

        ``usual``: with the defaults of the environment.
        """
        arguments: dict[str, Mapping[str, Any]] = {}
        if self.env is not None:
            arguments[self.env] = {**(usual_of(self.env) if usual else {}), **self.options}
        for name, policy in self.acting.items():
            own = env_of(policy, self.env)
            if own is not None and self.env in (None, own):
                theirs = {**options_of(policy), **self.options}
                arguments[name] = {**usual_of(own), **theirs} if usual else theirs
        return arguments


class Environments:
    """The environments of an evaluation, and the machine of all that is simulated.

    Parameters
    ----------
    workload, cluster, part : the whole workload, its machine and the slices to evaluate on; cluster
        None: the usual one of the workload, or that of environments with their own.
    agents : the policies that act, their environment and the rules.
    seed : of resets.

    Attributes
    ----------
    lifted : rules of a site that no row has.
    rules : the rules of all environments: those given, and if policies act, the others too, except
        the usual correction.
    features : of the static weights: those of MixedPolicy, or the six of Legrand et al. 2018.
    counts_usage : whether an environment looks at what users have used.
    followed : the rules that order the queue where agents only choose jobs that start before the
        head, or put jobs off: these agents are to improve on them.
    kept : policies in environments where a selected job keeps its reservation, as under no
        scheduler.
    machine, platform : the machine; and the machine with its limits, and speedups of codes.
    unseen : policy -> size of its window, and the most jobs that waited at once; for policies whose
        window was too small.
    result : returns the schedule of the slice that was run last.

    Raises
    ------
    HpcgymError : a policy without an environment, or environments of different rules.
    """

    result: Callable[[], Result]

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster | None,
        part: Episodes,
        agents: Agents,
        seed: int,
    ) -> None:
        acting, rules, env, given = agents
        self.rules, self.lifted = checked_rules(rules), lifted_by(rules)
        self.features: tuple[str, ...] = WEIGHTED_FEATURES
        self.counts_usage = False
        self.followed: list[Scheduler] = []
        self.kept: list[str] = []
        self.unseen: dict[str, tuple[int, int]] = {}
        self._workload, self._cluster, self._part, self._seed = workload, cluster, part, seed
        self._made: list[Any] = []
        for name in _OF_EVALUATIONS:
            if name in given:
                of = "cluster" if name == "processors" else name
                raise HpcgymError(f"env_options has {name}: give {of} to the evaluation")
        self._envs: dict[str, Any] = {}
        if env is not None:
            options = dict(given)
            if env == SHARED:
                # those that bring no environment follow the first that does
                theirs = next(
                    (options_of(policy) for policy in acting.values() if options_of(policy)), {}
                )
                known = {name: theirs[name] for name in ("cluster", "speedups") if name in theirs}
                options = {"window": _WINDOW, **known, **options}
            self._envs = dict.fromkeys(acting or ("env",), self._make(env, options))
        for name, policy in acting.items():  # what an agent was made for, it brings along
            if env in (None, env_of(policy, env)):
                self._envs[name] = self._own(name, policy, env, given)
        for name, single in self._envs.items():
            check_spaces(name, acting.get(name), single.unwrapped)
            if env != SHARED:
                self._agree(name, single.unwrapped)
        self.machine = machine_of(workload, cluster, None)
        self.platform = self._settled()
        self.machine = self.platform.cluster or self.machine
        usual = Scheduler().correction
        if rules.get("correction") is None and self.rules.get("correction") == usual:
            del self.rules["correction"]  # it was not asked for, and dispatchers have another

    def close(self) -> None:
        """Close the environments that were made here."""
        for env in self._made:
            env.close()

    def add_random(self, name: str) -> bool:
        """Let a policy of random actions act where others do; return whether there is a place."""
        kinds = {row: getattr(env.unwrapped, "action_kind", "") for row, env in self._envs.items()}
        place = next((row for row, kind in kinds.items() if kind in KINDS), None)
        if place is not None:
            self._envs[name] = self._envs[place]
        return place is not None

    def run(
        self, name: str, policy: Any, episode: Episode, learned: Learned | None = None
    ) -> Mapping[str, float | int]:
        """Run a policy on a slice; return the metrics of its schedule.

        Parameters
        ----------
        name : of its row.
        policy : a scheduler, which is simulated, or what acts.
        learned : what a scheduler knows of run times before.

        Raises
        ------
        MisfitError : the environment has other jobs, or the policy cannot act in it.
        """
        enter = partial(self._enter, name, episode)
        ran = run_episode(policy, episode, self._part, self.platform, enter, learned)
        self.result = ran.result
        if not isinstance(policy, Scheduler):
            if not ran.whole and ran.info.get("time_s", -1) < episode.until:
                raise RuntimeError("truncated before all jobs of the slice had started")
            self._note_unseen(name)
        elif not self._part.alone:
            return metrics_within(ran.result(), *episode.counting)
        metrics = ran.metrics()
        return metrics if self.platform.limits is None else {**metrics, **energies(self.result())}

    def _enter(self, name: str, episode: Episode) -> tuple[Any, Any, Any]:
        """Return a policy's environment, reset to a slice, its observation and info."""
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
                f"the environment of {name} has other jobs in {episode.name}, or another machine,"
                " than the evaluation"
            )
        return env, observation, info

    def _note_unseen(self, name: str) -> None:
        """Keep how many jobs waited at once at most, if a policy acts on a window of fewer."""
        env = self._envs[name].unwrapped
        if env.action_kind not in _ABOUT_A_WINDOW:
            return
        waiting = _most_waiting(self.result(), env.counted(), env.time)
        if waiting > env.options.window:
            most = self.unseen.get(name, (0, 0))[1]
            self.unseen[name] = env.options.window, max(most, waiting)

    # -- environments ------------------------------------------------------------------------------

    def _own(self, name: str, policy: Any, env: str | None, given: Mapping[str, Any]) -> Any:
        """Return an environment such as a policy was made for."""
        env_id = env_of(policy, env)
        if env_id is None:
            raise HpcgymError(
                f"{name} acts in an environment: give env='hpcgym/JobSelection-v2' or another"
                f", or {REMEDY}"
            )
        with shaped(name, "an agent for which an environment can be made"):
            return self._make(env_id, {**options_of(policy), **given})

    def _make(self, env_id: str, options: Mapping[str, Any]) -> Any:
        """Make an environment that has the slices of this evaluation."""
        import gymnasium

        part = self._part
        given = {
            **options,
            "workload": self._workload,
            "episodes": part.kind,
            "jobs": part.jobs,
            "part": "all" if part.alone else part.part,
            "train_share": part.train_share,
            **part.around,
        }
        given.pop("sampler", None)  # slices are named here, not drawn
        if env_id != SHARED or self._cluster is not None:
            given["cluster"] = self._cluster
        if env_id != SHARED:
            given |= {"processors": None, **self.rules}
        for rule in OF_ENVIRONMENTS:
            if rule in given and given[rule] is None:  # which not all environments know
                del given[rule]
        order = Scheduler(**{rule: given[rule] for rule in _BACKFILLING if rule in given})
        if not counts_usage(order, given.get("policy_features") or ()):
            given.pop("fair_share", None)  # it is for others: this environment would refuse it
        try:
            env = gymnasium.make(env_id, disable_env_checker=True, **given)
        except gymnasium.error.Error as error:
            raise HpcgymError(f"env {env_id!r}: {error}") from None
        except TypeError as error:
            if _NO_ARGUMENT not in str(error):
                raise
            said = str(error).partition(" was raised from the environment creator")[0]
            raise HpcgymError(f"env_options: {said}") from None
        self._made.append(env)
        return env

    def _settled(self) -> Platform:
        """Return what the environments run on; raise an HpcgymError if that is not the same."""
        usual = Platform(self.machine)
        platforms = {name: platform_of(env.unwrapped) for name, env in self._envs.items()}
        sites = {
            name: usual if own.limits is None and own.speedups is None else own
            for name, own in platforms.items()
        }
        first, platform = next(iter(sites.items()), ("", usual))
        others = {name: own for name, own in sites.items() if own is not platform}
        slices = (
            [self._part.workload_of(episode) for episode in self._part.named()] if others else []
        )
        for name, own in others.items():
            if not platform.is_like(own, slices):
                raise HpcgymError(
                    f"the environments of {first} and {name} set other limits, or have other"
                    " speedups or another machine; give both (--speedups, --cluster), or evaluate"
                    " apart"
                )
        return platform

    def _agree(self, name: str, env: Any) -> None:
        """Take over the rules of an environment, or say how they differ."""
        theirs = {rule: env.scheduler_rules[rule] for rule in OF_ENVIRONMENTS}
        if env.action_kind == "weights":
            self.features = tuple(env.policy_features)
        order = Scheduler(**{rule: theirs[rule] for rule in _BACKFILLING})
        if counts_usage(order, getattr(env, "policy_features", ())):
            self.counts_usage = True
        else:
            theirs["fair_share"] = self.rules.get("fair_share")  # it is for others
        if getattr(env, "reservation", "") == "kept":
            self.kept.append(name)
        if "policy" in env.scheduler_rules:
            self._follow(env, theirs)
        for rule in PREDICTING:
            if not isinstance(theirs[rule], str | None):
                raise HpcgymError(f"the environment of {name} has run times given as {rule}")
        described, other = Scheduler(**theirs).describe(), Scheduler().but(**self.rules).describe()
        for rule in self.rules:
            if described[rule] != other[rule]:
                raise HpcgymError(
                    f"the environment of {name} has {rule}={described[rule]!r}, and the evaluation"
                    f" {other[rule]!r}; give {rule} (--{rule.replace('_', '-')}), or evaluate apart"
                )
        self.rules = theirs

    def _follow(self, env: Any, theirs: dict[str, Any]) -> None:
        """Note the rule that orders the queue of an environment with these rules.

        Its backfill order is its own, or the agent's; other rows keep theirs, unless one is given
        for all.
        """
        own = dict(theirs, policy=env.scheduler_rules["policy"])
        if env.action_kind == "backfill":
            own["backfill_order"] = self.rules.get("backfill_order")
        rule = Scheduler(**own)
        if all(rule.describe() != other.describe() for other in self.followed):
            self.followed.append(rule)
        if "backfill_order" in self.rules:
            theirs["backfill_order"] = self.rules["backfill_order"]
        else:
            del theirs["backfill_order"]


def _alike(machine: Cluster, other: Cluster) -> bool:
    """Tell whether machines have the same processors, on the same nodes."""
    if not machine.groups and not other.groups:
        return machine.processors == other.processors
    same = machine.resources == other.resources and bool(machine.groups) == bool(other.groups)
    return same and np.array_equal(machine.capacity, other.capacity)


# --- Rules, and jobs around slices, as given or as environments have them -------------------------


def checked_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given rules, as names.

    None is kept for rules that may be None, such as quotas; any other rule that is None was not
    given.
    """
    usual = Scheduler()
    may_be_none = [rule for rule, value in usual.given().items() if value is None]
    given = {
        rule: value for rule, value in rules.items() if value is not None or rule in may_be_none
    }
    for rule in given:
        check_choice("argument", rule, OF_ENVIRONMENTS)
    usual.but(**given)
    for rule in PREDICTING:
        if not isinstance(given.get(rule, ""), str | None):
            raise HpcgymError(f"{rule} must be a name here: its run times would be of other slices")
    backfill = BackfillRule.parse(given.get("backfill", "easy"))
    if not (backfill.one or backfill.anew or backfill.kind == "none"):
        raise HpcgymError(
            "backfill must be 'easy', 'until-shadow', 'depth:K', 'slurm' or 'none' here; evaluate"
            f" {str(backfill)!r} by name, as easy:backfill={backfill}"
        )
    return given


def restrictions(agents: Agents, names: Collection[str] = OF_MACHINES) -> dict[str, Any]:
    """Return rules of a site that hold in an evaluation: those given, or those of environments.

    ``names``: which ones; by default quotas and windows.
    """
    there = [agents.options, *map(options_of, agents.acting.values())]
    rules = settled(names, agents.rules, there)
    return {rule: value for rule, value in rules.items() if value is not None}


def around_of(given: Mapping[str, Any], agents: Agents, gives_way: bool = False) -> dict[str, Any]:
    """Return the start, warm-up, arrivals and horizon of slices in an evaluation.

    Parameters
    ----------
    given : those of these arguments that the user has given.
    agents : the policies that act, and their environment.
    gives_way : whether the defaults of environments give way.

    Raises
    ------
    HpcgymError : environments that differ in an argument that is not given.
    """
    around = dict(NOTHING_AROUND)
    by: dict[str, str] = {}  # by whom
    for name, theirs in agents.environments(not gives_way).items():
        for key in NOTHING_AROUND:
            if key in given or key not in theirs:
                continue
            if key not in by:
                around[key], by[key] = theirs[key], name
            elif _meant(around[key]) != _meant(theirs[key]):
                raise HpcgymError(
                    f"the environment of {name} has {key}={theirs[key]!r}, and that of {by[key]}"
                    f" {around[key]!r}; give {key} (--{key}), or evaluate apart"
                )
    return {**around, **given}


def _meant(value: Any) -> Any:
    """Return a value that is equal for all ways to write the same."""
    if value == "warm":
        return USUAL_START
    return in_seconds(value)


def warn_of_seen(acting: Mapping[str, Any], whole: Workload, part: Episodes) -> None:
    """Say which policies have been trained on jobs of the slices; not if these are "train".

    The same log is known by its name, and by the seconds in which the first and the last job of the
    training were submitted.

    Warns
    -----
    TrainingWarning : for each of them.
    """
    first, last = part.submitted
    for name, seen in (
        (name, log_seen) for name, policy in acting.items() for log_seen in seen_by(policy)
    ):
        if part.part == "train" or seen["workload"] != whole.name:
            continue
        span = seen["first_s"], seen["last_s"]
        overlaps = span[0] < last and first < span[1]
        if overlaps and np.isin(span, whole.submit_time).all():
            where = "the whole workload" if part.part == "all" else f"the {part.part} part"
            warn_caller(
                f"{name} was trained with part={seen['part']!r} on {whole.name}, and has seen jobs"
                f" of {where}: its row tells nothing of new jobs; train with part='train'",
                TrainingWarning,
            )


def _most_waiting(result: Result, counted: NDArray[np.intp], now: int) -> int:
    """Return how many jobs waited at once at most, from the first that counts up to ``now``."""
    submits = np.sort(result.workload.submit_time)
    starts = np.sort(result.start[result.start >= 0])  # -1: not yet
    first = result.workload.submit_time[counted].min()
    times = submits[(submits >= first) & (submits <= now)]
    waiting = np.searchsorted(submits, times, "right") - np.searchsorted(starts, times, "right")
    return int(waiting.max(initial=0))
