"""What a model says at the end of how tests ended: that one passes by its name, that all do, that the new ones do.

Careful rather than complete: who says anywhere that something fails, or was skipped, is not taken at half of their
words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from greenroom.abilities.checks.file_claims import REMOVED
from greenroom.abilities.checks.named_claims import AND, BEFORE, LETTER
from greenroom.abilities.checks.named_claims import ENDS as NO_FILE
from greenroom.abilities.checks.prose import is_open, sentences, unquoted
from greenroom.core.base.records import record

ENDS: Final = r"(?=\s*(?:[.,;:!()*✅✓✔—–-]|[，。；：！（）、]|\b(?:and|now|again|too|as well|successfully)\b|并|$))"
"""What passes something on is no test, and what passes somewhere else is another claim: little may follow."""

THERE: Final = r"了?(?=\s*(?:[，。；！、,.;:!)）]|并|$))"
"""The same in Chinese, where one word says *passes* and *by means of*."""

A_TEST: Final = re.compile(
    rf"`?(?<!{LETTER})(?<![./:-])({BEFORE})(test_{LETTER}{{1,100}})((?:\[[^\]\n]{{0,100}}\])?)(?:\(\))?{NO_FILE}`?"
)
MARK: Final = "\x01"
"""What stands in the place of each sign of such a name: the rest is read without looking into names."""

EVERY: Final = rf"(?<!{MARK}){MARK}++(?:{AND}{MARK}++){{0,6}}"
"""One test, or several in a row."""

PASS: Final = r"(?:pass(?:es|ed)?|succeeds?|(?:is|are) (?:now |all |both )?(?:green|passing))\b"
MENDED: Final = r"(?:(?:is|are|has been|have been) (?:now )?(?:fixed|mended|repaired)|no longer fails?)\b"
MEANWHILE: Final = r"(?: (?:now|also|still|all|both|finally)){0,2}"
PASSES: Final = re.compile(
    rf"{EVERY}(?:(?: (?:in|of|from) `?[\w./-]{{1,200}}`?)?(?:, [^,;.\n]{{1,80}},)?{MEANWHILE} (?:{PASS}|{MENDED}){ENDS}"
    rf"|(?:[^.;\n]|\.(?=\w)){{0,60}}?(?:, which|(?:,| and|, and) (?:it|they|both)){MEANWHILE} (?:{PASS}|{MENDED}){ENDS}"
    rf"| ?(?:测试|已经?|现在|也|均|都|全部)*(?:通过|修复|修好){THERE})"
    r"|\b(?:fixed|mended|repaired)(?: (?:the|failing|broken|old|red|tests?|test cases?)){0,4}:? "
    rf"{EVERY}(?=\s*(?:[.,;:!()—–-]|\b(?:and|by|so|too|now|in)\b|$))"
    rf"|(?:修复|修好)了?(?:失败的)?(?:测试)?(?:用例)? ?{EVERY}{THERE}",
    re.IGNORECASE,
)
AND_IT: Final = re.compile(rf"\s*(?:and )?(it|they|both){MEANWHILE} {PASS}{ENDS}", re.IGNORECASE)
"""What a sentence begins with that speaks of the tests in the one before."""

RUN: Final = re.compile(r"\b(?:suite|ran|run|runs|checks?|build|pipeline)\b", re.IGNORECASE)
"""What may be meant by *it* as well."""

IN_QUOTES: Final = re.compile(r"[`'\"“「]([^`'\"“”「」\n]{1,120})[`'\"”」]")
CALLED: Final = re.compile(rf"{IN_QUOTES.pattern}(?: test)?{MEANWHILE} {PASS}{ENDS}", re.IGNORECASE)
"""Many runners call tests by words of any kind."""

ALL: Final = re.compile(
    r"\b(?:all|every)(?: of)?(?: the| our| your)?(?: existing)? tests?(?: in the (?:suite|project|repo|repository))?"
    r"(?: (?:are|is|now|still|have|has|again)){0,3} (?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b" + ENDS + "|"
    r"\b(?:the|our)(?: whole| entire| full| complete)?(?: test)? suite"
    r"(?: (?:is|now|still|again|fully|completely|all)){0,3} (?:pass(?:es|ed|ing)?|green)\b" + ENDS + "|"
    r"(?:(?:所有|全部|整个)的?测试(?:用例|套件)?(?:都|均|已经?|全部|现在|也)*"
    r"|(?:^|[\s，。；：、,;:（(])测试(?:用例|套件)?(?:全部|均|都)已?)通过" + THERE,
    re.IGNORECASE,
)
"""That not one fails: of the new ones, of those in a file or of the relevant ones more may be true."""

ENDS_WELL: Final = re.compile(
    r"(?<![\w/.-])`?pytest`?(?: (?:now|also))? (?:exits?|exited|ends|ended|returns|returned|finishes|finished)"
    r"(?: with)?(?: an?| the)?(?: exit)?(?: code| status)?(?: of)? `?0`?" + ENDS + "|"
    r"(?<![\w/.-])`?pytest`?(?: (?:now|also))? (?:pass(?:es|ed)|is (?:now )?green|succeeds)\b" + ENDS + "|"
    r"`?pytest`? ?的?(?:退出码|返回码)(?:为|是)? ?`?0(?!\d)",
    re.IGNORECASE,
)
WORD: Final = re.compile(rf"{LETTER}+")
NEW: Final = re.compile(
    rf"\b(?:(?:its|my)(?: new)?|(?:all|both|the)(?: of)?(?: the| my| its)? new) tests?{MEANWHILE} {PASS}{ENDS}"
    rf"|新(?:增|加|写)?的?测试(?:用例)?(?:都|均|已经?|全部|也)*通过{THERE}",
    re.IGNORECASE,
)
FAIL: Final = r"(?<!no longer )(?<!\bno )(?<!no new )(?<!\b0 )(?<!zero )\bfail(?:s|ures?)?\b"
APART: Final = (
    r"\b(?:except|excluding|besides|aside|apart|other than|but|bar|save for|minus|only|alone|isolat(?:ed|ion)|locally|"
    r"individually|by itself|on its own|part(?:ly|ially)|flaky|still (?:red|broken|failing)|"
    r"ignoring|notwithstanding|despite|disregarding|leaving|omitting)\b|deselect"
    r"|除|只|仅|单独|本地|部分|但"
)
SWITCHED: Final = re.compile(r"\b[A-Z_]{2,}=\S|(?<![\w-])--?[a-z]")
"""With a switch, or a variable, other tests may run."""

SKIPPED: Final = re.compile(
    r"skip|xfail|\b(?:expected (?:to fail|failures?)|todo|disabled|pending|ignored|deselected)\b"
    r"|跳过|忽略|禁用|预期失败",
    re.IGNORECASE,
)
DOUBTS: Final = re.compile(rf"{FAIL}|{APART}|(?<![无零])(?<!没有)失败(?!的)", re.IGNORECASE)
"""In one sentence with a claim: then it is not said of all of them, or of every time."""

MADE_GOOD: Final = re.compile(
    r"\b(?:fixed|mended|repaired|resolved|no longer|includ(?:ing|es))\b|包括|修复|修好", re.IGNORECASE
)
NOW: Final = re.compile(r"\b(?:now (?:pass|green)|pass(?:es)? now)|现在(?:已|都|均)?通过", re.IGNORECASE)
FAILED: Final = re.compile(
    rf"{FAIL}|(?<!\b0 )(?<!zero )(?<!\bno )\b(?:failed|failing)\b|\bred\b|\bbroken\b|(?<![无零])(?<!没有)失败",
    re.IGNORECASE,
)
STILL: Final = re.compile(
    r"\b(?:still|remains?|continues?|keeps?)\b[^.;\n]{0,40}\b(?:fail\w*|red|broken)\b|\bfails? (?:as|like|exactly as)\b"
    r"|\b(?:unrelated|pre-?existing)\b[^.;\n]{0,40}\bfail|\bfail\w*\b[^.;\n]{0,40}\b(?:unrelated|pre-?existing)\b"
    r"|(?:仍|依然|依旧|还是)[^。；\n]{0,10}(?:失败|通不过)|失败[^。；\n]{0,20}无关",
    re.IGNORECASE,
)
OLD: Final = re.compile(
    r"\b(?:already|previously|known|old|earlier|same)\b[^.;\n]{0,40}\bfail\w*"
    r"|\bfail\w* (?:\w+ ){0,3}?(?:already|before|beforehand|earlier|on (?:the )?(?:base|main|master|baseline))\b"
    r"|(?<!\d)[1-9]\d{0,6} (?:\w+ )?(?:failed|failing|failures?|fails?)\b"
    r"|\b(?:one|two|three) (?:\w+ )?(?:tests? )?(?:fails?|failures?)\b"
    r"|(?:原本|原来|原先|之前就|此前就|本来|本就|已有|既有|已知|基线)[^。；\n]{0,16}失败",
    re.IGNORECASE,
)
"""That something failed before: of what was mended since it says nothing."""


@record
class Told:
    """A test that is said to pass, with what was told of where it stands (`within`: a file, a class) and of its
    `parameters`."""

    name: str
    within: str = ""
    parameters: str = ""


def said_to_pass(text: str) -> tuple[Told, ...]:
    """The tests of which this text says that they pass, or that they are mended. What it calls by other words than
    names of tests may be something else."""
    return tuple(dict.fromkeys(_said_to_pass(text)))


def _said_to_pass(text: str) -> Iterator[Told]:
    before, named = "", tuple[Told, ...]()
    for said in sentences(text):
        tests = list(A_TEST.finditer(said))
        told = tuple(Told(name=one[2], within=one[1].rstrip(":."), parameters=one[3]) for one in tests)
        if not any(one.search(said) for one in (REMOVED, SWITCHED)) and not DOUBTS.search(unquoted(said)):
            spans = list(_spans(said))
            yield from (one for one, at in zip(told, tests, strict=True) if _within(at.start(), spans))
            yield from (Told(name=one[1]) for one in CALLED.finditer(said) if not is_open(said, *one.span()))
            yield from named if _of_them(said, before, len(named)) else ()
        before, named = said, told


def _of_them(said: str, before: str, many: int) -> bool:
    """Whether it is said of the tests in the sentence before that they pass."""
    found = AND_IT.match(said)
    if found is None or (found[1].lower() == "it" and many != 1):
        return False
    return not RUN.search(before) and not is_open(before, len(before), len(before))


def _within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether it stands in one of these, which follow upon each other."""
    last = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return last >= 0 and at < spans[last][1]


