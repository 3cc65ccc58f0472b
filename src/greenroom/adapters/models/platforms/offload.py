"""What has become too long for a platform, a conversation or a tool's output: shown as a file where files can be."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from greenroom.adapters.models.platforms.base import BasePlatform, LLMContext

CONTINUE: Final = "What was said so far is in the file {name}. Go on from there: read it where you need it."
SUM_UP: Final = (
    "Sum up our conversation for whoever goes on with it: the task with all its conditions, what is done, what was "
    "learned, what is still to do. Copy names, numbers and paths exactly."
)
NO_SUMMARY: Final = "(Nothing could be said about it.)"
SUMMED_UP: Final = "What was said before, in short:\n{summary}"


OUTPUT: Final = "The whole output of {call} is in the file {name}. Go on from there: read it where you need it."


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


async def show_output(platform: BasePlatform, call: str, output: str) -> str:
    """Begin anew with a tool's output as a file: a summary, which call it was and how to go on, to be said next.

    Empty when the file cannot be shown: then nothing is forgotten. `call` is how the tool was called, in words.
    """
    if not platform.can_upload:
        return ""
    summary = await _summary(platform, SUM_UP)  # asked before the file waits: it is for the next message
    if not await _shown(platform, "output.txt", output):
        return ""
    platform.context.clear()
    return f"{SUMMED_UP.format(summary=summary)}\n\n{OUTPUT.format(call=call, name='output.txt')}"


async def _as_file(platform: BasePlatform) -> str:
    """Show the history as a file; empty when that cannot be done. The file itself is gone in every case."""
    history = platform.context.get_history()
    text = "\n\n".join(f"## {message.role}\n{message.content}" for message in history)
    return CONTINUE.format(name="history.md") if await _shown(platform, "history.md", text) else ""


async def _shown(platform: BasePlatform, name: str, text: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="greenroom-shown-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return await platform.upload_files([path])


async def _summary(platform: BasePlatform, prompt: str) -> str:
    """Asked in a copy of the conversation, which it does not become a part of."""
    copy = LLMContext(platform.context.context_size)
    copy.set_history(platform.context.get_history())
    return await platform.call(prompt, copy) or NO_SUMMARY


def _clear(platform: BasePlatform, tell: Callable[[str], None]) -> None:
    tell("before_history_clear")
    platform.context.clear()
    tell("after_history_clear")
