"""The server's errors -> ours. Only names leave its answers: their sentences hold values."""

from collections.abc import Iterator
from contextlib import contextmanager

from opensearchpy import exceptions as os

from rejoin.errors import (
    RejoinError,
    SinkDenied,
    SinkDown,
    SinkError,
    SinkMessageTooLarge,
    SinkSchemaRefused,
    SinkSlow,
    SinkTargetMissing,
)

BUSY, TOO_LARGE, DENIED, MISSING, REFUSED = 429, 413, (401, 403), 404, 400
"""Statuses of HTTP, of a whole answer and of one document in it."""
SERVER_ERROR = 500


@contextmanager
def coded_errors(sink: str, index: str, doing: str) -> Iterator[None]:
    """Raises ours in place of the client's: ``SinkDown``, ``SinkSlow``, ``SinkDenied`` and others of ``rejoin.errors``."""
    try:
        yield
    except os.ConnectionTimeout:
        said = f"sink {sink!r}: {doing} index {index!r} took too long; what was not acknowledged comes again"
        raise SinkSlow(said, expected="an answer within timeout", next_step=_again(sink)) from None
    except os.SSLError:
        said = f"sink {sink!r}: {doing} index {index!r} failed: no TLS connection that both sides trust"
        raise SinkDenied(said, expected="a certificate that ca_certs vouches for", next_step="check url and ca_certs") from None
    except os.ConnectionError as error:
        raise coded(0, type(error).__name__, sink, index, doing) from None
    except os.TransportError as error:
        status = error.status_code if isinstance(error.status_code, int) else 0
        raise coded(status, str(error.error), sink, index, doing) from None


def coded(status: int, name: str, sink: str, index: str, doing: str) -> RejoinError:
    """The error to raise for an answer; status 0: there was none."""
    what = f"sink {sink!r}: {doing} index {index!r} failed: {name}{f' ({status})' if status else ''}; what was not acknowledged comes again"
    if not status or status >= SERVER_ERROR:
        return SinkDown(what, next_step=_again(sink))
    if status == BUSY:
        return SinkSlow(what, expected="room in the server's queues or on its disks", next_step=_again(sink))
    if status in DENIED:
        return SinkDenied(
            what,
            expected="rights to read, write and make the index, rejoin_cursors and rejoin_refused, and an index that takes writes",
            next_step="check user, rights, and blocks of the index",
        )
    if status == MISSING:
        return SinkTargetMissing(what, next_step=_again(sink))
    if status == TOO_LARGE:
        return SinkMessageTooLarge(what, expected="documents below http.max_content_length", next_step="raise it, or deliver fewer columns")
    if status == REFUSED and doing == "preparing":
        return SinkSchemaRefused(what, next_step="compare the index's mapping and limits with `rejoin explain`")
    return SinkError(what, next_step=f"correct what the server says; {_again(sink)}")


def _again(sink: str) -> str:
    return f"the next run tries again, and so does `rejoin publish --sink {sink}`"
