"""Somebody who agrees to all that a workspace brings."""

from pathlib import Path

from greenroom.app.trust import NAME, Ledger, brought_by


def agree(config: Path, root: Path) -> None:
    """As `greenroom trust --yes` does it, for the person whose settings are in this folder."""
    Ledger(config / "greenroom" / NAME).agree(root, brought_by(root))
