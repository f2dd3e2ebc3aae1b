"""What tests of drawn restrictions share: windows, places in the queue, and marks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from drawing import strategies as st
from preemption_strategies import preemptions
from quota_strategies import COLUMNS, ONLY, SPARES, budgets, keys_of, named, quotas, with_queues
from submission_strategies import chains

from hpcgym.machine import Cluster
from hpcgym.workload.model import Workload

#: Marks of such tests: what is drawn may restrict none of the jobs that are drawn.
DRAWN = [
    pytest.mark.filterwarnings("ignore::hpcgym.errors.RuleWarning"),
    pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes"),
]
Places = list[tuple[list[Any], int]]
Windows = tuple[list[Any], list[frozenset[int] | None], list[str]]


@st.composite
def bounds(draw: st.DrawFn, workload: Workload) -> tuple[str, Places, list[Any]]:
    """One to three quotas of submitted jobs, maybe of running ones too, as the oracle has them."""
    texts, places, running = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        column = draw(st.sampled_from(["all", *COLUMNS]))
        only, spares = draw(ONLY), draw(SPARES)
        most = draw(st.sampled_from([1, 1, 2, 3, 5]))
        keys = keys_of(workload, [column] if column in COLUMNS else [], only, spares)
        places.append((keys, most))
        text = "/".join([*named(only, spares), column]) + f":submitted={most}"
        if draw(st.booleans()):
            jobs = draw(st.integers(1, 3))
            running.append((keys, [1] * len(workload), jobs))
            text += f"+jobs={jobs}"
        texts.append(text)
    return "; ".join(texts), places, running


def with_numbers(workload: Workload, queues: list[int]) -> Workload:
    """Return the jobs with numbers from 1, and those queues in turn."""
    numbered = workload.with_columns(job_number=list(range(1, len(workload) + 1)))
    return with_queues(numbered, queues)


@st.composite
def times(draw: st.DrawFn, workload: Workload) -> list[tuple[int, int]]:
    """One to three times, at or near the seconds at which something may happen."""
    submit, run = workload.submit_time.tolist(), workload.run_time.tolist()
    moments = sorted({0, *submit, *(at + other for at in submit[:6] for other in run[:6])})
    spans = []
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.sampled_from(moments)) + draw(st.sampled_from([0, 0, 1, 7, 60]))
        spans.append((begin, begin + draw(st.sampled_from([1, 2, 5, 20, 60, 700, 4000]))))
    return spans


def apart(windows: list[tuple[int, int, Any]], room: dict[Any, int]) -> list[tuple[int, int, Any]]:
    """Return the windows that find room beside those before: so much of each thing at a time."""
    kept: list[tuple[int, int, Any]] = []
    for begin, end, takes in windows:
        for at in {begin, *(window[0] for window in kept if begin <= window[0] < end)}:
            beside = [window[2] for window in kept if window[0] <= at < window[1]]
            if any(sum(o.get(k, 0) for o in beside) + n > room[k] for k, n in takes.items()):
                break
        else:
            kept.append((begin, end, takes))
    return kept


#: Who may use a window: a text, and pairs of a kind, a group or a user, and its number.
WHO = st.sampled_from(
    [
        ("", None),
        ("", None),
        (":accounts=1", {("g", 1)}),
        (":users=0|1", {("u", 0), ("u", 1)}),
        (":accounts=2:users=1", {("g", 2), ("u", 1)}),
        (":users=999", {("u", 999)}),
    ]
)


def windows_for(data: st.DataObject, cluster: Cluster, workload: Workload) -> Windows:
    """Windows of all processors or nodes, or of some, as the oracle has them and as texts.

    With them come the jobs that may use each, on nodes; None: none may.
    """
    spans = data.draw(times(workload))
    if cluster.groups:
        every = list(range(cluster.nodes))
        some = st.lists(st.sampled_from(every), min_size=1, unique=True).map(sorted)
        chosen = st.one_of(st.just(every), some)
        drawn = [(*span, dict.fromkeys(data.draw(chosen), 1)) for span in spans]
        windows = [(a, b, list(of)) for a, b, of in apart(drawn, dict.fromkeys(every, 1))]
        parts = ["" if of == every else f":nodes={','.join(map(str, of))}" for _, _, of in windows]
        who = [data.draw(WHO) for _ in windows]
        parts = [part + text for part, (text, _) in zip(parts, who, strict=True)]
    else:
        most = workload.processors
        widths = st.one_of(st.just(most), st.integers(1, most))
        drawn = [(*span, {0: data.draw(widths)}) for span in spans]
        windows = [(a, b, takes[0]) for a, b, takes in apart(drawn, {0: most})]
        parts = ["" if width == most else f":processors={width}" for _, _, width in windows]
        who = [("", None)] * len(windows)
    jobs = list(zip(workload.group_id.tolist(), workload.user_id.tolist(), strict=True))
    spared = [
        None
        if wanted is None
        else frozenset(
            row
            for row, (group, user) in enumerate(jobs)
            for own in ({"g": group, "u": user},)
            if all((kind, own[kind]) in wanted for kind, _ in wanted)
        )
        for _, wanted in who
    ]
    texts = [f"{a}/{b}{of}" for (a, b, _), of in zip(windows, parts, strict=True)]
    return windows, spared, texts


def around_windows(rules: dict[str, Any], workload: Workload) -> dict[str, Any]:
    """Return rules that go with windows."""
    estimate = rules["estimate"]
    if isinstance(estimate, list):  # never too short
        run = np.minimum(workload.run_time, workload.requested_time).tolist()
        estimate = [max(pair) for pair in zip(estimate, run, strict=True)]
    kills = rules["correction"] == "kill"
    estimate = "requested" if estimate == "ave2" and not kills else estimate
    return {**rules, "estimate": estimate}


def restrict(
    data: st.DataObject,
    which: Collection[str],
    log: Workload,
    ours: dict[str, Any],
    theirs: dict[str, Any],
    cluster: Cluster | None = None,
) -> Workload:
    """Draw what restricts who may start when: the rules, and those rules as the oracle has them.

    Who follows whom is written into the jobs, which are returned.
    """
    if "follow" in which:
        log, ours["dependencies"], theirs["follows"] = data.draw(chains(log))
    if "stop" in which:
        drawn_rules = preemptions(log)
        if "follow" in which:  # nobody follows a job that is cancelled
            drawn_rules = drawn_rules.filter(lambda drawn: drawn[1][2] != "cancel")
        if "failing" in which:  # a suspended job has its memory on nodes
            drawn_rules = drawn_rules.filter(lambda drawn: drawn[1][2] != "suspend")
        ours["preemption"], theirs["preemption"] = data.draw(drawn_rules)
    texts = []
    for word in {"quota", "minutes"} & {*which}:
        text, theirs["quotas"] = data.draw(quotas(log, by_time=word == "minutes"))
        texts.append(text)
    if "budget" in which:
        text, also = data.draw(budgets(log))
        theirs["quotas"] = [*theirs.get("quotas", []), *also]
        texts.append(text)
    if "places" in which:
        text, theirs["places"], running = data.draw(bounds(log))
        theirs["quotas"] = [*theirs.get("quotas", []), *running]
        texts.append(text)
    if texts:
        ours["quota"] = "; ".join(texts)
    if "windows" in which and cluster and "suspend" not in theirs.get("preemption", ()):
        theirs["windows"], spared, windows = windows_for(data, cluster, log)
        theirs["spared"] = spared if cluster.groups else []
        ours["maintenance"] = "; ".join(windows)
    return log
