"""A source for Dragoman in one file: serves the contract of docs/reference/source.md from a folder.

    SOURCE_TOKEN=secret python examples/source_server.py FOLDER --port 8090

FOLDER holds one folder a locale (`en`, `fr` …), in it one folder a collection, and in that the documents, in
any format that Dragoman reads: `en/posts/42.json`. Files directly under a locale are globals: `en/site.json`.
A document whose name begins with `draft-` is a draft; `FOLDER/rights.json` (actor to a list of collections)
narrows who may edit what. Translations are put and removed under the condition that what stands there is what
the caller saw. Take it as a starting point for the adapter of your own CMS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

SOURCE_LOCALE = "en"
PAGE_MAX = 100
BODY_MAX = 1024 * 1024
DOCUMENT_MAX = 64 * 1024 * 1024


class Site:
    """The folder, and what the contract asks of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.writing = threading.Lock()

    def collections(self) -> dict:
        top = self.folder / SOURCE_LOCALE
        places = sorted(top.iterdir()) if top.is_dir() else []
        return {
            "collections": [place.name for place in places if place.is_dir()],
            "globals": [place.name for place in places if place.is_file()],
            "drafts": True,
        }

    def documents(self, collection: str, cursor: str, limit: int, drafts: bool) -> dict | None:
        """Pages by key: the cursor is the last name of the page before."""
        if collection not in self.collections()["collections"]:
            return None
        names = sorted(place.name for place in (self.folder / SOURCE_LOCALE / collection).iterdir())
        names = [name for name in names if name > cursor and (drafts or not name.startswith("draft-"))]
        page = names[:limit]
        return {"documents": [{"id": name} for name in page], "next": page[-1] if len(names) > limit else None}

    def place(self, ref: str, locale: str) -> Path | None:
        top = self.folder / locale
        try:
            place = (top / ref).resolve()
            inside = place != top and place.is_relative_to(top) and top.resolve().parent == self.folder
            return place if inside else None
        except (OSError, ValueError):  # no file system holds such a name
            return None

    def read(self, ref: str, locale: str) -> bytes | None:
        place = self.place(ref, locale)
        try:
            return place.read_bytes() if place and place.is_file() else None
        except OSError:
            return None

    def write(self, ref: str, locale: str, data: bytes | None, condition: str) -> int:
        """Put a translation, or remove it; the status. `condition` is the tag that must stand, empty for none.

        A lock makes looking and writing one; a CMS compares and swaps in its database.
        """
        place = self.place(ref, locale)
        if locale == SOURCE_LOCALE or place is None or self.read(ref, SOURCE_LOCALE) is None:
            return 404
        with self.writing:
            stands = self.read(ref, locale)
            if condition != ("" if stands is None else tag_of(stands)):
                return 412
            if data is None:
                place.unlink()
                return 204
            place.parent.mkdir(parents=True, exist_ok=True)
            beside = place.with_name(f".{place.name}.part")
            beside.write_bytes(data)
            beside.replace(place)
            return 200 if stands is not None else 201

    def rights(self, actor: str, refs: list) -> dict:
        place = self.folder / "rights.json"
        rights = json.loads(place.read_text("utf-8")) if place.is_file() else None
        return {ref: rights is None or ref.partition("/")[0] in rights.get(actor, []) for ref in refs}


def tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def serve(folder: Path, port: int, token: str) -> ThreadingHTTPServer:
    """A server that is ready to `serve_forever`; port 0 takes a free one."""
    site = Site(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, query = self._asked()
            parts = path.strip("/").split("/")
            if not self._allowed():
                return
            if path == "/collections":
                self._tell(200, site.collections())
            elif len(parts) == 3 and parts[0] == "collections" and parts[2] == "documents":
                limit = query.get("limit", "")
                limit = min(int(limit), PAGE_MAX) if limit.isdecimal() else PAGE_MAX
                drafts = query.get("drafts") != "false"
                page = site.documents(unquote(parts[1]), query.get("cursor", ""), limit, drafts)
                self._tell(404 if page is None else 200, page or {"error": "no such collection"})
            elif path.startswith("/documents/"):
                data = site.read(unquote(path.removeprefix("/documents/")), query.get("locale", SOURCE_LOCALE))
                self._give(data)
            else:
                self._tell(404, {"error": "no such place"})

        do_HEAD = do_GET

        def do_POST(self) -> None:
            path, _ = self._asked()
            length = int(self.headers.get("Content-Length") or 0)
            if length > BODY_MAX:
                self.close_connection = True
                self._tell(413, {"error": "too large"})
                return
            body = self.rfile.read(length)
            if not self._allowed():
                return
            try:
                asked = json.loads(body)
                refs = [ref for ref in asked["documents"] if isinstance(ref, str)]
            except (ValueError, KeyError, TypeError):
                self._tell(400, {"error": "documents must be a list of references"})
                return
            if path == "/documents/exists":
                there = {ref: site.read(ref, SOURCE_LOCALE) is not None for ref in refs}
                self._tell(200, {"documents": there})
            elif path == "/documents/rights":
                self._tell(200, {"documents": site.rights(str(asked.get("actor", "")), refs)})
            else:
                self._tell(404, {"error": "no such place"})

        def do_PUT(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > DOCUMENT_MAX:
                self.close_connection = True
                self._tell(413, {"error": "too large"})
                return
            self._write(self.rfile.read(length))

        def do_DELETE(self) -> None:
            self._write(None)

        def _write(self, data: bytes | None) -> None:
            path, query = self._asked()
            if not self._allowed():
                return
            match, absent = self.headers.get("If-Match"), self.headers.get("If-None-Match") == "*"
            if not path.startswith("/documents/"):
                self._tell(404, {"error": "no such place"})
            elif (match is None) == (not absent):
                self._tell(428, {"error": "say If-Match or If-None-Match: *"})
            else:
                ref = unquote(path.removeprefix("/documents/"))
                status = site.write(ref, query.get("locale", ""), data, (match or "").strip('"'))
                tag = {"ETag": f'"{tag_of(data)}"'} if data is not None and status < 300 else {}
                self._answer(status, b"", "application/octet-stream", tag)

        def _asked(self) -> tuple[str, dict]:
            asked = urlsplit(self.path)
            return asked.path, {name: values[-1] for name, values in parse_qs(asked.query).items()}

        def _allowed(self) -> bool:
            if not token or self.headers.get("Authorization") == f"Bearer {token}":
                return True
            self._tell(401, {"error": "unknown token"})
            return False

        def _tell(self, status: int, said: dict) -> None:
            self._answer(status, json.dumps(said).encode(), "application/json", {})

        def _give(self, data: bytes | None) -> None:
            if data is None:
                self._tell(404, {"error": "no such document"})
                return
            tag = {"ETag": f'"{tag_of(data)}"'}
            self._answer(200, data, "application/octet-stream", tag)

        def _answer(self, status: int, body: bytes, kind: str, more: dict) -> None:
            self.send_response(status)
            length = {} if status == 204 else {"Content-Length": str(len(body))}
            for name, value in {"Content-Type": kind, **length, **more}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a folder as a source for Dragoman.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8090)
    chosen = parser.parse_args()
    server = serve(chosen.folder, chosen.port, os.environ.get("SOURCE_TOKEN", ""))
    print(f"serving {chosen.folder} at http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
