"""How the database of a process is reached: its options, and who it signs in as."""

from __future__ import annotations

import os
from collections.abc import Callable

from dragoman.kernel.clock import SystemClock
from dragoman.kernel.errors import OutsideError, StoreError
from dragoman.providers.managed_identity import DATABASE_SCOPE, ThreadTokens, managed_identity
from dragoman.store.servers import Options
from dragoman.wiring.settings import Settings


def options_of(settings: Settings) -> Options:
    """What the settings say about the database. Raises `SettingsError` where an extra is missing."""
    return Options(
        group_commit=settings.group_commit,
        synchronous="FULL" if settings.durable else "NORMAL",
        password=_azure_password() if settings.database_auth == "azure" else None,
    )


def _azure_password() -> Callable[[], str]:
    """A token of this machine's identity, the same for all connections until shortly before it runs out."""
    identity = managed_identity(os.environ.get("AZURE_CLIENT_ID", ""))
    tokens = ThreadTokens(identity, SystemClock().now, DATABASE_SCOPE)

    def password() -> str:
        try:
            return tokens()
        except OutsideError as error:
            raise StoreError(f"nobody can sign in to the database: {error.message}") from None

    return password
