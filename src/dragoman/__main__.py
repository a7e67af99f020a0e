"""The command `dragoman`: the only module that knows several surfaces; it hands the CLI the server."""

from __future__ import annotations

from typing import Any

from dragoman.surfaces.cli.commands import build_cli


def build_server(services: Any, probes_only: bool = False) -> Any:
    """The HTTP app, or its probes alone; what it needs is imported only by those who serve."""
    from dragoman.surfaces.http.app import build_app

    return build_app(services, probes_only)


def main() -> None:
    """Run the command line."""
    build_cli(build_server)()


if __name__ == "__main__":
    main()
