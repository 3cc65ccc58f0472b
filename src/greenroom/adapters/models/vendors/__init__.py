"""Models of vendors that speak a language of their own (Anthropic, Google, Bedrock, …), through pydantic-ai.

Importing this package costs nothing; its modules import pydantic-ai, so only who asks such a model imports them. None
of its types leaves this room.
"""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import WorldFault

BROUGHT: Final = frozenset({"anthropic", "google"})
"""Providers whose SDKs the extra `vendors` brings."""


def missing(name: str) -> WorldFault:
    """`name` (a provider, or `provider:model`) cannot be asked with what is installed here."""
    provider = name.partition(":")[0]
    if provider in BROUGHT:
        tool, package = "uv tool install 'greenroom[vendors]'", "pip install 'greenroom[vendors]'"
    else:
        sdk = f"'pydantic-ai-slim[{provider}]'"
        tool, package = f"uv tool install 'greenroom[vendors]' --with {sdk}", f"pip install 'greenroom[vendors]' {sdk}"
    return WorldFault(f"{name} needs the extra that brings it: `{tool}` or `{package}`.")
