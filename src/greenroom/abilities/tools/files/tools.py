"""read_code, list_files, search_files, patch and rewrite: the tools for the files of a workspace."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.files.edits import Edit, EditMismatch, apply_spans, locate_edits, summarize_diff
from greenroom.abilities.tools.files.search import (
    DEFAULT_MATCHES,
    MAX_CONTEXT_LINES,
    MAX_MATCHES,
    MAX_SEARCHED_FILES,
    SEARCH_TIMEOUT_S,
    FileSearch,
    PatternSearch,
    expand_braces,
)
from greenroom.abilities.tools.files.text import (
    FileText,
    NormalizedText,
    decode_text,
    format_count,
    normalize_line_ends,
)
from greenroom.abilities.tools.files.write import MAX_FILE_BYTES, FileJob, FileWriter, NewContent, build_failure
from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.files import FileEntry, FileFault, Files, compute_digest, make_relative
from greenroom.core.ports.tool import MAX_RESULT_BYTES, Target, ToolExecutor
from greenroom.core.state.step import SIDE_EFFECTS

IsHidden: TypeAlias = Callable[[str], bool]
"""Whether listing and searching skip a path."""

File: TypeAlias = Annotated[str, Meta(description="Path from the workspace's root.")]
Folder: TypeAlias = Annotated[str, Meta(description="Where to look; the whole workspace if left out.")]
FirstLine: TypeAlias = Annotated[int, Meta(ge=1, description="First line; 1 if left out.")]
LastLine: TypeAlias = Annotated[int, Meta(ge=1, description="Last line; the end if left out.")]


class FileTool(CardedTool, ABC):
    """A tool for the files of one workspace."""

    def __init__(self, files: Files, hides: IsHidden) -> None:
        self._files = files
        self._hides = hides

    async def run(self, context: StepContext) -> Outcome:
        """Run the call. Faults of the files or the arguments fail the call with an explanation."""
        try:
            return await self._run(context)
        except (FileFault, ModelFault) as fault:
            return build_failure(fault, " Nothing was written." if self.card.effect in SIDE_EFFECTS else "")

    @abstractmethod
    async def _run(self, context: StepContext) -> Outcome:
        """Return the outcome of a call. A fault explains why there is none."""

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return the paths, as named and with links resolved."""
        writes = self.card.effect in SIDE_EFFECTS
        paths = [path for named in self._read_paths(arguments) for path in self._resolve_both(named)]
        found = tuple(Target(kind="path", value=path, writes=writes) for path in dict.fromkeys(paths))
        return found or (Target(kind="tool", value=self.name, writes=writes),)

    def _read_paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("file"),)

    def _resolve_both(self, named: object) -> Iterator[str]:
        """Yield a path, and its real path if links lead elsewhere. Yield an invalid path unchanged."""
        if not isinstance(named, str):
            return
        try:
            real = self._files.real(named)
        except FileFault:
            yield named  # opening it will fail
            return
        with suppress(FileFault):
            yield make_relative(named, (self._files.root,)) or "."
        yield real or "."


MAX_LINES: Final = 2000
"""Maximum number of lines per call."""

MAX_LINE_CHARS: Final = 2000
"""Maximum characters of a line. Longer lines are cut."""

MAX_OUTPUT_BYTES: Final = MAX_RESULT_BYTES - 1000


class ReadCodeArguments(Arguments, frozen=True):
    file: File
    start_line: FirstLine = 1
    end_line: LastLine | None = None


