"""Git's own commit, as a person makes it: their hooks run, and when something says no, that is told.

Hooks may take minutes, and who waits for them may be killed. Git goes on then, so it is written down which process that
is: whoever comes next must not move files below it.

The commit is made from another index than the person's, so theirs knows nothing of it at first, and who commits from
that takes the work back. The hook that comes after a commit is a long time for it: it runs when theirs is set.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from greenroom.adapters.git.faults import fault_of, is_locked
from greenroom.adapters.git.files import read_data, told, write_data
from greenroom.adapters.git.hook_files import hooks_folder
from greenroom.adapters.git.house import House
from greenroom.adapters.git.running import PATIENCE, Answer, Git
from greenroom.core.ports.workspace import WorkspaceFault

HOOKS: Final = 900.0
"""Seconds that a person's hooks may take."""

TOLD: Final = 2000
NAMELESS: Final = "Git does not know your name. Set user.name and user.email with 'git config'."
KEPT: Final = (
    "The commit was refused, and the files stay applied. Mend what is wrong and commit them yourself, or take them "
    "back with `greenroom undo`."
)
PAPER: Final = "committing.json"
REFUSING: Final = ("pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction")
"""Hooks that can say no to a commit."""

AFTER: Final = "post-commit"
CALLED: Final = f"{AFTER}-hook"
"""What git is told to call that one: under its own name it may know another program."""


async def committed(house: House, git: Git, message: str, refused: str = KEPT) -> None:
    """Make it, after another git that is at work has had a little time; a `WorkspaceFault` when it is `refused`."""
    end = time.monotonic() + PATIENCE
    while True:
        words = ("commit", "--no-status", "-F", "-")
        said = await _written_down(house, git, *words, stdin=message.encode(errors="replace"))
        if said.code == 0:
            return
        if not is_locked(said.err) or time.monotonic() > end:
            raise await _why(house, said, refused)
        await asyncio.sleep(0.1)


async def _written_down(house: House, git: Git, *words: str, stdin: bytes = b"") -> Answer:
    """What git answers; which process it is stands in a paper as long as hooks of it run."""
    paper = house.folder / PAPER
    try:
        return await git.tried(*words, stdin=stdin, seconds=HOOKS, begun=lambda pid: write_data(paper, {"pid": pid}))
    finally:
        paper.unlink(missing_ok=True)


@asynccontextmanager
async def held_back(house: House, *, hooks: bool = True) -> AsyncIterator[tuple[str, ...]]:
    """Words for a git that does not run the hook that comes after a commit. That runs at the end of this, and has to
    find the commit in the person's own index: it may commit from there, as may they in another window meanwhile."""
    folder = await hooks_folder(house) if hooks else None
    if folder is None or not _runs(folder / AFTER):
        yield ()
        return
    with house.temporary() as temporary:
        with told(str(house.folder)):
            held = await asyncio.to_thread(_passed_on, folder, temporary)
        yield ("-c", f"core.hooksPath={temporary}") if held else ()
    if held:
        index = {"GIT_INDEX_FILE": str(house.repository.git / "index")}
        git = house.as_person().also("-c", f"alias.{CALLED}=!{shlex.quote(str(folder / AFTER))}", env=index)
        await _written_down(house, git, CALLED)  # whatever it says: git itself does not ask it either


def _passed_on(hooks: Path, folder: Path) -> bool:
    """Fill a folder with what runs each of the other hooks, from where it lies: many look beside themselves. Whether
    that can be run at all: there are disks that nothing can be run from, and git passes over such hooks silently."""
    for one in hooks.iterdir():
        if one.name != AFTER and _runs(one):
            place = folder / one.name
            place.write_bytes(b'#!/bin/sh\nexec %s "$@"\n' % os.fsencode(shlex.quote(str(one))))
            place.chmod(0o700)
            if not _runs(place):
                return False
    return True


def _runs(hook: Path) -> bool:
    return hook.is_file() and os.access(hook, os.X_OK)


async def refuse_beside(house: House) -> None:
    """A *locked* fault while a commit goes on that nobody waits for any more, because that one was killed."""
    end = time.monotonic() + PATIENCE
    while pid := at_work(house):
        if time.monotonic() > end:
            why = f"Whoever began a commit here was killed, and its hooks still run (process {pid})."
            raise WorkspaceFault("locked", f"{why} Let them end, or end that process, and try again.")
        await asyncio.sleep(0.1)
    (house.folder / PAPER).unlink(missing_ok=True)


def at_work(house: House) -> int:
    """The process that makes a commit; 0 when it has ended. A paper that is older than hooks may be means nobody."""
    paper = house.folder / PAPER
    pid = (read_data(paper) or {}).get("pid")
    if not isinstance(pid, int):
        return 0
    try:
        os.kill(pid, 0)
        return pid if time.time() - paper.stat().st_mtime < HOOKS else 0
    except OSError:
        return 0


async def free_index(house: House) -> None:
    """A *locked* fault if another git holds the person's index: it has to be set as soon as there is a commit."""
    lock, end = house.repository.git / "index.lock", time.monotonic() + PATIENCE
    while lock.exists():
        if time.monotonic() > end:
            raise fault_of(f"Unable to create '{lock}': File exists", 1, ("commit",))
        await asyncio.sleep(0.1)


async def _why(house: House, said: Answer, refused: str) -> WorkspaceFault:
    text = f"{said.err}\n{said.out.decode(errors='replace')}".strip()
    if is_locked(said.err):
        return fault_of(said.err, said.code, ("commit",))
    if "Please tell me who you are" in text or "empty ident name" in text:
        return WorkspaceFault("state", NAMELESS)
    words = f"Git or a hook says: {text[-TOLD:]}" if text else await _wordless(house, said.code)
    return WorkspaceFault("hook", f"{refused} {words}")


async def _wordless(house: House, code: int) -> str:
    """Git is never silent itself, so one of the hooks that may say no has said it."""
    folder = await hooks_folder(house)
    there = [one for one in REFUSING if _runs(folder / one)]
    who = f"A hook of yours ({' or '.join(there)} in {str(folder)!r})" if there else "Git"
    return f"{who} said no without a word (git ended with code {code}): run it by hand to see why."
