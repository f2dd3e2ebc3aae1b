"""Lists of node names as Slurm writes them: ``gpu[01-04,7],login1``."""

from __future__ import annotations

import re
from itertools import product

from hpcgym.cluster.nodes import MOST_NODES
from hpcgym.errors import HpcgymError

_PART = re.compile(r"\[([^][]*)\]|([^][]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def hosts(text: str, where: str) -> list[str]:
    """Return the names of a list, in its order.

    ``n[1-3,5]`` is n1, n2, n3 and n5; zeros before a first number are kept, as in ``n[008-011]``. A
    name may have several brackets: ``r[1-2]n[1-2]`` is r1n1, r1n2, r2n1, r2n2.

    Raises
    ------
    HpcgymError : brackets that are not closed or hold no numbers, a range that goes down, or more
        than 2^20 names; ``where`` begins the message.
    """
    names: list[str] = []
    for one in _apart(text, where):
        parts = [_several(m[1], where, text) if m[2] is None else [m[2]] for m in _parts(one)]
        count = 1
        for part in parts:
            count *= len(part)
        if len(names) + count > MOST_NODES:
            raise HpcgymError(f"{where}: {text[:40]!r} names more than {MOST_NODES:,} nodes")
        names += map("".join, product(*parts))
    return names


def _apart(text: str, where: str) -> list[str]:
    """Return what stands between commas outside brackets."""
    found, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            break
        if character == "," and depth == 0:
            found.append(text[begin:place])
            begin = place + 1
    if depth != 0:
        raise HpcgymError(f"{where}: {text[:40]!r} has brackets that are not closed")
    found.append(text[begin:])
    if not all(found):
        raise HpcgymError(f"{where}: {text[:40]!r} is no list of nodes such as n[1-4,7]")
    return found


def _parts(text: str) -> list[re.Match[str]]:
    """Return the brackets of a name, and what stands between them."""
    return list(_PART.finditer(text))


def _several(inside: str, where: str, text: str) -> list[str]:
    """Return the numbers of one pair of brackets, as texts."""
    numbers: list[str] = []
    for piece in inside.split(","):
        found = _RANGE.fullmatch(piece.strip())
        first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
        if not found or int(last) < int(first):
            raise HpcgymError(f"{where}: [{inside[:40]}] is no range of nodes such as [1-4,7]")
        if int(last) - int(first) >= MOST_NODES:
            raise HpcgymError(f"{where}: {text[:40]!r} names more than {MOST_NODES:,} nodes")
        numbers += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return numbers
