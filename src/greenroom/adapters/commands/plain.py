"""Commands as they are, without walls around them: whoever lets an agent use this asks a person before each."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from greenroom.adapters.commands.environment import MARK, environment
from greenroom.adapters.commands.job import Job
from greenroom.adapters.commands.warden.guard import Asked
from greenroom.adapters.commands.warden_process import WardenProcess
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Begun, Command, CommandEvent
from greenroom.core.state.step import Prepared

GRACE: Final = 0.2
"""Seconds between being told to end and being killed."""

LONGEST: Final = 120_000
"""Bytes of one word: the system takes 131,072."""


class PlainCommands:
    """Commands in the workspace at `root`. `mark` writes down a process so that a later life of ours finds it.

    `own` is the environment of which only what is let in reaches a command, `also` the names that a person lets in.
    """

    def __init__(
        self,
        root: Path,
        *,
        mark: Callable[[int], Prepared] | None = None,
        own: Mapping[str, str] | None = None,
        also: Collection[str] = (),
    ) -> None:
        self._root = root
        self._mark = mark
        self._own = os.environ if own is None else own
        self._also = frozenset(also)
        self._warden: WardenProcess | None = None
        self._closed = False

    async def run(self, command: Command) -> AsyncGenerator[CommandEvent, None]:
        """Begun, printed, ended; closed or cancelled, it is ended and seen dead first."""
        asked = self._asked(command)
        job = await Job.begin(self._awake(), asked)
        try:
            yield Begun(mark=self._mark(job.pid) if self._mark is not None else None)
            job.go(command.seconds)
            async for piece in job.printed():
                yield piece
            yield await job.ended()
        finally:
            await _to_the_end(asyncio.ensure_future(job.finish()))

    def close(self) -> None:
        """End what still runs, and see it dead."""
        self._closed = True
        if self._warden is not None:
            self._warden.close()
            self._warden = None

    def _awake(self) -> WardenProcess:
        if self._closed:
            raise WorldFault("No command can be run any more: the run is over.")
        if self._warden is not None and not self._warden.alive:
            self._warden.close()
            self._warden = None
        if self._warden is None:
            self._warden = WardenProcess(environment(self._own, {}, also=self._also))
        return self._warden

    def _asked(self, command: Command) -> Asked:
        variables = environment(self._own, command.env, also=self._also)
        _check_words(command.words, variables["PATH"])
        return Asked(
            words=list(command.words),
            folder=str(self._folder(command.folder)),
            seconds=command.seconds,
            grace=GRACE,
            env={**variables, MARK: secrets.token_hex(8)},
        )

    def _folder(self, name: str) -> Path:
        """Where it begins. A command can go elsewhere by itself; that what it is asked with says so is all we check."""
        try:
            root = self._root.resolve(strict=True)
            found = (root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise WorldFault(f"There is no folder {name!r} in the workspace. Name one that is there.") from None
        if not found.is_relative_to(root):
            raise WorldFault(f"The folder {name!r} is outside the workspace. Name one inside it.")
        if not found.is_dir():
            raise WorldFault(f"{name!r} is no folder. Name one, or leave it out for the workspace's root.")
        return found


async def _to_the_end(work: asyncio.Future[None]) -> None:
    """Wait for it whoever cancels us meanwhile: a second cancellation must not leave the first one's work undone."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _check_words(words: tuple[str, ...], path: str) -> None:
    if not words or not words[0] or any("\0" in word for word in words):
        raise WorldFault("A command needs a program's name, and none of its words can hold a NUL character.")
    if max(len(word.encode(errors="replace")) for word in words) > LONGEST:
        raise WorldFault(f"The command is longer than {LONGEST} bytes. Write it to a file and run that.")
    if "/" not in words[0] and shutil.which(words[0], path=path) is None:
        raise WorldFault(f"There is no program {words[0]!r} on this machine. Use another one.")
