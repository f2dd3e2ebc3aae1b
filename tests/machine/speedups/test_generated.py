"""Heatmaps from a seed: mean and spread are met, and they look like measured ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.machine.speedups import Heatmap, find_speedups, generate_speedups, write_speedups


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 24), st.floats(0.2, 3.0), st.floats(0.0, 0.4), st.integers(0, 2**64))
def test_mean_and_spread_are_met(codes: int, mean: float, relative: float, seed: int) -> None:
    spread = relative * mean
    heatmap = generate_speedups(codes, mean, spread, seed)
    assert heatmap.speedup.shape == (codes, codes)
    assert (heatmap.unknown, len(heatmap.codes)) == (0, codes)
    assert abs(heatmap.mean_speedup - mean) < 1e-12
    assert abs(heatmap.speedup.std() - spread) < 1e-12
    assert heatmap.speedup.min() > 0


def test_one_seed_one_heatmap() -> None:
    """To the last bit, on every machine."""
    heatmap = generate_speedups(5, 1.15, 0.12, 7)
    assert heatmap.digest == generate_speedups(5.0, "1.15", 0.12, 7).digest  # type: ignore[arg-type]
    assert hashlib.sha256(heatmap.speedup.tobytes()).hexdigest()[:16] == "af89ecbac328f336"
    others = [generate_speedups(5, 1.15, 0.12, 8), generate_speedups(5, 1.15, 0.13, 7)]
    assert len({heatmap.digest, *(other.digest for other in others)}) == 3


def test_without_spread_all_are_the_mean() -> None:
    assert generate_speedups(3, 1.25, 0).speedup.tolist() == [[1.25] * 3] * 3
    assert generate_speedups(1, 0.9, 0).speedup.item() == 0.9


def parts_of(speedup: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Shares of the variance between codes and between neighbours, and how the two go together."""
    x = np.log(speedup)
    x = x - x.mean()
    code, beside = x.mean(axis=1), x.mean(axis=0)
    together = float(np.corrcoef(code, -beside)[0, 1])
    return code.var() / x.var(), beside.var() / x.var(), together


def test_codes_are_more_or_less_bound_by_memory() -> None:
    """Those that gain much cost their neighbours much."""
    code, beside, together = parts_of(generate_speedups(200, 1.1, 0.15, 0).speedup)
    assert code == pytest.approx(0.5, abs=0.06)
    assert beside == pytest.approx(0.4, abs=0.06)
    assert together == pytest.approx(0.87, abs=0.05)


@pytest.mark.parametrize(
    "file", ["lm-aris.compute-SPEC.json", "lm-remake-g5k.nancy.grvingt-NAS.json"]
)
def test_so_are_those_that_were_measured(file: str, measured: Callable[[str], Heatmap]) -> None:
    code, beside, together = parts_of(measured(file).filled)
    assert 0.47 < code < 0.56
    assert 0.32 < beside < 0.45
    assert 0.8 < together < 0.98


# --- By name --------------------------------------------------------------------------------


def test_a_heatmap_is_itself() -> None:
    heatmap = generate_speedups(2)
    assert find_speedups(heatmap) is heatmap


def test_texts_and_functions_are_the_same() -> None:
    text = "generated:codes=4, seed=3,spread=0.2,mean=1.2"
    heatmap = find_speedups(text)
    assert heatmap.digest == generate_speedups(4, 1.2, 0.2, 3).digest
    assert heatmap.source == "generated:codes=4,mean=1.2,spread=0.2,seed=3"
    assert find_speedups(heatmap.source).digest == heatmap.digest
    assert find_speedups("generated").digest == generate_speedups().digest
    most = 2**64  # more than a float holds
    assert find_speedups(f"generated:seed={most}").source.endswith(f"seed={most}")


def test_files_are_found(tmp_path: Path) -> None:
    heatmap = generate_speedups(3)
    path = tmp_path / "generated.csv"
    write_speedups(heatmap, path)
    assert find_speedups(path).digest == find_speedups(str(path)).digest == heatmap.digest
