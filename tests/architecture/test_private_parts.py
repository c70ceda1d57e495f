"""What rejoin uses of others that is not public: it stands in one room each, and a version that moves it is told by name."""

import ast
import importlib
import inspect
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pyiceberg
import pytest
from checker import PACKAGE, ROOT, imports_of
from pyiceberg.table import Transaction
from pyiceberg.table.update.snapshot import _FastAppendFiles
from sqlglot import tokenizer_core

from rejoin.lake.iceberg.data_file import _Writer
from rejoin.lake.iceberg.file_io import StoreFileIO
from rejoin.lake.iceberg.snapshot_producers import ChangeTransaction, Rewrite, RowDelta, _DeleteManifestWriter
from rejoin.lake.iceberg.sql_catalog import CachingSqlCatalog

THEIRS = sorted(Path(pyiceberg.__file__).parent.rglob("*.py"))
IMPORTED = {
    ("pyiceberg.io.pyarrow", "_pyarrow_to_schema_without_ids"),
    ("pyiceberg.table.update", "_TableMetadataUpdateContext"),
    ("pyiceberg.table.update", "_apply_table_update"),
    ("pyiceberg.table.update", "_update_table_metadata_log"),
    ("pyiceberg.table.update.snapshot", "_FastAppendFiles"),
}
OVERRIDDEN = {
    CachingSqlCatalog: {"_update_and_stage_table"},
    Rewrite: {"_manifests", "_summary"},
    RowDelta: {"_existing_manifests", "_manifests", "_refresh_for_retry", "_summary"},
    StoreFileIO: {"_initialize_fs"},
    _DeleteManifestWriter: {"_meta"},
}
"""Methods that PyIceberg calls, and ours do something else in: were one renamed, nobody would call ours."""
USED = {
    ChangeTransaction: {"_apply", "_table", "_updates"},
    CachingSqlCatalog: {"_load_file_io", "_parse_metadata_version"},
    RowDelta: {"_added_data_files", "_compression", "_io", "_parent_snapshot_id", "_snapshot_id", "_transaction"},
    Rewrite: {"_added_data_files", "_deleted_data_files"},
    _Writer: {"_parquet_writer_kwargs"},
}


def bases(ours: type) -> list[type]:
    return [base for base in ours.__mro__ if base.__module__.startswith("pyiceberg.")]


@cache
def every_import() -> set[tuple[str, str]]:
    return {
        (file.parent.relative_to(ROOT / PACKAGE).as_posix(), name)
        for file in (ROOT / PACKAGE).rglob("*.py")
        for _, name in imports_of(ast.parse(file.read_text()))
    }


def imported(package: str) -> set[tuple[str, str]]:
    """(The room that imports, the full name) of everything that is imported of a package."""
    return {(room, name) for room, name in every_import() if name.partition(".")[0] == package}


def test_private_names_of_pyiceberg_are_imported_in_one_room_and_are_those_of_the_table() -> None:
    found = {(room, name) for room, name in imported("pyiceberg") if name.rpartition(".")[2].startswith("_")}
    assert {room for room, _ in found} == {"lake/iceberg"}
    assert {name for _, name in found} == {f"{module}.{name}" for module, name in IMPORTED}


def test_sqlglot_is_known_in_one_room() -> None:
    assert {room for room, _ in imported("sqlglot")} == {"plan/sql"}


@pytest.mark.parametrize(("module", "name"), sorted(IMPORTED))
def test_pyiceberg_has_what_is_imported(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name), f"PyIceberg {version('pyiceberg')} has moved {module}.{name}"


@pytest.mark.parametrize("ours", OVERRIDDEN, ids=lambda ours: ours.__name__)
def test_pyiceberg_has_the_methods_that_are_overridden(ours: type) -> None:
    assert OVERRIDDEN[ours] == {
        name
        for name, value in vars(ours).items()
        if name.startswith("_")
        and not name.startswith("__")
        and (inspect.isroutine(value) or isinstance(value, property))
        and name in _known(ours)
    }, f"PyIceberg {version('pyiceberg')} does not call what {ours.__name__} overrides"
    for name in OVERRIDDEN[ours]:
        assert any(f".{name}" in file.read_text() for file in THEIRS), (
            f"PyIceberg {version('pyiceberg')} calls {name} of {ours.__name__} nowhere"
        )


def _known(ours: type) -> set[str]:
    return set(chain.from_iterable(dir(base) for base in bases(ours)))


@pytest.mark.parametrize("ours", USED, ids=lambda ours: ours.__name__)
def test_pyiceberg_has_the_attributes_that_are_used(ours: type) -> None:
    sources = [inspect.getsource(base) for base in bases(ours)]
    missing = {name for name in USED[ours] if not any(f".{name}" in text or f"def {name}" in text for text in sources)}
    assert not missing, f"PyIceberg {version('pyiceberg')} has moved {sorted(missing)}, which {ours.__name__} uses"


def test_what_is_derived_from_is_what_the_table_says() -> None:
    assert issubclass(RowDelta, _FastAppendFiles) and issubclass(ChangeTransaction, Transaction)


def test_sqlglot_has_its_tokens_where_they_are_imported() -> None:
    module = tokenizer_core.__name__
    assert {name.removeprefix(f"{module}.") for _, name in imported("sqlglot") if name.startswith(f"{module}.")} <= set(dir(tokenizer_core))
