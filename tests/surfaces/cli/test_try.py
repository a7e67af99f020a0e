import pytest, time, resource, subprocess
from tests.surfaces.cli.desk import *


def show(t, name=""):
    print("\n##", name, t.code)
    print(t.out)
    print(t.err)


def test_limit(desk):
    desk.write("small.json", {"k": "Hello there my friend"})
    desk.write("large.json", '{"k": "Hello there", "pad": [' + ",".join(["0"] * 1_500_000) + "]}")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_900_000, hard))
    try:
        t = desk.translate("small.json", "large.json", "--to", "fr")
        show(t)
        show(desk.run("translate", "small.json", "large.json", "--to", "fr"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    print(
        sorted((p.name, p.stat().st_size) for p in desk.folder.iterdir()),
        Path(desk.database_url[10:]).stat().st_size,
    )
    show(desk.run("retry", t.object["manifest_id"]))
    show(desk.run("translate", "small.json", "large.json", "--to", "fr"))
    print(
        sorted((p.name, p.stat().st_size) for p in desk.folder.iterdir()),
        Path(desk.database_url[10:]).stat().st_size,
    )


def test_ro(desk):
    desk.write("a/x.json", {"k": "Hello there my friend"})
    desk.write("b/x.json", {"k": "Hello there my friend"})
    desk.write("c/x.json", {"k": "Hello there my friend, also"})
    desk.write("d/x.json", {"k": "Hello there my friend, also"})
    (desk.folder / "c/x.fr.json").mkdir()
    (desk.folder / "d/x.fr.json").symlink_to("/etc/hosts")
    subprocess.run(["chattr", "+i", str(desk.folder / "b")], check=True)
    try:
        t = desk.translate("a", "b", "c", "d", "--to", "fr")
        show(t)
        t = desk.run("translate", "a", "b", "c", "--to", "fr")
        show(t)
    finally:
        subprocess.run(["chattr", "-i", str(desk.folder / "b")], check=True)
    show(desk.run("translate", "a", "b", "c", "--to", "fr"))
