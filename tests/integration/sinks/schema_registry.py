"""A schema registry that takes every schema."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answers(BaseHTTPRequestHandler):
    """A registry that takes every schema; ``schemas``: by id, from 1 on."""

    schemas: list[str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        if body not in self.schemas:
            self.schemas.append(body)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"id": self.schemas.index(body) + 1}).encode())

    def do_GET(self) -> None:
        id_ = int(self.path.removeprefix("/schemas/ids/"))
        self.send_response(200 if 0 < id_ <= len(self.schemas) else 404)
        self.end_headers()
        if 0 < id_ <= len(self.schemas):
            self.wfile.write(json.dumps({"schema": self.schemas[id_ - 1]}).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def registry() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the schemas that it has got."""
    known: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Mine", (Answers,), {"schemas": known}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", known
    server.shutdown()
    thread.join()
    server.server_close()
