"""The study of predictions against the thesis."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from prediction_files import published

from hpcgym.benchmarks.prediction import items, runs, tables
from hpcgym.benchmarks.prediction import run as study
from hpcgym.benchmarks.prediction.items import Published, read_published
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.benchmarks.studies.store import Store

FILES = {
    "KTH-SP2": "KTH-SP2-1996-2.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.1-cln.swf.gz",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
}
WITH_LEARNING = ("KTH-SP2", "SDSC-SP2")
BESIDE_THE_REPOSITORY = Path(__file__).parents[3] / "shared" / "published"


@pytest.fixture(scope="session")
def originals() -> dict[str, Published]:
    """The original results, from HPCGYM_PUBLISHED or beside the repository."""
    folder = Path(os.environ.get("HPCGYM_PUBLISHED", BESIDE_THE_REPOSITORY))
    if not folder.is_dir():
        pytest.skip("needs the original results: name their folder in HPCGYM_PUBLISHED")
    return read_published(folder)


@pytest.fixture
def found_on(
    trace: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., runs.Findings]:
    """Return a function that simulates configurations on a trace."""

    def find(
        name: str, some: list[runs.Configuration], values: dict[str, Published]
    ) -> runs.Findings:
        monkeypatch.setenv("HPCGYM_DATA", str(trace(FILES[name]).parent))
        traces = study.load_traces([name], quick=False)
        folder = Folder(tmp_path, "serial")
        return study.run_campaign(traces, some, folder, values, quick=False)[0]

    return find


@pytest.mark.parametrize(
    ("name", "jobs", "number"),
    [
        ("KTH-SP2", 28_481, 12),
        ("SDSC-SP2", 53_999, 12),
        ("CTC-SP2", 77_199, 12),
        ("SDSC-BLUE", 232_542, 12),
        ("CEA-Curie", 295_540, 5),
    ],
)
@pytest.mark.filterwarnings("ignore:CEA-Curie. its jobs ran in 17 partitions")
def test_configurations_without_learning_meet_the_published_values(
    name: str,
    jobs: int,
    number: int,
    found_on: Callable[..., runs.Findings],
    originals: dict[str, Published],
) -> None:
    found = found_on(name, list(runs.without_learning()), originals)
    table = tables.exactness([found])
    assert (len(table), set(table["jobs"])) == (number, {jobs})
    if name != "SDSC-SP2":
        assert (table["ours"] - table["published"]).abs().max() < 1e-9
    else:  # the thesis has 7 jobs more, of an older edition
        assert (table["ours"] / table["published"] - 1).abs().max() < 0.0015


def test_every_configuration_is_in_the_original_results(originals: dict[str, Published]) -> None:
    names = {str(one) for one in published()}
    for trace in ("KTH-SP2", "CTC-SP2", "SDSC-SP2"):
        found = originals[trace]
        assert found.rows == 5774
        assert set(found.values.index) <= names
        assert len(names - set(found.values.index)) <= len(found.unfinished) == 8


def test_the_thesis_prints_the_original_results(originals: dict[str, Published]) -> None:
    for trace, values in originals.items():
        column = values.values
        printed = items.TABLE_7_6[trace]
        named = [*runs.CLAIRVOYANT.values(), runs.EASY, runs.EASY_PLUS_PLUS]
        for one, value in zip(named, printed, strict=False):
            if str(one) in column:  # cut, not rounded, here and there
                assert column[str(one)] == pytest.approx(value, abs=0.1)
    triple = str(runs.E_LOSS_TRIPLE)
    for trace in ("KTH-SP2", "CTC-SP2", "SDSC-SP2"):
        value = originals[trace].values[triple]
        assert value == pytest.approx(items.TABLE_7_7[trace][0], abs=0.05)
    # of SDSC-BLUE it is the triple with the other correction that table 7.7 has
    other = str(replace(runs.E_LOSS_TRIPLE, correction="requested"))
    assert triple not in originals["SDSC-BLUE"].values.index
    assert originals["SDSC-BLUE"].values[other] == pytest.approx(34.7, abs=0.05)


@pytest.mark.parametrize("trace", ["KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE"])
def test_the_thesis_s_best_and_worst_are_over_all_thresholds(
    trace: str, originals: dict[str, Published]
) -> None:
    values, thesis = originals[trace].values, set(runs.thesis())
    for order, printed in (
        ("fcfs", items.TABLE_7_6[trace][4:6]),
        ("sjbf", items.TABLE_7_6[trace][6:8]),
    ):
        names = [
            name
            for one in published()
            if (name := str(one)) in values.index
            and one.order == order
            and isinstance(one.estimate, runs.Loss)
            and replace(one, estimate=replace(one.estimate, threshold=0.0)) in thesis
        ]
        ends = values[names].agg(["min", "max"])
        if trace == "SDSC-BLUE":  # its best are of runs that did not come to their end
            assert ends["min"] > 1.3 * printed[0]
            ends["min"] = printed[0]
        assert ends.tolist() == pytest.approx(printed, abs=0.05)


def test_the_thesis_s_table_7_7_is_further_below_easy_than_it_says() -> None:
    rows = items.TABLE_7_7.values()
    means = [np.mean([100 * (1 - row[0] / row[k]) for row in rows]) for k in (1, 2)]
    assert np.round(means).tolist() == [37, 21]


def test_what_learns_nothing_has_a_smaller_sum_than_what_is_printed(
    originals: dict[str, Published],
) -> None:
    """MetaCentrum's triple is chosen by the sum over the five other logs."""
    logs = [name for name in items.LOGS if name != "MetaCentrum"]
    printed = sum(items.TABLE_7_7[name][0] for name in logs)
    assert printed == pytest.approx(209.5)
    column = {name: originals[name].values for name in logs}
    ave2 = sum(column[name][str(runs.AVE2_REQUESTED)] for name in logs)
    assert ave2 == pytest.approx(192.6, abs=0.05)
    # of SDSC-BLUE another triple is printed; the triple's own run did not come to its end
    run = originals["SDSC-BLUE"].unfinished[str(runs.E_LOSS_TRIPLE)]
    assert printed - items.TABLE_7_7["SDSC-BLUE"][0] + run == pytest.approx(187.8, abs=0.05)
    # nor with the other correction, which has no value of Curie: no triple that learns has less
    # there than what table 7.6 prints as the best
    other = str(replace(runs.E_LOSS_TRIPLE, correction="requested"))
    four = sum(column[name][other] for name in logs if name != "CEA-Curie")
    assert four + items.TABLE_7_6["CEA-Curie"][6] > ave2


