"""Three-way merge of lines: chunks that one side changed, and what is known of those that both changed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

WORD: Final = re.compile(r"[\w.+\-]+|\s+|.", re.DOTALL)
"""Version numbers and dotted names are one word: two edits of one are never combined."""

SIMILAR: Final = 0.65
"""How much of a line an edit keeps at least; otherwise it is another line."""

MOST_LINES: Final = 20
"""The most lines whose words are merged, or of an addition that is looked for in the other side."""

MOST_CHARACTERS: Final = 4_000
"""The most characters of such lines on one side: those of a minified file are not compared word by word."""

MOST_PAIRS: Final = 4_000_000
"""The most pairs of lines that are compared one by one; a larger stretch without a line of its own is one edit."""

NAME: Final = re.compile(r"[^\W\d]\w+")

COMMENT: Final = re.compile(r"\s*(//|#(?!\[)|\*|/\*)")
"""How lines of prose begin in a program. `#[` is an attribute of Rust."""

QUOTE: Final = re.compile(r"[\"'`]")
"""White space in a line with quotes can be part of a text."""

NUMBER: Final = re.compile(r"\d[\w.+\-]*")
"""A number, or a version with what follows it: 1.2.0rc1."""

VERSION: Final = re.compile(r"\d+\.\d+")

MOST_VERSIONS: Final = 3
"""The most lines of a chunk in which both sides raised versions; more of them are data."""

RAISED_VERSION: Final = "both sides raised a version"
CONFIDENCES: Final[Mapping[str, float]] = {
    "white space only": 0.92,  # of 62 files 58 right, 1 harmful
    "formatted differently": 0.83,  # 12, 10, 0
    "contains the other side's addition": 0.91,  # 34, 31, 0
    "raised a version": 0.9,  # 110, 102, 3
    "added entries": 0.93,  # 13, 13, 0: few, so as if one of two more was wrong
    "added imports": 0.83,  # 23, 19, 0
    "added members": 0.85,  # 65, 57, 2
    "added list items": 0.84,  # 51, 43, 0
    "added sections": 0.68,  # 50, 37, 3
    "added keys": 0.5,  # 1, 1, 0: too few to tell
    "changed different lines": 0.69,  # 65, 52, 7
    "changed different words": 0.75,  # 24, 21, 3
}
"""How often people made the same (of additions: in any order), less how often the result lacked a line of the conflict
that they kept, by the end of the reason.

`./go bench merge` on 2,036 conflicts of 34 public repositories; a file counts if all its resolutions are of one kind.
The rules were made on 22 of them; which kinds pass the default threshold was seen on all.
"""

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


class Settled(NamedTuple):
    """The text of one stretch, and why it is right."""

    text: str
    why: str

    @property
    def confidence(self) -> float:
        """Return how often people made the same of such stretches."""
        return next(confidence for ending, confidence in CONFIDENCES.items() if self.why.endswith(ending))


def split_lines(text: str) -> Parts:
    """Return the lines of a text with their ends."""
    return tuple(re.findall(r"[^\n]*\n|[^\n]+$", text))


def find_edits(base: Parts, side: Parts, *, is_right: bool = False) -> list[SideEdit]:
    """Return what turns the base into a side, in order."""
    edits = [SideEdit(at, end, is_right, side[to:last]) for at, end, to, last in _compare(base, side)]
    stops = [*(edit.start for edit in edits), len(base)][1:]
    return [_slide(base, edit, stop) for edit, stop in zip(edits, stops, strict=True)]


def _compare(base: Parts, side: Parts) -> Iterator[tuple[int, int, int, int]]:
    """Yield start and end of each edit in the base and in the side."""
    anchors = _find_anchors(base, side)
    if not anchors:
        matcher = SequenceMatcher(None, base, side, autojunk=False)
        is_small = len(base) * len(side) <= MOST_PAIRS
        codes = matcher.get_opcodes() if is_small else [("replace", 0, len(base), 0, len(side))]
        yield from (code[1:] for code in codes if code[0] != "equal")
        return
    low, first = 0, 0
    for high, last in [*anchors, (len(base), len(side))]:
        head = _count_equal(base[low:high], side[first:last])
        low, first = low + head, first + head
        tail = _count_equal(base[low:high][::-1], side[first:last][::-1])
        for at, end, to, stop in _compare(base[low : high - tail], side[first : last - tail]):
            yield low + at, low + end, first + to, first + stop
        low, first = high + 1, last + 1


def _count_equal(parts: Parts, others: Parts) -> int:
    size = min(len(parts), len(others))
    return next((at for at in range(size) if parts[at] != others[at]), size)


def _find_anchors(base: Parts, side: Parts) -> list[tuple[int, int]]:
    """Return where lines stand that both have once: these are matched first, as in `git diff --patience`."""
    counts = Counter(base), Counter(side)
    rare = [[at for at, part in enumerate(parts) if counts[0][part] == counts[1][part] == 1] for parts in (base, side)]
    texts = [[parts[at] for at in places] for parts, places in zip((base, side), rare, strict=True)]
    blocks = SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_matching_blocks()
    return [(rare[0][at + step], rare[1][to + step]) for at, to, size in blocks for step in range(size)]


def _slide(base: Parts, edit: SideEdit, stop: int) -> SideEdit:
    """Move an insertion down as far as it stays the same, as git does: so both sides' ones meet."""
    start, new = edit.start, edit.new
    while edit.start == edit.end and start < stop and base[start] == new[0]:
        start, new = start + 1, (*new[1:], new[0])
    return SideEdit(start, max(start, edit.end), edit.is_right, new)


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


