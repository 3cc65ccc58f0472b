"""What came of a job, as its repository keeps it: also when the copy in which it was done is gone."""

from __future__ import annotations

from dataclasses import dataclass

from greenroom.app.jobs.place import THREAD, History, begun
from greenroom.core.ports.workspace import Diff, Snapshot, Workspace
from greenroom.core.state.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The person's files (`workspace`) as they were (`snapshot`), and the newest commit (`tip`) of a `run`."""

    run: str
    workspace: Workspace
    snapshot: Snapshot
    tip: str

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, self.tip)


async def outcome(team: Team, history: History) -> Outcome:
    """That of a run. Whoever looks makes no copy."""
    theirs, snapshot = await begun(team, history)
    tip = await theirs.tip(team.team_id, THREAD)
    return Outcome(run=team.team_id, workspace=theirs, snapshot=snapshot, tip=tip)
