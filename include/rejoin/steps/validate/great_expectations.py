"""Asks Great Expectations: by its pandas engine about rows on the driver, by its Spark engine about frames. Nothing leaves the machine."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rejoin.steps.validate.questions import Answer, Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 20
"""So many bad values at most stand in the Data Docs of an expectation."""
_META = "rejoin"


@dataclass
class Session:
    """The batches of one table or node that were asked about. ``docs``: a directory that gets their Data Docs; None: nowhere."""

    docs: Path | None
    _context: Any = field(default=None, init=False)
    _batches: int = field(default=0, init=False)

    def ask_rows(self, label: str, rows: pa.Table, questions: Sequence[Question]) -> list[Answer]:
        """About rows on the driver."""
        return self._ask(label, self._batch("pandas"), _pandas(rows), questions)

    def ask_frame(self, label: str, frame: "DataFrame", questions: Sequence[Question]) -> list[Answer]:
        """About a frame, by Spark."""
        return self._ask(label, self._batch("spark"), frame, questions)

    def bad_rows(self, rows: pa.Table, questions: Sequence[Question]) -> dict[int, list[int]]:
        """Number of a question -> the rows (from 0) that break it."""
        wanted: dict[str, Any] = {"result_format": "COMPLETE"}
        results = self._definition("bad rows", self._batch("pandas"), questions).run(
            batch_parameters={"dataframe": _pandas(rows)}, result_format=wanted
        )
        return {_number(r): [int(i) for i in r.result.get("unexpected_index_list") or ()] for r in results.results}

    def bad_keys(self, frame: "DataFrame", questions: Sequence[Question], key: Sequence[str]) -> dict[int, list[tuple[Any, ...]]]:
        """Number of a question -> the keys of the rows that break it."""
        wanted: dict[str, Any] = {"result_format": "COMPLETE", "unexpected_index_column_names": list(key)}
        results = self._definition("bad keys", self._batch("spark"), questions).run(
            batch_parameters={"dataframe": frame}, result_format=wanted
        )
        return {_number(r): [tuple(i[k] for k in key) for i in r.result.get("unexpected_index_list") or ()] for r in results.results}

    def _ask(self, label: str, batch: Any, data: Any, questions: Sequence[Question]) -> list[Answer]:
        if not questions:
            return []
        import great_expectations as gx
        from great_expectations.checkpoint.actions import UpdateDataDocsAction, ValidationAction

        definition = self._definition(label, batch, questions)
        actions: list[ValidationAction] = []
        if self.docs is not None:
            actions.append(UpdateDataDocsAction(name="docs", site_names=["docs"]))
        checkpoint = self._gx().checkpoints.add(
            gx.Checkpoint(
                name=f"{label} {self._batches}",
                validation_definitions=[definition],
                actions=actions,
                result_format={"result_format": "SUMMARY", "partial_unexpected_count": SHOWN},
            )
        )
        done = checkpoint.run(batch_parameters={"dataframe": data})
        return [_answer(r) for results in done.run_results.values() for r in results.results]

    def _definition(self, label: str, batch: Any, questions: Sequence[Question]) -> Any:
        import great_expectations as gx
        from great_expectations.expectations.registry import get_expectation_impl

        made = [get_expectation_impl(q.type)(**q.kwargs, meta={_META: q.number}, notes=q.title) for q in questions]
        name = f"{label} {self._batches}"
        suite = self._gx().suites.add(gx.ExpectationSuite(name=name, expectations=made))
        return self._gx().validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))

    def _batch(self, kind: str) -> Any:
        self._batches += 1
        sources, name = self._gx().data_sources, f"{kind} {self._batches}"
        made = sources.add_pandas(name) if kind == "pandas" else sources.add_spark(name, persist=False)
        return made.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")

    def _gx(self) -> Any:
        if self._context is None:
            self._context = _context(self.docs)
        return self._context


def _context(docs: Path | None) -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the package is loaded
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig

    bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False), progress_bars=bars, analytics_enabled=False
    )
    context: Any = gx.get_context(mode="ephemeral", project_config=config)
    if docs is not None:
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        context.add_data_docs_site(
            site_name="docs", site_config={"class_name": "SiteBuilder", "site_index_builder": index, "store_backend": store}
        )
    return context


def _pandas(rows: pa.Table) -> Any:
    """Integers with nulls stay integers: as floating point numbers, large ones would be others."""
    return rows.to_pandas(integer_object_nulls=True, date_as_object=True)


def _number(result: Any) -> int:
    return int(result.expectation_config.meta[_META])


def _raised(info: Mapping[str, Any]) -> str:
    """The class of what was raised: messages hold values."""
    last = str(info.get("exception_traceback") or "").strip().split("\n")[-1]
    found = re.match(r"[\w.]+(?=:|$)", last)
    return found[0] if found else "an exception"


def _answer(result: Any) -> Answer:
    found = result.result or {}
    error = None
    if not result.success:
        infos = [result.exception_info or {}, *(v for v in (result.exception_info or {}).values() if isinstance(v, dict))]
        error = next((_raised(i) for i in infos if i.get("raised_exception")), None)
    observed = found.get("observed_value")
    return Answer(
        number=_number(result),
        met=bool(result.success),
        checked=int(found.get("element_count") or 0),
        unexpected=int(found.get("unexpected_count") or 0),
        observed=None if observed is None else str(observed),
        error=error,
    )
