"""A broker that asks for users, over plain connections and over TLS, and gives them rights."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from integration.servers import KafkaServer

from rejoin.airflow.local.server import free_port

USERS = {"shop": "letmein", "none": "nothing", "looks": "looking"}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_ASKING = ("sasl_plaintext", "sasl_ssl")


class GuardedCluster(KafkaServer):
    """Who comes without a user may do everything: the test itself."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.plain_port, self.tls_port = free_port(), free_port()
        keys, self._certificate = directory / "keys.p12", directory / "ca.pem"
        tool = ["keytool", "-alias", "b", "-keystore", str(keys), "-storepass", "secret1"]
        made = ["-genkeypair", "-keyalg", "RSA", "-storetype", "PKCS12", "-dname", "CN=b", "-ext", "san=ip:127.0.0.1", "-validity", "2"]
        subprocess.run([*tool, *made], check=True, capture_output=True)
        subprocess.run([*tool, "-exportcert", "-rfc", "-file", str(self._certificate)], check=True, capture_output=True)
        login = _LOGIN + "".join(f' user_{name}="{word}"' for name, word in USERS.items()) + ";"
        more = {
            "sasl.enabled.mechanisms": "PLAIN",
            **{f"listener.name.{name}.plain.sasl.jaas.config": login for name in _ASKING},
            "ssl.keystore.location": keys,
            "ssl.keystore.password": "secret1",
            "ssl.keystore.type": "PKCS12",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        here = f"SASL_PLAINTEXT://127.0.0.1:{self.plain_port},SASL_SSL://127.0.0.1:{self.tls_port}"
        kept = self._properties.read_text().replace("\nlisteners=", f"\nlisteners={here},")
        kept = kept.replace("CONTROLLER:PLAINTEXT", "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL")
        self._properties.write_text(kept + "".join(f"{k}={v}\n" for k, v in more.items()))

    @property
    def with_password(self) -> dict[str, str]:
        """Settings of a client that says who it is."""
        who = {"sasl.mechanism": "PLAIN", "sasl.username": "shop", "sasl.password": USERS["shop"]}
        return {"bootstrap.servers": f"127.0.0.1:{self.plain_port}", "security.protocol": "SASL_PLAINTEXT", **who}

    @property
    def with_tls(self) -> dict[str, str]:
        """The same over TLS."""
        safe = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self._certificate)}
        return {**self.with_password, **safe, "bootstrap.servers": f"127.0.0.1:{self.tls_port}"}

    def let(self, admin: AdminClient, topic: str, user: str, *, read: bool) -> None:
        """Gives the right to look at a topic, and to read it."""
        for operation in [AclOperation.DESCRIBE, *([AclOperation.READ] if read else [])]:
            place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
            right = AclBinding(*place, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            admin.create_acls([right])[right].result(20)


@contextmanager
def guarded(directory: Path) -> Iterator[GuardedCluster]:
    """A running one."""
    server = GuardedCluster(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
