"""Whether a commit can be made at all, found out before anything is done."""

from __future__ import annotations

from typing import Final

from greenroom.adapters.git.hooked import NAMELESS
from greenroom.adapters.git.house import House
from greenroom.core.ports.workspace import WorkspaceFault

GOING_ON: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
IN_BETWEEN: Final = "is going on, in which git makes no commit of single files"


async def expect_commit(house: House) -> None:
    """A *state* fault for what a commit would be refused for now: nothing was done yet, and nothing is."""
    if house.repository.own:
        raise WorkspaceFault(
            "state", f"{str(house.repository.root)!r} is in no git repository, so nothing is committed."
        )
    if what := going_on(house):
        why = f"A {what} {IN_BETWEEN}. Nothing was changed: end it first."
        raise WorkspaceFault("state", why)
    for one in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if (await house.as_person().tried("var", one)).code:
            raise WorkspaceFault("state", f"{NAMELESS} Nothing was changed.")


def refuse_in_between(house: House) -> None:
    """The same about files that are applied already."""
    if what := going_on(house):
        raise WorkspaceFault("state", f"A {what} {IN_BETWEEN}. They are applied: end it first.")


def going_on(house: House) -> str:
    """What a person is in the middle of; empty for nothing."""
    return next((what for name, what in GOING_ON.items() if (house.repository.git / name).exists()), "")
