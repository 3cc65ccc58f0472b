"""What the designs that Greenroom unites take for granted of an agent. It holds only for a file that names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from greenroom.app.agents.keys import FILE_EDIT, HANDLERS, NAME, PROMPT, BadKey, Design, To

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
FORMS: Final[To] = ("turn", "protocols")
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
    """Jarvis acts in text; without file edits two of its forms fall away."""
    forms = cast("tuple[str, ...]", told.get(FORMS, tuple(HANDLERS[one] for one in JARVIS)))
    bare = bool(told.pop(FILE_EDIT, False))
    return {**told, FORMS: tuple(one for one in forms if not bare or one not in EDITS)}
