"""Memories and terms from tool to tool: TMX and TBX, read as streams and written."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.exchange.tbx import Concept, Status, Style, Term, read_tbx, write_tbx
from dragoman.content.exchange.tmx import TmxUnit, read_tmx, write_tmx
from dragoman.kernel.errors import DocumentError, LocaleError

UNITS = 20_000
PEAK_BYTES = 6_000_000
CHARACTERS = st.characters(exclude_categories=("Cs", "Cc", "Cn")) | st.sampled_from("\n\r\t<>&]'\"%{}")
TEXTS = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    ["<b>a</b> %s %1$s", "{n, plural, other {#}}", "a<br/>b &amp; c", "[a](https://b.example)", "<x>"]
)
WORDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=8)
INSTANTS = st.none() | st.integers(0, 4_000_000_000).map(lambda at: datetime.fromtimestamp(at, UTC))
SYNTAXES = st.sampled_from(["none", "printf", "icu", "html", "markdown"])


def tmx(body: str, header: str = '<header srclang="en"/>') -> io.BytesIO:
    return io.BytesIO(
        f'<?xml version="1.0"?>\n<tmx version="1.4">{header}<body>\n{body}</body></tmx>'.encode()
    )


def variant(locale: str, text: str) -> str:
    return f'<tuv xml:lang="{locale}"><seg>{text}</seg></tuv>'


def pairs(body: str, source: str = "en", target: str = "de") -> list[tuple[str, str]]:
    return [(unit.source, unit.target) for unit in read_tmx(tmx(body), source, target)]


@given(
    st.lists(
        st.builds(
            TmxUnit,
            source=TEXTS,
            target=TEXTS,
            source_locale=st.just("en"),
            target_locale=st.just("de"),
            id=WORDS,
            syntax=SYNTAXES,
            created_at=INSTANTS,
            changed_at=INSTANTS,
            used_at=INSTANTS,
            uses=st.integers(0, 10**9),
            properties=st.dictionaries(WORDS, TEXTS, max_size=2),
            notes=st.lists(TEXTS, max_size=2).map(tuple),
        ),
        max_size=4,
    )
)
def test_a_memory_comes_back_as_it_was_written(units: list[TmxUnit]) -> None:
    file = io.BytesIO()
    try:
        written = write_tmx(file, units, "en")
    except DocumentError:
        return  # U+FFFE and its like cannot stand in XML
    assert written == len(units)
    file.seek(0)
    assert list(read_tmx(file, "en", "de")) == units


def test_code_stands_in_elements_and_is_native_again_when_read() -> None:
    file = io.BytesIO()
    unit = TmxUnit("A <b>%s</b>", "<b>%s</b> ż", "en", "pl", syntax="html")
    write_tmx(file, [unit], "en")
    text = file.getvalue().decode()
    code = '<bpt i="1" x="1">&lt;b></bpt><ph x="2">%s</ph><ept i="1">&lt;/b></ept>'
    assert f"<seg>A {code}</seg>" in text
    assert f"<seg>{code} ż</seg>" in text


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('<bpt i="1">&lt;b&gt;</bpt>x<ept i="1">&lt;/b&gt;</ept>', "<b>x</b>"),
        ('a <ph x="1" type="image"/> b', 'a <ph x="1" type="image"/> b'),
        ("a <ph>%s<sub>words</sub></ph>", "a %swords"),
        ('<hi type="term">a <it pos="begin">&lt;i></it></hi>b', "a <i>b"),
        ("a <ut>{\\b </ut>b", "a {\\b b"),
        ("<![CDATA[a <b>]]>", "a <b>"),
        ("a<!-- b --> c", "a c"),
    ],
)
def test_inline_elements_are_read_by_one_rule(segment: str, text: str) -> None:
    assert pairs(f"<tu>{variant('en', segment)}{variant('de', 'x')}</tu>") == [(text, "x")]


def test_the_nearest_variant_speaks_and_no_region_for_another() -> None:
    body = "".join(
        f"<tu>{variant('en-US', 'a')}{inner}</tu>"
        for inner in (
            variant("DE-de", "one") + variant("de_AT", "two"),
            variant("de-AT", "three"),
            variant("fr", "four"),
            variant("de", "five") + variant("de", "six"),
        )
    )
    assert pairs(body) == [("a", "one"), ("a", "three"), ("a", "five"), ("a", "six")]
    assert pairs(body, "en-US", "de-AT") == [("a", "two"), ("a", "three"), ("a", "five"), ("a", "six")]
    assert pairs(body, "en-GB", "de") == []
    assert pairs(body, "en", "de-CH") == [("a", "five"), ("a", "six")]
    with pytest.raises(LocaleError):
        read_tmx(tmx(body), "en", "nonsense")


def test_dates_uses_properties_and_notes_come_along() -> None:
    body = (
        '<tu tuid="7" creationdate="20240102T030405Z" usagecount="3" lastusagedate="yesterday"><note>N</note>'
        f'<prop type="domain">law</prop>{variant("en", "a")}<tuv lang="de" changedate="20250102T030405Z">'
        '<prop type="p">q</prop><seg>b</seg></tuv></tu>'
    )
    (unit,) = read_tmx(tmx(body), "en", "de")
    assert (unit.id, unit.uses, unit.notes, unit.line) == ("7", 3, ("N",), 3)
    assert unit.created_at == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert unit.changed_at == datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert unit.used_at is None
    assert unit.properties == {"domain": "law", "p": "q"}


def test_old_files_in_utf16_with_a_document_type_are_read() -> None:
    body = f"<tu>{variant('en', 'ä')}{variant('de', 'ö')}</tu>"
    head = '<?xml version="1.0" encoding="UTF-16"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    text = f"{head}<tmx><body>{body}</body></tmx>"
    (unit,) = read_tmx(io.BytesIO(text.encode("utf-16")), "en", "de")
    assert (unit.source, unit.target) == ("ä", "ö")


BOMB = (
    '<!DOCTYPE {root} [\n<!ENTITY a "ha">\n<!ENTITY b "'
    + "&a;" * 50
    + '">\n<!ENTITY c "'
    + "&b;" * 50
    + '">\n]>\n<{root}><body><{unit}>&c;</{unit}></body></{root}>'
)
OUTSIDE = '<!DOCTYPE {root} [<!ENTITY a SYSTEM "file:///etc/hostname">]><{root}><body><{unit}>&a;</{unit}></body></{root}>'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BOMB, 1),
        (OUTSIDE, 1),
        ("<{root}>\n<body>\n<{unit}></body></{root}>", 3),
        ("", 1),
        ("<html/>", 1),
        ("<{root}>&nothing;</{root}>", 1),
        ("<{root}>" + "<a>" * 2000, 1),
    ],
)
def test_bombs_and_what_is_no_such_file_are_refused_by_line(text: str, line: int) -> None:
    for root, unit in (("tmx", "tu"), ("tbx", "conceptEntry"), ("martif", "termEntry")):
        file = io.BytesIO(text.replace("{root}", root).replace("{unit}", unit).encode())
        with pytest.raises(DocumentError) as refused:
            list(read_tmx(file, "en", "de") if root == "tmx" else read_tbx(file))
        assert refused.value.line == line


def test_what_xml_cannot_hold_is_refused_by_its_unit() -> None:
    with pytest.raises(DocumentError, match=r"unit 'k'.*U\+0001"):
        write_tmx(io.BytesIO(), [TmxUnit("a\x01", "b", "en", "de", id="k")], "en")
    with pytest.raises(DocumentError, match=r"concept 'k'.*U\+0001"):
        write_tbx(io.BytesIO(), [Concept("k", (Term("a\x01", "en"),))])


def test_twenty_thousand_units_are_read_in_the_memory_of_a_few() -> None:
    """The file is made while it is read, so that what is measured is the reading."""

    class Made(io.RawIOBase):
        def __init__(self) -> None:
            self._parts = self._made()

        def _made(self) -> Iterator[bytes]:
            yield b'<tmx version="1.4"><body>'
            for number in range(UNITS):
                unit = f'<tu tuid="{number}">{variant("en", "text " * 20)}{variant("de", "Text " * 20)}</tu>'
                yield unit.encode()
            yield b"</body></tmx>"

        def read(self, size: int = -1) -> bytes:
            return next(self._parts, b"")

    tracemalloc.start()
    try:
        count = len([unit.uses for unit in read_tmx(cast(BinaryIO, Made()), "en", "de")])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == UNITS
    assert peak < PEAK_BYTES


STATUSES: list[Status] = ["", "preferred", "admitted", "deprecated", "forbidden"]
LINES = st.text(st.characters(categories=("L", "N", "P", "S")), max_size=12)


@given(
    st.lists(
        st.builds(
            Concept,
            id=WORDS,
            terms=st.lists(
                st.builds(
                    Term,
                    text=WORDS,
                    locale=st.just("en"),
                    status=st.sampled_from(STATUSES),
                    part_of_speech=st.sampled_from(["", "noun", "verb"]),
                    definition=LINES,
                    context=LINES,
                    note=LINES,
                ),
                max_size=3,
            ).map(tuple),
            definition=LINES,
            subject=LINES,
        ),
        max_size=3,
    ),
    st.sampled_from(["dct", "dca"]),
)
def test_terms_come_back_as_they_were_written(concepts: list[Concept], style: Style) -> None:
    file = io.BytesIO()
    assert write_tbx(file, concepts, "en", style) == len(concepts)
    file.seek(0)
    assert list(read_tbx(file)) == concepts


EXPECTED = Concept(
    "c1",
    (
        Term("ship", "en", "preferred", "noun", "a vessel", note="N"),
        Term("boat", "en", "deprecated", "", "a vessel"),
        Term("Schiff", "de"),
    ),
    "floats",
    "sea",
)


@pytest.mark.parametrize(
    "text",
    [
        """<martif type="TBX"><text><body><termEntry id="c1">
  <descrip type="subjectField">sea</descrip>
  <descripGrp><descrip type="definition">floats</descrip></descripGrp>
  <langSet xml:lang="en"><descripGrp><descrip type="definition">a vessel</descrip></descripGrp>
    <tig><term>ship</term><termNote type="partOfSpeech">noun</termNote>
      <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote><note>N</note></tig>
    <ntig><termGrp><term>boat</term>
      <termNote type="administrativeStatus">supersededTerm</termNote></termGrp></ntig>
  </langSet>
  <langSet xml:lang="de"><tig><term>Schiff</term></tig></langSet>
