"""What an engine is to those who use it: it runs statements over relations, and says where the rows are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from rejoin.limits import limits
from rejoin.plan.model.expectations import Expectation
from rejoin.plan.model.plan import Node, Table
from rejoin.statements.dialect import Dialect, picked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Counts = Callable[[], dict[str, Any]]
"""What was counted of a relation, known once its rows were computed."""


class RangeWork(Protocol[T_co]):
    """Work on the rows of a range, which come in order and are computed as they are taken."""

    def __call__(self, rows: Iterator[pa.RecordBatch], /, writers: int) -> T_co:
        """``writers``: how many files may be written at once."""


class NeedsSpark(Exception):
    """This process should not do the work, and why, as a part of a sentence."""


class Relation(ABC):
    """A relation with named columns, here or yet to be computed."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of its columns, none of them required."""

    @abstractmethod
    def here(self) -> pa.Table:
        """Its rows in this process. Only for relations that are known to be small."""

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.schema.names)

    @property
    def local(self) -> pa.Table | None:
        """Its rows, if they are few and belong to this process; None: they may be many, and are computed where somebody takes them."""
        return None


class OnSpark(Protocol):
    """An engine whose relations are Spark's frames."""

    spark: "SparkSession"
    sql: Dialect

    def of(self, frame: "DataFrame", *over: Relation) -> Relation:
        """A frame as a relation; ``over``: what it reads."""

    def frame(self, rows: Relation) -> "DataFrame":
        """A relation as a frame."""


class LocalRelation(Relation):
    """Few rows, in this process."""

    def __init__(self, arrow: pa.Table) -> None:
        self._arrow = arrow

    @property
    def arrow(self) -> pa.Table:
        """The rows."""
        return self._arrow

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f.name, _loose(f.type)) for f in self.arrow.schema])

    def here(self) -> pa.Table:
        return self.arrow

    @property
    def local(self) -> pa.Table:
        return self.arrow


@dataclass(frozen=True)
class KeySpread:
    """How the keys of many rows lie.

    Attributes:
        keys: a relation with such keys, or with keys that lie alike; only a sample is looked at.
        columns: the columns of the key there.
        rows: how many rows there are, about.
        beside: how many rows have to be read for each range of keys, whichever it is.
        nulls: parts of a key may be null.
    """

    keys: Relation
    columns: Sequence[str]
    rows: int
    beside: int = 0
    nulls: bool = False


def _loose(kind: pa.DataType) -> pa.DataType:
    """The type with no field required, and one name of UTC: Spark and DuckDB say more than a table should."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _loose(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _loose(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_loose(kind.value_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return kind


class Engine(ABC):
    """Runs statements. ``sql`` is the dialect that it takes; ``in_process``: it is this process that runs them."""

    sql: Dialect
    in_process: bool

    @abstractmethod
    def query(self, statement: str, **inputs: Relation) -> Relation:
        """The rows of a statement over inputs, which it names as tables."""

    @abstractmethod
    def rows(self, arrow: pa.Table, *, many: bool = False) -> Relation:
        """Rows of this process as a relation; ``many``: worked on by all cores."""

    @abstractmethod
    def files(self, text: str) -> Relation | None:
        """The rows of files that DuckDB's SQL text names; None: this engine reads tables by itself."""

    @property
    @abstractmethod
    def at_once(self) -> int:
        """How many ranges, or streams, are worked on at once. Only where ``in_process``."""

    @abstractmethod
    def landed(self, schema: pa.Schema, streams: Sequence[Iterable[pa.RecordBatch]], rare: Sequence[str], by: Sequence[str]) -> Relation:
        """Rows that come in batches, in several streams that are taken side by side. Only where ``in_process``.

        Args:
            schema: their columns.
            streams: the rows; each can be taken once, here or in another process.
            rare: columns that hold nothing in nearly all rows.
            by: the key by whose ranges they are asked for later.
        """

    def ranged(self, rows: Relation, by: Sequence[str], spread: KeySpread | None) -> Relation:  # noqa: ARG002
        """The relation, of which ``each_range`` shall take ranges of the key ``by``. ``spread``: how the keys lie; None: they are better not cut."""
        return rows

    def keyed(self, rows: Relation, key: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> Relation:  # noqa: ARG002
        """The relation, a ``query`` each of whose rows is made of rows of some inputs with the same key: ``key`` there, in an input the columns that are named.
        So of a range of that key, only rows of the range are read of them, also where the engine cannot tell that by itself.
        """
        return rows

    def gathered(self, rows: Relation, by: Sequence[str], at_most: int) -> Relation:  # noqa: ARG002
        """The same for rows that come in another order than that of the key, or of which nobody knows how many there are but that they are many (``at_most`` is
        then ``limits().large``): they are computed once for all ranges.
        """
        return rows

    def apart(self, rows: Relation, by: Sequence[str], lies: Callable[[], KeySpread]) -> Relation:  # noqa: ARG002
        """The relation, of which ranges of the key ``by`` may be computed apart where it is computed once (``gathered``, ``kept``). ``lies``: how that key does."""
        return rows

    @abstractmethod
    def each_range(self, rows: Relation, by: Sequence[str], work: "RangeWork[T]") -> list[T] | None:
        """What some work comes to of each range of rows that are not in this process, several at once. None: this engine writes tables by itself.

        Args:
            rows: the rows.
            by: columns in whose order each range is taken.
            work: may be done in another process, and more than once.
        """

    @abstractmethod
    def everywhere(self, rows: Relation) -> Relation:
        """The relation, sent to every task of a join."""

    @abstractmethod
    def together(self, rows: Relation) -> Relation:
        """The relation as the work of one task."""

    @abstractmethod
    def counted(self, rows: Relation, counts: Mapping[str, str]) -> tuple[Relation, Counts]:
        """The relation, and what the aggregates ``counts`` (name -> SQL text over its columns) come to. It may stand only once in what is executed.

        Exact of rows that are written as they are. Of rows that are grouped or joined before, Spark counts some twice where it lost an executor
        and did a task again: then what is not there still counts as 0, and no more can be relied on.
        """

    def picked(self, rows: Relation, columns: Sequence[str], where: str) -> Relation:
        """Some columns of the rows for which a condition holds."""
        return self.query(picked(self.sql, columns, "rows_", where), rows_=rows)

    @abstractmethod
    def kept(self, rows: Relation) -> AbstractContextManager[Relation]:
        """The relation, computed at most once while the context lasts."""

    @abstractmethod
    def type(self, kind: pa.DataType) -> str:
        """The SQL type of an Arrow type."""

    @abstractmethod
    def node(self, node: Node) -> Node:
        """The node with its texts in this engine's dialect.

        Raises:
            NeedsSpark: a text means something else to this engine.
        """

    @abstractmethod
    def conditions(self, of: Table | Node, expectations: Sequence[Expectation]) -> Sequence[Expectation]:
        """The expectations of a table or node with their conditions in this engine's dialect; raises as ``node`` does."""

    @abstractmethod
    def by_spark(self, why: str) -> "OnSpark":
        """This engine as Spark, for what only Spark does.

        Raises:
            NeedsSpark: it is not Spark.
        """

    def small(self, rows: Relation, at_most: int) -> Relation:
        """The relation computed now and kept in this process, if it has few rows."""
        return LocalRelation(rows.here()) if limits().small(at_most) else rows

    def one(self, statement: str, **inputs: Relation) -> dict[str, Any]:
        """The only row of a statement."""
        (row,) = self.query(statement, **inputs).here().to_pylist()
        return dict(row)
