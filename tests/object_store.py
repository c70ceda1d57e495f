"""An S3-compatible server (moto's) as a process of its own, with a bucket, which writes down every request that it answers.

``python tests/object_store.py ADDRESS PORT LOG``: a line a request, ``method path?query status sent received``, in bytes of the bodies.
"""

import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from integration.hosts import HERE, Host

KEY, SECRET, BUCKET = "an-id-of-a-key", "a-secret-that-nobody-may-see", "bucket"


@dataclass(frozen=True)
class Asked:
    """One answered request. ``sent`` by the server, ``received`` by it: bytes of the bodies."""

    method: str
    path: str
    status: int
    sent: int
    received: int

    @property
    def kind(self) -> str:
        """What the object is to Iceberg."""
        name = self.path.partition("?")[0]
        if name.endswith(".metadata.json"):
            return "metadata"
        return {"avro": "manifest", "parquet": "data"}.get(name.rpartition(".")[2], "other")


class ObjectStore:
    """The server, as those see it who use it."""

    def __init__(self, directory: Path, host: Host = HERE) -> None:
        from rejoin.airflow.local.server import free_port

        self._host, self._log, self._said = host, directory / "requests.log", directory / "moto.log"
        self._log.touch()
        self._fault = _fault(self._log)
        self._fault.touch()
        for _ in range(3):  # somebody else may take the port in between
            self.port = free_port()
            if self._started():
                return
        raise AssertionError(f"the server did not come up:\n{self._said.read_text()[-3000:]}")

    @property
    def endpoint(self) -> str:
        return f"http://{self._host.address}:{self.port}"

    def lake(self, root: Path, *, bucket: str = BUCKET, **properties: str) -> Path:
        """A lake's file under ``root`` whose tables are in this store. The key comes from the environment, as ``REJOIN_TEST_SECRET``."""
        stated = {"s3.endpoint": self.endpoint, "s3.access-key-id": KEY, "s3.secret-access-key": "${REJOIN_TEST_SECRET}"}
        stated |= {"client.region": "us-east-1", "s3.path-style-access": "true", **properties}
        file = root / "lake.toml"
        head = (
            f'catalog = "sqlite"\nuri = "sqlite:///{root}/catalog.db"\nwarehouse = "s3://{bucket}/{root.name}/my warehouse"\n[properties]\n'
        )
        file.write_text(head + "".join(f'"{name}" = "{value}"\n' for name, value in stated.items()))
        os.environ["REJOIN_TEST_SECRET"] = SECRET
        return file

    def asked(self, since: int = 0) -> list[Asked]:
        """The requests after the first ``since``, in their order."""
        return [_asked(line) for line in self._log.read_text().splitlines()[since:]]

    def failing(self, answer: str, after: int = 0) -> None:
        """Lets the store answer requests from now on with a status and S3's code for it (``503 SlowDown``), the first few aside; "": none."""
        self._fault.write_text(f"{len(self.asked()) + after} {answer}" if answer else "")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def _started(self) -> bool:
        command = self._host.command(sys.executable, "-W", "ignore", __file__, self._host.address, self.port, self._log)
        reached = self._host.command("bash", "-c", f"exec 3<>/dev/tcp/{self._host.address}/{self.port}")
        with self._said.open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < deadline:
            if subprocess.run(reached, capture_output=True, check=False).returncode == 0 and self._process.poll() is None:
                return True
            time.sleep(0.1)
        self.stop()
        return False

    def _filesystem(self) -> Any:
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(access_key=KEY, secret_key=SECRET, endpoint_override=self.endpoint, region="us-east-1")


@contextmanager
def object_store(directory: Path, host: Host = HERE) -> Iterator[ObjectStore]:
    store = ObjectStore(directory, host)
    try:
        yield store
    finally:
        store.stop()


def told(asked: Iterable[Asked]) -> str:
    """Requests and bytes by what they were for, as a text."""
    requests, volume = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in asked:
        requests[one.kind, one.method] += 1
        volume[one.kind, one.method] += one.sent + one.received
    lines = [f"{kind:9} {method:7} {n:6,} requests {volume[kind, method]:12,} bytes" for (kind, method), n in sorted(requests.items())]
    return "\n".join([*lines, f"together {requests.total():,} requests, {volume.total():,} bytes"])


def _asked(line: str) -> Asked:
    method, path, status, sent, received = line.rsplit(" ", 3)[0].split(" ", 1) + line.rsplit(" ", 3)[1:]
    return Asked(method, path, int(status), int(sent), int(received))


def _fault(log: Path) -> Path:
    """Where it is written which requests are to fail."""
    return log.with_suffix(".fault")


def _serve(address: str, port: int, log: Path) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple
    from werkzeug.test import Client

    store = DomainDispatcherApplication(create_backend_app)
    Client(store).put(f"/{BUCKET}", base_url=f"http://{address}:{port}")
    written, numbers = log.open("a", buffering=1), count()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        first, status, code = ([*_fault(log).read_text().split(), "", "", ""])[:3]
        number = next(numbers)
        if not first or number < int(first):
            return store(environ, start)
        start(f"{status} {code}", [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>a fault of the test</Message></Error>".encode()]

    def counted(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        status = "000"

        def started(line: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            nonlocal status
            status = line[:3]
            return start(line, headers, *rest)

        body = b"".join(answer(environ, started))
        sent = 0 if environ["REQUEST_METHOD"] == "HEAD" else len(body)
        query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
        # Of an upload in signed chunks the length is said apart.
        received = environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or 0
        written.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}{query} {status} {sent} {received}\n")
        return [body]

    logging.getLogger("werkzeug").disabled = True
    run_simple(address, port, counted, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
