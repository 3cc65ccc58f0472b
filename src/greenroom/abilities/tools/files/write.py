"""Write files as a keyed effect: announce, write, and recover after a crash. A call writes all of its files or none.

The step records each file's digest before and after, then writes the files in order. A resumed step checks each file. A
file in its final state is done. A file in its original state is written now. Any other state makes the step uncertain.

The ended steps of an agent's own thread record what it has read, so a restart loses nothing. A step's result lists
under `files` the content that was read (`digest`) and its lines. A change lists what it was made from (`before`). A
file that has left the thread's window must be read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.files import FileFault, Files, compute_digest
from greenroom.core.state.step import PreparedEffect, Step

SEEING_TOOLS: Final = frozenset({"read_code", "patch", "rewrite"})


@record
class SeenContent:
    """The content that the agent read last, and which lines. `whole` means all lines."""

    digest: str
    whole: bool = False
    lines: tuple[tuple[int, int], ...] = ()


def collect_seen(history: Iterable[Step], tools: Collection[str] = SEEING_TOOLS) -> Mapping[str, SeenContent]:
    """Return what the agent has read with these tools, by real path."""
    found: dict[str, SeenContent] = {}
    for step in history:
        files = (step.result or {}).get("files")
        seen = step.work.type == "tool" and step.work.executor in tools and step.state == "finished"
        for file in files if seen and isinstance(files, list | tuple) else ():
            if isinstance(file, dict):
                path = str(file.get("path"))
                found[path] = _update_seen(found.get(path), file)
    return found


def _update_seen(before: SeenContent | None, file: Data) -> SeenContent:
    digest = str(file.get("digest"))
    if "before" in file:
        knew = before is not None and before.whole and before.digest == file["before"]
        return SeenContent(digest=digest, whole=knew or bool(file.get("whole")))
    same = before if before is not None and before.digest == digest else SeenContent(digest=digest)
    if same.whole:
        return same
    lines = same.lines
    match file.get("lines"):
        case [int(first), int(last)]:
            lines = _merge_ranges((*lines, (first, last)))
        case _:
            pass
    total = file.get("total")
    return SeenContent(digest=digest, lines=lines, whole=total == 0 or lines == ((1, total),))


def _merge_ranges(lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Merge line ranges into as few ranges as possible."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


MAX_FILE_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a file that is changed."""

PREPARED_KIND = "file"


@record
class NewContent:
    """A file's new content, and the description of the change."""

    content: bytes
    told: str


@record
class FileJob:
    """A file and how to change it. `make` gets its bytes, or None if it does not exist, and may run for a while.
    `blind` means that the new content does not depend on the old: the agent must have read all of the old content."""

    file: str
    make: Callable[[bytes | None], NewContent]
    blind: bool = False


@record
class PlannedFileChange:
    """A job with its computed content."""

    job: FileJob
    path: str
    before: bytes | None
    made: NewContent

    @property
    def preparation(self) -> PreparedEffect:
        """The record that is written before the file."""
        return PreparedEffect(
            kind=PREPARED_KIND,
            key=self.path,
            before="" if self.before is None else compute_digest(self.before),
            after=compute_digest(self.made.content),
        )


class PartialWriteError(WorldFault):
    """Only some files of a call were written, and they cannot be restored."""


