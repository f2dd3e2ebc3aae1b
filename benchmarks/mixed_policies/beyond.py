"""Past the paper: what beats SAF on weeks to come, and by how much more than chance.

``python -m hpcgym.benchmarks.mixed_policies.beyond`` compares, without a threshold,

- look-ahead over the twelve pure policies (:mod:`hpcgym.agents.lookahead`), by its estimates;
- weights learned on the first half of the weeks, over six and over all features;
- weights learned on all weeks of another trace;
- weights picked anew each week by how a fixed set of vectors did in the weeks before: in all of
  them, or in those whose week before was like the one before this.

Values are means over cuts of the trace into weeks: see :mod:`hpcgym.benchmarks.studies.weeks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import typer
from numpy.typing import NDArray

from hpcgym.agents.lookahead import ESTIMATES, Lookahead
from hpcgym.agents.search import candidates, normalised
from hpcgym.agents.xnes import Xnes
from hpcgym.benchmarks.mixed_policies.study import RECIPE
from hpcgym.benchmarks.studies.harness import load_jobs
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.benchmarks.studies.weeks import board_of, cut_weeks, shifts, table_of
from hpcgym.scheduler.policies import FEATURES
from hpcgym.scheduler.policies.features import WEIGHTED_FEATURES, spread
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

#: What is left out of "all features": it makes scores infinite for serial jobs.
EVERY_FEATURE = tuple(name for name in FEATURES if name != "unicef")

_PAST = 8  # weeks that a choice needs before it, and those that "last weeks" looks at
_WIDTH = 0.5  # of the kernel, in standard deviations of each feature of weeks


class Cut:
    """A trace cut into weeks at some time of the week, with its static vectors simulated.

    Parameters
    ----------
    workload : the whole trace.
    shift_s : seconds by which each submission is put later.
    vectors : (n_vectors, n_features) static policies, SAF first.
    """

    def __init__(self, workload: Workload, shift_s: int, vectors: Floats):
        self.weeks = cut_weeks(workload, shift_s)
        self.numbers = list(self.weeks)
        self.values: Floats = BatchSimulator(list(self.weeks.values()), WEIGHTED_FEATURES).run(
            vectors
        )

    def static(self, weights: Mapping[str, float]) -> Floats:
        """Return the mean BSLD of each week under weights that do not change."""
        batch = BatchSimulator(list(self.weeks.values()), tuple(weights))
        values: Floats = batch.run([list(weights.values())])[0]
        return values

    def first_half(self) -> list[Workload]:
        """Return the weeks of training."""
        return list(self.weeks.values())[: len(self.weeks) // 2]

    def picked(self, way: str) -> Floats:
        """Return the mean BSLD of each week under the vector picked for it from the past.

        Parameters
        ----------
        way : "all weeks", "last weeks" or "similar weeks". The first weeks are SAF's.
        """
        # relative to SAF: else few crowded weeks would be all that counts
        loss = np.log(self.values / self.values[_SAF])
        known = np.array([_description(week) for week in self.weeks.values()])
        picked: Floats = self.values[_SAF].copy()
        for week in range(_PAST + 1, len(picked)):
            past = np.arange(1, week)  # those that have a week before
            importance = np.ones(len(past))
            if way == "last weeks":
                importance[:-_PAST] = 0.0
            if way == "similar weeks":
                scale = known[:week].std(axis=0) + 1e-9
                distance = (known[past - 1] - known[week - 1]) / scale
                importance = np.exp(-((distance / _WIDTH) ** 2).mean(axis=1) / 2)
            best = int(np.argmin(loss[:, past] @ importance))
            picked[week] = self.values[best, week]
        return picked


_SAF = 0  # the place of SAF among the static vectors


def _description(week: Workload) -> Floats:
    """Return what a week looks like: jobs, their sizes, requests and use of them (logarithms)."""
    used = np.minimum(week.run_time, week.requested_time) / week.requested_time
    means = [
        float(len(week)),
        float(week.requested_processors.mean()),
        float(week.requested_time.mean()),
        float((week.run_time * week.requested_processors).sum()),
        float(used.mean()),
    ]
    return np.log(means)


def learned(weeks: Sequence[Workload], features: Sequence[str], budget: int) -> dict[str, float]:
    """Return the weights that a search finds for some weeks together."""
    weights: dict[str, float] = Xnes(features, budget=budget).fit(list(weeks)).weights_
    return weights


def values_of(
    cuts: Sequence[Cut], other: Mapping[str, Mapping[str, float]], budget: int
) -> dict[str, list[Floats]]:
    """Return the mean BSLD of the weeks of each cut, by policy.

    Parameters
    ----------
    cuts : the first is what weights are learned on.
    other : weights that were learned elsewhere, by name.
    budget : vectors tried by a search.
    """
    found = {"saf": [cut.values[_SAF] for cut in cuts]}
    for estimate in ESTIMATES:
        agent = Lookahead(estimate=estimate)
        found[f"look-ahead, {estimate}"] = [
            np.array([agent.run(week).bsld.mean() for week in cut.weeks.values()]) for cut in cuts
        ]
    own = {
        "learned on the first half": learned(cuts[0].first_half(), WEIGHTED_FEATURES, budget),
        "the same, all features": learned(cuts[0].first_half(), EVERY_FEATURE, budget),
    }
    for name, weights in {**own, **other}.items():
        found[name] = [cut.static(weights) for cut in cuts]
    for way in ("all weeks", "last weeks", "similar weeks"):
        found[f"picked by {way}"] = [cut.picked(way) for cut in cuts]
    found["best vector of each week, in hindsight"] = [cut.values.min(axis=0) for cut in cuts]
    return found


def compare(sources: Sequence[str], n_cuts: int, n_vectors: int, budget: int) -> str:
    """Return the tables of some traces as Markdown."""
    traces = [load_jobs(source, clean=RECIPE) for source in sources]
    vectors = _vectors(traces[0], n_vectors)
    cuts = {
        trace.name: [Cut(trace, shift, vectors) for shift in shifts(n_cuts)] for trace in traces
    }
    elsewhere = {
        name: learned(list(parts[0].weeks.values()), WEIGHTED_FEATURES, budget)
        for name, parts in (cuts.items() if len(traces) > 1 else ())
    }
    pages = []
    for name, parts in cuts.items():
        other = {f"learned on {one}": w for one, w in elsewhere.items() if one != name}
        board = board_of([part.numbers for part in parts], values_of(parts, other, budget))
        pages.append(f"## {name}, {n_cuts} cuts\n\n{table_text(table_of(board, 'saf'))}")
    return "\n".join(pages)


def _vectors(workload: Workload, number: int) -> Floats:
    """Return SAF, then the pure policies and random vectors."""
    saf = [[-1.0 if name == "area" else 0.0 for name in WEIGHTED_FEATURES]]
    drawn = candidates(np.random.default_rng(0), len(WEIGHTED_FEATURES), number)
    vectors: Floats = normalised(np.vstack([saf, drawn / spread([workload], WEIGHTED_FEATURES)]))
    return vectors


def main(
    workload: list[str] | None = None, cuts: int = 8, vectors: int = 500, budget: int = 500
) -> None:
    """Compare what beats SAF on weeks to come; see the module.

    Parameters
    ----------
    workload : traces; by default KTH-SP2 and SDSC-SP2.
    cuts : times of the week to cut at.
    vectors : static vectors to pick from.
    budget : evaluations of a search.
    """
    print(compare(workload or ["KTH-SP2", "SDSC-SP2"], cuts, vectors, budget))


if __name__ == "__main__":
    typer.run(main)
