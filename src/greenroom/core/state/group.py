"""Groups: where people talk among themselves. A model reads what is said there only when it is named."""

from __future__ import annotations

from greenroom.core.base.ids import AgentId, GroupId, TaskId
from greenroom.core.base.records import record


@record
class Group:
    """A conversation of several people in a task; what they say is in the archive. It is over with its task."""

    group_id: GroupId
    task_id: TaskId
    participants: tuple[AgentId, ...]
    formed_at: int = 0


@record
class GroupFormed:
    """These people talk together. Who forms it again changes who takes part."""

    at: int
    group: Group


GroupEvent = GroupFormed
