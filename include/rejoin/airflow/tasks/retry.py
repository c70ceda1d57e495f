"""Which failed tasks are tried again, and when: rejoin's errors say it by their type."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy

from rejoin.errors import RejoinError, RunBusy, TerminalError

if TYPE_CHECKING:
    from airflow.sdk import Context

WAIT_FOR_RUN = timedelta(seconds=20)
"""Between two looks whether somebody else's run has ended."""
LONGEST = timedelta(minutes=5)
"""The longest wait between two tries."""


class RetryByError(RetryPolicy):
    """Terminal errors fail at once; an open run of somebody else is waited for; anything else is tried ``tries`` times, ever later."""

    def __init__(self, tries: int, first: timedelta) -> None:
        self.tries, self.first = tries, first

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: "Context | None" = None) -> RetryDecision:  # noqa: ARG002
        """What to do about a failed try; ``max_tries`` is the task's own bound, which a retry never exceeds."""
        if isinstance(exception, TerminalError):
            return RetryDecision.fail(f"{exception.code}: trying again changes nothing")
        if isinstance(exception, RunBusy):
            return RetryDecision.retry(WAIT_FOR_RUN, "another run is open; waiting for it")
        if try_number > self.tries:
            return RetryDecision.fail(f"tried {try_number} times")
        return RetryDecision.retry(min(self.first * 2 ** (try_number - 1), LONGEST), f"{_name(exception)}: may pass")

    def serialize(self) -> dict[str, Any]:
        """The parameters."""
        return {"tries": self.tries, "first": self.first.total_seconds()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "RetryByError":
        """The reverse."""
        return cls(data["tries"], timedelta(seconds=data["first"]))


def _name(error: BaseException) -> str:
    return error.code if isinstance(error, RejoinError) else type(error).__name__
