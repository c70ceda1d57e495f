"""What a sink does or refuses (exit code 7, 4 where another attempt took over, or 75 where waiting helps).

The run is committed whatever happens to a sink.
"""

from rejoin.errors.base import TerminalError, TransientError


class SinkError(TerminalError):
    """Base of the errors of sinks that need somebody to act."""

    code = "SINK"
    exit_code = 7


class SinkDown(TransientError):
    """A sink does not answer, or stopped answering. What it had not committed comes again."""

    code = "SINK_DOWN"


class SinkSlow(TransientError):
    """A sink answers too slowly: records waited longer than ``delivery.timeout.ms``, or a statement longer than its limit."""

    code = "SINK_SLOW"


class SinkBufferFull(TransientError):
    """The producer's memory was full for longer than ``max.block.ms``."""

    code = "SINK_BUFFER_FULL"


class SinkConflict(TransientError):
    """A database refused a transaction again and again because of others: deadlock, serialization, lock timeout."""

    code = "SINK_CONFLICT"


class SinkFenced(TerminalError):
    """A newer attempt delivers to the same sink; this one has stopped."""

    code = "SINK_FENCED"
    exit_code = 4


class SinkTargetMissing(SinkError):
    """The topic does not exist."""

    code = "SINK_TARGET_MISSING"


class SinkSchemaRefused(SinkError):
    """The target table or index does not fit the output, or a schema registry refuses the output's schema."""

    code = "SINK_SCHEMA"


class SinkRecordRefused(SinkError):
    """The target refuses a record: a constraint, a value that does not fit its column."""

    code = "SINK_RECORD"


class SinkMessageTooLarge(SinkError):
    """A record is larger than the producer or the topic allows."""

    code = "SINK_MESSAGE_TOO_LARGE"


class SinkDenied(SinkError):
    """The sink does not let rejoin in, or does not allow what the delivery needs to do."""

    code = "SINK_DENIED"


class SinkCursorLost(SinkError):
    """The sink has no cursor, and the ledger says that it had one: the target was made anew or restored."""

    code = "SINK_CURSOR_LOST"


class SinkCursorAhead(SinkError):
    """The sink has seen runs that the lake does not have."""

    code = "SINK_CURSOR_AHEAD"


class SinksBehind(SinkError):
    """The run is committed, and some sinks did not get it; the message has the error of each."""

    code = "SINKS_BEHIND"
