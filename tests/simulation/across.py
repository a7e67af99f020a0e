"""What must hold between a site and a far engine once a world has settled: each knows what the other did."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.ground import Database
from tests.simulation.settings import Setting

_STRAY_JOBS = """
    SELECT j.id, j.state, j.submission_id, s.state
    FROM jobs j LEFT JOIN submissions s ON s.id = j.submission_id
    LEFT JOIN manifests m ON m.id = s.manifest_id
    WHERE s.remote_job_id IS NOT j.id AND NOT (s.state = 'failed' AND m.canceled)
"""
"""Jobs that the site knows nothing of. Of what was canceled meanwhile it need not hear again."""
_STRAY_SUBMISSIONS = """
    SELECT s.id, s.state, s.remote_job_id FROM submissions s LEFT JOIN jobs j ON j.id = s.remote_job_id
    WHERE s.state = 'accepted' AND j.submission_id IS NOT s.id
"""
_UNSETTLED = """
    SELECT s.id, j.state FROM submissions s JOIN jobs j ON j.id = s.remote_job_id
    WHERE s.settled_at IS NULL OR EXISTS
    (SELECT 1 FROM submission_intents l WHERE l.submission_id = s.id AND l.settled_at IS NULL)
"""
_PAID = """
    SELECT s.id, s.paid_tokens, s.paid_microusd, s.wasted_tokens, s.wasted_microusd,
    total(u.total_tokens), total(u.microusd), total(u.total_tokens * u.wasted), total(u.microusd * u.wasted)
    FROM submissions s JOIN jobs j ON j.id = s.remote_job_id
    LEFT JOIN ai_usage u ON u.job_id = j.id AND u.created_at <= j.ended_at GROUP BY s.id
"""
"""What the site was told at the job's end, beside what the engine had booked until then."""


def problems(database: Database, setting: Setting) -> Iterator[str]:
    """Everything in which the rows of both do not fit together."""
    for job, state, submission, stands in database.all(_STRAY_JOBS):
        yield f"job {job} is {state}, and its submission {submission} is {stands} without it"
    if "restore" in setting.people:
        return  # what was settled before stays settled, whatever its engine forgot or did once more
    for submission, state, job in database.all(_STRAY_SUBMISSIONS):
        yield f"submission {submission} is {state} as job {job}, of which the engine knows nothing"
    for submission, state in database.all(_UNSETTLED):
        yield f"submission {submission} is open, and its job is {state}"
    for submission, *sums in database.all(_PAID):
        told, booked = sums[:4], sums[4:]
        if told != booked:
            yield f"submission {submission} is told to have cost {told}, and the engine has booked {booked}"
