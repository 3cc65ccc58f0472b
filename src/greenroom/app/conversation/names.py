"""What the kits of talks are called. Nothing is imported here: whoever only looks does not wait for skills."""

from __future__ import annotations

from typing import Final

ASK: Final = "ask"
RUN: Final = "run"
CHAT: Final = "chat"
JOB: Final = "job"
ALONE: Final = (ASK, RUN, JOB)
"""Those whose only task ends with the answer."""

TALKS: Final = (*ALONE, CHAT)
