"""The doctor's questions: do the books add up, do counters agree with rows, what waits for a person."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.machines.tables import MANIFEST
from dragoman.store.acts import readiness
from dragoman.store.rows import budgets, field_sums, shards, standings
from dragoman.store.schema import engine, site
from dragoman.store.transaction import Tx

_REMEDIES = {
    "schema_unavailable": "Run `dragoman migrate`.",
    "worker_unavailable": "Start one: `dragoman worker` or `dragoman serve`.",
    "work_overdue": "Start more workers, or look into their log.",
}
_MANIFESTS_LOOKED_AT = 100


def findings(tx: Tx) -> list[dict[str, str]]:
    """What is wrong, in words, each with its remedy; empty where nothing is."""
    problems = readiness.problems(tx)
    if "worker_unavailable" in problems and not _work_is_open(tx):
        del problems["worker_unavailable"]  # nobody is missed
    found = [{"problem": text, "remedy": _REMEDIES[name]} for name, text in problems.items()]
    if "schema_unavailable" in problems:
        return found
    return found + _books(tx) + _counters(tx) + _held(tx)


def _work_is_open(tx: Tx) -> bool:
    is_open = site.manifests.c.phase.in_(sorted(MANIFEST.open))
    return tx.first(sa.select(site.manifests.c.id).where(is_open).limit(1)) is not None


def _books(tx: Tx) -> list[dict[str, str]]:
    stored, counted = budgets.stored(tx), budgets.recount(tx)
    wrong = sorted(key for key in {*stored, *counted} if stored.get(key) != counted.get(key))
    return [
        {
            "problem": f"budget {scope} {name} of workspace {workspace} differs from its attempts and usage",
            "remedy": "Report it with the database's history; no further call is made by mistake.",
        }
        for workspace, scope, name in wrong
    ]


def _counters(tx: Tx) -> list[dict[str, str]]:
    manifests = tx.all(
        sa.select(site.manifests.c.id)
        .where(site.manifests.c.phase.in_(sorted(MANIFEST.open)))
        .order_by(site.manifests.c.created_at.desc())
        .limit(_MANIFESTS_LOOKED_AT)
    )
    return [
        {"problem": f"the counters of manifest {row.id} differ from its intents", "remedy": "Report it."}
        for row in manifests
        if not (shards.agree(tx, row.id) and field_sums.agree(tx, row.id))
    ] + [
        {"problem": f"execution {name} of manifest {row.id} miscounts its steps", "remedy": "Report it."}
        for row in manifests
        for name in standings.differences(tx, row.id)
    ]


def _held(tx: Tx) -> list[dict[str, str]]:
    held = tx.scalar(sa.select(sa.func.count().label("number")).where(engine.calls.c.state == "held"))
    if not held:
        return []
    return [
        {
            "problem": f"{held} calls are held: nobody knows whether they were paid",
            "remedy": "Run the translation again with --on-unknown resend:unlimited to pay them again.",
        }
    ]
