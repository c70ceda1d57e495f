"""What a test gives in place of a session, where everything is work of the process."""

from typing import NoReturn


def no_spark() -> NoReturn:
    """Whoever asks for Spark fails."""
    raise AssertionError("this is work of the process, and asked for Spark")
