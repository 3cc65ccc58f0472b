"""Unattended: nobody is there to be asked, so every question has its answer at once, and the log says so.

What needs a yes is not done. Who asks for words is told to decide by itself.
"""

from __future__ import annotations

from typing import Final

from greenroom.app.host import Host
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Bench, Executor, Outcome
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World, ordered

NOBODY: Final = "nobody is there to agree to it (non-interactive). Do without it, or say in your answer what is missing"
DECIDE: Final = "Nobody is there to answer (non-interactive). Decide yourself, and say in your answer what you assumed."


class Unattended:
    """A tool whose questions are answered by default, before anybody could wait for an answer."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.type: StepType = executor.type
        self.name = executor.name
        self.description = executor.description

    def terms(self, world: World, step: Step) -> Terms:
        """Its own; what would have been asked is forbidden, what would have been answered goes on."""
        own = self._executor.terms(world, step)
        if own.verdict != "ask" or _agreed(world, step, own):
            return own
        return evolve(own, verdict="allow", rule=DECIDE) if own.words else evolve(own, verdict="deny", rule=_why(own))

    async def run(self, bench: Bench) -> Outcome:
        """Do it; a question to a person has only one answer here."""
        terms = bench.step.terms
        if terms is not None and terms.words and terms.rule == DECIDE:
            return Outcome(result={"output": DECIDE, "by": "default"})
        return await self._executor.run(bench)


async def answer_pending(host: Host) -> list[AnswerApproval]:
    """Answer by default what a team was left waiting for; what was answered. For whoever goes on with it unattended."""
    waiting = [one for one in ordered(host.world.approvals) if one.state == "pending"]
    answers = [default_answer(one) for one in waiting]
    await host.submit(*answers, by=SYSTEM)
    return answers


def default_answer(approval: Approval) -> AnswerApproval:
    """What a question is answered with when nobody is there."""
    if approval.words:
        return AnswerApproval(approval_id=approval.approval_id, answer="approved", reason=DECIDE)
    return AnswerApproval(approval_id=approval.approval_id, answer="denied", reason=f"{NOBODY[0].upper()}{NOBODY[1:]}.")


def _agreed(world: World, step: Step, terms: Terms) -> bool:
    """Whether a person has said yes to exactly this before they left."""
    approval = world.approvals.get(step.approval) if step.approval is not None else None
    return approval is not None and approval.state == "approved" and approval.digest == terms.digest


def _why(terms: Terms) -> str:
    """The call itself, which stands on the lines below the question, is known to who made it."""
    asked = terms.question.partition("\n")[0].rstrip(". ")
    return f"{asked}, and {NOBODY}" if asked else NOBODY
