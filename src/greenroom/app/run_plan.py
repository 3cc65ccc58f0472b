"""Prepare a run: its agents, models, tools and limits, and what of the workspace is not trusted. No model is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from greenroom.app.agents.coder import build_coder
from greenroom.app.context import AppContext
from greenroom.app.conversation.agent_files import add_agent_files
from greenroom.app.conversation.chat_input import Attachment, build_message
from greenroom.app.conversation.start import (
    ASSISTANT,
    Participants,
    let_others_join_later,
    refuse_unpriced,
    select_participants,
    select_team,
)
from greenroom.app.memories import find_memory_items
from greenroom.app.messages import translate
from greenroom.app.settings.home import home_folder
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.teams.analysis import TeamAnalyst
from greenroom.app.teams.metrics import measure_past_merges, measure_past_runs
from greenroom.app.teams.team_file import RoutingTeam, find_team_file, list_team_items, read_team
from greenroom.app.toolset.custom import check_new_servers as meet
from greenroom.app.toolset.mcp import list_server_items
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.trust import TrustItem, TrustState, find_trust_items, open_trust_store
from greenroom.app.workspace import current_folder
from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.tool import BUILT_IN
from greenroom.core.state.step import SIDE_EFFECTS, StoredMedia
from greenroom.teamwork.conflicts import CODE_STRATEGIES
from greenroom.teamwork.plan import Plan, PlanFault
from greenroom.teamwork.plan_text import parse_plan_text

if TYPE_CHECKING:
    from greenroom.app.agents.discovery import Agents

Notify: TypeAlias = Callable[[str], None]
"""Reports a sentence to the person."""

TRUST_COMMAND: Final = "greenroom trust"
DESK_PACKAGE: Final = "greenroom.app.research.agents"
DESK_AGENTS: Final = ("lead_agent", "search_agent", "crawl_agent")
"""The agents of the research desk, the lead first."""

SERVER_TOOL_PREFIX: Final = "mcp__"  # prefix of the names of MCP tools
WRITING_GROUPS: Final = frozenset({"edit", "command"})
"""Groups of tools that change files of a workspace."""

MAX_TOOLS_SHOWN: Final = 5  # tools that a sentence lists


@record
class RunPlan:
    """The agents of a run and its limits.

    `writers` are the agents that can change files, by edits or by commands. `notes` say which agents cannot be called,
    and why. `outside` names the tools that act outside the worktree. `spent` is what the planning of a team took.
    """

    participants: Participants
    caps: LimitSettings
    language: str
    is_replayed: bool
    writers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outside: str = ""
    spent: Amounts = NOTHING

    @property
    def limits(self) -> Limits:
        """The limits of the run."""
        return self.caps.limits.minus(self.spent)

    @property
    def who(self) -> str:
        """The agent, its model, and whether that is a recording."""
        agent_part = "" if self.participants.first == ASSISTANT.name else f"{self.participants.first} · "
        replay_part = f" · {translate('start.replayed')}" if self.is_replayed else ""
        return f"{agent_part}{self.participants.models[0]}{replay_part}"

    @property
    def line(self) -> str:
        """The agent, its model and the limits."""
        return f"{self.who} · {describe_limits(self.caps)}"

    async def make_message(
        self, app: AppContext, text: str, context: str = "", *, note: Notify
    ) -> tuple[str, tuple[StoredMedia, ...]]:
        """Return the message for the agent: its files, the piped text, then the request."""
        attached = (Attachment(text=context),) if context else ()
        return await self.add_files(app, build_message(text, attached, language=self.language), note=note)

    async def add_files(self, app: AppContext, text: str, *, note: Notify) -> tuple[str, tuple[StoredMedia, ...]]:
        """Return a message with the agent's files. Report those that are left out."""
        _, spec = self.participants.members[0]
        if not spec.files:
            return text, ()
        model = app.get_model(self.participants.models[0])
        prompt, notes = await add_agent_files(spec, app.root, text, model, app.runtime.log)
        for text_of_note in notes:
            note(f"! {text_of_note}")
        return prompt.text, prompt.media


def add_built_in(agents: Agents, language: str) -> Agents:
    """Add the agents that need no file. A file with the name of one of them, also a broken one, is used instead."""
    from greenroom.app.agents.discovery import AgentFile, AgentFolder, read_packaged_agent
    from greenroom.app.teams.profiles import add_specialists

    built_in = {"agents.coder": build_coder(language), "agents.assistant": ASSISTANT}
    specs = [evolve(spec, description=translate(key)) for key, spec in built_in.items()]
    folder, broken = AgentFolder(folder=Path(), scope="built-in"), {item.name for item in agents.broken_files}
    desk = (read_packaged_agent(DESK_PACKAGE, name, language) for name in DESK_AGENTS)
    known = (spec for spec in (*specs, *desk) if spec.name not in broken)
    files = (AgentFile(spec=spec, path=Path(), folder=folder) for spec in known)
    by_name = {**{file.spec.name: file for file in files}, **add_specialists(agents, language).by_name}
    return evolve(agents, by_name=by_name)


