"""What a person ordered about the outcome of a job, as data."""

from __future__ import annotations

from typing import TypeAlias

from greenroom.core.base.records import record


@record
class Diff:
    """All that a job changed."""

    name: str


@record
class Apply:
    """Bring it to the person's files; with `commit` as one commit, with `message` if one was said. `hooks` says whether
    theirs run although the work changes them; None is not said."""

    name: str
    commit: bool
    message: str
    hooks: bool | None = None


@record
class Branch:
    """Put it on a new branch."""

    name: str
    branch: str


@record
class Discard:
    """Drop the copy. `yes`: do not ask."""

    name: str
    yes: bool


@record
class Undo:
    """Take back what was applied; with `revert` by a commit on top."""

    name: str
    revert: bool


@record
class Rewind:
    """Go back to the end of a step, and on from there, after saying `text` if there is one. An empty `step` asks which
    there are; without `runs` nobody goes on yet, with `alone` nobody is there to be asked."""

    name: str
    step: str
    text: str
    runs: bool
    alone: bool


@record
class Blame:
    """Which step wrote a line: FILE:LINE."""

    place: str


@record
class WorkspacesList:
    """All copies."""


@record
class WorkspacesClean:
    """Take copies away: those named, else all in which nothing would be lost. With `refs` also what repositories keep
    of runs whose work was applied: it cannot be undone then."""

    names: tuple[str, ...]
    discard: bool
    refs: bool


Taking: TypeAlias = Diff | Apply | Branch | Discard | Undo | Rewind | Blame | WorkspacesList | WorkspacesClean
