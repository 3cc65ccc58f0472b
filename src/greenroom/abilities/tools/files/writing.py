"""Writing files as a keyed effect: said first, then done, and found again after a crash. All files of a call or none.

The step says of each file what it is before and after, and then writes one after the other. Whoever runs it again
looks at each: what is as it should be is done, what is as it was is written now, and about anything else nobody knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from greenroom.abilities.tools.files.seen import Seen, seen_in
from greenroom.abilities.tools.files.tool import failed
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault, Files, digest_of
from greenroom.core.state.step import Prepared

LIMIT = 64 * 1024 * 1024
"""Bytes of a file that is changed at most."""

KIND = "file"


@record
class Made:
    """A file's new content, and what is said of the change."""

    content: bytes
    told: str


@record
class Job:
    """A file and what is to be made of it. `make` gets its bytes, None if there is none, and may take its time.

    `blind` says that the new content does not depend on the old one: all of that must have been seen before.
    """

    file: str
    make: Callable[[bytes | None], Made]
    blind: bool = False


@record
class Change:
    """A job that is ready to be done."""

    job: Job
    path: str
    before: bytes | None
    made: Made

    @property
    def prepared(self) -> Prepared:
        """As it is said before it is done."""
        return Prepared(kind=KIND, key=self.path, before=_digest(self.before), after=digest_of(self.made.content))


class Torn(WorldFault):
    """Some files of a call are written, others are not, and what is written cannot be put back."""


class Writing:
    """One call: some jobs, in one workspace."""

    def __init__(self, files: Files, bench: Bench) -> None:
        self._files = files
        self._bench = bench

    async def run(self, jobs: Sequence[Job]) -> Outcome:
        """Do them all, or none, or go on where a crash has interrupted it."""
        try:
            _refuse_folders(jobs)
            said = {one.key: one for one in self._bench.step.prepared if one.kind == KIND}
            return await (self._again(jobs, said) if said else self._first(jobs))
        except Torn as torn:
            return Outcome(state="uncertain", error=str(torn))
        except (FileFault, ModelFault) as fault:
            return failed(fault, " Nothing was written.")

    async def _first(self, jobs: Sequence[Job]) -> Outcome:
        seen = seen_in(await self._bench.history())
        changes = [await self._change(job, seen) for job in jobs]
        paths = [one.path for one in changes]
        if len(set(paths)) < len(paths):
            raise ModelFault("The same file is named twice. Put all its changes into one place.")
        await self._bench.prepare(*(one.prepared for one in changes))
        await self._written(changes)
        return _finished(changes)

    async def _again(self, jobs: Sequence[Job], said: Mapping[str, Prepared]) -> Outcome:
        """An attempt after one that had begun."""
        found = {path: await self._there(path) for path in said}
        lost = [path for path, digest in found.items() if digest not in (said[path].before, said[path].after)]
        if lost:
            return _uncertain(lost, [path for path in found if found[path] == said[path].after])
        finished = [path for path in found if found[path] == said[path].after]
        try:
            rest = [job for job in jobs if self._files.real(job.file) not in finished]
            changes = [await self._change(job, None) for job in rest]
            if {one.path: one.prepared for one in changes} != {p: said[p] for p in said if p not in finished}:
                return _uncertain([one.path for one in changes], finished)
            await self._written(changes)
        except (FileFault, ModelFault) as fault:
            if finished:
                raise Torn(f"{fault} Written before it was interrupted: {', '.join(map(repr, finished))}.") from fault
            raise
        whole = all(job.blind for job in jobs)
        return _finished(changes, [said[path] for path in finished], whole=whole)

    async def _change(self, job: Job, seen: Mapping[str, Seen] | None) -> Change:
        path = self._files.real(job.file)
        before = await self._content(job.file)
        if seen is not None:
            _known(job, seen.get(path), before)
        made = await asyncio.to_thread(job.make, before)
        if len(made.content) > LIMIT:
            raise FileFault("too_large", f"{job.file!r} would have {len(made.content):,} bytes; {LIMIT:,} are allowed.")
        return Change(job=job, path=path, before=before, made=made)

    async def _content(self, file: str) -> bytes | None:
        try:
            return await self._files.read(file, LIMIT)
        except FileFault as fault:
            if fault.reason != "missing":
                raise
            return None

    async def _there(self, path: str) -> str:
        """The digest of what is there, "" for nothing; of what cannot even be looked at, none that anything has."""
        try:
            found = await self._files.stat(path)
        except FileFault as fault:
            return fault.reason
        return found.digest if found is not None else ""

    async def _written(self, changes: Sequence[Change]) -> None:
        """All of them; or, when one cannot be written, none."""
        begun: list[Change] = []
        try:
            for change in changes:
                if change.before != change.made.content:
                    begun.append(change)
                    await self._files.write(change.path, change.made.content, expected=change.prepared.before or None)
        except asyncio.CancelledError:
            await self._undo(begun)
            raise
        except FileFault as fault:
            # The last one was not written: if it looks as if it were, somebody else has done that.
            stuck = await self._undo(begun[:-1])
            if stuck:
                raise Torn(f"{fault} It could not be put back: {', '.join(map(repr, stuck))}.") from fault
            raise

    async def _undo(self, changes: Sequence[Change]) -> list[str]:
        """Put back what was written already; returns what could not be."""
        stuck = []
        for change in reversed(changes):
            after = change.prepared.after
            try:
                if await self._there(change.path) != after:
                    continue
                if change.before is None:
                    await self._files.delete(change.path, expected=after)
                else:
                    await self._files.write(change.path, change.before, expected=after)
            except FileFault:
                stuck.append(change.path)
        return stuck


def _known(job: Job, seen: Seen | None, before: bytes | None) -> None:
    """Refuse to write over what the agent has not seen."""
    if before is None:
        return
    if seen is not None and seen.digest != digest_of(before):
        why = f"{job.file!r} has changed since you read it: somebody else has edited it. Read it again first."
        raise FileFault("changed", why)
    if job.blind and (seen is None or not seen.whole):
        part = "you have not read it" if seen is None else "you have read only a part of it"
        why = f"{job.file!r} exists and {part}. Read all of it first, or change only what you know with patch."
        raise FileFault("changed", why)


def _digest(content: bytes | None) -> str:
    return "" if content is None else digest_of(content)


def _uncertain(lost: Sequence[str], done: Sequence[str]) -> Outcome:
    """Nobody can tell any more what this step has done."""
    names = ", ".join(map(repr, lost))
    written = f" Written before: {', '.join(map(repr, done))}." if done else ""
    why = f"The work was interrupted, and {names} is neither as it was before nor as it should be after."
    return Outcome(state="uncertain", error=f"{why}{written} Read it, then decide.")


def _finished(changes: Sequence[Change], done: Sequence[Prepared] = (), *, whole: bool = False) -> Outcome:
    told = [f"{one.key!r} was written before the work was interrupted." for one in done]
    told += [one.made.told for one in changes]
    files: list[Data] = [_entry(one, whole=whole) for one in done]
    files += [{**_entry(one.prepared, whole=one.job.blind), "bytes": len(one.made.content)} for one in changes]
    return Outcome(result={"output": "\n\n".join(told), "files": files})


def _entry(said: Prepared, *, whole: bool) -> Data:
    return {"path": said.key, "before": said.before, "digest": said.after, "whole": whole}


def _refuse_folders(jobs: Sequence[Job]) -> None:
    folder = next((job.file for job in jobs if job.file.rstrip().endswith("/")), None)
    if folder is not None:
        raise ModelFault(f"{folder!r} names a folder, not a file. Leave the slash away, or name a file in it.")