async def plan_run(
    app: AppContext,
    *,
    agent: str = "",
    model: str = "",
    tools: bool = True,
    in_worktree: bool = False,
    team_file: str = "",
    is_replayed: bool = False,
    caps: LimitSettings | None = None,
    note: Notify,
    trust_command: str = TRUST_COMMAND,
) -> RunPlan:
    """Choose the agents, and check that their models are usable and priced. No model is called.

    An empty `agent` means the default: a coder if `in_worktree`, else the assistant. The agents of a `team_file` hand
    the task over among them.
    """
    provisions = app.model_session
    team = _read_team(app, team_file, trust_command) if team_file else None
    agents = add_built_in(app.agents(), app.language) if agent else None
    default_spec = build_coder(app.language) if in_worktree else ASSISTANT
    is_default = agent == default_spec.name and (agents is None or agent not in agents.by_name)
    spec = agents.get(agent).spec if agents is not None and not is_default else default_spec
    await provisions.find_local_servers()
    settings = provisions.loaded_settings.settings
    others = agents.specs if agents is not None else {}
    resolve, language, own = provisions.resolve_alias, settings.language, settings.agents
    select = partial(select_participants, defaults=own, is_attended=app.is_attended)
    participants = (
        select(spec, others, resolve, model=model, tools=tools, language=language)
        if team is None
        else select_team(team.routing, resolve, model=model, tools=tools, language=language)
    )
    if agents is not None:
        agents.refuse_missing_agents([name for name, _ in participants.members])
    toolbox = await _find_toolbox(app, participants, note) if tools else None
    if toolbox is not None:
        _refuse_missing_tools(toolbox, participants, agents, team)
        defaults = {ASSISTANT.name: toolbox.default_names}  # the built-in assistant names no tools
        members = tuple(
            (name, toolbox.equip(spec, default=defaults.get(name, ()))) for name, spec in participants.members
        )
        participants = evolve(participants, members=members, workspace=str(app.root))
    writing_tools = {tool.name for tool in toolbox or () if tool.card.group in WRITING_GROUPS}
    for name in participants.models:
        refuse_unpriced(provisions.get_model(name), (caps or settings.limits).limits)
    return RunPlan(
        participants=let_others_join_later(participants),
        caps=caps or settings.limits,
        language=settings.language,
        is_replayed=is_replayed,
        writers=tuple(name for name, spec in participants.members if writing_tools.intersection(spec.tools)),
        outside=_list_outside_tools(participants, toolbox) if toolbox is not None else "",
        notes=(
            *(_explain_missing_agent(name, agents) for name in participants.missing),
            *(_describe_resources(app, participants, toolbox) if toolbox is not None else ()),
        ),
    )


def _describe_resources(app: AppContext, participants: Participants, toolbox: Toolbox) -> tuple[str, ...]:
    """Describe what the agents start with: tools, skills, memories and the folder, then what is wrong with tools."""
    used = {name for _, spec in participants.members for name in spec.tools}
    memories, root = app.memories(), app.root
    counts = {
        "tools": f"{len(used)}/{len({tool.name for tool in toolbox} | used)}",
        "skills": app.skills.count,
        "project": memories.count("project_long_term"),
        "everywhere": memories.count("global_long_term"),
    }
    return (translate("start.resources", **counts, folder=root), *toolbox.notes)


def _read_team(app: AppContext, team_file: str, trust_command: str) -> RoutingTeam:
    """Read the file of a routing team. Raise `RefusedError` if it comes with the workspace and is not trusted."""
    root, folder = app.root, current_folder()
    path = find_team_file(root, folder, team_file).resolve()
    is_own = not path.is_relative_to(root.resolve())
    team = read_team(path, is_own=is_own)
    if not is_own and not open_trust_store().make_trust_check(root)(team.describe(root)):
        why = translate("routing.not_trusted", path=path)
        raise make_refusal("not_trusted", why, translate("routing.trust_it", command=trust_command))
    return team


def _refuse_missing_tools(
    toolbox: Toolbox, participants: Participants, agents: Agents | None, team: RoutingTeam | None
) -> None:
    tool_names = {tool.name for tool in toolbox}
    if agents is not None:
        agents.refuse_missing_tools([name for name, _ in participants.members], tool_names)
    if team is not None:
        team.refuse_missing_tools(tool_names)


def _explain_missing_agent(name: str, agents: Agents | None) -> str:
    broken_files = agents.broken_files if agents is not None else ()
    why = next((broken_file.text for broken_file in broken_files if broken_file.name == name), "")
    return translate("start.broken_agent", name=name, why=why) if why else translate("start.unknown_agent", name=name)


