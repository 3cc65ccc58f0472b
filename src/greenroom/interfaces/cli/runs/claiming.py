"""Holding words against what was done. This file is loaded by name: only who works in a person's files needs it."""

from __future__ import annotations

from greenroom.app.checks.idle import idle_doubts

__all__ = ("idle_doubts",)
