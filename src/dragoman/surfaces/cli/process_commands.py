"""The commands `dragoman run` and `dragoman api`: what they are called and take, and no more."""

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
    def api(
        host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="Port to listen on.")] = 8080,
        db: Database = "",
    ) -> None:
        """Serve the HTTP API without any worker; others do the work."""
        from dragoman.surfaces.cli import serving

        run(lambda settings: serving.serve(settings, build_server, host, port, ()), database_url=db)
