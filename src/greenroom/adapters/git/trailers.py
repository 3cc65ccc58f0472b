"""What stands below a commit's message: of which run, task, agent and step it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from greenroom.core.ports.workspace import Mark

PREFIX: Final = "Greenroom-"
LINE: Final = re.compile(r"^Greenroom-([A-Za-z]+): (.*)$")
NAMES: Final = ("run", "task", "agent", "step", "key")


def message_of(subject: str, told: Mapping[str, str]) -> str:
    """A message with trailers; whatever is in a value stays on its line."""
    lines = [f"{PREFIX}{name.capitalize()}: {_line(value)}" for name, value in told.items() if value]
    return f"{subject.strip() or 'Work'}\n\n" + "\n".join(lines) + "\n"


def marked(mark: Mark) -> str:
    """The message of one step's commit."""
    told = {"run": mark.run, "task": mark.task, "agent": mark.agent, "step": mark.step, "key": mark.key}
    return message_of(_line(mark.summary)[:120] or f"Step {mark.step or mark.key}", told)


def trailers_of(message: str) -> dict[str, str]:
    """Our lines in a message, by name in small letters: those of the last paragraph that has some. A hook may have put
    others below."""
    for part in reversed(message.split("\n\n")):
        if found := {match[1].lower(): match[2] for match in map(LINE.match, part.splitlines()) if match}:
            return found
    return {}


def mark_of(message: str) -> Mark | None:
    """Whose step a commit is, if it is one of ours."""
    told = trailers_of(message)
    if "run" not in told or "key" not in told:
        return None
    return Mark(summary=message.partition("\n")[0], **{name: told.get(name, "") for name in NAMES})


def _line(value: str) -> str:
    return " ".join(value.split())
