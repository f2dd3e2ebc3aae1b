"""What the pages of the environments share, each fact once.

The page of an environment is the docstring of its class. The decorator :func:`page` puts the parts
that all have where the docstring says ``{observation}``, ``{rewards}`` and so on; names, indices
and defaults come from the code. ``scripts/pages.py`` writes the pages into
``docs/environments``, and a test fails if they differ.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hpcgym.envs import VERSIONS
from hpcgym.envs.core.definition import EPISODE_ARGUMENTS
from hpcgym.envs.core.layout import (
    HORIZONS,
    JOBS_AT,
    POWER_SIZE,
    QUEUE_AT,
    TIME_AT,
    Layout,
    PairLayout,
)
from hpcgym.envs.core.options import USUAL_FEATURES, WINDOW_FEATURES
from hpcgym.envs.pages import texts as episode_page
from hpcgym.envs.pages import texts as pair_page
from hpcgym.envs.pages import texts as power_page
from hpcgym.envs.pages import texts as reward_page
from hpcgym.envs.pages.texts import RESTRICTED, SCORES, STOPPING
from hpcgym.schedule.metrics import TAU_S
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES

Class = TypeVar("Class", bound=type)

#: Argument -> what it is, in the order of the pages; defaults are those of the code.
ARGUMENTS = {
    "workload": "a `Workload`, or what `hpcgym.load_workload` takes: a file, the name of a trace, "
    "a generator",
    "processors": "size of the machine; `None`: that of the workload",
    "cluster": "the machine, in place of `processors`: a `hpcgym.Cluster`, the name of a "
    "ready-made one or a TOML file. It also tells powers, and after how long idle processors or "
    "nodes are switched off (`shutdown_after_s`); if nodes are switched off, each job has nodes "
    "of its own",
    "episodes": '`"windows"`: `jobs` jobs from anywhere; `"weeks"`, `"months"`: of the trace, '
    'except the first, without jobs that cross a boundary; `"whole"`: all jobs of the part; '
    '`"stream"`: the same, truncated at the last submission',
    "jobs": "jobs of a window; used only with windows",
    "part": 'what episodes are drawn from: `"all"`, `"train"` (first in time), `"test"` (the rest)',
    "train_share": "share of jobs, weeks or months that `part` calls train; above 0, below 1",
    "start": '`"empty"`, or the scheduler that left the machine as an episode finds it: `"warm"` '
    "is EASY; see Starting State. This and the next three do not exist under limits, nor if "
    "jobs share nodes",
    "warmup": 'how long before its slice an episode begins: seconds, or such as `"7d"`, `"12h"`',
    "arrivals": '`"stop"`, or `"continue"`: later jobs keep coming',
    "horizon": "how long after the first submission of its slice an episode is truncated, written "
    "as `warmup`; `None`: never",
    "sampler": 'how episodes are drawn: `"uniform"`, `"hard"` or `"filtered"`; see Starting State',
    "backfill": '`"easy"` (one reservation), `"until-shadow"`, `"none"`, and, but neither in '
    'JobSelection nor under limits, `"depth:K"` (K reservations) and `"slurm"`, with settings as '
    "in docs/slurm.md",
    "backfill_order": 'order in which jobs are back-filled: `"fcfs"`, `"sjbf"` or any policy',
    "estimate": "run times that backfilling uses: a name of "
    '`hpcgym.scheduler.estimates.ESTIMATES` except `"data-driven"`, such as `"e-loss"`, which '
    "learns within the episode, or predicted run times [s] of all jobs",
    "policy_estimate": "run times that `backfill_order` looks at, and MixedPolicy's weights; as "
    "`estimate`",
    "correction": '`"requested"`, `"incremental"`, `"recursive-doubling"` or `"predicted-again"`',
    "passes": '`"per-timestamp"` or `"per-event"`',
    "allocation": "the order in which nodes are filled, on machines that have nodes: a name of "
    "`hpcgym.scheduler.allocations.ALLOCATIONS`, or "
    '`"contiguous"`: nodes of a job\'s own, in a row',
    "threshold": "seconds of waiting after which a job goes to the head of the queue, whatever "
    "order the agent sets; `None`: never. JobSelection needs `None`, since its agent names each "
    "job that is served",
    "hold": "how long jobs are held back: `hpcgym.scheduler.backfilling.Hold` or share; not under"
    " limits",
    "fair_share": "shares of users, and how fast their usage is forgotten, if "
    "`backfill_order` or a weight looks at usage: a `hpcgym.scheduler.policies.FairShare`, or what "
    "its `parse` takes; `None`: equal shares, half in a week",
    "quota": "how many jobs, or processors, may run at once, of each user or queue: the `quota` of "
    "`hpcgym.simulate`; see docs/site-rules.md",
    "maintenance": "when the machine, or some of it, is closed to jobs: the `maintenance` of "
    "`hpcgym.simulate`; not under limits",
    "preemption": "jobs of which partitions or queues stop those of which others: the `preemption` "
    "of `hpcgym.simulate`; not in JobSelection, nor under limits. See Quotas and windows",
    "dependencies": "when jobs that follow others are submitted: the `dependencies` of "
    "`hpcgym.simulate`; see docs/site-rules.md",
    "reward": "see Rewards",
    "paid": 'when slowdowns and waits are rewarded: at the `"start"` of a job, at its `"end"`, or '
    'while it is `"waiting"`; see Rewards',
    "window": 'how many waiting jobs are visible, the oldest ones; with `"split:64"` or `"split"` '
    "half of them are the newest jobs",
    "features": "names of the columns of `jobs`; or a mapping of names to `None`, or of your own "
    "columns to functions",
    "observation": '`"dict"` or `"flat"`',
    "render_mode": '`None`, `"ansi"` (a text) or `"rgb_array"` (an image; needs matplotlib)',
}

_DESCRIPTION = """\
Between two decisions the simulator of `hpcgym.simulate` runs; `docs/semantics.md` has its rules.
*Waiting* jobs have been submitted and have not started. The *window* shows the first `window` of
them in order of submission."""

_OBSERVATION = """\
By default a `Dict`. With `observation="flat"` it is one `Box(-1, 1, ({size},), float32)`, the
fields one after the other, row by row. The table gives places in it for {window} visible jobs and
{width} features. {machine}

