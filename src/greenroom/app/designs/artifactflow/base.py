"""The common parts of ArtifactFlow's agents: one model call per execution, tool calls as XML, and their records.

`AgentConfig.spec` is the same agent as a member of a team, where Greenroom runs calls, counts rounds and calls
sub-agents. `BaseAgent.stream` is a single execution, for programs with their own graph.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, ParsedReply
from greenroom.abilities.protocols.text_calls import read, render_prompt
from greenroom.abilities.protocols.xml_tool import route_reply
from greenroom.adapters.models.retry import RateLimiter, RetryingModel, RetryPolicy
from greenroom.app.clock import SystemClock
from greenroom.core.base.clock import Clock
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import LiveEvent
from greenroom.core.ports.model import (
    ChatMessage,
    ClosingStream,
    Failed,
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    Models,
    ModelTextDelta,
    Purpose,
    Retried,
    ToolSpec,
    Usage,
)
from greenroom.core.ports.prompt_pack import DEFAULT_LANGUAGE, PromptPack
from greenroom.core.state.spec import AgentSpec, TurnPolicy

PACK: Final = PromptPack("greenroom.app.designs.artifactflow.prompts")
MAX_OUTPUT_TOKENS: Final = 4096


@dataclass(kw_only=True)
class AgentConfig:
    """The configuration of an agent."""

    name: str
    description: str
    capabilities: list[str] = field(default_factory=list)
    required_tools: list[str] = field(default_factory=list)
    model: str = "qwen-plus"
    temperature: float = 0.7
    max_tool_rounds: int = 3
    streaming: bool = False
    llm_max_retries: int = 3
    llm_retry_delay: float = 1.0

    def spec(self, prompt: str = "", sub_agents: Sequence[str] = (), *, language: str = "") -> AgentSpec:
        """Return the agent as a member of a team, where calls run and rounds are counted."""
        return AgentSpec(
            name=self.name,
            description=self.description,
            capabilities=tuple(self.capabilities),
            tools=tuple(self.required_tools),
            calls=tuple(sub_agents),
            prompt=prompt,
            turn=TurnPolicy(protocols=("xml_tool",), several="first", ends="text", rounds=self.max_tool_rounds),
            language=language,
            llm_config={"model": self.model, "temperature": self.temperature, "streaming": self.streaming},
        )


@dataclass(kw_only=True)
class AgentResponse:
    """The result of one execution. `routing` is the next tool or sub-agent, or None when the agent is done."""

    success: bool = True
    content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_interactions: list[dict[str, Any]] = field(default_factory=list)
    reasoning_content: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    routing: dict[str, Any] | None = None
    token_usage: dict[str, Any] | None = None


class StreamEventType(Enum):
    """The types of stream events."""

    AGENT_START = "agent_start"
    LLM_CHUNK = "llm_chunk"
    LLM_COMPLETE = "llm_complete"
    AGENT_COMPLETE = "agent_complete"


@dataclass(kw_only=True)
class StreamEvent:
    """An event of an execution. `data` is the response so far."""

    type: StreamEventType
    agent: str
    data: AgentResponse


class BaseAgent(ABC):
    """An agent that makes exactly one model call per execution. `toolkit` are its tools, `language` is the language of
    its prompts (`en`, `zh`), and `clock` provides the time."""

    def __init__(
        self,
        config: AgentConfig | None = None,
        toolkit: Sequence[ToolSpec] | None = None,
        *,
        models: Models,
        language: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.config = config or self.default_config()
        self.toolkit = tuple(tool for tool in toolkit or () if tool.name in self.config.required_tools)
        self.sub_agents: dict[str, AgentConfig] = {}
        self.language = language
        self._models = models
        self._clock: Clock = clock or SystemClock()

    @classmethod
    def default_config(cls) -> AgentConfig:
        """Return the default configuration. Raise `WorldFault` if this class has none."""
        raise WorldFault("designs.no_default_config", name=cls.__name__)

    def register_subagent(self, config: AgentConfig) -> None:
        """Add a sub-agent that this agent can call."""
        self.sub_agents[config.name] = config

    def describe_subagents(self) -> dict[str, str]:
        """Describe the sub-agents for the tool section of the prompt."""
        return {to_one_line(name): to_one_line(config.description) for name, config in self.sub_agents.items()}

    def now(self) -> str:
        """Return the time for prompts, to the minute: seconds would defeat the provider's cache."""
        return f"{datetime.fromtimestamp(self._clock.now() / 1000, UTC):%Y-%m-%d %H:%M} UTC"

    def spec(self, context: Mapping[str, Any] | None = None) -> AgentSpec:
        """Return the agent as a member of a team that also has its sub-agents. The prompt is built once here, so its
        time and artifacts are those of the start."""
        return self.config.spec(self.build_system_prompt(context), tuple(self.sub_agents), language=self.language)

    @abstractmethod
    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """Build the prompt without tools. `context` holds what changes (`artifacts_inventory`)."""

    @abstractmethod
    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """Return the answer as other agents read it."""

    def build_complete_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """Build the prompt with tool instructions."""
        agents, language = self.describe_subagents(), self.language or DEFAULT_LANGUAGE
        acts = self.toolkit or agents
        tool_prompt = render_prompt(["xml_tool"], tools=self.toolkit, agents=agents, language=language) if acts else ""
        return f"{self.build_system_prompt(context)}\n\n{tool_prompt}".rstrip()

    def parse_tool_calls(self, text: str) -> list[dict[str, Any]]:
        """Return the tool calls in a reply with `name` and `params`. Only the first is used."""
        reply = self._parse_reply(text)
        return [{"name": reply.call.name, "params": dict(reply.call.arguments)}] if isinstance(reply, BlockCall) else []

    async def stream(
        self, messages: Sequence[Mapping[str, str]], is_resuming: bool = False
    ) -> AsyncIterator[StreamEvent]:
        """Run one execution. `messages` is the whole conversation; `is_resuming` continues after a tool call."""
        response = AgentResponse(metadata={"is_resuming": is_resuming})
        yield self._event(StreamEventType.AGENT_START, response)
        async with ClosingStream(self._call_llm_with_retry(messages)) as events:
            async for event in events:
                if apply_event(response, event):
                    yield self._event(StreamEventType.LLM_CHUNK, response)
        yield self._event(StreamEventType.LLM_COMPLETE, response)
        if response.success:
            self._route(response)
        yield self._event(StreamEventType.AGENT_COMPLETE, response)

    def _call_llm_with_retry(self, messages: Sequence[Mapping[str, str]]) -> AsyncIterator[ModelEvent]:
        config = self.config
        patience = RetryPolicy(retries=config.llm_max_retries, delay=config.llm_retry_delay)
        model = RetryingModel(self._models.get_model(config.model), RateLimiter(parallel=1), patience)
        agent = AgentId(config.name)
        request = ModelRequest(
            purpose=Purpose(agent=agent, skill="converse", step=StepId(f"{agent}#1"), thread=ThreadId(agent), turn=1),
            messages=tuple(_make_message(message) for message in messages),
            temperature=config.temperature,
            streaming=config.streaming,
            max_output=min(MAX_OUTPUT_TOKENS, model.card.output),
        )
        return model.stream(request)

    def _route(self, response: AgentResponse) -> None:
        """Choose the next step: a tool, a sub-agent, or the end."""
        reply = self._parse_reply(response.content, ended=response.metadata.get("finish_reason") in ("stop", "calls"))
        if isinstance(reply, BlockRejection):
            response.success, response.content = False, str(reply)
            return
        if isinstance(reply, BlockCall):
            response.tool_calls = [{"name": reply.call.name, "params": dict(reply.call.arguments)}]
            response.routing = dict(route_reply(reply) or {})
            response.metadata["dropped"] = list(reply.dropped)
            return
        response.content = self.format_final_response(response.content, response.tool_interactions)

    def _parse_reply(self, text: str, *, ended: bool = True) -> ParsedReply:
        pure, agents = {tool.name for tool in self.toolkit if tool.pure}, tuple(self.sub_agents)
        return read(text, ["xml_tool"], tools=self.toolkit, agents=agents, pure=pure, policy="first", ended=ended)

    def _event(self, kind: StreamEventType, response: AgentResponse) -> StreamEvent:
        return StreamEvent(type=kind, agent=self.config.name, data=response)


