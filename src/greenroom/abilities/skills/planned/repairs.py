"""Asking again: a reply that cannot be used is asked for once more, a few times, with what is wrong with it.

What the next attempt has to know stands in its instruction: it is the house's own, and no model writes there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.core.base.ids import AgentId, sender_of
from greenroom.core.base.records import evolve
from greenroom.core.state.step import Step, Work

LETTERS: Final = ("process_message", "send_message")
"""The skills in which a message is read that somebody has sent."""

ANSWER_TO: Final = "<return_waiting_id>"
"""Behind what somebody wrote the house writes which wait an answer ends."""


def again(step: Step, why: str) -> Work:
    """The same work once more."""
    told = {"repairs": repairs_of(step) + 1, "error": why, "from": asked_by(step) or ""}
    return evolve(step.work, instruction_content=told)


def repairs_of(step: Step) -> int:
    """How often it was asked again."""
    found = _told(step).get("repairs", 0)
    return found if isinstance(found, int) else 0


def error_of(step: Step) -> str:
    """What was wrong with the reply before."""
    return str(_told(step).get("error", ""))


def asked_by(step: Step) -> AgentId | None:
    """Who wrote the message that the step is about."""
    if step.message_id is not None:
        return sender_of(step.message_id)
    told = str(_told(step).get("from", ""))
    return AgentId(told) if told else None


def begun_by(step: Step, history: Iterable[Step]) -> Step:
    """The step with which somebody wanted what this one is a part of: it reads their message. Where nobody wrote one,
    or so long ago that the history does not know it any more, the first that is known."""
    known = {one.step_id: one for one in history}
    while asked_by(step) is None and step.cause is not None and step.cause in known:
        step = known[step.cause]
    return step


def asked_for(step: Step) -> str:
    """What they wrote, without what the house wrote around it; nothing where that is fenced off."""
    head, _, text = step.work.text_content.partition("\n")
    if asked_by(step) is None or not head.startswith("from: ") or text.startswith("has_read: "):
        return ""
    return text.partition(ANSWER_TO)[0].strip()


def is_letter(step: Step) -> bool:
    """Whether its text is what somebody else wrote to the agent."""
    name = step.work.executor
    return name == LETTERS[0] or (name in LETTERS and asked_by(step) is not None)


def _told(step: Step) -> dict[str, object]:
    given = step.work.instruction_content if step.work.type == "skill" else None
    return dict(given or {})
