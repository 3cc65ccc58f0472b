"""Approval requests as people read and answer them: rendering, parsing, and rules that last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from greenroom.app.conversation.capability_names import TEAM_RUN
from greenroom.app.messages import translate
from greenroom.app.messages.findings import render_for_people
from greenroom.app.toolset.policy import open_user_rules
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.text import remove_control_characters
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, ApprovalAnswered, ApprovalScope
from greenroom.core.state.team_state import TeamState
from greenroom.runs.verdict import CONFIRM_UNVERIFIED, SETTLE_CONFLICT, SETTLE_MERGE

SCOPE_WORDS: Final[dict[str, ApprovalScope]] = {
    **dict.fromkeys(("y", "yes", "once"), "once"),
    **dict.fromkeys(("r", "run"), "run"),
    **dict.fromkeys(("a", "always"), "always"),
}
ApprovalKind: TypeAlias = Literal["permission", "question", "plan", "confirmation", "conflict"]
OWN_KINDS: Final[dict[str, ApprovalKind]] = {
    "propose_plan": "plan",
    CONFIRM_UNVERIFIED: "confirmation",
    SETTLE_CONFLICT: "conflict",
}
"""What the steps of Greenroom itself ask for."""

if TYPE_CHECKING:
    from greenroom.app.runtime import Runtime

MAX_QUESTION_CHARS: Final = 300  # characters of a question in a refusal
EDIT_PREFIX: Final = re.compile(r"\A(?:e|edit)(?::\s*|\s+|$)", re.IGNORECASE)


def pending_approvals(state: TeamState) -> list[Approval]:
    """Return all approval requests without an answer, oldest first."""
    pending = [approval for approval in state.approvals.values() if approval.state == "pending"]
    return sorted(pending, key=lambda approval: (approval.asked_at, approval.approval_id))


def find_kind(state: TeamState, approval: Approval) -> ApprovalKind:
    """Return what a request asks a person for. A confirmation continues a run that no check can verify."""
    step = state.steps.get(approval.step_id)
    own = OWN_KINDS.get(step.work.executor) if step is not None else None
    return own or ("question" if approval.words else "permission")


def is_merge(state: TeamState, approval: Approval) -> bool:
    """Whether the request asks what becomes of work that cannot be merged."""
    step = state.steps.get(approval.step_id)
    return step is not None and step.work.executor == SETTLE_MERGE


def describe_asker(state: TeamState, approval: Approval) -> str:
    """Return which agent of a team run asks, and for which subtask; empty for other runs."""
    step = state.steps.get(approval.step_id)
    subtask = state.find_subtask(step) if step is not None else None
    if state.team.kit != TEAM_RUN or subtask is None:
        return ""
    name, title = subtask.name, remove_control_characters(subtask.title)
    key = "approvals.for_subtask" if approval.words else "approvals.asker"  # a question in words names who asks
    return translate(key, agent=approval.agent_id, subtask=name, title=title)


def words_to_type(state: TeamState, approval: Approval) -> tuple[str, str]:
    """Return what to type after `greenroom answer ID`, and the alternatives."""
    match find_kind(state, approval):
        case "plan":
            return "yes", translate("approvals.or_plan")
        case "conflict":
            return "left", translate("conflicts.or_words")
        case "question":
            return translate("approvals.your_answer"), ""
        case _:
            return "yes", translate("approvals.or_no")


def quote_question(approval: Approval, *, confirmation: bool = False) -> str:
    """Return the question of a request. An agent's text is quoted line by line, so that it cannot imitate Greenroom."""
    if confirmation:
        return render_for_people(approval.question)
    if not approval.words:
        return approval.question
    question = "\n  | ".join(remove_control_characters(approval.question).splitlines())
    return translate("approvals.asks", agent=approval.agent_id, question=question)


