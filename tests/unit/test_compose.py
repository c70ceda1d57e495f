"""docker-compose.yaml without an engine: its schema, the Dockerfile's lint, and the rules that this project has for both."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from composed import FILE, ROOT, VARIABLE, filled, mounts, raw, secrets, services

from rejoin.errors import SetupError
from rejoin.lake.config import lake_config
from rejoin.lake.spark.setup_check import JARS, fetch_jars, spark_jars

BIN = Path(sys.executable).parent
DOCKERFILE = ROOT / "docker" / "Dockerfile"
TEXT = FILE.read_text()
OURS = {name for name, service in services().items() if service["image"].startswith("rejoin-")}
SECRET = re.compile("PASSWORD|SECRET|KEY|TOKEN")


def names_of_variables(value: object) -> list[re.Match[str]]:
    return list(VARIABLE.finditer(str(value)))


def test_the_file_has_the_form_of_the_compose_specification() -> None:
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", FILE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_has_no_lint() -> None:
    done = subprocess.run([BIN / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports and all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports), ports
    assert not any("network_mode" in service or service.get("privileged") for service in services().values())


@pytest.mark.parametrize("name", services())
def test_a_service_is_ready_before_another_needs_it(name: str) -> None:
    service, all_of_them = services()[name], services()
    for needed, how in service.get("depends_on", {}).items():
        runs_once = all_of_them[needed].get("healthcheck") is None
        assert how == {"condition": "service_completed_successfully" if runs_once else "service_healthy"}
    assert "healthcheck" in service or name == "airflow-init"  # which ends


@pytest.mark.parametrize("name", services())
def test_a_service_waits_for_every_service_that_it_talks_to(name: str) -> None:
    def waits_for(this: str) -> set[str]:
        needed = services()[this].get("depends_on", {})
        return set(needed) | {further for one in needed for further in waits_for(one)}

    service = services()[name]
    text = " ".join([*map(str, service.get("environment", {}).values()), *service.get("command", [])])
    talks_to = {other for other in services() if re.search(rf"[@/]{other}:\d", text)} - {name}
    # Tasks need Spark, Airflow does not: a DAG is seen, and fails with a reason, when the server is away.
    assert talks_to - {"spark-connect", "api-server"} <= waits_for(name)


@pytest.mark.parametrize("name", sorted(OURS | {"object-store"}))
def test_a_service_has_time_to_end_before_it_is_killed(name: str) -> None:
    """By default there are ten seconds; SeaweedFS takes twelve, as do Airflow's parts on a loaded machine."""
    assert services()[name]["stop_grace_period"] == "1m"


def test_no_secret_stands_in_a_file() -> None:
    for name, service in raw()["services"].items():
        for key, value in service.get("environment", {}).items():
            if SECRET.search(key) and not key.endswith("_FILE"):
                assert VARIABLE.fullmatch(str(value)), f"{name}: {key} is written out"
    assert not re.search(r"://[^:/$\s]+:[^$@\s]+@", TEXT)  # user:password@host
    for path in (file for file in (ROOT / "docker").rglob("*") if file.is_file()):
        written = [
            line for line in path.read_text().splitlines() if re.search(r"(?i)(password|secret)\S*\s*=\s*['\"]?[\w]+['\"]?\s*$", line)
        ]
        assert not written, f"{path}: {written}"


def test_a_secret_that_is_missing_stops_compose_and_is_one_that_the_script_makes() -> None:
    found = names_of_variables(TEXT)
    assert {m["name"] for m in found} - {"AIRFLOW_PORT"} == set(secrets())
    assert all(m["how"] == ":?" and m["text"] for m in found if m["name"] in secrets())
    with pytest.raises(AssertionError, match="has no value"):
        filled(raw()["services"], {})


