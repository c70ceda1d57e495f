"""Which of the client's errors is the reason."""

import pytest
from confluent_kafka import KafkaError

from rejoin.errors import SinkDown, SinkError, SinkMessageTooLarge
from rejoin.sinks.kafka.errors import coded, reason

PURGED, LARGE, STATE = (KafkaError(code) for code in (KafkaError._PURGE_QUEUE, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._STATE))
ENDED = KafkaError(KafkaError._FATAL)
FATAL = KafkaError(KafkaError.PRODUCER_FENCED, "", True)


@pytest.mark.parametrize(
    ("failed", "error", "expected"),
    [
        ([PURGED, LARGE, STATE], STATE, LARGE),
        ([LARGE, PURGED], PURGED, LARGE),
        ([PURGED], LARGE, LARGE),
        ([], STATE, STATE),
        ([LARGE], FATAL, FATAL),
        ([ENDED, LARGE], ENDED, LARGE),
        ([ENDED], ENDED, ENDED),
    ],
    ids=[
        "given up before it is told",
        "given up after",
        "only given up",
        "no record",
        "the client is at its end",
        "given up then",
        "only then",
    ],
)
def test_the_reason_is_the_record_that_failed_by_itself(failed: list[KafkaError], error: KafkaError, expected: KafkaError) -> None:
    assert reason(failed, error) is expected


def test_a_record_that_is_too_large_is_named_whatever_the_client_tells_first() -> None:
    assert isinstance(coded(reason([PURGED, LARGE], STATE), "out.kafka", "t", "writing to"), SinkMessageTooLarge)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    ],
)
def test_what_no_retry_cures_is_terminal(code: int) -> None:
    assert type(coded(KafkaError(code), "out.kafka", "t", "writing to")) is SinkError


def test_a_broker_that_is_away_may_come_back() -> None:
    assert type(coded(KafkaError(KafkaError._TRANSPORT), "out.kafka", "t", "writing to")) is SinkDown
