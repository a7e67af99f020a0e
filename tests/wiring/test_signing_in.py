"""Signing in to a database in Azure: this machine's token is the password, renewed and never told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import DragomanError, SettingsError, StoreError
from dragoman.kernel.identity import SystemChance
from dragoman.store import migrate
from dragoman.store.engines import engine_of
from dragoman.store.servers import server_of
from dragoman.wiring import settings as all_settings
from dragoman.wiring.services import open_services
from dragoman.wiring.settings import Settings
from dragoman.wiring.signing_in import options_of
from tests.doubles.token_service import TokenService, serving_tokens

_SOON_SECONDS = 60


@pytest.fixture
def token_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenService]:
    with serving_tokens(monkeypatch) as service:
        yield service


class Account:
    """A user of a database server whose password is what the service gives."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self.name = f"entra_{SystemChance().token(8).lower()}"
        self._is_postgres = self._url.get_backend_name() == "postgresql"

    @property
    def url(self) -> str:
        """Without a password; this test's server speaks in the clear."""
        clear = {"sslmode": "disable"} if self._is_postgres else {"ssl_disabled": "true"}
        mine = self._url.set(username=self.name).set(password=None).update_query_dict(clear)
        return mine.render_as_string(hide_password=False)

    def set(self, password: str) -> None:
        """Let the next connection in with this password only."""
        if self._is_postgres:
            self._do(f"ALTER ROLE {self.name} PASSWORD '{password}'")
        else:
            self._do(f"ALTER USER '{self.name}'@'%%' IDENTIFIED BY '{password}'")

    def make(self) -> None:
        """Make the user, able to do everything here."""
        if self._is_postgres:
            self._do(f"CREATE ROLE {self.name} SUPERUSER LOGIN")
        else:
            self._do(f"CREATE USER '{self.name}'@'%%'")
            self._do(f"GRANT ALL ON {self._url.database}.* TO '{self.name}'@'%%'")

    def drop(self) -> None:
        """Remove the user."""
        self._do(f"DROP ROLE {self.name}" if self._is_postgres else f"DROP USER '{self.name}'@'%%'")

    def _do(self, sql: str) -> None:
        engine = engine_of(self._url.render_as_string(hide_password=False))
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(sql)
        engine.dispose()


@pytest.fixture
def account(server_url: str) -> Iterator[Account]:
    made = Account(server_url)
    made.make()
    with contextlib.ExitStack() as stack:
        stack.callback(made.drop)
        yield made


def settings_for(account: Account, folder: Path) -> Settings:
    return Settings(database_url=account.url, database_auth="azure", root=folder, state_folder=folder / "s")


def password_of(session: object) -> str:
    """What the driver signed in with."""
    connection = session._connection  # type: ignore[attr-defined]
    info = getattr(connection, "info", None)
    return info.password if info is not None else bytes(connection.password).decode()


def test_every_new_connection_signs_in_with_the_token_that_is_in_force(
    account: Account, token_service: TokenService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[J-091] One token for all connections until it runs out, then the next: migration, work, reading."""
    monkeypatch.setenv("AZURE_CLIENT_ID", "client-7")
    settings = settings_for(account, tmp_path)
    account.set("token-of-the-machine")

    async def work() -> None:
        services = await open_services(settings)
        assert await services.database.read(lambda tx: tx.scalar(sa.text("SELECT 1"))) == 1
        await services.close()

    asyncio.run(work())
    [asked] = token_service.asked
    assert asked["resource"] == "https://ossrdbms-aad.database.windows.net"
    assert asked["client_id"] == "client-7"
    token_service.lives_seconds = _SOON_SECONDS
    server = server_of(settings.database, options_of(settings))
    account.set("token-of-the-machine-2")
    with contextlib.closing(server.connect(reading=False)) as session:
        assert password_of(session) == "token-of-the-machine-2"
    account.set("token-of-the-machine-3")
    with contextlib.closing(server.connect(reading=True)) as session:
        assert password_of(session) == "token-of-the-machine-3"


def test_without_a_token_the_database_cannot_be_reached_and_nothing_secret_is_told(
    account: Account, token_service: TokenService, tmp_path: Path
) -> None:
    """[J-091] A refusal of the token service, and one of the database, are ours to tell."""
    settings = settings_for(account, tmp_path)
    token_service.broken = True
    with pytest.raises(StoreError) as refused:
        migrate.current(settings.database, options_of(settings))
    assert refused.value.code == "database_unavailable"
    assert "sign in" in refused.value.message
    token_service.broken = False
    if not account.url.startswith("postgres"):  # the test's own PostgreSQL trusts whoever comes
        account.set("another")
        with pytest.raises(StoreError) as refused:
            migrate.current(settings.database, options_of(settings))
        assert "token" not in refused.value.message


def test_an_unencrypted_connection_never_carries_the_token(
    account: Account, token_service: TokenService, tmp_path: Path
) -> None:
    """[J-091] Unless the URL says so: here the server offers no encryption, or one nobody vouches for."""
    bare = account.url.partition("?")[0]
    settings = settings_for(account, tmp_path).model_copy(update={"database_url": bare})
    account.set("token-of-the-machine")
    with pytest.raises(StoreError):
        migrate.current(settings.database, options_of(settings))


def test_other_words_and_a_file_are_refused_at_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[J-091]"""
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "postgresql://u@127.0.0.1/db")
    monkeypatch.setenv("DRAGOMAN_DATABASE_AUTH", "azure")
    assert all_settings.load(tmp_path).database_auth == "azure"
    monkeypatch.setenv("DRAGOMAN_DATABASE_AUTH", "kerberos")
    with pytest.raises(DragomanError) as refused:
        all_settings.load(tmp_path)
    assert isinstance(refused.value, SettingsError)
    assert "database_auth" in refused.value.message
    monkeypatch.setenv("DRAGOMAN_DATABASE_AUTH", "azure")
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "")
    with pytest.raises(SettingsError) as file:
        all_settings.load(tmp_path)
    assert "SQLite" in file.value.message
