"""Jarvis' way to act on a reply: a list of output handlers, of which the one that can handle it does.

    async with Greenroom(workspace=".") as house:
        handlers = handlers_of(house, agent)        what the agent's forms can do: TOOL_CALL, PATCH, REWRITE
        need_return, tool_prompt = await execute_tool_call(response, [*handlers, MyHandler()])

It is for programs with a loop of their own. What a built-in handler does is a run in the log like any other, under
the same policy; `Agent.run` has all of it in one.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from copy import copy
from itertools import takewhile
from typing import Any, Final, Protocol, cast

from greenroom.abilities.protocols import Nothing, ProtocolName, read
from greenroom.abilities.tools.read_output import whole_text
from greenroom.adapters.models.platforms import BasePlatform, show_output
from greenroom.app.agents.specs import EDITS, HANDLERS, JARVIS
from greenroom.app.functions import as_text
from greenroom.app.library.approval import Approve, Confirm
from greenroom.app.library.blueprint import Blueprint, own
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.toolset.custom import Callback, Callbacks
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Finished, ModelCard, ModelEvent, ModelRequest, TextDelta
from greenroom.core.ports.tool import WHOLE
from greenroom.core.state.spec import Turn
from greenroom.core.state.step import Step

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
    await Callbacks(after).tell(told, able[0].name())
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


GO_ON: Final = "Go on."
DONE: Final = "Done."


class Recited:
    """A model that says what it was given to say, and then only hears what comes of it."""

    name = "recited"
    card = ModelCard(output=1000, window=1_000_000)

    def __init__(self, response: str) -> None:
        self._response = response
        self._each_turn = ""
        self.asked = 0
        self.heard = ""

    def price(self, _: int, __: int) -> int:
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The reply; later only that there is nothing more to do."""
        self.asked += 1
        if self.asked == 1:
            self._each_turn = request.messages[-1].content.removeprefix(GO_ON).strip()
        else:
            self.heard = "\n\n".join(_new(request)).removesuffix(self._each_turn).strip()
        yield TextDelta(text=self._response if self.asked == 1 else DONE)
        yield Finished()


def _new(request: ModelRequest) -> list[str]:
    """What was said since the model spoke."""
    since = list(takewhile(lambda one: one.role != "assistant", reversed(request.messages)))
    return [one.content for one in reversed(since)]


class FormHandler:
    """One form of text (`tool_call`, `patch`, `rewrite`, …), done in a house in the name of an agent.

    A `platform` that takes files gets what is too long to be read as one: the conversation with it begins anew.
    """

    def __init__(
        self,
        form: ProtocolName,
        house: Greenroom,
        agent: Blueprint[Any],
        *,
        approve: Approve | None = None,
        platform: BasePlatform | None = None,
    ) -> None:
        self._form: ProtocolName = form
        self._house = house
        self._agent = agent
        self._approve = approve
        self._platform = platform

    def name(self) -> str:
        """As Jarvis calls it."""
        return next((name for name, form in HANDLERS.items() if form == self._form), self._form)

    def can_handle(self, response: str) -> bool:
        """Whether there is a block of this form that is meant, whole or not."""
        specs = self._house.tools_of(self._agent)
        return not isinstance(read(response, [self._form], tools=specs, ended=True), Nothing)

    async def handle(self, response: str) -> tuple[bool, str]:
        """Let the house do it; what the agent reads next, or (True) the answer with which a tool has ended the work."""
        model = Recited(response)
        result = await self._house.run(self._reciting(model), GO_ON, approve=self._approve)
        if model.asked == 1:
            return True, result.text
        return False, await self._as_file(result.run) or model.heard

    async def _as_file(self, run: TeamId) -> str:
        """What is said of an output that the platform is shown as a file; empty when it is not."""
        runtime = self._house.runtime
        steps = [one async for one in runtime.archive(run, "step") if isinstance(one, Step) and one.work.type == "tool"]
        long = [one for one in steps if {WHOLE, "blob"}.intersection(one.result or {})]
        if self._platform is None or not long:
            return ""
        call = f"{long[-1].work.executor} with {as_text(dict(long[-1].work.instruction_content or {}))}"
        return await show_output(self._platform, call, await whole_text(long[-1], runtime.log.get_blob))

    def _reciting(self, model: Recited) -> Blueprint[Any]:
        """The same agent with this reply on its lips: one turn, in this form, and another to hear what comes of it."""
        twin = copy(self._agent)
        turn = Turn(protocols=(self._form,), ends="text", rounds=2, repairs=1)
        twin.model, twin.shape = model, None
        twin.spec = evolve(self._agent.spec, turn=turn, answer=None, calls=(), llm_config={"model": own(twin.name)})
        twin.agents = ()
        return twin


def handlers_of(
    house: Greenroom, agent: Blueprint[Any], *, approve: Approve | None = None, platform: BasePlatform | None = None
) -> Sequence[FormHandler]:
    """The handlers of an agent: of the forms that it acts in, else of those that Jarvis has."""
    forms = agent.spec.turn.protocols or tuple(HANDLERS[one] for one in JARVIS)
    kept = [one for one in forms if agent.gear.edits or one not in EDITS]
    return [FormHandler(cast("ProtocolName", one), house, agent, approve=approve, platform=platform) for one in kept]
