"""The commands of `dragoman outbox`, as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

Run = Callable[..., None]

_Database = Annotated[
    str, typer.Option("--db", help="Database URL; the default is a SQLite file in .dragoman/.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def add(cli: typer.Typer, run: Run) -> None:
    """Add them; `run` loads settings and runs one command."""
    outbox = typer.Typer(help="Events on their way to those who asked for jobs.", no_args_is_help=True)
    cli.add_typer(outbox, name="outbox")

    @outbox.command("list")
    def list_events(
        state: Annotated[str, typer.Option(help="pending, delivering, delivered or dead.")] = "",
        db: _Database = "",
        as_json: _AsJson = False,
    ) -> None:
        """The newest events, without texts and secrets."""
        from dragoman.surfaces.cli import outbox as step

        run(lambda settings: step.show(settings, state, as_json), as_json, database_url=db)

    @outbox.command()
    def redrive(
        delivery: Annotated[str, typer.Argument(help="The event's delivery id, as `outbox list` prints it.")],
        db: _Database = "",
        as_json: _AsJson = False,
    ) -> None:
        """Send a dead event again; an endpoint that was gone is open again."""
        from dragoman.surfaces.cli import outbox as step

        run(lambda settings: step.redrive(settings, delivery, as_json), as_json, database_url=db)
