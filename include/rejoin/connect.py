"""A Spark Connect server for one lake, in the place of this process: ``python -m rejoin.connect``.

It has the settings of a session inside a process (``lake/session.py``), so a step gives the same tables either way.
"""

import os
import sys
from pathlib import Path

import click

from rejoin.errors import RejoinError, SetupError
from rejoin.lake.config import lake_config
from rejoin.setup_check import java_problem

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@click.command(help="Serves Spark Connect for the lake until it is stopped.")
@click.option("--lake", "location", envvar="REJOIN_LAKE", default="lake", show_default=True)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. There is no login: whoever reaches it runs code."
)
@click.option("--port", default=15002, show_default=True)
@click.option("--memory", default="4g", show_default=True, help="Heap of the server's JVM.")
def main(location: str, host: str, port: int, memory: str) -> None:
    try:
        command, environment = server(location, host, port, memory)
    except RejoinError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    os.execve(command[0], command, environment)


def server(location: str, host: str, port: int, memory: str) -> tuple[list[str], dict[str, str]]:
    """The command that becomes the server, and its environment.

    Raises:
        SetupError: no Java 17 or 21, a jar is missing, or ``location`` names no lake.
    """
    from rejoin.lake.session import properties, spark_submit, static_settings

    if problem := java_problem():
        raise SetupError(problem)
    settings = static_settings(lake_config(location)) | {
        "spark.driver.memory": memory,
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
    }
    file = os.memfd_create("settings", flags=0)  # a file of memory, that ends with the server
    os.write(file, properties(settings).encode())
    submit = spark_submit()
    command = [submit, "--properties-file", f"/dev/fd/{file}", "--class", SERVER, "local"]
    environment = {**os.environ, "SPARK_HOME": str(Path(submit).parents[1]), "PYSPARK_PYTHON": sys.executable}
    environment.pop("SPARK_REMOTE", None)
    environment.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "lake" / "spark_conf"))
    return command, environment


if __name__ == "__main__":
    main()
