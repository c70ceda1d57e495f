"""The client's errors -> ours: what happened, where, and what to do; no record's content."""

from collections.abc import Sequence

from confluent_kafka import KafkaError

from rejoin.errors import (
    RejoinError,
    SinkDenied,
    SinkDown,
    SinkError,
    SinkMessageTooLarge,
    SinkSlow,
    SinkTargetMissing,
)
from rejoin.lake.ledger.deliveries import fenced

AT_ITS_END = KafkaError._FATAL  # noqa: SLF001 -- the client's own name
"""What the client says of everything after an error that it does not survive; of which one, the end of a transaction tells."""
_GIVEN_UP = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, AT_ITS_END}  # noqa: SLF001
"""What the client says of records that it drops because another one failed; they may be told of before that one."""

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}  # noqa: SLF001
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
_SLOW = {KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}  # noqa: SLF001
_DENIED = {
    KafkaError._AUTHENTICATION,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_OTHERS_FAULT = {
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUIRED_ACKS,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError.INVALID_RECORD,
    KafkaError.TOPIC_EXCEPTION,  # Kafka's INVALID_TOPIC_EXCEPTION
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
}
"""What the broker's, the topic's or the sink's settings do not allow, however often it is tried."""


def reason(failed: Sequence[KafkaError], error: KafkaError) -> KafkaError:
    """Why a transaction failed: the first record that failed by itself, as what comes after it only says that there was one. Where the client itself is
    at its end, or tells only of records that it gave up for another's sake, its own error.

    Args:
        failed: what the client told of records, in that order.
        error: what it answers now.
    """
    own = [e for e in failed if e.code() not in _GIVEN_UP]
    return own[0] if own and not error.fatal() else error


def missing(sink: str, topic: str) -> SinkTargetMissing:
    """The error of a topic that does not exist."""
    return SinkTargetMissing(
        f"sink {sink!r}: there is no topic {topic!r}",
        next_step=f"make the topic, or write kafka({topic!r}, partitions=...); then `rejoin publish --sink {sink}`",
    )


def coded(error: KafkaError, sink: str, topic: str, doing: str) -> RejoinError:
    """The error to raise for a client's error."""
    code = error.code()
    if code in _FENCED:
        return fenced(sink)
    what = f"sink {sink!r}: {doing} topic {topic!r} failed: {error.name()}; what was not committed comes again"
    if code in _TOO_LARGE:
        return SinkMessageTooLarge(
            what,
            expected="records of at most max.request.size (producer) and max.message.bytes (topic)",
            next_step="raise both limits, or deliver fewer columns (value='row' or 'key'); then `rejoin publish --sink " + sink + "`",
        )
    if code in _MISSING:
        return missing(sink, topic)
    if code in _DENIED:
        return SinkDenied(
            what, expected="rights to describe and write the topic, and to use transactions", next_step="check user and rights"
        )
    if code in _SLOW:
        return SinkSlow(
            what, expected="an answer within delivery.timeout.ms and transaction.timeout.ms", next_step="try again later, or raise both"
        )
    if code in _OTHERS_FAULT:
        return SinkError(what, next_step="correct the setting, of the sink, the topic or the broker")
    return SinkDown(what, next_step=f"try again later; the next run does, and so does `rejoin publish --sink {sink}`")
