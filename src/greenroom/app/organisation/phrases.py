"""Names, languages and messages of organisations. Imports no skills, so it loads fast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.app.messages import MESSAGES, Phrases, phrase
from greenroom.core.base.errors import RefusedError, make_refusal
from greenroom.core.base.ids import TaskId, is_lookalike, task_id

ORGANISATION_KIT: Final = "organisation"
BASE_TASK: Final[TaskId] = task_id(1)
"""The task that an organisation starts with. Only a person ends it."""

DEFAULT_MANAGER: Final = "manager"
BUILTIN_ROLES: Final = ("researcher", "writer", "analyst", "engineer", "reviewer")


def command_phrases(language: str) -> Phrases:
    """Return the help of each command. Arguments come first, before two spaces."""
    return MESSAGES.table("commands", language)


def build_refusal(code: str, hint: str, language: str, **known: object) -> RefusedError:
    """Make a refusal with a hint. `there` lists the alternatives; an empty list is shown as such."""
    known["there"] = known.get("there") or phrase("hints", "none", language)
    why = phrase("refusals", code, language, **known)
    return make_refusal(code, why, phrase("hints", hint, language, **known))


def make_dismissed_error(team: str, language: str) -> RefusedError:
    """Make the error for a person who was dismissed."""
    return build_refusal("sent_away", "come_back", language, name=team)


def make_unknown_agent_error(name: str, agents: Iterable[str], language: str) -> RefusedError:
    """Make the error for an unknown agent, and suggest a name that looks like it."""
    names = sorted(agents)
    near = next((agent for agent in names if is_lookalike(agent, name)), None)
    hint = "there" if near is None else "meant"
    return build_refusal("unknown_agent", hint, language, name=name, near=near, there=", ".join(names))