@pytest.mark.parametrize(("name", "place", "below"), [("KTH-SP2", 2, True), ("SDSC-SP2", 1, False)])
def test_variants_of_the_thesis_s_triple_do_alike_here_and_there(
    name: str,
    place: int,
    below: bool,
    found_on: Callable[..., runs.Findings],
    originals: dict[str, Published],
) -> None:
    found = found_on(name, [runs.EASY, *runs.variants(runs.E_LOSS_TRIPLE)], originals)
    table = tables.spread([found]).set_index("values")
    ours, theirs = table.loc["ours"], table.loc["published"]
    assert ours["median"] == pytest.approx(theirs["median"], rel=0.03)
    assert ours["lower quartile"] == pytest.approx(theirs["lower quartile"], rel=0.05)
    assert theirs["its place"] == f"{place} of 27"  # the thesis has the luckiest
    assert (theirs["median"] < theirs["EASY"]) == (ours["median"] < ours["EASY"]) == below


@pytest.mark.parametrize(
    ("name", "correction", "best"),
    [("KTH-SP2", "incremental", 51.4), ("SDSC-SP2", "requested", 69.7)],
)
def test_the_best_triple_is_as_good_as_the_thesis_s(
    name: str, correction: str, best: float, found_on: Callable[..., runs.Findings]
) -> None:
    losses = [runs.Loss(*one) for one in product(runs.BRANCHES, runs.BRANCHES, runs.WEIGHTS)]
    some = [runs.Configuration("sjbf", correction, loss) for loss in losses]
    found = found_on(name, [*runs.without_learning(), *some], {})
    assert tables.table_7_6([found])["ours"].iloc[-2] < 1.05 * best


@pytest.mark.parametrize("name", WITH_LEARNING)
def test_the_e_loss_predicts_worse_than_ave2_but_for_itself(
    name: str, found_on: Callable[..., runs.Findings], tmp_path: Path
) -> None:
    found = found_on(name, [runs.EASY], {})
    found.accuracy = runs.predictions_of(found.workload, Store(tmp_path / "steps"))
    table = tables.table_7_8([found]).set_index("prediction")
    ours = table[table["trace"] == name]
    assert ours.loc["E-Loss", "MAE (s)"] > ours.loc["AVE2", "MAE (s)"]
    assert float(ours.loc["E-Loss", "mean E-Loss"]) < float(ours.loc["AVE2", "mean E-Loss"])
    assert ours.loc["E-Loss", "share too short"] > 0.8
