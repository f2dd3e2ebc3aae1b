import numpy as np
import pytest

from hpcgym.envs.core.episodes import Episode, Episodes
from hpcgym.errors import HpcgymError
from hpcgym.workload import Workload, load_workload, weeks
from hpcgym.workload.extracts import DAY_S, MONTH_S, WEEK_S


def make(submit, run=None, **options):
    run = np.ones(len(submit), dtype=int) if run is None else run
    columns = {"submit_time": submit, "run_time": run, "job_number": np.arange(len(submit))}
    return Workload.from_columns(columns, processors=8, name="log", first_submit_s=0, **options)


def a_week_a_job(n_weeks):
    """Return jobs in the middle of weeks 0 to ``n_weeks``, as many as the week's number plus 1."""
    number = np.repeat(np.arange(n_weeks + 1), np.arange(1, n_weeks + 2))
    return make(number * WEEK_S + 3 * DAY_S)


HUNDRED = make(np.arange(100))


def rng(seed=0):
    return np.random.default_rng(seed)


# windows


def test_windows_are_listed_one_after_the_other():
    episodes = Episodes(HUNDRED, jobs=30)
    assert episodes.workload is HUNDRED
    assert episodes.longest == 30
    assert episodes.listing == [
        Episode("window 0000", 0, 30),
        Episode("window 0001", 30, 60),
        Episode("window 0002", 60, 90),
    ]


def test_windows_of_a_part_lie_wholly_in_it():
    train, test = (Episodes(HUNDRED, jobs=30, part=p, train_share=0.4) for p in ("train", "test"))
    assert train.listing == [Episode("window 0000", 0, 30)]
    assert test.listing == [Episode("window 0000", 40, 70), Episode("window 0001", 70, 100)]
    generator = rng()
    drawn = [train.draw(generator) for _ in range(300)]
    assert {e.start for e in drawn} == set(range(11))
    assert {e.stop - e.start for e in drawn} == {30}
    assert {test.draw(generator).start for _ in range(900)} == set(range(40, 71))


def test_a_window_as_long_as_the_part():
    episodes = Episodes(HUNDRED, jobs=50, part="test")
    assert episodes.listing == [Episode("window 0000", 50, 100)]
    assert episodes.draw(rng()) == Episode("rows 50:100", 50, 100)
    assert episodes.named(1) == [Episode("rows 50:100", 50, 100)]


@pytest.mark.parametrize("kind", ["windows", "weeks", "whole"])
def test_drawing_is_one_call_of_integers(kind):
    class Counting:
        calls = 0

        def integers(self, *bounds):
            self.calls += 1
            return rng().integers(*bounds)

    counting = Counting()
    Episodes(a_week_a_job(9), kind, jobs=3).draw(counting)
    assert counting.calls == 1


def test_named_windows_are_random_different_and_in_order():
    episodes = Episodes(HUNDRED, jobs=20, part="train")
    some = episodes.named(10, seed=1)
    starts = [e.start for e in some]
    assert starts == sorted(set(starts))
    assert len(some) == 10
    assert all(e.start >= 0 and e.stop == e.start + 20 <= 50 for e in some)
    assert some == episodes.named(10, seed=1) != episodes.named(10, seed=2)
    assert len(episodes.named(31)) == 31  # every start that there is
    assert episodes.named() == episodes.listing


def test_nothing_is_listed_unless_asked():
    n = 10_000_000
    episodes = Episodes(make(np.arange(n)), jobs=4, part="test")
    episodes.draw(rng())
    episodes.named(100)
    assert episodes.find({"slice": "window 1249999"}) == Episode("window 1249999", n - 4, n)
    assert "listing" not in vars(episodes)


# weeks, months, whole


def test_weeks_stand_one_after_the_other():
    workload = a_week_a_job(3)
    episodes = Episodes(workload, "weeks")
    assert episodes.listing == [
        Episode("week 1", 0, 2),
        Episode("week 2", 2, 5),
        Episode("week 3", 5, 9),
    ]
    assert episodes.longest == 4
    assert episodes.workload.job_number.tolist() == list(range(1, 10))
    assert {episodes.draw(rng(seed)).name for seed in range(50)} == {"week 1", "week 2", "week 3"}


def test_jobs_that_cross_the_end_of_a_week_are_dropped_and_counted():
    submit = [WEEK_S, WEEK_S + 1, 2 * WEEK_S, 3 * WEEK_S - 1, 3 * WEEK_S]
    workload = make(submit, [9, 2 * WEEK_S, 9, 9, 9], cleaning={"dropped: before": 4})
    episodes = Episodes(workload, "weeks")
    assert episodes.workload.job_number.tolist() == [0, 2, 4]
    assert episodes.workload.cleaning == {
        "dropped: before": 4,
        "dropped: crosses the end of a week": 2,
    }
    assert [e.name for e in episodes.listing] == ["week 1", "week 2", "week 3"]


