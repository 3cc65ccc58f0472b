"""`Agent`, and its synchronous methods for scripts and notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from greenroom.app.conversation.attachments import Attachments
from greenroom.app.conversation.chat import Turn
from greenroom.app.library.agent_definition import AgentDefinition, AgentOptions
from greenroom.app.library.approval import ApprovalCallback
from greenroom.app.library.environment import collect_agents
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.library.run import Conversation, RunArguments
from greenroom.app.library.run_result import RunEvent, RunResult, T

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from greenroom.app.agents.discovery import Agents

S = TypeVar("S")


@asynccontextmanager
async def open_greenroom(greenroom: Greenroom | None, agent: AgentDefinition[Any]) -> AsyncIterator[Greenroom]:
    """Yield the given `Greenroom` and leave it open, or open a temporary one.

    The temporary one uses the current folder as its workspace if an agent needs built-in tools.
    """
    if greenroom is not None:
        yield greenroom
        return
    agents = collect_agents(agent).values()
    needs_workspace = any(definition.builtin_names or definition.toolsets for definition in agents)
    async with Greenroom(workspace="." if needs_workspace else None) as opened:
        yield opened


def run_synchronously(work: Coroutine[Any, Any, S]) -> S:
    """Run a coroutine to its end. If an event loop is already running, as in a notebook, use a thread."""
    if not _is_loop_running():
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="greenroom-run") as pool:
        return pool.submit(asyncio.run, work).result()


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class SyncConversation(Generic[T]):
    """A conversation without `await`, stored in `.greenroom/`.

    `id` is the conversation's id. It is empty until the first message is sent.
    """

    def __init__(
        self, agent: AgentDefinition[T], *, resume: str, approve: ApprovalCallback | None, context: object
    ) -> None:
        self.id = resume
        self._agent = agent
        self._approve = approve
        self._context = context

    def send(self, text: str, *, attachments: Attachments = ()) -> RunResult[T]:
        """Send a message and wait for the answer."""
        return run_synchronously(self._send(text, attachments))

    def turns(self) -> list[Turn]:
        """Return the turns so far, oldest first."""
        return run_synchronously(self._list_turns())

    async def _send(self, text: str, attachments: Attachments) -> RunResult[T]:
        async with self._open() as conversation:
            try:
                return await conversation.send(text, attachments=attachments)
            finally:
                self.id = conversation.id

    async def _list_turns(self) -> list[Turn]:
        async with self._open() as conversation:
            return await conversation.turns()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Conversation[T]]:
        async with (
            open_greenroom(None, self._agent) as greenroom,
            greenroom.chat(self._agent, resume=self.id, approve=self._approve, context=self._context) as conversation,
        ):
            yield conversation


def load_called_agents(agent: AgentDefinition[Any], agents: Agents) -> None:
    """Load the agents that this agent's file calls, and the agents that those call.

    Loaded agents get the functions of `agent` that their files list as tools.
    """
    by_name = {definition.name: definition for definition in (agent, *agent.agents)}
    pending = [agent]
    for definition in pending:
        for name in definition.spec.calls:
            called = agents.get_called(definition.file, name) if name not in by_name and definition.file else None
            if called is not None:
                functions = [each for each in agent.tools if each.name in called.spec.tools]
                by_name[name] = AgentDefinition(name, spec=called.spec, tools=functions)
                by_name[name].file = called
                pending.append(by_name[name])
        definition.agents = tuple(by_name[name] for name in definition.spec.calls if name in by_name)


class Agent(AgentDefinition[T]):
    """An AI agent: its instructions, its model, its tools and the type of its answer.

    An `Agent` is a description. Creating one starts nothing and calls no model.

    Args:

    - `name`: The agent's name, unique within a run.
    - `instructions`: The system prompt, or a function of a `RunContext`, plain or async, that returns it. The function
      is called when a run starts, and before each message of a conversation.
    - `output_type`: The type of the answer: a dataclass, a pydantic model, a union or any type with a JSON form. Of a
      union the first member that fits counts. Default: `str`.
    - `output_validators`: Functions, plain or async, that check the answer. One that raises `ModelFault` sends it back
      to the model. One that returns a value replaces the answer. A `Context` parameter receives the run's `context`.
    - `description`: What the agent is for. Other agents read it when they choose whom to call.
    - `model`: A `provider:model` name, a role (`strong`, `fast`), a group or a `Model`. Default: the setting `model`.
    - `tools`: Functions, and built-in tools by name. Built-in tools need a workspace.
    - `toolsets`: Groups of built-in tools, such as `read` or `web`. They need a workspace.
    - `mcp_servers`: MCP servers whose tools the agent gets. They need the extra `mcp`.
    - `agents`: Other agents that this agent can call.
    - `confirm_calls`: Whether every tool call needs approval. Default: that of the `Greenroom`.
    - `max_turns`: How many turns the agent can take before it must answer.
    - `output_retries`: How often the model is asked again when its answer does not match `output_type`.
    - `temperature`: The sampling temperature, from 0 to 2.
    - `spec`: A spec to start from. The other arguments override its values.

    The methods accept a `greenroom` to run in. Without one they open a temporary `Greenroom`, stored in `.greenroom/`.
    `RunArguments` lists what runs accept beside the prompt.
    """

    @overload
    @classmethod
    def from_file(
        cls, source: str | Path, *, output_type: None = None, **options: Unpack[AgentOptions]
    ) -> Agent[str]: ...
    @overload
    @classmethod
    def from_file(
        cls, source: str | Path, *, output_type: TypeForm[S], **options: Unpack[AgentOptions]
    ) -> Agent[S]: ...
    @classmethod
    def from_file(
        cls, source: str | Path, *, output_type: object = None, **options: Unpack[AgentOptions]
    ) -> Agent[Any]:
        """Load an agent from a file, with the agents that it calls.

        Args:

        - `source`: A path, or a name that `greenroom agents list` shows.
        - `output_type`: The type of the answer.
        - `options`: Other arguments of `Agent`. Tools and agents are added to those of the file. Others replace them.
        """
        from greenroom.app.agents.discovery import find_agents, read_agent

        path = Path(source)
        is_name = isinstance(source, str) and path.suffix != ".md" and path.name == source
        found = find_agents(Path.cwd())
        file = found.get(str(source)) if is_name else read_agent(path)
        named = cast("AgentOptions", {**options, "spec": file.spec})
        agent = cls(file.spec.name, output_type=cast("TypeForm[T]", output_type), **named)
        agent.file = file
        load_called_agents(agent, found)
        return agent

    async def run(
        self, text: str = "", *, greenroom: Greenroom | None = None, **arguments: Unpack[RunArguments]
    ) -> RunResult[T]:
        """Run the agent on a prompt and wait for the result. `greenroom` is an open `Greenroom` to run in."""
        async with open_greenroom(greenroom, self) as opened:
            return await opened.run(self, text, **arguments)

    async def stream(
        self, text: str = "", *, greenroom: Greenroom | None = None, **arguments: Unpack[RunArguments]
    ) -> AsyncIterator[RunEvent[T]]:
        """Run the agent and yield events as they happen. The last event is the `RunResult`. See `run`."""
        async with open_greenroom(greenroom, self) as opened:
            async for event in opened.stream(self, text, **arguments):
                yield event

    def run_sync(self, text: str = "", **arguments: Unpack[RunArguments]) -> RunResult[T]:
        """Run the agent without `await`, for scripts and notebooks. See `run`."""
        return run_synchronously(self.run(text, **arguments))

    @asynccontextmanager
    async def chat(
        self,
        *,
        greenroom: Greenroom | None = None,
        resume: str = "",
        approve: ApprovalCallback | None = None,
        context: object = None,
    ) -> AsyncIterator[Conversation[T]]:
        """Open a conversation: `async with agent.chat() as conversation: await conversation.send("Hello")`.

        `resume` is the id of an earlier conversation. See `RunArguments` for the others.
        """
        async with (
            open_greenroom(greenroom, self) as opened,
            opened.chat(self, resume=resume, approve=approve, context=context) as conversation,
        ):
            yield conversation

    def chat_sync(
        self, *, resume: str = "", approve: ApprovalCallback | None = None, context: object = None
    ) -> SyncConversation[T]:
        """Open a conversation without `await`: `agent.chat_sync().send("Hello")`."""
        return SyncConversation(self, resume=resume, approve=approve, context=context)
