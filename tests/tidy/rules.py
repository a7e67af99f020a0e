"""Every rule of the house, in one place and without an exception list.

Names of modules are relative to the package (`flow.site.admission`). The checkers beside this file and
import-linter are both fed from here.
"""

from __future__ import annotations

from collections.abc import Mapping

PACKAGE = "dragoman"

LAYERS: Mapping[str, tuple[str, ...]] = {
    "": (
        "__main__",
        "surfaces",
        "wiring",
        "workers",
        "flow",
        "ledger",
        "store|content|providers|families|queues",
        "model",
        "machines",
        "kernel",
    ),
    "surfaces": ("cli|http|dashboard", "web"),
}
"""Container to its rooms, top first: imports go down only. Rooms on one line never import each other."""

PLUGINS: Mapping[str, str] = {
    "providers": "Provider",
    "families": "Family",
    "queues": "Queue",
    "content.formats": "Format",
    "content.sources": "Source",
}
"""Rooms of plug-ins, and the protocol of `model.contracts` that their members implement.

A member is imported by `wiring` and by nobody else, not even by its siblings. The other modules of such a
room are ground that its members share: nobody outside imports it but `wiring`.
"""

STEPS: Mapping[str, int] = {"flow": 2, "store.rows": 1}
"""Rooms whose parts, so many names deep, hand over without knowing each other."""

FLOORS: Mapping[str, tuple[str, ...]] = {
    "store.rows": ("store.acts", "store.database", "store.migrations"),
}
"""Lower floors of a room, and what they never import."""

INDOORS: Mapping[str, str] = {"store.rows": "store"}
"""Modules that nobody imports from outside of their room."""

ACTS = "store.acts"
"""Where whole transactions stand: only what lies here is run. A read may be put together anywhere."""

APPEND_ONLY = frozenset({"history", "reconciliations"})
"""Tables whose rows nobody changes, and nobody but `RETENTION` removes."""

RETENTION = "store.acts.retiring"

_HTTP = ("providers", "families", "content.sources", "surfaces.cli")

DOORS: Mapping[str, tuple[str, ...]] = {
    # databases
    "sqlalchemy": ("store",),
    "alembic": ("store",),
    "sqlite3": ("store",),
    "psycopg": ("store",),
    "psycopg_pool": ("store",),
    "pymysql": ("store",),
    "asyncpg": ("store",),
    "aiosqlite": ("store",),
    "MySQLdb": ("store",),
    "mariadb": ("store",),
    # the network, as a client
    "aiohttp": _HTTP,
    "httpx": _HTTP,
    "httpx2": _HTTP,
    "requests": _HTTP,
    "urllib3": _HTTP,
    "urllib.request": _HTTP,
    "http.client": _HTTP,
    "smtplib": _HTTP,
    "aiobotocore": ("queues",),
    "botocore": ("queues",),
    "boto3": ("queues",),
    "imaplib": _HTTP,
    "ftplib": _HTTP,
    "azure": ("providers",),
    # time and chance
    "time": ("kernel",),
    "random": ("kernel",),
    "uuid": ("kernel",),
    "uuid_utils": ("kernel",),
    "secrets": ("kernel",),
    "os.urandom": ("kernel",),
    "os.getrandom": ("kernel",),
    "datetime.datetime.now": ("kernel",),
    "datetime.datetime.utcnow": ("kernel",),
    "datetime.datetime.today": ("kernel",),
    "datetime.date.today": ("kernel",),
    # imports that no reader sees
    "importlib": (),
    "pkgutil": (),
    "runpy": (),
    "imp": (),
    "__import__": (),
    # what is told to whoever watches
    "prometheus_client": ("kernel",),
    "structlog": ("kernel",),
    # the frameworks of the doors
    "fastapi": ("surfaces",),
    "starlette": ("surfaces",),
    "uvicorn": ("surfaces",),
    "typer": ("surfaces.cli",),
    "rich": ("surfaces.cli",),
}
"""Each outside power, by its dotted name, and the rooms that may use it."""

WORDS_OF_ELSEWHERE = (
    # package registries, and folders of one machine; spelled so that this line does not hold them
    r"\b(?:pyp[i]|pythonhoste[d]|npmj[s]|debia[n])\.(?:org|com|net)\b",
    r"(?<![\w.}~])/(?:wor[k]|far[m]|tm[p]|roo[t]|hom[e]/\w+|User[s]/\w+)/[A-Za-z0-9_.-]",
)
"""What no committed file says."""

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

NAMES_THAT_SAY_NOTHING = frozenset(
    {"base", "common", "core", "helper", "helpers", "manager", "misc", "types", "util", "utils"}
)
