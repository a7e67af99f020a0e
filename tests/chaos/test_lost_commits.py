"""Open case F6: a proxy lets COMMIT through and cuts its answer, again and again during a whole run.

Submit, claim, complete and outbox insert are all met, whichever comes: the database has each of them, and
nobody was told. Acts that answer `same` are asked again; everybody else behaves as if the process had died
there, and the next claim reads what is true.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from dragoman.store.schema import effects, engine, site
from tests.chaos.project import Project, provider
from tests.chaos.test_signals import events_per_job, rows
from tests.store.test_faults import behind, commit_of

DOCUMENTS = 40
CUT = 12
"""At most: a run of few commits ends before so many are cut."""


@pytest.mark.timeout(300)
def test_commits_whose_answers_are_lost_make_no_double_and_no_conflict(
    server_url: str, tmp_path: Path
) -> None:
    """[M-218, E-086] one manifest, one job a submission, one event a job, every text settled once."""
    with (
        behind(server_url) as (url, proxy),
        provider(tmp_path / "provider", {"seconds": 0.05}) as hired,
    ):
        project = Project(tmp_path / "work", url, hired.url, DOCUMENTS)
        project.make()
        run = project.start()
        while run.poll() is None and not admitted(server_url):
            threading.Event().wait(0.02)  # what is cut at the start is typed again; it is not the case here
        cut = 0
        while run.poll() is None and cut < CUT:
            lost = proxy.on(commit_of(server_url), "cut_answer")
            while run.poll() is None and not lost.happened.wait(0.01):
                """The run is met at its next commit, or has ended."""
            cut += lost.happened.is_set()
        said, err = run.communicate(timeout=200)
        assert cut, "what stands between the manifest and its end is many commits"
        proxy.forget()
        code = run.returncode
        told = json.loads(said) if said.strip() else {}
        if code != 0:  # a lease that its own process lost is waited for only so long; the rerun is the same
            code, told = project.finish()
        assert code == 0, (told, err[-2000:])
        assert len(project.outputs()) == 2 * DOCUMENTS, told
        assert len(rows(server_url, sa.select(site.manifests.c.id))) == 1
        made = Counter(row.submission_id for row in rows(server_url, sa.select(engine.jobs.c.submission_id)))
        assert set(made.values()) == {1}, "one job a submission"
        assert events_per_job(server_url) == {1}
        sent = rows(server_url, sa.select(site.submissions.c.state, site.submissions.c.error_code))
        assert {(row.state, row.error_code) for row in sent} == {("accepted", None)}, "no false conflict"
        outcomes = {row.outcome for row in rows(server_url, sa.select(effects.attempts.c.outcome))}
        assert "STARTED" not in outcomes
        assert {call["attempt_id"] for call in hired.calls()} <= set(project.attempts())


def admitted(url: str) -> bool:
    """Whether the database holds a manifest; there may be no tables yet."""
    try:
        return bool(rows(url, sa.select(site.manifests.c.id)))
    except sa.exc.SQLAlchemyError:
        return False
