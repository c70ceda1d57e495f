"""What is wrong with a topology file or a test of it (exit code 2)."""

from dataclasses import dataclass, field

from rejoin.errors.base import TerminalError


@dataclass(frozen=True)
class Problem:
    """One mistake in a topology file: a stable code, the sentence for the user, and the user's own line."""

    code: str
    message: str
    file: str = field(default="")
    line: int = field(default=0)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.message}"


class TopologyError(TerminalError):
    """A topology file has mistakes; ``problems`` lists all of them, each with its line."""

    code = "TOPOLOGY"
    exit_code = 2

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"topology {name!r} has {count}; nothing was run\n" + "\n".join(f"  {p}" for p in problems))

    def __reduce__(self) -> tuple[object, ...]:
        return TopologyError, (self.name, self.problems)


class TopologyFileError(TerminalError):
    """A topology file is missing, does not run, or holds no (or more than one) topology."""

    code = "TOPOLOGY_FILE"
    exit_code = 2


class ExpressionRefused(TerminalError):
    """Spark cannot analyze an expression of the topology that rejoin has no rules for; nothing was read or opened."""

    code = "EXPRESSION_REFUSED"
    exit_code = 2


class PlanNotApproved(TerminalError):
    """Nobody agreed to what an edited topology rebuilds, leaves behind or changes for readers of a sink, or to what a table that goes on loses. Nothing was
    done.
    """

    code = "PLAN_NOT_APPROVED"
    exit_code = 2


class BadTestTable(TerminalError):
    """A text of a test (``rejoin.testing``) is not a table, or does not fit the table that it stands for. The message quotes the test's own text."""

    code = "BAD_TEST_TABLE"
    exit_code = 2
