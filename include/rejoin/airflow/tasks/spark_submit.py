"""A task that can be given to spark-submit: what stages and commands have in common."""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from rejoin.airflow.tasks.deployment import CONNECTION, Engine, engine_of, place, python_path
from rejoin.errors import by_exit_code

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from rejoin.lake.config import LakeConfig


class RejoinOperator(SparkSubmitOperator):
    """Base of rejoin's tasks: which engine the deployment has chosen, and how to submit to it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(conn_id=CONNECTION, name="rejoin", **settings)

    def on_kill(self) -> None:
        """Stops what spark-submit started."""
        if self._hook is not None:
            super().on_kill()

    @staticmethod
    def engine() -> Engine:
        """What the connection says."""
        return engine_of(_connection())

    @staticmethod
    def remote() -> str:
        """The address of the Spark Connect server."""
        return SparkConnectHook(CONNECTION).get_connection_url()

    def submit(self, context: "Context", config: "LakeConfig", job: str, arguments: list[str]) -> None:
        """Runs ``jobs/<job>`` by spark-submit with the lake's settings.

        Raises:
            RejoinError: the job ended with one of rejoin's exit codes: transient or terminal.
            AirflowException: it ended with another one.
        """
        from rejoin.lake.spark.session import spark_submit

        with tempfile.TemporaryDirectory() as directory:
            # In a file that only we can read.
            self.properties_file = _properties(Path(directory) / "rejoin.conf", config, _master())
            self.application, self.application_args = str(Path(place().jobs) / job), arguments
            if shutil.which("spark-submit") is None:
                self._spark_binary = spark_submit()  # the one of this environment's pyspark
            self.env_vars = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path()}
            try:
                super().execute(context)
            except AirflowException as error:
                submitted = self._hook and self._hook._submit_sp  # noqa: SLF001  there is no other way to the exit code
                raise_known(submitted.poll() if submitted else None, job, error)
                raise


def raise_known(code: int | None, job: str, cause: BaseException | None = None) -> None:
    """Raises what an exit code stands for, if it stands for one of rejoin's errors."""
    if known := by_exit_code(code):
        raise known(f"{job} ended with exit code {code}", next_step="its own message is in this log") from cause


def _connection() -> "Connection | None":
    try:
        return BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return None


def _master() -> str:
    """The master that the connection names."""
    connection = _connection()
    return (connection.host if connection is not None else None) or "local"


def _properties(file: Path, config: "LakeConfig", master: str) -> str:
    from rejoin.lake.spark.session import properties, static_settings

    named = replace(config, spark={**config.spark, "spark.master": master})
    settings = {k: v for k, v in static_settings(named).items() if k not in ("spark.master", "spark.app.name")}
    settings.setdefault("spark.pyspark.driver.python", sys.executable)  # the lake may name another one for executors
    file.touch(mode=0o600)
    file.write_text(properties(settings))
    return str(file)
