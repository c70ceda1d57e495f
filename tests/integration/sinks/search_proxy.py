"""A server before OpenSearch that lets through what a test says: faults of bulk requests, users, TLS."""

import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Lines = list[bytes]
"""One action of a bulk request: its head, and its document unless it is a delete."""


@dataclass
class Proxy:
    """Where it is, and its faults.

    Attributes:
        url: where it is.
        busy: whether the server has no room for an action of a bulk request, which is asked of each.
        answer: the status that bulk requests get instead of an answer, if any.
        user: the only value of the Authorization header that is let in, if any.
        seen: how many actions each bulk request had.
    """

    url: str = ""
    busy: Callable[[Lines], bool] = lambda _: False
    answer: Callable[[], int | None] = lambda: None
    user: str | None = None
    seen: list[int] = field(default_factory=list)


@contextmanager
def proxy(target: str, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """A running one before the server at ``target``."""
    made = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if made.user is not None and self.headers.get("Authorization") != made.user:
                self.reply(401, b'{"error": {"type": "security_exception", "reason": "unable to authenticate user"}, "status": 401}')
            elif not self.path.endswith("_bulk") or "rejoin_refused" in body.decode():
                self.reply(*forward(self, target, body))
            elif (status := made.answer()) is not None:
                self.reply(status, b'{"error": {"type": "busy_exception", "reason": "full"}, "status": %d}' % status)
            else:
                self.reply(200, json.dumps(self.bulk(body)).encode())

        def bulk(self, body: bytes) -> dict[str, Any]:
            actions = split(body)
            made.seen.append(len(actions))
            refused = [made.busy(lines) for lines in actions]
            rest = b"".join(line + b"\n" for lines, full in zip(actions, refused, strict=True) if not full for line in lines)
            taken = iter(json.loads(forward(self, target, rest)[1])["items"] if rest else [])
            full = {"index": {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}}
            return {"errors": True, "items": [full if busy else next(taken) for busy in refused]}

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_request  # noqa: N815 -- the names that the base class calls

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    made.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def split(body: bytes) -> list[Lines]:
    """A bulk request's actions."""
    lines = iter(body.splitlines())
    return [[line] if line.startswith(b'{"delete"') else [line, next(lines)] for line in lines]


def forward(handler: BaseHTTPRequestHandler, target: str, body: bytes) -> tuple[int, bytes]:
    """What the server answers."""
    headers = {"Content-Type": handler.headers.get("Content-Type", "application/json")}
    request = urllib.request.Request(f"{target}{handler.path}", body or None, headers, method=handler.command)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
