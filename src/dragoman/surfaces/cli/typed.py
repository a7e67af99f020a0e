"""What stood on the command line of `dragoman translate`, and how to type it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass


def split(chosen: Iterable[str] | None) -> tuple[str, ...]:
    """`--to fr,de --to es` as its parts."""
    return tuple(one.strip() for words in chosen or () for one in words.split(",") if one.strip())


_PASSWORD = re.compile(r"(://[^/@:]*:)[^/@]*(@)")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is walked in the place of PATHs: by name, or `everything` that the source has."""

    everything: bool = False
    collections: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    drafts: bool = True

    @property
    def is_named(self) -> bool:
        """Whether anything is to be walked."""
        return bool(self.everything or self.collections or self.globals or self.documents)

    @property
    def words(self) -> list[str]:
        """The same, to be typed again."""
        chosen = {
            "--collection": self.collections,
            "--exclude": self.exclude,
            "--global": self.globals,
            "--document": self.documents,
        }
        words = ["--all"] * self.everything
        words += [word for flag, names in chosen.items() if names for word in (flag, ",".join(names))]
        return words + ["--no-drafts"] * (not self.drafts)


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments as they came."""

    paths: tuple[str, ...]
    locales: tuple[str, ...]
    source_locale: str
    out: str
    provider: str
    base_url: str
    mode: str
    on_unknown: str
    stay: bool
    explain: bool
    dry_run: bool
    as_json: bool
    database_url: str
    budget: str = ""
    canary: int = 0
    speed: str = "standard"
    frozen: bool = False
    scope: Scope = Scope()
    project: str = ""

    @property
    def again(self) -> str:
        """The command that asks for the same; without a password and what does not change the result."""
        chosen = {
            "--project": self.project,
            "--from": self.source_locale,
            "--out": self.out,
            "--provider": self.provider,
            "--speed": "" if self.speed == "standard" else self.speed,
            "--canary": str(self.canary or ""),
            "--mode": "" if self.mode in ("missing", "force") else self.mode,
        }
        words = ["dragoman", "translate", *self.paths, *self.scope.words, "--to", ",".join(self.locales)]
        words += [word for flag, value in chosen.items() if value for word in (flag, value)]
        words += ["--force"] * (self.mode == "force") + ["--dry-run"] * self.dry_run
        return shlex.join(words) + self.flags

    @property
    def flags(self) -> str:
        """Of these, the flags that every command on the same work needs."""
        chosen = {"--base-url": self.base_url, "--db": _PASSWORD.sub(r"\1…\2", self.database_url)}
        return "".join(f" {flag} {shlex.quote(value)}" for flag, value in chosen.items() if value)
