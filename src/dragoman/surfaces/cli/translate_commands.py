"""The commands `dragoman translate` and `dragoman estimate`: what they take, which is almost the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dragoman.kernel.limits import CANARY_LIMIT, CANARY_LIMIT_MAX
from dragoman.surfaces.cli.typed import Asked, Scope, split

Run = Callable[..., None]
Names = list[str] | None

Paths = Annotated[
    Names, typer.Argument(help="Files or folders; `sources` of dragoman.toml when absent.", metavar="PATH…")
]
To = Annotated[Names, typer.Option("--to", help="Target locales, e.g. fr,de; `locales` when absent.")]
From = Annotated[str, typer.Option("--from", help="Source locale.")]
Out = Annotated[
    str,
    typer.Option(help="Where translations go: {locale} {path} {dir} {stem} {ext}.", metavar="PATTERN"),
]
Provider = Annotated[str, typer.Option(help="pseudo, openai:MODEL, apertium, or one of dragoman.toml.")]
BaseUrl = Annotated[str, typer.Option(help="Base URL of an OpenAI-compatible server.")]
Mode = Annotated[str, typer.Option(help="missing, changed or all.")]
Speed = Annotated[
    str,
    typer.Option(help="standard, or batch: within a day, through the provider's batches at half the price."),
]
Everything = Annotated[bool, typer.Option("--all", help="All that the project's source has, by its lists.")]
Collections = Annotated[
    Names, typer.Option("--collection", help="Collections of the project's source, instead of PATHs.")
]
Exclude = Annotated[Names, typer.Option("--exclude", help="Collections that are left out.")]
Globals = Annotated[Names, typer.Option("--global", help="Globals of the project's source.")]
Documents = Annotated[Names, typer.Option("--document", help="Documents by reference, e.g. posts/42.json.")]
Drafts = Annotated[bool, typer.Option("--drafts/--no-drafts", help="Whether a walk takes drafts.")]
Project = Annotated[str, typer.Option(help="A project of dragoman.toml; `project` when absent.")]
Canary = Annotated[
    int,
    typer.Option(
        min=0,
        max=CANARY_LIMIT_MAX,
        metavar="[N]",
        help=f"Translate only so many, {CANARY_LIMIT} where none is said; then see `promote`.",
    ),
]
Database = Annotated[
    str, typer.Option("--db", help="Database URL; the default is a SQLite file in .dragoman/.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


class _Counted(TyperCommand):
    """A command whose `--canary` may stand without its number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Say the number where nobody did."""
        told = []
        for word, after in zip(args, [*args[1:], ""], strict=True):
            told.append(word)
            if word == "--canary" and not after.isdecimal():
                told.append(str(CANARY_LIMIT))
        return super().parse_args(ctx, told)


def add(cli: typer.Typer, run: Run) -> None:
    """Register the commands; `run` carries one out."""
    _add_translate(cli, run)
    _add_estimate(cli, run)


def _add_translate(cli: typer.Typer, run: Run) -> None:
    @cli.command(cls=_Counted)
    def translate(
        paths: Paths = None,
        to: To = None,
        source: From = "",
        out: Out = "",
        provider: Provider = "",
        base_url: BaseUrl = "",
        mode: Mode = "missing",
        everything: Everything = False,
        collection: Collections = None,
        exclude: Exclude = None,
        global_: Globals = None,
        document: Documents = None,
        drafts: Drafts = True,
        project: Project = "",
        on_unknown: Annotated[
            str, typer.Option(help="A call without an answer: resend, resend:unlimited or hold.")
        ] = "",
        budget: Annotated[
            str, typer.Option(help="The most that it may cost: 5usd, 100000tokens; a rerun may raise it.")
        ] = "",
        speed: Speed = "standard",
        canary: Canary = 0,
        frozen: Annotated[
            bool, typer.Option("--frozen", help="Only hold dragoman.lock to the files; 3 where one is stale.")
        ] = False,
        wait: Annotated[bool, typer.Option("--wait", help="Stay while something waits.")] = False,
        force: Annotated[bool, typer.Option("--force", help="Also replace what people edited.")] = False,
        explain_edits: Annotated[
            bool, typer.Option("--explain-edits", help="List every edit made in the files written.")
        ] = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Translate, and write no file.")] = False,
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Translate files and folders into other locales; run it again and it goes on where it stopped."""
        scope = _scope(everything, collection, exclude, global_, document, drafts)
        _translate(run, asked_of(
            paths, to, source, out, provider, base_url, "force" if force else mode, speed, db, as_json,
            on_unknown=on_unknown, stay=wait, explain=explain_edits, dry_run=dry_run, budget=budget,
            canary=canary, frozen=frozen, scope=scope, project=project,
        ))  # fmt: skip


def _translate(run: Run, asked: Asked) -> None:
    from dragoman.surfaces.cli import translating

    run(
        lambda settings: translating.translate(settings, asked),
        asked.as_json,
        database_url=asked.database_url,
        project=asked.project,
    )


def _add_estimate(cli: typer.Typer, run: Run) -> None:
    @cli.command()
    def estimate(
        paths: Paths = None,
        to: To = None,
        source: From = "",
        out: Out = "",
        provider: Provider = "",
        base_url: BaseUrl = "",
        mode: Mode = "missing",
        everything: Everything = False,
        collection: Collections = None,
        exclude: Exclude = None,
        global_: Globals = None,
        document: Documents = None,
        drafts: Drafts = True,
        project: Project = "",
        speed: Speed = "standard",
        db: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """The price by locale, memory included; calls nobody and writes nothing."""
        from dragoman.surfaces.cli import estimating

        scope = _scope(everything, collection, exclude, global_, document, drafts)
        asked = asked_of(
            paths, to, source, out, provider, base_url, mode, speed, db, as_json,
            dry_run=True, scope=scope, project=project,
        )  # fmt: skip
        run(lambda settings: estimating.estimate(settings, asked), as_json, database_url=db, project=project)


def asked_of(
    paths: Names,
    to: Names,
    source: str,
    out: str,
    provider: str,
    base_url: str,
    mode: str,
    speed: str,
    database_url: str,
    as_json: bool,
    **more: Any,
) -> Asked:
    """What both commands take, and `more` of it."""
    told = {"on_unknown": "", "stay": False, "explain": False, "dry_run": False, **more}
    return Asked(
        paths=tuple(paths or ()),
        locales=split(to),
        source_locale=source,
        out=out,
        provider=provider,
        base_url=base_url,
        mode=mode,
        speed=speed,
        database_url=database_url,
        as_json=as_json,
        **told,
    )


def _scope(
    everything: bool, collection: Names, exclude: Names, global_: Names, document: Names, drafts: bool
) -> Scope:
    return Scope(everything, split(collection), split(exclude), split(global_), split(document), drafts)
