"""The calls that the house does itself: writing to others, calling them, noting something, finishing, answering."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.core.base.ids import AgentId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.rules.intents import Consequence, FinishSubtask, FinishTask, PostNote, SendMessage
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work

ANSWER: Final = "answer"
VALUE: Final = "value"
"""Under which name an answer comes that is no object."""


def _object(required: tuple[str, ...], **properties: Data) -> Data:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(description: str) -> Data:
    return {"type": "string", "description": description}


def _names(description: str) -> Data:
    return {"type": "array", "items": {"type": "string"}, "description": description}


FINISH: Final = ToolSpec(
    name="finish",
    description=(
        "End your work. Use it once, when the work is done or cannot be done, never to report progress. "
        'Example: finish(status="done", summary="Comments are parsed.", files=["parser.py"], tests=["tests/test_x.py"])'
    ),
    parameters=_object(
        ("status", "summary"),
        status={"type": "string", "enum": ["done", "failed"], "description": "Whether what was asked for is there."},
        summary=_text("What the person reads: the result first, then what is missing."),
        files=_names("The files that you changed or made."),
        tests=_names("The tests that show it: files, or names."),
    ),
)

CALL_AGENT: Final = ToolSpec(
    name="call_agent",
    description=(
        "Give work to another agent and get its answer as the result. Use it for what that agent does better; not for "
        'what you can do in one call. Example: call_agent(agent_name="searcher", instruction="Find who maintains X. '
        'Answer with a name and a link.")'
    ),
    parameters=_object(
        ("agent_name", "instruction"),
        agent_name=_text("Whom: one of the names you were told."),
        instruction=_text("All it needs to know: background, what to do, what to answer with."),
    ),
)

SEND_MESSAGE: Final = ToolSpec(
    name="send_message",
    description=(
        "Write to other agents of your task. With waiting, you go on when all have answered. Use it to ask or to tell; "
        'not to end your work. Example: send_message(receiver=["iris"], message="Which tests fail?", waiting=true)'
    ),
    parameters=_object(
        ("receiver", "message"),
        receiver={"type": "array", "items": {"type": "string"}, "description": "Their names."},
        message=_text("What they read."),
        need_reply={"type": "boolean", "description": "Whether an answer is wanted."},
        waiting={"type": "boolean", "description": "Whether you wait for it."},
    ),
)

POST_NOTE: Final = ToolSpec(
    name="post_note",
    description=(
        "Note something for all who work on this task. Use it for what others will need: a decision, a finding; not to "
        'ask. Example: post_note(content="The API is versioned under /v2.")'
    ),
    parameters=_object(("content",), content=_text("What they read.")),
)

OWN: Final = frozenset({"send_message", "post_note", "finish"})
"""Calls that are no tools: the house does them itself, at once."""

HOUSE: Final = OWN | {ANSWER, CALL_AGENT.name}
"""Names that no tool may have: what is called by them means something here."""


def answer_tool(schema: Data) -> ToolSpec:
    """The call with which an agent gives an answer of this shape."""
    parameters = schema if schema.get("type") == "object" else _object((VALUE,), **{VALUE: schema})
    description = "Give your final answer. Use it once, when you know it."
    return ToolSpec(name=ANSWER, description=description, parameters=parameters)


def given(schema: Data, arguments: Data) -> object:
    """The answer in the arguments of that call."""
    return arguments if schema.get("type") == "object" else arguments.get(VALUE)


def words(arguments: Data, name: str) -> str:
    """A text among the arguments of a call."""
    return str(arguments.get(name, ""))


def done(step: Step, call: ToolCall) -> Consequence:
    """What the house does for a call of its own."""
    match call.name:
        case "send_message":
            return message(step, call.arguments)
        case "post_note":
            return PostNote(task_id=step.task_id, content=words(call.arguments, "content"), stage_id=step.stage_id)
        case _:
            claims = (listed(call.arguments, name) for name in ("tests", "claims", "evidence"))
            found = next(filter(None, claims), ())
            return ended(step, words(call.arguments, "summary"), found, failed=gave_up(call.arguments))


def message(step: Step, arguments: Data) -> SendMessage:
    """A message, as a call asks for it."""
    receivers = arguments.get("receiver", ())
    names = receivers if isinstance(receivers, list | tuple) else [receivers]
    returned = arguments.get("return_waiting_id") or step.answers
    waiting = bool(arguments.get("waiting"))
    return SendMessage(
        task_id=step.task_id,
        receiver=tuple(AgentId(str(name)) for name in names),
        message=words(arguments, "message"),
        stage_relative=step.stage_id or "no_relative",
        need_reply=waiting or bool(arguments.get("need_reply")),
        waiting=waiting,
        return_waiting_id=WaitingId(str(returned)) if returned and not waiting else None,
        delivery="handoff" if arguments.get("handoff") and step.subtask_id is not None else "post",
        timeout=timeout if isinstance(timeout := arguments.get("timeout_ms"), int) else None,
    )


def called(step: Step, call: ToolCall) -> SendMessage:
    """The question to another agent whose answer is the result of the call."""
    return SendMessage(
        task_id=step.task_id,
        receiver=(AgentId(words(call.arguments, "agent_name")),),
        message=words(call.arguments, "instruction"),
        need_reply=True,
        waiting=True,
        kind="request",
        delivery="call",
        call_id=call.call_id,
    )


def reply(step: Step, text: str) -> SendMessage:
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


def listed(arguments: Data, name: str) -> tuple[str, ...]:
    """A list of texts among the arguments of a call."""
    held = arguments.get(name, ())
    return tuple(map(str, held if isinstance(held, list | tuple) else [held]))


def proving(executor: str, said: str, files: tuple[str, ...] = (), tests: tuple[str, ...] = ()) -> Work:
    """The step in which work is judged; `files` and `tests` are what the agent says that it changed."""
    given = {"said": said, "files": list(files), "tests": list(tests)}
    return Work(type="tool", executor=executor, intention="Judge it.", instruction_content=given)


def gave_up(arguments: Data) -> bool:
    """Whether a `finish` call says that the work did not succeed."""
    return words(arguments, "status") in ("failed", "blocked", "error")


def ended(
    step: Step, summary: str, evidence: tuple[str, ...] = (), *, failed: bool = False
) -> FinishSubtask | FinishTask:
    """The end of what the step works on: its subtask, else its task."""
    state: Literal["failed", "finished"] = "failed" if failed else "finished"
    if step.subtask_id is None or step.stage_id is None:
        return FinishTask(task_id=step.task_id, state=state, summary=summary, evidence=evidence)
    return FinishSubtask(
        subtask_id=step.subtask_id, stage_id=step.stage_id, state=state, summary=summary, evidence=evidence
    )


def offered(spec: AgentSpec, *, finishes: bool, writes: bool) -> tuple[ToolSpec, ...]:
    """The house's own calls that an agent is told of."""
    found = [CALL_AGENT] if spec.calls else []
    if writes:
        found += [SEND_MESSAGE, POST_NOTE]
    if spec.answer is not None:
        found.append(answer_tool(spec.answer))
    elif finishes:
        found.append(FINISH)
    return tuple(found)
