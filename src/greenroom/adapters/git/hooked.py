"""Git's own commit, as a person makes it: their hooks run, and when something says no, that is told.

Hooks may take minutes, and who waits for them may be killed. Git goes on then, so it is written down which process that
is: whoever comes next must not move files below it.

The commit is made from another index than the person's, so theirs knows nothing of it at first, and who commits from
that takes the work back. The hook that comes after a commit is a long time for it: it runs when theirs is set. Until it
has begun it is owed, which is written down too: whoever was killed in between has not run it.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import AsyncIterator, Callable
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

OWED: Final = "owed.json"
SETTING: Final = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0")
"""How git hears where hooks lie. None of its hooks may: a commit that one makes elsewhere would run them there."""

STOPPED: Final = (
    f"The commit is made, but your {AFTER} hook had not ended after {{minutes:.0f}} minutes and was stopped: look what "
    "keeps it."
)


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


async def _written_down(
    house: House, git: Git, *words: str, stdin: bytes = b"", begun: Callable[[], None] = lambda: None
) -> Answer:
    """What git answers; which process it is stands in a paper as long as hooks of it run."""
    paper = house.folder / PAPER

    def written(pid: int) -> None:
        begun()
        write_data(paper, {"pid": pid})

    try:
        return await git.tried(*words, stdin=stdin, seconds=HOOKS, begun=written)
    finally:
        paper.unlink(missing_ok=True)


@asynccontextmanager
async def held_back(house: House, whose: str, *, hooks: bool = True) -> AsyncIterator[str]:
    """A folder of hooks for git, without the one that comes after a commit: that is owed then. It has to find the
    commit in the person's own index: it may commit from there, as may they in another window meanwhile. Empty where
    there is none to be held back, or none can be."""
    owed = house.folder / OWED
    owed.unlink(missing_ok=True)
    folder = await hooks_folder(house) if hooks else None
    if folder is None or not _runs(folder / AFTER):
        yield ""
        return
    with house.temporary() as temporary:
        with told(str(house.folder)):
            held = await asyncio.to_thread(_passed_on, folder, temporary)
        if held:
            write_data(owed, {"whose": whose})
        try:
            yield str(temporary) if held else ""
        except WorkspaceFault:
            owed.unlink(missing_ok=True)  # there is no commit that it would come after
            raise


def looking_in(folder: str) -> dict[str, str]:
    """What tells git, and nobody that it runs, to look for hooks in a folder that `_passed_on` has filled."""
    return dict(zip(SETTING, ("1", "core.hooksPath", folder), strict=True)) if folder else {}


async def run_owed(house: House, whose: str) -> str:
    """Run the hook that comes after a commit, if it was held back from this one and has not begun since. What there is
    to tell of it: that it fails is nothing, for git itself does not ask it either."""
    owed = house.folder / OWED
    if (read_data(owed) or {}).get("whose") != whose:
        return ""
    place = shlex.quote(str(await hooks_folder(house) / AFTER))
    index = {"GIT_INDEX_FILE": str(house.repository.git / "index")}
    alias = f"alias.{CALLED}=!unset GIT_CONFIG_PARAMETERS; exec {place}"
    git = house.as_person().also("-c", alias, env=index)
    try:
        await _written_down(house, git, CALLED, begun=lambda: owed.unlink(missing_ok=True))
    except WorkspaceFault as fault:
        if fault.reason != "slow":
            raise
        return STOPPED.format(minutes=HOOKS / 60)
    return ""


def _passed_on(hooks: Path, folder: Path) -> bool:
    """Fill a folder with what runs each of the other hooks, from where it lies: many look beside themselves. Whether
    that can be run at all: there are disks that nothing can be run from, and git passes over such hooks silently."""
    unset = " ".join(SETTING).encode()
    for one in hooks.iterdir():
        if one.name != AFTER and _runs(one):
            place = folder / one.name
            place.write_bytes(b'#!/bin/sh\nunset %s\nexec %s "$@"\n' % (unset, os.fsencode(shlex.quote(str(one)))))
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
