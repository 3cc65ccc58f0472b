"""Sources that were added to what CMake builds: they are the work, as a change of those that were there would be.

Only plain names that are added to a library or a program of which no test is made. All else in the file is for whoever
compares the rest.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.abilities.checks.judge_names import is_test

BUILDS: Final = re.compile(
    r"\b(add_executable|add_library|target_sources)\s*+\(\s*+([\w.+-]++)([^()]*+)\)", re.IGNORECASE
)
SOURCE: Final = re.compile(r"[\w+-][\w./+-]*\.(?:c|cc|cpp|cxx|m|mm|cu|h|hh|hpp|hxx|ipp|inl)")
COMMAND: Final = re.compile(r"\b(\w++)\s*+\(([^()]*+)")

NAME: Final = re.compile(r"[\w.+-]+")
LIKE_A_TEST: Final = re.compile(
    r"(?:^|[_.-])(?:tests?|unittests?|checks?|specs?|bench\w*|verify)(?:$|[_.-])|test$", re.IGNORECASE
)
"""How targets are called that judge, wherever the tests are made of them."""


ODD: Final = frozenset('#"[')
"""Signs with which words are not what they look like: comments, and texts with spaces in them."""


def without_new_sources(before: str, after: str) -> str:
    """The new text, with sources that were only added taken out again. It is compared with the old one: a target that
    stands there twice is the same only if each is what the last of them was."""
    old = {_key(one): one for one in BUILDS.finditer(before)}
    judges = _tested(before) | _tested(after)

    def as_it_was(new: re.Match[str]) -> str:
        known = old.get(_key(new))
        if known is not None and not ODD.isdisjoint(known[3] + new[3]):
            return new[0]
        if known is None or new[2] in judges or LIKE_A_TEST.search(new[2]):
            return new[0]
        return known[0] if _only_more(known[3].split(), new[3].split()) else new[0]

    return BUILDS.sub(as_it_was, after)


def _tested(text: str) -> set[str]:
    """All names in commands that make tests: `add_test`, `gtest_discover_tests`, those of a project."""
    tests = (one for one in COMMAND.finditer(text) if "test" in one[1].lower())
    return {word for one in tests for word in NAME.findall(one[2])}


def _key(one: re.Match[str]) -> tuple[str, str]:
    return one[1].lower(), one[2]


def _only_more(before: list[str], after: list[str]) -> bool:
    """Whether all that was there is there as it was, and the rest are sources of the work."""
    added = [one for one in after if one not in before]
    if any(is_test(one) for one in before) or [one for one in after if one in before] != before:
        return False
    return all(SOURCE.fullmatch(one) and ".." not in one and not is_test(one) for one in added)
