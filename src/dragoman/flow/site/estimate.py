"""What a request would cost, per locale, before anybody asks for it: memory included, nobody called.

Reads sources, targets and memory as a real run would, groups what is left as a real job would, and lets the
provider reckon its own requests. Writes nothing. `likely` is a reckoning and no promise; `at_most` is what
the calls would reserve, repairs and repeats left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from dragoman.content import documents, prompting, sameness, selection, submissions
from dragoman.content.basis import Basis
from dragoman.content.locks import Locks
from dragoman.kernel.errors import DragomanError, LocaleError
from dragoman.kernel.limits import BATCH_SIZE, ITEMS_PER_SUBMISSION
from dragoman.kernel.offload import Offload
from dragoman.model.completions import CompletionRequest
from dragoman.model.contracts import Expects, Format, Provider, Resolver, Source
from dragoman.model.documents import Block, Document
from dragoman.model.intents import Mode
from dragoman.model.jobs import Field, JobOptions, NewField, Submission, SubmittedField, SubmittedItem
from dragoman.model.memories import Known, Place, Shelf
from dragoman.model.scopes import Workspace
from dragoman.store.acts import estimating, remembering
from dragoman.store.database import Database

_MICRO = 1_000_000
_COUNTED = ("documents", "fields", "passed_through", "repeated", "from_memory", "to_translate", "characters")
_PRICED = ("calls", "likely_tokens", "likely_microusd", "most_tokens", "most_microusd")


class _Read(NamedTuple):
    """What one document has for one locale."""

    document: str
    locale: str
    blocks: tuple[Block, ...]


class Estimating:
    """Reckons requests; `providers` are asked for prices only."""

    def __init__(
        self,
        database: Database,
        source_of: Callable[[Mapping[str, Any]], Source],
        formats: Sequence[Format],
        resolve: Resolver,
        offload: Offload,
    ) -> None:
        self._database = database
        self._source_of = source_of
        self._formats = formats
        self._resolve = resolve
        self._offload = offload

    async def estimate(
        self, workspace: str, project: str, pairs: Sequence[tuple[str, str]], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The price of these pairs under frozen settings: `{provider, model, locales, total, unreadable}`.

        Raises `DragomanError`: provider_unknown, provider_credentials_missing.
        """
        provider = self._resolve(
            str(settings.get("provider") or ""),
            str(settings.get("model") or ""),
            str(settings.get("speed") or "standard"),
        )
        scope = Workspace(workspace)
        sums: dict[str, Counter[str]] = {locale: Counter() for _, locale in pairs}
        unsupported = {locale: refused for locale in sums if (refused := _refusal(provider, locale))}
        unreadable: dict[str, DragomanError] = {}
        shelf = Shelf(project, str(settings["source_locale"]))
        library = await self._database.read(remembering.library, scope, shelf, sorted(sums))
        basis = Basis({**settings, "project": project}, library)
        for page in _pages(sorted(pairs)):
            known = await self._database.read(estimating.known_entries, scope, project, page)
            read = await self._offload.call(self._read, settings, page, known, basis, unreadable)
            for locale in sorted({one.locale for one in read}):
                items = [one for one in read if one.locale == locale]
                fields = await self._offload.call(_fields, settings, items)
                place = Place(project, str(settings["source_locale"]), locale)
                remembered = await self._remembered(scope, place, fields)
                counts = _counted(fields, remembered)
                counts["documents"] = len(items)
                if locale not in unsupported:
                    counts += await self._offload.call(
                        _priced, provider, settings, locale, fields, remembered
                    )
                sums[locale] += counts
        return {
            "provider": provider.name,
            "model": provider.model,
            "priced": provider.priced,
            "locales": [
                {"locale": locale, **_shown(counts), "refused": unsupported.get(locale, "")}
                for locale, counts in sorted(sums.items())
            ],
            "total": _shown(sum(sums.values(), Counter())),
            "unreadable": [
                {"document": document, "code": error.code, "message": error.message}
                for document, error in sorted(unreadable.items())
            ],
        }

    def _read(
        self,
        settings: Mapping[str, Any],
        pairs: Sequence[tuple[str, str]],
        known: Mapping[tuple[str, str], Mapping[str, Any]],
        basis: Basis,
        unreadable: dict[str, DragomanError],
    ) -> list[_Read]:
        """The texts that each pair would be asked for; what cannot be read is put down and left out."""
        source = self._source_of(settings)
        opened: dict[str, tuple[Format, Document]] = {}
        locks = Locks(settings.get("locked", ()))
        found: list[_Read] = []
        for document, locale in pairs:
            if document in unreadable:
                continue
            try:
                if document not in opened:
                    opened[document] = self._open(source, document, str(settings["source_locale"]))
                form, text = opened[document]
                target = self._target(source, form, document, locale)
                mode = cast(Mode, settings.get("mode") or "missing")
                entries = known.get((document, locale), {})
                chosen = selection.select(mode, form.whole, text, target, entries, partial(basis.of, locale))
                chosen = locks.hold_back(chosen, document, form.whole)
                found.append(_Read(document, locale, chosen.blocks))
            except DragomanError as error:
                unreadable[document] = error
        return found

    def _open(self, source: Source, document: str, locale: str) -> tuple[Format, Document]:
        data = source.read(document)
        form = documents.choose_format(self._formats, document, data)
        return form, documents.open_document(form, document, data, "source", locale)

    @staticmethod
    def _target(source: Source, form: Format, document: str, locale: str) -> Document | None:
        data = source.read_target(document, locale)
        if data is None or not data.strip():
            return None
        path = source.target_path(document, locale)
        return documents.open_document(form, path, data, "target", locale)

    async def _remembered(self, scope: Workspace, place: Place, fields: Sequence[NewField]) -> set[int]:
        """Ordinals of the fields that the memory would fill."""
        hashes = sorted({field.source_hash for field in fields if not field.passes})
        known: dict[str, list[Known]] = {}
        for page in _pages(hashes):
            known |= await self._database.read(estimating.recall, scope, place, page)
        return {field.ordinal for field in fields if _is_known(field, known.get(field.source_hash, ()))}


