"""What a model claims at the end, as far as it can be held against the facts: files, and how many tests there are.

Careful rather than complete: only plain claims count, and what is asked, planned, denied or conditional is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

from greenroom.core.base.records import record

LONGEST: Final = 100_000
DONE: Final = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|implemented|implements|updated|updates|changed|modified|edited|fixed|"
    r"extended|introduced|new file|now (?:has|contains|covers))\b"
    r"|(?:新增|创建|添加|加入|编写|写了|实现|修改|更新|修复|改动|新建)",
    re.IGNORECASE,
)
REMOVED: Final = re.compile(r"\b(?:deleted|removed)\b|(?:删除|移除|删掉)", re.IGNORECASE)
WHERE: Final = re.compile(r"\b(?:from|in|of|inside|within)\b|[从在]", re.IGNORECASE)
WHERE_AFTER: Final = re.compile(r"\s*(?:中|里|内|的)")
OPEN: Final = re.compile(
    r"\b(?:not|no|never|without|none|cannot|can't|couldn't|didn't|don't|doesn't|isn't|should|would|could|if|when|once|"
    r"until|before|unless|to verify|make sure|ensure|need|needs|todo|plan|planned|will|might|may|please|you can|try|"
    r"instead of|rather than|example|e\.g)\b|n't\b|\?|？|"
    r"(?:没有|未|不|如果|应该|需要|请|可以|将|会|计划|建议|例如|确保|以便|之前)",
    re.IGNORECASE,
)
QUOTED: Final = re.compile(r"`([^`\n]{1,200})`")
PATH: Final = re.compile(r"(?:\./)?(?:[\w.@+-]+/)*[\w.@+-]*\w\.[A-Za-z][A-Za-z0-9]{0,5}")
SUFFIXES: Final = (
    *(".py", ".pyi", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".json", ".toml", ".yaml", ".yml", ".md", ".rst"),
    *(".txt", ".cfg", ".ini", ".sh", ".html", ".css", ".scss", ".sql", ".go", ".rs", ".rb", ".java", ".kt", ".c"),
    *(".h", ".cc", ".cpp", ".hpp", ".php", ".ex", ".exs", ".swift", ".cs", ".lock", ".csv", ".xml", ".vue"),
)
ALSO_CODE: Final = (".json", ".c", ".h", ".lock", ".csv", ".xml", ".html", ".sql", ".css", ".ex", ".go", ".txt", ".sh")
"""Suffixes that are also names of attributes: without a folder before it, such a word may be code."""

BARE: Final = re.compile(r"[A-Za-z0-9_./@+-]+|[\u4e00-\u9fff]+|[^\s\w]")
"""The words of a sentence, and the signs between them."""

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
    r"\b(?:created|added|wrote|implemented|updated|changed|modified|edited|fixed|extended|introduced|new file)\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bbeing )\b(?:deleted|removed)\b"
    r"|(?:新增|创建|添加|加入|编写|写了|修改|更新|修复|新建|删除|移除|删掉)",
    re.IGNORECASE,
)
"""What somebody says that they have done; what a program does with files (*is written to*) is something else."""

CODE_TOO: Final = (".js", ".ts", ".rs", ".vue", ".java", ".cs", ".rb", ".php", ".swift", ".mjs", ".cjs")
"""Suffixes that are also how things are called, as in Node.js: without a folder or a quote such a word is no file."""

SITES: Final = (".com", ".org", ".net", ".io", ".dev", ".cn", ".de")
ALL_PASS: Final = re.compile(
    r"\b(?:all|every|the(?: whole| entire| full)?)\s+(?:of\s+the\s+)?(?:\w+\s+){0,3}?"
    r"(?:tests?|checks?|test suite|suite)\s+"
    r"(?:are\s+|is\s+|now\s+|still\s+|have\s+|has\s+)*(?:pass(?:es|ed|ing)?|green)\b"
    r"|(?:所有|全部|整个)的?(?:单元)?(?:测试|检查)(?:用例)?(?:都|均|已|全部|现在)*通过"
    r"|测试(?:用例)?(?:全部|均|都)已?通过",
    re.IGNORECASE,
)
TESTS: Final = re.compile(r"\b(?:tests?|suite)\b|测试", re.IGNORECASE)
NUMBER: Final = re.compile(
    r"\b(\d{1,7})(?:\s*/\s*\d+)?\s+(?:\w+\s+){0,2}?(?:tests?|checks?)\s+(?:are\s+|now\s+|all\s+|have\s+)*pass(?:es|ed|ing)?\b"
    r"|\b(\d{1,7}) passed\b(?! (?:to|by|as|through|into|on)\b)"
    r"|(\d{1,7})\s*(?:个|项|条)(?:单元)?测试(?:用例)?(?:都|均|已|全部)*通过",
    re.IGNORECASE,
)
WORDS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS: Final = {
    word: number for words in (WORDS, "一二三四五六七八九十") for number, word in enumerate(words, start=1)
}
MANY: Final = rf"(\d{{1,5}}|{'|'.join(WORDS)})"
ADDED: Final = re.compile(
    rf"\b(?:added|wrote|created|introduced)\s+{MANY}\s+(?:\w+\s+){{0,2}}?(?:tests?|test cases)\b"
    r"(?!\s+(?:files?|modules?|suites?))"
    rf"|\b{MANY}\s+(?:new\s+|unit\s+|more\s+){{0,2}}tests?\s+(?:were\s+|was\s+|have been\s+)?added\b"
    r"|(?:新增|添加|编写|写|加|增加)了?\s*(\d{1,5}|[一二三四五六七八九十])\s*(?:个|项|条)(?:新的?)?(?:单元)?测试",
    re.IGNORECASE,
)
CLAUSE: Final = re.compile(r"[,，;；]|\b(?:so|which|because|but)\b")
SENTENCE: Final = re.compile(r"(?<=[.!?。！？;；])\s+|(?<=[。！？；])|\n")
FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
LISTED: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")


@record
class Facts:
    """What is known. `exists` is asked about paths of the delivered tree.

    `passed` counts the tests that passed in the checks that count, None if there is no clean receipt; `counted` says
    that these are all, for not every runner counts. `added` are those that the base had not, None if nobody counts.
    What is not `tested` was judged by checks of which none runs tests.
    """

    exists: Callable[[str], bool]
    passed: int | None = None
    counted: bool = True
    added: int | None = None
    tested: bool = True


def unproven(text: str, facts: Facts) -> tuple[str, ...]:
    """The claims in this text that nothing proves, each in a sentence."""
    every = [one for said in sentences(text[:LONGEST]) for one in _wrong(said, facts)]
    return tuple(dict.fromkeys(every))


def sentences(text: str) -> Iterator[str]:
    """One after the other. What stands in a list belongs to the line that announces it."""
    above = ""
    for line in _prose(text):
        listed = bool(LISTED.match(line))
        yield from (f"{above} {part}" if listed and above else part for part in SENTENCE.split(line) if part.strip())
        if not listed:
            above = line.strip() if line.rstrip().endswith((":", "：")) else ""


def _prose(text: str) -> Iterator[str]:
    """The lines without blocks of code."""
    fenced = False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            yield line


def _wrong(said: str, facts: Facts) -> Iterator[str]:
    yield from _files(said, facts)
    yield from _passing(said, facts)
    yield from _adding(said, facts)


def is_open(said: str, start: int, end: int) -> bool:
    """Whether what stands there is denied, planned or the like: by anything before it, or in its own clause."""
    clause = CLAUSE.search(said, end)
    before = QUOTED.sub("", said[:start])
    return bool(OPEN.search(before) or OPEN.search(QUOTED.sub("", said[end : clause.start() if clause else len(said)])))


def _files(said: str, facts: Facts) -> Iterator[str]:
    words = QUOTED.sub("", said)
    gone, done = REMOVED.search(words), DONE.search(words)
    if bool(gone) == bool(done):
        return  # nothing is claimed, or who knows which of both
    for path, start, end in (*_quoted(said), *_bare(said)):
        if is_open(said, start, end):
            continue
        there = facts.exists(path)
        if done and not there:
            yield f"It speaks of {path!r} as done, and there is no such file."
        elif gone and there and not _is_where(said, start, end):
            yield f"It says that {path!r} was deleted, and it is still there."


def _is_where(said: str, start: int, end: int) -> bool:
    """Whether a file is where something was removed, and not what was removed."""
    verbs = [one.end() for one in REMOVED.finditer(said, 0, start)]
    return bool(WHERE.search(said, verbs[-1] if verbs else 0, start) or WHERE_AFTER.match(said, end))


def _quoted(said: str) -> Iterator[tuple[str, int, int]]:
    for match in QUOTED.finditer(said):
        if path := _path(match[1]):
            yield path, match.start(), match.end()


def _bare(said: str) -> Iterator[tuple[str, int, int]]:
    """Files without quotes, if they follow upon what was done: elsewhere in a sentence a name may be anything."""
    without = QUOTED.sub(lambda match: " " * len(match[0]), said)
    for verb in BY_IT.finditer(without):
        for word in BARE.finditer(without, verb.end()):
            text = word[0].rstrip(".")
            path = _bare_path(text)
            if path:
                yield path, word.start(), word.start() + len(text)
            elif text.lower() not in ON_THE_WAY and not set(text) <= PARTICLES:
                break


def _bare_path(word: str) -> str:
    """What can only be a file, though nobody has put it into quotes."""
    first, slash, _ = word.partition("/")
    if word.startswith("/") or (slash and first.lower().endswith(SITES)):
        return ""
    return _path(word) if slash or not word.lower().endswith(CODE_TOO) else ""


def _path(quoted: str) -> str:
    """What can only be a file: it has a suffix that files have, and nothing that only code has."""
    word = quoted.partition("::")[0].removeprefix("./")
    word = re.sub(r":\d+(?:-\d+)?$", "", word)
    if not PATH.fullmatch(word) or not word.lower().endswith(SUFFIXES) or word.startswith(("http", "www.")):
        return ""
    return word if "/" in word or not word.lower().endswith(ALSO_CODE) else ""


def _passing(said: str, facts: Facts) -> Iterator[str]:
    every = ALL_PASS.search(said)
    if every is not None and facts.passed is None and not is_open(said, every.start(), every.end()):
        yield "It says that all tests pass, and no clean run of the checks on this tree proves it."
        return
    if every is not None and not facts.tested and TESTS.search(every[0]) and not is_open(said, *every.span()):
        yield "It says that all tests pass, and none of the checks runs tests."
        return
    for match in NUMBER.finditer(said):
        number = int(next(one for one in match.groups() if one is not None))
        if is_open(said, match.start(), match.end()):
            continue
        if facts.passed is None:
            yield f"It says that {number} tests pass, and no clean run of the checks on this tree proves it."
        elif facts.counted and number > facts.passed:
            yield f"It says that {number} tests pass; in the run that counts it were {facts.passed}."


def _adding(said: str, facts: Facts) -> Iterator[str]:
    """How many tests are new, where somebody has counted them."""
    for match in ADDED.finditer(said) if facts.added is not None else ():
        word = next(one for one in match.groups() if one is not None).lower()
        number = NUMBERS[word] if word in NUMBERS else int(word)
        if facts.added is not None and number > facts.added and not is_open(said, match.start(), match.end()):
            yield f"It says that {number} tests were added; in the run that counts {facts.added} are new."


def among(paths: Collection[str]) -> Callable[[str], bool]:
    """Whether a path is one of these, also where only its end is named: nobody writes out every folder."""
    ends = {path[at + 1 :] for path in paths for at in (-1, *(n for n, sign in enumerate(path) if sign == "/"))}
    return ends.__contains__