def test_joined_columns_are_read_only_and_missing_ones_take_no_memory():
    killed = np.zeros(10, dtype=bool)
    killed[9] = True
    workload = make(np.arange(1, 11) * WEEK_S, killed=killed)
    joined = Episodes(workload, "weeks").workload
    assert not joined.submit_time.flags.writeable
    assert joined.user_id.strides == (0,)
    assert joined.user_id.tolist() == [-1] * 10
    assert joined.killed.tolist() == killed.tolist()
    assert Episodes(a_week_a_job(3), "weeks").workload.killed.strides == (0,)


@pytest.mark.parametrize(
    ("n_weeks", "share", "n_train"), [(4, 0.5, 2), (3, 0.5, 2), (10, 0.7, 7), (10, 0.29, 3)]
)
def test_the_first_weeks_are_for_training(n_weeks, share, n_train):
    workload = a_week_a_job(n_weeks)
    every = Episodes(workload, "weeks")
    train = Episodes(workload, "weeks", part="train", train_share=share)
    test = Episodes(workload, "weeks", part="test", train_share=share)
    assert train.listing == every.listing[:n_train]
    assert train.listing + test.listing == every.listing
    assert train.longest == n_train + 1
    assert len(train.workload) == len(test.workload) == len(every.workload)


def test_months_are_numbered_as_in_the_trace():
    episodes = Episodes(make(np.array([0, 1, 3, 3]) * MONTH_S), "months")
    assert episodes.listing == [Episode("month 1", 0, 1), Episode("month 3", 1, 3)]


def test_a_name_that_looks_like_a_week():
    episodes = Episodes(
        Workload.from_columns(
            {"submit_time": [WEEK_S], "run_time": [1]},
            processors=1,
            name="week",
            first_submit_s=0,
        ),
        "weeks",
    )
    assert [e.name for e in episodes.listing] == ["week 1"]


def test_whole():
    assert Episodes(HUNDRED, "whole").listing == [Episode("whole", 0, 100)]
    assert Episodes(HUNDRED, "whole", part="train").listing == [Episode("train", 0, 50)]
    test = Episodes(HUNDRED, "whole", part="test", train_share=0.8)
    assert test.listing == [Episode("test", 80, 100)]
    assert test.draw(rng()) == Episode("test", 80, 100)
    assert test.longest == 20
    assert len(Episodes(make([5]), "whole").listing) == 1


def test_a_sample_of_weeks_is_in_order_of_time():
    episodes = Episodes(a_week_a_job(20), "weeks")
    some = episodes.named(7, seed=3)
    assert some == sorted(set(some), key=lambda e: e.start)
    assert set(some) < set(episodes.listing)
    assert some == episodes.named(7, seed=3) != episodes.named(7, seed=4)
    assert episodes.named() == episodes.listing == episodes.named(20)


def test_what_is_returned_can_be_changed_without_harm():
    episodes = Episodes(a_week_a_job(3), "weeks")
    episodes.named().clear()
    assert len(episodes.named()) == 3


# finding


@pytest.mark.parametrize("kind", ["windows", "weeks", "months", "whole"])
@pytest.mark.parametrize("part", ["all", "train", "test"])
def test_every_episode_is_found_by_its_name(kind, part):
    episodes = Episodes(a_week_a_job(20), kind, jobs=7, part=part)
    for episode in [*episodes.listing, *episodes.named(2 if kind != "whole" else 1)]:
        assert episodes.find({"slice": episode.name}) == episode
    drawn = episodes.draw(rng())
    assert episodes.find({"slice": drawn.name}) == drawn


def test_rows_are_found_wherever_they_are():
    episodes = Episodes(HUNDRED, jobs=30, part="train")
    asked = {"start": np.int64(65), "jobs": 10}
    assert episodes.find(asked) == Episode("rows 65:75", 65, 75)
    assert episodes.find({"start": 70, "jobs": 30}) == Episode("rows 70:100", 70, 100)
    weekly = Episodes(a_week_a_job(3), "weeks")
    assert weekly.find({"start": 1, "jobs": 4}) == Episode("rows 1:5", 1, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "options need either 'slice' or both 'start' and 'jobs', not nothing"),
        ({"start": 0}, "options need .* not 'start'"),
        ({"jobs": 3}, "options need .* not 'jobs'"),
        ({"slice": "window 0000", "start": 0}, "options need .* not 'slice', 'start'"),
        ({"slcie": "window 0000"}, "unknown key of options 'slcie'; did you mean 'slice'"),
        ({"start": -1, "jobs": 3}, r"options\['start'\] must be a whole number of at least 0"),
        ({"start": 1.5, "jobs": 3}, r"options\['start'\] must be .* not 1.5"),
        ({"start": 0, "jobs": 0}, r"options\['jobs'\] must be a whole number of at least 1"),
        ({"start": 0, "jobs": 31}, "options ask for 31 jobs; an episode has at most 30"),
        ({"start": 90, "jobs": 11}, "options ask for rows 90:101; log has 100 jobs"),
        ({"slice": "rows 0:31"}, "options ask for 31 jobs; an episode has at most 30"),
        ({"slice": "rows 7:7"}, r"options\['slice'\] 'rows 7:7' has no jobs"),
        ({"slice": "window 0003"}, r"unknown options\['slice'\] 'window 0003'; log has 'window"),
        ({"slice": "window 00001"}, "'window 0000' to 'window 0002', and rows by"),
        ({"slice": "week 1"}, r"unknown options\['slice'\] 'week 1'"),
        ({"slice": 1}, r"unknown options\['slice'\] 1;"),
    ],
)
def test_options_that_cannot_be_met(options, message):
    with pytest.raises(HpcgymError, match=message):
        Episodes(HUNDRED, jobs=30).find(options)