{fields}

Columns of `jobs`, unless `features` names others; rows without a job are 0:

{columns}

`features` may name more. `policy_time` is the run time that policies look at (`policy_estimate`),
t. `within_quota` is 1 if its quotas let a job start now. `queue=debug` is 1 if a job's queue is
called so, and so on with `qos` (the same), `partition`, `user`, `group` and `code`. A column of
your own is a function, called once, of a `JobColumns`, which has `submit` [s], `requested` [s] and
`processors`, each (n_jobs,) float64. It returns (n_jobs,) numbers from -1 to 1.

Nothing here is hidden from an online scheduler: no actual run time, no actual end, no job that has
not been submitted. Ends and run times are predictions, by `estimate` and `correction`
(`estimate="clairvoyant"` gives the actual ones). With `passes="per-event"`, processors whose jobs
are predicted to end in this very second are not counted as free, though jobs may start on
them.{known}

## Info

| key | when | what |
|---|---|---|
| `window` | always | (window,) int64: rows of `env.unwrapped.episode_workload` of the visible \
jobs, then -1 |
| `time` | always | the time [s], of the trace's clock |
| `action_mask` | JobSelection, always | (n_actions,) int8: 1 for each possible action |
| `reward_terms` | always | raw terms of the last step: `bsld` and `wait_s`, sums over the \
jobs that started, or as `paid` says, and `energy_j`; 0 after a reset |
{ended}| `metrics` | at the end | metrics of the schedule, as `hpcgym.simulate` has them; values \
that are nan are left out |
| `episode_name` | at the end | the name of the episode |

