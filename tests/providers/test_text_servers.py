"""DeepL, LibreTranslate and APY against servers that follow their documentation, faults included."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.locales import choose_code
from dragoman.kernel.errors import LocaleError
from dragoman.model.completions import CompletionRequest, PromptItem, ProviderAnswer, Reply
from dragoman.model.contracts import Provider
from dragoman.providers import deepl, libretranslate, markup, positions
from dragoman.providers.apertium_http import ApertiumHttpProvider
from dragoman.providers.deepl import DeepLProvider
from dragoman.providers.libretranslate import LibreTranslateProvider
from tests.doubles.proxy import Proxy
from tests.doubles.text_servers import (
    Act,
    ApertiumServer,
    DeepLServer,
    LibreTranslateServer,
    Seen,
    TextServerDouble,
)

KEY = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
QUESTION = CompletionRequest(
    "en",
    "es",
    (
        PromptItem("k2", "The ⟦1⟧house⟦/1⟧ has ⟦2⟧ doors & <walls>", note="of a plan"),
        PromptItem("a7", "Hello"),
        PromptItem("q9", "A literal ⟦⟦ bracket", note="of a plan"),
    ),
    tone="formal",
)
PLAIN = CompletionRequest("en", "es", (PromptItem("k2", "Hello"), PromptItem("a7", "Garden & house")))

Make = Callable[[str], Provider]


def make_deepl(url: str, **more: Any) -> DeepLProvider:
    return DeepLProvider("deepl", url, lambda: KEY, choose_code, **{"priced": True, **more})


def make_libre(url: str, key: str | None = KEY, **more: Any) -> LibreTranslateProvider:
    languages = libretranslate.read_languages(json.dumps(LibreTranslateServer.LANGUAGES).encode())
    return LibreTranslateProvider("libretranslate", url, lambda: key, choose_code, languages, **more)


def make_apertium(url: str) -> ApertiumHttpProvider:
    return ApertiumHttpProvider("apertium-http", url, choose_code, ApertiumServer.PAIRS)


KINDS: Mapping[str, tuple[type[TextServerDouble], Make]] = {
    "deepl": (DeepLServer, make_deepl),
    "libretranslate": (LibreTranslateServer, make_libre),
    "apertium_http": (ApertiumServer, make_apertium),
}
kinds = pytest.mark.parametrize("kind", sorted(KINDS))


class Called(NamedTuple):
    answer: ProviderAnswer
    reply: Reply
    calls: list[Seen]


def one_call(
    kind: str,
    acts: Sequence[Act] = (),
    request: CompletionRequest = QUESTION,
    make: Make | None = None,
    deadline_seconds: float = 20.0,
) -> Called:
    """One send to a scripted server."""
    double, usual = KINDS[kind]

    async def run() -> Called:
        async with double(acts) as server:
            provider = (make or usual)(server.url)
            answer = await provider.send(provider.render(request), "attempt-1", deadline_seconds)
            await provider.close()
            return Called(answer, provider.read(answer.body or b""), server.calls)

    return asyncio.run(run())


@kinds
def test_texts_come_back_under_their_ids_with_markers_and_signs(kind: str) -> None:
    """Engines that know neither ids nor markers answer the contract all the same."""
    called = one_call(kind)
    assert called.answer.outcome == "SUCCEEDED", called.answer
    texts = dict(called.reply.items)
    assert list(texts) == ["k2", "a7", "q9"]
    assert texts["k2"] == "Theé ⟦1⟧houseé⟦/1⟧ hasé ⟦2⟧ doorsé & <wallsé>"
    assert texts["q9"] == "Aé literalé ⟦⟦ bracketé"
    assert len(called.calls) == 1


@kinds
@pytest.mark.parametrize("act", ["fewer", "more"])
def test_a_wrong_number_of_texts_belongs_to_nobody(kind: str, act: str) -> None:
    reply = one_call(kind, [act]).reply
    if kind == "apertium_http":  # its texts are numbered: what is there is known
        assert reply.finish == ("length" if act == "fewer" else "complete")
        assert [name for name, _ in reply.items] == ["k2", "a7", "q9"][: 2 if act == "fewer" else 3]
    else:
        assert (reply.items, reply.finish) == ((), "unreadable")


@kinds
@pytest.mark.parametrize(
    ("act", "outcome", "code"),
    [
        ("close", "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"),
        ("reset", "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"),
        ("garbage", "INVALID_RESPONSE_UNKNOWN", "PROVIDER_RESPONSE_INVALID"),
        ({"act": "status", "status": 500}, "CONNECTION_UNKNOWN", "PROVIDER_CONNECTION_UNKNOWN"),
        ({"act": "status", "status": 504}, "TIMEOUT_UNKNOWN", "PROVIDER_TIMEOUT_UNKNOWN"),
        ("slow_down", "REJECTED", "PROVIDER_RATE_LIMITED"),
    ],
)
def test_each_fault_says_what_is_known_and_is_sent_once(kind: str, act: Act, outcome: str, code: str) -> None:
    """What may have been paid for is never called failed, and nothing is sent twice."""
    called = one_call(kind, [act])
    assert (called.answer.outcome, called.answer.code) == (outcome, code)
    assert len(called.calls) == 1


@kinds
def test_silence_is_unknown_at_the_deadline(kind: str) -> None:
    assert one_call(kind, ["silent"], deadline_seconds=0.3).answer.outcome == "TIMEOUT_UNKNOWN"


@kinds
def test_a_status_of_somebody_on_the_way_is_not_the_engines(kind: str) -> None:
    """A proxy's 403 or 429 without the protocol's error body is unknown, never a rejection."""
    called = one_call(kind, [{"act": "status", "status": 429, "body": "<html>gateway</html>"}])
    assert called.answer.outcome == "CONNECTION_UNKNOWN"


@kinds
def test_a_named_time_is_heard(kind: str) -> None:
    called = one_call(kind, [{"act": "slow_down", "headers": {"Retry-After": "7"}}])
    assert called.answer.retry_after_seconds == 7


@kinds
def test_what_came_of_a_broken_answer_is_kept_and_read(kind: str) -> None:
    called = one_call(kind, [{"act": "cut", "share": 0.75}])
    assert called.answer.outcome == "INVALID_RESPONSE_UNKNOWN"
    assert called.reply.finish == "unreadable"
    assert called.reply.items == one_call(kind).reply.items[: len(called.reply.items)] != ()


@kinds
def test_a_losing_network_is_told_apart(kind: str) -> None:
    """Lost before the server: it saw nothing. Lost on the way back: it worked. Both are unknown here."""
    double, make = KINDS[kind]

    async def run() -> list[tuple[str, int]]:
        seen = []
        async with double() as server:
            for deed in ("cut_before", "cut_answer"):
                with contextlib.closing(Proxy("127.0.0.1", int(server.url.rpartition(":")[2]))) as proxy:
                    proxy.on(b"/translate", deed)
                    provider = make(f"http://127.0.0.1:{proxy.port}")
                    answer = await provider.send(provider.render(QUESTION), "attempt-1", 10)
                    await provider.close()
                seen.append((answer.outcome, len(server.calls)))
        return seen

    assert asyncio.run(run()) == [("CONNECTION_UNKNOWN", 0), ("CONNECTION_UNKNOWN", 1)]


@kinds
def test_nobody_there_is_not_started(kind: str) -> None:
    provider = KINDS[kind][1]("http://127.0.0.1:9")

    async def run() -> ProviderAnswer:
        answer = await provider.send(provider.render(QUESTION), "attempt-1", 10)
        await provider.close()
        return answer

    assert asyncio.run(run()).outcome == "NOT_STARTED"


def test_deepl_is_asked_as_its_documentation_says() -> None:
    """Key in the header, one array, markers as well-formed XML, notes once as context, tone as formality."""
    glossaries = {"es": "def3a26b-3e84-45b3-84ae-0c0aaf3525f7"}
    called = one_call("deepl", make=lambda url: make_deepl(url, glossaries=glossaries))
    [seen] = called.calls
    assert seen.headers["authorization"] == f"DeepL-Auth-Key {KEY}"
    assert seen.said["text"][0] == "The <w1>house</w1> has <x2/> doors &amp; &lt;walls&gt;"
    assert (seen.said["source_lang"], seen.said["target_lang"]) == ("EN", "ES")
    assert (seen.said["context"], seen.said["formality"]) == ("of a plan", "prefer_more")
    assert seen.said["glossary_id"] == glossaries["es"]
    assert KEY.encode() not in seen.body


def test_deepl_is_told_of_tags_only_where_there_are_some() -> None:
    """Signs of markup are escaped, and read back, in marked requests only; a literal `&amp;` stays."""
    entities = CompletionRequest("en", "es", (PromptItem("k2", "&amp; stays <b>"),))
    plain = one_call("deepl", request=entities)
    assert plain.calls[0].said["text"] == ["&amp; stays <b>"]
    assert "tag_handling" not in plain.calls[0].said
    assert dict(plain.reply.items) == {"k2": "&amp; staysé <b>"}
    marked = CompletionRequest("en", "es", (*entities.items, PromptItem("a7", "⟦1⟧")))
    tagged = one_call("deepl", request=marked)
    assert tagged.calls[0].said["tag_handling"] == "xml"
    assert dict(tagged.reply.items)["k2"].replace("é", "") == "&amp; stays <b>"


def test_deepl_counts_money_by_billed_characters() -> None:
    """USD 25 a million characters are 25 micro-USD a character; the reserve covers every sign sent."""
    called = one_call("deepl", request=PLAIN)
    characters = len("Hello") + len("Garden & house")
    assert called.reply.usage.prompt_tokens == called.reply.usage.total_tokens == characters
    assert called.reply.usage.microusd == 25 * characters
    assert called.reply.usage.prices == "deepl list 25 USD/1M characters"
    cheap = make_deepl("http://127.0.0.1:9", usd_per_million_characters=Decimal("0.5"))
    assert cheap.reserve(cheap.render(PLAIN)) == (characters, -(-characters // 2))


@pytest.mark.parametrize(
    ("act", "code", "spend_limit"),
    [
        ("quota", "PROVIDER_SPEND_LIMIT", True),
        ("busy", "PROVIDER_RATE_LIMITED", False),
        ("wrong_key", "PROVIDER_REJECTED", False),
        ("bad_tags", "PROVIDER_REJECTED", False),
    ],
)
def test_deepls_own_refusals(act: str, code: str, spend_limit: bool) -> None:
    """456: no characters left, the run is parked; 529: slow down; the rest is refused."""
    answer = one_call("deepl", [act]).answer
    assert (answer.outcome, answer.code, answer.spend_limit) == ("REJECTED", code, spend_limit)


def test_deepls_parser_says_what_is_wrong_under_another_name() -> None:
    answer = one_call("deepl", ["bad_tags"]).answer
    assert answer.message == "HTTP 400: Tag handling parsing failed, please check input."


def test_the_hosted_deepl_is_priced_and_its_free_plan_is_not() -> None:
    assert make_deepl(deepl.PRO_URL, priced=None).priced
    assert not make_deepl(deepl.FREE_URL, priced=None).priced


@pytest.mark.parametrize(
    ("headers", "outcome"), [({}, "CONNECTION_UNKNOWN"), ({"X-Trace-ID": "5a1e"}, "REJECTED")]
)
def test_the_hosted_deepl_is_known_by_its_trace_id(headers: dict[str, str], outcome: str) -> None:
    """At a public address a status counts as DeepL's only with X-Trace-ID, which is kept as the reference."""

    class Bare(DeepLServer):
        answers_with = headers

    async def run() -> ProviderAnswer:
        async with Bare(["quota"]) as server:
            provider = make_deepl(server.url, known_headers=deepl.KNOWN_HEADERS)
            answer = await provider.send(provider.render(PLAIN), "attempt-1", 10)
            await provider.close()
            return answer

    answer = asyncio.run(run())
    assert (answer.outcome, answer.provider_ref) == (outcome, headers.get("X-Trace-ID", ""))


