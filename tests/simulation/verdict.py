"""What must hold once a world has settled: ends, files, events, a ledger that equals what the vendor took."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

from dragoman.content.documents import choose_format, open_document
from dragoman.kernel.limits import JOB_STARTS_MAX
from dragoman.machines.tables import ATTEMPT, INTENT
from dragoman.model.completions import Usage
from dragoman.providers import exchange
from dragoman.providers.rehearsal import Call
from dragoman.wiring.catalogue import formats
from tests.simulation.ground import Database
from tests.simulation.settings import Setting
from tests.simulation.shelves import LOCALES, SHARED, SHELVES, SOURCES_ALONE, target_of

_GIVEN_UP = ATTEMPT.groups["UNKNOWN"] | {"ACCEPTED_LATE"}
"""Outcomes after which the same may be bought again, if that is written down."""

_QUARANTINED = """
    SELECT a.id FROM attempts a JOIN calls c ON c.effect_id = a.effect_id JOIN jobs j ON j.id = c.job_id
    WHERE j.starts > ?
"""
"""Attempts of jobs whose last worker vanished, too, while it asked what became of them."""
_SENT_ANEW = """
    SELECT a.id FROM attempts a JOIN approvals p ON p.effect_id = a.effect_id WHERE p.kind = 'retry'
"""
"""Attempts of calls that a person had sent anew, who did not wait until a vendor could tell."""


_NOT_TAKEN = """
    SELECT count(*) FROM history WHERE kind = 'intent' AND after = 'failed'
    AND code IN ('retry_exhausted', 'backend_unavailable', 'backend_rate_limited', 'job_lost')
"""
"""Intents that an engine which was away for too long never took, or has lost."""


class Attempt(NamedTuple):
    """One attempt at a completion, and what was booked for it."""

    id: str
    effect: str
    number: int
    outcome: str
    resend: int
    tokens: int | None
    microusd: int | None


def states_of(database: Database) -> Mapping[str, Sequence[str]]:
    """Document and locale → the states in which its intents stand, in the order of their manifests."""
    found: dict[str, list[str]] = {}
    for pair, state in database.all(
        "SELECT i.document || ' ' || i.locale, i.state FROM intents i"
        " JOIN manifests m ON m.id = i.manifest_id"
        " ORDER BY CASE WHEN m.request_id LIKE 'run:%' THEN m.created_at END, m.request_id, i.ordinal"
    ):
        found.setdefault(pair, []).append(state)
    return found


def targets_of(folder: Path) -> Mapping[str, bytes]:
    """Every file of the world's folder that is more than a source."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in named.items()
        if name not in SOURCES_ALONE and not name.startswith(".dragoman/")
    }


class Outside(NamedTuple):
    """What the vendors of a world know of it."""

    heard: Mapping[str, str]
    """What was answered to processes that had no excuse to forget it: attempt → outcome."""
    taken: Mapping[str, Mapping[str, Sequence[Call]]]
    """Vendor → attempt → the calls that it took."""
    running: Collection[str]
    """Attempts that a vendor still works on."""
    held_up: Collection[str]
    """Attempts that came to a vendor when nobody waited for them any more."""

    @property
    def sent(self) -> Mapping[str, Sequence[Call]]:
        """Attempt → the calls of it that were taken, by whomever."""
        return {attempt: calls for taken in self.taken.values() for attempt, calls in taken.items()}


def problems(database: Database, setting: Setting, outside: Outside, folder: Path) -> Iterator[str]:
    """Everything that is wrong with a settled world."""
    yield from _ends(database)
    yield from _histories(database)
    yield from _events(database)
    yield from _publication(database, setting)
    yield from _ledger(database, setting, outside.sent, outside.heard)
    yield from _accounts(database, outside)
    yield from _findings(database, setting, outside)
    yield from _first_questions(database, outside)
    yield from _runs(database, setting)
    for name, data in targets_of(folder).items():
        if name.endswith(".dragoman"):
            yield f"a half-written file is left behind: {name}"
        else:
            yield from _second_opinion(setting, name, data)


