"""Memory first: what fills a field without a call, what has become stale, and what is only shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content import prompting, sameness, verdicts
from dragoman.content.locales import choose_code
from dragoman.model.memories import Manner, Place, Remembered, Shelf, Term
from dragoman.model.scopes import Workspace
from dragoman.providers.chat import ChatProvider
from dragoman.store.acts import remembering
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.doubles.chat_server import ChatServer, Script
from tests.flow.engine.world import HOME, Process, World, rehearsal, world

pytestmark = pytest.mark.anyio

SHELF = Shelf("docs", "en")
PLACE = Place("docs", "en", "fr")


def remembered(
    source: str, text: str, syntax: Any = "none", context: str = "", origin: Any = "imported", **more: Any
) -> Remembered:
    return Remembered(
        sameness.source_hash(source, syntax),
        sameness.context_hash(syntax, context, ""),
        source,
        text,
        syntax,
        origin,
        **more,
    )


async def take_in(here: World, *given: Remembered, place: Place = PLACE, scope: Workspace = HOME) -> None:
    await here.database.run(remembering.take_in, scope, place, given)


async def put_terms(here: World, *terms: Term) -> None:
    await here.database.run(remembering.put_terms, HOME, SHELF, terms)


async def translated(here: World, fields: Mapping[str, Any], **more: Any) -> Mapping[str, str]:
    """key → via, of a job with these fields."""
    accepted = await here.accept({"a": fields}, **more)
    await Process(here).drain()
    [item] = (await here.view(accepted.job_id))["items"]
    return {key: field.get("via", field.get("code")) for key, field in item["fields"].items()}


async def texts(here: World, fields: Mapping[str, Any]) -> dict[str, Any]:
    accepted = await here.accept({"a": fields})
    await Process(here).drain()
    return await here.texts(accepted.job_id)


async def test_the_same_text_in_its_context_comes_before_the_same_text_without(database_url: str) -> None:
    """[J-040, J-051..J-053]: an exact hit makes no call; AI's word for another context is no hit."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        await take_in(
            here,
            remembered("Open", "Ouvert"),
            remembered("Open", "Ouvrir", context="a button"),
            remembered("Close", "Fermer", context="a button", origin="ai", basis="0" * 64),
        )
        found = await texts(here, {"verb": {"text": "Open", "context": "a button"}, "plain": "Open"})
        assert found == {"verb": "Ouvrir", "plain": "Ouvert"}
        assert await texts(here, {"state": {"text": "Open", "context": "a label"}}) == {"state": "Ouvert"}
        assert provider.calls == []
        assert await texts(here, {"close": {"text": "Close", "context": "a label"}}) == {"close": "fr Close"}


async def test_texts_are_compared_composed_and_without_their_ends(database_url: str) -> None:
    """NFC and blanks at the ends make no other text, and the field keeps its own ends; case does."""
    provider = rehearsal()
    async with world(database_url, provider) as here:
        await take_in(here, remembered("Caf\u00e9 menu", "Carte du caf\u00e9"))
        found = await texts(here, {"k": "  Cafe\u0301 menu\n"})
        assert found == {"k": "  Carte du caf\u00e9\n"}
        assert provider.calls == []
        assert await texts(here, {"k": "caf\u00e9 menu"}) == {"k": "fr caf\u00e9 menu"}


async def test_plural_forms_are_remembered_as_one(database_url: str) -> None:
    """A plural is found by all of its forms together."""
    provider = rehearsal()
    forms = {"plural": {"one": "One file", "other": "{n} files"}, "syntax": "python"}
    async with world(database_url, provider) as here:
        first = await texts(here, {"k": forms})
        calls = len(provider.calls)
        assert await texts(here, {"again": forms}) == {"again": first["k"]}
        assert len(provider.calls) == calls
        other = {"plural": {"one": "A file", "other": "{n} files"}, "syntax": "python"}
        await texts(here, {"k": other})
        assert len(provider.calls) == calls + 1


async def test_a_memory_is_its_projects_alone(database_url: str) -> None:
    """J-051: another project, and another workspace, are never looked into."""
    async with world(database_url) as here:
        await take_in(here, remembered("Hello", "Bonjour"), place=Place("other", "en", "fr"))
        await take_in(here, remembered("Hello", "Salut"), scope=Workspace("elsewhere"))
        assert await translated(here, {"k": "Hello"}) == {"k": "ai"}


async def test_a_translation_that_fails_a_check_now_fills_nothing(database_url: str) -> None:
    """Whatever fills a field has passed its checks; here a placeholder is lost."""
    async with world(database_url) as here:
        await take_in(here, remembered("Save %s", "Enregistrer"))
        field = {"text": "Save %s", "syntax": "printf"}
        assert await translated(here, {"k": field}) == {"k": "ai"}


