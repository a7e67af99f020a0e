"""The commands `dragoman run`, `dragoman up` and `dragoman api`: their names and what they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

Run = Callable[..., None]
Build = Callable[..., Any]
Role = Annotated[list[str] | None, typer.Option("--role", help="site, engine, publishing; all when absent.")]
Database = Annotated[str, typer.Option("--db", help="Database URL; the default is a file in .dragoman/.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def add_processes(cli: typer.Typer, run: Run, build_server: Build) -> None:
    """Register the commands; `run` carries one out."""

    @cli.command("run")
    def run_once(
        time_budget: Annotated[
            float, typer.Option(min=1, max=86_400, help="Seconds after which nothing more is begun.")
        ] = 50,
        max_manifests: Annotated[
            int, typer.Option(min=1, max=1_000, help="Manifests ended after which nothing more is begun.")
        ] = 20,
        role: Role = None,
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Do what is due once, and end: for cron and Kubernetes."""
        from dragoman.surfaces.cli import draining

        run(
            lambda settings: draining.drain(settings, role or [], time_budget, max_manifests, as_json),
            as_json,
            database_url=db,
        )

    @cli.command()
    def up(
        to: Annotated[
            list[str] | None, typer.Option("--to", help="Target locales; `locales` when absent.")
        ] = None,
        provider: Annotated[str, typer.Option(help="As in translate; `provider` when absent.")] = "",
        push_id: Annotated[
            str, typer.Option(help="The push that this is for: the same one again joins the same run.")
        ] = "",
        server: Annotated[
            str,
            typer.Option(help="Have it done at this server, and fetch the results; `server` when absent."),
        ] = "",
        frozen: Annotated[
            bool, typer.Option("--frozen", help="Only hold dragoman.lock to the files; 3 where one is stale.")
        ] = False,
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Bring the project of dragoman.toml up to date: pass after pass, until nothing is wanted."""
        from dragoman.surfaces.cli import converging

        locales = tuple(one.strip() for chosen in to or () for one in chosen.split(",") if one.strip())
        asked = converging.Asked(locales, provider, push_id, server, frozen, as_json)
        run(lambda settings: converging.up(settings, asked), as_json, database_url=db)

    @cli.command()
    def api(
        host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="Port to listen on.")] = 8080,
        db: Database = "",
    ) -> None:
        """Serve the HTTP API without any worker; others do the work."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.serve(settings, build_server, host, port, ()), database_url=db)
