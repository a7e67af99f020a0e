"""Protection: what must survive comes back, and what does not come back is named."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.content.protection import MarkersBroken, protect, restore
from dragoman.model.documents import Syntax
from tests.content.corpus import strings

SYNTAXES: tuple[Syntax, ...] = (
    "printf", "python", "icu", "i18next", "ruby", "fluent", "html", "markdown", "none",
)  # fmt: skip
SHARDS = """
    ⟦ ⟧ ⟦1⟧ ⟦/1⟧ %s %d %1$d %% %(a)s %{b} %<c>d 100% { } {{ }} {0} {} {a!r} {n,number} '{ '' ' {$x} ${x} $t(
    ( ) <b> </b> <i> <br/> <0> </0> <code> </code> <!-- --> <a_href='%s'> </a> &quot; &#39; &amp; &lt; &gt;
    </i> &nbsp; &lt;script&gt; & \" ` `` * ** _ ~~ [ ] ![ ](u) ][] ][r] {{<_a_>}} {{<_/a_>}} :x: [^1] \\ a
    é 中 Z9 https://a.b/c a@b.co {n,_plural,_one_{x}_other_{#}}
"""
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([shard.replace("_", " ") for shard in SHARDS.split()]),
        st.sampled_from([" ", "  ", "\n", "  \n", "\u00a0"]),
        st.text(max_size=3),
    )
).map("".join)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, st.sampled_from(SYNTAXES))
def test_what_was_taken_out_comes_back_byte_for_byte(text: str, syntax: Syntax) -> None:
    protected = protect(text, syntax)
    assert restore(protected, protected.text) == text
    assert protected.text == protected.text.strip()


def test_every_text_of_the_corpus_comes_back() -> None:
    protected = [(text, protect(text, syntax)) for text, syntax in strings()]
    assert all(restore(one, one.text) == text for text, one in protected)
    assert sum(bool(one.taken) for _, one in protected) > 1000


@pytest.mark.parametrize(
    ("syntax", "text", "shown", "markers"),
    [
        ("printf", "100% done", "100% done", {}),
        ("printf", "20%ige Lösung, 5 % de descuento", "20%ige Lösung, 5 % de descuento", {}),
        ("printf", "%1$s of %2$d (%%)", "⟦1⟧ of ⟦2⟧ (⟦3⟧)", {"1": "%1$s", "2": "%2$d", "3": "%%"}),
        ("printf", "%s and %s", "⟦1⟧ and ⟦2⟧", {"1": "%s", "2": "%s"}),
        ("printf", "{name} is text", "{name} is text", {}),
        ("printf", "%n file(s) in %1", "⟦1⟧ file(s) in ⟦2⟧", {"1": "%n", "2": "%1"}),
        ("none", "Hi %s, 100%s", "Hi ⟦1⟧, 100%s", {"1": "%s"}),
        ("none", "$USER$ pays $5, $user_2$ 6$", "⟦1⟧ pays $5, ⟦2⟧ 6$", {"1": "$USER$", "2": "$user_2$"}),
        ("python", "%(n)d of {total:,} {}", "⟦1⟧ of ⟦2⟧ ⟦3⟧", {"1": "%(n)d", "2": "{total:,}", "3": "{}"}),
        ("icu", "{a} of {b, number}, {a}", "⟦1⟧ of ⟦2⟧, ⟦1⟧", {"1": "{a}", "2": "{b, number}"}),
        ("icu", "It''s '{x}' <b>now</b>", "It''s ⟦1⟧ ⟦2⟧now⟦/2⟧", {"1": "'{x}'", "2": "<b>"}),
        ("icu", "# of {n}", "⟦1⟧ of ⟦2⟧", {"1": "#", "2": "{n}"}),
        ("i18next", "{{n}} $t(key) <0>go</0>", "⟦1⟧ ⟦2⟧ ⟦3⟧go⟦/3⟧",
         {"1": "{{n}}", "2": "$t(key)", "3": "<0>"}),
        ("ruby", "%{count} of %<n>.2f", "⟦1⟧ of ⟦2⟧", {"1": "%{count}", "2": "%<n>.2f"}),
        ("fluent", 'Say "{ $word }" or { "}" }', 'Say "⟦1⟧" or ⟦2⟧', {"1": "{ $word }", "2": '{ "}" }'}),
        ("fluent", "Hi { $name }, { -brand }", "Hi ⟦1⟧, ⟦2⟧", {"1": "{ $name }", "2": "{ -brand }"}),
        ("html", "a<br>b <em>c</em>", "a⟦1⟧b ⟦2⟧c⟦/2⟧", {"1": "<br>", "2": "<em>"}),
        ("html", "<code>x y</code> <p>z", "⟦1⟧ ⟦2⟧z", {"1": "<code>x y</code>", "2": "<p>"}),
        (
            "html",
            '<g id="1">a<ph id="2">{b}</ph></g><x id="3"/><bpt id="4">&lt;i></bpt>c<ept id="4">&lt;/i></ept>',
            "⟦1⟧a⟦2⟧⟦/1⟧⟦3⟧⟦4⟧c⟦5⟧",
            {
                "1": '<g id="1">',
                "2": '<ph id="2">{b}</ph>',
                "3": '<x id="3"/>',
                "4": '<bpt id="4">&lt;i></bpt>',
                "5": '<ept id="4">&lt;/i></ept>',
            },
        ),
        ("html", '<mrk mtype="protected">Ab</mrk> <x>c</x>', "⟦1⟧ ⟦2⟧c⟦/2⟧",
         {"1": '<mrk mtype="protected">Ab</mrk>', "2": "<x>"}),
        (
            "html",
            'Our <![CDATA[<a href="%1$s">Terms</a>]]> and <![CDATA[<b>a</b> c]]>,'
            " <![CDATA[<i>]]>d<![CDATA[</i>]]>]]>",
            "Our ⟦1⟧Terms⟦/1⟧ and ⟦2⟧⟦3⟧a⟦/3⟧ c⟦/2⟧, ⟦4⟧d⟦/4⟧]]>",
            {"1": '<![CDATA[<a href="%1$s">', "2": "<![CDATA[…]]>", "3": "<b>", "4": "<![CDATA[<i>]]>"},
        ),
        ("html", '<xliff:g id="n" example="3">%1$s</xliff:g> files', "⟦1⟧ files",
         {"1": '<xliff:g id="n" example="3">%1$s</xliff:g>'}),
        ("python", "{0,-10:N2} of {1:C}, {2, 5}", "⟦1⟧ of ⟦2⟧, ⟦3⟧",
         {"1": "{0,-10:N2}", "2": "{1:C}", "3": "{2, 5}"}),
        ("html", '<a href="{url}">{home_url}</a> of {{n}}, {0} { x } {', "⟦1⟧⟦2⟧⟦/1⟧ of ⟦3⟧, ⟦4⟧ { x } {",
         {"1": '<a href="{url}">', "2": "{home_url}", "3": "{{n}}", "4": "{0}"}),
        ("html", "10&nbsp;km", "10⟦1⟧km", {"1": "&nbsp;"}),
        ("none", "a < b > c, <file>", "a < b > c, <file>", {}),
        ("none", "See https://a.example/x?y=%20d. Or a@b.example!", "See ⟦1⟧. Or ⟦2⟧!",
         {"1": "https://a.example/x?y=%20d", "2": "a@b.example"}),
        ("none", "请访问https://a.example/x。谢谢", "请访问⟦1⟧。谢谢", {"1": "https://a.example/x"}),
        ("markdown", "**B** _i_ snake_case 2 * 3 * 4", "⟦1⟧B⟦/1⟧ ⟦2⟧i⟦/2⟧ snake_case 2 * 3 * 4",
         {"1": "**", "2": "_"}),
        ("markdown", "Run `a *b*` [now](x.md 'T')", "Run ⟦1⟧ ⟦2⟧now⟦/2⟧",
         {"1": "`a *b*`", "2": "[…](x.md 'T')"}),
        ("markdown", "[![Alt](i.png)](u)", "⟦1⟧⟦2⟧Alt⟦/2⟧⟦/1⟧", {"1": "[…](u)", "2": "![…](i.png)"}),
        ("markdown", "<https://a.example> {{< x >}} {y}[^1]", "⟦1⟧ ⟦2⟧ ⟦3⟧⟦4⟧",
         {"1": "<https://a.example>", "2": "{{< x >}}", "3": "{y}", "4": "[^1]"}),
        ("markdown", "[{% data v.x %} Spec](https://a.example/{{ v }})", "⟦1⟧⟦2⟧ Spec⟦/1⟧",
         {"1": "[…](https://a.example/{{ v }})", "2": "{% data v.x %}"}),
        ("markdown", "1 [see \\[a\\] b] c", "1 [see \\[a\\] b] c", {}),
        ("none", "a ⟦1⟧ b", "a ⟦⟦1⟧ b", {}),
    ],
)  # fmt: skip
def test_each_syntax_hides_its_own_code(
    syntax: Syntax, text: str, shown: str, markers: dict[str, str]
) -> None:
    protected = protect(text, syntax)
    assert protected.text == shown
    assert dict(protected.markers) == markers


def test_whitespace_at_the_ends_stays_outside() -> None:
    protected = protect("\n  Hello  world \n", "printf")
    assert (protected.lead, protected.text, protected.tail) == ("\n  ", "Hello  world", " \n")
    assert restore(protected, " Bonjour  monde\n") == "\n  Bonjour  monde \n"
    blank = protect(" \n", "none")
    assert (blank.text, restore(blank, "")) == ("", " \n")


def test_t1_placeholder_integrity_names_the_missing_token() -> None:
    protected = protect("{{strong}}%s strings in {{languages/}}", "i18next")
    assert protected.text == "⟦1⟧⟦2⟧ strings in ⟦3⟧"
    right = restore(protected, "⟦1⟧⟦2⟧ řetězců v ⟦3⟧")
    assert right == "{{strong}}%s řetězců v {{languages/}}"
    with pytest.raises(MarkersBroken, match=re.escape("{{languages/}}")) as broken:
        restore(protected, "⟦1⟧⟦2⟧ řetězců v {{jazyky/}}")
    assert broken.value.code == "checks_failed"
    assert broken.value.missing == ("{{languages/}}",)
    assert "⟦3⟧ ({{languages/}})" in broken.value.reason


def test_t5_entities_stay_what_they_are() -> None:
    text = "<p>To disable it, write &lt;script&gt; in the template. It&#39;s &quot;safe&quot;.</p>"
    protected = protect(text, "html")
    assert protected.text == """⟦1⟧To disable it, write ⟦2⟧ in the template. It's "safe".⟦/1⟧"""
    answer = """⟦1⟧Pour l'éteindre, écrivez ⟦2⟧. C'est « sûr ».⟦/1⟧"""
    assert restore(protected, answer) == (
        "<p>Pour l&#39;éteindre, écrivez &lt;script&gt;. C&#39;est « sûr ».</p>"
    )


def test_an_entity_beside_its_own_character_keeps_its_marker() -> None:
    protected = protect("AT&T &amp; sons", "html")
    assert protected.text == "AT&T ⟦1⟧ sons"


def test_arguments_without_numbers_keep_their_order() -> None:
    unnumbered = protect("%s sent %d files", "printf")
    with pytest.raises(MarkersBroken, match="order"):
        restore(unnumbered, "⟦2⟧ Dateien von ⟦1⟧")
    numbered = protect("%1$s sent %2$d files", "printf")
    assert restore(numbered, "⟦2⟧ Dateien von ⟦1⟧") == "%2$d Dateien von %1$s"
    named = protect("{{a}} sent {{b}}", "i18next")
    assert restore(named, "⟦2⟧ von ⟦1⟧") == "{{b}} von {{a}}"
    fields = protect("{} sent {}", "python")
    with pytest.raises(MarkersBroken, match="order"):
        restore(fields, "⟦2⟧ von ⟦1⟧")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("⟦1⟧a ⟦2⟧b⟦/1⟧⟦/2⟧", "nested"),
        ("⟦/1⟧a⟦1⟧ ⟦2⟧b⟦/2⟧", "nested"),
        ("⟦1⟧a⟦/1⟧", "missing"),
        ("⟦1⟧a⟦/1⟧ ⟦2⟧b⟦/2⟧ ⟦3⟧", "too many"),
        ("⟦1⟧a⟦/1⟧ ⟦2⟧b⟦/2⟧ ⟦", "cut"),
        ("⟦1⟧a⟦/1⟧ ⟦2⟧b⟦/2⟧ ⟦x⟧", "cut"),
        ("", "missing"),
    ],
)
def test_a_broken_answer_is_refused_with_its_reason(answer: str, reason: str) -> None:
    protected = protect("<b>a</b> <i>b</i>", "html")
    with pytest.raises(MarkersBroken, match=reason):
        restore(protected, answer)
    assert restore(protected, "⟦2⟧b⟦/2⟧ ⟦ 1 ⟧a⟦/1⟧") == "<i>b</i> <b>a</b>"


