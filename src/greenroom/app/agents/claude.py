"""Reads Claude Code's subagent files and reports keys without an equivalent.

Their front matter is often not YAML: a description can contain colons, quotes and whole dialogues. Such a file is read
line by line, and a known key at the start of a line begins a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.abilities.skills.conversation.completion import DEFAULT_MAX_TURNS
from greenroom.app.agents import specs as values
from greenroom.app.agents.front_matter import FrontMatterFile, UnusableAgentFile
from greenroom.app.agents.specs import add_version
from greenroom.app.messages import translate
from greenroom.app.settings.schema import shorten
from greenroom.app.settings.values import BadValue
from greenroom.core.base.records import Data, record
from greenroom.core.base.text import remove_control_characters
from greenroom.core.state.spec import AgentSpec, ToolGroup, TurnPolicy

PERMISSION_MODE_KEY: Final = "permissionMode"
PLAN_MODE: Final = "plan"
READ_KEYS: Final = ("name", "description", "tools", "disallowedTools", "model", "effort", "maxTurns")
IGNORED_KEYS: Final = (
    *("skills", "mcpServers", "hooks", "memory", "background", "isolation", "initialPrompt", "color"),
    *("license", "allowed-tools", "metadata", "compatibility", "version"),
)
MODEL_ROLES: Final = {"opus": "strong", "sonnet": "strong", "haiku": "fast", "inherit": "", "default": ""}
EFFORT_LEVELS: Final = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
ALL_GROUPS: Final[tuple[ToolGroup, ...]] = ("read", "edit", "command", "web")
TOOL_GROUPS: Final[Mapping[str, ToolGroup]] = {
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "NotebookRead"), "read"),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell", "KillBash"), "command"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
}
AGENT_TOOLS: Final = ("Agent", "Task")

_KEY: Final = re.compile(rf"({'|'.join((*READ_KEYS, PERMISSION_MODE_KEY, *IGNORED_KEYS))})\s*:(?:\s+(.*)|$)")
_TOOL: Final = re.compile(r"[^,()\n]+(?:\([^)]*\))?")
_BLOCK: Final = re.compile(r"[|>][-+]?\s*\n")
_NOT_NAME_CHARACTERS: Final = re.compile(r"[^\w.-]+")


@record
class AgentFileNote:
    """A difference from what the file says: the key and an explanation."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"`{self.key}` {self.text}"


def from_claude(file: FrontMatterFile) -> tuple[AgentSpec, tuple[AgentFileNote, ...]]:
    """Return the agent's spec, and notes about keys that have no effect."""
    front_matter = read_loose_keys(file)
    notes: list[AgentFileNote] = []
    groups, calls = _parse_tools(front_matter, notes)
    spec = AgentSpec(
        name=_choose_name(str(front_matter.get("name") or file.path.stem).strip(), notes),
        description=remove_control_characters(str(front_matter.get("description") or "")).strip(),
        prompt=file.text,
        groups=groups,
        calls=calls,
        turn=TurnPolicy(rounds=_parse_max_turns(front_matter.get("maxTurns"), notes)),
        llm_config=_parse_model(front_matter, notes) or None,
    )
    other = [key for key, value in front_matter.items() if value not in (None, False) and key not in READ_KEYS]
    notes += [
        AgentFileNote(key=shorten(key).strip("'"), text=translate("claude.no_equivalent"))
        for key in other
        if (key, front_matter[key]) != (PERMISSION_MODE_KEY, PLAN_MODE)
    ]
    return add_version(spec), tuple(notes)


def _choose_name(raw_name: str, notes: list[AgentFileNote]) -> str:
    try:
        return values.parse_name(raw_name)
    except BadValue:
        valid_name = _NOT_NAME_CHARACTERS.sub("-", raw_name).strip("-.")[:64] or "agent"
        valid_name = f"{valid_name}-agent" if valid_name in values.RESERVED_NAMES else valid_name
        notes.append(
            AgentFileNote(
                key="name", text=translate("claude.bad_name", raw_name=shorten(raw_name), valid_name=valid_name)
            )
        )
        return valid_name


def _parse_model(front_matter: Data, notes: list[AgentFileNote]) -> dict[str, object]:
    """Return the model and the effort. Unknown values are left to the settings."""
    name, effort = str(front_matter.get("model") or "inherit").strip(), front_matter.get("effort")
    model = f"anthropic:{name.partition('[')[0]}" if name.startswith("claude-") else MODEL_ROLES.get(name.lower())
    known_effort = EFFORT_LEVELS.get(str(effort).strip().lower())
    if model is None:
        notes.append(AgentFileNote(key="model", text=translate("claude.unknown_model", name=shorten(name))))
    if effort is not None and known_effort is None:
        notes.append(AgentFileNote(key="effort", text=translate("claude.unknown_effort", effort=shorten(effort))))
    return {key: value for key, value in (("model", model), ("effort", known_effort)) if value}


