"""podman for podman-compose: in the network namespace that its first argument names, with what compose asks of a podman newer than Debian 12's (4.3).

That one knows no condition "healthy" and no interval of its own for the time of starting, and it leaves the repetition of health checks to systemd,
which a machine of tests need not have: whoever waits for a container's health runs the container's own check until it says yes. It starts no container
that requires one that has ended, as ``airflow-init`` does: who waits for whom is podman-compose's business alone.
"""

import os
import subprocess
import sys
import time

SAID = "podman version 4.6.0"
"""The first version with that condition: what podman-compose has to hear, or it would wait for no health at all."""


def command(namespace: str) -> list[str]:
    """What podman's arguments come behind."""
    return ["nsenter", f"--net=/run/netns/{namespace}", "podman"]


def wait_for_health(namespace: str, name: str, seconds: float) -> None:
    """Returns when the container's health check has said yes.

    Raises:
        TimeoutError: it did not, within these seconds.
    """
    deadline = time.monotonic() + seconds
    while (
        done := subprocess.run([*command(namespace), "healthcheck", "run", name], capture_output=True, text=True, check=False)
    ).returncode:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} is not healthy: {done.stdout}{done.stderr}")
        time.sleep(1)


def main(namespace: str, *said: str) -> None:
    """Runs podman in the place of this process, or does what it cannot."""
    arguments = [one for one in said if one]
    if arguments[:1] == ["--version"]:
        print(SAID)
        return
    if arguments[:2] == ["wait", "--condition=healthy"]:
        for name in arguments[2:]:
            wait_for_health(namespace, name, seconds=600)
        return
    arguments = [one for one in arguments if not one.startswith("--requires")]
    if "--health-startup-interval" in arguments:
        at = arguments.index("--health-startup-interval")
        del arguments[at : at + 2]
    # What is built needs the registries of packages, which the namespace does not reach.
    whole = ["podman", *arguments] if arguments[:1] == ["build"] else [*command(namespace), *arguments]
    os.execvp(whole[0], whole)


if __name__ == "__main__":
    main(*sys.argv[1:])
