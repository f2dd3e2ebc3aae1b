"""How numba's threads wait for work: asleep, so that they take no processor from others.

GNU's OpenMP, on which numba calls functions on threads, lets them spin for milliseconds after each
call. Where something else wants a core, that costs many times what it gains. The library reads once
how threads are to wait, as it is loaded. So it is loaded here, and what is set for it is taken back
at once: other libraries and other processes are not to wait so.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module

_WAITING = "OMP_WAIT_POLICY"
#: By each of these a user may have said how threads wait.
_SAID = (_WAITING, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def load_openmp() -> None:
    """Load numba's OpenMP so that its threads sleep while they wait, unless the user has said how.

    It has no effect where numba's threads or this library were already in use. Which library numba
    takes for threads does not change; where it has no OpenMP there is nothing to do.
    """
    if any(name in os.environ for name in _SAID):
        return
    os.environ[_WAITING] = "passive"
    try:
        with suppress(ImportError):
            import_module("numba.np.ufunc.omppool")
    finally:
        del os.environ[_WAITING]
