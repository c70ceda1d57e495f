"""Writes ``.env`` with a random secret for every one that docker-compose.yaml asks for. Refuses to overwrite: the volumes know the old ones."""

import base64
import os
import secrets
import sys
from pathlib import Path

PASSWORDS = (
    "METADATA_PASSWORD",
    "LAKE_PASSWORD",
    "SOURCE_PASSWORD",
    "DEBEZIUM_PASSWORD",
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_SECRET_KEY",
    "AIRFLOW_JWT_SECRET",
    "S3_ACCESS_KEY",
    "S3_SECRET_KEY",
    "SPARK_TOKEN",
)


def settings() -> dict[str, str]:
    """New values each time: hexadecimal, so that they can stand in an address as they are."""
    made = {name: secrets.token_hex(10 if name == "S3_ACCESS_KEY" else 32) for name in PASSWORDS}
    made["AIRFLOW_FERNET_KEY"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    # The containers run as the owner of the checkout, who can read what is mounted, and never as root.
    made["REJOIN_UID"] = str(os.getuid() or 50000)
    return made


def main(path: Path) -> int:
    """Writes the file for this user's eyes only; 1 if there is one already."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(
            f"{path} is there already and stays as it is; `docker compose down --volumes`, then remove it, to begin anew", file=sys.stderr
        )
        return 1
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings().items())
    print(f"{path}: made, with random secrets. Airflow's login is admin and AIRFLOW_ADMIN_PASSWORD.")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
