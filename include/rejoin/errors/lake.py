"""What the lake, its tables, or the set-up refuses (exit codes 2, 4, 5 and 6)."""

from rejoin.errors.base import TerminalError


class SetupError(TerminalError):
    """Java, jars, a setting or a catalog is missing or wrong."""

    code = "SETUP"
    exit_code = 5


class StoreDenied(TerminalError):
    """The object store of the lake does not let rejoin read or write: keys are missing, wrong, or lack permissions."""

    code = "STORE_DENIED"
    exit_code = 5


class StoreMissing(TerminalError):
    """The object store does not have the bucket, or no longer has an object that the lake names."""

    code = "STORE_MISSING"
    exit_code = 5


class SchemaRefused(TerminalError):
    """An edited topology asks for a change that a table cannot make (another key, a narrower or other column type)."""

    code = "SCHEMA_REFUSED"
    exit_code = 5


class InvariantBroken(TerminalError):
    """A check that every run makes on itself failed: a bug or a damaged table. Nothing was made visible."""

    code = "INVARIANT_BROKEN"
    exit_code = 6


class UnknownTable(TerminalError):
    """A command names a table or key that the topology does not have."""

    code = "UNKNOWN_TABLE"
    exit_code = 2


class FileExists(TerminalError):
    """A command would overwrite a file; nothing was written."""

    code = "FILE_EXISTS"
    exit_code = 2


class QueryRefused(TerminalError):
    """A query has a mistake, or is not one SELECT over the lake's tables; nothing was computed."""

    code = "QUERY_REFUSED"
    exit_code = 2


class QueryFailed(TerminalError):
    """A query cannot be computed for the values of some row."""

    code = "QUERY_FAILED"
    exit_code = 2


class RowAbsent(TerminalError):
    """A table has no row with the key that was asked for."""

    code = "ROW_ABSENT"
    exit_code = 4
