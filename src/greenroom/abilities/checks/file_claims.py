"""Files that are said to be made, changed or deleted, held against what is there and what is different.

What a program does with files (*is written to out.csv*) is no claim, nor is what is said of something in a file or
about it: *the tests of calc.py were updated* says nothing of calc.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final

from greenroom.abilities.checks.file_names import OF_PROGRAMS, WORD, Named, bare_file, in_quotes, without_quotes
from greenroom.abilities.checks.prose import QUOTED, is_open, unquoted
from greenroom.abilities.checks.undone import HISTORY

DONE: Final = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|implemented|implements|updated|updates|changed|modified|edited|fixed|"
    r"extended|introduced|new file|now (?:has|contains|covers))\b"
    r"|(?:新增|创建|添加|加入|编写|写了|实现|修改|更新|修复|改动|新建)",
    re.IGNORECASE,
)
REMOVED: Final = re.compile(r"\b(?:deleted|removed)\b|(?:删除|移除|删掉)", re.IGNORECASE)
WHERE: Final = re.compile(r"\b(?:from|in|of|inside|within)\b|[从在]", re.IGNORECASE)
WHERE_AFTER: Final = re.compile(r"\s*(?:中|里|内|的)")
ON_THE_WAY: Final = frozenset(
    {
        *("the", "a", "an", "new", "file", "files", "module", "script", "page", "document", "docs", "test", "tests"),
        *("in", "to", "into", "and", "both", "also", "as", "named", "called", "at", "-", "*", "+", "•"),
        *(",", ":", "，", "：", "、", "（", "(", "—", "–"),
    }
)
"""What may stand between what was done and the file to which it was done."""

PARTICLES: Final = frozenset("了文件一个新的并和与及在为")
BY_IT: Final = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bbeing )"
    r"\b(?:created|added|wrote|rewrote|implemented|updated|changed|modified|edited|fixed|extended|introduced|new file|"
    r"deleted|removed)\b(?!-)"
    r"|(?:新增|创建|添加|加入|编写|写了|修改|更新|修复|新建|删除|移除|删掉)",
    re.IGNORECASE,
)
"""What somebody says that they have done; what a program does with files (*is written to*) is something else."""

FILE: Final = "\x00"
OTHER: Final = "\x01"
"""What stands for the letters of a file's name, and for whatever else is quoted, where only the rest is read."""

EACH: Final = re.compile(f"{FILE}+")
LIST: Final = re.compile(
    rf"{FILE}+(?:\s*(?:[,，、&]\s*(?:and\b|和|以及)?|\band\b|和|与|及|以及)\s*{FILE}+)*", re.IGNORECASE
)
CHANGED: Final = r"(?:updated|changed|modified|edited|extended|rewritten|rewrote)"
CHANGED_ZH: Final = r"(?:更新|修改|编辑|改动|重写|扩展)"
MADE: Final = r"(?:added|created|introduced|written(?!\s+(?:for|in|to|with|as)\b))"
MADE_ZH: Final = r"(?:新增|创建|添加|编写|新建|加入)"
OF_FILES: Final = r"(?:(?:the|both|our|all|existing|new|files?|modules?|scripts?|pages?|documents?)\b\s*)*"
DIRECTLY: Final = re.compile(
    rf"(?:(?:^|[^\w\s/{FILE}{OTHER}]|\b(?:I|we|ve|have|and|also|then|just|only|now|files?|what)\b)\s*{CHANGED}\b"
    rf"\s*{OF_FILES}[:：]?\s*(?:(?:[-*+•]|\d+[.)])\s+)?"
    rf"|{CHANGED_ZH}了?(?:以下)?(?:文件|文档)?[:：]?\s*(?:[-*+•]\s+)?)(?={FILE})",
    re.IGNORECASE,
)
"""*Updated the files*, and then the files: what follows *tests of* or *the version in* may be as it was."""

ENDS: Final = re.compile(
    r"\s*(?:\Z|[.,;:!?()，。；：！（）]|[并以使中里后]"
    r"|(?:and|with|to(?!\s+be\b)|so|for|as|too|accordingly|by|which|where|because|while|in|but|files?)\b"
    rf"(?!\s*{OTHER}))|\s+[-—–→]",
    re.IGNORECASE,
)
"""What follows upon files that were changed. After another word they may only say whose: *updated calc.py tests*."""

