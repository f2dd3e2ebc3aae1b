"""The live app's server refuses what is no request of its page, and prints nothing of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from serving import served

from hpcgym.explore.live import Server


class Asked:
    """A session that tells what it was asked."""

    page = b"the page"

    def simulate(self, question: Any) -> Any:
        raise AssertionError(question)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served(Asked()) as one:
        yield one


def answered(server: Server, request: str) -> str:
    """The whole answer to a request, in which TOKEN and HOST stand for those of the server."""
    host = f"127.0.0.1:{server.server_address[1]}"
    text = request.replace("TOKEN", server.token).replace("HOST", host)
    with socket.create_connection(server.server_address[:2], timeout=5) as to:
        to.sendall(f"{text}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        return b"".join(iter(lambda: to.recv(4096), b"")).decode("latin-1")


@pytest.mark.parametrize(
    "request_text",
    [
        "POST http://[::1/TOKEN/simulate HTTP/1.1",
        "GET http://[::1/TOKEN/ HTTP/1.1",
        "GET http://[not an address]/TOKEN/ HTTP/1.1",
        "GET http://HOST/TOKEN/ HTTP/1.1",
        "GET TOKEN/ HTTP/1.1",
        "GET * HTTP/1.1",
        "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: " + "9" * 5000,
        "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: 65537",
        "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: -1",
        "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: \xb2",
        "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: 0",
    ],
)
def test_a_malformed_request_is_a_400(
    server: Server, capfd: pytest.CaptureFixture[str], request_text: str
) -> None:
    assert answered(server, request_text).split()[1] == "400"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/TOKEN/", "200"),
        ("/TOKEN/?a=b", "200"),
        ("//TOKEN/", "200"),
        ("//[::1/TOKEN/", "403"),
        ("/TOKEN/[::1", "404"),
        ("/\xe9/", "403"),
        ("/", "403"),
    ],
)
def test_other_paths_are_answered(
    server: Server, capfd: pytest.CaptureFixture[str], path: str, status: str
) -> None:
    assert answered(server, f"GET {path} HTTP/1.1").split()[1] == status
    assert capfd.readouterr() == ("", "")
