"""Build a system prompt from named sections, in the order of a table. No section changes from turn to turn.

The order suits prompt caches: common rules, the agent, agents it can call, how it ends, the project's text. The text
form of calls comes last, as in the designs that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

from greenroom.core.base.records import Data, encode, record
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.core.state.spec import AgentSpec, TurnEnd

PACK: Final = PromptPack("greenroom.abilities.skills.prompts")
COMPLETION_MARK: Final = "!!!COMPLETE!!!"
VALUE_FIELD: Final = "value"
"""The field of an answer that is not an object."""

Section = Literal["base", "role", "agents", "answer", "ending", "project", "actions", "team"]
Profile = Literal["plain", "native", "tool_call", "xml"]

SECTION_TABLES: Final[dict[Profile, tuple[Section, ...]]] = {
    "plain": ("role", "project"),
    "native": ("base", "role", "agents", "answer", "ending", "project"),
    "tool_call": ("base", "role", "agents", "answer", "ending", "project", "actions", "team"),
    "xml": ("base", "role", "answer", "project", "actions", "team"),
}
"""The sections of each profile, in order. Empty sections are left out."""


@record
class OtherAgent:
    """An agent that can be called."""

    name: str
    description: str = ""
    capabilities: tuple[str, ...] = ()


@record
class PromptContext:
    """The variables of a system prompt. They change with the agent, its team or its project, not with a turn. `calls`
    is whether the agent can make calls, in any form. An agent of a routing team is `routed`, and `question` is the
    person's request if its conversation does not hold it."""

    spec: AgentSpec
    ends: TurnEnd
    auto_complete: bool = False
    others: tuple[OtherAgent, ...] = ()
    project: str = ""
    actions: str = ""
    calls: bool = True
    routed: bool = False
    question: str = ""

    @property
    def profile(self) -> Profile:
        """The profile that selects the table."""
        spec = self.spec
        if "xml_tool" in spec.turn.protocols:
            return "xml"
        if spec.turn.protocols:
            return "tool_call"
        bare = not spec.tools and not self.others and spec.answer is None and self.ends != "finish"
        return "plain" if bare else "native"


def wrap_schema(schema: Data) -> Data:
    """Return the schema of an object: providers accept no other one. Other answers are its field `value`."""
    return schema if schema.get("type") == "object" else wrap_fields({VALUE_FIELD: schema})


def wrap_fields(fields: Mapping[str, Data]) -> Data:
    """Return the schema of an object with these fields. Their definitions move to its root, where references look."""
    bare = {name: {key: part for key, part in schema.items() if key != "$defs"} for name, schema in fields.items()}
    parts = {name: part for schema in fields.values() for name, part in cast("Data", schema.get("$defs", {})).items()}
    whole = {"type": "object", "properties": bare, "required": list(fields), "additionalProperties": False}
    return {**whole, "$defs": parts} if parts else whole


def render_system_prompt(scene: PromptContext) -> str:
    return "\n\n".join(text for _, text in render_sections(scene))


def render_sections(scene: PromptContext) -> list[tuple[Section, str]]:
    """Render the sections that are not empty, in order."""
    spec = scene.spec
    variables: dict[str, object] = {
        "name": spec.name,
        "role": spec.role,
        "profile": spec.profile,
        "prompt": spec.prompt,
        "others": scene.others,
        "project": scene.project,
        "ends": scene.ends,
        "auto_complete": scene.auto_complete,
        "mark": COMPLETION_MARK,
        "question": scene.question,
        "arbiter": spec.handoff is not None and spec.handoff.arbiter,
        "schema": "" if scene.calls or spec.answer is None else encode(wrap_schema(spec.answer)).decode(),
    }
    answers = spec.answer is not None
    empty = {"agents": not scene.others, "project": not scene.project, "answer": not answers, "ending": answers}
    empty["team"] = not scene.routed
    written = [
        (section, scene.actions if section == "actions" else PACK.render(spec.language, section, variables))
        for section in SECTION_TABLES[scene.profile]
        if not empty.get(section)
    ]
    return [(section, text) for section, text in written if text]


def render_notice(language: str, what: str, *, name: str = "", names: str = "", text: str = "") -> str:
    """Render a notice about a call, or a request to continue."""
    return PACK.render(language, "told", {"what": what, "name": name, "names": names, "text": text})


def render_addon(scene: PromptContext) -> str:
    """Render the reminder that an agent acting in text gets in each turn. Return "" for native calls."""
    if not scene.spec.turn.protocols:
        return ""
    remembers = any("memory" in tool for tool in scene.spec.tools)
    told = {"ends": scene.ends, "auto_complete": scene.auto_complete, "mark": COMPLETION_MARK, "remembers": remembers}
    return PACK.render(scene.spec.language, "addon", told)
