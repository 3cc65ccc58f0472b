"""The raw scanner: which blocks of a reply are meant to be run. It is no XML parser, and bodies are not its business.

A block counts only if its opening tag begins a line (indented by three spaces at most, or right behind a thought),
nothing but blanks follows its end on that line, and nothing is around it that shows rather than means: code,
quotations, examples, comments, thoughts, or an element that nobody here knows. Where there is a doubt, it is shown.
One pass from left to right, in time that grows with the length: bodies are jumped over, and blocks are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from greenroom.abilities.protocols import hints, patterns, quoting
from greenroom.abilities.protocols.outcome import Block, End, Ender, Scan, flat
from greenroom.abilities.protocols.quoting import LOOSE, NAME, TOKENS, WRAPPERS

MOST_BLOCKS: Final = 20
"""Who writes more than this is told that one would have been right; there is no need to find them all."""

MOST_SHOWN: Final = 40
"""Blocks that are looked at, counted or not."""

_BLANK: Final = re.compile(r"^[ \t]*+$", re.MULTILINE)
_CLEAR: Final = re.compile(rf"(?:[ \t]|</?(?:{'|'.join(sorted(WRAPPERS))})>|{TOKENS})*+$", re.MULTILINE)
_LEFT_OVER: Final = re.compile(rf"(?:{TOKENS}\s*+)++\Z")
_END_TAG: Final = re.compile(rf"<[ \t]*+/[ \t]*+({NAME})")
_INNER: Final = re.compile(r"<([A-Za-z_][\w.-]*+)>")


def scan(text: str, enders: Mapping[str, Ender]) -> Scan:
    """Look through a reply for blocks of these tags."""
    if not patterns.worth(tuple(enders)).search(text):
        return Scan(blocks=(), doubt="", said=text.strip(), hint="")
    left_over = _LEFT_OVER.search(text, max(0, len(text) - 200))
    return _Walk(text[: left_over.start()] if left_over else text, enders).run()


class _Walk:
    """One pass through one reply."""

    def __init__(self, text: str, enders: Mapping[str, Ender]) -> None:
        self._text = text
        self._flat = flat(text)
        self._seen = quoting.lines(self._flat)
        self._enders = enders
        self._tags = tuple(enders)
        self._closers = quoting.Closers(self._flat)
        self._inline = quoting.Inline(self._flat)
        self._blocks: list[Block] = []
        self._cuts: list[tuple[int, int]] = []
        self._opened: dict[str, list[bool]] = {}
        self._looked = 0
        self._resume = -1
        self._floor = 0
        self._quoted = 0
        self._doubt = ""
        self._mentioned = ""
        self._shown: tuple[str, str] | None = None
        self._misspelt: tuple[str, str] | None = None
        self._compared: set[str] = set()
        self._lasts: dict[str, int] = {}
        self._steps = self._named_steps()

    def _named_steps(self) -> dict[str, Callable[[re.Match[str]], int]]:
        """What is done with what was found, by the name of its group."""
        return {
            "fence": self._fence,
            "open": self._open,
            "quote": self._quote,
            "odd": self._odd,
            "mention": self._mention,
            "stray": self._stray,
            "spilled": self._thought,
            "thought": self._thought,
            "thought_out": self._thought_out,
            "role": self._role,
            "first": self._first,
            "colons": self._pair,
            "element": self._element,
            "element_out": self._element_out,
            "bracket": self._bracket,
            "pair": self._pair,
            "ticks": self._ticks,
        }

    def run(self) -> Scan:
        at, events, starts = 0, patterns.events(self._tags), patterns.events(self._tags, "")
        while len(self._blocks) < MOST_BLOCKS and self._looked < MOST_SHOWN:
            # What stands right behind a block or a thought stands there as if on a line of its own.
            behind = starts.match(self._seen, at) if at == self._resume else None
            found = behind or events.search(self._seen, at)
            if found is None:
                break
            at = self._steps[str(found.lastgroup)](found)
        hint = "" if self._blocks else self._hint()
        return Scan(blocks=tuple(self._blocks), doubt=self._doubts(), said=self._said(), hint=hint)

    # ------------------------------------------------------------------------------------------ what is a block

    def _open(self, found: re.Match[str]) -> int:
        tag = found["tag"]
        ender = self._enders.get(tag)
        if ender is None:
            return self._within(found, tag, begins=True)
        start = found.start()
        begins = not start or self._flat[start - 1] == "\n"
        if not (begins or start == self._resume) or self._flat[start : found.end("indent")].strip(" "):
            return self._mentions(tag, found)
        self._looked += 1
        indent = len(found["indent"]) if begins else 0
        end = ender(self._flat, found.end(), indent)
        place = self._place(start, end, found.end(), indent)
        if place:
            self._shown = self._shown or (tag, place)
            return end.after if end.tagged else found.end()
        block = Block(
            tag=tag,
            attributes=(found["attributes"] or "").strip(),
            body=self._text[found.end() : end.stop],
            start=start,
            after=end.after,
            line=self._flat.count("\n", 0, start) + 1,
            sure=end.sure,
            tagged=end.tagged,
            clear=self._clear(end.after),
            indent=indent,
        )
        self._blocks.append(block)
        self._resume = end.after
        return end.after

    def _clear(self, at: int) -> bool:
        return bool(_CLEAR.match(self._flat, at) or patterns.opening(self._tags).match(self._flat, at))

    def _place(self, start: int, end: End, body: int, indent: int) -> str:
        """Where this block stands, if that is no place for one."""
        if start < self._quoted:
            return "inside a quotation"
        for name, begins in self._opened.items():
            if any(begins) or self._closers.behind("tag", name, end.after) is not None:
                return f"inside <{name}>"
        if indent and quoting.introduced(self._flat, start, self._floor):
            return "indented under a line that introduces it, like an example"
        if quoting.hugged(self._flat, start, end.after, self._floor):
            return "inside quotation marks, brackets or rulers"
        if self._flat.find("\n", body, end.after) < 0 and not self._clear(end.after):
            return "followed by text on its line, as if it were only mentioned"
        return ""

    def _mention(self, found: re.Match[str]) -> int:
        return self._mentions(found["named"], found)

    def _mentions(self, tag: str, found: re.Match[str]) -> int:
        self._mentioned = self._mentioned or tag
        if self._closers.behind("tag", tag, found.end()) is not None:
            self._opened.setdefault(tag.lower(), []).append(False)
        return found.end()

    def _stray(self, found: re.Match[str]) -> int:
        tag = found["ended"]
        if tag == self._mentioned and self._shown is None:
            self._shown = (tag, "not at the start of a line")
        return self._close(tag.lower(), found)

    # ------------------------------------------------------------------------------------------ what is none

    def _fence(self, found: re.Match[str]) -> int:
        word = found["info"].strip()
        if word and self._near(word):
            self._misspelt = self._misspelt or (f"A code fence named {word!r}", self._near(word))
        end = quoting.fence_end(self._flat, found)
        return self._pass(found.start(), end, "inside a code fence", "a code fence")

    def _quote(self, found: re.Match[str]) -> int:
        """Up to the next empty line: what follows a quotation without one still belongs to it."""
        if found.start() >= self._quoted:
            blank = _BLANK.search(self._flat, found.end())
            self._quoted = blank.start() if blank else len(self._flat)
            self._pass(found.start(), self._quoted, "inside a quotation")
        line = self._flat.find("\n", found.end())
        return len(self._flat) if line < 0 else line

    def _thought(self, found: re.Match[str]) -> int:
        start, end = found.start(), quoting.thought_end(self._flat, found)
        # A thought that begins its line, and what follows it there: nothing else stands on that line.
        if start == self._resume or not self._flat[max(0, start - 80) : start].rpartition("\n")[2].strip():
            self._resume = -1 if end is None else end
        self._floor = end or start
        self._cuts.append((start, len(self._flat) if end is None else end))
        return self._pass(start, end, "inside your thoughts")

    def _thought_out(self, found: re.Match[str]) -> int:
        """Some templates begin the thoughts themselves: then all up to here was thought, and none of it is run."""
        if self._blocks:
            self._shown = (self._blocks[0].tag, "inside your thoughts")
        self._blocks.clear()
        self._opened.clear()
        self._doubt = self._mentioned = ""
        self._cuts = [(0, found.end())]
        self._resume = self._floor = self._quoted = found.end()
        return found.end()

    def _role(self, found: re.Match[str]) -> int:
        return self._pass(found.start(), None, "inside what somebody else says")

    def _first(self, found: re.Match[str]) -> int:
        return self._within(found, found["first_name"], begins=True)

    def _element(self, found: re.Match[str]) -> int:
        return self._within(found, found["name"], begins=False)

    def _within(self, found: re.Match[str], tag: str, *, begins: bool) -> int:
        """An element that is not ours: what it holds is not ours to run. One that begins no line may be but a word."""
        name = tag.lower()
        if begins and self._near(name):
            self._misspelt = self._misspelt or (found[0].strip(), self._near(name))
        if found[0].endswith("/>") or name in LOOSE or name in WRAPPERS:
            return found.end()
        end = self._closers.behind("tag", name, found.end())
        if quoting.quotes(name) or (end is None and begins):
            return self._pass(found.start(), end, f"inside <{tag}>")
        if end is not None:
            self._opened.setdefault(name, []).append(begins)
        return found.end()

    def _element_out(self, found: re.Match[str]) -> int:
        return self._close(found["closed"].lower(), found)

    def _close(self, name: str, found: re.Match[str]) -> int:
        """An end tag: of what is open, or of nothing, and then a block before it may be longer than it seems."""
        if name in self._opened:
            self._opened[name].pop()
            if not self._opened[name]:
                del self._opened[name]
        elif self._blocks and name not in LOOSE and name not in WRAPPERS:
            self._doubt = self._doubt or f"{found[0]} behind it closes nothing, so it may belong to the block."
        return found.end()

    def _bracket(self, found: re.Match[str]) -> int:
        name = found["bracketed"]
        end = self._closers.behind("bracket", name, found.end())
        if end is None and not quoting.quotes(name):
            return found.end()
        return self._pass(found.start(), end, f"inside [{name}]")

    def _odd(self, found: re.Match[str]) -> int:
        said = found["odd_word"] or found["odd_label"]
        tag = self._near(said) if said else next((tag for tag in self._tags if tag.lower() == "tool_call"), "")
        if tag:
            self._misspelt = self._misspelt or (found[0].strip(), tag)
        end = self._closers.behind("bracket", said, found.end()) if found["bracket_odd"] else None
        return found.end() if end is None else self._pass(found.start(), end, f"inside [{said}]")

    def _pair(self, found: re.Match[str]) -> int:
        where, end, firm = self._closers.pair(found)
        if end is None and not firm:
            return found.end()
        return self._pass(found.start(), end, f"inside a {where}", f"a {where}")

    def _ticks(self, found: re.Match[str]) -> int:
        start, end = self._inline.span(found)
        if end is not None and self._flat.find("\n", start, end) < 0:
            return end
        if found.end() - start >= 3:  # three and more that are not closed on their line begin a fence, or nearly
            return self._pass(start, None, "inside a code fence", "a code fence")
        if end is None or end > self._inline.wall(start):
            return found.end()
        if not self._flat[start:end].strip("` \t\n"):  # nothing in it: its end may be the beginning of the next
            end = self._inline.wall(start)
        return self._pass(start, end, "inside inline code, or behind a backtick that is not closed")

    def _pass(self, start: int, end: int | None, where: str, alike: str = "") -> int:
        """Nothing here is run; a whole block here deserves a hint. What is never closed goes on to the last character.

        `alike` names what begins as it ends: if it is never closed behind a block, it may have begun in it.
        """
        if end is None and alike and self._blocks:
            self._doubt = (
                self._doubt or f"{alike} behind it is not closed, so it may have begun in the block or before."
            )
        end = len(self._flat) if end is None else end
        shown = None if self._shown else patterns.named(self._tags).search(self._flat, start, end)
        if shown is None:
            return end
        tag = shown["tag"]
        # Inline code may end inside a block, before the block does; everything else is whole or none.
        last = self._last(tag) if "inline" in where else self._flat.find(f"</{tag}", shown.end(), end)
        if last > shown.start():
            self._shown = (tag, where)
        return end

    def _last(self, tag: str) -> int:
        """Where the last end tag of this name stands."""
        if tag not in self._lasts:
            self._lasts[tag] = self._flat.rfind(f"</{tag}")
        return self._lasts[tag]

    def _near(self, name: str) -> str:
        if name not in self._compared and len(self._compared) >= hints.MOST_NAMES:
            return ""
        self._compared.add(name)
        return hints.near(name, self._tags)

    # ------------------------------------------------------------------------------------------ what is left

    def _doubts(self) -> str:
        """Why no block can be run, whatever is in it: what follows may be a part of it."""
        if not self._blocks:
            return ""
        block = self._blocks[0]
        again = self._again(block)
        if again:
            return (
                f"</{again}> is there more often than <{again}>, so nobody can tell where the block ends. "
                f"A text that must hold </{again}> goes into JSON or <![CDATA[…]]>."
            )
        following = self._blocks[1].start if self._blocks[1:] else len(self._flat)
        if quoting.thought_ends(self._flat, block.after, following):
            return "the end of a thought stands behind it, so it may be a part of your thoughts."
        if self._looked >= MOST_SHOWN:
            return "there are too many blocks in the reply."
        return self._doubt

    def _again(self, block: Block) -> str:
        """The end tag of this block, or of a part of it, that comes once more behind it: in code and quotations too."""
        inner = _INNER.findall(block.body) if block.tag in ("tool_call", "PATCH") else ()
        names = {block.tag.lower(), *(name.lower() for name in inner)}
        spans = [(one.start, one.after) for one in self._blocks[1:]]
        for end in _END_TAG.finditer(self._flat, block.after):
            own_half = not block.tagged and not self._flat[block.after : end.start()].strip()
            elsewhere = any(start <= end.start() < after for start, after in spans)
            if end[1].lower() in names and not own_half and not elsewhere:
                return end[1]
        return ""

    def _said(self) -> str:
        pieces, at = [], 0
        cuts = (*self._cuts, *((block.start, block.after) for block in self._blocks))
        for start, end in sorted(cuts):
            pieces.append(self._text[at:start])
            at = max(at, end)
        return "".join((*pieces, self._text[at:])).strip()

    def _hint(self) -> str:
        if self._shown is not None:
            return hints.shown(*self._shown)
        return hints.misspelt(*self._misspelt) if self._misspelt else ""
