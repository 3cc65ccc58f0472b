"""A conversation that has become too long for a platform: shown as a file where files can be, else summed up."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from greenroom.adapters.models.platforms.base import BasePlatform
from greenroom.adapters.models.platforms.context import LLMContext

CONTINUE: Final = "What was said so far is in the file {name}. Go on from there: read it where you need it."
SUM_UP: Final = (
    "Sum up our conversation for whoever goes on with it: the task with all its conditions, what is done, what was "
    "learned, what is still to do. Copy names, numbers and paths exactly."
)
NO_SUMMARY: Final = "(Nothing could be said about it.)"
SUMMED_UP: Final = "What was said before, in short:\n{summary}"


def _nobody(_: str) -> None:
    """Nobody listens."""


async def shorten_history(
    platform: BasePlatform, *, prompt: str = SUM_UP, tell: Callable[[str], None] = _nobody
) -> str:
    """Begin anew with the history as a file, or with a summary; what to say with the next message.

    `tell` hears `before_history_clear` and `after_history_clear` on both ways. The system prompt stays in force. The
    file is shown before anything is forgotten, so that one which cannot be shown costs nothing but a summary.
    """
    if platform.can_upload and (shown := await _as_file(platform)):
        _clear(platform, tell)
        return shown
    summary = await _summary(platform, prompt)
    _clear(platform, tell)
    return SUMMED_UP.format(summary=summary)


async def _as_file(platform: BasePlatform) -> str:
    """Show the history as a file; empty when that cannot be done. The file itself is gone in every case."""
    history = platform.context.get_history()
    text = "\n\n".join(f"## {message.role}\n{message.content}" for message in history)
    with tempfile.TemporaryDirectory(prefix="greenroom-history-") as folder:
        path = Path(folder) / "history.md"
        path.write_text(text, encoding="utf-8")
        return CONTINUE.format(name=path.name) if await platform.upload_files([path]) else ""


async def _summary(platform: BasePlatform, prompt: str) -> str:
    """Asked in a copy of the conversation, which it does not become a part of."""
    copy = LLMContext(platform.context.context_size)
    copy.set_history(platform.context.get_history())
    return await platform.call(prompt, copy) or NO_SUMMARY


def _clear(platform: BasePlatform, tell: Callable[[str], None]) -> None:
    tell("before_history_clear")
    platform.context.clear()
    tell("after_history_clear")
