"""The live app's server: on this machine alone, and for the page that it has given out alone."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from hpcgym.errors import HpcgymError
from hpcgym.explore.live import Answer, Session
from hpcgym.files import json_of

HOST = "127.0.0.1"
_MOST_BYTES = 65_536  # of a question
_PLAIN = "text/plain; charset=utf-8"


class Server(ThreadingHTTPServer):
    """Serves a session under an address that nobody can guess.

    Other pages in the same browser could ask a server on this machine as well. So each request must
    have a random token in its path, name this server as its host, which keeps out names that were
    pointed at this machine, and come from this server's own page, if it says from where.

    Parameters
    ----------
    session : what is asked.
    port : to listen on; 0: a free one.

    Raises
    ------
    OSError : the port is taken.
    """

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.session = session
        self.token = secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_address[1]}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone before its answer came."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body go out as one packet
    server: Server
    asks: ClassVar[Mapping[str, Callable[[Session, Mapping[str, Any]], Answer]]] = {
        "simulate": Session.simulate,
        "explain": Session.explain,
        "save": Session.save,
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: each movement of a slider is a request."""

    def do_GET(self) -> None:
        """Answer with the page."""
        what = self._asked()
        if what is None:
            return
        if what:
            self._say(HTTPStatus.NOT_FOUND, f"there is nothing called {what!r} here")
            return
        self._send(HTTPStatus.OK, Answer(self.server.session.page, "text/html; charset=utf-8"))

    def do_POST(self) -> None:
        """Answer a question in JSON; what is wrong with it is said in a line."""
        what = self._asked()
        if what is None:
            return
        if what not in self.asks:
            self._say(HTTPStatus.NOT_FOUND, f"there is nothing called {what!r} here")
            return
        length = self.headers.get("Content-Length", "")
        # of over 4,300 digits Python makes no number
        plain = length.isascii() and length.isdigit() and len(length) <= len(str(_MOST_BYTES))
        if not (plain and int(length) <= _MOST_BYTES):
            self._say(HTTPStatus.BAD_REQUEST, f"a question has 0 to {_MOST_BYTES:,} bytes")
            return
        try:
            question = json_of(self.rfile.read(int(length)), "the question")
            if not isinstance(question, dict):
                raise HpcgymError("the question must be an object of JSON")
        except HpcgymError as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
            return
        try:
            answer = self.asks[what](self.server.session, question)
        except HpcgymError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            return
        self._send(HTTPStatus.OK, answer)

    def _asked(self) -> str | None:
        """Return what is asked for; None where the request is refused, which it has been told."""
        if not self.path.startswith("/"):  # a page asks for no whole address
            self._say(HTTPStatus.BAD_REQUEST, "a request names a path that begins with /")
            return None
        origin = self.headers.get("Origin")
        token, slash, what = self.path.partition("?")[0].removeprefix("/").partition("/")
        known = slash and secrets.compare_digest(token.encode(), self.server.token.encode())
        own_page = origin is None or origin in {f"http://{host}" for host in self.server.hosts}
        if known and own_page and self.headers.get("Host") in self.server.hosts:
            return what
        self._say(HTTPStatus.FORBIDDEN, "this is for the page that hpcgym explore has opened")
        return None

    def _say(self, status: HTTPStatus, text: str) -> None:
        # what is left of a question is not read: the next one would begin with it
        self.close_connection = True
        self._send(status, Answer(text.encode(), _PLAIN))

    def _send(self, status: HTTPStatus, answer: Answer) -> None:
        self.send_response(status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
