"""A task that is a command of ``rejoin``: maintenance, verification. Its output is the task's log."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rejoin.airflow.tasks.deployment import Engine, place, python_path
from rejoin.airflow.tasks.spark_submit import RejoinOperator, raise_known

if TYPE_CHECKING:
    from airflow.sdk import Context

DIFFERENCES = 1
"""What ``rejoin verify`` ends with if an output differs from its SQL."""


class CommandOperator(RejoinOperator):
    """One command on one topology.

    Args:
        command: the words after ``rejoin``; Airflow's templates are rendered in each, and empty words left out.
        topology: the topology's name; templates are rendered in it, too. Empty: the command finds it by itself.
        settings: those of any operator.

    Raises:
        RejoinError: as the command's exit code says.
        AirflowFailException: ``verify`` found differences.
        AirflowException: the command ended with an unexpected error.
    """

    template_fields = (*RejoinOperator.template_fields, "command", "topology")
    ui_color = "#f5ecd7"

    def __init__(self, *, command: list[str], topology: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.command, self.topology = command, topology

    def execute(self, context: "Context") -> None:
        """Runs it."""
        from rejoin.lake.config import lake_config

        lake = place().lake
        words = [*(w for w in self.command if w), "--lake", lake, *(("--topology", self.topology) if self.topology else ())]
        engine = self.engine()
        if engine is Engine.SUBMIT:
            self.submit(context, lake_config(lake), "command.py", words)
            return
        environment = os.environ | ({"SPARK_REMOTE": self.remote()} if engine is Engine.CONNECT else {})
        environment["PYTHONPATH"] = python_path()
        with subprocess.Popen(
            [sys.executable, "-m", "rejoin.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as started:
            assert started.stdout is not None
            for line in started.stdout:
                self.log.info(line.rstrip())
        code = started.returncode
        raise_known(code, f"rejoin {self.command[0]}")
        if code == DIFFERENCES and self.command[0] == "verify":
            raise AirflowFailException(f"topology {self.topology}: an output is not what its SQL says; see above, and rejoin's page")
        if code:
            raise AirflowException(f"rejoin {self.command[0]} ended with exit code {code}")
