"""What a regression can be asked for, in Python and as a text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import JOB_FEATURES, Regression
from hpcgym.scheduler.estimates.by_name import check_estimate

PLAIN = "regression:over=squared,under=squared,weight=1"


def test_names_of_regressions() -> None:
    assert Regression.parse("e-loss") == Regression("squared", "absolute", weight="large")
    assert Regression.parse("regression") == Regression()
    assert Regression.parse("regression:") == Regression()
    assert str(Regression()) == PLAIN


def test_the_usual_values_are_those_of_the_published_campaign() -> None:
    usual = Regression()
    assert (usual.over_scale, usual.under_scale, usual.threshold) == (1.0, 1.0, 0.0)
    assert (usual.eta, usual.l2, usual.degree) == (5000.0, 4e9, 2)
    assert usual.features == tuple(JOB_FEATURES)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"over": "absolute", "under": "exponential"}, "over=absolute,under=exponential,weight=1"),
        ({"weight": "wide"}, "over=squared,under=squared,weight=wide"),
        (
            {"over_scale": 0.25, "threshold": 60},
            "over=squared,under=squared,over_scale=0.25,threshold=60,weight=1",
        ),
        (
            {"under_scale": 1e-7, "eta": 2.5, "l2": 0, "degree": 1},
            "over=squared,under=squared,under_scale=1e-07,weight=1,eta=2.5,l2=0,degree=1",
        ),
        (
            {"features": ["requested", "ave2"], "l2": 1e30},
            "over=squared,under=squared,weight=1,l2=1e+30,features=requested+ave2",
        ),
        ({"features": ("week_sin",)}, "over=squared,under=squared,weight=1,features=week_sin"),
    ],
)
def test_a_text_says_all_of_a_regression(given: dict[str, Any], text: str) -> None:
    regression = Regression(**given)
    assert str(regression) == f"regression:{text}"
    assert Regression.parse(f"regression:{text}") == regression
    assert check_estimate(regression) == check_estimate(str(regression)) == str(regression)


def test_the_page_has_texts_of_regressions() -> None:
    page = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text()
    texts = re.findall(r"regression:[\w=,.+]+(?=[`:])", page)
    assert any("+" in text for text in texts)
    for text in texts:
        Regression.parse(text)


def test_a_text_may_leave_out_what_is_usual() -> None:
    assert check_estimate("regression:weight=1") == PLAIN
    assert Regression.parse("regression:under=absolute") == Regression(under="absolute")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regresion:over=squared", "unknown regression 'regresion:over=squared'"),
        ("regression:ovr=squared", "'ovr'; did you mean 'over'"),
        ("regression:over=linear", "unknown over 'linear'; known are absolute, squared, expon"),
        ("regression:under=Squared", "unknown under 'Squared'; did you mean 'squared'"),
        ("regression:weight=2", "unknown weight '2'"),
        ("regression:eta=fast", "eta must be a number, not 'fast'"),
        ("regression:eta=0", "eta must be a number above 0, not 0.0"),
        ("regression:l2=-1", "l2 must be a number of at least 0, not -1.0"),
        ("regression:threshold=nan", "threshold must be a number of at least 0, not nan"),
        ("regression:over_scale=inf", "over_scale must be a number above 0, not inf"),
        ("regression:degree=1.5", "degree must be a number, not '1.5'"),
        ("regression:degree=3", "degree must be 1 or 2, not 3"),
        ("regression:features=ave9", "unknown feature 'ave9'; did you mean 'ave"),
        ("regression:features=", "unknown feature ''"),
        ("regression:features=ave2+ave2", "features: a feature is named twice"),
        # features are joined by "+"
        ("regression:features=ave2,last", "'last' is no attribute=value"),
        ("regression:features=ave2,last", "features are joined by '+', as in features=req"),
        ("regression:squared", "'squared' is no attribute=value"),
    ],
)
def test_texts_that_are_no_regression(text: str, message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        Regression.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"over": None}, "unknown over None"),
        ({"eta": "5"}, "eta must be a number above 0, not '5'"),
        ({"features": "ave2"}, "features must be names of features, at least one, not 'ave2'"),
        ({"features": ()}, "features must be names of features, at least one"),
        ({"degree": 0}, "degree must be 1 or 2, not 0"),
    ],
)
def test_values_that_no_regression_has(given: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        Regression(**given)
    assert message in str(caught.value)
