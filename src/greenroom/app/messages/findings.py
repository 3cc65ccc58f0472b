"""Renders the findings of a verdict as sentences."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.tools.human import (
    AGREED_MESSAGE,
    PERSON_SAYS_PREFIX,
    PLAN_REJECTED_MESSAGE,
    UNATTENDED_MESSAGE,
)
from greenroom.app.messages import MESSAGES, phrase, shorten_names, to_one_line, translate
from greenroom.runs.checker import (
    CAN_JUDGE_MESSAGE,
    CONTINUE_QUESTION,
    GO_ON_MESSAGE,
    NO_CHECKS_MESSAGE,
    NO_TESTS_MESSAGE,
    STOPPED_MESSAGE,
)
from greenroom.runs.verdict import Finding

LOG_SENTENCES: Final = {
    UNATTENDED_MESSAGE: "conversation.plan_unattended",
    AGREED_MESSAGE: "conversation.plan_agreed",
    PLAN_REJECTED_MESSAGE: "conversation.plan_rejected",
    CAN_JUDGE_MESSAGE: "conversation.tests_can_judge",
    GO_ON_MESSAGE: "conversation.goes_on_unverified",
    NO_CHECKS_MESSAGE: "conversation.no_checks",
    NO_TESTS_MESSAGE: "conversation.no_tests",
    CONTINUE_QUESTION: "conversation.continue_anyway",
    STOPPED_MESSAGE: "conversation.stopped_unverified",
}
"""Messages for people, by the sentence in the log, which a model may read."""


def render_for_people(text: str) -> str:
    """Return a text of the log in the person's language, as far as its lines are known."""
    return "\n".join(translate(LOG_SENTENCES[line]) if line in LOG_SENTENCES else line for line in text.split("\n"))


def find_plan_refusal(summary: str) -> str | None:
    """Return why a person refused the plan of a run that ended so, empty without a reason; None for another end."""
    head, _, why = summary.partition("\n")
    return why.strip() if head == PLAN_REJECTED_MESSAGE else None


def render_result(output: str) -> str:
    """Return the result of a tool for people: what a person said to a plan is not repeated."""
    return translate("conversation.plan_edited") if output.startswith(PERSON_SAYS_PREFIX) else render_for_people(output)


def render_finding(finding: Finding, language: str = "") -> str:
    """Render a finding as a sentence, in the language of the process if none is named."""
    text = phrase(
        "findings_with_tests" if finding.code == "tests_changed" and finding.tests else "findings",
        finding.code,
        language,
        check=finding.check,
        count=finding.count or len(finding.tests),
        tests=shorten_names(finding.tests, language),
        paths=shorten_names(finding.paths, language),
        why=explain_reason(finding.why, language),
    )
    return to_one_line(text)


def explain_reason(why: str, language: str = "") -> str:
    """Return the message for a stored reason, or the reason itself if it is not in the catalogue."""
    words, (head, colon, rest) = MESSAGES.table("reasons", language), why.rstrip(".").partition(": ")
    if head not in words or words[head] == head:
        return why
    return f"{words[head]}{colon}{rest}"
