"""Three-way merge of sequences: lines of a file, members of a class, words of a line."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

WORD: Final = re.compile(r"[\w.+\-]+|\s+|.", re.DOTALL)
"""Version numbers and dotted names are one word: two edits of one are never combined."""

SIMILAR: Final = 0.65
"""How much of a line an edit keeps at least; otherwise it is another line."""

MOST_LINES: Final = 20
"""The most lines whose words are merged."""

NAME: Final = re.compile(r"[^\W\d]\w+")

ENTRIES: Final = {
    ".md": re.compile(r"[-*+] |\d+\. |#+ |\|"),
    ".rst": re.compile(r"[-*+] |\.\. "),
    ".toml": re.compile(r"\[|[\w\"'.-]+ *= *[^\[{\"']*$|[\w\"'.-]+ *= *(\"[^\"]*\"|'[^']*'|\{[^{}]*\}|\[[^\[\]]*\])$"),
    ".txt": re.compile(r"[-*+] |[\w.\[\]-]+ *[=<>~!]=|- "),
    "ignore": re.compile(r"\S"),
}
"""What an entry begins with, by file ending: list items, sections, keys, requirements, patterns."""

LISTS: Final = tuple(ENTRIES)

Parts = tuple[str, ...]


class SideEdit(NamedTuple):
    """The parts `start:end` of the base become `new` on one side."""

    start: int
    end: int
    is_right: bool
    new: Parts


class Chunk(NamedTuple):
    """What one stretch of the base is on each side."""

    base: Parts
    left: Parts
    right: Parts

    @property
    def result(self) -> Parts | None:
        """Return the result, None if both sides changed the stretch in different ways."""
        if self.base == self.left:
            return self.right
        return self.left if self.right in {self.base, self.left} else None


def find_edits(base: Parts, side: Parts, *, is_right: bool = False) -> list[SideEdit]:
    """Return what turns the base into a side, in order."""
    opcodes = SequenceMatcher(None, base, side, autojunk=False).get_opcodes()
    return [SideEdit(start, end, is_right, side[new:last]) for tag, start, end, new, last in opcodes if tag != "equal"]


def split_chunks(base: Parts, left: Parts, right: Parts, *, may_touch: bool = False) -> list[Chunk]:
    """Cut three versions into chunks, so that no edit crosses a border.

    Edits of neighbouring parts share a chunk, as in git, unless they `may_touch`.
    """
    chunks: list[Chunk] = []
    done = 0
    for edits in _group(sorted([*find_edits(base, left), *find_edits(base, right, is_right=True)]), may_touch):
        start, end = edits[0].start, max(edit.end for edit in edits)
        chunks.append(Chunk(*(base[done:start],) * 3))
        sides = [
            _rewrite(base, start, end, [edit for edit in edits if edit.is_right is side]) for side in (False, True)
        ]
        chunks.append(Chunk(base[start:end], *sides))
        done = end
    return [*chunks, Chunk(*(base[done:],) * 3)]


def _group(edits: Sequence[SideEdit], may_touch: bool) -> list[list[SideEdit]]:
    groups: list[list[SideEdit]] = []
    end = -1
    for edit in edits:
        is_insertion = groups != [] and groups[-1][0].start == edit.start == edit.end
        is_joined = edit.start < end or (edit.start == end and (is_insertion or not may_touch))
        if is_joined:
            groups[-1].append(edit)
        else:
            groups.append([edit])
        end = max(end, edit.end)
    return groups


def _rewrite(base: Parts, start: int, end: int, edits: Sequence[SideEdit]) -> Parts:
    parts: list[str] = []
    for edit in edits:
        parts += [*base[start : edit.start], *edit.new]
        start = edit.end
    return (*parts, *base[start:end])


def split_lines(text: str) -> Parts:
    """Return the lines of a text with their ends."""
    return tuple(re.findall(r"[^\n]*\n|[^\n]+$", text))


def squash(text: str) -> str:
    """Return the text without white space."""
    return "".join(text.split())


class Settled(NamedTuple):
    """The text of one stretch, and why no other is right."""

    text: str
    why: str


def settle_lines(chunk: Chunk, *, is_indented: bool) -> Settled | None:
    """Merge one chunk that both sides changed, None if its result cannot be known.

    `is_indented`: the language gives indentation a meaning.
    """
    base, left, right = ("".join(side) for side in chunk)
    if brings_back(base, left, right):
        return None
    return (
        _settle_spacing(base, left, right, is_indented=is_indented)
        or _settle_contained(base, left, right)
        or _settle_neighbours(chunk)
        or _settle_words(chunk)
    )


def _settle_spacing(base: str, left: str, right: str, *, is_indented: bool) -> Settled | None:
    plain = [squash(side) for side in (base, left, right)]
    if is_indented and len({_indents(side) for side in (base, left, right) if side.strip()}) > 1:
        return None
    if plain[1] == plain[2]:
        return Settled(left, "both sides made the same edit, formatted differently")
    if plain[0] == plain[1]:
        return Settled(right, "left changed white space only")
    if plain[0] == plain[2]:
        return Settled(left, "right changed white space only")
    return None


def _indents(text: str) -> str:
    body = text.lstrip("\n")
    return body[: len(body) - len(body.lstrip())]


def _settle_contained(base: str, left: str, right: str) -> Settled | None:
    old = {line.strip() for line in base.splitlines()}
    for less, more, name in ((left, right, "right"), (right, left, "left")):
        lines = [line.strip() for line in less.splitlines() if line.strip()]
        others = [line.strip() for line in more.splitlines() if line.strip()]
        added = set(lines) - old
        extra = set(others) - set(lines)
        if added and not extra & old and any(others[at : at + len(lines)] == lines for at in range(len(others))):
            return Settled(more, f"{name} contains the other side's addition")
    return None


def _settle_neighbours(chunk: Chunk) -> Settled | None:
    """Keep both edits of neighbouring lines, if each replaces lines one by one or only inserts."""
    parts = split_chunks(*chunk, may_touch=True)
    if not all(part.result is not None and _is_plain_edit(part) for part in parts):
        return None
    edits = [part for part in parts if part.result != part.base]
    left = {line.strip() for part in edits for line in part.left if line not in part.base}
    right = {line.strip() for part in edits for line in part.right if line not in part.base}
    if left & right - {""}:
        return None
    return Settled("".join(line for part in parts for line in part.result or ()), "the sides changed different lines")


def _is_plain_edit(part: Chunk) -> bool:
    new = part.result or ()
    if part.base == new or not part.base:
        return True
    return len(part.base) == len(new) and all(map(_is_similar, part.base, new))


def _is_similar(old: str, new: str) -> bool:
    return SequenceMatcher(None, old.strip(), new.strip(), autojunk=False).ratio() >= SIMILAR


def _settle_words(chunk: Chunk) -> Settled | None:
    """Keep both edits of one line, if a word stands between them."""
    if not len(chunk.base) == len(chunk.left) == len(chunk.right) <= MOST_LINES:
        return None
    lines = [_merge_words(*versions) for versions in zip(chunk.base, chunk.left, chunk.right, strict=True)]
    if any(line is None for line in lines):
        return None
    return Settled("".join(line or "" for line in lines), "the sides changed different words")


def _merge_words(base: str, left: str, right: str) -> str | None:
    result = Chunk((base,), (left,), (right,)).result
    if result is not None:
        return result[0]
    if not (_is_similar(base, left) and _is_similar(base, right)):
        return None
    words = [tuple(WORD.findall(side)) for side in (base, left, right)]
    parts = [part.result for part in split_chunks(words[0], words[1], words[2])]
    if all(set(words[0]) <= set(side) for side in words[1:]):  # both only insert: who knows in which order
        return None
    return None if any(part is None for part in parts) else "".join(word for part in parts for word in part or ())


def brings_back(base: str, left: str, right: str) -> bool:
    """Return whether one side adds a name that the other removed everywhere, as a renaming does."""
    names = [Counter(NAME.findall(side)) for side in (base, left, right)]
    pairs = ((names[1], names[2]), (names[2], names[1]))
    return any(
        adding[name] > count and name not in removing for name, count in names[0].items() for adding, removing in pairs
    )


def settle_list(path: str, chunk: Chunk) -> Settled | None:
    """Keep what both sides added at one place, if it is a list of entries: left's first, then right's."""
    if "".join(chunk.base).strip() or not path.lower().endswith(LISTS):
        return None
    left, right = _cut_entries(path, chunk.left), _cut_entries(path, chunk.right)
    if left is None or right is None:
        return None
    names = [{_name_entry(entry) for entry in side} for side in (left, right)]
    if any(_name_entry(entry) in names[0] and entry not in left for entry in right) or len(names[0]) != len(left):
        return None
    return Settled("".join(dict.fromkeys([*left, *right])), "both sides added entries")


def _cut_entries(path: str, lines: Parts) -> list[str] | None:
    """Return the entries of added lines, sections if there are headings; None if these begin within one."""
    starts = next(pattern for ending, pattern in ENTRIES.items() if path.lower().endswith(ending))
    headings = [at for at, line in enumerate(lines) if _is_heading(path, line, lines[at + 1 : at + 2])]
    entries: list[str] = []
    for at, line in enumerate(lines):
        if at in headings if headings else starts.match(line):
            entries.append(line)
        elif entries and (headings or not line.strip() or line[0] in " \t"):
            entries[-1] += line
        elif line.strip():
            return None
    is_whole = all(entry.endswith("\n\n" if headings else "\n") for entry in entries)
    return entries if entries and is_whole else None


def _is_heading(path: str, line: str, below: Parts) -> bool:
    if path.endswith(".rst"):
        return bool(below) and re.fullmatch(r"([=~^-])\1{2,}\s*", below[0]) is not None and line[0] not in " \n"
    return line.startswith(("#", "[")) and path.endswith((".md", ".toml")) and not line.startswith("#!")


def _name_entry(entry: str) -> str:
    first = entry.split("\n", 1)[0]
    return first.split("=", 1)[0].strip() if "=" in first else first.strip()
