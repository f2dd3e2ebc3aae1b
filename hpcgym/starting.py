"""Ctrl-C while the program ``hpcgym`` starts. This is imported first, and imports nothing slow.

Amid imports Python makes other errors of a KeyboardInterrupt, or prints and forgets it. So until a
command is imported, Ctrl-C ends the program at once: nothing is lost then.
"""

from __future__ import annotations

import os
import sys

# What the module signal is made of. It is there already, and signal takes milliseconds to import.
_SIGNAL = __import__("_signal")

INTERRUPTED = "hpcgym: interrupted\n"
#: The exit code after Ctrl-C, as of shells: 128 and the number of the signal.
CODE = 128 + int(_SIGNAL.SIGINT)


def hear() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from here on, of which commands save their work."""
    if _SIGNAL.getsignal(_SIGNAL.SIGINT) is _end_at_once:
        _SIGNAL.signal(_SIGNAL.SIGINT, _SIGNAL.default_int_handler)


def _end_at_once(*_: object) -> None:
    try:
        os.write(2, INTERRUPTED.encode())
    finally:
        os._exit(CODE)


def _is_program() -> bool:
    """Return whether this is ``hpcgym`` or ``python -m hpcgym``, and no script with the library."""
    # the word of the command line at which those of sys.argv begin
    word = next(iter(sys.orig_argv[-len(sys.argv) :]), "")
    return os.path.basename(word).removeprefix("-m").partition(".")[0] == "hpcgym"


# who started the program may have it ignore Ctrl-C
if _is_program() and _SIGNAL.getsignal(_SIGNAL.SIGINT) is _SIGNAL.default_int_handler:
    _SIGNAL.signal(_SIGNAL.SIGINT, _end_at_once)
