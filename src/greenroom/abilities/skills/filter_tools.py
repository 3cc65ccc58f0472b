"""The skill `filter_tools`: choose the tools that a task needs. It runs once per task, so the prompt stays the same."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models, ToolSpec
from greenroom.core.ports.skill_library import READ_SKILL
from greenroom.core.rules.intents import SetValue
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState, value_key

CHOICE_KEY_PREFIX: Final = "tools of "
"""Prefix of the task board key of an agent's choice."""

ALWAYS_OFFERED: Final = ("read_output", READ_SKILL)
"""Tools that are always offered. Without them an agent could not read long results and skills."""

MAX_USE_CHARS: Final = 160
_NUMBER: Final = re.compile(r"\d{1,6}")


def find_chosen_tools(state: TeamState, step: Step) -> frozenset[str] | None:
    """Return the tools chosen for this agent in this task, or None if there is no choice yet."""
    value = state.values.get(value_key(step.task_id, f"{CHOICE_KEY_PREFIX}{step.agent_id}"))
    if value is None:
        return None
    names = json.loads(value.content)
    return frozenset(str(name) for name in names)


def parse_choice(text: str, tools: Sequence[str]) -> list[str]:
    """Return the tools whose numbers occur in the text, in their order. Unknown numbers are ignored."""
    numbers = {int(found) for found in _NUMBER.findall(text)}
    return [name for number, name in enumerate(tools, start=1) if number in numbers]


class FilterToolsSkill:
    """A single model call with the task and the list of tools."""

    type: StepType = "skill"
    name: str = "filter_tools"
    description: str = "Choose the tools that a task needs."

    def __init__(self, models: Models, tools: Sequence[ToolSpec], threshold: int) -> None:
        self._models = models
        self._tools = {tool.name: tool for tool in tools}
        self.threshold = threshold

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that reads the list."""
        spec = state.agents[step.agent_id].spec
        size = len(self._render_prompt(state, step).encode())
        return model_call.build_terms(model_call.pick_model(self._models, spec), spec, size)

    async def run(self, context: StepContext) -> Outcome:
        """Call the model and store its choice. Without a usable choice, keep all tools."""
        spec, step = context.agent.spec, context.step
        model, names = model_call.pick_model(self._models, spec), self.list_choices(context.state, step)
        request = ModelRequest(
            purpose=model_call.build_purpose(step, context.state.team.team_id, step.ordinal),
            messages=(ChatMessage(role="user", content=self._render_prompt(context.state, step)),),
            max_output=model_call.find_max_output(model, spec),
        )
        try:
            reply = await request_reply(context, model, request)
            found, spent = parse_choice(reply.text, names), reply.cost
        except ModelFault as fault:  # a missing choice only costs a longer prompt
            found, spent = [], fault.spent
        kept = json.dumps([*(found or names), *ALWAYS_OFFERED])
        return Outcome(
            result={"chosen": found, "total": len(names), "threshold": self.threshold},
            spent=step.reserved if spent is None else spent,
            intents=(SetValue(task_id=step.task_id, key=f"{CHOICE_KEY_PREFIX}{step.agent_id}", content=kept),),
        )

    def list_choices(self, state: TeamState, step: Step) -> list[str]:
        """Return the names of all tools to choose from."""
        return [
            name
            for name in state.agents[step.agent_id].spec.tools
            if name in self._tools and name not in ALWAYS_OFFERED
        ]

    def _render_prompt(self, state: TeamState, step: Step) -> str:
        names = self.list_choices(state, step)
        # The purpose of each tool in one sentence.
        uses = (self._tools[name].description.strip().split("\n", 1)[0].split(". ", 1)[0] for name in names)
        rows = [
            f"{number}. {name}: {use[:MAX_USE_CHARS].rstrip('.')}."
            for number, (name, use) in enumerate(zip(names, uses, strict=True), start=1)
        ]
        told = {"task": step.work.text_content, "tools": "\n".join(rows)}
        return PACK.render(state.agents[step.agent_id].spec.language, "filter_tools", told)
