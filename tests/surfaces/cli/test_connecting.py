"""`dragoman up` at a server: sent, translated there once, put in place here, whatever breaks in between."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.doubles.databases import Places
from tests.doubles.proxy import Deed, Proxy
from tests.surfaces.cli.desk import Desk, Told, answering, until
from tests.surfaces.cli.test_serving import ask, free_port

HERE = 'project = "app"\nlocales = ["fr"]\nsources = ["en"]\n'
CALLS = (b"PUT /v1", b"POST /v1", b"/app/runs/", b"GET /v1/workspaces/default/projects/app/file?")
CUTS: tuple[Deed, Deed] = ("cut_answer", "cut_before")
THERE = 'locales = ["de"]\n[projects.app]\nsource = "upload"\n'


class Server(NamedTuple):
    """A server's own tree and address, and a token for it."""

    desk: Desk
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """The process, once it answers; killed afterwards."""
        process = self.desk.start("serve", "--port", str(self.port))
        try:
            until(lambda: _answers(self.url))
            yield process
        finally:
            process.kill()
            process.communicate()


def _answers(url: str) -> bool:
    with suppress(OSError):
        return ask(f"{url}/readyz") is not None
    return False


@pytest.fixture
def server(desk: Desk, tmp_path: Path, database_places: Places, monkeypatch: pytest.MonkeyPatch) -> Server:
    folder = tmp_path / "server"
    folder.mkdir()
    there = Desk(folder, database_places.find("sqlite").fresh(folder))
    there.configure(THERE)
    made = there.run("tokens", "create", "ada", "--capability", "manifests:write")
    token = json.loads(made.out)["token"]
    monkeypatch.setenv("DRAGOMAN_TOKEN", token)
    return Server(there, free_port(), token)


def up(desk: Desk, url: str, *words: str) -> Told:
    return desk.run("up", "--server", url, *words, "--json", db=False)


def test_a_project_makes_the_round_trip_and_what_people_do_here_leads(desk: Desk, server: Server) -> None:
    """[J-106] sources go up, translations come down; an edit here goes up too and is protected there."""
    desk.configure(f'{HERE}server = "{server.url}"\n')
    desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
    desk.write("en/b.json", {"one": "One"})
    with server.running():
        told = desk.run("up", "--json", db=False)
        assert told.code == 0, told
        assert (told.object["state"], told.object["outputs"]) == ("complete", ["fr/a.json", "fr/b.json"])
        assert told.object["fields"]["via_ai"] == 3
        assert desk.texts("fr/a.json").keys() == {"hello", "bye"}
        assert not (desk.folder / ".dragoman/dragoman.sqlite").exists(), "no database is needed here"
        shown = desk.run("up", db=False)
        assert (shown.code, shown.out) == (0, "nothing to do: everything is translated\n")

        desk.write("fr/a.json", {**desk.texts("fr/a.json"), "bye": "Ciao, dit une personne"})
        desk.write("en/a.json", {"hello": "Hello, all", "bye": "Bye, all"})
        (desk.folder / "en/b.json").unlink()
        before = desk.texts("fr/a.json")
        told = desk.run("up", "--json", db=False)
        after = desk.texts("fr/a.json")
        assert after["bye"] == "Ciao, dit une personne"
        assert after["hello"] != before["hello"]
        there = ask(f"{server.url}/v1/workspaces/default/projects/app/files", server.token)
        assert [item["path"] for item in there["items"]] == ["en/a.json", "fr/a.json"]  # type: ignore[attr-defined]
        assert told.object["outputs"] == ["fr/a.json"]


def test_a_connection_that_is_cut_costs_nothing_twice(desk: Desk, server: Server) -> None:
    """[J-106] before the server and after it, at each kind of call: each text is paid once all the same."""
    with answering() as provider:
        server.desk.hire(provider.url, more='provider = "hired"\nlocales = ["de"]\n')
        server.desk.configure(server.desk.read("dragoman.toml") + '[projects.app]\nsource = "upload"\n')
        desk.configure(HERE)
        desk.write("en/a.json", {"hello": "Hello", "bye": "Bye"})
        with server.running():
            proxy = Proxy("127.0.0.1", server.port)
            try:
                lost = [proxy.on(marker, deed) for marker in CALLS for deed in CUTS]
                told = up(desk, f"http://127.0.0.1:{proxy.port}")
            finally:
                proxy.close()
        assert all(rule.happened.is_set() for rule in lost)
        assert (told.code, told.object["state"], told.object["outputs"]) == (0, "complete", ["fr/a.json"])
        paid = sorted(text for call in provider.calls for text in call.texts)
        assert paid == ["Bye", "Hello"]


def test_both_sides_may_be_killed_and_the_same_command_goes_on(desk: Desk, server: Server) -> None:
    """[J-106] the one here while the run is at work there, and the one there while it is waited for."""
    desk.configure(HERE)
    for number in range(12):
        desk.write(f"en/{number:02}.json", {"t": f"Text number {number}"})
    words = ("up", "--server", server.url, "--json")
    with server.running():
        first = Desk(desk.folder, "").start(*words)
        until(lambda: "push_id" in _memo(desk))
        first.send_signal(signal.SIGKILL)
        first.communicate()
        begun = _memo(desk)["push_id"]
        second = Desk(desk.folder, "").start(*words)
        until(lambda: len(list(server.desk.folder.rglob("fr/*.json"))) > 2)
    assert second.poll() is None or second.returncode == 0
    with server.running():
        told = desk.end(second)
        assert told.code == 0, told
        assert told.object.get("push_id", begun) == begun
        assert len(list(desk.folder.glob("fr/*.json"))) == 12
        assert up(desk, server.url).object["outputs"] == []


def _memo(desk: Desk) -> dict[str, str]:
    with suppress(OSError, ValueError):
        return dict(json.loads(desk.read(".dragoman/pulled.json")))
    return {}


def test_what_cannot_be_is_told_before_anything_is_sent(
    desk: Desk, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token, a project that is not the server's, another source locale; no secret in what is told."""
    desk.configure(HERE)
    desk.write("en/a.json", {"t": "Text"})
    with server.running():
        other = up(desk, server.url, "--to", "en")
        assert (other.code, other.error["code"]) == (1, "empty_request")
        desk.configure(HERE.replace("app", "another"))
        told = up(desk, server.url)
        assert (told.code, told.error["code"]) == (1, "not_found")
        monkeypatch.setenv("DRAGOMAN_TOKEN", "not-a-token")
        told = up(desk, server.url)
        assert (told.code, told.error["code"]) == (1, "unauthorized")
        assert "not-a-token" not in told.out
        desk.configure(HERE + 'source_locale = "it"\nserver_token_variable = "NOBODY"\n')
        told = up(desk, server.url)
        assert (told.code, told.error["place"]) == (1, "server")
    assert not list((server.desk.folder / ".dragoman").rglob("*.json"))
