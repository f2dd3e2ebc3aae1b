"""The native engine under limits and the kernels are in the same state after each pass."""

from __future__ import annotations

import pytest
from drawing import given, settings
from drawing import strategies as st
from limit_strategies import limited
from twins import assert_same_under_limits


@pytest.mark.parametrize("kinds", ["none", "caps", "switching", "budgets", "both"])
@settings(max_examples=200)
@given(st.data())
def test_each_pass_under_limits(kinds: str, data: st.DataObject) -> None:
    assert assert_same_under_limits(data.draw(limited(kinds)), data.draw(st.sampled_from([1, 3])))
