"""The skill `plan_task`: split a task into parts, give them to copies of the agent, and report their results.

The first step asks the model for a plan. A step per part sends it to the copy and waits, and the last one writes
`<PLAN>`, `<SUB_TASK_RESULTS>` and `<RESULT_SUMMARY>` into the agent's conversation. A copy has the same rights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.completion import strip_mark
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.conversation.transcript import PLAN_CALL_PREFIX, PLAN_SKILL, is_new_request
from greenroom.abilities.skills.filter_tools import CHOICE_KEY_PREFIX
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, ModelRequest, Models
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.rules.intents import Consequence, QueueSteps, SendMessage, SetValue
from greenroom.core.rules.steps import CALL_TOOL
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState, value_key

PLAN_TAG: Final = "PLAN"
BEGUN_BY: Final = ("converse", "compact", PLAN_SKILL)
"""The skills after which a conversation has begun. A plan is made before that."""


@record
class PartResult:
    """What came of a part: its task, whether it was done, and the answer or the error."""

    task: str
    is_done: bool
    output: str


def name_copy(agent: AgentId, depth: int) -> AgentId:
    """Return the name of the copy of an agent at `depth` that works on the parts of its plan."""
    base = agent.rpartition(".")[0] if depth else agent
    return AgentId(f"{base}.{depth + 1}")


def wants_plan(state: TeamState, step: Step, history: Sequence[Step]) -> bool:
    """Return whether a task begins with this step that its agent may split: it is not deep enough, and has a copy."""
    planner, task = state.agents[step.agent_id].spec.planner, state.tasks.get(step.task_id)
    if not planner.may_split or not is_new_request(step) or task is None:
        return False
    has_begun = any(
        other.work.executor in BEGUN_BY and (other.result or {}).get("deferred") is None for other in history
    )
    return not has_begun and name_copy(step.agent_id, planner.depth) in task.group


def read_plan(value: object, *, task: str, max_steps: int) -> tuple[str, ...]:
    """Return the parts in the value of `<PLAN>`; none if the task stays whole.

    A list of one part, or one that repeats the whole task, is not a plan. Parts above `max_steps` are joined.
    """
    items = map(_read_part, value) if isinstance(value, list | tuple) else ()
    parts = tuple(dict.fromkeys(part for part in items if part))
    whole = " ".join(task.split())
    if len(parts) < 2 or any(" ".join(part.split()) == whole for part in parts):
        return ()
    return (*parts[: max_steps - 1], "\n".join(parts[max_steps - 1 :])) if len(parts) > max_steps else parts


def _read_part(item: object) -> str:
    if not isinstance(item, Mapping):
        return str(item).strip() if isinstance(item, str) else ""
    texts = [str(text).strip() for text in item.values() if isinstance(text, str) and text.strip()]
    return ": ".join([*map(str, item), *texts] if len(item) == 1 and texts else texts)


def collect_results(parts: Sequence[str], history: Sequence[Step]) -> list[PartResult]:
    """Return the results of the parts that have ended, in order."""
    calls = {step.work.call_id: step for step in history if step.work.executor == CALL_TOOL}
    found = [(task, calls.get(f"{PLAN_CALL_PREFIX}{number}")) for number, task in enumerate(parts, start=1)]
    return [
        PartResult(
            task=task,
            is_done=step.state == "finished",
            output=strip_mark(step.error or str((step.result or {}).get("output", ""))),
        )
        for task, step in found
        if step is not None
    ]


def _read_parts(step: Step) -> tuple[str, ...]:
    held = (step.work.instruction_content or {}).get("plan", ())
    return tuple(map(str, held)) if isinstance(held, list | tuple) else ()


def _count_given(step: Step) -> int:
    return int(str((step.work.instruction_content or {}).get("given", 0)))


class PlanTaskSkill:
    """Splits a task, or goes on with its plan. Only the first and the last step of a plan call the model."""

    type: StepType = "skill"
    name: str = PLAN_SKILL
    description: str = "Split a task into parts, and give them to copies of the agent."

    def __init__(self, models: Models, reader: ReplyReader | None) -> None:
        self._models = models
        self._reader = reader

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call, or free terms for a step that only gives a part away."""
        parts = _read_parts(step)
        if parts and _count_given(step) < len(parts):
            return StepTerms(effect="pure")
        spec, thread = state.agents[step.agent_id].spec, state.threads.get(step.thread_id)
        size = len(step.work.text_content.encode()) + (thread.size if thread else 0)
        return model_call.build_terms(model_call.pick_model(self._models, spec), spec, size)

    async def run(self, context: StepContext) -> Outcome:
        """Make a plan, give its next part away, or report what came of it."""
        parts = _read_parts(context.step)
        if not parts:
            return await self._split(context)
        results = collect_results(parts, await context.history())
        if _count_given(context.step) < len(parts):
            return Outcome(result={}, intents=_give_part(context, parts, results))
        return await self._report(context, parts, results)

    async def _split(self, context: StepContext) -> Outcome:
        planner, task = context.agent.spec.planner, context.step.work.text_content
        text, spent = await self._ask(context, "split", task=task, most=planner.max_steps)
        value = self._reader.read_yaml(text, PLAN_TAG) if self._reader is not None else None
        parts = read_plan(value, task=task, max_steps=planner.max_steps)
        intents = (*_share_tools(context), *_give_part(context, parts, ())) if parts else ()
        return Outcome(result={"plan": list(parts), "depth": planner.depth}, spent=spent, intents=intents)

    async def _report(self, context: StepContext, parts: Sequence[str], results: Sequence[PartResult]) -> Outcome:
        rows = _render_results(results)
        text, spent = await self._ask(context, "summary", task=context.step.work.text_content, results=rows)
        plan = "\n".join(f"- {part}" for part in parts)
        told = _render(context, "report", plan=plan, results=rows, summary=strip_mark(text))
        return Outcome(result={"parts": [_to_data(result) for result in results], "told": told}, spent=spent)

    async def _ask(self, context: StepContext, what: str, **values: object) -> tuple[str, Amounts]:
        """Return the model's answer and its cost. A model that fails here costs only the plan: the answer is empty."""
        spec, step = context.agent.spec, context.step
        model = model_call.pick_model(self._models, spec)
        request = ModelRequest(
            purpose=model_call.build_purpose(step, context.state.team.team_id, step.ordinal),
            messages=(ChatMessage(role="user", content=_render(context, what, **values)),),
            max_output=model_call.find_max_output(model, spec),
            **model_call.build_request_options(spec),
        )
        try:
            reply = await request_reply(context, model, request)
            text, spent = reply.text, reply.cost
        except ModelFault as fault:
            text, spent = "", fault.spent
        return text, step.reserved if spent is None else spent


