"""Times as people and logs write them, beside pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym import naming
from hpcgym.baselines.schedulers import find_scheduler, rule_value
from hpcgym.cli.loading import whole_seconds
from hpcgym.envs.core.cutting import read_duration
from hpcgym.errors import HpcgymError
from hpcgym.naming import duration, seconds_of

UNITS = st.sampled_from(["s", "m", "min", "h", "d"])
#: pandas counts nanoseconds, up to 106,751 days.
PART = st.tuples(st.integers(0, 26_000), UNITS, st.sampled_from(["", " "]))


@given(st.lists(PART, min_size=1, max_size=4), st.sampled_from(["", " "]))
def test_sums_of_units_are_those_of_pandas(parts: list[Any], between: str) -> None:
    text = between.join(f"{number}{blank}{unit}" for number, unit, blank in parts)
    assert (
        seconds_of(text) == pd.Timedelta(text.replace("min", "m").replace("d", "D")).total_seconds()
    )


@given(st.integers(0, 10**6 - 1), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_clocks_are_those_of_pandas(days: int, hours: int, minutes: int, seconds: int) -> None:
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    known = pd.Timedelta(clock).total_seconds()
    assert seconds_of(clock) == naming.seconds_in(clock) == known
    assert seconds_of(f"{days}-{clock}") == known + 86_400 * days


@given(st.integers(0, 10**9))
def test_a_time_in_words_is_read_again(seconds: int) -> None:
    again = seconds_of(duration(seconds))
    assert again is not None
    smaller = 3600 if seconds >= 86_400 else 60 if seconds >= 3600 else 1
    assert again == seconds // smaller * smaller


@pytest.mark.parametrize(
    "text",
    ["", "h", "5x", "5 h 3", "-5h", "1e3", "5H 2", "nan", "inf", "1d-2:00", "5h,3m", "1 2 h"],
)
def test_what_is_no_time(text: str) -> None:
    assert seconds_of(text) is None
    with pytest.raises(ValueError, match="no duration"):
        naming.seconds_in(text)
    with pytest.raises(HpcgymError, match="warmup must be"):
        read_duration("warmup", text, 0)


def test_rules_in_texts_take_times_and_no_other_numbers_do() -> None:
    assert rule_value("threshold", "5h") == 18_000
    assert rule_value("dispatch_time", "1.5m") == 90
    assert rule_value("pairs_above", "5h") == "5h"
    assert find_scheduler("saf:threshold=80h") == find_scheduler("saf:threshold=288000")
    assert find_scheduler("saf:hold=0.1,from_s=2h,erode_s=4h") == find_scheduler(
        "saf:hold=0.1,from_s=7200,erode_s=14400"
    )
    with pytest.raises(HpcgymError, match="hold: from_s"):
        find_scheduler("saf:hold=0.1,from_s=soon")
    assert [whole_seconds(text) for text in ("84d", "60", "-2h")] == [84 * 86_400, 60, -7_200]
