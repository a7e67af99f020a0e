"""A provider's own codes for locales, found before any spend. Shared ground of this room, no member of it.

What a code stands for is decided by the function that wiring hands down (`content/locales.choose_code`): it
takes a locale and the codes on offer, and gives one of them or None, or raises `LocaleError` for what is no
locale.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dragoman.kernel.errors import LocaleError

Choose = Callable[[str, Mapping[str, str] | Collection[str]], str | None]


class LocaleCodes:
    """The codes that one provider declares; without any it takes every locale under its own name."""

    def __init__(
        self, provider: str, choose: Choose, declared: Mapping[str, str] | Collection[str] = ()
    ) -> None:
        self._provider = provider
        self._choose = choose
        self._declared = declared

    def source(self, locale: str) -> str:
        """What a language model is told that a text is in: a list of targets says nothing of sources."""
        return self._choose(locale, self._declared or (locale,)) or locale

    def code(self, locale: str) -> str:
        """The code for a locale. Raises `LocaleError` where there is none."""
        code = self._choose(locale, self._declared or (locale,))
        if code is None:
            offers = ", ".join(sorted(self._declared)) or "nothing"
            raise LocaleError(f"{self._provider} does not know {locale}; it offers {offers}")
        return code
