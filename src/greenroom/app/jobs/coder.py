"""The coder: who does a job when nobody else is named."""

from __future__ import annotations

from typing import Final

from greenroom.app.jobs.verdict import DELIVER
from greenroom.core.base.records import evolve
from greenroom.core.ports.packs import Pack
from greenroom.core.state.spec import AgentSpec, Turn

PACK: Final = Pack("greenroom.app.jobs.prompts")
TOOLS: Final = (
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
"""Few, and each for something that the others are not for."""

CODER: Final = AgentSpec(name="coder", role="a software engineer", tools=TOOLS, manager=True, turn=Turn(ends="finish"))


def coder(language: str) -> AgentSpec:
    """Somebody who changes a repository, told how in their language."""
    return evolve(CODER, prompt=PACK.render(language, "coder", {}), language=language)


def proven(spec: AgentSpec) -> AgentSpec:
    """An agent on whose work the house has the last word."""
    return evolve(spec, proof=DELIVER)