def _parse_max_turns(value: object, notes: list[AgentFileNote]) -> int:
    turns = int(value) if isinstance(value, int | str) and str(value).isdecimal() and len(str(value)) < 10 else 0
    if value is None or 0 < turns <= DEFAULT_MAX_TURNS:
        return turns
    notes.append(
        AgentFileNote(
            key="maxTurns", text=translate("claude.bad_max_turns", value=shorten(value), limit=DEFAULT_MAX_TURNS)
        )
    )
    return 0


def _parse_tools(front_matter: Data, notes: list[AgentFileNote]) -> tuple[tuple[ToolGroup, ...], tuple[str, ...]]:
    """Return the tool groups that match the file's tools, and the agents it can call."""
    tool_names = _split_tool_list(front_matter.get("tools"))
    has_all_tools = front_matter.get("tools") is None or tool_names == ["*"]
    if has_all_tools:
        notes.append(AgentFileNote(key="tools", text=translate("claude.all_tools")))
    called = {
        tool: _split_tool_list(tool.partition("(")[2].rstrip(")"))
        for tool in tool_names
        if tool.partition("(")[0] in AGENT_TOOLS
    }
    calls = [name for names in called.values() for name in names if values.NAME_PATTERN.fullmatch(name)]
    missing = [] if has_all_tools else [tool for tool in tool_names if tool not in TOOL_GROUPS and not called.get(tool)]
    if missing:
        names = ", ".join(f"`{tool}`" for tool in missing)
        notes.append(AgentFileNote(key="tools", text=translate("claude.unknown_tools", names=names)))
    allowed_groups = ALL_GROUPS if has_all_tools else {TOOL_GROUPS[tool] for tool in tool_names if tool in TOOL_GROUPS}
    denied = _find_denied_groups(front_matter, notes)
    return tuple(group for group in ALL_GROUPS if group in allowed_groups and group not in denied), tuple(
        dict.fromkeys(calls)
    )


def _find_denied_groups(front_matter: Data, notes: list[AgentFileNote]) -> set[ToolGroup]:
    denied_tools = [tool.partition("(")[0] for tool in _split_tool_list(front_matter.get("disallowedTools"))]
    denied = {TOOL_GROUPS[tool] for tool in denied_tools if tool in TOOL_GROUPS}
    if denied:
        groups = ", ".join(group for group in ALL_GROUPS if group in denied)
        notes.append(AgentFileNote(key="disallowedTools", text=translate("claude.denied_groups", groups=groups)))
    if front_matter.get(PERMISSION_MODE_KEY) == PLAN_MODE:
        notes.append(AgentFileNote(key=PERMISSION_MODE_KEY, text=translate("claude.plan_mode", plan_mode=PLAN_MODE)))
        denied |= {"edit", "command"}
    return denied


def _split_tool_list(value: object) -> list[str]:
    """Split a list or comma-separated text. Commas in brackets belong to a tool."""
    listed = value if isinstance(value, list | tuple) else _TOOL.findall(str(value or "").strip("[]"))
    return [name for item in listed if (name := str(item).strip(" \t\n-\"'"))]


def read_loose_keys(file: FrontMatterFile) -> Data:
    """Return the keys of a file. Raise `UnusableAgentFile` if it has none, even read line by line."""
    try:
        return file.parse_keys().values
    except UnusableAgentFile:
        values_by_key = dict(_parse_lines(file.front_lines))
        if not values_by_key:
            raise
        return values_by_key


def _parse_lines(front: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Parse keys and values that are not YAML. A value ends at the next known key; the first of two equal keys wins."""
    lines_by_key: dict[str, list[str]] = {}
    current: list[str] = []
    for line in front:
        key_match = _KEY.match(line)
        if key_match is not None:
            current = lines_by_key.setdefault(key_match[1], []) if key_match[1] not in lines_by_key else []
        current.append((key_match[2] or "") if key_match is not None else line)
    for key, lines in lines_by_key.items():
        value = _BLOCK.sub("", "\n".join(lines).strip(), count=1).replace("\\n", "\n")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        yield key, value[1:-1] if quoted else value
