"""The wire form of a submission, read strictly: what is let through is complete, bounded and canonical.

Promises that a refusal names the exact place (`$.items[3].fields["body"].text`) and that a text which is let
through can be stored by every database and sent to every provider. Knows no job and no provider.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from dragoman.content import locales, prompting, sameness
from dragoman.kernel import canonical, limits
from dragoman.kernel.errors import CallerError
from dragoman.model import budgets
from dragoman.model.documents import Syntax, Text
from dragoman.model.jobs import (
    SPEEDS,
    Capacity,
    Field,
    JobOptions,
    NewField,
    Submission,
    SubmittedField,
    SubmittedItem,
)
from dragoman.model.memories import Term, TermStatus

SYNTAXES: frozenset[str] = frozenset(get_args(Syntax))
TERM_STATUSES: frozenset[str] = frozenset(get_args(TermStatus))
ON_UNKNOWN = frozenset({"", "resend", "resend:unlimited", "hold"})
ALIASES = ("title", "excerpt", "content")
"""Texts that older clients send beside `fields` instead of in it."""
LOCAL_CALLBACK = "local:"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KEY = re.compile(r"[A-Za-z0-9_.:/\[\]-]+")
_CATEGORY = re.compile(r"zero|one|two|few|many|other|=\d{1,9}")
_UNCOUNTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_URL = re.compile(r"https?://[^\s/?#@]+([/?#]\S*)?")
_OPTIONS = ("provider_config", *({field.name for field in fields(JobOptions)} - {"provider", "first"}))


def read(body: bytes, capacity: Capacity, *, local: bool = False) -> tuple[Submission, str]:
    """The submission in a body, and the SHA-256 of the body's canonical form.

    Raises `LocaleError`, and `CallerError`: invalid_json, invalid_request, invalid_fields, payload_too_large,
    source_is_target. `local` lets a callback into this very process be named.
    """
    if len(body) > capacity.body_bytes_max:
        raise CallerError(
            f"$: {len(body)} bytes, and a submission may have {capacity.body_bytes_max}",
            "payload_too_large",
            "$",
        )
    said = canonical.parse(body)
    return _Reading(capacity, local).submission(said), canonical.fingerprint(said)


def new_fields(submission: Submission) -> tuple[NewField, ...]:
    """All fields in the order of the submission, with hashes, pass-through and repeats found out."""
    found: list[NewField] = []
    first: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(submission.items):
        for submitted in item.fields:
            source_hash, context_hash = identity(submitted)
            fresh = NewField(len(found), index, submitted, source_hash, context_hash, passes=True)
            if submitted.value is not None:
                fresh = _explored(fresh, item.target_locale, submitted.value, first)
            found.append(fresh)
    return tuple(found)


def _explored(
    fresh: NewField, target_locale: str, value: Text, first: dict[tuple[object, ...], int]
) -> NewField:
    """A field with its result where it passes through, else with the field that it repeats."""
    submitted = fresh.submitted
    field = Field(
        fresh.ordinal,
        target_locale,
        value,
        submitted.syntax,
        submitted.note,
        submitted.context,
        submitted.max_length,
        fresh.source_hash,
        fresh.context_hash,
    )
    if prompting.passes(field):
        return replace(fresh, result=prompting.assembled(field, {}))
    key = (target_locale, sameness.verbatim(value), fresh.context_hash, submitted.max_length)
    original = first.setdefault(key, fresh.ordinal)
    return replace(fresh, passes=False, repeat_of=None if original == fresh.ordinal else original)


def identity(submitted: SubmittedField) -> tuple[str, str]:
    """What makes two fields the same text in the same context: (source hash, context hash)."""
    context_hash = sameness.context_hash(submitted.syntax, submitted.context, submitted.note)
    return sameness.source_hash(submitted.value or "", submitted.syntax), context_hash


class _Reading:
    """One body under the reader; every method gets the place of what it reads."""

    def __init__(self, capacity: Capacity, local: bool) -> None:
        self._capacity = capacity
        self._local = local

    def submission(self, said: Mapping[str, Any]) -> Submission:
        known = (
            "submissionId",
            "clientJobId",
            "project",
            "sourceLang",
            "tone",
            "options",
            "callbackUrl",
            "budget",
            "style",
            "glossary",
            "items",
        )
        _only(said, known, "$")
        source = locales.canonical(_text(said.get("sourceLang"), "$.sourceLang", 1, limits.LOCALE_CHARS_MAX))
        return Submission(
            id=_id(said.get("submissionId"), "$.submissionId"),
            client_job_id=_text(said.get("clientJobId"), "$.clientJobId", 1, 191),
            source_locale=source,
            callback_url=self._callback_url(said.get("callbackUrl")),
            options=self._options(said.get("options"), _text(said.get("tone") or "", "$.tone", 0, 255)),
            items=self._items(said.get("items"), source),
            project=_text(said.get("project") or "", "$.project", 0, 128),
            budget=budgets.read(said["budget"], "$.budget") if "budget" in said else None,
            style=_text(said.get("style") or "", "$.style", 0, limits.STYLE_CHARS_MAX),
            terms=_terms(said.get("glossary")),
        )

    def _callback_url(self, said: Any) -> str:
        url = _text(said or "", "$.callbackUrl", 0, 500)
        if url and not _URL.fullmatch(url) and not (self._local and url.startswith(LOCAL_CALLBACK)):
            raise _wrong("$.callbackUrl", "an http or https address without a name and a password")
        return url

    def _options(self, said: Any, tone: str) -> JobOptions:
        if said is None:
            said = {}
        if not isinstance(said, dict):
            raise _wrong("$.options", "an object")
        _only(said, _OPTIONS, "$.options")
        speed = _text(said.get("speed") or "standard", "$.options.speed", 1, 16)
        if speed not in SPEEDS:
            raise _wrong("$.options.speed", "`standard` or `batch`")
        policy = _text(said.get("on_unknown") or "", "$.options.on_unknown", 0, 32)
        if policy not in ON_UNKNOWN:
            raise _wrong("$.options.on_unknown", "`resend`, `resend:unlimited` or `hold`")
        force = said.get("force", False)
        if not isinstance(force, bool):
            raise _wrong("$.options.force", "true or false")
        size = _number(said.get("batch_size"), "$.options.batch_size", 1, self._capacity.batch_size_max)
        calls = _number(said.get("concurrency"), "$.options.concurrency", 1, self._capacity.concurrency_max)
        return JobOptions(
            provider=_text(said.get("provider_config") or "", "$.options.provider_config", 0, 128),
            model=_text(said.get("model") or "", "$.options.model", 0, 191),
            batch_size=min(limits.BATCH_SIZE, self._capacity.batch_size_max) if size is None else size,
            concurrency=min(limits.CONCURRENCY, self._capacity.concurrency_max) if calls is None else calls,
            speed=speed,
            tone=_text(said.get("tone") or tone, "$.options.tone", 0, 255),
            on_unknown="" if policy == "resend" else policy,
            force=force,
            push_id=_text(said.get("push_id") or "", "$.options.push_id", 0, 255),
        )

    def _items(self, said: Any, source: str) -> tuple[SubmittedItem, ...]:
        if not isinstance(said, list) or not said:
            raise _wrong("$.items", "a list with at least one item")
        if len(said) > self._capacity.items_max:
            raise CallerError(
                f"$.items: {len(said)} items, and a submission may hold {self._capacity.items_max}",
                "payload_too_large",
                "$.items",
            )
        items = tuple(self._item(item, f"$.items[{index}]", source) for index, item in enumerate(said))
        twice = [ref for ref, count in Counter(item.ref for item in items).items() if count > 1]
        if twice:
            raise CallerError(f"$.items: the ref {twice[0]!r} stands here twice", place="$.items")
        return items

    def _item(self, said: Any, place: str, source: str) -> SubmittedItem:
        if not isinstance(said, dict):
            raise _wrong(place, "an object")
        _only(said, ("ref", "targetLang", "fields", *ALIASES), place)
        ref = _text(said.get("ref"), f"{place}.ref", 1, limits.REF_CHARS_MAX)
        where = f"{place}.targetLang"
        target = locales.canonical(
            _text(said.get("targetLang"), where, 1, limits.LOCALE_CHARS_MAX), place=where
        )
        if target == source:
            raise CallerError(f"{where}: {target} is the source locale", "source_is_target", where)
        given = said.get("fields", {})
        if not isinstance(given, dict):
            raise _wrong(f"{place}.fields", "an object", "invalid_fields")
        for alias in ALIASES:
            if alias in said and alias in given:
                raise CallerError(
                    f"{place}: {alias!r} stands beside `fields` and in it: send it once",
                    "invalid_fields",
                    place,
                )
        return SubmittedItem(ref, target, self._fields({**_aliases(said), **given}, f"{place}.fields"))

    def _fields(self, said: Mapping[str, Any], place: str) -> tuple[SubmittedField, ...]:
        if not said:
            raise _wrong(place, "at least one field", "invalid_fields")
        if len(said) > self._capacity.fields_per_item_max:
            raise CallerError(
                f"{place}: {len(said)} fields, and an item may have {self._capacity.fields_per_item_max}",
                "payload_too_large",
                place,
            )
        return tuple(self._field(key, value, place) for key, value in said.items())

    def _field(self, key: str, said: Any, parent: str) -> SubmittedField:
        place = f'{parent}["{key[: limits.FIELD_KEY_CHARS_MAX]}"]'
        if not _KEY.fullmatch(key) or len(key) > limits.FIELD_KEY_CHARS_MAX:
            raise _wrong(
                place,
                f"a key of 1 to {limits.FIELD_KEY_CHARS_MAX} characters of A-Z a-z 0-9 _ . : / [ ] -",
                "invalid_fields",
            )
        if said is None or isinstance(said, str):
            return SubmittedField(key, None if said is None else self._words(said, place))
        if not isinstance(said, dict) or ("text" in said) == ("plural" in said):
            raise _wrong(place, "a text, or an object with either `text` or `plural`", "invalid_fields")
        _only(said, ("text", "plural", "syntax", "format", "note", "context", "max_length"), place)
        syntax = said.get("syntax", said.get("format", "none"))
        if syntax not in SYNTAXES:
            raise _wrong(f"{place}.syntax", f"one of {', '.join(sorted(SYNTAXES))}", "invalid_fields")
        value: Text
        if "text" in said:
            value = self._words(said["text"], f"{place}.text")
        else:
            value = self._plural(said["plural"], f"{place}.plural")
        return SubmittedField(
            key,
            value,
            syntax,
            note=self._words(said.get("note") or "", f"{place}.note"),
            context=self._words(said.get("context") or "", f"{place}.context"),
            max_length=_number(said.get("max_length"), f"{place}.max_length", 1, 10**6),
        )

    def _plural(self, said: Any, place: str) -> Mapping[str, str]:
        if not isinstance(said, dict) or "other" not in said:
            raise _wrong(place, "an object of plural forms with at least `other`", "invalid_fields")
        for category in said:
            if not _CATEGORY.fullmatch(category):
                raise _wrong(place, "plural categories of CLDR, or `=` and a number", "invalid_fields")
        return {category: self._words(text, f"{place}.{category}") for category, text in said.items()}

    def _words(self, said: Any, place: str) -> str:
        if not isinstance(said, str):
            raise _wrong(place, "text", "invalid_fields")
        if "\0" in said:
            raise _wrong(place, "text without NUL characters", "invalid_fields")
        count = len(said) if len(said) <= self._capacity.field_chars_max else len(_UNCOUNTED.sub("", said))
        if count > self._capacity.field_chars_max:
            raise CallerError(
                f"{place}: {count} characters, and a text may have {self._capacity.field_chars_max}",
                "payload_too_large",
                place,
            )
        return said


def _terms(said: Any) -> tuple[Term, ...]:
    if said is None:
        return ()
    if not isinstance(said, list) or len(said) > limits.TERMS_PER_SUBMISSION:
        raise _wrong("$.glossary", f"a list of at most {limits.TERMS_PER_SUBMISSION} terms")
    return tuple(_term(one, f"$.glossary[{index}]") for index, one in enumerate(said))


def _term(said: Any, place: str) -> Term:
    if not isinstance(said, dict):
        raise _wrong(place, "an object")
    _only(said, ("source", "target", "targetLang", "status", "caseSensitive"), place)
    status, exact = said.get("status", "preferred"), said.get("caseSensitive", False)
    if status not in TERM_STATUSES:
        raise _wrong(f"{place}.status", f"one of {', '.join(sorted(TERM_STATUSES))}")
    if not isinstance(exact, bool):
        raise _wrong(f"{place}.caseSensitive", "true or false")
    locale = said.get("targetLang") or ""
    return Term(
        source=_text(said.get("source"), f"{place}.source", 1, limits.TERM_CHARS_MAX),
        target=_text(said.get("target") or "", f"{place}.target", 0, limits.TERM_CHARS_MAX),
        target_locale=locales.canonical(locale, place=f"{place}.targetLang") if locale else "",
        status=status,
        case_sensitive=exact,
    )


def _aliases(said: Mapping[str, Any]) -> dict[str, Any]:
    return {alias: said[alias] for alias in ALIASES if alias in said}


def _only(said: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    unknown = sorted(set(said) - set(known))
    if unknown:
        raise CallerError(
            f"{place}: {unknown[0][:64]!r} is not known here; known are {', '.join(known)}", place=place
        )


def _wrong(place: str, wanted: str, code: str = "invalid_request") -> CallerError:
    return CallerError(f"{place}: {wanted} is wanted here", code, place)


def _text(said: Any, place: str, chars_min: int, chars_max: int) -> str:
    if not isinstance(said, str) or not chars_min <= len(said) <= chars_max or "\0" in said:
        raise _wrong(place, f"text of {chars_min} to {chars_max} characters")
    return said


def _number(said: Any, place: str, least: int, most: int) -> int | None:
    if said is None:
        return None
    if isinstance(said, float) and said.is_integer():
        said = int(said)  # 7.0 and 7 are one number, and one fingerprint
    if isinstance(said, bool) or not isinstance(said, int) or not least <= said <= most:
        raise _wrong(place, f"a whole number from {least} to {most}")
    return said


def _id(said: Any, place: str) -> str:
    spelled = said.lower() if isinstance(said, str) else ""
    if not _ID.fullmatch(spelled):
        raise _wrong(place, "a UUID")
    return spelled
