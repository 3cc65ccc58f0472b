"""Jarvis' agents and output handlers, under Jarvis' names. The one handler that accepts a reply handles it.

    agent = make_jarvis_agent("You help.", use_tools=["read_code"])
    async with Greenroom(workspace=".") as greenroom:
        handlers = build_handlers(greenroom, agent)     the agent's protocols: TOOL_CALL, PATCH, REWRITE
        need_return, tool_prompt = await execute_tool_call(response, [*handlers, MyHandler()])

Use it in programs with their own loop. A built-in handler's work is an ordinary run in the log, under the same
policy. `Agent.run` does all of this in one call.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from copy import copy
from itertools import takewhile
from typing import Any, Final, Protocol, TypeAlias, cast

from greenroom.abilities.protocols.parse_result import NoBlock, ProtocolName
from greenroom.abilities.protocols.text_calls import read
from greenroom.abilities.tools.read_output import read_whole_text
from greenroom.adapters.models.platforms import BasePlatform, show_output
from greenroom.app.agents.specs import JARVIS_DEFAULT_HANDLERS, JARVIS_HANDLERS, parse_spec
from greenroom.app.function_tool import Tool, format_value
from greenroom.app.library.agent import Agent
from greenroom.app.library.agent_definition import AgentDefinition, name_own_model
from greenroom.app.library.approval import ApprovalCallback, ApprovalReply, ApprovalRequest
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.toolset.custom import Callback, Callbacks
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Finished, Model, ModelCard, ModelEvent, ModelRequest, ModelTextDelta
from greenroom.core.ports.tool import WHOLE_KEY
from greenroom.core.state.spec import TurnPolicy
from greenroom.core.state.step import Step

NOT_HANDLED: Final = (False, "")

ConfirmCallback: TypeAlias = Callable[[str, bool], bool | Awaitable[bool]]
"""A yes-or-no callback as in Jarvis: `(tip, default) -> bool`."""


def make_jarvis_agent(
    system_prompt: str,
    *,
    name: str = "Jarvis",
    model: str | Model = "",
    tools: Sequence[Tool[..., Any] | Callable[..., Any]] = (),
    use_tools: Sequence[str] = (),
    disable_file_edit: bool = False,
    execute_tool_confirm: bool | None = None,
) -> Agent[str]:
    """Make an agent from the arguments of Jarvis' `Agent`. It acts in Jarvis' text protocols.

    Args:

    - `system_prompt`: The agent's instructions.
    - `name`: The agent's name.
    - `model`: The model, as in `Agent`.
    - `tools`: Functions of the program that the agent can call.
    - `use_tools`: The only tools that the agent has. An empty list selects the default tools and all functions.
    - `disable_file_edit`: Remove the tools and protocols that edit files.
    - `execute_tool_confirm`: Whether every tool call needs approval. Default: that of the `Greenroom`.
    """
    spec = parse_spec(
        {
            "design": "jarvis",
            "name": name,
            "system_prompt": system_prompt,
            "use_tools": list(use_tools),
            "disable_file_edit": disable_file_edit,
        }
    )
    functions = [item if isinstance(item, Tool) else Tool(item) for item in tools]
    function_names = {function.name for function in functions}
    return Agent(
        spec.name,
        spec=spec,
        model=model,
        tools=[
            *(tool_name for tool_name in spec.tools if tool_name not in function_names),
            *(function for function in functions if not use_tools or function.name in use_tools),
        ],
        confirm_calls=execute_tool_confirm,
    )


YES_OR_NO_ONLY: Final = "Only yes or no can be asked here. Decide yourself, and say in your answer what you assumed."


def approve_with_confirm(confirm: ConfirmCallback) -> ApprovalCallback:
    """Make an `approve` function from a yes-or-no callback. A call without a yes does not run."""

    def approve(request: ApprovalRequest) -> ApprovalReply | Awaitable[ApprovalReply]:
        return YES_OR_NO_ONLY if request.wants_text else confirm(request.question, False)

    return approve


class OutputHandler(Protocol):
    """Acts on one kind of reply. `handle` can be a coroutine."""

    def name(self) -> str:
        """Return the handler's name."""
        ...

    def can_handle(self, response: str) -> bool:
        """Whether the handler accepts the reply."""
        ...

    def handle(self, response: str) -> tuple[bool, object] | Awaitable[tuple[bool, object]]:
        """Handle the reply. Return whether the work is over, and the text that the agent reads next."""
        ...


async def execute_tool_call(
    response: str,
    handlers: Sequence[OutputHandler],
    *,
    execute_tool_confirm: bool = False,
    confirm_callback: ConfirmCallback | None = None,
    after: Sequence[Callback] = (),
) -> tuple[bool, str]:
    """Return (need_return, tool_prompt) from the one handler that accepts the reply.

    If several handlers accept it, none runs. A call that is not confirmed does not run. An exception becomes text for
    the agent. The callbacks in `after` are called after a call.
    """
    matching = [handler for handler in handlers if handler.can_handle(response)]
    if len(matching) > 1:
        names = ", ".join(handler.name() for handler in matching)
        return False, f"Only one operation at a time: your reply has {len(matching)} ({names}), and none was run."
    if not matching or (execute_tool_confirm and not await _is_confirmed(matching[0], confirm_callback)):
        return NOT_HANDLED
    try:
        need_return, prompt = await _call_handler(matching[0], response)
    except Exception as error:
        logging.getLogger(__name__).debug("%s failed", matching[0].name(), exc_info=True)
        need_return, prompt = False, f"{matching[0].name()} failed: {type(error).__name__}: {error}"
    call_fields = {"handler": matching[0].name(), "response": response, "need_return": need_return, "output": prompt}
    await Callbacks(after).tell(call_fields, matching[0].name())
    return need_return, prompt


