"""Every measurement runs in a process of its own, so that none inherits another's caches or threads."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def measured(module: str, *arguments: object) -> dict[str, Any]:
    """Run `python -m bench.<module> …`; the JSON object that its last line is. Its errors are ours."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def tell(**measures: object) -> None:
    """A child's last line."""
    print(json.dumps(measures), flush=True)


@contextlib.contextmanager
def helper(module: str, *arguments: object) -> Iterator[str]:
    """A server beside the measurement; gives the first line that it prints, and ends it afterwards."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline().strip()
            if not first:
                raise RuntimeError(f"bench.{module} did not start")
            yield first
        finally:
            process.terminate()


def together(module: str, count: int, *arguments: object) -> float:
    """Start some children, let them go at once when all are ready; seconds until the last has ended."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    _wait_for("ready", children)
    began = time.perf_counter()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    _wait_for("done", children)
    took = time.perf_counter() - began
    for child in children:
        child.communicate()
    return took


def side_by_side(count: int, *arguments: object) -> list[dict[str, Any]]:
    """Start so many engine processes, let them go at once when all are ready; what each told at its end."""
    command = [sys.executable, "-m", "bench.engine_work", *map(str, arguments)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    _wait_for("ready", children)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]


def ready() -> None:
    """A child of `together` says that it is ready, and waits for the word."""
    print("ready", flush=True)
    sys.stdin.readline()


def done() -> None:
    """A child of `together` says that its work is done."""
    print("done", flush=True)


def cpu_seconds() -> float:
    """What this process has used so far, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_megabytes() -> float:
    """The most memory that this process has had resident.

    Not by `getrusage`: there a child begins with what its parent had when it was forked.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell the peak of a process's memory")


def resident_megabytes(pid: int) -> float:
    """The memory that a process has resident now."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _wait_for(word: str, children: Sequence[subprocess.Popen[str]]) -> None:
    for child in children:
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        if said != word:
            raise RuntimeError(f"{child.args!r} said {said!r} instead of {word!r}")
