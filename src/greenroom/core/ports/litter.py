"""What lies in a worktree and is nobody's work: what the checks of a project change and make beside what they check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Littered(Protocol):
    """A place with files of which some have no part in anything: they are in no commit, and no tree's name tells them.

    They go by their names. One that ends with a slash is a folder with all that is in it, and git's quotes are around
    odd ones, so that all can be kept anywhere.
    """

    async def settle(self) -> tuple[str, ...]:
        """Put files back that are not as in the newest commit. What came since stays, and has no part in anything from
        now on. All names of such, with those of earlier times."""
        ...

    async def pass_over(self, names: Iterable[str]) -> None:
        """Let these have no part in anything either."""
        ...

    async def passed_over(self) -> tuple[str, ...]:
        """All names."""
        ...

    async def littered(self) -> tuple[str, ...]:
        """The files that lie there now and have no part in anything."""
        ...

    async def moved(self, names: Iterable[str], before: Mapping[str, str] = NONE) -> Mapping[str, str]:
        """Files of the base that are not there any more and lie among these now, which have no part in anything: each
        with the name that it has there. It may have been changed a little. Of what was found `before`, that which is
        still so, whether or not it lies there."""
        ...

    async def claim(self, paths: Iterable[str]) -> None:
        """Let these files be work, whatever is passed over. Once they are in a commit, a copy that is made anew has
        them too."""
        ...

    async def pause(self) -> None:
        """What changes from now on is nobody's work, until `restore`. Where a kill comes before that, it is done when
        the worktree is opened again. Whatever is work has to be in a commit by now."""
        ...

    async def restore(self) -> tuple[str, ...]:
        """End a pause, if there is one: all is as in the newest commit again, but for what has no part in anything.
        What changed is put back, and what came is taken away. The names of both."""
        ...
