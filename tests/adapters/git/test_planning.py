"""What becomes of one file that a person and the work have changed."""

from __future__ import annotations

import pytest

from greenroom.adapters.git.comparing import Delta
from greenroom.adapters.git.planning import Planned, planned
from greenroom.adapters.git.states import State
from greenroom.core.ports.workspace import Clashes

FILE, PROGRAM, GONE = "100644", "100755", "000000"


async def never(*_: str) -> str | None:
    return None


async def always(*_: str) -> str | None:
    return "merged"


def delta(old: str, new: str, path: str = "f") -> Delta:
    """From one mode and content to another, as in `100644 a`."""
    (old_mode, old_blob), (new_mode, new_blob) = old.split(), new.split()
    return Delta(path=path, old_mode=old_mode, old=old_blob, new_mode=new_mode, new=new_blob)


@pytest.mark.parametrize(
    ("change", "now", "blob", "mode"),
    [
        (delta(f"{FILE} a", f"{PROGRAM} a"), State(kind="file", blob="b", mode=0o640), "b", 0o750),
        (delta(f"{PROGRAM} a", f"{FILE} a"), State(kind="file", blob="b", mode=0o755), "b", 0o644),
        (delta(f"{FILE} a", f"{FILE} c"), State(kind="file", blob="a", mode=0o755), "c", 0o755),
        (delta(f"{FILE} a", f"{FILE} c"), State(kind="file", blob="b", mode=0o600), "merged", 0o600),
        (delta(f"{FILE} a", f"{PROGRAM} c"), State(kind="file", blob="c", mode=0o600), "c", 0o700),
    ],
)
async def test_permissions_and_content_are_merged_each_for_itself(
    change: Delta, now: State, blob: str, mode: int
) -> None:
    made = await planned([change], {"f": now}, always)
    assert isinstance(made, Planned)
    assert made.changes[0].after == State(kind="file", blob=blob, mode=mode)
    assert made.merged == ("f",)


@pytest.mark.parametrize(
    ("change", "now", "why"),
    [
        (delta(f"{FILE} a", f"{FILE} c"), State(kind="file", blob="b"), "the same lines"),
        (delta(f"{FILE} a", f"{GONE} 0"), State(kind="file", blob="b"), "the work deleted it"),
        (delta(f"{FILE} a", f"{FILE} c"), State(), "you deleted it"),
        (delta(f"{GONE} 0", f"{FILE} c"), State(kind="file", blob="b"), "have added it"),
        (delta(f"{GONE} 0", f"{FILE} c"), State(kind="folder"), "a folder stands"),
        (delta(f"{GONE} 0", f"{FILE} c"), State(kind="blocked"), "no folder here"),
        (delta(f"{FILE} a", "120000 c"), State(kind="file", blob="b"), "something else than a file"),
        (delta("160000 a", "160000 b"), State(kind="folder"), "a repository of its own"),
        (delta(f"{GONE} 0", f"{FILE} c", ".GIT/hooks/x"), State(), "never written"),
        (delta(f"{GONE} 0", f"{FILE} c", "a/../../x"), State(), "never written"),
    ],
)
async def test_what_does_not_fit_says_why(change: Delta, now: State, why: str) -> None:
    made = await planned([change], {change.path: now}, never)
    assert isinstance(made, Clashes)
    assert why in made.clashes[0].why
