"""Which source a manifest reads: picked from its frozen settings, which hold an address and the name of an
environment variable, and never a token.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dragoman.content.sources.folder import FolderSource
from dragoman.content.sources.http_source import HttpSource
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import SourceError
from dragoman.model.contracts import Source
from dragoman.wiring import catalogue
from dragoman.wiring.settings import ProjectSettings, Settings


def source_of(frozen: Mapping[str, Any]) -> Source:
    """The source that a manifest's frozen settings name."""
    named: Mapping[str, Any] = frozen.get("source") or {}
    if named.get("kind") == "http":
        variable = str(named["token_variable"])
        return HttpSource(
            str(named["url"]), lambda: token_of(variable), str(frozen["source_locale"]), SystemClock()
        )
    return FolderSource(
        Path(str(frozen["root"])),
        str(frozen.get("out") or ""),
        frozen.get("templates"),
        catalogue.formats(),
        str(frozen.get("source_locale") or ""),
        named.get("collections"),
    )


def tree_of(settings: Settings, workspace: str, project: str) -> Path | None:
    """The folder of a project whose files are sent here; None where it has another source."""
    chosen = settings.projects.get(project)
    if chosen is None or chosen.source != "upload":
        return None
    place = (settings.state_folder / "trees").absolute()
    return place / quote(workspace, safe="") / quote(project, safe="")


def frozen_source(settings: Settings, project: str, asked: str = "", workspace: str = "") -> dict[str, Any]:
    """What a manifest freezes of its project's source, and who publishes to it: `asked`, where that can."""
    chosen = settings.projects.get(project, ProjectSettings())
    frozen: dict[str, Any] = {
        "source_locale": chosen.source_locale or settings.source_locale,
        "executor": chosen.executor or _fitting(f"{chosen.source}:v1", asked, settings.executor),
    }
    if chosen.locked:
        frozen["locked"] = list(chosen.locked)
    if chosen.source == "upload":
        tree = tree_of(settings, workspace or settings.workspace, project)
        frozen |= {"root": str(tree), "executor": chosen.executor or "files:v1"}
    if chosen.source == "http":
        url = chosen.url.rstrip("/")
        frozen["source"] = {"kind": "http", "url": url, "token_variable": chosen.token_variable}
    elif chosen.collections:
        globs = {name: list(patterns) for name, patterns in chosen.collections.items()}
        frozen["source"] = {"kind": "files", "collections": globs}
    return frozen


def _fitting(own: str, *wanted: str) -> str:
    """The executor that writes to this source, where somebody wants it; else nothing is written."""
    return own if own in wanted else "dry-run:v1"


def token_of(variable: str) -> str:
    """The token as it stands in the environment now; none where no variable is named."""
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise SourceError(f"the environment variable {variable} holds no token for the source")
    return token
