"""read_code, list_files, search_files, patch and rewrite: the tools for the files of one workspace."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.files.edits import Edit, Misfit, compared, done, fitted
from greenroom.abilities.tools.files.search import (
    CONTEXT,
    FILES,
    MOST_MATCHES,
    SECONDS,
    USUAL_MATCHES,
    Hunt,
    Search,
    expanded,
)
from greenroom.abilities.tools.files.text import Flat, Text, counted, decoded, flat
from greenroom.abilities.tools.files.write import LIMIT, Job, Made, Writing, failed
from greenroom.abilities.tools.tool import Arguments, CardedTool, given, make_card, schema_of
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import Entry, FileFault, Files, digest_of, within
from greenroom.core.ports.tool import SHOWN, Target, ToolExecutor
from greenroom.core.state.step import SIDE_EFFECTS

Hides: TypeAlias = Callable[[str], bool]
"""Whether a path is one that tools that look at many files pass over."""

File: TypeAlias = Annotated[str, Meta(description="Path from the workspace's root.")]
Folder: TypeAlias = Annotated[str, Meta(description="Where to look; the whole workspace if left out.")]
FirstLine: TypeAlias = Annotated[int, Meta(ge=1, description="First line; 1 if left out.")]
LastLine: TypeAlias = Annotated[int, Meta(ge=1, description="Last line; the end if left out.")]


class FileTool(CardedTool, ABC):
    """A tool for one workspace."""

    def __init__(self, files: Files, hides: Hides) -> None:
        self._files = files
        self._hides = hides

    async def run(self, bench: Bench) -> Outcome:
        """Do it; what the files or the arguments do not allow fails the call, and says why."""
        try:
            return await self._run(bench)
        except (FileFault, ModelFault) as fault:
            return failed(fault, " Nothing was written." if self.card.effect in SIDE_EFFECTS else "")

    @abstractmethod
    async def _run(self, bench: Bench) -> Outcome:
        """What comes of a call; a fault says why there is nothing."""

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The paths, as they were named and as they really are."""
        writes = self.card.effect in SIDE_EFFECTS
        paths = [path for named in self._paths(arguments) for path in self._both(named)]
        found = tuple(Target(kind="path", value=path, writes=writes) for path in dict.fromkeys(paths))
        return found or (Target(kind="tool", value=self.name, writes=writes),)

    def _paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("file"),)

    def _both(self, named: object) -> Iterator[str]:
        """A path and, where links lead elsewhere, where. Of one that is none, only what was said."""
        if not isinstance(named, str):
            return
        try:
            real = self._files.real(named)
        except FileFault:
            yield named  # it will be refused by whoever opens it
            return
        with suppress(FileFault):
            yield within(named, (self._files.root,)) or "."
        yield real or "."


LINES: Final = 2000
"""Lines that are given at once."""

LONG: Final = 2000
"""Characters of a line; of a longer one the beginning."""

ROOM: Final = SHOWN - 1000


class ReadCodeArguments(Arguments, frozen=True):
    """Which file, and which lines of it."""

    file: File
    start_line: FirstLine = 1
    end_line: LastLine | None = None


