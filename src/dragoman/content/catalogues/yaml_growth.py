"""Edits over YAML: values in place, forms of a plural, pairs that go, and pairs that a target lacks.

Promises that a new pair is the source's own lines, comments and quoting included, behind the pair that
precedes it there, as far in as its neighbours; and that lines which go leave nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from dragoman.content import locales
from dragoman.content.catalogues.yaml_units import CATEGORIES, Tree, Unit, joined, tree_of
from dragoman.content.lexers.yaml_places import Node, Pair, column, line_end, line_start, region
from dragoman.content.lexers.yaml_spelling import spelled, spelled_anew
from dragoman.content.spans import splice
from dragoman.model.documents import Document, Edit, EditKind, Span, Text, Writing

_LINE_END = re.compile(r"\r\n|\n|\r")


def written_over(
    base: Document,
    source: Document,
    translations: Mapping[str, Text],
    locale: str,
    first: Collection[Edit] = (),
) -> Writing:
    """A translation over a source, where what has none goes, or over a target, which gets what it lacks."""
    tree = tree_of(base)
    fresh = base.role == "source"
    bare = {block.key for block in base.blocks if block.key not in translations and _has_words(block.value)}
    growth = Growth(tree_of(source), tree, translations, locale)
    taken = () if fresh else growth.taken
    values = {key: value for key, value in translations.items() if key not in taken}
    filling = Filling(tree, values, locale, bare if fresh else (), fresh=fresh)
    edits = [*first, *filling.edits(tree.root), *(() if fresh else growth.edits())]
    edits.sort(key=lambda edit: (edit.span.start, edit.span.end))
    written = filling.written | growth.written
    removed = (*filling.removed, *(key for key in growth.replaced if key not in written))
    known = {block.key for block in source.blocks}.union(removed)
    lost = tuple(key for key in tree.units if key not in known)
    return Writing(splice(base.text, edits), tuple(edits), lost, written, removed)


class Filling:
    """Values put into one tree. Into a source's, what has none goes where it is doomed, and a word that YAML
    reads as a boolean is quoted even where it stays the same.
    """

    def __init__(
        self, tree: Tree, values: Mapping[str, Text], locale: str, doomed: Collection[str], *, fresh: bool
    ) -> None:
        self.tree = tree
        self._fresh = fresh
        self._values = values
        self._locale = locale
        self._doomed = doomed
        self.written: dict[str, Text] = {}
        self.removed: list[str] = []

    def edits(self, node: Node | None, path: str | None = None, *, fixed: bool = False) -> Iterator[Edit]:
        """All edits below a node, in order but for new forms of a plural. Nothing goes where it is fixed."""
        if node is None:
            return
        kept: Pair | None = None
        fixed = fixed or not self._doomed or node.anchor in self.tree.anchors
        for index, pair in enumerate(node.pairs):
            key = joined(path, pair.name)
            span = None if fixed else self._span_to_go(node, index, kept)
            gone = self.tree.fate(pair, key, self._doomed) if span else None
            if span and gone:
                self.removed += gone
                yield Edit(span, "", "removal", key)
                continue
            kept = pair
            yield from self.pair_edits(pair, key, fixed=fixed)

    def pair_edits(self, pair: Pair, key: str, *, fixed: bool = False) -> Iterator[Edit]:
        """The edits of one pair that stays."""
        unit = self.tree.units.get(key)
        if unit is None:
            yield from self.edits(pair.value, key, fixed=fixed)
        elif key in self._values:
            value = self._values[key]
            if unit.forms:
                yield from self._plural(unit, value)
            else:
                self.written[key] = _single(value)
                yield from self._value(pair, _single(value), key)

    def _span_to_go(self, node: Node, index: int, kept: Pair | None) -> Span | None:
        """What is taken out with a pair; None where it cannot go: it has no line of its own, or its place
        in a list means something.
        """
        pair = node.pairs[index]
        if node.flow and node.kind == "mapping":
            last = index + 1 == len(node.pairs)
            start = node.pairs[index - 1].value.span.end if kept else pair.start
            return Span(start, pair.value.span.end if kept or last else node.pairs[index + 1].start)
        return region(self.tree.text, pair) if (node.kind == "mapping") != node.keyed else None

    def _value(self, pair: Pair, text: str, key: str) -> Iterator[Edit]:
        node = pair.value
        if text != node.text or (self._fresh and not node.is_text):
            yield Edit(node.span, spelled(self.tree.text, node, text, self.tree.habit), "value", key)

    def _plural(self, unit: Unit, value: Text) -> Iterator[Edit]:
        """Forms replaced, those that the locale lacks taken out, new ones put in CLDR's order."""
        wanted = _on_disk(unit, value, self._locale)
        self.written[unit.key] = self.tree.shape.named(wanted, self._locale)
        node = unit.pair.value
        kept: Pair | None = None
        for index, pair in enumerate(node.pairs):
            if pair.name not in unit.forms or pair.name in wanted:
                if pair.name in wanted:
                    yield from self._value(pair, wanted[pair.name], unit.key)
                kept = pair
            elif span := self._span_to_go(node, index, kept):
                yield Edit(span, "", "plural", unit.key)
            else:
                wanted[pair.name] = pair.value.text  # it shares its line with what stays
        standing = [name for name in CATEGORIES if name in unit.forms and name in wanted]
        for name in wanted:
            if name not in unit.forms:
                before = [one for one in standing if CATEGORIES.index(one) < CATEGORIES.index(name)]
                neighbour = unit.forms[before[-1] if before else standing[0]]
                yield self._form(unit, neighbour, name, wanted[name], behind=bool(before))

    def _form(self, unit: Unit, like: Pair, name: str, text: str, *, behind: bool) -> Edit:
        """A new form that looks like its neighbour."""
        whole, flow = self.tree.text, unit.pair.value.flow
        key, node = like.key, like.value
        raw = whole[key.span.start : key.span.end] if key else ""
        quote = raw[:1] if raw[:1] in ("'", '"') else ""
        gap = whole[key.span.end : node.span.start] if key else ": "
        gap = gap if not node.anchor and gap.strip() == ":" and not _LINE_END.search(gap) else ": "
        item = f"{quote}{name}{quote}{gap}{spelled_anew(text, node.style, self.tree.habit, flow)}"
        if flow:
            at = node.span.end if behind else like.start
            return Edit(Span(at, at), f", {item}" if behind else f"{item}, ", "plural", unit.key)
        line = line_start(whole, like.start)
        lead = " " * (like.start - line)
        own = region(whole, like)
        at = line_end(whole, node.span.end) if behind or own is None else own.start
        return _insertion(
            whole, at, f"{lead}{item}{self.tree.newline}", self.tree.newline, "plural", unit.key
        )


