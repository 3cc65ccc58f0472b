"""Findings of a verdict as sentences for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.app.messages import phrase
from greenroom.runs.verdict import Finding

FEW: Final = 5
"""Names in a sentence."""

WHY_LEFT: Final[Mapping[str, str]] = {
    "too_large": "too large",
    "unreadable": "not readable",
    "repository": "another repository",
    "submodule": "in a submodule",
    "other": "not a regular file",
    "secret": "not in git, and its name says that it is a secret",
    "environment": "a virtual environment or node_modules",
}


def sentence(finding: Finding, language: str = "en") -> str:
    """One finding in a sentence."""
    why = WHY_LEFT.get(finding.why, finding.why) if finding.code == "not_delivered" else finding.why
    text = phrase(
        "findings_with_tests" if finding.code == "tests_changed" and finding.tests else "findings",
        finding.code,
        language,
        check=finding.check,
        count=finding.count or len(finding.tests),
        tests=shorten(finding.tests),
        paths=shorten(finding.paths),
        why=why,
    )
    return one_line(text)


def shorten(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(one_line, names[:FEW])) + more


def one_line(text: str) -> str:
    """A text on one line: a name may hold a line end, and would look like a line of ours."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
