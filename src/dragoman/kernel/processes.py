"""Who this process is, and whether another one is provably gone.

An owner is `host/boot/pid/start-time`. The boot part also names the space of process numbers (a container has
its own), the start time is in ticks since that boot. What cannot be proved is taken for alive: only then may
its leases be freed before they run out.
"""

from __future__ import annotations

import gc
import os
import socket
from pathlib import Path

from dragoman.kernel.limits import OBJECTS_BETWEEN_COLLECTIONS

_PROC = Path("/proc")
_UNKNOWN = "unknown"
_DEAD_STATES = "ZXx"


def owner() -> str:
    """This process, as it signs its leases: at most 160 characters."""
    pid = os.getpid()
    state_and_start = _look_up(pid)
    start = state_and_start[1] if state_and_start else 0
    return f"{_host()}/{_boot()}/{pid}/{start}"


def collect_less_often() -> None:
    """Let Python's collector of cycles come by less often than every 700 objects.

    What a call makes lives until the call is closed and is then freed by its counts: to look through all of
    it again and again was a fifth of the CPU of a call.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])


def is_gone(name: str) -> bool:
    """Whether the process that signed as `name` ran on this host since its last boot, and runs no more."""
    parts = name.split("/")
    if len(parts) != 4 or not (parts[2].isdigit() and parts[3].isdigit()):
        return False
    host, boot, pid, start = parts[0], parts[1], int(parts[2]), int(parts[3])
    if host != _host() or boot != _boot() or boot == _UNKNOWN:
        return False
    if not _exists(pid):
        return True
    found = _look_up(pid)
    if found is None:
        return False
    state, started = found
    return state in _DEAD_STATES or started != start


def _host() -> str:
    return socket.gethostname().replace("/", "-")[:64]


def _boot() -> str:
    """The kernel's boot id and the number of this process's pid namespace."""
    try:
        boot_id = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        space = os.stat(_PROC / "self/ns/pid").st_ino
    except OSError:
        return _UNKNOWN
    return f"{boot_id}-{space}"


def _exists(pid: int) -> bool:
    """Whether a process of this number runs, also one that is hidden from us."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _look_up(pid: int) -> tuple[str, int] | None:
    """State letter and start time in ticks, as `/proc/<pid>/stat` has them after the name in brackets."""
    try:
        line = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = line[line.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])