class Growth:
    """What a source has and a target lacks, put where the source has it."""

    def __init__(self, source: Tree, base: Tree, values: Mapping[str, Text], locale: str) -> None:
        self._source, self._base = source, base
        self._locale = locale
        self._values = {key: value for key, value in values.items() if self._is_missing(key)}
        self._wanted = _prefixes(self._values)
        self._doomed = frozenset(key for key in source.units if key not in self._values)
        self.written: dict[str, Text] = {}
        self.replaced: list[str] = []

    def _is_missing(self, key: str) -> bool:
        """Whether the target lacks a text, or has a plain one where the source has a plural."""
        standing = self._base.units.get(key)
        return standing is None or bool(self._source.units[key].forms and not standing.forms)

    @property
    def taken(self) -> Collection[str]:
        """The keys whose translations are put in here."""
        return self._values.keys()

    def edits(self) -> Iterator[Edit]:
        """All insertions; those at one place in their order."""
        source, base = self._source.root, self._base.root
        if self._values and source:
            hole = self._base.hole
            if base is None and hole.start < hole.end:
                yield Edit(hole, "", "insertion")
            yield from self._grow(source, base or Node("mapping", Span(0, 0), 0), None)

    def _grow(self, source: Node, base: Node, path: str | None) -> Iterator[Edit]:
        here = {pair.name: pair for pair in base.pairs}
        by_place = source.kind == "sequence" and not source.keyed
        neighbour: Pair | None = None
        for index, pair in enumerate(source.pairs):
            key = joined(path, pair.name)
            twin = here.get(pair.name)
            if twin is None:
                rest = source.pairs[index:] if by_place else [pair]
                if any(joined(path, other.name) in self._wanted for other in rest):
                    yield self._inserted(source, base, neighbour, pair, key)
                continue
            neighbour = twin
            if key not in self._wanted:
                continue
            same = twin.value.kind == pair.value.kind and bool(twin.value.pairs)
            if same and key not in self._values and key not in self._base.units:
                yield from self._grow(pair.value, twin.value, key)
            else:
                self.replaced += [unit.key for unit in self._base.within(twin, key)]
                yield self._exchanged(source, base, twin, pair, key)

    def _inserted(self, source: Node, base: Node, neighbour: Pair | None, pair: Pair, key: str) -> Edit:
        text = self._base.text
        if base.flow:
            item = self._in_brackets(source, pair, key)
            at = neighbour.value.span.end if neighbour else base.pairs[0].start
            return Edit(Span(at, at), f", {item}" if neighbour else f"{item}, ", "insertion", key)
        if neighbour:
            at = line_end(text, neighbour.value.span.end)
        else:
            own = region(text, base.pairs[0]) if base.pairs else None
            at = own.start if own else line_end(text, self._base.hole.end)
        lines = self._lines(source, pair, key, column(text, base) if base.pairs else None)
        return _insertion(text, at, lines, self._base.newline, "insertion", key)

    def _exchanged(self, source: Node, base: Node, twin: Pair, pair: Pair, key: str) -> Edit:
        """A pair that holds something else, or nothing, becomes the source's."""
        own = None if base.flow else region(self._base.text, twin)
        if own is None:
            span = Span(twin.start, twin.value.span.end)
            return Edit(span, self._in_brackets(source, pair, key), "insertion", key)
        lines = self._lines(source, pair, key, column(self._base.text, base))
        if not self._base.text[own.start : own.end].endswith(("\n", "\r")):
            lines = lines.rstrip("\r\n")
        return Edit(own, lines, "insertion", key)

    def _lines(self, source: Node, pair: Pair, key: str, target_column: int | None) -> str:
        """The source's lines of a pair with its translations, as far in as the target's neighbours."""
        whole = self._source.text
        own = None if source.flow else region(whole, pair)
        ours = column(whole, source)
        if own is None:
            lead = "" if source.kind == "mapping" or (source.flow and pair.key) else "- "
            lines = " " * ours + lead + self._filled(pair, key, Span(pair.start, pair.value.span.end))
        else:
            lines = self._filled(pair, key, own)
        further = (ours if target_column is None else target_column) - ours
        moved = "".join(_moved(line, further) for line in lines.splitlines(keepends=True))
        return _LINE_END.sub(self._base.newline, moved.rstrip("\r\n") + "\n" if own is None else moved)

    def _filled(self, pair: Pair, key: str, span: Span) -> str:
        """A part of the source that holds one pair, with what is translated of it."""
        filling = Filling(self._source, self._values, self._locale, self._doomed, fresh=True)
        edits = sorted(filling.pair_edits(pair, key), key=lambda edit: (edit.span.start, edit.span.end))
        gone = set(filling.removed)
        for unit in self._source.within(pair, key):
            if unit.key not in gone:
                self.written[unit.key] = self._source.shape.value(unit, self._locale)
        self.written |= filling.written
        parts, at = [], span.start
        for edit in edits:
            parts += [self._source.text[at : edit.span.start], edit.text]
            at = edit.span.end
        return "".join([*parts, self._source.text[at : span.end]])

    def _in_brackets(self, source: Node, pair: Pair, key: str) -> str:
        """A pair for a mapping or sequence in brackets; from lines it is written anew."""
        if source.flow:
            return self._filled(pair, key, Span(pair.start, pair.value.span.end))
        name = self._source.text[pair.key.start : pair.key.span.end] + ": " if pair.key else ""
        return name + self._on_one_line(pair.value, key)

    def _on_one_line(self, node: Node, key: str) -> str:
        unit = self._source.units.get(key)
        if unit and unit.forms:
            forms = _on_disk(unit, self._values[key], self._locale)
            self.written[key] = self._source.shape.named(forms, self._locale)
            return f"{{{', '.join(f'{name}: {self._in_quotes(text)}' for name, text in forms.items())}}}"
        if unit:
            self.written[key] = _single(self._values.get(key, node.text))
            return self._in_quotes(self.written[key], node.style)
        if not node.pairs:
            return self._source.text[node.start : node.span.end]
        items: list[str] = []
        for pair in node.pairs:
            inner = joined(key, pair.name)
            if node.kind == "sequence" or inner in self._wanted or inner not in self._source.units:
                name = f"{self._source.text[pair.key.start : pair.key.span.end]}: " if pair.key else ""
                items.append(name + self._on_one_line(pair.value, inner))
        return f"{{{', '.join(items)}}}" if node.kind == "mapping" else f"[{', '.join(items)}]"

    def _in_quotes(self, text: Text, style: str = "") -> str:
        return spelled_anew(_single(text), style, self._base.habit, flow=True)