def test_a_translated_reference_link_still_points_to_its_source() -> None:
    protected = protect("See [Docsy uses `Bootstrap`][].", "markdown")
    assert restore(protected, "Siehe ⟦1⟧Docsy nutzt ⟦2⟧⟦/1⟧.") == (
        "Siehe [Docsy nutzt `Bootstrap`][Docsy uses `Bootstrap`]."
    )
    wrapped = protect("the [Doc-rooted\nexample][]", "markdown")
    assert restore(wrapped, "das ⟦1⟧Beispiel⟦/1⟧") == "das [Beispiel][Doc-rooted example]"


def test_an_apostrophe_before_an_icu_argument_does_not_quote_it() -> None:
    protected = protect("The member {name}", "icu")
    assert restore(protected, "L'équipe d'⟦1⟧") == "L'équipe d''{name}"
    assert restore(protected, "zoals '⟦1⟧'.") == "zoals ''{name}''."
    assert restore(protected, "⟦1⟧'s team") == "{name}'s team"


def test_the_legend_stays_short() -> None:
    protected = protect(f"[a](https://a.example/{'x' * 500})", "markdown")
    assert len(protected.markers["1"]) == 120
    assert restore(protected, "⟦1⟧b⟦/1⟧").endswith("x" * 500 + ")")


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_hostile_text_costs_linear_time(syntax: Syntax) -> None:
    began = time.process_time()
    for shard in (
        "a",
        "<a ",
        "{a",
        "{",
        "[",
        "`",
        "<!--",
        "*a ",
        "%",
        "&lt;a",
        "<code>",
        "![",
        "a.",
        "$t(",
        "' ",
    ):
        text = shard * (20_000 // len(shard))
        assert restore(protect(text, syntax), protect(text, syntax).text) == text
    assert time.process_time() - began < 20
