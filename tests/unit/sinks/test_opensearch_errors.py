"""Which answers of a server are over by themselves, and which somebody has to act upon; and the settings of a client."""

import pytest
from opensearchpy import exceptions as os

from rejoin.errors import (
    RejoinError,
    SetupError,
    SinkDenied,
    SinkDown,
    SinkError,
    SinkMessageTooLarge,
    SinkSchemaRefused,
    SinkSlow,
    SinkTargetMissing,
)
from rejoin.sinks.opensearch.client import client
from rejoin.sinks.opensearch.errors import coded_errors

INFO = {"error": {"type": "x_exception", "reason": "row (1, secret)"}}
ERRORS: dict[str, tuple[os.TransportError, str, type[RejoinError]]] = {
    "no answer in time": (os.ConnectionTimeout("TIMEOUT", "secret", Exception("secret")), "writing to", SinkSlow),
    "a certificate": (os.SSLError("N/A", "secret", Exception("secret")), "writing to", SinkDenied),
    "no connection": (os.ConnectionError("N/A", "secret", Exception("secret")), "writing to", SinkDown),
    "no room": (os.TransportError(429, "x_exception", INFO), "writing to", SinkSlow),
    "down": (os.TransportError(503, "x_exception", INFO), "writing to", SinkDown),
    "a wrong password": (os.AuthenticationException(401, "x_exception", INFO), "writing to", SinkDenied),
    "no rights": (os.AuthorizationException(403, "x_exception", INFO), "writing to", SinkDenied),
    "no index": (os.NotFoundError(404, "x_exception", INFO), "writing to", SinkTargetMissing),
    "too large": (os.TransportError(413, "x_exception", INFO), "writing to", SinkMessageTooLarge),
    "a mapping that is refused": (os.RequestError(400, "x_exception", INFO), "preparing", SinkSchemaRefused),
    "a request that is refused": (os.RequestError(400, "x_exception", INFO), "writing to", SinkError),
}


@pytest.mark.parametrize(("error", "doing", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_an_answer_is_told_by_its_name_and_without_values(error: os.TransportError, doing: str, expected: type[RejoinError]) -> None:
    with pytest.raises(expected) as raised, coded_errors("out.search", "people", doing):
        raise error
    said = str(raised.value)
    assert type(raised.value) is expected and "'people'" in said and "secret" not in said
    assert "x_exception" in said or not isinstance(error.status_code, int)


def test_a_clients_settings() -> None:
    made = client("s", {"url": "https://me:s3cret@a:9200, https://b:9201/search", "ca_certs": __file__, "timeout": "5", "api_key": "k3y"})
    one, two = made.transport.hosts
    assert (one["host"], one["http_auth"], two["url_prefix"]) == ("a", "me:s3cret", "/search")
    assert made.transport.max_retries == 1, "the other address"
    made.close()


@pytest.mark.parametrize(
    ("more", "said"), [({"pasword": "s3cret"}, "unknown settings pasword"), ({"timeout": "5s"}, "timeout is no whole number")]
)
def test_a_setting_that_is_wrong_is_told_without_its_value(more: dict[str, str], said: str) -> None:
    with pytest.raises(SetupError, match=said) as raised:
        client("s", {"url": "http://a:9200", **more})
    assert "s3cret" not in str(raised.value)
