"""Where a lake is: a directory (everything embedded), or a TOML file that names a catalog, a warehouse and a ledger.

A TOML file (``${NAME}`` is replaced by the environment variable, so that no secret stands in the file)::

    warehouse = "s3://bucket/warehouse"             # or any path that Spark's Hadoop and PyIceberg's FileIO can open
    catalog = "postgresql"                          # sqlite | postgresql | rest
    uri = "postgresql+psycopg://me:${PW}@host/db"   # SQLAlchemy URL of the catalog database, or the REST catalog's URL
    ledger = "postgresql+psycopg://me:${PW}@host/db"   # default: the catalog's database (not for rest)

    [properties]                                    # passed to both Iceberg catalogs, for example s3.endpoint
    [spark]                                         # extra Spark settings, for example spark.master
    [sinks.kafka]                                   # where the sink of that name is (``sinks.config``)
"""

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url

from rejoin.errors import SetupError
from rejoin.lake.sqlite import is_sqlite

CATALOG = "lake"
"""Name of the Iceberg catalog, in Spark and in PyIceberg: they must agree, the name is a column of the catalog's tables."""

_KEYS = {"warehouse", "catalog", "uri", "ledger", "properties", "spark", "sinks"}
_CATALOGS = ("sqlite", "postgresql", "rest")


@dataclass(frozen=True)
class LakeConfig:
    """Addresses of a lake's warehouse, Iceberg catalog and ledger. ``uri`` and ``ledger`` are SQLAlchemy URLs (REST: http)."""

    location: str
    warehouse: str
    catalog: str
    uri: str
    ledger: str
    properties: dict[str, str] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    @property
    def s3(self) -> bool:
        """Whether Iceberg reads and writes the warehouse with its own client of S3."""
        return self.warehouse.startswith("s3://")

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
        return made | {f"{prefix}.{k}": v for k, v in self.properties.items()} | self.spark

    def pyiceberg_settings(self) -> dict[str, str]:
        """Properties of the same catalog for PyIceberg."""
        kind = {"type": "rest"} if self.catalog == "rest" else {"py-catalog-impl": "rejoin.lake.catalog.CachingSqlCatalog"}
        return {**kind, "uri": self.uri, "warehouse": self.warehouse, **self.properties}


def _jdbc(url: URL) -> dict[str, str]:
    if is_sqlite(url):
        return {"uri": f"jdbc:sqlite:{url.database}?journal_mode=WAL&busy_timeout=30000"}
    made = {"uri": f"jdbc:postgresql://{url.host}:{url.port or 5432}/{url.database}"}
    if url.username:
        made["jdbc.user"] = url.username
    if url.password:
        made["jdbc.password"] = unquote(str(url.password))
    return made


def lake_config(location: str) -> LakeConfig:
    """Reads where a lake is from ``location``: a directory (made when absent) or a ``.toml`` file.

    Raises:
        SetupError: the file is missing, has an unknown key or an unset ``${NAME}``, or names an unknown catalog.
    """
    return _from_file(Path(location)) if location.endswith(".toml") else _embedded(Path(location))


def _embedded(directory: Path) -> LakeConfig:
    root = directory.expanduser().resolve()
    (root / "warehouse").mkdir(parents=True, exist_ok=True)
    return LakeConfig(
        location=str(root),
        warehouse=(root / "warehouse").as_uri(),
        catalog="sqlite",
        uri=f"sqlite:///{root / 'catalog.db'}",
        ledger=f"sqlite:///{root / 'ledger.db'}",
    )


def _from_file(path: Path) -> LakeConfig:
    if not path.is_file():
        raise SetupError(f"lake file {path} does not exist", next_step="pass --lake with a directory or an existing .toml file")
    data = tomllib.loads(_with_environment(path.read_text(), path))
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise SetupError(f"lake file {path}: unknown setting {', '.join(unknown)}", expected=", ".join(sorted(_KEYS)))
    catalog = data.get("catalog", "postgresql")
    if catalog not in _CATALOGS:
        raise SetupError(f"lake file {path}: unknown catalog {catalog!r}", expected=" | ".join(_CATALOGS))
    missing = [k for k in ("warehouse", "uri") if k not in data] + (["ledger"] if catalog == "rest" and "ledger" not in data else [])
    if missing:
        raise SetupError(f"lake file {path}: setting {', '.join(missing)} is missing")
    return LakeConfig(
        location=str(path),
        warehouse=data["warehouse"],
        catalog=catalog,
        uri=data["uri"],
        ledger=data.get("ledger", data["uri"]),
        properties=_texts(data.get("properties", {})),
        spark=_texts(data.get("spark", {})),
        sinks={name: _texts(settings) for name, settings in data.get("sinks", {}).items()},
    )


def _texts(table: dict[str, Any]) -> dict[str, str]:
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in table.items()}


def _with_environment(text: str, path: Path) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise SetupError(f"lake file {path}: environment variable {name} is not set")
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)