`env.unwrapped` also has `time`, `free`, `queued()`, `running()`, `result()` (the schedule so far),
`scheduler_rules`, `snapshot()` and `restore()`. The same machine and rules without an agent:
`hpcgym.simulate(env.unwrapped.episode_workload, cluster=env.unwrapped.options.cluster,
**env.unwrapped.scheduler_rules)`, under limits with `limits=env.unwrapped.result().limits`."""

_MACHINE = """\
m is the number of processors of the machine. If jobs have nodes of their own, it is the number of
nodes, and processors in this table and the next mean nodes. A time t appears as t / (t + 1 h)."""

_EXTRACT = """\
An [extract](../extracts.md) is one episode, `episodes="whole"`, or a shorter one of its first rows.
It begins with the jobs that run and wait then, and with what had been learned of run times. n, and
all that is said of jobs that start, leave out the running ones. Energy and E count from the
beginning of the extract; energy used before the first decision comes with the first step."""

_DETERMINISM = """\
`reset(seed=s)` seeds the drawing of this and all later episodes; nothing else is random. The same
episode and the same actions give the same observations and rewards to the last bit. Environments
share nothing that changes, so two of them may be stepped in turns."""

_VECTOR = """\
`gymnasium.make_vec("{id}", num_envs=64)` makes one environment of 64 simulations. They advance in
one compiled call, over one copy of the jobs, on as many threads as `OMP_NUM_THREADS` or the
machine's cores. It takes the same arguments, except `render_mode`, and these:

| argument | default | what |
|---|---|---|
| `num_envs` | `1` | number of simulations |
| `autoreset_mode` | `"NextStep"` | or `"SameStep"`, `"Disabled"`, or Gymnasium's `AutoresetMode` |
| `copy` | `True` | `False`: observations and masks are views of buffers, which the next step \
overwrites |
| `max_episode_steps` | `None` | steps after which an episode is truncated |
| `threads` | `None` | threads that step the environments, at most: they are used where they are \
faster than one; None: one for fewer than 32 environments, else all |

- `"NextStep"`: the step after the end of an episode ignores its action and returns the first
  observation of the next episode, with reward 0.
- `"SameStep"`: the step that ends an episode returns the first observation of the next. The last
  observation of the old one is `info["final_obs"][i]`, and its infos are in `info["final_info"]`.
- `"Disabled"`: call `reset(options={"reset_mask": mask})`, mask (num_envs,) bool.

