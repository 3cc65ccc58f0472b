"""One reply, one operation: which handler takes it, and what comes of that. Nothing is parsed or run here itself."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol, cast

from greenroom.app.functions.shapes import as_text
from greenroom.app.hands.telling import Callback, Telling
from greenroom.app.library.deciding import Confirm
from greenroom.core.base.errors import WorldFault

NOTHING: Final = (False, "")
"""What comes of a reply that no handler takes."""


class OutputHandler(Protocol):
    """Acts on replies of a kind. `handle` may be a coroutine."""

    def name(self) -> str:
        """What it is called."""
        ...

    def can_handle(self, response: str) -> bool:
        """Whether the reply is for it."""
        ...

    def handle(self, response: str) -> tuple[bool, object] | Awaitable[tuple[bool, object]]:
        """Do it: whether the work is over with that, and what the agent reads next."""
        ...


async def execute_tool_call(
    response: str,
    handlers: Sequence[OutputHandler],
    *,
    execute_tool_confirm: bool = False,
    confirm_callback: Confirm | None = None,
    after: Sequence[Callback] = (),
) -> tuple[bool, str]:
    """(need_return, tool_prompt) of a reply: what the one handler that can handle it makes of it.

    Of several none is run. Who says no gets nothing done; what a handler raises is told as text. Those `after` it hear
    of what was run.
    """
    able = [one for one in handlers if one.can_handle(response)]
    if len(able) > 1:
        names = ", ".join(one.name() for one in able)
        return False, f"Only one operation at a time: your reply has {len(able)} ({names}), and none was run."
    if not able or (execute_tool_confirm and not await _agreed(able[0], confirm_callback)):
        return NOTHING
    try:
        need_return, prompt = await _handled(able[0], response)
    except Exception as error:
        logging.getLogger(__name__).debug("%s failed", able[0].name(), exc_info=True)
        need_return, prompt = False, f"{able[0].name()} failed: {type(error).__name__}: {error}"
    told = {"handler": able[0].name(), "response": response, "need_return": need_return, "output": prompt}
    await Telling(after).tell(told, able[0].name())
    return need_return, prompt


async def _agreed(handler: OutputHandler, confirm: Confirm | None) -> bool:
    """Whether somebody says yes. A function that is no coroutine may well wait for a person, so it waits aside."""
    if confirm is None:
        raise WorldFault("Every call is to be confirmed, and nobody can be asked. Give `confirm_callback`.")
    tip = f"Run {handler.name()}?"
    said: object = (
        confirm(tip, False) if inspect.iscoroutinefunction(confirm) else await asyncio.to_thread(confirm, tip, False)
    )
    return (await cast("Awaitable[object]", said) if inspect.isawaitable(said) else said) is True


async def _handled(handler: OutputHandler, response: str) -> tuple[bool, str]:
    done = handler.handle(response)
    need_return, prompt = await done if inspect.isawaitable(done) else done
    return bool(need_return), prompt if isinstance(prompt, str) else as_text(prompt)
