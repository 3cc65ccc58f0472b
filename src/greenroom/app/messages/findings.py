"""Renders the findings of a verdict as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.app.messages import phrase
from greenroom.runs.verdict import Finding

MAX_NAMES_SHOWN: Final = 5

NOT_DELIVERED_REASONS: Final[Mapping[str, str]] = {
    "too_large": "too large",
    "unreadable": "not readable",
    "repository": "another repository",
    "submodule": "in a submodule",
    "other": "not a regular file",
    "secret": "not in git, and its name looks like a secret",
    "environment": "a virtual environment or node_modules",
}


def render_finding(finding: Finding, language: str = "en") -> str:
    """Render a finding as a sentence."""
    reason = NOT_DELIVERED_REASONS.get(finding.why, finding.why) if finding.code == "not_delivered" else finding.why
    text = phrase(
        "findings_with_tests" if finding.code == "tests_changed" and finding.tests else "findings",
        finding.code,
        language,
        check=finding.check,
        count=finding.count or len(finding.tests),
        tests=shorten_names(finding.tests),
        paths=shorten_names(finding.paths),
        why=reason,
    )
    return to_one_line(text)


def shorten_names(names: Sequence[str]) -> str:
    """Join the first names, with the number of the others."""
    hidden_names = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return ", ".join(map(to_one_line, names[:MAX_NAMES_SHOWN])) + hidden_names


def to_one_line(text: str) -> str:
    """Put a text on one line. A name with a line break would look like two lines of output."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