DOCUMENTED: Final = re.compile(
    r"(?:(?:^|[:：.)*•-]|\b(?:I|we|ve|have|been|now|then)\b)\s*documented|(?:[,，]|\b(?:and|also)\b)\s*documented(?!\s+in\b))"
    rf"(?:\s+(?!(?:is|are|was|were|that|how|where|which|what|by|and)\b)[\w'’{OTHER}-]+){{0,6}}?\s+in\s+{OF_FILES}(?={FILE})",
    re.IGNORECASE,
)
FRONT: Final = re.compile(
    rf"(?:^|[^\w\s{FILE}{OTHER}]|\b(?:and|also|only|then|now|but|so|{CHANGED}|{MADE}|fixed|mended)\b|[和并且时了])\s*"
    rf"(?:{OF_FILES}|新?的?(?:文件|文档|说明)\s*)(?={FILE})",
    re.IGNORECASE,
)
"""What stands before files of which something is said: after *the tests of* it would be said of tests."""

BEEN: Final = (
    r"\s+(?:was|were|(?:has|have)(?: now| also)? been)\s+(?:(?:now|also|newly|just|then|both|all|accordingly)\s+){0,2}"
)
WAS_CHANGED: Final = re.compile(rf"{BEEN}{CHANGED}\b|\s*(?:也|都|均)?(?:已经?|现已)被?{CHANGED_ZH}", re.IGNORECASE)
WAS_REMOVED: Final = re.compile(rf"{BEEN}(?:deleted|removed)\b|\s*(?:已经?|现已)被?(?:删除|移除)", re.IGNORECASE)
WAS_MADE: Final = re.compile(
    rf"{BEEN}{MADE}\b|\s+(?:is|are) new(?=\s*(?:\Z|[.,;:!)]|and\b))|\s*\(new(?: file)?\)"
    rf"|\s*(?:也|都|均)?(?:已经?|现已)被?{MADE_ZH}|\s*(?:是|为)新(?:文件|增|建)",
    re.IGNORECASE,
)
TELLS: Final = re.compile(
    r"\s+(?:(?:now|also|both)\s+){0,2}(?:explains?|describes?|documents?|covers?)\b"
    r"|\s+(?:(?:now|also)\s+)?(?:has|have|contains?|holds?|includes?)\s+(?:[\w-]+\s+){0,3}?tests?\b"
    r"|\s*中?(?:也|还|已经?)?(?:说明|介绍|描述|覆盖)了|\s*(?:中|里)?(?:也|还)?(?:有|包含)[^，。；]{0,10}测试",
    re.IGNORECASE,
)
PLURAL: Final = re.compile(r"\s+(?:\w+\s+)?(?:were|have|are|explain|describe|document|cover|contain|hold|include)\b")
"""That it is said of all files of a list. Else what stands before a comma is another matter."""

IN_IT: Final = re.compile(rf"(?:^|[^\w\s{FILE}]|[并已我也还且时了])\s*在\s*(?:文件|文档)?\s*(?={FILE})")
THEREIN: Final = re.compile(
    r"\s*(?:中|里|内)\s*(?:也|还|都|已经?|详细|补充|做|进行|了){0,3}(?:说明|描述|记录|介绍|补充|编写|写明|添加|新增|加入|更新)(了)?(?!的)"
)
RUNNING: Final = re.compile(
    r"\b(?:runs?|ran|running|run-?time|execut\w+|start(?:s|ed|up)?|generat\w+|outputs?|temp\w*|tmp|demo)\b"
    r"|运行|执行|程序|生成|输出|启动",
    re.IGNORECASE,
)
"""That something ran: what was made then is no part of the work."""

BY_A_PROGRAM: Final = re.compile(
    rf"\b(?:reads?|loads?|writes?|parses?|saves?|opens?|looks? for|generates?|produces?"
    r"|such as|like|(?:is|are|be|being|gets?) (?:read|written|saved|created|stored|loaded|generated))"
    rf"(?:\s+(?:the|a|an|its|from|to|into|in|as|results?|output|{OTHER}+|files?))*\s*(?={FILE})",
    re.IGNORECASE,
)
WITH_IT: Final = re.compile(
    r"\s+(?:(?:is|are|gets?)\s+(?:\w+\s+)?(?:created|read|left|kept|found|ignored|skipped)|"
    r"(?:is|are|gets?|was|were)\s+(?:\w+\s+)?(?:written|saved|stored|loaded|generated))\b",
    re.IGNORECASE,
)
"""What a program does with a file before or behind it, though something else was done in the same sentence."""

STAYED: Final = re.compile(
    r"\b(?:unchanged|untouched|intact|already|same|left|kept|keeps?|remains?|stays?|nothing|reverted|restored|back|"
    r"as (?:it|they) (?:was|were))\b|不变|保持|无需|原样|恢复",
    re.IGNORECASE,
)
"""That something is as it was: of which of the files that is said nobody knows."""