def test_a_key_that_is_missing_sends_nothing() -> None:
    keyless = DeepLProvider("deepl", "http://127.0.0.1:9", lambda: None, choose_code, priced=True)
    answer = asyncio.run(keyless.send(keyless.render(PLAIN), "attempt-1", 5))
    assert (answer.outcome, answer.code) == ("NOT_STARTED", "provider_credentials_missing")


def test_an_echoed_key_is_kept_nowhere() -> None:
    echo = {"act": "status", "status": 400, "body": json.dumps({"message": f"bad key {KEY}"})}
    answer = one_call("deepl", [echo]).answer
    assert KEY not in answer.message
    assert KEY.encode() not in (answer.body or b"")


@pytest.mark.parametrize(
    ("locale", "code"),
    [
        ("en", "EN-US"), ("en-GB", "EN-GB"), ("en-US", "EN-US"), ("en-AU", None),
        ("pt", "PT-BR"), ("pt-BR", "PT-BR"), ("pt-PT", "PT-PT"),
        ("zh", "ZH-HANS"), ("zh-CN", "ZH-HANS"), ("zh-Hant", "ZH-HANT"), ("zh-TW", "ZH-HANT"),
        ("es-MX", "ES-419"), ("es", "ES"), ("no", "NB"), ("sr", None), ("sr-Latn", None), ("xx", None),
    ],
)  # fmt: skip
def test_deepls_targets_are_variants_that_were_named(locale: str, code: str | None) -> None:
    """T9: the code of the variant that was asked for, or a clear refusal before any spend."""
    provider = make_deepl("http://127.0.0.1:9")
    if code is None:
        with pytest.raises(LocaleError) as refused:
            provider.target_code(locale)
        assert refused.value.code == "unsupported_locale"
    else:
        assert provider.target_code(locale) == code


