"""An evolution strategy that searches a rule: weights of features that depend on the state.

A job's score is a weighted sum of its features, and each weight is a linear function of a few
numbers of the state: weight_f = sum_k theta[f, k] s_k, with s = (1, free processors, jobs that
wait, ...). In MixedPolicy these weights are the action. In QueueOrdering and JobSelection the
features are those of :mod:`hpcgym.agents.job_view`; the rule scores the visible jobs, and what
would harm nobody goes before the first that does not fit, as far as three more weights say.
``xnes`` searches constant weights; this goes on from the best constant ones of a random search.

The strategy is that of Salimans et al. 2017, arXiv:1703.03864: mirrored perturbations, whose ranks
make the gradient, and Adam. All vectors of a generation meet the same episodes.

>>> from hpcgym.agents.practice import maker
>>> from hpcgym.agents.rule_es import RuleEs
>>> make = maker("lublin:jobs=600,processors=32,load=1.0", "hpcgym/MixedPolicy-v1", {"jobs": 20})
>>> agent = RuleEs(pairs=2, envs=2, episodes=1).train(make, seed=0, steps=2000)
>>> agent.theta.shape
(6, 8)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents import job_view
from hpcgym.agents.practice import Log, Make, Spending, judging, play
from hpcgym.agents.saved import settled_options
from hpcgym.agents.settings import RuleEsSettings, takes
from hpcgym.errors import HpcgymError
from hpcgym.files.writing import whole_json

NAME = "rule-es"
FORMAT = 1

Numbers = NDArray[np.float64]

#: Of the state, beside 1: field of the observation, place in it.
STATE = (
    ("cluster", 0), ("cluster", 3), ("cluster", 6), ("queue", 0), ("queue", 2), ("queue", 3),
    ("queue", 4),
)  # fmt: skip

_KINDS = ("weights", "ordering", "selection")
_BONUS = len(job_view.EASY)
_PER_ENV = 6_000  # steps to spend for each environment that a vector plays in
_FINALISTS = 3  # constant weights that validation chooses from


@takes(RuleEsSettings)
class RuleEs:
    """A rule, and how it is searched.

    Parameters
    ----------
    **settings : those of :class:`hpcgym.agents.settings.RuleEsSettings`.

    Attributes
    ----------
    theta : (n_features, 1 + len(STATE)) float64; after ``train``, as the next.
    bonus : (3,) float64, the weights of :func:`hpcgym.agents.job_view.backfilled`; unused where the
        action is the weights.
    env_id, env_options : the environment that it was trained for.
    """

    name = NAME

    def __init__(self, **settings: Any) -> None:
        self.plan = RuleEsSettings(**settings)
        self.kind = ""
        self.theta, self.bonus = np.zeros((0, 1 + len(STATE))), np.zeros(_BONUS)
        self._best: Numbers | None = None  # what a search has chosen so far

    def __repr__(self) -> str:
        return f"RuleEs({self.env_id!r})" if self.kind else "RuleEs()"

    # -- learning ----------------------------------------------------------------------------------

    def train(self, make: Make, seed: int, steps: int, log: Log | None = None) -> RuleEs:
        """Search; the same arguments find the same rule.

        Parameters
        ----------
        make : returns environments; see :mod:`hpcgym.agents.practice`.
        seed : of the search and of the episodes.
        steps : of all environments together, those of the validation part too. The generation and
            the choice that go on then are finished.
        log : is told how the search goes.

        Raises
        ------
        HpcgymError : an environment that the rule cannot act in.
        """
        plan, spent, rng = self.plan, Spending(steps), np.random.default_rng(seed)
        self._look_at(make())
        judge = judging(make, spent)
        n = 2 * plan.pairs
        envs = int(np.clip(steps / (n * _PER_ENV), 1, plan.envs))
        env = make(num_envs=n * envs, reward="bsld", copy=False, threads=1)

        def values(vectors: Numbers) -> Numbers:
            """Return the value of each vector on the same new episodes; less is better."""
            seeds = rng.integers(2**31, size=envs)
            act = self._acting(np.repeat(vectors, envs, axis=0))
            gained = play(env, act, np.tile(seeds, n).tolist(), plan.episodes, spent)
            bslds = -gained.reshape(n, envs * plan.episodes)
            # crowded episodes weigh more, as they do in a mean, but do not drown the others
            means: Numbers = (bslds / np.sqrt(bslds.mean(axis=0))).mean(axis=1)
            return means

        # validation chooses: first of the best constant weights, then of where the search has been
        offered = self._beginning(rng, n, values, spent, plan.share)
        values_of: list[float] = []
        for one in offered:
            if not values_of or spent.left > 0.5:
                values_of.append(judge(self._acting(one[None])))
        least, center = min(values_of), offered[int(np.argmin(values_of))]
        self._best = center
        if log is not None:
            log(spent.done, {"validation/mean_bsld": least, "validation/least_mean_bsld": least})
        first, second, judged = np.zeros_like(center), np.zeros_like(center), spent.left
        generation = 0
        while spent.left > 0:
            generation += 1
            noise = rng.normal(size=(plan.pairs, center.size))
            found = values(center + plan.sigma * np.concatenate([noise, -noise]))
            ranks = found.argsort().argsort() / (n - 1) - 0.5
            gradient = (ranks[: plan.pairs] - ranks[plan.pairs :]) @ noise / plan.pairs
            first = 0.9 * first + 0.1 * gradient
            second = 0.99 * second + 0.01 * gradient**2
            step = (first / (1 - 0.9**generation)) / (
                np.sqrt(second / (1 - 0.99**generation)) + 1e-8
            )
            center = center - plan.learning_rate * step
            told = {"train/value": float(found.mean()), "train/least_value": float(found.min())}
            if judged - spent.left > plan.every or spent.left == 0:
                judged = spent.left
                value = judge(self._acting(center[None]))
                if value < least:
                    least, self._best = value, center
                told |= {"validation/mean_bsld": value, "validation/least_mean_bsld": least}
            if log is not None:
                log(spent.done, told)
        self.keep_best()
        env.close()
        return self

    def keep_best(self) -> bool:
        """Be what a search that was interrupted had chosen; tell whether there was anything."""
        if self._best is None:
            return False
        theta, bonus = self._cut(self._best[None])
        self.theta, self.bonus = theta[0], bonus[0]
        return True

    def check(self, env: Any) -> Any:
        """Return an environment itself; raise an HpcgymError if no rule can act there."""
        return job_view.check_sees(env, NAME, *_KINDS)

    def _look_at(self, env: Any) -> None:
        """Take over what there is to know of the environment that it is to act in."""
        world = self.check(env)
        self.kind, self.env_id = world.action_kind, env.spec.id
        self.env_options = settled_options(world, _plain(env.spec.kwargs))
        jobs = self.kind != "weights"
        self.features = job_view.JOB if jobs else tuple(world.policy_features)
        env.close()

    @property
    def _size(self) -> int:
        return len(self.features) * (1 + len(STATE)) + (_BONUS if self.kind != "weights" else 0)

    def _cut(self, vectors: Numbers) -> tuple[Numbers, Numbers]:
        """Return theta (n, n_features, 1 + len(STATE)) and bonus (n, 3) of vectors."""
        at = len(self.features) * (1 + len(STATE))
        shape = (len(vectors), len(self.features), 1 + len(STATE))
        bonus = vectors[:, at:] if vectors.shape[1] > at else np.zeros((len(vectors), _BONUS))
        return vectors[:, :at].reshape(shape), bonus

    def _beginning(
        self, rng: np.random.Generator, n: int, values: Callable[[Numbers], Numbers],
        spent: Spending, share: float,
    ) -> Numbers:  # fmt: skip
        """Return the best constant weights, of known and random ones, (5, size) or fewer.

        They are tried on a share of the steps. Each round keeps the better half, which has to prove
        itself on new episodes, and fills up with new vectors.
        """
        offered, kept = self._constants(rng), np.zeros((0, self._size))
        value = np.zeros(0)
        while True:
            fresh = np.array([next(offered) for _ in range(n - len(kept))])
            vectors = np.concatenate([kept, fresh])
            value = values(vectors)
            order = value.argsort(kind="stable")
            if spent.left <= 1.0 - share:
                winners: Numbers = vectors[order[:_FINALISTS]]
                return winners
            kept = vectors[order[: n // 2]]

    def _constants(self, rng: np.random.Generator) -> Iterator[Numbers]:
        """Return weights that do not depend on the state: known orders, then random ones."""
        known: list[NDArray[Any]]
        if self.kind == "weights":
            known = [sign * row for row in np.eye(len(self.features)) for sign in (-1.0, 1.0)]
        else:
            known = [job_view.weights_of(order) for order in job_view.ORDERS]
        while True:
            drawn = rng.normal(size=len(self.features))
            row = known.pop(0) if known else drawn / np.abs(drawn).sum()
            vector = np.zeros(self._size)
            vector[: len(self.features) * (1 + len(STATE)) : 1 + len(STATE)] = row
            if self.kind != "weights":
                vector[-_BONUS:] = job_view.EASY
            yield vector

    # -- acting ------------------------------------------------------------------------------------

    def _acting(self, vectors: Numbers) -> Callable[[Any], Any]:
        """Return what acts in as many environments as there are vectors, or in any with one."""
        theta, bonus = self._cut(vectors)
        return lambda observation: self._actions(observation, theta, bonus)

    def _actions(self, observation: Mapping[str, Any], theta: Numbers, bonus: Numbers) -> Any:
        state = np.stack([observation[name][:, place] for name, place in STATE], axis=1)
        numbers = np.concatenate([np.ones((len(state), 1)), 2.0 * state - 1.0], axis=1)
        # sums row by row: one environment, or many, give the same to the last bit
        weights = (theta * numbers[:, None, :]).sum(axis=2)
        if self.kind == "weights":
            return weights / np.maximum(np.abs(weights).max(axis=1, keepdims=True), 1e-9)
        look = job_view.seen(observation)
        scores = job_view.placed(look, (look.jobs * weights[look.owner]).sum(axis=1))
        scores = job_view.backfilled(look, scores, bonus)
        if self.kind == "selection":
            return scores.argmax(axis=1)
        actions = np.zeros(observation["mask"].shape)
        actions[:, : scores.shape[1]] = scores
        return actions

    def begin(self, env: Any) -> None:
        """Check that an environment is such as the rule was searched in.

        Raises
        ------
        HpcgymError : it has other actions or observations, or weighs other features.
        """
        if not self.kind:
            raise HpcgymError(f"{NAME}: nothing has been learned; call train first")
        world = job_view.check_sees(env, NAME, self.kind)
        if self.kind == "weights" and tuple(world.policy_features) != tuple(self.features):
            raise HpcgymError(f"{NAME} weighs {', '.join(self.features)}")

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any] | None = None) -> Any:
        """Return the action: weights, scores or the place of a job."""
        actions = self._actions(job_view.one(observation), self.theta[None], self.bonus[None])
        return int(actions[0]) if self.kind == "selection" else actions[0]

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the rule as JSON, in such a way that a reader never sees half of it."""
        contents = {
            "format": FORMAT,
            "agent": NAME,
            "env_id": self.env_id,
            "env_options": self.env_options,
            "kind": self.kind,
            "features": list(self.features),
            "theta": self.theta.tolist(),
            "bonus": self.bonus.tolist(),
        }
        whole_json(path, contents)


def load(contents: Mapping[str, Any]) -> RuleEs:
    """Return the rule of a file's contents; :func:`hpcgym.agents.load` reads files."""
    if contents.get("format") != FORMAT or contents["kind"] not in _KINDS:
        raise HpcgymError(f"this {NAME} is not of this version")
    agent = RuleEs()
    agent.kind, agent.env_id = contents["kind"], contents["env_id"]
    agent.env_options, agent.features = contents["env_options"], tuple(contents["features"])
    agent.theta = np.array(contents["theta"], np.float64)
    agent.bonus = np.array(contents["bonus"], np.float64)
    right = agent.theta.shape == (len(agent.features), 1 + len(STATE))
    right &= agent.bonus.shape == (_BONUS,)
    right &= agent.kind == "weights" or agent.features == job_view.JOB
    if not right or not np.isfinite(np.append(agent.theta.ravel(), agent.bonus)).all():
        raise HpcgymError(f"this {NAME} has numbers that do not fit its features")
    return agent


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of an environment with lists in place of tuples, as files have them."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