class TaggedAgent(BaseAgent):
    """A sub-agent that answers in `tag`, which its prompt asks for. The instruction contains its whole task."""

    prompt: ClassVar[str]
    tag: ClassVar[str]

    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        name, rounds = to_one_line(self.config.name), self.config.max_tool_rounds
        variables = {"now": self.now(), "name": name, "rounds": rounds, "tag": self.tag}
        return PACK.render(self.language, self.prompt, variables)

    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """Wrap an answer in its tag. Without an answer, use the last tool result."""
        text, tag = content.strip(), self.tag
        if f"<{tag}>" in text and f"</{tag}>" in text:
            return text
        results = [str(entry.get("content", "")).strip() for entry in tool_history if entry.get("role") == "tool"]
        return f"<{tag}>\n{escape_tags(text or next(reversed(results), ''))}\n</{tag}>"


def _make_message(message: Mapping[str, str]) -> ChatMessage:
    role = message["role"]
    match role:
        case "system" | "user" | "assistant":
            return ChatMessage(role=role, content=message["content"])
        case _:
            return ChatMessage(role="user", content=message["content"])


def apply_event(response: AgentResponse, event: LiveEvent) -> bool:
    """Add an event to the response. Return whether it is a chunk to publish."""
    match event:
        case ModelTextDelta():
            response.content += event.text
            response.metadata["chunk"] = "content"
            return True
        case ModelReasoningDelta():
            response.reasoning_content = (response.reasoning_content or "") + event.text
            response.metadata["chunk"] = "reasoning"
            return True
        case Retried():
            response.content, response.reasoning_content = "", None
        case Finished():
            response.metadata["finish_reason"] = event.reason
        case Usage():
            response.token_usage = {"input_tokens": event.input, "output_tokens": event.output}
        case Failed():
            response.success, response.content = False, event.why
        case _:
            pass
    return False


