"""The commands `dragoman memory …` and `dragoman glossary …`: what they are called and take, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

Run = Callable[..., None]
Library = Literal["memory", "glossary"]
File = Annotated[Path, typer.Argument(help="TMX, TBX or CSV, by its ending.", metavar="FILE")]
To = Annotated[str, typer.Option("--to", help="Target locale.")]
From = Annotated[str, typer.Option("--from", help="Source locale; that of the settings when absent.")]
Project = Annotated[str, typer.Option(help="Project; that of the settings when absent.")]
Database = Annotated[str, typer.Option("--db", help="Database URL; the default is a file in .dragoman/.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def add_library(cli: typer.Typer, run: Run) -> None:
    """Register the commands; `run` carries one out."""
    memory = typer.Typer(help="What was translated before.", no_args_is_help=True)
    glossary = typer.Typer(help="How terms are translated.", no_args_is_help=True)
    cli.add_typer(memory, name="memory")
    cli.add_typer(glossary, name="glossary")
    _add_files(memory, run, "translations", "memory")
    _add_files(glossary, run, "terms", "glossary")
    _add_looks(memory, run)


def _add_files(group: typer.Typer, run: Run, what: str, which: Library) -> None:
    @group.command("import", help=f"Take in the {what} of a file; those that fail a check are left out.")
    def take_in(
        file: File,
        to: To,
        source: From = "",
        project: Project = "",
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        from dragoman.surfaces.cli import library

        chosen = library.Chosen(project, source, to)
        run(
            lambda settings: library.take_in(settings, chosen, file, which, as_json), as_json, database_url=db
        )

    @group.command("export", help=f"Write the {what} of a locale pair into a file.")
    def give_out(
        file: File,
        to: To,
        source: From = "",
        project: Project = "",
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        from dragoman.surfaces.cli import library

        chosen = library.Chosen(project, source, to)
        run(
            lambda settings: library.give_out(settings, chosen, file, which, as_json),
            as_json,
            database_url=db,
        )


def _add_looks(group: typer.Typer, run: Run) -> None:
    @group.command()
    def stats(project: Project = "", db: Database = "", as_json: AsJson = False) -> None:
        """Count translations and terms by locale pair."""
        from dragoman.surfaces.cli import library

        run(lambda settings: library.stats(settings, project, as_json), as_json, database_url=db)

    @group.command()
    def search(
        text: Annotated[str, typer.Argument(help="A text of the source locale.")],
        to: To,
        source: From = "",
        project: Project = "",
        most: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Find the translations of a text and of texts like it."""
        from dragoman.surfaces.cli import library

        chosen = library.Chosen(project, source, to)
        run(lambda settings: library.search(settings, chosen, text, most, as_json), as_json, database_url=db)