@pytest.mark.parametrize(
    ("locale", "code"),
    [("en-GB", "EN"), ("pt-PT", "PT"), ("zh-Hant", "ZH"), ("zh-CN", "ZH"), ("de-AT", "DE")],
)
def test_deepls_sources_know_no_variants(locale: str, code: str) -> None:
    body = make_deepl("http://127.0.0.1:9").render(CompletionRequest(locale, "fr", PLAIN.items))
    assert json.loads(positions.opened(body)[1])["source_lang"] == code


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("zh-Hant", "zh-TW"),
        ("pt-BR", "pt-BR"),
        ("pt-PT", "pt-PT"),
        ("sr-Latn", None),
        ("sr", "sr"),
        ("zh", "zh"),
    ],
)
def test_case_t9_of_a_list_with_neighbours(target: str, code: str | None) -> None:
    """T9: a provider that lists zh, zh-TW, pt-PT, pt-BR and sr is never asked for a neighbour."""
    offered = libretranslate.declared_languages(("en", "zh", "zh-TW", "pt-PT", "pt-BR", "sr"))
    for provider in (
        LibreTranslateProvider("lt", "http://127.0.0.1:9", lambda: None, choose_code, offered),
        DeepLProvider("d", "http://127.0.0.1:9", lambda: KEY, choose_code, locales=tuple(offered)),
    ):
        if code is None:
            with pytest.raises(LocaleError):
                provider.target_code(target)
        else:
            assert provider.target_code(target) == code