class ReadCode(FileTool):
    """Pure: reading again gives what is there then."""

    card = make_card(
        "read_code",
        "Read a text file of the workspace, with line numbers. Use it before you change a file, and by range "
        "for a long one. Not for finding something: use search_files. "
        'Example: {"file": "src/app.py", "start_line": 40, "end_line": 90}',
        schema_of(ReadCodeArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    async def _run(self, bench: Bench) -> Outcome:
        asked = given(ReadCodeArguments, bench.step)
        raw = await self._files.read(asked.file, LIMIT)
        real = self._files.real(asked.file)
        lines = asked.start_line, asked.end_line
        return Outcome(result=await asyncio.to_thread(numbered, raw, asked.file, real, *lines))


def numbered(raw: bytes, file: str, real: str, first: int, last_wanted: int | None) -> Data:
    """The result: what is shown, and what of which content that is."""
    lines = flat(decoded(raw, file).content).split("\n")
    if lines[-1] == "":
        lines.pop()
    end = last_wanted or max(len(lines), first)
    last = min(end, len(lines))
    seen: dict[str, object] = {"path": real, "digest": digest_of(raw), "total": len(lines)}
    if not lines:
        return {"output": f"{file}: the file is empty.", "files": [seen]}
    if first > end:
        raise ModelFault(f"start_line {first} comes after end_line {end}. {file!r} has {counted(len(lines), 'line')}.")
    if first > last:
        raise ModelFault(f"There is no line {first} in {file!r}: it has {counted(len(lines), 'line')}.")
    rows, cut = _rows(lines, first, last)
    stop = first + len(rows) - 1
    if not cut:
        seen["lines"] = [first, stop]
    rest = f" Read on with start_line {stop + 1}." if stop < last else ""
    short = f" Of lines longer than {LONG} characters only the beginning is shown." if cut else ""
    head = f"{file}: lines {first}-{stop} of {len(lines)}.{rest}{short}"
    return {"output": "\n".join((head, *rows)), "files": [seen]}


def _rows(lines: list[str], first: int, last: int) -> tuple[list[str], bool]:
    """As many lines as there is room for, at least one; and whether one of them is not whole."""
    rows: list[str] = []
    size, cut = 0, False
    for number in range(first, min(last, first + LINES - 1) + 1):
        line = lines[number - 1]
        row = f"{number:6}\t{line[:LONG]}{'…' if len(line) > LONG else ''}"
        size += len(row.encode(errors="replace")) + 1
        if rows and size > ROOM:
            break
        cut = cut or len(line) > LONG
        rows.append(row)
    return rows, cut


USUAL: Final = 200
MOST: Final = 1000
HIDDEN: Final = 10_000
"""Files that are looked at beyond those that are shown, since some of them may be hidden."""

CUT: Final = " Not everything was looked at: there is too much in this folder. Name one below it."


class ListFilesArguments(Arguments, frozen=True):
    """Where to look, and for which files."""

    folder: Folder = ""
    glob: Annotated[
        str, Meta(description="Pattern as in .gitignore, seen from the folder: *.py, docs/**/*.{md,rst}.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MOST}; usually {USUAL}.")] = USUAL


class ListFiles(FileTool):
    """Pure."""

    card = make_card(
        "list_files",
        "List the files of the workspace, without those that .gitignore names. Use it to find out where "
        "things are. Not for what is in them: use search_files or read_code. "
        'Example: {"folder": "src", "glob": "**/*.py"}',
        schema_of(ListFilesArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    def _paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("folder") or ".",)

    async def _run(self, bench: Bench) -> Outcome:
        asked = given(ListFilesArguments, bench.step)
        folder, limit = asked.folder, min(asked.limit, MOST)
        walk = await self._files.walk(folder, globs=expanded(asked.glob), limit=limit + HIDDEN)
        found = [one for one in walk.entries if not self._hides(one.path)]
        rows = _listed(found[:limit])
        every = walk.whole or (walk.cut and len(found) <= limit)
        more = ""
        if not every or len(rows) < len(found):
            more = f" of {len(found)}" if found and walk.whole else "; there are more"
            more += ": narrow it down with folder or glob"
        where = f" in {folder!r}" if folder else ""
        cut = CUT if walk.cut else ""
        head = f"{len(rows)} files{where}{more}. What .gitignore names is left out.{cut}"
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(rows)})


def _listed(entries: Iterable[Entry]) -> list[str]:
    rows: list[str] = []
    room = ROOM
    for one in entries:
        row = f"{one.path} (a link)" if one.kind == "link" else one.path
        room -= len(row.encode()) + 1
        if room < 0:
            break
        rows.append(row)
    return rows


class SearchFilesArguments(Arguments, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="A regular expression in Python's language.")]
    literal: Annotated[bool, Meta(description="Look for the pattern as it is written.")] = False
    ignore_case: bool = False
    folder: Folder = ""
    glob: Annotated[str, Meta(description="Which files, as in .gitignore: *.py, docs/**/*.md.")] = ""
    context: Annotated[int, Meta(ge=0, description=f"Lines around, up to {CONTEXT}.")] = 0
    limit: Annotated[int, Meta(ge=1, description=f"At most {MOST_MATCHES}; usually {USUAL_MATCHES}.")] = USUAL_MATCHES


class SearchFiles(FileTool):
    """Pure."""

    card = make_card(
        "search_files",
        "Find where a text or a regular expression occurs in the workspace's text files, line by line, "
        "without those that .gitignore names. Use it to find definitions and uses. Not for reading a file: "
        'use read_code. Example: {"pattern": "def load_\\\\w+", "glob": "*.py", "context": 2}',
        schema_of(SearchFilesArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    def _paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("folder") or ".",)

    async def _run(self, bench: Bench) -> Outcome:
        asked = given(SearchFilesArguments, bench.step)
        hunt = Hunt(asked.pattern, literal=asked.literal, ignore_case=asked.ignore_case, seconds=SECONDS)
        walk = await self._files.walk(asked.folder, globs=expanded(asked.glob), limit=FILES)
        paths = [one.path for one in walk.entries if one.kind == "file" and not self._hides(one.path)]
        search = Search(self._files, hunt, min(asked.context, CONTEXT), min(asked.limit, MOST_MATCHES))
        await search.run(paths, walk)
        return search.outcome()


class FileEdits(Arguments, frozen=True):
    """The changes of one file."""

    file: str
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]


