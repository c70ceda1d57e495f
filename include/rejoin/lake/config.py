"""Where a lake is: a directory (everything embedded), or a TOML file that names a catalog, a warehouse and a ledger.

A path may hold any letters but those that ``paths.FORBIDDEN`` names. It is written as it is, also behind ``file://``: an escape such as ``%20`` is three
letters of a name, for Spark and for PyIceberg alike.

A TOML file (``${NAME}`` is replaced by the environment variable, so that no secret stands in the file)::

    warehouse = "s3://bucket/warehouse"             # or any path that Spark's Hadoop and PyIceberg's FileIO can open (docs/stores.md)
    catalog = "postgresql"                          # sqlite | postgresql | rest
    uri = "postgresql+psycopg://me:${PW}@host/db"   # SQLAlchemy URL of the catalog database, or the REST catalog's URL
    ledger = "postgresql+psycopg://me:${PW}@host/db"   # default: the catalog's database (not for rest)

    [properties]                                    # passed to both Iceberg catalogs, for example s3.endpoint
    [spark]                                         # extra Spark settings, for example spark.master
    [sinks.kafka]                                   # where the sink of that name is (``sinks.config``)
    [sources.kafka]                                 # and the system of that name that sources are read from (``source_access``)
"""

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from rejoin.engines.choice import EngineChoice, named
from rejoin.errors import SetupError
from rejoin.lake.ledger.sqlite import is_sqlite
from rejoin.lake.locations import allowed, existing, made, native, whole

CATALOG = "lake"
"""Name of the Iceberg catalog, in Spark and in PyIceberg: they must agree, the name is a column of the catalog's tables."""

_KEYS = {"engine", "warehouse", "catalog", "uri", "ledger", "properties", "spark", "sinks", "sources"}
_NAMED = ("sinks", "sources")
"""Sections of sections, one a system."""
_CATALOGS = ("sqlite", "postgresql", "rest")


