"""Numbers as people read them."""

from __future__ import annotations

import math
from numbers import Integral

DIGITS = 4  # significant ones


def shown(value: float) -> str:
    """Return a number with four significant digits, whole ones in full, commas at thousands.

    >>> shown(92.57654), shown(0.0123456), shown(28481), shown(14805.23), shown(1.0)
    ('92.58', '0.01235', '28,481', '14,805', '1.000')
    """
    if isinstance(value, Integral):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    # Rounding first: 9.9999 has one digit before the point, but is shown as 10.00.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{DIGITS - 1}e}"))))
    if magnitude < -DIGITS:
        return f"{value:.{DIGITS - 1}e}"
    return f"{value:,.{max(DIGITS - 1 - magnitude, 0)}f}"


def shown_p(value: float) -> str:
    """Return a p-value with three significant digits, without zeros behind them.

    >>> shown_p(0.0123456), shown_p(0.5), shown_p(1.0), shown_p(0.00002)
    ('0.0123', '0.5', '1', '2e-05')
    """
    return "-" if math.isnan(value) else f"{value:.3g}"