def _runs(database: Database, setting: Setting) -> Iterator[str]:
    """A run comes to its end, and each of its passes is one manifest, which is no other's."""
    passes: list[str] = []
    for run, state, told in database.all("SELECT id, state, passes FROM runs"):
        passes += [one["manifest_id"] for one in json.loads(told)]
        may_stall = setting.may_fail or (setting.far and database.one(_NOT_TAKEN))
        if state != "complete" and not (state == "stalled" and may_stall):
            yield f"run {run} is {state}"
    admitted = database.all("SELECT id FROM manifests WHERE request_id LIKE 'run:%'")
    if sorted(passes) != sorted(manifest for (manifest,) in admitted):
        yield f"the passes of all runs are {passes}, and {admitted} were admitted for them"


def _second_opinion(setting: Setting, target: str, data: bytes) -> Iterator[str]:
    """What the second parser of a target's format says of it, in each locale that it may hold."""
    for name, locale in product(SHELVES[setting.shelf], LOCALES):
        if target in (name if name in SHARED else "", target_of(name, locale, "run" in setting.people)):
            form = choose_format(formats(), name, SHELVES[setting.shelf][name])
            document = open_document(form, target, data, "target", locale)
            if complaint := form.second_opinion(document, document):
                yield f"{target} reads otherwise in {locale}: {complaint}"


def _ends(database: Database) -> Iterator[str]:
    for pair, states in states_of(database).items():
        if set(states) - INTENT.terminal:
            yield f"intents {pair} are {states}"
    for intent, generation, times in database.all(
        "SELECT subject, generation, count(*) FROM history WHERE kind = 'intent' AND after IN"
        " ('completed', 'failed', 'skipped', 'protected') GROUP BY 1, 2 HAVING count(*) > 1"
    ):
        yield f"intent {intent} ended {times} times in generation {generation}"
    for manifest in database.all("SELECT id FROM manifests WHERE phase != 'ended'"):
        yield f"manifest {manifest} has not ended"


def _histories(database: Database) -> Iterator[str]:
    """The moves on record of each intent lead, without a gap, from its beginning to where it stands."""
    standing: dict[str, str] = dict(database.all("SELECT id, state FROM intents"))
    told = dict.fromkeys(standing, INTENT.initial)
    for intent, event, before, after in database.all(
        "SELECT subject, action, before, after FROM history WHERE kind = 'intent' ORDER BY rowid"
    ):
        if told.get(intent) != before or INTENT.next(before, event) != after:
            yield f"intent {intent} was {told.get(intent)}, and {event} leads from {before} to {after}"
        told[intent] = after
    for intent, state in standing.items():
        if told[intent] != state:
            yield f"intent {intent} is {state}, and its history ends at {told[intent]}"


def _events(database: Database) -> Iterator[str]:
    for event, state in database.all("SELECT id, state FROM outbox WHERE state != 'delivered' AND url != ''"):
        yield f"event {event} is {state}"
    for event, receipts in database.all(
        "SELECT o.id, count(r.id) FROM outbox o LEFT JOIN receipts r ON r.event_id = o.id"
        " GROUP BY 1 HAVING count(r.id) != (o.url != '')"
    ):
        yield f"event {event} has {receipts} receipts"
    for (endpoint,) in database.all("SELECT endpoint FROM gone_endpoints"):
        yield f"{endpoint} stays given up, and every event has arrived"


