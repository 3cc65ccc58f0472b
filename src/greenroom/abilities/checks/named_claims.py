"""What a model says at the end of tests by their names, and of programs that find nothing: read like other claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from greenroom.abilities.checks.file_claims import DONE, REMOVED
from greenroom.abilities.checks.prose import QUOTED, is_open, is_open_before, sentences, unquoted

LETTER: Final = r"(?-i:[^\W\u4e00-\u9fff])"
"""Of a name: Chinese words stand beside it without a space. They have no small letters: looking for some takes long."""

BEFORE: Final = rf"(?:[\w./-]{{1,200}}::)?(?:{LETTER}{{1,100}}(?:::|\.))?"
AFTER: Final = r"(?:\[[^\]\n]{0,100}\])?(?:\(\))?"
A_TEST: Final = rf"`?{BEFORE}(test_{LETTER}{{1,100}}){AFTER}`?"
ENDS: Final = rf"(?!\.\w|{LETTER}|/)"
"""What follows is no part of it: `test_a.py` is a file."""

PASSES: Final = re.compile(
    rf"(?<!{LETTER}){A_TEST} (?:(?:in|of|from) `?[\w./-]{{1,200}}`? )?(?:(?:now|also|still) )?"
    r"(?:pass(?:es|ed)?|is green)\b"
    rf"|(?<!{LETTER}){A_TEST} ?(?:已|现在|也)?通过",
    re.IGNORECASE,
)
IS_A_TEST: Final = re.compile(rf"\b(?:tests?|test cases?) {A_TEST}{ENDS}|测试(?:用例)? ?{A_TEST}{ENDS}", re.IGNORECASE)
BARE: Final = re.compile(rf"(?<!{LETTER})(?<![./:-]){BEFORE}(test_{LETTER}{{1,100}}){AFTER}{ENDS}")
IN_QUOTES: Final = re.compile(rf"{BEFORE}(test_{LETTER}{{1,100}}|Test[A-Z]{LETTER}{{1,100}}){AFTER}")
THERE: Final = re.compile(
    rf"{DONE.pattern}|\b(?:pass(?:es|ed|ing)?|green|cover(?:s|ed|ing)?|is there|are there)\b|通过|覆盖", re.IGNORECASE
)
"""What is said of a test that is there. Beside such a word a name may also be that of a fixture or of a folder."""

ELSEWISE: Final = re.compile(
    r"\b(?:missing|absent|lack(?:s|ing)?|nothing|nowhere|neither|nor|still (?:has|have|needs?) to|yet to|"
    r"to be (?:added|written)|left out|renam(?:e|es|ed|ing)|replac(?:e|es|ed|ing)|formerly|previously|"
    r"used to|was called|merged)\b"
    r"|缺少|缺失|尚|重命名|改名|替换|原来",
    re.IGNORECASE,
)
"""That it is not there, or was once."""

TOOL: Final = (
    r"(mypy|ruff|pyright|basedpyright|flake8|pylint|black|isort|bandit|eslint|prettier|tsc|biome|stylelint|clippy|"
    r"rubocop|shellcheck|golangci-lint|hadolint|yamllint|markdownlint)"
)
WITH_IT: Final = r"(?: (?:check|format|lint|--[\w-]+))*+`?"
AND: Final = r"\s*+(?:(?:,|、|/|&|\+|and\b|和|与|及|以及)\s*+)++"
CLEAN: Final = re.compile(
    rf"(?<![\w./-])`?{TOOL}{WITH_IT}(?:{AND}`?{TOOL}{WITH_IT}){{0,6}}"
    r"(?:\s+(?:(?:is|are|both|all|now|also|still|run|runs|come|comes|came|back|report|reports|find|finds|checks?)\s+){1,4}"
    r"(?:clean(?:ly)?|green|happy|passing|passed|no (?:errors?|issues?|warnings?|findings?|problems?))\b"
    r"|\s+(?:(?:both|all|now|also|still|checks?)\s+){0,3}pass(?:es|ed)?(?=\s*(?:[.,;!:)\u2014-]|and\b|now\b|too\b|$))"
    r"|\s*(?:检查|均|都|已|也|全部|全)*(?:通过|无错误|无警告|没有(?:报错|错误|问题)))",
    re.IGNORECASE,
)
SOMETHING: Final = (
    r"(?:the |all |our |your )?(?:whole |full |entire |complete )?"
    r"(?:test suite|suite|(?:unit )?tests?|checks?|linters?|type checkers?|pytest|全部测试|所有测试|测试)"
)
RAN: Final = re.compile(
    r"(?:(?:^|[*•-]\s|\b(?:I|we|and|also|then)\s)(?:ran|executed)\s+|(?:\bI have|\bwe have|'ve)\s+run\s+"
    r"|(?:运行|执行|跑)(?:了|过)\s*)"
    rf"`?(?:{SOMETHING}|{TOOL}{WITH_IT})`?(?:{AND}`?(?:{SOMETHING}|{TOOL}{WITH_IT})`?){{0,7}}(?![\w/-])",
    re.IGNORECASE,
)
"""Programs that somebody says to have run."""

NAME: Final = re.compile(rf"(?<![\w./-]){TOOL}(?![\w-])", re.IGNORECASE)


def passing_tests(text: str) -> tuple[str, ...]:
    """The tests of which this text says by name that they pass."""
    return tuple(dict.fromkeys(one for said in _told(text) for one in _matched(PASSES, said)))


def named_tests(text: str) -> tuple[str, ...]:
    """All names of tests of which this text says that they are there, or pass. Where no word says that it is a test,
    the name may be that of something else."""
    every = (
        one for said in _told(text) for one in (*_matched(PASSES, said), *_matched(IS_A_TEST, said), *_there(said))
    )
    return tuple(dict.fromkeys(every))


def clean_tools(text: str) -> tuple[str, ...]:
    """The programs of which this text says that they find nothing wrong, in small letters."""
    return _tools(CLEAN, text, lambda said, match: is_open(said, *match.span()))


def run_tools(text: str) -> tuple[str, ...]:
    """The programs of which this text says that they were run, in small letters. That they find *no* problem does not
    deny it, so only what stands before counts."""
    return _tools(RAN, text, lambda said, match: is_open_before(said, match.start()))


def _tools(claim: re.Pattern[str], text: str, left_open: Callable[[str, re.Match[str]], bool]) -> tuple[str, ...]:
    every = (
        name[1].lower()
        for said in sentences(text)
        for match in claim.finditer(said)
        if not left_open(said, match)
        for name in NAME.finditer(match[0])
    )
    return tuple(dict.fromkeys(every))


def _told(text: str) -> Iterator[str]:
    return (one for one in sentences(text) if not REMOVED.search(one))


def _matched(pattern: re.Pattern[str], said: str) -> Iterator[str]:
    for match in pattern.finditer(said):
        if not is_open(said, match.start(), match.end()):
            yield next(one for one in match.groups() if one is not None)


def _there(said: str) -> Iterator[str]:
    if not THERE.search(unquoted(said)) or ELSEWISE.search(said):
        return
    for quoted in QUOTED.finditer(said):
        name = IN_QUOTES.fullmatch(quoted[1])
        if name is not None and not is_open(said, quoted.start(), quoted.end()):
            yield name[1]
    yield from _matched(BARE, unquoted(said))
