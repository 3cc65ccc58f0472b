"""converse: one model call in a thread. Its native tool calls become the next steps; then it is asked again.

First version: native calls only, and a plain prompt. Text protocols and the prompt builder come with `protocols/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Finished, Model, ModelRequest, Purpose, TextDelta, ToolCall, Usage
from greenroom.core.rules.intents import Consequence, FinishSubtask, PostNote, QueueSteps, SendMessage
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World

OWN: Final = frozenset({"send_message", "post_note", "finish"})
"""Calls that are no tools: the house does them itself."""

TAKEN: Final = "Taken up. If it was refused, you are told in the next message."

MAX_OUTPUT: Final = 4096
CHARS_PER_TOKEN: Final = 3
"""A cautious guess for what is reserved before a call; the provider's own count is what is settled."""

OVERHEAD: Final = 500
"""Tokens for what surrounds the texts: roles, names, separators."""


class Converse:
    """The default skill of a conversing agent."""

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Think about what was said and done, then act, write to somebody, or finish."

    def __init__(self, model: Model) -> None:
        self._model = model

    def terms(self, world: World, step: Step) -> Terms:
        """A model call: made again when it is cut off, and all it may cost reserved before."""
        agent, thread = world.agents[step.agent_id], world.threads.get(step.thread_id)
        spec = agent.spec
        texts = [spec.name, spec.role, spec.profile, step.work.text_content, *(thread.notices if thread else ())]
        size = sum(map(len, texts)) + (thread.size if thread else 0)
        tokens = size // CHARS_PER_TOKEN + OVERHEAD + MAX_OUTPUT
        price = self._model.price(tokens)
        needs = Amounts(tokens=tokens, money=price or 0)
        return Terms(effect="model", needs=needs, priced=price is not None, model=self._model.name, spec=spec.version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask the model and read what it wants."""
        history = await bench.history()
        messages = _messages(bench, history)
        request = ModelRequest(purpose=_purpose(bench, history), messages=messages, max_output=MAX_OUTPUT)
        text, calls, done = "", [], False
        spent: Amounts | None = None
        async for event in self._model.stream(request):
            match event:
                case TextDelta():
                    text += event.text
                case ToolCall():
                    calls.append(event)
                case Usage():
                    spent = event.spent
                case Finished():
                    done = event.reason == "stop"
        if not done:
            raise ModelFault(f"{self._model.name} stopped before its answer was complete.", spent=spent)
        kept = [{"id": call.call_id, "name": call.name, "arguments": dict(call.arguments)} for call in calls]
        thread = bench.world.threads.get(bench.step.thread_id)
        alone = thread is None or thread.open_steps <= 1
        intents = consequences(bench.step, text, calls, alone=alone)
        return Outcome(
            result={"text": text, "calls": kept}, spent=bench.step.reserved if spent is None else spent, intents=intents
        )


def _purpose(bench: Bench, history: Sequence[Step]) -> Purpose:
    turn = 1 + sum(one.work.executor == "converse" and one.answers is None for one in history)
    step = bench.step
    return Purpose(
        agent=step.agent_id,
        skill="converse",
        step=step.step_id,
        thread=step.thread_id,
        turn=turn,
        answering=step.answers is not None,
        attempt=step.attempt,
    )


def _messages(bench: Bench, history: Sequence[Step]) -> tuple[ChatMessage, ...]:
    spec = bench.agent.spec
    found = [ChatMessage(role="system", content=f"You are {spec.name}, {spec.role}. {spec.profile}".strip())]
    for step in history:
        found += _told(step)
    thread = bench.world.threads.get(bench.step.thread_id)
    notices = thread.notices if thread else ()
    newest = "\n".join((bench.step.work.text_content, *notices)).strip()
    return (*found, ChatMessage(role="user", content=newest or "Go on."))


def _told(step: Step) -> list[ChatMessage]:
    """What an ended step looks like in the conversation."""
    result = step.result or {}
    if step.work.type == "tool":
        content = step.error or str(result.get("output", result))
        return [ChatMessage(role="tool", content=content, call_id=step.work.call_id)]
    calls = _calls(step)
    answer = ChatMessage(role="assistant", content=str(result.get("text", step.error)), calls=calls)
    # Tools are steps of their own and answer for themselves; what the house does itself is answered here.
    done = [ChatMessage(role="tool", content=TAKEN, call_id=one.call_id) for one in calls if one.name in OWN]
    question = step.work.text_content
    return [*([ChatMessage(role="user", content=question)] if question else []), answer, *done]


def _calls(step: Step) -> tuple[ToolCall, ...]:
    found = (step.result or {}).get("calls", ())
    calls = [one for one in found if isinstance(one, dict)] if isinstance(found, list | tuple) else []
    return tuple(ToolCall(call_id=one["id"], name=one["name"], arguments=one["arguments"]) for one in calls)


def consequences(step: Step, text: str, calls: Sequence[ToolCall], *, alone: bool) -> tuple[Consequence, ...]:
    """What a reply asks for: messages, notes, an end; tools as steps; and another turn if there is work left.

    `alone` says that the thread has no other open step: a message that is read between does not begin a second chain.
    """
    found: list[Consequence] = []
    works: list[Work] = []
    rests = step.subtask_id is None or step.answers is not None or not alone
    for call in calls:
        arguments = call.arguments
        match call.name:
            case "send_message":
                found.append(_message(step, arguments))
                rests = rests or bool(arguments.get("waiting"))
            case "post_note":
                found.append(
                    PostNote(task_id=step.task_id, content=_text(arguments, "content"), stage_id=step.stage_id)
                )
            case "finish":
                found.append(_finish(step, arguments))
                rests = True
            case _:
                works.append(_tool(call))
    if not calls and step.answers is not None:
        found.append(_reply(step, text))
    if works or not rests:
        works.append(Work(type="skill", executor="converse", intention="Go on."))
    if works:
        found.append(QueueSteps(agent_id=step.agent_id, works=tuple(works), place="next"))
    return tuple(found)


def _text(arguments: Data, name: str) -> str:
    return str(arguments.get(name, ""))


def _message(step: Step, arguments: Data) -> SendMessage:
    receivers = arguments.get("receiver", ())
    names = receivers if isinstance(receivers, list | tuple) else [receivers]
    returned = arguments.get("return_waiting_id") or step.answers
    waiting = bool(arguments.get("waiting"))
    return SendMessage(
        task_id=step.task_id,
        receiver=tuple(AgentId(str(name)) for name in names),
        message=_text(arguments, "message"),
        stage_relative=step.stage_id or "no_relative",
        need_reply=waiting or bool(arguments.get("need_reply")),
        waiting=waiting,
        return_waiting_id=WaitingId(str(returned)) if returned and not waiting else None,
        delivery="handoff" if arguments.get("handoff") else "post",
        timeout=timeout if isinstance(timeout := arguments.get("timeout_ms"), int) else None,
    )


def _reply(step: Step, text: str) -> SendMessage:
    """Plain text in a step that owes an answer is the answer."""
    waiter = AgentId(str(step.answers).partition(">")[0])
    return SendMessage(
        task_id=step.task_id,
        receiver=(waiter,),
        message=text or "(no text)",
        stage_relative="no_relative",
        return_waiting_id=step.answers,
        kind="response",
    )


def _finish(step: Step, arguments: Data) -> FinishSubtask:
    evidence = arguments.get("evidence", ())
    proofs = evidence if isinstance(evidence, list | tuple) else [evidence]
    return FinishSubtask(
        subtask_id=step.subtask_id or SubtaskId(""),
        stage_id=step.stage_id or StageId(""),
        state="failed" if arguments.get("status") == "failed" else "finished",
        summary=_text(arguments, "summary"),
        evidence=tuple(str(proof) for proof in proofs),
    )


def _tool(call: ToolCall) -> Work:
    return Work(
        type="tool",
        executor=call.name,
        intention=f"Call {call.name}.",
        instruction_content=call.arguments,
        call_id=call.call_id,
    )
