"""Numbers in the headers of traces: one rule for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcgym.errors import HpcgymError

# Digits alone, or with a remark: "1152 (72*16)", "100 nodes", "1024 processors in 128 nodes". Any
# other text with digits may mean another number: "1,024", "1e3", "6 4", "2 nodes of 64 cores".
_PLAIN = re.compile(
    r"""\+?([0-9]{1,15})[.,;:]?
        (?:\s*[(\[{=#].*
          |[\s-]+[^\W\d_]{2}\D*
          |\s+of\s+which\b.*
          |\s+(?:proc\w*|cpus?|cores?)(?:\s*[,;(]|\s+[io]n\b).*)?""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BELOW_0 = re.compile(r"-\s*[0-9.]+\b(?:\s*[(\[{=#].*|\s+\D*)?", re.DOTALL)


def plain_number(key: str, text: str) -> int | None:
    """Return the whole number of an entry, which a remark may follow; None if it tells none.

    It tells none without digits, as ``unknown``, and if it is below 0: traces have -1 for what is
    not known.

    Raises
    ------
    HpcgymError : it is no plain whole number, such as ``1,024``, ``1e3`` or ``6 4``.
    """
    text = text.strip()
    match = _PLAIN.fullmatch(text)
    if match:
        return int(match[1])
    if not any(character.isdigit() for character in text) or _BELOW_0.fullmatch(text):
        return None
    raise HpcgymError(f"{key} is {text!r}, no plain whole number")


def header_number(header: Mapping[str, list[str]], key: str, least: int = 1) -> int | None:
    """Return the first whole number that a header's entries of a key tell; None if they tell none.

    A text that is no plain number tells none: the reader of the file reports it.

    Parameters
    ----------
    header : key -> its values; of each the first line counts.
    key : such as ``UnixStartTime``.
    least : the least that is a value.
    """
    for entry in header.get(key, ()):
        try:
            number = plain_number(key, entry.partition("\n")[0])
        except HpcgymError:
            return None
        if number is not None and number >= least:
            return number
    return None
