"""How the path of a source names a topic: ``kafka://<name of the connection>/<topic>``. The address of its cluster is in no plan."""

import re
from typing import NamedTuple

SCHEME = "kafka"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_TOPIC = r"[A-Za-z0-9._-]{1,249}"
_PATH = re.compile(rf"{SCHEME}://({_NAME})/({_TOPIC})")


class TopicPath(NamedTuple):
    """A topic, and the connection (``[sources.<at>]``) by which it is reached."""

    at: str
    topic: str

    def __str__(self) -> str:
        return f"{SCHEME}://{self.at}/{self.topic}"


def topic_path(path: str) -> TopicPath | None:
    """The topic that a path names; None if it names none. Names of topics are those that Kafka allows."""
    found = _PATH.fullmatch(path)
    return None if found is None or found[2] in (".", "..") else TopicPath(found[1], found[2])


def place_said(part: str, at: int) -> str:
    """Where a record stands: in a part of what was pinned, at a line of a file or an offset of a topic's partition."""
    return f"{part} {'offset' if names_topic(part) else 'line'} {at}"


def names_topic(path: str) -> bool:
    """Whether a path is meant to name a topic."""
    return path.lower().startswith(f"{SCHEME}://")