def test_libretranslates_key_is_in_the_sent_body_only() -> None:
    """What is stored of a request holds no key."""
    called = one_call("libretranslate")
    assert called.calls[0].said["api_key"] == KEY
    assert KEY.encode() not in make_libre("http://127.0.0.1:9").render(QUESTION)
    keyless = one_call("libretranslate", make=lambda url: make_libre(url, None))
    assert "api_key" not in keyless.calls[0].said


def test_libretranslate_is_asked_for_html_only_where_markers_are() -> None:
    assert one_call("libretranslate").calls[0].said["format"] == "html"
    plain = one_call("libretranslate", request=PLAIN)
    assert plain.calls[0].said == {"q": ["Hello", "Garden & house"], "source": "en", "target": "es",
                                   "format": "text", "api_key": KEY}  # fmt: skip
    assert dict(plain.reply.items)["a7"] == "Gardené & houseé"


def test_what_libretranslate_would_unescape_travels_in_tags() -> None:
    """It unescapes whatever it gives, also of `text`: a literal `&amp;` would come back as `&`."""
    literal = CompletionRequest(
        "en", "es", (PromptItem("k2", "Write &amp; for &"), PromptItem("a7", "Hello"))
    )
    called = one_call("libretranslate", request=literal)
    assert called.calls[0].said["format"] == "html"
    assert dict(called.reply.items)["k2"].replace("é", "") == "Write &amp; for &"


