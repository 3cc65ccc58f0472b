"""Approval requests as a person reads and answers them, wherever they are asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from greenroom.app.toolset.policy import persons_rules
from greenroom.core.base.text import seen
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.runs.verdict import CONFIRM

SCOPES: Final[dict[str, Scope]] = {
    **dict.fromkeys(("y", "yes", "once"), "once"),
    **dict.fromkeys(("r", "run"), "run"),
    **dict.fromkeys(("a", "always"), "always"),
}
PLANS: Final = "propose_plan"
EDIT: Final = re.compile(r"\A(?:e|edit)(?::\s*|\s+|$)", re.IGNORECASE)
ABOUT_A_PLAN: Final = "[y] yes  [e WHAT] edit: what to do differently  [n] no, end it here: "
NO_ANSWER: Final = "That is none of the answers."


def pending_approvals(world: World) -> list[Approval]:
    """All questions that are not answered yet, the oldest first."""
    pending = [approval for approval in world.approvals.values() if approval.state == "pending"]
    return sorted(pending, key=lambda approval: (approval.asked_at, approval.approval_id))


def is_plan(world: World, approval: Approval) -> bool:
    """Whether it is asked what becomes of a plan."""
    step = world.steps.get(approval.step_id)
    return step is not None and step.work.executor == PLANS


def is_confirmation(world: World, approval: Approval) -> bool:
    """Whether it is asked if the run goes on although nothing can verify it."""
    step = world.steps.get(approval.step_id)
    return step is not None and step.work.executor == CONFIRM


def words_to_type(world: World, approval: Approval) -> tuple[str, str]:
    """What a person types behind `greenroom answer`, and what else they may."""
    if is_plan(world, approval):
        return "yes", 'or no, or "what to do differently"'
    if approval.words and not is_confirmation(world, approval):
        return '"what you say"', ""
    return "yes", "or no"


def quote_question(approval: Approval) -> str:
    """A question as a person reads it. What an agent says itself is marked as its words, line by line: no model can
    make them look like a question of Greenroom."""
    if not approval.words:
        return approval.question
    return f"{approval.agent_id} asks: " + "\n  | ".join(seen(approval.question).splitlines())


def render_question(approval: Approval, *, plan: bool = False) -> str:
    """What is asked, and how it can be answered."""
    if plan or approval.words:
        return f"{quote_question(approval)}\n{ABOUT_A_PLAN if plan else '(Ctrl-D: not now) '}"
    if not approval.grant:
        run = "once  [r] this run" if approval.release else "yes"
        return f"{approval.question}\n[y] {run}  [n] no: "
    rules = approval.grant.replace("\n", "; ")
    return f"{approval.question}\n[y] once  [r] this run  [a] always: {rules}  [n] no: "


def parse_answer(approval: Approval, line: str, *, plan: bool = False) -> AnswerApproval | None:
    """What a line means; None when it means nothing. To a plan every other text says what to do differently."""
    name, said = approval.approval_id, line.strip()
    if approval.words:
        said = EDIT.sub("", said, count=1) if plan else said
        return AnswerApproval(approval_id=name, answer="approved", reason=said) if said else None
    word, _, reason = said.partition(" ")
    if word.lower() in ("", "n", "no"):
        return AnswerApproval(approval_id=name, answer="denied", reason=reason.strip())
    scope = SCOPES.get(word.lower())
    if scope is None or (scope != "once" and not (approval.grant or (scope == "run" and approval.release))):
        return None
    return AnswerApproval(approval_id=name, answer="approved", scope=scope, reason=reason.strip())


def keep_rule(world: World, approval: Approval, answer: AnswerApproval) -> str:
    """Write what was agreed to for good into the person's own file; returns a sentence about it, empty for all else."""
    if answer.answer != "approved" or answer.scope != "always":
        return ""
    if not world.team.workspace:
        return "It has no workspace for which that could be kept, so it holds for this run."
    for rule in (answer.grant or approval.grant).splitlines():
        persons_rules().add(rule, Path(world.team.workspace))
    return "Kept: `greenroom permissions` lists what you have agreed to."
