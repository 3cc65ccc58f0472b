"""What a step of a job does, in words for whoever watches: verbs instead of names of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.app.checks.receipts import DELIVER, FIRST_CHECKS, VERDICT
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
    "baseline": "runs the checks as it is",
    DELIVER: "sees what is proven",
    "run_checks": "runs the checks",
    "propose_plan": "makes a plan",
    "ask_user": "asks you",
    "command_output": "looks at what a command prints",
    "stop_command": "stops a command",
    "read_output": "reads a long output",
}
SHOWN: Final = 44
MOST: Final = 6
"""Lines about what is not proven."""

OPEN: Final = ("missing", "changed", "claims")


def deed(step: Step) -> str:
    """What it does, as in `writes export.py`."""
    name = step.work.executor
    if name == DELIVER and FIRST_CHECKS in (step.work.instruction_content or {}):
        return "asks whether its checks count"
    if step.work.type != "tool" or name in ALONE:
        return ALONE.get(name, "thinks" if name == "converse" else step_words(step))
    texts = [value for value in (step.work.instruction_content or {}).values() if isinstance(value, str)]
    if name not in WITH or not texts:
        return step_words(step)
    return f"{WITH[name]} {shorten(harmless(texts[0]), SHOWN)}"


def judged(verdict: Data) -> Sequence[str]:
    """What the house says of the work, a line each: that it is proven, or what is not. An answer has no receipts."""
    if verdict.get("state") == "verified" and not verdict.get("receipts"):
        return ("No file was changed, so nothing was checked.",)
    if verdict.get("state") == "verified":
        return ("✓ proven: every check ran on this very tree, and nothing newly fails",)
    found = [str(one) for name in OPEN for one in _texts(verdict.get(name))]
    more = [f"  and {len(found) - MOST} more"] if len(found) > MOST else []
    return ("✗ not proven:", *(f"  {one}" for one in found[:MOST]), *more)


def verdict_in(step: Step) -> Data | None:
    """What a step has found about the work; None if it was not about that."""
    held = (step.result or {}).get(VERDICT)
    return dict(held) if step.work.executor == DELIVER and isinstance(held, Mapping) else None


def _texts(held: object) -> Sequence[object]:
    return held if isinstance(held, Sequence) and not isinstance(held, str) else ()
