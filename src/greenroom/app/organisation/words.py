"""Names, languages and sentences of an organisation. It imports no skills, so it loads at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from greenroom.app.messages import MESSAGES, Phrases, phrase
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import TaskId, looks_like, task_id

KIT: Final = "organisation"
BASE: Final[TaskId] = task_id(1)
"""The task that an organisation begins with, and that only a person ends."""

MANAGER: Final = "manager"
"""Who manages when the charter names no manager."""

ROLES: Final = ("researcher", "writer", "analyst", "engineer", "reviewer")
"""Blueprints that are always there."""


def commands(language: str) -> Phrases:
    """What each command of a person's room does. What it takes comes first, before two spaces."""
    return MESSAGES.table("commands", language)


def refused(code: str, hint: str, language: str, **known: object) -> Refused:
    """Why something cannot be done, and what to do instead. `there` lists what there is; an empty list is said too."""
    known["there"] = known.get("there") or phrase("hints", "none", language)
    why = phrase("refusals", code, language, **known)
    return Refused(Rejected(code=code, why=why, hint=phrase("hints", hint, language, **known)))


def sent_away(team: str, language: str) -> Refused:
    """A person who was dismissed wants something of the organisation."""
    return refused("sent_away", "come_back", language, name=team)


def nobody(name: str, agents: Iterable[str], language: str) -> Refused:
    """There is no agent of this name. One whose name looks like it is offered: ben for `Ben`, or in another script."""
    there = sorted(agents)
    near = next((agent for agent in there if looks_like(agent, name)), None)
    hint = "there" if near is None else "meant"
    return refused("unknown_agent", hint, language, name=name, near=near, there=", ".join(there))
