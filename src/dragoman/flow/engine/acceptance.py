"""Step 1 of the engine: a submission becomes a job, once, however often it is sent.

The answer is given after the commit. The callback secret comes beside the body and never into it: it is kept
sealed, on first creation only; in the process that holds the site as well, by the reference `local`.
"""

from __future__ import annotations

from dragoman.content import submissions
from dragoman.kernel import canonical
from dragoman.kernel.canonical import fingerprint
from dragoman.kernel.errors import CallerError, DragomanError, SettingsError
from dragoman.kernel.identity import Chance, nonce
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import CALLBACK_SECRET_BYTES_MAX, CALLBACK_SECRET_BYTES_MIN
from dragoman.kernel.offload import Offload
from dragoman.kernel.sealing import Sealer
from dragoman.model.contracts import Needed, Queue, Resolver
from dragoman.model.jobs import ADDRESSED, Accepted, Capacity, JobOptions, NewField, NewJob, Submission
from dragoman.model.scopes import Workspace
from dragoman.store.acts import accepting, readiness
from dragoman.store.database import Database

DEFAULT_PROJECT = "default"
_ELSEWHERE = frozenset({"provider_credentials_missing", "provider_unknown"})
"""What this process lacks, and another may have."""
LOCAL_SECRET = "local"  # noqa: S105 - a reference, not a secret

_log = logger(__name__)


class Acceptance:
    """Takes submissions. Without a `sealer` remote ones come without a callback only.

    `capacity` bounds what callers send, `local_capacity` what the site in this process does.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue,
        resolve: Resolver,
        need: Needed,
        offload: Offload,
        chance: Chance,
        capacity: Capacity | None = None,
        sealer: Sealer | None = None,
        local_capacity: Capacity | None = None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._resolve = resolve
        self._need = need
        self._offload = offload
        self._chance = chance
        self.capacity = capacity or Capacity()
        self._local_capacity = local_capacity or self.capacity
        self._sealer = sealer

    async def accept(
        self,
        principal: str,
        workspace: str,
        project: str,
        body: bytes,
        secret: str | None = None,
        *,
        local: bool = False,
    ) -> Accepted:
        """The job of these exact bytes, created or as it stands. `local` is for the site in this process.

        One that stands is found whatever has become of providers, bounds and keys since: refusing it would
        call refused what is worked, and paid for. Raises `CallerError`: what `submissions.read` refuses,
        provider_unknown, submission_id_conflict, not_found for another principal's submission,
        sealing_key_missing where no secret can be kept.
        """
        try:
            new = await self._new_job(principal, workspace, project, body, secret, local)
        except DragomanError:
            standing = await self._standing(principal, workspace, project, body)
            if standing is None:
                raise
            return standing
        accepted = await self._database.run(accepting.accept_submission, new)
        if accepted.created:
            await self._wake(accepted)
        return accepted

    async def _new_job(
        self, principal: str, workspace: str, project: str, body: bytes, secret: str | None, local: bool
    ) -> NewJob:
        capacity = self._local_capacity if local else self.capacity
        submission, fields, digest = await self._offload.call(_read, body, capacity, local)
        job_id = self._chance.new_id()
        project = project or submission.project or DEFAULT_PROJECT
        return NewJob(
            id=job_id,
            workspace=workspace,
            project=project,
            principal=principal,
            fingerprint=fingerprint([principal, workspace, project, digest]),
            submission=submission,
            fields=fields,
            model=await self._model(submission.options, local),
            needs=self._need(submission.options.provider),
            callback_secret=self._kept_secret(job_id, submission, secret, local),
        )

    async def _standing(self, principal: str, workspace: str, project: str, body: bytes) -> Accepted | None:
        """The job that these very bytes have made before; None where they have made none."""
        try:
            said = await self._offload.call(canonical.parse, body)
        except CallerError:
            return None
        submission_id, named = said.get("submissionId"), said.get("project")
        if not isinstance(submission_id, str):
            return None
        project = project or (named if isinstance(named, str) else "") or DEFAULT_PROJECT
        made_by = fingerprint([principal, workspace, project, fingerprint(said)])
        return await self._database.read(accepting.standing_job, Workspace(workspace), submission_id, made_by)

    async def _model(self, options: JobOptions, local: bool) -> str:
        """The model that will be asked. A provider whose address another process of this site was given is
        known there alone: its job waits for that process. So does one whose key, or whose name, a living
        worker announces.
        """
        try:
            return self._resolve(options.provider, options.model, options.speed).model
        except DragomanError as error:
            if local and error.code == "provider_unknown" and ADDRESSED in options.provider:
                return options.model
            if error.code in _ELSEWHERE and await self._is_held(options.provider):
                return options.model
            raise

    async def _is_held(self, provider: str) -> bool:
        return self._need(provider) in await self._database.read(readiness.held_by_engines)

    def _kept_secret(self, job_id: str, submission: Submission, secret: str | None, local: bool) -> str:
        if local:
            return LOCAL_SECRET
        if not submission.callback_url:
            return ""
        size = len((secret or "").encode())
        if not CALLBACK_SECRET_BYTES_MIN <= size <= CALLBACK_SECRET_BYTES_MAX:
            raise CallerError(
                f"X-Dragoman-Callback-Secret: {CALLBACK_SECRET_BYTES_MIN} to {CALLBACK_SECRET_BYTES_MAX} "
                "bytes are wanted in this header",
                place="X-Dragoman-Callback-Secret",
            )
        if self._sealer is None:
            raise SettingsError(
                "no callback secret can be kept: DRAGOMAN_SEALING_KEY is not set", "sealing_key_missing"
            )
        return self._sealer.seal(secret or "", job_id, nonce())

    async def _wake(self, accepted: Accepted) -> None:
        """Tell a worker. A wake that is lost delays the job until the sweep, and changes nothing else."""
        try:
            await self._queue.enqueue(accepted.job_id)
        except DragomanError as error:
            _log.warning("job accepted, and nobody could be woken", job=accepted.job_id, code=error.code)


def _read(body: bytes, capacity: Capacity, local: bool) -> tuple[Submission, tuple[NewField, ...], str]:
    submission, digest = submissions.read(body, capacity, local=local)
    return submission, submissions.new_fields(submission), digest
