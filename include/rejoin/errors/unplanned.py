"""Errors that were not raised on purpose (exit code 1); made by ``rejoin.failures.engine_errors``."""

from rejoin.errors.base import RejoinError


class EngineFailed(RejoinError):
    """Spark, DuckDB, a database ... gave up. Whether trying again helps is not known."""

    code = "ENGINE_FAILED"


class Unexpected(RejoinError):
    """Anything else: probably a fault of rejoin."""

    code = "UNEXPECTED"
