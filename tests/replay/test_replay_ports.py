"""Ports that are kept for Slurm's daemons from when they are chosen."""

from __future__ import annotations

import errno
import socket
from contextlib import closing

import pytest

from hpcgym.errors import HpcgymError
from hpcgym.replay import native
from hpcgym.replay.native import kept_ports


def bound(port: int, shares: bool) -> bool:
    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shares)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            return False
    return True


def test_a_daemon_may_listen_where_nobody_else_may_look_for_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with kept_ports(3) as first:
        taken = range(first, first + 3)
        assert [bound(port, shares=True) for port in taken] == [True] * 3
        assert [bound(port, shares=False) for port in taken] == [False] * 3
        monkeypatch.setattr(native, "_PORTS", range(first, first + 3))  # first is all there is
        with pytest.raises(HpcgymError, match="no 2 free ports in a row"), kept_ports(2):
            pass
    assert all(bound(port, shares=False) for port in taken)
    with kept_ports(2) as again:
        assert again == first


def test_more_than_a_process_or_a_machine_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HpcgymError, match="no 100000 free ports in a row"), kept_ports(100_000):
        pass

    def too_many(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(native, "_keep", too_many)
    with pytest.raises(HpcgymError, match="3 ports on loopback: Too many"), kept_ports(3):
        pass
