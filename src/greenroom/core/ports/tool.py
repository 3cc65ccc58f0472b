"""Tools: the facts about a tool beyond its description for the model. A tool is an executor with a card."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Executor
from greenroom.core.ports.model import ToolSpec
from greenroom.core.state.spec import ToolGroup
from greenroom.core.state.step import Effect

MAX_RESULT_BYTES: Final = 30_000
"""Maximum bytes of a result that an agent reads. A longer one shows its beginning, its end and a handle to the rest."""


WHOLE_KEY: Final = "whole"
"""The key of the full text in a result whose `output` is only a part. The log stores a large one as a blob."""

BUILT_IN: Final = "built-in"
"""The source of Greenroom's own tools."""


@record
class Target:
    """What a call would touch. A `path` is relative to the workspace root, a `host` may have a port, a `command` is a
    whole command line. `tool` is a call of which only the name is known."""

    kind: Literal["path", "command", "host", "tool"]
    value: str
    writes: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolCard:
    """The facts about a tool. `spec` is its description for the model, `source` where the tool comes from. `seconds` is
    the time limit of a call (0: none). `shown` is how many bytes of its result are read at once. With `alias_of` it
    is another name of that tool: agents get it by name, and the original by group. `ends_own` marks a built-in tool
    that only ends what agents of the team started, which needs no approval. After a `long_tail` tool, a planning
    agent decides each time whether to continue with it."""

    spec: ToolSpec
    group: ToolGroup
    effect: Effect = "effectful"
    seconds: int = 0
    shown: int = MAX_RESULT_BYTES
    source: str = BUILT_IN
    alias_of: str = ""
    ends_own: bool = False
    long_tail: bool = False


class ToolExecutor(Executor, Protocol):
    """A tool. Its result has its text under `output`; a failure is a `failed` outcome that says why."""

    @property
    def card(self) -> ToolCard:
        """The facts about the tool."""
        ...

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return what a call with these arguments would touch. They come from the model and may be invalid."""
        ...


@record
class PolicyDecision:
    """The policy's decision. `rule` is the deciding rule, `why` a sentence for the person or agent that reads it.

    *notify* runs the call and reports it; *ask* needs a person. `grant` is the narrowest useful rule that would allow a
    call: it is what "always" proposes.
    """

    verdict: Literal["allow", "notify", "ask", "deny"]
    rule: str = ""
    why: str = ""
    grant: str = ""


class Policy(Protocol):
    """The policy of a team. `grants` are rules that a person granted for this run; `limits` bind this agent and only
    tighten."""

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """Return whether the agent may make this call. Fast, deterministic and without side effects."""
        ...