class PatchArguments(Arguments, frozen=True):
    """The changes of one file, or of several."""

    file: File = ""
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)] = ()
    files: Annotated[tuple[FileEdits, ...], Meta(min_length=1, description="Several files, all or none.")] = ()


class Patch(FileTool):
    """Keyed: all changes of a call or none, also over several files."""

    card = make_card(
        "patch",
        "Change some places of a text file. Prefer it to rewrite, and change as little as possible. All "
        "changes are looked for in the file as it is now, and either all are made or none. For several files "
        "at once give `files` instead of `file` and `edits`. Not for new files: use rewrite. "
        'Example: {"file": "src/app.py", "edits": [{"search": "x = 1\\n", "replace": "x = 2\\n"}]}',
        schema_of(PatchArguments),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    def _paths(self, arguments: Data) -> Iterable[object]:
        files = arguments.get("files")
        several = files if isinstance(files, list | tuple) else ()
        return (arguments.get("file"), *(one.get("file") for one in several if isinstance(one, dict)))

    async def _run(self, bench: Bench) -> Outcome:
        asked = given(PatchArguments, bench.step)
        if bool(asked.file and asked.edits) == bool(asked.files) or (asked.files and (asked.file or asked.edits)):
            raise ModelFault("patch: give 'file' and 'edits', or 'files' for several files.")
        changed = asked.files or (FileEdits(file=asked.file, edits=asked.edits),)
        jobs = [Job(file=one.file, make=partial(patched, one.file, one.edits)) for one in changed]
        return await Writing(self._files, bench).run(jobs)


def patched(file: str, edits: Sequence[Edit], raw: bytes | None) -> Made:
    """The file's new bytes and the diff; `Misfit` names the file."""
    if raw is None:
        raise FileFault("missing", f"There is no {file!r} to change. Use rewrite for a new file.")
    text = decoded(raw, file)
    old = Flat(text.content)
    try:
        spans = fitted(old, edits)
    except Misfit as misfit:
        raise Misfit(misfit.reason, f"{file}: {misfit}") from misfit
    new = done(old, spans)
    content = text.encoded(new, file)
    diff = compared(old.text, flat(new))
    changes = "1 change" if len(spans) == 1 else f"{len(spans)} changes"
    head = f"{file}: {changes}, +{diff.added} −{diff.removed} lines, {counted(len(content), 'byte')} written."
    return Made(content=content, told=f"{head}\n{diff.text}")


class RewriteArguments(Arguments, frozen=True):
    """A file and all of its content."""

    file: Annotated[str, Meta(description="Path from the workspace's root; folders are made.")]
    content: Annotated[str, Meta(description="All of the file, from the first line to the last.")]


class Rewrite(FileTool):
    """Keyed. What it would write over must have been read, and all of it."""

    card = make_card(
        "rewrite",
        "Write a whole text file: a new one, or an old one of which most changes. An old one must have been "
        "read before, all of it. Not for small changes: use patch, which cannot lose the rest of the file. "
        'Example: {"file": "src/new.py", "content": "print(1)\\n"}',
        schema_of(RewriteArguments),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    async def _run(self, bench: Bench) -> Outcome:
        asked = given(RewriteArguments, bench.step)
        job = Job(file=asked.file, make=partial(rewritten, asked.file, asked.content), blind=True)
        return await Writing(self._files, bench).run([job])


def rewritten(file: str, content: str, raw: bytes | None) -> Made:
    """The new bytes: an old file keeps its encoding and the line ends that it has most of."""
    if raw is None:
        made = Text(content="").encoded(content, file)
        lines = Flat(content).lines
        return Made(content=made, told=f"{file}: new, {counted(lines, 'line')}, {counted(len(made), 'byte')} written.")
    text = decoded(raw, file)
    old = Flat(text.content)
    new = flat(content) if old.text.count("\n") else content
    if old.usual_ending == "\r\n":
        new = flat(content).replace("\n", "\r\n")
    made = text.encoded(new, file)
    if made == raw:
        return Made(content=made, told=f"{file}: it has this content already. Nothing was written.")
    diff = compared(old.text, flat(content))
    head = f"{file}: rewritten, +{diff.added} −{diff.removed} lines, {counted(len(made), 'byte')} written."
    return Made(content=made, told=f"{head}\n{diff.text}")


def file_tools(files: Files, *, hides: Hides = lambda _: False) -> tuple[ToolExecutor, ...]:
    """read_code, list_files, search_files, patch and rewrite; `hides` names what lists and searches pass over."""
    return tuple(tool(files, hides) for tool in (ReadCode, ListFiles, SearchFiles, Patch, Rewrite))
