"""The team: the unit of consistency. One stream of events, one owner at a time."""

from __future__ import annotations

from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record


@record
class Origin:
    """Where a fork came from."""

    team_id: TeamId
    version: int


@record
class Team:
    """One team. `paused` says why nothing new starts; None when it is not paused.

    `workspace` is the folder that it works in: it stays that one, wherever it is taken up again. `last_memory` is the
    newest id that a memory was ever given, `letters_made` how many messages ever wanted an answer of a person.
    `approvals_expire` (ms) is how long a question waits for its answer.
    """

    team_id: TeamId
    name: str = ""
    created_at: int = 0
    epoch: int = 0
    paused: str | None = None
    tasks_made: int = 0
    kit: str = ""
    workspace: str = ""
    waiting_timeout: int | None = None
    approvals_expire: int | None = None
    origin: Origin | None = None
    last_memory: str = ""
    letters_made: int = 0


@record
class TeamCreated:
    """The team exists. `kit` names the wiring (skills, tools, model) it runs with.

    `waiting_timeout` (ms) bounds how long an agent waits for another agent.
    """

    at: int
    team_id: TeamId
    name: str
    waiting_timeout: int | None
    kit: str = ""
    workspace: str = ""


@record
class TeamForked:
    """This team began as a copy of another one at some version."""

    at: int
    team_id: TeamId
    origin: Origin


@record
class OwnerChanged:
    """A new owner took the team over; what ran under the old one was interrupted."""

    at: int
    epoch: int
    owner: str


@record
class TeamPaused:
    """Nothing new starts in the whole team."""

    at: int
    why: str


@record
class TeamResumed:
    """The team goes on."""

    at: int


TeamEvent = TeamCreated | TeamForked | OwnerChanged | TeamPaused | TeamResumed
