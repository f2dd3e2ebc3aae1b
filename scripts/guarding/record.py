"""Running cases, and files of what they said."""

from __future__ import annotations

import fnmatch
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from guarding import environments, library, others, settings, simulations
from guarding.facts import hashed
from guarding.matrix import Case

RAN = "ran"
SIGNED = 10  # one case in so many is in the signature


class Said(NamedTuple):
    """What a case said.

    Attributes
    ----------
    state : "ran"; "refused" or "failed", a colon and the class of the error.
    digest : SHA-256 of all of it.
    parts : the beginning of the hash of each part, by name.
    """

    state: str
    digest: str
    parts: Mapping[str, str]


class Difference(NamedTuple):
    """A case that differs, and how."""

    kind: str
    name: str
    words: str


def chosen(pattern: str | None = None, one_in: int = 1) -> list[Case]:
    """Return the cases whose names contain the pattern, or match it if it has * or ?.

    No two have the same name. Of each so many one is taken, by a hash of its name, so that which
    those are does not depend on the others; and of each group the first.
    """
    found: dict[str, Case] = {}
    for module in (simulations, settings, others, environments):
        for group in module.groups():
            if _may_match(group.name, pattern):
                for place, case in enumerate(group.cases):
                    taken = place == 0 or crc32(case.name.encode()) % one_in == 0
                    if taken and matches(case.name, pattern):
                        found.setdefault(case.name, case)
    return list(found.values())


def matches(name: str, pattern: str | None) -> bool:
    """Return whether the name of a case contains the pattern, or matches it if it has * or ?."""
    if pattern is None:
        return True
    return fnmatch.fnmatchcase(name, pattern) if _is_wild(pattern) else pattern in name


def _may_match(group: str, pattern: str | None) -> bool:
    """Return whether a case of a group may match: finding all pairs takes a while."""
    word, slash, _ = (pattern or "").partition("/")  # names have one
    if not slash:
        return True
    return fnmatch.fnmatchcase(group, word) if _is_wild(word) else group.endswith(word)


def _is_wild(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def facts(case: Case) -> tuple[str, Mapping[str, Any]]:
    """Return the state of a case, and what is hashed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return RAN, case.run()
    except Exception as error:  # whatever it is, it is to be compared
        state = library.failure(error)
        return state, {"error": state}


def say(case: Case) -> Said:
    """Run a case."""
    state, found = facts(case)
    parts = {name.replace(" ", "-"): hashed(value)[:10] for name, value in found.items()}
    return Said(state, hashed(found), parts)


def run(cases: Iterable[Case], told: Callable[[Case, Said], None]) -> dict[str, Said]:
    """Run cases; ``told`` is called after each."""
    results = {}
    for case in cases:
        results[case.name] = say(case)
        told(case, results[case.name])
    return results


def signature(results: Mapping[str, Said]) -> str:
    """Return the beginning of a hash of all that cases said."""
    return hashed({name: said.digest for name, said in results.items()})[:12]


def write(file: Path, results: Mapping[str, Said]) -> None:
    """Write a file with a line for each case, all of it or nothing."""
    lines = [
        "\t".join(
            (name, said.digest, said.state, " ".join(f"{k}={v}" for k, v in said.parts.items()))
        )
        for name, said in sorted(results.items())
    ]
    handle, name = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as new:
        new.write("".join(f"{line}\n" for line in lines))
    os.replace(name, file)


def read(file: Path) -> dict[str, Said]:
    """Return what a file says of each case.

    Raises
    ------
    ValueError : a line that ``write`` has not written.
    """
    results = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.split("\t")
        if len(fields) != 4 or len(fields[1]) != 64:
            raise ValueError(f"{file}, line {number}: no line that `guard record` has written")
        name, digest, state, parts = fields
        pairs = (part.partition("=") for part in parts.split())
        results[name] = Said(state, digest, {key: value for key, _, value in pairs})
    return results


KINDS = {
    "differs": "cases differ",
    "refused": "ran, and are refused or fail now",
    "lifted": "were refused or failed, and run now",
    "missing": "cases are missing: the file has them, the matrix has not",
    "new": "cases are new: the file has them not",
}
FAULTS = ("differs", "refused", "missing")  # "lifted" and "new" alone are none


def compare(before: Mapping[str, Said], now: Mapping[str, Said]) -> list[Difference]:
    """Return what differs, by kind and in the order of the names."""
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            found.append(Difference("new" if old is None else "missing", name, ""))
        elif old.digest != new.digest:
            found.append(_difference(name, old, new))
    return sorted(found, key=lambda difference: list(KINDS).index(difference.kind))


def _difference(name: str, old: Said, new: Said) -> Difference:
    """Return how a case that differs does."""
    if old.state != new.state:
        kinds = {new.state: "lifted", old.state: "refused"}  # of that which ran
        kind = kinds.get(RAN, "differs")
        return Difference(kind, name, f"{old.state} -> {new.state}")
    keys = sorted({*old.parts, *new.parts})
    words = [key for key in keys if old.parts.get(key) != new.parts.get(key)]
    return Difference("differs", name, " ".join(words))
