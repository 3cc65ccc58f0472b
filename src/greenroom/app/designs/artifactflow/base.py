"""What all agents of ArtifactFlow have: one model call per execution, calls as XML in the text, and their records.

The graph is Greenroom's turn: `AgentConfig.spec` is the same agent as a member of a team, where calls are run, rounds
are counted and sub-agents are called. `BaseAgent.stream` is a single execution, for those with a graph of their own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from greenroom.abilities.protocols import Acts, NotRun, Read, prompt, read, routing
from greenroom.adapters.models.retry import Gate, Patience, Retrying
from greenroom.app.clock import SystemClock
from greenroom.core.base.clock import Clock, Millis
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Live
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Listening,
    ModelEvent,
    ModelRequest,
    Models,
    Purpose,
    ReasoningDelta,
    Retried,
    TextDelta,
    ToolSpec,
    Usage,
)
from greenroom.core.ports.packs import ENGLISH, Pack
from greenroom.core.state.spec import AgentSpec, Turn

PACK: Final = Pack("greenroom.app.designs.artifactflow.prompts")
LONGEST: Final = 4096
"""Tokens of an answer."""


@dataclass(kw_only=True)
class AgentConfig:
    """How an agent is set up."""

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
        """The same agent as a member of a team: there the rounds are counted, and calls are run."""
        return AgentSpec(
            name=self.name,
            description=self.description,
            capabilities=tuple(self.capabilities),
            tools=tuple(self.required_tools),
            calls=tuple(sub_agents),
            prompt=prompt,
            turn=Turn(protocols=("xml_tool",), several="first", ends="text", rounds=self.max_tool_rounds),
            language=language,
            llm_config={"model": self.model, "temperature": self.temperature, "streaming": self.streaming},
        )


@dataclass(kw_only=True)
class AgentResponse:
    """One turn. `routing` says what follows: a tool, a sub-agent, or None when the agent is done."""

    success: bool = True
    content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_interactions: list[dict[str, Any]] = field(default_factory=list)
    reasoning_content: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    routing: dict[str, Any] | None = None
    token_usage: dict[str, Any] | None = None


class StreamEventType(Enum):
    """What a stream tells of."""

    AGENT_START = "agent_start"
    LLM_CHUNK = "llm_chunk"
    LLM_COMPLETE = "llm_complete"
    AGENT_COMPLETE = "agent_complete"


@dataclass(kw_only=True)
class StreamEvent:
    """Something that happened in a turn; `data` is the turn as far as it has come."""

    type: StreamEventType
    agent: str
    data: AgentResponse


class BaseAgent(ABC):
    """An agent that makes exactly one model call per execution. `toolkit` are the tools that it may ask for.

    `language` is the one it is told things in (`en`, `zh`); `clock` says what time it is told.
    """

    def __init__(
        self,
        config: AgentConfig | None = None,
        toolkit: Sequence[ToolSpec] | None = None,
        *,
        models: Models,
        language: str = "",
        clock: Clock | None = None,
    ) -> None:
        self.config = config or self.usual()
        self.toolkit = tuple(tool for tool in toolkit or () if tool.name in self.config.required_tools)
        self.sub_agents: dict[str, AgentConfig] = {}
        self.language = language
        self._models = models
        self._clock: Clock = clock or SystemClock()

    @classmethod
    def usual(cls) -> AgentConfig:
        """How it is set up where nobody says; `WorldFault` for a kind of agent that has nothing of that sort."""
        raise WorldFault(f"{cls.__name__} has no configuration of its own: give it an AgentConfig.")

    def register_subagent(self, config: AgentConfig) -> None:
        """Let it call this one."""
        self.sub_agents[config.name] = config

    def describe_subagents(self) -> dict[str, str]:
        """Whom it can call, as that stands with the tools."""
        return {line(name): line(one.description) for name, one in self.sub_agents.items()}

    def now(self) -> str:
        """The time, as a prompt says it."""
        return minute(self._clock.now())

    def spec(self, context: Mapping[str, Any] | None = None) -> AgentSpec:
        """The same agent as a member of a team, where its sub-agents are members too.

        Its prompt is built here, once: what it says of the time and of artifacts is true when the work begins.
        """
        return self.config.spec(self.build_system_prompt(context), tuple(self.sub_agents), language=self.language)

    @abstractmethod
    def build_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """What the agent is told, without the tools; `context` holds what changes (`artifacts_inventory`)."""

    @abstractmethod
    def format_final_response(self, content: str, tool_history: Sequence[Mapping[str, Any]]) -> str:
        """The answer as others read it."""

    def build_complete_system_prompt(self, context: Mapping[str, Any] | None = None) -> str:
        """The same, and then how tools are called."""
        agents, language = self.describe_subagents(), self.language or ENGLISH
        acts = self.toolkit or agents
        told = prompt(["xml_tool"], tools=self.toolkit, agents=agents, language=language) if acts else ""
        return f"{self.build_system_prompt(context)}\n\n{told}".rstrip()

    def parse_tool_calls(self, text: str) -> list[dict[str, Any]]:
        """The calls in a reply, each with `name` and `params`: only the first one is ever used."""
        found = self._read(text)
        return [{"name": found.call.name, "params": dict(found.call.arguments)}] if isinstance(found, Acts) else []

    async def stream(
        self, messages: Sequence[Mapping[str, str]], is_resuming: bool = False
    ) -> AsyncIterator[StreamEvent]:
        """One execution. `messages` are the whole conversation; `is_resuming` goes on after a tool was run."""
        response = AgentResponse(metadata={"is_resuming": is_resuming})
        yield self._event(StreamEventType.AGENT_START, response)
        async with Listening(self._call_llm_with_retry(messages)) as events:
            async for event in events:
                if take(response, event):
                    yield self._event(StreamEventType.LLM_CHUNK, response)
        yield self._event(StreamEventType.LLM_COMPLETE, response)
        if response.success:
            self._route(response)
        yield self._event(StreamEventType.AGENT_COMPLETE, response)

    def _call_llm_with_retry(self, messages: Sequence[Mapping[str, str]]) -> AsyncIterator[ModelEvent]:
        config = self.config
        patience = Patience(retries=config.llm_max_retries, delay=config.llm_retry_delay)
        model = Retrying(self._models.named(config.model), Gate(parallel=1), patience)
        agent = AgentId(config.name)
        request = ModelRequest(
            purpose=Purpose(agent=agent, skill="converse", step=StepId(f"{agent}#1"), thread=ThreadId(agent), turn=1),
            messages=tuple(_message(one) for one in messages),
            temperature=config.temperature,
            streaming=config.streaming,
            max_output=min(LONGEST, model.card.output),
        )
        return model.stream(request)

    def _route(self, response: AgentResponse) -> None:
        """A tool, a sub-agent, or the end."""
        found = self._read(response.content, ended=response.metadata.get("finish_reason") in ("stop", "calls"))
        if isinstance(found, NotRun):
            response.success, response.content = False, str(found)
            return
        if isinstance(found, Acts):
            response.tool_calls = [{"name": found.call.name, "params": dict(found.call.arguments)}]
            response.routing = dict(routing(found) or {})
            response.metadata["dropped"] = list(found.dropped)
            return
        response.content = self.format_final_response(response.content, response.tool_interactions)

    def _read(self, text: str, *, ended: bool = True) -> Read:
        pure, agents = {one.name for one in self.toolkit if one.pure}, tuple(self.sub_agents)
        return read(text, ["xml_tool"], tools=self.toolkit, agents=agents, pure=pure, policy="first", ended=ended)

    def _event(self, kind: StreamEventType, response: AgentResponse) -> StreamEvent:
        return StreamEvent(type=kind, agent=self.config.name, data=response)


def _message(one: Mapping[str, str]) -> ChatMessage:
    role = one["role"]
    match role:
        case "system" | "user" | "assistant":
            return ChatMessage(role=role, content=one["content"])
        case _:
            return ChatMessage(role="user", content=one["content"])


def take(response: AgentResponse, event: Live) -> bool:
    """Add what came; whether it is a chunk that is told of."""
    match event:
        case TextDelta():
            response.content += event.text
            response.metadata["chunk"] = "content"
            return True
        case ReasoningDelta():
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


def defused(text: str) -> str:
    """The same without tags. Only `<` is escaped: that is enough, and leaves the most readable."""
    return text.replace("<", "&lt;")


def line(value: object) -> str:
    """On one line, so that it cannot add items to the list that it stands in either."""
    return defused(" ".join(str(value).split()))


def listed(value: object) -> str:
    """Something of a context, whatever its form: a text as it is, all else as a list with one line per item."""
    match value:
        case None:
            return ""
        case str():
            return defused(value.strip())
        case Mapping():
            return "\n".join(f"- {line(name)}: {_item(one)}" for name, one in value.items())
        case Iterable():
            return "\n".join(f"- {_item(one)}" for one in value)
        case _:
            return line(value)


def minute(now: Millis) -> str:
    """The time, to the minute: what stands first in a prompt and differs by a second costs the whole cache."""
    return f"{datetime.fromtimestamp(now / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def wrapped(tag: str, content: str, history: Iterable[Mapping[str, object]]) -> str:
    """An answer in its tag, also if the model forgot it; instead of no answer, the last result that it was given."""
    text = content.strip()
    if f"<{tag}>" in text and f"</{tag}>" in text:
        return text
    results = [str(one.get("content", "")).strip() for one in history if one.get("role") == "tool"]
    return f"<{tag}>\n{defused(text or next(reversed(results), ''))}\n</{tag}>"


def _item(one: object) -> str:
    fields = one.items() if isinstance(one, Mapping) else ()
    return "; ".join(f"{line(name)}: {line(value)}" for name, value in fields) or line(one)


def merge_agent_response_to_state(state: MutableMapping[str, Any], agent: str, response: AgentResponse) -> None:
    """Keep a turn in the agent's own memory: exchanges are appended, the last response is replaced."""
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
    """What a run took: kept by the graph, never in an agent's memory."""

    started: float = field(default_factory=time.monotonic)
    executions: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)

    def record(self, agent: str, usage: Data | None) -> None:
        """One execution."""
        self.executions[agent] = self.executions.get(agent, 0) + 1
        spent = sum(value for value in (usage or {}).values() if isinstance(value, int))
        self.tokens[agent] = self.tokens.get(agent, 0) + spent

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.started
