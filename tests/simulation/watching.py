"""What must hold at every commit: legal moves only, under fences that hold, and counts equal to a recount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from dragoman.machines.tables import ATTEMPT, INTENT, JOB, STEP
from dragoman.store.rows.field_sums import NAMES as FIELD_NAMES
from dragoman.store.rows.shards import STATES as INTENT_STATES
from dragoman.store.tables_publishing import STANDING_COUNTS, STEP_COUNTS, UNIT_COUNTS
from tests.simulation import keeping
from tests.simulation.ground import STATES, Database, Sight

_HOLDERS: dict[str, tuple[tuple[str, frozenset[str]], ...]] = {
    "manifests": (("manifests", frozenset({"enumerating"})),),
    "submissions": (("submissions", frozenset({"submitting"})),),
    "jobs": (("jobs", frozenset({"processing"})),),
    "outbox": (("outbox", frozenset({"delivering"})),),
    "publication_requests": (("publication_requests", frozenset({"pending"})),),
    "publication_commands": (("publication_commands", frozenset({"PROCESSING"})),),
    "runs": (("runs", frozenset({"looking", "passing"})),),
    "intents": (("shards", frozenset({"preparing"})),),
}
_PARTS_OF_A_JOB = ("calls", "job_fields")
"""Table → whose lease a move out of these states needs."""

_OPEN_OUTCOMES = tuple(sorted({ATTEMPT.initial} | ATTEMPT.groups["UNKNOWN"]))

REMOVALS = ("gone", "proved", "purged")
"""Kinds of sights of what goes."""
_IS_GOING = "SELECT count(*) FROM manifests WHERE id = ? AND reconciled_at IS NOT NULL"
_STEPS = tuple(zip(STEP_COUNTS, sorted(STEP.states), strict=True))
_PAUSES = "SELECT account, until FROM pauses"
_RESTING = "SELECT client_job_id, 1 FROM controls WHERE paused OR canceled"

_SHARDS = f"""
    SELECT manifest_id || '/' || shard, intents, {", ".join(INTENT_STATES)}, retryable_failed FROM shards
"""
_FIELD_SUMS = f"""
    SELECT s.manifest_id || '/' || s.shard, {", ".join(f"s.{name}, total(i.{name})" for name in FIELD_NAMES)}
    FROM shards s JOIN intents i ON i.manifest_id = s.manifest_id AND i.shard = s.shard GROUP BY 1
"""
_INTENTS = """
    SELECT manifest_id || '/' || shard, state, count(*), sum(state = 'failed' AND retryable)
    FROM intents GROUP BY 1, 2
"""
_RESERVED = f"""
    SELECT workspace, budget_month, provider, correlation_id,
    sum(reserved_tokens), sum(reserved_microusd), 0, 0
    FROM attempts WHERE outcome IN ({", ".join(map(repr, _OPEN_OUTCOMES))}) AND reserved_tokens > 0
    AND NOT EXISTS (SELECT 1 FROM ai_usage WHERE attempt_id = attempts.id) GROUP BY 1, 2, 3, 4
    UNION ALL
    SELECT u.workspace, a.budget_month, a.provider, u.client_job_id,
    0, 0, sum(u.total_tokens), sum(u.microusd)
    FROM ai_usage u JOIN attempts a ON a.id = u.attempt_id WHERE a.reserved_tokens > 0 GROUP BY 1, 2, 3, 4
"""
_BUDGETS = """
    SELECT workspace, scope, scope_key, reserved_tokens, reserved_microusd, spent_tokens, spent_microusd
    FROM budgets
"""
_BOUNDED = """
    SELECT workspace, scope, scope_key, limit_tokens, limit_microusd,
    reserved_tokens + spent_tokens, reserved_microusd + spent_microusd FROM budgets
"""
_JOBS = """
    SELECT id, total_fields + passed_through, done_fields, failed_fields, via_memory, via_ai, passed_through
    FROM jobs
"""
_FIELDS = """
    SELECT job_id, count(*), sum(state = 'done'), sum(state = 'failed'),
    sum(state = 'done' AND via = 'memory'), sum(state = 'done' AND via = 'ai'), sum(state = 'passed')
    FROM job_fields GROUP BY job_id
