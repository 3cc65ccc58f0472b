"""What is made of settings: a browser. Whoever imports this loads playwright; do it late."""

from __future__ import annotations

from greenroom.adapters.browser.chromium import Chromium, Looks
from greenroom.core.ports.browser import Browser, Gates


def browser(gates: Gates, program: str, headless: bool | None) -> Browser:
    """A browser that goes through such gates."""
    return Chromium(gates, Looks(program=program, headless=headless))
