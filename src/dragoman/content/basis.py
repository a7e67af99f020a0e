"""What a translation is made from beside its text, as the owner's side knows it: another basis is a change.

Note, context, the terms in it, style, provider, model, and the versions of prompt and checks. A model that
only the settings of a provider name is not seen from here, nor a glossary that only a far engine has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.content import prompting, verdicts
from dragoman.content.glossary import Glossary
from dragoman.kernel.identity import key_hash
from dragoman.model.documents import Block
from dragoman.model.memories import Library


class Basis:
    """For the intents of one manifest."""

    def __init__(self, settings: Mapping[str, Any], library: Library) -> None:
        said = [str(settings.get(name) or "") for name in ("provider", "model", "tone")]
        self._shared = (*said, library.manner.style, prompting.VERSION, verdicts.VERSION)
        self._library = library
        self._glossaries: dict[str, Glossary] = {}

    def of(self, locale: str, block: Block) -> str:
        """The key of a block's basis for one target locale."""
        texts = [block.text] if block.plural is None else block.plural.values()
        terms = self._glossary(locale).used("\n".join(texts))
        return key_hash(*self._shared, block.note, block.context, *terms.key)

    def _glossary(self, locale: str) -> Glossary:
        if locale not in self._glossaries:
            terms = self._library.terms
            self._glossaries[locale] = Glossary((*terms.get("", ()), *terms.get(locale, ())))
        return self._glossaries[locale]