"""
_OPEN_FIELDS = "SELECT count(*) FROM job_fields WHERE job_id = ? AND state = 'open'"
_ENDED_WITHOUT_ONE_EVENT = f"""
    SELECT jobs.id, jobs.state, count(outbox.id) FROM jobs LEFT JOIN outbox ON outbox.job_id = jobs.id
    GROUP BY jobs.id HAVING count(outbox.id) != (jobs.state IN ({", ".join(map(repr, sorted(JOB.terminal)))}))
"""


_EXECUTIONS = f"""
    SELECT e.id, {", ".join(f"e.{name}, total(s.state = '{state}' AND s.newest)" for name, state in _STEPS)},
    {", ".join(f"e.{name}, total(s.{name} * s.newest)" for name in UNIT_COUNTS)}
    FROM executions e LEFT JOIN publication_steps s ON s.execution_id = e.id
    WHERE e.state != 'RUNNING' GROUP BY e.id
"""
_SLOTS = f"""
    SELECT manifest_id || '/' || direction || '/' || slot, {", ".join(STANDING_COUNTS)}
    FROM publication_sums WHERE {" + ".join(STANDING_COUNTS)} > 0
"""
_OF_SLOTS = f"""
    SELECT manifest_id || '/' || direction || '/' || slot,
    {", ".join(f"sum({name})" for name in (*STEP_COUNTS, *UNIT_COUNTS))}, sum(state = 'QUEUED'), sum(troubled)
    FROM executions WHERE state != 'RUNNING' GROUP BY 1
"""
_NOT_ONE_NEWEST = """
    SELECT intent_id, sum(newest) FROM publication_steps GROUP BY 1 HAVING sum(newest) != 1
"""
_NOTHING = [0] * len(STANDING_COUNTS)
_USED = """
    SELECT workspace, client_job_id, sum(tokens), sum(microusd), sum(wasted_tokens), sum(wasted_microusd)
    FROM usage_sums GROUP BY 1, 2
"""
_BOOKED = """
    SELECT workspace, client_job_id, sum(total_tokens * (1 - wasted)), sum(microusd * (1 - wasted)),
    sum(total_tokens * wasted), sum(microusd * wasted) FROM ai_usage GROUP BY 1, 2
