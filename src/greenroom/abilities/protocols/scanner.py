"""The raw scanner: which blocks of a reply are meant to be run. It is no XML parser, and bodies are not its business.

An opening tag counts only where it begins a line, indented by three spaces at most, outside of code, quotations,
examples, comments and what the model thinks aloud. Where Markdown leaves a doubt whether something is code, it is.
One pass from left to right, in time that grows with the length: bodies are jumped over, and blocks are bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final

from greenroom.core.base.records import record

MOST_BLOCKS: Final = 20
"""Who writes more than this is told that one would have been right; there is no need to find them all."""

_FENCE: Final = r"(?P<run>`{3,}+(?=[^`\n]*$)|~{3,}+)(?P<info>[^\n]*+)$"
_ITEM: Final = r"^[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"
_FENCE_LINE: Final = re.compile(r"^[ \t]*+" + _FENCE, re.MULTILINE)
_WALL: Final = re.compile(rf"^[ \t]*+$|{_ITEM}(?:```|~~~)", re.MULTILINE)
_BLANK: Final = re.compile(r"^[ \t]*+$", re.MULTILINE)
_RUN: Final = re.compile(r"`++")
_THOUGHT: Final = r"(?i:think|thinking|thought|reasoning)"
_EXAMPLE: Final = r"(?i:pre|code|examples?)"
_SHOWN_WHERE: Final = {
    "fence": "inside a code fence",
    "quote": "inside a quotation",
    "code": "inside inline code, or behind a backtick that is not closed",
    "thought": "inside your thoughts",
    "example": "inside an example",
    "comment": "inside a comment",
    "line": "not at the start of a line",
}


@record
class End:
    """Where a body and its block end. `sure`: the place is beyond doubt; `tagged`: an end tag stands there."""

    stop: int
    after: int
    sure: bool
    tagged: bool


@record
class Block:
    """A block that is meant to be run: the inside of its opening tag, its raw body, and how well its end is known."""

    tag: str
    attributes: str
    body: str
    start: int
    after: int
    line: int
    sure: bool
    tagged: bool


Ender = Callable[[str, int, int], End]


@record
class Scan:
    """All blocks, the tag of an end that belongs to none of them, what else was said, and a hint for the model."""

    blocks: tuple[Block, ...]
    stray: str
    said: str
    hint: str


def scan(text: str, enders: Mapping[str, Ender]) -> Scan:
    """Look through a reply for blocks of these tags."""
    if not _worth(tuple(enders)).search(text):
        return Scan(blocks=(), stray="", said=text.strip(), hint="")
    return _Walk(text, enders).run()


def flat(text: str) -> str:
    """The same text with every end of line a line feed, every character where it was: only to look at."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


@lru_cache(maxsize=64)
def _events(tags: tuple[str, ...]) -> re.Pattern[str]:
    tag = "(?i:" + "|".join(map(re.escape, tags)) + ")"
    return re.compile(
        rf"(?P<fence>(?P<item>{_ITEM}){_FENCE})"
        rf"|(?P<open>^(?P<indent>[ ]{{0,3}})<(?P<tag>{tag})(?P<attributes>[ \t][^<>\n]*+)?>)"
        r"|(?P<quote>^[ ]{0,3}>)"
        rf"|(?P<mention><(?P<named>{tag})(?:[ \t][^<>\n]*+)?>)"
        rf"|(?P<stray></(?P<ended>{tag})[ \t]*+>)"
        rf"|(?P<thought><(?P<thinks>{_THOUGHT})>)"
        rf"|(?P<thought_out></{_THOUGHT}>)"
        rf"|(?P<example><(?P<shows>{_EXAMPLE})>)"
        r"|(?P<comment><!--)"
        r"|(?P<ticks>`++)",
        re.MULTILINE,
    )


