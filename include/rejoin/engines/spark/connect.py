"""Statements over frames by Spark Connect.

``session.sql(text, **frames)`` runs the statement as a command there and then, and the server then answers what was observed of the frames before
anything was computed: nothing. A statement that is part of a plan is told with the plan. There is no public call that makes one (PySpark 4.1).
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.observation import Observation
from pyspark.sql.connect.plan import SQL, SubqueryAlias


class _Statement(SQL):
    """A statement that knows what is observed of its inputs."""

    @property
    def observations(self) -> dict[str, Observation]:
        return {name: seen for view in self._views or () for name, seen in view.observations.items()}


def statement(text: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a statement over views, of which there is at least one."""
    plans = [SubqueryAlias(frame._plan, name) for name, frame in views.items()]  # type: ignore[arg-type]  # noqa: SLF001
    session = next(iter(views.values())).sparkSession
    return ConnectFrame(_Statement(text, [], {}, plans), session)  # type: ignore[arg-type]