def _fields(settings: Mapping[str, Any], items: Sequence[_Read]) -> tuple[NewField, ...]:
    """The fields of one job with these items, as acceptance would see them."""
    submitted = tuple(
        SubmittedItem(one.document, one.locale, tuple(_submitted(block) for block in one.blocks))
        for one in items
    )
    source_locale = str(settings["source_locale"])
    return submissions.new_fields(Submission("", "", source_locale, "", JobOptions(), submitted))


def _submitted(block: Block) -> SubmittedField:
    value = block.text if block.plural is None else dict(block.plural)
    return SubmittedField(
        block.key, value, block.syntax, block.note or "", block.context or "", block.max_length
    )


def _is_known(field: NewField, known: Sequence[Known]) -> bool:
    own, plain = field.context_hash, sameness.plain_contexts(field.submitted.syntax)
    return not field.passes and any(
        one.context_hash == own or (one.context_hash in plain and one.origin != "ai") for one in known
    )


def _counted(fields: Sequence[NewField], remembered: set[int]) -> Counter[str]:
    counts: Counter[str] = Counter(fields=len(fields))
    for field in fields:
        counts[_fate(field, remembered)] += 1
        if _fate(field, remembered) == "to_translate":
            counts["characters"] += sum(map(len, _texts(field)))
    return counts


def _fate(field: NewField, remembered: set[int]) -> str:
    if field.passes:
        return "passed_through"
    if field.ordinal in remembered:
        return "from_memory"
    return "to_translate" if field.repeat_of is None else "repeated"


def _texts(field: NewField) -> Sequence[str]:
    value = field.submitted.value
    return [value] if isinstance(value, str) else list((value or {}).values())


def _priced(
    provider: Provider,
    settings: Mapping[str, Any],
    locale: str,
    fields: Sequence[NewField],
    remembered: set[int],
) -> Counter[str]:
    """What the calls for the rest would take."""
    sums: Counter[str] = Counter()
    source_locale, tone = str(settings["source_locale"]), str(settings.get("tone") or "")
    left = [_asked(field, locale) for field in fields if _fate(field, remembered) == "to_translate"]
    for group in prompting.groups(left, int(settings.get("batch_size") or BATCH_SIZE)) if left else ():
        items = tuple(
            prompting.prompt_item(field, piece, f"k{number:06d}{index}")
            for number, field in enumerate(group)
            for index, piece in enumerate(prompting.pieces(field))
        )
        body = provider.render(CompletionRequest(source_locale, locale, items, tone))
        most = provider.reserve(body)
        characters = sum(len(item.text) for item in items)
        likely = provider.expect(body, characters) if isinstance(provider, Expects) else most
        for name, value in zip(_PRICED, (1, *likely, *most), strict=True):
            sums[name] += value if provider.priced or name in ("calls", "likely_tokens", "most_tokens") else 0
    return sums


def _asked(field: NewField, locale: str) -> Field:
    submitted = field.submitted
    return Field(
        field.ordinal,
        locale,
        submitted.value or "",
        submitted.syntax,
        submitted.note,
        submitted.context,
        submitted.max_length,
        field.source_hash,
        field.context_hash,
    )


def _refusal(provider: Provider, locale: str) -> str:
    """Why this provider cannot be asked for a locale; empty where it can."""
    try:
        provider.target_code(locale)
    except LocaleError as error:
        return error.message
    return ""


def _shown(counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        **{name: counts.get(name, 0) for name in (*_COUNTED, "calls")},
        "likely": {
            "tokens": counts.get("likely_tokens", 0),
            "usd": counts.get("likely_microusd", 0) / _MICRO,
        },
        "at_most": {"tokens": counts.get("most_tokens", 0), "usd": counts.get("most_microusd", 0) / _MICRO},
    }


def _pages(listed: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(listed), ITEMS_PER_SUBMISSION):
        yield listed[start : start + ITEMS_PER_SUBMISSION]
