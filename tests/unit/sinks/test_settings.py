"""Settings under Kafka's names: what may be said, what it becomes, and what contradicts itself."""

import pytest
from confluent_kafka import Producer

from rejoin.errors import SetupError
from rejoin.plan.check import producer_settings
from rejoin.plan.model.sinks import Guarantee, KafkaSink
from rejoin.sinks.kafka import settings

ONCE, LEAST = Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE


def made(guarantee: Guarantee = ONCE, **stated: str) -> dict[str, object]:
    sink = KafkaSink("k", "t", guarantee=guarantee, producer=tuple((k.replace("_", "."), v) for k, v in stated.items()))
    return settings.of_producer(sink, {"bootstrap.servers": "127.0.0.1:1", "schema.registry.url": "x"}, "id", acknowledged=False)


def test_names_that_differ_are_mapped() -> None:
    found = made(buffer_memory="65536", max_request_size="5000", send_buffer_bytes="1024", linger_ms="7")
    assert found["queue.buffering.max.kbytes"] == 64
    assert (found["message.max.bytes"], found["socket.send.buffer.bytes"], found["linger.ms"]) == ("5000", "1024", "7")
    assert not {"buffer.memory", "max.block.ms", "schema.registry.url", "max.request.size"} & found.keys()


def test_the_partitioner_is_javas_and_a_transaction_belongs_to_exactly_once_only() -> None:
    assert made()["partitioner"] == "murmur2_random" and made()["transactional.id"] == "id"
    assert not {"transactional.id", "transaction.timeout.ms"} & made(LEAST).keys()


@pytest.mark.parametrize("guarantee", Guarantee)
def test_the_client_accepts_the_defaults_and_every_setting_that_can_be_tuned(guarantee: Guarantee) -> None:
    more = {"client_id": "x", "compression_level": "3", "connections_max_idle_ms": "1000", "metadata_max_age_ms": "5000"}
    tuned = {"compression_type": "zstd", "receive_buffer_bytes": "4096", "send_buffer_bytes": "4096", "batch_size": "20000", **more}
    for found in (made(guarantee), made(guarantee, **tuned)):
        Producer(found).purge()


MISTAKES = {
    "a name with a typing error": ({"linger": "5"}, ONCE, "not a setting that can be tuned"),
    "no number": ({"linger.ms": "soon"}, ONCE, "expected a whole number"),
    "an unknown compression": ({"compression.type": "rar"}, ONCE, "expected one of none, gzip"),
    "an address": ({"bootstrap.servers": "h:1"}, ONCE, "part of the connection"),
    "a password": ({"sasl.password": "x"}, ONCE, "part of the connection"),
    "a serializer": ({"value.serializer": "x"}, ONCE, "use value="),
    "no idempotence": ({"enable.idempotence": "false"}, ONCE, "needs guarantee='at_least_once'"),
    "acks of one with idempotence": ({"acks": "1"}, LEAST, "needs acks=all"),
    "too many in flight": ({"max.in.flight.requests.per.connection": "6"}, ONCE, "at most 5"),
    "no retries": ({"retries": "0"}, ONCE, "needs retries above 0"),
    "a delivery longer than its transaction": ({"delivery.timeout.ms": "90000"}, ONCE, "must not be larger than transaction.timeout.ms"),
    "a delivery shorter than its linger": ({"delivery.timeout.ms": "5"}, ONCE, "must be larger than linger.ms"),
}


@pytest.mark.parametrize(("stated", "guarantee", "said"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_is_wrong_is_said(stated: dict[str, str], guarantee: Guarantee, said: str) -> None:
    [found] = producer_settings.mistakes(stated, guarantee)
    assert said in found


def test_without_idempotence_acks_and_flights_are_free() -> None:
    free = {"enable.idempotence": "false", "acks": "1", "max.in.flight.requests.per.connection": "100", "retries": "0"}
    assert producer_settings.mistakes(free, LEAST) == []


def test_a_connection_setting_that_the_client_refuses_is_named_without_its_value() -> None:
    for wrong in ({"sasl.unknown": "xyzzy"}, {"security.protocol": "xyzzy"}):
        with pytest.raises(SetupError, match=next(iter(wrong))) as raised:
            settings.client(Producer, {"bootstrap.servers": "127.0.0.1:1", **wrong}, "a.kafka")
        assert "xyzzy" not in str(raised.value)
