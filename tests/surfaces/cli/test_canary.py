"""`translate --canary` and `promote` at a terminal."""

from __future__ import annotations

from tests.surfaces.cli.desk import Desk


def test_a_canary_writes_so_many_files_and_promote_writes_the_rest(desk: Desk) -> None:
    """[C-075, C-084] and what the canary wrote is neither asked for nor written again."""
    for number in range(6):
        desk.write(f"docs/{number}.json", {"k": f"Hello number {number}"})
    told = desk.run("translate", "docs", "--to", "fr", "--canary", "2", "--json")
    assert told.code == 0, (told.out, told.err)
    manifest = told.object["manifest_id"]
    assert len(told.object["outputs"]) == 2
    assert told.object["counts"]["skipped"] == 4
    again = desk.run("translate", "docs", "--to", "de", "--canary", "1")
    assert "go on by `dragoman promote " in again.out + again.err
    rest = desk.run("promote", manifest, "--json")
    assert rest.code == 0, (rest.out, rest.err)
    assert len(rest.object["outputs"]) == 4
    assert not set(rest.object["outputs"]) & set(told.object["outputs"])
    assert rest.object["manifest_id"] != manifest
    nothing = desk.run("promote", rest.object["manifest_id"], "--json")
    assert (nothing.code, nothing.error["code"]) == (1, "nothing_to_promote")