After `reset(seed=s)`, simulation i goes through the states of a single environment after
`reset(seed=s + i)`. `info` has the entries of single environments, in arrays with Gymnasium's masks
(`_window` for `window`), as with `vectorization_mode="sync"`. Rewards that are functions need
`vectorization_mode="sync"`, and vector rewards need single environments. `snapshot()` and
`restore()` copy all simulations. `HpcVecEnv` in `hpcgym/envs/sb3.py` hands them to
Stable-Baselines3."""


_ENDED = """\
| `ended` | with `paid="end"` | list of the rows of jobs that were paid in the last step |
| `ended_bsld` | with `paid="end"` | list of their bounded slowdowns |
"""


def _is_limited(cls: type) -> bool:
    """Return whether the machines of an environment are under limits."""
    return getattr(cls, "action_kind", "") == "controls"


def _description(cls: type) -> str:
    return _DESCRIPTION


def _observation(cls: type) -> str:
    window = _default(cls, "window")
    limited = _is_limited(cls)
    layout = Layout(window, len(USUAL_FEATURES), True, POWER_SIZE if limited else 0)
    names: dict[str, object] = {"size": layout.size, "window": window, "width": layout.width}
    names |= {
        "machine": power_page.MACHINE if limited else _MACHINE,
        "known": power_page.KNOWN if limited else "",
        "ended": "" if limited else _ENDED,
    }
    tables = {"fields": _fields(layout), "columns": _columns()}
    return _filled(_OBSERVATION, **names, **tables)


def _fields(layout: Layout) -> str:
    """Return the table of the fields of an observation."""
    queue, time, jobs, mask = QUEUE_AT, TIME_AT, JOBS_AT, layout.mask_at
    horizons = [_duration(seconds) for seconds in HORIZONS.tolist()]
    ahead = f"{', '.join(horizons[:-1])} and {horizons[-1]}"
    window, width = layout.window, layout.width
    share = ("share of m", "0 to 1")
    rows: list[tuple[object, ...]] = [
        ("`cluster[0]`", 0, f"({queue},)", *share, "free processors now"),
        ("`cluster[1:9]`", f"1 to {queue - 2}", "", *share, f"free processors {ahead} from now, if "
         "nothing starts and jobs end as predicted"),
        ("`cluster[9]`", queue - 1, "", *share, "free processors that need not be switched on"),
        ("`queue[0]`", queue, f"({time - queue},)", "-", "0 to 1", "n / (n + `window`), n waiting "
         "jobs"),
        ("`queue[1]`", queue + 1, "", "share of n", "0 to 1", "waiting jobs outside the window"),
        ("`queue[2]`", queue + 2, "", "-", "0 to 1", "q / (q + m), q the processors of all visible "
         "jobs"),
        ("`queue[3]`", queue + 3, "", "-", "0 to 1", "a / (a + m x 1 h), a the sum of requested "
         "time x processors over the visible jobs"),
        ("`queue[4]`", queue + 4, "", "t / (t + 1 h)", "0 to 1", "longest wait of a visible job"),
        ("`queue[5]`", queue + 5, "", "share", "0 to 1", "visible jobs that need no more than the "
         "free processors"),
        ("`time[0:2]`", f"{time}, {time + 1}", f"({jobs - time},)", "-", "-1 to 1", "sine and "
         "cosine of the time of day"),
        ("`time[2:4]`", f"{time + 2}, {time + 3}", "", "-", "-1 to 1", "sine and cosine of the "
         "time of the week, from Monday 0 h UTC by the trace's `UnixStartTime`; without one, time "
         "0 is a Monday, 0 h"),
        ("`jobs[i, k]`", f"{jobs} + {width} i + k, to {mask - 1}", f"({window}, {width})",
         "see below", "0 to 1; -1 to 1 in columns of your own", "feature k of visible job i"),
        ("`mask[i]`", f"{mask} + i, to {layout.power_at - 1}", f"({window},)", "-", "0 or 1; int8 "
         "in the dict", "1 where there is a job"),
        *_power_fields(layout),
    ]  # fmt: skip
    return _table(("field", "flat", "shape", "unit", "range", "what"), rows)


def _power_fields(layout: Layout) -> list[tuple[object, ...]]:
    """Return the rows of the field "power", if there is one."""
    if not layout.power:
        return []
    return [
        (
            f"`power[{k}]`",
            layout.power_at + k,
            f"({layout.power},)" if k == 0 else "",
            unit,
            "-1 to 1" if what.startswith("saved") else "0 to 1",
            f"{what}; {none}" if none else what,
        )
        for k, (what, unit, none) in enumerate(power_page.POWER_FIELDS)
    ]


def _columns() -> str:
    """Return the table of the known features of visible jobs."""
    rows = [(k, f"`{name}`", WINDOW_FEATURES[name]) for k, name in enumerate(USUAL_FEATURES)]
    return _table(("k", "name", "what"), rows)


def _policy_features(cls: type) -> str:
    rows = [(f"`{name}`", feature.meaning) for name, feature in FEATURES.items()]
    rows += [(f"`{name}`", meaning) for name, meaning in USER_FEATURES.items()]
    return _table(("name", "feature"), rows)


def _arguments(cls: type) -> str:
    """Return the rows of the arguments that all environments have."""
    limited = power_page.LIMITED_ARGUMENTS if _is_limited(cls) else {}
    return _argument_rows(cls, ARGUMENTS | limited)


def _argument_rows(cls: type, told: Mapping[str, str]) -> str:
    """Return rows of arguments, with their defaults."""
    rows = [(f"`{name}`", _shown(_default(cls, name)), what) for name, what in told.items()]
    return "\n".join(map(_row, rows))


def _rewards(cls: type) -> str:
    if _is_limited(cls):
        return _filled(reward_page.PLAIN, tau=TAU_S, **power_page.REWARDS_PARTS)
    return _filled(reward_page.REWARDS, tau=TAU_S, **reward_page.PARTS)


def _pair_observation(cls: type) -> str:
    layout = PairLayout(_default(cls, "window"), _default(cls, "neighbours"), True)
    table = _table(("field", "flat", "shape", "unit", "what"), pair_page.fields(layout))
    names = {"size": layout.size, "window": layout.window, "neighbours": layout.neighbours}
    return _filled(pair_page.OBSERVATION, table=table, **names)


def _pair_arguments(cls: type) -> str:
    common = (*EPISODE_ARGUMENTS, "render_mode")
    return _argument_rows(cls, pair_page.ARGUMENTS | {name: ARGUMENTS[name] for name in common})


def _id(cls: type) -> str:
    return f"hpcgym/{cls.__name__.removesuffix('Env')}-v0"


def _default(cls: type, name: str) -> Any:
    return inspect.signature(cls).parameters[name].default


def _shown(value: object) -> str:
    """Return a default value as code."""
    if value == USUAL_FEATURES:
        return "the table above"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


def _duration(seconds: int) -> str:
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"


def _table(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    """Return a table in Markdown."""
    return "\n".join([_row(head), "|" + "---|" * len(head), *map(_row, rows)])


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _filled(text: str, **parts: object) -> str:
    """Return a text with parts in the place of their names; other braces are left alone."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", str(part))
    return text


