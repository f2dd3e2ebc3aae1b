"""Scores of mixed policies: weights over features, as the engine takes them.

``hpcgym.policy.index.rank`` makes the same sums for all jobs at once; these are for weights that
change, job by job, and equal them to the last bit.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit

# how a feature depends on waiting
STATIC_ONLY, BY_WAIT, BY_EXPANSION, BY_UNICEF = range(4)


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
