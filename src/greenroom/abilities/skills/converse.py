"""converse: one model call in a thread. Its native tool calls become the next steps; then it is asked again.

First version: native calls only, and a plain prompt. Text protocols and the prompt builder come with `protocols/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, TypedDict

from greenroom.abilities.skills.reply import Reply, listen
from greenroom.abilities.skills.transcript import Transcript, Transcripts
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.ids import AgentId, StageId, SubtaskId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models, Purpose, ToolCall, ToolSpec
from greenroom.core.rules.intents import Consequence, FinishSubtask, FinishTask, PostNote, QueueSteps, SendMessage
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepType, Terms, Work
from greenroom.core.state.world import World

MAX_OUTPUT: Final = 4096

OVERHEAD: Final = 2000
"""Bytes for what surrounds the texts of a request: roles, names, separators."""

EMPTY: Final = "Your last answer was empty. Answer, call a tool, or finish."
NUDGES: Final = 2
"""How often in a row an agent that answers nothing is asked again."""


class Converse:
    """The default skill of a conversing agent. `tools` are what the house has; an agent is told of its own.

    With `solo` a plain answer ends the task of an agent that manages it: somebody asked, and that is the answer.
    """

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Think about what was said and done, then act, write to somebody, or finish."

    def __init__(self, models: Models, tools: Sequence[ToolSpec] = (), *, solo: bool = False) -> None:
        self._solo = solo
        self._models = models
        self._tools = {tool.name: tool for tool in tools}
        self._told: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}
        self._transcripts = Transcripts()

    def terms(self, world: World, step: Step) -> Terms:
        """A model call: made again when it is cut off, and all it may cost reserved before: a token has a byte."""
        agent, thread = world.agents[step.agent_id], world.threads.get(step.thread_id)
        spec, model = agent.spec, self._model(agent.spec)
        texts = [spec.name, spec.role, spec.profile, step.work.text_content, *(thread.notices if thread else ())]
        size = sum(len(text.encode()) for text in texts) + (thread.size if thread else 0)
        read, most = size + OVERHEAD + self._size_of_tools(spec), _most(model, spec)
        price = model.price(read, most)
        needs = Amounts(tokens=read + most, money=price or 0)
        return Terms(effect="model", needs=needs, priced=price is not None, model=model.name, spec=spec.version)

    async def run(self, bench: Bench) -> Outcome:
        """Ask the model and read what it wants."""
        model = self._model(bench.agent.spec)
        team = bench.world.team.team_id
        transcript = self._transcripts.of(team, bench.step.thread_id, await bench.history())
        newest = _newest(bench, transcript)
        request = ModelRequest(
            purpose=_purpose(bench, transcript),
            messages=_messages(bench, transcript, newest),
            tools=self._tools_of(bench.agent.spec),
            max_output=_most(model, bench.agent.spec),
            **_wishes(bench.agent.spec),
        )
        reply = await listen(bench, model, request)
        if not reply.text and not reply.calls and transcript.empty >= NUDGES:
            error = f"{model.name} answered nothing {transcript.empty + 1} times in a row."
            return Outcome(state="failed", error=error, spent=reply.spent or bench.step.reserved)
        thread = bench.world.threads.get(bench.step.thread_id)
        alone = thread is None or thread.open_steps <= 1
        return Outcome(
            result=reply.kept(None if newest == bench.step.work.text_content else newest),
            spent=bench.step.reserved if reply.spent is None else reply.spent,
            intents=(*consequences(bench.step, reply, alone=alone), *self._end(bench, reply)),
        )

    def _end(self, bench: Bench, reply: Reply) -> tuple[Consequence, ...]:
        step, task = bench.step, bench.world.tasks.get(bench.step.task_id)
        own = task is not None and task.manager == step.agent_id and step.subtask_id is None
        if not (self._solo and own and reply.text and not reply.calls and step.answers is None):
            return ()
        return (FinishTask(task_id=step.task_id, summary=reply.text),)

    def _model(self, spec: AgentSpec) -> Model:
        return self._models.named(str((spec.llm_config or {}).get("model", "")))

    def _tools_of(self, spec: AgentSpec) -> tuple[ToolSpec, ...]:
        found = self._told.get(spec.tools)
        if found is None:
            found = self._told[spec.tools] = tuple(self._tools[name] for name in spec.tools if name in self._tools)
        return found

    def _size_of_tools(self, spec: AgentSpec) -> int:
        return sum(tool.size for tool in self._tools_of(spec))


def _most(model: Model, spec: AgentSpec) -> int:
    """The longest answer that is paid for."""
    wanted = (spec.llm_config or {}).get("max_output")
    return min(wanted if isinstance(wanted, int) and wanted > 0 else MAX_OUTPUT, model.card.output)


class _Wishes(TypedDict, total=False):
    temperature: float
    effort: Literal["low", "medium", "high"]
    streaming: bool


def _wishes(spec: AgentSpec) -> _Wishes:
    """How this agent wants to be answered; what cannot be one is none."""
    told, found = spec.llm_config or {}, _Wishes()
    temperature, effort, streaming = told.get("temperature"), told.get("effort"), told.get("streaming")
    if isinstance(temperature, int | float) and not isinstance(temperature, bool):
        found["temperature"] = float(temperature)
    if effort in ("low", "medium", "high"):
        found["effort"] = effort
    if isinstance(streaming, bool):
        found["streaming"] = streaming
    return found


def _purpose(bench: Bench, transcript: Transcript) -> Purpose:
    step = bench.step
    return Purpose(
        agent=step.agent_id,
        skill="converse",
        step=step.step_id,
        thread=step.thread_id,
        turn=transcript.turns + 1,
        team=bench.world.team.team_id,
        answering=step.answers is not None,
        attempt=step.attempt,
    )


def _newest(bench: Bench, transcript: Transcript) -> str:
    """What is new. After a tool's result nothing needs to be said."""
    thread = bench.world.threads.get(bench.step.thread_id)
    newest = "\n".join((bench.step.work.text_content, *(thread.notices if thread else ()))).strip()
    said = transcript.messages
    return "Go on." if not newest and (not said or said[-1].role == "assistant") else newest


