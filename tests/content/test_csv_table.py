"""Tables of texts: one locale's cells change, everything else is as it was."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.content.documents import open_document, render
from dragoman.content.formats.csv_table import CsvTable
from dragoman.content.lexers.csv_cells import DELIMITERS, scan, spelled
from dragoman.kernel.errors import DocumentError, DragomanError
from dragoman.model.documents import Document
from tests.content.real_files import case

TABLE, PAIRS = CsvTable(), CsvTable(pairs=True)


def source(data: bytes | str, form: CsvTable = TABLE, locale: str = "en") -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(form, "a.csv", data, "source", locale)


def target(data: bytes | str, form: CsvTable = TABLE, locale: str = "de") -> Document:
    data = data.encode() if isinstance(data, str) else data
    return open_document(form, "a.csv", data, "target", locale)


def texts(document: Document) -> dict[str, str]:
    return {block.key: block.text for block in document.blocks}


def written(
    document: Document, values: dict[str, str], base: Document | None = None, locale: str = "de"
) -> bytes:
    return render(PAIRS if document.format == "csv-pairs" else TABLE, base, document, values, locale).data


def test_mark_delimiter_line_ends_and_quotes_stay_and_a_cell_is_quoted_where_it_must_be() -> None:
    """[S03]"""
    given, expected = case("S03", "csv")
    document = source(given)
    german = texts(target(expected))
    assert texts(document) == {"1": 'First, Second\r\nand "Third"', "2": "plain"}
    assert written(document, german) == expected
    assert written(document, german, target(given)) == expected
    assert written(document, german, target(expected)) == expected


def test_the_same_in_small() -> None:
    """[S03] What runs where the cases are not."""
    text = '\ufeffid;en;de\r\n1;"a;\r\n""b""";\r\n"2";plain;""\r\n'
    result = written(source(text), {"1": 'x; "y"', "2": "schlicht"})
    assert result.decode() == '\ufeffid;en;de\r\n1;"a;\r\n""b""";"x; ""y"""\r\n"2";plain;"schlicht"\r\n'


def test_a_locale_without_a_column_gets_one_at_the_end_of_each_row() -> None:
    text = "key,en_GB,fr_FR\na,One,\n\nb,Two\nc,,x"
    document = source(text, locale="en-GB")
    result = written(document, {"a": "Eins", "b": "Zwei, drei"}, locale="de-AT").decode()
    assert result == 'key,en_GB,fr_FR,de_AT\na,One,,Eins\n\nb,Two,,"Zwei, drei"\nc,,x,'
    assert written(document, {}, locale="de-AT").decode() == text


def test_other_locales_are_not_touched_and_not_read() -> None:
    text = "key,en,de,fr\na,One,Eins,Un\nb,Two,,\n"
    assert texts(target(text)) == {"a": "Eins", "b": ""}
    assert texts(target(text, locale="fr")) == {"a": "Un", "b": ""}
    assert texts(target(text, locale="pl")) == {"a": "", "b": ""}
    result = written(source(text), {"b": "Deux"}, target(text, locale="fr"), "fr")
    assert result.decode() == text.replace("Two,,", "Two,,Deux")


def test_a_locale_means_its_column_and_never_a_near_one() -> None:
    text = "key,en-US,pt,zh_CN\na,One,Um,一\n"
    assert texts(source(text)) == {"a": "One"}
    assert texts(target(text, locale="zh-Hans")) == {"a": "一"}
    assert texts(target(text, locale="pt-PT")) == {"a": ""}
    with pytest.raises(DocumentError, match="no column is in ru: the header has en-US, pt, zh-CN"):
        source(text, locale="ru")
    with pytest.raises(DragomanError, match="the source's own"):
        written(source(text), {"a": "x"}, locale="en-US")


def test_id_is_the_key_and_behind_another_locale_indonesian() -> None:
    text = "key,en,id\na,One,Satu\n"
    assert texts(target(text, locale="id")) == {"a": "Satu"}
    assert texts(source("id,en,de\n7,One,\n")) == {"7": "One"}


def test_translations_of_nobody_knows_which_language_are_blanked() -> None:
    """A source file of pairs does not say what language its translations are in."""
    text = "key,source,target\na,One,Eins\nb,Two,Zwei\n"
    document = source(text, PAIRS)
    assert written(document, {"a": "Un"}, locale="fr").decode() == "key,source,target\na,One,Un\nb,Two,\n"
    assert written(document, {"a": "Ein"}, target(text, PAIRS)).decode() == text.replace("Eins", "Ein")


