"""Claude Code's subagent files, read as they are, and a report of what has no equivalent here.

Their front matter is often no YAML: a description holds colons, quotes and whole dialogues. Claude Code reads it all
the same, so a file that YAML does not understand is read line by line: a known key at a line's start begins a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from greenroom.abilities.skills.talk.endings import CAP
from greenroom.app.agents import keys as values
from greenroom.app.agents.front_matter import Sheet, Unusable
from greenroom.app.agents.specs import versioned
from greenroom.app.settings.schema import short
from greenroom.app.settings.values import Unfit
from greenroom.core.base.records import Data, record
from greenroom.core.base.text import seen
from greenroom.core.state.spec import AgentSpec, Group, Turn

MODE: Final = "permissionMode"
LOOKS_ONLY: Final = "plan"
NOTHING_LIKE_IT: Final = (
    MODE,
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "background",
    "isolation",
    "initialPrompt",
    "color",
)
KNOWN: Final = ("name", "description", "tools", "disallowedTools", "model", "effort", "maxTurns", *NOTHING_LIKE_IT)
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

_KEY: Final = re.compile(rf"({'|'.join(KNOWN)})\s*:(?:\s+(.*)|$)")
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
    reading = _Reading(said=said)
    config = {**reading.model(), **reading.effort()}
    groups, calls = reading.tools()
    spec = AgentSpec(
        name=reading.name(sheet.path.stem),
        description=seen(str(said.get("description") or "")).strip(),
        prompt=sheet.text,
        groups=groups,
        calls=calls,
        turn=Turn(rounds=reading.rounds()),
        llm_config=config or None,
    )
    reading.rest()
    return versioned(spec), tuple(reading.notes)


@dataclass(slots=True)
class _Reading:
    """What a file says, and the notes that come of reading it."""

    said: Data
    notes: list[Note] = field(default_factory=list)

    def note(self, key: str, text: str) -> None:
        self.notes.append(Note(key=key, text=text))

    def name(self, stem: str) -> str:
        said = str(self.said.get("name") or stem).strip()
        try:
            return values.name(said)
        except Unfit:
            fitting = _UNFIT.sub("-", said).strip("-.")[:64] or "agent"
            fitting = f"{fitting}-agent" if fitting in values.RESERVED else fitting
            self.note("name", f"{short(said)} cannot be an agent's name here; it is called {fitting!r}.")
            return fitting

    def model(self) -> Mapping[str, object]:
        said = str(self.said.get("model") or "inherit").strip()
        role = ROLES.get(said.lower())
        if role is None and said.startswith("claude-"):
            return {"model": f"anthropic:{said.partition('[')[0]}"}
        if role is None:
            self.note("model", f"{short(said)} is not known here; it asks the normal model.")
        return {"model": role} if role else {}

    def effort(self) -> Mapping[str, object]:
        said = self.said.get("effort")
        if said is None:
            return {}
        found = EFFORTS.get(str(said).strip().lower())
        if found != said:
            told = f"counts as {found!r} here." if found else "is not known here and does not count."
            self.note("effort", f"{short(said)} {told}")
        return {"effort": found} if found else {}

    def rounds(self) -> int:
        said = self.said.get("maxTurns")
        if said is None:
            return 0
        turns = int(said) if isinstance(said, int | str) and str(said).isdecimal() and len(str(said)) < 10 else 0
        if not 0 < turns <= CAP:
            self.note("maxTurns", f"{short(said)} does not count: it must be from 1 to {CAP}, the house's limit.")
            return 0
        return turns

    def tools(self) -> tuple[tuple[Group, ...], tuple[str, ...]]:
        """The groups that stand for its tools, and the agents that it may call."""
        said = self.said.get("tools")
        every = said is None or _listed(said) == ["*"]
        found = list[Group](ALL) if every else []
        calls: list[str] = []
        if every:
            self.note("tools", "is not said, which means all of them: here the groups read, edit, command and web.")
        strange: list[str] = []
        for one in () if every else _listed(said):
            name, _, inside = one.partition("(")
            if name in CALLERS:
                calls += self._called(one, inside.rstrip(")"))
            elif one in GROUPS:
                found.append(GROUPS[one])
            else:
                strange.append(one)
        self._lacks(strange)
        denied = self._denied()
        return tuple(one for one in ALL if one in found and one not in denied), tuple(dict.fromkeys(calls))

    def _called(self, tool: str, inside: str) -> Iterator[str]:
        for one in _listed(inside):
            if values.NAME_PATTERN.fullmatch(one):
                yield one
        if not inside.strip():
            self.note("tools", f"names `{tool}`, which may call any agent; here they are named one by one, in `calls`.")

    def _lacks(self, tools: list[str]) -> None:
        parts = [one for one in tools if one.partition("(")[0] in GROUPS]
        others = [one for one in tools if one not in parts]
        if parts:
            self.note("tools", f"names {_quoted(parts)}: a part of a tool cannot be said here, so it works without.")
        if others:
            self.note("tools", f"names {_quoted(others)}, which there is not here; it works without.")

    def _denied(self) -> set[Group]:
        listed = _listed(self.said.get("disallowedTools"))
        denied = {GROUPS[name] for one in listed if (name := one.partition("(")[0]) in GROUPS}
        strange = [one for one in listed if one.partition("(")[0] not in GROUPS]
        if strange:
            self.note("disallowedTools", f"names {_quoted(strange)}, which there is not here anyway.")
        if denied:
            groups = ", ".join(one for one in ALL if one in denied)
            self.note("disallowedTools", f"takes whole groups away here: {groups}.")
        if self.said.get(MODE) == LOOKS_ONLY:
            self.note(MODE, f"{LOOKS_ONLY!r} leaves it the groups read and web.")
            denied |= {"edit", "command"}
        return denied

    def rest(self) -> None:
        """All other keys."""
        for key, value in self.said.items():
            if value is None or value is False or (key == MODE and value == LOOKS_ONLY):
                continue
            if key in NOTHING_LIKE_IT:
                self.note(key, "has no equivalent here and does not count.")
            elif key not in KNOWN:
                self.note(short(key).strip("'"), "is not known here and does not count.")


def _quoted(names: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)


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
