"""Where each requirement is kept: `docs/evidence.md`, read, checked, counted and linked to the tests.

    python -m tests.evidence           checks the page against the tree and prints the counts
    python -m tests.evidence --link    first turns `open` rows into `test` rows wherever a test names their id

A test names what it proves: `[M-237]` or `[M-310..M-312, T-025]` in its docstring, `m_237` in its name, or
`"M-237"` as the id of a parameter. It names an id only when it would fail if that row were broken; half a
proof leaves the row open.

The page holds one table a seed, `| id | kind | where or why |`. Neighbours with one mapping share a line, as
`M-139..M-148`. Kinds: `test` (`tests/kernel/test_x.py::test_y`, several by commas), `doc` (a file of the tree
with `#` and one of its headings), `not ours` (the reason), `open` (the part that will close it, of `PARTS`).
The page is the truth and is edited by hand; `--link` changes nothing but rows that tests name.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/evidence.md"

LISTS = {"M": 370, "C": 103, "J": 107, "E": 417, "T": 77}
"""How many requirements each seed has (manifest, coordinator, jobs, effects, transition), from 001 on."""

KINDS = ("test", "doc", "not ours", "open")
PARTS = (
    "house",
    "kernel",
    "store",
    "content",
    "manifests",
    "engine",
    "effects",
    "families",
    "publishing",
    "upkeep",
    "surfaces",
    "dashboard",
    "proof",
    "docs",
)
TESTS_PER_ROW = 3

_ID = re.compile(r"([MCJET])-(\d{3})(?:\.\.([MCJET])-(\d{3}))?")
_MENTION = re.compile(r"\b" + _ID.pattern + r"\b")
_NAMED = re.compile(r"(?<![a-z0-9])([mcjet])_(\d{3})(?![0-9])")
_ROW = re.compile(r"^\| ([^|]*?) \| ([^|]*?) \|(?: (.*?) |\s*)\|$")
_HEAD = ("| id | kind | where or why |", "|---|---|---|")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_POINTER = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Mapped:
    """What the page says of one id, and on which line."""

    kind: str
    where: str
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    """The page as read: what it says of each id, and what is wrong with its own form."""

    rows: Mapping[str, Mapped]
    faults: tuple[str, ...]


def every_id() -> list[str]:
    """All ids of the five lists, in order."""
    return [f"{seed}-{number:03}" for seed, count in LISTS.items() for number in range(1, count + 1)]


def read(text: str) -> Page:
    """The rows of the page by id; doubled, unknown and unreadable ones are faults."""
    rows: dict[str, Mapped] = {}
    faults: list[str] = []
    known = set(every_id())
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|") or line in _HEAD:
            continue
        row = _ROW.match(line)
        ids = _ids(row[1]) if row else []
        if not row or not ids:
            faults.append(f"line {number}: not a row of `| id | kind | where or why |`")
            continue
        for one in ids:
            if one not in known:
                faults.append(f"line {number}: {one} is no id of the lists")
            elif one in rows:
                faults.append(f"line {number}: {one} stands already in line {rows[one].line}")
            else:
                rows[one] = Mapped(row[2], row[3] or "", number)
    return Page(rows, tuple(faults))


def faults(text: str, root: Path = ROOT) -> list[str]:
    """Everything that keeps the page from being true of the tree at `root`; [] when all is well."""
    page = read(text)
    tests = named_tests(root)
    found = list(page.faults)
    found += [f"{one} is missing" for one in every_id() if one not in page.rows]
    lines = {row.line: row for row in page.rows.values()}
    found += [
        f"line {number}: {fault}" for number, row in lines.items() for fault in _row_faults(row, tests, root)
    ]
    known = set(every_id())
    found += [
        f"{test} names {one}, which is no id of the lists"
        for test, ids in tests.items()
        for one in sorted(ids - known)
    ]
    return found


def named_tests(root: Path) -> dict[str, set[str]]:
    """Every test of the tree as `path::name`, with the ids that it names; one that never runs is none."""
    return {
        f"{path.relative_to(root).as_posix()}::{name}": _mentions(name, node)
        for path in sorted(root.glob("tests/**/test_*.py"))
        for name, node in _tests(ast.parse(path.read_text(encoding="utf-8")).body)
    }


def link(text: str, root: Path = ROOT) -> tuple[str, list[str]]:
    """The page with every `open` or `test` row that tests name pointing at them, and the ids that changed.

    A page with a fault in its form is left as it is: rewriting it would lose what could not be read.
    """
    page = read(text)
    if page.faults:
        return text, []
    tests = named_tests(root)
    proofs: dict[str, list[str]] = {}
    for test, ids in tests.items():
        for one in ids:
            proofs.setdefault(one, []).append(test)
    rows = dict(page.rows)
    changed = []
    for one, row in rows.items():
        if one not in proofs or row.kind not in ("open", "test"):
            continue
        kept = [test for test in _POINTER.findall(row.where) if test in tests and row.kind == "test"]
        chosen = list(dict.fromkeys([*kept, *proofs[one]]))[:TESTS_PER_ROW]
        where = ", ".join(f"`{test}`" for test in chosen)
        if (row.kind, row.where) != ("test", where):
            rows[one] = Mapped("test", where, row.line)
            changed.append(one)
    return (_rewritten(text, rows) if changed else text), changed


def counts(page: Page) -> str:
    """Two tables for a terminal: kinds by seed, and what is open by part."""
    lines = [f"{'':12}{'total':>8}" + "".join(f"{kind:>10}" for kind in KINDS)]
    total: Counter[str] = Counter()
    for seed, count in LISTS.items():
        kinds = Counter(row.kind for one, row in page.rows.items() if one.startswith(seed))
        total += kinds
        lines.append(f"{seed:12}{count:>8}" + "".join(f"{kinds[kind]:>10}" for kind in KINDS))
    lines.append(f"{'all':12}{sum(LISTS.values()):>8}" + "".join(f"{total[kind]:>10}" for kind in KINDS))
    parts = Counter(row.where for row in page.rows.values() if row.kind == "open")
    lines += ["", "open by part: " + ", ".join(f"{part} {parts[part]}" for part in PARTS if parts[part])]
    return "\n".join(lines)


def _row_faults(row: Mapped, tests: Mapping[str, object], root: Path) -> Iterator[str]:
    if row.kind not in KINDS:
        yield f"`{row.kind}` is no kind; the kinds are {', '.join(KINDS)}"
    elif row.kind == "open" and row.where not in PARTS:
        yield f"`{row.where}` is no part; the parts are {', '.join(PARTS)}"
    elif row.kind == "not ours" and len(row.where.split()) < 3:
        yield "a reason of three words at least is wanted"
    elif row.kind in ("test", "doc"):
        pointers = _POINTER.findall(row.where)
        if not pointers:
            yield "it points at nothing"
        for pointer in pointers:
            if row.kind == "test" and pointer not in tests:
                yield f"no such test: {pointer}"
            if row.kind == "doc" and not _is_heading(pointer, root):
                yield f"no such heading: {pointer}"


def _is_heading(pointer: str, root: Path) -> bool:
    """Whether `docs/x.md#anchor` names a file of the tree and one of its headings, in GitHub's spelling."""
    name, _, anchor = pointer.partition("#")
    path = root / name
    if not anchor or path.suffix != ".md" or not path.is_file():
        return False
    headings = re.findall(r"^#+ +(.+?) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _tests(body: Iterable[ast.stmt], within: str = "") -> Iterator[tuple[str, _Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node.body, f"{within}{node.name}::")
        elif isinstance(node, _Function) and node.name.startswith("test") and not _never_runs(node):
            yield within + node.name, node


def _never_runs(node: _Function) -> bool:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    return any(re.match(r"pytest\.mark\.(skip|xfail)\b", mark) for mark in marks)


def _mentions(name: str, node: _Function) -> set[str]:
    spans = [mention[0] for mention in _MENTION.finditer(ast.get_docstring(node) or "")]
    spans += [
        leaf.value
        for mark in node.decorator_list
        for keyword in ast.walk(mark)
        if isinstance(keyword, ast.keyword) and keyword.arg in ("id", "ids")
        for leaf in ast.walk(keyword)
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
    ]
    spans += [f"{seed.upper()}-{number}" for seed, number in _NAMED.findall(name)]
    return {one for span in spans for one in _ids(span)}


def _ids(text: str) -> list[str]:
    """`M-004` or `M-004..M-009` as ids in order; [] for anything else."""
    found = _ID.fullmatch(text)
    if not found or (found[3] or found[1]) != found[1]:
        return []
    return [f"{found[1]}-{number:03}" for number in range(int(found[2]), int(found[4] or found[2]) + 1)]


def _rewritten(text: str, rows: Mapping[str, Mapped]) -> str:
    """The page with its tables written anew from `rows`, each seed's at the place of its first row."""
    lines: list[str] = []
    written: set[str] = set()
    for line in text.splitlines():
        row = _ROW.match(line)
        ids = _ids(row[1]) if row else []
        if not ids:
            lines.append(line)
        elif ids[0][0] not in written:
            written.add(ids[0][0])
            lines += table(rows, ids[0][0])
    return "\n".join(lines) + "\n"


def table(rows: Mapping[str, Mapped], seed: str) -> Iterator[str]:
    """The rows of one seed, neighbours with one mapping on one line."""
    mine = [(one, rows[one]) for one in every_id() if one.startswith(seed) and one in rows]
    for (kind, where), group in groupby(mine, key=lambda pair: (pair[1].kind, pair[1].where)):
        yield from (f"| {span} | {kind} | {where} |" for span in _spans([one for one, _ in group]))


def _spans(ids: list[str]) -> Iterator[str]:
    """Runs of consecutive ids; a gap, which the check will report, begins a new one."""
    for _, run in groupby(enumerate(ids), key=lambda pair: int(pair[1][2:]) - pair[0]):
        members = [one for _, one in run]
        yield members[0] if len(members) == 1 else f"{members[0]}..{members[-1]}"


def main(arguments: list[str]) -> int:
    """The command: 0 when the page is true."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description="Checks docs/evidence.md.")
    parser.add_argument(
        "--link", action="store_true", help="point open rows at the tests that name their ids"
    )
    wanted = parser.parse_args(arguments)
    path = ROOT / PAGE
    text = path.read_text(encoding="utf-8")
    linked, changed = link(text)
    if wanted.link:
        path.write_text(linked, encoding="utf-8")
        text = linked
        print(f"{len(changed)} linked: {', '.join(changed)}\n" if changed else "nothing to link\n")
    print(counts(read(text)))
    if changed and not wanted.link:
        print(f"\n{len(changed)} rows can be linked to tests that name them: python -m tests.evidence --link")
    wrong = faults(text)
    for fault in wrong:
        print(f"{PAGE}: {fault}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
