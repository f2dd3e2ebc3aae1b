"""Damage to files: what disks, editors, scripts and people make of a file that was right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

Change = Callable[[bytes, random.Random], bytes]

#: Values that stand in JSON, TOML or a table, but hardly where another was.
OTHERS = (
    *("null", "true", "[]", "{}", "[null]", "[[1]]", '{"a": 1}', "[1, 2]"),
    *("-1", "0", "0.5", "-0.0"),
    *("1e308", "1e-320", "2.5", "9" * 20, "-" + "9" * 20, "9" * 250, "9007199254740993"),
    *("9223372036854775808", "2147483648", "inf", '""', '"x"', '"1"', '"null"', '"1e400"', '"\\n"'),
    *('"a.toml"', '"../.."', '"/dev/zero"', '"random:x"', '"lublin"', '"\\u0000"', '"\\u001b[31m"'),
    *('"' + "a" * 5000 + '"', '"²"', '"-1"', "1979-05-27", "[" * 40 + "]" * 40),
)

#: Texts that readers of numbers, of texts and of trees trip over.
NASTY = (
    *("", "{'a': 1}", "1e999", "-1e999", "NaN", "nan", "-inf", "Infinity", "9" * 310, "9" * 5000),
    *("0x" + "f" * 400, "x", "1,024", "6 4", "1e3", '"\\ud800"', "\x00", "\x1b[31m", "²", "١٢٨"),
    *("[" * 3000, '{"a":' * 3000, "[" * 80 + "]" * 80, "a." * 3000 + "a", "2024-02-30"),
    *("2024-01-01T00:00:00Z", "a" * 5000, "\n", "\r", ",", ";", '"'),
)
_VALUE = re.compile(rb'"[^"\n]*"|[\w.+-]+')


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Some bits are others."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 10, 100))):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut(content: bytes, rng: random.Random) -> bytes:
    """The end, the begin or a part is missing."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return rng.choice((content[:first], content[last:], content[:first] + content[last:]))


def doubled(content: bytes, rng: random.Random) -> bytes:
    """A part stands there again, somewhere."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[first:last] + content[at:]


def strewn(content: bytes, rng: random.Random) -> bytes:
    """Some bytes come in between, or stand in place of others."""
    at, size = rng.randrange(len(content) + 1), rng.choice((1, 2, 8, 300))
    return content[:at] + rng.randbytes(size) + content[at + rng.choice((0, size)) :]


def replaced(content: bytes, rng: random.Random) -> bytes:
    """Some values are others, whatever kind they are of."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = list(_VALUE.finditer(content))
        if not places:
            return content
        place = rng.choice(places)
        others = (rng.choice(OTHERS).encode(), rng.choice(NASTY).encode(), rng.choice(places)[0])
        other = rng.choices(others, (3, 1, 1))[0]
        content = content[: place.start()] + other + content[place.end() :]
    return content


CHANGES: tuple[Change, ...] = (flipped, cut, doubled, strewn, replaced)
OF_TEXTS: tuple[Change, ...] = (*CHANGES, replaced, replaced, replaced, replaced)


def damages(content: bytes, is_text: bool, number: int, seed: object) -> Iterator[bytes]:
    """Damaged copies of a file's content, the same ones for the same seed."""
    rng = random.Random(str(seed))
    for _ in range(number):
        damaged = content
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            damaged = rng.choice(OF_TEXTS if is_text else CHANGES)(damaged or b"0", rng)
        yield damaged
