"""What goes past the paper, on a small trace made for it."""

from __future__ import annotations

import numpy as np
import pytest

from hpcgym import load_workload, simulate
from hpcgym.agents.lookahead import ESTIMATES, Lookahead
from hpcgym.benchmarks.mixed_policies import beyond
from hpcgym.benchmarks.studies.weeks import board_of, table_of
from hpcgym.naming import WEEK_S

DRAWN = load_workload("lublin:jobs=3000,processors=64,seed=0,load=0.95")
TIMES = ("submit_time", "run_time", "requested_time")
#: The same at an eighth of the speed: more weeks, of fewer jobs.
TRACE = DRAWN.with_columns(**{name: 8 * DRAWN.columns[name] for name in TIMES})
VECTORS = beyond._vectors(TRACE, 30)


@pytest.fixture(scope="module")
def cuts() -> list[beyond.Cut]:
    return [beyond.Cut(TRACE, shift * WEEK_S // 2, VECTORS) for shift in range(2)]


def test_values_are_those_of_the_weeks(cuts: list[beyond.Cut]) -> None:
    for cut in cuts:
        week = cut.weeks[2]
        saf = simulate(week, "saf").metrics["mean_bsld"]
        place = cut.numbers.index(2)
        assert cut.values[0, place] == pytest.approx(saf, rel=1e-12)
        assert cut.static({"area": -1.0})[place] == pytest.approx(saf, rel=1e-12)
    assert cuts[0].weeks[2].submit_time.tolist() != cuts[1].weeks[2].submit_time.tolist()


@pytest.mark.parametrize("way", ["all weeks", "last weeks", "similar weeks"])
def test_a_pick_knows_nothing_of_its_week(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "_PAST", 2)
    cut = beyond.Cut(TRACE, 0, VECTORS)
    assert len(cut.weeks) >= 6
    before = cut.picked(way)
    chosen = [np.flatnonzero(cut.values[:, k] == v) for k, v in enumerate(before)]
    assert (before != cut.values[0]).any()
    # another week 4: what is picked for it is the same, for the weeks after it something else
    values = cut.values.copy()
    cut.values = np.array(values)
    cut.values[:, 4] = values[::-1, 4]
    after = cut.picked(way)
    assert after[:4].tolist() == before[:4].tolist()
    assert after[4] in cut.values[chosen[4], 4]


def test_the_table_has_all_policies(cuts: list[beyond.Cut]) -> None:
    found = beyond.values_of(cuts, {"elsewhere": {"area": -1.0}}, 12)
    board = board_of([cut.numbers for cut in cuts], found)
    table = table_of(board, "saf").set_index("policy")
    assert {f"look-ahead, {estimate}" for estimate in ESTIMATES} < set(table.index)
    assert table.loc["elsewhere", "all weeks"] == table.loc["saf", "all weeks"]
    assert table.loc["saf", "against SAF, all weeks"] == "+0 [+0, +0]"
    number = int(cuts[0].numbers[1])
    values = [
        Lookahead().run(cut.weeks[number]).metrics["mean_bsld"]
        for cut in cuts
        if number in cut.weeks
    ]
    assert board.by_slice.loc[number, "look-ahead, learned"] == pytest.approx(np.mean(values))
