"""What convergence asks of a project: which pairs it has now, how many fields of them are wanted, and a
manifest for a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.flow.site.admission import Admission, Caller
from dragoman.flow.site.convergence import Admit, Asks, Coverage, OrderOf
from dragoman.flow.site.estimate import Estimating
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import LIST_PAGE
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import Source
from dragoman.model.runs import Order
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import frozen_source, source_of, tree_of

Find = Callable[..., Any]
"""`find_sources`: the sources under some paths, and where their translations go."""


def of(
    settings: Settings, offload: Offload, find: Find, estimating: Estimating, admission: Admission
) -> Asks:
    """All that a run asks of a project."""
    return Asks(order_of(settings, offload, find), coverage(estimating), admit(admission))


def order_of(settings: Settings, offload: Offload, find: Find) -> OrderOf:
    """A project's pairs, read anew from its tree or its source."""

    async def of_project(workspace: str, project: str, asked: Mapping[str, Any]) -> Order:
        return await offload.call(read_order, settings, find, workspace, project, asked)

    return of_project


def read_order(
    settings: Settings, find: Find, workspace: str, project: str, asked: Mapping[str, Any]
) -> Order:
    """The same, here and now. Raises `DragomanError` for a tree or a source that cannot be read."""
    source = frozen_source(settings, project, str(asked.get("executor") or ""), workspace)
    source_locale = str(source["source_locale"])
    targets = sorted(set(asked.get("locales") or settings.locales) - {source_locale})
    if not targets:
        raise CallerError("no locale is named: neither here nor in dragoman.toml", "empty_request", "locales")
    provider, _, model = str(asked.get("provider") or settings.provider).partition(":")
    frozen = {
        "project": project,
        "mode": "changed",
        "provider": provider,
        "model": model,
        "root": str(settings.root.absolute()),
        "partial": "auto",
        "publish": "auto",
        **source,
    }
    if "source" in source:
        documents = _listed(source_of({"out": "", **frozen}), settings.pairs_max)
    else:
        found = _found(settings, find, workspace, project, source_locale, targets)
        documents, frozen["templates"] = list(found.templates), dict(found.templates)
    return Order(tuple(sorted((document, locale) for document in documents for locale in targets)), frozen)


def _found(
    settings: Settings, find: Find, workspace: str, project: str, source_locale: str, targets: list[str]
) -> Any:
    """The sources of a tree: this one, or what was sent here."""
    tree = tree_of(settings, workspace, project)
    if tree is None:
        paths = [settings.root / path for path in settings.sources] or [Path(settings.root)]
        return find(settings, paths, "", source_locale, targets)
    if not tree.is_dir():
        raise CallerError(
            "nothing was sent yet: `dragoman up` with `server` does", "empty_request", "project"
        )
    return find(settings.model_copy(update={"root": tree}), [tree], "", source_locale, targets)


def _listed(source: Source, most: int) -> list[str]:
    """Every document of a source that lists, so many at most."""
    contents = source.contents()
    documents = list(contents.globals)
    for collection in contents.collections:
        cursor: str | None = ""
        while cursor is not None and len(documents) < most:
            page = source.list(collection, cursor, LIST_PAGE, True)
            documents += page.documents
            cursor = page.next
    return list(dict.fromkeys(documents))[:most]


def coverage(estimating: Estimating) -> Coverage:
    """How many fields a project wants, read from sources and translations."""

    async def of_order(workspace: str, project: str, order: Order) -> int:
        told = await estimating.estimate(workspace, project, order.pairs, order.frozen)
        return int(told["total"]["fields"]) + len(told["unreadable"])

    return of_order


def admit(admission: Admission) -> Admit:
    """A pass of a run becomes one manifest, however often it is admitted."""

    async def a_pass(
        workspace: str, actor: str, project: str, request_id: str, order: Order, push_id: str
    ) -> str:
        caller = Caller(workspace, actor)
        admitted = await admission.admit_pairs(
            caller, project, request_id, order.pairs, order.frozen, push_id=push_id
        )
        return admitted.manifest_id

    return a_pass
