"""Merge one file that two sides changed: rung `git` by lines, rung `structure` by what the language knows."""

import re
from functools import cached_property
from typing import Final, Literal, NamedTuple

from greenroom.teamwork.merging.lines import (
    Chunk,
    Parts,
    Settled,
    find_edits,
    has_lost_name,
    settle_lines,
    settle_versions,
    settle_words,
    split_chunks,
    split_lines,
)
from greenroom.teamwork.merging.syntax import SyntaxSpan, find_members, is_valid, parse

Rung = Literal["git", "structure"]


class Resolution(NamedTuple):
    """One conflict that a rung resolved, why its result is known, and how often people made the same of such ones."""

    rung: Rung
    why: str
    confidence: float


class MergeConflict(NamedTuple):
    """One stretch that only a person or a model can merge."""

    base: str
    left: str
    right: str
    why: str


class Merge(NamedTuple):
    """A merged file. `text` has conflict markers where conflicts are left."""

    text: str
    resolutions: tuple[Resolution, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def confidence(self) -> float:
        """Return the confidence of the least certain resolution; 1 if there was no conflict."""
        return min((resolution.confidence for resolution in self.resolutions), default=1.0)


Texts = tuple[str, str, str]
MARKERS: Final = ("<<<<<<< left\n", "||||||| base\n", "=======\n", ">>>>>>> right\n")
INDENTED: Final = (".py", ".pyi", ".yml", ".yaml", ".rst")
PROSE: Final = (".md", ".mdx", ".rst", ".adoc")
LISTS: Final = (*PROSE, ".txt", "ignore", ".toml", ".factories", ".properties")
NOTES: Final = (
    "changelog",
    "changes",
    "version",
    "credits",
    "news",
    "history",
    "authors",
    "contributors",
)
"""What the names of files begin with that hold sections or entries."""

DATA: Final = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".properties", ".env")
"""Where a line with a key is an entry. In a program it is a statement, and its place has a meaning."""

