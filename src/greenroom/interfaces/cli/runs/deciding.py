"""What a person answers when an agent wants to do something, or wants to know something."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from greenroom.core.base.text import seen
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.interfaces.cli.loading import load

SCOPES: Final[dict[str, Scope]] = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "r": "run",
    "run": "run",
    "a": "always",
    "always": "always",
}
NO: Final = ("n", "no")
PLANS: Final = "propose_plan"
EDIT: Final = re.compile(r"\A(?:e|edit)(?::\s*|\s+|$)", re.IGNORECASE)
ABOUT_A_PLAN: Final = "[y] yes  [e WHAT] edit: what to do differently  [n] no, end it here: "


class _RulesFile(Protocol):
    def add(self, rule: str, workspace: Path | None) -> bool: ...


def waiting(world: World) -> list[Approval]:
    """All questions that nobody has answered yet, the oldest first."""
    pending = [one for one in world.approvals.values() if one.state == "pending"]
    return sorted(pending, key=lambda one: (one.asked_at, one.approval_id))


def is_plan(world: World, approval: Approval) -> bool:
    """Whether it is asked what becomes of a plan."""
    step = world.steps.get(approval.step_id)
    return step is not None and step.work.executor == PLANS


def to_type(world: World, approval: Approval) -> tuple[str, str]:
    """What a person types behind `greenroom answer`, and what else they may."""
    if is_plan(world, approval):
        return "yes", 'or no, or "what to do differently"'
    return ('"what you say"', "") if approval.words else ("yes", "or no")


def asked_by(approval: Approval) -> str:
    """A question as a person reads it. What an agent says itself is marked as its words, line by line: no model can
    make them look like a question of the house."""
    if not approval.words:
        return approval.question
    return f"{approval.agent_id} asks: " + "\n  | ".join(seen(approval.question).splitlines())


def question(approval: Approval, *, plan: bool = False) -> str:
    """What is asked, and how it can be answered."""
    if plan:
        return f"{asked_by(approval)}\n{ABOUT_A_PLAN}"
    if approval.words:
        return f"{asked_by(approval)}\n(Ctrl-D: not now) "
    if not approval.grant:
        run = "once  [r] this run" if approval.release else "yes"
        return f"{approval.question}\n[y] {run}  [n] no: "
    rules = approval.grant.replace("\n", "; ")
    return f"{approval.question}\n[y] once  [r] this run  [a] always: {rules}  [n] no: "


def answered(approval: Approval, line: str, *, plan: bool = False) -> AnswerApproval | None:
    """What a line means; None when it means nothing. To a plan also what is only typed is said: so it is edited."""
    name, said = approval.approval_id, line.strip()
    if approval.words:
        said = EDIT.sub("", said, count=1) if plan else said
        return AnswerApproval(approval_id=name, answer="approved", reason=said) if said else None
    word, _, reason = said.partition(" ")
    if word.lower() in NO or not word:
        return AnswerApproval(approval_id=name, answer="denied", reason=reason.strip())
    scope = SCOPES.get(word.lower())
    if scope is None or (scope != "once" and not (approval.grant or (scope == "run" and approval.release))):
        return None
    return AnswerApproval(approval_id=name, answer="approved", scope=scope, reason=reason.strip())


def kept(world: World, approval: Approval, answer: AnswerApproval) -> str:
    """Keep what was agreed to for good, in the person's own file; a sentence about it, empty when there was nothing."""
    if answer.answer != "approved" or answer.scope != "always":
        return ""
    file = cast("Callable[[], _RulesFile]", load("runs.hands", "persons_rules"))()
    if not world.team.workspace:
        return "It has no workspace for which that could be kept, so it holds for this run."
    for rule in (answer.grant or approval.grant).splitlines():
        file.add(rule, Path(world.team.workspace))
    return "Kept: `greenroom permissions` lists what you have agreed to."
