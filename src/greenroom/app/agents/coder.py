"""The agent that changes a repository. Agent files with `agent_type: code` start from it."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import evolve
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.core.state.spec import AgentSpec, TurnPolicy

PACK: Final = PromptPack("greenroom.app.runs.prompts")
CODER_TOOLS: Final = (
    "read_code",
    "list_files",
    "search_files",
    "patch",
    "rewrite",
    "execute_script",
    "command_output",
    "stop_command",
    "run_checks",
    "propose_plan",
    "ask_user",
    "read_output",
)

CODER: Final = AgentSpec(
    name="coder", role="a software engineer", tools=CODER_TOOLS, manager=True, turn=TurnPolicy(ends="finish")
)


def build_coder(language: str) -> AgentSpec:
    """Return the agent that changes a repository, with instructions in this language."""
    return evolve(CODER, prompt=PACK.render(language, "coder", {}), language=language)
