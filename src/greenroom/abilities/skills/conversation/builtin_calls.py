"""Built-in calls: send a message, call an agent, post a note, finish, answer."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.abilities.skills.prompts.builder import VALUE_FIELD, wrap_schema
from greenroom.core.base.ids import AgentId, WaitingId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import ToolCall, ToolSpec
from greenroom.core.rules.intents import Consequence, FinishSubtask, FinishTask, PostNote, SendMessage
from greenroom.core.state.spec import AgentSpec, Handoff
from greenroom.core.state.step import Step, Work

ANSWER_CALL: Final = "answer"


def _build_object_schema(required: tuple[str, ...], **properties: Data) -> Data:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _build_text_schema(description: str) -> Data:
    return {"type": "string", "description": description}


def _build_names_schema(description: str) -> Data:
    return {"type": "array", "items": {"type": "string"}, "description": description}


FINISH: Final = ToolSpec(
    name="finish",
    description=(
        "End your work. Use it once, when the work is done or cannot be done, never to report progress. "
        'Example: finish(status="done", summary="Comments are parsed.", files=["parser.py"], tests=["tests/test_x.py"])'
    ),
    parameters=_build_object_schema(
        ("status", "summary"),
        status={"type": "string", "enum": ["done", "failed"], "description": "Whether what was asked for is there."},
        summary=_build_text_schema("What the person reads: the result first, then what is missing."),
        files=_build_names_schema("The files that you changed or made."),
        tests=_build_names_schema("The tests that show it: files, or names."),
    ),
)

CALL_AGENT: Final = ToolSpec(
    name="call_agent",
    description=(
        "Give work to another agent and get its answer as the result. Use it for what that agent does better; not for "
        'what you can do in one call. Example: call_agent(agent_name="searcher", instruction="Find who maintains X. '
        'Answer with a name and a link.")'
    ),
    parameters=_build_object_schema(
        ("agent_name", "instruction"),
        agent_name=_build_text_schema("Whom: one of the names you were told."),
        instruction=_build_text_schema("All it needs to know: background, what to do, what to answer with."),
    ),
)

SEND_MESSAGE: Final = ToolSpec(
    name="send_message",
    description=(
        "Write to other agents of your task. With waiting, you go on when all have answered. Use it to ask or to tell; "
        'not to end your work. Example: send_message(receiver=["iris"], message="Which tests fail?", waiting=true)'
    ),
    parameters=_build_object_schema(
        ("receiver", "message"),
        receiver={"type": "array", "items": {"type": "string"}, "description": "Their names."},
        message=_build_text_schema("What they read."),
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
    parameters=_build_object_schema(("content",), content=_build_text_schema("What they read.")),
)

IMMEDIATE_CALLS: Final = frozenset({"send_message", "post_note", "finish"})
"""Calls that are executed immediately instead of as a tool step."""

RESERVED_NAMES: Final = IMMEDIATE_CALLS | {ANSWER_CALL, CALL_AGENT.name}
"""Names that tools may not use."""


def build_answer_tool(schema: Data) -> ToolSpec:
    """Build the call with which an agent gives an answer of this schema."""
    description = "Give your final answer. Use it once, when you know it."
    return ToolSpec(name=ANSWER_CALL, description=description, parameters=wrap_schema(schema))


def extract_answer(schema: Data, arguments: Data) -> object:
    """Return the answer in the arguments of that call. Without its field, the arguments are the answer, if they fit."""
    return arguments if schema.get("type") == "object" else arguments.get(VALUE_FIELD, arguments)


def read_text(arguments: Data, name: str) -> str:
    return str(arguments.get(name, ""))


def build_consequence(step: Step, call: ToolCall) -> Consequence:
    """Return the intent of an immediate call."""
    match call.name:
        case "send_message":
            return build_message(step, call.arguments)
        case "post_note":
            return PostNote(task_id=step.task_id, content=read_text(call.arguments, "content"), stage_id=step.stage_id)
        case _:
            claims = (read_texts(call.arguments, name) for name in ("tests", "claims", "evidence"))
            found = next(filter(None, claims), ())
            return build_finish(step, read_text(call.arguments, "summary"), found, failed=has_given_up(call.arguments))


def build_message(step: Step, arguments: Data) -> SendMessage:
    """Build the message that a call asks for."""
    receivers = arguments.get("receiver", ())
    names = receivers if isinstance(receivers, list | tuple) else [receivers]
    returned = arguments.get("return_waiting_id") or step.answers
    waiting = bool(arguments.get("waiting"))
    need_reply = waiting or bool(arguments.get("need_reply"))
    return SendMessage(
        task_id=step.task_id,
        receiver=tuple(AgentId(str(name)) for name in names),
        message=read_text(arguments, "message"),
        stage_relative=step.stage_id or "no_relative",
        need_reply=need_reply,
        waiting=waiting,
        kind="request" if need_reply else "response" if returned else "notification",
        return_waiting_id=WaitingId(str(returned)) if returned and not waiting else None,
        delivery="handoff" if arguments.get("handoff") and step.subtask_id is not None else "post",
        timeout=timeout if isinstance(timeout := arguments.get("timeout_ms"), int) else None,
    )


HANDOFF_SUMMARY_SKILL: Final = "handoff_summary"
CHOOSE_RECEIVER_SKILL: Final = "choose_receiver"


def plan_handoff(step: Step, policy: Handoff, arguments: Data, *, clear: bool) -> Work | SendMessage:
    """Return what follows a message that passes the task on: a choice of its receiver, a summary, or sending it."""
    if policy.arbiter and not read_text(arguments, "receiver"):
        skill, intention = CHOOSE_RECEIVER_SKILL, "Choose who goes on."
    elif policy.summary:
        skill, intention = HANDOFF_SUMMARY_SKILL, "Sum up the work for the next agent."
    else:
        return build_handoff(step, arguments, "", clear=clear)
    instruction = {**arguments, "clear": clear}
    return Work(type="skill", executor=skill, intention=intention, instruction_content=instruction)


def build_handoff(step: Step, arguments: Data, summary: str, *, clear: bool) -> SendMessage:
    """Build the message that passes the task on."""
    return SendMessage(
        task_id=step.task_id,
        receiver=(AgentId(read_text(arguments, "receiver")),),
        message=read_text(arguments, "message"),
        kind="handoff",
        delivery="handoff",
        handoff_summary=summary,
        clear=clear,
    )


def build_agent_request(step: Step, call: ToolCall) -> SendMessage:
    """Build the request to another agent whose answer becomes the result of the call."""
    return SendMessage(
        task_id=step.task_id,
        receiver=(AgentId(read_text(call.arguments, "agent_name")),),
        message=read_text(call.arguments, "instruction"),
        need_reply=True,
        waiting=True,
        kind="request",
        delivery="call",
        call_id=call.call_id,
    )


def build_response(step: Step, text: str) -> SendMessage:
    """Build the response from the plain text of a step that owes an answer."""
    waiter = AgentId(str(step.answers).partition(">")[0])
    return SendMessage(
        task_id=step.task_id,
        receiver=(waiter,),
        message=text or "(no text)",
        stage_relative="no_relative",
        return_waiting_id=step.answers,
        kind="response",
    )


def read_texts(arguments: Data, name: str) -> tuple[str, ...]:
    """Return a list argument of a call as texts."""
    held = arguments.get(name, ())
    return tuple(map(str, held if isinstance(held, list | tuple) else [held]))


def build_proof_step(executor: str, said: str, files: tuple[str, ...] = (), tests: tuple[str, ...] = ()) -> Work:
    """Build the step that verifies the work. `files` and `tests` are the agent's claims."""
    given = {"said": said, "files": list(files), "tests": list(tests)}
    return Work(type="tool", executor=executor, intention="Judge it.", instruction_content=given)


def has_given_up(arguments: Data) -> bool:
    """Return whether a `finish` call reports failure."""
    return read_text(arguments, "status") in ("failed", "blocked", "error")


def build_finish(
    step: Step, summary: str, evidence: tuple[str, ...] = (), *, failed: bool = False
) -> FinishSubtask | FinishTask:
    """Build the end of the step's subtask, or else of its task."""
    state: Literal["failed", "finished"] = "failed" if failed else "finished"
    if step.subtask_id is None or step.stage_id is None:
        return FinishTask(task_id=step.task_id, state=state, summary=summary, evidence=evidence)
    return FinishSubtask(
        subtask_id=step.subtask_id, stage_id=step.stage_id, state=state, summary=summary, evidence=evidence
    )


def list_builtin_calls(spec: AgentSpec, *, finishes: bool, writes: bool) -> tuple[ToolSpec, ...]:
    """List the built-in calls that an agent is offered."""
    found = [CALL_AGENT] if spec.calls else []
    if writes:
        found += [SEND_MESSAGE, POST_NOTE]
    if spec.answer is not None:
        found.append(build_answer_tool(spec.answer))
    elif finishes:
        found.append(FINISH)
    return tuple(found)
