"""The tree of a project whose files are sent here: listed, read, and changed under conditions.

It lies in the state folder, one folder a workspace and project, and holds what its owner sent and what
publishing wrote. Every change says what it expects to find; so an owner who sends and a publication that
writes at the same moment do not overwrite each other.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

from dragoman.kernel.errors import CODES, CallerError, DragomanError, OutsideError
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import DOCUMENT_BYTES_MAX, DOCUMENT_REF_CHARS_MAX
from dragoman.kernel.offload import Offload
from dragoman.model.effects import Answer

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
Put = Callable[[Path, str, bytes | None, str], Answer]
"""Writes or removes (root, path, bytes, SHA-256 of what stands there or empty), at once or not at all."""


class Uploading:
    """`tree_of` gives the root of a workspace's project, None where its files do not lie here."""

    def __init__(self, tree_of: Callable[[str, str], Path | None], put: Put, offload: Offload) -> None:
        self._tree_of = tree_of
        self._put = put
        self._offload = offload

    async def listing(
        self, workspace: str, project: str, after: str, limit: int
    ) -> tuple[list[dict[str, str]], str | None]:
        """Files in the order of their paths, `{path, sha256}` each, and the path to go on behind."""
        return await self._offload.call(_listed, self._root(workspace, project), after, limit)

    async def read(self, workspace: str, project: str, path: str) -> bytes:
        """One file. Raises `CallerError` not_found."""
        return await self._offload.call(_read, self._root(workspace, project), _fit(path))

    async def change(
        self, workspace: str, project: str, path: str, data: bytes | None, expected: str
    ) -> None:
        """Put a file in place, or remove it. Raises `CallerError`: target_raced, target_refused."""
        root = self._root(workspace, project)
        answer = await self._offload.call(self._put, root, _fit(path), data, expected)
        if answer.outcome == "SUCCEEDED":
            return
        if answer.code in CODES and answer.outcome == "REJECTED":
            raise CallerError(answer.message, answer.code, place="query.path")
        raise OutsideError(answer.message or "the file system did not answer")

    def _root(self, workspace: str, project: str) -> Path:
        root = self._tree_of(workspace, project)
        if root is None:
            raise CallerError("no such project here, or its files lie elsewhere", "not_found")
        return root


def _fit(path: str) -> str:
    """The path as it is kept. Raises `CallerError` for one that is absolute, hidden or leads elsewhere."""
    parts = path.split("/")
    odd = any(not part or part.startswith(".") for part in parts) or _CONTROL.search(path)
    if odd or len(path) > DOCUMENT_REF_CHARS_MAX or posixpath.isabs(path):
        raise CallerError("path must be relative, without empty or hidden parts", place="query.path")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise CallerError("path must be Unicode", place="query.path") from None
    return unicodedata.normalize("NFC", path)


def _listed(root: Path, after: str, limit: int) -> tuple[list[dict[str, str]], str | None]:
    paths: list[str] = []
    for here, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith(".")]
        shown = [Path(here, file).relative_to(root).as_posix() for file in files if not file.startswith(".")]
        paths += [path for path in shown if path > after]
    page = sorted(paths)[:limit]
    items = []
    for path in page:
        try:
            items.append({"path": path, "sha256": sha256((root / path).read_bytes())})
        except FileNotFoundError:  # removed a moment ago
            continue
    return items, page[-1] if len(paths) > limit else None


def _read(root: Path, path: str) -> bytes:
    place = (root / path).resolve()
    try:
        if place.is_relative_to(root.resolve()) and place.stat().st_size <= DOCUMENT_BYTES_MAX:
            return place.read_bytes()
    except (OSError, ValueError) as error:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError)):
            raise DragomanError(f"{path} cannot be read: {type(error).__name__}") from error
    raise CallerError(f"no file {path}", "not_found", place="query.path")
