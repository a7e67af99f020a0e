"""The commands of `dragoman jobs`, as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

Run = Callable[..., None]

_Database = Annotated[
    str, typer.Option("--db", help="Database URL; the default is a SQLite file in .dragoman/.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
_Job = Annotated[str, typer.Argument(help="The job's id, as `jobs list` prints it.")]


def add(cli: typer.Typer, run: Run) -> None:
    """Add them; `run` loads settings and runs one command."""
    jobs = typer.Typer(help="Jobs of the engine.", no_args_is_help=True)
    cli.add_typer(jobs, name="jobs")

    @jobs.command("list")
    def list_jobs(
        push: Annotated[str, typer.Option(help="Only the jobs of this push.")] = "",
        db: _Database = "",
        as_json: _AsJson = False,
    ) -> None:
        """The newest jobs, how far they are and what they wait for."""
        from dragoman.surfaces.cli import jobs as step

        run(lambda settings: step.show_recent(settings, push, as_json), as_json, database_url=db)

    @jobs.command("show")
    def show_job(job: _Job, db: _Database = "", as_json: _AsJson = False) -> None:
        """One job whole, but for its texts."""
        from dragoman.surfaces.cli import jobs as step

        run(lambda settings: step.show(settings, job, as_json), as_json, database_url=db)

    @jobs.command("redrive")
    def redrive_job(job: _Job, db: _Database = "", as_json: _AsJson = False) -> None:
        """Try a job again that gave up after too many vanished workers."""
        from dragoman.surfaces.cli import jobs as step

        run(lambda settings: step.redrive(settings, job, as_json), as_json, database_url=db)
