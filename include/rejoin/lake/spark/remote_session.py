"""A session on a Spark Connect server that ends with an error, within seconds, where the server is gone or hangs.

Left to itself the client tries a dead server again for ten minutes, and waits for one that hangs without end.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder, SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from rejoin.errors import RejoinError, SetupError, SparkDown

ANSWER = 15.0
"""Seconds that the server may take for an answer that costs it nothing."""
PATIENCE = 5.0
"""Seconds between the first and the last question that a server leaves without an answer."""
EVERY = 5.0
"""Seconds between two questions to a server whose session is in use."""

T = TypeVar("T")
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_END = object()


def connect(address: str) -> SparkSession:
    """A session on the server at ``sc://host:port/;...``. While it lives, the server is asked every few seconds whether it is still there.

    A token comes from the address or from SPARK_CONNECT_AUTHENTICATE_TOKEN. Every call on the session may raise:

    Raises:
        SparkDown: nobody answers at the address, the server hangs, or it was started anew and does not know the session.
        SetupError: the server refuses the token.
    """
    builder = _Channel(address)
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as pyspark's own builder does: its functions are then those of Spark Connect
    spark: SparkSession = SparkSession.builder.channelBuilder(builder).create()
    spark.client.set_retry_policies([_Brief(max_backoff=1000)])
    ended = threading.Event()
    weakref.finalize(spark, ended.set).atexit = False  # pyspark calls the server at the very end, too
    _ask(spark.client)
    threading.Thread(target=_watch, args=(spark.client, ended), daemon=True, name="spark-connect-watch").start()
    return spark


def _ask(client: SparkConnectClient) -> None:
    client.get_configs("spark.sql.session.timeZone")


def _watch(client: SparkConnectClient, ended: threading.Event) -> None:
    """Asks until the session ends or the server is lost; the guard then ends what waits for it."""
    while not ended.wait(EVERY) and not client.is_closed:
        try:
            _ask(client)
        except SparkDown:
            return
        except Exception:  # noqa: BLE001  an error is an answer
            continue


class _Brief(DefaultPolicy):
    """Which calls are sent again; the guard says when that is enough."""

    def can_retry(self, e: BaseException) -> bool:
        return super().can_retry(e) or (isinstance(e, grpc.RpcError) and e.code() is grpc.StatusCode.DEADLINE_EXCEEDED)


class _Channel(DefaultChannelBuilder):
    """The channel to an address, with a guard over every call.

    pyspark sends a token over TLS only, which its server does not speak. Ours goes in the clear to this machine,
    and to another one where the address says ``use_ssl=false``.
    """

    @property
    def _in_the_clear(self) -> bool:
        here = self.host in ("localhost", "[::1]") or self.host.startswith("127.")
        return not self.use_ssl and (here or self.getDefault(self.PARAM_USE_SSL, "").lower() == "false")

    @property
    def secure(self) -> bool:
        return super().secure and not self._in_the_clear

    def metadata(self) -> list[tuple[str, str]]:
        bearer = [("authorization", f"Bearer {self.token}")] if self.token and self._in_the_clear else []
        return [*super().metadata(), *bearer]

    def toChannel(self) -> grpc.Channel:  # noqa: N802  pyspark's name
        channel = super().toChannel()
        return grpc.intercept_channel(channel, _Guard(self.endpoint, channel.close))


class _Call(NamedTuple):
    """What gRPC's interceptors may change of a call."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _Guard(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor):  # type: ignore[misc]
    """Gives cheap calls a deadline, and says of a server that stays silent that it is down, whichever call waits for it.

    Args:
        where: host and port, for messages.
        close: ends all calls of the channel.
    """

    def __init__(self, where: str, close: Callable[[], None]) -> None:
        self._where, self._close = where, close
        self._silent_since: float | None = None
        self._lost = ""

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Only the analysis of a plan may take its time."""
        d, cheap = client_call_details, not client_call_details.method.endswith("/AnalyzePlan")
        call = _Call(d.method, ANSWER if cheap else d.timeout, d.metadata, d.credentials, d.wait_for_ready, d.compression)
        return self._answered(lambda: _without_error(continuation(call, request)))

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        """Uploads."""
        return self._answered(lambda: _without_error(continuation(client_call_details, request_iterator)))

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Iterator[Any]:
        """The execution of a plan: it takes as long as it takes, while the server answers the questions asked beside it."""
        return self._each(self._asked(lambda: continuation(client_call_details, request)))

    def _each(self, answers: Iterator[Any]) -> Iterator[Any]:
        while (answer := self._answered(lambda: next(answers, _END))) is not _END:
            yield answer

    def _answered(self, ask: Callable[[], T]) -> T:
        """An answer: so the server is there."""
        made = self._asked(ask)
        self._silent_since = None
        return made

    def _asked(self, ask: Callable[[], T]) -> T:
        if self._lost:
            raise self._down()
        try:
            return ask()
        except (grpc.RpcError, ValueError) as error:  # ValueError: the channel is closed
            if (told := self._told(error)) is None:
                raise
            raise told from None

    def _told(self, error: grpc.RpcError | ValueError) -> RejoinError | None:
        """What to raise instead of an error of gRPC; None: nothing."""
        if self._lost:
            return self._down()
        code = error.code() if isinstance(error, grpc.Call) else None
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return SetupError(
                f"the Spark Connect server at {self._where} refuses our token",
                expected="the server's own, in SPARK_CONNECT_AUTHENTICATE_TOKEN or as the password of the Airflow connection",
                next_step="`rejoin up` keeps it in spark.token of its folder",
            )
        if code in _SILENT:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since >= PATIENCE:
                return self._lose("nobody answers at" if code is grpc.StatusCode.UNAVAILABLE else "nothing but silence from")
        elif isinstance(error, grpc.Call) and "INVALID_HANDLE.SESSION" in (error.details() or ""):
            return self._lose("the session is gone, as after a new start, at")
        return None

    def _lose(self, what: str) -> SparkDown:
        self._lost = what
        self._close()
        return self._down()

    def _down(self) -> SparkDown:
        return SparkDown(
            f"Spark Connect: {self._lost} {self._where}; nothing of this step was committed",
            expected="a server that answers within seconds",
            next_step="try again; if it stays, look at the server's log and start it: rejoin up, or python -m rejoin.connect",
        )


def _without_error(call: Any) -> Any:
    """A call that has its answer.

    Raises:
        grpc.RpcError: it has none.
    """
    call.result()
    return call