def _publication(database: Database, setting: Setting) -> Iterator[str]:
    """Each intent with results is in place once, and its step says so; where people meddle, once at most."""
    wanted = {0, 1} if {"cancel", "rival", "meddle", "word"} & set(setting.people) else {1}
    if "retry" in setting.people:
        wanted.add(2)  # what had failed in part was written in part
    if "reprint" in setting.people:
        wanted |= {2, 3, 4}  # who is not answered asks again
    for document, locale, steps in database.all(
        "SELECT i.document, i.locale, count(s.intent_id) FROM intents i LEFT JOIN publication_steps s"
        " ON s.intent_id = i.id AND s.state = 'SUCCEEDED' AND s.direction = 'forward'"
        " WHERE i.state = 'completed' GROUP BY i.id"
    ):
        if steps not in wanted:
            yield f"{document} in {locale} is completed and was put in place {steps} times"
    for document, locale, state in database.all(
        "SELECT i.document, i.locale, s.state FROM publication_steps s JOIN intents i ON i.id = s.intent_id"
        " JOIN executions e ON e.id = s.execution_id WHERE s.state != 'SUCCEEDED'"
        " AND NOT (s.state = 'PENDING' AND e.error_code IS 'canceled')"  # left where it was when that came
    ):
        if state != "CONFLICT" or not _is_meddled_with(setting, document, locale):
            yield f"publication of {document} in {locale} is {state}"


def _is_meddled_with(setting: Setting, document: str, locale: str) -> bool:
    """Whether somebody writes by hand what a publication is to write."""
    by_hand = {"shop.json"} if "meddle" in setting.people else set[str]()
    if "word" in setting.people:
        by_hand |= SHARED.keys()
    return locale == LOCALES[1] and document in by_hand


def _ledger(
    database: Database, setting: Setting, sent: Mapping[str, Sequence[Call]], heard: Mapping[str, str]
) -> Iterator[str]:
    attempts = _attempts(database)
    for attempt_id, outcome in heard.items():
        stands = attempts[attempt_id].outcome
        if outcome in ATTEMPT.groups["PAID"] and stands not in ATTEMPT.groups["PAID"]:
            yield f"attempt {attempt_id} was heard of as {outcome}, and the ledger says {stands}"
    for attempt_id in sent.keys() - attempts.keys():
        yield f"the vendor took {attempt_id}, of which the ledger knows nothing"
    for attempt in attempts.values():
        yield from _booked(attempt, sent.get(attempt.id, ()), setting)
    of_effect: dict[str, list[Attempt]] = {}
    for attempt in attempts.values():
        of_effect.setdefault(attempt.effect, []).append(attempt)
    for effect, mine in of_effect.items():
        yield from _repeats(database, setting, effect, mine, sent)


def _attempts(database: Database) -> Mapping[str, Attempt]:
    rows = database.all(
        "SELECT a.id, a.effect_id, a.number, a.outcome, a.resend, u.total_tokens, u.microusd"
        " FROM attempts a JOIN effects e ON e.id = a.effect_id LEFT JOIN ai_usage u ON u.attempt_id = a.id"
        " WHERE e.family = 'completion' ORDER BY a.effect_id, a.number"
    )
    return {row[0]: Attempt(*row) for row in rows}


def _booked(attempt: Attempt, taken: Sequence[Call], setting: Setting) -> Iterator[str]:
    """One attempt beside what the vendor has on record under its id."""
    said = f"attempt {attempt.number} of effect {attempt.effect} is {attempt.outcome}"
    if len(taken) > 1:
        yield f"{said}, and the vendor took it {len(taken)} times"
    if not taken:
        if attempt.outcome in ATTEMPT.groups["PAID"] or attempt.tokens is not None:
            yield f"{said} with {attempt.tokens} tokens, and the vendor never took it"
        return
    if attempt.outcome in ATTEMPT.groups["PAID"]:
        if attempt.tokens is None:
            yield f"{said}, and nothing is booked"
    elif attempt.outcome not in ATTEMPT.groups["UNKNOWN"]:
        yield f"{said}, and the vendor took it"
    usage = _usage(taken[0])
    booked = (attempt.tokens, attempt.microusd)
    if None in booked or usage is None:
        return
    if booked != (usage.prompt_tokens + usage.output_tokens, usage.microusd):
        yield f"{said} and books {booked} (tokens, micro-USD); the vendor says {usage}"


