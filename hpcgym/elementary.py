"""Elementary functions, with the same bits on every machine.

``log``, ``exp`` and ``pow`` of the C library and of numpy round otherwise on some processors and in
some versions, and the last bit can turn an order around. Whatever decides a schedule takes these,
the engine as well as Python, the :mod:`hpcgym.reference` and proofs: these functions alone do they
share with the engine, since a rule needs some rounding, and any other would give other schedules.

They take a float, or a (n,) array of float64. What is infinite or no number is returned, as numpy
does, without a warning; angles are from 0 to 2 pi.
"""

from hpcgym._engine import cos, exp, exp2, expm1, log, log1p, log2, log10, power, sin, tanh

__all__ = ["cos", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "power", "sin", "tanh"]
