"""Claude Code's subagent files, read as they are, and a report of what has no equivalent here.

Their front matter is often no YAML: a description holds colons, quotes and whole dialogues. Claude Code reads it all
the same, so a file that YAML does not understand is read line by line: a known key at a line's start begins a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.abilities.skills.talk.endings import CAP
from greenroom.app.agents import specs as values
from greenroom.app.agents.front_matter import Sheet, Unusable
from greenroom.app.agents.specs import versioned
from greenroom.app.settings.schema import short
from greenroom.app.settings.values import Unfit
from greenroom.core.base.records import Data, record
from greenroom.core.base.text import seen
from greenroom.core.state.spec import AgentSpec, Group, Turn

MODE: Final = "permissionMode"
LOOKS_ONLY: Final = "plan"
READ: Final = ("name", "description", "tools", "disallowedTools", "model", "effort", "maxTurns")
NOT_READ: Final = ("skills", "mcpServers", "hooks", "memory", "background", "isolation", "initialPrompt", "color")
ROLES: Final = {"opus": "strong", "sonnet": "strong", "haiku": "fast", "inherit": "", "default": ""}
EFFORTS: Final = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
ALL: Final[tuple[Group, ...]] = ("read", "edit", "command", "web")
GROUPS: Final[Mapping[str, Group]] = {
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "NotebookRead"), "read"),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Bash", "BashOutput", "KillShell", "KillBash"), "command"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
}
CALLERS: Final = ("Agent", "Task")

_KEY: Final = re.compile(rf"({'|'.join((*READ, MODE, *NOT_READ))})\s*:(?:\s+(.*)|$)")
_TOOL: Final = re.compile(r"[^,()\n]+(?:\([^)]*\))?")
_BLOCK: Final = re.compile(r"[|>][-+]?\s*\n")
_UNFIT: Final = re.compile(r"[^\w.-]+")


@record
class Note:
    """What is different here from what a file says: its key, and a sentence."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"`{self.key}` {self.text}"


def from_claude(sheet: Sheet) -> tuple[AgentSpec, tuple[Note, ...]]:
    """The agent, and what of its file does not count here."""
    said = _keys(sheet)
    notes: list[Note] = []
    groups, calls = _tools(said, notes)
    spec = AgentSpec(
        name=_name(str(said.get("name") or sheet.path.stem).strip(), notes),
        description=seen(str(said.get("description") or "")).strip(),
        prompt=sheet.text,
        groups=groups,
        calls=calls,
        turn=Turn(rounds=_rounds(said.get("maxTurns"), notes)),
        llm_config=_model(said, notes) or None,
    )
    other = [key for key, value in said.items() if value not in (None, False) and key not in READ]
    notes += [
        Note(key=short(key).strip("'"), text="has no equivalent here and does not count.")
        for key in other
        if (key, said[key]) != (MODE, LOOKS_ONLY)
    ]
    return versioned(spec), tuple(notes)


def _name(said: str, notes: list[Note]) -> str:
    try:
        return values.name(said)
    except Unfit:
        fitting = _UNFIT.sub("-", said).strip("-.")[:64] or "agent"
        fitting = f"{fitting}-agent" if fitting in values.RESERVED else fitting
        notes.append(Note(key="name", text=f"{short(said)} cannot be an agent's name here; it is called {fitting!r}."))
        return fitting


def _model(said: Data, notes: list[Note]) -> dict[str, object]:
    """The model and the effort; what is not known here is left to the settings."""
    name, effort = str(said.get("model") or "inherit").strip(), said.get("effort")
    model = f"anthropic:{name.partition('[')[0]}" if name.startswith("claude-") else ROLES.get(name.lower())
    known = EFFORTS.get(str(effort).strip().lower())
    if model is None:
        notes.append(Note(key="model", text=f"{short(name)} is not known here; it asks the normal model."))
    if effort is not None and known is None:
        notes.append(Note(key="effort", text=f"{short(effort)} is not known here and does not count."))
    return {key: value for key, value in (("model", model), ("effort", known)) if value}


def _rounds(said: object, notes: list[Note]) -> int:
    turns = int(said) if isinstance(said, int | str) and str(said).isdecimal() and len(str(said)) < 10 else 0
    if said is None or 0 < turns <= CAP:
        return turns
    notes.append(Note(key="maxTurns", text=f"{short(said)} does not count: it must be from 1 to {CAP}."))
    return 0


def _tools(said: Data, notes: list[Note]) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """The groups that stand for its tools, and the agents that it may call."""
    listed = _listed(said.get("tools"))
    every = said.get("tools") is None or listed == ["*"]
    if every:
        text = "is not said, which means all of them: here the groups read, edit, command and web."
        notes.append(Note(key="tools", text=text))
    called = {tool: _listed(tool.partition("(")[2].rstrip(")")) for tool in listed if tool.partition("(")[0] in CALLERS}
    calls = [name for names in called.values() for name in names if values.NAME_PATTERN.fullmatch(name)]
    missing = [] if every else [tool for tool in listed if tool not in GROUPS and not called.get(tool)]
    if missing:
        names = ", ".join(f"`{tool}`" for tool in missing)
        notes.append(Note(key="tools", text=f"names {names}, which there is not here; it works without."))
    found = ALL if every else {GROUPS[tool] for tool in listed if tool in GROUPS}
    denied = _denied(said, notes)
    return tuple(group for group in ALL if group in found and group not in denied), tuple(dict.fromkeys(calls))


def _denied(said: Data, notes: list[Note]) -> set[Group]:
    tools = [tool.partition("(")[0] for tool in _listed(said.get("disallowedTools"))]
    denied = {GROUPS[tool] for tool in tools if tool in GROUPS}
    if denied:
        groups = ", ".join(group for group in ALL if group in denied)
        notes.append(Note(key="disallowedTools", text=f"takes whole groups away here: {groups}."))
    if said.get(MODE) == LOOKS_ONLY:
        notes.append(Note(key=MODE, text=f"{LOOKS_ONLY!r} leaves it the groups read and web."))
        denied |= {"edit", "command"}
    return denied


def _listed(said: object) -> list[str]:
    """A list, or what stands between commas; commas in brackets belong to a tool."""
    listed = said if isinstance(said, list | tuple) else _TOOL.findall(str(said or "").strip("[]"))
    return [name for one in listed if (name := str(one).strip(" \t\n-\"'"))]


def _keys(sheet: Sheet) -> Data:
    try:
        return sheet.keys().values
    except Unusable:
        found = dict(_lines(sheet.front))
        if not found:
            raise
        return found


def _lines(front: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Keys and values of what is no YAML: a value goes on until the next known key. The first of two counts."""
    seen: dict[str, list[str]] = {}
    current: list[str] = []
    for line in front:
        begins = _KEY.match(line)
        if begins is not None:
            current = seen.setdefault(begins[1], []) if begins[1] not in seen else []
        current.append((begins[2] or "") if begins is not None else line)
    for key, lines in seen.items():
        value = _BLOCK.sub("", "\n".join(lines).strip(), count=1).replace("\\n", "\n")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        yield key, value[1:-1] if quoted else value
