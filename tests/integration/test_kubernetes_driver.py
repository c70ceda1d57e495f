"""The manifests with Spark's own driver and executors, and no cluster: an API that keeps what it is given, and processes in the place of the pods."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from composed import ROOT
from integration.kubernetes_api import KubernetesApi, kubernetes_api
from integration.on_cluster import LAKE, SECRET, Place
from integration.stored import engines

from rejoin.airflow.local.server import free_port

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

FOLDER = ROOT / "docker" / "kubernetes"
DRIVER = {"name": "rejoin-orders-1-abc", "namespace": "rejoin"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def manifests(file: str, kind: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((FOLDER / file).read_text()) if one["kind"] == kind]


def settle(place: Place, api: KubernetesApi) -> None:
    """The place's lake gets Spark's settings from the manifests, with what differs here: addresses, ports, paths and sizes."""
    data = manifests("lake.yaml", "ConfigMap")[0]["data"]
    (place.root / "executor.yaml").write_text(data["executor.yaml"])
    here = {
        "https://kubernetes.default.svc": api.address,
        "/opt/rejoin/lake": str(place.root),
        "rejoin-driver.rejoin.svc": "localhost",
        "/usr/local/bin/python": sys.executable,
        "${POD_NAME}": DRIVER["name"],
        "7078": str(free_port()),
        "7079": str(free_port()),
        '"2g"': '"600m"',
    }
    text = "[spark]" + data["lake.toml"].partition("[spark]")[2]
    for there, instead in here.items():
        assert there in text, there
        text = text.replace(there, instead)
    (place.root / "lake.toml").write_text(LAKE.partition("[spark]")[0].format(root=place.root) + text)


def start(pod: dict[str, Any], log: Path) -> subprocess.Popen[bytes]:
    """The process that the pod's only container would be."""
    (container,) = pod["spec"]["containers"]
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    given |= {"SPARK_EXECUTOR_POD_IP": "127.0.0.1", "SPARK_EXECUTOR_POD_NAME": pod["metadata"]["name"]}
    command = [word.replace("/opt/rejoin", str(ROOT)) for word in (*container["command"], *container["args"])]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    work = log.with_suffix(".work")
    work.mkdir()
    with log.open("wb") as said:
        return subprocess.Popen(command, env={**given, "PATH": path, "SPARK_LOCAL_DIRS": str(work)}, cwd=work, stdout=said, stderr=said)


def run_with_pods(place: Place, api: KubernetesApi) -> list[subprocess.Popen[bytes]]:
    """A run of the place, whose executors are started as Spark asks for them."""
    environment = {k: v for k, v in os.environ.items() if k not in ("REJOIN_ENGINE", "SPARK_REMOTE")}
    command, asked = [sys.executable, "-m", "integration.clustered"], [["limits", "wide ranges"], place.words]
    (place.root / "asked").write_text("".join(json.dumps(words) + "\n" for words in asked))
    pods, given = list[subprocess.Popen[bytes]](), {**environment, "PYTHONPATH": "tests:include"}
    with (
        (place.root / "said").open("wb") as said,
        (place.root / "asked").open("rb") as words,
        subprocess.Popen(command, env=given, stdin=words, stdout=said, stderr=said) as driver,
    ):
        while driver.poll() is None:
            made = [one for one in api.created if one["kind"] == "Pod"]
            for pod in made[len(pods) :]:
                pods.append(start(pod, place.root / f"pod{len(pods)}"))
            time.sleep(0.2)
    told = "".join(file.read_text()[-2000:] for file in (place.root / "said", *place.root.glob("pod?")))
    assert driver.returncode == 0 and "run 1 of t: committed" in told, told
    return pods


def test_a_driver_gets_its_executors_from_kubernetes_with_the_rights_of_its_role_and_tasks_run_there(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    with kubernetes_api() as api:
        pod = manifests("run.yaml", "CronJob")[0]["spec"]["jobTemplate"]["spec"]["template"]
        api.put("pods", {"kind": "Pod", "apiVersion": "v1", "metadata": DRIVER | pod["metadata"], "spec": pod["spec"], "status": READY})
        settle(place, api)
        pods = run_with_pods(place, api)
        for process in pods:
            process.wait(60)
        made, asked, left = list(api.created), set(api.asked), set(api.kept)
    assert set(engines(place, 1).values()) == {"task"}
    assert place.topology.ledger.steps(1)["resolve.enriched"].jobs
    assert [one["kind"] for one in made if one["kind"] != "ConfigMap"] == ["Pod"] * 2
    for one in made:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        assert one["metadata"]["ownerReferences"][0]["name"] == DRIVER["name"], "it goes with its driver"
    assert left == {("pods", DRIVER["name"])}, "the driver has cleared up"
    assert SECRET not in json.dumps(made)
    (role,) = manifests("access.yaml", "Role")
    allowed = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert asked <= allowed
    # One pod is deleted where one has failed.
    assert allowed - asked == {("pods", "delete")}
    verified = [sys.executable, "-m", "rejoin.cli", "verify", "--lake", str(place.root / "lake.toml")]
    done = subprocess.run(verified, env={**os.environ, "REJOIN_ENGINE": "local"}, capture_output=True, text=True, check=False)
    assert "0 differences" in done.stdout, done.stdout + done.stderr