async def _is_confirmed(handler: OutputHandler, confirm: ConfirmCallback | None) -> bool:
    """Whether the call is confirmed. A plain function runs in a thread, because it may wait for a person."""
    if confirm is None:
        raise WorldFault("designs.no_confirm_callback")
    tip = f"Run {handler.name()}?"
    answer: object = (
        confirm(tip, False) if inspect.iscoroutinefunction(confirm) else await asyncio.to_thread(confirm, tip, False)
    )
    return (await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer) is True


async def _call_handler(handler: OutputHandler, response: str) -> tuple[bool, str]:
    handled = handler.handle(response)
    need_return, prompt = await handled if inspect.isawaitable(handled) else handled
    return bool(need_return), prompt if isinstance(prompt, str) else format_value(prompt)


CONTINUE_PROMPT: Final = "Go on."


class RecitedModel:
    """A model that returns a given reply, and then reads the result."""

    name = "recited"
    card = ModelCard(output=1000, window=1_000_000)

    def __init__(self, response: str) -> None:
        self._response = response
        self._each_turn = ""
        self.call_count = 0
        self.result_text = ""

    def price(self, _: int, __: int) -> int:
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the reply. Later calls only end the work."""
        self.call_count += 1
        if self.call_count == 1:
            self._each_turn = request.messages[-1].content.removeprefix(CONTINUE_PROMPT).strip()
        else:
            self.result_text = "\n\n".join(_list_new_messages(request)).removesuffix(self._each_turn).strip()
        yield ModelTextDelta(text=self._response if self.call_count == 1 else "Done.")
        yield Finished()


def _list_new_messages(request: ModelRequest) -> list[str]:
    new_messages = list(takewhile(lambda message: message.role != "assistant", reversed(request.messages)))
    return [message.content for message in reversed(new_messages)]


class FormHandler:
    """Handles one text protocol (`tool_call`, `patch`, `rewrite`, …) in a `Greenroom` for an agent. A `platform` that
    accepts files receives long output as a file; its conversation then starts over."""

    def __init__(
        self,
        form: ProtocolName,
        greenroom: Greenroom,
        agent: AgentDefinition[Any],
        *,
        approve: ApprovalCallback | None = None,
        platform: BasePlatform | None = None,
    ) -> None:
        self._form: ProtocolName = form
        self._greenroom = greenroom
        self._agent = agent
        self._approve = approve
        self._platform = platform

    def name(self) -> str:
        """Return Jarvis' name of the handler."""
        return next((name for name, form in JARVIS_HANDLERS.items() if form == self._form), self._form)

    def can_handle(self, response: str) -> bool:
        """Whether the reply has a block of this protocol, complete or not."""
        specs = self._greenroom.tools_of(self._agent)
        return not isinstance(read(response, [self._form], tools=specs, ended=True), NoBlock)

    async def handle(self, response: str) -> tuple[bool, str]:
        """Run the call. Return what the agent reads next, or (True) the answer of a tool that ended the work."""
        model = RecitedModel(response)
        result = await self._greenroom.run(self._make_reciting_agent(model), CONTINUE_PROMPT, approve=self._approve)
        if model.call_count == 1:
            return True, result.text
        return False, await self._show_as_file(result.run_id) or model.result_text

    async def _show_as_file(self, run_id: TeamId) -> str:
        """Return the text about an output that the platform received as a file, or an empty string."""
        runtime = self._greenroom.runtime
        steps = [
            step
            async for step in runtime.archive(run_id, "step")
            if isinstance(step, Step) and step.work.type == "tool"
        ]
        long_steps = [step for step in steps if {WHOLE_KEY, "blob"}.intersection(step.result or {})]
        if self._platform is None or not long_steps:
            return ""
        call = (
            f"{long_steps[-1].work.executor} with {format_value(dict(long_steps[-1].work.instruction_content or {}))}"
        )
        return await show_output(self._platform, call, await read_whole_text(long_steps[-1], runtime.log.get_blob))

    def _make_reciting_agent(self, model: RecitedModel) -> AgentDefinition[Any]:
        """Return the agent with a model that recites this reply: one turn to act, and one to read the result."""
        reciting_agent = copy(self._agent)
        turn = TurnPolicy(protocols=(self._form,), ends="text", rounds=2, repairs=1)
        reciting_agent.model, reciting_agent.output_adapter = model, None
        reciting_agent.spec = evolve(
            self._agent.spec,
            turn=turn,
            answer=None,
            calls=(),
            llm_config={"model": name_own_model(reciting_agent.name)},
        )
        reciting_agent.agents = ()
        return reciting_agent


def build_handlers(
    greenroom: Greenroom,
    agent: AgentDefinition[Any],
    *,
    approve: ApprovalCallback | None = None,
    platform: BasePlatform | None = None,
) -> Sequence[FormHandler]:
    """Return the handlers of an agent's protocols, or Jarvis' default handlers."""
    forms = agent.spec.turn.protocols or tuple(JARVIS_HANDLERS[form] for form in JARVIS_DEFAULT_HANDLERS)
    return [
        FormHandler(cast("ProtocolName", form), greenroom, agent, approve=approve, platform=platform) for form in forms
    ]
