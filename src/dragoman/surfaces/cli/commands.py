"""The command line `dragoman`: parse, call one step, render. Nothing is decided here.

What a command needs is imported when it runs, so that `dragoman --help` answers at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman import __version__
from dragoman.kernel.errors import DragomanError
from dragoman.surfaces.cli import (
    job_commands,
    library_commands,
    outbox_commands,
    process_commands,
    translate_commands,
)
from dragoman.surfaces.cli.report import COULD_NOT_RUN, INTERRUPTED
from dragoman.surfaces.cli.typed import split

Build = Callable[..., Any]
Work = Callable[[Any], Coroutine[Any, Any, int]]

Database = Annotated[
    str, typer.Option("--db", help="Database URL; the default is a SQLite file in .dragoman/.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
BaseUrl = Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible server.")]
Manifest = Annotated[str, typer.Argument(help="The manifest's id, as `translate` printed it.")]


def build_cli(build_server: Build) -> typer.Typer:
    """The whole command line; `build_server` makes the HTTP app for `serve`."""
    cli = typer.Typer(
        name="dragoman",
        help="Bulk translation that finishes.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    translate_commands.add(cli, run)
    _add_check(cli)
    _add_manifest_commands(cli)
    _add_outcome_commands(cli)
    _add_processes(cli, build_server)
    process_commands.add_processes(cli, run, build_server)
    library_commands.add_library(cli, run)
    outbox_commands.add(cli, run)
    job_commands.add(cli, run)
    _add_upkeep(cli)
    return cli


def run(work: Work, as_json: bool = False, **flags: Any) -> None:
    """Load settings, run one command, exit with its code; an error of ours is told with its remedy."""
    from dragoman.wiring.settings import load

    chosen = {name: value for name, value in flags.items() if value not in (None, "")}
    told(lambda: asyncio.run(work(load(Path.cwd(), **chosen))), as_json)


def told(work: Callable[[], int], as_json: bool) -> None:
    """Run one command to its exit code; what goes wrong is told as it goes for all commands."""
    try:
        code = work()
    except DragomanError as error:
        from dragoman.surfaces.cli.telling import tell_error

        tell_error(error, as_json)
        code = COULD_NOT_RUN
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)


def _add_check(cli: typer.Typer) -> None:
    @cli.command()
    def check(
        paths: Annotated[list[str], typer.Argument(help="Files or folders.", metavar="PATH…")],
        to: Annotated[
            list[str] | None, typer.Option("--to", help="Only these target locales, e.g. fr,de.")
        ] = None,
        source: Annotated[str, typer.Option("--from", help="Source locale.")] = "",
        out: Annotated[
            str,
            typer.Option(
                help="Where translations lie: {locale} {path} {dir} {stem} {ext}.", metavar="PATTERN"
            ),
        ] = "",
        form: Annotated[str, typer.Option("--format", help="text, json or sarif.")] = "text",
        errors_only: Annotated[bool, typer.Option("--errors-only", help="Leave out warnings.")] = False,
        fail_on: Annotated[
            str, typer.Option(help="What makes the exit code 3: error, warning or never.")
        ] = "error",
    ) -> None:
        """Check the translations that stand already; calls nobody, writes nothing."""
        from dragoman.surfaces.cli import checking

        wanted = checking.Wanted(tuple(paths), split(to or []), source, out, form, errors_only, fail_on)
        run(lambda settings: checking.check(settings, wanted), form == "json")


def _add_manifest_commands(cli: typer.Typer) -> None:
    @cli.command()
    def status(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """Counters, money, failures and what waits of a manifest."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.status(settings, manifest, as_json), as_json, database_url=db)

    @cli.command()
    def retry(
        manifest: Manifest,
        intent: Annotated[list[str] | None, typer.Option("--intent", help="Only these failures.")] = None,
        base_url: BaseUrl = "",
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Try again what failed and may be retried, and work until it has ended."""
        from dragoman.surfaces.cli import steering

        run(
            lambda settings: steering.retry(settings, manifest, intent, base_url, as_json),
            as_json,
            database_url=db,
        )

    @cli.command()
    def cancel(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """End what is open; what was paid for is kept in memory."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.cancel(settings, manifest, as_json), as_json, database_url=db)

    @cli.command("give-up")
    def give_up(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """Fail what waits for jobs that a far engine has lost; it may be retried, and be paid again."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.give_up(settings, manifest, as_json), as_json, database_url=db)

    @cli.command()
    def pause(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """Let a manifest rest: nothing of it starts until `dragoman resume`."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.pause(settings, manifest, as_json), as_json, database_url=db)

    @cli.command()
    def resume(
        manifest: Manifest, base_url: BaseUrl = "", db: Database = "", as_json: AsJson = False
    ) -> None:
        """Let a paused manifest go on, and work it."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.resume(settings, manifest, base_url, as_json), as_json, database_url=db)


def _add_outcome_commands(cli: typer.Typer) -> None:
    @cli.command()
    def watch(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """Show a manifest's progress until it ends; works nothing."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.watch(settings, manifest, as_json), as_json, database_url=db)

    @cli.command()
    def promote(
        manifest: Manifest, base_url: BaseUrl = "", db: Database = "", as_json: AsJson = False
    ) -> None:
        """Translate what a canary left out, and work until it has ended."""
        from dragoman.surfaces.cli import steering

        run(
            lambda settings: steering.promote(settings, manifest, base_url, as_json),
            as_json,
            database_url=db,
        )

    @cli.command()
    def results(manifest: Manifest, db: Database = "") -> None:
        """Print the texts of a manifest, one JSON object a document and locale."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.results(settings, manifest), database_url=db)

    @cli.command()
    def revert(manifest: Manifest, db: Database = "", as_json: AsJson = False) -> None:
        """Take a manifest's files back to what stood there; what people changed since is left alone."""
        from dragoman.surfaces.cli import steering

        run(lambda settings: steering.revert(settings, manifest, as_json), as_json, database_url=db)


def _add_processes(cli: typer.Typer, build_server: Build) -> None:
    @cli.command()
    def serve(
        host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="Port to listen on.")] = 8080,
        db: Database = "",
    ) -> None:
        """Serve the HTTP API and run all workers in one process."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.serve(settings, build_server, host, port), database_url=db)

    @cli.command()
    def worker(
        role: Annotated[
            list[str] | None, typer.Option("--role", help="site, engine, publishing; all when absent.")
        ] = None,
        host: Annotated[str, typer.Option(help="Address to listen on, where a port is named.")] = "127.0.0.1",
        port: Annotated[
            int, typer.Option(help="Answer /healthz, /readyz and /metrics here; 0 listens nowhere.")
        ] = 0,
        db: Database = "",
    ) -> None:
        """Run worker loops until stopped."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.work(settings, role or [], build_server, host, port), database_url=db)


