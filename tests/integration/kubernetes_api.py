"""As much of Kubernetes' API as Spark's driver asks for: it keeps the objects that it is given, starts nothing, and writes down what was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4


@dataclass
class KubernetesApi:
    """Attributes:
    address: of the server.
    asked: every resource and verb, as a role names them.
    kept: the objects that there are, by resource and name.
    created: all that were ever made, in their order.
    """

    address: str = ""
    asked: set[tuple[str, str]] = field(default_factory=set)
    kept: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """What is answered to a request."""
        where = urlsplit(path)
        query, parts = parse_qs(where.query), where.path.strip("/").split("/")
        resource, name = parts[4], parts[5] if len(parts) > 5 else ""
        if "watch" in query:
            self.asked.add((resource, "watch"))
            return 200, {}
        verb = {"GET": "get" if name else "list", "POST": "create", "PATCH": "patch", "PUT": "update"}.get(method)
        verb = verb or ("delete" if name else "deletecollection")
        self.asked.add((resource, verb))
        if verb == "create":
            return 201, self._made(resource, json.loads(body))
        if name:
            found = self.kept.pop((resource, name), None) if verb == "delete" else self.kept.get((resource, name))
            return (200, found) if found else (404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})
        chosen = {key: one for key, one in self.kept.items() if key[0] == resource and self._fits(one, query)}
        if verb == "deletecollection":
            for key in chosen:
                del self.kept[key]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": list(chosen.values())}

    def put(self, resource: str, one: dict[str, Any]) -> None:
        """Keeps an object that others have made."""
        self._made(resource, one)
        self.created.pop()

    def _made(self, resource: str, one: dict[str, Any]) -> dict[str, Any]:
        one["metadata"] |= {"uid": str(uuid4()), "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if resource == "pods":
            one.setdefault("status", {"phase": "Pending"})
        self.kept[resource, one["metadata"]["name"]] = one
        self.created.append(one)
        return one

    @staticmethod
    def _fits(one: dict[str, Any], query: dict[str, list[str]]) -> bool:
        """Whether an object has the labels that are asked for, where these are asked for by equality."""
        labels = one["metadata"].get("labels", {})
        asked = [part.split("=", 1) for part in ",".join(query.get("labelSelector", [])).split(",") if "=" in part and "!" not in part]
        return all(labels.get(key) == value for key, value in asked)


@contextmanager
def kubernetes_api() -> Iterator[KubernetesApi]:
    """A server on loopback, as long as it is needed."""
    api = KubernetesApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answered(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, said = api.answer(self.command, self.path, body)
            text = json.dumps(said).encode() if said else b""
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answered  # noqa: N815 -- the server asks so

        def log_message(self, *_: object) -> None:
            """Nothing: what was asked is in ``asked``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
