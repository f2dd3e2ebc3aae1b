"""Scores of mixed policies: weights over features, as the engine takes them.

``hpcgym.scheduler.policies.index.rank`` makes the same sums for all jobs at once; these are for
weights that change, job by job, and equal them to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.scheduler.policies import formulas
from hpcgym.scheduler.policies.mixed import BY_EXPANSION, BY_UNICEF, BY_WAIT, STATIC_ONLY


@jit
def mix(weights, places, total, static, waiting, serial, requested):
    """Return the score and the patience of a job.

    Parameters
    ----------
    weights, places, total : the weight of feature k is ``weights[places[k]] / total``, 0 without a
        total; features are in the order of the table of features.
    static : (n_features,) the parts of the job's features that waiting does not change.
    waiting : (n_features,) STATIC_ONLY, BY_WAIT, BY_EXPANSION or BY_UNICEF.
    serial : [s] the patience of the feature unicef.
    requested : [s] the job's requested time, float64.
    """
    score, by_wait, by_expansion, by_unicef = 0.0, 0.0, 0.0, 0.0
    for k in range(len(waiting)):
        weight = weights[places[k]] / total if total > 0 else 0.0
        depends = waiting[k]
        if depends == BY_WAIT:
            by_wait = weight
        elif depends == BY_EXPANSION:
            by_expansion = weight
        elif depends == BY_UNICEF:
            by_unicef = weight
        if weight != 0 and depends != BY_WAIT and depends != BY_UNICEF:
            score += weight * static[k]
    patience = np.inf
    if by_unicef != 0:
        gain = 0.0
        if by_wait != 0:
            gain += 1.0 / (1.0 / by_wait)
        if by_expansion != 0:
            gain += 1.0 / (requested / by_expansion)
        patience = serial / by_unicef
        if by_wait != 0 or by_expansion != 0:
            patience = 1.0 / (gain + 1.0 / patience)
    elif by_wait != 0 and by_expansion != 0:
        patience = requested / (by_wait * requested + by_expansion)
    elif by_wait != 0:
        patience = 1.0 / by_wait
    elif by_expansion != 0:
        patience = requested / by_expansion
    return score, patience


class JobNumbers(NamedTuple):
    """One job, as the formulas of features take it."""

    since_first: float  # [s] submit, counted from the first submission of the whole log
    requested: float  # [s] or the run time that stands for it
    processors: float


_processors = jit_part(formulas.processors)
_requested = jit_part(formulas.requested)
_ratio = jit_part(formulas.ratio)
_one = jit_part(formulas.one)
_area = jit_part(formulas.area)
_f1 = jit_part(formulas.f1)
_f2 = jit_part(formulas.f2)
_f3 = jit_part(formulas.f3)
_f4 = jit_part(formulas.f4)
serial_patience = jit_part(formulas.serial_patience)

# features in the order of the table hpcgym.scheduler.policies.FEATURES
PROCESSORS, REQUESTED, WAIT, RATIO, EXPANSION, AREA, UNICEF, F1, F2, F3, F4 = range(11)
N_FEATURES = 11


@jit
def static_of(feature, job):
    """Return the part of a feature, by its place in the table, that waiting does not change."""
    if feature == PROCESSORS:
        return _processors(job)
    if feature == REQUESTED:
        return _requested(job)
    if feature == RATIO:
        return _ratio(job)
    if feature == EXPANSION:
        return _one(job)
    if feature == AREA:
        return _area(job)
    if feature == F1:
        return _f1(job)
    if feature == F2:
        return _f2(job)
    if feature == F3:
        return _f3(job)
    if feature == F4:
        return _f4(job)
    return 0.0


_WAITING = {WAIT: BY_WAIT, EXPANSION: BY_EXPANSION, UNICEF: BY_UNICEF}
WAITING = np.array([_WAITING.get(feature, STATIC_ONLY) for feature in range(N_FEATURES)], np.int64)
PLACES = np.arange(N_FEATURES)


@jit
def rank_one(weights, static, job):
    """Return the score and the patience of a job as ``scheduler.policies.index.rank`` does.

    ``weights`` and the scratch ``static`` are (N_FEATURES,); ``job`` is a JobNumbers.
    """
    for k in range(N_FEATURES):
        if weights[k] != 0:
            static[k] = static_of(k, job)
    serial = serial_patience(job)
    return mix(weights, PLACES, 1.0, static, WAITING, serial, job.requested)
