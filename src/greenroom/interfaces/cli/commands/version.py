"""`greenroom --version`: on its own, because looking a version up costs a fifth of the whole start."""

from __future__ import annotations

from importlib import metadata

import typer


def version() -> int:
    """Say which version this is."""
    typer.echo(f"greenroom {metadata.version('greenroom')}")
    return 0
