"""The capabilities of conversations: questions, runs and chats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.app.conversation.capability_names import ASK, CHAT, RUN
from greenroom.app.settings.schema import Settings
from greenroom.app.text_reader import TextReader
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory, Executor
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.ports.skill_library import SkillLibrary
from greenroom.core.state.team import Team


class TeamTools(Protocol):
    """The tools of a team, closed together with it."""

    @property
    def specs(self) -> Sequence[ToolSpec]: ...

    @property
    def executors(self) -> Sequence[Executor]: ...

    async def close(self) -> None:
        """Stop everything that still runs."""
        ...


TeamToolsFactory: TypeAlias = Callable[[Path], TeamTools]


def make_conversation_factories(
    models: Models,
    notes: Callable[[], str],
    make_tools: TeamToolsFactory | None = None,
    get_settings: Callable[[], Settings] = Settings,
    get_skills: Callable[[], SkillLibrary | None] = lambda: None,
) -> Mapping[str, CapabilitiesFactory]:
    """Return the capability factories by name. Models and workspace are not touched before a team runs.

    `make_tools` builds the tools of a team with a workspace. `get_skills` returns the skills of the workspace.
    """

    def make(team: Team, *, solo: bool) -> Capabilities:
        settings = get_settings()
        tools = make_tools(Path(team.workspace)) if make_tools is not None and team.workspace else None
        skills = build_conversation_skills(
            models,
            tools.specs if tools is not None else (),
            solo=solo,
            reader=TextReader(),
            project=notes(),
            filter_above=settings.agents.filter_tools_above,
            skills=get_skills(),
        )
        if tools is None:
            return Capabilities(skills)
        return Capabilities(
            (*skills, *tools.executors), on_close=tools.close, approvals_expire=settings.approval_timeout_ms
        )

    return {
        ASK: lambda _: Capabilities(build_conversation_skills(models, solo=True, reader=TextReader())),
        RUN: lambda team: make(team, solo=True),
        CHAT: lambda team: make(team, solo=False),
    }
