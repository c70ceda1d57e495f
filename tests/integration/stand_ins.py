"""Images under the very names that docker-compose.yaml and docker/Dockerfile ask for, made here of what Debian, Maven and Go's modules have.

The programs are real: PostgreSQL 17, SeaweedFS, Kafka, Debezium Server, Java and Python, most of them in the versions asked for. What stands in is the rest of
the image: Debian instead of Alpine, Ubuntu or Red Hat, and an entry point that does what the services here need of the published one.
"""

import configparser
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from composed import ROOT, services

Podman = Callable[..., str]
SUITES = ("bookworm", "trixie")
"""Debian 12 has the Python and the Java of the two images, 13 PostgreSQL 17 and Java 21."""
ENTRY_POINTS = Path(__file__).parent / "stand_in"
SEAWEEDFS = "github.com/seaweedfs/seaweedfs@v0.0.0-20261109003541-7506e5f91cd6"
"""The newest of which Go's modules have the source."""
APT = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends"

STAND_INS = {
    "python": f"""FROM stand-in:bookworm
RUN {APT} python3-venv && python3 -m venv /usr/local
""",
    "eclipse-temurin": f"""FROM stand-in:bookworm
RUN {APT} openjdk-17-jre-headless && mkdir /opt/java && cp -rL /usr/lib/jvm/java-17-openjdk-amd64 /opt/java/openjdk
COPY cacerts /opt/java/openjdk/lib/security/cacerts
""",
    "postgres": f"""FROM stand-in:trixie
RUN mkdir /etc/postgresql-common && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf \\
    && {APT} postgresql && mkdir -p /docker-entrypoint-initdb.d /var/lib/postgresql/data
ENV LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data PATH=/usr/lib/postgresql/17/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY postgres.sh /usr/bin/docker-entrypoint.sh
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
""",
    "chrislusf/seaweedfs": f"""FROM stand-in:trixie
RUN {APT} wget && useradd --uid 1000 seaweed && mkdir -p /data/filerldb2 /etc/seaweedfs && chown -R seaweed /data \\
    && printf '#!/bin/sh\\nuser=$1; shift; exec setpriv --reuid=$user --regid=$user --clear-groups "$@"\\n' > /usr/bin/su-exec \\
    && chmod 755 /usr/bin/su-exec
COPY weed /usr/bin/weed
COPY filer.toml /etc/seaweedfs/filer.toml
COPY entrypoint.sh /entrypoint.sh
WORKDIR /data
ENTRYPOINT ["/entrypoint.sh"]
""",
    "apache/kafka": f"""FROM stand-in:trixie
RUN {APT} openjdk-21-jre-headless netcat-openbsd && useradd --create-home appuser \\
    && mkdir -p /opt/kafka/config /etc/kafka/docker /mnt/shared/config /var/lib/kafka/data \\
    && touch /etc/kafka/docker/server.properties /etc/kafka/docker/log4j2.yaml /etc/kafka/docker/tools-log4j2.yaml \\
    && chown -R appuser /opt/kafka /etc/kafka /var/lib/kafka /mnt/shared
COPY libs /opt/kafka/libs
COPY kafka-console-consumer.sh /opt/kafka/bin/
COPY kafka.sh /etc/kafka/docker/run
USER appuser
CMD ["/etc/kafka/docker/run"]
""",
    "quay.io/debezium/server": f"""FROM stand-in:trixie
RUN {APT} openjdk-21-jre-headless curl && useradd --create-home jboss
RUN mkdir -p /debezium/data && tar xzf /mnt/server.tar.gz -C /debezium --strip-components=1 --exclude='*/connectors/*' && chown -R jboss /debezium
USER jboss
WORKDIR /debezium
CMD ["/debezium/run.sh"]
""",
}
"""How each is made, by the name without its tag."""


def tags() -> dict[str, str]:
    """The tag that the two files ask for, by the image's name."""
    asked = re.findall(r"(?:FROM |--from=)(\S+:\S+)", (ROOT / "docker" / "Dockerfile").read_text())
    asked += [service["image"] for service in services().values()]
    return dict(image.rsplit(":", 1) for image in asked)