"""


class Watch:
    """Looks at every commit of a world. Knows who claimed which fence; believes nothing else."""

    def __init__(self, database: Database, is_dead: Callable[[str], bool]) -> None:
        self._database = database
        self._is_dead = is_dead
        self.overtaken: set[str] = set()
        """Owners of whom the last commit took something."""
        self._claimants: dict[tuple[str, str, int], str | None] = {}
        self._fences: dict[tuple[str, str], int] = {}
        self._pauses: dict[str, int] = {}
        """Account → until when it asks not to be called, as of the last commit."""
        self._resting: dict[str, int] = {}
        """Client jobs of which nothing may begin, as of the last commit."""
        self._redriven: Counter[str] = Counter()
        """How often each job was redriven: each time it has one more end, and tells it."""
        self._held: dict[tuple[str, str, str], tuple[int, int]] = {}

    def problems(self, owner: str, now: int) -> list[str]:
        """What is wrong after a commit by `owner` at its database time `now`."""
        self.overtaken.clear()
        sights = self._database.sights()
        raised: set[tuple[str, str]] = set()
        found: list[str] = []
        for sight in sights:
            if sight.kind == "fence":
                found += self._fence(sight, owner, now)
                raised.add((sight.table, sight.subject))
        for sight in sights:
            if sight.kind == "state":
                found += self._move(sight, owner, raised)
            elif sight.kind == "lease":
                found += self._lease(sight, owner)
        found += self._begun([sight for sight in sights if sight.kind == "begun"])
        found += self._overspent()
        if any(sight.kind in REMOVALS for sight in sights):
            found += keeping.removals(self._database, sights, now)
        found += self._without_an_event()
        return found + [problem for check in _CHECKS for problem in check(self._database)]

    def _begun(self, begun: list[Sight]) -> Iterator[str]:
        """No call begins inside a time that its provider has asked for, nor against what people decided."""
        pauses, resting = dict(self._database.all(_PAUSES)), dict(self._database.all(_RESTING))
        for sight in begun:
            account, at = sight.after or "", sight.fence or 0
            until = min(self._pauses.get(account, 0), pauses.get(account, 0))
            if until > at:
                yield f"attempt {sight.subject} is begun {until - at} µs before {account} may be called"
            if sight.under in self._resting and sight.under in resting:
                yield f"attempt {sight.subject} is begun, and {sight.under} rests or is canceled"
        self._pauses, self._resting = pauses, resting

    def _overspent(self) -> Iterator[str]:
        """What is reserved and spent of a bounded budget never grows beyond its bound; at no commit."""
        for workspace, scope, key, *numbers in self._database.all(_BOUNDED):
            limits, held = numbers[:2], (numbers[2], numbers[3])
            before = self._held.get((workspace, scope, key), (0, 0))
            self._held[workspace, scope, key] = held
            for name, limit, had, has in zip(("tokens", "microusd"), limits, before, held, strict=True):
                if limit is not None and has > max(limit, had):
                    yield f"budget {scope} {key} grew from {had} to {has} {name} beyond its {limit}"

    def _without_an_event(self) -> Iterator[str]:
        """Every end of a job is told by one event, and nothing else is."""
        for job, state, events in self._database.all(_ENDED_WITHOUT_ONE_EVENT):
            ends = (state in JOB.terminal) + self._redriven[job]
            if events != ends:
                again = self._redriven[job]
                yield f"job {job} is {state}, was redriven {again} times and has {events} events"

    def _fence(self, sight: Sight, owner: str, now: int) -> Iterator[str]:
        key = (sight.table, sight.subject)
        fence = sight.fence or 0
        if fence <= self._fences.get(key, 0):
            yield f"{sight.table} {sight.subject}: fence {sight.before} became {fence}"
        if sight.owner and sight.owner_before and (sight.lease_before or 0) > now:
            yield f"{sight.table} {sight.subject}: claimed while {sight.owner_before} held it"
        if sight.owner and sight.owner != owner:
            yield f"{sight.table} {sight.subject}: claimed by {owner} in the name of {sight.owner}"
        before = self._claimants.get((*key, self._fences.get(key, 0)))
        if before and before != owner:
            self.overtaken.add(before)
        self._fences[key] = fence
        self._claimants[(*key, fence)] = sight.owner

    def _lease(self, sight: Sight, owner: str) -> Iterator[str]:
        """Only its holder prolongs or ends a lease; that of a dead one may be ended for him."""
        holder = sight.owner_before or ""
        if holder != owner and not self._is_dead(holder):
            yield f"{sight.table} {sight.subject}: {owner} has changed the lease that {holder} holds"

    def _move(self, sight: Sight, owner: str, raised: set[tuple[str, str]]) -> Iterator[str]:
        machine = STATES[sight.table][1]
        rows = machine.table + machine.reopens
        if not any(before == sight.before and after == sight.after for before, _, after in rows):
            yield f"{sight.table} {sight.subject}: {sight.before} → {sight.after} is no move of its machine"
        if sight.table == "jobs" and (sight.before, sight.after) == ("failed", JOB.initial):
            self._redriven[sight.subject] += 1
            if not self._database.one(_OPEN_FIELDS, sight.subject):
                yield f"job {sight.subject} is redriven, and none of its fields is open"
        if sight.table == "attempts":
            yield from _outcome(sight, owner)
        if sight.table in _PARTS_OF_A_JOB and sight.before == "open" and sight.owner not in (None, owner):
            yield (
                f"{sight.table} {sight.subject}: {sight.after} by {owner} under a stale fence; "
                f"{sight.owner} has the job"
            )
        for leased, states in _HOLDERS.get(sight.table, ()):
            key = (leased, sight.subject if leased == sight.table else sight.under)
            if sight.before not in states or key in raised:
                continue
            holder = self._claimants.get((*key, self._fences.get(key, 0)))
            if holder != owner:
                yield (
                    f"{sight.table} {sight.subject}: {sight.before} → {sight.after} by {owner} "
                    f"under a stale fence; {holder or 'nobody'} holds {leased} {key[1]}"
                )


def _outcome(sight: Sight, owner: str) -> Iterator[str]:
    """Only its own sender says how an attempt ended; others may only give it up."""
    if sight.after not in ("CONNECTION_UNKNOWN", "ABSENT") and sight.under != owner:
        yield f"attempt {sight.subject} of {sight.under} was settled as {sight.after} by {owner}"


def _shards(database: Database) -> Iterator[str]:
    counted: dict[str, dict[str, int]] = {}
    for key, state, number, retryable in database.all(_INTENTS):
        shard = counted.setdefault(key, {})
        shard[state] = number
        shard["retryable_failed"] = shard.get("retryable_failed", 0) + (retryable or 0)
    for key, intents, *stored in database.all(_SHARDS):
        true = counted.get(key, {})
        wanted = [true.get(state, 0) for state in (*INTENT_STATES, "retryable_failed")]
        if (stored != wanted or intents != sum(wanted[:-1])) and not _is_going(database, key):
            yield f"shard {key} counts {stored}, a recount says {wanted}"


def _is_going(database: Database, key: str) -> bool:
    """Whether a manifest, or that of a shard, is being removed part by part."""
    return bool(database.one(_IS_GOING, key.partition("/")[0]))


def _field_sums(database: Database) -> Iterator[str]:
    for key, *pairs in database.all(_FIELD_SUMS):
        if pairs[0::2] != pairs[1::2] and not _is_going(database, key):
            yield f"shard {key} sums its fields up to {pairs[0::2]}, a recount says {pairs[1::2]}"


def _budgets(database: Database) -> Iterator[str]:
    wanted: dict[tuple[str, str, str], list[int]] = {}
    for workspace, month, account, client_job, *amounts in database.all(_RESERVED):
        for key in (
            (workspace, "month", month),
            (workspace, "provider", f"{month} {account}"),
            (workspace, "client_job", client_job),
        ):
            held = wanted.setdefault(key, [0, 0, 0, 0])
            wanted[key] = [a + b for a, b in zip(held, amounts, strict=True)]
    for workspace, scope, key, *stored in database.all(_BUDGETS):
        true = wanted.pop((workspace, scope, key), [0, 0, 0, 0])
        if stored != true:
            yield f"budget {scope} {key} holds {stored}, a recount says {true}"
    for key, amounts in wanted.items():
        yield f"budget {key} is missing, a recount says {amounts}"


def _jobs(database: Database) -> Iterator[str]:
    counted = {job: tuple(counts) for job, *counts in database.all(_FIELDS)}
    for job, *stored in database.all(_JOBS):
        if tuple(stored) != counted.get(job):
            yield f"job {job} counts {stored}, a recount says {counted.get(job)}"


def _ended(database: Database) -> Iterator[str]:
    """A manifest has ended exactly when all of its intents have."""
    terminal = ", ".join(map(repr, sorted(INTENT.terminal)))
    for manifest, phase, total, ended in database.all(
        f"SELECT m.id, m.phase, CASE WHEN m.total_known THEN m.total END, (SELECT count(*) FROM intents i"
        f" WHERE i.manifest_id = m.id AND i.state IN ({terminal})) FROM manifests m"
    ):
        if (phase == "ended") != (total == ended) and not _is_going(database, manifest):
            yield f"manifest {manifest} is {phase} with {ended} of {total} intents ended"


def _publications(database: Database) -> Iterator[str]:
    """An execution that does not run counts its steps, and each intent has one newest."""
    for execution, *pairs in database.all(_EXECUTIONS):
        if pairs[0::2] != pairs[1::2]:
            yield f"execution {execution} counts its steps as {pairs[0::2]}, a recount says {pairs[1::2]}"
    stored, true = ({slot: sums for slot, *sums in database.all(asked)} for asked in (_SLOTS, _OF_SLOTS))
    for slot in sorted(stored.keys() | true.keys()):
        if stored.get(slot, _NOTHING) != true.get(slot, _NOTHING) and not _is_going(database, slot):
            yield f"slot {slot} of executions holds {stored.get(slot)}, a recount says {true.get(slot)}"
    for intent, number in database.all(_NOT_ONE_NEWEST):
        if not database.one("SELECT count(*) FROM intents WHERE id = ?", intent):
            continue  # it goes, and its executions with it
        yield f"intent {intent} has {number} newest steps"


def _used(database: Database) -> Iterator[str]:
    stored, booked = (
        {(workspace, client_job): sums for workspace, client_job, *sums in database.all(asked)}
        for asked in (_USED, _BOOKED)
    )
    for key in sorted(stored.keys() | booked.keys()):
        if stored.get(key) != booked.get(key):
            yield f"client job {key} has used {stored.get(key)}, its bookings say {booked.get(key)}"


_CHECKS: tuple[Callable[[Database], Iterator[str]], ...] = (
    _shards,
    _field_sums,
    _budgets,
    _used,
    _jobs,
    _publications,
    _ended,
)