def _messages(bench: Bench, transcript: Transcript, newest: str) -> tuple[ChatMessage, ...]:
    """Who the agent is, what was said, and what is new."""
    last = (ChatMessage(role="user", content=newest),) if newest else ()
    return (_introduction(bench.agent.spec), *transcript.messages, *last)


@lru_cache(maxsize=1024)
def _introduced(name: str, role: str, profile: str) -> ChatMessage:
    return ChatMessage(role="system", content=f"You are {name}, {role}. {profile}".strip())


def _introduction(spec: AgentSpec) -> ChatMessage:
    return _introduced(spec.name, spec.role, spec.profile)


def consequences(step: Step, reply: Reply, *, alone: bool) -> tuple[Consequence, ...]:
    """What a reply asks for: messages, notes, an end; tools as steps; and another turn if there is work left.

    `alone` says that the thread has no other open step: a message that is read between does not begin a second chain.
    """
    found: list[Consequence] = []
    works: list[Work] = []
    rests = step.subtask_id is None or step.answers is not None or not alone
    for call in reply.calls:
        arguments = call.arguments
        match call.name if not call.unread else "":
            case "":
                rests = False  # it is told that nobody can read it: see the transcript
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
    if not reply.calls and step.answers is not None:
        found.append(_reply(step, reply.text))
    empty = not (reply.text or reply.calls)
    if works or not rests or (empty and alone and step.answers is None):
        nudge = EMPTY if empty else ""
        works.append(Work(type="skill", executor="converse", intention="Go on.", text_content=nudge))
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
