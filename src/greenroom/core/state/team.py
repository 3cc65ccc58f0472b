"""The team: the unit of consistency. It has one event stream and one owner at a time."""

from __future__ import annotations

from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import record


@record
class ForkOrigin:
    """The team and version that a fork was made from."""

    team_id: TeamId
    version: int


@record
class Team:
    """One team. `paused` says why nothing new starts; None if it is not paused.

    `workspace` is the folder it works in, on every resume. `last_memory` is the newest memory id ever given.
    `letters_made` counts the messages that ever needed a person's answer. `approvals_expire` (ms) is how long an
    approval request waits.
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
    origin: ForkOrigin | None = None
    last_memory: str = ""
    letters_made: int = 0


@record
class TeamCreated:
    """A team was created. `kit` names the capabilities (skills, tools, model) it runs with.

    `waiting_timeout` (ms) limits how long an agent waits for another agent.
    """

    at: int
    team_id: TeamId
    name: str
    waiting_timeout: int | None
    kit: str = ""
    workspace: str = ""


@record
class TeamForked:
    """A team began as a copy of another team at a version."""

    at: int
    team_id: TeamId
    origin: ForkOrigin


@record
class OwnerChanged:
    """A new owner took over the team. Work that ran under the old owner was interrupted."""

    at: int
    epoch: int
    owner: str


@record
class TeamPaused:
    """The whole team was paused: nothing new starts."""

    at: int
    why: str


@record
class TeamResumed:
    """The paused team was resumed."""

    at: int


TeamEvent = TeamCreated | TeamForked | OwnerChanged | TeamPaused | TeamResumed