</termEntry></body></text></martif>""",
        """<tbx style="dca" type="TBX-Basic" xmlns="urn:iso:std:iso:30042:ed-2">
<text><body><conceptEntry id="c1">
  <descrip type="subjectField">sea</descrip><descrip type="definition">floats</descrip>
  <langSec xml:lang="en"><descripGrp><descrip type="definition">a vessel</descrip></descripGrp>
    <termSec><term>ship</term><termNote type="partOfSpeech">noun</termNote>
      <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote><note>N</note></termSec>
    <termSec><term>boat</term>
      <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec>
  </langSec>
  <langSec xml:lang="de"><termSec><term>Schiff</term></termSec></langSec>
</conceptEntry></body></text></tbx>""",
        """<tbx style="dct" type="TBX-Basic" xmlns="urn:iso:std:iso:30042:ed-2"
  xmlns:min="http://www.tbxinfo.net/ns/min" xmlns:basic="http://www.tbxinfo.net/ns/basic">
<text><body><conceptEntry id="c1">
  <min:subjectField>sea</min:subjectField><basic:definition>floats</basic:definition>
  <langSec xml:lang="en"><descripGrp><basic:definition>a <hi>vessel</hi></basic:definition></descripGrp>
    <termSec><term>ship</term><min:partOfSpeech>noun</min:partOfSpeech>
      <min:administrativeStatus>preferredTerm-admn-sts</min:administrativeStatus><note>N</note></termSec>
    <termSec><term>boat</term><min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus></termSec>
  </langSec>
  <langSec xml:lang="de"><termSec><term>Schiff</term></termSec></langSec>
</conceptEntry></body></text></tbx>""",
    ],
    ids=["v2", "v3-dca", "v3-dct"],
)
def test_every_dialect_of_terms_says_the_same(text: str) -> None:
    assert list(read_tbx(io.BytesIO(text.encode()))) == [EXPECTED]


def test_a_term_without_a_locale_or_words_is_refused_by_line() -> None:
    head = "<tbx><text><body><conceptEntry>\n"
    for section in (
        '<langSec xml:lang="x-"><termSec/></langSec>',
        '<langSec xml:lang="de">\n<termSec/></langSec>',
    ):
        with pytest.raises(DocumentError) as refused:
            list(read_tbx(io.BytesIO(f"{head}{section}</conceptEntry></body></text></tbx>".encode())))
        assert refused.value.line == 2 + section.count("\n")