class FileWriter:
    """Writes the files of one call in one workspace."""

    def __init__(self, files: Files, context: StepContext) -> None:
        self._files = files
        self._context = context

    async def run(self, jobs: Sequence[FileJob]) -> Outcome:
        """Do all jobs or none, or resume after a crash. A fault explains why nothing was written."""
        folder = next((job.file for job in jobs if job.file.rstrip().endswith("/")), None)
        if folder is not None:
            raise ModelFault(f"{folder!r} names a folder, not a file. Leave the slash away, or name a file in it.")
        try:
            prepared_by_path = {
                prepared.key: prepared for prepared in self._context.step.prepared if prepared.kind == PREPARED_KIND
            }
            return await (self._resume(jobs, prepared_by_path) if prepared_by_path else self._start(jobs))
        except PartialWriteError as torn:
            return Outcome(state="uncertain", error=str(torn))

    async def _start(self, jobs: Sequence[FileJob]) -> Outcome:
        seen = collect_seen(await self._context.history())
        changes = [await self._plan_change(job, seen) for job in jobs]
        paths = [change.path for change in changes]
        if len(set(paths)) < len(paths):
            raise ModelFault("The same file is named twice. Put all its changes into one place.")
        await self._context.prepare(*(change.preparation for change in changes))
        await self._write_all(changes)
        return _build_outcome(changes)

    async def _resume(self, jobs: Sequence[FileJob], prepared_by_path: Mapping[str, PreparedEffect]) -> Outcome:
        """Resume an interrupted attempt."""
        found = {path: await self._read_digest(path) for path in prepared_by_path}
        lost = [
            path
            for path, digest in found.items()
            if digest not in (prepared_by_path[path].before, prepared_by_path[path].after)
        ]
        if lost:
            return _build_uncertain_outcome(
                lost, [path for path in found if found[path] == prepared_by_path[path].after]
            )
        finished = [path for path in found if found[path] == prepared_by_path[path].after]
        try:
            rest = [job for job in jobs if self._files.real(job.file) not in finished]
            changes = [await self._plan_change(job, None) for job in rest]
            if {change.path: change.preparation for change in changes} != {
                p: prepared_by_path[p] for p in prepared_by_path if p not in finished
            }:
                return _build_uncertain_outcome([change.path for change in changes], finished)
            await self._write_all(changes)
        except (FileFault, ModelFault) as fault:
            if finished:
                raise PartialWriteError(
                    f"{fault} Written before it was interrupted: {', '.join(map(repr, finished))}."
                ) from fault
            raise
        whole = all(job.blind for job in jobs)
        return _build_outcome(changes, [prepared_by_path[path] for path in finished], whole=whole)

    async def _plan_change(self, job: FileJob, seen: Mapping[str, SeenContent] | None) -> PlannedFileChange:
        path = self._files.real(job.file)
        try:
            before: bytes | None = await self._files.read(job.file, MAX_FILE_BYTES)
        except FileFault as fault:
            if fault.reason != "missing":
                raise
            before = None
        if seen is not None:
            _check_seen(job, seen.get(path), before)
        made = await asyncio.to_thread(job.make, before)
        if len(made.content) > MAX_FILE_BYTES:
            raise FileFault(
                "too_large", f"{job.file!r} would have {len(made.content):,} bytes; {MAX_FILE_BYTES:,} are allowed."
            )
        return PlannedFileChange(job=job, path=path, before=before, made=made)

    async def _read_digest(self, path: str) -> str:
        """Return the file's digest, or "" if it does not exist. For an unreadable file return the reason, which matches
        no digest."""
        try:
            found = await self._files.stat(path)
        except FileFault as fault:
            return fault.reason
        return found.digest if found is not None else ""

    async def _write_all(self, changes: Sequence[PlannedFileChange]) -> None:
        """Write all changes, or none if one fails."""
        begun: list[PlannedFileChange] = []
        try:
            for change in changes:
                if change.before != change.made.content:
                    begun.append(change)
                    await self._files.write(
                        change.path, change.made.content, expected=change.preparation.before or None
                    )
        except asyncio.CancelledError:
            await self._undo(begun)
            raise
        except FileFault as fault:
            # The last file was not written. If it looks written, another process did that.
            stuck = await self._undo(begun[:-1])
            if stuck:
                raise PartialWriteError(f"{fault} It could not be put back: {', '.join(map(repr, stuck))}.") from fault
            raise

    async def _undo(self, changes: Sequence[PlannedFileChange]) -> list[str]:
        """Restore the written files and return the paths that could not be restored."""
        stuck = []
        for change in reversed(changes):
            after = change.preparation.after
            try:
                if await self._read_digest(change.path) != after:
                    continue
                if change.before is None:
                    await self._files.delete(change.path, expected=after)
                else:
                    await self._files.write(change.path, change.before, expected=after)
            except FileFault:
                stuck.append(change.path)
        return stuck


def _check_seen(job: FileJob, seen: SeenContent | None, before: bytes | None) -> None:
    """Raise `FileFault` if the agent has not read the current content."""
    if before is None:
        return
    if seen is not None and seen.digest != compute_digest(before):
        why = f"{job.file!r} has changed since you read it: it was edited elsewhere. Read it again first."
        raise FileFault("changed", why)
    if job.blind and (seen is None or not seen.whole):
        part = "you have not read it" if seen is None else "you have read only a part of it"
        why = f"{job.file!r} exists and {part}. Read all of it first, or change only what you know with patch."
        raise FileFault("changed", why)


def _build_uncertain_outcome(lost: Sequence[str], done: Sequence[str]) -> Outcome:
    names = ", ".join(map(repr, lost))
    written = f" Written before: {', '.join(map(repr, done))}." if done else ""
    why = f"The work was interrupted, and {names} is neither as it was before nor as it should be after."
    return Outcome(state="uncertain", error=f"{why}{written} Read it, then decide.")


def _build_outcome(
    changes: Sequence[PlannedFileChange], done: Sequence[PreparedEffect] = (), *, whole: bool = False
) -> Outcome:
    told = [f"{item.key!r} was written before the work was interrupted." for item in done]
    told += [item.made.told for item in changes]
    files: list[Data] = [_build_entry(item, whole=whole) for item in done]
    files += [
        {**_build_entry(item.preparation, whole=item.job.blind), "bytes": len(item.made.content)} for item in changes
    ]
    return Outcome(result={"output": "\n\n".join(told), "files": files})


def _build_entry(prepared: PreparedEffect, *, whole: bool) -> Data:
    return {"path": prepared.key, "before": prepared.before, "digest": prepared.after, "whole": whole}


def build_failure(fault: ModelFault | FileFault, suffix: str = "") -> Outcome:
    """Build a failed outcome with an explanation for the agent and a reason code for programs."""
    return Outcome(state="failed", error=f"{fault}{suffix}", result={"reason": getattr(fault, "reason", "arguments")})