@lru_cache(maxsize=64)
def _worth(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Most replies have neither a tag nor a thought in them, and are not looked at any closer."""
    return re.compile(rf"(?i:</?{_THOUGHT}>|<(?:{'|'.join(map(re.escape, tags))})[ \t>])")


@lru_cache(maxsize=64)
def _openings(tags: tuple[str, ...]) -> re.Pattern[str]:
    tag = "|".join(map(re.escape, tags))
    return re.compile(rf"(?P<indent>[ \t]*+)<(?P<tag>{tag})(?P<attributes>[ \t][^<>\n]*+)?>")


class _Walk:
    """One pass through one reply."""

    def __init__(self, text: str, enders: Mapping[str, Ender]) -> None:
        self._text = text
        self._flat = flat(text)
        self._enders = enders
        self._tags = tuple(enders)
        self._blocks: list[Block] = []
        self._cuts: list[tuple[int, int]] = []
        self._stray = ""
        self._mentioned = ""
        self._shown: tuple[str, str] | None = None
        self._misspelt = ""
        self._words: set[str] = set()
        self._lasts: dict[str, int] = {}
        self._steps: dict[str, Callable[[re.Match[str]], int]] = {
            "fence": self._fence,
            "open": self._open,
            "quote": self._quote,
            "mention": self._mention,
            "stray": self._end_alone,
            "thought": self._thought,
            "thought_out": self._thought_out,
            "example": self._example,
            "comment": self._comment,
            "ticks": self._ticks,
        }

    def run(self) -> Scan:
        at, events, opening = 0, _events(self._tags), _openings(self._tags)
        while len(self._blocks) < MOST_BLOCKS:
            # A second block right behind the first one on its line is as much a block as on a line of its own.
            behind = opening.match(self._flat, at) if self._blocks and self._blocks[-1].after == at else None
            found = behind or events.search(self._flat, at)
            if found is None:
                break
            at = self._steps["open" if behind else str(found.lastgroup)](found)
        hint = "" if self._blocks else self._hint()
        return Scan(blocks=tuple(self._blocks), stray=self._stray, said=self._said(), hint=hint)

    # ------------------------------------------------------------------------------------------ what is a block

    def _open(self, found: re.Match[str]) -> int:
        tag = found["tag"]
        ender = self._enders.get(tag)
        if ender is None:
            self._misspelt = self._misspelt or tag
            return found.end()
        end = ender(self._flat, found.end(), len(found["indent"]))
        block = Block(
            tag=tag,
            attributes=(found["attributes"] or "").strip(),
            body=self._text[found.end() : end.stop],
            start=found.start(),
            after=end.after,
            line=self._flat.count("\n", 0, found.start()) + 1,
            sure=end.sure,
            tagged=end.tagged,
        )
        self._blocks.append(block)
        return end.after

    def _mention(self, found: re.Match[str]) -> int:
        self._mentioned = self._mentioned or found["named"]
        return found.end()

    def _end_alone(self, found: re.Match[str]) -> int:
        tag = found["ended"]
        if any(block.tag == tag for block in self._blocks):
            self._stray = tag
        elif tag == self._mentioned and self._shown is None:
            self._shown = (tag, "line")
        return found.end()

    # ------------------------------------------------------------------------------------------ what is none

    def _fence(self, found: re.Match[str]) -> int:
        lines, run = _FENCE_LINE.finditer(self._flat, found.end()), found["run"]
        end = next(_nested(lines) if run == "```" else _plain(lines, run), len(self._flat))
        # Less indented than the fence: perhaps the list item is over, and the fence with it. Nobody knows what is code.
        offset = found.start("run") - found.start()
        less = re.compile(rf"^(?![ \t]{{{offset}}}|[ \t]*$)", re.MULTILINE)
        unclear = offset and less.search(self._flat, found.end(), end)
        return self._pass(found.start(), len(self._flat) if unclear else end, "fence")

    def _quote(self, found: re.Match[str]) -> int:
        """Up to the next empty line: what follows a quotation without one still belongs to it."""
        blank = _BLANK.search(self._flat, found.end())
        return self._pass(found.start(), blank.start() if blank else len(self._flat), "quote")

    def _thought(self, found: re.Match[str]) -> int:
        close = re.compile(f"</{found['thinks']}>", re.IGNORECASE).search(self._flat, found.end())
        end = close.end() if close else len(self._flat)
        self._cuts.append((found.start(), end))
        return self._pass(found.start(), end, "thought")

    def _thought_out(self, found: re.Match[str]) -> int:
        """Some templates begin the thoughts themselves: then all up to here was thought, and none of it is run."""
        if self._blocks:
            self._shown = (self._blocks[0].tag, "thought")
        self._blocks.clear()
        self._stray = self._mentioned = ""
        self._cuts = [(0, found.end())]
        return found.end()

    def _example(self, found: re.Match[str]) -> int:
        """In <pre>, <code> or <example>; a tag that is never closed is only a word."""
        name = found["shows"].lower()
        close = (
            re.compile(f"</{name}>", re.IGNORECASE).search(self._flat, found.end()) if name not in self._words else None
        )
        if close is None:
            self._words.add(name)
            return found.end()
        return self._pass(found.start(), close.end(), "example")

    def _comment(self, found: re.Match[str]) -> int:
        end = self._flat.find("-->", found.end())
        return self._pass(found.start(), len(self._flat) if end < 0 else end + 3, "comment")

    def _ticks(self, found: re.Match[str]) -> int:
        start, length = found.start(), found.end() - found.start()
        if start and self._flat[start - 1] == "\\":
            start, length = start + 1, length - 1
        same = self._runs.get(length, [])
        place = bisect_right(same, start)
        if place == len(same) or same[place] >= self._wall(start):
            return found.end()
        end = same[place] + length
        return self._pass(start, end, "code") if self._flat.find("\n", start, end) >= 0 else end

    @cached_property
    def _runs(self) -> dict[int, list[int]]:
        """Where runs of so many backticks begin."""
        runs: dict[int, list[int]] = {}
        for run in _RUN.finditer(self._flat):
            runs.setdefault(run.end() - run.start(), []).append(run.start())
        return runs

    @cached_property
    def _walls(self) -> list[int]:
        return [wall.start() for wall in _WALL.finditer(self._flat)]

    def _wall(self, at: int) -> int:
        """Where the paragraph ends: inline code does not go on behind it."""
        place = bisect_right(self._walls, at)
        return self._walls[place] if place < len(self._walls) else len(self._flat)

    def _pass(self, start: int, end: int, where: str) -> int:
        """Nothing here is run; a whole block here deserves a hint."""
        shown = None if self._shown else _shown(self._tags).search(self._flat, start, end)
        if shown is None:
            return end
        tag = shown["tag"]
        # Inline code may end inside a block, before the block does; everything else is whole or none.
        last = self._last(tag) if where == "code" else self._flat.find(f"</{tag}", shown.end(), end)
        if last > shown.start():
            self._shown = (tag, where)
        return end

    def _last(self, tag: str) -> int:
        """Where the last end tag of this name stands."""
        if tag not in self._lasts:
            self._lasts[tag] = self._flat.rfind(f"</{tag}")
        return self._lasts[tag]

    # ------------------------------------------------------------------------------------------ what is left

    def _said(self) -> str:
        pieces, at = [], 0
        cuts = (*self._cuts, *((block.start, block.after) for block in self._blocks))
        for start, end in sorted(cuts):
            pieces.append(self._text[at:start])
            at = max(at, end)
        return "".join((*pieces, self._text[at:])).strip()

    def _hint(self) -> str:
        if self._shown is not None:
            tag, where = self._shown
            place = _SHOWN_WHERE[where]
            return (
                f"The <{tag}> block in your reply was not run: it is {place}. "
                f"To run it, write it again with <{tag}> at the start of a line and nothing around it."
            )
        if self._misspelt:
            right = next(tag for tag in self._tags if tag.lower() == self._misspelt.lower())
            return f"<{self._misspelt}> is no tag here, so nothing was run. Write it exactly so: <{right}>."
        return ""


@lru_cache(maxsize=64)
def _shown(tags: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("<(?P<tag>" + "|".join(map(re.escape, tags)) + r")(?:[ \t][^<>\n]*+)?>")


def _plain(lines: Iterator[re.Match[str]], run: str) -> Iterator[int]:
    """The end of a fence as CommonMark has it."""
    for line in lines:
        if line["run"].startswith(run) and not line["info"].strip():
            yield line.end()


def _nested(lines: Iterator[re.Match[str]]) -> Iterator[int]:
    """The end of a fence of three backticks, which models nest although Markdown cannot.

    It is over where both readers are outside: the one that nests fences and the one that does not.
    """
    inside, depth = True, 1
    for line in lines:
        if line["run"][0] != "`":
            continue
        if line["info"].strip():
            inside, depth = True, depth + 1
        else:
            inside, depth = not inside, max(depth - 1, 0)
        if not inside and not depth:
            yield line.end()
