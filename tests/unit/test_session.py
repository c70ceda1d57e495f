"""What Spark is given of a lake's settings, and where steps run by them."""

from pathlib import Path

import pytest

from rejoin.engines.choice import EngineChoice
from rejoin.engines.placement import chosen
from rejoin.errors import SetupError
from rejoin.lake.config import LakeConfig, lake_config
from rejoin.lake.spark.session import LOOPBACK, properties, static_settings, worker_python


def lake(root: Path, spark: str = "") -> LakeConfig:
    file = root / "lake.toml"
    file.write_text(f'warehouse = "{root}/w"\ncatalog = "sqlite"\nuri = "sqlite:///{root}/c.db"\n[spark]\n{spark}\n')
    return lake_config(str(file))


@pytest.mark.parametrize(
    ("master", "cluster"),
    [
        ("", False),
        ("local", False),
        ("local[8]", False),
        ("local-cluster[2,1,1024]", False),
        ("localhost.example:7077", True),
        ("spark://master:7077", True),
        ("yarn", True),
        ("k8s://https://api:6443", True),
    ],
)
def test_a_master_in_the_lakes_file_is_all_that_a_cluster_needs(
    tmp_path: Path, master: str, cluster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rejoin.lake.spark.session.spark_jars", lambda **_: [])
    for name in ("REJOIN_ENGINE", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    config = lake(tmp_path, f'"spark.master" = "{master}"' if master else "")
    assert config.cluster == cluster
    assert chosen(config.engine, cluster=config.cluster) is (EngineChoice.SPARK if cluster else EngineChoice.AUTO)
    assert chosen(EngineChoice.LOCAL, cluster=config.cluster) is EngineChoice.LOCAL
    # On a cluster executors would look for a driver on their own machines.
    assert (LOOPBACK.keys() <= static_settings(config).keys()) is not cluster


def test_a_lake_may_name_the_python_of_executors(tmp_path: Path) -> None:
    assert worker_python(lake(tmp_path, '"spark.pyspark.python" = "./environment/bin/python"')) == "./environment/bin/python"


def test_a_password_survives_the_properties_file() -> None:
    # java.util.Properties: a backslash escapes, the first = ends the key.
    assert properties({"a.password": "x\\n=y", "b": "2"}) == "a.password=x\\\\n=y\nb=2\n"


@pytest.mark.parametrize("variable", ["local", "spark"])
def test_the_command_wins_over_the_file_and_the_file_over_the_environment(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REJOIN_ENGINE", variable)
    silent = lake(tmp_path)
    assert chosen(silent.engine, cluster=False) is EngineChoice(variable)
    assert chosen(EngineChoice.AUTO, cluster=False) is EngineChoice.AUTO, "the next step of ENGINE_REFUSED helps"
    file = Path(silent.location)
    file.write_text('engine = "auto"\n' + file.read_text())
    assert chosen(lake_config(str(file)).engine, cluster=False) is EngineChoice.AUTO
    monkeypatch.setenv("REJOIN_ENGINE", "")
    assert chosen(silent.engine, cluster=False) is EngineChoice.AUTO


def test_an_unknown_engine_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_ENGINE", "flink")
    with pytest.raises(SetupError, match=r"REJOIN_ENGINE: unknown engine 'flink'") as caught:
        chosen(None, cluster=False)
    assert caught.value.expected == "auto | local | spark"
    assert chosen(EngineChoice.LOCAL, cluster=False) is EngineChoice.LOCAL, "who states one does not ask"
