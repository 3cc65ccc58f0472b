"""The handlers of the house: a reply that somebody else got is given to the house's own turn, as if its model said it.

So a block is read, decided about, run and recorded exactly as in a run; there is no second way to do so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from copy import copy
from itertools import takewhile
from typing import Any, Final, cast

from greenroom.abilities.protocols import Nothing, ProtocolName, read
from greenroom.abilities.tools.read_output import whole_text
from greenroom.adapters.models.platforms import BasePlatform, show_output
from greenroom.app.agents.designs import EDITS, JARVIS
from greenroom.app.agents.keys import HANDLERS
from greenroom.app.functions.shapes import as_text
from greenroom.app.library.blueprint import Blueprint, own
from greenroom.app.library.deciding import Approve
from greenroom.app.library.house import Greenroom
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Finished, ModelCard, ModelEvent, ModelRequest, TextDelta
from greenroom.core.ports.tool import WHOLE
from greenroom.core.state.spec import Turn
from greenroom.core.state.step import Step

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
        """It costs nothing."""
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
