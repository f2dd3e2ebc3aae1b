"""The ordered lists equal plain sorted lists, and keep what is said of their blocks."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st

from hpcgym.engine import ordered
from hpcgym.engine.ordered import BLOCK, make_lists


# only compiled code can call the functions of the engine
@numba.njit
def find(blocks, entries, which, key, job):
    return ordered.find(blocks, entries, which, key, job)


@numba.njit
def insert(blocks, entries, which, key, job, span, width):
    return ordered.insert(blocks, entries, which, key, job, span, width)


@numba.njit
def move_back(blocks, entries, which, position, block, i, key):
    return ordered.move_back(blocks, entries, which, position, block, i, key)


@numba.njit
def remove(blocks, entries, which, position, block, i):
    return ordered.remove(blocks, entries, which, position, block, i)


@numba.njit
def tidy_swept(blocks, entries, which, k):
    return ordered.tidy_swept(blocks, entries, which, k)


@numba.njit
def summarise(blocks, entries, block):
    ordered.summarise(blocks, entries, block)


CAPACITY = 400
LISTS = (0, 1, 2)


class Entry(NamedTuple):
    key: int
    span: int
    width: int
    job: int


class Lists:
    """Three of the engine's lists in their two arrays, beside three plain ones."""

    def __init__(self) -> None:
        self.blocks, self.entries = make_lists([CAPACITY] * len(LISTS))
        self.plain: list[list[Entry]] = [[] for _ in LISTS]

    def arrays(self, which: int) -> tuple[Any, Any, int]:
        return self.blocks, self.entries, which

    def insert(self, which: int, entry: Entry) -> None:
        insert(*self.arrays(which), entry.key, entry.job, entry.span, entry.width)
        self._put(which, entry)

    def remove(self, which: int, place: int) -> Entry:
        entry = self.plain[which].pop(place)
        remove(*self.arrays(which), *self._found(which, entry))
        return entry

    def move_back(self, which: int, place: int, more: int) -> None:
        entry = self.plain[which].pop(place)
        moved = entry._replace(key=entry.key + more)
        move_back(*self.arrays(which), *self._found(which, entry), moved.key)
        self._put(which, moved)

    def sweep(self, which: int, leaving: set[int]) -> None:
        """Take jobs out of the list as a scheduling pass does, block by block."""
        blocks, entries = self.blocks, self.entries
        seen = set()
        first = int(blocks[which].first)
        k = 0
        while k < blocks[which].in_use:
            block = int(blocks[first + k].order)
            k += 1
            base = block * BLOCK
            of_block = entries[base : base + blocks[block].count].copy()
            seen |= set(of_block["job"].tolist())
            kept = of_block[~np.isin(of_block["job"], list(leaving))]
            entries[base : base + len(kept)] = kept
            blocks[block].count = len(kept)
            summarise(blocks, entries, block)
            if blocks[which].in_use > 1:
                k = tidy_swept(blocks, entries, which, k)
        assert seen == {entry.job for entry in self.plain[which]}
        self.plain[which] = [entry for entry in self.plain[which] if entry.job not in leaving]

    def _put(self, which: int, entry: Entry) -> None:
        place = bisect_right(self.plain[which], entry.key, key=lambda other: other.key)
        self.plain[which].insert(place, entry)

    def _found(self, which: int, entry: Entry) -> tuple[int, int, int]:
        position, block, i = find(*self.arrays(which), entry.key, entry.job)
        assert self.blocks[self.blocks[which].first + position].order == block
        assert i // BLOCK == block
        assert self.entries[i].job == entry.job
        return position, block, i

    def check(self) -> None:
        for which in LISTS:
            self._check(which)
        # every block is named once, in use or spare
        assert sorted(self.blocks["order"].tolist()) == list(range(len(self.blocks)))

    def _check(self, which: int) -> None:
        blocks, entries, plain = self.blocks, self.entries, self.plain[which]
        first, in_use = int(blocks[which].first), int(blocks[which].in_use)
        order = blocks["order"][first : first + in_use].tolist()
        assert order[0] == which
        listed: list[Entry] = []
        counts = []
        for block in order:
            count = int(blocks[block].count)
            of_block = [
                Entry(int(e.key), int(e.span), int(e.width), int(e.job))
                for e in entries[block * BLOCK : block * BLOCK + count]
            ]
            assert 0 <= count <= BLOCK
            assert blocks[block].sum_width == sum(entry.width for entry in of_block)
            for entry in of_block:
                assert blocks[block].least_width <= entry.width
                assert blocks[block].least_span <= entry.span
            listed += of_block
            counts.append(count)
        assert listed == plain
        assert in_use == 1 or all(counts)
        assert all(a + b > BLOCK // 2 for a, b in pairwise(counts))


def number(random: np.random.Generator, end: int) -> int:
    return int(random.integers(end))


def entry_of(random: np.random.Generator, job: int, keys: int, grows: bool) -> Entry:
    """Return an entry of few different keys, or one that belongs at the end."""
    key = job if grows else number(random, keys)
    return Entry(key, number(random, 50), 1 + number(random, 9), job)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 1000]), st.booleans(), st.booleans())
