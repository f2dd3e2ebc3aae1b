"""The live app's server beside a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hpcgym.explore.live import Server, Session


@contextmanager
def served(session: Session) -> Iterator[Server]:
    """Serve a session until the end, whatever a test finds."""
    with Server(session) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
