"""No marker is lost, doubled, renamed or misplaced unseen: in any syntax, in any format's texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.content.documents import choose_format, open_document
from dragoman.content.protection import MarkersBroken, Protected, protect, restore
from dragoman.model.documents import Syntax
from dragoman.wiring.catalogue import formats
from tests.content.real_files import SHARED
from tests.content.test_protection import SYNTAXES, TEXTS

CODE: Mapping[Syntax, Sequence[str]] = {
    "printf": ("%s", "%1$s", "%d", "%%", "<b>…</b>", "<a href='%s'>…</a>"),
    "python": ("%(name)s", "{}", "{a!r}", "%s", "<b>…</b>"),
    "icu": ("{n}", "{n, number}", "'{x}'", "#", "<b>…</b>", "<link>…</link>"),
    "i18next": ("{{n}}", "$t(key)", "<0>…</0>", "<1>…</1>", "<b>…</b>"),
    "ruby": ("%{count}", "%<n>.2f", "%s", "<b>…</b>"),
    "fluent": ("{ $n }", "{ -brand }", '{ "{" }', "<b>…</b>"),
    "html": ("<b>…</b>", "<a href='u'>…</a>", "<br>", "&lt;", "<code>x</code>", "{{n}}", "<i>…</i>"),
    "markdown": ("**…**", "[…](u)", "`x`", "![…](i.png)", "[…][]", "<b>…</b>", "{{< s >}}"),
    "none": ("https://a.example/x", "a@b.example", "$USER$", "%s", "<b>…</b>"),
}
"""Code of each syntax; where it goes around a text, `…` says where."""
SPOT = re.compile(r"⟦⟦|⟦(/?)(\d+)⟧")
_WORDS = st.sampled_from(["a", "two words", "⟦", "it's", "é", " "])


def _texts(syntax: Syntax) -> st.SearchStrategy[str]:
    """Code of the syntax within code and beside it."""
    code = st.sampled_from(CODE[syntax])

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        wrapped = st.builds(lambda one, within: one.replace("…", within), code, inner)
        return st.lists(st.one_of(wrapped, inner), min_size=1, max_size=4).map(" ".join)

    return st.recursive(_WORDS, more, max_leaves=12)


def mutations(protected: Protected) -> Iterator[tuple[str, str]]:
    """Every way, by name, in which a translator may spoil the markers of a text, one at a time."""
    shown, taken = protected.text, protected.taken
    spots = [found for found in SPOT.finditer(shown) if found[2]]
    for spot in spots:
        slash, number = spot[1], spot[2]
        yield "dropped", _put(shown, (spot, ""))
        yield "doubled", _put(shown, (spot, spot[0] * 2))
        yield "renamed", _put(shown, (spot, f"⟦{slash}{len(taken) + 1}⟧"))
        yield "turned", _put(shown, (spot, f"⟦{'' if slash else '/'}{number}⟧"))
        yield "spelled out", _put(shown, (spot, taken[number].end if slash else taken[number].start))
        if other := next((name for name in taken if name != number), ""):
            yield "named as another", _put(shown, (spot, f"⟦{slash}{other}⟧"))
        if not shown[spot.end() :].lstrip().startswith("⟧"):
            yield "cut", _put(shown, (spot, spot[0][:-1]))
    opens = {spot[2]: spot for spot in spots if taken[spot[2]].end and not spot[1]}
    closes = {spot[2]: spot for spot in spots if spot[1]}
    bound = [spot for spot in spots if taken[spot[2]].bound and not taken[spot[2]].end]
    exchanges = {
        "swapped": [(spot, closes[number]) for number, spot in opens.items()],
        "crossed": combinations(closes.values(), 2),
        "out of order": combinations(bound, 2),
    }
    for name, pairs in exchanges.items():
        for one, two in pairs:
            yield name, _put(shown, (one, two[0]), (two, one[0]))


def _put(text: str, *changes: tuple[re.Match[str], str]) -> str:
    """The text with something else at these places."""
    for spot, new in sorted(changes, key=lambda change: -change[0].start()):
        text = text[: spot.start()] + new + text[spot.end() :]
    return text


def unseen(text: str, syntax: Syntax, tried: Counter[str]) -> Iterator[str]:
    """Mutations of a text's markers that nobody notices."""
    protected = protect(text, syntax)
    assert restore(protected, protected.text) == text
    for name, spoiled in mutations(protected):
        tried[name] += 1
        try:
            got = restore(protected, spoiled)
        except MarkersBroken:
            continue
        yield f"{syntax}, {name}: {protected.text!r} came back as {spoiled!r} and gave {got!r}"


def test_every_syntax_is_looked_at() -> None:
    assert set(SYNTAXES) == CODE.keys() == set(get_args(Syntax))


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_no_mutation_of_a_marker_goes_unseen(syntax: Syntax) -> None:
    tried: Counter[str] = Counter()

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.one_of(_texts(syntax), _texts(syntax), TEXTS))
    def look(text: str) -> None:
        assert not list(unseen(text, syntax, tried))

    look()
    assert not list(unseen(" ".join(CODE[syntax]).replace("…", "x"), syntax, tried))
    wanted = {"dropped", "doubled", "renamed", "turned", "spelled out", "named as another", "cut", "swapped"}
    assert wanted <= tried.keys(), f"{syntax}: only {dict(tried)}"


def test_no_mutation_goes_unseen_in_any_text_of_the_corpus() -> None:
    """Of each format's files, under the syntax that the format declares."""
    if not (SHARED / "corpus").is_dir():
        pytest.skip(f"no corpus at {SHARED}")
    tried: Counter[str] = Counter()
    syntaxes: Counter[Syntax] = Counter()
    found: list[str] = []
    for text, syntax in {*_corpus()}:
        before = tried.total()
        found += unseen(text, syntax, tried)
        syntaxes[syntax] += tried.total() > before
    assert not found, "\n".join(found[:5])
    assert min(syntaxes[syntax] for syntax in SYNTAXES) >= 5, syntaxes
    assert {"crossed", "out of order"} < tried.keys()
    assert tried.total() > 20_000


def _corpus() -> Iterator[tuple[str, Syntax]]:
    for path in sorted((SHARED / "corpus").glob("*/*")):
        data = path.read_bytes()
        if path.suffix == ".js":
            continue
        form = choose_format(formats(), path.name, data)
        for block in open_document(form, path.name, data, "source", "en").blocks:
            for text in [block.text] if block.plural is None else block.plural.values():
                yield text, block.syntax
