"""What a step of a job does, in words for whoever watches: verbs instead of names of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.app.jobs.verdict import BASELINE, CONFIRM, DELIVER, VERDICT, from_kept, sentence
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.words import shorten, step_words

WITH: Final = {
    "read_code": "reads",
    "search_files": "searches for",
    "list_files": "lists",
    "patch": "changes",
    "rewrite": "writes",
    "execute_script": "runs",
}
"""What is done, to what it is given first."""

ALONE: Final = {
    BASELINE: "runs the checks before any change",
    CONFIRM: "sees whether anything can verify the change",
    DELIVER: "runs the checks on the change",
    "run_checks": "runs the checks",
    "propose_plan": "makes a plan",
    "ask_user": "asks you",
    "command_output": "looks at what a command prints",
    "stop_command": "stops a command",
    "read_output": "reads a long output",
}
SHOWN: Final = 44
MOST: Final = 6
"""Reasons of a verdict that are shown."""


def deed(step: Step) -> str:
    """What it does, as in `writes export.py`."""
    name = step.work.executor
    if step.work.type != "tool" or name in ALONE:
        return ALONE.get(name, "thinks" if name == "converse" else step_words(step))
    texts = [value for value in (step.work.instruction_content or {}).values() if isinstance(value, str)]
    if name not in WITH or not texts:
        return step_words(step)
    return f"{WITH[name]} {shorten(harmless(texts[0]), SHOWN)}"


def judged(verdict: Data) -> Sequence[str]:
    """A verdict, a line each. An answer has no receipts."""
    found = from_kept(verdict)
    if found.verified:
        return ("✓ verified",) if found.receipts else ("No file was changed, so nothing was checked.",)
    reasons = [sentence(reason) for reason in found.reasons]
    more = [f"  and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    sign = "✗" if found.state == "failed" else "?"
    return (f"{sign} {found.state}:", *(f"  {reason}" for reason in reasons[:MOST]), *more)


def verdict_in(step: Step) -> Data | None:
    """What a step has found about the work; None if it was not about that."""
    held = (step.result or {}).get(VERDICT)
    return dict(held) if step.work.executor in (DELIVER, CONFIRM) and isinstance(held, Mapping) else None
