"""All worktrees of one person, of whichever workspace: what is in each, and taking them away. Nothing is done here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from greenroom.core.base.records import record
from greenroom.core.ports.workspace import Clashes, LeftOut


@record
class Standing:
    """A worktree and what is in it. `unapplied` are the first lines of commits that nobody has yet, `dirty` files that
    are in no commit, `left_out` what can be in none: that is nowhere else. `orphan` says why nobody can have made use
    of it any more; then the files are all there is."""

    name: str
    root: str
    folder: str
    run: str = ""
    thread: str = ""
    base: str = ""
    tip: str = ""
    unapplied: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    orphan: str = ""

    @property
    def precious(self) -> bool:
        """Whether something is lost when it goes."""
        return bool(self.unapplied or self.dirty or self.left_out)


class Worktrees(Protocol):
    """All worktrees of one person on this machine."""

    async def list(self) -> Sequence[Standing]:
        """Those there are, and what is in each."""
        ...

    async def clean(self, name: str, *, discard: bool = False) -> Standing | Clashes:
        """Take one away. One with work in it only with `discard`, and its commits stay in the repository; what is
        `left_out` goes for good."""
        ...
