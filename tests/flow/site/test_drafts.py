"""What is prepared of an intent, and how a request is drafted from it: in one place, from nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content.formats.xliff1 import Xliff1
from dragoman.flow.site.submission import body_head, draft_submissions
from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import SystemChance, sha256
from dragoman.model.intents import DueIntent
from dragoman.model.jobs import Capacity
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import event
from tests.flow.site.stage import stage
from tests.tidy.paths import SOURCE
from tests.tidy.source import modules

ARB = {
    "@@locale": "en",
    "title": "Settings",
    "greeting": "Hello {name}",
    "@greeting": {"description": "On the first page", "placeholders": {"name": {}}},
}
HEAD = body_head("manifest-1", {"source_locale": "en", "project": "docs", "tone": "plain"}, "local:callbacks")


class Numbered(SystemChance):
    """Ids handed down: what is drafted hangs on nothing else."""

    def __init__(self) -> None:
        self.given = 0

    def new_id(self) -> str:
        self.given += 1
        return f"00000000-0000-7000-8000-{self.given:012d}"


def due(number: int, **fields: Any) -> DueIntent:
    envelope = {"schema_version": 1, "fields": fields or {"hello": {"text": "Hello", "syntax": "plain"}}}
    return DueIntent(
        id=f"intent-{number}",
        workspace="default",
        project_id="project-1",
        manifest_id="manifest-1",
        shard=0,
        ordinal=number,
        document="a.json",
        locale="de",
        state="prepared",
        generation=3,
        generation_attempt_count=0,
        attempt_count=0,
        actor="mia",
        prepared=json.dumps(envelope),
        source_fingerprint="0" * 64,
    )


def test_a_draft_is_made_of_what_was_prepared_and_an_id_and_of_nothing_else() -> None:
    """[M-053, M-090, M-097] any fields, no database, no outside: the same twice over."""
    intents = [
        due(1),
        due(2, b={"text": "B"}, **{"meta.title/1": {"text": "T", "syntax": "plain", "max_length": 60}}),
    ]
    [draft] = draft_submissions(HEAD, intents, Numbered(), Capacity())
    assert [draft] == draft_submissions(HEAD, intents, Numbered(), Capacity())
    assert draft.body == canonical.encode(json.loads(draft.body)), "canonical bytes"
    assert draft.fingerprint == sha256(draft.body)
    assert b"mia" not in draft.body
    body = json.loads(draft.body)
    assert body == {
        **HEAD,
        "submissionId": "00000000-0000-7000-8000-000000000001",
        "items": [
            {
                "ref": f"dragoman:{intent.id}:g3",
                "targetLang": "de",
                "fields": json.loads(intent.prepared or "")["fields"],
            }
            for intent in intents
        ],
    }
    links = [(link.intent_id, link.generation, link.ref, link.fields_hash) for link in draft.links]
    assert links == [
        (
            f"intent-{n}",
            3,
            f"dragoman:intent-{n}:g3",
            sha256(canonical.encode(body["items"][n - 1]["fields"])),
        )
        for n in (1, 2)
    ]


def test_what_cannot_be_drafted_is_an_error_and_nothing_is_half_drafted() -> None:
    """[M-090]"""
    with pytest.raises(CallerError):
        draft_submissions(HEAD, [due(1), due(2, a={"text": "broken \ud800"})], Numbered(), Capacity())
    assert draft_submissions(HEAD, [], Numbered(), Capacity()) == []


def prepared_row(tx: Tx) -> Row:
    [row] = tx.all(sa.select(tables.intents))
    return row


def test_a_prepared_intent_holds_all_that_its_submission_is_made_of(database_url: str) -> None:
    """[M-092] fields with notes, sorted; fingerprints of source and selection; version, checksum."""

    async def play() -> None:
        data = json.dumps(ARB).encode()
        async with stage(database_url, {"app.arb": data}) as site:
            await site.admit([("app.arb", "de")])
            for step in (site.enumeration.step, site.preparing.step):
                await step()
            row = await site.database.read(prepared_row)
            envelope = json.loads(row.prepared)
            assert row.prepared.encode() == canonical.encode(envelope)
            assert envelope["schema_version"] == 1
            assert envelope["checksum"] == canonical.fingerprint({"fields": envelope["fields"]})
            assert list(envelope["fields"]) == ["greeting", "title"]
            assert envelope["fields"]["greeting"]["text"] == "Hello {name}"
            assert envelope["fields"]["greeting"]["note"] == "On the first page"
            assert set(envelope["fields"]["title"]) == {"text", "syntax"}
            assert (row.document, row.locale, row.generation) == ("app.arb", "de", 1)
            assert row.source_fingerprint == sha256(data)
            assert len(row.selection_fingerprint) == 64
            assert set(json.loads(row.key_map)) == set(envelope["fields"])
            assert row.fields_total == 2

    asyncio.run(play())


XLIFF = b"""<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="app" source-language="en" datatype="plaintext"><body>
<trans-unit id="t1" resname="menu.open" maxwidth="12" size-unit="char">
<source>Open</source><note>A verb</note></trans-unit>
</body></file></xliff>
"""


def test_what_a_file_says_of_a_text_travels_with_it(sqlite_url: str) -> None:
    """[M-092] its note, the place where it stands, and how long its translation may be."""

    async def play() -> None:
        async with stage(sqlite_url, {"app.xlf": XLIFF}) as site:
            site.preparing._formats = [Xliff1()]
            await site.admit([("app.xlf", "de")])
            await site.step_all()
            [item] = site.engine.submissions()[0]["items"]
            [field] = item["fields"].values()
            assert (field["text"], field["note"]) == ("Open", "A verb")
            assert (field["context"], field["max_length"]) == ("menu.open", 12)

    asyncio.run(play())


def test_keys_that_the_wire_does_not_take_travel_as_hashes_and_come_back_as_they_are(sqlite_url: str) -> None:
    """[M-227] too long, of other signs, or like a hash of ours; what fits travels as it is."""
    odd = ("with a space", "ключ", "k" * 65, "h:0123", "")
    texts = {key: f"Text {number}" for number, key in enumerate(("plain.key[0]", *odd))}

    async def play() -> None:
        async with stage(sqlite_url, {"a.json": json.dumps(texts).encode()}) as site:
            manifest = (await site.admit([("a.json", "de")])).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            [item] = body["items"]
            wire = {field["text"]: key for key, field in item["fields"].items()}
            assert len(wire) == len(texts)
            assert all(re.fullmatch(r"[A-Za-z0-9_.:/\[\]-]{1,64}", key) for key in wire.values())
            assert wire.pop("Text 0") == "plain.key[0]"
            assert not set(wire.values()) & set(odd)
            await site.deliver(event(body, "job-1"))
            [result] = (await site.views.results("default", manifest))["items"]
            told = {key: field["text"] for key, field in result["fields"].items()}
            assert sorted(told.values()) == [f"«de» {text}" for text in sorted(texts.values())]
            assert all(block in told for block in ("plain.key[0]", "with a space", "k" * 65))

    asyncio.run(play())


def test_preparing_and_sending_stand_in_one_place_each() -> None:
    """[M-088] every surface's manifests go through the same preparation, protection and client."""
    users: dict[str, set[str]] = {}
    for module in modules(SOURCE):
        for name, _ in [*module.uses(), *module.imports()]:
            users.setdefault(name, set()).add(module.full_name)
    assert users["dragoman.store.acts.preparing.record_preparations"] == {"dragoman.flow.site.preparation"}
    assert users["dragoman.store.acts.submitting.persist_submissions"] == {"dragoman.flow.site.submission"}
    assert users["dragoman.content.selection.select"] == {
        "dragoman.flow.site.estimate",
        "dragoman.flow.site.preparation",
    }
    client = "dragoman.families.submission.Submission"
    assert {name.rpartition(".")[0] for name in users[client]} == {"dragoman.wiring"}


