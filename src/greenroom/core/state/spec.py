"""The spec of an agent: everything needed to create it, in one format for every source."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.records import Data, record

AgentKind = Literal["llm", "human", "system"]
AgentStyle = Literal["converse", "plan"]
TurnEnd = Literal["finish", "mark", "text"]
MultipleCalls = Literal["reject", "first"]
ToolGroup = Literal["read", "edit", "command", "browser", "web", "mcp", "memory", "human"]


SEARCH_HISTORY: Final = "search_history"
"""The tool that searches an agent's own conversation before its window. Each agent has it once the window was moved."""


@record
class TurnPolicy:
    """How an agent's turn works and what ends its work.

    `protocols` are the text formats in which it calls tools; without any it uses native tool calls. `ends` is the
    signal that it is done: the `finish` call, a mark in the text, or text without a call. `rounds` is how often it may
    act before it must answer (0: the default limit). `repairs` is how often an unusable reply is requested again.
    """

    protocols: tuple[str, ...] = ()
    several: MultipleCalls = "reject"
    ends: TurnEnd | None = None
    auto_complete: bool | None = None
    rounds: int = 0
    repairs: int = 2


@record
class History:
    """When a long conversation is summarised: after `summary_rounds` rounds (0: when the window is full).

    With `need_summary` the work ends with a summary. With `retrospective` the person is asked before the end whether
    they are satisfied, and the agent may propose a skill. With `force_save_memory` it is asked before the end what is
    worth remembering. None stands for the person's settings.
    """

    summary_rounds: int = 0
    summary_prompt: str = ""
    need_summary: bool = False
    retrospective: bool | None = None
    force_save_memory: bool | None = None


@record
class PlanPolicy:
    """Whether an agent splits a task into subtasks that it gives to copies of itself, one after the other.

    Copies at `max_depth` do not split their part. `depth` is 0 for the agent itself. `max_steps` limits the subtasks of
    one plan. None stands for the person's settings.
    """

    enabled: bool | None = None
    max_depth: int | None = None
    max_steps: int = 10
    depth: int = 0

    @property
    def depth_limit(self) -> int:
        """The greatest depth at which a copy works, 0 for an agent that never splits a task."""
        return (2 if self.max_depth is None else self.max_depth) if self.enabled else 0

    @property
    def may_split(self) -> bool:
        """Whether an agent at this depth splits its tasks."""
        return self.depth < self.depth_limit


@record
class Cooperation:
    """Facts for planners and partners: parallel work, duration in seconds, success rate in percent, partners."""

    concurrency: int = 1
    seconds: int = 0
    success: int = 0
    cooperates: bool = True
    partners: tuple[str, ...] = ()
    protocol: str = ""


@record
class Handoff:
    """How an agent of a routing team passes its work on.

    With `summary` the receiver gets a summary of the sender's work, for which `summary_prompt` asks. With `clear` the
    sender's conversation is emptied after a message, once it has `clear_tokens` tokens or `clear_turns` turns (0: at
    once). With `arbiter` a model chooses the receiver of a message that names none.
    """

    summary: bool = True
    summary_prompt: str = ""
    clear: bool = False
    clear_tokens: int = 0
    clear_turns: int = 0
    arbiter: bool = False


@record
class AgentSpec:
    """The fixed part of an agent. `prompt` holds its instructions, `answer` the JSON Schema of its answers.

    `calls` lists the agents that it may call for a reply. `rules` are restrictions: they bind this agent and every
    agent that it brings into a conversation. `proof` is the tool that verifies its work; the agent's own report is only
    a claim. With `use_skills` it is given the skills (`SKILL.md`) that fit its task. Its `files` go
    with the first message of a task. A member of a routing team has a `handoff`.
    """

    name: str
    role: str = ""
    profile: str = ""
    description: str = ""
    prompt: str = ""
    kind: AgentKind = "llm"
    style: AgentStyle = "converse"
    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    groups: tuple[ToolGroup, ...] = ()
    rules: tuple[str, ...] = ()
    proof: str = ""
    capabilities: tuple[str, ...] = ()
    manager: bool = False
    answer: Data | None = None
    turn: TurnPolicy = TurnPolicy()
    history: History = History()
    planner: PlanPolicy = PlanPolicy()
    cooperation: Cooperation | None = None
    handoff: Handoff | None = None
    language: str = ""
    llm_config: Data | None = None
    human_config: Data | None = None
    use_skills: bool = True
    files: tuple[str, ...] = ()
    version: str = ""
