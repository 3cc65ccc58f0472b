"""The spec of an agent: everything needed to make it, or to make it again. One form for all who describe agents."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.records import Data, record

Kind = Literal["llm", "human", "system"]
Style = Literal["converse", "plan"]
Ends = Literal["finish", "mark", "text"]
Several = Literal["reject", "first"]
Group = Literal["read", "edit", "command", "browser", "web", "mcp", "memory", "human"]


@record
class Turn:
    """How a turn goes and when the work is over.

    `protocols` are the text forms in which it acts; with none it makes native calls. `ends` is what says that it is
    done: the `finish` call, a mark in the text, or any text without a call. `rounds` is how often it may act before it
    has to answer (0: as often as the house allows); `repairs` how often a reply that cannot be used is asked for again.
    """

    protocols: tuple[str, ...] = ()
    several: Several = "reject"
    ends: Ends | None = None
    auto_complete: bool | None = None
    rounds: int = 0
    repairs: int = 2


@record
class History:
    """What becomes of a long conversation: after so many rounds (0: when the window is full) it is summed up.

    With `need_summary` the work ends with a summary.
    """

    summary_rounds: int = 0
    summary_prompt: str = ""
    need_summary: bool = False


@record
class Cooperation:
    """What planners and partners may know of it: how many at once, how long it takes, how often (in percent)
    it succeeds, with whom it works."""

    concurrency: int = 1
    seconds: int = 0
    success: int = 0
    cooperates: bool = True
    partners: tuple[str, ...] = ()
    protocol: str = ""


@record
class AgentSpec:
    """The static part of an agent. `prompt` is what it is told of its work; `answer` the JSON Schema of its answers.

    `calls` are the agents that it may call and hear back from. `rules` are what it may not do, or not unasked: they
    bind it, and whoever is brought into a conversation by it. `proof` is the tool that has the last word on its work:
    what it says itself is a claim.
    """

    name: str
    role: str = ""
    profile: str = ""
    description: str = ""
    prompt: str = ""
    kind: Kind = "llm"
    style: Style = "converse"
    skills: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    rules: tuple[str, ...] = ()
    proof: str = ""
    capabilities: tuple[str, ...] = ()
    manager: bool = False
    answer: Data | None = None
    turn: Turn = Turn()
    history: History = History()
    cooperation: Cooperation | None = None
    language: str = ""
    llm_config: Data | None = None
    human_config: Data | None = None
    version: str = ""
