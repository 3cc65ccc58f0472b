"""What is lent to a copy: the person's packages, unless it is prepared with its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.jobs.kit import lending
from greenroom.app.jobs.place import Place
from greenroom.app.jobs.preparing import Setup
from greenroom.core.ports.workspace import Lent, Snapshot, Workspace, Worktree

VENV = Lent(path=".venv", source="/p/.venv", kind="packages")
DEPS = Lent(path="web/.deps", source="/p/web/.deps", kind="packages")
SUB = Lent(path="sub", source="/p/sub", kind="submodule")


class Files:
    """A workspace that lends what it is asked for."""

    async def lent(self, names: Sequence[str] = ()) -> Sequence[Lent]:
        """By name."""
        return (VENV, SUB, *((DEPS,) if ".deps" in names else ()))


@pytest.mark.parametrize(
    ("setup", "lent"),
    [
        (Setup(), (VENV, SUB)),
        (Setup(lend=(".deps",)), (VENV, SUB, DEPS)),
        (Setup(line="uv sync"), (SUB,)),
        (Setup(line="uv sync", lend=(".deps",)), (SUB, DEPS)),
        (Setup(line="uv sync", left="not run"), (VENV, SUB)),
    ],
    ids=["nothing said", "by name", "prepared", "prepared and by name", "not prepared after all"],
)
async def test_packages_are_lent_unless_a_copy_is_prepared_with_its_own(setup: Setup, lent: tuple[Lent, ...]) -> None:
    place = Place(
        run="r",
        at=Path("/p"),
        workspace=cast("Workspace", Files()),
        snapshot=Snapshot(commit="c", tree="t"),
        worktree=cast("Worktree", None),
        lent=(VENV, SUB),
    )
    assert (await lending(place, setup)).lent == lent
