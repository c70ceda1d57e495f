"""docker/kubernetes without a cluster: the schemas of Kubernetes, and what the files say of each other, of the image, of rejoin and of Spark."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from composed import ROOT, services

from rejoin.lake.config import LakeConfig, lake_config
from rejoin.plan.check.topology_file import load

FOLDER = ROOT / "docker" / "kubernetes"
NEWEST = kubernetes_validate.latest_version()
OLDEST = "1.30.0"
IMAGE = services()["spark-connect"]["image"]
SECRETS = {
    "LAKE_DATABASE": "postgresql+psycopg://lake:a-password@db:5432/lake",
    "AWS_ENDPOINT_URL": "http://store:8333",
    "AWS_ACCESS_KEY_ID": "a-key",
    "AWS_SECRET_ACCESS_KEY": "a-secret",
}
"""Values of the secret, by the variables that take them."""
SPARK_ASKS = {
    "pods": {"create", "get", "list", "watch", "delete", "deletecollection"},
    "configmaps": {"create", "deletecollection"},
    "persistentvolumeclaims": {"list", "deletecollection"},
    "services": {"deletecollection"},
}
"""What a driver of Spark asks of Kubernetes, by resource: ``integration/test_kubernetes_driver.py`` listens to one."""


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of every file, and the executor's pod, with a name for messages."""
    for file in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.safe_load_all(file.read_text()):
            yield f"{file.name}: {one['kind']} {one['metadata']['name']}", one
    yield "lake.yaml: executor.yaml", executor()


def found(kind: str, name: str) -> dict[str, Any]:
    (one,) = [one for _, one in objects() if one["kind"] == kind and one["metadata"].get("name") == name]
    return one


def executor() -> dict[str, Any]:
    for one in yaml.safe_load_all((FOLDER / "lake.yaml").read_text()):
        if one["metadata"]["name"] == "rejoin-lake":
            made: dict[str, Any] = yaml.safe_load(one["data"]["executor.yaml"])
            return made
    raise AssertionError("no pod of executors")


def driver() -> dict[str, Any]:
    """The template of the driver's pod."""
    template: dict[str, Any] = found("CronJob", "rejoin-orders")["spec"]["jobTemplate"]["spec"]["template"]
    return template