def test_a_week_of_the_other_part_is_unknown():
    episodes = Episodes(a_week_a_job(4), "weeks", part="train")
    with pytest.raises(HpcgymError, match="the train part of log has 'week 1' to 'week 2'"):
        episodes.find({"slice": "week 3"})
    with pytest.raises(HpcgymError, match="log has 'whole', and rows"):
        Episodes(HUNDRED, "whole").find({"slice": "train"})


# arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": "week"}, "unknown episodes 'week'; did you mean 'weeks'"),
        ({"episodes": None}, "unknown episodes None"),
        ({"part": "validation"}, "unknown part 'validation'; known are all, train, test"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, not 0"),
        ({"jobs": 2.5}, "jobs must be a whole number of at least 1, not 2.5"),
        ({"train_share": 0}, "train_share must be a number between 0 and 1, not 0"),
        ({"train_share": float("nan")}, "train_share must be a number between 0 and 1, not nan"),
        ({"train_share": "half"}, "train_share must be a number between 0 and 1, not 'half'"),
        ({}, "windows of jobs=256 need more jobs: log has 100; give jobs=100 or less"),
        ({"part": "train"}, "the train part of log has 50; give jobs=50 or less"),
        (
            {"episodes": "weeks"},
            "episodes='weeks': log: no job begins and ends within the same week, from week 1 on",
        ),
        (
            {"episodes": "months"},
            "episodes='months': log: no job begins and ends within the same month",
        ),
        (
            {"episodes": "whole", "part": "train", "train_share": 0.001},
            "episodes='whole': the train part of log has no jobs",
        ),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    with pytest.raises(HpcgymError, match=message):
        Episodes(HUNDRED, **arguments)


def test_no_week_in_the_part():
    message = "episodes='weeks': part='test' with train_share=0.5 has none of the 1 weeks of log"
    with pytest.raises(HpcgymError, match=message):
        Episodes(a_week_a_job(1), "weeks", part="test")


def test_no_jobs_at_all():
    with pytest.raises(HpcgymError, match=r"windows of jobs=256 need more jobs: log has 0$"):
        Episodes(make([]))
    with pytest.raises(HpcgymError, match="episodes='whole': log has no jobs"):
        Episodes(make([]), "whole")


def test_more_episodes_than_there_are():
    with pytest.raises(HpcgymError, match="n must be at most 71, not 72: log has no more windows"):
        Episodes(HUNDRED, jobs=30).named(72)
    with pytest.raises(HpcgymError, match="n must be at most 1, not 2: log has no more weeks"):
        Episodes(a_week_a_job(1), "weeks").named(2)
    with pytest.raises(HpcgymError, match="n must be a whole number of at least 1, not 0"):
        Episodes(HUNDRED, jobs=30).named(0)
    with pytest.raises(HpcgymError, match="seed must be a whole number of at least 0, not -1"):
        Episodes(HUNDRED, jobs=30).named(1, seed=-1)


# the jobs


def test_the_jobs_of_an_episode_share_memory():
    episodes = Episodes(make(np.arange(100), cleaning={"dropped: before": 4}), jobs=30)
    part = episodes.workload_of(episodes.find({"slice": "window 0001"}))
    assert part.name == "log window 0001"
    assert part.job_number.tolist() == list(range(30, 60))
    assert np.shares_memory(part.submit_time, episodes.workload.submit_time)
    assert part.user_id.strides == (0,)
    assert part.cleaning == {}
    assert part.processors == 8


def test_weeks_of_a_real_trace(trace):
    workload = load_workload(trace("KTH-SP2-1996-2.swf.gz"), clean="glesser")
    episodes = Episodes(workload, "weeks")
    expected = weeks(workload)
    assert len(episodes.listing) == len(expected)
    for episode, week in zip(episodes.listing, expected, strict=True):
        part = episodes.workload_of(episode)
        assert part.name == week.name
        assert all(np.array_equal(part.columns[c], week.columns[c]) for c in week.columns)
        assert np.array_equal(part.killed, week.killed)