#: Name in a docstring -> what comes in its place.
PARTS: dict[str, Callable[[type], str]] = {
    "description": _description,
    "restricted": lambda cls: RESTRICTED,
    "stopping": lambda cls: STOPPING,
    "observation": _observation,
    "policy_features": _policy_features,
    "rewards": _rewards,
    "episodes": lambda cls: episode_page.EPISODES,
    "around": lambda cls: episode_page.AROUND,
    "reference": lambda cls: str(SCORES[cls.__name__]),
    "versions": lambda cls: episode_page.versions(cls.__name__, VERSIONS),
    "extract": lambda cls: _EXTRACT,
    "end": lambda cls: episode_page.END,
    "determinism": lambda cls: _DETERMINISM,
    "arguments": _arguments,
    "vector": lambda cls: _filled(_VECTOR, id=_id(cls)),
    "controls": lambda cls: power_page.CONTROLS,
    "power_rewards": lambda cls: power_page.POWER_REWARDS,
    "power_arguments": lambda cls: _argument_rows(cls, power_page.POWER_ARGUMENTS),
    "pair_observation": _pair_observation,
    "pair_rewards": lambda cls: _filled(pair_page.SHARED_REWARDS, tau=TAU_S),
    "pair_arguments": _pair_arguments,
    "power_reference": lambda cls: _filled(power_page.POWER_REFERENCE, cls=cls.__name__),
}


def page(cls: Class) -> Class:
    """Complete the docstring of an environment's class; a decorator."""
    if cls.__doc__:  # python -OO leaves none
        text = inspect.cleandoc(cls.__doc__)
        parts = {name: write(cls) for name, write in PARTS.items() if f"{{{name}}}" in text}
        cls.__doc__ = _filled(text, **parts)
    return cls


def markdown(cls: type) -> str:
    """Return the page of an environment as it stands in ``docs/environments``."""
    name = cls.__name__.removesuffix("Env")
    return (
        f"# {name}\n\n"
        f"<!-- The docstring of {cls.__module__}.{cls.__name__}, written by"
        " scripts/pages.py: change it there. -->\n\n"
        f"![A state of the environment as it draws itself](../pictures/{name}.png)\n\n"
        f"{cls.__doc__}\n"
    )
