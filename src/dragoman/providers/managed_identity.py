"""Keys that Azure gives to a machine: tokens of its managed identity. Shared ground of this room, no member.

Promises that a token is kept in memory only, is fetched once for all who wait, and is renewed before it runs
out; that a token which cannot be had means that nothing was sent. Needs the extra `azure`, and loads it when
the first identity is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from dragoman.kernel.clock import MICROSECONDS
from dragoman.kernel.errors import OutsideError, SettingsError
from dragoman.kernel.limits import TOKEN_FETCH_SECONDS, TOKEN_LEFT_SECONDS

SCOPE = "https://cognitiveservices.azure.com/.default"
"""What a token for Azure OpenAI is asked for."""


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
        self._identity = identity
        self._now = now
        self._scope = scope
        self._token: Token | None = None
        self._asking = asyncio.Lock()

    async def __call__(self) -> str:
        """A token that is good for a while yet. Raises `OutsideError` where none can be had."""
        async with self._asking:
            if self._left_seconds() < TOKEN_LEFT_SECONDS:
                await self._renew()
            assert self._token is not None  # noqa: S101 - renewed, or it would have raised
            return self._token.token

    def _left_seconds(self) -> float:
        return self._token.expires_on - self._now() / MICROSECONDS if self._token else 0.0

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(TOKEN_FETCH_SECONDS):
                self._token = await asyncio.to_thread(self._identity.get_token, self._scope)
        except Exception as error:  # noqa: BLE001 - a library's own tree; a token that still holds is used
            if self._left_seconds() <= 0:
                raise OutsideError(f"the managed identity gives no token ({type(error).__name__})") from None
