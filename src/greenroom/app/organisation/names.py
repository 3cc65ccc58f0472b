"""What an organisation is called in the log. Nothing is imported here: whoever only looks does not wait for skills."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.ids import TaskId, task_id

KIT: Final = "organisation"
BASE: Final[TaskId] = task_id(1)
"""The task that an organisation begins with, and that only a person ends."""

MANAGER: Final = "manager"
"""Who manages when nobody else is named."""

ROLES: Final = ("researcher", "writer", "analyst", "engineer", "reviewer")
"""Blueprints that are always there."""

CHINESE: Final = "zh"
LANGUAGES: Final = ("en", CHINESE)
"""Those that an organisation speaks."""

BASE_NAMES: Final = {"en": "MAS base task", CHINESE: "MAS基础任务进程"}
BASE_GOALS: Final = {
    "en": "Hear what people want. Make a task of each request, see that it is done, and bring them the result.",
    CHINESE: "听取人类操作员的需求，为每个需求创建并管理任务，确保完成，并把结果带给他们。",
}


def in_language(words: dict[str, str], language: str) -> str:
    """The words of a language; English where it has none."""
    return words.get(language.partition("-")[0], words["en"])
