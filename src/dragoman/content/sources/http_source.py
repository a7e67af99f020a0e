"""The source `http`: documents of any CMS that serves the small contract of docs/reference/source.md.

A document is a file in one of our formats, under a reference whose ending names the format. Promises that
every call has a deadline and every answer a bound, that no redirect is followed, and that whatever answers
otherwise than the contract says is a `SourceError` that names what is wrong. It reads only.
"""

from __future__ import annotations

import http.client
import json
import ssl
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from dragoman.kernel import limits
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.model.walks import Contents, Listing

_PIECE_BYTES = 65_536
_ASKED_AT_ONCE = 100
_JSON = "application/json"
_SAID = {
    401: "does not know our token",
    403: "refuses our token",
    429: "asks to slow down",
}


class _Reply(NamedTuple):
    status: int
    etag: str
    body: bytes


class HttpSource:
    """Documents behind a base URL. `token_of` gives the bearer token at every call, empty for none."""

    def __init__(
        self,
        base_url: str,
        token_of: Callable[[], str],
        source_locale: str,
        clock: Clock,
        call_seconds: float = limits.SOURCE_CALL_SECONDS,
    ) -> None:
        self._base = urlsplit(base_url.rstrip("/"))
        self._token_of = token_of
        self._source_locale = source_locale
        self._clock = clock
        self._call_seconds = call_seconds
        self._connection: http.client.HTTPConnection | None = None

    def contents(self) -> Contents:
        """What the server says that it has."""
        said = self._ask("/collections")
        names = {name: _words(said, name) for name in ("collections", "globals")}
        drafts = said.get("drafts", False)
        if not isinstance(drafts, bool):
            raise _wrong("/collections", "drafts is neither true nor false")
        return Contents(names["collections"], names["globals"], drafts)

    def list(self, collection: str, cursor: str, limit: int, drafts: bool) -> Listing:
        """One page as the server gives it: its order and its cursor are its own."""
        asked = {"limit": str(limit), "drafts": "true" if drafts else "false"}
        path = f"/collections/{quote(collection, safe='')}/documents"
        said = self._ask(path, {**asked, **({"cursor": cursor} if cursor else {})}, missing=collection)
        listed, after = said.get("documents"), said.get("next")
        if not isinstance(listed, list) or len(listed) > limit:
            raise _wrong(path, f"documents is no list of at most {limit}")
        if after is not None and not _is_word(after, limits.SOURCE_CURSOR_CHARS_MAX):
            raise _wrong(path, "next is neither null nor a cursor")
        ids = [item.get("id") if isinstance(item, dict) else None for item in listed]
        named = [name for name in ids if name not in (None, "")]
        for name in named:
            if not _is_word(name, limits.DOCUMENT_REF_CHARS_MAX - len(collection) - 1):
                raise _wrong(path, "an id is no text of a fit length")
        return Listing(tuple(f"{collection}/{name}" for name in named), after, len(ids) - len(named))

    def collection_of(self, ref: str) -> str:
        """What stands before the first slash."""
        return ref.partition("/")[0]

    def exists(self, refs: Sequence[str]) -> Mapping[str, bool]:
        """Which of these documents the server has, a hundred a call."""
        return dict(self._of_each("/documents/exists", refs, {}))

    def can_edit(self, actor: str, refs: Sequence[str]) -> Mapping[str, bool]:
        """The actor's present right on each, a hundred a call. What the server does not name is refused."""
        return dict(self._of_each("/documents/rights", refs, {"actor": actor}))

    def read(self, ref: str) -> bytes:
        """The document's bytes in the source locale. Raises `SourceError`, and `CallerError`
        document_not_found, payload_too_large.
        """
        data = self._document(ref, self._source_locale)
        if data is None:
            raise CallerError(f"no document {ref}", "document_not_found", place=ref)
        return data

    def read_target(self, ref: str, locale: str) -> bytes | None:
        """The bytes of its translation, None where there is none; the server falls back to no other."""
        return self._document(ref, locale)

    def target_path(self, ref: str, locale: str) -> str:
        """How plans name the translation; the server knows it by reference and locale."""
        return f"{locale}/{ref}"

    def fingerprint(self, ref: str) -> str:
        """The SHA-256 of what `read` gives, without reading it where the server tells it in its ETag."""
        reply = self._send("HEAD", *self._place(ref, self._source_locale))
        if reply.status == 404:
            raise CallerError(f"no document {ref}", "document_not_found", place=ref)
        self._refuse(reply, ref)
        return reply.etag or sha256(self.read(ref)).hexdigest()

    def _place(self, ref: str, locale: str) -> tuple[str, dict[str, str]]:
        return f"/documents/{quote(ref, safe='/')}", {"locale": locale}

    def _document(self, ref: str, locale: str) -> bytes | None:
        reply = self._send("GET", *self._place(ref, locale), most=limits.DOCUMENT_BYTES_MAX, shown=ref)
        if reply.status == 404:
            return None
        self._refuse(reply, ref)
        if reply.etag and sha256(reply.body).hexdigest() != reply.etag:
            raise SourceError(f"{ref} came otherwise than its ETag says", place=ref)
        return reply.body

    def _of_each(self, path: str, refs: Sequence[str], more: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
        for start in range(0, len(refs), _ASKED_AT_ONCE):
            page = list(refs[start : start + _ASKED_AT_ONCE])
            said = self._ask(path, body={**more, "documents": page}).get("documents")
            if not isinstance(said, dict):
                raise _wrong(path, "documents is no object")
            yield from ((ref, said.get(ref) is True) for ref in page)

    def _ask(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        missing: str = "",
    ) -> dict[str, Any]:
        reply = self._send("GET" if body is None else "POST", path, query, body)
        if reply.status == 404 and missing:
            raise CallerError(f"the source has no {missing!r}", "unsupported_collection", place=missing)
        self._refuse(reply, path)
        try:
            said = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise _wrong(path, "it is no JSON") from error
        if not isinstance(said, dict):
            raise _wrong(path, "it is no object")
        return said

    @staticmethod
    def _refuse(reply: _Reply, shown: str) -> None:
        if reply.status == 200:
            return
        kind = "sends us elsewhere, which is not followed" if 300 <= reply.status < 400 else "answers no"
        said = _SAID.get(reply.status, kind)
        raise SourceError(f"the source {said} for {shown} (status {reply.status})", place=shown)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        most: int = limits.SOURCE_JSON_BYTES_MAX,
        shown: str = "",
    ) -> _Reply:
        """One call; once more where a kept connection turned out to be closed, since nothing here writes."""
        until = self._clock.monotonic() + self._call_seconds
        target = self._base.path + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "*/*", "User-Agent": "dragoman"}
        token = self._token_of()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = _JSON
        kept = self._connection is not None
        try:
            try:
                return self._exchange(method, target, data, headers, most, until, shown or path)
            except (http.client.RemoteDisconnected, ConnectionError):
                if not kept:
                    raise
                self._drop()
                return self._exchange(method, target, data, headers, most, until, shown or path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._drop()
            raise SourceError(f"the source cannot be asked: {_reason(error)}", place=shown or path) from error
        except (SourceError, CallerError):
            self._drop()
            raise

    def _exchange(
        self,
        method: str,
        target: str,
        data: bytes | None,
        headers: Mapping[str, str],
        most: int,
        until: float,
        shown: str,
    ) -> _Reply:
        connection = self._connection or self._connect()
        connection.request(method, target, data, dict(headers))
        with connection.getresponse() as response:
            body = bytearray()
            while piece := response.read1(_PIECE_BYTES):
                if len(body) + len(piece) > most:
                    raise CallerError(f"{shown} has more than {most} bytes", "payload_too_large", place=shown)
                if self._clock.monotonic() > until:
                    said = f"the source did not finish in {self._call_seconds:g} seconds"
                    raise SourceError(said, place=shown)
                body += piece
            if response.length and method != "HEAD":
                raise http.client.IncompleteRead(bytes(body))
            etag = (response.getheader("ETag") or "").strip('"')
        if response.will_close:
            self._drop()
        return _Reply(response.status, etag if len(etag) == 64 else "", bytes(body))

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._base.hostname or "", self._base.port
        if self._base.scheme == "https":
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self._call_seconds, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._call_seconds)
        weakref.finalize(self, connection.close)
        self._connection = connection
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _reason(error: Exception) -> str:
    """What went wrong, without what was sent."""
    return "it did not answer in time" if isinstance(error, TimeoutError) else type(error).__name__


def _wrong(path: str, what: str) -> SourceError:
    return SourceError(f"the source's answer to {path} cannot be used: {what}", place=path)


def _words(said: Mapping[str, Any], field: str) -> tuple[str, ...]:
    names = said.get(field, [])
    if not isinstance(names, list) or len(names) > limits.SCOPE_NAMES_MAX:
        raise _wrong("/collections", f"{field} is no list")
    if not all(_is_word(name, limits.SOURCE_NAME_CHARS_MAX) for name in names):
        raise _wrong("/collections", f"{field} holds what is no name")
    return tuple(names)


def _is_word(value: object, chars_max: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= chars_max and value.isprintable()
