"""Prompts of agents that plan: named sections, and one table of which of them a skill is told, in which order.

What is the same in every step stands first. The sections of a row are grouped: the first group is the system prompt,
each other one a message. A message that somebody sent stands in a group of its own, behind everything else, so that
headings in it are nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from greenroom.abilities.skills.planned import history
from greenroom.abilities.skills.planned.chain import chain
from greenroom.abilities.skills.planned.parts import parts, use_guide
from greenroom.abilities.skills.planned.repairs import error_of, is_letter
from greenroom.abilities.skills.planned.skill import PACK, Moment, Order, Skill
from greenroom.core.base.fences import fenced
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import encode
from greenroom.core.ports.model import ChatMessage

Section = Literal["system", "role", "step", "tool_step", "history", "tool_history", "memory"]
Groups = tuple[tuple[Section, ...], ...]

ORDERS: Final[dict[Order, Groups]] = {
    "plain": (("system", "role"), ("step", "memory")),
    "history": (("system", "role"), ("step", "history", "memory")),
    "tool": (("system", "role"), ("step", "tool_step", "memory")),
    "tool_history": (("system", "role"), ("step", "tool_history", "memory")),
    "message": (("system", "role"), ("history", "memory"), ("step",)),
}

SHOWN: Final = 30
"""Members of a group that are named."""


class Page:
    """What one step is told. With `tags` it answers between them; `room` is how many bytes the history may take."""

    def __init__(self, moment: Moment, skill: Skill, *, tags: bool, room: int) -> None:
        self._moment = moment
        self._skill = skill
        self._tags = tags
        self._room = room
        self._written: dict[Section, Callable[[], str]] = {
            "system": self._system,
            "role": self._role,
            "step": self._step,
            "tool_step": self._tool_step,
            "history": self._history,
            "tool_history": self._tool_history,
            "memory": self._memory,
        }

    def messages(self) -> tuple[ChatMessage, ...]:
        """The sections of its skill, group by group."""
        texts = ["\n\n".join(self._written[one]() for one in group) for group in ORDERS[self._skill.order]]
        first, *others = texts
        told = (ChatMessage(role="user", content=text) for text in others)
        return (ChatMessage(role="system", content=first), *told)

    def _render(self, name: str, variables: dict[str, object]) -> str:
        return PACK.render(self._moment.language, name, variables)

    def _system(self) -> str:
        return self._render("section_system", {"base": self._render("base", {})})

    def _role(self) -> str:
        here, spec = self._moment, self._moment.spec
        skills = [(name, use_guide(here.skills[name], here.language)) for name in here.may_plan]
        tools = [(name, here.tools[name].description) for name in here.may_use if name in here.tools]
        return self._render(
            "section_role",
            {
                "agent_id": here.agent.agent_id,
                "name": spec.name,
                "role": spec.role,
                "profile": spec.profile or spec.description,
                "prompt": spec.prompt,
                "manager": spec.manager,
                "skills": skills,
                "tools": tools,
                "project": here.project,
            },
        )

    def _step(self) -> str:
        here, work = self._moment, self._moment.step.work
        own = parts(self._skill, here.language, tags=self._tags)
        return self._render(
            "section_step",
            {
                "executor": work.executor,
                "intention": work.intention,
                "text": fenced(work.text_content) if is_letter(here.step) else work.text_content,
                "letter": is_letter(here.step),
                "task": here.task,
                "stage": here.stage,
                "group": [_member(here, one) for one in here.group[:SHOWN]],
                "others": max(0, len(here.group) - SHOWN),
                "notices": here.notices,
                "error": error_of(here.step),
                "skill_prompt": own.skill_prompt,
                "return_format": own.return_format,
                "tag": self._skill.tag,
                "tags": self._tags,
            },
        )

    def _tool_step(self) -> str:
        step = self._moment.to_fill
        tool = self._moment.tools.get(step.work.executor) if step is not None else None
        return self._render(
            "section_tool_step",
            {
                "tool": step.work.executor if step is not None else "",
                "intention": step.work.intention if step is not None else "",
                "text": step.work.text_content if step is not None else "",
                "description": tool.description if tool is not None else "",
                "schema": fenced(encode(tool.parameters).decode()) if tool is not None else "",
            },
        )

    def _history(self) -> str:
        steps = history.of_stage(self._moment.history, self._moment.step)
        return self._render("section_history", {"steps": history.told(steps, self._room)})

    def _tool_history(self) -> str:
        steps = history.of_stage(self._moment.history, self._moment.step)
        tool = self._moment.step.work.text_content.strip()
        found = chain(steps, tool)
        shown = history.tool_use(found, self._room, lambda told: self._render("tool_use", {**told, "tool": tool}))
        return self._render("section_tool_history", {"tool": tool, "shown": shown})

    def _memory(self) -> str:
        memory, rules = self._moment.agent.memory, self._render("persistent_memory", {"tags": self._tags})
        return self._render("section_memory", {"rules": rules, "memory": fenced(memory) if memory else ""})


def _member(here: Moment, name: str) -> dict[str, object]:
    """Somebody of the group, as the others see them."""
    found = here.world.agents.get(AgentId(name))
    spec = found.spec if found is not None else None
    return {
        "id": name,
        "name": spec.name if spec is not None else "",
        "role": spec.role if spec is not None else "",
        "human": spec is not None and spec.kind == "human",
        "you": name == here.agent.agent_id,
    }