@dataclass(frozen=True)
class LakeConfig:
    """Addresses of a lake's warehouse, Iceberg catalog and ledger. ``uri`` and ``ledger`` are SQLAlchemy URLs (REST: http).

    ``engine``: None where the lake says nothing.
    """

    location: str
    warehouse: str
    catalog: str
    uri: str = field(repr=False)  # this and what follows may hold secrets
    ledger: str = field(repr=False)
    properties: dict[str, str] = field(default_factory=dict, repr=False)
    spark: dict[str, str] = field(default_factory=dict, repr=False)
    sinks: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    sources: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    engine: EngineChoice | None = None

    @property
    def s3(self) -> bool:
        """Whether Iceberg reads and writes the warehouse with its own client of S3."""
        return self.warehouse.startswith("s3://")

    @property
    def cluster(self) -> bool:
        """Whether the lake names a master of Spark that is not this machine alone."""
        master = self.spark.get("spark.master", "local")
        return master != "local" and not master.startswith(("local[", "local-cluster["))

    def spark_settings(self) -> dict[str, str]:
        """Spark settings of the catalog and of the user."""
        prefix = f"spark.sql.catalog.{CATALOG}"
        made = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.warehouse": self.warehouse}
        if self.catalog == "rest":
            made |= {f"{prefix}.type": "rest", f"{prefix}.uri": self.uri}
        else:
            made |= {f"{prefix}.type": "jdbc", f"{prefix}.jdbc.schema-version": "V1"}
            made |= {f"{prefix}.{k}": v for k, v in _jdbc(make_url(self.uri)).items()}
        if self.s3:
            made[f"{prefix}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        # Cached metadata would hide what other processes committed.
        made[f"{prefix}.cache-enabled"] = "false"
        stated = {**self._store_settings(), **self.properties}
        return made | {f"{prefix}.{k}": v for k, v in stated.items()} | self.spark

    def _store_settings(self) -> dict[str, str]:
        """What both clients of S3 want to know and a store of one's own does not care about: without it PyIceberg would ask AWS for the bucket."""
        own = self.s3 and "s3.endpoint" in self.properties
        return {"client.region": self.properties.get("s3.region", "us-east-1")} if own else {}

    def pyiceberg_settings(self) -> dict[str, str]:
        """Properties of the same catalog for PyIceberg."""
        kind = {"type": "rest"} if self.catalog == "rest" else {"py-catalog-impl": "rejoin.lake.iceberg.sql_catalog.CachingSqlCatalog"}
        files = "LocalFileIO" if native(self.warehouse) is not None else "StoreFileIO"
        ours = {**kind, "py-io-impl": f"rejoin.lake.iceberg.file_io.{files}", "uri": self.uri, "warehouse": self.warehouse}
        return {**ours, **self._store_settings(), **self.properties}


def _jdbc(url: URL) -> dict[str, str]:
    if is_sqlite(url):
        # As a URI: in a plain path the driver would take a question mark for the start of its own settings.
        return {"uri": f"jdbc:sqlite:file:{quote(url.database or '')}?journal_mode=WAL&busy_timeout=30000"}
    settings = {"uri": f"jdbc:postgresql://{url.host}:{url.port or 5432}/{url.database}"}
    if url.username:
        settings["jdbc.user"] = url.username
    if url.password:
        settings["jdbc.password"] = unquote(str(url.password))
    return settings


def lake_config(location: str) -> LakeConfig:
    """Reads where a lake is from ``location``: a directory (made when absent) or a ``.toml`` file.

    Raises:
        SetupError: the path can be no lake; or the file is missing or no TOML, has an unknown key or an unset ``${NAME}``, names an unknown
            catalog or a warehouse that not every process would find.
    """
    name = allowed("lake", location)
    return _from_file(Path(name)) if name.endswith(".toml") else _embedded(name)


def is_there(location: str) -> bool:
    """Whether a lake is named by its file, or has its directory, which ``lake_config`` would make."""
    return location.endswith(".toml") or Path(location).is_dir()


def existing_config(location: str) -> LakeConfig | None:
    """The same for who only reads: makes nothing, and is None where nothing was made yet.

    Raises:
        SetupError: as above.
    """
    name = allowed("lake", location)
    if name.endswith(".toml"):
        return _from_file(Path(name))
    root = existing("lake", name)
    return _at(root) if root is not None and (root / "ledger.db").is_file() else None


def _embedded(directory: str) -> LakeConfig:
    root = made("lake", directory)
    made("warehouse of lake", str(root / "warehouse"))
    return _at(root)


def _at(root: Path) -> LakeConfig:
    return LakeConfig(
        location=str(root),
        warehouse=f"file://{root / 'warehouse'}",
        catalog="sqlite",
        uri=_sqlite(root / "catalog.db"),
        ledger=_sqlite(root / "ledger.db"),
    )


def _sqlite(path: Path) -> str:
    return URL.create("sqlite", database=str(path)).render_as_string()


def _from_file(path: Path) -> LakeConfig:
    if not path.is_file():
        raise SetupError(f"lake file {path} does not exist", next_step="pass --lake with a directory or an existing .toml file")
    data = _parsed(path)
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise SetupError(f"lake file {path}: unknown setting {', '.join(unknown)}", expected=", ".join(sorted(_KEYS)))
    catalog = data.get("catalog", "postgresql")
    if catalog not in _CATALOGS:
        raise SetupError(f"lake file {path}: unknown catalog {catalog!r}", expected=" | ".join(_CATALOGS))
    missing = [k for k in ("warehouse", "uri") if k not in data] + (["ledger"] if catalog == "rest" and "ledger" not in data else [])
    if missing:
        raise SetupError(f"lake file {path}: setting {', '.join(missing)} is missing")
    _check_kinds(path, data)
    for url in {data["uri"] if catalog != "rest" else data["ledger"], data.get("ledger", data["uri"])}:
        _check_url(path, url)
    return LakeConfig(
        location=str(path),
        warehouse=whole(f"lake file {path}: warehouse", data["warehouse"]),
        catalog=catalog,
        uri=data["uri"],
        ledger=data.get("ledger", data["uri"]),
        properties=_texts(data.get("properties", {})),
        spark=_texts(data.get("spark", {})),
        engine=named(data["engine"], f"lake file {path}") if "engine" in data else None,
        sinks={name: _texts(settings) for name, settings in data.get("sinks", {}).items()},
        sources={name: _texts(settings) for name, settings in data.get("sources", {}).items()},
    )


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_with_environment(path.read_text(encoding="utf-8"), path))
    except OSError as error:
        raise SetupError(f"lake file {path} cannot be read: {error.strerror}", next_step="let this user read it") from None
    except UnicodeDecodeError:
        raise SetupError(f"lake file {path} is no text in UTF-8", next_step="pass --lake with a directory or a .toml file") from None
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at (line \d+, column \d+|end of document)", str(error))  # the rest of the message may quote a password
        raise SetupError(
            f"lake file {path} is no TOML: {at.group(1) if at else 'it cannot be parsed'}", expected='name = "value"'
        ) from None


def _check_kinds(path: Path, data: dict[str, Any]) -> None:
    """Refuses settings that are no texts, and sections that are none."""
    wrong = [k for k in ("warehouse", "uri", "ledger") if not isinstance(data.get(k, ""), str)]
    wrong += [k for k in ("properties", "spark", *_NAMED) if not isinstance(data.get(k, {}), dict)]
    wrong += [k for k in _NAMED if not wrong and not all(isinstance(v, dict) for v in data.get(k, {}).values())]
    if wrong:
        raise SetupError(f"lake file {path}: setting {', '.join(wrong)} is of another kind", expected="texts, and sections of them")


def _check_url(path: Path, url: str) -> None:
    try:
        make_url(url).get_dialect()
    except (ArgumentError, ValueError, ImportError):  # no message: it would quote a password
        raise SetupError(
            f"lake file {path}: a database is named by no URL that SQLAlchemy can open", expected="sqlite:///... | postgresql+psycopg://..."
        ) from None


def _texts(table: dict[str, Any]) -> dict[str, str]:
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in table.items()}


def _with_environment(text: str, path: Path) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise SetupError(f"lake file {path}: environment variable {name} is not set")
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)
