"""Step 3: due intents are read, their fields are chosen and written down as a prepared envelope.

Reading and parsing happen outside any transaction, one document once a step. What fails, fails its intent
alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from dragoman.content import documents, selection
from dragoman.content.basis import Basis
from dragoman.content.locks import Locks
from dragoman.kernel import canonical
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CallerError, DocumentError, DragomanError, SourceError
from dragoman.kernel.identity import Chance, key_hash, sha256
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import (
    FIELD_KEY_CHARS_MAX,
    PREPARE_PER_STEP,
    SHARD_LEASE_SECONDS,
    STEP_SECONDS,
)
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import Format, Source
from dragoman.model.documents import Block, Document
from dragoman.model.intents import DueIntent, Mode, Preparation, ShardWork
from dragoman.model.jobs import Capacity
from dragoman.model.memories import Library
from dragoman.store.acts import preparing
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper

_log = logger(__name__)

_WIRE_KEY = re.compile(r"[A-Za-z0-9_.:/\[\]-]+")
Known = Mapping[str, Any]


class Preparing:
    """Prepares the due intents of one shard a step."""

    def __init__(
        self,
        database: Database,
        keeper: Keeper,
        clock: Clock,
        chance: Chance,
        offload: Offload,
        source_of: Callable[[Mapping[str, Any]], Source],
        formats: Sequence[Format],
        per_step: int = PREPARE_PER_STEP,
        capacity: Callable[[], Awaitable[Capacity]] | None = None,
    ) -> None:
        self._database = database
        self._keeper = keeper
        self._clock = clock
        self._chance = chance
        self._offload = offload
        self._source_of = source_of
        self._formats = formats
        self._per_step = per_step
        self._capacity = capacity

    async def step(self) -> int:
        """Take one due shard, prepare its due intents, record what came of each; how many were worked."""
        work = await self._keeper.claim(preparing.claim_due_intents, self._keeper.owner, self._per_step)
        if work is None:
            return 0
        lease = self._keeper.hold("shards", (work.manifest_id, work.shard), work.fence, SHARD_LEASE_SECONDS)
        try:
            known = await self._database.read(preparing.known_entries, work)
            library = await self._database.read(preparing.library, work)
            capacity = Capacity() if self._capacity is None else await self._capacity()
            until = self._clock.monotonic() + min(STEP_SECONDS, lease.left_seconds())
            prepared = await self._offload.call(
                self._prepare_all, work, known, library, capacity.field_chars_max, until
            )
            await self._database.run(preparing.record_preparations, work, prepared, self._chance.fraction())
        finally:
            self._keeper.drop(lease)
        return len(prepared)

    def _prepare_all(
        self,
        work: ShardWork,
        known: Mapping[tuple[str, str], Known],
        library: Library,
        chars_max: int,
        until: float,
    ) -> list[Preparation]:
        """Prepare in order while there is time; the rest stays due."""
        basis = Basis(work.settings, library)
        asked = sorted({intent.document for intent in work.intents})
        reader = _Reader(self._source_of(work.settings), self._formats, work.settings, asked)
        outcomes: list[Preparation] = []
        for intent in work.intents:
            if outcomes and self._clock.monotonic() >= until:
                break
            outcomes.append(
                _prepare(
                    intent,
                    reader,
                    work.settings,
                    known.get((intent.document, intent.locale), {}),
                    partial(basis.of, intent.locale),
                    chars_max,
                )
            )
        return outcomes


class _Reader:
    """Reads each source document once; answers what it gave for all locales.

    Rights and existence are asked for the whole step at once, and a source that cannot say stays asked.
    """

    def __init__(
        self,
        source: Source,
        formats: Sequence[Format],
        settings: Mapping[str, Any],
        asked: Sequence[str],
    ) -> None:
        self._source = source
        self._formats = formats
        self._locale = str(settings["source_locale"])
        self._read: dict[str, tuple[Format, Document, str] | DragomanError] = {}

        self._asked = asked
        self._rules: dict[tuple[str, str], str] = {}
        self._answers: dict[str, Mapping[str, bool] | DragomanError] = {}

    def may_edit(self, actor: str, document: str) -> bool:
        rights = self._once(f"may {actor} edit", lambda: self._source.can_edit(actor, self._asked))
        return bool(rights.get(document, False))

    def _once(self, question: str, ask: Callable[[], Mapping[str, bool]]) -> Mapping[str, bool]:
        if question not in self._answers:
            try:
                self._answers[question] = ask()
            except DragomanError as error:
                self._answers[question] = error
        answer = self._answers[question]
        if isinstance(answer, DragomanError):
            raise answer
        return answer

    def source(self, document: str) -> tuple[Format, Document, str]:
        """Format, parsed source and the fingerprint of its bytes."""
        if document not in self._read:
            self._read[document] = self._open(document)
        found = self._read[document]
        if isinstance(found, DragomanError):
            raise found
        return found

    def _open(self, document: str) -> tuple[Format, Document, str] | DragomanError:
        try:
            there = self._once("exists", lambda: self._source.exists(self._asked))
            if not there.get(document, False):
                return CallerError(f"no document {document}", "document_not_found")
            data = self._source.read(document)
            form = documents.choose_format(self._formats, document, data)
            return form, documents.open_document(form, document, data, "source", self._locale), sha256(data)
        except DragomanError as error:
            return error

    def rule(self, form: Format, document: str) -> str:
        """What selects the fields of a document, reckoned once for its collection."""
        collection = self._source.collection_of(document)
        place = (collection, form.name)
        if place not in self._rules:
            self._rules[place] = selection.rule_of(form, collection)
        return self._rules[place]

    def target(self, form: Format, document: str, locale: str) -> Document | None:
        data = self._source.read_target(document, locale)
        if data is None or not data.strip():
            return None
        path = self._source.target_path(document, locale)
        try:
            return documents.open_document(form, path, data, "target", locale)
        except DocumentError as error:
            raise DocumentError(f"the target {path} cannot be read: {error.message}") from error


def _prepare(
    intent: DueIntent,
    reader: _Reader,
    settings: Mapping[str, Any],
    known: Known,
    basis_of: Callable[[Block], str],
    chars_max: int,
) -> Preparation:
    try:
        if not reader.may_edit(intent.actor, intent.document):
            raise CallerError(f"{intent.actor} may no longer edit {intent.document}", "authorization_revoked")
        form, source, fingerprint = reader.source(intent.document)
        target = reader.target(form, intent.document, intent.locale)
        mode = cast(Mode, settings["mode"])
        chosen = selection.select(mode, form.whole, source, target, known, basis_of)
        chosen = Locks(settings.get("locked", ())).hold_back(chosen, intent.document, form.whole)
        if not chosen.blocks:
            outcome = "all_protected" if chosen.protected else "nothing_to_do"
            return Preparation(intent, outcome, seen=chosen.seen, relabeled=chosen.relabeled)  # type: ignore[arg-type]
        for block in chosen.blocks:
            _refuse_unfit(block, chars_max)
        rule = reader.rule(form, intent.document)
        return _envelope(intent, chosen, fingerprint, rule, basis_of)
    except SourceError as error:
        return Preparation(intent, "wait", code=error.code, message=error.message)
    except DragomanError as error:
        return Preparation(intent, "refuse", code=error.code, message=error.message)
    except Exception as error:  # noqa: BLE001 - a defect of ours that one document shows stops no other
        _log.exception("document failed", intent=intent.id)
        return Preparation(
            intent, "refuse", code="internal_error", message=f"{type(error).__name__} while it was prepared"
        )


def _envelope(
    intent: DueIntent,
    chosen: selection.Selection,
    source_fingerprint: str,
    rule: str,
    basis_of: Callable[[Block], str],
) -> Preparation:
    fields, key_map = {}, {}
    for block in chosen.blocks:
        wire_key = _wire_key(block.key)
        fields[wire_key] = _wire_field(block)
        key_map[wire_key] = [block.key, selection.text_hash(block.value), basis_of(block)]
    content: dict[str, Any] = {"fields": fields}
    envelope = {"schema_version": 1, "checksum": canonical.fingerprint(content), **content}
    return Preparation(
        intent,
        "prepare",
        prepared=canonical.encode(envelope).decode("utf-8"),
        key_map=json.dumps(key_map, ensure_ascii=False),
        source_fingerprint=source_fingerprint,
        selection_fingerprint=rule,
        fields=len(fields),
        seen=chosen.seen,
        relabeled=chosen.relabeled,
    )


def _refuse_unfit(block: Block, chars_max: int) -> None:
    """What the engine would not take fails here, alone, and not with all that it would be sent with."""
    texts = [block.text] if block.plural is None else list(block.plural.values())
    if any("\0" in text for text in texts):
        raise CallerError(f"field {block.key!r} holds a NUL character", "invalid_fields")
    longest = max(map(len, texts))
    if longest > chars_max:
        raise CallerError(
            f"field {block.key!r} has {longest} characters, at most {chars_max}", "payload_too_large"
        )


def _wire_key(key: str) -> str:
    """The key itself where the wire's alphabet holds it, else a hash of it."""
    if len(key) <= FIELD_KEY_CHARS_MAX and _WIRE_KEY.fullmatch(key) and not key.startswith("h:"):
        return key
    return "h:" + key_hash(key)[:60]


def _wire_field(block: Block) -> dict[str, Any]:
    field: dict[str, Any] = {"syntax": block.syntax}
    if block.plural is None:
        field["text"] = block.text
    else:
        field["plural"] = dict(block.plural)
    if block.note:
        field["note"] = block.note
    if block.context:
        field["context"] = block.context
    if block.max_length is not None:
        field["max_length"] = block.max_length
    return field
