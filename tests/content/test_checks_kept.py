"""Checks of what stays as it is: arguments in quotes, nesting, patterns; no mutation goes unseen."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.content.checks import Finding, check
from dragoman.content.protection import MarkersBroken, protect, restore
from dragoman.model.documents import Syntax


def found(source: str, target: str, syntax: Syntax = "none", to: str = "nl", **more: str) -> list[Finding]:
    return list(
        check(source, target, syntax=syntax, source_locale="en", target_locale=to, **more)  # type: ignore[arg-type]
    )


def names(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.check, finding.severity) for finding in findings}


def test_o06_an_argument_inside_quotes_is_lost() -> None:
    """[O06] ICU quotes `'{example}'`; doubled apostrophes do not; other syntaxes know no such thing."""
    source = 'Pick a name like "{example}".'
    wrong = found(source, "Kies een naam zoals '{example}'.", "icu")
    assert ("icu", "error") in names(wrong)
    assert {finding.missing for finding in wrong if finding.check == "icu"} == {("{example}",)}
    assert not found(source, "Kies een naam zoals ''{example}''.", "icu")
    assert not found('Pick a name like "{{example}}".', "Kies een naam zoals '{{example}}'.", "i18next")


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("Hallo {name}", True),
        ("Hallo {name", False),
        ("Hallo {name}}", False),
        ("'t Is {name}", True),
        ("Hallo '{name}'", False),
    ],
)
def test_an_icu_message_is_well_formed(target: str, right: bool) -> None:
    assert (
        bool({"icu", "placeholders"} & {name for name, _ in names(found("Hello {name}", target, "icu"))})
        != right
    )


def test_tags_are_nested_as_in_the_source() -> None:
    assert not found("<b>Go</b> on", "<b>Ga</b> door", "html")
    assert ("markup", "error") in names(found("<b>Go</b> on", "</b>Ga<b> door", "html"))
    assert ("markup", "warning") in names(found("Go<br>on and on", "Ga door en door", "html"))


def test_a_plural_form_for_few_numbers_may_say_its_number_in_words() -> None:
    one = found("%d file", "een bestand", "printf", category="one", other="%d files")
    assert not one
    assert ("placeholders", "error") in names(found("%d files", "bestanden", "printf", category="other"))
    assert not found(
        "a minute ago", "%d минуту назад", "printf", "ru", category="one", other="%d minutes ago"
    )
    assert ("placeholders", "error") in names(found("a minute ago", "%d минуту назад", "printf", "ru"))


def test_what_rails_fills_in_everywhere_may_come_into_its_messages() -> None:
    assert not found("can't be blank", "%{attribute} moet ingevuld zijn", "ruby")
    assert ("placeholders", "error") in names(found("can't be blank", "%{naam} moet ingevuld zijn", "ruby"))


def test_each_locale_has_date_patterns_of_its_own() -> None:
    assert names(found("%B %d, %Y", "%e. %B %Y", "ruby")) <= {("placeholders", "warning")}
    assert ("placeholders", "error") in names(found("%s", "niets", "printf"))


def test_a_sample_address_may_become_a_local_one() -> None:
    assert names(found("name@example.com", "naam@voorbeeld.nl")) == {("addresses", "warning")}
    assert ("addresses", "error") in names(found("Mail us@acme.test now", "Mail ons@acme.test nu"))


def test_zero_width_space_breaks_lines_where_words_have_no_spaces() -> None:
    assert not found("Save it", "บันทึก\u200bไว้", to="th")
    assert ("controls", "error") in names(found("Save it", "Bewaar\u200b het"))


def test_direction_isolates_are_usual_in_right_to_left_texts() -> None:
    assert names(found("Save it", "\u2067احفظه\u2069", to="ar")) == {("controls", "warning")}
    assert ("controls", "error") in names(found("Save it", "\u202eاحفظه\u202c", to="ar"))


CODED: list[tuple[Syntax, list[str]]] = [
    ("printf", ["%s", "%d", "%1$s", "%@", "%.2f", "<b>", "https://a.test/x?y=1", "me@acme.test"]),
    ("python", ["%(name)s", "{name}", "{0}", "%s", "{{ raw }}"]),
    ("icu", ["{name}", "{count, number}", "<b>", "{when, date, short}"]),
    ("i18next", ["{{name}}", "$t(other.key)", "<1>", "{{count}}"]),
    ("ruby", ["%{name}", "%{total}", "<br/>"]),
    ("fluent", ["{ $name }", "{ -brand }"]),
    ("html", ["<a href='/x'>", "<img src='a.png'>", "&lt;b&gt;", "{{ name }}"]),
    ("markdown", ["`code`", "[text](https://a.test)", "![alt](a.png)", "{{< x >}}", "https://a.test"]),
]
CODES = st.sampled_from(CODED).flatmap(
    lambda coded: st.tuples(st.just(coded[0]), st.lists(st.sampled_from(coded[1]), min_size=1, max_size=4))
)


@given(CODES, st.integers(0, 3), st.sampled_from(["drop", "double", "spoil"]))
def test_no_mutation_of_code_goes_unseen(coded: tuple[Syntax, list[str]], at: int, how: str) -> None:
    """What stands between words is dropped, doubled or spoiled: a finding says so."""
    syntax, codes = coded
    at %= len(codes)
    said = {
        "drop": "",
        "double": f"{codes[at]} en {codes[at]}",
        "spoil": re.sub(r"\w(?=\W*$)", "x", codes[at]),
    }[how]
    mutated = [*codes[:at], said, *codes[at + 1 :]]
    assume(mutated != codes)
    source = "Save " + " and ".join(codes) + " here"
    target = "Bewaar " + " en ".join(mutated) + " hier"
    assume(protect(source, syntax).taken)
    kept = {"placeholders", "markup", "addresses", "icu", "numbers", "leaks"}
    assert kept & {name for name, _ in names(found(source, target, syntax))}


@given(CODES, st.data())
def test_no_mutation_of_a_marker_goes_unseen(coded: tuple[Syntax, list[str]], data: st.DataObject) -> None:
    """A marker lost, doubled or renumbered is refused; what is left of one leaks."""
    syntax, codes = coded
    protected = protect("Save " + " and ".join(codes) + " here", syntax)
    markers = re.findall(r"⟦/?\d+⟧", protected.text)
    assume(markers)
    marker = data.draw(st.sampled_from(markers))
    said = data.draw(st.sampled_from(["", marker * 2, "⟦77⟧", marker[:-1], marker.replace("⟦", "")]))
    answer = protected.text.replace(marker, said, 1)
    try:
        text = restore(protected, answer)
    except MarkersBroken:
        return
    assert ("leaks", "error") in names(found("Save", text, syntax))
