"""What a model claims at the end, as far as it can be held against the facts: files, and how many tests there are.

Careful rather than complete: only plain claims count, and what is asked, planned, denied or conditional is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

from greenroom.abilities.checks.file_claims import files_not_so
from greenroom.abilities.checks.prose import is_open, sentences
from greenroom.core.base.records import record

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


@record
class Facts:
    """What is known. `exists` is asked about paths of the delivered tree, `changed` about those that are not what they
    were, also where a file is no more; None if nobody knows.

    `passed` counts the tests that passed in the checks that count, None if there is no clean receipt; `counted` says
    that these are all, for not every runner counts. `added` are those that the base had not, None if nobody counts.
    What is not `tested` was judged by checks of which none runs tests.
    """

    exists: Callable[[str], bool]
    changed: Callable[[str], bool] | None = None
    passed: int | None = None
    counted: bool = True
    added: int | None = None
    tested: bool = True


def unproven(text: str, facts: Facts) -> tuple[str, ...]:
    """The claims in this text that nothing proves, each in a sentence."""
    every = [one for said in dict.fromkeys(sentences(text)) for one in _wrong(said, facts)]
    return tuple(dict.fromkeys(every))


def _wrong(said: str, facts: Facts) -> Iterator[str]:
    yield from files_not_so(said, facts.exists, facts.changed)
    yield from _passing(said, facts)
    yield from _adding(said, facts)


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
