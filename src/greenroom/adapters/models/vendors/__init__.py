"""Models of vendors with their own API (Anthropic, Google, Bedrock, …), through pydantic-ai.

Importing this package is cheap. Its modules import pydantic-ai, so import them only when a model is used. Types of
pydantic-ai are not exposed.
"""

from __future__ import annotations

from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.installation import how_to_install

INCLUDED_PROVIDERS: Final = frozenset({"anthropic", "google"})
"""Providers whose SDKs the extra `vendors` installs."""


def make_missing_fault(name: str) -> WorldFault:
    """Return the fault for a provider, or `provider:model`, whose SDK is not installed."""
    provider = name.partition(":")[0]
    sdk = "" if provider in INCLUDED_PROVIDERS else f"'pydantic-ai-slim[{provider}]'"
    return WorldFault("models.sdk_not_installed", name=name, command=how_to_install("vendors", sdk))