def test_the_script_makes_new_secrets_for_its_owner_only_and_overwrites_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    command = [sys.executable, ROOT / "docker" / "make_env.py", file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    values = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert file.stat().st_mode & 0o777 == 0o600
    assert values.keys() == secrets().keys() and values.pop("REJOIN_UID").isdecimal()
    assert all(len(value) >= 20 and value not in done.stdout and value != secrets()[name] for name, value in values.items())
    before = file.read_text()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert file.read_text() == before
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert "*" in (ROOT / ".dockerignore").read_text().splitlines()


def test_what_kafka_has_lands_as_lines_that_rejoin_reads(tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    shutil.copy(ROOT / "docker" / "land.sh", tmp_path / "docker")
    consumer = tmp_path / "bin" / "docker"
    consumer.parent.mkdir()
    consumer.write_text("""#!/bin/sh\nprintf '{"id":1}\\t{"after":{"note":"50%% \\\\t"}}\\n{"id":1}\\tnull\\nsomething else\\n'\n""")
    consumer.chmod(0o755)
    subprocess.run(["sh", tmp_path / "docker" / "land.sh"], env={"PATH": f"{consumer.parent}:{os.environ['PATH']}"}, check=True)
    [landed] = (tmp_path / "landing" / "shop").iterdir()
    lines = [json.loads(line) for line in landed.read_text().splitlines()]
    assert landed.suffix == ".jsonl" and len(lines) == 6
    assert lines[0] == {"topic": "e6.shop.customers", "key": {"id": 1}, "value": {"after": {"note": "50% \t"}}}
    assert lines[5] == {"topic": "e6.shop.items", "key": {"id": 1}, "value": None}


def test_the_lake_file_says_the_same_to_spark_and_to_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services()["spark-connect"]["environment"].items():
        monkeypatch.setenv(name, value)
    config = lake_config(str(ROOT / "docker" / "lake.toml"))
    spark, pyiceberg = config.spark_settings(), config.pyiceberg_settings()
    assert config.s3 and config.ledger == config.uri
    assert spark["spark.sql.catalog.lake.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert spark["spark.sql.catalog.lake.s3.secret-access-key"] == pyiceberg["s3.secret-access-key"] == secrets()["S3_SECRET_KEY"]
    assert spark["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://metadata:5432/lake"


def test_a_warehouse_on_s3_without_its_jar_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOIN_JARS", str(tmp_path))
    for jar in JARS:
        (tmp_path / jar.name).write_text("a jar")
    assert len(spark_jars()) == len(JARS)
    with pytest.raises(SetupError, match=r"(?s)needs iceberg-aws-bundle.*rejoin setup --s3"):
        spark_jars(s3=True)


def test_jars_are_fetched_where_a_machines_own_name_has_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while an image is built in the network of its machine."""
    given: dict[str, str] = {}

    def run(command: list[str], *, env: dict[str, str], **more: object) -> subprocess.CompletedProcess[str]:
        given.update(env)
        return subprocess.CompletedProcess(command, 1, "", "unresolved dependency")

    monkeypatch.setenv("REJOIN_JARS", str(tmp_path))
    monkeypatch.setattr("rejoin.lake.spark.setup_check.subprocess.run", run)
    with pytest.raises(SetupError, match="unresolved dependency"):
        fetch_jars()
    assert given["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_path_means_the_same_file_in_airflow_and_in_spark() -> None:
    assert sorted(OURS) == ["airflow-init", "api-server", "dag-processor", "scheduler", "spark-connect", "triggerer"]
    spark = services()["spark-connect"]
    for name in OURS:
        assert mounts(spark).items() <= mounts(services()[name]).items()
        assert spark["environment"].items() <= services()[name]["environment"].items()
    for inside, outside in mounts(spark).items():
        assert inside == f"/opt/rejoin/{Path(outside).name}"
    written = {outside for name in OURS for outside in services()[name]["volumes"] if not outside.endswith(":ro")}
    assert written == {"airflow:/opt/airflow"}  # what is checked out, and what landed, is read only


def test_versions_are_exact_and_those_of_the_lock() -> None:
    images = [service["image"] for service in services().values()] + re.findall(r"(?:FROM|--from=)\s*(\S+:\S+)", DOCKERFILE.read_text())
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), f"{image} is not pinned"
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert all(services()[name]["image"].endswith(f":{version[1]}") for name in OURS)
    [python] = re.findall(r"FROM python:(\S+)", DOCKERFILE.read_text())
    assert python.startswith("3.11.") and "--python-version 3.11 " in (ROOT / "Makefile").read_text()


def test_both_images_have_the_packages_of_the_lock_and_nothing_else() -> None:
    stages = re.split(r"(?m)^FROM ", DOCKERFILE.read_text())[1:]
    base, others = stages[0], stages[1:]
    assert [line.split(" AS ")[1].splitlines()[0] for line in stages] == ["base", "airflow", "spark-connect"]
    installs = re.findall(r"pip install ([^&]+?)(?:\\|&&|$)", base, re.MULTILINE)
    assert all("--require-hashes" in one or "--no-index" in one for one in installs) and "-r requirements.txt" in installs[1]
    for stage in others:
        assert stage.startswith("base AS") and "pip" not in stage and "apt" not in stage
        assert re.findall(r"(?m)^USER (.*)", stage) == ["$REJOIN_UID"]
    assert "python -m rejoin.lake.spark.setup_check" in others[1]