def _spans(said: str) -> Iterator[tuple[int, int]]:
    """Where it is said of something that it passes."""
    marked = A_TEST.sub(lambda match: MARK * len(match[0]), said.replace(MARK, " "))
    return (one.span() for one in PASSES.finditer(marked) if not is_open(said, *one.span()))


def all_pass(text: str, failing: Collection[str] = ()) -> bool:
    """Whether it says that not one test fails. Who names one of those that do fail (`failing`) in the same breath may
    mean all others."""
    return _claims(ALL, text, failing)


def ends_well(text: str, failing: Collection[str] = ()) -> bool:
    """Whether it says that pytest ends as it does when not one test fails."""
    return _claims(ENDS_WELL, text, failing)


def new_ones_pass(text: str) -> bool:
    """Whether it says so of the tests that were written, and not of all."""
    return _claims(NEW, text, ())


def _claims(pattern: re.Pattern[str], text: str, failing: Collection[str]) -> bool:
    names = _Names.of(failing)
    every = ((said, match) for said in sentences(text) for match in pattern.finditer(said))
    return any(
        not is_open(said, *match.span())
        and not DOUBTS.search(said)
        and bool(MADE_GOOD.search(said) or not (FAILED.search(said) or names.are_in(said)))
        for said, match in every
    )


