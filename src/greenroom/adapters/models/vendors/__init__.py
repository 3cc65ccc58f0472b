"""Models of vendors that speak a language of their own (Anthropic, Google, Bedrock, …), through pydantic-ai.

Importing this package costs nothing; its modules import pydantic-ai, so only who asks such a model imports them. None
of its types leaves this room.
"""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import WorldFault, how_to_install

BROUGHT: Final = frozenset({"anthropic", "google"})
"""Providers whose SDKs the extra `vendors` brings."""


def missing(name: str) -> WorldFault:
    """`name` (a provider, or `provider:model`) cannot be asked with what is installed here."""
    provider = name.partition(":")[0]
    sdk = "" if provider in BROUGHT else f"'pydantic-ai-slim[{provider}]'"
    return WorldFault(f"{name} needs the extra that brings it: {how_to_install('vendors', sdk)}.")
