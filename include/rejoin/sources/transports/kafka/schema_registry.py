"""A schema registry that speaks Confluent's protocol: gives the schema that a message names by its id."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from rejoin.errors import RejoinError, SchemaUnknown, SourceDenied, SourceDown

URL, USER = "schema.registry.url", "schema.registry.basic.auth.user.info"
SECONDS = 10.0


class SchemaRegistry:
    """The registry of a connection.

    Args:
        at: the name of the connection, for messages.
        settings: ``URL``, and ``USER`` where it asks for one.
    """

    def __init__(self, at: str, settings: Mapping[str, str]) -> None:
        self._at, self._url = at, settings[URL].rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if user := settings.get(USER):
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"

    def schema(self, id_: int) -> Any:
        """An Avro schema.

        Raises:
            SchemaUnknown: the registry has none of this id, or one of another kind.
            SourceDenied, SourceDown: it does not let us in, or does not answer.
        """
        request = urllib.request.Request(f"{self._url}/schemas/ids/{id_}", headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                found = json.load(answer)
                kind, schema = found.get("schemaType", "AVRO"), json.loads(found["schema"])
        except urllib.error.HTTPError as error:
            raise self._coded(error.code, id_) from None
        except (OSError, ValueError, KeyError) as error:
            what = f"the schema registry of source {self._at!r} gave no answer ({type(error).__name__}); nothing was committed"
            raise SourceDown(what, next_step="try again later") from None
        if kind != "AVRO" or found.get("references"):
            raise SchemaUnknown(
                f"schema {id_} in the registry of source {self._at!r} is {kind}{' with references' if kind == 'AVRO' else ''}; nothing was committed",
                expected="an Avro schema that is whole by itself",
            )
        return schema

    def _coded(self, status: int, id_: int) -> RejoinError:
        what = f"the schema registry of source {self._at!r} does not give schema {id_} (HTTP {status}); nothing was committed"
        if status in (401, 403):
            return SourceDenied(what, next_step=f"check {USER}")
        if status == 404:
            return SchemaUnknown(
                what, expected="the registry that the topic's producer has written to", next_step=f"correct {URL} of [sources.{self._at}]"
            )
        return SourceDown(what, next_step="try again later")