def settle_lines(chunk: Chunk, *, is_indented: bool) -> Settled | None:
    """Merge one chunk if one side changed white space only, or contains what the other added; else None.

    `is_indented`: the language gives indentation a meaning.
    """
    base, left, right = ("".join(side) for side in chunk)
    return _settle_spacing(base, left, right, is_indented=is_indented) or _settle_contained(base, left, right)


def _settle_spacing(base: str, left: str, right: str, *, is_indented: bool) -> Settled | None:
    plain = [_strip_lines(side, is_indented=is_indented) for side in (base, left, right)]
    if plain[1] == plain[2]:
        return Settled(left, "both sides made the same edit, formatted differently")
    if plain[0] == plain[1]:
        return Settled(right, "left changed white space only")
    if plain[0] == plain[2]:
        return Settled(left, "right changed white space only")
    return None


def _strip_lines(text: str, *, is_indented: bool) -> list[str]:
    if not (is_indented or QUOTE.search(text)):
        return ["".join(text.split())]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    heads = [line[: len(line) - len(line.lstrip())] if is_indented else "" for line in lines]
    plain = (line.lstrip() if QUOTE.search(line) else "".join(line.split()) for line in lines)
    return [head + line for head, line in zip(heads, plain, strict=True)]


def _settle_contained(base: str, left: str, right: str) -> Settled | None:
    if max(text.count("\n") for text in (base, left, right)) > MOST_LINES:
        return None
    old = {line.strip() for line in base.splitlines()}
    for less, more, name in ((left, right, "right"), (right, left, "left")):
        lines = [line.strip() for line in less.splitlines() if line.strip()]
        others = [line.strip() for line in more.splitlines() if line.strip()]
        added = set(lines) - old
        extra = set(others) - set(lines)
        if added and not extra & old and any(others[at : at + len(lines)] == lines for at in range(len(others))):
            return Settled(more, f"{name} contains the other side's addition")
    return None


def settle_words(chunk: Chunk) -> Settled | None:
    """Keep the edits of both sides, if these changed different lines or different words of a line; else None."""
    if not len(chunk.base) == len(chunk.left) == len(chunk.right) <= MOST_LINES:
        return None
    if max(len("".join(side)) for side in chunk) > MOST_CHARACTERS:
        return None
    rows = list(zip(*chunk, strict=True))
    if any(COMMENT.match(row[0]) for row in rows if len(set(row)) > 1):
        return None
    if all(Chunk((base,), (left,), (right,)).result for base, left, right in rows):
        return Settled(
            "".join(row[2] if row[0] == row[1] else row[1] for row in rows), "the sides changed different lines"
        )
    lines = [_merge_words(*row) for row in rows]
    if any(line is None for line in lines):
        return None
    return Settled("".join(line or "" for line in lines), "the sides changed different words")


def settle_versions(chunk: Chunk, *, is_program: bool) -> Settled | None:
    """Take the higher version, if both sides raised it and one did nothing else; else None.

    In a program, only a line with the word tells a version from another number.
    """
    base, left, right = ("".join(side) for side in chunk)
    if is_program and "version" not in base.lower():
        return None
    if not len(chunk.base) == len(chunk.left) == len(chunk.right) <= MOST_VERSIONS or not VERSION.search(base):
        return None
    numbers = [[_rank_version(number) for number in NUMBER.findall(side)] for side in (base, left, right)]
    if not len(numbers[0]) == len(numbers[1]) == len(numbers[2]):
        return None
    pairs = list(zip(*numbers, strict=True))
    for low, high, text in ((1, 2, right), (2, 1, left)):
        is_bump = NUMBER.sub("0", base) == NUMBER.sub("0", (base, left, right)[low])
        if is_bump and all(pair[0] <= pair[low] <= pair[high] for pair in pairs):
            return Settled(text, RAISED_VERSION)
    return None


def _rank_version(number: str) -> tuple[list[int], list[tuple[int, str]]]:
    """Return what sorts versions: 1.0rc1 is before 1.0, which is before 1.0.post1 and 1.0.1."""
    match = re.match(r"\d+(\.\d+)*", number)
    release = [int(part) for part in match.group().split(".")] if match else []
    while release and not release[-1]:
        release.pop()
    rest = re.findall(r"\d+|[a-zA-Z]+", number[match.end() :] if match else number)
    ranks = [(int(part), "") if part.isdigit() else (1 if part == "post" else -1, part) for part in rest]
    return release, ranks or [(0, "")]


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


def _is_similar(old: str, new: str) -> bool:
    return SequenceMatcher(None, old.strip(), new.strip(), autojunk=False).ratio() >= SIMILAR


def has_lost_name(chunk: Chunk) -> bool:
    """Return whether one side adds a name that the other removed everywhere, as a renaming does."""
    names = [Counter(NAME.findall("".join(side))) for side in chunk]
    pairs = ((names[1], names[2]), (names[2], names[1]))
    return any(
        adding[name] > count and name not in removing for name, count in names[0].items() for adding, removing in pairs
    )
