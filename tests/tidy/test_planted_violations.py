"""Every checker bites: a small clean house passes, and each violation planted in it is reported."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.tidy import linter, names, rooms, sizes, transactions, words
from tests.tidy.rules import FILE_LINES_MAX, FUNCTION_LINES_MAX, PACKAGE

PROVIDER = """
from dragoman.providers.wire import aiohttp
class Half:
    def read(self): ...
class Whole(Half):
    def send(self): ...
"""

CLEAN = {
    "kernel/clock.py": "import time\nfrom datetime import datetime\nnow = datetime.now",
    "model/contracts.py": "class Provider:\n    def send(self): ...\n    def read(self): ...",
    "store/schema.py": "import sqlalchemy",
    "store/rows/intents.py": "from dragoman.store import schema\ndef add(tx):\n    tx.insert(schema.t)",
    "store/acts/settling.py": "from dragoman.store.rows import intents\ndef settle(tx): ...",
    "providers/wire.py": "import aiohttp",
    "providers/pseudo.py": PROVIDER,
    "providers/chat.py": PROVIDER,
    "flow/engine/dispatch.py": "",
    "flow/site/admission.py": """
        from dragoman.store.acts import settling
        async def admit(database):
            time = await database.run(settling.settle)
            return time.now()
        """,
    "flow/site/views.py": "def _all(tx): ...\nasync def f(database):\n    await database.read(_all)",
    "wiring.py": "from dragoman.providers.pseudo import Whole\nfrom dragoman.flow.site import admission",
    "surfaces/web/paging.py": "",
    "surfaces/http/pages.py": "import fastapi\nfrom dragoman.surfaces.web import paging",
    "surfaces/cli/translate.py": "import typer",
    "__main__.py": "from dragoman.surfaces import cli, http",
}

LATE = "def f():\n    from dragoman.flow.site import admission"
TYPED = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dragoman.wiring import Whole"
RELATIVE = "from . import dispatch\nfrom ..site.admission import admit"

Plant = tuple[str, str, str]
Checker = Callable[[Path], list[str]]

IMPORTS: list[Plant] = [
    ("kernel/errors.py", "import dragoman.model.contracts", "imports model.contracts: upward"),
    ("content/locales.py", "from dragoman.store import schema", "imports store.schema: sideways"),
    ("ledger/acting.py", LATE, "imports flow.site.admission: upward"),
    ("workers.py", TYPED, "imports wiring.Whole: upward"),
    ("surfaces/cli/serve.py", "from dragoman.surfaces import http", "imports surfaces.http: sideways"),
    ("surfaces/web/tokens.py", "from dragoman.surfaces import http", "imports surfaces.http: upward"),
    ("flow/engine/delivery.py", RELATIVE, "imports flow.engine.dispatch: steps hand over"),
    ("flow/engine/recall.py", RELATIVE, "imports flow.site.admission.admit: steps hand over"),
    ("store/rows/shards.py", "from dragoman.store.rows import intents", "store.rows.intents: steps hand"),
    ("store/rows/jobs.py", "from dragoman.store.acts import settling", "from a lower floor"),
    ("flow/site/peeking.py", "from dragoman.store.rows import intents", "not seen from outside of store"),
    ("providers/more.py", "from dragoman.providers.pseudo import Whole", "only wiring names a member"),
    ("providers/codes.py", "from dragoman.providers import chat", "only wiring names a member"),
    ("ledger/asking.py", "from dragoman.providers import chat", "only wiring names a member"),
    ("flow/site/sums.py", "from dragoman.providers import wire", "only wiring reaches into providers"),
    ("plumbing/pipes.py", "", "a room that nobody declared in dragoman"),
    ("surfaces/gtk/window.py", "", "a room that nobody declared in surfaces"),
]

POWERS: list[Plant] = [
    ("flow/site/a.py", "import sqlalchemy as sa", "sqlalchemy has its door in store"),
    ("workers.py", "from sqlite3 import connect", "sqlite3 has its door in store"),
    ("store/b.py", "import aiohttp", "aiohttp has its door in providers"),
    ("content/b.py", "import urllib.request", "urllib.request has its door in providers"),
    ("flow/site/c.py", "from time import monotonic", "time has its door in kernel"),
    ("store/c.py", "def f():\n    import uuid", "uuid has its door in kernel"),
    ("ledger/c.py", "from datetime import datetime as d\nd.now()", "datetime.datetime.now has its door"),
    ("ledger/d.py", "import datetime\ndatetime.date.today()", "datetime.date.today has its door"),
    ("ledger/e.py", "import os as system\nsystem.urandom(8)", "os.urandom has its door in kernel"),
    ("kernel/f.py", "import importlib.metadata", "importlib has its door in no room at all"),
    ("kernel/g.py", "__import__('dragoman')", "__import__ has its door in no room at all"),
    ("wiring.py", "from fastapi import FastAPI", "fastapi has its door in surfaces"),
    ("surfaces/http/i.py", "import typer", "typer has its door in surfaces.cli"),
]

_KEPT = "from dragoman.store.schema import effects as tables\n_HISTORY = tables.history\n"

TRANSACTIONS: list[Plant] = [
    ("store/rows/a.py", f"{_KEPT}sa.update(tables.history)", "updates rows of history"),
    ("store/acts/b.py", f"{_KEPT}def f(tx):\n    tx.update(_HISTORY, {{}}, {{}})", "updates rows of history"),
    ("store/acts/c.py", f"{_KEPT}sa.delete(_HISTORY)", "deletes rows of history"),
    ("store/acts/retiring.py", f"{_KEPT}sa.update(_HISTORY)", "updates rows of history"),
    ("flow/site/a.py", "async def f(database):\n    await database.run(lambda tx: 1)", "runs a lambda"),
    (
        "wiring.py",
        "from dragoman.store.rows.intents import add\nasync def f(self):\n    await self._database.run(add)",
        "runs dragoman.store.rows.intents.add as a transaction",
    ),
    (
        "workers.py",
        "def claim(tx): ...\nasync def f(database):\n    await database.run(claim)",
        "runs dragoman.workers.claim as a transaction",
    ),
    (
        "flow/site/b.py",
        "def settle(tx, now): ...\nasync def f(ledger):\n    await ledger.act('mail', settle=settle)",
        "hands dragoman.flow.site.b.settle on",
    ),
    ("store/acts/more.py", "T, U = schema.t, 1\ndef f(tx):\n    tx.insert(T)", "rows are added to t in"),
]

NAMES: list[Plant] = [
    ("flow/site/helpers.py", "", "flow/site/helpers.py: a name that says nothing"),
    ("kernel/common/clocks.py", "", "kernel/common: a name that says nothing"),
    ("store/acts/intents.py", "", "dragoman.store.acts.intents has this name in the same room"),
    ("content/json.py", "import json", "dragoman.content.json: named like the standard module"),
]

SIZES: list[Plant] = [
    ("kernel/long.py", "pass\n" * (FILE_LINES_MAX + 1), f"kernel/long.py: {FILE_LINES_MAX + 1} lines"),
    (
        "kernel/deep.py",
        "class A:\n    async def f(self):\n" + "        pass\n" * FUNCTION_LINES_MAX,
        f"dragoman.kernel.deep.f: {FUNCTION_LINES_MAX + 1} lines",
    ),
]

CHECKERS: list[tuple[Checker, list[Plant]]] = [
    (rooms.problems, IMPORTS + POWERS),
    (transactions.problems, TRANSACTIONS),
    (names.problems, NAMES),
    (sizes.problems, SIZES),
]

PLANTS = [
    pytest.param(checker, file, text, expected, id=f"{file} {expected}")
    for checker, plants in CHECKERS
    for file, text, expected in plants
]

CHAINS: list[Plant] = [
    ("kernel/errors.py", "import dragoman.model.contracts", "kernel is not allowed to import"),
    ("store/schema.py", "from dragoman.store import rings", "No cycles anywhere BROKEN"),
    ("flow/engine/dispatch.py", "import dragoman.flow.site.admission", "The parts of flow do not"),
    ("providers/chat.py", f"{PROVIDER}\nfrom . import pseudo", "The members of providers do not"),
    ("ledger/asking.py", "from dragoman.providers import chat", "Only wiring reaches into providers"),
    ("store/rows/intents.py", "import dragoman.store.acts.settling", "store.rows is a lower floor"),
    ("workers.py", "import sqlite3", "Doors of store"),
]


def build(root: Path, files: dict[str, str]) -> Path:
    """A package at `root`/dragoman of these files, with every folder a package."""
    package = root / PACKAGE
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__init__.py").touch()
    return package


@pytest.mark.parametrize("checker", [checker for checker, _ in CHECKERS])
def test_a_clean_house_is_clean(tmp_path: Path, checker: Checker) -> None:
    assert checker(build(tmp_path, CLEAN)) == []


@pytest.mark.parametrize(("checker", "file", "text", "expected"), PLANTS)
def test_what_is_planted_is_reported(
    tmp_path: Path, checker: Checker, file: str, text: str, expected: str
) -> None:
    found = checker(build(tmp_path, CLEAN | {file: text}))

    assert [line for line in found if expected in line], found


def test_import_linter_keeps_a_clean_house(tmp_path: Path) -> None:
    assert linter.complaints(build(tmp_path, CLEAN), tmp_path) == ""


@pytest.mark.parametrize(("file", "text", "expected"), CHAINS)
def test_import_linter_reports_what_is_planted(tmp_path: Path, file: str, text: str, expected: str) -> None:
    house = build(tmp_path, CLEAN | {"store/rings.py": "from dragoman.store import schema", file: text})

    said = linter.complaints(house, tmp_path)

    assert [line for line in said.splitlines() if expected in line and not line.endswith("KEPT")], said


def test_a_committed_word_of_elsewhere_is_reported(tmp_path: Path) -> None:
    registry, folder = "py" + "pi.org", "/wo" + "rk/main/x"
    (tmp_path / "lock.txt").write_text(f"fine\n--index https://{registry}/simple\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text(f"see {folder}, or a network/work/flow\n", encoding="utf-8")
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe")

    found = words.problems(tmp_path, ["lock.txt", "notes.md", "picture.bin", "gone.txt"])

    assert found == [f"lock.txt:2: {registry}", f"notes.md:1: {folder[:7]}"]
