"""Names of an organisation in the log, and its languages. It imports no skills, so it loads at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from greenroom.core.base.ids import TaskId, task_id

KIT: Final = "organisation"
BASE: Final[TaskId] = task_id(1)
"""The task that an organisation begins with, and that only a person ends."""

MANAGER: Final = "manager"
"""Who manages when the charter names no manager."""

ROLES: Final = ("researcher", "writer", "analyst", "engineer", "reviewer")
"""Blueprints that are always there."""

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)
"""Those that an organisation speaks."""

STATES: Final = {"finished": "已完成", "failed": "失败", "cancelled": "已取消"}
"""How work ends, in Chinese."""


def in_language(words: Mapping[str, str], language: str) -> str:
    """The words of a language; English where it has none."""
    return words.get(language.partition("-")[0], words["en"])
