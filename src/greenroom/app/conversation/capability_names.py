"""The names of conversation capabilities. This module imports nothing, so commands that only read load fast."""

from __future__ import annotations

from typing import Final

ASK: Final = "ask"
RUN: Final = "run"
CHAT: Final = "chat"
RESEARCH: Final = "research"
"""A run of the research desk. It answers and stays open for feedback."""

CHANGE_RUN: Final = "job"
"""A run that changes files in a worktree. `RUN` only answers."""

TEAM_RUN: Final = "team"
"""A run of specialists who change files in parallel worktrees."""

CHANGING_RUNS: Final = (CHANGE_RUN, TEAM_RUN)
"""Runs whose change can be applied."""

SINGLE_TASK: Final = (ASK, RUN, CHANGE_RUN, TEAM_RUN)
"""Capabilities of teams whose only task ends with the answer."""

CONVERSATIONS: Final = (*SINGLE_TASK, CHAT, RESEARCH)
