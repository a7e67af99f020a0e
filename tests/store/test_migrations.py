"""Migrations make exactly the schema, one migrator at a time, and may be killed anywhere."""

from __future__ import annotations

import ast
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import StoreError
from dragoman.store import migrate as migrating
from dragoman.store import revisions
from dragoman.store.engines import engine_of
from dragoman.store.migrate import current, differences, migrate, prepare
from dragoman.store.migrations import generate
from dragoman.store.revisions import head, standing
from dragoman.store.servers import Options
from tests.doubles.databases import make_schema


@contextlib.contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    engine = engine_of(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


class Killed(BaseException):
    """The migrator dies between two statements."""


@contextlib.contextmanager
def killed_after(statements: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every engine dies once it has changed the schema this many times."""
    seen: list[str] = []
    real = engine_of

    def mortal(url: str, options: Options | None = None) -> sa.Engine:
        engine = real(url, options)

        @sa.event.listens_for(engine, "after_cursor_execute")
        def _count(*event: Any) -> None:
            if event[2].lstrip().startswith(("CREATE", "ALTER", "DROP")):
                seen.append(event[2])
                if len(seen) >= statements:
                    raise Killed

        return engine

    with monkeypatch.context() as patch:
        patch.setattr(migrating, "engine_of", mortal)
        yield seen


def test_migrations_from_nothing_give_exactly_the_schema(bare_url: str) -> None:
    assert current(bare_url) is None
    assert migrate(bare_url) is True
    assert current(bare_url) == head()
    with connected(bare_url) as connection:
        assert differences(connection) == []


def test_a_second_migration_changes_nothing(bare_url: str) -> None:
    migrate(bare_url)
    assert migrate(bare_url) is False


def test_what_the_tests_build_from_the_schema_is_the_schema(bare_url: str) -> None:
    make_schema(bare_url)
    with connected(bare_url) as connection:
        assert differences(connection) == []


def test_the_schema_has_nothing_that_no_revision_makes() -> None:
    assert generate._changes() == []


def test_a_migration_killed_after_any_statement_is_simply_run_again(
    bare_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MariaDB each run goes on from what stands; on the others it begins anew."""
    resumes = "mariadb" in bare_url
    for death in range(1, 30):
        statements = 25 if resumes else [1, 30, 60, 9999][death - 1]
        with killed_after(statements, monkeypatch) as seen:
            try:
                migrate(bare_url)
                break
            except Killed:
                assert current(bare_url) != head()
                assert len(seen) == statements
    assert death > 3
    assert current(bare_url) == head()
    with connected(bare_url) as connection:
        assert differences(connection) == []


def test_a_schema_that_is_not_ours_is_told_and_never_stamped(bare_url: str) -> None:
    on_jobs = " ON jobs" if "mariadb" in bare_url else ""
    damages = {
        "ALTER TABLE lanes ADD COLUMN extra INTEGER": "extra",
        "ALTER TABLE manifests DROP COLUMN canceled_at": "canceled_at",
        "DROP TABLE snapshots": "snapshots",
        f"DROP INDEX ix_jobs_due{on_jobs}": "ix_jobs_due",
        "CREATE INDEX ix_more ON jobs (created_at)": "ix_more",
    }
    migrate(bare_url)
    with connected(bare_url) as connection:
        for damage in damages:
            connection.execute(sa.text(damage))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
        connection.commit()
        found = differences(connection)
    for name in damages.values():
        assert any(name in line for line in found), (name, found)
    with pytest.raises(StoreError, match="differs"):
        migrate(bare_url)
    assert current(bare_url) != head()


def test_an_index_over_other_columns_is_made_anew(bare_url: str) -> None:
    migrate(bare_url)
    engine = engine_of(bare_url)
    with engine.begin() as connection:
        where = " ON jobs" if "mariadb" in bare_url else ""
        connection.execute(sa.text(f"DROP INDEX ix_jobs_due{where}"))
        connection.execute(sa.text("CREATE INDEX ix_jobs_due ON jobs (created_at)"))
        connection.execute(sa.text("DELETE FROM alembic_version"))
    engine.dispose()
    assert migrate(bare_url) is True
    with connected(bare_url) as connection:
        assert differences(connection) == []


@pytest.mark.parametrize("bare_url", ["mariadb"], indirect=True)
def test_another_collation_is_found_on_mariadb(bare_url: str) -> None:
    make_schema(bare_url)
    with connected(bare_url) as connection:
        connection.execute(sa.text("ALTER TABLE lanes COLLATE utf8mb4_general_ci"))
        assert differences(connection) == ["table lanes is InnoDB with utf8mb4_general_ci"]


def test_a_newer_database_is_refused_and_left_alone(bare_url: str) -> None:
    migrate(bare_url)
    engine = engine_of(bare_url)
    with engine.begin() as connection:
        (reaches,) = connection.execute(
            sa.text("SELECT value FROM cursors WHERE name = 'schema_floor'")
        ).one()
        assert reaches == revisions.floor()
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(sa.text("UPDATE cursors SET value = '9998' WHERE name = 'schema_floor'"))
    engine.dispose()
    for act in (migrate, prepare):
        with pytest.raises(StoreError) as caught:
            act(bare_url)
        assert caught.value.code == "database_newer"
    assert current(bare_url) == "9999"


def test_an_embedded_database_is_migrated_before_work_and_a_server_is_not(bare_url: str) -> None:
    if "sqlite" in bare_url:
        prepare(bare_url)
        assert current(bare_url) == head()
    else:
        with pytest.raises(StoreError) as caught:
            prepare(bare_url)
        assert caught.value.code == "schema_unavailable"
        assert current(bare_url) is None


def test_the_second_of_two_migrators_waits_and_then_says_who_is_at_work(
    bare_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "MIGRATION_LOCK_SECONDS", 1)
    monkeypatch.setattr("dragoman.store.engines.MIGRATION_LOCK_SECONDS", 1)
    at_work, go_on = threading.Event(), threading.Event()
    upgrade = migrating._upgrade

    def slow(connection: sa.Connection) -> None:
        at_work.set()
        assert go_on.wait(30)
        upgrade(connection)

    monkeypatch.setattr(migrating, "_upgrade", slow)
    first = threading.Thread(target=migrate, args=(bare_url,))
    first.start()
    try:
        assert at_work.wait(30)
        with pytest.raises(StoreError, match="locked by another process"):
            migrate(bare_url)
    finally:
        go_on.set()
        first.join()
    assert current(bare_url) == head()


def test_versions_compare_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions").mkdir()
    for name in ("r0001_first.py", "r0012_then.py", "__init__.py", "notes.txt"):
        (tmp_path / "versions" / name).touch()
    monkeypatch.setattr(revisions, "DIRECTORY", tmp_path)
    assert head() == "0012"
    assert [standing(version) for version in (None, "0002", "0012", "0013")] == [
        "older",
        "older",
        "current",
        "newer",
    ]


def added_by(upgrade: ast.FunctionDef, others: dict[str, ast.FunctionDef]) -> Iterator[tuple[str, ast.Call]]:
    """Every step of an upgrade, and those of the functions of its file that it calls."""
    for node in ast.walk(upgrade):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in others:
                yield from added_by(others[node.func.id], others)
            elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("steps", "op"):
                yield node.func.attr, node


def is_safe(column: ast.expr) -> bool:
    """Whether a program that does not know a new column can insert rows without it."""
    assert isinstance(column, ast.Call)
    given = {word.arg: ast.unparse(word.value) for word in column.keywords}
    return given.get("nullable", "True") == "True" or "server_default" in given


def test_no_revision_drops_or_narrows_what_the_release_before_reads() -> None:
    """[M-318, M-324] an upgrade adds tables, indexes and columns that old programs need not know."""
    files = sorted((revisions.DIRECTORY / "versions").glob("r*.py"))
    assert len(files) >= 3
    for file in files:
        tree = ast.parse(file.read_text("utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        upgrade = functions.pop("upgrade")
        functions.pop("downgrade", None)
        taken = list(added_by(upgrade, functions))
        assert taken
        for step, call in taken:
            assert step in ("create_table", "create_index", "add_column", "f"), f"{file.name}: {step}"
            assert step != "add_column" or is_safe(call.args[1]), f"{file.name}: {ast.unparse(call)}"
