"""Who goes on with a job whose provider refuses to serve it: by configuration, and never on doubt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from dragoman.kernel.errors import DragomanError
from dragoman.kernel.journal import logger
from dragoman.model.contracts import Provider, Resolver
from dragoman.model.jobs import Claimed, Field, Job
from dragoman.store.acts import falling_back
from dragoman.store.acts.falling_back import Way
from dragoman.store.database import Database

_log = logger(__name__)

_DENIED = frozenset({"provider_rejected", "provider_unavailable", "provider_credentials_missing"})
"""What makes a whole job impossible, and is the provider's matter alone."""


class Fallback:
    """`chains` name the others, `name` or `name:model`, by the name of the provider that was asked for.

    A job keeps to that one's list, however often it is handed on: the lists of the others are for their own.
    """

    def __init__(
        self, database: Database, resolve: Resolver, chains: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._database = database
        self._resolve = resolve
        self._chains = chains or {}

    async def hand_over(
        self, claimed: Claimed, job: Job, provider: Provider | str, fields: Sequence[Field], failure: str = ""
    ) -> bool:
        """Whether somebody else goes on with the job. `provider` is the name alone where it cannot be made.

        `failure` is the code that would end the job. Raises `LeaseLost`.
        """
        name, account = (
            (provider, provider) if isinstance(provider, str) else (provider.name, provider.account)
        )
        ways = list(self._ways(name, job, fields))
        if not ways or (failure and failure not in _DENIED):
            return False
        other = await self._database.run(
            falling_back.fall_back, claimed.job_id, claimed.fence, account, ways, failure
        )
        if other:
            _log.info("job handed to another provider", before=account, after=other, code=failure)
        return bool(other)

    def _ways(self, name: str, job: Job, fields: Sequence[Field]) -> Iterator[Way]:
        """The others that can be used here, and translate into every locale that is still asked for."""
        first = job.options.first or name
        for entry in self._chains.get(first, ()):
            other, _, model = entry.partition(":")
            try:
                provider = self._resolve(other, model, job.options.speed)
                for locale in {field.target_locale for field in fields}:
                    provider.target_code(locale)
            except DragomanError:
                continue
            options = replace(job.options, provider=other, model=model, first=first)
            yield Way(other, model, provider.account, json.dumps(asdict(options), ensure_ascii=False))