@pytest.mark.parametrize(
    "bounds, status",
    [({"texts_max": 2}, 413), ({"characters_max": 20}, 413), ({"needs_key": True}, 401), ({}, 200)],
)
def test_libretranslates_400_says_in_words_what_others_have_a_status_for(
    bounds: dict[str, int], status: int
) -> None:
    """The operator's bounds are met by halves; without a key nobody is served, whatever is asked."""

    class Bounded(LibreTranslateServer):
        texts_max = bounds.get("texts_max")
        characters_max = bounds.get("characters_max")
        needs_key = bool(bounds.get("needs_key"))

    async def run() -> ProviderAnswer:
        async with Bounded() as server:
            provider = make_libre(server.url, None)
            answer = await provider.send(provider.render(QUESTION), "attempt-1", 10)
            await provider.close()
            return answer

    assert asyncio.run(run()).status == status


def test_a_pair_that_a_server_lacks_is_refused_before_any_send() -> None:
    for provider in (make_libre("http://127.0.0.1:9"), make_apertium("http://127.0.0.1:9")):
        with pytest.raises(LocaleError):
            provider.render(CompletionRequest("es", "de", PLAIN.items))


def test_older_libretranslate_servers_name_no_targets() -> None:
    said = json.dumps([{"code": "en", "name": "English"}, {"code": "fr", "name": "French"}]).encode()
    assert libretranslate.read_languages(said) == {"en": {"fr"}, "fr": {"en"}}
    with pytest.raises(ValueError, match="languages"):
        libretranslate.read_languages(b"{}")


def test_a_priced_libretranslate_bills_by_the_character() -> None:
    """Unpriced by default; hosted ones have a price where the settings name one."""
    provider = make_libre("http://127.0.0.1:9", priced=True, usd_per_million_characters=Decimal(10))
    assert provider.reserve(provider.render(PLAIN)) == (19, 190)
    assert make_libre("http://127.0.0.1:9").reserve(provider.render(PLAIN)) == (19, 0)


_PIECES = st.sampled_from(
    ["⟦1⟧", "⟦/1⟧", "⟦2⟧", "⟦/2⟧", "⟦⟦", "a", "&", "<b>", "&amp;", "\0", "\n", "⟧", "<x1/>", "\r", " "]
)


@given(text=st.lists(_PIECES).map("".join), xml=st.booleans())
def test_markers_survive_as_tags(text: str, xml: bool) -> None:
    assert markup.from_tags(markup.to_tags(text, xml=xml), xml=xml) == text
