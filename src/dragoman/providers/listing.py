"""What a server says of itself before the first call: one short GET that blocks. Shared ground, no member."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import TypeVar

from dragoman.kernel import limits
from dragoman.kernel.errors import OutsideError
from dragoman.providers.vendors import checked_url

_T = TypeVar("_T")


def told(name: str, base_url: str, path: str, read: Callable[[bytes], _T]) -> _T:
    """What `read` makes of the answer. Raises `OutsideError` where there is none, or it cannot be read."""
    url = f"{checked_url(base_url)}{path}"
    headers = {"Accept": "application/json", "User-Agent": "dragoman"}
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - http(s), or `checked_url` raises
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(asked, timeout=limits.PROVIDER_LANGUAGES_SECONDS) as answer:
            return read(answer.read(limits.PROVIDER_LANGUAGES_BYTES_MAX))
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise OutsideError(
            f"provider {name} does not say which languages it has: {type(error).__name__}",
            "provider_unavailable",
        ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A server that sends us elsewhere has not said anything."""

    def redirect_request(self, *_asked: object) -> None:
        """Nothing is followed."""
