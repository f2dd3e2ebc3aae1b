"""Linear regression learned one observation at a time, by the normalised adaptive gradient (NAG).

The terms of a prediction are the products of up to ``degree`` features; their weights are learned
by algorithm 2 of S. Ross, P. Mineiro and J. Langford, "Normalized Online Learning", UAI 2013,
which needs no scaling of features. The losses are those of Glesser 2016, section 7.3.2: one branch
for over-predictions, one for under-predictions.

Sums are made in one order, not in the one that is fastest on the machine: the same inputs give the
same weights to the last bit.
"""

from __future__ import annotations

import math

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.scheduler.estimates.learned import N_ROWS, SCALE, SQUARES, WEIGHT  # noqa: F401
from hpcgym.scheduler.estimates.regression import LARGEST_EXPONENT

ABSOLUTE, SQUARED, EXPONENTIAL = range(3)
CONSTANT, LONG, WIDE, SMALL, LARGE = range(5)

# of ``totals``
NORM, STEPS = range(2)


@jit
def expand(x, phi, degree):
    """Write the terms of features ``x``: 1, each x[i], and for degree 2 x[i] * x[j], i <= j."""
    n = len(x)
    phi[0] = 1.0
    for i in range(n):
        phi[1 + i] = x[i]
    if degree == 2:
        place = n + 1
        for i in range(n):
            for j in range(i, n):
                phi[place] = x[i] * x[j]
                place += 1


@jit
def predict(terms, phi):
    """Return the sum of the terms, weighted."""
    # four sums side by side: each addition waits for the one before it
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = len(phi) // 4 * 4
    for i in range(0, fours, 4):
        a += terms[WEIGHT, i] * phi[i]
        b += terms[WEIGHT, i + 1] * phi[i + 1]
        c += terms[WEIGHT, i + 2] * phi[i + 2]
        d += terms[WEIGHT, i + 3] * phi[i + 3]
    for i in range(fours, len(phi)):
        a += terms[WEIGHT, i] * phi[i]
    return (a + b) + (c + d)


@jit_part
def branch_slope(branch, scale, error):
    """Return the slope of a branch of the loss at an absolute error."""
    if branch == ABSOLUTE:
        return scale
    if branch == SQUARED:
        return 2.0 * scale * error
    return scale * math.exp(min(scale * error, LARGEST_EXPONENT))


@jit
def slope(loss, prediction, y):
    """Return the derivative of the loss, without weight, by the prediction; ``loss`` is a LOSS."""
    error = prediction - y - loss.threshold
    if error > 0.0:
        return branch_slope(loss.over, loss.over_scale, error)
    if error < 0.0:
        return -branch_slope(loss.under, loss.under_scale, -error)
    return 0.0


@jit
def weight_of(weighting, run, processors):
    """Return what a job's loss counts; ``run`` [s] and ``processors`` are taken as at least 1."""
    if weighting == CONSTANT:
        return 1.0
    p, q = math.log(max(run, 1.0)), math.log(max(processors, 1.0))
    if weighting == LONG:
        return 5.0 + (p - q)
    if weighting == WIDE:
        return 5.0 + (q - p)
    if weighting == SMALL:
        return 11.0 - (q + p)
    return 1.0 + (q + p)


@jit
def rescale(terms, totals, phi):
    """Let the weights fit terms that are larger than any before, and add to the norm."""
    norm = 0.0
    for i in range(len(phi)):
        size = abs(phi[i])
        scale = terms[SCALE, i]
        if size > scale:
            terms[WEIGHT, i] *= scale / size
            terms[SCALE, i] = size
            scale = size
        if scale > 0.0:
            norm += (phi[i] / scale) ** 2
    totals[NORM] += norm


@jit
def learn(terms, totals, phi, loss, y, weight):
    """Learn from one observation: one step of NAG.

    Parameters
    ----------
    terms : (3, n_terms) float64, zeros at first: weight, scale and sum of squared gradients of each
        term.
    totals : (2,) float64: the norm N, 0 at first, and the number n of this step, 1 at first.
    phi : (n_terms,) float64, from :func:`expand`.
    loss : a LOSS.
    y : what is to be predicted.
    weight : what this observation counts.
    """
    rescale(terms, totals, phi)
    gradient = weight * slope(loss, predict(terms, phi), y)
    rate = loss.eta * math.sqrt(totals[STEPS] / totals[NORM])
    for i in range(len(phi)):
        weight_i = terms[WEIGHT, i]
        g = gradient * phi[i] + loss.l2 * weight_i
        squares = terms[SQUARES, i] + g * g
        terms[SQUARES, i] = squares
        step = rate * g / (terms[SCALE, i] * math.sqrt(squares))
        terms[WEIGHT, i] = weight_i - (step if squares > 0.0 else 0.0)
    totals[STEPS] += 1.0


@jit_entry
def predict_from(x, phi, terms, degree):
    """Return the prediction for features ``x``; ``phi`` (n_terms,) is written."""
    expand(x, phi, degree)
    return predict(terms, phi)


@jit_entry
def learn_from(x, phi, terms, totals, loss, y, weight, processors):
    """Learn from features ``x``, as :func:`learn` does; ``weight`` times that of the job counts."""
    expand(x, phi, loss.degree)
    weight *= weight_of(loss.weighting, y, processors)
    learn(terms, totals, phi, loss, y, weight)