async def test_an_entry_says_where_it_came_from_and_no_draft_enters(database_url: str) -> None:
    """Provenance of each entry; what fails its checks three times is remembered by nobody."""
    provider = rehearsal(script=["broken", "broken"])
    async with world(database_url, provider) as here:
        accepted = await here.accept({"a": {"bad": {"text": "Save %s", "syntax": "printf"}}})
        await Process(here).drain()
        assert await here.rows("memory") == []
        accepted = await here.accept({"a": {"good": "Hello"}})
        await Process(here).drain()
        [row] = await here.rows("memory")
        assert (row.origin, row.job_id, row.model) == ("ai", accepted.job_id, provider.model)
        assert (row.prompt_version, row.validator_version) == (prompting.VERSION, verdicts.VERSION)
        assert row.created_at > 0


async def test_exactly_what_a_change_touches_is_asked_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note, a term in use, the style, the model, the prompt's or the validator's version: what each makes
    stale is asked again, and nothing else."""
    fields: dict[str, Any] = {"title": "The folder", "body": {"text": "Hello", "note": "to a friend"}}
    second = rehearsal(name="second")
    second.model = "another"
    async with world(database_url, rehearsal(), second) as here:
        everything = {"title": "ai", "body": "ai"}
        nothing = {"title": "memory", "body": "memory"}
        assert await translated(here, fields) == everything
        assert await translated(here, fields) == nothing
        fields["body"] = {"text": "Hello", "note": "to a stranger"}
        assert await translated(here, fields) == {"title": "memory", "body": "ai"}
        await put_terms(here, Term("folder", "folder", "fr"), Term("window", "fenêtre", "fr"))
        assert await translated(here, fields) == {"title": "ai", "body": "memory"}
        assert await translated(here, fields) == nothing
        for module in (prompting, verdicts):
            monkeypatch.setattr(module, "VERSION", module.VERSION + "+")
            assert await translated(here, fields) == everything
            assert await translated(here, fields) == nothing
        await here.database.run(remembering.set_manner, HOME, "docs", Manner(style="Be brief."))
        assert await translated(here, fields) == everything
        assert await translated(here, fields) == nothing
        options = {"provider_config": "second"}
        assert await translated(here, fields, options=options) == everything
        assert await translated(here, fields, options=options) == nothing
        assert len(await here.rows("memory")) == 3


async def test_what_people_and_files_say_is_never_stale_and_never_replaced(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AI overwrites only what AI has made; an import replaces all but a person's word."""
    async with world(database_url) as here:
        await take_in(here, remembered("Hello", "Bonjour", origin="person"), remembered("Bye", "Adieu"))
        monkeypatch.setattr(prompting, "VERSION", "next")
        assert await texts(here, {"a": "Hello", "b": "Bye"}) == {"a": "Bonjour", "b": "Adieu"}
        await take_in(here, remembered("Hello", "Salut"), remembered("Bye", "Au revoir"))
        assert await texts(here, {"a": "Hello", "b": "Bye"}) == {"a": "Bonjour", "b": "Au revoir"}


async def test_a_text_that_is_alike_fills_a_field_where_the_project_says_so(database_url: str) -> None:
    """[J-053, J-054, GJ-3]: by default nothing but the same text; below the threshold nothing; and never
    where numbers or code differ. What is filled so is in review."""
    source = "Move the selected files to the folder %s within 30 days."
    target = "Déplacez les fichiers choisis vers le dossier %s sous 30 jours."
    entry = remembered(source, target, syntax="printf")
    near = {"text": source.replace("selected", "chosen"), "syntax": "printf"}
    number = {"text": near["text"].replace("30", "31"), "syntax": "printf"}
    code = {"text": near["text"].replace("%s", "%d"), "syntax": "printf"}
    far = {"text": "Move every file that nobody has selected to %s within 30 days.", "syntax": "printf"}
    fields = {"near": near, "number": number, "code": code, "far": far}
    async with world(database_url) as here:
        await take_in(here, entry)
        assert set((await translated(here, fields)).values()) == {"ai"}
        await here.database.run(_forget)
        await take_in(here, entry)
        await here.database.run(remembering.set_manner, HOME, "docs", Manner(threshold=85))
        found = await translated(here, fields)
        assert found == {"near": "memory", "number": "ai", "code": "ai", "far": "ai"}
        [filled] = [row for row in await here.rows("job_fields") if row.via == "memory"]
        assert "fuzzy_match" in filled.review.split()
        assert filled.result == target


def _forget(tx: Tx) -> None:
    names = ("memory", "memory_fresh", "memory_shelves", "memory_segments", "memory_grams")
    for table in [getattr(tables, name) for name in names]:
        tx.touched(sa.delete(table))


def chat(server: ChatServer) -> ChatProvider:
    return ChatProvider("chat", "test-model", server.url, lambda: "sk-test", choose_code)


