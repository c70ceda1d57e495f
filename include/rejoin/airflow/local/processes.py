"""Processes that outlive whoever started them: each leads a process group, and is known by its pid and the time of its start."""

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import psutil

Known = tuple[int, float]
"""A process: its pid and the time of its start, so that another process of the same pid is not taken for it."""


def start(command: list[str], environment: dict[str, str], directory: Path, log: Path) -> Known:
    """Starts one; its output is added to ``log``."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, env=environment, cwd=directory, stdout=out, stderr=out, start_new_session=True)
    return process.pid, psutil.Process(process.pid).create_time()


def running(known: Known) -> psutil.Process | None:
    """The process, if it is still the same one."""
    pid, began = known
    try:
        process = psutil.Process(pid)
        return process if abs(process.create_time() - began) < 1 and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def end(processes: Collection[Known]) -> None:
    """Ends them and what they started, which may have outlived them: asks, asks again, then kills."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        left = [p for known in processes if (p := running(known)) is not None]
        groups = _groups(pid for pid, _ in processes)
        if not left and not groups:
            break
        for group in groups | {p.pid for p in left}:
            _signal(group, sign)
        psutil.wait_procs(left, timeout=15)
        time.sleep(0.5)


def _groups(leaders: Iterable[int]) -> set[int]:
    """Those of the process groups that still have a member."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(os.getpgid(process.pid))
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found & set(leaders)


def _signal(group: int, sign: signal.Signals) -> None:
    try:
        os.killpg(group, sign)
    except ProcessLookupError:
        return
