"""A transport of messages that a test keeps."""

from collections.abc import Collection, Iterator, Sequence

from rejoin.plan.model.plan import Table
from rejoin.plan.pin import Part, Pin
from rejoin.sources.access import SourceAccess
from rejoin.sources.transports.messages import Message, Messages, MessageTransport
from rejoin.sources.transports.transport import Taken, Waiting


class Kept(MessageTransport):
    """Messages that are kept here."""

    kept: list[Messages]

    def waiting(self, last: Pin | None, taken: Taken) -> Waiting:
        raise NotImplementedError

    def check(self, part: Part) -> None:
        raise NotImplementedError

    def messages(self, part: Part, wanted: Collection[int] | None = None) -> Iterator[Messages]:
        for some in self.kept:
            yield Messages.of(m for m in some.each() if wanted is None or m.offset in wanted)

    def topic(self, part: Part) -> str:
        return "orders"


def keeping(of: Table, messages: Sequence[Message], at_once: int = 700) -> Kept:
    """The transport of a table whose source has these messages."""
    made = Kept(of, SourceAccess("."))
    made.kept = [Messages.of(messages[i : i + at_once]) for i in range(0, len(messages), at_once)]
    return made
