"""The names of conversation capabilities. This module imports nothing, so commands that only read load fast."""

from __future__ import annotations

from typing import Final

ASK: Final = "ask"
RUN: Final = "run"
CHAT: Final = "chat"
JOB: Final = "job"
SINGLE_TASK: Final = (ASK, RUN, JOB)
"""Capabilities of teams whose only task ends with the answer."""

CONVERSATIONS: Final = (*SINGLE_TASK, CHAT)