def variables(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (container,) = pod["containers"]
    return {one["name"]: one for one in container["env"]}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConfig:
    """The lake's file as rejoin reads it in the driver's pod."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POD_NAME", "rejoin-orders-1-abc")
    (tmp_path / "lake.toml").write_text(found("ConfigMap", "rejoin-lake")["data"]["lake.toml"])
    return lake_config(str(tmp_path / "lake.toml"))


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize(("name", "one"), [pytest.param(name, one, id=name) for name, one in objects()])
def test_an_object_has_the_form_of_kubernetes(name: str, one: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(one, version, strict=True)


def test_the_validator_finds_a_field_that_is_misspelt() -> None:
    wrong = found("CronJob", "rejoin-orders")
    wrong["spec"]["jobTemplate"]["spec"]["backofLimit"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_everything_is_in_the_namespace_that_spark_is_told(lake: LakeConfig) -> None:
    space = lake.spark["spark.kubernetes.namespace"]
    assert found("Namespace", space)
    named = {one["metadata"].get("namespace") for _, one in objects() if one["kind"] not in ("Namespace", "Pod")}
    assert named == {space}
    assert lake.cluster


def test_the_service_leads_to_the_driver_and_to_no_executor(lake: LakeConfig) -> None:
    service = found("Service", "rejoin-driver")
    assert lake.spark["spark.driver.host"] == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert service["spec"]["clusterIP"] == "None"
    asked = service["spec"]["selector"].items()
    assert asked <= driver()["metadata"]["labels"].items()
    assert not asked <= executor()["metadata"]["labels"].items()
    stated = {int(lake.spark[f"spark.driver.{port}"]) for port in ("port", "blockManager.port")}
    assert stated == {one["port"] for one in service["spec"]["ports"]}
    assert stated == {one["containerPort"] for one in driver()["spec"]["containers"][0]["ports"]}
    assert lake.spark["spark.driver.bindAddress"] == "0.0.0.0", "no host has the service's name"


def test_driver_and_executors_run_the_image_that_the_dockerfile_builds_as_its_user(lake: LakeConfig) -> None:
    (container,) = driver()["spec"]["containers"]
    assert container["image"] == lake.spark["spark.kubernetes.container.image"] == IMAGE
    (uid,) = re.findall(r"ARG REJOIN_UID=(\d+)", (ROOT / "docker" / "Dockerfile").read_text())
    for pod in (driver()["spec"], executor()["spec"]):
        assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": int(uid)}
        assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    # The image has no workdir of its own for rejoin's files but this one.
    assert executor()["spec"]["containers"][0]["command"] == ["sh", f"/opt/rejoin/{(FOLDER / 'executor.sh').relative_to(ROOT)}"]


def test_the_files_that_are_named_are_mounted(lake: LakeConfig) -> None:
    (container,) = driver()["spec"]["containers"]
    maps = {one["name"]: one["configMap"]["name"] for one in driver()["spec"]["volumes"]}
    there = {
        f"{mount['mountPath']}/{key}" for mount in container["volumeMounts"] for key in found("ConfigMap", maps[mount["name"]])["data"]
    }
    named = {lake.spark["spark.kubernetes.executor.podTemplateFile"], variables(driver()["spec"])["REJOIN_LAKE"]["value"]}
    assert {*named, container["command"][2]} <= there


def test_an_executor_can_write_where_it_works() -> None:
    (container,) = executor()["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    assert mount["mountPath"] == container["workingDir"]
    assert executor()["spec"]["volumes"] == [{"name": mount["name"], "emptyDir": {}}]


def test_secrets_are_referred_to_and_every_variable_of_the_lake_is_there() -> None:
    text = found("ConfigMap", "rejoin-lake")["data"]["lake.toml"]
    wanted = set(re.findall(r"\$\{(\w+)\}", text))
    of_driver, of_executor = variables(driver()["spec"]), variables(executor()["spec"])
    assert wanted == SECRETS.keys() | {"POD_NAME"}
    assert wanted <= of_driver.keys()
    for given in (of_driver, of_executor):
        for name in SECRETS.keys() & given.keys():
            assert given[name]["valueFrom"]["secretKeyRef"]["name"] == "rejoin", name
    assert "LAKE_DATABASE" not in of_executor, "workers need neither catalog nor ledger"
    assert {name: of_driver[name] for name in of_executor} == of_executor, "sources are reached alike"
    assert not [name for name, one in objects() if one["kind"] == "Secret"]


def test_the_topology_compiles(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(found("ConfigMap", "rejoin-topologies")["data"]["orders.py"])
    plan = load(str(tmp_path / "orders.py"))
    assert [node.name for node in plan.nodes] == ["orders_enriched"]
    assert all(table.source.path.startswith("s3://lake/") for table in plan.tables)


def test_the_driver_may_do_what_spark_asks_for_and_nothing_outside() -> None:
    rules = found("Role", "rejoin-driver")["rules"]
    allowed = {resource: set(rule["verbs"]) for rule in rules for resource in rule["resources"]}
    assert allowed == SPARK_ASKS
    assert all(rule["apiGroups"] == [""] for rule in rules)
    binding = found("RoleBinding", "rejoin-driver")
    assert binding["roleRef"]["name"] == "rejoin-driver"
    (who,) = binding["subjects"]
    assert who["name"] == driver()["spec"]["serviceAccountName"] == found("ServiceAccount", "rejoin-driver")["metadata"]["name"]
    assert executor()["spec"]["automountServiceAccountToken"] is False


def test_an_executors_pod_becomes_the_command_of_sparks_executor(tmp_path: Path) -> None:
    given = {f"SPARK_{name}": name.lower() for name in ("DRIVER_URL", "EXECUTOR_ID", "EXECUTOR_CORES", "EXECUTOR_MEMORY", "APPLICATION_ID")}
    given |= {f"SPARK_{name}": name.lower() for name in ("EXECUTOR_POD_IP", "RESOURCE_PROFILE_ID", "EXECUTOR_POD_NAME")}
    given |= {"SPARK_JAVA_OPT_0": "-Done=a b", "SPARK_JAVA_OPT_1": "-Dtwo=$HOME"}
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    begun = ["sh", FOLDER / "executor.sh", "executor"]
    done = subprocess.run(
        begun, env={**given, "PATH": f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    words = done.stdout.splitlines()
    assert words[:4] == ["-Done=a b", "-Dtwo=$HOME", "-Xmsexecutor_memory", "-Xmxexecutor_memory"]
    assert words[4] == "-cp" and words[5].endswith("pyspark/jars/*")
    assert words[6] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    asked = dict(zip(words[7::2], words[8::2], strict=True))
    assert asked == {
        "--driver-url": "driver_url",
        "--executor-id": "executor_id",
        "--cores": "executor_cores",
        "--app-id": "application_id",
        "--hostname": "executor_pod_ip",
        "--resourceProfileId": "resource_profile_id",
        "--podName": "executor_pod_name",
    }
