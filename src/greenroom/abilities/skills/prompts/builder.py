"""The prompt builder: named sections in the order of a table. What changes from turn to turn is in no section.

The order is the one that caches like: how everybody works, who this is, whom it can call, how it ends, what the project
says. A form in which it acts stands where the design it comes from puts it: behind everything else.
"""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.records import encode, record
from greenroom.core.ports.packs import Pack
from greenroom.core.state.spec import AgentSpec, Ends

PACK: Final = Pack("greenroom.abilities.skills.prompts")
MARK: Final = "!!!COMPLETE!!!"

Section = Literal["base", "role", "agents", "answer", "ending", "project", "actions"]
Profile = Literal["plain", "native", "tool_call", "xml"]

TABLES: Final[dict[Profile, tuple[Section, ...]]] = {
    "plain": ("role", "project"),
    "native": ("base", "role", "agents", "answer", "ending", "project"),
    "tool_call": ("base", "role", "agents", "answer", "ending", "project", "actions"),
    "xml": ("base", "role", "answer", "project", "actions"),
}
"""Which sections there are for whom, and in which order. An empty one is left out."""


@record
class Other:
    """Somebody who can be called."""

    name: str
    description: str = ""


@record
class Scene:
    """All that a system prompt is made of. It changes when the agent, its team or its project does, not with a turn.

    `calls` is whether the agent can make calls, in whatever form.
    """

    spec: AgentSpec
    ends: Ends
    auto_complete: bool = False
    others: tuple[Other, ...] = ()
    project: str = ""
    actions: str = ""
    calls: bool = True

    @property
    def profile(self) -> Profile:
        """The table that it is built by."""
        spec = self.spec
        if "xml_tool" in spec.turn.protocols:
            return "xml"
        if spec.turn.protocols:
            return "tool_call"
        bare = not spec.tools and not self.others and spec.answer is None and self.ends != "finish"
        return "plain" if bare else "native"


def system_prompt(scene: Scene) -> str:
    """What the agent is told before everything else."""
    return "\n\n".join(text for _, text in sections(scene))


def sections(scene: Scene) -> list[tuple[Section, str]]:
    """The sections that have something in them, in their order."""
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
        "mark": MARK,
        "schema": "" if scene.calls or spec.answer is None else encode(spec.answer).decode(),
    }
    answers = spec.answer is not None
    empty = {"agents": not scene.others, "project": not scene.project, "answer": not answers, "ending": answers}
    written = [
        (one, scene.actions if one == "actions" else PACK.render(spec.language, one, variables))
        for one in TABLES[scene.profile]
        if not empty.get(one)
    ]
    return [(one, text) for one, text in written if text]


def say(language: str, what: str, *, name: str = "", names: str = "", text: str = "") -> str:
    """What an agent is told of a call, or that it is to go on."""
    return PACK.render(language, "told", {"what": what, "name": name, "names": names, "text": text})


def addon(scene: Scene) -> str:
    """What an agent that acts in text is told anew in each turn; nothing for one that makes native calls."""
    if not scene.spec.turn.protocols:
        return ""
    remembers = any("memory" in tool for tool in scene.spec.tools)
    told = {"ends": scene.ends, "auto_complete": scene.auto_complete, "mark": MARK, "remembers": remembers}
    return PACK.render(scene.spec.language, "addon", told)
