"""Watching steps begin and end while a team works here, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable

from greenroom.app.host import Host
from greenroom.core.state.step import Step, StepStarted
from greenroom.core.sync.bus import Commit


def watch_steps(host: Host, began: Callable[[Step], None], ended: Callable[[Step], None]) -> Callable[[], None]:
    """Be told of each step that begins or ends; call what is returned to stop."""

    def follow(commit: Commit) -> None:
        for row in commit.archived:
            if isinstance(row.record, Step):
                ended(row.record)
        for event in commit.events:
            if isinstance(event, StepStarted) and event.step_id in commit.world.steps:
                began(commit.world.steps[event.step_id])

    return host.listen(follow)