def _add_upkeep(cli: typer.Typer) -> None:
    @cli.command()
    def init(
        source: Annotated[str, typer.Option("--from", help="Source locale; found when absent.")] = "",
        to: Annotated[list[str] | None, typer.Option("--to", help="Target locales, e.g. fr,de.")] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Write dragoman.toml from what the folder holds: formats, layouts, locales."""
        from dragoman.surfaces.cli import starting

        def start() -> int:
            return starting.init(Path.cwd(), source, split(to), yes, as_json)

        told(start, as_json)

    tokens = typer.Typer(help="Tokens for the HTTP API.", no_args_is_help=True)
    cli.add_typer(tokens, name="tokens")

    @tokens.command("create")
    def create_token(
        actor: Annotated[str, typer.Argument(help="Who acts with it.")],
        capability: Annotated[list[str] | None, typer.Option("--capability", help="Repeatable.")] = None,
        db: Database = "",
    ) -> None:
        """Make a token and print it once."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.create_token(settings, actor, capability or []), database_url=db)

    @tokens.command("revoke")
    def revoke_token(
        token_id: Annotated[str, typer.Argument(help="The token's id.")], db: Database = ""
    ) -> None:
        """Revoke a token at once."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.revoke_token(settings, token_id), database_url=db)

    @cli.command()
    def migrate(db: Database = "") -> None:
        """Bring the database's schema up to date."""
        from dragoman.surfaces.cli import serving

        run(serving.migrate, database_url=db)

    @cli.command()
    def doctor(db: Database = "", as_json: AsJson = False) -> None:
        """Say what is wrong and what to do about it."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.doctor(settings, as_json), as_json, database_url=db)

    @cli.command()
    def version() -> None:
        """Print the version."""
        print(__version__)
