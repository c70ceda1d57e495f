"""The classes that all errors are of: whether a retry can help is a type, so a scheduler decides by ``isinstance``, a shell by the exit code."""

from typing import ClassVar


class RejoinError(Exception):
    """Base of all errors raised on purpose.

    Args:
        what: what happened and where, in one sentence, with names and coordinates but no row values.
        expected: what would have been right.
        next_step: what the reader should do now.
    """

    code: ClassVar[str] = "REJOIN"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, expected: str = "", next_step: str = "") -> None:
        self.what, self.expected, self.next_step = what, expected, next_step
        super().__init__(what, expected, next_step)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process boundaries (Spark workers, Airflow), so they pickle by their arguments."""
        return _rebuild, (type(self), self.what, self.expected, self.next_step)

    def __str__(self) -> str:
        parts = [f"{self.code} {self.what}"]
        if self.expected:
            parts.append(f"  expected: {self.expected}")
        if self.next_step:
            parts.append(f"  to go on: {self.next_step}")
        return "\n".join(parts)


def _rebuild(kind: type[RejoinError], what: str, expected: str, next_step: str) -> RejoinError:
    return kind(what, expected=expected, next_step=next_step)


class TransientError(RejoinError):
    """Trying again later can succeed without anybody doing anything."""

    code = "TRANSIENT"
    exit_code = 75  # EX_TEMPFAIL of sysexits.h


class TerminalError(RejoinError):
    """Trying again changes nothing: the input, the topology or the set-up has to change first."""

    code = "TERMINAL"


def by_exit_code(code: int | None) -> type[RejoinError] | None:
    """The kind of error that an exit code of the command line or of a job stands for; None if it stands for none of ours."""
    terminal = {k.exit_code for k in TerminalError.__subclasses__()} - {TerminalError.exit_code}
    if code == TransientError.exit_code:
        return TransientError
    return TerminalError if code in terminal else None
