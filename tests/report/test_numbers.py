"""Numbers have four digits, whole ones all of theirs."""

import numpy as np
import pytest

from hpcgym.report.tables import shown, shown_p


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (92.57653973362949, "92.58"),
        (0.685613241, "0.6856"),
        (1.0, "1.000"),
        (9.99996, "10.00"),
        (999.96, "1,000"),
        (14805.2, "14,805"),
        (1234567.8, "1,234,568"),
        (0.0, "0"),
        (-12.345, "-12.35"),
        (1.2e-7, "1.200e-07"),
        (28481, "28,481"),
        (7, "7"),
        (np.int64(12345), "12,345"),
        (np.float64(71.7223851124418), "71.72"),
        (float("nan"), "-"),
        (float("inf"), "inf"),
    ],
)
def test_shown(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.5, "0.5"), (0.012345, "0.0123"), (2e-5, "2e-05"), (float("nan"), "-")],
)
def test_p_values_have_three_digits_and_no_zeros_behind_them(value, text):
    assert shown_p(value) == text
