"""What the designs that Greenroom unites take for granted of an agent. It holds only for a file that names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from greenroom.app.agents.keys import FILE_EDIT, HANDLERS, NAME, PROMPT, BadKey, Design, To
from greenroom.app.hands.toolbox import DEFAULT
from greenroom.core.base.records import evolve
from greenroom.core.state.spec import AgentSpec

USUAL: Final[Mapping[Design, Mapping[To, object]]] = {
    "jarvis": {NAME: "Jarvis"},
    "artifactflow": {
        ("llm_config", "model"): "dashscope:qwen-plus",
        ("llm_config", "temperature"): 0.7,
        ("llm_config", "streaming"): False,
        ("turn", "rounds"): 3,
        ("turn", "protocols"): ("xml_tool",),
        ("turn", "several"): "first",
        ("turn", "ends"): "text",
    },
    "roo": {},
}
NEEDED: Final[Mapping[Design, Mapping[To, str]]] = {
    "jarvis": {PROMPT: "system_prompt"},
    "artifactflow": {NAME: "name", ("description",): "description"},
    "roo": {NAME: "id"},
}
EDITS: Final = frozenset({"patch", "rewrite"})
"""What edits files: two forms of text, and the tools of the same names."""

EDITING: Final = "edit"
"""Their group."""

FORMS: Final[To] = ("turn", "protocols")
TOOLS: Final[To] = ("tools",)
GROUPS: Final[To] = ("groups",)
JARVIS: Final = ("ToolRegistry", "EditFileHandler", "RewriteFileHandler")
"""The handlers that Jarvis has if nobody says otherwise."""


def complete(design: Design | None, said: Mapping[To, object]) -> dict[To, object]:
    """What was said, and what its design takes for granted; `BadKey` for what that design needs and nobody said."""
    if design is None:
        return dict(said)
    for to, key in NEEDED[design].items():
        if to not in said:
            raise BadKey(key, f"is missing, and `design: {design}` needs it. Add it.")
    told = {**USUAL[design], **said}
    return _forms(told) if design == "jarvis" else told


def _forms(told: dict[To, object]) -> dict[To, object]:
    """Jarvis acts in text, and has the usual tools where nobody lists any; without file edits all that edits goes."""
    forms = cast("tuple[str, ...]", told.get(FORMS, tuple(HANDLERS[one] for one in JARVIS)))
    bare = bool(told.pop(FILE_EDIT, False))
    if not told.get(TOOLS) and not told.get(GROUPS):
        told[TOOLS] = DEFAULT
    if not bare:
        return {**told, FORMS: forms}
    found = {FORMS: forms, TOOLS: told.get(TOOLS, ()), GROUPS: told.get(GROUPS, ())}
    return {**told, **{to: _bare(cast("tuple[str, ...]", some), to) for to, some in found.items()}}


def without_edits(spec: AgentSpec) -> AgentSpec:
    """The agent as `disable_file_edit` has it: no form, no tool and no group that edits files."""
    return evolve(
        spec,
        tools=_bare(spec.tools, TOOLS),
        groups=_bare(spec.groups, GROUPS),
        turn=evolve(spec.turn, protocols=_bare(spec.turn.protocols, FORMS)),
    )


def _bare(names: tuple[str, ...], to: To) -> tuple[str, ...]:
    return tuple(one for one in names if one not in ({EDITING} if to == GROUPS else EDITS))