class ReadCodeTool(FileTool):
    """Reads lines of a file. Pure."""

    card = make_card(
        "read_code",
        "Read a text file of the workspace, with line numbers. Use it before you change a file, and by range "
        "for a long one. Not for finding something: use search_files. "
        'Example: {"file": "src/app.py", "start_line": 40, "end_line": 90}',
        build_schema(ReadCodeArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    async def _run(self, context: StepContext) -> Outcome:
        asked = read_arguments(ReadCodeArguments, context.step)
        raw = await self._files.read(asked.file, MAX_FILE_BYTES)
        real = self._files.real(asked.file)
        lines = asked.start_line, asked.end_line
        return Outcome(result=await asyncio.to_thread(render_numbered_lines, raw, asked.file, real, *lines))


def render_numbered_lines(raw: bytes, file: str, real: str, first: int, last_wanted: int | None) -> Data:
    """Return the result: the numbered lines, and which lines of which content were read."""
    lines = normalize_line_ends(decode_text(raw, file).content).split("\n")
    if lines[-1] == "":
        lines.pop()
    end = last_wanted or max(len(lines), first)
    last = min(end, len(lines))
    seen: dict[str, object] = {"path": real, "digest": compute_digest(raw), "total": len(lines)}
    if not lines:
        return {"output": f"{file}: the file is empty.", "files": [seen]}
    if first > end:
        raise ModelFault(
            f"start_line {first} comes after end_line {end}. {file!r} has {format_count(len(lines), 'line')}."
        )
    if first > last:
        raise ModelFault(f"There is no line {first} in {file!r}: it has {format_count(len(lines), 'line')}.")
    rows, cut = _number_lines(lines, first, last)
    stop = first + len(rows) - 1
    if not cut:
        seen["lines"] = [first, stop]
    rest = f" Read on with start_line {stop + 1}." if stop < last else ""
    short = f" Of lines longer than {MAX_LINE_CHARS} characters only the beginning is shown." if cut else ""
    head = f"{file}: lines {first}-{stop} of {len(lines)}.{rest}{short}"
    return {"output": "\n".join((head, *rows)), "files": [seen]}


def _number_lines(lines: list[str], first: int, last: int) -> tuple[list[str], bool]:
    """Return as many numbered lines as fit, at least one, and whether any line was cut."""
    rows: list[str] = []
    size, cut = 0, False
    for number in range(first, min(last, first + MAX_LINES - 1) + 1):
        line = lines[number - 1]
        row = f"{number:6}\t{line[:MAX_LINE_CHARS]}{'…' if len(line) > MAX_LINE_CHARS else ''}"
        size += len(row.encode(errors="replace")) + 1
        if rows and size > MAX_OUTPUT_BYTES:
            break
        cut = cut or len(line) > MAX_LINE_CHARS
        rows.append(row)
    return rows, cut


DEFAULT_LISTED_FILES: Final = 200
MAX_LISTED_FILES: Final = 1000
MAX_HIDDEN_FILES: Final = 10_000
"""Maximum number of hidden files that are skipped in addition to the shown files."""

CUT_NOTICE: Final = " Not everything was looked at: there is too much in this folder. Name one below it."


class ListFilesArguments(Arguments, frozen=True):
    folder: Folder = ""
    glob: Annotated[
        str, Meta(description="Pattern as in .gitignore, seen from the folder: *.py, docs/**/*.{md,rst}.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most {MAX_LISTED_FILES}; usually {DEFAULT_LISTED_FILES}.")] = (
        DEFAULT_LISTED_FILES
    )


class ListFilesTool(FileTool):
    """Lists files. Pure."""

    card = make_card(
        "list_files",
        "List the files of the workspace, without those that .gitignore names. Use it to find out where "
        "things are. Not for what is in them: use search_files or read_code. "
        'Example: {"folder": "src", "glob": "**/*.py"}',
        build_schema(ListFilesArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    def _read_paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("folder") or ".",)

    async def _run(self, context: StepContext) -> Outcome:
        asked = read_arguments(ListFilesArguments, context.step)
        folder, limit = asked.folder, min(asked.limit, MAX_LISTED_FILES)
        walk = await self._files.walk(folder, globs=expand_braces(asked.glob), limit=limit + MAX_HIDDEN_FILES)
        found = [entry for entry in walk.entries if not self._hides(entry.path)]
        rows = _render_entries(found[:limit])
        is_complete = walk.whole or (walk.cut and len(found) <= limit)
        more = ""
        if not is_complete or len(rows) < len(found):
            more = f" of {len(found)}" if found and walk.whole else "; there are more"
            more += ": narrow it down with folder or glob"
        where = f" in {folder!r}" if folder else ""
        cut = CUT_NOTICE if walk.cut else ""
        head = f"{len(rows)} files{where}{more}. What .gitignore names is left out.{cut}"
        return Outcome(result={"output": "\n".join((head, *rows)), "count": len(rows)})


def _render_entries(entries: Iterable[FileEntry]) -> list[str]:
    rows: list[str] = []
    room = MAX_OUTPUT_BYTES
    for entry in entries:
        row = f"{entry.path} (a link)" if entry.kind == "link" else entry.path
        room -= len(row.encode()) + 1
        if room < 0:
            break
        rows.append(row)
    return rows


class SearchFilesArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(description="A regular expression in Python's language.")]
    literal: Annotated[bool, Meta(description="Look for the pattern as it is written.")] = False
    ignore_case: bool = False
    folder: Folder = ""
    glob: Annotated[str, Meta(description="Which files, as in .gitignore: *.py, docs/**/*.md.")] = ""
    context: Annotated[int, Meta(ge=0, description=f"Lines around, up to {MAX_CONTEXT_LINES}.")] = 0
    limit: Annotated[int, Meta(ge=1, description=f"At most {MAX_MATCHES}; usually {DEFAULT_MATCHES}.")] = (
        DEFAULT_MATCHES
    )


class SearchFilesTool(FileTool):
    """Searches files. Pure."""

    card = make_card(
        "search_files",
        "Find where a text or a regular expression occurs in the workspace's text files, line by line, "
        "without those that .gitignore names. Use it to find definitions and uses. Not for reading a file: "
        'use read_code. Example: {"pattern": "def load_\\\\w+", "glob": "*.py", "context": 2}',
        build_schema(SearchFilesArguments),
        group="read",
        seconds=60,
        pure=True,
    )

    def _read_paths(self, arguments: Data) -> Iterable[object]:
        return (arguments.get("folder") or ".",)

    async def _run(self, context: StepContext) -> Outcome:
        asked = read_arguments(SearchFilesArguments, context.step)
        pattern_search = PatternSearch(
            asked.pattern, literal=asked.literal, ignore_case=asked.ignore_case, seconds=SEARCH_TIMEOUT_S
        )
        walk = await self._files.walk(asked.folder, globs=expand_braces(asked.glob), limit=MAX_SEARCHED_FILES)
        paths = [entry.path for entry in walk.entries if entry.kind == "file" and not self._hides(entry.path)]
        search = FileSearch(
            self._files, pattern_search, min(asked.context, MAX_CONTEXT_LINES), min(asked.limit, MAX_MATCHES)
        )
        await search.run(paths, walk)
        return search.build_outcome()


class FileEdits(Arguments, frozen=True):
    """The changes to one file."""

    file: str
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]


class PatchArguments(Arguments, frozen=True):
    file: File = ""
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)] = ()
    files: Annotated[tuple[FileEdits, ...], Meta(min_length=1, description="Several files, all or none.")] = ()


