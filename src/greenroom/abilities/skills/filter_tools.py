"""filter_tools: of many tools, those that a task needs. Asked once per task, so that the prompt stays the same."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import answer
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models, ToolSpec
from greenroom.core.rules.intents import SetValue
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World, value_key

FILTERED: Final = "tools of "
"""Under this name, and the agent's, the board has what was chosen."""

ALWAYS: Final = ("read_output",)
"""What goes with every other tool, and is no choice: without it a long result could not be read on."""

ONE_SENTENCE: Final = 160
_NUMBER: Final = re.compile(r"\d{1,6}")


def chosen(world: World, step: Step) -> frozenset[str] | None:
    """The tools that were chosen for this agent in this task; all, if nothing was; None before anybody was asked."""
    value = world.values.get(value_key(step.task_id, f"{FILTERED}{step.agent_id}"))
    if value is None:
        return None
    names = json.loads(value.content)
    return frozenset(str(name) for name in names)


def parsed(text: str, tools: Sequence[str]) -> list[str]:
    """The tools whose numbers stand in the text, each once and in their order; a number that none has is no choice."""
    numbers = {int(found) for found in _NUMBER.findall(text)}
    return [name for number, name in enumerate(tools, start=1) if number in numbers]


class FilterTools:
    """One model call with nothing but the task and the list."""

    type: StepType = "skill"
    name: str = "filter_tools"
    description: str = "Choose the tools that a task needs."

    def __init__(self, models: Models, tools: Sequence[ToolSpec], threshold: int) -> None:
        self._models = models
        self._tools = {tool.name: tool for tool in tools}
        self.threshold = threshold

    def terms(self, world: World, step: Step) -> Terms:
        """A model call that reads the list."""
        spec = world.agents[step.agent_id].spec
        size = len(self._prompt(world, step).encode())
        return voice.terms(voice.voice(self._models, spec), spec, size)

    async def run(self, bench: Bench) -> Outcome:
        """Ask, and keep the choice; with none that is any use, all tools stay."""
        spec, step = bench.agent.spec, bench.step
        model, names = voice.voice(self._models, spec), self.names(bench.world, step)
        request = ModelRequest(
            purpose=voice.purpose(step, bench.world.team.team_id, step.ordinal),
            messages=(ChatMessage(role="user", content=self._prompt(bench.world, step)),),
            max_output=voice.longest(model, spec),
        )
        try:
            reply = await answer(bench, model, request)
            found, spent = parsed(reply.text, names), reply.spent
        except ModelFault as fault:  # a choice that nobody made costs nothing but a longer prompt
            found, spent = [], fault.spent
        kept = json.dumps([*(found or names), *ALWAYS])
        return Outcome(
            result={"chosen": found, "total": len(names), "threshold": self.threshold},
            spent=step.reserved if spent is None else spent,
            intents=(SetValue(task_id=step.task_id, key=f"{FILTERED}{step.agent_id}", content=kept),),
        )

    def names(self, world: World, step: Step) -> list[str]:
        """All that can be chosen from."""
        return [name for name in world.agents[step.agent_id].spec.tools if name in self._tools and name not in ALWAYS]

    def _prompt(self, world: World, step: Step) -> str:
        names = self.names(world, step)
        # What each is for, in one sentence.
        uses = (self._tools[name].description.strip().split("\n", 1)[0].split(". ", 1)[0] for name in names)
        rows = [
            f"{number}. {name}: {use[:ONE_SENTENCE].rstrip('.')}."
            for number, (name, use) in enumerate(zip(names, uses, strict=True), start=1)
        ]
        told = {"task": step.work.text_content, "tools": "\n".join(rows)}
        return PACK.render(world.agents[step.agent_id].spec.language, "filter_tools", told)
