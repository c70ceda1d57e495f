"""Clients of the cluster that a source is in, and their errors as ours. No address, no secret and no record gets into an error."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from rejoin.errors import RejoinError, SetupError, SourceDenied, SourceDown, SourceMissing
from rejoin.plan.topic_path import TopicPath
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.kafka.schema_registry import URL, SchemaRegistry

T = TypeVar("T")
SECONDS = 10.0
"""How long a cluster may take to answer a question."""
STALLED = 30.0
"""How long it may take to go on with the records of a range."""
_LOOK = 0.1
LOG = logging.getLogger("rejoin.kafka")
LOG.addHandler(logging.NullHandler())
ADDRESS, SERVERS, _OF_REGISTRY = "address", "bootstrap.servers", "schema.registry."
MOST = "records.per.run"
_READING: Mapping[str, Any] = {
    "queued.max.messages.kbytes": 65536,
    "max.partition.fetch.bytes": 8 << 20,
    "fetch.queue.backoff.ms": 5,  # by default a full queue halves the speed
}
_OURS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""What makes a range the same whenever it is read; no settings of others take their place."""
_DENIED = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001 -- the client's own names
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001


class Clients:
    """Makes the clients of a topic's cluster.

    Attributes:
        registry: of the schemas of messages; None where no setting names one.
        most: so many records of each topic are read in one run; None: all.

    Args:
        access: how sources are reached.
        path: the topic.

    Raises:
        SetupError: nothing says where the cluster is, or how many records are meant.
    """

    def __init__(self, access: SourceAccess, path: TopicPath) -> None:
        self._path = path
        given = dict(access.connections.get(path.at.lower(), {})) | dict(access.connections.get(path.at, {}))
        if ADDRESS in given:
            given.setdefault(SERVERS, given.pop(ADDRESS))
        if not given.get(SERVERS):
            raise SetupError(
                f"nothing says where the topic {path} is",
                expected=f"{SERVERS} in [sources.{path.at}] of the lake's .toml file, or the environment variable REJOIN_SOURCE_{path.at.upper()}",
                next_step="write it there: an address (host:9092), or settings of librdkafka as a JSON object; topologies have no addresses",
            )
        self.registry = SchemaRegistry(path.at, given) if URL in given else None
        self.most = _most(path, given.pop(MOST, None))
        self._settings = {name: value for name, value in given.items() if not name.startswith(_OF_REGISTRY)}
        self._refused: list[KafkaError] = []

    def admin(self) -> AdminClient:
        """For questions about the topic."""
        return self._made(AdminClient, {})

    def consumer(self, *, uncommitted: bool = False) -> Consumer:
        """For its records; ``uncommitted``: also for those that no transaction has committed."""
        isolation = {"isolation.level": "read_uncommitted"} if uncommitted else {}
        return self._made(Consumer, {**_READING, "group.id": "rejoin", **self._settings, **_OURS, **isolation})

    def answer(self, client: AdminClient, asked: Mapping[Any, Any], doing: str) -> dict[Any, Any]:
        """What the cluster answers.

        Raises:
            SourceMissing, SourceDenied, SourceDown: it does not.
        """
        waiting = set(asked.values())
        while waiting:
            waiting = wait(waiting, _LOOK).not_done
            client.poll(0)  # what it has to say of the connection: it would try again for ever
            if waiting and self._refused:
                raise self.coded(self._refused[0], doing)
        try:
            return {what: future.result() for what, future in asked.items()}
        except KafkaException as error:
            raise self.coded(error.args[0], doing) from None

    def coded(self, error: KafkaError, doing: str) -> RejoinError:
        """The error to raise for the client's: that of the connection, where it has told one that does not pass."""
        why = next(iter(self._refused), error)
        what = f"{doing} topic {self._path} failed: {why.name()}; nothing was committed"
        if why.code() in _DENIED:
            return SourceDenied(
                what,
                expected="a user, a secret and certificates that the cluster takes, and the right to describe and read the topic",
                next_step=f"correct [sources.{self._path.at}] or REJOIN_SOURCE_{self._path.at.upper()}, or ask for the right; then run again",
            )
        if why.code() in _MISSING:
            return SourceMissing(
                f"there is no topic {self._path}, or no right to see it; nothing was committed",
                next_step="check its name, and that the connection is that of its cluster",
            )
        return SourceDown(what, next_step="try again later: the same records are read then")

    def _made(self, kind: Callable[[dict[str, Any]], T], settings: Mapping[str, Any]) -> T:
        try:
            return kind({"client.id": "rejoin", **self._settings, **settings, "logger": LOG, "error_cb": self._tell})
        except KafkaException as error:
            told = error.args[0].str()
            named = ", ".join(name for name in self._settings if name in told)
            raise SetupError(
                f"the settings of the source {self._path.at!r} are refused" + (f": {named}" if named else ""),
                expected="settings that librdkafka knows",
                next_step=f"correct [sources.{self._path.at}], or REJOIN_SOURCE_{self._path.at.upper()}",
            ) from None

    def _tell(self, error: KafkaError) -> None:
        if error.code() in _DENIED:
            self._refused.append(error)


def _most(path: TopicPath, given: str | None) -> int | None:
    if given is None or (given.isdecimal() and int(given)):
        return None if given is None else int(given)
    raise SetupError(
        f"{MOST} of the source {path.at!r} is no number of records",
        expected="a whole number above zero",
        next_step=f"correct [sources.{path.at}]",
    )