class PatchTool(FileTool):
    """Changes files. Keyed: all changes of a call are applied or none, also across several files."""

    card = make_card(
        "patch",
        "Change some places of a text file. Prefer it to rewrite, and change as little as possible. All "
        "changes are looked for in the file as it is now, and either all are made or none. For several files "
        "at once give `files` instead of `file` and `edits`. Not for new files: use rewrite. "
        'Example: {"file": "src/app.py", "edits": [{"search": "x = 1\\n", "replace": "x = 2\\n"}]}',
        build_schema(PatchArguments),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    def _read_paths(self, arguments: Data) -> Iterable[object]:
        files = arguments.get("files")
        several = files if isinstance(files, list | tuple) else ()
        return (arguments.get("file"), *(change.get("file") for change in several if isinstance(change, dict)))

    async def _run(self, context: StepContext) -> Outcome:
        asked = read_arguments(PatchArguments, context.step)
        if bool(asked.file and asked.edits) == bool(asked.files) or (asked.files and (asked.file or asked.edits)):
            raise ModelFault("patch: give 'file' and 'edits', or 'files' for several files.")
        changed = asked.files or (FileEdits(file=asked.file, edits=asked.edits),)
        jobs = [FileJob(file=change.file, make=partial(patch_bytes, change.file, change.edits)) for change in changed]
        return await FileWriter(self._files, context).run(jobs)


def patch_bytes(file: str, edits: Sequence[Edit], raw: bytes | None) -> NewContent:
    """Return the file's new bytes and the diff. `EditMismatch` names the file."""
    if raw is None:
        raise FileFault("missing", f"There is no {file!r} to change. Use rewrite for a new file.")
    text = decode_text(raw, file)
    old = NormalizedText(text.content)
    try:
        spans = locate_edits(old, edits)
    except EditMismatch as misfit:
        raise EditMismatch(misfit.reason, f"{file}: {misfit}") from misfit
    new = apply_spans(old, spans)
    content = text.encode(new, file)
    diff = summarize_diff(old.text, normalize_line_ends(new))
    changes = "1 change" if len(spans) == 1 else f"{len(spans)} changes"
    head = f"{file}: {changes}, +{diff.added} −{diff.removed} lines, {format_count(len(content), 'byte')} written."
    return NewContent(content=content, told=f"{head}\n{diff.text}")


class RewriteArguments(Arguments, frozen=True):
    file: Annotated[str, Meta(description="Path from the workspace's root; folders are made.")]
    content: Annotated[str, Meta(description="All of the file, from the first line to the last.")]


class RewriteTool(FileTool):
    """Replaces the content of a file. Keyed. The agent must have read the whole current content."""

    card = make_card(
        "rewrite",
        "Write a whole text file: a new one, or an old one of which most changes. An old one must have been "
        "read before, all of it. Not for small changes: use patch, which cannot lose the rest of the file. "
        'Example: {"file": "src/new.py", "content": "print(1)\\n"}',
        build_schema(RewriteArguments),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    async def _run(self, context: StepContext) -> Outcome:
        asked = read_arguments(RewriteArguments, context.step)
        job = FileJob(file=asked.file, make=partial(rewrite_bytes, asked.file, asked.content), blind=True)
        return await FileWriter(self._files, context).run([job])


def rewrite_bytes(file: str, content: str, raw: bytes | None) -> NewContent:
    """Return the new bytes. An existing file keeps its encoding and its most frequent line ending."""
    if raw is None:
        made = FileText(content="").encode(content, file)
        lines = NormalizedText(content).lines
        return NewContent(
            content=made, told=f"{file}: new, {format_count(lines, 'line')}, {format_count(len(made), 'byte')} written."
        )
    text = decode_text(raw, file)
    old = NormalizedText(text.content)
    new = normalize_line_ends(content) if old.text.count("\n") else content
    if old.usual_line_end == "\r\n":
        new = normalize_line_ends(content).replace("\n", "\r\n")
    made = text.encode(new, file)
    if made == raw:
        return NewContent(content=made, told=f"{file}: it has this content already. Nothing was written.")
    diff = summarize_diff(old.text, normalize_line_ends(content))
    head = f"{file}: rewritten, +{diff.added} −{diff.removed} lines, {format_count(len(made), 'byte')} written."
    return NewContent(content=made, told=f"{head}\n{diff.text}")


def build_file_tools(files: Files, *, hides: IsHidden = lambda _: False) -> tuple[ToolExecutor, ...]:
    """Build read_code, list_files, search_files, patch and rewrite. `hides` tells which paths to skip in lists."""
    return tuple(tool(files, hides) for tool in (ReadCodeTool, ListFilesTool, SearchFilesTool, PatchTool, RewriteTool))