def escape_tags(text: str) -> str:
    """Escape tags. Only `<` is escaped, which is enough and stays readable."""
    return text.replace("<", "&lt;")


def to_one_line(value: object) -> str:
    """Put a value on one line, so that it cannot add items to a list."""
    return escape_tags(" ".join(str(value).split()))


def render_list(value: object) -> str:
    """Render a context value: text unchanged, everything else as a list with one line per item."""
    match value:
        case None:
            return ""
        case str():
            return escape_tags(value.strip())
        case Mapping():
            return "\n".join(f"- {to_one_line(name)}: {_render_item(item)}" for name, item in value.items())
        case Iterable():
            return "\n".join(f"- {_render_item(item)}" for item in value)
        case _:
            return to_one_line(value)


def _render_item(item: object) -> str:
    fields = item.items() if isinstance(item, Mapping) else ()
    return "; ".join(f"{to_one_line(name)}: {to_one_line(value)}" for name, value in fields) or to_one_line(item)


def merge_agent_response_to_state(state: MutableMapping[str, Any], agent: str, response: AgentResponse) -> None:
    """Store a response in the agent's memory. Exchanges are appended; the last response is replaced."""
    memories = state.setdefault("agent_memories", {})
    memory = memories.setdefault(agent, {"tool_interactions": [], "last_response": {}, "tool_round_count": 0})
    if response.tool_interactions:
        memory["tool_interactions"] = [*memory["tool_interactions"], *response.tool_interactions]
    memory["last_response"] = {
        "success": response.success,
        "content": response.content,
        "tool_calls": response.tool_calls,
        "metadata": response.metadata,
        "reasoning": response.reasoning_content,
    }
    if response.routing is not None and response.routing.get("type") == "tool_call":
        memory["tool_round_count"] += 1


@dataclass(kw_only=True)
class ExecutionMetrics:
    """The metrics of a run. The graph keeps them, not the agent's memory."""

    started: float = field(default_factory=time.monotonic)
    executions: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)

    def record(self, agent: str, usage: Data | None) -> None:
        """Record one execution."""
        self.executions[agent] = self.executions.get(agent, 0) + 1
        spent = sum(value for value in (usage or {}).values() if isinstance(value, int))
        self.tokens[agent] = self.tokens.get(agent, 0) + spent

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.started
