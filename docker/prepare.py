"""What must be there before the services start, made once and left alone afterwards: the password file of Airflow, the bucket of the lake."""

import json
import os
from pathlib import Path

from pyarrow.fs import FileType, S3FileSystem


def passwords() -> None:
    """Writes the only user's password where Airflow's simple login looks for it: without the file it would invent one and log it."""
    path = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    user = os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(":")[0]
    path.touch(mode=0o600)
    path.write_text(json.dumps({user: os.environ["AIRFLOW_ADMIN_PASSWORD"]}))


def bucket(name: str) -> None:
    """Makes the bucket unless it is there."""
    store = S3FileSystem(
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=os.environ["LAKE_S3_ENDPOINT"],
        region="us-east-1",
        allow_bucket_creation=True,
    )
    if store.get_file_info(name).type is FileType.NotFound:
        store.create_dir(name)


if __name__ == "__main__":
    passwords()
    bucket("lake")