def _usage(taken: Call) -> Usage | None:
    """What the vendor asks for one call; None where its answer is too broken to say."""
    usage = exchange.read_answer(taken.answer).usage
    return usage if usage.prompt_tokens or usage.output_tokens else None


def _repeats(
    database: Database,
    setting: Setting,
    effect: str,
    attempts: Sequence[Attempt],
    sent: Mapping[str, Sequence[Call]],
) -> Iterator[str]:
    """What was bought again was in doubt before, and where it costs money somebody has allowed it."""
    bought = [attempt for attempt in attempts if attempt.id in sent]
    for earlier in bought[:-1]:
        if earlier.outcome not in _GIVEN_UP:
            yield f"effect {effect} was bought again after attempt {earlier.number} was {earlier.outcome}"
    if not setting.priced:
        return
    for before, attempt in pairwise(attempts):
        if before.outcome in _GIVEN_UP and not attempt.resend:
            yield f"effect {effect} was sent again without a word after an attempt that is {before.outcome}"
    resends = sum(attempt.resend for attempt in attempts)
    approved = database.one(
        "SELECT count(*) FROM approvals WHERE effect_id = ? AND used_at IS NOT NULL", effect
    )
    if resends != approved:
        yield f"effect {effect} was sent again {resends} times under {approved} approvals"


def _accounts(database: Database, outside: Outside) -> Iterator[str]:
    """Who took a call is who the ledger says was asked; the list of an heir counts for nobody."""
    asked = dict(database.all("SELECT id, provider FROM attempts"))
    for vendor, taken in outside.taken.items():
        for attempt in taken:
            if asked.get(attempt) != vendor:
                yield f"{vendor} took attempt {attempt}, which was for {asked.get(attempt)}"
    if outside.taken["third"]:
        yield "a job was handed on by the list of somebody whom it was handed to"


def _findings(database: Database, setting: Setting, outside: Outside) -> Iterator[str]:
    """What a vendor can tell is found out and booked, also for jobs that nobody wants; nothing runs on."""
    if not (setting.batched or setting.background):
        return
    booked = {attempt for (attempt,) in database.all("SELECT attempt_id FROM ai_usage")}
    starts = setting.bounds.get("JOB_STARTS_MAX", JOB_STARTS_MAX)
    left_alone = set(outside.held_up) | {attempt for (attempt,) in database.all(_QUARANTINED, starts)}
    left_alone |= {attempt for (attempt,) in database.all(_SENT_ANEW)}
    known = {
        attempt
        for attempt, reference in database.all("SELECT id, provider_ref FROM attempts")
        if setting.batched or reference
    }
    for attempt in (known & outside.sent.keys()) - booked - left_alone:
        yield f"the vendor could have told what became of attempt {attempt}, and nothing is booked"
    for attempt in known & set(outside.running) - left_alone:
        yield f"the vendor works on attempt {attempt}, for which nobody waits"


def _first_questions(database: Database, outside: Outside) -> Iterator[str]:
    """No field is asked for as for the first time twice, but by an heir of who did not take it: that would be
    a purchase that no ledger sees.
    """
    asked: dict[tuple[str, int, str], list[str]] = {}
    for job, said, effect in database.all(
        "SELECT job_id, asked, effect_id FROM calls WHERE purpose = 'first' ORDER BY job_id, ordinal"
    ):
        for _, ordinal, category in json.loads(said):
            asked.setdefault((job, ordinal, category), []).append(effect)
    for (job, ordinal, category), effects in asked.items():
        bought = sum(
            any(attempt in outside.sent for (attempt,) in database.all(_ATTEMPTS, effect))
            for effect in effects[:-1]
        )
        if bought or len(effects) > 2:
            yield f"field {ordinal} {category} of job {job} was asked for anew as for the first time"


_ATTEMPTS = "SELECT id FROM attempts WHERE effect_id = ?"
