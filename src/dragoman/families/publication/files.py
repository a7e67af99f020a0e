"""Executor `files:v1`: puts files into a folder, each replaced at once or not at all.

What stands is compared before it is replaced, under a lock that all writers of ours share; what is already
as it shall be is left. So the same step again changes nothing and answers the same. A reader sees the old
file or the new one, never a part: the bytes are written beside, brought to the disk, and renamed. A full
disk or a read-only folder is a refusal, and leaves everything as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from dragoman.kernel.errors import sanitize
from dragoman.kernel.identity import sha256
from dragoman.kernel.offload import Offload
from dragoman.model.effects import Answer, Outgoing

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed",
    errno.EACCES: "the process may not write there",
    errno.EPERM: "the process may not write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EEXIST: "a part of the path is a file",
    errno.EISDIR: "a folder stands there",
    errno.ENAMETOOLONG: "the name is too long",
}

_NAME_CHARS = 12
_Mark = tuple[int, ...] | None


class Files:
    """Writes below a root. `root_of` gives the folder that a plan's root stands for."""

    name = "files:v1"

    def __init__(self, root_of: Callable[[str], Path], offload: Offload) -> None:
        self._root_of = root_of
        self._offload = offload

    async def run(self, outgoing: Outgoing, deadline_seconds: float) -> Answer:
        """One try, away from the loop. A folder that does not answer in time leaves the end unknown."""
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._offload.call(self._put, outgoing)
        except TimeoutError:
            return Answer(
                "TIMEOUT_UNKNOWN",
                code="PROVIDER_TIMEOUT_UNKNOWN",
                message=f"{outgoing.facts['target']}: the file system did not answer in time",
            )

    def _put(self, outgoing: Outgoing) -> Answer:
        wanted = None if outgoing.facts["act"] == "remove" else outgoing.body
        facts = outgoing.facts
        root, target = self._root_of(str(facts["root"])), str(facts["target"])
        return self.put(root, target, wanted, str(facts["expected"]), str(facts["step_key"]))

    def put(self, root: Path, target: str, wanted: bytes | None, expected: str, step_key: str = "") -> Answer:
        """Write or remove what stands as expected (SHA-256, empty for nothing). Blocking."""
        try:
            path = _inside(root, target)
            if wanted is None and not path.parent.is_dir():
                return self._done(target, wanted)
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(path.parent) as folder:
                mark, stands = _mark(path), _read(path)
                if stands != wanted:
                    if _hash(stands) != expected:
                        return _raced(target)
                    _change(path, wanted, mark, step_key)
                return self._done(target, wanted) if _is_kept(folder) else _unkept(target)
        except _Changed:
            return _raced(target)
        except OSError as error:
            return _refused(target, error)

    def _done(self, target: str, wanted: bytes | None) -> Answer:
        receipt = {
            "executor": self.name,
            "target": target,
            "applied": True,
            "sha256": _hash(wanted),
            "bytes": len(wanted or b""),
        }
        return Answer("SUCCEEDED", body=json.dumps(receipt).encode())


class _Changed(Exception):
    """Somebody else replaced the file between our look and our write."""


def _inside(root: Path, target: str) -> Path:
    """The real path of a target, which lies below the root, also where links lead."""
    ground = root.resolve()
    path = (ground / target).resolve()
    if path == ground or not path.is_relative_to(ground):
        raise OSError(errno.EACCES, f"{target} lies outside of the folder that is written to")
    return path


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The folder's descriptor, under a lock that ends with it, also when the process dies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _change(path: Path, wanted: bytes | None, before: _Mark, step_key: str) -> None:
    """Write beside, bring to the disk, look again, rename. The file beside has one name for each step."""
    if wanted is None:
        path.unlink()
        return
    beside = path.with_name(f".{sha256(step_key + path.name)[:_NAME_CHARS]}.dragoman")
    try:
        with beside.open("wb") as file:
            if before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(before[0]))
            file.write(wanted)
            file.flush()
            os.fsync(file.fileno())
        if _mark(path) != before:
            raise _Changed
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _is_kept(folder: int) -> bool:
    """Bring the folder's own entry to the disk."""
    try:
        os.fsync(folder)
    except OSError:
        return False
    return True


def _mark(path: Path) -> _Mark:
    """What tells one state of a file from another without reading it again."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns


def _hash(data: bytes | None) -> str:
    return "" if data is None else sha256(data)


def _raced(target: str) -> Answer:
    return Answer("REJECTED", code="target_raced", message=f"{target} was written by somebody else meanwhile")


def _unkept(target: str) -> Answer:
    return Answer(
        "CONNECTION_UNKNOWN",
        code="PROVIDER_CONNECTION_UNKNOWN",
        message=f"{target} was replaced, and the file system does not say that it will last",
    )


def _refused(target: str, error: OSError) -> Answer:
    reason = _REASONS.get(error.errno or 0) or error.strerror or type(error).__name__
    return Answer("REJECTED", code="target_refused", message=sanitize(f"{target}: {reason}"))