def quote_for_page(state: TeamState, approval: Approval) -> str:
    """Return the question of a request without its last line if that says what to type: a page has buttons."""
    kind = find_kind(state, approval)
    if kind == "confirmation":
        return render_for_people(approval.question)
    is_typed = kind == "conflict" or is_merge(state, approval)
    return approval.question.rpartition("\n")[0] or approval.question if is_typed else approval.question


def render_question(approval: Approval, *, plan: bool = False, confirmation: bool = False) -> str:
    """Render a request and its possible answers."""
    question = quote_question(approval, confirmation=confirmation)
    if approval.words and not confirmation:
        return f"{question}\n{translate('approvals.plan_choices' if plan else 'approvals.answer_later')}"
    if not approval.grant:
        return translate("approvals.once_or_run" if approval.release else "approvals.yes_or_no", question=question)
    rules = approval.grant.replace("\n", "; ")
    return translate("approvals.choose_scope", question=approval.question, rules=rules)


def parse_answer(approval: Approval, line: str, *, plan: bool = False) -> AnswerApproval | None:
    """Parse an answer; None if it is unknown. For a plan, any other text says what to do differently."""
    name, text = approval.approval_id, line.strip()
    if approval.words:
        text = EDIT_PREFIX.sub("", text, count=1) if plan else text
        return AnswerApproval(approval_id=name, answer="approved", reason=text) if text else None
    word, _, reason = text.partition(" ")
    if word.lower() in ("", "n", "no"):
        return AnswerApproval(approval_id=name, answer="denied", reason=reason.strip())
    scope = SCOPE_WORDS.get(word.lower())
    if scope is None or (scope != "once" and not (approval.grant or (scope == "run" and approval.release))):
        return None
    return AnswerApproval(approval_id=name, answer="approved", scope=scope, reason=reason.strip())


def keep_rule(state: TeamState, approval: Approval, answer: AnswerApproval) -> str:
    """Save a permanent permission rule of the person. Return a sentence about it; empty for other answers."""
    if answer.answer != "approved" or answer.scope != "always":
        return ""
    if not state.team.workspace:
        return translate("approvals.no_workspace")
    for rule in (answer.grant or approval.grant).splitlines():
        open_user_rules().add(rule, Path(state.team.workspace))
    return translate("approvals.rule_saved")


def make_answer(
    state: TeamState, approval: Approval, text: str, reason: str = "", scope: ApprovalScope = "once"
) -> AnswerApproval:
    """Make the answer from what a person typed. Raise `RefusedError` if it does not fit the question."""
    name = approval.approval_id
    if text and find_kind(state, approval) in OWN_KINDS.values():  # here yes and no are text like any other
        return AnswerApproval(approval_id=name, answer="approved", reason=f"{text} {reason}".strip())
    if text.lower() == "no":
        return AnswerApproval(approval_id=name, answer="denied", reason=reason)
    if approval.words:
        words = reason or ("" if text.lower() == "yes" else text)
        if not words:
            why = translate(
                "control.answer_needs_words",
                agent_id=approval.agent_id,
                shorten=" ".join(remove_control_characters(approval.question).split())[:MAX_QUESTION_CHARS],
            )
            raise make_refusal("no_words", why, translate("control.type_answer"))
        return AnswerApproval(approval_id=name, answer="approved", reason=words)
    if text.lower() != "yes":
        raise make_refusal(
            "bad_answer", translate("control.not_yes_or_no", text=text), translate("control.give_reason")
        )
    return AnswerApproval(approval_id=name, answer="approved", reason=reason, scope=scope)


async def find_answer(runtime: Runtime, team: TeamId, name: str) -> ApprovalAnswered | None:
    """Return the answer to a request that is not open any more; None if it was withdrawn. The newest events are read
    first."""
    begin, size = (await runtime.log.head(team)).version, 500
    while begin:
        end, begin = begin, max(0, begin - size)
        async for logged_event in runtime.events(team, after=begin):
            if isinstance(logged_event.event, ApprovalAnswered) and logged_event.event.approval_id == name:
                return logged_event.event
            if logged_event.version >= end:
                break
        size *= 4
    return None
