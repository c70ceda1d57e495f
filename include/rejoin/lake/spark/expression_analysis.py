"""What rejoin has no rules for is shown to Spark before a run opens: analysis only, no row is read."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rejoin.errors import ExpressionRefused
from rejoin.lake.ledger.ledger import Ledger
from rejoin.plan.model.plan import Plan
from rejoin.plan.sql import types
from rejoin.plan.sql.unchecked import Unchecked, unchecked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_wrong_expressions(plan: Plan, ledger: Ledger, spark: "Callable[[], SparkSession]") -> None:
    """Lets Spark analyze the expressions that are not typed and that no run has committed yet. Starts no session if there are none.

    Raises:
        ExpressionRefused: Spark refuses at least one; all are named.
    """
    asked = unchecked(plan)
    if asked and (head := ledger.head()) is not None:
        done = set(unchecked(ledger.run(head).plan))
        asked = tuple(one for one in asked if one not in done)
    found = [f"  {one.title}: {one.sql}: {said}" for one in asked if (said := _mistake(spark(), one)) is not None]
    if found:
        raise ExpressionRefused(
            "\n".join([f"topology {plan.topology!r} has {len(found)} expression(s) that Spark refuses; nothing was read", *found]),
            next_step="correct them in the topology file",
        )


def _mistake(spark: "SparkSession", one: Unchecked) -> str | None:
    """What Spark says of an expression, in one line; no row is there that it could quote."""
    from pyspark.errors import AnalysisException
    from pyspark.errors import ParseException as SyntaxRefused

    try:
        [field] = spark.sql(f"SELECT {one.sql} AS x FROM {one.scope}").schema.fields
    except (AnalysisException, SyntaxRefused) as error:
        return str(error).strip().splitlines()[0].split(" SQLSTATE")[0]
    of = field.dataType.simpleString()
    found = types.canonical(of)
    if found is None:
        return types.refused(of.upper())
    return None if one.must_be in (None, found) else f"it must be {one.must_be}, this is {found}"
