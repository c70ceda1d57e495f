"""Hosts of a network of their own, on this machine: each has a network namespace with one address, a name, and files that the others do not see.

They hang on a bridge that is in a namespace itself, so that the machine's own network is as it was, and all of it is gone with the processes. Needs root and iproute2.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

NETWORK = "10.77.0"


@dataclass(frozen=True)
class Host:
    """Where a process of a test runs.

    Attributes:
        address: at which the others reach it.
        prefix: what a command begins with, to run there. The process is the command's own: each command becomes the next one.
    """

    address: str
    prefix: tuple[str, ...] = ()

    def command(self, *words: object) -> list[str]:
        """A command, to be run there."""
        return [*self.prefix, *map(str, words)]


HERE = Host("127.0.0.1")
"""This machine, on loopback."""


@contextmanager
def hosts(
    names: Sequence[str], directory: Path, *, knowing: Mapping[str, Sequence[str]], hidden: Mapping[str, Sequence[Path]]
) -> Iterator[dict[str, Host]]:
    """New hosts by their names. Each knows its own name.

    Args:
        names: of the hosts.
        directory: for their files of names.
        knowing: the names of other hosts that a host knows.
        hidden: directories that a host sees empty.
    """
    addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, start=1)}
    with ExitStack() as stack:
        bridge = stack.enter_context(_namespace("ip link set lo up && ip link add bridge type bridge && ip link set bridge up"))
        made = {}
        for name, address in addresses.items():
            known = directory / f"hosts.{name}"
            known.write_text("127.0.0.1 localhost\n" + "".join(f"{addresses[n]} {n}\n" for n in (name, *knowing.get(name, ()))))
            empty = " ".join(f"&& mount -t tmpfs none '{path}'" for path in hidden.get(name, ()))
            pid = stack.enter_context(_namespace(f"hostname {name} && mount --bind '{known}' /etc/hosts && ip link set lo up {empty}"))
            _joined(bridge, pid, f"to{name}"[:15], address)
            made[name] = Host(address, (*_inside(pid), "setpriv", "--pdeathsig", "KILL"))
        yield made


@contextmanager
def _namespace(begin: str) -> Iterator[int]:
    """New namespaces of network, files and names, after some commands in them; yields the process that holds them. They end with this process, too: it has no more input then."""
    held = ["unshare", "--net", "--mount", "--uts", "sh", "-c", f"{begin} && echo up && exec cat"]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == b"up\n", "no namespace: it needs root, iproute2 and util-linux"
            yield process.pid
        finally:
            process.stdin.close()


def _inside(pid: int) -> tuple[str, ...]:
    return ("nsenter", f"--target={pid}", "--net", "--mount", "--uts", f"--wd={Path.cwd()}")


def _joined(bridge: int, host: int, port: str, address: str) -> None:
    """Plugs a host into the bridge."""
    for pid, words in (
        (bridge, f"ip link add {port} type veth peer name eth0 netns {host}"),
        (bridge, f"ip link set {port} master bridge up"),
        (host, f"ip address add {address}/24 dev eth0"),
        (host, "ip link set eth0 up"),
    ):
        subprocess.run([*_inside(pid), *words.split()], check=True)
