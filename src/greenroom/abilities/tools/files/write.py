"""Writing files as a keyed effect: said first, then done, and found again after a crash. All files of a call or none.

The step says of each file what it is before and after, and then writes one after the other. Whoever runs it again
looks at each: what is as it should be is done, what is as it was is written now, and about anything else nobody knows.

What an agent has seen of the files is read from the ended steps of its own thread, so a restart forgets nothing. A
step's result says under `files` which content was seen (`digest`), and which lines of it; a change says what it was
made from (`before`). What has left the thread's window is no longer seen: then the file has to be read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault, Files, digest_of
from greenroom.core.state.step import Prepared, Step

TOOLS: Final = frozenset({"read_code", "patch", "rewrite"})


@record
class Seen:
    """The content that was seen last, and the lines of it; `whole` is true when those are all."""

    digest: str
    whole: bool = False
    lines: tuple[tuple[int, int], ...] = ()


def seen_in(history: Iterable[Step], tools: Collection[str] = TOOLS) -> Mapping[str, Seen]:
    """What was seen by means of these tools, by real path."""
    found: dict[str, Seen] = {}
    for step in history:
        files = (step.result or {}).get("files")
        seen = step.work.type == "tool" and step.work.executor in tools and step.state == "finished"
        for file in files if seen and isinstance(files, list | tuple) else ():
            if isinstance(file, dict):
                path = str(file.get("path"))
                found[path] = _next(found.get(path), file)
    return found


def _next(before: Seen | None, file: Data) -> Seen:
    digest = str(file.get("digest"))
    if "before" in file:
        knew = before is not None and before.whole and before.digest == file["before"]
        return Seen(digest=digest, whole=knew or bool(file.get("whole")))
    same = before if before is not None and before.digest == digest else Seen(digest=digest)
    if same.whole:
        return same
    lines = same.lines
    match file.get("lines"):
        case [int(first), int(last)]:
            lines = _joined((*lines, (first, last)))
        case _:
            pass
    total = file.get("total")
    return Seen(digest=digest, lines=lines, whole=total == 0 or lines == ((1, total),))


def _joined(lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same lines in as few stretches as possible."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


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
        return Prepared(
            kind=KIND,
            key=self.path,
            before="" if self.before is None else digest_of(self.before),
            after=digest_of(self.made.content),
        )


class Torn(WorldFault):
    """Some files of a call are written, others are not, and what is written cannot be put back."""


class Writing:
    """One call: some jobs, in one workspace."""

    def __init__(self, files: Files, bench: Bench) -> None:
        self._files = files
        self._bench = bench

    async def run(self, jobs: Sequence[Job]) -> Outcome:
        """Do them all, or none, or go on where a crash has interrupted it; a fault says why nothing was written."""
        folder = next((job.file for job in jobs if job.file.rstrip().endswith("/")), None)
        if folder is not None:
            raise ModelFault(f"{folder!r} names a folder, not a file. Leave the slash away, or name a file in it.")
        try:
            said = {one.key: one for one in self._bench.step.prepared if one.kind == KIND}
            return await (self._again(jobs, said) if said else self._first(jobs))
        except Torn as torn:
            return Outcome(state="uncertain", error=str(torn))

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
        try:
            before: bytes | None = await self._files.read(job.file, LIMIT)
        except FileFault as fault:
            if fault.reason != "missing":
                raise
            before = None
        if seen is not None:
            _known(job, seen.get(path), before)
        made = await asyncio.to_thread(job.make, before)
        if len(made.content) > LIMIT:
            raise FileFault("too_large", f"{job.file!r} would have {len(made.content):,} bytes; {LIMIT:,} are allowed.")
        return Change(job=job, path=path, before=before, made=made)

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


def failed(fault: ModelFault | FileFault, more: str = "") -> Outcome:
    """A failure that says why, to the agent and (in a word) to programs."""
    return Outcome(state="failed", error=f"{fault}{more}", result={"reason": getattr(fault, "reason", "arguments")})
