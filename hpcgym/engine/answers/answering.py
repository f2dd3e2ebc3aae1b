"""Loops that answer what a simulation asks for: predictions, orders by usage, expressions.

The loop of a machine stops before each submission, and before a pass that follows ends. Here it is
answered and goes on. What answers is composed: learned predictions, shares, expressions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hpcgym.compilation import jit_entry
from hpcgym.engine.answers.expressed import express_all, express_coming
from hpcgym.engine.answers.online import answers_by
from hpcgym.engine.answers.shares import counting
from hpcgym.engine.answers.told import Told, nobody
from hpcgym.engine.state import A_CORRECTION, A_PREDICTION, A_RENEWAL


@cache
def answering(run: Any, told: Told, predict: Any) -> Any:
    """Return the compiled loop of a machine with answers to what it asks for.

    Parameters
    ----------
    run : the loop of the machine, of :func:`hpcgym.engine.loop.loop_of`.
    told : what the machine tells.
    predict : a chain of :mod:`hpcgym.engine.answers.formulas`.
    """
    count_usage, answer_inside = counting(told), answers_by(predict).inside
    coming, comes = told.coming or nobody, told.coming is not None

    @jit_entry
    def run_with_answers(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine, estimators, learner, shares, expressed, stop_time, max_passes,
    ):  # fmt: skip
        """Simulate as ``run`` does, with a learner, shares and expressions; None of what is not.

        It stops with ``sim.asked`` set where an order is asked for, or a prediction from outside.
        """
        passes = 0
        while True:
            passes += run(
                jobs, keys, scores, users,
                sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
                ended, machine, stop_time, max_passes - passes,
            )  # fmt: skip
            if sim.asked < A_PREDICTION:
                return passes
            # what is learned changes scores; usage is added to them
            ranked = scores
            if shares is not None:
                ranked = shares.base
            if estimators is not None and not answer_inside(
                jobs, ranked, users, sim, progress, blocks, entries, line, ended, estimators,
                learner,
            ):  # fmt: skip
                return passes
            if shares is not None and sim.asked != A_CORRECTION:
                count_usage(
                    jobs, scores, sim, progress, blocks, entries, ended, machine, shares,
                    estimators is not None,
                )  # fmt: skip
            if expressed is not None and sim.asked == A_RENEWAL:
                express_all(jobs, scores, sim, blocks, entries, expressed, shares)
                if comes:
                    count, others = coming(sim, ended, machine)
                    express_coming(scores, expressed, shares, others, count)

    return run_with_answers