def test_lists_are_sorted_lists(seed: int, keys: int, grows: bool, one_list: bool) -> None:
    """Fill the lists to hundreds of entries, then empty them, with all that can happen between."""
    random = np.random.default_rng(seed)
    lists = Lists()
    for step in range(900):
        which = 0 if one_list else number(random, 3)
        plain = lists.plain[which]
        filling = random.random() < (0.85 if step < 450 else 0.1)
        if (filling and len(plain) < CAPACITY) or not plain:
            lists.insert(which, entry_of(random, step, keys, grows))
        elif random.random() < 0.5:
            lists.remove(which, number(random, len(plain)) if random.random() < 0.7 else 0)
        else:
            lists.move_back(which, number(random, len(plain)), 1 + number(random, keys))
        if step % 30 == 0:
            lists.check()
    lists.check()
    for which in LISTS:
        while lists.plain[which]:
            lists.remove(which, number(random, len(lists.plain[which])))
    lists.check()


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, CAPACITY),
    st.sampled_from([1, 5, 1000]),
    st.lists(st.sampled_from([0.0, 0.02, 0.5, 0.95, 1.0]), min_size=1, max_size=4),
)
def test_sweeps(seed: int, size: int, keys: int, shares: list[float]) -> None:
    """A sweep sees every entry, whatever leaves, and the blocks are tidy afterwards."""
    random = np.random.default_rng(seed)
    lists = Lists()
    for job in range(size):
        lists.insert(1, entry_of(random, job, keys, grows=False))
    for share in shares:
        # neighbours leave together, so that whole blocks become empty
        jobs = [entry.job for entry in lists.plain[1]]
        start = number(random, len(jobs) + 1)
        together = jobs[start : start + int(share * len(jobs))]
        scattered = [job for job in jobs if random.random() < share]
        lists.sweep(1, set(together if random.integers(2) else scattered))
        lists.check()


@pytest.mark.parametrize("which", LISTS)
def test_the_first_entry_is_where_it_is_looked_for(which: int) -> None:
    lists = Lists()
    for job in range(CAPACITY):
        lists.insert(which, Entry(CAPACITY - job, 1, 1, job))
        assert lists.entries[which * BLOCK].job == job
    for job in range(CAPACITY):
        assert lists.entries[which * BLOCK].job == CAPACITY - 1 - job
        lists.remove(which, 0)


def test_a_list_that_only_grows_has_full_blocks() -> None:
    lists = Lists()
    for job in range(CAPACITY):
        lists.insert(0, Entry(job, 1, 1, job))
    assert lists.blocks[0].in_use == -(-CAPACITY // BLOCK)
    lists.check()


def test_a_list_of_no_capacity_can_be_made() -> None:
    blocks, entries = make_lists([0, 0, 0])
    assert blocks["count"].sum() == 0
    assert len(entries) == BLOCK * len(blocks)
