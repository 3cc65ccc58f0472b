"""send_message: a message to one or more of the group; an answer carries the id that somebody waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, cast

from greenroom.abilities.skills.planned.naming import agents
from greenroom.abilities.skills.planned.repairs import asked_by
from greenroom.abilities.skills.planned.schemas import fields_of, list_of
from greenroom.abilities.skills.planned.skill import TEXT, Answer, Meant, Moment, Skill
from greenroom.abilities.skills.planned.windows import exchanges
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import NO_RELATIVE, AgentId, StageId, WaitingId
from greenroom.core.base.records import Data, whole
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.message import MessageKind, Wait

LONGEST: Final = 50
"""How often in a row an agent may answer with another question: then what it writes needs no answer any more."""

UNRELATED: Final = frozenset({"", NO_RELATIVE, "no_stage"})
_WAITING: Final = re.compile(r"<return_waiting_id>\s*(.*?)\s*</return_waiting_id>", re.DOTALL)
_TRUTH: Final[Data] = {"type": "boolean"}

SHAPE: Final = fields_of(receiver=list_of(TEXT), message=TEXT, stage_relative=TEXT, need_reply=_TRUTH, waiting=_TRUTH)


def return_waiting_id(text: str) -> WaitingId | None:
    """The id that an answer to this message is to carry. The house writes it behind the message: the last counts."""
    found = _WAITING.findall(text)
    return WaitingId(found[-1]) if found and found[-1] else None


def _meaning(moment: Moment, answer: Answer) -> Meant:
    said = cast("Mapping[str, object]", answer.value)
    wait = _waited(moment)
    text = str(said["message"]).strip()
    if not text:
        raise ModelFault("The message is empty.")
    receiver = _receivers(moment, cast("list[object]", said["receiver"]), wait)
    answers = wait is not None and wait.waiter in receiver
    closed = _exchanges(moment) >= LONGEST
    waiting = bool(said["waiting"]) and not closed
    reply = (bool(said["need_reply"]) and not closed) or waiting
    sent = SendMessage(
        task_id=wait.task_id if wait is not None and answers else moment.step.task_id,
        receiver=receiver,
        message=text,
        stage_relative=_related(moment, str(said["stage_relative"]).strip()),
        need_reply=reply,
        waiting=waiting,
        return_waiting_id=wait.waiting_id if wait is not None and answers else None,
        kind=_kind(answers=answers, reply=reply),
    )
    return Meant(value=_kept(moment, sent), more={"closed": True} if closed else {}, intents=(sent,))


def _waited(moment: Moment) -> Wait | None:
    """Who waits for this answer, if somebody still does.

    What the house says of the step comes first. In the text of a letter anybody may have written an id: it counts only
    in what the agent was told otherwise.
    """
    step = moment.step
    quoted = return_waiting_id(step.work.text_content) if asked_by(step) is None else None
    name = step.answers or quoted
    wait = moment.world.waits.get(name) if name is not None else None
    return wait if wait is not None and wait.on == moment.agent.agent_id else None


def _exchanges(moment: Moment) -> int:
    """How many answers it has written in a row, if this is one: two who always ask back would never end."""
    if asked_by(moment.step) is None:
        return 0
    return exchanges(moment.history)


def _receivers(moment: Moment, names: list[object], wait: Wait | None) -> tuple[AgentId, ...]:
    among = dict.fromkeys((*moment.group, *((wait.waiter,) if wait is not None else ())))
    found = agents(moment, names, among)
    if not found:
        raise ModelFault(f"The message has no receiver. The group: {', '.join(moment.group)}.")
    if moment.agent.agent_id in found:
        raise ModelFault("You cannot write to yourself. Leave your own id out.")
    return found


def _related(moment: Moment, name: str) -> StageId | Literal["no_relative"]:
    if name in UNRELATED:
        return NO_RELATIVE
    stages = moment.task.stages if moment.task is not None else ()
    if name not in stages:
        known = ", ".join((*stages, NO_RELATIVE))
        raise ModelFault(f"There is no open stage {name!r} in this task. stage_relative is one of: {known}.")
    return StageId(name)


def _kind(*, answers: bool, reply: bool) -> MessageKind:
    if reply:
        return "request"
    return "response" if answers else "notification"


def _kept(moment: Moment, sent: SendMessage) -> Data:
    """The message as the step remembers it: MAS's fields. Which ids it waits for the house says."""
    names = ("task_id", "receiver", "message", "stage_relative", "need_reply", "waiting", "return_waiting_id")
    fields = whole(sent)
    return {"sender_id": moment.agent.agent_id, **{name: fields[name] for name in names}}


SEND_MESSAGE: Final = Skill(
    name="send_message",
    tag="send_message",
    key="send_message",
    said="Send Message",
    order="history",
    shape=lambda _: SHAPE,
    meaning=_meaning,
)
