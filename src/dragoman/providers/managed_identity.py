"""Keys that Azure gives to a machine: tokens of its managed identity. Shared ground of this room, no member.

Promises that a token is kept in memory only, is fetched once for all who wait, and is renewed before it runs
out; that a token which cannot be had means that nothing was sent. Needs the extra `azure`, and loads it when
the first identity is made.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol

from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import OutsideError, SettingsError
from dragoman.kernel.limits import TOKEN_FETCH_SECONDS, TOKEN_LEFT_SECONDS

SCOPE = "https://cognitiveservices.azure.com/.default"
"""What a token for Azure OpenAI is asked for."""
DATABASE_SCOPE = "https://ossrdbms-aad.database.windows.net/.default"
"""What a token for Azure's PostgreSQL and MySQL is asked for."""


class Token(Protocol):
    """A token, and the Unix second at which it runs out."""

    @property
    def token(self) -> str:
        """The secret itself."""
        ...

    @property
    def expires_on(self) -> int:
        """Unix time."""
        ...


class Identity(Protocol):
    """Whoever gives tokens; blocks while it asks."""

    def get_token(self, scope: str, /) -> Token:
        """A token for a scope. Raises what it likes."""
        ...


def managed_identity(client_id: str = "") -> Identity:
    """This machine's identity, or the user-assigned one of this id. Raises `SettingsError` without it."""
    try:
        from azure.identity import ManagedIdentityCredential
    except ImportError as error:
        raise SettingsError(
            "a managed identity needs more packages: pip install 'dragoman[azure]'"
        ) from error
    return ManagedIdentityCredential(client_id=client_id or None)


class IdentityTokens:
    """Reads the key of one account: the identity's token, cached. `now` gives microseconds."""

    def __init__(self, identity: Identity, now: Callable[[], int], scope: str = SCOPE) -> None:
        self._cache = _Cache(identity, now, scope)
        self._asking = asyncio.Lock()

    async def __call__(self) -> str:
        """A token that is good for a while yet. Raises `OutsideError` where none can be had."""
        async with self._asking:
            if not self._cache.is_good:
                try:
                    async with asyncio.timeout(TOKEN_FETCH_SECONDS):
                        await asyncio.to_thread(self._cache.renew)
                except Exception as error:  # noqa: BLE001 - a library's own tree
                    self._cache.make_do(error)
            return self._cache.token


class ThreadTokens:
    """The same for threads that may block, such as those that open connections to a database."""

    def __init__(self, identity: Identity, now: Callable[[], int], scope: str) -> None:
        self._cache = _Cache(identity, now, scope)
        self._asking = threading.Lock()

    def __call__(self) -> str:
        """A token that is good for a while yet. Raises `OutsideError` where none can be had."""
        with self._asking:
            if not self._cache.is_good:
                try:
                    self._cache.renew()
                except Exception as error:  # noqa: BLE001 - a library's own tree
                    self._cache.make_do(error)
            return self._cache.token


class _Cache:
    """The newest token of one identity for one scope."""

    def __init__(self, identity: Identity, now: Callable[[], int], scope: str) -> None:
        self._identity = identity
        self._now = now
        self._scope = scope
        self._newest: Token | None = None

    @property
    def token(self) -> str:
        """The secret; there is one once `renew` or `make_do` has returned."""
        assert self._newest is not None  # noqa: S101 - else one of them would have raised
        return self._newest.token

    @property
    def is_good(self) -> bool:
        """Whether the token will not run out soon."""
        return self._left_seconds() >= TOKEN_LEFT_SECONDS

    def renew(self) -> None:
        """Fetch a token. Blocks; raises what the identity raises."""
        self._newest = self._identity.get_token(self._scope)

    def make_do(self, error: Exception) -> None:
        """A token that still holds is used; else raise `OutsideError`."""
        if self._left_seconds() <= 0:
            raise OutsideError(f"the managed identity gives no token ({type(error).__name__})") from None

    def _left_seconds(self) -> float:
        return self._newest.expires_on - self._now() / MICROSECONDS if self._newest else 0.0
