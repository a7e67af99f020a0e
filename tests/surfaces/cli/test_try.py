import pytest, time
from tests.surfaces.cli.desk import *


def show(t, name=""):
    print("\n##", name, t.code)
    print(t.out)
    print(t.err)


def test_a(desk):
    desk.write("a.json", {"k": "Hello there my friend", "j": "Bye now and go home"})
    desk.write("g.md", "# Title here\n\nSome text.\n")
    t = desk.translate("a.json", "g.md", "--to", "fr,de")
    show(t)
    m = t.object["manifest_id"]
    for w in (
        ["status", m],
        ["status", m, "--json"],
        ["results", m],
        ["retry", m],
        ["retry", m, "--json"],
        ["cancel", m],
        ["cancel", m, "--json"],
        ["status", "nope"],
        ["status", "nope", "--json"],
        ["results", "nope"],
        ["cancel", "nope"],
        ["revert", "nope", "--json"],
        ["retry", "nope"],
        ["doctor"],
        ["doctor", "--json"],
        ["migrate"],
        ["tokens", "create", "ada"],
        ["tokens", "create", "ada", "--capability", "fly"],
        ["tokens", "revoke", "nope"],
        ["worker", "--role", "cook"],
    ):
        show(desk.run(*w), w)
    print("dry")
    show(desk.translate("a.json", "--to", "es", "--dry-run"))
    show(desk.run("translate", "a.json", "--to", "es", "--dry-run"))
    print(sorted(p.name for p in desk.folder.iterdir()))
    show(desk.translate("a.json", "--to", "es"))
    print("changed")
    desk.write("a.json", {"k": "Hello there my enemy", "j": "Bye now and go home", "n": "New one"})
    desk.write("g.md", "# Title here\n\nSome new text.\n")
    show(desk.translate("a.json", "g.md", "--to", "fr,de"))
    show(desk.translate("a.json", "g.md", "--to", "fr,de", "--mode", "changed"))
    print(desk.read("a.fr.json"), desk.read("g.fr.md"))
    desk.write("a.fr.json", desk.read("a.fr.json").replace("Hello", "Salut").replace("[", "<"))
    desk.write("g.fr.md", "# Titre\n\nUn texte\n")
    desk.write("a.json", {"k": "Hello there my third", "j": "Bye now and go away", "n": "New one"})
    desk.write("g.md", "# Title there\n\nSome new text.\n")
    show(desk.translate("a.json", "g.md", "--to", "fr,de", "--mode", "changed"))
    print(desk.read("a.fr.json"), desk.read("g.fr.md"))
    show(desk.translate("a.json", "g.md", "--to", "fr,de", "--mode", "all"))
    t = desk.translate("a.json", "g.md", "--to", "fr,de", "--force")
    show(t)
    print(desk.read("a.fr.json"), desk.read("g.fr.md"))
    m = t.object["manifest_id"]
    desk.write("g.fr.md", "# Titre\n\nUn texte encore\n")
    show(desk.run("revert", m, "--json"))
    show(desk.run("status", m))
    show(desk.run("revert", m))
    print(desk.read("a.fr.json"), desk.read("g.fr.md"))