def _render(context: StepContext, what: str, **values: object) -> str:
    return PACK.render(context.agent.spec.language, "plan_task", {"what": what, **values})


def _render_results(results: Sequence[PartResult]) -> str:
    """Render results as data: a copy may repeat what a page or a file told it."""
    rows = (
        f"{number}. {result.task}\n{'done' if result.is_done else 'failed'}:\n{add_fence(result.output)}"
        for number, result in enumerate(results, start=1)
    )
    return "\n\n".join(rows)


def _to_data(result: PartResult) -> Data:
    return {"task": result.task, "state": "finished" if result.is_done else "failed", "output": result.output}


def _give_part(
    context: StepContext, parts: Sequence[str], results: Sequence[PartResult]
) -> tuple[Consequence, Consequence]:
    """Send the next part to the copy. Its answer, or an error, is the result of a call; then the plan goes on."""
    step, number = context.step, _count_given(context.step) + 1
    copy, call_id = name_copy(step.agent_id, context.agent.spec.planner.depth), f"{PLAN_CALL_PREFIX}{number}"
    values = {"number": number, "count": len(parts), "part": parts[number - 1], "results": _render_results(results)}
    message = SendMessage(
        task_id=step.task_id,
        receiver=(copy,),
        message=_render(context, "part", task=add_fence(step.work.text_content), **values),
        need_reply=True,
        waiting=True,
        kind="request",
        delivery="call",
        call_id=call_id,
    )
    asked = {"agent_name": copy, "instruction": parts[number - 1]}
    call = Work(type="tool", executor=CALL_TOOL, intention=parts[number - 1], call_id=call_id)
    going_on = evolve(step.work, instruction_content={"plan": list(parts), "given": number})
    works = (evolve(call, instruction_content=asked), going_on)
    return message, QueueSteps(agent_id=step.agent_id, works=works, place="next")


def _share_tools(context: StepContext) -> tuple[Consequence, ...]:
    """Give the copy the tools that the agent has chosen for this task: it does not choose again."""
    step, copy = context.step, name_copy(context.step.agent_id, context.agent.spec.planner.depth)
    chosen = context.state.values.get(value_key(step.task_id, f"{CHOICE_KEY_PREFIX}{step.agent_id}"))
    if chosen is None:
        return ()
    return (SetValue(task_id=step.task_id, key=f"{CHOICE_KEY_PREFIX}{copy}", content=chosen.content),)
