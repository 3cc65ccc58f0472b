"""Approve everything that a workspace brings."""

from pathlib import Path

from greenroom.app.trust import TRUST_FILE_NAME, TrustStore, find_trust_items


def agree(config: Path, root: Path) -> None:
    """Approve like `greenroom trust --yes`, for the person whose settings are in this folder."""
    TrustStore(config / "greenroom" / TRUST_FILE_NAME).trust_items(root, find_trust_items(root))
