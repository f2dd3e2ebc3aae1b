"""``evaluate``: policies and references on the same slices of a workload."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import RANDOM, RandomActions, random_order
from hpcgym.baselines.labels import labelled
from hpcgym.cluster import Cluster
from hpcgym.envs.core.episodes import PERIODS, Episode, Episodes, counted
from hpcgym.errors import (
    HpcgymError,
    WorkloadWarning,
    check_choice,
    check_whole,
    unknown,
    warn_caller,
)
from hpcgym.evaluation import brought, shared
from hpcgym.evaluation.brought import Groups, acts, around_of, unfolded, warn_of_seen
from hpcgym.evaluation.leaderboard import Leaderboard, Measured, board_of, warn_of_failures
from hpcgym.evaluation.lineup import (
    STATIC,
    by_name,
    find_policy,
    listed,
    other_scheduler,
    reference_row,
    references,
    references_of,
    scheduler_of,
    under_limits,
    with_references,
)
from hpcgym.evaluation.online import best_static
from hpcgym.evaluation.stage import Failures, Stage, measured_on, restrictions
from hpcgym.naming import duration
from hpcgym.progress import Progress, silent
from hpcgym.schedule.measures import (
    GROUPED_BY,
    group_metrics,
    metrics_by,
    metrics_within,
    result_within,
)
from hpcgym.schedule.metrics import ranking_metrics
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import (
    SITE_RULES,
    check_fair_share,
    check_scheduler,
    counts_usage,
    without_idle_shares,
)
from hpcgym.scheduler.estimates.learning import Learned
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.fair_share import told_already, warn_of_schedulers, warn_of_weights
from hpcgym.simulation.nodes import needs_on
from hpcgym.simulation.prepare import check_allocation, check_jobs, machine_of
from hpcgym.simulation.restricted import warn_of_unused
from hpcgym.simulation.run import learn_at, simulate
from hpcgym.workload import Workload, load_workload

if TYPE_CHECKING:
    import pandas as pd


# --- What policies do for each class of jobs, or for each user ------------------------------------


def check_grouping(by: str | None, metric: str) -> None:
    """Raise an HpcgymError unless groups of jobs have a metric."""
    if by is None:
        return
    check_choice("by", by, GROUPED_BY)
    known = group_metrics()
    if metric not in known:
        raise HpcgymError(
            f"{metric} is of whole schedules, and has no value by {by}; these are of jobs:"
            f" {', '.join(name for name in known if name != 'jobs')}"
        )


@dataclass
class Grouping:
    """Collects a metric of groups of jobs, schedule by schedule.

    Attributes
    ----------
    by : one of :data:`hpcgym.schedule.measures.GROUPED_BY`.
    metric : a name of :func:`hpcgym.schedule.measures.group_metrics`.
    rows : what was found, in order.
    """

    by: str
    metric: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, policy: str, where: str, result: Result) -> None:
        """Take what a policy did on a slice."""
        for group, found in metrics_by(result, self.by, [self.metric]).items():
            self.rows.append({
                "slice": where, self.by: group, "scheduler": policy,
                "jobs": found["jobs"], self.metric: found[self.metric],
            })  # fmt: skip

    def table(
        self, workload: str, failed: Collection[str], trainings: Mapping[str, Collection[str]]
    ) -> pd.DataFrame:
        """Return the rows, without policies that failed; see ``Leaderboard.groups``.

        Parameters
        ----------
        workload : its name.
        failed : policies that failed on some slice: their means could not be compared.
        trainings : row -> the policies that it is the mean of.
        """
        import pandas as pd

        row_of = {one: name for name, members in trainings.items() for one in members}
        out = {*failed, *(row_of[one] for one in failed if one in row_of)}
        columns = ["workload", "slice", self.by, "scheduler", "jobs", self.metric]
        found = pd.DataFrame([{"workload": workload, **row} for row in self.rows], columns=columns)
        found["scheduler"] = [row_of.get(name, name) for name in found["scheduler"]]
        found = found[~found["scheduler"].isin(out)]
        if not row_of:
            return found.reset_index(drop=True)
        return found.groupby(columns[:4], sort=False, as_index=False).mean()


# --- Weeks and months of evaluations --------------------------------------------------------------


def left_out(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> int:
    """Return how many jobs of the weeks or months that are chosen are in none of the slices.

    These are the jobs that cross the end of their week or month.

    Parameters
    ----------
    whole : the workload that ``part`` was cut from.
    """
    if part.kind not in PERIODS or not part.alone:
        return 0
    submitted = int(np.isin(_periods(whole, part.kind), _numbers(chosen)).sum())
    return submitted - sum(episode.stop - episode.start for episode in chosen)


def warn_of_short_period(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> None:
    """Say so if the log ends before half of the last of its weeks or months, and that is chosen.

    Warns
    -----
    WorkloadWarning : once.
    """
    if part.kind not in PERIODS:
        return
    length, label = PERIODS[part.kind]
    last = int(_periods(whole, part.kind)[-1])
    told = int(whole.submit_time[-1]) - whole.first_submit_s - last * length
    if last in _numbers(chosen) and 2 * told < length:
        warn_caller(
            f"{whole.name}: the last {label}, {last}, ends after {duration(told)}; it counts as"
            f" much as a whole {label}",
            WorkloadWarning,
        )


def _periods(whole: Workload, kind: str) -> NDArray[np.int64]:
    """Return the number of the week or month that each job was submitted in."""
    return (whole.submit_time - whole.first_submit_s) // PERIODS[kind][0]


def _numbers(chosen: Sequence[Episode]) -> list[int]:
    """Return the numbers of weeks or months."""
    return [int(episode.name.rpartition(" ")[2]) for episode in chosen]


# --- ``evaluate``: policies and references on the same slices of a workload -----------------------

#: Metrics of a schedule that are kept; policies are ranked by the first.
METRICS = ("mean_bsld", "mean_wait_s", "utilization")


def evaluate(
    policies: Any = (),
    workload: Any = "lublin:jobs=10000,processors=256,seed=0",
    *,
    slices: str = "test",
    episodes: str = "windows",
    jobs: int = 256,
    n: int | None = None,
    train_share: float = 0.5,
    start: str | None = None,
    warmup: str | float | None = None,
    arrivals: str | None = None,
    horizon: str | float | None = None,
    seed: int = 0,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    env: Any = None,
    env_options: Mapping[str, Any] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    metric: str = "mean_bsld",
    reference: str | None = None,
    by: str | None = None,
    progress: Progress | None = None,
    **rules: Any,
) -> Leaderboard:
    """Compare policies on the same slices of a workload, each from an empty machine or a full one.

    References are always there: EASY, EASY-SJBF, SAF and F1, or with ``backfill="none"`` FCFS, SJF,
    SAF and F1 (no F1 where the schedule says when jobs are submitted); "random", a random order of
    the queue, or where policies act in JobSelection, QueueOrdering or MixedPolicy "random
    (acting)", random actions there (see :mod:`hpcgym.baselines.chance`); and "best-static", the
    best weights that do not change, over the features of Legrand 2018 (or of MixedPolicy, if
    policies act in it). These weights are chosen on the training part only: of the pure policies
    and random vectors, 200 (``budget``) in all, those with the least mean BSLD over 100 training
    windows, or all training weeks or months, whatever the ``metric``.

    Parameters
    ----------
    policies : one, several, or several with names of one's own in a mapping: a name of
        :data:`hpcgym.baselines.SCHEDULERS` or :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, six
        weights (``"0.1,-0.2,0,0,0,0.7"``), a dispatcher of one's own or a ``Scheduler``, which are
        simulated; "lookahead", for :class:`hpcgym.agents.lookahead.Lookahead`, the path of a saved
        agent or of a model of Stable-Baselines3 (``.zip``, with its environment beside it by
        :func:`hpcgym.agents.save_spec`), a function of ``(observation, info)`` or an object with
        such an ``act`` and maybe ``begin(env)``, such as
        :class:`hpcgym.baselines.policies.Expert`, or a class of such objects that is made without
        arguments, which act in an environment; a function of one argument is a dispatcher; or
        "package.module:name" of any of these. A list in the mapping, or the text
        "name=one.pt,other.pt", is several trainings of one agent: one row, with the means over
        them and intervals of :mod:`hpcgym.evaluation.intervals`. Under limits also a rule of
        :data:`hpcgym.scheduler.rules.POWER`, which is EASY that keeps them so, or one with a
        scheduler, as "reduce-pc+saf".
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    slices : "test", "train" or "all": the chronological part to evaluate on.
    episodes, jobs, train_share : what a slice is; see :class:`hpcgym.envs.core.episodes.Episodes`.
    start, warmup, arrivals, horizon : what is around a slice; see the same class. What is None is
        as the environments in which policies act have it: as a saved agent's was, or as the version
        of ``env`` says, such as "hpcgym/JobSelection-v1"; without one, a slice begins with an empty
        machine and ends with its last job. ``warmup`` and ``horizon`` may be "none".
    n : number of slices, a random choice; by default 100 windows, but all weeks or months.
    seed : of the choice of slices, of the random weights, of the resamples and of resets.
    cluster : the machine, as :func:`hpcgym.simulate` takes it, of simulations and environments; by
        default as many processors as the workload's machine had.
    env : where policies act: the id of an environment such as "hpcgym/JobSelection-v0", or an
        environment of the same workload and kind of episodes. Saved agents know theirs. If it sets
        limits of power or energy, all that is simulated keeps them too, on its machine.
    env_options : further arguments of the environment, where it is not made already.
    budget : number of weight vectors that are tried, each on all training slices; 0: none, and no
        "best-static".
    resamples : of the confidence intervals, which means over fewer than five slices do not have.
    metric : that policies are ranked by, a name of :data:`hpcgym.schedule.metrics.METRICS` of which
        less or more is better. Slices without a value of it, such as of ``mean_bsld_long`` those
        without long jobs, are left out.
    reference : row, or name of a reference, that all are compared with: how far they are above it,
        with p-values. By default EASY, with ``backfill="none"`` FCFS, or as is said below.
    by : "class" or "user": ``Leaderboard.groups`` has the metric of each class of jobs, or user, on
        each slice. The metric must be one of jobs, and not of whole schedules.
    progress : shows how far it is; :func:`hpcgym.progress.counting` does on a terminal.
    rules : ``backfill``, ``backfill_order``, ``estimate``, ``policy_estimate``, ``correction``,
        ``passes``, ``allocation``, ``threshold``, ``hold``, ``fair_share``, ``quota``,
        ``maintenance``, ``preemption`` and ``dependencies`` of environments and of simulated
        policies, but for ``Scheduler`` objects and for what the names of the EASY family stand for:
        these have the last four, unless they have their own. By default those of the environment;
        without one, the rules of ``SCHEDULERS``. With ``quota=None`` no row has one; so it is with
        others that may be None. The correction of dispatchers is "next-second" unless it is given
        here, or the environment has another than "requested".

    Schedulers whose estimates learn begin each slice with what a simulation of the whole trace
    under them has learned before it, from the jobs that have ended by then. Policies that act in
    environments, dispatchers, and all on machines with nodes begin it knowing nothing.

    Rows are called as the policies are. A name whose rules differ here from those for which it
    stands in :func:`hpcgym.simulate` has them behind it, such as "saf (backfill fcfs)".

    With a dispatcher that solves a model among the policies the table has ``above_reference``: how
    far the mean is above that of the best of the dispatchers and references.

    Under limits the table has the energy of all, as a whole and while limits hold; schedulers keep
    them by the environment's own rule; and with budgets "powercap" is a row, too, to which
    ``above_reference`` compares all.

    With env="hpcgym/CoSchedule-v0", or a saved agent of it, jobs share nodes: see
    :func:`hpcgym.evaluation.shared.evaluate_shared`. Rows are co-schedulers and policies that act
    there, ``env_options`` has the ``speedups``, and the table the makespans.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or an environment that does not fit, which a
        policy says by an HpcgymError of its ``begin``. What else policies, dispatchers and
        environments of one's own do wrong is noted in ``Leaderboard.failures`` instead.
    WorkloadError : a job that the empty machine does not hold.

    Warns
    -----
    PolicyWarning : a policy or a dispatcher that failed on some slices.
    TrainingWarning : a model whose training has seen jobs of the slices, unless these are of the
        training part on purpose.
    WorkloadWarning : the last week or month of the log is a slice, and less than half of it is in
        the log.

    Examples
    --------
    >>> from hpcgym.evaluation import evaluate
    >>> board = evaluate("spf", "lublin:jobs=3000,processors=64", n=3, budget=20)
    >>> sorted(board.table.index)
    ['best-static', 'easy', 'easy-sjbf', 'f1', 'random', 'saf', 'spf']
    """
    policies = listed(policies)
    check_choice("metric", metric, ranking_metrics())
    check_grouping(by, metric)
    check_whole("budget", budget, 0)
    check_whole("resamples", resamples, 1)
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    together = shared.is_meant(env, policies)
    if together and by is not None:
        raise HpcgymError("there are no metrics by class or user where jobs share nodes")
    if together:
        for rule in rules:
            raise HpcgymError(unknown("argument", rule, ("env_options", "cluster", "episodes")))
    else:
        policies, groups = unfolded(by_name(policies, find_policy, other_scheduler))
    if whole.initial is not None:
        raise HpcgymError(
            f"evaluate begins each slice with an empty machine, and {whole.name} with the jobs that"
            f" run at {whole.initial.begin} s: evaluate on the whole trace"
        )
    acting = {} if together else {name: one for name, one in policies.items() if acts(one)}
    given = {"start": start, "warmup": warmup, "arrivals": arrivals, "horizon": horizon}
    around = around_of(given, env, env_options, acting)
    machine = None if cluster is None else machine_of(whole, cluster, None)
    part = Episodes(
        whole, episodes, jobs, slices, train_share, **around, keeps_past=True, cluster=machine,
        rules={} if together else restrictions(rules, env, env_options, policies),
    )  # fmt: skip
    chosen = part.named(part.usual if n is None else n, seed)
    warn_of_short_period(whole, part, chosen)
    if together:
        board = shared.evaluate_shared(
            policies, whole, part, chosen, cluster, env_options, seed, resamples, progress,
            metric, reference,
        )  # fmt: skip
    else:
        warn_of_seen(acting, whole, part)
        with told_already():
            stage = Stage(whole, machine, part, rules, env, env_options, acting, seed)
        try:
            check_allocation(rules.get("allocation") or "first-fit", stage.machine)
            board = _on_stage(
                stage, policies, groups, part, chosen, budget, seed, resamples, progress, metric,
                reference, by,
            )  # fmt: skip
        finally:
            stage.close()
    warn_of_failures(board)
    return replace(board, left_out=left_out(whole, part, chosen))


def _on_stage(
    stage: Stage,
    policies: Mapping[str, Any],
    groups: Groups,
    part: Episodes,
    chosen: list[Episode],
    budget: int,
    seed: int,
    resamples: int,
    progress: Progress | None,
    metric: str,
    reference: str | None,
    by: str | None,
) -> Leaderboard:
    """Compare policies, by their names, with references; see :func:`evaluate`."""
    whole = part.workload if part.alone else stage.workload
    machine, limits = stage.machine, stage.limits
    check_jobs(whole, machine.processors)
    needs_on(whole, machine)
    training: list[Workload] = []
    if budget > 0:
        training = _training(Episodes(whole, part.kind, part.jobs, "train", part.train_share), seed)
        check_static(stage.rules)
    slices = [part.workload_of(episode) for episode in chosen]
    always = brought.references(limits, slices)
    lineup, row_of = with_references(policies, stage.rules, limits, always, stage.lifted)
    known = [one for one in lineup.values() if isinstance(one, Scheduler)]
    orders = [one.usage_orders for one in known]
    check_fair_share(stage.rules.get("fair_share"), stage.counts_usage or any(map(any, orders)))
    if stage.counts_usage:
        warn_of_weights([whole], Scheduler().but(**stage.rules), stage.features)
    warn_of_schedulers(whole, known)
    warn_of_unused(slices, known, machine)
    brought.check_rows(lineup, limits, slices)
    chance, found = by_chance(stage, len(part.workload), seed)
    lineup[chance], static = found, static_row(stage.rules)
    row_of |= {RANDOM: chance, STATIC: static}
    rows = [*lineup, *([static] if training else [])]
    asked = () if reference is None else (reference_row(reference, rows, row_of, groups),)
    metrics = (metric, *METRICS, *(brought.ENERGIES if limits is not None else ()))
    total = budget + (len(lineup) + (budget > 0)) * len(chosen)
    weights: dict[str, float] = {}
    values: dict[str, list[dict[str, float]]] = {}
    failures: Failures = {}
    grouping = None if by is None else Grouping(by, metric)
    with told_already(), (progress or silent)("evaluating", total) as step:
        if training:
            plain = under_limits(scheduler_of("spf", stage.rules), limits)
            if not counts_usage(plain, stage.features):
                plain = without_idle_shares(plain)
            weights = best_static(
                training, stage.features, plain, budget, seed, step, machine, limits
            )
            lineup[static] = plain.but(policy=weights)
        for name, policy in lineup.items():
            play = _player(name, policy, whole, part, chosen, stage, step, grouping)
            values[name] = measured_on(chosen, name, policy, metrics, play, failures)

    among = asked or tuple(row_of[name] for name in always)
    if limits is None and not asked:
        among = references_of(lineup, row_of, stage.rules)
    schedulers = {name: None if acts(one) else one for name, one in lineup.items()}
    failed = {name for name, _ in failures}
    return board_of(
        Measured(values, [episode.name for episode in chosen], metric, METRICS, failures, groups),
        schedulers,
        static_weights=weights,
        seed=seed,
        resamples=resamples,
        references=among,
        energies=() if limits is None else brought.ENERGIES,
        plain=row_of[references(stage.rules)[0]],
        around=part.around,
        unseen=stage.unseen,
        groups=None if grouping is None else grouping.table(whole.name, failed, groups),
    )


def _training(part: Episodes, seed: int) -> list[Workload]:
    """Return the slices that static weights are chosen by."""
    return [part.workload_of(episode) for episode in part.named(part.usual, seed + 1)]


def _player(
    name: str,
    policy: Any,
    whole: Workload,
    part: Episodes,
    chosen: list[Episode],
    stage: Stage,
    step: Callable[[str], None],
    grouping: Grouping | None,
) -> Callable[[Episode], Mapping[str, float | int]]:
    """Return a function that returns the metrics of a policy's schedule of a slice.

    ``grouping`` takes those of groups of its jobs.
    """
    learned = _learned(policy, whole, stage.machine, part, chosen)

    def group(episode: Episode, result: Result) -> None:
        assert grouping is not None
        alone = result if part.alone else result_within(result, *counted(episode))
        grouping.add(name, episode.name, alone)

    def play(episode: Episode) -> Mapping[str, float | int]:
        step(f"{name}: {episode.name}")
        if not isinstance(policy, Scheduler):
            metrics = stage.play(name, policy, episode)
            if grouping is not None:
                group(episode, stage.result_of(name))
            return metrics
        jobs = part.workload_of(episode)
        scheduler: Scheduler = policy
        if isinstance(policy.policy_estimate, np.ndarray):  # of all jobs, as a random order has it
            given = policy.policy_estimate[episode.start : episode.stop]
            scheduler = policy.but(policy_estimate=given)
        held = None if stage.limits is None else stage.limits.of(jobs)
        known = learned[episode.name]
        result = simulate(jobs, scheduler, cluster=stage.machine, learned=known, limits=held)
        if grouping is not None:
            group(episode, result)
        if not part.alone:
            return metrics_within(result, *counted(episode))
        return result.metrics if held is None else {**result.metrics, **brought.measured(result)}

    return play


def _learned(
    policy: Any, whole: Workload, machine: Cluster, part: Episodes, chosen: list[Episode]
) -> dict[str, Learned | None]:
    """Return what a scheduler has learned of run times before each slice begins, by its name."""
    simulated = isinstance(policy, Scheduler) and policy.dispatcher is None
    if not simulated or machine.groups or not part.alone:
        return {episode.name: None for episode in chosen}
    begins = {e.name: int(part.workload_of(e).submit_time[0]) for e in chosen}
    names = sorted(begins, key=lambda name: begins[name])
    # one simulation of the whole trace, which is stopped where slices begin
    learned = learn_at(whole, policy, [begins[name] for name in names], machine)
    return dict(zip(names, learned, strict=True))


# --- Rows that are in each evaluation: chance, and the best static weights ------------------------


def by_chance(stage: Stage, jobs: int, seed: int) -> tuple[str, Any]:
    """Return what the row of chance is called, and who that is, for so many jobs."""
    acting = f"{RANDOM} (acting)"
    if stage.add_random(acting):
        return acting, RandomActions(seed)
    scheduler = under_limits(scheduler_of("spf", stage.rules), stage.limits)
    found = random_order(without_idle_shares(scheduler), jobs, seed)
    return _under_site_rules(RANDOM, found), found


def static_row(rules: Mapping[str, Any]) -> str:
    """Return what the row of the best static weights is called under the rules of an evaluation."""
    return _under_site_rules(STATIC, scheduler_of("spf", rules))


def _under_site_rules(name: str, scheduler: Scheduler) -> str:
    """Return a name with the rules of a site behind it."""
    return labelled(name, Scheduler(), scheduler, SITE_RULES)


def check_static(rules: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for rules that static weights cannot be chosen under."""
    try:
        check_scheduler(Scheduler().but(**rules), "environments")
    except HpcgymError as error:
        raise HpcgymError(f"{error}; budget=0 (--budget 0) leaves best-static out") from None
