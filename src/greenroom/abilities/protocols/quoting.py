"""What stands around a block so that it is shown, not meant: code, quotations, examples, comments, thoughts.

Patterns and places only; who walks through a reply with them is the `scanner`. Markdown, HTML, BBCode, TeX and the
templates of models all quote, and models mix them: where two readers would disagree, the text counts as quoted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

TICKS_AND_TILDES: Final = r"(?P<run>`{3,}+(?=[^`\n]*$)|~{3,}+)(?P<info>[^\n]*+)$"
ITEM: Final = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"
INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
SIGNS: Final = r"""<(?:[/!\w|]|<-?['"]?[A-Z_])|[\[◁`~"'“«「『$\\{/´‘’‛ʼ′]|assistantfinal"""
"""How everything begins that quotes or is quoted, if it does not begin a line."""

WORDS: Final = ("think", "thought", "reasoning", "scratch", "monologue", "channel", "assistantfinal", "analysis[A-Z]")
"""What occurs in every sign of thoughts."""

NAME: Final = rf"[^\W\d][\w.{INVISIBLE}-]*+(?::[\w.-]++)?+"
ATTRIBUTES: Final = r"(?:[\s/][^<>]*+)?"

WRAPPERS: Final = frozenset({"function_calls", "tool_calls"})
"""What some models are trained to put around a call that they mean."""

LOOSE: Final = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "wbr", "col", "area", "base", "source", "embed"}
    | {"p", "li", "td", "tr", "th", "dt", "dd", "option", "s"}
)
"""Elements that need no end, so that one without an end holds nothing."""

TOKENS: Final = r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|</s>|<eos>|<end_of_turn>)"
"""Signs for the end of a reply that some servers leave in it."""

_FENCE_LINE: Final = re.compile(r"^(?P<indent>[ \t]*+)" + TICKS_AND_TILDES, re.MULTILINE)
_QUOTES: Final = re.compile(
    r"pre|code|xmp|listing|plaintext|samp|kbd|textarea|blockquote|q|quote|quotation|cite|script|style|template"
    r"|snippet|verbatim|tool_results?|(?:.*_)?(?:examples?|samples?)(?:[_-].*)?",
    re.DOTALL,
)

_LINES: Final = {
    **dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), "\n"),
    **dict.fromkeys(map(ord, "\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))), " "),
}


_UNSEEN: Final = re.compile(rf"[{INVISIBLE}](?!\w)")


def lines(flat: str) -> str:
    """The same text as somebody sees it who takes every kind of blank and break for one, and the invisible for a break.

    What quotes does so behind any of them; what is meant does not.
    """
    return _UNSEEN.sub("\n", flat.translate(_LINES))


# ---------------------------------------------------------------------------------------------- thoughts

THINKS: Final = (
    r"(?i:(?:[\w.-]{1,40}:)?(?:think|thinking|thoughts?|thought_process|reasoning|reasoning_content|scratch_?pad"
    r"|inner_?monologue|antthinking|chain_of_thought))"
)
_CHANNEL: Final = r"<\|channel\|>\s*+"
_FINAL: Final = rf"{_CHANNEL}final\b[^<]*+(?:<\|message\|>)?"
_TOKEN_THINKS: Final = r"(?i:think|thinking|thought|reasoning)"
THOUGHT: Final = (
    rf"<(?P<thinks>{THINKS}){ATTRIBUTES}>"
    rf"|\[(?P<thinks_so>{_TOKEN_THINKS})\]"
    rf"|◁(?P<thinks_too>{_TOKEN_THINKS})▷"
    rf"|<\|(?i:begin_of_|start_)?{_TOKEN_THINKS}\|>"
    rf"|{_CHANNEL}(?!final\b)"
)
SPILLED: Final = r"[ \t]*+(?:analysis|commentary)(?=[A-Z])"
"""How a channel begins whose signs somebody took away."""

ROLE: Final = (
    r"<\|(?:im_start|start|start_header_id)\|>\s*+(?!assistant\b)\w++|<\|(?:user|system|tool|ipython|observation)\|>"
)
"""Where a model writes on in the name of somebody else."""

THOUGHT_OUT: Final = (
    rf"</{THINKS}\s*+>|\[/{_TOKEN_THINKS}\]|◁/{_TOKEN_THINKS}▷|<\|(?i:/|end_of_|end_){_TOKEN_THINKS}\|>"
    rf"|{_FINAL}|assistantfinal(?=[A-Z\s<])"
)


_THOUGHTS: Final = re.compile(rf"(?P<begins>{THOUGHT})|{THOUGHT_OUT}")


def thought_ends(flat: str, start: int, end: int) -> bool:
    """Whether a thought ends here that began before: in code and quotations too."""
    found = _THOUGHTS.search(flat, start, end)
    return found is not None and not found["begins"]


def thought_end(flat: str, found: re.Match[str]) -> int | None:
    """Where a thought ends that begins here, by the sign that belongs to its beginning."""
    if found["spilled"]:
        close = r"assistantfinal"
    elif found["thinks"]:
        close = rf"(?i:</{re.escape(found['thinks'])}\s*+>)"
    elif found["thinks_so"]:
        close = rf"(?i:\[/{found['thinks_so']}\])"
    elif found["thinks_too"]:
        close = rf"(?i:◁/{found['thinks_too']}▷)"
    elif "channel" in found[0]:
        close = _FINAL
    else:
        close = rf"<\|(?i:/|end_of_|end_){_TOKEN_THINKS}\|>"
    end = re.compile(close).search(flat, found.end())
    return None if end is None else end.end()


# ---------------------------------------------------------------------------------------------- fences


def fence_end(flat: str, found: re.Match[str]) -> int | None:
    """Where a fence is over for every reader: who nests fences, as models do, and who does not, as Markdown has it.

    None if it is never closed, or if readers would disagree: where a line that looks like its end is longer than its
    beginning, or indented like code; where nothing is in it, so that the end may be the beginning of the next one;
    and where something is less indented than the fence, so that perhaps a list is over, and the fence with it.
    """
    run, offset = found["run"], _width(flat[found.start() : found.start("run")])
    inside, depth = True, 1
    for line in _FENCE_LINE.finditer(flat, found.end()):
        mark, bare = line["run"], not line["info"].strip()
        if mark[0] != run[0] or len(mark) < len(run):
            continue
        if bare and _unclear(line, len(run), offset, found.end()):
            return None
        inside, depth = (not inside, max(depth - 1, 0)) if bare else (True, depth + 1)
        if not inside and not depth:
            return None if _outdented(flat, found.end(), line.end(), offset) else line.end()
    return None


def _unclear(line: re.Match[str], length: int, offset: int, begin: int) -> bool:
    return len(line["run"]) > length or _width(line["indent"]) > offset + 3 or line.start() <= begin + 1


def _outdented(flat: str, start: int, end: int, offset: int) -> bool:
    less = re.compile(rf"^(?![ \t]{{{offset}}}|[ \t]*$)", re.MULTILINE)
    return bool(offset and less.search(flat, start, end))


def _width(prefix: str) -> int:
    return len(prefix.expandtabs(4))


# ---------------------------------------------------------------------------------------------- inline code

_WALL: Final = re.compile(rf"^[ \t]*+$|^{ITEM}(?:```|~~~)", re.MULTILINE)
_RUN: Final = re.compile(r"`++|~{3,}+")


class Inline:
    """Which backticks, or tildes, belong together."""

    def __init__(self, flat: str) -> None:
        self._flat = flat

    def span(self, found: re.Match[str]) -> tuple[int, int | None]:
        """Where the code begins, and where the next run of the same length ends. One or two may be escaped, or not."""
        start, length = found.start(), found.end() - found.start()
        end = self._partner(found[0][0], start, length)
        if length < 3 and (end is None or end > self.wall(start)) and start and self._flat[start - 1] == "\\":
            return start + 1, self._partner(found[0][0], start + 1, length - 1)
        return start, end

    def _partner(self, sign: str, start: int, length: int) -> int | None:
        same = self._runs.get((sign, length), [])
        place = bisect_right(same, start)
        return same[place] + length if place < len(same) else None

    def wall(self, at: int) -> int:
        """Where the paragraph ends: inline code does not go on behind it."""
        place = bisect_right(self._walls, at)
        return self._walls[place] if place < len(self._walls) else len(self._flat)

    @cached_property
    def _runs(self) -> dict[tuple[str, int], list[int]]:
        runs: dict[tuple[str, int], list[int]] = {}
        for run in _RUN.finditer(self._flat):
            runs.setdefault((run[0][0], run.end() - run.start()), []).append(run.start())
        return runs

    @cached_property
    def _walls(self) -> list[int]:
        return [wall.start() for wall in _WALL.finditer(self._flat)]


# ---------------------------------------------------------------------------------------------- other pairs

_PAIRS: Final[dict[str, tuple[str, str]]] = {
    "<!--": ("comment", "-->"),
    "<![CDATA[": ("CDATA", r"\]\]>"),
    "/*": ("comment", r"\*/"),
    "$$": ("formula", r"\$\$"),
    '"""': ("quotation", '"""'),
    "'''": ("quotation", "'''"),
    "“": ("quotation", "”"),
    "«": ("quotation", "»"),
    "「": ("quotation", "」"),
    "『": ("quotation", "』"),
    "´": ("quotation", "[´‘’‛ʼ′]{3}"),
    ":::": ("example", r"^[ \t]*+:{3,}+[ \t]*+$"),
    "{%": ("example", r"\{%-?\s*+endraw\b"),
}
PAIR: Final = (
    r"""<!--|<!\[CDATA\[|(?<![\w.*/~)}-])/\*(?=[\s*])|(?<![\w$])\${2,}+(?!\S)|"{3}|'{3}|“++|«++|「++|『++|[´‘’‛ʼ′]{3}"""
    r"""|\{%-?\s*+raw\b|\\begin\{(?P<tex>\w+\*?)\}|<<-?['"]?(?P<here>[A-Z_]\w*+)"""
)
_FIRM: Final = frozenset({"<!--", "<![CDATA[", '"""', "'''", "´", ":::"})
_EQUAL: Final = frozenset({"$$", '"""', "'''", "´", ":::"})
_TICK_LIKE: Final = re.compile("[´‘’‛ʼ′]{3}")


class Closers:
    """Where the ends of all elements stand in a text, found in one pass."""

    _END: Final = re.compile(
        rf"</(?P<tag>{NAME})\s*+>|\[/(?P<bracket>[\w-]++)\]|\\end\{{(?P<tex>\w+\*?)\}}"
        r"|^[ \t]*+(?P<here>[A-Z_]\w*+)[ \t]*+$",
        re.MULTILINE,
    )

    def __init__(self, flat: str) -> None:
        self._flat = flat
        self._places: dict[tuple[str, str], list[int]] = {}
        self._never: set[str] = set()
        for end in self._END.finditer(flat):
            kind = str(end.lastgroup)
            self._places.setdefault((kind, end[kind].lower()), []).append(end.end())

    def behind(self, kind: str, name: str, at: int) -> int | None:
        """Where the next end of this name is over."""
        places = self._places.get((kind, name.lower()), [])
        place = bisect_right(places, at)
        return places[place] if place < len(places) else None

    def pair(self, found: re.Match[str]) -> tuple[str, int | None, bool]:
        """What this sign begins, where that is over, and whether it goes on to the end of the text if it never is.

        Of the signs that do not, one alone is only a sign.
        """
        for kind in ("tex", "here"):
            if found[kind]:
                return "example", self.behind(kind, found[kind], found.end()), kind == "tex"
        text = found[0].strip()
        sign = "´" if _TICK_LIKE.match(text) else next(sign for sign in _PAIRS if text.startswith(sign))
        where, close = _PAIRS[sign]
        end = self._next(close, found.end())
        # With nothing but lines between two equal signs, the second one may be the beginning of the next.
        between = self._flat[found.end() : end] if sign in _EQUAL else "?"
        if end is not None and "\n" in between and not between.strip(" \t\n´‘’‛ʼ′" + sign):
            return where, None, True
        return where, end, sign in _FIRM

    def _next(self, close: str, at: int) -> int | None:
        if close in self._never:
            return None
        end = re.compile(close, re.MULTILINE).search(self._flat, at)
        if end is None:
            self._never.add(close)
            return None
        return end.end()


def quotes(name: str) -> bool:
    """Whether an element of this name shows what is in it, even if it is never closed."""
    return _QUOTES.fullmatch(name.lower()) is not None


# ---------------------------------------------------------------------------------------------- right around a block

_SOMETHING: Final = re.compile(r"\S")
_HUGS: Final = dict(zip("`\"'“‘«‹「『([{„", "`\"'”’»›」』)]}”", strict=True))
_RULER: Final = re.compile(r"([-=.+*_#~/%|])\1{3,}")
_INTRODUCES: Final = re.compile(r":\Z|:[ \t]++[|>][-+\d]{0,2}\Z|\A\.\. ")


def hugged(flat: str, start: int, after: int, floor: int) -> bool:
    """Whether quotation marks, brackets or two equal rulers stand right around these lines, and behind `floor`."""
    before, behind = _last_line(flat, start, floor), _next_line(flat, after)
    if not before or not behind:
        return False
    rest = before.rstrip(before[-1])
    alone = not rest or rest[-1].isspace() or before[-1] not in "`\"'"  # a mark right behind a word closes
    if alone and _HUGS.get(before[-1]) == behind[0]:
        return True
    return before == behind and _RULER.fullmatch(before) is not None


def introduced(flat: str, start: int, floor: int) -> bool:
    """Whether the line above ends as one does that introduces a literal text."""
    return _INTRODUCES.search(_last_line(flat, start, floor)) is not None


def _last_line(flat: str, at: int, floor: int) -> str:
    """The last line before that is not blank, or its last part."""
    return flat[floor:at].rstrip()[-200:].rpartition("\n")[2].strip()


def _next_line(flat: str, at: int) -> str:
    """The next line behind that is not blank, or its first part."""
    begin = _SOMETHING.search(flat, at)
    return flat[begin.start() : begin.start() + 200].partition("\n")[0].strip() if begin else ""