def _single(value: Text) -> str:
    """One text for a place that holds one."""
    return value if isinstance(value, str) else value.get("other", next(iter(value.values())))


def _on_disk(unit: Unit, value: Text, locale: str) -> dict[str, str]:
    """The forms of a plural by the names that they have in a file, in CLDR's order.

    An explicit `zero` of the file is kept: without a form for it, it gets that of the number 0.
    """
    if isinstance(value, str):
        return dict.fromkeys(unit.forms, value)
    found = {"other": _single(value)} | {name: text for name, text in value.items() if name in CATEGORIES}
    if "zero" in unit.forms:
        usual = found.get(locales.plural_category(locale, 0), found["other"])
        found["zero"] = value.get("=0", found.get("zero", usual))
    return {name: found[name] for name in CATEGORIES if name in found}


def _insertion(text: str, at: int, lines: str, newline: str, kind: EditKind, key: str) -> Edit:
    """Whole lines at the start of a line, or behind a last line that has no end."""
    if at == len(text) and text and not text.endswith(("\n", "\r")):
        return Edit(Span(at, at), newline + lines.rstrip("\r\n"), kind, key)
    return Edit(Span(at, at), lines if lines.endswith(("\n", "\r")) else lines + newline, kind, key)


def _moved(line: str, further: int) -> str:
    if not line.strip():
        return line
    if further >= 0:
        return " " * further + line
    return line[min(-further, len(line) - len(line.lstrip(" "))) :]


def _prefixes(keys: Collection[str]) -> frozenset[str]:
    """The keys and all paths above them."""
    found: set[str] = set()
    for key in keys:
        while key not in found:
            found.add(key)
            key = key.rpartition("/")[0] if "/" in key else key
    return frozenset(found)


def _has_words(value: Text) -> bool:
    forms = [value] if isinstance(value, str) else value.values()
    return any(any(map(str.isalpha, form)) for form in forms)
