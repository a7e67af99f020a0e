"""The members `csv` and `csv-pairs`, with each delimiter."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dragoman.content.formats.csv_table import CsvTable
from tests.conformance.formats.member import Member, Texts


def _reader(delimiter: str) -> Texts:
    def read(data: bytes) -> Sequence[str]:
        text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
        return [
            cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in row
        ]

    return read


MEMBERS = (
    Member(
        CsvTable(),
        "texts.csv",
        '''\
Key;en;pl;de_AT;Max. length;notes
a/b;"First; “Second”
and ""Third""";;Erstens;;a note
"two";plain;"";einfach;30
;no key;;;;

"three";'single' "quotes";;"";;
''',
        oracle=_reader(";"),
        malformed=(
            ("name;amount\nx;1\n", 1),
            ("", 1),
            ('key,en\na,"b\n', 2),
            ('key,en\na,b\n\nb,"c"d\n', 4),
            ("key,en\na,b\nc,one, two\n", 3),
        ),
    ),
    Member(
        CsvTable(),
        "texts.tsv",
        "sep=\t\nid\tde-DE\ten\n1\tEins\tOne\n2\t\tTwo\n3\n4\tVier\tFour",
        oracle=_reader("\t"),
    ),
    Member(
        CsvTable(pairs=True),
        "{locale}/texts.csv",
        'ID,Source text,Translation,Context\n1,Hello {name},Hallo {name},"a, b"\n2,"Bye, ""x""",,\n3,More\n',
        oracle=_reader(","),
        malformed=(("id,translation\n1,x\n", 1),),
    ),
)
