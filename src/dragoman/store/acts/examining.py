"""The doctor's questions: do the books add up, do counters agree with rows, what waits for whom."""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.clock import iso, seconds
from dragoman.kernel.errors import CODES
from dragoman.kernel.limits import PAUSES_TOLD, PROVIDER_ANSWER_BYTES_MAX
from dragoman.machines.tables import JOB, MANIFEST
from dragoman.model.jobs import ADDRESSED
from dragoman.store.acts import giving_up, readiness
from dragoman.store.rows import budgets, field_sums, jobs, shards, standings
from dragoman.store.schema import engine, site
from dragoman.store.transaction import Tx

_REMEDIES = {
    "schema_unavailable": "Run `dragoman migrate`.",
    "worker_unavailable": "Start one: `dragoman worker` or `dragoman serve`.",
    "work_overdue": "Start more workers, or look into their log.",
}
_MANIFESTS_LOOKED_AT = 100
_PAUSE_TOLD_SECONDS = 300  # a shorter one is over before anybody could do anything about it


def findings(tx: Tx) -> list[dict[str, str]]:
    """What is wrong, in words, each with its remedy; empty where nothing is."""
    problems = readiness.problems(tx)
    if "worker_unavailable" in problems and not _work_is_open(tx):
        del problems["worker_unavailable"]  # nobody is missed
    found = [{"problem": text, "remedy": _REMEDIES[name]} for name, text in problems.items()]
    if "schema_unavailable" in problems:
        return found
    found += [*_books(tx), *_counters(tx), *_held(tx), *_unclaimable(tx)]
    return [*found, *_waiting(tx), *_unheard(tx), *_packet(tx)]


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
        {"problem": f"{name} of manifest {row.id} differ from a recount", "remedy": "Report it."}
        for row in manifests
        for name in standings.differences(tx, row.id)
    ]


def _unclaimable(tx: Tx) -> list[dict[str, str]]:
    held = readiness.held_by_engines(tx)
    return [_needed(need, number) for need, number in sorted(jobs.unclaimable(tx, held).items())]


def _needed(need: str, number: int) -> dict[str, str]:
    if need.endswith(ADDRESSED):
        name = need.removesuffix(ADDRESSED)
        problem = (
            f"{number} jobs wait for a worker whose settings name the provider {name}, and none was seen"
        )
        remedy = f"Start a worker whose dragoman.toml has [providers.{name}], with its key, or cancel them."
        return _finding(problem, remedy)
    if ADDRESSED in need:
        problem = f"{number} jobs wait for provider {need}, whose address only its command line had"
        return _finding(problem, "Run the same command again with the same --base-url, or cancel them.")
    problem = f"{number} jobs wait for a worker that holds the key of {need}, and none was seen"
    return _finding(problem, f"Start a worker with {need} in its environment, or cancel them.")


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


def _waiting(tx: Tx) -> list[dict[str, str]]:
    """What stands still until somebody gives money or a secret, or a provider serves again; events that came
    nowhere.
    """
    found = []
    sent = site.submissions
    bare = _number(tx, sent.c.next_attempt_at >= 0, sent.c.parked_for == "secret", sent.c.secret_mark == "")
    if bare:
        problem = f"{bare} submissions wait for a callback secret, and nothing is sent without one"
        found.append(_finding(problem, CODES["callback_secret_missing"].remedy))
    budget = _number(tx, engine.jobs.c.state == JOB.initial, engine.jobs.c.parked_for == "budget")
    if budget:
        remedy = "Raise the budget or the month's limit; they go on by themselves."
        found.append(_finding(f"{budget} jobs wait for money", remedy))
    running = sa.select(engine.pauses).where(engine.pauses.c.until > tx.now + seconds(_PAUSE_TOLD_SECONDS))
    for row in tx.all(running.order_by(engine.pauses.c.account).limit(PAUSES_TOLD)):
        remedy = CODES[row.code].remedy if row.code in CODES else "Look at the account at its vendor."
        provider = row.account.partition("@")[0]
        found.append(_finding(f"nobody calls {provider} before {iso(row.until)}: {row.code}", remedy))
    dead = _number(tx, engine.outbox.c.state == "dead")
    if dead:
        remedy = "See `dragoman outbox list --state dead`, mend the receiver, then `dragoman outbox redrive`."
        found.append(_finding(f"{dead} events could not be delivered and are dead", remedy))
    return found


def _unheard(tx: Tx) -> list[dict[str, str]]:
    """Accepted work about which the engine says nothing that can be used, and events that contradict it."""
    found = []
    unanswered = (site.submissions.c.reconcile_at.is_not(None), site.submissions.c.error_code.is_not(None))
    lost = _number(tx, *unanswered, site.submissions.c.error_code == giving_up.UNKNOWN)
    if lost:
        remedy = (
            "See that the token is the one that the work was sent with. Where the engine has lost the jobs:"
        )
        problem = f"{lost} submissions are unknown to the engine that took them"
        found.append(
            _finding(problem, f"{remedy} `dragoman give-up MANIFEST`, then `dragoman retry MANIFEST`.")
        )
    accepted = (*unanswered, site.submissions.c.error_code != giving_up.UNKNOWN)
    told = tx.first(sa.select(site.submissions.c.error_message).where(*accepted).limit(1))
    if told is not None:
        number = _number(tx, *accepted)
        remedy = "See that the engine runs and takes this site's token; nothing is lost meanwhile."
        found.append(_finding(f"{number} submissions cannot be asked about: {told.error_message}", remedy))
    contradicting = _number(tx, site.receipts.c.state == "FAILED_MANUAL")
    if contradicting:
        problem = f"{contradicting} events contradict what is on record and were set aside"
        found.append(
            _finding(problem, "See which engine sends them, and whether two of them share a secret.")
        )
    return found


def _packet(tx: Tx) -> list[dict[str, str]]:
    """Whether a MariaDB or MySQL server takes a row as large as the largest that is ever written."""
    if tx.dialect != "mysql":
        return []
    allowed = int(tx.scalar(sa.select(sa.literal_column("@@max_allowed_packet").label("bytes"))))
    if allowed >= PROVIDER_ANSWER_BYTES_MAX:
        return []
    problem = f"the server's max_allowed_packet is {allowed} bytes: a large answer could not be kept"
    return [_finding(problem, f"Set max_allowed_packet to {2 * PROVIDER_ANSWER_BYTES_MAX} on the server.")]


def _finding(problem: str, remedy: str) -> dict[str, str]:
    return {"problem": problem, "remedy": remedy}


def _number(tx: Tx, *where: sa.ColumnElement[bool]) -> int:
    return int(tx.scalar(sa.select(sa.func.count().label("number")).where(*where)))
