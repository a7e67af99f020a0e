"""What must hold wherever something is removed: it was over, long enough, and little of it goes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dragoman.kernel.clock import seconds
from dragoman.machines.tables import INTENT, JOB
from tests.simulation.ground import STATES, Database, Sight
from tests.simulation.settings import RETAINED_PARTS

DAYS = 30
"""How long a manifest is kept after its end, as the settings of all worlds have it."""
_KEPT_DAYS = {"manifests": DAYS, "jobs": 2 * DAYS, "receipts": DAYS}
_PARTS = ("intents", "submissions", "executions", "publication_requests")
"""Tables of whose rows a bounded number goes at once, each with its own."""

_FAILED = """
    SELECT count(*) FROM intents WHERE manifest_id = ? AND state = 'failed'
    AND NOT (SELECT canceled FROM manifests WHERE id = manifest_id)
"""
_AT_WORK = (
    ("intents", f"manifest_id = ? AND state NOT IN ({', '.join(map(repr, sorted(INTENT.terminal)))})"),
    ("jobs", f"client_job_id = ? AND state NOT IN ({', '.join(map(repr, sorted(JOB.terminal)))})"),
    ("effects", "correlation_id = ? AND state IN ('UNKNOWN', 'IN_FLIGHT')"),
    ("publication_requests", "manifest_id = ? AND state = 'pending'"),
    ("executions", "manifest_id = ? AND state = 'RUNNING'"),
)
_OWED = "SELECT count(*) FROM outbox WHERE job_id = ? AND url != '' AND state != 'delivered'"
_UNKNOWN = """
    SELECT count(*) FROM calls c JOIN effects e ON e.id = c.effect_id
    WHERE c.job_id = ? AND (c.state != 'closed' OR e.state IN ('UNKNOWN', 'IN_FLIGHT'))
"""
REASONS = f"""
    SELECT id FROM manifests m WHERE phase = 'ended' AND control_due_at IS NULL
    AND NOT EXISTS ({_FAILED.replace("count(*)", "1").replace("?", "m.id")})
    AND NOT EXISTS (SELECT 1 FROM effects WHERE correlation_id = m.id AND state IN ('UNKNOWN', 'IN_FLIGHT'))
"""
"""Manifests that nothing keeps but their age."""


def removals(database: Database, sights: Sequence[Sight], now: int) -> Iterator[str]:
    """What is wrong with what a commit removed at its database time `now`."""
    gone = [sight for sight in sights if sight.kind == "gone"]
    for sight in gone:
        yield from _gone(sight, now)
    for table, number in Counter(sight.table for sight in gone).items():
        if table in _PARTS and number > RETAINED_PARTS:
            yield f"{number} rows of {table} are removed at once"
    for sight in sights:
        if sight.kind == "proved":
            yield from _proved(database, sight, now)
        if sight.kind == "purged":
            yield from _purged(database, sight, now)


def _gone(sight: Sight, now: int) -> Iterator[str]:
    """A row that is gone had come to its end, long enough ago; the ledger keeps everything."""
    said = f"{sight.table} {sight.subject} is removed"
    if sight.under == "1":
        yield f"{said}, and the ledger is kept for good"
    if sight.before not in STATES[sight.table][1].terminal and sight.table not in ("calls", "job_fields"):
        yield f"{said} while it is {sight.before}"
    if sight.table == "outbox" and sight.before != "delivered":
        yield f"{said} while it is {sight.before}, and nobody has heard of it"
    if sight.table in ("manifests", "jobs") and not _is_old(sight, now, _KEPT_DAYS[sight.table]):
        yield f"{said} before its time"


def _is_old(sight: Sight, now: int, days: int) -> bool:
    return sight.fence is not None and now - sight.fence >= seconds(days * 24 * 3600)


def _proved(database: Database, sight: Sight, now: int) -> Iterator[str]:
    """What may go of a manifest holds nothing that is at work, failed or unknown."""
    if not _is_old(sight, now, DAYS):
        yield f"manifest {sight.subject} may go before its time"
    if database.one(_FAILED, sight.subject):
        yield f"manifest {sight.subject} may go, and something of it has failed"
    for table, what in _AT_WORK:
        if number := database.one(f"SELECT count(*) FROM {table} WHERE {what}", sight.subject):
            yield f"manifest {sight.subject} may go, with {number} {table} at work or unknown"


def _purged(database: Database, sight: Sight, now: int) -> Iterator[str]:
    """Source texts go once a job is over and its event has arrived."""
    if sight.before not in JOB.terminal or database.one(_UNKNOWN, sight.subject):
        yield f"the source texts of job {sight.subject} are gone while it is {sight.before}, or unknown"
    if not _is_old(sight, now, DAYS) and database.one(_OWED, sight.subject):
        yield f"the source texts of job {sight.subject} are gone, and its event has not arrived"