def files_not_so(
    said: str, exists: Callable[[str], bool], changed: Callable[[str], bool] | None = None
) -> Iterator[str]:
    """What this sentence says of files and is not so. Which are `changed`, or are no more, may be unknown."""
    words = unquoted(said)
    gone, done = bool(REMOVED.search(words)), bool(DONE.search(words))
    if (gone and done) or "." not in said:
        return  # who knows which of both, or no file is named
    named = {one.start: one for one in (*in_quotes(said), *without_quotes(said))}
    if not named:
        return
    rest = _without_names(said, named)
    different = {one.start for one in _changed(rest, named)} if not gone else frozenset[int]()
    told = {one.start: one for one in _told(rest, named, gone=gone)}
    if gone or done:
        told |= {one.start: one for one in (*_quoted(said, rest), *_after_a_deed(words))}
    for start, one in sorted({**told, **{start: named[start] for start in different}}.items()):
        if is_open(said, start, one.end):
            continue
        there, differs = exists(one.path), changed is not None and changed(one.path)
        if gone and there and not _is_where(said, start, one.end):
            yield f"It says that {one.path!r} was deleted, and it is still there."
        elif not gone and not there and not differs:
            yield f"It speaks of {one.path!r} as done, and there is no such file."
        elif start in different and changed is not None and there and not differs:
            yield f"It says that {one.path!r} was updated, and it is as it was."


def _is_where(said: str, start: int, end: int) -> bool:
    """Whether a file is where something was removed, and not what was removed."""
    verbs = [one.end() for one in REMOVED.finditer(said, 0, start)]
    return bool(WHERE.search(said, verbs[-1] if verbs else 0, start) or WHERE_AFTER.match(said, end))


def _quoted(said: str, rest: str) -> Iterator[Named]:
    """Files in quotes, wherever they stand in a sentence in which something was done."""
    used = _led(BY_A_PROGRAM, rest)
    return (one for one in in_quotes(said) if one.start not in used and not WITH_IT.match(rest, one.end))


def _after_a_deed(words: str) -> Iterator[Named]:
    """Files without quotes that follow upon what was done: elsewhere in a sentence a name may be anything."""
    at = 0
    for verb in (one for one in BY_IT.finditer(words) if one.end() > at):
        for word in WORD.finditer(words, verb.end()):
            at = word.end()
            found = bare_file(word)
            if found is not None:
                yield found
            elif word[0].rstrip(".").lower() not in ON_THE_WAY and not set(word[0]) <= PARTICLES:
                break


def _without_names(said: str, named: Mapping[int, Named]) -> str:
    """The sentence with signs in the place of files, and of what else is quoted."""
    rest = list(QUOTED.sub(lambda match: OTHER * len(match[0]), said).replace("**", "  "))
    for one in named.values():
        rest[one.start : one.end] = FILE * (one.end - one.start)
    return "".join(rest)


def _changed(rest: str, named: Mapping[int, Named]) -> Iterator[Named]:
    """Files that are said to be changed themselves, and not something in them or about them."""
    if STAYED.search(rest):
        return
    past = HISTORY.search(rest) or RUNNING.search(rest)
    direct, documented, in_it, front = (_led(one, rest) for one in (DIRECTLY, DOCUMENTED, IN_IT, FRONT))
    for some in LIST.finditer(rest):
        start, end = some.span()
        therein = THEREIN.match(rest, end) if start in in_it else None
        if start in documented or (start in direct and ENDS.match(rest, end)) or (therein and therein[1]):
            yield from _each(rest, some.span(), named)
        elif not past and WAS_CHANGED.match(rest, end):
            yield from _each(rest, _subject(rest, some, front), named)


def _told(rest: str, named: Mapping[int, Named], *, gone: bool) -> Iterator[Named]:
    """Files that are said to be there by what follows upon them, or to be there no more."""
    if HISTORY.search(rest) or RUNNING.search(rest):
        return
    in_it, front = _led(IN_IT, rest), _led(FRONT, rest)
    for some in LIST.finditer(rest):
        end = some.end()
        if (WAS_REMOVED if gone else WAS_MADE).match(rest, end) or (not gone and TELLS.match(rest, end)):
            span = _subject(rest, some, front)
        elif not gone and some.start() in in_it and THEREIN.match(rest, end):
            span = some.span()
        else:
            continue
        yield from (one for one in _each(rest, span, named) if gone or not one.path.lower().endswith(OF_PROGRAMS))


def _led(words: re.Pattern[str], rest: str) -> frozenset[int]:
    """Where files stand right behind such words."""
    return frozenset(one.end() for one in words.finditer(rest))


def _subject(rest: str, some: re.Match[str], front: Container[int]) -> tuple[int, int]:
    """Of which of these files something is said that follows upon them; of none if they only say whose it is."""
    start, end = some.span()
    comma = max(rest.rfind(sign, start, end) for sign in ",，")
    if comma >= 0 and not PLURAL.match(rest, end):
        return comma, end
    return (start, end) if start in front else (end, end)


def _each(rest: str, span: tuple[int, int], named: Mapping[int, Named]) -> Iterator[Named]:
    return (named[one.start()] for one in EACH.finditer(rest, *span) if one.start() in named)
