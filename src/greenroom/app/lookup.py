"""Resolves ids that people type: a team's id or its beginning, `last`, or TEAM/TASK.

Imports nothing heavy, because shell completion waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.storage.database import DATABASE_NAME, list_team_names
from greenroom.app.messages import shorten_names, translate
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record

if TYPE_CHECKING:
    from greenroom.app.runtime import Runtime

LAST: Final = "last"


@record
class TaskReference:
    """The team and task that were named. Without a task, the whole team."""

    team: TeamId
    task: TaskId | None = None

    def __str__(self) -> str:
        return self.team if self.task is None else f"{self.team}/{self.task}"


def has_store(home: Path) -> bool:
    """Whether there is a store in this folder."""
    return (home / DATABASE_NAME).exists()


def complete_ids(home: Path, prefix: str) -> list[str]:
    """Return the ids with this prefix, newest first, for shell completion. Never raises."""
    try:
        teams = list_team_names(home)
    except (sqlite3.Error, OSError):
        return []
    return [name for name in (*([LAST] if teams else []), *reversed(teams)) if name.startswith(prefix)]


async def resolve_id(runtime: Runtime, text: str) -> TaskReference:
    """Return the team (and task) that `text` names. Raise `RefusedError` with the known ids otherwise."""
    team_text, slash, task = text.strip().partition("/")
    # A stream without events is a team whose creation was interrupted by a crash.
    team = pick_team([TeamId(info.stream) for info in await runtime.log.streams() if info.head.version], team_text)
    if not slash:
        return TaskReference(team=team)
    known = [*(await runtime.state(team)).tasks, *(ended.task_id for ended in await runtime.ended_tasks(team))]
    if task not in known:
        known_tasks = ", ".join(sorted(known, key=lambda name: (len(name), name))) or translate("hints.none")
        raise make_refusal(
            "unknown_task",
            translate("lookup.unknown_task", team=team, task=task),
            translate("lookup.its_tasks", known=known_tasks),
        )
    return TaskReference(team=team, task=TaskId(task))


def pick_team(teams: Sequence[TeamId], text: str) -> TeamId:
    """Return the one team of these (oldest first) that `text` names."""
    if not teams:
        raise make_refusal("no_teams", translate("lookup.nothing_yet", text=text), translate("lookup.start_run"))
    if text == LAST:
        return teams[-1]
    if text in teams:
        return TeamId(text)
    matching = [team for team in teams if text and team.startswith(text)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise make_refusal(
            "ambiguous_id",
            translate("lookup.ambiguous", text=text, names=_join_newest(matching)),
            translate("lookup.type_more"),
        )
    raise make_refusal(
        "unknown_id", translate("lookup.unknown_team", text=text), translate("lookup.newest", names=_join_newest(teams))
    )


def _join_newest(teams: Sequence[TeamId]) -> str:
    return shorten_names(list(reversed(teams)))


def find_short_ids(teams: Sequence[TeamId], *, min_length: int = 3) -> dict[TeamId, str]:
    """Return the shortest unique prefix of each team id."""
    ordered = sorted(teams)
    short_ids: dict[TeamId, str] = {}
    for index, team in enumerate(ordered):
        neighbours = ordered[max(index - 1, 0) : index] + ordered[index + 1 : index + 2]
        prefixes = (team[:size] for size in range(min_length, len(team)))
        short_ids[team] = next(
            (name for name in prefixes if not any(other.startswith(name) for other in neighbours)), team
        )
    return short_ids