def test_rows_that_the_target_lacks_stand_behind_their_neighbour_in_its_own_columns() -> None:
    document = source("key,source,note\na,One,n\nb,Two,n2\nc,Three,\nd,Four,\n", PAIRS)
    base = target("source;key;target\r\nOne;a;Eins\r\nLost;z;Weg", PAIRS)
    rendered = render(PAIRS, base, document, {"b": "Zwei", "c": "Drei;", "d": "Vier"}, "de")
    assert rendered.data.decode() == (
        'source;key;target\r\nOne;a;Eins\r\nTwo;b;Zwei\r\nThree;c;"Drei;"\r\nFour;d;Vier\r\nLost;z;Weg'
    )
    assert rendered.lost == ("z",)


@pytest.mark.parametrize("value", ["=1+1", "+49", "-x", "@SUM(A1)", "\t=1"])
def test_a_formula_is_refused_where_the_source_has_none(value: str) -> None:
    with pytest.raises(DragomanError, match="a spreadsheet would run it"):
        written(source("key,en,de\na,One,\n"), {"a": value})
    assert f"- One,{spelled(value, ',')}" in written(source("key,en,de\na,- One,\n"), {"a": value}).decode()


def test_what_stands_about_a_row_is_told() -> None:
    header = "String ID|Context|Developer comment|Source|de|Max_Length\n"
    text = f"{header}a|menu|short|Hi {{name}}|Hallo|12\nb|||Yo||x\n"
    first, second = source(text).blocks
    assert (first.key, first.note, first.context, first.max_length) == ("a", "short", "menu", 12)
    assert (first.syntax, second.max_length, first.text) == ("icu", None, "Hi {name}")


def test_rows_without_keys_are_named_by_their_text_and_twins_are_told_apart() -> None:
    text = "source,target\na/b,\na/b,x\n,y\n"
    assert list(texts(source(text, PAIRS))) == ["a~1b", "a~1b/2"]
    assert list(texts(target(text, PAIRS))) == ["a~1b", "a~1b/2"]


@pytest.mark.parametrize(
    "text",
    [
        "name,amount\nx,1\n",
        "id,from,to\n1,a,b\n",
        "key,price\nx,1\n",
        "en\nOne\n",
        "",
        "Hello, world\n",
        "first,last,city\na,b,c\n",
    ],
)
def test_a_table_of_other_things_is_not_taken(text: str) -> None:
    for form in (TABLE, PAIRS):
        assert not form.detect("a.csv", text)
        with pytest.raises(DocumentError, match="no header of a table of texts"):
            source(text, form)


def test_each_layout_is_taken_by_one_format() -> None:
    for text, pairs in (
        ("key,en\n", False),
        ("source,de\n", False),
        ("id;source\n", True),
        ("source\ttarget", True),
    ):
        assert (TABLE.detect("a.tsv", text), PAIRS.detect("a.tsv", text)) == (not pairs, pairs)
        assert not TABLE.detect("a.txt", text)


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r")), min_size=2), min_size=1
    ),
    st.sampled_from(DELIMITERS),
    st.sampled_from(["\r\n", "\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_any_table_is_read_as_the_standard_library_reads_it(
    rows: list[list[str]], delimiter: str, newline: str, quoting: int
) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    text = out.getvalue()
    if not text.lower().startswith("sep="):
        assert [[cell.text for cell in row.cells] for row in scan(text, delimiter)] == rows


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.sampled_from(DELIMITERS), st.booleans()
)
def test_any_text_is_spelled_so_that_it_reads_back(text: str, delimiter: str, quoted: bool) -> None:
    line = delimiter.join(("x", spelled(text, delimiter, quoted), "y"))
    assert [cell.text for cell in scan(line, delimiter)[0].cells] == ["x", text, "y"]
    assert next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter, strict=True)) == [
        "x",
        text,
        "y",
    ]


def test_a_long_file_costs_linear_time() -> None:
    text = "key,en,de\n" + "".join(f'k{n},"text ""{n}""",\n' for n in range(20_000)) + '"' * 50_000
    with pytest.raises(DocumentError):
        source(text + "x")
    document = source(text[:-50_000])
    assert len(document.blocks) == 20_000
