"""What a person types as an ID: a team's id or the beginning of it, `last`, or TEAM/TASK.

Nothing heavy is imported here: a shell that completes an id waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.storage.database import FILE, names
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record

if TYPE_CHECKING:
    from greenroom.app.runtime import Runtime

LAST: Final = "last"
SHOWN: Final = 5
"""How many ids a refusal lists."""


@record
class Found:
    """What was meant. Without a task it is the whole team."""

    team: TeamId
    task: TaskId | None = None

    def __str__(self) -> str:
        return self.team if self.task is None else f"{self.team}/{self.task}"


def has_store(home: Path) -> bool:
    """Whether anything ever ran there."""
    return (home / FILE).exists()


def possible(home: Path, beginning: str) -> list[str]:
    """The ids that begin like this, newest first, for a shell. It never hears of an error."""
    try:
        teams = names(home)
    except (sqlite3.Error, OSError):
        return []
    return [name for name in (*([LAST] if teams else []), *reversed(teams)) if name.startswith(beginning)]


async def find(runtime: Runtime, text: str) -> Found:
    """The team (and task) that `text` names; `Refused` says what there is instead."""
    head, slash, task = text.strip().partition("/")
    # A stream without events is a team that a crash kept from being made.
    team = pick([TeamId(info.stream) for info in await runtime.log.streams() if info.head.version], head)
    if not slash:
        return Found(team=team)
    known = [*(await runtime.world(team)).tasks, *(ended.task_id for ended in await runtime.ended_tasks(team))]
    if task not in known:
        there = ", ".join(sorted(known, key=lambda name: (len(name), name))) or "none"
        raise refused("unknown_task", f"Team {team!r} has no task {task!r}.", f"Its tasks: {there}.")
    return Found(team=team, task=TaskId(task))


def pick(teams: Sequence[TeamId], text: str) -> TeamId:
    """The one team of these (oldest first) that `text` names."""
    if not teams:
        raise refused("no_teams", f"There is no team {text!r}: nothing has run here yet.", "Try `greenroom demo`.")
    if text == LAST:
        return teams[-1]
    if text in teams:
        return TeamId(text)
    found = [team for team in teams if text and team.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise refused("ambiguous_id", f"{text!r} may be {_listed(found)}.", "Type more of it.")
    raise refused("unknown_id", f"There is no team {text!r}.", f"The newest: {_listed(teams)}. `last` is the newest.")


def _listed(teams: Sequence[TeamId]) -> str:
    newest = list(reversed(teams))[:SHOWN]
    more = len(teams) - len(newest)
    return ", ".join(newest) + (f" and {more} more" if more else "")


def refused(code: str, why: str, hint: str = "") -> Refused:
    """A refusal to be raised: its code, what is wrong, and what to do."""
    return Refused(Rejected(code=code, why=why, hint=hint))


def shortest(teams: Sequence[TeamId], *, least: int = 3) -> dict[TeamId, str]:
    """For each team the shortest beginning that names it alone."""
    ordered = sorted(teams)
    found: dict[TeamId, str] = {}
    for place, team in enumerate(ordered):
        beside = ordered[max(place - 1, 0) : place] + ordered[place + 1 : place + 2]
        beginnings = (team[:size] for size in range(least, len(team)))
        found[team] = next((name for name in beginnings if not any(other.startswith(name) for other in beside)), team)
    return found
