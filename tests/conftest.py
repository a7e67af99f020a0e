"""Fixtures for the whole suite: databases of the three kinds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.databases import KINDS, Places, ServerDatabase, SqliteFiles
from tests.doubles.ministack import ENVIRONMENT, SqsServer
from tests.doubles.servers import Missing, in_memory


def pytest_configure() -> None:
    """Let the tests' files, databases above all, wait for no disk: no test here cuts the power."""
    place = in_memory()
    if place is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


@pytest.fixture(scope="session")
def database_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Where databases come from; servers are looked for when a test first wants one."""
    found = Places(tmp_path_factory.mktemp("databases"))
    yield found
    found.drop()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, database_places: Places, tmp_path: Path) -> str:
    """A fresh database with all tables, on each of the three kinds in turn (`-k sqlite` takes one)."""
    return _fresh(str(request.param), database_places, tmp_path)


@pytest.fixture(params=KINDS[1:])
def server_url(request: pytest.FixtureRequest, database_places: Places, tmp_path: Path) -> str:
    """The same, on the servers only."""
    return _fresh(str(request.param), database_places, tmp_path)


@pytest.fixture
def mariadb_url(database_places: Places, tmp_path: Path) -> str:
    """The same, on MariaDB only."""
    return _fresh("mariadb", database_places, tmp_path)


@pytest.fixture
def sqlite_url(database_places: Places, tmp_path: Path) -> str:
    """A fresh SQLite file with all tables."""
    return _fresh("sqlite", database_places, tmp_path)


@pytest.fixture(params=KINDS)
def bare_url(request: pytest.FixtureRequest, database_places: Places, tmp_path: Path) -> Iterator[str]:
    """A database without any table, on each of the three kinds in turn."""
    with _place(str(request.param), database_places).bare(tmp_path) as url:
        yield url


def _fresh(kind: str, places: Places, folder: Path) -> str:
    return _place(kind, places).fresh(folder)


def _place(kind: str, places: Places) -> SqliteFiles | ServerDatabase:
    try:
        return places.find(kind)
    except Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def sqs_server() -> Iterator[SqsServer]:
    """A real SQS server's double as a process of its own, or the one that the environment names."""
    try:
        server = SqsServer()
    except Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    yield server
    server.close()


@pytest.fixture
def sqs_endpoint(sqs_server: SqsServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its address, with the credentials that its clients need in the environment."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, os.environ.get(name, value))
    return sqs_server.endpoint