IMPORT: Final = re.compile(
    r"(import|from|use|pub use|mod|pub mod|using|#include|@import|require|(const|var|let) .* = require\()\b"
)
HEADING: Final = re.compile(r"#{1,4} |\[|\.\. _|\S.*\d+\.\d+")
ITEM: Final = re.compile(r"\s*([-*+]|\d+\.|#\d+:) ")
PROGRAMS: Final = (".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".java", ".rb", ".c", ".cc", ".h")

KEY: Final = re.compile(r"\s*[\"']?[\w@./-]+[\"']?\s*[:=]\s*[^\s({\[]")
"""A line that is a whole entry: a key and its value."""

ALONE: Final = ("different lines", "different words")
"""Reasons that hold only where they resolve the only conflict of a file."""

ENTRY: Final = re.compile(r"[=<>~!;:,\s\[]")
"""What ends the name of an entry, as in `flask>=3`."""

MOST_SHIFT: Final = 4
"""By how many lines two additions are moved up to find whole members."""

MOST_REWRITTEN: Final = 150
"""Where a side deleted or replaced more lines, the lines that are left mean other things than before."""


class ChunkPlace(NamedTuple):
    """Where a chunk stands: its first line on each side, and the lines around it."""

    left: int
    right: int
    before: str
    after: str


def merge_file(path: str, base: bytes, left: bytes, right: bytes) -> Merge:
    """Merge two versions of a file. Conflicts whose result cannot be known are left."""
    try:
        texts = (base.decode(), left.decode(), right.decode())
    except UnicodeDecodeError:
        return Merge("", (), (MergeConflict("", "", "", "the file is not UTF-8 text"),))
    merger = _FileMerger(path, texts)
    merge = merger.merge()
    why = merger.find_doubt(merge) if merge.resolutions and not merge.conflicts else None
    return _refuse(texts, why) if why else merge


def _refuse(texts: Texts, why: str) -> Merge:
    base, left, right = (text if text.endswith("\n") or not text else text + "\n" for text in texts)
    text = MARKERS[0] + left + MARKERS[1] + base + MARKERS[2] + right + MARKERS[3]
    return Merge(text, (), (MergeConflict(*texts, why),))


def _explain(chunk: Chunk) -> str:
    """Return in plain words why a chunk stays a conflict."""
    base, left, right = ("".join(side).strip() for side in chunk)
    if not base:
        return "both sides added lines at one place, and they may depend on each other"
    if not (left and right):
        return "one side deleted lines that the other changed"
    if has_lost_name(chunk):
        return "one side removed a name that the other uses"
    return "both sides changed the same lines"


class _FileMerger:
    """The merge of one file."""

    def __init__(self, path: str, texts: Texts) -> None:
        self._path = path
        self._texts = texts
        base, left, right = texts
        self._lines = split_lines(base), split_lines(left), split_lines(right)
        name = path.rsplit("/", 1)[-1].lower()
        self._is_list = name.endswith(LISTS) or name.startswith(NOTES)

    @cached_property
    def _trees(self) -> tuple[SyntaxSpan | None, SyntaxSpan | None]:
        return parse(self._path, self._texts[1]), parse(self._path, self._texts[2])

    def merge(self) -> Merge:
        """Merge chunk by chunk."""
        parts: list[str] = []
        resolutions: list[Resolution] = []
        conflicts: list[MergeConflict] = []
        chunks = split_chunks(*self._lines)
        at = [0, 0]
        for index, chunk in enumerate(chunks):
            if chunk.result is not None:
                parts += chunk.result
            elif settled := self._settle(chunk, _find_place(chunks, index, at)):
                parts.append(settled.text)
                resolutions.append(Resolution("structure", settled.why, settled.confidence))
            else:
                refused = _refuse(("".join(chunk.base), "".join(chunk.left), "".join(chunk.right)), _explain(chunk))
                parts.append(refused.text)
                conflicts += refused.conflicts
            at = [at[0] + len(chunk.left), at[1] + len(chunk.right)]
        return Merge("".join(parts), tuple(resolutions), tuple(conflicts))

    def find_doubt(self, merge: Merge) -> str | None:
        """Return why a merge without conflicts is not known to be right, None if it is."""
        reasons = [resolution.why for resolution in merge.resolutions]
        if is_valid(self._path, merge.text) is False and all(is_valid(self._path, text) for text in self._texts):
            return "the merged file would not parse"
        if len(reasons) > 1 and any(why.endswith(ALONE) for why in reasons):
            return "the sides changed the same lines in several places"
        base = self._lines[0]
        gone = max(sum(edit.end - edit.start for edit in find_edits(base, side)) for side in self._lines[1:])
        is_added = all(why.startswith("both sides added") for why in reasons)
        return None if is_added or gone <= MOST_REWRITTEN else "one side rewrote much of the file"

    def _settle(self, chunk: Chunk, place: ChunkPlace) -> Settled | None:
        """Merge one chunk that both sides changed, None if its result cannot be known."""
        if has_lost_name(chunk):
            return None
        return (
            settle_lines(chunk, is_indented=self._path.endswith(INDENTED))
            or self._join(chunk, place)
            or self._join_after_comma(chunk, place)
            or settle_versions(chunk, is_program=self._path.endswith(PROGRAMS))
            or (None if self._path.endswith(PROSE) else settle_words(chunk))
        )

    def _join_after_comma(self, chunk: Chunk, place: ChunkPlace) -> Settled | None:
        """Keep what both sides added after the last item of a list that has no comma at its end."""
        if len(chunk.base) != 1 or min(len(chunk.left), len(chunk.right)) < 2:
            return None
        first = chunk.base[0].rstrip() + ",\n"
        if not first == chunk.left[0] == chunk.right[0]:
            return None
        left, right = ((*side[1:-1], side[-1].rstrip().rstrip(",") + ",\n") for side in chunk[1:])
        joined = self._join(Chunk((), left, right), ChunkPlace(place.left + 1, place.right + 1, first, place.after))
        if joined is None:
            return None
        has_comma = chunk.right[-1].rstrip().endswith(",")
        text = joined.text if has_comma else joined.text.rstrip().rstrip(",") + "\n"
        return Settled(first + text, joined.why)

    def _join(self, chunk: Chunk, place: ChunkPlace) -> Settled | None:
        """Keep what both sides added at one place, if these are whole imports, keys, entries, sections or members."""
        if "".join(chunk.base).strip() or not "".join(chunk.left).strip() or not "".join(chunk.right).strip():
            return None
        filled = [line for side in chunk[1:] for line in side if line.strip()]
        is_import = all(IMPORT.match(line.strip()) and "__future__" not in line for line in filled)
        if is_import or (self._path.endswith(DATA) and all(KEY.match(line) for line in filled)):
            return _join_lines(chunk, place, "both sides added imports" if is_import else "both sides added keys")
        why = self._name_entries(chunk) if self._is_list else self._name_members(chunk, place)
        if why is None:
            return None
        return Settled("".join((*chunk.left, *chunk.right)), why)

    def _name_entries(self, chunk: Chunk) -> str | None:
        """Return what both sides added to a list, None if it is not known to be independent."""
        first = [next(line for line in side if line.strip()) for side in chunk[1:]]
        if first[0] in chunk.right or first[1] in chunk.left:
            return None
        if all(HEADING.match(line) for line in first):
            return "both sides added sections"
        if any(len(line.strip()) > 3 and line in chunk.right for line in chunk.left):
            return None
        if all(ITEM.match(line) for line in first):
            return "both sides added list items"
        is_dense = all(line.strip() and line[0] not in "[!" for side in chunk[1:] for line in side)
        names = [{ENTRY.split(line.strip(), 1)[0].lower() for line in side} for side in chunk[1:]]
        is_free = is_dense and not names[0] & names[1] and not self._path.endswith(PROSE)
        return "both sides added entries" if is_free else None

    def _name_members(self, chunk: Chunk, place: ChunkPlace) -> str | None:
        """Return what both sides added to a program, None if these are not members of different names.

        A member that uses a name which the other side adds would mean something else beside it.
        """
        filled = [[line.strip() for line in side if len(line.strip()) > 3] for side in chunk[1:]]
        if 2 * len(set(filled[0]) & set(filled[1])) > min(map(len, filled)):
            return None
        words = [frozenset(re.findall(r"\w+", "".join(side))) for side in chunk[1:]]
        for shift in range(MOST_SHIFT):
            left = self._find_members(0, chunk.left, place.left - shift, shift)
            right = self._find_members(1, chunk.right, place.right - shift, shift)
            is_free = left and right and left[0] == right[0] and not left[1] & (right[1] | words[1])
            if is_free and right and not right[1] & words[0]:
                return "both sides added members"
        return None

    def _find_members(self, side: int, added: Parts, start: int, shift: int) -> tuple[str, frozenset[str]] | None:
        """Return the members that added lines are, if moved up by `shift` lines they stay the same text."""
        tree, lines = self._trees[side], self._lines[side + 1]
        if tree is None or start < 0 or (shift and lines[start : start + shift] != added[-shift:]):
            return None
        return find_members(tree, start, start + len(added))


def _find_place(chunks: list[Chunk], index: int, at: list[int]) -> ChunkPlace:
    return ChunkPlace(at[0], at[1], "".join(chunks[index - 1].base[-1:]), "".join(chunks[index + 1].base[:1]))


def _join_lines(chunk: Chunk, place: ChunkPlace, why: str) -> Settled | None:
    """Join entries of one line each, sorted if the lines around are; what both sides begin or end with is kept once."""
    left, right = chunk.left, chunk.right
    head = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    tail = next((at for at, (a, b) in enumerate(zip(left[::-1], right[::-1], strict=False)) if a != b), 0)
    tail = min(tail, len(left) - head, len(right) - head)
    first, second = (side[head : len(side) - tail] for side in (left, right))
    names = [{re.split("[:=]", line)[0].strip() for line in side if line.strip()} for side in (first, second)]
    if names[0] & names[1]:
        return None
    before, after = left[head - 1] if head else place.before, left[-tail] if tail else place.after
    joined = (*first, *second)
    for lines in (joined, (*second, *first), tuple(sorted(joined, key=str.casefold))):
        keys = [line.strip().casefold() for line in (before, *lines, after) if line.strip(" \n\t)]}")]
        if len(keys) > len(lines) + 1 and keys == sorted(keys):
            joined = lines
            break
    return Settled("".join((*left[:head], *joined, *left[len(left) - tail :])), why)
