import numpy as np
import pytest

from hpcgym.errors import WorkloadError
from hpcgym.workload import Workload, clean, read_swf
from hpcgym.workload.cleaning import FILTERS, RECIPES, filter_names


def make(processors=8, **columns):
    return Workload.from_columns(columns, processors=processors, name="log")


#: One job for each thing that can be wrong, and two good ones.
COLUMNS = {
    "job_number": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "submit_time": [-1, 0, 1, 2, 3, 4, 5, 6, 7],
    "run_time": [9, 9, 0, 9, 9, 9, 90, 9, 9],
    "requested_time": [9, 10, 9, -1, 9, 9, 60, 9, 10],
    "requested_processors": [1, 2, 1, 1, 0, 9, 4, -1, 8],
    "allocated_processors": [1, -1, 1, 1, -1, 1, 4, 3, 8],
}


def test_glesser():
    cleaned = clean(make(**COLUMNS), "glesser")
    assert cleaned.job_number.tolist() == [2, 7, 8, 9]
    assert cleaned.run_time.tolist() == [9, 60, 9, 9]
    assert cleaned.killed.tolist() == [False, True, False, False]
    assert cleaned.requested_processors.tolist() == [2, 4, 3, 8]
    assert cleaned.allocated_processors.tolist() == [2, 4, 3, 8]
    assert cleaned.cleaning == {
        "repaired: requested_processors taken from allocated_processors": 1,
        "repaired: allocated_processors taken from requested_processors": 1,
        "dropped: submitted before time 0": 1,
        "dropped: no run time": 1,
        "dropped: no requested time": 1,
        "dropped: no processors": 1,
        "dropped: more processors than the machine": 1,
        "repaired: run_time cut at requested_time": 1,
    }


def test_that_no_job_tells_allocated_processors_is_no_repair():
    columns = {c: values for c, values in COLUMNS.items() if c != "allocated_processors"}
    reason = "repaired: allocated_processors taken from requested_processors"
    cleaned = clean(make(**columns), "glesser")
    assert cleaned.allocated_processors.tolist() == cleaned.requested_processors.tolist()
    assert (cleaned.allocated_processors > 0).all()
    assert reason not in cleaned.cleaning
    unknown = clean(make(**columns, allocated_processors=[0, -1] * 4 + [0]), "fill-processors")
    assert unknown.cleaning == {}
    one = clean(make(**columns, allocated_processors=[-1] * 8 + [8]), "fill-processors")
    assert one.cleaning == {reason: 6}


def test_legrand_drops_what_glesser_cuts():
    cleaned = clean(make(**COLUMNS), "legrand")
    assert cleaned.job_number.tolist() == [2, 8, 9]
    assert cleaned.cleaning["dropped: ran longer than requested"] == 1
    assert not cleaned.killed.any()


def test_default_takes_the_run_time_for_a_missing_request():
    cleaned = clean(make(**COLUMNS))
    assert cleaned.job_number.tolist() == [2, 4, 7, 8, 9]
    assert cleaned.requested_time.tolist() == [10, 9, 60, 9, 10]
    assert cleaned.cleaning["repaired: requested_time taken from run_time"] == 1


def test_none_changes_nothing():
    workload = make(**COLUMNS)
    assert clean(workload, "none") is workload
    assert clean(workload, ()) is workload


def test_the_given_workload_stays_as_it_is():
    workload = make(**COLUMNS)
    clean(workload, "glesser")
    assert workload.run_time.tolist() == COLUMNS["run_time"]
    assert workload.cleaning == {}


def test_every_job_is_kept_or_counted_as_dropped():
    rng = np.random.default_rng(0)
    columns = {c: rng.integers(-2, 12, 2000) for c in COLUMNS}
    columns["submit_time"].sort()
    for recipe in RECIPES:
        cleaned = clean(make(**columns), recipe)
        dropped = [n for reason, n in cleaned.cleaning.items() if reason.startswith("dropped: ")]
        assert len(cleaned) + sum(dropped) == 2000


def test_cleaning_twice_finds_nothing_more():
    for recipe in RECIPES:
        once = clean(make(**COLUMNS), recipe)
        assert clean(once, recipe) is once


def test_processors_decide_what_is_too_large():
    assert clean(make(**COLUMNS), "glesser", processors=3).job_number.tolist() == [2, 8]
    larger = clean(make(**COLUMNS), "glesser", processors=9)
    assert larger.processors == 9
    assert 6 in larger.job_number
    with pytest.raises(WorkloadError, match="processors must be a whole number"):
        clean(make(**COLUMNS), "glesser", processors=0)


@pytest.mark.parametrize(
    "recipe",
    [
        "drop-no-run-time+drop-overrun",
        " drop-no-run-time + drop-overrun ",
        ["drop-no-run-time", "drop-overrun"],
    ],
)
def test_filters_compose(recipe):
    cleaned = clean(make(**COLUMNS), recipe)
    assert cleaned.job_number.tolist() == [1, 2, 4, 5, 6, 8, 9]


def test_recipes_are_made_of_filters():
    for recipe, filters in RECIPES.items():
        assert filter_names(recipe) == filters
        assert set(filters) <= set(FILTERS)
    more = "drop-partial-executions+request-from-run-time"
    assert filter_names(f"{more}+glesser") == RECIPES["default"]


def test_order_matters():
    cleaned = clean(make(**COLUMNS), "drop-no-requested-time+request-from-run-time")
    assert 4 not in cleaned.job_number


@pytest.mark.parametrize("recipe", ["glessr", "glesser+glessr", ["glesser", "glessr"]])
def test_unknown_recipe(recipe):
    with pytest.raises(WorkloadError, match="unknown cleaning recipe 'glessr', did you mean 'gles"):
        clean(make(**COLUMNS), recipe)


def test_unlike_any_recipe():
    with pytest.raises(WorkloadError, match="unknown cleaning recipe ''; recipes: none, default"):
        clean(make(**COLUMNS), "")


def test_nothing_left_says_why_and_what_to_try():
    workload = make(submit_time=[0, 1], run_time=[5, 5], requested_processors=[1, 1])
    with pytest.raises(
        WorkloadError,
        match=r"log: no job is left .*'glesser'.* 2 no requested tim"
        r"e; clean='default' takes the run time",
    ):
        clean(workload, "glesser")
    assert len(clean(workload)) == 2
    with pytest.raises(WorkloadError, match=r"2 more processors than the machine; give a larger"):
        clean(workload.with_columns(requested_processors=[9, 9]))


def test_published_counts(trace):
    kth = read_swf(trace("KTH-SP2-1996-2.swf.gz"))
    sdsc = read_swf(trace("SDSC-SP2-1998-4.2-cln.swf.gz"))
    assert len(clean(kth, "glesser")) == 28_481
    assert len(clean(sdsc, "glesser")) == 53_999
    legrand = clean(sdsc, "legrand")
    assert len(legrand) == 49_865
    assert legrand.run_time.mean() == pytest.approx(6_324.24, abs=0.01)


def test_a_model_without_requested_times(trace):
    lublin = read_swf(trace("lublin_256.swf.gz"))
    assert len(clean(lublin)) == 10_000
    with pytest.raises(WorkloadError, match="clean='default' takes the run time"):
        clean(lublin, "glesser")
