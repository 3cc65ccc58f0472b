"""Git's own commit, as a person makes it: their hooks run, and when something says no, that is told."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from greenroom.adapters.git.faults import fault_of, is_locked
from greenroom.adapters.git.running import PATIENCE, Answer, Git
from greenroom.core.ports.workspace import WorkspaceFault

HOOKS: Final = 900.0
"""Seconds that a person's hooks may take."""

TOLD: Final = 2000
NAMELESS: Final = "Git does not know your name. Set user.name and user.email with 'git config'."


async def committed(git: Git, message: str, *words: str) -> None:
    """Make it, after another git that is at work has had a little time; a `WorkspaceFault` when it is refused."""
    end = time.monotonic() + PATIENCE
    while True:
        said = await git.tried(
            "commit", "--no-status", "-F", "-", *words, stdin=message.encode(errors="replace"), seconds=HOOKS
        )
        if said.code == 0:
            return
        if not is_locked(said.err) or time.monotonic() > end:
            raise _why(said)
        await asyncio.sleep(0.1)


def _why(said: Answer) -> WorkspaceFault:
    text = f"{said.err}\n{said.out.decode(errors='replace')}".strip()
    if is_locked(said.err):
        return fault_of(said.err, said.code, ("commit",))
    if "tell me who you are" in text or "identity" in text:
        return WorkspaceFault("state", NAMELESS)
    if "nothing to commit" in text or "no changes added" in text or "nothing added to commit" in text:
        return WorkspaceFault("state", "There is nothing to commit: the files are as in the newest commit already.")
    return WorkspaceFault(
        "hook",
        "The commit was refused, and the files stay applied. Mend what is wrong and commit them yourself, or take them "
        f"back with `greenroom undo`. Git or a hook says: {text[-TOLD:]}",
    )