async def test_the_prompt_holds_terms_examples_and_neighbours(database_url: str) -> None:
    """Terms in use, at most three texts that are alike with code as markers, the neighbours that the call
    does not hold, and the style in its stable part."""
    async with ChatServer() as server, world(database_url, chat(server)) as here:
        await take_in(
            here,
            remembered("Save the file %s now", "Enregistrer le fichier %s", syntax="printf"),
            remembered("First of all", "Avant tout"),
        )
        await put_terms(
            here,
            Term("file", "fichier", "fr"),
            Term("window", "fenêtre", "fr"),
            Term("disk", "disque dur", "fr", "forbidden"),
            Term("Dragoman", "", "", "kept"),
        )
        await here.database.run(remembering.set_manner, HOME, "docs", Manner(style="Say vous."))
        await here.accept(
            {"a": {"one": "First of all", "two": {"text": "Save the file %s soon", "syntax": "printf"}}}
        )
        await Process(here).drain()
        call = server.calls[0]
        [item] = call.question["items"]
        assert item["glossary"] == [["file", "fichier"]]
        assert item["similar"] == [["Save the file ⟦1⟧ now", "Enregistrer le fichier ⟦1⟧"]]
        assert (item["before"], "after" in item) == ("First of all", False)
        system, _ = json.loads(call.body)["messages"]
        assert system["content"].endswith("House style: Say vous.")


async def test_a_provider_without_examples_is_shown_none(database_url: str) -> None:
    """`examples = false`: nothing alike is looked for or told; what fills a field is not concerned."""
    async with ChatServer() as server, world(database_url, chat(server)) as here:
        await take_in(here, remembered("Save the file now", "Enregistrer"), remembered("Yes", "Oui"))
        accepted = await here.accept({"a": {"one": "Save the file soon", "two": "Yes"}})
        here.without_examples = ["chat"]
        await Process(here).drain()
        [item] = server.calls[0].question["items"]
        assert "similar" not in item
        assert (await here.texts(accepted.job_id))["two"] == "Oui"


async def test_what_a_far_site_sends_along_goes_before_what_is_known_here(database_url: str) -> None:
    """Its style, and its terms where both have one for the same word; a check holds them as it holds ours."""
    then = {"act": "translate", "replace": {"file": "dossier", "window": "fenêtre"}}
    async with ChatServer(Script(then=then)) as server, world(database_url, chat(server)) as here:
        await put_terms(here, Term("file", "fichier", "fr"), Term("window", "fenêtre", "fr"))
        await here.database.run(remembering.set_manner, HOME, "docs", Manner(style="Say vous."))
        brought = {
            "style": "Say tu.",
            "glossary": [{"source": "File", "target": "dossier", "targetLang": "FR", "status": "preferred"}],
        }
        accepted = await here.accept({"a": {"k": "The file in a window"}}, **brought)
        await Process(here).drain()
        assert await here.texts(accepted.job_id) == {"k": "fr The dossier in a fenêtre"}
        [call] = server.calls
        [item] = call.question["items"]
        assert sorted(item["glossary"]) == [["File", "dossier"], ["window", "fenêtre"]]
        system, _ = json.loads(call.body)["messages"]
        assert system["content"].endswith("House style: Say tu.")
        await here.accept({"a": {"k": "A file and a window"}})
        await Process(here).drain()
        [item] = server.calls[1].question["items"]
        assert sorted(item["glossary"]) == [["file", "fichier"], ["window", "fenêtre"]], "it was that job's"


async def test_a_violated_term_is_a_failed_check_that_the_repair_names(database_url: str) -> None:
    """The complaint holds the term; what obeys the second time is stored."""
    then = {"act": "translate", "replace": {"folder": "dossier", "Dragoman": "Drogman"}}
    script = Script(acts=[{"act": "translate"}], then=then)
    async with ChatServer(script) as server, world(database_url, chat(server)) as here:
        await put_terms(here, Term("folder", "dossier", "fr"))
        assert await texts(here, {"k": "The folder"}) == {"k": "fr The dossier"}
        assert "dossier" in server.calls[1].question["items"][0]["complaint"]
        await put_terms(here, Term("Dragoman", "", "", "kept"))
        accepted = await here.accept({"a": {"k": "Dragoman translates"}})
        await Process(here).drain()
        failed = (await here.failures(accepted.job_id))["k"]
        assert (failed["code"], failed["check"]) == ("checks_failed", "kept_terms")
        assert failed["missing"] == ["Dragoman"]


async def test_a_forbidden_word_is_refused(database_url: str) -> None:
    then = {"act": "translate", "replace": {"disk": "disque dur"}}
    async with ChatServer(Script(then=then)) as server, world(database_url, chat(server)) as here:
        await put_terms(here, Term("disk", "disque dur", "fr", "forbidden"))
        accepted = await here.accept({"a": {"k": "The disk is full"}})
        await Process(here).drain()
        assert (await here.failures(accepted.job_id))["k"]["check"] == "avoided_terms"
        assert server.calls[0].question["items"][0]["avoid"] == [["disk", "disque dur"]]
