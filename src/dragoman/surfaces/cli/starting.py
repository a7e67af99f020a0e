"""`dragoman init`: look at the tree, say what was found, write `dragoman.toml`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from dragoman.content import locales
from dragoman.kernel.errors import CallerError
from dragoman.wiring.settings import FILE
from dragoman.wiring.surveying import Survey, survey

_TOPS_SHOWN = 12


def init(root: Path, source_locale: str, targets: tuple[str, ...], sure: bool, as_json: bool) -> int:
    """Write the settings of a tree that has none. Raises `CallerError` where it has, or nothing is found."""
    path = root / FILE
    if path.exists():
        raise CallerError(f"{path.name} stands here already: change it, or remove it first", place=str(path))
    found = survey(root, locales.canonical(source_locale, "--from") if source_locale else "")
    chosen = tuple(sorted({locales.canonical(locale, "--to") for locale in targets} or found.locales))
    if not sure and not as_json and sys.stdin.isatty():
        chosen = _asked(found, chosen)
    path.write_text(written(root, found, chosen), "utf-8")
    _tell(path, found, chosen, as_json)
    return 0


def written(root: Path, found: Survey, targets: tuple[str, ...]) -> str:
    """The text of `dragoman.toml`."""
    tops = found.tops if len(found.tops) <= _TOPS_SHOWN else (".",)
    lines = [
        "# Written by `dragoman init`. docs/reference/settings.md explains every setting.",
        f"project = {json.dumps(root.absolute().name or 'default', ensure_ascii=False)}",
        f"source_locale = {json.dumps(found.source_locale)}",
        f"locales = {json.dumps(list(targets))}  # what `dragoman translate` translates into",
        f"sources = {json.dumps(list(tops), ensure_ascii=False)}  # files and folders that it looks at",
        'provider = "pseudo"  # costs nothing; openai:MODEL, apertium, or one of [providers]',
    ]
    return "\n".join(lines) + "\n"


def _asked(found: Survey, targets: tuple[str, ...]) -> tuple[str, ...]:
    """One question: which locales. Everything else can be changed in the file."""
    typer.echo(f"{len(found.templates)} documents in {found.source_locale}: {_formats(found)}")
    answer = typer.prompt("Translate into", default=",".join(targets) or "de,fr")
    return tuple(sorted({locales.canonical(part.strip()) for part in answer.split(",") if part.strip()}))


def _formats(found: Survey) -> str:
    return ", ".join(f"{count} {name}" for name, count in found.formats.items())


def _tell(path: Path, found: Survey, targets: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        told = {
            "settings": path.name,
            "source_locale": found.source_locale,
            "locales": list(targets),
            "documents": dict(sorted(found.templates.items())),
            "formats": dict(found.formats),
        }
        print(json.dumps(told, ensure_ascii=False))
        return
    print(f"{path.name}: {len(found.templates)} documents in {found.source_locale} ({_formats(found)})")
    if targets:
        print(f"next: dragoman translate   # into {', '.join(targets)}")
    else:
        print("no translation was found yet; next: dragoman translate --to de,fr")
