"""What stood on the command line of `dragoman translate`, and how to type it again."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_PASSWORD = re.compile(r"(://[^/@:]*:)[^/@]*(@)")


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

    @property
    def again(self) -> str:
        """The command that asks for the same; without a password and what does not change the result."""
        chosen = {
            "--from": self.source_locale,
            "--out": self.out,
            "--provider": self.provider,
            "--speed": "" if self.speed == "standard" else self.speed,
            "--canary": str(self.canary or ""),
            "--mode": "" if self.mode in ("missing", "force") else self.mode,
        }
        words = ["dragoman", "translate", *self.paths, "--to", ",".join(self.locales)]
        words += [word for flag, value in chosen.items() if value for word in (flag, value)]
        words += ["--force"] * (self.mode == "force") + ["--dry-run"] * self.dry_run
        return shlex.join(words) + self.flags

    @property
    def flags(self) -> str:
        """Of these, the flags that every command on the same work needs."""
        chosen = {"--base-url": self.base_url, "--db": _PASSWORD.sub(r"\1…\2", self.database_url)}
        return "".join(f" {flag} {shlex.quote(value)}" for flag, value in chosen.items() if value)