def spoil_envelopes(tx: Tx) -> None:
    """What was prepared of one document is no longer what was written."""
    table = tables.intents
    spoilt = sa.func.replace(table.c.prepared, "Settings", "Sittings")
    tx.touched(sa.update(table).where(table.c.document == "app.arb").values(prepared=spoilt))


def test_an_envelope_that_is_not_what_was_prepared_is_never_sent(database_url: str) -> None:
    """[M-093] its intent fails alone, and a retry prepares it anew."""

    async def play() -> None:
        documents = {"app.arb": json.dumps(ARB).encode(), "b.arb": json.dumps(ARB).encode()}
        async with stage(database_url, documents) as site:
            manifest = (await site.admit([("app.arb", "de"), ("b.arb", "de")])).manifest_id
            for step in (site.enumeration.step, site.preparing.step):
                await step()
            await site.database.run(spoil_envelopes)
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 1, "failed": 1}
            [failure] = (await site.views.failures("default", manifest))["items"]
            assert (failure["document"], failure["code"]) == ("app.arb", "internal_error")
            assert not any(b"Sittings" in body for body in site.engine.bodies)
            assert await site.steering.retry("default", manifest, "mia") == 1
            await site.step_all()
            assert await site.counts(manifest) == {"queued": 2}

    asyncio.run(play())
