"""From a sink's settings to a client."""

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

from rejoin.errors import SetupError

TIMEOUT_SECONDS = 60
_TLS = ("ca_certs", "client_cert", "client_key")
_KNOWN = ("url", "user", "password", "api_key", "timeout", *_TLS)


def client(sink: str, where: Mapping[str, str]) -> OpenSearch:
    """A client, not connected yet. It repeats nothing by itself, but asks the next one of several addresses.

    Args:
        sink: the sink, for messages.
        where: ``url`` (several with commas between them), and as wanted ``user`` and ``password``, ``api_key`` (Elasticsearch's), ``timeout`` in seconds,
            ``ca_certs``, ``client_cert`` and ``client_key`` (files).

    Raises:
        SetupError: a setting is unknown or no number.
    """
    unknown = sorted(set(where) - set(_KNOWN))
    timeout = where.get("timeout", str(TIMEOUT_SECONDS))
    if unknown or not timeout.isdecimal():
        said = f"unknown settings {', '.join(unknown)}" if unknown else "timeout is no whole number of seconds"
        raise SetupError(
            f"sink {sink!r}: {said}", expected=", ".join(_KNOWN), next_step="correct the sink's section in the lake's .toml file"
        )
    hosts = [url.strip() for url in where["url"].split(",")]
    more: dict[str, Any] = {name: where[name] for name in _TLS if name in where}
    if "user" in where:
        more["http_auth"] = (where["user"], where.get("password", ""))
    if "api_key" in where:
        more["headers"] = {"Authorization": f"ApiKey {where['api_key']}"}
    return OpenSearch(hosts, timeout=int(timeout), max_retries=len(hosts) - 1, **more)