def bases(directory: Path, podman: Podman) -> None:
    """Imports the smallest Debian of both suites, from the mirror of this machine's apt."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True).stdout
    mirror = next(line for line in said.splitlines() if line.rstrip("/").endswith("/debian"))
    for suite in SUITES:
        root = directory / suite
        subprocess.run(
            ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root, mirror],
            check=True,
            capture_output=True,
            timeout=900,
        )
        archive = directory / f"{suite}.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        podman("import", "--quiet", str(archive), f"stand-in:{suite}")
        archive.unlink()
        shutil.rmtree(root)


def stand_in(name: str, directory: Path, podman: Podman) -> None:
    """Builds one of ``STAND_INS`` under the name and tag that the files ask for."""
    context = directory / name.replace("/", "-")
    context.mkdir()
    for script in ENTRY_POINTS.iterdir():
        shutil.copy(script, context)
        (context / script.name).chmod(0o755)
    mounted = FETCH[name](context) if name in FETCH else []
    (context / "Dockerfile").write_text(STAND_INS[name])
    host, _, _ = name.partition("/")
    whole = name if "." in host else f"docker.io/{name}" if host != name else f"docker.io/library/{name}"
    tag = tags()[name]  # under the name as it stands and the whole one, for whoever looks for either
    podman("build", "--quiet", "--network=host", *mounted, f"--tag={name}:{tag}", f"--tag={whole}:{tag}", str(context), seconds=1200)
    shutil.rmtree(context)


def settings_of_pip(directory: Path) -> dict[Path, str]:
    """What the build of our images needs to reach the same packages as pip on this machine: file here -> where it is mounted while it builds."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^(?:global|install|:env:)\.([\w-]+)='(.*)'$", said, re.MULTILINE))
    settings = {key: value for key, value in found.items() if key != "find-links"}
    trusted = Path(settings.get("cert") or ssl.get_default_verify_paths().openssl_cafile)
    settings["cert"] = "/etc/ssl/certs/ca-certificates.crt"
    parser = configparser.ConfigParser(interpolation=None)
    parser["global"] = settings
    with (directory / "pip.conf").open("w") as file:
        parser.write(file)
    return {directory / "pip.conf": "/etc/pip.conf", trusted.resolve(): settings["cert"]}


def _trust(context: Path) -> list[str]:
    """The certificates that Java trusts on this machine: jars are fetched with them."""
    shutil.copy("/etc/ssl/certs/java/cacerts", context)
    return []


def _seaweedfs(context: Path) -> list[str]:
    """Builds it as its own Dockerfile does; beside it are its own entry point and settings."""
    said = subprocess.run(["go", "mod", "download", "-json", SEAWEEDFS], capture_output=True, text=True, check=True, cwd=context).stdout
    # Its module replaces others, so it has to be the main one: a copy.
    source = context / "source"
    shutil.copytree(json.loads(said)["Dir"], source)
    subprocess.run(["chmod", "-R", "u+w", source], check=True)
    command = ["go", "build", "-ldflags", "-s -w", "-o", context / "weed", "./weed"]
    subprocess.run(command, cwd=source, env={**os.environ, "CGO_ENABLED": "0"}, check=True, capture_output=True, timeout=2400)
    for file in ("entrypoint.sh", "filer.toml"):
        shutil.copy(source / "docker" / file, context)
        (context / file).chmod(0o755)
    shutil.rmtree(source)
    return []


def _kafka(context: Path) -> list[str]:
    version = tags()["apache/kafka"]
    needed = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for name in ("kafka_2.13", "kafka-tools")
    )
    head = "<modelVersion>4.0.0</modelVersion><groupId>here</groupId><artifactId>libs</artifactId><version>1</version>"
    (context / "pom.xml").write_text(f"<project>{head}<dependencies>{needed}</dependencies></project>")
    _maven(context, "copy-dependencies", f"-DoutputDirectory={context / 'libs'}")
    return []


def _debezium(context: Path) -> list[str]:
    """The archive; its description names a parent that Maven does not have, so an empty one is put where it looks first."""
    version, local = tags()["quay.io/debezium/server"], context.parent / "maven"
    parent = local / "io" / "debezium" / "debezium-server" / version / f"debezium-server-{version}.pom"
    parent.parent.mkdir(parents=True)
    said = f"<groupId>io.debezium</groupId><artifactId>debezium-server</artifactId><version>{version}</version><packaging>pom</packaging>"
    parent.write_text(f"<project><modelVersion>4.0.0</modelVersion>{said}</project>")
    wanted = f"-Dartifact=io.debezium:debezium-server-dist:{version}:tar.gz"
    _maven(context, "copy", wanted, f"-DoutputDirectory={context.parent}", "-Dmdep.useBaseVersion=true", f"-Dmaven.repo.local={local}")
    archive = context.parent / f"debezium-server-dist-{version}.tar.gz"  # not in the context: it is large
    return [f"--volume={archive}:/mnt/server.tar.gz:ro"]


def _maven(folder: Path, goal: str, *settings: str) -> None:
    command = ["mvn", "-B", "-q", f"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:{goal}", *settings]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=900)


FETCH: dict[str, Callable[[Path], list[str]]] = {
    "eclipse-temurin": _trust,
    "chrislusf/seaweedfs": _seaweedfs,
    "apache/kafka": _kafka,
    "quay.io/debezium/server": _debezium,
}
"""What is put into the folder of a build before, and returns further arguments for podman."""