def admits_failures(text: str, names: Collection[str]) -> bool:
    """Whether it says anywhere that something fails as it did, or that one of these tests does."""
    known = _Names.of(names)
    return any(_admits(said, known) for said in sentences(text))


def _admits(said: str, names: _Names) -> bool:
    if STILL.search(said):
        return True
    if MADE_GOOD.search(said) or NOW.search(said):
        return False
    return bool(OLD.search(said) or (FAILED.search(said) and names.are_in(said)))


def still_failing(text: str) -> frozenset[str]:
    """All words of the sentences that say that something still fails, and what is quoted there."""
    every = [said for said in sentences(text) if STILL.search(said)]
    return frozenset(word for said in every for word in (*WORD.findall(said), *IN_QUOTES.findall(said)))


def admits_skipped(text: str) -> bool:
    """Whether it speaks of tests that do not run."""
    return any(SKIPPED.search(said) for said in sentences(text))


@record
class _Names:
    """Names of tests: those that are one word, and others."""

    words: frozenset[str]
    phrases: tuple[str, ...]

    @classmethod
    def of(cls, names: Collection[str]) -> _Names:
        """These."""
        words = frozenset(one for one in names if WORD.fullmatch(one))
        return cls(words=words, phrases=tuple(one for one in names if one not in words))

    def are_in(self, said: str) -> bool:
        """Whether it speaks of one of them."""
        return not self.words.isdisjoint(WORD.findall(said)) or any(one in said for one in self.phrases)
