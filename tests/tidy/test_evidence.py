"""The evidence page is true of the tree, and its checker sees each way in which it could be false."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import evidence
from tests.evidence import Mapped, faults, link, named_tests, read

PROOF = '''
import pytest


def test_it_holds() -> None:
    """[M-003, T-010..T-012] Also E-417 in passing."""


def test_j_035_and_no_other() -> None:
    pass


@pytest.mark.parametrize("case", [pytest.param("C-002", id="C-001")])
def test_cases(case: str) -> None:
    pass


@pytest.mark.skip
def test_that_never_runs() -> None:
    """M-004"""


class TestGrouped:
    def test_inside(self) -> None:
        """M-003"""


def helper() -> None:
    """M-005"""
'''
HERE = "tests/kernel/test_proof.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tests/kernel").mkdir(parents=True)
    (tmp_path / HERE).write_text(PROOF, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/reference.md").write_text("# Reference\n\n## Exit codes, and `0`\n", encoding="utf-8")
    return tmp_path


def page(**changes: tuple[str, str]) -> str:
    """A page that maps everything to an open part, but for the rows given as `M_001=(kind, where)`."""
    rows = {one: Mapped("open", "engine", 0) for one in evidence.every_id()}
    rows |= {one.replace("_", "-"): Mapped(*row, 0) for one, row in changes.items()}
    tables = (["", f"## {seed}", "", *evidence._HEAD, *evidence.table(rows, seed)] for seed in evidence.LISTS)
    return "\n".join(["# Evidence", "", "Words.", *(line for table in tables for line in table)]) + "\n"


def test_the_evidence_page_is_true_of_this_tree() -> None:
    """[E-417] Every id once; every test and every heading that it points at exists."""
    assert faults((evidence.ROOT / evidence.PAGE).read_text(encoding="utf-8")) == []


def test_the_lists_hold_all_requirements() -> None:
    ids = evidence.every_id()
    assert len(ids) == len(set(ids)) == 1_074
    assert (ids[0], ids[369], ids[370], ids[-1]) == ("M-001", "M-370", "C-001", "T-077")


def test_a_whole_page_has_no_fault(tree: Path) -> None:
    text = page(
        M_001=("not ours", "there is no such thing"),
        M_003=("test", f"`{HERE}::test_it_holds`, `{HERE}::TestGrouped::test_inside`"),
        J_001=("doc", "`docs/reference.md#exit-codes-and-0`"),
    )
    assert faults(text, tree) == []
    assert len(text.splitlines()) < 50


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (("test", f"`{HERE}::test_gone`"), "no such test"),
        (("test", "`tests/kernel/test_gone.py::test_it_holds`"), "no such test"),
        (("test", f"`{HERE}::test_it_holds`, `{HERE}::test_gone`"), "no such test"),
        (("test", f"`{HERE}::helper`"), "no such test"),
        (("test", f"`{HERE}::test_inside`"), "no such test"),
        (("test", f"`{HERE}::test_that_never_runs`"), "no such test"),
        (("test", "in words"), "points at nothing"),
        (("doc", "`docs/reference.md#exit-code`"), "no such heading"),
        (("doc", "`docs/reference.md`"), "no such heading"),
        (("doc", "`docs/gone.md#reference`"), "no such heading"),
        (("not ours", ""), "a reason"),
        (("not ours", "no reason"), "a reason"),
        (("open", "somewhere"), "no part"),
        (("open", ""), "no part"),
        (("done", "engine"), "no kind"),
    ],
)
def test_a_row_that_is_not_true_is_named_by_its_line(tree: Path, row: tuple[str, str], fault: str) -> None:
    """[E-417]"""
    text = page(M_002=row)
    (found,) = faults(text, tree)
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("| M-002 |"))
    assert found.startswith(f"line {number}: ")
    assert fault in found


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda text: text.replace("| J-001..J-107 | open | engine |\n", ""), "J-001 is missing"),
        (lambda text: text.replace("J-001..J-107", "J-001..J-106"), "J-107 is missing"),
        (lambda text: text.replace("J-001..J-107", "J-001..J-108"), "J-108 is no id"),
        (lambda text: text + "| C-050 | open | engine |\n", "C-050 stands already in line"),
        (lambda text: text.replace("J-001..J-107", "J-001..T-107"), "not a row"),
        (lambda text: text + "| a | table | of another kind |\n", "not a row"),
    ],
)
def test_an_id_is_there_exactly_once(tree: Path, damage: object, fault: str) -> None:
    assert callable(damage)
    assert any(fault in found for found in faults(damage(page()), tree))


def test_a_test_that_names_an_unknown_id_is_a_fault(tree: Path) -> None:
    (tree / HERE).write_text('def test_a() -> None:\n    """[M-371]"""\n', encoding="utf-8")
    assert faults(page(), tree) == [f"{HERE}::test_a names M-371, which is no id of the lists"]


def test_a_test_names_ids_in_its_docstring_its_name_or_the_id_of_a_parameter(tree: Path) -> None:
    assert named_tests(tree) == {
        f"{HERE}::test_it_holds": {"M-003", "T-010", "T-011", "T-012", "E-417"},
        f"{HERE}::test_j_035_and_no_other": {"J-035"},
        f"{HERE}::test_cases": {"C-001"},
        f"{HERE}::TestGrouped::test_inside": {"M-003"},
    }


def test_linking_points_open_rows_at_the_tests_that_name_them(tree: Path) -> None:
    before = page(J_035=("not ours", "there is no such thing"), E_417=("test", f"`{HERE}::test_cases`"))
    text, changed = link(before, tree)
    rows = read(text).rows
    assert changed == ["M-003", "C-001", "E-417", "T-010", "T-011", "T-012"]
    assert rows["M-003"].where == f"`{HERE}::test_it_holds`, `{HERE}::TestGrouped::test_inside`"
    assert rows["T-011"].where == f"`{HERE}::test_it_holds`"
    assert rows["E-417"].where == f"`{HERE}::test_cases`, `{HERE}::test_it_holds`"
    assert rows["J-035"].kind == "not ours"
    assert f"| T-010..T-012 | test | `{HERE}::test_it_holds` |" in text.splitlines()
    assert faults(text, tree) == []


def test_linking_keeps_every_word_outside_the_tables_and_does_nothing_twice(tree: Path) -> None:
    text, _ = link(page(), tree)
    assert [line for line in text.splitlines() if not line.startswith("|")] == [
        line for line in page().splitlines() if not line.startswith("|")
    ]
    assert link(text, tree) == (text, [])


def test_linking_mends_a_row_whose_test_was_renamed(tree: Path) -> None:
    text, changed = link(page(J_035=("test", f"`{HERE}::test_old_name`")), tree)
    assert "J-035" in changed
    assert read(text).rows["J-035"].where == f"`{HERE}::test_j_035_and_no_other`"


def test_a_page_that_cannot_be_read_whole_is_not_rewritten(tree: Path) -> None:
    text = page() + "| C-050 | open | engine |\n"
    assert link(text, tree) == (text, [])


def test_counts_sum_to_the_lists(tree: Path) -> None:
    printed = evidence.counts(read(page(M_001=("not ours", "there is no such thing"))))
    assert printed.splitlines()[0].split() == ["total", "test", "doc", "not", "ours", "open"]
    assert printed.splitlines()[1].split() == ["M", "370", "0", "0", "1", "369"]
    assert printed.splitlines()[6].split() == ["all", "1074", "0", "0", "1", "1073"]
    assert printed.splitlines()[-1] == "open by part: engine 1073"
