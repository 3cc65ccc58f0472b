"""What a model says at the end is read in a time that grows with its length, whatever it says."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from greenroom.abilities.checks.claims import Facts, among, unproven
from greenroom.abilities.checks.named_claims import clean_tools, named_tests, passing_tests
from greenroom.abilities.checks.prose import ANNOUNCING, LONGEST, PROSE, SENTENCE, is_open, sentences
from greenroom.abilities.checks.undone import undone
from greenroom.app.checks.named_tests import says_they_pass

FACTS = Facts(exists=among(["src/app.py"]), changed=among(["src/app.py"]), passed=3, added=1)
READERS: dict[str, Callable[[str], object]] = {
    "claims": lambda text: unproven(text, FACTS),
    "names of tests": named_tests,
    "tests that pass": passing_tests,
    "programs": clean_tools,
    "what is undone": undone,
    "that they pass": says_they_pass,
}


def again(words: str, length: int) -> str:
    return words * (length // len(words))


def lines(words: str, length: int) -> str:
    """Each is another one: what is said twice is not read twice."""
    return "".join(f"{words} {number}.\n" for number in range(length // (len(words) + 6)))


LOOPS: dict[str, Callable[[int], str]] = {
    "a list without end": lambda length: "I added " + again("src/app.py and ", length),
    "many deeds": lambda length: again("updated src/app.py added src/no.py ", length),
    "many quotes": lambda length: "I updated " + again("`src/app.py` and `it` ", length),
    "many tests": lambda length: "I added " + again("test_a test_b ", length),
    "many that pass": lambda length: again("12 tests pass and all tests pass and ", length),
    "many new files": lambda length: lines(again("new file ", length // 10) + "a.md", length),
    "many of me": lambda length: again("I ", length),
    "many programs": lambda length: again("mypy is clean and ", length),
    "many lines": lambda length: lines("I updated src/app.py, and `src/no.py` was added", length),
    "long lines": lambda length: lines("I added " + again("src/app.py and `src/no.py` and ", length // 10), length),
    "a long way to a list": lambda length: again("and so ", length // 2) + "I added:\n" + lines("- a.py", length // 2),
}


def seconds(read: Callable[[str], object], text: str) -> float:
    """The least of three: whatever else this machine does takes longer only."""
    times = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        times.append(time.process_time() - began)
    return min(times)


@pytest.mark.no_cover
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("reader", READERS)
def test_four_times_as_much_takes_no_more_than_about_four_times_as_long(reader: str, loop: str) -> None:
    read, made, few = READERS[reader], LOOPS[loop], 2_500
    once, more = seconds(read, made(few)), seconds(read, made(4 * few))
    assert more < 7 * once + 0.005, (once, more)


@pytest.mark.no_cover
@pytest.mark.parametrize("reader", READERS)
def test_a_model_that_never_stops_is_read_no_longer_than_one_that_says_much(reader: str) -> None:
    read = READERS[reader]
    much = seconds(read, LOOPS["many lines"](PROSE))
    for loop, made in LOOPS.items():
        assert seconds(read, made(LONGEST)) < 4 * much + 0.05, loop


def test_no_more_is_read_than_anybody_says() -> None:
    (one,) = sentences("a" * LONGEST)
    assert len(one) == SENTENCE
    assert sum(map(len, sentences(lines("something else", LONGEST)))) <= PROSE
    assert sum(map(len, sentences("I changed all of it:\n" + lines("- a.py", LONGEST)))) <= PROSE
    assert list(sentences("```\n" + "x = 1\n" * 5_000 + "```\nIt is done.")) == ["It is done."], "code is not prose"


def test_a_list_belongs_to_the_line_that_announces_it_unless_that_is_a_story() -> None:
    assert list(sentences("I changed:\n- a\n- b\nc")) == ["I changed:", "I changed: - a", "I changed: - b", "c"]
    story = "x" * ANNOUNCING + ":"
    assert list(sentences(f"{story}\n- a")) == [story, "- a"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("X is there", False),
        ("not X", True),
        ("X is not there", True),
        ("X is there, but not Y", False),
        ("`not` X is there", False),
        ("X `if` it is there", False),
        ("X; Y would be", False),
        ("X is what there would be", True),
    ],
)
def test_what_is_open_is_said_before_it_or_in_its_own_clause(said: str, expected: bool) -> None:
    at = said.index("X")
    assert is_open(said, at, at + 1) is expected
