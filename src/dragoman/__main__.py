"""The command `dragoman`: the only module that knows several surfaces; it hands the server's builder to the CLI."""

from __future__ import annotations

from dragoman.surfaces.cli.commands import build_cli
from dragoman.surfaces.http.app import build_app


def main() -> None:
    """Run the command line."""
    build_cli(build_app)()


if __name__ == "__main__":
    main()