async def check_servers(app: AppContext, participants: Participants, note: Notify) -> None:
    """Read the tool lists of new MCP servers if an agent uses their tools."""
    specs = [spec for _, spec in participants.members]
    is_named = any(name.startswith(SERVER_TOOL_PREFIX) for spec in specs for name in spec.tools)
    if is_named or any("mcp" in spec.groups or spec.name == ASSISTANT.name for spec in specs):
        for fault in await meet(app.root):
            note(fault)


async def _find_toolbox(app: AppContext, participants: Participants, note: Notify) -> Toolbox | None:
    """Return the tools of the current workspace; None if no agent uses tools."""
    if not any(spec.tools or spec.groups or spec.name == ASSISTANT.name for _, spec in participants.members):
        return None
    await check_servers(app, participants, note)
    return app.toolbox()


def _list_outside_tools(participants: Participants, tools: Toolbox) -> str:
    wanted = {name for _, spec in participants.members for name in spec.tools}
    foreign = (tool for tool in tools if tool.card.source != BUILT_IN and tool.card.effect in SIDE_EFFECTS)
    names = [tool.name for tool in foreign if tool.name in wanted]
    hidden = len(names) - MAX_TOOLS_SHOWN
    more = translate("counts.and_more", count=hidden) if hidden > 0 else ""
    return translate("start.outside_tools", names=", ".join(names[:MAX_TOOLS_SHOWN]), more=more) if names else ""


def describe_limits(caps: LimitSettings) -> str:
    """Describe the limits in a few words."""
    parts = [
        f"${caps.cost:g}" if caps.cost is not None else "",
        translate("start.limit_tokens", tokens=caps.tokens) if caps.tokens is not None else "",
        translate("start.limit_time", time=caps.time) if caps.time is not None else "",
    ]
    limits = translate("counts.comma").join(filter(None, parts))
    return translate("start.limits", limits=limits) if limits else translate("start.no_limit")


# --------------------------------------------------------------------------------------------- trust in a workspace

DATA_KINDS: Final = ("notes", "memory")
"""What is read as data before it is trusted. The rest is not used."""


class TrustEntry(NamedTuple):
    """Something that a workspace contains, and whether the person trusts its current content."""

    trust_item: TrustItem
    standing: TrustState


def list_trust_entries(root: Path, extra_items: Sequence[TrustItem] = ()) -> list[TrustEntry]:
    """List what needs trust in a workspace, and `extra_items`. Project notes are searched from the current folder
    upwards."""
    folder = current_folder()
    here = folder if folder.is_relative_to(root) else root
    other_items = (*list_team_items(root), *list_server_items(root), *extra_items)
    trust_items = find_trust_items(root, other_items, folder=here)
    if not trust_items:
        return []
    classify = open_trust_store().make_classifier(root)
    return [TrustEntry(trust_item, classify(trust_item)) for trust_item in trust_items]


def list_untrusted(app: AppContext, root: Path) -> list[TrustEntry]:
    """List what a workspace brings that the person does not trust as it is now."""
    memories = find_memory_items(app.memories(root))
    return [item for item in list_trust_entries(root, memories) if item.standing != "agreed"]


def describe_left_out(untrusted: Sequence[TrustEntry], command: str = TRUST_COMMAND) -> list[str]:
    """Describe what a run leaves out, or reads as data only, because it is not trusted."""
    sentences = list[str]()
    for key, is_data in (("start.left_out", False), ("start.notes_as_data", True)):
        names = [item.trust_item.name for item in untrusted if (item.trust_item.kind in DATA_KINDS) == is_data]
        if names:
            sentences.append(translate(key, names=", ".join(names), command=command))
    return sentences


# -------------------------------------------------------------------------------------------------- the plan of a team

Parse: TypeAlias = Callable[[str], Plan]
"""Reads the text of a plan. Raises `PlanFault`, with the line, if it cannot be used."""


async def open_analyst(
    app: AppContext, model: str = "", *, note: Notify, warn: Notify, limits: Limits | None = None
) -> TeamAnalyst:
    """Return the analyst of the current workspace. Raise `RefusedError` if teams are off."""
    await app.model_session.find_local_servers()
    strategy, known = app.settings.team.conflict_strategy, (*CODE_STRATEGIES, "human")
    if strategy not in known:
        warn(translate("plan.unknown_strategy", value=strategy, known=", ".join(known)))
    home = home_folder(app.home)
    measured, past = await measure_past_runs(app, home), await measure_past_merges(app, home)
    return TeamAnalyst(app, model=model, measured=measured, past=past, notify=note, limits=limits)


def make_parser(analyst: TeamAnalyst, old: Plan | None = None) -> Parse:
    """Return the parser of an edited plan. With the `old` plan of a run, only the subtasks can change."""

    def parse(text: str) -> Plan:
        plan = parse_plan_text(text, analyst.names, analyst.settings)
        if isinstance(plan, PlanFault):
            raise plan
        for key in ("request", "on_failure", "max_concurrent"):
            if old is not None and getattr(plan, key) != getattr(old, key):
                raise PlanFault("plan.only_subtasks", key=key)
        return plan

    return parse
