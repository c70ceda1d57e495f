"""Health checks of docker-compose.yaml that start no second Airflow or JVM; exits with 0 if all is well.

``health.py port HOST PORT``: something listens there. ``health.py airflow URL PART``: Airflow says that this part of it is healthy.
"""

import json
import socket
import sys
from urllib.request import urlopen


def main(kind: str, *arguments: str) -> bool:
    """Whether it is healthy; an error says the same as False."""
    if kind == "port":
        host, port = arguments
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    url, part = arguments
    with urlopen(f"{url}/api/v2/monitor/health", timeout=5) as answer:
        return bool(json.load(answer)[part]["status"] == "healthy")


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) else 1)
