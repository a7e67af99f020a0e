"""`dragoman estimate`: the price by locale, memory included; nobody is called and nothing is written."""

from __future__ import annotations

from dragoman.store.schema import metadata
from tests.surfaces.cli.desk import Desk, answering, sent
from tests.surfaces.cli.test_money import WORDS, _hire


def _counts(desk: Desk) -> dict[str, int]:
    return {name: len(desk.rows(name)) for name in metadata.tables}


def test_an_estimate_calls_nobody_writes_nothing_and_knows_the_memory(desk: Desk) -> None:
    """What the run then pays lies between nothing and `at_most`, and near what is `likely`."""
    texts = WORDS | {"again": WORDS["apples"], "number": "42"}
    desk.write("locales/en.json", texts)
    with answering() as server:
        _hire(desk, server.url)
        order = ("locales/en.json", "--to", "fr,de", "--provider", "hired")
        desk.run("migrate")
        before, names = _counts(desk), desk.names()
        told = desk.run("estimate", *order, "--json")
        assert (told.code, sent(server)) == (0, []), told
        assert (_counts(desk), desk.names()) == (before, names)
        fr = next(one for one in told.object["locales"] if one["locale"] == "fr")
        assert (fr["fields"], fr["passed_through"], fr["repeated"]) == (6, 1, 1)
        assert (fr["to_translate"], fr["from_memory"], fr["calls"]) == (4, 0, 4)
        total = told.object["total"]
        assert total["likely"]["usd"] == sum(one["likely"]["usd"] for one in told.object["locales"])
        paid = desk.translate(*order).object["cost"]["paid_usd"]
        assert 0 < paid <= total["at_most"]["usd"]
        assert total["likely"]["usd"] / 2 < paid < total["likely"]["usd"] * 2
        desk.write("other/en.json", texts | {"fresh": "A sentence about figs"})
        again = desk.run("estimate", "other/en.json", "--to", "fr", "--provider", "hired", "--json").object
        assert (again["total"]["from_memory"], again["total"]["to_translate"]) == (5, 1)


def test_what_cannot_be_reckoned_is_named(desk: Desk) -> None:
    desk.write("locales/en.json", WORDS)
    desk.write("broken/en.json", "{")
    told = desk.run("estimate", "locales", "broken", "--to", "fr", "--json")
    assert told.code == 3
    assert [one["document"] for one in told.object["unreadable"]] == ["broken/en.json"]
    assert told.object["total"]["to_translate"] == len(WORDS)
    assert told.object["total"]["likely"]["usd"] == 0, "pseudo costs nothing"
    assert "4 of 4 fields" in desk.run("estimate", "locales", "--to", "fr").out
