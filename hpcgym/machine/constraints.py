"""Constraints of jobs by features of nodes, as ``sbatch --constraint`` takes them.

``avx512``, ``intel&ib``, ``a|b``, ``(a|b)&c``: only nodes with such features hold a unit of the
job. Signs are read from left to right, & before | or not, and a comma is &
(https://slurm.schedmd.com/sbatch.html#OPT_constraint and ``_feature_string2list`` of
``job_scheduler.c``, Slurm 22.05 to 25.05; parentheses may be within others here). In brackets
stands what is of all nodes together: ``[a|b]``, all have the same of them, and ``[a*2&b*4]``, so
many have each. :func:`followed` says which parts are followed.
"""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import pairwise
from typing import NamedTuple

from hpcgym.errors import HpcgymError

_TOKEN = re.compile(r"[&|,()\[\]]|\*[^&|,()\[\]*]*|[^&|,()\[\]*]+")
_COUNT = re.compile(r"\*\s*0*[1-9]\d{0,8}\s*")
_FEATURE = re.compile(r"(?!!)[^&|,()\[\]*]+")
_DEEPEST = 100
_CLOSING = {"(": ")", "[": "]"}


class Constraint(NamedTuple):
    """A feature, or constraints that a sign joins.

    Attributes
    ----------
    feature : "" where others are joined.
    sign : "&" or "|".
    parts : what the sign joins.
    on_nodes : so many nodes of the job have it; 0: all have.
    in_brackets : whether it is of all nodes of the job together.
    """

    feature: str = ""
    sign: str = ""
    parts: tuple[Constraint, ...] = ()
    on_nodes: int = 0
    in_brackets: bool = False

    def __str__(self) -> str:
        if not self.parts:
            return self.feature
        texts = [f"({part})" if part.parts else str(part) for part in self.parts]
        return self.sign.join(texts)

    def met_by(self, features: Set[str]) -> bool:
        """Tell whether a node with these features meets it; counts and brackets aside."""
        if not self.parts:
            return self.feature in features
        met = (part.met_by(features) for part in self.parts)
        return all(met) if self.sign == "&" else any(met)


def is_feature(name: object) -> bool:
    """Tell whether a constraint can name a feature."""
    return isinstance(name, str) and _FEATURE.fullmatch(name) is not None and name == name.strip()


def constraint_of(text: str) -> Constraint:
    """Return the constraint that a text such as ``(a|b)&c`` is.

    Raises
    ------
    HpcgymError : the text is no constraint.

    Examples
    --------
    >>> constraint_of("a|b&c").met_by({"a"}), constraint_of("a|(b&c)").met_by({"a"})
    (False, True)
    """
    tokens = [token.strip() for token in _TOKEN.findall(text)]
    tokens = ["&" if token == "," else token for token in tokens if token]
    signs = [token for token in tokens if token in ("&", "|")]
    deep = sum(a != b for a, b in pairwise(signs)) + sum(token in _CLOSING for token in tokens)
    try:
        if deep > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} parts are within each other")
        read, at = _joined(tokens, 0)
    except ValueError as problem:
        raise HpcgymError(
            f"constraint {text[:100]!r}: {problem}; it must be such as a&(b|c), [a|b] or a*4"
        ) from None
    if at < len(tokens):
        raise HpcgymError(f"constraint {text[:100]!r}: {tokens[at]!r} closes nothing")
    return read


def _joined(tokens: list[str], at: int, inside: str = "") -> tuple[Constraint, int]:
    """Return the constraint from a token on, and the token behind it.

    Raises
    ------
    ValueError : no constraint begins there; the message says why.
    """
    read, at = _single(tokens, at, inside)
    while at < len(tokens) and tokens[at] in ("&", "|"):
        sign = tokens[at]
        part, at = _single(tokens, at + 1, inside)
        before = read.parts if read.sign == sign and not _is_counted(read) else (read,)
        read = Constraint(sign=sign, parts=(*before, part))
    return read, at


def _is_counted(part: Constraint) -> bool:
    return part.on_nodes > 0 or part.in_brackets


def _single(tokens: list[str], at: int, inside: str) -> tuple[Constraint, int]:
    """Return a feature, or what is in parentheses or brackets, with its count."""
    token = tokens[at] if at < len(tokens) else ""
    if token in _CLOSING:
        if token == "[" and inside:
            raise ValueError("brackets are within no others, nor within parentheses")
        read, at = _joined(tokens, at + 1, token)
        if tokens[at : at + 1] != [_CLOSING[token]]:
            raise ValueError(f"a {token!r} is not closed")
        read = read._replace(in_brackets=token == "[")
    elif not token or token[0] in "&|)]*":
        raise ValueError(f"a feature is missing {f'before {token!r}' if token else 'at its end'}")
    elif not is_feature(token):
        raise ValueError(f"{token!r}: Slurm has no sign for nodes without a feature")
    else:
        read = Constraint(token)
    at += 1
    if at < len(tokens) and tokens[at].startswith("*"):
        if not _COUNT.fullmatch(tokens[at]) or read.in_brackets:
            raise ValueError(f"{tokens[at]!r} is no number of nodes behind a feature")
        read, at = read._replace(on_nodes=int(tokens[at][1:])), at + 1
    if at < len(tokens) and tokens[at] not in ("&", "|", ")", "]"):
        raise ValueError(f"a sign is missing before {tokens[at]!r}")
    return read, at


def followed(part: Constraint, nodes: int) -> tuple[Constraint | None, bool]:
    """Return what each node of a job must meet, None: nothing; and whether that is all of it.

    A count of at least as many nodes as the job has is of all its nodes. ``[a|b]`` of a job on
    several nodes is taken for ``a|b``, and ``[a*2&b*4]`` of one on at most six, too: which node has
    which is not followed. Fewer nodes than the job has may have a feature where they like: that is
    not followed at all.

    Parameters
    ----------
    nodes : the most that the job may have.

    Examples
    --------
    >>> [str(followed(constraint_of("ib&[a|b]"), nodes)[0]) for nodes in (1, 2)]
    ['(a|b)&ib', '(a|b)&ib']
    >>> followed(constraint_of("a*4"), 5)
    (None, False)
    """
    if part.in_brackets and part.sign == "&":
        kept = [inner._replace(on_nodes=0) for inner in part.parts if inner.on_nodes]
        counted = len(kept) == len(part.parts)
        enough = counted and sum(inner.on_nodes for inner in part.parts) >= nodes
        return (_join("|", kept), False) if enough else (None, False)
    if part.on_nodes:
        known, whole = followed(part._replace(on_nodes=0), nodes)
        return (known, whole) if nodes <= part.on_nodes else (None, False)
    if not part.parts:
        return part._replace(in_brackets=False), True
    alike = not part.in_brackets or nodes == 1
    each = [followed(inner, nodes) for inner in part.parts]
    kept = [known for known, _ in each if known is not None]
    if len(kept) < len(each) and part.sign == "|":
        kept = []
    return _join(part.sign, kept), alike and all(whole for _, whole in each)


def _join(sign: str, parts: list[Constraint]) -> Constraint | None:
    """Return constraints that a sign joins, each once, in one order."""
    flat = [inner for part in parts for inner in (part.parts if part.sign == sign else (part,))]
    ordered = [inner for _, inner in sorted({str(inner): inner for inner in flat}.items())]
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return Constraint(sign=sign, parts=tuple(ordered))
